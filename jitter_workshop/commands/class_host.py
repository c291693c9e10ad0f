"""``class init``, ``check`` and ``remove``: shows what would be done, asks, does it."""

from __future__ import annotations

import argparse
import sys

from jitter_workshop.commands.base import print_json
from jitter_workshop.errors import UsageError
from jitter_workshop.model.text import clean


def run(args: argparse.Namespace) -> int:
    """0 done, 1 something is wrong, or left."""
    return {"init": _init, "check": _check, "remove": _remove}[args.do](args)


def _init(args: argparse.Namespace) -> int:
    from jitter_workshop.flow import classadmin

    asked = classadmin.wish(args.file)
    todo = classadmin.open_steps(asked)
    if not todo:
        print("this is a class host already; nothing is to do")
        return 0
    print("to make this a class host:")
    for step, why in todo:
        print(f"  {step.what}  ({clean(why, 160)})")
    if not asked.systemd:
        print("  (this machine's init is not systemd: both services are started by sudo for each connection)")
    _agreed(args, "Do it? [y/N] ")
    for step in classadmin.init(asked):
        print(f"… {step.what}", flush=True)
    print("done. Put each student into the group: usermod -aG jitterlab NAME; then they log in again")
    return 0


def _check(args: argparse.Namespace) -> int:
    from jitter_workshop.flow import classadmin

    problems = classadmin.check()
    if args.json:
        print_json({"problems": list(problems)})
    elif not problems:
        print("all is as it should be")
    else:
        for one in problems:
            print(f"{one.what}: {one.fix}")
    return 1 if problems else 0


def _remove(args: argparse.Namespace) -> int:
    from jitter_workshop.flow import classadmin

    there = classadmin.leftovers()
    print("to be removed, with all results and the audit of this class:")
    for path in there:
        print(f"  {path}")
    print(f"  the user and the group {classadmin.GROUP}")
    _agreed(args, "Remove all of it? [y/N] ")
    left = classadmin.remove()
    for words in left:
        print(words)
    if not left:
        print("nothing is left")
    return 1 if left else 0


def _agreed(args: argparse.Namespace, question: str) -> None:
    """Raises UsageError unless somebody says yes."""
    if args.yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("nobody is here to ask", "say --yes")
    sys.stdout.write(question)
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UsageError("nothing was done")
