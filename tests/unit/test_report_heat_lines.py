"""A heat map as lines of text: each block and each decade has its place, and nothing is too wide."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.report.pictures.heat_lines import MOST_COLUMNS, SHADES, heat_lines
from jitter_workshop.stats.heat import heat

FAST = (100, 120, 20_000)
LATE = (3_000_000, 3_010_000, 4)


def test_a_column_is_a_block_and_a_row_is_a_decade() -> None:
    drawn = heat_lines(heat("x", [(n / 4, 0.25, [FAST, LATE] if n == 7 else [FAST]) for n in range(12)]))
    assert drawn == [
        "from   1 ms │       ░",
        "from 100 µs │",
        "from  10 µs │",
        "from   1 µs │",
        "from 100 ns │████████████",
        "            └────────────",
        "             0 s      3 s",
        "░ 1 or more values in a block of 250 ms, ▒ 10, ▓ 100, █ 1,000",
    ]


@given(st.lists(st.tuples(st.integers(1, 10**10), st.integers(1, 10**9)), min_size=1, max_size=200))
def test_each_time_has_a_shade_and_the_lines_fit_a_page_of_text(values: list[tuple[int, int]]) -> None:
    drawn = heat_lines(heat("x", [(n / 4, 0.25, [(low, low, count)]) for n, (low, count) in enumerate(values)]))
    cells = [line.partition("│")[2] for line in drawn if "│" in line]
    assert max(map(len, drawn)) <= 80
    assert all(any(row[at : at + 1].strip() for row in cells) for at in range(min(len(values), MOST_COLUMNS)))
    assert set("".join(cells)) <= {*SHADES, " "}
