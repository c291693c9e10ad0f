"""Check the options of ``--perfetto FILE``, and write the Perfetto file, for several verbs."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from jitter_workshop.commands.common.base import print_notice
from jitter_workshop.errors import UsageError
from jitter_workshop.model.text import PATH, clean


def add_tracks_option(parser: argparse._ActionsContainer, words: str) -> None:
    parser.add_argument("--perfetto", metavar="FILE", help=words)
    parser.add_argument("--force", action="store_true", help="with --perfetto: replace an existing file")


def check_tracks_option(args: argparse.Namespace) -> None:
    """Check the options of a Perfetto file before anything is observed. Raise a WorkshopError if the file could not be
    written."""
    if args.perfetto is None:
        if args.force:
            raise UsageError("--force needs --perfetto")
        return
    from jitter_workshop.flow.reporting.files import check_target as check_file
    from jitter_workshop.report.formats.perfetto import messages

    if args.perfetto in ("", "-"):
        raise UsageError("--perfetto needs the name of a file")
    with _advised():
        check_file(Path(args.perfetto), args.force)
    messages()


def write_tracks(args: argparse.Namespace, tracks: bytes) -> None:
    """Write the tracks to the Perfetto file. Print the file's name, and the address of a web page that shows such
    files."""
    from jitter_workshop.flow.reporting.files import write_files

    sys.stdout.flush()
    path = Path(args.perfetto)
    with _advised():
        (made,) = write_files({path.name: tracks}, path.parent, force=args.force)
    print_notice(f"tracks written to {clean(made, PATH)}: open the file at https://ui.perfetto.dev")


@contextlib.contextmanager
def _advised() -> Iterator[None]:
    """Correct the advice of an error about the Perfetto file. If the body raises NotWritten, raise NotWritten with
    advice that names ``--perfetto`` in place of ``-o``.
    """
    from jitter_workshop.flow.reporting.files import NotWritten

    try:
        yield
    except NotWritten as error:
        advice = "" if "-o -" in error.advice else error.advice.replace("with -o", "with --perfetto")
        raise NotWritten(error.message, advice) from error
