"""Test the markup of a lesson's text: nothing acts, nothing looks empty, and every reader sees the same code blocks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.course.files import Problems, SourceText, columns, heaped_marks
from jitter_workshop.course.lesson import check_text, read_pages
from jitter_workshop.course.table import parse_table
from jitter_workshop.model.text import split_code
from jitter_workshop.presenter.text.prose import prose


def mistakes(text: str) -> list[tuple[int, str]]:
    problems = Problems()
    check_text("lesson.md", 1, text, problems)
    return [(p.line, p.message) for p in problems.found]


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("a\n``` `a`\n<b>x</b>\n```\n", 2, "code block"),
        ("a\n``` `a`\n<b>x</b>\n```\n", 3, "HTML"),
        ("a\n``` `a`\n[x](javascript:y)\n```\n", 3, "https://"),
        ("a\n``` `a`\n![x](https://a.b/c.png)\n```\n", 3, "picture"),
        ("- a\n  ```\n<b>x</b>\n  ```\n", 2, "code block"),
        ("> ```\n<b>x</b>\n", 2, "HTML"),
        ("```\n``` x\n```\n<b>x</b>\n```\n```", 4, "HTML"),
        ("````\n```\n````\n<b>x</b>", 4, "HTML"),
        ("```\nx", 1, "no closing ```"),
        ("~~~\n```\n", 1, "no closing ```"),
        ("a <b\nclass=x> b", 1, "HTML"),
        ("a\n\nb\nc <a\nhref='javascript:x'>", 4, "HTML"),
        ("<div\n\nx", 1, "HTML"),
        ("> <b>x", 1, "HTML"),
        ("<javascript:x>", 1, "HTML"),
        ("[a](\njavascript:x)", 2, "https://"),
        ("[a\nb](javascript:x)", 2, "https://"),
        ("see [a]\n\n[a]:\njavascript:x", 4, "https://"),
        ("> [a]: javascript:x", 1, "https://"),
        ("> [a]:\n> javascript:x", 2, "https://"),
        ("- [a]: javascript:x", 1, "https://"),
        ("1. > [a]: javascript:x", 1, "https://"),
        ("`` <b> `", 1, "HTML"),
        (r"\`<b>\`", 1, "HTML"),
        ("a `code\nthat goes on` <b>", 2, "HTML"),
    ],
)
def test_active_markup_is_found_with_its_line_anywhere_in_a_page(text: str, line: int, what: str) -> None:
    assert any(n == line and what in message for n, message in mistakes(text)), mistakes(text)


@pytest.mark.parametrize(
    "text",
    [
        "```\n<b>\n![a](javascript:x)\n```\nafter",
        "~~~toml\n[a]: b\n~~~",
        "````\n```\n<b>\n```\n````",
        "`<b>` and ``a ` <b>`` and `a <b\nover two lines>`",
        r"less \<b> than",
        "x < y and y > z, i<3, a -> b",
        "see <https://kernel.org/x> and [it](https://kernel.org), twice [it](\nhttps://kernel.org)",
        "[a]: https://kernel.org\n> [b]:\n> https://kernel.org",
        "a list\n- one\n- two [1]: no target\n",
        "```c++\nint a;\n```",
    ],
)
def test_code_and_plain_text_are_left_alone(text: str) -> None:
    assert mistakes(text) == []


def test_headings_in_code_are_code_and_the_page_after_it_is_found() -> None:
    problems = Problems()
    pages, starts = read_pages(SourceText("lesson.md", "## look\na\n```\n## x\n```\n## plan\nb\n"), problems)
    assert problems.found == []
    assert (pages, starts) == ({"look": "a\n```\n## x\n```", "plan": "b"}, {"look": 1, "plan": 6})


PAGES = ["```\na *b*\n```\nc", "``` `x`\na\n```\nb", "````\n```\na\n````\nb", "~~~\na\n```\n~~~\nb", "a\n  ```\nb"]


@pytest.mark.parametrize("page", PAGES)
def test_the_workshop_shows_the_code_that_the_check_takes_for_code(page: str) -> None:
    code = [line for line, kind in split_code(page.split("\n")) if kind == "code"]
    assert [line.plain.strip() for line in prose(page, 60) if str(line.style) == "code"] == code


@given(st.lists(st.sampled_from(["```", "````", "~~~", "``` x", "``` `a`", " ```", "text", "", "``"]), max_size=12))
def test_every_line_is_kept_and_fences_come_in_pairs(lines: list[str]) -> None:
    made = list(split_code(lines))
    assert [line for line, _ in made] == lines
    fences = [n for n, (_, kind) in enumerate(made) if kind == "fence"]
    for begin, end in zip(fences[::2], fences[1::2], strict=False):
        assert all(kind == "code" for _, kind in made[begin + 1 : end])
        assert made[end][0].startswith(made[begin][0].split()[0])


@pytest.mark.parametrize(
    ("title", "what"),
    [
        ("\u3164", "invisible"),
        ("Title\uffa0", "invisible"),
        ("\u2800\u2800", "invisible"),
        ("a" + "\u0301" * 30, "accents"),
        ("\u0301a", "accents"),
        ("a \u0301", "accents"),
        ("漢" * 40, "wider than 40 columns"),
        ("漢" * 21, "wider than 40 columns"),
        ("a" * 41, "longer than 40 characters"),
    ],
)
def test_a_title_can_be_seen_and_fits_its_line(title: str, what: str) -> None:
    problems = Problems()
    table = parse_table(SourceText("lesson.toml", f'title = "{title}"\n'), problems)
    assert table is not None
    assert table.text("title", limit=40) == ""
    assert [p.line for p in problems.found] == [1]
    assert what in problems.found[0].message


@pytest.mark.parametrize(
    "title",
    ["漢" * 20, "Tiê\u0301ng Viê\u0323t", "हिन्दी में", "Überläufe µs → ms", "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd"],
)
def test_titles_of_any_language_are_taken(title: str) -> None:
    problems = Problems()
    table = parse_table(SourceText("lesson.toml", f'title = "{title}"\n'), problems)
    assert table is not None
    assert (table.text("title", limit=40), problems.found) == (title, [])
    assert columns(title) <= 40


@given(st.text(st.characters(max_codepoint=127)))
def test_plain_letters_measure_the_same_beside_others(text: str) -> None:
    assert columns(text) + 2 == columns(text + "漢")
    assert heaped_marks(text) == heaped_marks(text + "漢")
    assert heaped_marks(text + " \u0301")
