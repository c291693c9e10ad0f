"""Measure how long it takes to explain a run: 40 blocks of 1 s with 100,000 events, packed as they lie on the disk, and
their stalls. The cost of one event and of one stall is told beside it.

The figure is CPU time: nothing here waits, and what else the machine does is no part of it."""

from __future__ import annotations

import random
import statistics
import time
from pathlib import Path

from jitter_workshop.evidence.explain import explain_block
from jitter_workshop.evidence.summary import summarise_run
from jitter_workshop.model.evidence import BlockSpan, Window
from jitter_workshop.model.trace import Strings, TraceEvent, pack_events
from tests import madetrace
from tests.bench.figures import Figure, keep, spread

BLOCKS, EVENTS, STALLS, ROUNDS = 40, 100_000, 20_000, 7
TIDS = {"producer": madetrace.MEASURED, "accumulator": madetrace.MEASURED + 1}
SECOND = 10**9
CPUS = (1, 2)


def packed_run(events: int, strings: Strings) -> list[bytes]:
    """Events of all blocks, spread over them."""
    step = len(CPUS) * SECOND * BLOCKS * 3 // (2 * events)
    made: list[list[TraceEvent]] = [
        madetrace.block(events // BLOCKS, cpus=CPUS, seed=seed, step=step) for seed in range(BLOCKS)
    ]
    return [pack_events(block, strings) for block in made]


def windows(number: int, seed: int) -> list[Window]:
    """Stalls of both threads all over a block; the consumer's may be its producer's."""
    rand = random.Random(seed)
    found = []
    for place in range(number):
        start = rand.randrange(SECOND - 100_000)
        thread = "accumulator" if place % 3 else "producer"
        publish = start if thread == "accumulator" else None
        cpu = CPUS[1] if thread == "accumulator" else CPUS[0]
        found.append(Window(start, start + rand.randrange(1_000, 80_000), cpu, thread, 1, publish, start_seen=False))
    return sorted(found, key=lambda window: window.start)


def explained_s(packed: list[bytes], strings: Strings, stalls: list[list[Window]]) -> float:
    """CPU seconds from packed events to the report."""
    begin = time.process_time()
    blocks = (
        explain_block(
            BlockSpan(index, 0, SECOND, index * SECOND, SECOND),
            stalls[index],
            madetrace.unpack(events, strings.all),
            CPUS,
            TIDS,
        )
        for index, events in enumerate(packed)
    )
    report = summarise_run(
        blocks, run="bench", threshold_ns=1_000, clock="mono", main_thread="accumulator", messages=BLOCKS * 100_000
    )
    took = time.process_time() - begin
    assert report.stalls == sum(len(some) for some in stalls)
    assert report.unbalanced == 0
    return took


def run(folder: Path) -> list[Figure]:
    strings = Strings()
    whole, half = packed_run(EVENTS, strings), packed_run(EVENTS // 2, strings)
    stalls = [windows(STALLS // BLOCKS, seed) for seed in range(BLOCKS)]
    none: list[list[Window]] = [[] for _ in range(BLOCKS)]
    times: dict[str, list[float]] = {"whole": [], "half the events": [], "no stalls": []}
    for _ in range(ROUNDS):
        times["whole"].append(explained_s(whole, strings, stalls))
        times["half the events"].append(explained_s(half, strings, stalls))
        times["no stalls"].append(explained_s(whole, strings, none))
    keep(folder, "explain", times)
    medians = {name: statistics.median(values) for name, values in times.items()}
    per_event = (medians["whole"] - medians["half the events"]) / (EVENTS / 2) * 1e6
    per_stall = (medians["whole"] - medians["no stalls"]) / STALLS * 1e6
    return [
        Figure(
            f"explain 40 s, {EVENTS:,} events, {STALLS:,} stalls",
            medians["whole"],
            "s",
            2.0,
            f"{per_event:.1f} µs an event, {per_stall:.1f} µs a stall; {spread(times['whole'])}",
        )
    ]
