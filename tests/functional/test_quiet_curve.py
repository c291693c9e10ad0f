"""The compare step of a chapter whose count moved as its lesson says, while the curve became worse."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from textual.widgets import Digits

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.course.loader import builtin_course
from jitter_workshop.model.course import SLOTS
from jitter_workshop.model.run import SilentObserver
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from tests import fakes
from tests.screens import settled, text_of


@pytest.mark.parametrize("worse", [500, 4_000])
async def test_the_count_is_large_and_the_curve_is_quiet_unless_it_moved_more(
    monkeypatch: pytest.MonkeyPatch, worse: int
) -> None:
    made = fakes._fields

    def fields(request: Any, seed: int, blocks: list[list[int]]) -> dict[str, Any]:
        found: dict[str, Any] = made(request, seed, blocks)
        moved = 410 if seed == 1 else 41
        found["threads"] = tuple(dataclasses.replace(t, migrations=moved) for t in found["threads"][:1])
        return found

    def values(seed: int, *, pinned: bool, count: int = 0) -> list[int]:
        return [100] * 8_000 + [200 if seed < 200 else worse] * 2_000

    monkeypatch.setattr(fakes, "_fields", fields)
    monkeypatch.setattr(fakes, "values", values)
    workshop = fakes.open_workshop(course=builtin_course())
    walk = workshop.walk("pinning")
    for slot in SLOTS:
        walk.record(slot, workshop.measure(walk.measuring.request(slot), SilentObserver(), CancelToken()))
    walk.go("compare")
    app = WorkshopApp(workshop, "pinning")
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot)
        # To the table and back to the chart.
        await pilot.press("t")
        await settled(pilot)
        await pilot.press("t")
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        headline, quiet = app.screen.query_one("#headline", Digits), worse == 500
        assert headline.value == ("10×" if quiet else "20×")
        assert headline.has_class("-bad") is not quiet
        drawing = app.screen.now.drawing()
        assert (drawing.between is None) is quiet, "the space between the curves is tinted as worse"
        assert drawing.gap is not None
        assert not (quiet and drawing.gap.loud)
        assert ("may be luck" in text_of(app)) is quiet
        assert ("Looks worse" in text_of(app)) is not quiet
