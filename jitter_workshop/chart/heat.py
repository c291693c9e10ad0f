"""Draw the heat map of a run as text.

Time goes to the right, and latency goes up on a logarithmic axis. The shade of a cell shows its number of values. With
colours, a cell has two halves, each with its own shade. Without colours, a cell has one of four characters.
"""

from __future__ import annotations

import dataclasses
import functools

from rich.style import Style
from rich.text import Text

from jitter_workshop.chart.axes import GUTTER, ROWS_BELOW, Cell, PlotFrame, framed, grid_cells, snapped, y_ticks
from jitter_workshop.chart.canvas import LEAST_HEIGHT, LEAST_WIDTH, MOST_ROWS, PLAIN, escaped, output
from jitter_workshop.chart.marks import DotKind, current, spelled
from jitter_workshop.chart.style import plain_style, theme_named
from jitter_workshop.model.palette import Palette, heat_shade
from jitter_workshop.model.text import clean
from jitter_workshop.stats.heat import Heat, bounds, shade_of_count
from jitter_workshop.stats.scale import nice_ns

SHADES = "░▒▓█"
"""The shades without colours, from few to many."""
_LEVELS = 6
_WIDE = 70
"""From this width on, the lines below the map are whole sentences."""
_UPPER, _LOWER = "▀", "▄"


def draw_heat_map(heat: Heat, width: int, height: int, theme: str = "dark") -> Text:
    """Draw a heat map in ``height`` lines of at most ``width`` columns. The last two lines name the run, and tell what
    the shades mean. Below 24×6 the text has empty lines only. ``theme``: the name of a palette, such as ``dark``."""
    return _render(heat, width, height, theme_named(theme), current()).copy()


@functools.lru_cache(maxsize=16)
def _render(heat: Heat, width: int, height: int, theme: Palette, kind: DotKind) -> Text:
    if width < LEAST_WIDTH or height < LEAST_HEIGHT + 2:
        return Text("\n" * max(height - 1, 0), end="")
    tinted = bool(theme.cool) and kind != "ascii"
    columns, rows = width - GUTTER - 1, height - 2 - ROWS_BELOW
    ranges = dataclasses.replace(snapped(heat.ranges, columns, rows), x_high=heat.ranges.x_high)
    frame = PlotFrame(columns, rows, ranges, ("elapsed", "time"))
    labels = y_ticks(frame)
    cells = grid_cells(frame, labels, theme)
    halves = 2 if tinted else 1
    # The ends of y fall on the middle of the first and of the last row.
    margin = (ranges.y_high - ranges.y_low) / (rows - 1) / 2
    bridged = heat.narrow_pauses(columns)
    counts = heat.grid(columns, rows * halves, ranges.y_low - margin, ranges.y_high + margin, bridged=bridged)
    limits = bounds(max((count for line in counts for count in line), default=1.0), _LEVELS if tinted else len(SHADES))
    for row in range(rows):
        for column in range(columns):
            shades = [shade_of_count(counts[column][row * halves + half], limits) for half in range(halves)]
            if any(shades):
                cells[row][column] = _cell(shades, theme) if tinted else (SHADES[shades[0] - 1], Style.null())
    text = framed(frame, cells, labels, (), theme)
    for line in _meaning(heat, limits, width, theme, tinted, bridged):
        text.append("\n")
        text.append_text(line)
    return spelled(text, kind)


def _cell(shades: list[int], theme: Palette) -> Cell:
    upper, lower = shades
    if upper == lower:
        return "█", _style(theme, upper, 0)
    return (_UPPER, _style(theme, upper, lower)) if upper else (_LOWER, _style(theme, lower, 0))


@functools.lru_cache(maxsize=256)
def _style(theme: Palette, front: int, back: int) -> Style:
    return Style(color=heat_shade(theme, front, _LEVELS), bgcolor=heat_shade(theme, back, _LEVELS) if back else None)


def _meaning(
    heat: Heat, limits: tuple[int, ...], width: int, theme: Palette, tinted: bool, bridged: bool
) -> list[Text]:
    """Return two lines: the run with its blocks, and the smallest number of values for each shade. ``bridged``: True if
    the pauses are too narrow to be drawn."""
    dim = plain_style(theme.dim)
    wide = width >= _WIDE
    first = Text(no_wrap=True, end="")
    pauses = "" if not heat.pauses else ", pauses not drawn" if bridged else ", pauses blank"
    blocks = f"  {len(heat.counts)} blocks of {nice_ns(heat.block_s * 1e9)}{pauses}"
    first.append(clean(heat.label, max(width - len(blocks), 8)), plain_style(theme.text, bold=True))
    told = f"{blocks}; time to the right, latency up"
    first.append(told if first.cell_len + len(told) <= width else blocks, dim)
    second = Text("how many in a block: " if wide else "how many: ", dim, no_wrap=True, end="")
    for n, limit in enumerate(limits, 1):
        swatch = "█" if tinted else SHADES[n - 1]
        second.append(2 * swatch if wide else swatch, _style(theme, n, 0) if tinted else Style.null())
        second.append(f" {_short(limit)}{'+' if n == len(limits) else ''} " + " " * wide, dim)
    for line in (first, second):
        line.rstrip()
        line.truncate(width, overflow="ellipsis")
    return [first, second]


def _short(count: int) -> str:
    return f"{count:,}" if count < 10_000 else f"{count / 1e3:,.0f}k" if count < 1e6 else f"{count / 1e6:,.1f}M"


def heat_map_for_terminal(heat: Heat) -> str:
    """Return the heat map at the terminal's size (80×28 without a terminal), with a line break at the end."""
    console, plain, width, height = output()
    rows = max(min(height - 2, MOST_ROWS), LEAST_HEIGHT + 2)
    width = max(width, LEAST_WIDTH)
    if plain:
        return "".join(f"{line}\n" for line in plain_heat_map_lines(heat, width, rows))
    return escaped(console, draw_heat_map(heat, width, rows))


def plain_heat_map_lines(heat: Heat, width: int, rows: int) -> list[str]:
    """Return the heat map as lines without colours."""
    return [line.rstrip() for line in draw_heat_map(heat, width, rows, PLAIN).plain.split("\n")]
