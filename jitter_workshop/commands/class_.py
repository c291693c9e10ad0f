"""Run a class on shared lab machines: turns, board, and the class host itself.

  class init [--file FILE]     make this machine a class host: shows every step, asks, does what is missing (root)
  class init --show            show the same with every file's content, and do nothing
  class check                  show what is wrong with it; exit 1 if anything is (root)
  class remove                 remove all of it, results too; shows and asks first (root)
  class bundle -o FILE         one archive that installs a class host without the internet
  class turn                   show who has the turn, who waits, and for how long
  class turn take [-- CMD]     wait for the turn and hold it until Ctrl-C, or while CMD runs
  class turn give              give it back, from any terminal
  class turn end [USER]        instructors: end the turn, or take USER out of the queue
  class turn freeze | thaw     instructors: no new turn begins; turns begin again
  class board                  instructors: the chapters, marks and curves of all members, stuck members first
  class board --chapter ID     instructors: the curves of all members in a chapter, over each other; --step STEP
  class results [--csv]        what you posted; for instructors what all members posted; --forget USER, --forget-all
  class collect FOLDER         the boards and checks of many machines; exit 1 if one is silent or not well
  class collect FOLDER --chapter ID            the curves of a chapter from all machines; --step STEP
  class present [WORDS…]       instructors: show where you are; --chapter ID, --step STEP: members can jump there

A measurement takes the turn by itself if it is free; with 'measure --wait SECONDS' it queues.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from jitter_workshop.commands.common.base import Parser, add_json, require_live_host
from jitter_workshop.commands.common.shared import number
from jitter_workshop.errors import UsageError

_FLAGS = {
    "file": "--file",
    "output": "-o",
    "yes": "--yes",
    "show": "--show",
    "wait": "--wait",
    "people": "--with",
    "machine": "--machine",
    "csv": "--csv",
    "forget": "--forget",
    "forget_all": "--forget-all",
    "chapter": "--chapter",
    "step": "--step",
    "clear": "--clear",
    "json": "--json",
    "command": "command",
}
_TAKES = {
    "init": {"file", "yes", "show"},
    "check": {"json"},
    "remove": {"yes", "show"},
    "bundle": {"output", "file"},
    "turn": {"json"},
    "turn take": {"wait", "people", "command"},
    "board": {"machine", "csv", "chapter", "step", "json"},
    "results": {"csv", "forget", "forget_all", "yes", "json"},
    "present": {"chapter", "step", "clear"},
    "collect": {"csv", "chapter", "step", "json"},
}
"""The options of each action: an option that would do nothing is refused."""
_MODULES = {
    "init": "host",
    "check": "host",
    "remove": "host",
    "bundle": "host",
    "turn": "turn",
    "board": "board",
    "results": "board",
    "present": "board",
    "collect": "board",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    assert isinstance(parser, Parser)
    parser.takes_command = parser.intermixed = True
    parser.add_argument("do", nargs="?", metavar="DO", help=f"what to do: {', '.join(_MODULES)}")
    parser.add_argument("words", nargs="*", metavar="WORD", help="turn: take, give, …; present: words; collect: folder")
    parser.add_argument("--file", type=Path, metavar="FILE", help="init, bundle: the class file")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="bundle: the archive to write")
    parser.add_argument("--yes", action="store_true", help="init, remove, --forget-all: do not ask")
    parser.add_argument("--show", action="store_true", help="init, remove: only show what would be done")
    parser.add_argument("--wait", type=number, metavar="S", help="turn take: wait at most so long (default: no limit)")
    parser.add_argument("--with", dest="people", nargs="+", default=[], metavar="NAME", help="turn take: your team")
    parser.add_argument("--machine", action="store_true", help="board --json: as 'class collect' reads it")
    parser.add_argument("--csv", action="store_true", help="board, results, collect: as a table")
    parser.add_argument("--forget", metavar="USER", help="results: forget a member")
    parser.add_argument("--forget-all", action="store_true", help="results: forget all members")
    parser.add_argument("--chapter", metavar="ID", help="present: where you are; board, collect: the curves there")
    parser.add_argument("--step", metavar="STEP", help="present, board, collect: the chapter's step")
    parser.add_argument("--clear", action="store_true", help="present: remove what is shown")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Return 0; 1 if ``check`` or ``remove`` found something, or ``collect`` a machine that is not well."""
    require_live_host(args)
    if args.do not in _MODULES:
        words = f"there is no 'class {args.do}'" if args.do is not None else "'class' alone does nothing"
        raise UsageError(words, f"one of {', '.join(_MODULES)}")
    if args.session is not None:
        raise UsageError("'class' takes no --session", "a class is for the whole machine")
    if args.words and args.do not in ("turn", "present", "collect"):
        raise UsageError(f"'class {args.do}' takes no words", "see 'jitter-workshop class --help'")
    asked = " ".join(["turn", *args.words[:1]]) if args.do == "turn" else args.do
    for name, flag in _FLAGS.items():
        if getattr(args, name) not in (None, False, []) and name not in _TAKES.get(asked, ()):
            raise UsageError(f"'class {asked}' takes no {flag}", "see 'jitter-workshop class --help'")
    code: int = import_module(f"jitter_workshop.commands.classes.{_MODULES[args.do]}").run(args)
    return code
