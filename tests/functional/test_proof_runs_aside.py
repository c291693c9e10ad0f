"""The runs of proofs do not bury the others: in lists, in the chart's default, on the screen of all curves."""

from __future__ import annotations

import dataclasses

import pytest

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.cli import main
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.model.run import SilentObserver, apart_from_proofs
from jitter_workshop.tui.screens.runs.runs import RunsScreen
from tests import madeup
from tests.fakes import FakeWorkshop, open_workshop, values
from tests.screens import opened, text_of


@pytest.fixture
def workshop() -> FakeWorkshop:
    """One run of one's own, and after it eight of a proof."""
    made = open_workshop()
    made.measure(MeasureRequest(label="mine"), SilentObserver(), CancelToken())
    for number in range(8):
        run, parts = madeup.make_run(
            [values(number, pinned=False)],
            run_id=f"20260201-{number:06d}-bbbb",
            label=f"prove placement · {number // 2 + 1} with",
            started_at=f"2026-02-01T00:0{number}:00.000Z",
        )
        made.context.handle.add_run(dataclasses.replace(run, proof="20260201-000009-cccc"), parts)
    return made


def test_curves_of_all_runs(workshop: FakeWorkshop) -> None:
    runs = workshop.context.runs
    assert [curve.label for curve in runs.curves(apart_from_proofs(runs.every()))] == ["mine"]
    assert len(runs.every()) == 9
    assert len(runs.curves(runs.every())) == 9


async def test_the_screen_of_all_curves(workshop: FakeWorkshop) -> None:
    async with opened(workshop, (120, 40), "c") as (app, _):
        assert isinstance(app.screen, RunsScreen)
        assert [run.label for run in app.screen._runs] == ["mine"]
        assert "Not listed: 8 runs of proofs" in " ".join(text_of(app).split())
        assert "prove placement" not in text_of(app)


async def test_home_draws_the_newest_run_of_ones_own(workshop: FakeWorkshop) -> None:
    async with opened(workshop, (80, 24)) as (app, _):
        assert "mine" in text_of(app)
        assert "prove placement" not in text_of(app)


def test_the_chart_draws_the_latest_of_ones_own(workshop: FakeWorkshop, capsys: pytest.CaptureFixture[str]) -> None:
    workshop.close()
    assert main(["chart"]) == 0
    said = capsys.readouterr().out
    assert "mine" in said
    assert "prove placement" not in said
    assert main(["chart", "@1"]) == 0
    assert "mine" in capsys.readouterr().out
    assert main(["chart", "@2"]) == 2
    assert main(["chart", "prove placement · 4 with"]) == 0
    assert "prove placement" in capsys.readouterr().out
    assert main(["sessions", "show"]) == 0
    assert "mine" in capsys.readouterr().out
