"""The first effects of a change are not recorded: a run may settle before its first block."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from jitter_workshop.bench import worker
from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.lock import TURN_VARIABLE
from jitter_workshop.errors import UsageError
from jitter_workshop.flow.measuring.measure import measure_run
from jitter_workshop.flow.measuring.request import MeasureRequest, check_request
from jitter_workshop.model.run import Progress, RunStarted
from jitter_workshop.model.spec import Placement, RunSpec
from tests.ownturn import turn_of

pytestmark = pytest.mark.host

SETTLE_S = 0.4


class Clock:
    """When the child was ready, and when each block was done (CLOCK_MONOTONIC, s)."""

    def __init__(self) -> None:
        self.ready = 0.0
        self.done: list[float] = []

    def started(self, event: RunStarted) -> None:
        assert event.spec.settle_s == SETTLE_S
        self.ready = time.monotonic()

    def block_done(self, progress: Progress) -> None:
        self.done.append(time.monotonic())


def test_it_settles_before_the_first_block_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TURN_VARIABLE, turn_of(tmp_path))
    clock = Clock()
    request = MeasureRequest(workload="spin", duration_s=0.26, settle_s=SETTLE_S, proof="20260101-000000-aaaa")
    run = measure_run(request, None, clock, CancelToken())
    assert (run.settle_s, run.proof, len(run.blocks)) == (SETTLE_S, "20260101-000000-aaaa", 2)
    assert clock.done[0] - clock.ready >= SETTLE_S + run.blocks[0].duration_ns / 1e9
    assert run.duration_s < SETTLE_S


def test_any_other_run_settles_as_before_any_block() -> None:
    assert MeasureRequest().settle_s == 0
    assert RunSpec("ring", Placement("none"), 1, 1).settle_s == 0


@pytest.mark.parametrize("settle_s", [-0.1, 60.1, float("nan")])
def test_an_impossible_settling_time_is_refused(settle_s: float) -> None:
    with pytest.raises(UsageError):
        check_request(MeasureRequest(settle_s=settle_s))
    with pytest.raises(UsageError):
        worker.validate(RunSpec("spin", Placement("none"), 1, 1_000_000, settle_s=settle_s))
