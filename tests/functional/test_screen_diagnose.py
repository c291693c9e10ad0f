"""The step ``diagnose`` on the screen, by keys."""

from __future__ import annotations

import threading

import pytest

from jitter_workshop.flow.attribution import ExplainProgress
from jitter_workshop.flow.chapters.diagnosis import ChapterDiagnosis
from jitter_workshop.model.diagnosis import SeenCauses
from jitter_workshop.model.run import Run
from jitter_workshop.presenter.course import diagnosis as words
from jitter_workshop.presenter.course import keys_that_wait
from jitter_workshop.presenter.runs import effect_table
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tui.widgets.keybar import KeyBar
from tests.fakes import FakeWorkshop, open_workshop
from tests.screens import settled, text_of
from tests.unit.test_flow_diagnosis import measured

SIZES = [(80, 24), (160, 48)]


def at_diagnose(*, traced: bool = True) -> FakeWorkshop:
    workshop = open_workshop()
    measured(workshop, traced=traced)
    workshop.walk("baseline").go("diagnose")
    return workshop


def in_a_line(app: WorkshopApp) -> str:
    assert isinstance(app.screen, ChapterScreen)
    return " ".join(text_of(app).split())


@pytest.mark.parametrize("size", SIZES)
async def test_the_list_comes_first_with_the_example_behind_a_key_then_the_judgement(size: tuple[int, int]) -> None:
    workshop = at_diagnose()
    app = WorkshopApp(workshop, "baseline")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        narrow = size[0] < 100
        assert "WHO TOOK IT?" in text_of(app)
        assert ("An example" in in_a_line(app)) is not narrow
        if narrow:
            assert ("chapter.lesson", "lesson") in app.screen.query_one(KeyBar).shown
            await pilot.press("tab")
            await settled(pilot)
            assert "An example" in in_a_line(app)
            await pilot.press("7")
            await settled(pilot)
            assert keys_that_wait.NO_NUMBER in text_of(app)
            await pilot.press("enter")
            await settled(pilot)
            assert keys_that_wait.NO_NUMBER not in text_of(app), "it would hide what the list says"
        text = text_of(app)
        assert "local timer" in text
        assert "task evil[red] [2J x" in text
        assert "\x1b" not in text
        assert "20 µs" not in text.partition("ONE OF THESE")[0].partition("WHO TOOK IT?")[2]
        assert app.screen.query_one(KeyBar).shown[0] == ("chapter.enter", "skip it")
        await pilot.press("down")
        assert app.screen.query_one(KeyBar).shown[0] == ("chapter.enter", "name it")
        await pilot.press("enter")
        await settled(pilot)
        text = in_a_line(app)
        assert "✗ Not this one. Task evil[red]" in text
        assert "[2J x took the most time: 2" in text
        kept = workshop.walk("baseline").progress.diagnosis
        assert kept is not None
        assert kept.right is False
        await pilot.press("2", "enter")
        await settled(pilot)
        assert workshop.walk("baseline").current == "again"
        assert workshop.walk("baseline").progress.diagnosis == kept


async def test_after_the_answer_the_right_row_and_the_learners_are_on_the_smallest_screen() -> None:
    app = WorkshopApp(at_diagnose(), "baseline")
    async with app.run_test(size=(60, 16)) as pilot:
        await settled(pilot)
        while "WHO TOOK IT?" not in text_of(app):
            await pilot.press("enter")
            await settled(pilot)
        await pilot.press("down", "enter")
        await settled(pilot)
        rows = [line[1:].rstrip() for line in text_of(app).splitlines()]
        assert [row.split()[0] for row in rows if words.rows_of_answer([row])] == ["✓", "✗"]


async def test_enter_alone_skips_the_question_which_is_noted_until_it_is_answered() -> None:
    workshop = at_diagnose()
    app = WorkshopApp(workshop, "baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)
        walk = workshop.walk("baseline")
        assert walk.current == "diagnose", "an Enter too many skips no question that has just appeared"
        assert words.UNCHOSEN in in_a_line(app)
        assert app.screen.query_one(KeyBar).shown[0] == ("chapter.enter", "skip it")
        await pilot.press("enter")
        await settled(pilot)
        assert walk.current == "again"
        assert walk.progress.diagnosis is None
        assert walk.progress.skipped == walk.progress.runs["measure"]
        assert words.SKIPPED in in_a_line(app)
        app.screen.redraw()
        await settled(pilot)
        assert words.SKIPPED in in_a_line(app)
        assert [one.state for one in walk.steps() if one.name == "diagnose"] == ["open"]
        await pilot.press("b")
        await settled(pilot)
        assert "skipped" not in in_a_line(app)
        await pilot.press("2", "enter", "enter")
        await settled(pilot)
        assert walk.current == "again"
        assert not walk.diagnosis.skipped
        assert "skipped" not in in_a_line(app)
        assert [one.state for one in walk.steps() if one.name == "diagnose"] == ["done"]


async def test_the_skipped_question_is_told_only_until_the_next_key_that_leads_on() -> None:
    workshop = at_diagnose()
    app = WorkshopApp(workshop, "baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("enter", "enter")
        await settled(pilot)
        walk = workshop.walk("baseline")
        assert words.SKIPPED in in_a_line(app)
        while walk.runs.run_in("again") is None:
            await pilot.press("enter")
            await settled(pilot)
        assert "skipped" not in in_a_line(app)
        assert walk.diagnosis.skipped
        await pilot.press("b", "enter", "enter")
        await settled(pilot)
        assert words.SKIPPED in in_a_line(app), "it was skipped once more"


async def test_enter_does_nothing_while_the_evidence_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, read = threading.Event(), ChapterDiagnosis._read

    def slowly(self: ChapterDiagnosis, run: Run, progress: ExplainProgress) -> SeenCauses:
        assert gate.wait(30)
        return read(self, run, progress)

    monkeypatch.setattr(ChapterDiagnosis, "_read", slowly)
    workshop = at_diagnose()
    app = WorkshopApp(workshop, "baseline")
    async with app.run_test(size=(160, 48)) as pilot:
        try:
            await pilot.pause()
            assert words.READING in text_of(app)
            await pilot.press("enter", "enter")
            assert workshop.walk("baseline").current == "diagnose"
            assert "chapter.enter" not in dict(app.screen.query_one(KeyBar).shown)
        finally:
            gate.set()
        await settled(pilot)
        assert app.screen.query_one(KeyBar).shown[0] == ("chapter.enter", "skip it")
        await pilot.press("enter", "enter")
        await settled(pilot)
        assert workshop.walk("baseline").current == "again"


async def test_a_digit_chooses_and_the_answer_is_shown_at_the_next_visit() -> None:
    workshop = at_diagnose()
    app = WorkshopApp(workshop, "baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("9", "2", "enter")
        await settled(pilot)
        assert "✓ Right. Task" in in_a_line(app)
        await pilot.press("enter", "b")
        await settled(pilot)
        assert "✓ Right. Task" in in_a_line(app)
        assert "WHO TOOK IT?" in text_of(app)


async def test_counters_tell_the_needs_of_a_trace() -> None:
    app = WorkshopApp(at_diagnose(traced=False), "baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        text = in_a_line(app)
        assert "These counters grew" in text
        assert "This run has only counters" in text


async def test_a_run_that_the_screen_made_is_asked_about() -> None:
    app = WorkshopApp(open_workshop(), "pinning")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("m")
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert "DIAGNOSE" in text_of(app)
        assert "moves to another CPU" in text_of(app)


@pytest.mark.parametrize("answered", [True, False])
async def test_the_table_of_two_runs_has_the_cause_that_was_named(
    monkeypatch: pytest.MonkeyPatch, answered: bool
) -> None:
    monkeypatch.setattr(effect_table, "LEAST_TOLD", 0.5)
    workshop = at_diagnose()
    measured(workshop, "again", 2)
    walk = workshop.walk("baseline")
    seen = walk.diagnosis.read()
    assert seen is not None
    if answered:
        walk.diagnosis.answer(next(one.id for one in seen.suspects if "timer" in one.label))
    walk.go("compare")
    app = WorkshopApp(workshop, "baseline")
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot)
        table = text_of(app).partition("TIME BY CAUSE")[2].partition("COUNTS")[0]
        assert "evil" in table
        assert ("local timer" in table) is answered
