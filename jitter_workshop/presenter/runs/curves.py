"""Show the numbers behind a chart, and the imported curves of other tools next to a session's own curves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jitter_workshop.model.run import PERCENTILES
from jitter_workshop.model.text import ID, REASON, SHORT, clean, shortened
from jitter_workshop.model.walk import RunCurve
from jitter_workshop.presenter.text.lines import Lines, column_sizes, in_cells, table_lines, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.stats import sample_size
from jitter_workshop.stats.scale import nice_ns

UNKNOWN = "–"


@dataclass(frozen=True, slots=True)
class CurveRows:
    """Hold the rows of a table of percentiles. ``rows``: a row per percentile, then maximum and count. If a curve has
    more values than messages were sent, rows of both replace the count. Each row has a name and one cell per curve.
    ``legend``: the meanings of the marks in the cells. ``beside``: blanks to add to a column's head, because the
    figures below it may end with a mark. It is "" if no figure has a mark.
    """

    rows: list[list[str]]
    legend: list[str]
    beside: str


def curve_rows(curves: Sequence[RunCurve], tight: bool = False) -> CurveRows:
    """Return the value of each percentile of each curve. A value has a mark if too few samples support it. ``tight``:
    leave out the blank between value and mark.
    """
    between = "" if tight else " "
    found = [sample_size.of_curve(curve) for curve in curves]
    rows: list[tuple[str, list[str], list[str]]] = []
    for percentile in PERCENTILES:
        values = [nice_ns(shown_value_at(curve, percentile)) for curve in curves]
        marks = [m[percentile] if v != UNKNOWN else "" for v, m in zip(values, found, strict=True)]
        rows.append((f"p{percentile}", values, marks))
    none = [""] * len(curves)
    rows.append(("max", [nice_ns(shown_value_at(curve, "100")) for curve in curves], none))
    rows += [(name, cells, none) for name, cells in _counts(curves)]
    legend = sample_size.explain_marks(mark for _, _, marks in rows for mark in marks)
    beside = f"{between} " if legend else ""
    told = [[name, *(sample_size.marked(cells, marks, between) if legend else cells)] for name, cells, marks in rows]
    if any(cell == UNKNOWN for _, cells, _ in rows for cell in cells):
        legend.append(f"{UNKNOWN}  too few samples")
        if any(curve.curve.known_to is not None for curve in curves):
            legend.append("   or beyond the other tool's histogram")
    return CurveRows(told, legend, beside)


def _counts(curves: Sequence[RunCurve]) -> list[tuple[str, list[str]]]:
    """Return the row with the number of values of each curve. If a curve has more values than messages were sent,
    return two rows: the messages that were sent, and the values, which also count those that a stopped sender lost."""
    drawn = [one.curve for one in curves]
    values = [f"{curve.count:,}" for curve in drawn]
    if all(curve.sent is None for curve in drawn):
        return [("count", values)]
    sent = [f"{curve.count if curve.sent is None else curve.sent:,}" for curve in drawn]
    return [("sent", sent), ("counted", values)]


def shown_value_at(shown: RunCurve, percentile: str) -> int | None:
    """Return a curve's value at a percentile, in ns. The value comes from the table of the curve's run; without a run,
    from the curve's points. Return None if the curve has too few samples."""
    if shown.run is not None:
        summary = shown.run.latency
        if summary is not None:
            return summary.max if percentile == "100" else summary.percentiles.get(percentile)
    wanted = float(percentile)
    if shown.curve.count and 1 - wanted / 100 < 1 / shown.curve.count and wanted < 100:
        return None
    if shown.curve.known_to is not None and shown.curve.known_to < wanted < 100:
        return None
    # A published curve gives its percentiles exactly, so allow for the rounding of 99.9999 and the like.
    points = shown.curve.points
    found = next((p.value_ns for p in points if p.percentile >= wanted - 1e-9), None)
    return points[-1].value_ns if found is None and wanted >= 100 and points else found


def label_of(shown: RunCurve) -> str:
    """Return a curve's label with its origin, safe for a terminal."""
    origin = f" ({clean(shown.curve.origin, SHORT)})" if shown.curve.origin else ""
    return shortened(shown.label, ID) + origin


def counted_elsewhere(source: str) -> str:
    """Return sentences that say on which emulated machine the shown counts were made. ``source``: words that name this
    machine.
    """
    told = "That machine is emulated: times measured there mean nothing and are not shown."
    return f"The counts were {clean(source, REASON)}. {told}"


def made_elsewhere(shown: Sequence[RunCurve], source: str) -> str:
    """Return a sentence that names the machine on which the curves were recorded (``source``)."""
    return f"{'This curve was' if len(shown) == 1 else 'These curves were'} {clean(source, REASON)}."


_HEAD_ROWS = 5
"""The most rows of a table's head in which the name of a curve stands: with four curves at 80 columns, the longest
names of the course need four of them."""


def percentile_table(curves: Sequence[RunCurve], width: int) -> Lines:
    """Return the figures behind a chart as a table, with a column per curve and a row per percentile. If a curve was
    not measured on this host, extra rows have the origin of each curve. The meanings of the marks stand above the
    table: below it, a low screen would show a mark and cut off its meaning."""
    if not curves:
        return [Text("No curve is shown yet.", "dim")]
    found, gap = curve_rows(curves), 2
    if sum(column_sizes(found.rows)) + gap * len(curves) > width and found.beside:
        # The marks stand in the gaps, so that no figure is cut for them.
        found, gap = curve_rows(curves, tight=True), 1
    name_width = max(6, min(22, (width - 10) // len(curves) - gap - len(found.beside)))

    def head(texts: Iterable[str]) -> list[str]:
        return ["", *(in_cells(text, name_width).rstrip() + found.beside for text in texts)]

    rows = [head(texts) for texts in _heads([c.label for c in curves], name_width)]
    rows += [head(texts) for texts in _heads([c.curve.origin for c in curves], name_width)]
    lines = table_lines([*rows, *found.rows], right=range(1, len(curves) + 1), width=width, gap=gap, head=len(rows))
    told = [line for said in found.legend for line in _meaning(said, width)]
    return [*told, Text(), *lines] if told else lines


_MARK = len("*  ")
"""The length of a mark with its blanks, at the beginning of its meaning."""


def _meaning(said: str, width: int) -> Lines:
    """Return the meaning of a mark. If it needs several lines, the further lines begin below its first word."""
    return wrap(said[_MARK:], width, said[:_MARK], " " * _MARK, style="dim")


def _heads(names: Sequence[str], width: int) -> list[tuple[str, ...]]:
    """Return the head of a table as at most _HEAD_ROWS rows. A long name continues in the next row of its column; a
    short name is in the last row. Return [] if all names are empty."""
    columns = []
    for name in names:
        told = [line.plain for line in wrap(clean(name), width)] if name else []
        if len(told) > _HEAD_ROWS:
            told[_HEAD_ROWS - 1 :] = [shortened(" ".join(told[_HEAD_ROWS - 1 :]), width)]
        columns.append([""] * (_HEAD_ROWS - len(told)) + told)
    return [row for row in zip(*columns, strict=True) if any(row)]


# -- of other tools ---------------------------------------------------------------------------------------------------

NOTHING = "No curve was imported. 'jitter-workshop sessions import FILE' adds another tool's curve."
HIDDEN = "The imported curves are hidden."
MOST = 3
"""The most imported curves that are drawn: more could not be told apart from a chapter's own curves."""


def newest_imported(curves: Sequence[RunCurve]) -> tuple[RunCurve, ...]:
    """Return the newest imported curves, which are drawn with a chapter's runs."""
    return tuple(curves[-MOST:])


def imported_said(known: Sequence[RunCurve], drawn: bool) -> str:
    """Return a sentence that names the imported curves that are drawn, or says why none is drawn."""
    if not known:
        return NOTHING
    if not drawn:
        return HIDDEN
    curves = newest_imported(known)
    named = ", ".join(f"{clean(c.label, ID)} ({clean(c.curve.origin, SHORT)})" for c in curves)
    rest = f", the newest of {len(known)}" if len(known) > len(curves) else ""
    return f"Measured by other tools: {named}{rest}. No comparison and no verdict uses these curves."
