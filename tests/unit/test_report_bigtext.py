"""Words in letters of many lines: they fit, and can be told apart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.model.text import clean
from jitter_workshop.report.pictures.bigtext import LEAST_ROWS, big


def test_a_long_name_takes_two_lines_where_there_is_room() -> None:
    assert len(big("Pinning", 76, 4)) == 4
    two = big("Who moves my threads?", 76, 8)
    assert len(two) == 8
    assert max(map(len, two)) <= 76
    assert big("Who moves my threads?", 76, 4) == ("Who moves my threads?",)
    assert big("Supercalifragilistic", 24, 12) == ("Supercalifragilistic",)
    assert big("Supercalifragilistic", 12, 12) == ("Supercalifr…",)
    assert big("  ", 76, 8) == ()
    assert big("Pinning", 7, 8) == ()


def test_small_letters_are_all_different_at_the_least_size() -> None:
    drawn = {letter: big(letter, 76, LEAST_ROWS) for letter in "abcdefghijkmnopqrstuvwxyz"}
    assert all(len(lines) == LEAST_ROWS for lines in drawn.values())
    assert len(set(drawn.values())) == len(drawn)


@given(st.text(max_size=60), st.integers(0, 200), st.integers(0, 14))
def test_large_text_fits_its_width_and_rows(text: str, width: int, rows: int) -> None:
    for line in big(clean(text, 60), width, rows):
        assert len(line) <= width
        assert line.isprintable()
    assert len(big(clean(text, 60), width, rows)) <= max(rows, 1)
