"""Test that no two chapters of a course ask the same, and that the guesses of the built-in course are short."""

from __future__ import annotations

import dataclasses
import re
import shutil
from pathlib import Path

import pytest

from jitter_workshop.course.alike import alike, guess_key
from jitter_workshop.course.loader import builtin_course, load_course
from jitter_workshop.flow.chapters.lessoncheck import check_course
from jitter_workshop.model.course import Chapter

CHAPTERS = load_course().chapters
GUESSED = [chapter for chapter in CHAPTERS if chapter.prediction is not None]


def changed(chapter: Chapter, **fields: object) -> Chapter:
    assert chapter.prediction is not None
    return dataclasses.replace(chapter, prediction=dataclasses.replace(chapter.prediction, **fields))


def test_no_two_built_in_chapters_ask_the_same() -> None:
    assert list(alike(CHAPTERS)) == []


def test_a_chapter_that_measures_asks_a_question_that_its_runs_decide() -> None:
    for chapter in GUESSED:
        task = chapter.prediction
        assert task is not None
        if chapter.measurements:
            assert task.kind == "mark" or task.by is not None, chapter.id
            assert task.slot is not None, chapter.id


@pytest.mark.parametrize("chapter", GUESSED, ids=lambda chapter: str(chapter.id))
def test_an_answer_is_explained_in_two_sentences(chapter: Chapter) -> None:
    assert chapter.prediction is not None
    for answer in chapter.prediction.answers:
        assert len(re.findall(r"[.!?](?=\s|$)", answer.explanation)) <= 2, (chapter.id, answer.id)


@pytest.mark.parametrize("chapter", [c for c in GUESSED if c.measurements], ids=lambda chapter: str(chapter.id))
def test_the_words_of_a_question_do_not_make_it_another_one_if_figures_decide_it(chapter: Chapter) -> None:
    other = changed(dataclasses.replace(chapter, id="other"), question="In other words?")
    assert guess_key(other) == guess_key(chapter)
    assert next(alike([other, *GUESSED]))[1] is other


def test_other_bounds_make_another_question_of_figures() -> None:
    chapter = next(one for one in GUESSED if one.prediction is not None and one.prediction.by == "factor")
    assert chapter.prediction is not None
    first, *rest = chapter.prediction.answers
    wider = (dataclasses.replace(first, up_to=(first.up_to or 0.0) + 1), *rest)
    assert guess_key(changed(chapter, answers=wider)) != guess_key(chapter)


def test_a_mark_is_compared_by_its_workload_and_percentile_alone() -> None:
    """Other bounds do not make it another question: the learner points at the same place of the same curve."""
    chapter = next(one for one in GUESSED if one.prediction is not None and one.prediction.kind == "mark")
    assert chapter.prediction is not None
    first, *rest = chapter.prediction.answers
    wider = (dataclasses.replace(first, up_to_ns=(first.up_to_ns or 0) + 1), *rest)
    assert guess_key(changed(chapter, answers=wider)) == guess_key(chapter)
    assert guess_key(changed(chapter, percentile="50")) != guess_key(chapter)
    waking = tuple(dataclasses.replace(one, workload="wakeup") for one in chapter.measurements)
    assert guess_key(dataclasses.replace(chapter, measurements=waking)) != guess_key(chapter)


def test_choices_without_a_figure_are_compared_by_their_words() -> None:
    chapter = changed(GUESSED[0], kind="choice", by=None, question="What took it?")
    same = changed(chapter, question="what  took IT?")
    assert guess_key(chapter) == guess_key(same) != guess_key(changed(chapter, question="What else?"))


def test_lessons_check_names_the_chapter_that_asks_it_already(tmp_path: Path) -> None:
    names = ("01-baseline", "04-pinning")
    for name in names:
        shutil.copytree(builtin_course() / name, tmp_path / name)
    taken = (tmp_path / names[0] / "lesson.toml").read_text().split("[prediction]")[1].split("[[by_hand]]")[0]
    lesson = tmp_path / names[1] / "lesson.toml"
    before, _, rest = lesson.read_text().partition("[prediction]")
    lesson.write_text(f"{before}[prediction]{taken}[[by_hand]]{rest.split('[[by_hand]]', 1)[1]}")
    listed = ", ".join(f'"{name}"' for name in names)
    (tmp_path / "course.toml").write_text(f'format_version = 1\nid = "mine"\ntitle = "Mine"\nchapters = [{listed}]\n')
    found = check_course(tmp_path).problems
    # The guess, and each of the recall questions behind it.
    assert len(found) == 1 + len(CHAPTERS[0].recall)
    assert {(one.file, "01-baseline" in one.message) for one in found} == {("04-pinning/lesson.toml", True)}
    assert len({one.line for one in found}) == len(found)
