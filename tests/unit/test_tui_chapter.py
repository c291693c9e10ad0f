"""Test how a chapter's screen cuts a result that has more lines than room."""

from __future__ import annotations

import pytest

from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.tui.screens.chapter.chapter import _cut


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("The first sentence fills most of it. The second", "The first sentence fills most of it. … (t: more)"),
        ("Short. Then a long sentence that goes on and on", "Short. Then a long sentence that goes … (t: more)"),
        ("A whole line", "A whole line … (t: more)"),
    ],
)
def test_a_cut_line_ends_at_a_sentence_if_that_fills_half_of_it(line: str, told: str) -> None:
    (cut,) = _cut([Text(line), Text("and more")], 1, 50)
    assert cut.plain == told


def test_a_line_is_cut_behind_a_clause_rather_than_inside_the_next_one() -> None:
    line = "Isolated, except from kernel work: kworker/u8:3 ran 5 times on CPU 1."
    (cut,) = _cut([Text(line), Text("and more")], 1, 70)
    assert cut.plain == "Isolated, except from kernel work … (t: more)"
    (cut,) = _cut([Text("Yes: kworker/u8:3 ran 5 times on CPU 1, at most 48.9 µs."), Text("more")], 1, 60)
    assert cut.plain.startswith("Yes: kworker/u8:3 ran 5 times"), "two words say too little"


def test_lines_that_have_room_are_not_cut() -> None:
    lines = [Text("One. Two"), Text("three.")]
    assert [line.plain for line in _cut(lines, 2, 50)] == ["One. Two", "three."]
