"""Text with styles does what rich's does, and a terminal gets the same escapes as from rich."""

from __future__ import annotations

import itertools

import pytest
import rich.cells
import rich.text
from hypothesis import given
from hypothesis import strategies as st
from rich.color import ColorSystem
from rich.style import Style

from jitter_workshop.presenter.text import lines, styled
from jitter_workshop.presenter.text.styled import Text

STYLES = ("", "bold", "dim", "bold accent", "not bold dim", "italic", "underline", "reverse", "bold bad", "under")
WORDS = st.text(" ab\tµ✓→—界\u00a0\u0301\b\n", max_size=12)
STYLE = st.sampled_from(STYLES)
PART = st.tuples(WORDS, STYLE)


def both(parts: list[tuple[str, str]], style: str) -> tuple[Text, rich.text.Text]:
    return Text.assemble(*parts, style=style), rich.text.Text.assemble(*parts, style=style)


def same(ours: Text, theirs: rich.text.Text) -> None:
    assert (ours.plain, ours.style, ours.cell_len) == (theirs.plain, theirs.style, theirs.cell_len)
    assert [(s.start, s.end, s.style) for s in ours.spans] == [tuple(s) for s in theirs.spans if s.start < s.end]


@given(st.lists(PART, max_size=4), STYLE, st.integers(1, 30), st.booleans(), st.booleans())
def test_a_text_is_cut_and_filled_as_by_rich(
    parts: list[tuple[str, str]], style: str, width: int, ellipsis: bool, pad: bool
) -> None:
    ours, theirs = both(parts, style)
    ours.truncate(width, ellipsis=ellipsis, pad=pad)
    theirs.truncate(width, overflow="ellipsis" if ellipsis else "crop", pad=pad)
    same(ours, theirs)
    ours.rstrip()
    theirs.rstrip()
    same(ours, theirs)


@given(st.lists(PART, max_size=4), STYLE, st.integers(0, 20), st.integers(0, 20), STYLE)
def test_parts_and_further_styles_are_as_by_rich(
    parts: list[tuple[str, str]], style: str, start: int, length: int, further: str
) -> None:
    ours, theirs = both(parts, style)
    same(ours[start : start + length], theirs[start : start + length])
    ours.stylize(further, start, start + length)
    theirs.stylize(further, start, start + length)
    same(ours.copy(), theirs.copy())


@given(st.lists(st.tuples(PART, STYLE), max_size=3))
def test_texts_are_joined_as_by_rich(given: list[tuple[tuple[str, str], str]]) -> None:
    pairs = [both([part], style) for part, style in given]
    same(
        Text(" · ", "dim").join(ours for ours, _ in pairs),
        rich.text.Text(" · ", "dim").join(theirs for _, theirs in pairs),
    )


def test_each_narrow_character_is_one_cell_wide() -> None:
    assert {rich.cells.get_character_cell_size(one) for one in styled._NARROW} == {1}


@given(WORDS, st.integers(0, 15))
def test_cells_are_counted_as_by_rich(text: str, width: int) -> None:
    assert styled.cell_len(text) == rich.cells.cell_len(text)
    assert styled.set_cell_size(text, width) == rich.cells.set_cell_size(text, width)


ROLES = sorted({*lines._ON_A_TERMINAL, "bold", "italic", "underline", "reverse", "not bold dim"})


@pytest.mark.parametrize("colour", [False, True])
def test_a_terminal_gets_the_escapes_that_rich_writes(colour: bool) -> None:
    for whole, part, over in itertools.product(ROLES, ROLES, ("", "bold accent", "dim")):
        line = Text.assemble("one ", ("two", part), " three", style=whole)
        line.stylize(over, 2, 6)
        words = [whole, f"{whole} {over}", f"{whole} {part} {over}", f"{whole} {part}", whole]
        texts = ["on" if over else "one ", "e ", "tw", "o", " three"] if over else ["one ", "", "two", "", " three"]
        if not colour:
            assert lines.written([line]) == "one two three\n"
            continue
        made = ""
        for text, style in zip(texts, words, strict=True):
            one = Style.parse(" ".join(lines._ON_A_TERMINAL.get(word, word) for word in style.split()))
            made += one.render(text, color_system=ColorSystem.STANDARD)
        assert lines.written([line], colour=True) == f"{made}\n"
