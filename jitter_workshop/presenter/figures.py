"""Format numbers for people: values of a curve, tables of percentiles, bars."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from jitter_workshop.model.palette import Palette
from jitter_workshop.model.text import clean
from jitter_workshop.model.walk import RunCurve
from jitter_workshop.presenter.curve_rows import curve_rows


def label_of(shown: RunCurve) -> str:
    """Return a curve's label with its origin, safe for a terminal."""
    origin = f" ({clean(shown.curve.origin, 24)})" if shown.curve.origin else ""
    return clean(shown.label, 40) + origin


def bar(value: float, largest: float, width: int) -> str:
    """Return a bar in steps of an eighth of a cell."""
    if largest <= 0 or value <= 0 or width < 1:
        return ""
    eighths = max(1, round(min(value / largest, 1.0) * width * 8))
    full, rest = divmod(eighths, 8)
    return "█" * full + ("▏▎▍▌▋▊▉"[rest - 1] if rest else "")


def log_bar(value_ns: float, largest_ns: float, width: int, lowest_ns: float = 10.0) -> str:
    """Return a bar on a logarithmic scale from ``lowest_ns``, because latencies differ by powers of ten."""
    if value_ns <= lowest_ns or largest_ns <= lowest_ns:
        return bar(1, 8 * width, width)
    return bar(math.log10(value_ns / lowest_ns), math.log10(largest_ns / lowest_ns), width)


def table(
    rows: Sequence[Sequence[str]],
    palette: Palette,
    *,
    head: bool = True,
    right: Iterable[int] = (),
    width: int = 80,
    gap: int = 2,
) -> list[Text]:
    """Return columns aligned by their widest cell, ``gap`` apart. Where a line is too long, the widest column is
    cut."""
    if not rows:
        return []
    right = set(right)
    columns = max(len(row) for row in rows)
    sizes = _sizes(rows)
    while sum(sizes) + gap * (columns - 1) > width and max(sizes) > 6:
        sizes[sizes.index(max(sizes))] -= 1
    lines: list[Text] = []
    for number, row in enumerate(rows):
        line = Text(style=palette.dim if head and number == 0 else palette.text)
        for i, cell in enumerate(row):
            shown = cell if cell_len(cell) <= sizes[i] else set_cell_size(cell, max(sizes[i] - 1, 0)) + "…"
            blank = " " * (sizes[i] - cell_len(shown))
            line.append((" " * gap if i else "") + (blank + shown if i in right else shown + blank))
        line.rstrip()
        lines.append(line)
    return lines


def percentile_table(curves: Sequence[RunCurve], palette: Palette, width: int) -> list[Text]:
    """Return the numbers behind a chart: a column per curve, a row per percentile. If a curve was not measured here, a
    row of its own names the origins: behind a label the origin would be cut off."""
    if not curves:
        return [Text("No curve is shown yet.", style=palette.dim)]
    found, gap = curve_rows(curves), 2
    if sum(_sizes(found.rows)) + gap * len(curves) > width and found.beside:
        # The marks stand in the gaps, so that no figure is cut for them.
        found, gap = curve_rows(curves, tight=True), 1
    name_width = max(6, min(22, (width - 10) // len(curves) - gap - len(found.beside)))

    def head(texts: Iterable[str]) -> list[str]:
        cut = (t if cell_len(t) <= name_width else set_cell_size(t, name_width - 1) + "…" for t in texts)
        return ["", *(text + found.beside for text in cut)]

    rows = [head(clean(c.label, 40) for c in curves)]
    if any(c.curve.origin for c in curves):
        rows.append(head(clean(c.curve.origin, 24) for c in curves))
    lines = table([*rows, *found.rows], palette, right=range(1, len(curves) + 1), width=width, gap=gap)
    told = [Text(line[:width], style=palette.dim) for line in found.legend]
    return [*lines, Text(), *told] if told else lines


def _sizes(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of each column."""
    columns = max(map(len, rows), default=0)
    return [max((cell_len(row[i]) for row in rows if i < len(row)), default=0) for i in range(columns)]


def two_ends(left: Text, right: Text, width: int) -> Text:
    """Return one line with ``left`` and ``right`` at its ends. Where both do not fit, the right one is cut first."""
    gap = width - left.cell_len - right.cell_len
    if gap < 2:
        right = right.copy()
        right.truncate(max(width - left.cell_len - 2, 0), overflow="ellipsis")
        gap = max(width - left.cell_len - right.cell_len, 1)
    return Text.assemble(left, " " * gap, right)
