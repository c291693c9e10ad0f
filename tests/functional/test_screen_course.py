"""The whole built-in course by key presses on a recording, from home to the summary: each page says that it is one, no
curve of another machine passes for one's own, and nothing is measured, applied or written."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from textual.pilot import Pilot

from jitter_workshop.course.loader import builtin_course
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.host.recording.packed import unpacked
from jitter_workshop.model.course import StepName
from jitter_workshop.presenter.course import keys_that_wait
from jitter_workshop.presenter.course.chapter import NOTHING_MEASURED
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tui.screens.chapter.masking import MaskPage
from jitter_workshop.tui.screens.chapter.recalling import RecallPage
from jitter_workshop.tui.screens.home.home import RECORDED_HOST, HomeScreen
from jitter_workshop.tui.screens.home.summary import SummaryScreen
from jitter_workshop.tui.screens.runs.runs import RunsScreen
from jitter_workshop.tui.widgets.chart import ChartView
from jitter_workshop.tui.widgets.path_list import PathList
from tests import recorded
from tests.recorded import in_a_line
from tests.screens import settled, text_of
from tests.settings_screen import SIZES, offered

pytestmark = pytest.mark.slow

FOLDERS: list[str] = tomllib.loads((builtin_course() / "course.toml").read_text())["chapters"]
NEVER_OFFERED = {"chapter.again", "chapter.cpus", "chapter.restore", "chapter.boots", "chapter.noise"}
KEYS: dict[StepName, tuple[str, ...]] = {
    "look": ("h", "m", "s"),
    "predict": ("tab", "m"),
    "measure": ("m", "t", "w"),
    "diagnose": ("h", "m"),
    "apply": ("tab", "p", "u", "m"),
    "again": ("m", "t", "o"),
    "compare": ("t", "right", "tab"),
    "explain": ("tab", "u"),
}
"""The further keys pressed at a step: those that turn its page, and those that measure, wake a thief, choose CPUs or
give back if there is any such thing to do. The effect of each key on a recorded host is tested in
``test_recorded_host``."""

ANSWERS = {
    "m": re.escape(f"{NOTHING_MEASURED}."),
    "u": "No setting of this chapter .*",
}
"""The answer to a key, as a regular expression."""
NOT_OBSERVED = "Nothing is observed: .*"
WAITS = {said for name, said in vars(keys_that_wait).items() if name.isupper()}


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded lab machine as it was installed."""
    return unpacked(recorded.RECORDINGS / "lab-stock.tar.xz", tmp_path_factory.mktemp("recordings"))


def chapter_of(app: WorkshopApp) -> ChapterScreen:
    assert isinstance(app.screen, ChapterScreen)
    return app.screen


def loop_of(screen: ChapterScreen) -> list[str]:
    """The signs that belong behind the steps: ◌ behind what was only looked at, ✓ behind a guess that was made, none
    behind one that was not."""
    steps, walk = screen.walk.chapter.steps, screen.walk
    at = steps.index(walk.current)
    guessed = walk.progress.prediction is not None
    gone = [f"{step}{('✓' if guessed else '') if step == 'predict' else '◌'}" for step in steps[:at]]
    return [*gone, f"▸{walk.current.upper()}", *steps[at + 1 :]]


def look_at_page(app: WorkshopApp, *, back: bool = False, answer: str = "") -> None:
    """Check the rules for every page of every chapter. ``back``: were later steps seen before? ``answer``: a regular
    expression of what a key may have said in the place of the page's own sentence."""
    screen, shown = chapter_of(app), text_of(app)
    lines = shown.splitlines()
    assert "a recorded host" in lines[0]
    loop, signs = re.sub(r" page \d+ of \d+ *$", "", lines[1]).split(), loop_of(screen)
    gone = signs[: screen.walk.chapter.steps.index(screen.step) + 1]
    assert [step for step in loop if step.endswith("✓") and step != "predict✓"] == []
    assert back or loop == signs
    assert loop[: len(gone)] == gone
    assert lines[2].startswith(" ON A RECORDING")
    keys = offered(app)
    assert not NEVER_OFFERED & keys.keys()
    assert keys["chapter.enter"] not in ("measure", "apply", "agree", "who can")
    assert "THIS RUN" not in shown
    assert not app.measuring
    assert not app.at_work
    look_at_curves(screen, shown, answer)


_NAMED_BY = 8
"""The number of characters by which a legend's line names a curve: it may cut a longer name."""


def look_at_curves(screen: ChapterScreen, shown: str, answer: str) -> None:
    """Each curve that is drawn or tabled names the machine it is of, and the page which that was and that nothing is
    measured here."""
    chart = screen.query_one("#chart", ChartView)
    drawn = chart.region.area > 0
    tabled = bool(recorded.tables_of(shown)) if not screen.wide else False
    if drawn:
        picture = chart.render().plain
        assert [curve.key for curve in chart.curves if curve.run is not None or not curve.curve.origin] == []
        legend = recorded.legend_of(picture)
        # One line names several curves if there is little room.
        unnamed = [one.label for one in chart.curves if not any(one.label[:_NAMED_BY] in line for line in legend)]
        assert unnamed == []
        assert [line for line in legend if line.rstrip() not in shown] == []
        assert recorded.passes_for_measured(picture) == []
    assert recorded.passes_for_measured(screen.sheet("#data-sheet").plain()) == []
    if (drawn or tabled) and screen.step != "predict":
        source = recorded.recorded_runs(screen.walk.chapter)[1] or "published in 2015"
        which = "These curves were" if len(counts_shown(screen)) > 1 else "This curve was"
        said = in_a_line(screen.sheet("#say").plain())
        own = f"▸ Nothing is measured on a recording. {which} {source}"
        assert said.startswith(own) or re.fullmatch(f"▸ {answer}", said)


def counts_shown(screen: ChapterScreen) -> list[str]:
    """Return how many messages the curves on the page are of."""
    tables = recorded.tables_of(screen.sheet("#data-sheet").plain())
    chart = screen.query_one("#chart", ChartView)
    return tables[0][1] if tables else [f"{curve.curve.count:,}" for curve in chart.curves if chart.region.area]


def look_at_home(app: WorkshopApp) -> None:
    assert isinstance(app.screen, HomeScreen)
    shown = text_of(app)
    assert "a recorded host" in shown.splitlines()[0]
    assert RECORDED_HOST in shown
    entry = app.screen.query_one(PathList).entry
    assert entry is not None
    assert entry.chance == "recording"
    assert any(line.startswith(f" ▸ {entry.title}") for line in shown.splitlines()), "the cursor is in sight"
    assert "home.measure" not in offered(app)
    look_at_published(app)


def look_at_published(app: WorkshopApp) -> None:
    curves = app.screen.query_one(ChartView).curves
    assert [curve.key for curve in curves if curve.run is not None or "published" not in curve.curve.origin] == []


async def press(pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)
    await settled(pilot)


async def walk_by_enter(pilot: Pilot[None], app: WorkshopApp) -> list[StepName]:
    """Through the chapter on the screen and home again; which steps were come by. Each Enter leads somewhere new."""
    screen = chapter_of(app)
    walk, chapter = screen.walk, screen.walk.chapter
    seen: list[tuple[StepName, str]] = []
    while app.screen is screen or isinstance(app.screen, MaskPage):
        if isinstance(app.screen, MaskPage):
            # Enter checks it, and goes on however it was judged.
            await press(pilot, "enter")
            continue
        turned = screen.pane().scroll_offset.y > 0
        if not turned:
            look_at_page(app)
        page = (walk.current, text_of(app))
        assert page not in seen, f"Enter does not get out of {chapter.id}, {walk.current}"
        seen.append(page)
        counts, _ = recorded.recorded_runs(chapter)
        if walk.current == "compare" and counts and [step for step, _ in seen].count("compare") == 1:
            assert counts_shown(screen) == counts
        await press(pilot, "enter")
    return list(dict.fromkeys(step for step, _ in seen))


def nothing_earned(workshop: Workshop) -> None:
    """Every chapter is done, and none of them has a mark that only a live host can give."""
    path = workshop.path()
    assert len(path) == len(FOLDERS)
    assert [entry.chapter_id for entry in path if not entry.done or entry.here or not entry.rehearsed] == []
    assert [entry.chapter_id for entry in path if entry.setting or entry.curve] == []
    assert workshop.context.runs.every() == ()
    assert workshop.context.standing() == ()
    assert not workshop.context.agent_connection.holding


@pytest.mark.parametrize("size", [SIZES[0], pytest.param(SIZES[1], marks=pytest.mark.soak)])
async def test_the_whole_course_by_enter_alone(
    stock: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop = Workshop.open(root=stock)
    app = WorkshopApp(workshop)
    walked: list[str] = []
    with recorded.nothing_touched(stock, monkeypatch):
        async with app.run_test(size=size) as pilot:
            await settled(pilot)
            look_at_home(app)
            for chapter in workshop.course.chapters:
                await press(pilot, "enter")
                # Questions about earlier chapters come first: Esc skips them.
                if walked:
                    assert isinstance(app.screen, RecallPage)
                    await press(pilot, "escape")
                assert chapter_of(app).walk.chapter.id == chapter.id
                assert await walk_by_enter(pilot, app) == list(chapter.steps)
                look_at_home(app)
                walked.append(chapter.id)
                assert [entry.chapter_id for entry in workshop.path() if entry.done] == walked
            assert "All chapters are done." in text_of(app)
            await look_at_the_end(pilot, app)
            await press(pilot, "q")
        assert app.exit_code == 0
        nothing_earned(workshop)
        workshop.close()
    assert len(walked) == len(FOLDERS)
    again = Workshop.open(root=stock)
    nothing_earned(again)
    assert again.next_chapter() is None
    again.close()


async def look_at_the_end(pilot: Pilot[None], app: WorkshopApp) -> None:
    """The summary and the page of all curves have nothing of one's own to show."""
    await press(pilot, "l")
    assert isinstance(app.screen, SummaryScreen)
    assert app.screen.query_one(ChartView).curves == ()
    rest = in_a_line(app.screen.sheet("#summary-rest").plain())
    assert "Nothing is measured yet" in text_of(app)
    assert "recorded host, so no setting" in rest
    assert f"CHAPTERS: {len(FOLDERS)} OF {len(FOLDERS)} DONE" in rest
    await press(pilot, "escape", "c")
    assert isinstance(app.screen, RunsScreen)
    look_at_published(app)
    await press(pilot, "escape")
    look_at_home(app)


@pytest.mark.parametrize("size", SIZES)
async def test_counts_of_an_emulated_machine_stand_at_compare_alone(stock: Path, size: tuple[int, int]) -> None:
    workshop = Workshop.open(root=stock)
    workshop.walk("tick").go("compare")
    app = WorkshopApp(workshop, "tick")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        screen = chapter_of(app)
        assert screen.query_one("#chart", ChartView).region.area == 0
        result = in_a_line(screen.sheet("#result").plain())
        assert result.startswith("recorded, emulated: Timer interrupts: ")
        assert "as expected." in result
        assert "two runs, no proof before after" in result
        shown = screen.sheet("#data-sheet").plain()
        assert shown.startswith("RECORDED, EMULATED COUNTS, PER SECOND")
        assert "BEFORE AND AFTER, ON THE RECORDINGS" in shown
        assert "That machine is emulated" in in_a_line(screen.sheet("#say").plain())
    workshop.close()


@pytest.mark.soak
@pytest.mark.parametrize("number", range(len(FOLDERS)), ids=FOLDERS)
async def test_each_chapter_with_a_guess_and_the_other_keys(
    stock: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop = Workshop.open(root=stock)
    chapter, app = workshop.course.chapters[number], WorkshopApp(workshop)
    with recorded.nothing_touched(stock, monkeypatch):
        async with app.run_test(size=(80, 24)) as pilot:
            await settled(pilot)
            await press(pilot, *["down"] * number, "enter")
            screen = chapter_of(app)
            assert screen.walk.chapter.id == chapter.id
            for step in chapter.steps:
                assert screen.step == step
                await other_keys(pilot, app)
                if step == "predict":
                    await guess(pilot, app)
                else:
                    await on(pilot, app)
            assert isinstance(app.screen, HomeScreen)
        (entry,) = [entry for entry in workshop.path() if entry.chapter_id == chapter.id]
        assert (entry.done, entry.setting or False, entry.curve) == (True, False, False)
        assert workshop.context.runs.every() == ()
        workshop.close()


async def other_keys(pilot: Pilot[None], app: WorkshopApp) -> None:
    """All that they show is marked as recorded, and none of them leaves the step; b does, and Enter comes back."""
    screen = chapter_of(app)
    step, before = screen.step, screen.walk.chapter.steps.index(screen.step) - 1
    answer = ""
    answers = ANSWERS if not screen.walk.chapter.program else {**ANSWERS, "m": NOT_OBSERVED}
    for key in KEYS[step]:
        await press(pilot, key)
        # A key that has nothing to do here says so, in the place of the page's own sentence.
        waits = answer
        if screen.said in WAITS:
            waits = re.escape(in_a_line(screen.sheet("#say").plain()).removeprefix("▸ "))
        answer = answers.get(key, waits)
        if app.screen is not screen:
            assert "a recorded host" in text_of(app).splitlines()[0]
            await press(pilot, "escape")
        assert screen.step == step
        assert key not in answers or re.fullmatch(f"▸ {answer}", in_a_line(screen.sheet("#say").plain()))
        look_at_page(app, answer=answer)
    if step in ("measure", "compare"):
        await press(pilot, "b")
        assert screen.step == screen.walk.chapter.steps[before]
        look_at_page(app, back=True)
        await on(pilot, app)
        assert screen.step == step


async def on(pilot: Pilot[None], app: WorkshopApp) -> None:
    """Enter until the step is left: more than once where its page has more below or is read first, or where its answer
    is shown."""
    screen, step = chapter_of(app), chapter_of(app).step
    for _ in range(30):
        await press(pilot, "enter")
        while isinstance(app.screen, MaskPage):
            await press(pilot, "enter")
        if app.screen is not screen or screen.step != step:
            return
        if not screen.pane().scroll_offset.y:
            look_at_page(app, back=True)
    raise AssertionError(f"Enter does not get out of {screen.walk.chapter.id}, {step}")


async def guess(pilot: Pilot[None], app: WorkshopApp) -> None:
    screen = chapter_of(app)
    task = screen.walk.chapter.prediction
    assert task is not None
    while screen.now.reading_first:
        await press(pilot, "enter")
    if task.kind == "choice":
        await press(pilot, "1", "down")
    else:
        ((_, before),) = screen.query_one("#chart", ChartView).marks
        await press(pilot, "right", "up")
        ((_, marked),) = screen.query_one("#chart", ChartView).marks
        assert 12 * before < marked < 13 * before
    await on(pilot, app)
    kept = screen.walk.progress.prediction
    assert kept is not None
    if task.kind == "choice":
        assert kept.choice == task.answers[1].id
    else:
        assert kept.value_ns == marked
