"""One run of the ring in this process, with or without one part of what a run of the product does around it; prints
percentiles in ns and the main thread's switches in the blocks as JSON. ``python -m tests.bench.shadow_script SIDE``."""

from __future__ import annotations

import json
import resource
import sys
from typing import Any

from jitter_workshop.bench import workloads
from jitter_workshop.bench.native import calibrate
from jitter_workshop.bench.run_accumulator import MergedHistogram
from jitter_workshop.bench.worker import BlockCounters, leave_hot_cpus
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.spec import Placement, RunSpec
from jitter_workshop.stats.histogram import decode_histogram, new_histogram

MESSAGES = 200_000
LONG, SHORT = 20_000, 500
"""Messages of a block: the stamps of a long one take 360 kB of the producer, those of a short one 9 kB, which stay in
its first-level cache from block to block."""


def measure(side: str, producer: int, accumulator: int) -> dict[str, Any]:
    root = HostRoot()
    each = SHORT if side == "short blocks" else LONG
    blocks = MESSAGES // each
    spec = RunSpec(
        "ring",
        Placement("chosen", producer, accumulator, hot=(producer, accumulator)),
        blocks,
        10**9,
        messages=MESSAGES,
    )
    leave_hot_cpus(spec.placement)
    clock = calibrate(root)
    workload = workloads.start_workload(spec, clock)
    counters = BlockCounters(root, spec.placement, workload.tids)
    found = []
    switches = 0
    try:
        for index in range(blocks):
            before = counters.look() if side == "counters" else None
            own = resource.getrusage(resource.RUSAGE_THREAD)
            result = workload.measure(index)
            after = resource.getrusage(resource.RUSAGE_THREAD)
            switches += after.ru_nvcsw + after.ru_nivcsw - own.ru_nvcsw - own.ru_nivcsw
            if before is not None:
                counters.look()
            found.append(workload.analyse(index, result))
    finally:
        workload.close()
    merged = MergedHistogram(new_histogram())
    for block in found:
        part = block.histograms["accumulator_transit"]
        merged.add(part, decode_histogram(part.encoded))
    percentiles = merged.summary().percentiles
    return {"side": side, "main_switches_a_block": switches / blocks} | {
        f"p{p}": percentiles[p] for p in ("50", "99", "99.9")
    }


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
