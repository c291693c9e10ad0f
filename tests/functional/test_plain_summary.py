"""The course from first to last, line by line."""

from __future__ import annotations

import pytest

from tests.fakes import open_workshop
from tests.talking import talk

TITLE = "THE COURSE FROM FIRST TO LAST"


def test_it_is_told_once_when_nothing_is_left_to_do() -> None:
    said = talk(open_workshop(), "|" * 60)
    assert said.count(TITLE) == 1
    at = said.index(TITLE)
    assert said.index("'Pinning' is done") < at
    assert f"{TITLE}: 3 of 3 chapters done" in said
    for row in ("1 Why so slow?", "2 Who moves my threads?", "3 Pinning", "÷ row 1"):
        assert row in said[at:]
    assert "● 1 baseline" in said[at:]


def test_the_summary_before_any_measurement_lists_the_open_chapters() -> None:
    said = talk(open_workshop(), "summary|q")
    assert "Nothing is measured yet" in said
    assert "• Not begun: Why so slow?, " in said


@pytest.mark.parametrize("width", [30, 60, 80, 200])
def test_no_line_of_it_is_wider_than_the_terminal(width: int) -> None:
    said = talk(open_workshop(), "|" * 60, width=width)
    part = said[said.index("THE COURSE") : said.index("YOUR GUESSES")]
    assert max(map(len, part.split("\n"))) < width
