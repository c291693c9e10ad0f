"""Draw the percentile curves of runs.

RUN is an id, the unique beginning of one, a label (the newest run that has it), or @1 for the newest run, @2, …
Without RUN: the latest six runs of the session. Lines are solid where at least ten samples lie beyond, else dotted.
On a terminal the chart takes its width; elsewhere it is plain text of 80 columns. With -o FILE.svg it is a picture.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from jitter_workshop.errors import SessionError, UsageError
from jitter_workshop.model.text import clean

if TYPE_CHECKING:
    from jitter_workshop.model.curve import PercentileCurve

LATEST = 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="*", help="the runs to draw (default: the latest six)")
    parser.add_argument("-o", "--output", metavar="FILE.svg", type=Path, help="write a picture instead")
    parser.add_argument("--published", action="store_true", help="overlay the laptop's curves published in 2015")
    parser.add_argument("--metric", metavar="M", help="a histogram, such as publisher_interval (default: the main one)")


def run(args: argparse.Namespace) -> int:
    """0 done."""
    _refuse_other_formats(args.output)
    curves, notices = _curves(args)
    if args.output is not None:
        from jitter_workshop.report.svg import render_svg

        _write(args.output, render_svg(curves))
        text = f"{args.output}\n"
    else:
        from jitter_workshop.tui.widgets.canvas_print import printed

        text = printed(curves)
    for notice in notices:
        sys.stderr.write(f"note: {clean(notice, 300)}\n")
    sys.stdout.write(text)
    return 0


def _refuse_other_formats(output: Path | None) -> None:
    if output is None or output.suffix.lower() == ".svg":
        return
    if output.suffix.lower() == ".png":
        raise UsageError("PNG pictures are not built yet", "use -o FILE.svg: every browser shows it")
    raise UsageError(f"cannot write a chart as {clean(output.name, 60)}", "use -o FILE.svg")


def _curves(args: argparse.Namespace) -> tuple[list[PercentileCurve], list[str]]:
    """The published curves when asked for, then those of the runs, oldest first unless they were named."""
    from jitter_workshop.commands.shared import open_session

    curves: list[PercentileCurve] = []
    notices: list[str] = []
    if args.published:
        from jitter_workshop.flow.published import published_curves

        curves = [published.curve for published in published_curves()]
    try:
        with open_session(args) as session:
            runs = [session.find(wanted) for wanted in args.runs] or list(session.runs()[-LATEST:])
            curves += [session.curve(one, args.metric) for one in runs]
            notices = list(session.notices)
    except SessionError:
        if args.runs or args.session or not args.published:
            raise
    if not curves:
        raise SessionError("there are no runs to draw yet", "run 'jitter-workshop measure' first")
    return curves, notices


def _write(path: Path, content: str) -> None:
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SessionError(f"cannot write {clean(path, 200)}: {reason}", "choose another file") from error
