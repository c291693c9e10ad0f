"""A stall to order with the real child: what was due while it stood still is late against the schedule."""

from __future__ import annotations

from pathlib import Path

import pytest

from jitter_workshop.bench import runner
from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.stall import STALL_NS
from jitter_workshop.model.run import SilentObserver
from jitter_workshop.model.spec import Placement, RunSpec
from jitter_workshop.stats import histogram as histograms

pytestmark = pytest.mark.native

INTERVAL_NS = 100_000


def test_messages_due_during_a_stall_are_late(tmp_path: Path) -> None:
    spec = RunSpec(
        "ring",
        Placement("none"),
        blocks=2,
        block_ns=250_000_000,
        interval_ns=INTERVAL_NS,
        pacing="schedule",
        noise="stall",
        scratch_dir=str(tmp_path),
    )
    result = runner.measure_spec(spec, SilentObserver(), CancelToken())
    assert result.complete
    assert "(block 2 of 2)" in result.notes["noise"]
    stalled = result.gathered.raw[1]
    assert stalled.end_ns - stalled.start_ns >= STALL_NS
    intended = stalled.histograms["accumulator_intended"]
    assert (intended.max or 0) >= STALL_NS - INTERVAL_NS
    # One was due each interval; those of the first half waited for more than half of it, whatever else went on.
    late = sum(
        count
        for low, _, count in histograms.non_zero(histograms.decode_histogram(intended.encoded))
        if low >= STALL_NS * 0.49
    )
    assert late >= STALL_NS // INTERVAL_NS // 2 - 1
