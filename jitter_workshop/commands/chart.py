"""Draw the percentile curves of runs.

RUN is an id, its unique beginning, a label (of the newest run with that label), or @1 for the newest run, @2, … Without
RUN, six runs of the session are drawn: the latest ones that have the same workload as the newest run. Imported curves
of other tools have a label, too; --imported draws all of them with the runs.

A line is solid where at least ten samples are beyond the percentile, else dotted. If exactly two runs of one workload
are drawn, the space between their curves is filled. Its colour shows where the second run is better (lower) and where
it is worse (higher). Without colours, ░ is better and ▒ is worse.

  --kind ccdf       for each length, the share of samples that are longer
  --kind histogram  the number of samples of each length
  --kind rates      for each length, the number of spin's gaps in one hour of sampled time
  --kind heatmap    when the values of one run came: time goes to the right and latency goes up. The shade says how many
                    values there are. Each step of time is one block of the run
  --kind matrix     a matrix of 'measure --matrix' (RUN: its id, its label or @1): how long a cache line takes between
                    each two CPUs. All pairs whose CPUs share the same kind of thing, such as a core or
                    a cache, form one cluster

On a terminal the chart has the terminal's width; elsewhere it is plain text of 80 columns.
JITTER_WORKSHOP_MARKS=octants, braille or ascii forces the characters of a chart in the terminal.

'-o FILE.svg' or '-o FILE.png' writes a picture. It replaces an older file with this name. If FILE is a link, nothing is
written. '-o -' sends the picture to stdout. An SVG follows the light or dark theme of the viewer's system, and a PNG is
light; --theme sets the theme of both.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from jitter_workshop.commands.common.shared import STDOUT, open_session, say_notices, write_stdout
from jitter_workshop.errors import SessionError, UsageError
from jitter_workshop.model.curve import ImportedRun, PercentileCurve
from jitter_workshop.model.run import GapBucket, Run, apart_from_proofs, like_the_newest
from jitter_workshop.model.text import LABEL, LINE, called, clean
from jitter_workshop.session.opened import OpenSession

if TYPE_CHECKING:
    from jitter_workshop.report.pictures.drawing import Theme
    from jitter_workshop.stats.histogram import Bin
    from jitter_workshop.stats.view import CurveView

LATEST = 6
FORMATS = ("svg", "png")
KINDS = ("percentiles", "ccdf", "histogram", "rates", "heatmap", "matrix")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="*", help="the runs to draw (default: the latest six)")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE.svg|.png",
        type=Path,
        help="write a picture to FILE instead of the terminal; - means stdout",
    )
    parser.add_argument(
        "--format", choices=FORMATS, help="the picture's format (default: the ending of FILE; svg for stdout)"
    )
    parser.add_argument(
        "--theme",
        choices=("light", "dark"),
        help="the picture's theme (default: svg follows the viewer's system, png is light)",
    )
    parser.add_argument(
        "--published", action="store_true", help="also draw curves that were measured on a laptop and published in 2015"
    )
    parser.add_argument("--imported", action="store_true", help="also draw the curves that 'sessions import' added")
    parser.add_argument("--kind", choices=KINDS, default=KINDS[0], help="the kind of chart (default: percentiles)")
    parser.add_argument(
        "--metric",
        metavar="M",
        help="the histogram to draw, such as publisher_interval (default: the workload's main histogram)",
    )


def run(args: argparse.Namespace) -> int:
    """Draw the chart that the options ask for, and return 0."""
    from jitter_workshop.flow.reporting.files import check_target

    form = _format(args)
    if form is not None and args.output != STDOUT:
        check_target(args.output, force=True)
    if (args.published or args.imported) and args.kind in ("heatmap", "matrix"):
        shown = "a heat map" if args.kind == "heatmap" else "a matrix"
        raise UsageError(f"{shown} cannot be drawn with other curves", "leave out --published and --imported")
    if args.published and args.kind in ("histogram", "rates"):
        raise UsageError(f"the published curves have no {args.kind}", "leave out --published, or choose another --kind")
    if args.kind == "heatmap":
        return _heatmap(args, form)
    if args.kind == "matrix":
        return _matrix(args, form)
    curves, view, notices, between = _curves(args)
    if form is None:
        from jitter_workshop.chart.canvas import curves_for_terminal

        sys.stdout.write(curves_for_terminal(curves, view, between=between))
    else:
        _put(args, _picture(form, curves, view, args.theme, between))
    say_notices(notices)
    return 0


def _put(args: argparse.Namespace, picture: bytes) -> None:
    """Write a picture to its file, or to stdout."""
    from jitter_workshop.flow.reporting.files import write_files

    if args.output == STDOUT:
        write_stdout(picture)
    else:
        write_files({args.output.name: picture}, args.output.parent, force=True)
        sys.stdout.write(f"{args.output}\n")


def _show(
    args: argparse.Namespace,
    form: str | None,
    notices: Sequence[str],
    text: Callable[[], str],
    svg: Callable[[], str],
    png: Callable[[ModuleType], bytes],
) -> int:
    """Write a chart in the format ``form``, print the notices on stderr, and return 0. ``form``: ``svg``, ``png``, or
    None for text on stdout. ``text``, ``svg``, ``png``: functions that draw the chart, one for each format."""
    if form is None:
        sys.stdout.write(text())
    else:
        _put(args, svg().encode() if form == "svg" else _png(png))
    say_notices(notices)
    return 0


def _heatmap(args: argparse.Namespace, form: str | None) -> int:
    """Draw the heat map of one run and return 0."""
    from jitter_workshop.chart.heat import heat_map_for_terminal
    from jitter_workshop.report.pictures.svg import render_heat_svg

    if len(args.runs) > 1:
        raise UsageError("a heat map shows one run", "name one run, or no run to see the newest")
    with open_session(args) as session:
        runs = apart_from_proofs(session.runs()) or session.runs()
        if not args.runs and not runs:
            raise SessionError("there are no runs to draw yet", "run 'jitter-workshop measure' first")
        run = session.find_any(args.runs[0]) if args.runs else runs[-1]
        if isinstance(run, ImportedRun):
            raise SessionError(
                f"{clean(run.label, LABEL)} was not measured here and has no blocks", "choose another run"
            )
        heat = session.heat(run, args.metric)
        notices = list(session.notices)
    return _show(
        args,
        form,
        notices,
        lambda: heat_map_for_terminal(heat),
        lambda: render_heat_svg(heat, theme=args.theme),
        lambda png: png.render_heat_png(heat, theme=args.theme or "light"),
    )


def _matrix(args: argparse.Namespace, form: str | None) -> int:
    """Draw a matrix of the session and return 0."""
    from jitter_workshop.chart.matrix import matrix_for_terminal
    from jitter_workshop.report.pictures.svg import render_matrix_svg

    if len(args.runs) > 1:
        raise UsageError("a chart of this kind shows one matrix", "name one matrix, or no matrix to see the newest")
    if args.metric:
        raise UsageError("a matrix has no histograms", "leave out --metric")
    with open_session(args) as session:
        matrix = session.find_matrix(args.runs[0] if args.runs else "@1")
        notices = list(session.notices)
    return _show(
        args,
        form,
        notices,
        lambda: matrix_for_terminal(matrix),
        lambda: render_matrix_svg(matrix, theme=args.theme),
        lambda png: png.render_matrix_png(matrix, theme=args.theme or "light"),
    )


def _format(args: argparse.Namespace) -> str | None:
    """Return the format of the picture, ``svg`` or ``png``; None for a chart as text. Raise UsageError if the options
    contradict each other or the file's name."""
    path: Path | None = args.output
    if path is None:
        if args.format or args.theme:
            raise UsageError(
                "--format and --theme are only for a picture", "name the picture's file: -o FILE.svg or -o FILE.png"
            )
        return None
    if path == STDOUT:
        return args.format or FORMATS[0]
    ending = path.suffix.lower().removeprefix(".")
    if ending not in FORMATS and (ending or not args.format):
        raise UsageError(f"cannot write a chart as {called(path.name, LABEL)}", "use -o FILE.svg or -o FILE.png")
    if ending and args.format not in (None, ending):
        raise UsageError(
            f"{clean(path.name, LABEL)} contradicts --format {args.format}", "leave out --format, or name another file"
        )
    return ending or args.format


def _picture(
    form: str,
    curves: list[PercentileCurve],
    view: CurveView | None,
    theme: Theme | None,
    between: tuple[int, int] | None,
) -> bytes:
    if form == "svg":
        from jitter_workshop.report.pictures.svg import render_svg

        return render_svg(curves, view=view, theme=theme, between=between).encode()
    return _png(lambda png: png.render_png(curves, view=view, theme=theme or "light", between=between))


def _png(draw: Callable[[ModuleType], bytes]) -> bytes:
    """Return the PNG picture that ``draw`` makes. ``draw``: a function that takes the module ``report.pictures.png``.
    Raise UsageError if this installation cannot draw PNG."""
    try:
        from jitter_workshop.report.pictures import png

        return draw(png)
    except (ImportError, OSError) as error:
        # Pillow is missing, or has no FreeType, or the font is missing.
        raise UsageError(
            f"this installation cannot draw PNG: {clean(error, LINE)}",
            "install jitter-workshop again, or use -o FILE.svg",
        ) from error


def _curves(
    args: argparse.Namespace,
) -> tuple[list[PercentileCurve], CurveView | None, list[str], tuple[int, int] | None]:
    """Return the curves to draw, their axes, the notices, and the two curves to compare.

    The published curves come first, if the options ask for them. Then come the runs in order of time, or in the order
    in which the user named them. The axes (a ``CurveView``) are None for a chart of value by percentile. The last value
    has the indices of two curves with a filled space between them, or is None.
    """
    from jitter_workshop.stats import view as views
    from jitter_workshop.stats.curve import imported_curve

    curves: list[PercentileCurve] = []
    notices: list[str] = []
    view: CurveView | None = None
    between: tuple[int, int] | None = None
    if args.published:
        from jitter_workshop.flow.measuring.curves import published_curves

        curves = [published.curve for published in published_curves()]
    try:
        with open_session(args) as session:
            runs = _chosen(session, args)
            curves += [
                imported_curve(one) if isinstance(one, ImportedRun) else session.curve(one, args.metric) for one in runs
            ]
            workloads = [one.workload for one in runs if isinstance(one, Run)]
            if len(runs) == 2 == len(workloads) and len(set(workloads)) == 1:
                between = len(curves) - 2, len(curves) - 1
            notices = [f"of {one.label}: {note}" for one in runs if isinstance(one, ImportedRun) for note in one.notes]
            if args.kind == "histogram":
                view = views.frequency([_bins(session, one, args.metric) for one in runs])
            elif args.kind == "rates":
                view = views.gap_rates_view([_buckets(one) for one in runs])
            notices = [*session.notices, *notices]
    except SessionError:
        if args.runs or args.session or not args.published:
            raise
    if not curves:
        how = "measure --workload spin" if args.kind == "rates" else "measure"
        raise SessionError("there are no runs to draw yet", f"run 'jitter-workshop {how}' first")
    return curves, views.ccdf(curves) if args.kind == "ccdf" else view, notices, between


def _chosen(session: OpenSession, args: argparse.Namespace) -> list[Run | ImportedRun]:
    """Return the runs that the user named. Without names, return the latest runs of the newest run's workload. With
    ``--imported``, add each imported curve of the session once."""
    named = [session.find_any(wanted) for wanted in args.runs]
    runs = apart_from_proofs(session.runs()) or session.runs()
    # Only some runs have rates.
    latest = like_the_newest([run for run in runs if run.buckets is not None or args.kind != "rates"])[-LATEST:]
    chosen = named or [*latest]
    if args.imported:
        known = {one.id for one in chosen}
        chosen += [one for one in session.imports() if one.id not in known]
    return chosen


def _bins(session: OpenSession, one: Run | ImportedRun, metric: str | None) -> list[Bin]:
    from jitter_workshop.stats.histogram import Bin, non_zero

    if not isinstance(one, ImportedRun):
        return non_zero(session.histogram(one.id, metric or one.main_histogram))
    if not one.bins:
        raise SessionError(f"{clean(one.label, LABEL)} has only percentiles", "leave out --kind histogram")
    return [Bin(*found) for found in one.bins]


def _buckets(run: Run | ImportedRun) -> Sequence[GapBucket]:
    if isinstance(run, ImportedRun):
        raise SessionError(f"{clean(run.label, LABEL)} was not measured here and has no gaps by length", "leave it out")
    if run.buckets is None:
        raise SessionError(f"run {run.id} has no gaps by length", "only runs of the workload spin have such gaps")
    return run.buckets
