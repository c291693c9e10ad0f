"""Run the guided workshop: where latency jitter on this host comes from, and how to remove it.

On a terminal the workshop uses the full screen; with --plain (or TERM=dumb) it runs line by line. Without a terminal
it prints a description of this host, its chapters, and the commands to run.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import sys
from pathlib import Path
from typing import TextIO

REHEARSED = (120, 36)
"""The columns and rows of a screen that is drawn in advance; another size costs a new layout."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--plain", action="store_true", help="open the workshop as lines of text instead of full screen"
    )
    parser.add_argument("--chapter", metavar="ID", help="begin with the chapter ID")
    parser.add_argument(
        "--course", metavar="DIR", type=Path, help="use the course in the folder DIR instead of the built-in course"
    )


def load_before_fork() -> None:
    """Load the course and draw the first screen once, before this process forks.

    Each forked workshop then starts faster. The first screen needs a session. This session is in a temporary folder,
    which is removed after the drawing.
    """
    import tempfile

    from jitter_workshop.flow.chapters.workshop import Workshop
    from jitter_workshop.tui.app import draw_first_screen as draw

    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update({f"XDG_{name}_HOME": f"{folder}/{name}" for name in ("STATE", "CACHE", "CONFIG")})
        try:
            workshop = Workshop.open()
            try:
                draw(workshop, REHEARSED)
            finally:
                workshop.close()
        finally:
            os.environ.clear()
            os.environ.update(before)


def run(args: argparse.Namespace) -> int:
    """Run the workshop until the learner leaves it, and return 0. Raise WorkshopError if it fails before the first
    screen."""
    # Until the first frame nearly nothing becomes garbage, and looking for it takes a tenth of the start.
    gc.disable()
    try:
        return _run(args)
    finally:
        gc.enable()


def _run(args: argparse.Namespace) -> int:
    from jitter_workshop.flow.chapters.workshop import Workshop, find_chapter
    from jitter_workshop.tui.terminal.terminal_restore import served

    if not served() and not (_is_terminal(sys.stdin) and _is_terminal(sys.stdout)):
        from jitter_workshop.flow.chapters.tour import take_tour
        from jitter_workshop.plain.views import tour_lines
        from jitter_workshop.presenter.text.lines import written

        taken = take_tour(args.session, args.course, args.root)
        if args.chapter is not None:
            find_chapter(taken.course, args.chapter)
        sys.stdout.write(written(tour_lines(taken)))
        return 0

    no_screen = "" if served() else _no_screen()
    plain = not served() and (args.plain or os.environ.get("TERM", "") in ("", "dumb") or bool(no_screen))
    workshop = Workshop.open(args.session, args.course, args.root)
    try:
        if args.chapter is not None:
            find_chapter(workshop.course, args.chapter)
        if plain:
            gc.enable()
            from jitter_workshop.plain.walkthrough import PlainWalk

            if no_screen and not args.plain:
                sys.stdout.write(no_screen)
            return PlainWalk(workshop).run(args.chapter)
        from jitter_workshop.chart.probe import probe_octants
        from jitter_workshop.tui.app import show_workshop as run_screen

        if not served():
            probe_octants()
        return run_screen(workshop, args.chapter)
    finally:
        from jitter_workshop.plain.settings import closing_lines
        from jitter_workshop.presenter.text.lines import Output, written

        # Say here what was restored while leaving: the screen has gone by then, or a signal ended it.
        said = written(closing_lines(workshop, Output().width))
        # A signal comes at a prompt, whose line has no newline yet.
        _tell(f"\n{said}" if said and plain else said, sys.stderr if served() else sys.stdout)


def _tell(text: str, where: TextIO) -> None:
    """Write text to a stream. If the stream's terminal is closed, write nothing.

    A workshop in a browser writes to standard error, because its standard output carries the screen.
    """
    with contextlib.suppress(OSError, ValueError):
        where.write(text)
        where.flush()


def _is_terminal(stream: object) -> bool:
    """Return True if a standard stream exists, is open, and is a terminal."""
    isatty = getattr(stream, "isatty", None)
    try:
        return bool(isatty and isatty())
    except ValueError:
        return False


def _no_screen() -> str:
    """Return a sentence with the reason why this terminal cannot show the full screen; "" if the terminal can."""
    from jitter_workshop.presenter.text.lines import LEAST_HEIGHT, LEAST_WIDTH

    if not _is_terminal(sys.stderr):
        # Textual draws on stderr: the screen would go into a file, and the learner would see nothing.
        return "Standard error is not the terminal, so the workshop runs line by line.\n"
    try:
        size = os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        return ""
    # A terminal that does not know its size says 0 × 0; the screen then assumes 80 × 24.
    if not size.columns or not size.lines:
        return ""
    if size.columns >= LEAST_WIDTH and size.lines >= LEAST_HEIGHT:
        return ""
    return (
        f"This terminal has {size.columns}×{size.lines}, and the screen needs {LEAST_WIDTH}×{LEAST_HEIGHT}, so "
        "the workshop runs line by line.\n"
    )
