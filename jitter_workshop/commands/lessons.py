"""List the chapters for this host, check a course, or begin a new chapter.

  lessons list                  the chapters in the order for this host, and your progress
  lessons check [--course DIR]  every mistake in a course, each with file and line; exit 1 if there is one
  lessons new ID --course DIR   a new chapter in DIR that works as it stands, with comments on how to go on

Without --course, list and check use the built-in course. A check reads the files and more: each check of a tunable must
fail on the chapter's recording and pass on recording_after, and every mark must be possible to earn. Nothing of this
host is measured or changed. docs/writing-lessons.md explains how to write lessons.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from jitter_workshop.commands.common.base import PROGRAM, add_json, print_json
from jitter_workshop.errors import UsageError
from jitter_workshop.model.record import picked
from jitter_workshop.model.text import clean
from jitter_workshop.model.walk import PathEntry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", default="list", choices=("list", "check", "new"), help="default: list")
    parser.add_argument("id", nargs="?", metavar="ID", help="new: the chapter's id, small letters, digits and hyphens")
    parser.add_argument("--course", metavar="DIR", type=Path, help="a course of your own instead of the built-in one")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Run the action. Return 1 if ``check`` found mistakes, else 0."""
    if args.action == "new":
        return _new(args)
    if args.id is not None:
        raise UsageError(f"'lessons {args.action}' takes no name", "see 'jitter-workshop lessons --help'")
    return _check(args) if args.action == "check" else _list(args)


def _list(args: argparse.Namespace) -> int:
    from jitter_workshop.flow.chapters.tour import take

    path = take(args.session, args.course, args.root).path
    if args.json:
        print_json({"chapters": [_as_json(entry) for entry in path]})
        return 0
    wide = max((len(entry.chapter_id) for entry in path), default=0)
    for entry in path:
        state = "done" if entry.done or (entry.curve and entry.setting is not False) else "open"
        note = f"   not on this host: {clean(entry.reason, 600)}" if entry.reason else ""
        sys.stdout.write(f"{entry.chapter_id:<{wide}}  {state}  {entry.minutes:>3} min  {clean(entry.title)}{note}\n")
    return 0


def _as_json(entry: PathEntry) -> dict[str, object]:
    """Return a chapter of the path as JSON fields. ``here``: "yes", or "recorded" if the chapter cannot be done on this
    host (``reason`` tells why). ``setting``: null if the chapter changes no setting (``notes`` tells so)."""
    return {
        "id": entry.chapter_id,
        **picked(entry, "title", "minutes"),
        "here": "yes" if entry.here else "recorded",
        **picked(entry, "setting", "curve", "summary", "reason", "done"),
        "notes": {"setting": "this chapter changes nothing"} if entry.setting is None else {},
    }


def _check(args: argparse.Namespace) -> int:
    from jitter_workshop.flow.chapters.lessoncheck import check

    checked = check(args.course)
    if args.json:
        print_json(checked)
        return 1 if checked.problems else 0
    for problem in checked.problems:
        sys.stdout.write(f"{clean(problem.file, 200)}:{problem.line}: {clean(problem.message, 300)}\n")
    if not checked.problems:
        sys.stdout.write(f"{checked.chapters} {'chapter' if checked.chapters == 1 else 'chapters'}, no mistakes\n")
    for folder in checked.unlisted:
        sys.stdout.write(f"not checked, because course.toml does not list it: {clean(folder, 100)}\n")
    return 1 if checked.problems else 0


def _new(args: argparse.Namespace) -> int:
    from jitter_workshop.course.newlesson import new_lesson

    if args.id is None:
        raise UsageError("the new chapter needs an id", f"use '{PROGRAM} lessons new ID --course DIR'")
    if args.course is None:
        raise UsageError(
            "the new chapter needs a course", "name its folder with --course DIR; a missing folder is made"
        )
    made = new_lesson(args.id, args.course)
    if args.json:
        print_json(made)
        return 0
    place = clean(args.course / made.folder, 400)
    sys.stdout.write(f"made {place}, with {' and '.join(made.files)}\n")
    if made.new_course:
        sys.stdout.write(f"made {clean(args.course / 'course.toml', 400)}, which lists the chapter\n")
    elif made.listed:
        sys.stdout.write("course.toml lists the chapter as its last one\n")
    else:
        sys.stdout.write(f'course.toml is left alone: add "{made.folder}" to its chapters\n')
    sys.stdout.write(f"Go on with: {PROGRAM} lessons check --course {clean(args.course, 400)}\n")
    return 0
