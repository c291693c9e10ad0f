"""A chapter on the screen: every step, by keys."""

from __future__ import annotations

import asyncio
import dataclasses
import re
import threading
from copy import deepcopy
from typing import Any

import pytest
from textual.pilot import Pilot

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.chart.gap import Gap
from jitter_workshop.course.loader import builtin_course
from jitter_workshop.errors import MeasureError
from jitter_workshop.flow.chapters import comparison
from jitter_workshop.flow.chapters.chapter_host import ChapterHost
from jitter_workshop.flow.chapters.judging import judge_pair
from jitter_workshop.flow.chapters.runs import ChapterRuns
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.host_ops.recordings import recorded_host
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.flow.measuring.unchanged import UNCHANGED
from jitter_workshop.flow.reporting.build import build_report
from jitter_workshop.flow.reporting.subject import subject_of
from jitter_workshop.model.course import Answer, GuessTask, StepName
from jitter_workshop.model.effect import CauseTime, Effect, Effects
from jitter_workshop.model.run import INTENDED, SilentObserver, ThreadRecord
from jitter_workshop.presenter.course import keys_that_wait
from jitter_workshop.presenter.course.chapter import HINTS_OVER, LAPTOP_SENDING
from jitter_workshop.presenter.runs import effect
from jitter_workshop.presenter.runs.effect import PROOF_BY_KEY, Result
from jitter_workshop.presenter.runs.result_table import CAN_END
from jitter_workshop.presenter.runs.run import CORE
from jitter_workshop.presenter.text.glossary import found
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.report.blocks import Subsection, Table
from jitter_workshop.report.sections import sections
from jitter_workshop.stats.figures import FIGURES
from jitter_workshop.stats.sample_size import FEW_TOLD
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.chapter import steps as chapter_steps
from jitter_workshop.tui.screens.chapter.chapter import FINISHING, RUN_IS_ON, ChapterScreen
from jitter_workshop.tui.screens.chapter.runs import BackgroundRuns
from jitter_workshop.tui.screens.chapter.steps import FIRST_MARK_NS, Again, Compare, Measure
from jitter_workshop.tui.screens.common.dialogs import ErrorDialog
from jitter_workshop.tui.screens.home.home import HomeScreen
from jitter_workshop.tui.screens.host.cpus import CpuPicker
from jitter_workshop.tui.widgets.chart import ChartView
from jitter_workshop.tui.widgets.keybar import KeyBar, KeyHint
from jitter_workshop.tui.widgets.sheet import Pane, Sheet
from tests import fakes, madeup, talking
from tests.fakes import BLOCKS, FakeWorkshop, open_workshop, stop_in_run, walk_with
from tests.screens import read_on, settled, text_of

SIZES = [(80, 24), (160, 48)]


def chapter_of(app: WorkshopApp) -> ChapterScreen:
    assert isinstance(app.screen, ChapterScreen)
    return app.screen


def at_measure(workshop: FakeWorkshop) -> WorkshopApp:
    """Return an app that opens a chapter at its first run. The learner has passed the question without a guess."""
    workshop.walk("baseline").go("measure")
    return WorkshopApp(workshop, "baseline")


async def go_on_to_compare(app: WorkshopApp, pilot: Pilot[None]) -> None:
    """Press Enter until the chapter is at ``compare``, at most 30 times."""
    for _ in range(30):
        if chapter_of(app).step == "compare":
            return
        await pilot.press("enter")
        await settled(pilot)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("chapter", ["baseline", "migration", "pinning"])
async def test_enter_alone_goes_through_a_whole_chapter(chapter: str, size: tuple[int, int]) -> None:
    app = WorkshopApp(open_workshop(), chapter)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        walk = chapter_of(app).walk
        seen = []
        for _ in range(60):
            if not isinstance(app.screen, ChapterScreen):
                break
            if not seen or seen[-1] != walk.current:
                seen.append(walk.current)
            assert walk.current.upper() in text_of(app)
            assert len(app.screen.query_one(KeyBar).shown) <= 7
            await pilot.press("enter")
            await settled(pilot)
        assert isinstance(app.screen, HomeScreen)
        assert tuple(seen) == walk.chapter.steps
        assert walk.progress.done
        assert len(app.workshop.context.runs.every()) == len(walk.chapter.measurements)
        # A mark stands somewhere, and a second Enter keeps it there; an answer that was not chosen is no guess.
        assert walk.chapter.prediction is not None
        assert (walk.progress.prediction is not None) == (walk.chapter.prediction.kind == "mark")


async def test_an_untouched_guess_is_asked_about_and_its_hints_end_with_it() -> None:
    app = WorkshopApp(open_workshop(), "baseline")
    async with app.run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        await pilot.press("n")
        screen = chapter_of(app)
        assert screen.query_one(KeyBar).shown[0] == ("chapter.enter", "keep guess")
        await pilot.press("enter")
        assert "Enter again takes it as your guess" in text_of(app)
        assert screen.query_one(KeyBar).shown[0] == ("chapter.enter", "keep guess")
        assert screen.walk.progress.prediction is None
        await pilot.press("h")
        assert screen.walk.chapter.hints[0][:40] in " ".join(text_of(app).split())
        await pilot.press("enter", "enter")
        await settled(pilot)
        assert screen.walk.runs.run_in("measure") is not None
        assert screen.walk.progress.prediction is not None
        await pilot.press("h")
        assert HINTS_OVER[:40] in text_of(app)
        assert screen.walk.progress.hints == 1


@pytest.mark.parametrize(("caveats", "cut"), [(0, 5), (2, 3), (3, 2)])
async def test_a_small_screen_leaves_the_comparison_room_for_its_chart_and_cuts_no_caveat(
    caveats: int, cut: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = [Text(f"line {n} of the result") for n in range(7)]
    result = Result(told[: 7 - caveats], told[7 - caveats :])
    monkeypatch.setattr(Compare, "result", lambda self, width: deepcopy(result))
    app = WorkshopApp(open_workshop(), "migration")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await go_on_to_compare(app, pilot)
        screen = chapter_of(app)
        assert f"line {cut} of the result … (t: more)" in text_of(app)
        assert f"line {cut + 1} of" not in text_of(app)
        assert all(f"line {n} of the result " in text_of(app) for n in range(7 - caveats, 7))
        assert "t all figures" in text_of(app)
        assert screen.query_one("#chart", ChartView).size.height >= 9
        await pilot.press("t")
        assert "line 6 of the result" in text_of(app)


async def test_a_table_names_the_key_back_to_the_chart_beside_enter_and_a_cut_line_the_key_to_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Compare, "result", lambda self, width: Result([Text(f"line {n}.") for n in range(9)]))
    app = WorkshopApp(open_workshop(), "migration")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await go_on_to_compare(app, pilot)
        assert "read on  t all figures" in text_of(app)
        await pilot.press("t")
        await settled(pilot)
        assert "t back to chart" in text_of(app)
        assert "… (t: more)" not in text_of(app)


async def test_the_sentences_below_a_chart_have_the_rows_that_a_short_result_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Compare, "result", lambda self, width: Result([]))
    monkeypatch.setattr(Compare, "said", lambda self: ["A sentence that is told above the keys. " * 8])
    app = WorkshopApp(open_workshop(), "migration")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await go_on_to_compare(app, pilot)
        shown = " ".join(text_of(app).split())
        assert shown.count("A sentence that is told above the keys.") == 8
        assert "(t: more)" not in shown


async def test_each_chart_of_a_small_screen_has_ten_rows_however_much_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Result([Text(f"line {n} of the result") for n in range(6)])
    guess = [Text(f"line {n} on the guess") for n in range(4)]
    app = WorkshopApp(open_workshop(), "migration")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await go_on_to_compare(app, pilot)
        screen = chapter_of(app)
        for kind in (Measure, Again, Compare):
            monkeypatch.setattr(kind, "result", lambda self, width: deepcopy(told))
            monkeypatch.setattr(kind, "verdict", lambda self, width: deepcopy(guess))
            monkeypatch.setattr(kind, "said", lambda self: ["A sentence that is told above the keys. " * 8])
        for step in ("compare", "again", "measure"):
            screen.go_to_step(step)
            screen.redraw()
            await settled(pilot)
            assert screen.step == step
            plot = [line for line in text_of(app).splitlines() if {"┤", "│", "└"} & set(line[:10])]
            assert len(plot) + 1 >= 10, "the last row names the percentiles"
            assert text_of(app).count("… (t: more)") >= 2
            await pilot.press("t")
            await settled(pilot)
            whole = " ".join(text_of(app).split())
            assert "line 5 of the result" in whole
            assert "line 3 on the guess" in whole
            assert whole.count("A sentence that is told above the keys.") == 8
            await pilot.press("t")


async def led_to_measure(pilot: Pilot[None], app: WorkshopApp) -> ChapterScreen:
    """Go to the step that makes the first run."""
    screen = chapter_of(app)
    for step in ("look", "predict"):
        screen.walk.go(step)
    screen.go_to_step("measure")
    await settled(pilot)
    return screen


async def test_enter_looks_again_at_a_host_that_others_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    held = ["CPU 1 is isolated, so restore the isolation first"]
    app = WorkshopApp(open_workshop(), "pinning")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        screen = await led_to_measure(pilot, app)
        monkeypatch.setattr(ChapterHost, "reason", property(lambda self: held[0]))
        monkeypatch.setattr(
            type(screen.workshop.context), "look_again", lambda self: held.__setitem__(0, ""), raising=True
        )
        screen.redraw()
        await settled(pilot)
        assert "CPU 1 is isolated" in text_of(app)
        assert screen.now.enter_key.label == "look again"
        for _ in range(9):
            if not held[0]:
                break
            await pilot.press("enter")
            await settled(pilot)
        assert screen.now.enter_key.label == "measure"
        assert "CPU 1 is isolated" not in text_of(app)
        assert screen.walk.runs.run_in("measure") is None


async def test_commands_unfold_as_far_as_a_large_screen_has_room() -> None:
    app = WorkshopApp(open_workshop(course=builtin_course()), "make-it-last")
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot)
        screen = chapter_of(app)
        screen.go_to_step("explain")
        await settled(pilot)
        first, seen = 1, 0
        while first:
            assert not screen.query_one("#data", Pane).more_below
            found = re.search(rf"BY HAND {first}–(\d+) OF 12", text_of(app))
            assert found is not None
            seen, first = int(found[1]), int(found[1]) + 1 if int(found[1]) < 12 else 0
            await pilot.press("f")
            await settled(pilot)
        assert seen == 12
        assert "BY HAND 1–5 OF 12" in text_of(app)


async def test_no_page_of_a_small_screen_cuts_the_drawing_of_a_lesson() -> None:
    app = WorkshopApp(open_workshop(course=builtin_course()), "baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        screen = await led_to_measure(pilot, app)
        pages = [text_of(app)]
        while SCROLLS in screen.query_one(KeyBar).shown:
            await pilot.press("pagedown")
            await settled(pilot)
            pages.append(text_of(app))
        assert screen.walk.runs.run_in("measure") is None
        assert "Enter measure" in pages[-1]
        parts = ("100 ms │", "another task ╭", "1 µs │the ring", "99.999")
        shown = [[part in page for part in parts] for page in pages]
        assert shown.count([True] * 4) == 1
        assert all(one in ([True] * 4, [False] * 4) for one in shown)
        assert "judged" in pages[-1]


async def test_the_lesson_behind_a_whole_result_has_its_room_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Compare, "result", lambda self, width: Result([Text(f"line {n}.") for n in range(7)]))
    app = WorkshopApp(open_workshop(), "migration")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await go_on_to_compare(app, pilot)
        await pilot.press("t")
        await settled(pilot)
        assert "line 6." in text_of(app)
        screen = chapter_of(app)
        while screen.now.enter_key.label == "read on":
            await pilot.press("enter")
            await settled(pilot)
        assert screen.step == "compare"
        assert "line 6." not in text_of(app)


async def test_a_small_screen_cuts_a_result_behind_a_whole_word(monkeypatch: pytest.MonkeyPatch) -> None:
    told = [Text(" ".join(["changed"] * 9)[:78]) for _ in range(8)]
    monkeypatch.setattr(Compare, "result", lambda self, width: Result(deepcopy(told)))
    app = WorkshopApp(open_workshop(), "migration")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await go_on_to_compare(app, pilot)
        assert "changed … (t: more)" in text_of(app)


@pytest.mark.parametrize(("chapter", "drawn"), [("baseline", True), ("pinning", False), ("system-calls", False)])
async def test_the_laptop_of_2015_gives_the_scale_in_the_first_chapter_alone(chapter: str, drawn: bool) -> None:
    app = WorkshopApp(open_workshop(course=builtin_course()), chapter)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        screen = chapter_of(app)

        def published() -> bool:
            return any(one.curve.origin == "published" for one in screen.now.curves())

        assert published() is drawn
        await pilot.press("o")
        assert published() is not drawn
        app.change_preferences(show_published=False)
        screen._published = None
        assert not published()


async def test_the_laptop_of_2015_is_named_transit_beside_latencies() -> None:
    workshop = open_workshop(course=builtin_course())
    made, blocks = madeup.make_run([[100] * 1_000])
    due, due_blocks = madeup.make_run([[100] * 900 + [9_000_000] * 100], name=INTENDED)
    made = dataclasses.replace(made, histograms={**made.histograms, **due.histograms})
    both = zip(blocks, due_blocks, strict=True)
    workshop.context.handle.add_run(
        made, tuple(dataclasses.replace(a, histograms={**a.histograms, **b.histograms}) for a, b in both)
    )
    workshop.walk("baseline").record("measure", made)
    app = WorkshopApp(workshop, "baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        screen = chapter_of(app)
        published, own = screen.now.curves()
        assert published.curve.origin == "published"
        assert published.label == "laptop 2015, transit"
        assert own.label == made.label
        await pilot.press("o")
        assert [one.label for one in screen.now.curves()] == [own.label]


async def test_the_curves_of_2015_are_read_at_the_percentile_of_the_ring() -> None:
    """The chapter on the governor measures spin, whose usual percentile would be the maximum of these curves."""
    app = WorkshopApp(open_workshop(recorded_host("lab-stock").root, course=builtin_course()), "governor")
    async with app.run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        screen = chapter_of(app)
        for step in screen.walk.chapter.steps[1:7]:
            screen.walk.go(step)
        screen.enter_step()
        screen.redraw()
        await settled(pilot)
        assert screen.step == "compare"
        assert "p99.9 8.13 ms" in text_of(app)
        await pilot.press("t")
        await settled(pilot)
        assert "judged by" not in screen.sheet("#data-sheet").plain()


@pytest.mark.parametrize("size", [(120, 36), (160, 48)])
async def test_an_example_of_a_trace_keeps_its_rows_beside_the_causes(size: tuple[int, int]) -> None:
    """At 120 columns the lesson's usual column has 34, and rows of this example have 42."""
    app = WorkshopApp(open_workshop(recorded_host("lab-stock").root, course=builtin_course()), "pinning")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        screen = chapter_of(app)
        screen.walk.go("diagnose")
        screen.enter_step()
        screen.redraw()
        await settled(pilot)
        assert "moves to another CPU    9 stalls    0.3 ms" in text_of(app)


async def test_a_small_screen_cuts_the_good_news_before_a_worsening(monkeypatch: pytest.MonkeyPatch) -> None:
    told = [Text(f"line {n} of the result") for n in range(9)]
    result = Result(told, [Text("a caveat")], uncut=5)
    monkeypatch.setattr(effect, "result_of_two_runs", lambda *_, **__: deepcopy(result))
    app = WorkshopApp(open_workshop(), "migration")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await go_on_to_compare(app, pilot)
        shown = text_of(app)
        assert all(f"line {n} of the result " in shown for n in range(5))
        assert "line 4 of the result …" not in shown
        assert "line 5 of the result … (t: more)" in shown
        assert "line 6 of" not in shown
        assert "a caveat" in shown


@pytest.mark.parametrize("size", SIZES)
async def test_esc_closes_a_hint_and_then_the_chapter(size: tuple[int, int]) -> None:
    app = WorkshopApp(open_workshop(), "baseline")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        screen = chapter_of(app)
        screen.walk.go("predict")
        screen.enter_step()
        await pilot.press("enter", "h")
        await settled(pilot)
        assert screen.walk.chapter.hints[0][:40] in text_of(app)
        assert ("chapter.home", "close hint") in screen.query_one(KeyBar).shown
        await pilot.press("escape")
        await settled(pilot)
        assert app.screen is screen
        assert screen.walk.chapter.hints[0][:40] not in text_of(app)
        assert ("chapter.home", "") in screen.query_one(KeyBar).shown
        await pilot.press("escape")
        await settled(pilot)
        assert isinstance(app.screen, HomeScreen)


async def test_each_decade_is_named_at_the_guess_with_a_hint_and_without() -> None:
    app = WorkshopApp(open_workshop(), "baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("n")
        await read_on(pilot)
        decades = ["10 ms", "1 ms", "100 µs", "10 µs", "1 µs", "100 ns"]
        for key in ("h", "escape", "right", "right", "right"):
            await pilot.press(key)
            await settled(pilot)
            named = [line.partition("┤")[0].strip() for line in text_of(app).splitlines() if "┤" in line]
            assert [name for name in named if name in decades] == decades, key
            assert "" not in named
        await pilot.press("right")
        await settled(pilot)
        shown = text_of(app)
        assert " 100 ms ┤" in shown
        await pilot.press("h")
        await settled(pilot)
        assert " 100 ms ┤" in text_of(app), "the hint takes no decade"
        assert "your guess" not in shown


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_a_column_of_air_is_between_the_lesson_and_its_scroll_bar(size: tuple[int, int]) -> None:
    app = WorkshopApp(open_workshop(course=builtin_course()), "isolation")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        pane = app.screen.query_one("#data" if size[0] < 100 else "#lesson", Pane)
        assert pane.show_vertical_scrollbar
        bar = pane.vertical_scrollbar.region
        air = [line[bar.x - 1] for line in text_of(app).splitlines()[bar.y : bar.bottom]]
        assert set(air) == {" "}
        assert any(line[bar.x - 2] != " " for line in text_of(app).splitlines()[bar.y : bar.bottom]) or size[0] < 100


async def test_the_mark_moves_on_the_chart_and_is_kept() -> None:
    app = WorkshopApp(open_workshop(), "baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("n")
        assert "The chart will show" in text_of(app)
        await pilot.press("enter")
        screen = chapter_of(app)
        assert screen.query_one("#chart", ChartView).marks == ((99.9, FIRST_MARK_NS),)
        await pilot.press("right", "up")
        ((percentile, marked),) = screen.query_one("#chart", ChartView).marks
        assert (percentile, 120_000 < marked < 130_000) == (99.9, True)
        assert "your mark: p99.9 = 126 µs" in text_of(app)
        assert LAPTOP_SENDING in text_of(app)
        app.change_preferences(show_published=False)
        chapter_of(app).redraw()
        await settled(pilot)
        assert LAPTOP_SENDING not in text_of(app), "no curve of another clock is shown"
        await pilot.press("enter")
        kept = screen.walk.progress.prediction
        assert kept is not None
        assert kept.value_ns == marked
        assert screen.step == "measure"
        await settled(pilot)
        await read_on(pilot)
        assert "You marked 126 µs" in text_of(app)
        assert screen.sheet("#result").plain().startswith("p99.9 is ")
        await pilot.press("b", "up")
        assert "measured already" in text_of(app)
        # A guess that cannot change needs no room for its mark.
        assert not app.screen.query_one("#chart", ChartView).named
        assert screen.query_one("#chart", ChartView).marks == ((99.9, marked),)


async def test_home_goes_on_with_the_furthest_step_after_paging_back() -> None:
    workshop = open_workshop()
    app = WorkshopApp(workshop, "baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await go_on_to_compare(app, pilot)
        while chapter_of(app).step != "look":
            await pilot.press("b")
            await settled(pilot)
        await pilot.press("escape")
        await settled(pilot)
        assert " · compare" in text_of(app)
        assert " · look" not in text_of(app)
        await pilot.press("enter")
        await settled(pilot)
        assert chapter_of(app).step == "compare"


async def test_a_choice_is_made_by_arrow_or_number() -> None:
    workshop = open_workshop()
    asked = GuessTask(
        "choice", "Who **moves** [them]?", "measure", (Answer("a", "the tick", ""), Answer("b", "the balancer", "yes"))
    )
    chapters = tuple(dataclasses.replace(chapter, prediction=asked) for chapter in workshop.course.chapters)
    workshop.course = dataclasses.replace(workshop.course, chapters=chapters)
    app = WorkshopApp(workshop, "migration")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("n")
        screen = chapter_of(app)
        task = screen.walk.chapter.prediction
        assert task is not None
        assert "Who moves [them]?" in screen.sheet("#data-sheet").plain()
        assert ("chapter.number", "1–2 choose") in screen.query_one(KeyBar).shown
        assert " 1–2 choose " in text_of(app)
        await pilot.press("9")
        assert keys_that_wait.NO_NUMBER in text_of(app)
        await pilot.press("down", "down", "enter")
        kept = screen.walk.progress.prediction
        assert kept is not None
        assert kept.choice == task.answers[1].id
        await pilot.press("b", "1", "enter")
        kept = screen.walk.progress.prediction
        assert kept is not None
        assert kept.choice == task.answers[0].id


TURNS, SCROLLS = ("chapter.enter", "read on"), ("chapter.page_down", "more below")
CHOOSES = ("chapter.number", "1–4 choose")


async def test_a_page_and_its_question_are_on_one_screen_where_they_fit() -> None:
    workshop = open_workshop(course=builtin_course())
    workshop.walk("workqueues").go("predict")
    app = WorkshopApp(workshop, "workqueues")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        screen = chapter_of(app)
        task = screen.walk.chapter.prediction
        assert task is not None
        seen = text_of(app)
        assert "ordinary tasks print to terminals" in seen
        assert all(f"{number}  {answer.text[:30]}" in seen for number, answer in enumerate(task.answers, 1))
        assert CHOOSES in screen.query_one(KeyBar).shown
        # The sentence above the keys hides no answer.
        await pilot.press("enter")
        await settled(pilot)
        assert "No answer is chosen yet" in text_of(app)
        assert task.answers[-1].text[:30] in text_of(app)


async def test_a_question_stays_in_sight_below_a_page_that_is_scrolled() -> None:
    workshop = open_workshop(course=builtin_course())
    for chapter in ("realtime", "coordinated-omission", "ack-intervals"):
        workshop.walk(chapter).go("predict")
        app = WorkshopApp(workshop, chapter)
        async with app.run_test(size=(80, 24)) as pilot:
            await settled(pilot)
            screen, bar = chapter_of(app), app.screen.query_one(KeyBar)
            task = screen.walk.chapter.prediction
            assert task is not None
            while True:
                seen = text_of(app)
                assert task.question[:30] in " ".join(seen.split())
                assert all(f"{number}  {answer.text[:30]}" in seen for number, answer in enumerate(task.answers, 1))
                assert CHOOSES in bar.shown
                if not screen.pane().more_below:
                    break
                assert TURNS in bar.shown
                # As long as there is more to read, an arrow scrolls.
                at = screen.pane().scroll_offset.y
                await pilot.press("down")
                assert screen.pane().scroll_offset.y == at + 1
                await pilot.press("enter")
                await settled(pilot)
            # Enter asks once for an answer, and the next Enter goes on as it says, also if the sentence hides a line.
            await pilot.press("enter")
            await settled(pilot)
            assert "No answer is chosen yet" in text_of(app)
            assert ("chapter.enter", "no guess") in bar.shown
            await pilot.press("4", "enter")
            await settled(pilot)
            kept = screen.walk.progress.prediction
            assert kept is not None
            assert kept.choice == task.answers[3].id


async def test_the_page_before_a_chart_to_mark_has_the_question() -> None:
    workshop = open_workshop(course=builtin_course())
    workshop.walk("baseline").go("predict")
    app = WorkshopApp(workshop, "baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        task = chapter_of(app).walk.chapter.prediction
        assert task is not None
        seen = text_of(app)
        assert "Enter to the chart" in seen
        assert task.question in seen
        assert "your mark" not in seen
        await pilot.press("enter")
        await settled(pilot)
        assert text_of(app).count(task.question) == 1


async def test_a_question_below_a_long_page_is_named_in_the_footer_only_where_it_is_seen() -> None:
    workshop = open_workshop(course=builtin_course())
    workshop.walk("realtime").go("predict")
    app = WorkshopApp(workshop, "realtime")
    # Too low for a page beside a question that stays.
    async with app.run_test(size=(80, 20)) as pilot:
        await settled(pilot)
        screen, bar = chapter_of(app), app.screen.query_one(KeyBar)
        task = screen.walk.chapter.prediction
        assert task is not None
        last = f"4  {task.answers[-1].text}"
        assert last not in text_of(app)
        assert CHOOSES not in bar.shown
        assert TURNS in bar.shown
        # An arrow scrolls until the answers are seen.
        await pilot.press("down")
        assert screen.pane().scroll_offset.y == 1
        await pilot.press("enter")
        await settled(pilot)
        assert last in text_of(app)
        assert CHOOSES in bar.shown
        await pilot.press("down", "enter")
        assert screen.walk.progress.prediction is not None
        await pilot.press("b")
        await settled(pilot)
        # A number chooses, and shows what it has chosen.
        await pilot.press("4")
        await settled(pilot)
        assert f"▸ {last}" in text_of(app)


@pytest.mark.parametrize("size", [(80, 24), (60, 16)])
@pytest.mark.parametrize("chapter", ["memory", "coordinated-omission", "own-part"])
async def test_enter_skips_no_question_of_which_an_answer_is_below_the_fold(
    chapter: str, size: tuple[int, int]
) -> None:
    workshop = open_workshop(course=builtin_course())
    app = WorkshopApp(workshop, chapter)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        screen, bar = chapter_of(app), app.screen.query_one(KeyBar)
        while screen.step == "look":
            await pilot.press("enter")
            await settled(pilot)
        task = screen.walk.chapter.prediction
        assert task is not None
        answers = [f"  {number}  {one.text[:20]}" for number, one in enumerate(task.answers, 1)]
        while TURNS in bar.shown:
            assert ("chapter.enter", "no guess") not in bar.shown
            # A page has the question with all of its answers, or nothing of it.
            seen = task.question[:30] in " ".join(text_of(app).split())
            assert [answer.strip() in text_of(app) for answer in answers] == [seen] * len(answers)
            await pilot.press("enter")
            await settled(pilot)
            assert screen.step == "predict"
        assert all(answer in text_of(app) for answer in answers)
        assert task.question[:30] in " ".join(text_of(app).split())
        assert ("chapter.enter", "no guess") in bar.shown
        # Back at its beginning, Enter turns the page again, unless the question stays in sight.
        if screen.pane().max_scroll_y and not screen.sheet("#below").plain():
            await pilot.press("home")
            await settled(pilot)
            assert TURNS in bar.shown


async def test_a_choice_ends_a_sentence_on_an_earlier_key_and_no_hint() -> None:
    app = WorkshopApp(open_workshop(course=builtin_course()), "pinning")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        screen = chapter_of(app)
        while screen.step == "look":
            await pilot.press("enter")
            await settled(pilot)
        # The page names the key w, and so does the footer.
        assert ("chapter.noise", "without noise") in screen.query_one(KeyBar).shown
        await pilot.press("n")
        assert keys_that_wait.NO_SKIP in screen.said
        await pilot.press("1")
        assert screen.said == ""
        await pilot.press("h", "2")
        assert screen.said == screen.walk.chapter.hints[0]


async def test_tab_is_offered_only_where_it_leads_to_lines_that_scroll() -> None:
    app = WorkshopApp(open_workshop(course=builtin_course()), "migration")
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot)
        assert chapter_of(app).step == "look"
        assert not app.screen.query_one("#lesson", Pane).max_scroll_y
        assert "chapter.lesson" not in dict(app.screen.query_one(KeyBar).shown)
        await pilot.resize_terminal(160, 20)
        await settled(pilot)
        assert app.screen.query_one("#lesson", Pane).max_scroll_y
        assert dict(app.screen.query_one(KeyBar).shown)["chapter.lesson"] == "scroll lesson"


async def test_enter_turns_a_page_to_its_end_before_it_goes_on() -> None:
    app = WorkshopApp(open_workshop(course=builtin_course()), "migration")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        screen, bar = chapter_of(app), app.screen.query_one(KeyBar)
        seen, last = text_of(app), screen.sheet("#data-sheet").plain().splitlines()[-1]
        assert last not in seen
        assert {TURNS, ("chapter.skip", "go on")} < set(bar.shown)
        # The label has the key's own style, and the line of the steps says which page it is.
        hint = next(one for one in bar.query(KeyHint) if "read on" in one.render().plain)
        assert {str(span.style) for span in hint.render().spans} == {str(hint.render().spans[0].style)}
        assert len(hint.render().spans) == 2
        assert "page 1 of " in text_of(app).splitlines()[1]
        for _ in range(20):
            if TURNS not in bar.shown:
                break
            await pilot.press("enter")
            await settled(pilot)
            assert screen.step == "look"
            seen += text_of(app)
        pane = screen.pane()
        assert pane.scroll_offset.y == pane.max_scroll_y > 0
        assert re.search(r"page (\d) of \1$", text_of(app).splitlines()[1].strip())
        assert last in seen
        assert ("chapter.enter", "go on") in bar.shown
        # The page was read to its end: the key that scrolls is named, and Enter goes on.
        await pilot.press("up")
        await settled(pilot)
        assert SCROLLS in bar.shown
        await pilot.press("enter")
        await settled(pilot)
        assert screen.step == "predict"


@pytest.mark.parametrize("size", SIZES)
async def test_enter_makes_a_run_without_a_write_at_once(size: tuple[int, int]) -> None:
    workshop = open_workshop(course=builtin_course())
    workshop.walk("baseline").go("measure")
    app = WorkshopApp(workshop, "baseline")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        screen, bar = chapter_of(app), app.screen.query_one(KeyBar)
        assert ("chapter.enter", "measure") in bar.shown
        assert (SCROLLS in bar.shown) == screen.pane().more_below == (size == (80, 24))
        await pilot.press("pagedown", "end")
        await settled(pilot)
        assert screen.sheet("#data-sheet").plain().splitlines()[-1].strip() in text_of(app)
        await pilot.press("home", "enter")
        await settled(pilot)
        assert screen.walk.runs.run_in("measure") is not None


async def test_enter_makes_a_run_at_once_beside_the_lesson_and_says_that_more_is_below(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long = [Text(f"line {n}") for n in range(60)]
    monkeypatch.setattr("jitter_workshop.tui.screens.chapter.steps.about_to_measure", lambda *args: long)
    workshop = open_workshop(course=builtin_course())
    workshop.walk("baseline").go("measure")
    app = WorkshopApp(workshop, "baseline")
    async with app.run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        assert "line 59" not in text_of(app)
        shown = app.screen.query_one(KeyBar).shown
        assert {("chapter.enter", "measure"), ("chapter.page_down", "more below")} <= set(shown)
        await pilot.press("enter")
        await settled(pilot)
        assert chapter_of(app).walk.runs.run_in("measure") is not None


async def test_m_measures_without_reading_on() -> None:
    workshop = open_workshop(course=builtin_course())
    workshop.walk("baseline").go("measure")
    app = WorkshopApp(workshop, "baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert SCROLLS in app.screen.query_one(KeyBar).shown
        await pilot.press("m")
        await settled(pilot)
        assert chapter_of(app).walk.runs.run_in("measure") is not None


@pytest.mark.parametrize("chapter", ["baseline", "isolation", "pinning"])
async def test_each_step_of_the_line_is_a_whole_word_on_the_smallest_screen(chapter: str) -> None:
    workshop = open_workshop(course=builtin_course())
    walk = workshop.walk(chapter)
    walk._save(dataclasses.replace(walk.progress, step="compare", seen=walk.chapter.steps[:-1]))
    app = WorkshopApp(workshop, chapter)
    async with app.run_test(size=(60, 20)) as pilot:
        await settled(pilot)
        chapter_of(app).enter_step()
        await settled(pilot)
        for step in walk.chapter.steps:
            walk_on = chapter_of(app).walk
            walk_on._save(dataclasses.replace(walk_on.progress, step=step))
            chapter_of(app).enter_step()
            await settled(pilot)
            shown = text_of(app).splitlines()[1].split()
            assert [word.strip("▸✓◌").lower() for word in shown[: len(walk.chapter.steps)]] == list(walk.chapter.steps)
            assert f"▸{step.upper()}" in shown


async def test_a_sentence_above_the_keys_makes_no_page_unread() -> None:
    app = WorkshopApp(open_workshop(course=builtin_course()), "migration")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        bar = app.screen.query_one(KeyBar)
        await pilot.press("pagedown", "pagedown", "pagedown", "pagedown", "h")
        await settled(pilot)
        assert chapter_of(app).said
        pane = chapter_of(app).pane()
        assert pane.more_below, "the sentence takes lines of the page"
        assert TURNS not in bar.shown
        await pilot.press("enter")
        assert chapter_of(app).step == "predict"


async def test_a_key_leaves_the_rest_of_a_page_unread() -> None:
    app = WorkshopApp(open_workshop(course=builtin_course()), "migration")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("n")
        await settled(pilot)
        assert chapter_of(app).step == "predict"


@pytest.mark.parametrize("step", ["look", "predict"])
async def test_m_before_the_guess_keeps_the_question_open(step: StepName) -> None:
    workshop = open_workshop()
    workshop.walk("baseline").go(step)
    app = WorkshopApp(workshop, "baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        screen = chapter_of(app)
        assert screen.step == step
        await pilot.press("m")
        await settled(pilot)
        assert len(workshop.context.runs.every()) == 1
        assert screen.step == "predict"
        assert screen.walk.runs.run_in("measure") is None
        assert "this run does not count in the chapter" in " ".join(text_of(app).split())
        await pilot.press("enter", "enter")
        await settled(pilot)
        assert screen.walk.progress.prediction is not None
        await pilot.press("m")
        await settled(pilot)
        assert screen.walk.runs.run_in("measure") is not None


async def test_the_curve_grows_block_by_block_past_the_mark() -> None:
    gate = threading.Event()
    workshop = open_workshop(gate=gate)
    app = at_measure(workshop)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("m")
        await reached(workshop)
        await pilot.pause()
        screen = chapter_of(app)
        assert app.measuring
        text = text_of(app)
        assert f"block 2 of {BLOCKS}" in text
        assert "stop the run" in text
        live = screen.query_one("#chart", ChartView).curves[-1]
        assert live.key == "live"
        assert live.curve.count > 0
        # With each block, the table has the figures of the line above it.
        await pilot.press("t")
        running = screen._page.run
        assert running is not None
        assert running.progress is not None
        points = tuple(dataclasses.replace(p, value_ns=268_000_000) for p in live.curve.points)
        running.progress = dataclasses.replace(running.progress, curve=dataclasses.replace(live.curve, points=points))
        screen._runs._block_drawn()
        await pilot.pause()
        assert any("p99.9 " in row and "268 ms" in row for row in text_of(app).splitlines() if "so far" not in row)
        await pilot.press("t")
        gate.set()
        await settled(pilot)
        assert not app.measuring
        assert screen.walk.runs.run_in("measure") is not None
        assert screen.query_one("#chart", ChartView).curves[-1].curve.count > live.curve.count


def badges(screen: ChapterScreen) -> list[str]:
    """Return the reversed parts of the result."""
    lines = list(screen._result(100))
    return [line.plain[s.start : s.end] for line in lines for s in line.spans if "reverse" in s.style]


async def test_the_plot_stays_in_its_place_from_the_start_of_a_run_and_the_figure_is_reversed_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plots = []
    drawn = BackgroundRuns._block_drawn

    def block_drawn(runs: BackgroundRuns) -> None:
        drawn(runs)
        screen = chapter_of(app)
        screen.call_after_refresh(lambda: plots.append(screen.query_one("#chart", ChartView).region))

    monkeypatch.setattr(BackgroundRuns, "_block_drawn", block_drawn)
    gate = threading.Event()
    workshop = open_workshop(gate=gate)
    workshop.gate_at = 0
    app = at_measure(workshop)
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.pause()
        await pilot.press("m")
        await reached(workshop)
        await pilot.pause()
        assert "no block is done yet" in text_of(app)
        screen = chapter_of(app)
        first = screen.query_one("#chart", ChartView).region
        assert badges(screen) == []
        gate.set()
        await settled(pilot)
        assert badges(screen) == [screen.now.headline()[0]]
        assert len(plots) == BLOCKS
        assert set(plots[:-1]) == {first}, "the plot does not move under the eye"


async def test_a_step_that_a_chapter_lacks_is_no_step_of_its_line() -> None:
    app = WorkshopApp(open_workshop(course=builtin_course()), "migration")
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot)
        line = text_of(app).splitlines()[1].rstrip()
        assert line.endswith("explain")
        assert "apply" not in line
        await pilot.click("#loop", offset=(len(line) + 3, 0))
        await settled(pilot)
        assert chapter_of(app).step == "look"
        while chapter_of(app).step != "measure":
            await pilot.press("enter")
            await settled(pilot)
        assert text_of(app).splitlines()[1].rstrip().endswith("explain")
        await pilot.resize_terminal(80, 24)
        await settled(pilot)
        assert "apply" not in text_of(app).splitlines()[1]


async def reached(workshop: FakeWorkshop) -> None:
    await asyncio.wait_for(asyncio.to_thread(workshop.reached_gate.wait), 10)


async def test_nothing_else_opens_while_a_block_is_measured() -> None:
    workshop = open_workshop(gate=threading.Event())
    app = at_measure(workshop)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("m")
        await reached(workshop)
        for key in ("question_mark", "c", "e", "ctrl+p", "ctrl+t", "ctrl+z", "enter", "b", "p", "w", "tab"):
            await pilot.press(key)
        assert isinstance(app.screen, ChapterScreen)
        assert app.screen.step == "measure"
        await pilot.press("escape")
        await settled(pilot)


@pytest.mark.parametrize("key", ["enter", "question_mark"])
async def test_a_key_in_a_run_is_answered_behind_the_block(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    drawn = BackgroundRuns._block_drawn

    def block_drawn(runs: BackgroundRuns) -> None:
        drawn(runs)
        told.append(chapter_of(app).sheet("#say").plain())

    monkeypatch.setattr(BackgroundRuns, "_block_drawn", block_drawn)
    gate = threading.Event()
    workshop = open_workshop(gate=gate)
    app = at_measure(workshop)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("m")
        await reached(workshop)
        await pilot.press(key)
        await pilot.pause()
        assert RUN_IS_ON not in chapter_of(app).sheet("#say").plain(), "nothing is painted within a block"
        assert len(told) == 2
        gate.set()
        await settled(pilot)
        assert [RUN_IS_ON in said for said in told] == [False] * 2 + [True] * (BLOCKS - 2)
        assert RUN_IS_ON not in text_of(app)


@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
async def test_a_stopped_run_keeps_its_blocks_and_fills_no_slot(key: str) -> None:
    workshop = open_workshop(gate=threading.Event())
    app = at_measure(workshop)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("m")
        await reached(workshop)
        await pilot.press(key)
        await settled(pilot)
        assert not app.measuring
        assert isinstance(app.screen, ChapterScreen)
        assert app.screen.walk.runs.run_in("measure") is None
        assert [len(run.blocks) for run in workshop.context.runs.every()] == [2]
        assert "Stopped after 2 blocks" in text_of(app)


async def test_leaving_in_the_middle_of_a_run_stops_it() -> None:
    workshop = open_workshop(gate=threading.Event())
    app = at_measure(workshop)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("m")
        await reached(workshop)
        await pilot.press("ctrl+q")
    assert app.exit_code == 0


async def test_a_signal_stops_the_run_and_gives_its_code() -> None:
    workshop = open_workshop(gate=threading.Event())
    app = at_measure(workshop)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("m")
        await reached(workshop)
        app.end_by_signal(15)
        await pilot.pause()
    assert app.exit_code == 143


async def test_shrinking_during_a_run_is_survived() -> None:
    gate = threading.Event()
    workshop = open_workshop(gate=gate)
    app = at_measure(workshop)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("m")
        await reached(workshop)
        await pilot.resize_terminal(20, 5)
        await pilot.pause()
        assert "needs" in text_of(app)
        gate.set()
        await settled(pilot)
        await pilot.resize_terminal(100, 30)
        await settled(pilot)
        assert chapter_of(app).walk.runs.run_in("measure") is not None
        assert "baseline" in text_of(app)


async def test_a_failed_run_is_a_dialog() -> None:
    error = MeasureError("the child died [red]x[/]", "try again")
    app = at_measure(open_workshop(fail=error))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("m")
        await settled(pilot)
        assert isinstance(app.screen, ErrorDialog)
        text = text_of(app)
        assert "the child died [red]x[/]" in text
        assert "try again" in text
        await pilot.press("enter")
        assert isinstance(app.screen, ChapterScreen)
        assert not app.measuring


async def test_a_step_that_must_wait_says_why() -> None:
    app = WorkshopApp(open_workshop(), "pinning")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        screen = chapter_of(app)
        column = text_of(app).splitlines()[1].index("compare")
        await pilot.click("#loop", offset=(column, 0))
        await pilot.pause()
        assert screen.step == "look"
        assert "measure first" in text_of(app)


async def test_the_judged_line_before_a_run_counts_the_messages_that_are_planned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Latency has a value for each planned message, also if the host sent only a ninth of them before."""
    monkeypatch.setattr("jitter_workshop.tui.screens.chapter.steps.expected_rate", lambda *_: 10_800.0)
    workshop = open_workshop()
    workshop.walk("migration").go("measure")
    app = WorkshopApp(workshop, "migration")
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot)
        assert "p99.9: only 100 messages" in text_of(app)


async def test_n_speaks_of_boot_parameters_only_where_there_are_some() -> None:
    workshop = open_workshop()
    workshop.walk("baseline").go("measure")
    app = WorkshopApp(workshop, "baseline")
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot)
        await pilot.press("n")
        await settled(pilot)
        assert workshop.measured == 0
        assert keys_that_wait.NO_SKIP in text_of(app)


async def test_n_at_the_last_step_finishes_the_chapter_as_enter_does(monkeypatch: pytest.MonkeyPatch) -> None:
    app = at_measure(open_workshop())
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot)
        await pilot.press("m")
        await settled(pilot)
        chapter = chapter_of(app)
        chapter.walk._save(dataclasses.replace(chapter.walk.progress, step="explain"))
        chapter.enter_step()
        await settled(pilot)
        while chapter._unread() is not None:
            await pilot.press("enter")
            await settled(pilot)
        assert "Enter finish" in text_of(app)
        told: list[str] = []
        monkeypatch.setattr(chapter, "tell", told.append)
        await pilot.press("n")
        await settled(pilot)
        assert FINISHING in told
        assert isinstance(app.screen, HomeScreen)
        assert chapter.walk.progress.done


async def test_that_a_step_is_the_first_is_not_said_any_more_on_the_next_lines() -> None:
    app = WorkshopApp(open_workshop(), "baseline")
    async with app.run_test(size=(80, 16)) as pilot:
        await settled(pilot)
        await pilot.press("b")
        await settled(pilot)
        assert keys_that_wait.FIRST_STEP in text_of(app)
        await pilot.press("enter")
        await settled(pilot)
        assert chapter_of(app).step == "look"
        assert keys_that_wait.FIRST_STEP not in text_of(app)


@pytest.mark.parametrize("size", SIZES)
async def test_a_key_that_does_nothing_at_a_step_says_why(size: tuple[int, int]) -> None:
    app = WorkshopApp(open_workshop(), "baseline")
    idle = {
        "v": keys_that_wait.why_no_causes(False, "look"),
        "t": keys_that_wait.NO_TABLE,
        "b": keys_that_wait.FIRST_STEP,
        "f": keys_that_wait.NO_FOLD,
        "a": keys_that_wait.NO_MASK,
        "p": keys_that_wait.NO_CPUS,
        "w": keys_that_wait.NO_NOISE,
        "y": keys_that_wait.NO_COPY,
        "slash": keys_that_wait.NO_COMMAND,
        "left": keys_that_wait.NO_CURVES,
        "right": keys_that_wait.NO_CURVES,
        "5": keys_that_wait.NO_NUMBER,
        "9": keys_that_wait.NO_NUMBER,
        "z": keys_that_wait.NO_KEY,
    }
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("pagedown", "pagedown", "pagedown", "pagedown")
        for key, why in idle.items():
            await pilot.press(key)
            await settled(pilot)
            assert chapter_of(app).said == why, key
            assert why in " ".join(text_of(app).split()), key
        # From a page n goes on, read or not; at the guess there is nothing to skip.
        await pilot.press("n")
        await settled(pilot)
        assert chapter_of(app).step == "predict"
        for key in ("x", "i", "d", "u"):
            chapter_of(app).said = ""
            await pilot.press(key)
            await settled(pilot)
            assert chapter_of(app).said, key


@pytest.mark.parametrize("step", ["look", "measure", "diagnose", "apply"])
def test_v_says_when_it_has_something_to_show(step: str) -> None:
    said = keys_that_wait.why_no_causes(False, step)
    assert said.endswith("took the time.")
    assert said.startswith("Answer first") is (step == "diagnose")
    assert keys_that_wait.why_no_causes(False, step, answered=True).startswith("From the step 'again' on")
    assert "no run" in keys_that_wait.why_no_causes(True, step)


async def test_table_lesson_hint_and_highlight() -> None:
    app = at_measure(open_workshop())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("h")
        screen = chapter_of(app)
        assert screen.walk.progress.hints == 1
        assert screen.walk.chapter.hints[0][:40] in text_of(app)
        await pilot.press("m")
        await settled(pilot)
        chart = screen.query_one("#chart", ChartView)
        assert chart.highlight is None, "a curve is quieter only if the learner chose another one"
        await pilot.press("left")
        assert chart.highlight == 0
        await pilot.press("2")
        assert chart.highlight == 1
        await pilot.press("t")
        assert "p99.999" in text_of(app)
        await pilot.press("t", "tab")
        assert "The run measures five seconds" in text_of(app)
        # The hints are about the guess, which is decided now.
        await pilot.press("tab", "h")
        assert screen.walk.progress.hints == 1
        assert HINTS_OVER[:40] in text_of(app)
        await pilot.press("o")
        assert len(chart.curves) == 1


@pytest.mark.parametrize("size", [(80, 24), (160, 48), (200, 30)])
async def test_a_mark_in_the_chart_has_its_meaning_in_the_legend(size: tuple[int, int]) -> None:
    app = at_measure(open_workshop())
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("m")
        await settled(pilot)
        chart = chapter_of(app).query_one("#chart", ChartView)
        for label, shown in (("p99.9: ~90 µs → 20 µs", True), ("p99.9: 90 µs → 20 µs", False)):
            chart.gap = Gap(99.9, 0, 1, label)
            assert (FEW_TOLD in chart.render().plain) is shown
            assert label in chart.render().plain


async def test_the_plan_shows_every_change_and_the_picker_changes_it() -> None:
    app = WorkshopApp(open_workshop(), "pinning")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("m")
        await settled(pilot)
        # The question about the causes is skipped by a second Enter.
        await pilot.press("enter", "enter", "enter", "enter")
        plan = chapter_of(app).walk.plan()
        # The page above the plan may be so long that the plan has to be scrolled to.
        text = chapter_of(app).sheet("#data-sheet").plain()
        assert plan.changes
        for change in plan.changes:
            assert change.path in text
            assert change.before in text
        await pilot.press("enter", "p")
        assert isinstance(app.screen, CpuPicker)


async def test_explain_shows_threads_residence_and_commands_to_copy() -> None:
    app = at_measure(open_workshop())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        for key in ("m", *["enter"] * 5):
            await pilot.press(key)
            await settled(pilot)
        screen = chapter_of(app)
        # A small terminal shows the chart first, then the lesson, and only then goes on.
        assert screen.step == "compare"
        assert screen.sheet("#result").plain().strip().startswith(UNCHANGED)
        drawn = screen.query_one("#chart", ChartView)
        # Nothing between two equal runs is shaded as an effect.
        assert drawn.between is None
        assert drawn.gap is not None
        assert drawn.gap.label.startswith("p99.9: ")
        assert "Enter read on" in text_of(app)
        await pilot.press("t")
        assert "COUNTS, PER SECOND" in screen.sheet("#data-sheet").plain()
        await pilot.press("t", "enter")
        assert screen.step == "compare"
        assert screen.sheet("#lesson-sheet").plain()[:40] in text_of(app)
        await pilot.press("enter")
        await settled(pilot)
        assert screen.step == "explain"
        said = screen.sheet("#data-sheet").plain()
        assert "CPU 0" in said
        assert "60.0 %" in said
        assert "ONE REQUEST TO MANY HOSTS" in said
        threads = said[said.index("THREADS") : said.index("Everything below is about the newest run (run 2: ")]
        for part in threads.split("WHERE THEIR MESSAGES WERE HANDLED"):
            first, second = part.index("run 1: baseline"), part.index("run 2: ")
            assert first < part.index("producer") < second < part.rindex("producer")
        assert "WHAT YOU LEARNT" in said
        await pilot.press("y")
        explained = screen.walk.runs.explain()
        assert explained is not None
        assert app.clipboard == "\n".join(command for command, _ in explained.by_hand)


@pytest.mark.parametrize("size", SIZES)
async def test_a_run_that_cannot_be_compared_is_made_again_by_one_key(
    monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    stop_in_run(monkeypatch, 2)
    app = at_measure(open_workshop())
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("m")
        await settled(pilot)
        while chapter_of(app).walk.runs.run_in("again") is None:
            await pilot.press("enter")
            await settled(pilot)
        # The result of this run alone offers it, too.
        assert "Measure again (m)." in " ".join(chapter_of(app).sheet("#result").plain().split())
        assert app.screen.query_one(KeyBar).shown[0] == ("chapter.again", "measure again")
        await go_on_to_compare(app, pilot)
        screen = chapter_of(app)
        assert "Not comparable: in the second run, " in " ".join(screen.sheet("#result").plain().split())
        assert text_of(app).count("planned messages") == 1
        assert app.screen.query_one(KeyBar).shown[0] == ("chapter.again", "measure again")
        stopped = screen.walk.runs.run_in("again")
        await pilot.press("m")
        await settled(pilot)
        assert screen.step == "again"
        assert screen.walk.runs.run_in("again") not in (None, stopped)
        await go_on_to_compare(app, pilot)
        assert "Not comparable" not in screen.sheet("#result").plain()


async def test_a_quiet_host_is_offered_a_thief(monkeypatch: pytest.MonkeyPatch) -> None:
    def quiet(seed: int, *, pinned: bool, count: int = 0) -> list[int]:
        return [100 + seed % 7] * 20_000

    monkeypatch.setattr("tests.fakes.values", quiet)
    workshop = open_workshop()
    app = at_measure(workshop)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("m")
        await settled(pilot)
        assert "Press w." in text_of(app)
        assert "chapter.noise" in dict(app.screen.query_one(KeyBar).shown)
        await pilot.press("w")
        await settled(pilot)
        run = chapter_of(app).walk.runs.run_in("measure")
        assert run is not None
        assert run.noise == "spinners"
        assert "Press w." not in text_of(app)


def measured(workshop: FakeWorkshop, walk: ChapterWalk, *slots: StepName) -> list[str]:
    """Make the runs of these slots, and return their ids."""
    runs = []
    for slot in slots:
        run = workshop.measure(walk.measuring.request(slot), SilentObserver(), CancelToken())
        walk.record(slot, run)
        runs.append(run.id)
    return runs


@pytest.mark.parametrize("size", SIZES)
async def test_settings_that_changed_between_the_runs_come_first_and_nothing_is_judged(
    monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    made = fakes._fields

    def isolated_at_last(request: MeasureRequest, seed: int, blocks: list[list[int]]) -> dict[str, Any]:
        return {**made(request, seed, blocks), "applied": ({"id": "isolation", "value": ""},) * (seed > 1)}

    monkeypatch.setattr(fakes, "_fields", isolated_at_last)
    workshop = open_workshop()
    walk = workshop.walk("migration")
    measured(workshop, walk, "measure", "again")
    walk.go("compare")
    app = WorkshopApp(workshop, "migration")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        screen = chapter_of(app)
        said = " ".join(screen.sheet("#result").plain().split())
        assert said.startswith("Between the runs")
        assert "isolation (not applied, then applied)" in said
        assert "So neither run is better or worse." in said
        assert screen.now.headline() == ("", "")
        drawn = screen.query_one("#chart", ChartView)
        assert drawn.between is None
        assert "other settings changed" in text_of(app).splitlines()[0]
        assert " ".join(text_of(app).split()).count("Between the runs this tool's own settings") == 1
        assert "better" not in " ".join(text_of(app).split()).replace("So neither run is better or worse.", "")


def compared_pinning() -> FakeWorkshop:
    """Return a workshop at the step compare of the chapter on pinning, with both of its runs."""
    workshop = FakeWorkshop.open(course_dir=builtin_course())
    assert isinstance(workshop, FakeWorkshop)
    walk = workshop.walk("pinning")
    measured(workshop, walk, "measure", "again")
    walk.go("compare")
    return workshop


@pytest.mark.parametrize(
    ("size", "left"), [((80, 24), False), ((120, 36), False), ((160, 48), True), ((160, 30), False)]
)
async def test_a_large_screen_has_the_counts_below_the_lesson_and_the_chart_over_the_height(
    size: tuple[int, int], left: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Compare, "counts", lambda self, width: [Text("COUNTS, PER SECOND")])
    app = WorkshopApp(compared_pinning(), "pinning")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        page = "\n".join(line.plain for line in chapter_of(app).sheet("#lesson-sheet").lines(60))
        assert ("COUNTS, PER SECOND" in page) is left
        chart, data = chapter_of(app).query_one("#chart"), chapter_of(app).query_one("#data")
        assert (chart.size.height >= 30) is left
        assert bool(data.display) is (size == (120, 36))
        await pilot.press("t")
        await settled(pilot)
        assert "COUNTS, PER SECOND" in text_of(app)


@pytest.mark.parametrize("readable", [True, False])
async def test_compare_has_no_verdict_before_the_traces_are_read(
    monkeypatch: pytest.MonkeyPatch, *, readable: bool
) -> None:
    # The traces can change the verdict: a learner must not see two. One that cannot be read changes nothing.
    gate, unread = threading.Event(), [True]

    def slowly(self: ChapterRuns) -> None:
        assert gate.wait(30)
        if readable:
            unread.clear()

    monkeypatch.setattr(ChapterRuns, "read_figures", slowly)
    monkeypatch.setattr(ChapterRuns, "unread", property(lambda self: bool(unread)))
    app = WorkshopApp(compared_pinning(), "pinning")
    async with app.run_test(size=(80, 24)) as pilot:
        try:
            await pilot.pause()
            assert chapter_of(app).sheet("#result").plain().strip() == effect.WAITS
            assert chapter_of(app).now.headline() == ("", "")
            assert chapter_of(app).query_one("#chart", ChartView).between is None
        finally:
            gate.set()
        await settled(pilot)
        assert effect.WAITS not in text_of(app)
        assert chapter_of(app).sheet("#result").plain().strip()


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_compare_has_three_figures_and_the_large_causes_and_t_shows_all(
    size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    moves = Effect(FIGURES["migrations"].title, ("40", "2 a second"), 20.0, "same", "fewer", sort="cause")
    tail = Effect("p99.9", ("~17.1 ms", "~10.9 ms"), 1.57, "better", "shorter")
    timer = Effect("timer interrupts", ("100", "300 a second"), 3.0, "same", "more", sort="cause")
    causes = (
        CauseTime("task unbound", (747e6, 858e6), task="unbound", own_load=True),
        CauseTime("migrations", (123e6, 0.0), treated=True),
        CauseTime("task bash", (60e6, 70e6), task="bash"),
    )
    found = Effects(None, None, tail, shown=moves, tail=tail, causes=causes)
    monkeypatch.setattr(comparison, "judge_pair", lambda _, runs, relation: judge_pair(found, runs, relation))
    monkeypatch.setattr(chapter_steps, "count_effects", lambda *_: (moves, timer))
    app = WorkshopApp(compared_pinning(), "pinning")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        assert "t all figures" in text_of(app)
        told = chapter_of(app).sheet("#result").plain()
        rows = [line.strip().split("  ")[0] for line in told.split(PROOF_BY_KEY)[1].splitlines()[1:]]
        assert rows[:3] == [moves.name, "p99.9", CAN_END]
        assert not any(row.startswith("time of") for row in rows)
        assert told.count("20×") == told.count("40") == 1, "the verdict has the factor, the table has the values"
        below = "\n".join(line.plain for line in chapter_of(app).now.counts(60))
        assert "task unbound (" in below
        assert not any(name in below for name in ("migrations", "bash", "timer", moves.name))
        await pilot.press("t")
        await settled(pilot)
        whole = chapter_of(app).sheet("#result").plain() + chapter_of(app).sheet("#data-sheet").plain()
        for name in (
            "time of other causes",
            "task unbound (",
            "migrations  ",
            "task bash",
            "timer interrupts",
            "p99.9",
        ):
            assert name in whole
        assert "back to chart" in text_of(app)
        await pilot.press("t")
        assert "t all figures" in text_of(app)


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_a_verdict_that_an_unknown_cause_makes_doubtful_offers_to_measure_again(
    size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    stalls = Effect(FIGURES["stalls-100us"].title, ("1", "40 a second"), 40.0, "worse", "more", sort="stalls")
    causes = (
        CauseTime("no event (hypervisor)", (2e6, 60e6), named=False),
        CauseTime("migrations", (1e6, 0.0), treated=True),
    )
    found = Effects(stalls, None, stalls, tail=stalls, causes=causes)
    monkeypatch.setattr(comparison, "judge_pair", lambda _, runs, relation: judge_pair(found, runs, relation))
    workshop = FakeWorkshop.open(course_dir=builtin_course())
    assert isinstance(workshop, FakeWorkshop)
    walk = workshop.walk("pinning")
    measured(workshop, walk, "measure", "again")
    for step in ("apply", "again", "compare"):
        walk.go(step)
    app = WorkshopApp(workshop, "pinning")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        told = " ".join(chapter_of(app).sheet("#result").plain().split())
        assert "perhaps worse" in told
        assert "Measure the second run again (m)." in told
        assert app.screen.query_one(KeyBar).shown[0] == ("chapter.again", "measure again")
        old = chapter_of(app).walk.runs.run_in("again")
        await pilot.press("m")
        await settled(pilot)
        assert chapter_of(app).step == "again"
        assert chapter_of(app).walk.runs.run_in("again") not in (None, old)


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (160, 48)])
async def test_w_shows_the_runs_with_company_and_those_without_it(size: tuple[int, int]) -> None:
    workshop = FakeWorkshop.open(course_dir=builtin_course())
    assert isinstance(workshop, FakeWorkshop)
    walk = workshop.walk("pinning")
    beside = measured(workshop, walk, "measure", "again")
    walk.go("compare")
    app = WorkshopApp(workshop, "pinning")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("w")
        await settled(pilot)
        walk = chapter_of(app).walk
        first = walk.runs.run_in("measure")
        assert first is not None
        assert (chapter_of(app).step, first.noise) == ("measure", None)
        measured(workshop, walk, "again")
        walk.go("compare")
        chapter_of(app).enter_step()
        await settled(pilot)
        told = walk.noise.both_ways()
        assert told
        if size == (80, 24):
            # The chart has the rows; t shows all of the sentences.
            assert [line[-9:] for line in chapter_of(app).sheet("#say").plain().split("\n")] == ["(t: more)"]
            await pilot.press("t")
        assert told in " ".join(text_of(app).split())
        await pilot.press("w")
        await settled(pilot)
        assert chapter_of(app).step == "compare"
        assert [walk.progress.runs[slot] for slot in ("measure", "again")] == beside
        shown = " ".join(text_of(app).split())
        assert told in shown or re.search(rf"{re.escape(told[:20])}[^…]*… \(t: more\)", shown)


async def test_battery_is_said_before_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    workshop = open_workshop()
    workshop.context.host = dataclasses.replace(workshop.context.host, on_battery=True)
    app = WorkshopApp(workshop, "baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("n", *["enter"] * 3)
        assert chapter_of(app).step == "measure"
        assert "On battery" in chapter_of(app).sheet("#data-sheet").plain()


async def test_the_guess_begins_on_ones_own_last_curve_of_the_workload() -> None:
    workshop = open_workshop()
    app = at_measure(workshop)
    async with app.run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        await pilot.press("m")
        await settled(pilot)
        first = chapter_of(app).walk.runs.run_in("measure")
        assert first is not None
        pinning, mark = workshop.walk("pinning"), chapter_of(app).walk.chapter.prediction
        assert mark is not None
        # No later chapter of the built-in course asks for a mark on the ring's curve: a course of one's own may.
        pinning = walk_with(pinning, prediction=dataclasses.replace(mark, slot="again"))
        pinning.go("predict")
        app.push_screen(ChapterScreen(pinning))
        await settled(pilot)
        drawn = chapter_of(app).query_one("#chart", ChartView)
        assert [c.label for c in drawn.curves if c.run is not None] == ["your last: baseline"]
        ((percentile, value_ns),) = drawn.marks
        assert percentile == 99.9
        own = first.histograms[first.main_histogram].percentiles["99.9"]
        assert own is not None
        assert 0.9 < value_ns / own < 1.1


@pytest.mark.parametrize(("preempted", "named"), [(20, True), (0, False)])
async def test_the_key_that_a_verdict_on_isolation_names_is_in_the_footer(preempted: int, named: bool) -> None:
    workshop = open_workshop()
    walk = walk_with(workshop.walk("baseline"), evidence=("left",))
    for slot, count in (("measure", 200), ("again", preempted)):
        threads = (ThreadRecord("sampler", {"1": 1}, involuntary_switches=count),)
        made, blocks = madeup.make_run(
            run_id=f"20260101-000000-{slot[0] * 4}".replace("mmmm", "bbbb"),
            workload="spin",
            name="spin_gap",
            threads=threads,
        )
        workshop.context.handle.add_run(made, blocks)
        workshop.context.remember(made)
        walk.record("again" if slot == "again" else "measure", made)
    walk.go("compare")
    app = WorkshopApp(workshop)
    async with app.run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        app.push_screen(ChapterScreen(walk))
        await settled(pilot)
        assert ("Next: v (causes)" in text_of(app)) is named
        assert ("chapter.causes" in dict(app.screen.query_one(KeyBar).shown)) is named


@pytest.mark.parametrize(
    ("changed", "drawn"), [({}, True), ({"pacing": "schedule"}, False), ({"interval_ns": 20_000}, False)]
)
async def test_a_last_curve_of_another_quantity_is_not_drawn_beside_the_guess(
    changed: dict[str, Any], drawn: bool
) -> None:
    workshop = open_workshop()
    run, blocks = madeup.make_run(
        [[100] * 990 + [50_000] * 20], run_id="20250101-000000-aaaa", label="elsewhere", **changed
    )
    workshop.context.handle.add_run(run, blocks)
    workshop.context.remember(run)
    app = WorkshopApp(workshop, "baseline")
    async with app.run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        while chapter_of(app).step != "predict":
            await pilot.press("n")
            await settled(pilot)
        assert ("your last: elsewhere" in text_of(app)) is drawn


@pytest.mark.parametrize(("size", "shown"), [((80, 24), False), ((120, 36), True), ((160, 48), True)])
async def test_a_high_screen_shows_the_guess_beside_the_next_run(size: tuple[int, int], shown: bool) -> None:
    app = WorkshopApp(open_workshop(), "baseline")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        chapter = chapter_of(app)
        while chapter.step != "measure":
            await pilot.press("enter")
            await settled(pilot)
        assert "THIS RUN" in chapter.sheet("#data-sheet").plain()
        assert chapter.query_one("#data").display
        chart = chapter.query_one("#chart", ChartView)
        assert chart.display is shown
        if shown:
            assert list(chart.marks) == [(99.9, FIRST_MARK_NS)]
            assert "THIS RUN" in text_of(app)
            assert "your guess" in text_of(app)
        await read_on(pilot)
        assert chart.display
        assert not chapter.query_one("#data").display


async def test_compare_of_a_chapter_about_the_frequency_shows_the_core(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = WorkshopApp(open_workshop(), "baseline")
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot)
        chapter = chapter_of(app)
        walk = chapter.walk
        while walk.current != "compare":
            await pilot.press("enter")
            await settled(pilot)
        assert "THE CORE" not in chapter.sheet("#data-sheet").plain()
        runs = {
            slot: dataclasses.replace(
                run, blocks=tuple(dataclasses.replace(b, core_hz=hz) for b in run.blocks), steal_ns=hz // 100
            )
            for slot, hz in (("measure", 2_000_000_000), ("again", 3_000_000_000))
            if (run := walk.runs.run_in(slot)) is not None
        }
        monkeypatch.setattr(walk.runs, "run_in", runs.get)
        walk.chapter = dataclasses.replace(walk.chapter, evidence=("frequency",))
        await pilot.press("t", "t")
        await settled(pilot)
        told = [line.split() for line in chapter.sheet("#data-sheet").plain().splitlines()]
        assert CORE.split() in told
        core = told[told.index(CORE.split()) + 1 :]
        assert [(line[0], line[-1]) for line in core[:2]] == [("core", "2.00"), ("second", "3.00")]
        assert core[2] == ["steal", "first", "20", "ms,", "second", "30", "ms"]
        assert not any(line[:1] == ["COUNTS,"] for line in told), "no count of these runs moved"
        await pilot.press("t")
        await settled(pilot)
        told = [line.split() for line in chapter.sheet("#data-sheet").plain().splitlines()]
        counted = next(at for at, line in enumerate(told) if line[:3] == ["COUNTS,", "PER", "SECOND"])
        assert told.index(CORE.split()) < counted, "the lesson has the frequency read first"


def with_a_stopped_run() -> FakeWorkshop:
    """The chapter on coordinated omission with both runs. By transit the stopped run is the better one."""
    workshop = open_workshop(course=builtin_course())
    walk = workshop.walk("coordinated-omission")
    due = {"measure": [500] * 980 + [5_000_000 * n for n in range(1, 21)], "again": [500] * 1_000}
    for number, (slot, values) in enumerate(due.items()):
        ident, noise = f"2026020{number + 1}-000000-aaaa", "stall" if slot == "measure" else None
        sent = [500] * 990 + [(3_000 if slot == "measure" else 3_000_000)] * 10
        run, blocks = madeup.make_run([sent], run_id=ident, label=slot, noise=noise, pacing="schedule")
        from_due, due_blocks = madeup.make_run([values], name=INTENDED)
        run = dataclasses.replace(run, histograms={**run.histograms, **from_due.histograms})
        both = zip(blocks, due_blocks, strict=True)
        done = tuple(dataclasses.replace(a, histograms={**a.histograms, **b.histograms}) for a, b in both)
        workshop.context.handle.add_run(run, done)
        workshop.context.remember(run)
        walk.record(slot, run)
    return workshop


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_a_chapter_about_the_due_time_judges_no_run_by_transit(size: tuple[int, int]) -> None:
    workshop = with_a_stopped_run()
    workshop.walk("coordinated-omission").go("measure")
    app = WorkshopApp(workshop, "coordinated-omission")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        screen = chapter_of(app)
        assert screen.now.headline() == ("50 ms", "accent")
        assert screen.now.result(120).lines[0].plain.startswith("p99 from the due time is 50 ms")
        screen.go_to_step("compare")
        await settled(pilot)
        drawing = screen.now.drawing()
        assert (drawing.between, drawing.gap) == (None, None)
        result = " ".join(line.plain for line in screen.now.result(120).lines)
        assert "two runs" not in result, "one run with two clocks proves nothing"
        told = " ".join(line.plain for line in screen.now.table(120))
        assert "Runs are judged by p99 from the due time: " in told
        assert re.search(r"latencies from the due time .* p99 50 ms 500 ns", " ".join(told.split()))


async def test_a_disturbed_run_without_a_noise_is_offered_to_be_made_again() -> None:
    workshop = with_a_stopped_run()
    walk = workshop.walk("coordinated-omission")
    quiet = walk.runs.run_in("again")
    assert quiet is not None
    placed = dataclasses.replace(quiet, placement=dataclasses.replace(quiet.placement, mode="auto"))
    late, _ = madeup.make_run([[500] * 900 + [9_000_000] * 100], name=INTENDED)
    workshop.context.remember(dataclasses.replace(placed, histograms={**placed.histograms, **late.histograms}))
    walk.go("compare")
    app = WorkshopApp(workshop, "coordinated-omission")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        screen = chapter_of(app)
        result = " ".join(line.plain for line in screen.now.result(78).lines)
        assert "The second run has no noise" in result
        assert "again (m), or go on" in result
        assert ("chapter.again", "measure again") in screen.now.keys().before_enter
        assert screen.now.key_again() == "measure second"
        screen.go_to_step("again")
        await settled(pilot)
        alone = " ".join(line.plain for line in screen.now.result(78).lines)
        assert "This run has no noise" in alone
        assert ("chapter.again", "measure again") in screen.now.keys().before_enter
    said = " ".join(talking.talk(workshop, "q", "coordinated-omission", 80).split())
    assert "its p99 is more than 1,000 times its median" in said


def test_plain_and_the_report_tell_the_runs_from_the_due_time_too() -> None:
    workshop = with_a_stopped_run()
    workshop.walk("coordinated-omission").go("measure")
    said = " ".join(talking.talk(workshop, "||q", "coordinated-omission", 80).split())
    assert "p99 from the due time is 50 ms" in said
    assert "p99 from the due time 50 ms, then 500 ns" in said
    document = build_report(subject_of(workshop))
    (chapter,) = (one for one in document.chapters if one.id == "coordinated-omission")
    assert "p99 from the due time 50 ms, then 500 ns" in chapter.comparison_text
    assert chapter.comparison is not None
    assert chapter.comparison.metric == INTENDED
    chart = next(one for one in document.overlays if one.title == "Coordinated omission")
    assert [curve.label.partition(":")[0] for curve in chart.curves] == [
        "transit",
        "from the due time",
        "corrected",
        "from the due time",
    ]
    assert chart.between is None
    tables = [one for section in sections(document) for one in section.blocks if isinstance(one, Subsection)]
    captions = [one.caption for part in tables for one in part.blocks if isinstance(one, Table)]
    assert any("two single runs, latencies from the due time" in caption for caption in captions)


@pytest.mark.parametrize("size", [(160, 48), (160, 30), (120, 48), (80, 24)])
async def test_a_large_screen_draws_the_newest_curves_where_it_has_the_most_room(size: tuple[int, int]) -> None:
    workshop = open_workshop()
    app = WorkshopApp(workshop, "pinning")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        charts = [app.screen.query_one(name, ChartView) for name in ("#under", "#beside")]
        assert not any(one.region.area for one in charts)
        workshop.measure(MeasureRequest(label="first look"), SilentObserver(), CancelToken())
        for step in ("look", "predict"):
            chapter_of(app).go_to_step(step)
            await settled(pilot)
            drawn = [one for one in charts if one.region.area]
            assert len(drawn) == (size in ((160, 48), (120, 48)))
            for one in drawn:
                assert [shown.label for shown in one.curves] == ["your last: first look"]
                assert "of no run of this chapter" not in text_of(app)
                assert one.region.height >= 10
                assert chapter_of(app).query_one("#data", Pane).max_scroll_y == 0


@pytest.mark.parametrize("size", [(160, 48), (120, 36), (80, 24)])
async def test_a_large_page_without_curves_of_its_chapter_draws_the_newest_of_another_one(
    size: tuple[int, int],
) -> None:
    workshop = open_workshop(course=builtin_course())
    workshop.measure(MeasureRequest(label="first look"), SilentObserver(), CancelToken())
    app = WorkshopApp(workshop, "ack-intervals")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        charts = [app.screen.query_one(name, ChartView) for name in ("#under", "#beside")]
        for step in ("predict", "measure"):
            chapter_of(app).go_to_step(step)
            await settled(pilot)
            drawn = [one for one in charts if one.region.area]
            assert len(drawn) == (size[0] >= 120)
            for one in drawn:
                assert [shown.label for shown in one.curves] == ["your last: first look"]
                assert "of no run of this chapter" in text_of(app)


async def test_beside_long_figures_the_curves_are_drawn_below_the_page() -> None:
    workshop = open_workshop()
    workshop.measure(MeasureRequest(label="first look"), SilentObserver(), CancelToken())
    walk = workshop.walk("baseline")
    app = WorkshopApp(workshop, "baseline")
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot)
        assert len(walk.host.look()) >= 8
        beside, lesson = app.screen.query_one("#beside", ChartView), app.screen.query_one("#lesson", Pane)
        assert beside.region.height >= 10
        assert beside.region.y >= lesson.region.bottom
        assert lesson.max_scroll_y == 0
        assert not app.screen.query_one("#under", ChartView).region.area


async def test_a_huge_screen_explains_the_terms_of_a_page_where_it_leaves_room() -> None:
    app = WorkshopApp(open_workshop(), "pinning")
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot)
        words = app.screen.query_one("#words-sheet", Sheet)
        lesson, frame = app.screen.query_one("#lesson"), app.screen.query_one("#left")
        first = words.plain()
        assert first.split(":")[0] in {one.term for one in found(lesson.query_one(Sheet).plain())}
        assert lesson.region.bottom <= words.region.y
        assert words.region.bottom <= frame.region.bottom
        await pilot.press("enter")
        await settled(pilot)
        assert words.plain() != first, "another page has other terms"
        await pilot.resize_terminal(160, 25)
        await settled(pilot)
        assert not words.region.area
        await pilot.resize_terminal(120, 36)
        await settled(pilot)
        assert not words.region.area
