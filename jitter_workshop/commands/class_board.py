"""``class board``, ``results`` and ``present``."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from jitter_workshop.commands.base import print_json
from jitter_workshop.errors import UsageError

if TYPE_CHECKING:
    from jitter_workshop.flow.classboard import Gathered


def run(args: argparse.Namespace) -> int:
    """0 done."""
    if args.do == "present":
        return _present(args)
    if args.do == "results" and (args.forget is not None or args.forget_all):
        return _forget(args)
    from jitter_workshop.flow.classboard import Gathered, board, board_json, csv_table

    here = board()
    boards: list[Gathered] = [Gathered(here.host, here, None)]
    if args.do == "results" or args.csv:
        sys.stdout.write(csv_table(boards))
    elif args.json:
        print_json(here if args.machine else board_json(boards))
    else:
        from jitter_workshop.report.board_text import board_text

        sys.stdout.write(board_text([(one.host, one.board, one.error) for one in boards]))
    return 0


def _present(args: argparse.Namespace) -> int:
    from jitter_workshop.flow import classboard

    words = " ".join(args.words)
    if args.clear:
        if words or args.chapter:
            raise UsageError("--clear shows nothing: leave out the rest")
        classboard.present_nothing()
        return 0
    if not words and args.chapter is None:
        if sys.stdin.isatty() and sys.stdout.isatty():
            from jitter_workshop.tui.present import run_present

            return run_present()
        raise UsageError("what is to be shown?", "words, or --chapter ID, or --clear")
    if args.chapter is not None:
        from jitter_workshop.flow.lessons import chapters

        known = [line.id for line in chapters(args.session, None, args.root)]
        if args.chapter not in known:
            raise UsageError(f"there is no chapter '{args.chapter}'", f"one of {', '.join(known)}")
    classboard.present(args.chapter or "", args.step, words)
    return 0


def _forget(args: argparse.Namespace) -> int:
    from jitter_workshop.flow import classboard

    if args.forget is not None and args.forget_all:
        raise UsageError("--forget names one, --forget-all means everybody", "say one of them")
    if args.forget_all and not args.yes:
        raise UsageError("everybody's results would be gone", "say --yes")
    gone = classboard.forget(args.forget)
    if args.json:
        print_json({"forgotten": gone})
    else:
        print(f"{gone} forgotten" if gone else "nobody of that name had posted anything")
    return 0
