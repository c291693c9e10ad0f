"""The compare step of a chapter whose count moved as its lesson says, while the curve became worse."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.protocol import BlockDone
from jitter_workshop.course.loader import builtin_course
from jitter_workshop.model.course import SLOTS
from jitter_workshop.model.run import INTENDED, Run, SilentObserver
from jitter_workshop.presenter.runs import verdict
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tui.widgets.chart import ChartView
from tests import fakes, madeup
from tests.screens import settled, text_of


@pytest.mark.parametrize("worse", [300, 500, 4_000])
async def test_the_count_is_large_where_latency_is_not_decided_and_the_curve_is_quiet_unless_it_moved_more(
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
        (headline, role), quiet = app.screen.now.headline(), worse < 4_000
        # A loud count beside "No clear change" would be a second verdict.
        assert headline == {300: "", 500: "10×", 4_000: "20×"}[worse]
        assert (role == "bad") is not quiet
        drawing = app.screen.now.drawing()
        assert (drawing.between is None) is quiet, "the space between the curves is tinted as worse"
        assert (drawing.gap is None) is quiet, "a factor beside a verdict without one"
        assert ("worse" in app.screen.query_one("#chart", ChartView).render().plain) is not quiet
        assert (verdict.NO_CHANGE in text_of(app)) is (worse == 300)
        assert ("two runs do not decide it" in text_of(app)) is (worse == 500)
        assert ("Looks worse" in text_of(app)) is not quiet


@pytest.mark.parametrize("known", [True, False])
async def test_two_runs_that_sent_few_messages_have_one_direction_on_chart_and_result(
    monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """Without the waits the second run is faster, with them it is slower."""
    made = madeup.make_run

    def make_run(*args: Any, **changed: Any) -> tuple[Run, tuple[BlockDone, ...]]:
        found, parts = made(*args, **changed)
        main, first = found.main_summary, "-000001-" in found.id
        assert main is not None
        sent = round(0.1 * found.duration_s * 1e9 / found.interval_ns)
        p999 = 111_000_000 if first else 47_000_000
        plain = dataclasses.replace(main, count=sent, percentiles={**main.percentiles, "99.9": p999})
        waits = 134_000_000 if first else 337_000_000
        due = dataclasses.replace(plain, count=10 * sent, percentiles={**main.percentiles, "99.9": waits})
        stalls = dataclasses.replace(found.stalls, stolen_ns_per_second=9e8)
        histograms = {found.main_histogram: plain, **({INTENDED: due} if known else {})}
        return dataclasses.replace(found, stalls=stalls, histograms=histograms), parts

    monkeypatch.setattr(madeup, "make_run", make_run)
    workshop = fakes.open_workshop(course=builtin_course())
    walk = workshop.walk("pinning")
    for slot in SLOTS:
        walk.record(slot, workshop.measure(walk.measuring.request(slot), SilentObserver(), CancelToken()))
    walk.go("compare")
    app = WorkshopApp(workshop, "pinning")
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        drawing = app.screen.now.drawing()
        assert [one.from_due for one in app.screen.now.curves() if one.run is not None] == [known, known]
        assert (drawing.between, drawing.gap) == (None, None), "two runs are only perhaps worse"
        told = " ".join(app.screen.sheet("#result").plain().split())
        assert ("p99.9 ~" if known else "only ") in told
        assert "better" not in told
