"""The keys that a screen names are whole, and the way out is among them, also on the narrowest terminal."""

from __future__ import annotations

import asyncio
import dataclasses
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.course.loader import builtin_course
from jitter_workshop.errors import HostError
from jitter_workshop.flow.chapters import measuring
from jitter_workshop.flow.host_ops import company
from jitter_workshop.host.irq.irq_affinity import Irq
from jitter_workshop.model.change import Change
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.run import SilentObserver
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tui.screens.common.base import IN_CLIPBOARD
from jitter_workshop.tui.screens.home.home import HomeScreen
from jitter_workshop.tui.widgets.keybar import MOST_KEYS, KeyBar, KeyHint, fit_keys, key_and_label
from jitter_workshop.tui.widgets.sheet import Sheet
from tests import madecourse, tuned_tree
from tests.fakes import FakeWorkshop, open_workshop
from tests.livehost import open_live
from tests.screens import settled, text_of
from tests.settings_screen import applied, offered

COPIES = "· y copies this text"
SIZES = pytest.mark.parametrize("size", [(60, 16), (80, 24)])


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeWorkshop:
    """With something applied, so that ``u`` is offered wherever it is."""
    tree = tuned_tree.make(tmp_path / "tree")
    live = open_live(tree, madecourse.write(tmp_path / "course"), monkeypatch)
    applied(live, tree, monkeypatch)
    return live


async def whole(pilot: Pilot[None], last: str, *more: str) -> None:
    """``last``: the way out; ``more``: what else must be there."""
    await settled(pilot)
    hints = list(pilot.app.screen.query(KeyHint))
    bar = pilot.app.screen.query_one(KeyBar).shown
    assert max(hint.region.right for hint in hints) <= pilot.app.size.width
    row = text_of(pilot.app).splitlines()[-1]
    for shown in bar:
        assert f" {' '.join(key_and_label(shown))} " in f"{row} "
    assert bar[-1][0] == last
    assert {ident for ident, _ in bar} >= {*more, bar[0][0]}


@SIZES
async def test_the_footers_while_a_change_is_applied(live: FakeWorkshop, size: tuple[int, int]) -> None:
    app = WorkshopApp(live)
    words = ("app.glossary",) if size[0] >= 80 else ()
    async with app.run_test(size=size) as pilot:
        await whole(pilot, "home.quit", "home.go", "home.restore", "app.help")
        for key, last in (("s", "status.close"), ("c", "runs.close")):
            await pilot.press(key)
            await whole(pilot, last, "app.help", *words)
            await pilot.press("escape")
        app.action_show("summary")
        await whole(pilot, "summary.close", "app.help", *words)
        await pilot.press("escape")
        app.open_chapter("pages")
        await settled(pilot)
        screen = app.screen
        assert isinstance(screen, ChapterScreen)
        for measured in (False, True):
            for step in screen.walk.chapter.steps:
                screen.walk._save(dataclasses.replace(screen.walk.progress, step=step))
                screen.enter_step()
                restore = ("chapter.restore",) if step in ("apply", "again", "compare", "explain") else ()
                await whole(pilot, "chapter.home", "app.help", *restore)
                if measured and step in ("measure", "again"):
                    await pilot.press("m")
                    await whole(pilot, "chapter.home", "app.help", *restore)
                await pilot.press("tab")
                await whole(pilot, "chapter.home", "app.help", *restore)


@SIZES
async def test_pages_that_name_their_keys_in_words(live: FakeWorkshop, size: tuple[int, int]) -> None:
    app = WorkshopApp(live)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        for ask, words in (
            (lambda: pilot.press("u"), ("Enter restores all of this", "· Esc changes nothing")),
            (lambda: pilot.press("q"), ("Enter restores and leaves", "· k keeps and leaves", "· Esc stays")),
            (lambda: pilot.press("question_mark"), ("↑ ↓ scroll · y copies · Esc closes",)),
            (lambda: pilot.press("e"), ("↑ ↓ choose · Enter changes · Esc closes",)),
            (lambda: shown(app), ("Esc closes", COPIES)),
            (lambda: pilot.press("y"), ("Esc closes", f"· {IN_CLIPBOARD}")),
        ):
            await ask()
            await settled(pilot)
            assert all(piece in framed(app) for piece in words)
            if COPIES not in words:
                await pilot.press("escape")
        assert live.restore_all().restored
        await pilot.press("a")
        await settled(pilot)


KEY = r"(Enter|Esc|Tab|[a-zA-Z/?])"
NAMED = re.compile(
    rf"\b[Pp]ress {KEY}\b|\b[Tt]he key {KEY}\b|(?:^|[·;:,(.] |\(| {{3}}){KEY} (?:[a-z]+s\b)|\({KEY}: ", re.MULTILINE
)
"""A key that a text names: "press u", "the key n", "· n goes there", "y copies", "(t: more)"."""
NO_KEYS = {"a", "I", "A"}
"""Letters that are words, too; they count only behind "press" and "the key"."""
TEXTUAL = {"Enter": "enter", "Esc": "escape", "Tab": "tab", "/": "slash", "?": "question_mark"}


def named_keys(text: str) -> set[str]:
    """Return the keys that a text names."""
    found = set()
    for one in NAMED.finditer(text):
        explicit, loose = one[1] or one[2] or one[4], one[3]
        found |= {explicit} if explicit else {loose} - NO_KEYS
    return found


def look_at_named_keys(app: WorkshopApp) -> set[str]:
    """Check that each key named in the texts of a screen does something there, and that one key alone opens a
    chapter."""
    texts = [re.sub(r"\n\s*", " ", sheet.plain()) for sheet in app.screen.query(Sheet) if sheet.region.area]
    named = set().union(*map(named_keys, texts))
    bound = app.screen.active_bindings
    assert {key for key in named if TEXTUAL.get(key, key) not in bound} == set(), texts
    assert len({key for text in texts for key in re.findall(r"(\w+) goes there", text)}) <= 1, texts
    return named


def test_a_named_key_is_found_in_its_sentence() -> None:
    assert named_keys("Chapter: Isolation · n goes there") == {"n"}
    assert named_keys("Applied now: thp.   u restores all. Press a (t: more)") == {"u", "a", "t"}
    assert named_keys("by hand (y copies). The key d types. a thread; a bus") == {"y", "d"}


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_each_key_that_a_text_names_does_something_on_its_screen(
    live: FakeWorkshop, size: tuple[int, int]
) -> None:
    app = WorkshopApp(live)
    named: set[str] = set()
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        named |= look_at_named_keys(app)
        for keys in (("s",), ("s", "enter"), ("s", "i"), ("c",), ("c", "t"), ("x",), ("l",), ("e",)):
            await pilot.press(*keys[:1])
            await settled(pilot)
            for key in keys[1:]:
                await pilot.press(key)
                await settled(pilot)
            named |= look_at_named_keys(app)
            while not isinstance(app.screen, HomeScreen):
                await pilot.press("escape")
                await settled(pilot)
    assert {"n", "y", "u"} <= named


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
@pytest.mark.parametrize("ident", ["baseline", "pinning", "first-hunt", "isolation", "workqueues", "tick"])
async def test_each_key_that_a_chapter_names_does_something_there(
    ident: str, size: tuple[int, int], host_tree: Callable[[str], Path]
) -> None:
    workshop = open_workshop(host_tree("server64"), course=builtin_course())
    app = WorkshopApp(workshop, ident)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        screen = app.screen
        assert isinstance(screen, ChapterScreen)
        for step in screen.walk.chapter.steps:
            screen.walk._save(dataclasses.replace(screen.walk.progress, step=step))
            screen.enter_step()
            await settled(pilot)
            look_at_named_keys(app)
            await pilot.press("tab")
            await settled(pilot)
            look_at_named_keys(app)


def framed(app: WorkshopApp) -> str:
    """Return what stands in the frame over the screen, in a line."""
    return " ".join(" ".join(line.split("│")[1] for line in text_of(app).splitlines() if line.count("│") > 1).split())


async def shown(app: WorkshopApp) -> None:
    app.show_error(HostError("nothing", "nothing"))


@SIZES
async def test_the_choice_of_cpus(size: tuple[int, int], host_tree: Callable[[str], Path]) -> None:
    app = WorkshopApp(open_workshop(host_tree("guest")), "pinning")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("p")
        await settled(pilot)
        said = " ".join(text_of(app).split())
        for role in ("producer", "accumulator", "journaller"):
            assert f"{role}: auto" in said


async def test_a_terminal_that_changes_its_width_has_the_keys_that_fit(live: FakeWorkshop) -> None:
    app = WorkshopApp(live)
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot)
        wide = offered(app)
        await pilot.resize_terminal(60, 16)
        await whole(pilot, "home.quit", "home.restore", "app.help")
        assert len(offered(app)) < len(wide)
        await pilot.resize_terminal(160, 48)
        await settled(pilot)
        assert offered(app) == wide


def test_the_first_key_and_the_way_out_never_give_way() -> None:
    idents = ("home.go", "home.restore", "app.status", "app.curves", "app.help", "home.quit")
    keys = tuple((ident, "") for ident in idents)
    assert fit_keys(keys, 500) == keys
    assert [ident for ident, _ in fit_keys(keys, 45)] == ["home.go", "home.restore", "app.help", "home.quit"]
    for width in range(60):
        kept = fit_keys(keys, width)
        assert kept[-1] == ("home.quit", "")
    assert len(fit_keys(keys * 3, 500)) == MOST_KEYS


@SIZES
async def test_the_footers_of_the_report_before_it_is_written(
    size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    workshop = open_workshop()
    walk = workshop.walk("baseline")
    walk.record("measure", workshop.measure(walk.measuring.request("measure"), SilentObserver(), CancelToken()))
    app = WorkshopApp(workshop)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("r")
        while app.screen.query_one(KeyBar).shown[0][0] != "report.write":
            await pilot.pause(0.01)
        await whole(pilot, "report.close", "report.format", "app.help", *(["app.glossary"] if size[0] >= 80 else []))
        await pilot.press("enter")
        while not list(tmp_path.glob("*.html")):
            await pilot.pause(0.01)
        await whole(pilot, "report.close", "report.write", "app.help")


def before_a_write(monkeypatch: pytest.MonkeyPatch) -> tuple[FakeWorkshop, str]:
    """A workshop at the step measure of Interrupts, whose run begins with a write, and the path of this write."""
    path = "/proc/irq/34/smp_affinity_list"
    sent = Change(1, "irq-here", path, "0-1", "1", "runtime", "low", "", kind="cpu-list")
    workshop = open_workshop(course=builtin_course())
    progress = dataclasses.replace(workshop.context.progress("interrupts"), step="measure", seen=("look", "predict"))
    workshop.context.save_progress("interrupts", progress)
    monkeypatch.setattr(measuring, "arrival", lambda *_: sent)
    monkeypatch.setattr(type(workshop.walk("interrupts").host), "reason", "")
    return workshop, path


async def test_the_footer_says_that_a_run_begins_with_a_write(monkeypatch: pytest.MonkeyPatch) -> None:
    workshop, path = before_a_write(monkeypatch)
    app = WorkshopApp(workshop, "interrupts")
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot)
        screen = text_of(app)
        assert f"writes 1 to {path} (now 0-1)" in " ".join(screen.split())
        assert "Enter measure, 1 write" in screen.splitlines()[-1]
        await pilot.press("b")
        await settled(pilot)
        screen_ = app.screen
        assert isinstance(screen_, ChapterScreen)
        measuring_ = screen_.walk.measuring
        measuring_.note_shown(dataclasses.replace(measuring_.request("again"), arrival=None))
        await pilot.press("m")
        await settled(pilot)
        assert workshop.measured == 0
        said = " ".join(text_of(app).split())
        assert "begins with a write" in said
        assert f"writes 1 to {path}" in said
        await pilot.press("m")
        await settled(pilot)
        assert workshop.measured == 1


async def test_the_title_tells_the_write_that_stands_while_a_run_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    workshop, _ = before_a_write(monkeypatch)
    workshop.gate = threading.Event()
    app = WorkshopApp(workshop, "interrupts")
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot)
        before = text_of(app).splitlines()[0]
        await pilot.press("enter")
        try:
            await asyncio.to_thread(workshop.reached_gate.wait, 10)
            await pilot.pause()
            head = text_of(app).splitlines()[0]
        finally:
            workshop.gate.set()
        await settled(pilot)
        after = text_of(app).splitlines()[0]
    assert head.rstrip().endswith("interrupt 34 → CPU 1 during this run")
    assert ("nothing changed" in before, "nothing changed" in head, "nothing changed" in after) == (True, False, True)


async def test_m_makes_no_run_whose_write_lies_below_the_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    workshop, path = before_a_write(monkeypatch)
    app = WorkshopApp(workshop, "interrupts")
    async with app.run_test(size=(60, 16)) as pilot:
        await settled(pilot)
        assert path not in text_of(app)
        await pilot.press("m")
        await settled(pilot)
        assert workshop.measured == 0
        assert path in text_of(app)


async def test_the_write_before_the_first_run_stands_above_the_question_on_a_small_screen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    irq = Irq(34, "virtio4-input", CpuSet((0, 1)))
    monkeypatch.setattr(company, "irqs_of_load", lambda *_, **_more: company.LoadIrqs((irq,), irq))
    workshop, path = before_a_write(monkeypatch)
    app = WorkshopApp(workshop, "interrupts")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("b")
        await settled(pilot)
        screen = text_of(app)
        question = screen.index("Which of these figures")
        assert 0 < screen.index("virtio4-input") < screen.index(path) < question
