"""The heat map of a run: nothing is lost, and a burst each second is seen each second."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.style import Style

from jitter_workshop.chart import heat as chart
from jitter_workshop.model.palette import PALETTES, heat_shade
from jitter_workshop.report.pictures import drawing
from jitter_workshop.report.pictures.png import render_heat_png
from jitter_workshop.report.pictures.svg import render_heat_svg
from jitter_workshop.stats import scale
from jitter_workshop.stats.heat import Heat, bounds, heat, shade_of_count, shows_bursts
from jitter_workshop.stats.histogram import Bin
from tests import madeup

QUIET = [Bin(100, 100, 5_000), Bin(210, 211, 300)]
BURST = [*QUIET, Bin(1_000_000, 1_000_500, 40)]


def each_second(seconds: int = 10, block_s: float = 0.25) -> Heat:
    """A run in which the first block of each second has a burst of 1 ms."""
    per_second = round(1 / block_s)
    blocks = [
        (1e9 + n * block_s, block_s, BURST if n % per_second == 0 else QUIET) for n in range(seconds * per_second)
    ]
    return heat("baseline", blocks)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.integers(1, 10**10), st.integers(1, 10**6)), max_size=5), min_size=1, max_size=12),
    st.integers(1, 90),
    st.integers(2, 40),
    st.sampled_from([0.25, 0.26, 0.3, 0.5, 2.5]),
)
def test_no_count_is_lost(values: list[list[tuple[int, int]]], columns: int, rows: int, every_s: float) -> None:
    blocks = [(n * every_s, 0.25, [Bin(v, v, count) for v, count in some]) for n, some in enumerate(values)]
    made = heat("x", blocks)
    total = sum(count for some in values for _, count in some)
    low, high = made.ranges.y_low, made.ranges.y_high
    assert sum(map(sum, made.by_block(rows, low, high))) == pytest.approx(total)
    grid = made.grid(columns, rows, low, high)
    assert (len(grid), {len(column) for column in grid}) == (columns, {rows})
    # Each block that has a value is seen, whatever the width.
    assert (sum(map(sum, grid)) > 0) == (total > 0)
    each = made.end_s / columns
    assert made.pauses == (every_s > 0.26 and len(values) > 1)
    if columns < len(values) and not made.pauses:
        lengths = [b - a for a, b in made.spans_s]
        weighted = sum(sum(c for _, c in some) * length for some, length in zip(made.counts, lengths, strict=True))
        assert sum(map(sum, grid)) * each == pytest.approx(weighted)
    for number, column in enumerate(grid):
        measured = sum(max(min(b, (number + 1) * each) - max(a, number * each), 0) for a, b in made.spans_s)
        assert measured > 1e-12 or not any(column), "time in which nothing was measured is blank"


@given(st.floats(1, 1e12), st.integers(1, 8))
def test_shades_grow_with_the_count(most: float, levels: int) -> None:
    limits = bounds(most, levels)
    assert list(limits) == sorted(set(limits))
    assert limits[0] == 1
    assert all(len(str(one).rstrip("0")) == 1 for one in limits)
    assert limits[-1] <= most
    found = [shade_of_count(count, limits) for count in (0, 0.1, 1, most**0.5, most)]
    assert found == sorted(found)
    assert found[0] == 0
    assert found[1] == 1
    assert found[-1] == len(limits)


@pytest.mark.parametrize(("width", "height"), [(80, 22), (120, 34), (160, 46)])
def test_a_burst_each_second_is_seen_each_second(width: int, height: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    lines = chart.draw_heat_map(each_second(), width, height).plain.split("\n")
    assert len(lines) == height
    assert max(map(len, lines)) <= width
    # In the row of 1 ms the shaded columns come in ten groups at even distances.
    (row,) = [line for line in lines if line.startswith("  1 ms")]
    groups = [found.start() for found in re.finditer("[░▒▓█]+", row)]
    assert len(groups) == 10
    apart = [b - a for a, b in itertools.pairwise(groups)]
    assert max(apart) - min(apart) <= 1
    # Above the tick of a whole second stands a burst.
    ticks = lines[-3]
    at = ticks.index("2s")
    assert set(row[at - 1 : at + 3]) & set("░▒▓█")
    # The quiet row is full from end to end.
    quiet = next(line for line in lines if line.startswith("100 ns"))
    assert set(quiet[8:]) <= set("▒▓█")
    assert "40 blocks of 250 ms" in lines[-2]
    assert "how many in a block" in lines[-1]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_pause_too_narrow_to_be_read_as_one_is_not_drawn(width: int) -> None:
    paused = heat("x", [(n * 0.4, 0.25, QUIET) for n in range(80)])
    lines = chart.plain_heat_map_lines(paused, width, 24)
    (quiet,) = [line for line in lines if line.startswith("100 ns")]
    assert set(quiet[8:]) <= set("░▒▓█")
    assert len(quiet) == width
    assert "80 blocks of 250 ms, pauses not drawn" in lines[-2]
    one = heat("x", [(n * 0.4 + 5 * (n > 40), 0.25, QUIET) for n in range(80)])
    assert "pauses blank" in chart.plain_heat_map_lines(one, width, 24)[-2], "a long one is drawn"


@pytest.mark.parametrize("width", [100, 120, 160])
def test_a_pause_between_blocks_is_blank(width: int) -> None:
    paused = heat("x", [(n * 0.5, 0.25, QUIET) for n in range(20)])
    lines = chart.plain_heat_map_lines(paused, width, 24)
    (quiet,) = [line for line in lines if line.startswith("100 ns")]
    # The gutter ends before the first block.
    groups = [len(found[0]) for found in re.finditer("[░▒▓█]+", quiet)]
    assert len(groups) == 20
    assert max(groups) - min(groups) <= 1
    assert 0.4 < sum(groups) / (width - 8) < 0.6
    assert "20 blocks of 250 ms, pauses blank" in lines[-2]
    assert "pauses" not in chart.plain_heat_map_lines(each_second(), width, 24)[-2]
    tiles = [shape for shape in drawing.heat_picture(paused).shapes if isinstance(shape, drawing.Tiles)]
    cells = [cell for shape in tiles for cell in shape.cells]
    assert max(wide for _, _, wide, _ in cells) < (drawing.WIDTH - 84 - 28) * 0.26 / 9.75
    assert "blank: a pause between blocks" in render_heat_svg(paused)


def test_with_colours_a_cell_has_two_halves_and_more_is_further_from_the_background() -> None:
    for name in PALETTES:
        palette = PALETTES[name]
        text = chart.draw_heat_map(each_second(), 100, 24, name)
        used = {str(span.style.color.name) for span in text.spans if isinstance(span.style, Style) and span.style.color}
        shades = [heat_shade(palette, n, 6) for n in range(1, 7)]
        assert used & set(shades)
        distances = [_light(shade) - _light(palette.background) for shade in shades]
        assert [abs(d) for d in distances] == sorted(abs(d) for d in distances)
    assert chart.draw_heat_map(each_second(), 10, 3).plain.strip() == ""
    # In a narrow place the shades keep their numbers, and nothing is cut off.
    busy = heat("a run with a name that is long", [(n * 0.25, 0.25, [Bin(100, 100, 2_000_000)]) for n in range(9)])
    for width in (48, 80):
        lines = chart.draw_heat_map(busy, width, 20).plain.split("\n")
        assert lines[-1].endswith("+")
        assert "9 blocks of 250 ms" in lines[-2]
        assert max(map(len, lines)) <= width


def _light(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))


def test_the_picture_has_the_bursts_at_their_seconds() -> None:
    made = each_second()
    drawn = drawing.heat_picture(made)
    top = 1.1 + min(y for shape in drawn.shapes if isinstance(shape, drawing.Tiles) for _, y, _, _ in shape.cells)
    seen = {
        round(x)
        for shape in drawn.shapes
        if isinstance(shape, drawing.Tiles)
        for x, y, _, tall in shape.cells
        if y <= top <= y + tall
    }
    width = drawing.WIDTH - 84 - 28
    assert seen == {round(84 + width * second / made.end_s) for second in range(10)}
    root = ElementTree.fromstring(render_heat_svg(made, "<b>\x1b[1m"))
    assert [e for e in root.iter() if e.get("class") == "h1"]
    assert render_heat_png(made, theme="dark").startswith(b"\x89PNG")
    long = heat("long", [(n * 1.0, 1.0, BURST if n % 60 == 0 else QUIET) for n in range(1_000)])
    assert len(render_heat_svg(long)) < 200_000


def test_seconds_have_even_ticks() -> None:
    assert [t.label for t in scale.ticks("elapsed", 0, 10)] == ["0 s", "2 s", "4 s", "6 s", "8 s", "10 s"]
    for high in (0.003, 0.7, 9.9, 33, 61, 1_000, 7_300, 90_000, 10**6):
        ticks = scale.ticks("elapsed", 0, high)
        assert 2 <= len(ticks) <= 9
        assert ticks[0].position == 0
        assert ticks[-1].position <= high * (1 + 1e-9)
        assert len({t.label for t in ticks}) == len(ticks)


@pytest.mark.parametrize(
    ("loud", "wanted"),
    [((), False), ((3,), False), ((0, 4, 8, 12), True), (range(9), False), (range(16), False)],
)
def test_bursts_are_loud_blocks_among_quiet_ones(loud: Any, wanted: bool) -> None:
    run, _ = madeup.make_run([[100] * 50 + ([5_000_000] if n in loud else [300]) for n in range(16)])
    assert shows_bursts(run.blocks) is wanted
    assert not shows_bursts(run.blocks[:7])


def test_a_map_needs_a_block() -> None:
    with pytest.raises(ValueError, match="needs a block"):
        heat("x", [])
    empty = heat("x", [(0.0, 0.25, [])])
    assert math.isfinite(empty.ranges.y_high)
    assert "0s" in chart.draw_heat_map(empty, 60, 14).plain
    ElementTree.fromstring(render_heat_svg(empty))
