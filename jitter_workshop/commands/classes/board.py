"""Run ``class board``, ``results``, ``collect`` and ``present``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from jitter_workshop.chart.canvas import curves_for_terminal
from jitter_workshop.classroom import client as board_service
from jitter_workshop.commands.common.base import print_json, print_notice, print_result, show_lines
from jitter_workshop.course.loader import load_course
from jitter_workshop.errors import UsageError
from jitter_workshop.flow.classes.classboard import (
    ClassTable,
    CourseJudge,
    board_json,
    csv_table,
    gathered,
    machines,
    merge_boards,
)
from jitter_workshop.flow.classes.presenting import class_curves, curves_by, outermost
from jitter_workshop.flow.turns.classhost import class_chapters
from jitter_workshop.model.board import MAX_SAID, Banner, Board
from jitter_workshop.model.text import ID, clean, many
from jitter_workshop.presenter.classes.board import boards as boards_shown
from jitter_workshop.presenter.classes.board import checks, fleet
from jitter_workshop.presenter.text.lines import wrap


def run(args: argparse.Namespace) -> int:
    """Run the subcommand. Return 1 if ``collect`` found a machine that is silent or has a problem, else 0."""
    return {"board": _board, "results": _results, "collect": _collect, "present": _present}[args.do](args)


def _board(args: argparse.Namespace) -> int:
    _one_form(args)
    if args.machine and not args.json:
        raise UsageError("--machine is another form of --json", "add --json")
    _known_place(args.chapter, args.step)
    with board_service.connect_to_board() as client:
        here = client.board()
    if args.machine:
        print_json(here)
    elif args.chapter is not None:
        _show_curves(here, args.chapter, args.step or "")
    else:
        _show(args, here)
    return 0


def _results(args: argparse.Namespace) -> int:
    """Print the results of chapters: all members' results for an instructor, the user's own for any other user."""
    if args.forget is not None or args.forget_all:
        return _forget(args)

    _one_form(args)
    if args.yes:
        raise UsageError("--yes is only for --forget-all", "leave it out")
    with board_service.connect_to_board() as client:
        _show(args, client.board() if client.instructs else client.mine())
    return 0


def _show(args: argparse.Namespace, board: Board) -> None:
    """Print the class's board of this machine as a table, as CSV or as JSON."""
    boards = (ClassTable(board.host, board),)
    if args.csv:
        sys.stdout.write(csv_table(boards, CourseJudge()))
    elif args.json:
        print_json(board_json(boards))
    else:
        _show_boards(boards)


def _collect(args: argparse.Namespace) -> int:
    """Show the boards and checks of many machines, gathered in a folder.

    Return 0 if every machine has sent its files and no machine can improve a setting; else 1. With ``--chapter``, show
    only the curves. Then return 1 only if a machine has sent no board.
    """
    if len(args.words) != 1 or not args.words[0]:
        raise UsageError("give one folder", "'class collect FOLDER' reads the results of the playbook gather.yml")
    _one_form(args)
    _known_place(args.chapter, args.step)
    found = gathered(Path(args.words[0]))
    if not found:
        raise UsageError(
            "this folder has no gathered results", "each machine has a folder with status.json and board.json"
        )
    answered = [one for one in found if one.board is not None]
    if args.chapter is not None:
        _show_boards([one for one in found if one.board is None])
        _show_curves(merge_boards(answered), args.chapter, args.step or "")
        return 0 if len(answered) == len(found) else 1
    rows = fleet([(one.host, one.status, one.error) for one in found])
    if args.csv:
        sys.stdout.write(csv_table(found, CourseJudge()))
    elif args.json:
        print_json({**board_json(found), "fleet": [row.plain() for row in rows]})
    else:
        show_lines(partial(checks, rows))
        if answered:
            # The table above lists the silent machines, and why.
            sys.stdout.write("\n")
            _show_boards(answered)
    return 0 if all(row.well for row in rows) else 1


def _one_form(args: argparse.Namespace) -> None:
    """Raise UsageError if the options ask for two forms of output."""
    if args.csv and args.json:
        raise UsageError("--csv and --json contradict each other", "use only one of these options")
    if args.chapter is not None and (args.csv or args.json):
        raise UsageError("--chapter draws only curves", "leave out --chapter: --csv and --json have every chapter")


def _show_boards(boards: Sequence[ClassTable]) -> None:
    """Print the boards of several machines as one table that fits the terminal."""
    course = CourseJudge()
    show_lines(partial(boards_shown, machines(boards), course.columns, course.near))


def _show_curves(board: Board, chapter: str, step: str) -> None:
    """Print one chart with the curves of all members in one chapter, and remarks on them."""
    shown, told = class_curves(board, chapter, step)
    crowd, named = outermost([one.curve for one in shown], curves_by(board, chapter))
    if shown:
        sys.stdout.write(curves_for_terminal([*crowd, *named], crowd=len(crowd)))
    words = f"{many(len(shown), 'member')}: {told}" if shown else told
    show_lines(partial(wrap, words))


def _known_place(ident: str | None, step: str | None) -> None:
    """Raise UsageError if the course has no chapter ``ident``, or the chapter has no step ``step``. None means that the
    user did not give this option. Also raise UsageError for a step without a chapter."""
    if ident is None:
        if step is not None:
            raise UsageError("--step needs a chapter", "name the chapter with --chapter ID")
        return
    known = {chapter.id: chapter.steps for chapter in load_course().chapters}
    if ident not in known:
        raise UsageError(f"there is no chapter '{clean(ident, ID)}'", f"one of {', '.join(known)}")
    if step is not None and step not in known[ident]:
        raise UsageError(f"there is no step '{clean(step, ID)}' in {ident}", f"one of {', '.join(known[ident])}")


def _present(args: argparse.Namespace) -> int:
    words = " ".join(args.words)
    if args.clear:
        if words or args.chapter or args.step:
            raise UsageError("--clear removes what is shown, so it takes no text and no chapter")
        with board_service.connect_to_board() as client:
            client.say(None)
        return 0
    _known_place(args.chapter, args.step)
    chosen = class_chapters()
    if args.chapter is not None and chosen and args.chapter not in chosen:
        raise UsageError(f"{args.chapter} is not a chapter of this class", f"one of {', '.join(chosen)}")
    if len(words) > MAX_SAID:
        raise UsageError(f"the text has {len(words)} characters; at most {MAX_SAID} are allowed", "shorten it")
    if not words and args.chapter is None:
        if sys.stdin.isatty() and sys.stdout.isatty():
            from jitter_workshop.tui.screens.class_host.present import run_present

            return run_present()
        raise UsageError("there is nothing to show", "give words, or --chapter ID, or --clear")
    with board_service.connect_to_board() as client:
        client.say(Banner(by="", at="", chapter=args.chapter or "", step=args.step or "", text=words))
    print_notice(
        "all members now see what you present. 'class present' shows the same on your full screen. 'class "
        "present --clear' ends the presentation."
    )
    return 0


def _forget(args: argparse.Namespace) -> int:
    if args.forget is not None and args.forget_all:
        raise UsageError("--forget names one member, --forget-all means all", "use only one of these options")
    if args.csv:
        raise UsageError("--csv prints results, but --forget prints only a number", "leave out --csv")
    if args.forget_all and not args.yes:
        raise UsageError("this deletes the results of all members", "use --yes to confirm")
    if args.yes and not args.forget_all:
        raise UsageError("--yes is only for --forget-all", "leave it out")
    with board_service.connect_to_board() as client:
        gone = client.forget(args.forget)
    if args.forget is not None and not gone:
        raise UsageError(
            f"no member '{clean(args.forget, ID)}' has sent results", "'class results' lists the members with results"
        )
    print_result(args, {"forgotten": gone}, f"{gone} forgotten\n")
    return 0
