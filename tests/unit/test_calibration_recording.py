"""Recording a calibration: what is asked of the product, where it stops, how it goes on, and runs cut short."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.lock import TURN_VARIABLE
from jitter_workshop.errors import HostError, MeasureError, UsageError
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.model.run import StallRate
from jitter_workshop.model.spec import Placement, RunSpec
from jitter_workshop.stats.rounds import side_of
from tests.calibration import recording
from tests.calibration.plan import OFF, NullPlan, PowerPlan
from tests.calibration.recording import Made, cut, maker, missing, periods, pilot, record
from tests.calibration.records import read
from tests.madeup import make_run
from tests.ownturn import turn_of

PLAN = NullPlan(2, rounds=2)
"""Sixteen runs."""


def silent(text: str) -> None:
    return None


class Host:
    """Makes runs out of nothing, and remembers what was asked of it."""

    def __init__(self) -> None:
        self.asked: list[MeasureRequest] = []
        self.before: Callable[[int], None] = lambda number: None
        self.stalls: Callable[[MeasureRequest], int] = lambda request: 1

    def __call__(self, request: MeasureRequest, cancel: CancelToken) -> Made:
        self.before(len(self.asked))
        if cancel.reason is not None:
            raise MeasureError("the run was stopped")
        self.asked.append(request)
        run, _ = make_run()
        seconds = request.duration_s or 5.0
        run = replace(run, workload=request.workload, duration_s=seconds, host={"kernel": "6.1.0-secret", "name": "me"})
        rates = (StallRate(100_000, self.stalls(request), 0.0, 0.0),)
        run = replace(run, stalls=replace(run.stalls, rates=rates, rated_s=seconds))
        spec = RunSpec(request.workload, Placement("none"), 1, round(seconds * 1e9))
        return Made(run, spec, ())


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host()
    monkeypatch.setattr(recording, "busiest_percent", lambda: 0.0)
    monkeypatch.setattr(recording, "CUTS_S", (5.0,))  # Its runs have one block.
    return made


def test_a_whole_series_is_recorded_as_planned(host: Host, tmp_path: Path) -> None:
    into = tmp_path / "null.jsonl"
    said: list[str] = []
    assert record(PLAN, into, {}, host, CancelToken(), said.append) == 0
    assert [one.workload for one in host.asked] == [slot.workload for slot in PLAN.slots()]
    assert {(one.duration_s, one.preset, one.noise) for one in host.asked} == {(1.0, "standard", None)}
    found = read(into)
    assert sorted(found.runs) == list(range(16))
    assert said[-1].startswith("16 of 16 runs")
    assert said[-1].endswith("0 min left")
    # Neither the host's name nor all of its kernel's: the data is for everybody.
    assert found.sittings[0]["kernel"] == "6.1"
    assert "secret" not in into.read_text()
    assert record(PLAN, into, {}, host, CancelToken(), silent) == 0
    assert len(host.asked) == 16


def test_a_button_ends_a_sitting_and_the_same_command_goes_on(host: Host, tmp_path: Path) -> None:
    into, cancel = tmp_path / "null.jsonl", CancelToken()
    host.before = lambda number: cancel.cancel() if number == 3 else None
    assert record(PLAN, into, {}, host, cancel, silent) == 13
    assert sorted(read(into).runs) == [0, 1, 2]
    host.before = lambda number: None
    assert record(PLAN, into, {}, host, CancelToken(), silent) == 0
    found = read(into)
    # Of the second round one run was there: it was made again, beside its other half.
    assert (sorted(found.runs), found.again, len(found.sittings)) == (list(range(16)), 1, 2)


def test_a_failure_is_told_and_the_finished_runs_are_kept(host: Host, tmp_path: Path) -> None:
    def fail(number: int) -> None:
        if number == 5:
            raise MeasureError("the measuring process has died")

    host.before = fail
    with pytest.raises(MeasureError, match="has died"):
        record(PLAN, tmp_path / "null.jsonl", {}, host, CancelToken(), silent)
    assert len(read(tmp_path / "null.jsonl").runs) == 5


def test_nothing_is_begun_that_would_end_too_late(host: Host, tmp_path: Path) -> None:
    into = tmp_path / "null.jsonl"
    assert record(PLAN, into, {}, host, CancelToken(), silent, until_s=time.monotonic() + 1) == 16
    assert host.asked == []


def test_a_busy_host_is_refused_unless_that_is_meant(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "busiest_percent", lambda: 37.0)
    into = tmp_path / "null.jsonl"
    with pytest.raises(HostError, match="others use 37 % of a CPU"):
        record(PLAN, into, {}, host, CancelToken(), silent)
    assert not into.exists()
    assert record(PLAN, into, {}, host, CancelToken(), silent, anyway=True) == 0
    assert read(into).sittings[0]["busy_percent"] == 37


def test_a_file_of_another_plan_is_not_gone_on_with(host: Host, tmp_path: Path) -> None:
    into = tmp_path / "null.jsonl"
    record(PLAN, into, {}, host, CancelToken(), silent)
    for other in (NullPlan(4, rounds=2), PowerPlan(4, ("2",))):
        with pytest.raises(UsageError, match="another plan"):
            record(other, into, {"2": 5} if isinstance(other, PowerPlan) else {}, host, CancelToken(), silent)


def test_a_pool_has_noise_in_one_run_of_each_group_at_the_rate_that_was_ordered(host: Host, tmp_path: Path) -> None:
    plan = PowerPlan(4, ("2",))
    assert record(plan, tmp_path / "power.jsonl", {"2": 125_000_000}, host, CancelToken(), silent) == 0
    for slot, one in zip(plan.slots(), host.asked, strict=True):
        wanted = (None, None) if slot.effect == OFF else ("greedy", 125_000_000)
        assert (one.noise, one.noise_period_ns, one.preset, one.duration_s) == (*wanted, "quick", None)
    assert read(tmp_path / "power.jsonl").periods_ns == {"2": 125_000_000}


def test_an_effect_is_a_rate_that_the_noise_can_make() -> None:
    assert periods(6.0, 1.0, ("2", "4")) == {"2": 166_666_667, "4": 55_555_556}
    assert periods(12.0, 1.5, ("2",)) == {"2": 125_000_000}
    # Four bursts a second are nearly the five that it makes at least.
    assert periods(4.0, 1.0, ("2",)) == {"2": 200_000_000}
    with pytest.raises(UsageError, match=r"×1\.5 of 6\.0 stalls a second asks for 3\.0 bursts"):
        periods(6.0, 1.0, ("2", "1.5"))
    with pytest.raises(UsageError, match=r"asks for 0\.0 bursts"):
        periods(0.0, 1.0, ("2",))
    for wrong in ("two", "1", "0.5", "nan", "inf", ""):
        with pytest.raises(UsageError):
            periods(6.0, 1.0, (wrong,))


@pytest.mark.parametrize(("quiet", "noisy", "own", "felt"), [(30, 130, 6.0, 1.0), (30, 180, 6.0, 1.5)])
def test_the_pilot_asks_the_host_how_often_it_stalls_and_the_noise_how_much_it_is_felt(
    host: Host, quiet: int, noisy: int, own: float, felt: float
) -> None:
    # Runs of 5 s, twenty bursts a second.
    host.stalls = lambda request: noisy if request.noise else quiet
    assert pilot("ring", host, CancelToken(), silent) == pytest.approx((own, felt))
    assert [one.noise for one in host.asked] == [None, "greedy"] * recording.PILOT_RUNS


def test_a_noise_that_is_not_felt_is_said(host: Host) -> None:
    host.stalls = lambda request: 30
    with pytest.raises(HostError, match=r"makes 0\.00 stalls over 100 µs here"):
        pilot("ring", host, CancelToken(), silent)


def test_a_group_with_a_missing_run_is_missing_as_a_whole() -> None:
    plan = PowerPlan(2, ("2", "4"))
    assert [slot.number for slot in missing(plan, None)] == list(range(6))


@pytest.mark.native
@pytest.mark.skipif(
    importlib.util.find_spec("jitter_workshop.bench._native") is None, reason="the native core is not built"
)
@pytest.mark.parametrize("workload", ["ring", "spin"])
def test_a_cut_run_is_its_first_blocks(workload: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TURN_VARIABLE, turn_of(tmp_path))
    placement = "none" if workload == "ring" else "auto"
    request = MeasureRequest(workload=workload, placement=placement, duration_s=0.75)  # type: ignore[arg-type]
    with maker() as make:
        made = make(request, CancelToken())
    assert len(made.blocks) == 3
    assert cut(made, 0.75) is made.run
    # All blocks added up anew give the run's own figures.
    anew = replace(made, spec=replace(made.spec, blocks=4))
    assert side_of(cut(anew, 0.75)) == side_of(made.run)
    short, whole = side_of(cut(made, 0.25)), side_of(made.run)
    assert 0.2 <= short.duration_s <= whole.duration_s / 2
    assert [r.threshold_ns for r in short.stalls] == [r.threshold_ns for r in whole.stalls]
    assert all(a.count <= b.count for a, b in zip(short.stalls, whole.stalls, strict=True))
    assert short.worst_ns is not None
    assert whole.worst_ns is not None
    assert short.worst_ns <= whole.worst_ns
    assert (
        cut(made, 0.25).histograms[made.run.main_histogram].count < made.run.histograms[made.run.main_histogram].count
    )
