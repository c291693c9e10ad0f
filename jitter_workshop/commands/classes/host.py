"""Run ``class init``, ``check``, ``remove`` and ``bundle``: show what would be done, ask, and do it."""

from __future__ import annotations

import argparse
import sys

from jitter_workshop.commands.common.base import print_notice, print_result, show_lines
from jitter_workshop.commands.common.shared import agreed
from jitter_workshop.errors import UsageError
from jitter_workshop.flow.classes import classadmin
from jitter_workshop.flow.classes.classadmin import HostStep
from jitter_workshop.model.text import PATH, REASON, clean

ALREADY = "this is a class host already; there is nothing to do"
"""The sentence that ``class init`` prints if no step is missing. The Ansible role reads ``class init``'s output and
looks for the end of this sentence."""


def run(args: argparse.Namespace) -> int:
    """Run the subcommand. Return 1 if ``check`` found a problem, or if ``remove`` left something; else 0."""
    return {"init": _init, "check": _check, "remove": _remove, "bundle": _bundle}[args.do](args)


def _init(args: argparse.Namespace) -> int:
    asked = classadmin.wish(args.file)
    todo = classadmin.to_do(asked)
    if not todo:
        print(ALREADY)
        return 0
    if args.show:
        print("\n".join(_shown(todo)))
        return 0
    _somebody_here(args, "use --yes, or --show to read what would be written")
    print_notice("to make this a class host:")
    for step, why in todo:
        _item("- ", f"{step.what}  ({clean(why, REASON)})")
    if not asked.systemd:
        _item("", "(this machine has no systemd, so sudo starts both services for each connection)")
    for one in classadmin.doubts(asked):
        _item("! ", f"{one.what}: {one.fix}")
    _agreed(args, "Do it?")
    for step in classadmin.init(todo):
        _item("… ", step.what)
    print(
        "done. Add each student and instructor to the group: usermod -aG jitterlab NAME. Then each must log in again."
    )
    return 0


def _item(mark: str, words: str) -> None:
    """Print one item of a list on stderr, wrapped to the terminal's width. ``mark``: the text in front of the item,
    such as a bullet."""
    from jitter_workshop.presenter.text.lines import wrap

    show_lines(lambda width: wrap(words, width, mark), sys.stderr)


def _shown(todo: tuple[tuple[HostStep, str], ...]) -> list[str]:
    """Return lines that describe each step, its reason, and the content of its file."""
    lines = []
    for step, why in todo:
        lines.append(f"{step.what}  ({clean(why, REASON)})")
        lines += [f"    {clean(line, PATH)}".rstrip() for line in step.text.splitlines()]
    return lines


def _check(args: argparse.Namespace) -> int:
    problems = classadmin.check_class_host()
    text = "".join(f"{one.what}: {one.fix}\n" for one in problems) or "everything is as it should be\n"
    print_result(args, {"problems": list(problems)}, text)
    return 1 if problems else 0


def _remove(args: argparse.Namespace) -> int:
    there = classadmin.to_remove()
    if not there:
        print("nothing to remove: this machine has no part of a class host")
        return 0
    if not args.show:
        _somebody_here(args, "use --yes, or --show to see what would be removed")
    print_notice("to be removed:")
    for words in there:
        _item("- ", words)
    if args.show:
        return 0
    _agreed(args, "Remove all of this?")
    left = classadmin.remove_class_host()
    for words in left:
        print(words)
    if not left:
        print("nothing is left")
    return 1 if left else 0


def _bundle(args: argparse.Namespace) -> int:
    """Write one archive from which a class host can be made without the internet."""
    if args.output is None:
        raise UsageError("the archive needs a file name", "-o FILE.tar.gz")
    classadmin.bundle(args.output, args.file)
    print(args.output)
    return 0


def _somebody_here(args: argparse.Namespace, advice: str) -> None:
    """Raise UsageError with ``advice`` if the user must answer a question, but there is no terminal. With ``--yes`` the
    user need not answer."""
    if not args.yes and not sys.stdin.isatty():
        raise UsageError("there is no terminal to ask for confirmation", advice)


def _agreed(args: argparse.Namespace, question: str) -> None:
    """Ask ``question`` if ``--yes`` is not given. Raise UsageError if the answer is not yes."""
    if not args.yes and not agreed(question):
        raise UsageError("nothing was done")
