"""A session that another workshop holds: a start at a chapter says so before its first step."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.measuring import measure as measuring
from jitter_workshop.model.run import SilentObserver
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tui.screens.common.dialogs import ErrorDialog
from tests import madeup
from tests.fakes import FakeWorkshop, open_workshop
from tests.screens import settled, text_of
from tests.talking import talk


@pytest.fixture
def held() -> Iterator[FakeWorkshop]:
    """The second workshop on a session; it only reads."""
    first = open_workshop(session="shared")
    second = open_workshop(session="shared")
    yield second
    second.close()
    first.close()


async def test_the_screen_says_it_in_a_dialog_over_the_chapter(held: FakeWorkshop) -> None:
    app = WorkshopApp(held, "baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert isinstance(app.screen, ErrorDialog)
        text = " ".join(text_of(app).replace("│", " ").split())
        assert "it is read-only here" in text
        assert "work in another session" in text
        await pilot.press("escape")
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)


async def test_a_session_of_ones_own_opens_no_dialog() -> None:
    app = WorkshopApp(open_workshop(), "baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)


def test_the_plain_walk_says_it_before_the_first_step_and_once(held: FakeWorkshop) -> None:
    said = " ".join(talk(held, "p|q", chapter="baseline").split())
    assert said.count("it is read-only here") == 1
    assert said.index("it is read-only here") < said.index("look")


def test_a_run_that_was_never_stored_has_the_curve_of_its_table_and_no_notice(
    held: FakeWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = madeup.make_run([[100, 200, 5_000] * 1_000])
    before = held.context.notices

    def not_kept(*_: object, **__: object) -> None:
        raise measuring.RunNotKept(held.context.handle.read_only, run)

    monkeypatch.setattr(measuring, "measure_run", not_kept)
    request = held.walk("baseline").measuring.request("measure")
    assert Workshop.measure(held, request, SilentObserver(), CancelToken()) is run
    (shown,) = held.context.runs.curves(held.context.runs.every())
    summary = run.histograms[run.main_histogram]
    assert shown.curve.count == summary.count
    assert shown.curve.points[-1].value_ns == summary.max
    assert not any("missing or damaged" in notice for notice in held.context.notices)
    assert len(held.context.notices) == len(before) + 1
