"""Draw a matrix as text: a row and a column for each CPU or range of CPUs, a shade for the time of a cache line.

A cell that is wide enough shows the time as a number. Without colours a cell has one of four characters."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text

from jitter_workshop.chart.canvas import MOST_ROWS, PLAIN, escaped, output
from jitter_workshop.chart.heat import SHADES
from jitter_workshop.chart.marks import DotKind, current, spelled
from jitter_workshop.chart.style import plain_style, theme_named
from jitter_workshop.model.matrix import Matrix
from jitter_workshop.model.palette import Palette, heat_shade
from jitter_workshop.model.text import ID, WORD, clean, day, many
from jitter_workshop.stats.matrix import CpuBin, Grid, matrix_grid, shade_of_time, shortest_times
from jitter_workshop.stats.scale import nice_ns

_LEVELS = 6
_WIDEST_CELL, _NUMBER_FROM = 6, 4
"""The largest width of a cell in columns, and the least width at which a cell shows its time as a number."""
_WIDEST_LABEL = 20
_LEAST_ROWS = 4
_MOST_CLUSTERS = 6


def draw_matrix(matrix: Matrix, width: int, height: int, theme: str = "dark") -> Text:
    """Draw a matrix in at most ``height`` lines of at most ``width`` columns.

    The lines are a title, the cells, the time that each shade stands for, and the clusters. ``theme``: the name of a
    palette, such as ``dark``.
    """
    return _render(matrix, width, height, theme_named(theme), current())


def _render(matrix: Matrix, width: int, height: int, theme: Palette, kind: DotKind) -> Text:
    tinted = bool(theme.cool) and kind != "ascii"
    clusters = _clusters(matrix, theme)[: max(height - 3 - _LEAST_ROWS, 0)]
    rows = max(height - 3 - len(clusters), 1)
    cells = matrix_grid(matrix, min(rows, max(width - 4, 1)))
    labels = _labels(cells.bins, cells.single)
    gutter = min(max(map(len, labels)), _WIDEST_LABEL, width // 3)
    room = width - gutter - 1
    if len(cells.bins) > room:
        cells = matrix_grid(matrix, max(room, 1))
        labels = _labels(cells.bins, cells.single)
    wide = max(1, min(room // len(cells.bins), _WIDEST_CELL))
    lines = [_title(matrix, theme), Text(" " * (gutter + 1) + _heads(cells, wide), plain_style(theme.dim))]
    for row, label in enumerate(labels):
        line = Text(f"{_cut(label, gutter):>{gutter}} ", plain_style(theme.dim))
        for column in range(len(cells.bins)):
            alone = row == column and len(cells.bins[row].measured) == 1
            line.append(*_cell(cells, row, column, wide, theme, tinted, alone))
        lines.append(line)
    lines += [_meaning(cells, theme, tinted), *clusters]
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return spelled(Text("\n").join(lines), kind)


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1] + "…"


def _labels(bins: tuple[CpuBin, ...], single: bool) -> list[str]:
    """Return the names of the rows.

    A row may stand for several CPUs. Its name then begins with the row's number. The column for the same CPUs has only
    this number as its name.
    """
    if single:
        return [str(one.stands_for) for one in bins]
    digits = len(str(len(bins)))
    return [f"{number:>{digits}}: {one.stands_for}" for number, one in enumerate(bins, 1)]


def _heads(cells: Grid, wide: int) -> str:
    """Return the line above the cells, with a name for each column that has room for it. ``wide``: the width of a
    column."""
    names = [str(one.stands_for) if cells.single else str(number) for number, one in enumerate(cells.bins, 1)]
    line = ""
    for number, name in enumerate(names):
        end = (number + 1) * wide
        if end - len(name) > len(line) - (not line):
            line = line.ljust(end - len(name)) + name
        elif not line and len(name) >= wide:
            line = name
    return line


def _cell(
    cells: Grid, row: int, column: int, wide: int, theme: Palette, tinted: bool, alone: bool
) -> tuple[str, Style]:
    ns = cells.cells[row][column]
    if ns is None:
        return ("·" if alone else " ").rjust(wide), plain_style(theme.dim)
    number = _number(ns) if wide >= _NUMBER_FROM else ""
    if tinted:
        shade = shade_of_time(ns, cells.ends, _LEVELS)
        front = theme.background if shade > _LEVELS // 2 else theme.text
        return f"{number} "[-wide:].rjust(wide), Style(color=front, bgcolor=heat_shade(theme, shade, _LEVELS))
    shade_sign = SHADES[shade_of_time(ns, cells.ends, len(SHADES)) - 1]
    return (f"{number}{shade_sign}".rjust(wide) if number else shade_sign * wide), Style.null()


def _number(ns: float) -> str:
    return f"{ns:.0f}" if ns < 999.5 else f"{ns / 1e3:.0f}k" if ns < 999_500 else "…"


def _title(matrix: Matrix, theme: Palette) -> Text:
    said = Text(clean(matrix.label, ID) or "Lines between CPUs", plain_style(theme.text, bold=True))
    stands = f" that stand for {sum(len(group.cpus) for group in matrix.groups)}" if matrix.sampled else ""
    said.append(f"  {len(matrix.cpus)} CPUs{stands}, ns one way, {day(matrix.started_at)}", plain_style(theme.dim))
    return said


def _meaning(cells: Grid, theme: Palette, tinted: bool) -> Text:
    said = Text("from ", plain_style(theme.dim))
    levels = _LEVELS if tinted else len(SHADES)
    for number, limit in enumerate(shortest_times(cells.ends, levels), 1):
        style = Style(color=heat_shade(theme, number, _LEVELS)) if tinted else Style.null()
        said.append("██" if tinted else SHADES[number - 1] * 2, style)
        said.append(f" {nice_ns(limit)}  ", plain_style(theme.dim))
    said.rstrip()
    return said


def _clusters(matrix: Matrix, theme: Palette) -> list[Text]:
    """Return a line for each cluster: its name, its median, its range, and the number of its pairs."""
    wide = max((len(clean(one.name, WORD)) for one in matrix.clusters), default=0)
    found = []
    for one in matrix.clusters[:_MOST_CLUSTERS]:
        line = Text(f"{clean(one.name, WORD):<{wide}}", plain_style(theme.text))
        line.append(f"  {nice_ns(one.median_ns):>7}", plain_style(theme.text, bold=True))
        among = "" if one.pairs == 1 else f"  {nice_ns(one.min_ns)} to {nice_ns(one.max_ns)}"
        line.append(f"{among}  {many(one.pairs, 'pair')}", plain_style(theme.dim))
        found.append(line)
    return found


def matrix_for_terminal(matrix: Matrix) -> str:
    """Return the matrix at the terminal's size (80×28 without a terminal), with a line break at the end."""
    console, plain, width, height = output()
    rows = max(min(height - 2, max(MOST_ROWS, len(matrix.cpus) + 10)), 8)
    if plain:
        return "".join(f"{line}\n" for line in plain_matrix_lines(matrix, width, rows))
    return escaped(console, draw_matrix(matrix, width, rows))


def plain_matrix_lines(matrix: Matrix, width: int, rows: int) -> list[str]:
    """Return the matrix as lines without colours."""
    return [line.rstrip() for line in draw_matrix(matrix, width, rows, PLAIN).plain.split("\n")]
