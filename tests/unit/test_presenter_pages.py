"""Test the division of lines into pages: no drawing is cut, nothing is lost, and a few lines get no own page."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.presenter.text.lines import Lines, small_title
from jitter_workshop.presenter.text.pages import in_pages, kept_together, sources_apart
from jitter_workshop.presenter.text.styled import Text


def text(count: int, lead: str = "t") -> Lines:
    return [Text(f"{lead}{n}") for n in range(count)]


def plain(lines: Lines) -> list[str]:
    return [line.plain for line in lines]


@given(
    parts=st.lists(st.tuples(st.booleans(), st.integers(0, 9)), max_size=12),
    rows=st.integers(1, 12),
)
def test_no_drawing_that_fits_on_a_page_is_cut_and_no_word_is_lost(parts: list[tuple[bool, int]], rows: int) -> None:
    lines: Lines = []
    drawings = []
    for number, (drawn, count) in enumerate(parts):
        part = text(count, f"{number}.")
        lines += kept_together(part) if drawn else part
        lines.append(Text())
        drawings += [plain(part)] if drawn and part else []
    made, end = in_pages(lines, rows)
    assert [word for word in plain(made) if word] == [word for word in plain(lines) if word]
    assert not any(plain(made)[len(made) - end :])
    last = max(len(made) - rows, 0)
    tops = {*range(0, last, rows), last}
    for drawing in drawings:
        first = plain(made).index(drawing[0])
        assert plain(made)[first : first + len(drawing)] == drawing
        if len(drawing) <= rows:
            assert any(top <= first and first + len(drawing) <= top + rows for top in tops)
            assert not any(first < top < first + len(drawing) for top in tops)


def test_a_text_that_fits_on_one_page_stays_as_it_is() -> None:
    lines = [*text(3), Text(), *kept_together(text(4, "d"))]
    assert in_pages(lines, 8) == (lines, 0)
    assert in_pages(lines, 0) == (lines, 0)
    assert in_pages([], 5) == ([], 0)


def test_a_drawing_begins_the_next_page() -> None:
    lines = [*text(5), *kept_together(text(4, "d")), *text(6, "u")]
    made, end = in_pages(lines, 8)
    assert plain(made)[:8] == ["t0", "t1", "t2", "t3", "t4", "", "", ""]
    assert plain(made)[8] == "d0"
    assert end == 2, "else the last page would begin inside the drawing"
    assert plain(made)[-8:] == [*(f"u{n}" for n in range(6)), "", ""]


def test_a_drawing_stands_on_the_page_before_if_the_blank_line_above_it_makes_room() -> None:
    drawing = kept_together(text(6, "d"))
    made, added = in_pages([*text(2), Text(), *text(2), Text(), *drawing, *text(11, "e")], 11)
    assert plain(made)[:11] == ["t0", "t1", "", "t0", "t1", *plain(drawing)]
    assert added == 0
    made, _ = in_pages([*text(2), Text(), *text(2), Text(), *drawing, *text(11, "e")], 10)
    assert plain(made)[:11] == ["t0", "t1", "", "t0", "t1", *[""] * 5, "d0"], "paragraphs stay apart"


def test_a_page_ends_with_no_half_of_a_short_paragraph_unless_that_needs_a_page_more() -> None:
    lines = [*text(6), Text(), *text(2, "u"), Text(), *text(3, "v")]
    made, _ = in_pages(lines, 8)
    assert plain(made)[:8] == ["t0", "t1", "t2", "t3", "t4", "t5", "", ""]
    assert plain(made)[8:10] == ["u0", "u1"]
    full = [*text(6), Text(), *text(2, "u"), Text(), *text(6, "v")]
    assert plain(in_pages(full, 8)[0])[7:9] == ["u0", "u1"], "a third page for one line is worse"


def test_a_title_is_on_the_page_of_the_line_below_it() -> None:
    lines = [*text(7), small_title("A TITLE"), *text(5, "u")]
    assert plain(in_pages(lines, 8)[0]) == [*plain(text(7)), "", "A TITLE", *plain(text(5, "u"))]
    lines = [*text(6), Text(), small_title("A TITLE"), *text(5, "u")]
    made, _ = in_pages(lines, 8)
    assert plain(made)[6:9] == ["", "", "A TITLE"], "the blank line above a title stays"


def test_only_the_blank_line_above_a_source_goes_to_save_a_page() -> None:
    lines = [*text(4), Text(), *text(3, "u"), Text(), Text("Source: a book")]
    assert plain(in_pages(lines, 9)[0]) == ["t0", "t1", "t2", "t3", "", "u0", "u1", "u2", "Source: a book"]
    for rows in (7, 8):
        made = plain(in_pages(lines, rows)[0])
        assert made[made.index("Source: a book") - 1] == "", "it would save no page"
    assert in_pages(text(9), 8) == (text(9), 0)


def test_the_last_paragraph_of_a_page_stands_apart_only_if_it_names_sources() -> None:
    page = [Text("Source: of all"), Text(), Text("a"), Text(), Text("Source: b;"), Text("c")]
    lesson, sources = sources_apart(page)
    assert (plain(lesson), plain(sources)) == (["Source: of all", "", "a"], ["Source: b;", "c"])
    assert sources_apart(lesson) == (lesson, [])
    assert sources_apart([]) == ([], [])
