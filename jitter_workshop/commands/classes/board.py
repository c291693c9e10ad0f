"""Run ``class board``, ``results`` and ``present``."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from jitter_workshop.commands.common.base import print_json, say
from jitter_workshop.errors import UsageError
from jitter_workshop.model.board import MAX_SAID
from jitter_workshop.model.text import clean, many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitter_workshop.flow.classes.classboard import ClassTable
    from jitter_workshop.model.board import Board


def run(args: argparse.Namespace) -> int:
    """Return 0."""
    if args.do == "present":
        return _present(args)
    if args.do == "results":
        return _results(args)
    return _board(args)


def _board(args: argparse.Namespace) -> int:
    from jitter_workshop.flow.classes import classboard

    one_form(args)
    if args.machine and not args.json:
        raise UsageError("--machine is another form of --json", "add --json")
    known_place(args.chapter, args.step)
    here = classboard.board()
    boards = (classboard.ClassTable(here.host, here, None),)
    if args.csv:
        sys.stdout.write(classboard.csv_table(boards, classboard.judged()))
    elif args.json:
        print_json(here if args.machine else classboard.board_json(boards))
    elif args.chapter is not None:
        show_class_curves(here, args.chapter, args.step or "")
    else:
        show_boards(boards)
    return 0


def _results(args: argparse.Namespace) -> int:
    """Show what this caller may see: all results for an instructor, their own for a student."""
    if args.forget is not None or args.forget_all:
        return _forget(args)
    from jitter_workshop.flow.classes import classboard

    one_form(args)
    if args.yes:
        raise UsageError("--yes belongs to --forget-all", "leave it out")
    found = classboard.results()
    boards = (classboard.ClassTable(found.host, found, None),)
    if args.json:
        print_json(classboard.board_json(boards))
    elif args.csv:
        sys.stdout.write(classboard.csv_table(boards, classboard.judged()))
    else:
        show_boards(boards)
    return 0


def one_form(args: argparse.Namespace) -> None:
    """Raise UsageError if two output forms are asked for at once."""
    if args.csv and args.json:
        raise UsageError("--csv and --json are two forms", "use one of them")
    if args.chapter is not None and (args.csv or args.json):
        raise UsageError("--chapter draws the curves", "leave it out: --csv and --json have every chapter")


def show_boards(boards: Sequence[ClassTable]) -> None:
    """Print the boards as a table that fits the terminal."""
    from jitter_workshop.flow.classes import classboard
    from jitter_workshop.report.text.board import board_text
    from jitter_workshop.report.text.terminal import output_style

    course = classboard.judged()
    sys.stdout.write(board_text(classboard.machines(boards), course.columns, course.near, output_style()))


def show_class_curves(board: Board, chapter: str, step: str) -> None:
    """Print the curves of all members in a chapter over each other, with remarks."""
    from jitter_workshop.chart.printed import printed
    from jitter_workshop.flow.classes.presenting import class_curves, curves_by, outermost
    from jitter_workshop.report.text.terminal import output_style, wrap

    shown, told = class_curves(board, chapter, step)
    crowd, named = outermost([one.curve for one in shown], curves_by(board, chapter))
    if shown:
        sys.stdout.write(printed([*crowd, *named], crowd=len(crowd)))
    words = f"{many(len(shown), 'member')}: {told}" if shown else told
    sys.stdout.write("".join(f"{line}\n" for line in wrap(words, output_style().width)))


def known_place(ident: str | None, step: str | None) -> None:
    """Raise UsageError for an unknown chapter of the course, or an unknown step of that chapter. None: none was
    named."""
    from jitter_workshop.course.loader import load_course

    if ident is None:
        if step is not None:
            raise UsageError("--step needs a chapter", "name it with --chapter ID")
        return
    known = {chapter.id: chapter.steps for chapter in load_course().chapters}
    if ident not in known:
        raise UsageError(f"there is no chapter '{clean(ident, 40)}'", f"one of {', '.join(known)}")
    if step is not None and step not in known[ident]:
        raise UsageError(f"there is no step '{clean(step, 40)}' in {ident}", f"one of {', '.join(known[ident])}")


def _present(args: argparse.Namespace) -> int:
    from jitter_workshop.flow.classes import classboard
    from jitter_workshop.flow.turns.classhost import class_chapters

    words = " ".join(args.words)
    if args.clear:
        if words or args.chapter or args.step:
            raise UsageError("--clear shows nothing: leave out the rest")
        classboard.present_nothing()
        return 0
    known_place(args.chapter, args.step)
    chosen = class_chapters()
    if args.chapter is not None and chosen and args.chapter not in chosen:
        raise UsageError(f"{args.chapter} is not a chapter of this class", f"one of {', '.join(chosen)}")
    if len(words) > MAX_SAID:
        raise UsageError(f"the text has {len(words)} characters; at most {MAX_SAID} are shown", "shorten it")
    if not words and args.chapter is None:
        if sys.stdin.isatty() and sys.stdout.isatty():
            from jitter_workshop.tui.screens.class_host.present import run_present

            return run_present()
        raise UsageError("there is nothing to show", "give words, or --chapter ID, or --clear")
    classboard.present(args.chapter or "", args.step or "", words)
    say("all members see it now; 'class present' alone shows it full screen, --clear removes it")
    return 0


def _forget(args: argparse.Namespace) -> int:
    from jitter_workshop.flow.classes import classboard

    if args.forget is not None and args.forget_all:
        raise UsageError("--forget names one member, --forget-all means all", "use one of them")
    if args.csv:
        raise UsageError("--csv is a form of the results", "leave it out: --forget prints a number only")
    if args.forget_all and not args.yes:
        raise UsageError("this deletes the results of all members", "use --yes to confirm")
    if args.yes and not args.forget_all:
        raise UsageError("--yes belongs to --forget-all", "leave it out")
    gone = classboard.forget(args.forget)
    if args.forget is not None and not gone:
        raise UsageError(
            f"no member '{clean(args.forget, 40)}' has posted anything", "'class results' lists those who have"
        )
    if args.json:
        print_json({"forgotten": gone})
    else:
        print(f"{gone} forgotten")
    return 0
