"""List the chapters for this host, or check a course for mistakes.

  lessons list     the chapters in the order for this host, and how far they are
  lessons check    every mistake in a course's files, each with file and line; exit 1 if there are any

Without --course both mean the built-in course.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from jitter_workshop.commands.base import add_json, print_json
from jitter_workshop.errors import UsageError
from jitter_workshop.model.text import clean


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", default="list", choices=("list", "check", "new"), help="default: list")
    parser.add_argument("id", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("--course", metavar="DIR", type=Path, help="a course of your own instead of the built-in one")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """0 done; 1 when ``check`` found mistakes."""
    if args.action == "new":
        raise UsageError("'lessons new' is not built yet", "copy a chapter's folder and run 'lessons check' on it")
    if args.id is not None:
        raise UsageError(f"'lessons {args.action}' takes no name", "see 'jitter-workshop lessons --help'")
    return _check(args) if args.action == "check" else _list(args)


def _list(args: argparse.Namespace) -> int:
    from jitter_workshop.flow.lessons import chapters

    lines = chapters(args.session, args.course, args.root)
    if args.json:
        print_json({"chapters": list(lines)})
        return 0
    wide = max((len(line.id) for line in lines), default=0)
    for line in lines:
        state = "done" if line.curve and line.setting is not False else "open"
        note = f"   not here: {line.reason}" if line.reason else ""
        sys.stdout.write(f"{line.id:<{wide}}  {state}  {line.minutes:>3} min  {clean(line.title)}{note}\n")
    return 0


def _check(args: argparse.Namespace) -> int:
    from jitter_workshop.flow.lessons import problems

    found = problems(args.course)
    if args.json:
        print_json({"problems": list(found)})
    else:
        for problem in found:
            sys.stdout.write(f"{clean(problem.file, 200)}:{problem.line}: {clean(problem.message, 300)}\n")
        if not found:
            sys.stdout.write("no mistakes\n")
    return 1 if found else 0
