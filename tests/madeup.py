"""Made-up runs and their blocks, for tests of what stores, compares and draws them."""

from __future__ import annotations

import functools
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jitter_workshop.bench.protocol import BlockDone, HistogramBlock
from jitter_workshop.model.run import READY, Block, Clock, Run, Stalls, StallTotal
from jitter_workshop.model.spec import STALL_DECADES_NS, Placement
from jitter_workshop.stats import histogram as hg
from jitter_workshop.stats import stalls as st

if TYPE_CHECKING:
    from hdrh.histogram import HdrHistogram


def make_run(
    blocks: Sequence[Sequence[int]] = ((100, 110, 5_000), (90, 120, 70_000)),
    run_id: str = "20260101-000000-aaaa",
    label: str = "baseline",
    name: str = "accumulator_transit",
    block_s: float = 0.25,
    **changed: Any,
) -> tuple[Run, tuple[BlockDone, ...]]:
    """A run and its blocks from the values (ns) that each block measured; ``changed``: other fields of the run."""
    done = tuple(_block(i, values, name, block_s) for i, values in enumerate(blocks))
    everything = [v for values in blocks for v in values]
    whole = histogram_of(everything)
    totals = [total for block in done for total in block.stall_totals]
    duration_s = block_s * len(done)
    stalls: Stalls = st.stalls_of_run(1_000, totals, (), duration_s)
    fields: dict[str, Any] = {
        "format_version": 1,
        "id": run_id,
        "label": label,
        "workload": "ring",
        "pacing": "spin",
        "interval_ns": 10_000,
        "preset": "quick",
        "started_at": "2026-01-01T00:00:00.000Z",
        "duration_s": duration_s,
        "sched": "other",
        "duty": 100,
        "noise": None,
        "clock": Clock("tsc", 18.0, 10, 2_600_000_000, 0, 20),
        "placement": Placement("none", None, None, None, None, (), (), "the scheduler is free"),
        "histograms": {
            name: hg.summarise_histogram(
                whole, min_ns=min(everything), max_ns=max(everything), total_ns=sum(everything)
            )
        },
        "blocks": tuple(
            Block(b.index, b.start_ns, b.end_ns - b.start_ns, len(values), None, None, None, max(values), 0)
            for b, values in zip(done, blocks, strict=True)
        ),
        "stalls": stalls,
        "blocked_publishes": 0,
        "negative_deltas": 0,
        "threads": (),
        "interrupts": None,
        "softirqs": None,
        "steal_ns": None,
        "steal_resolution_ns": None,
        "core_hz": None,
        "throttled_periods": None,
        "mlocked": True,
        "complete": True,
        "disturbed": (),
        "host": {},
        "applied": (),
        "notes": {"interrupts": "not asked for"},
        "transit_from": READY if name == "accumulator_transit" else None,
    }
    return Run(**{**fields, **changed}), done


def histogram_of(values: Sequence[int]) -> HdrHistogram:
    """The histogram of these values; equal ones are recorded at once."""
    h = hg.new_histogram()
    for value, count in Counter(values).items():
        h.record_value(min(value, hg.HIGHEST_NS), count)
    return h


@functools.lru_cache(maxsize=64)
def _encoded(values: tuple[int, ...]) -> str:
    return hg.encode_histogram(histogram_of(values))


def _block(index: int, values: Sequence[int], name: str, block_s: float) -> BlockDone:
    start_ns = int(index * (block_s + 0.05) * 1e9)
    ordered = sorted(values)
    stalls = {t: ordered[bisect_left(ordered, t) :] for t in STALL_DECADES_NS}
    whole = HistogramBlock(_encoded(tuple(values)), len(values), min(values), max(values), sum(values), 0)
    return BlockDone(
        index=index,
        start_ns=start_ns,
        end_ns=start_ns + int(block_s * 1e9),
        wall_start_s=1_767_225_600.25 + start_ns / 1e9,
        histograms={name: whole},
        threads=(),
        stalls=(),
        stall_totals=tuple(StallTotal(t, len(over), sum(over)) for t, over in stalls.items()),
        blocked_publishes=0,
        negative_deltas=0,
        core_hz=None,
        ping_pong_ns=None,
        interrupts=None,
        softirqs=None,
        steal_ns=None,
        throttled_periods=None,
        parent_switches=None,
    )
