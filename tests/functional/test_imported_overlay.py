"""Curves of other tools laid beside a chapter's own at its compare step, on the screen and line by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from jitter_workshop.presenter.runs.curves import HIDDEN, NOTHING
from jitter_workshop.session import foreign
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tui.screens.chapter.hunting import NONE_HERE
from jitter_workshop.tui.widgets.chart import ChartView
from jitter_workshop.tui.widgets.keybar import KeyBar
from tests import talking
from tests.fakes import FakeWorkshop, open_workshop
from tests.screens import settled, text_of

CYCLICTEST = Path(__file__).parents[1] / "imports" / "cyclictest.json"


def with_imports(count: int) -> FakeWorkshop:
    workshop = open_workshop()
    (theirs,) = foreign.parse_foreign_file(foreign.content(CYCLICTEST), CYCLICTEST.name)
    for _ in range(count):
        workshop.context.handle.add_import(theirs)
    return workshop


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_a_key_of_the_compare_step_lays_them_beside_the_runs(size: tuple[int, int]) -> None:
    app = WorkshopApp(with_imports(5), "pinning")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        screen = app.screen
        assert isinstance(screen, ChapterScreen)
        await pilot.press("i")
        assert NONE_HERE in text_of(app)
        while screen.walk.current != "compare":
            await pilot.press("enter")
            await settled(pilot)
        chart = screen.query_one("#chart", ChartView)
        own = [curve.label for curve in chart.curves if not curve.curve.origin]
        keys = screen.keys()
        assert ("chapter.imported", "") in keys
        assert len(screen.query_one(KeyBar).shown) <= 7
        await pilot.press("i")
        await settled(pilot)
        assert [c.curve.origin for c in chart.curves if "cyclictest" in c.curve.origin] == ["by cyclictest 2.40"] * 3
        assert [curve.label for curve in chart.curves if not curve.curve.origin] == own
        said = " ".join(text_of(app).split())
        assert "the newest of 5" in said
        assert "no verdict" in said
        await pilot.press("t")
        assert "by cyclictest" in text_of(app)
        await pilot.press("t", "i")
        await settled(pilot)
        assert not [c for c in chart.curves if "cyclictest" in c.curve.origin]
        assert HIDDEN in text_of(app)


async def test_without_an_import_the_key_says_how_to_bring_one() -> None:
    app = WorkshopApp(open_workshop(), "pinning")
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot)
        screen = app.screen
        assert isinstance(screen, ChapterScreen)
        while screen.walk.current != "compare":
            await pilot.press("enter")
            await settled(pilot)
        keys = screen.keys()
        assert "chapter.imported" not in [name for name, _ in keys]
        await pilot.press("i")
        await settled(pilot)
        assert "sessions import FILE" in text_of(app)


def test_line_by_line() -> None:
    said = talking.talk(with_imports(1), "i|" + "|" * 8 + "?|i|q", "pinning", 80)
    assert "Unknown command 'i'" in said
    assert "the imported curves of other tools" in said
    assert "by cyclictest 2.40" in said
    assert "No comparison and no verdict uses these curves" in " ".join(said.split())


def test_line_by_line_without_an_import() -> None:
    nothing = " ".join(talking.talk(open_workshop(), "|" * 8 + "i|q", "pinning", 80).split())
    assert NOTHING in nothing
