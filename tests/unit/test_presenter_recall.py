"""Test how a recall question and its answers are shown."""

from __future__ import annotations

import pytest

from jitter_workshop.course.loader import builtin_course, load_course
from jitter_workshop.flow.chapters.recalling import Asked
from jitter_workshop.presenter.course.chapter import guess_choice_lines
from jitter_workshop.presenter.course.recall import question
from jitter_workshop.presenter.text.styled import Text

CHAPTERS = load_course(builtin_course()).chapters


def styles(lines: list[Text]) -> set[str]:
    """Return the styles of the text behind the numbers of the answers."""
    return {f"{line.style} {span.style}" for line in lines for span in line.spans if span.start >= len("▸ 1  ")}


@pytest.mark.parametrize(("chosen", "sign"), [(-1, "→"), (0, "✓"), (1, "✓")])
def test_the_right_answer_has_a_tick_only_after_an_answer(chosen: int, sign: str) -> None:
    one = next(one for chapter in CHAPTERS for one in chapter.recall if one.right == 0)
    rows = [line.plain for line in question(Asked("k", "Any", one), 1, 1, 200, chosen)]
    assert [row[0] for row in rows if row[1:4] == " 1 "] == [sign]
    assert sum(row.startswith("✗") for row in rows) == (chosen == 1)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.id)
def test_no_answer_is_told_apart_by_the_colour_of_a_term(chapter: object) -> None:
    for one in chapter.recall:  # type: ignore[attr-defined]
        lines = question(Asked("k", "Any", one), 1, 2, 200)
        answers = [line for line in lines if any(f" {n}  " in line.plain[:5] for n in range(1, 5))]
        assert len(answers) == len(one.answers)
        assert not any("`" in line.plain for line in answers)
        assert len(styles(answers)) <= 1
    task = chapter.prediction  # type: ignore[attr-defined]
    if task is not None and task.kind == "choice":
        assert len(styles(guess_choice_lines(task, -1, "", 200)[2:])) <= 1
