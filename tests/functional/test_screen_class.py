"""A class host on the screen: whose turn it is, the queue, the instructor's place, and a turn that ends."""

from __future__ import annotations

import dataclasses
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from jitter_workshop.errors import MeasureError, WorkshopError
from jitter_workshop.flow.chapters.session_runs import SessionRuns
from jitter_workshop.flow.turns.classhost import TurnOver
from jitter_workshop.model.run import ForeignLoad, Run
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tui.screens.class_host.turn import TurnPage
from jitter_workshop.tui.screens.common.dialogs import ErrorDialog, Question
from jitter_workshop.tui.screens.home.home import HomeScreen
from jitter_workshop.tui.widgets.keybar import KeyBar
from tests.fakes import FakeWorkshop, open_workshop
from tests.madeclass import MadeClass, view_of, waits
from tests.screens import settled, text_of

SIZES = ((60, 16), (80, 24), (160, 48))


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeClass:
    return MadeClass(tmp_path / "class", monkeypatch)


def footer(app: WorkshopApp) -> dict[str, str]:
    return dict(app.screen.query_one(KeyBar).shown)


async def until(pilot: Pilot[None], what: object) -> None:
    """Wait for something that a thread does; a worker that waits for the turn keeps ``settled`` from ending."""
    for _ in range(400):
        if callable(what) and what():
            break
        await pilot.pause(0.01)
    assert callable(what)
    assert what()
    await pilot.pause()
    await pilot.pause()


async def look(pilot: Pilot[None]) -> None:
    """As the timer does every other second."""
    app = pilot.app
    assert isinstance(app, WorkshopApp)
    app.class_turn.look()
    await pilot.pause()
    await pilot.pause()


async def test_nothing_of_a_class_is_shown_elsewhere() -> None:
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert "turn" not in text_of(app)
        await pilot.press("T", "G")
        assert isinstance(app.screen, HomeScreen)
        assert not {"app.turn", "app.jump"} & footer(app).keys()
        assert not [one for one in app.get_system_commands(app.screen) if "instructor" in one.help]
        await pilot.press("question_mark")
        await settled(pilot)
        assert "instructor" not in text_of(app)
        assert "WAITING FOR THE TURN" not in app.screen.query_one("#page-sheet").plain()


@pytest.mark.parametrize("size", SIZES)
async def test_whose_turn_it_is_and_where_the_instructor_is(made: MadeClass, size: tuple[int, int]) -> None:
    made.busy()
    made.at("pinning", "predict", "what will pinning do?")
    app = WorkshopApp(made.open())
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        text = text_of(app)
        assert "○ alan has the turn (Pinning" in text
        assert "· pinned), at most 3 min more" in text
        assert "◆ ada: Pinning · predict · what will pinning do?" in text
        assert footer(app)["app.turn"] == "take the turn"
        assert "app.jump" in footer(app)
        assert text.count("alan has the turn") == 1


@pytest.mark.parametrize("size", SIZES)
async def test_t_takes_a_free_turn_and_gives_it_back(made: MadeClass, size: tuple[int, int]) -> None:
    app = WorkshopApp(made.open())
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        assert "No one has the turn" in text_of(app)
        await pilot.press("T")
        await settled(pilot)
        assert isinstance(app.screen, HomeScreen)
        assert "● Your turn: 4 min left" in text_of(app)
        assert footer(app)["app.turn"] == "give turn back"
        assert made.state.turn is not None
        await pilot.press("T")
        await settled(pilot)
        assert made.state.turn is None
        assert "No one has the turn" in text_of(app)


@pytest.mark.parametrize("size", SIZES)
async def test_a_learner_in_the_queue_sees_the_queue_and_reads_on(made: MadeClass, size: tuple[int, int]) -> None:
    made.busy()
    made.publish(queue=(waits(4_000_000_001, "edsger", "barbara"),))
    app = WorkshopApp(made.open())
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("T")
        await until(pilot, lambda: len(made.state.queue) == 2)
        await look(pilot)
        assert isinstance(app.screen, TurnPage)
        text = text_of(app)
        assert "Waiting for the turn" in text
        assert "edsger and barbara" in text
        assert "▸  2  you" in text
        assert "at most 7 min" in text
        assert "x leave" in text
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, HomeScreen)
        assert "○ 2 turns before yours, at most 7 min" in text_of(app)
        assert footer(app)["app.turn"] == "the queue"
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, ChapterScreen)
        assert len(made.state.queue) == 2, "reading costs no place"
        made.publish(queue=made.state.queue[1:])
        made.free()
        await until(pilot, lambda: view_of(app.workshop).has_turn)
        assert isinstance(app.screen, ChapterScreen)
        assert "● Your turn: 4 min left" in text_of(app)


async def test_x_leaves_the_queue(made: MadeClass) -> None:
    made.busy()
    app = WorkshopApp(made.open())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("T")
        await until(pilot, lambda: len(made.state.queue) == 1)
        await pilot.press("x")
        await until(pilot, lambda: not app.class_turn.queued)
        assert made.state.queue == ()
        assert isinstance(app.screen, HomeScreen)
        await pilot.press("T")
        await until(pilot, lambda: len(made.state.queue) == 1)
        assert isinstance(app.screen, TurnPage)


async def test_leaving_the_workshop_leaves_the_queue(made: MadeClass) -> None:
    made.busy()
    app = WorkshopApp(made.open())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("T")
        await until(pilot, lambda: len(made.state.queue) == 1)
        await pilot.press("escape", "q")
    assert made.state.queue == ()
    assert app.exit_code == 0


async def test_a_measurement_waits_for_the_turn_and_then_begins(made: MadeClass) -> None:
    made.busy()
    app = WorkshopApp(made.open())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("m")
        await until(pilot, lambda: len(made.state.queue) == 1)
        assert isinstance(app.screen, TurnPage)
        assert app.workshop.context.runs.every() == ()
        made.free()
        await until(pilot, lambda: not app.class_turn.queued)
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        assert len(app.workshop.context.runs.every()) == 1


async def test_a_learner_that_leaves_the_queue_has_measured_nothing(made: MadeClass) -> None:
    made.busy()
    app = WorkshopApp(made.open())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("m")
        await until(pilot, lambda: len(made.state.queue) == 1)
        await pilot.press("escape")
        made.free()
        await until(pilot, lambda: not app.class_turn.queued)
        await settled(pilot)
        assert app.workshop.context.runs.every() == ()
        await pilot.press("m")
        await settled(pilot)
        assert len(app.workshop.context.runs.every()) == 1


@pytest.mark.parametrize("size", SIZES)
async def test_the_rest_of_the_turn_is_seen_during_a_run(made: MadeClass, size: tuple[int, int]) -> None:
    workshop = made.open()
    workshop.gate = threading.Event()
    app = WorkshopApp(workshop)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("T")
        await settled(pilot)
        made.left(41.0)
        await pilot.press("m")
        try:
            await until(pilot, workshop.reached_gate.is_set)
            text, keys = text_of(app), list(footer(app))
        finally:
            workshop.gate.set()
        await settled(pilot)
        assert "block 2 of 4" in text
        assert re.search(r"● Your turn: (41|40|39|38) s left", text)
        assert keys == ["chapter.home"]


@pytest.mark.parametrize("size", SIZES)
async def test_a_turn_that_ends_during_a_run_is_told_calmly(made: MadeClass, size: tuple[int, int]) -> None:
    workshop = made.open()
    app = WorkshopApp(workshop)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("T", "m")
        await settled(pilot)
        kept = workshop.context.runs.every()[0]
        made.end_turn("your turn is over: 4 minutes are the limit in this class")
        workshop.context.agent_connection.turn_lost()
        workshop.fail = TurnOver(made.over, kept)
        await pilot.press("m")
        await settled(pilot)
        if isinstance(app.screen, TurnPage):
            pytest.fail("the made class is free, so no user waits")
        assert not isinstance(app.screen, ErrorDialog)
        told = " ".join(text_of(app).split())
        assert "over: 4 minutes are the limit" in told
        assert "kept: 4 finished blocks" in told
        assert "the machine is restored" in told


async def test_any_other_failure_is_a_dialog(made: MadeClass) -> None:
    workshop = made.open()
    workshop.fail = MeasureError("the child died")
    app = WorkshopApp(workshop)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("m")
        await settled(pilot)
        assert isinstance(app.screen, ErrorDialog)


@pytest.mark.parametrize("size", SIZES)
async def test_a_turn_that_an_instructor_ends_is_told_where_it_was(made: MadeClass, size: tuple[int, int]) -> None:
    app = WorkshopApp(made.open())
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("T")
        await settled(pilot)
        made.end_turn()
        await look(pilot)
        await settled(pilot)
        assert "○ ada ended your turn; its changes are restored." in " ".join(text_of(app).split())
        assert footer(app)["app.turn"] == "take the turn"
        assert not app.workshop.context.agent_connection.took_turn
        await pilot.press("T")
        await settled(pilot)
        assert "● Your turn" in text_of(app), "the next turn takes the words away"


@pytest.mark.parametrize("size", SIZES)
async def test_a_learner_that_lost_the_turn_sees_its_holder_and_their_own_place(
    made: MadeClass, size: tuple[int, int]
) -> None:
    app = WorkshopApp(made.open())
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("T")
        await settled(pilot)
        made.end_turn()
        made.busy(left_s=1000.0)
        await look(pilot)
        await settled(pilot)
        assert "○ ada ended your turn; its changes are restored." in " ".join(text_of(app).split())
        assert "○ alan has the turn" in text_of(app)
        await pilot.press("T")
        await until(pilot, lambda: made.state.queue)
        await pilot.press("escape")
        await look(pilot)
        assert "○ 1 turn before yours" in text_of(app)
        assert "ended your turn" not in text_of(app), "it is not news any more"


async def test_why_a_turn_is_over_goes_when_the_next_ones_begins(made: MadeClass) -> None:
    app = WorkshopApp(made.open())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("T")
        await settled(pilot)
        made.end_turn()
        await look(pilot)
        await settled(pilot)
        assert "○ No one has the turn" in text_of(app)
        assert "ada ended your turn" in text_of(app)
        made.busy()
        await look(pilot)
        assert "ada ended your turn" not in text_of(app)
        assert "○ alan has the turn" in text_of(app)


async def test_an_agent_that_dies_ends_the_turn(made: MadeClass) -> None:
    app = WorkshopApp(made.open())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("T")
        await settled(pilot)
        made.agents[-1].ended = True
        made.publish(turn=None)
        await look(pilot)
        await settled(pilot)
        assert "The class's service ended your turn" in text_of(app)
        await pilot.press("T")
        await settled(pilot)
        assert view_of(app.workshop).has_turn


async def test_trouble_is_told_with_the_end(made: MadeClass) -> None:
    app = WorkshopApp(made.open())
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot)
        await pilot.press("T")
        await settled(pilot)
        made.trouble_back = "thp: it says never"
        made.end_turn()
        await look(pilot)
        await settled(pilot)
        assert "not restored: thp: it says never" in text_of(app)


async def test_the_screen_asks_about_applied_changes_before_the_turn_is_given(made: MadeClass) -> None:
    app = WorkshopApp(made.open())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("T")
        await settled(pilot)
        app.workshop.context.agent_connection._leased.add("thp")
        await pilot.press("T")
        await settled(pilot)
        assert isinstance(app.screen, Question)
        assert "restores your changes (1 setting)" in text_of(app)
        await pilot.press("escape")
        assert made.state.turn is not None
        await pilot.press("T", "enter")
        await settled(pilot)
        assert made.state.turn is None


async def test_g_goes_to_the_instructors_chapter_and_step(made: MadeClass) -> None:
    made.at("migration", "predict")
    app = WorkshopApp(made.open())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("G")
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        assert (app.screen.walk.chapter.id, app.screen.step) == ("migration", "predict")
        made.at("pinning", "compare")
        await look(pilot)
        await pilot.press("G")
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        assert (app.screen.walk.chapter.id, app.screen.step) == ("pinning", "look")
        assert "The instructor is at compare." in text_of(app)
        assert len(app.screen_stack) == 3, "home, and one chapter"


async def test_a_chapter_that_this_course_has_not_leads_nowhere(made: MadeClass) -> None:
    made.at("\x1b[2Jevil")
    app = WorkshopApp(made.open())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("G")
        await settled(pilot)
        assert isinstance(app.screen, ErrorDialog)
        assert "\x1b" not in text_of(app)


async def test_hostile_words_stay_words(made: MadeClass) -> None:
    evil = "[red]boo[/] \x1b[2J\x1b]0;x\x07 [@click=app.quit()]q[/]"
    made.busy(evil, doing=evil)
    made.publish(queue=(waits(5, evil),), frozen_by=evil)
    made.at("pinning", evil, evil)
    app = WorkshopApp(made.open())
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot)
        assert "[red]boo[/]" in text_of(app)
        await pilot.press("T")
        await until(pilot, lambda: len(made.state.queue) == 2)
        await look(pilot)
        text = text_of(app)
        assert text.count("[@click=app.quit()]") >= 2
        assert not [c for c in text if c != "\n" and ord(c) < 32]


async def test_the_class_chooses_chapters_and_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = MadeClass(tmp_path / "class", monkeypatch, 'chapters = ["pinning", "baseline"]\n')
    app = WorkshopApp(made.open())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        text = text_of(app)
        assert "NEXT  Pinning" in text
        assert text.index("PATH FOR THIS HOST") < text.index("NOT IN THIS CLASS") < text.index("Who moves my threads?")
        assert [entry.in_class for entry in app.workshop.path()] == [True, True, False]


@pytest.mark.parametrize(("preset", "blocks"), [("quick", "quick"), ("standard", "standard")])
async def test_the_class_says_how_long_a_run_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, preset: str, blocks: str
) -> None:
    made = MadeClass(tmp_path / "class", monkeypatch, f'preset = "{preset}"\n')
    app = WorkshopApp(made.open())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        app.change_preferences(preset="standard")
        await pilot.press("m")
        await settled(pilot)
        asked = app.workshop.asked
        assert asked is not None
        assert asked.preset == blocks


@pytest.mark.parametrize("size", SIZES)
async def test_a_run_that_others_disturbed_says_so(
    made: MadeClass, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = "\x1b[2Jstress"
    measure = FakeWorkshop.measure

    def disturbed(self: FakeWorkshop, *args: Any) -> Run:
        run = dataclasses.replace(measure(self, *args), disturbed=(ForeignLoad(77, evil, 1, 38.0),))
        self.context.remember(run)
        return run

    monkeypatch.setattr(FakeWorkshop, "measure", disturbed)
    monkeypatch.setattr(SessionRuns, "every", lambda self: tuple(self._runs.values()))
    app = WorkshopApp(made.open())
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("m")
        await settled(pilot)
        told = " ".join(text_of(app).split())
        assert "disturbed: [2Jstress (38 %) also ran" in told
        await pilot.press("escape", "c")
        await settled(pilot)
        assert "(disturbed)" in text_of(app)
        assert "disturbed: other tasks used its CPUs" in text_of(app)


async def test_the_settings_show_the_choices_of_the_class(made: MadeClass) -> None:
    app = WorkshopApp(made.open())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("e")
        await settled(pilot)
        assert "in this class each run is 'quick'" in " ".join(text_of(app).split())


async def test_nothing_else_is_asked_of_root_while_one_waits(made: MadeClass) -> None:
    made.busy()
    app = WorkshopApp(made.open())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("T")
        await until(pilot, lambda: len(made.state.queue) == 1)
        await pilot.press("escape")
        await pilot.pause()
        screen = app.screen
        assert isinstance(screen, HomeScreen)
        told: list[WorkshopError] = []
        screen.on_thread(lambda: pytest.fail("it was done"), lambda _: None, told.append)
        assert "you are in the queue for this machine" in told[0].message
        assert not app.at_work
