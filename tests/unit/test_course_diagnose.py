"""The step ``diagnose`` in a lesson's files: what it needs, and the mistakes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jitter_workshop.course.loader import builtin_course, load_course, read_course
from jitter_workshop.flow.chapters.newlesson import new_lesson
from jitter_workshop.model.text import split_code

ASKED = {"baseline", "governor", "migration", "pinning", "isolation", "interrupts", "workqueues", "temperature"}
FURTHER = {"idle-states", "tick", "memory", "realtime"}


def written(tmp_path: Path, file: str, old: str, new: str) -> list[str]:
    """The mistakes of a new chapter in one of whose files ``new`` stands in the place of ``old``."""
    course = tmp_path / "course"
    path = course / new_lesson("one", course).folder / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return [problem.message for problem in read_course(course).problems.found]


def test_a_page_without_a_listing_is_a_mistake(tmp_path: Path) -> None:
    assert written(tmp_path, "lesson.md", "\n```\n", "\n\n") == [
        "the page for 'diagnose' has no example: show a listing in fenced code, and explain it"
    ]


def test_the_step_needs_a_first_run(tmp_path: Path) -> None:
    found = written(tmp_path, "lesson.toml", '"measure", "diagnose"', '"diagnose"')
    assert any("asks about a run, but the step 'measure'" in said for said in found)


def test_the_step_stands_between_measure_and_plan(tmp_path: Path) -> None:
    found = written(tmp_path, "lesson.toml", '"measure", "diagnose"', '"diagnose", "measure"')
    assert [said.partition(":")[0] for said in found] == ["steps must be in this order"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('asks = "ends"', 'asks = "end"', "unknown asks 'end'; did you mean 'ends'?"),
        ('asks = "ends"', 'ask = "ends"', "unknown key 'ask'"),
        ('changes = "placement"', 'changes = "nothing"', "this chapter changes nothing that could end a cause"),
        ('"diagnose", ', "", "is about the step 'diagnose', which is not a step of this chapter"),
    ],
)
def test_the_table_diagnosis_is_checked(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert any(said in one for one in written(tmp_path, "lesson.toml", old, new))


PAGE_ASKS = {"most": r"Which cause is the largest\b", "ends": r"Which causes can [\w ]+ end\?"}


@pytest.mark.parametrize("ident", sorted(ASKED | FURTHER))
def test_the_page_asks_the_graded_question(ident: str) -> None:
    chapter = load_course(builtin_course()).chapter(ident)
    assert chapter is not None
    before = chapter.pages["diagnose"].partition("```")[0]
    found = {asks for asks, pattern in PAGE_ASKS.items() if re.search(pattern, before)}
    assert found == {chapter.asks}


@pytest.mark.parametrize("ident", sorted(ASKED | FURTHER))
def test_the_chapters_that_cure_have_the_step_directly_after_the_run(ident: str) -> None:
    chapter = load_course(builtin_course()).chapter(ident)
    assert chapter is not None
    assert chapter.steps[chapter.steps.index("measure") + 1] == "diagnose"
    listing = [line for line, kind in split_code(chapter.pages["diagnose"].splitlines()) if kind == "code"]
    assert 3 <= len(listing) <= 6
    # The lesson's column of a wide screen cuts longer lines.
    assert max(map(len, listing)) <= 46
    assert "An\nexample" in chapter.pages["diagnose"] or "An example" in chapter.pages["diagnose"]
