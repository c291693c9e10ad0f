"""Run a class on shared lab machines: turns, board, and the class host itself.

  class init [--file FILE]     make this machine a class host (root): show every step, ask, do the missing steps
  class init --show            show the same with every file's content, and do nothing
  class check                  show what is wrong with the class host; exit 1 if anything is wrong (root)
  class remove                 remove the class host and its results; shows what, and asks first (root)
  class bundle -o FILE         write an archive that installs a class host without the internet
  class turn                   show who has the turn, who waits, and for how long
  class turn take [-- CMD]     wait for the turn and hold it until Ctrl-C, or while CMD runs
  class turn give              give the turn back, from any terminal
  class turn end [USER]        instructors: end the turn, or take USER out of the queue
  class turn freeze            instructors: let no new turn begin
  class turn thaw              instructors: let turns begin again
  class board                  instructors: the chapters, marks and curves of all members;
                               members without progress come first
  class board --chapter ID     instructors: the curves of all members in a chapter, in one chart; with --step STEP
                               only the curves of this step
  class results [--csv]        your results; for instructors those of all members
  class results --forget USER  delete the data of a member; with --forget-all, the data of all members
  class collect FOLDER         the boards and checks of many machines; exit 1 if a machine is silent or has a problem
  class collect FOLDER --chapter ID            the curves of a chapter from all machines; with --step STEP
                               only the curves of this step
  class present [WORDS…]       instructors: show all members where you are; with --chapter ID and --step STEP,
                               members can jump to this place

A measurement takes the turn by itself if the turn is free; 'measure --wait SECONDS' queues for it.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any

from jitter_workshop.commands.common.base import Parser, add_json, offer, require_live_host
from jitter_workshop.commands.common.shared import finite_number
from jitter_workshop.errors import UsageError

_TAKE = ("turn take",)
_PLACES = ("board", "present", "collect")
_OPTIONS: tuple[tuple[str, tuple[str, ...], dict[str, Any]], ...] = (
    (
        "--file",
        ("init", "bundle"),
        {"type": Path, "metavar": "FILE", "help": "with init or bundle: the class file to read"},
    ),
    ("-o --output", ("bundle",), {"type": Path, "metavar": "FILE", "help": "with bundle: the archive to write"}),
    ("--yes", ("init", "remove", "results"), {"help": "with init, remove or --forget-all: go on without asking"}),
    ("--show", ("init", "remove"), {"help": "with init or remove: show what would be done, and do nothing"}),
    (
        "--wait",
        _TAKE,
        {"type": finite_number, "metavar": "S", "help": "with turn take: wait at most S seconds (default: no limit)"},
    ),
    (
        "--with",
        _TAKE,
        {
            "dest": "people",
            "nargs": "+",
            "default": [],
            "metavar": "NAME",
            "help": "with turn take: the people of your team",
        },
    ),
    ("--machine", ("board",), {"help": "with board --json: print JSON that 'class collect' reads"}),
    ("--csv", ("board", "results", "collect"), {"help": "with board, results or collect: print a table as CSV"}),
    ("--forget", ("results",), {"metavar": "USER", "help": "with results: delete the results of USER"}),
    ("--forget-all", ("results",), {"help": "with results: delete the results of all members"}),
    (
        "--chapter",
        _PLACES,
        {
            "metavar": "ID",
            "help": "with present: show chapter ID; with board or collect: draw the curves of chapter ID",
        },
    ),
    ("--step", _PLACES, {"metavar": "STEP", "help": "with present, board or collect: the step of the chapter"}),
    ("--clear", ("present",), {"help": "with present: stop showing the text and the chapter"}),
)
"""Options of ``class``: each has its flags, the actions that accept it, and arguments for argparse. Any other action
refuses the option."""
_OTHERS: tuple[tuple[str, tuple[str, ...], dict[str, Any]], ...] = (
    ("--json", ("check", "turn", "board", "results", "collect"), {}),
    ("command", _TAKE, {}),
)
"""Options that another function adds to the parser, in the form of ``_OPTIONS``. An option is refused by every action
that is not listed with it."""
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


TURN_ACTIONS = ("take", "give", "end", "freeze", "thaw")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    assert isinstance(parser, Parser)
    parser.takes_command = parser.intermixed = True
    do = parser.add_argument("do", nargs="?", metavar="DO", help=f"the action: {', '.join(_MODULES)}")
    offer(do, _MODULES)
    words = parser.add_argument(
        "words",
        nargs="*",
        metavar="WORD",
        help="for turn: take, give, end, freeze or thaw; for present: words to show; for collect: a folder",
    )
    offer(words, TURN_ACTIONS)
    for flags, _, more in _OPTIONS:
        # An option without a metavar is a switch.
        switch: dict[str, Any] = {} if "metavar" in more else {"action": "store_true"}
        parser.add_argument(*flags.split(), **switch, **more)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Run the action of ``class`` and return its exit code. The code is 1 in three cases: ``check`` found a problem,
    ``remove`` left something, or ``collect`` found a machine that is silent or has a problem. For ``turn take -- CMD``,
    the code is the exit code of CMD. In all other cases the code is 0.
    """
    require_live_host(args)
    if args.do not in _MODULES:
        words = f"there is no 'class {args.do}'" if args.do is not None else "'class' alone does nothing"
        raise UsageError(words, f"use one of {', '.join(_MODULES)}")
    if args.session is not None:
        raise UsageError("'class' takes no --session", "a class is for the whole machine, not for a session")
    if args.words and args.do not in ("turn", "present", "collect"):
        raise UsageError(f"'class {args.do}' takes no words", "see 'jitter-workshop class --help'")
    asked = " ".join(["turn", *args.words[:1]]) if args.do == "turn" else args.do
    for flags, takes, more in (*_OPTIONS, *_OTHERS):
        name = more.get("dest") or flags.split()[-1].removeprefix("--").replace("-", "_")
        if getattr(args, name) not in (None, False, []) and asked not in takes:
            raise UsageError(f"'class {asked}' takes no {flags.split()[0]}", "see 'jitter-workshop class --help'")
    code: int = import_module(f"jitter_workshop.commands.classes.{_MODULES[args.do]}").run(args)
    return code
