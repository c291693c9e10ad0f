"""The computed time of a chapter: what is counted, and the limits that the built-in course keeps."""

from __future__ import annotations

import dataclasses

import pytest

from jitter_workshop.course.loader import load_course
from jitter_workshop.course.pace import (
    BOOT_S,
    HUNT_S,
    LONGEST_STEP_S,
    SCREEN_S,
    WORDS_A_MINUTE,
    StepPace,
    chapter_minutes,
    names_source,
    run_s,
    step_paces,
    words_of_page,
)
from jitter_workshop.model.course import (
    Answer,
    Chapter,
    CommandByHand,
    GuessTask,
    Measurement,
    PageWhen,
    RecallQuestion,
)

ASKED = ("baseline", "governor", "migration", "pinning", "isolation", "interrupts", "workqueues", "temperature")
QUICK = Measurement("measure", "x", "spin", "auto", "quick")


def _chapter(**changed: object) -> Chapter:
    bare = Chapter(
        id="c",
        title="C",
        summary="c",
        minutes=1,
        hot_cpus=1,
        changes="nothing",
        steps=("look", "predict", "measure", "explain"),
        pages={"look": "one two three", "predict": "four", "measure": "five", "explain": "six"},
        measurements=(QUICK,),
        prediction=None,
        hints=("a hint is not counted",),
        by_hand=(),
        checks=(),
    )
    return dataclasses.replace(bare, **changed)  # type: ignore[arg-type]


def _words(chapter: Chapter) -> dict[str, int]:
    return {one.step: one.words for one in step_paces(chapter)}


def test_a_step_is_its_words_its_screen_and_its_run() -> None:
    look, _, measure, _ = step_paces(_chapter(pages={"look": "word " * WORDS_A_MINUTE, "measure": "five"}))
    assert look == StepPace("look", WORDS_A_MINUTE, 0.0)
    assert look.seconds == look.own_s == pytest.approx(60 + SCREEN_S)
    assert measure.seconds == pytest.approx(measure.own_s + run_s(QUICK))
    assert chapter_minutes(_chapter()) == pytest.approx(sum(one.seconds for one in step_paces(_chapter())) / 60)


def test_a_run_takes_its_blocks_its_start_and_the_time_between_blocks() -> None:
    assert 5.0 < run_s(QUICK) < 10.0
    ten, fifteen = (run_s(dataclasses.replace(QUICK, duration_s=length)) for length in (10.0, 15.0))
    assert ten - run_s(QUICK) == pytest.approx(fifteen - ten)
    assert 40.0 < run_s(dataclasses.replace(QUICK, preset="standard")) < 50.0


@pytest.mark.parametrize(
    ("page", "count"),
    [
        ("Plain **words** — and `code`.", 4),
        ("Read this.\n\nSource: man 5 proc;\nDocumentation/x.rst", 2),
        ("Look:\n\n```\n0 µs  task runs\n```\n\nSo it is.", 1 + 4 + 3),
        ("```draw-mask\ncpus 8\nout 1-2\n```", 4),
        ("- one\n- two", 2),
        ("", 0),
    ],
)
def test_words_are_counted_without_marks_fences_and_sources(page: str, count: int) -> None:
    assert words_of_page(page) == count


@pytest.mark.parametrize(
    ("page", "named"),
    [("Text.\n\nSource: man 5 proc", True), ("Source:\n\nMore text.", False), ("Source: \nMore text.", False)],
)
def test_a_source_is_named_on_its_line(page: str, named: bool) -> None:
    assert names_source(page) is named


def test_of_the_texts_for_a_state_of_the_host_the_longest_counts() -> None:
    added = (
        PageWhen("look", "good", "one"),
        PageWhen("look", "available", "one two"),
        PageWhen("explain", "good", "x"),
    )
    assert _words(_chapter(page_when=added)) == {"look": 5, "predict": 1, "measure": 1, "explain": 2}


def test_the_guess_is_read_at_its_step_and_its_explanation_where_the_run_decides() -> None:
    answers = (Answer("a", "first answer", "why it is so"), Answer("b", "second", "why"))
    task = GuessTask("choice", "What will it be?", "measure", answers)
    assert _words(_chapter(prediction=task)) == {"look": 3, "predict": 1 + 4 + 3, "measure": 1 + 4, "explain": 1}
    known = dataclasses.replace(task, slot=None)
    assert _words(_chapter(prediction=known)) == {"look": 3, "predict": 1 + 4 + 3 + 4, "measure": 1, "explain": 1}


def test_two_recall_questions_are_asked_before_the_first_step() -> None:
    asked = tuple(RecallQuestion(f"q{n}", "who", ("a", "b", "c"), 0, "because") for n in range(3))
    assert _words(_chapter(recall=asked))["look"] == 3 + 2 * 5
    assert _words(_chapter(recall=asked[:1]))["look"] == 3 + 5


def test_the_last_step_has_the_learnt_sentences_and_the_open_commands() -> None:
    commands = tuple(CommandByHand("vmstat 1 5", "who runs") for _ in range(5))
    assert _words(_chapter(learnt=("keep this",), by_hand=commands))["explain"] == 1 + 2 + 3 * 5


def test_a_boot_and_a_hunt_take_their_time() -> None:
    steps = ("apply", "again")
    again = dataclasses.replace(QUICK, slot="again")
    boot = step_paces(_chapter(steps=steps, measurements=(again,), reboot=True))
    assert [one.fixed_s for one in boot] == [BOOT_S, run_s(again)]
    hunt = step_paces(_chapter(steps=steps, measurements=(again,), hunt=True))
    assert [one.fixed_s for one in hunt] == pytest.approx([0.0, HUNT_S + 2 * run_s(again)])


def test_the_asked_chapters_take_at_most_an_hour() -> None:
    taken = {one.id: chapter_minutes(one) for one in load_course().chapters if one.id in ASKED}
    assert len(taken) == len(ASKED)
    assert sum(taken.values()) <= 60.0, taken


def test_no_step_of_the_built_in_course_takes_more_than_three_minutes() -> None:
    slow = [
        (one.id, step.step) for one in load_course().chapters for step in step_paces(one) if step.own_s > LONGEST_STEP_S
    ]
    assert slow == []
