"""Whole sessions with many runs, each as large as a real quick run of the ring on two CPUs (four histograms of twenty
blocks, about 100 kB of files), stored by the workshop's own code. The same seed makes the same runs."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import math
import random
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jitter_workshop.bench.protocol import BlockDone, HistogramBlock
from jitter_workshop.flow.measuring.notes import NO_NOISE
from jitter_workshop.model.codec import to_plain
from jitter_workshop.model.host import HostSummary, mark_notes
from jitter_workshop.model.run import (
    Block,
    Clock,
    Counter,
    ForeignLoad,
    HistogramSummary,
    Run,
    Stall,
    StallTotal,
    ThreadRecord,
)
from jitter_workshop.model.session import ChapterProgress, Guess
from jitter_workshop.model.spec import STALL_DECADES_NS, Placement
from jitter_workshop.session.store import OpenSession, SessionStore
from jitter_workshop.stats import histogram as hg
from jitter_workshop.stats import stalls as st
from jitter_workshop.stats.geometry import layout

if TYPE_CHECKING:
    from hdrh.histogram import HdrHistogram

BLOCKS = 20
BLOCK_NS = 250_000_000
WORST = 100
"""The number of a run's stalls that are kept in full."""
FLOORS = {"publisher_interval": 10_000, "accumulator_transit": 110, "accumulator_interval": 10_000}
INTENDED = "accumulator_intended"
SPACE = layout(hg.LOWEST_NS, hg.HIGHEST_NS, hg.DIGITS)
BEGUN = datetime.datetime(2026, 1, 1, 9, 0, tzinfo=datetime.UTC)

HOST = HostSummary(
    name="lab03",
    kernel="6.12.0",
    architecture="x86_64",
    cpu_model="A Processor",
    hypervisor="KVM",
    cpus_online=(0, 1),
    cpus_allowed=(0, 1),
    isolated=(),
    nohz_full=(),
    governors=(),
    cpuidle_driver="haltpoll",
    clocksource="tsc",
    thermal_zones=0,
    realtime_kernel=False,
    steal_percent=0.4,
    cpu_max_quota_us=None,
    cpu_max_period_us=None,
    on_battery=None,
    memlock_limit_bytes=8_388_608,
    is_root=False,
    boot_id="00000000-0000-4000-8000-000000000001",
    notes={"cpu_max_quota_us": "no CPU limit is set on this cgroup", "on_battery": "this host shows no power supply"},
)


def make_session(
    sessions_dir: Path,
    runs: int,
    *,
    name: str = "made",
    seed: int = 1,
    blocks: int = BLOCKS,
    chapters: Mapping[str, ChapterProgress] | None = None,
    host: HostSummary = HOST,
) -> OpenSession:
    """A session of this many runs, which is the current one then; close it. ``chapters``: None = the first runs are
    those of two chapters of the built-in course."""
    session = SessionStore(sessions_dir).create(name, HOST.name)
    chance = random.Random(seed)
    for number in range(runs):
        run, parts, merged = real_shaped(number, chance, blocks, host)
        session.add_run(run, parts, merged)
    done = _chapters(session.session.runs) if chapters is None else dict(chapters)
    session.save(dataclasses.replace(session.session, chapters=done))
    return session


def _chapters(ids: Sequence[str]) -> dict[str, ChapterProgress]:
    """As many chapters as there are runs for, with a guess each."""
    named = ("baseline", "pinning")
    slots = [dict(zip(("measure", "again"), ids[2 * n : 2 * n + 2], strict=False)) for n in range(len(named))]
    guess = Guess(percentile="99.9", value_ns=100_000)
    return {
        ident: ChapterProgress("explain", guess, runs=here, marks={"curve": True}, done=len(here) == 2)
        for ident, here in zip(named, slots, strict=True)
        if here
    }


def real_shaped(
    number: int, chance: random.Random, blocks: int = BLOCKS, host: HostSummary = HOST
) -> tuple[Run, tuple[BlockDone, ...], dict[str, HdrHistogram]]:
    """The run of this number: every tenth was disturbed, every other one pinned."""
    pinned = number % 2 == 1
    moment = BEGUN + datetime.timedelta(seconds=10 * number)
    counted: dict[str, list[dict[int, int]]] = {name: [] for name in (*FLOORS, INTENDED)}
    done = tuple(_block(index, moment, chance, pinned, counted) for index in range(blocks))
    merged = {name: _merged(found) for name, found in counted.items()}
    run = Run(
        format_version=1,
        id=f"{moment:%Y%m%d-%H%M%S}-{number:04x}",
        label=("pinned" if pinned else "baseline") + (f" {number // 2}" if number > 1 else ""),
        workload="ring",
        pacing="spin",
        interval_ns=10_000,
        preset="quick",
        started_at=f"{moment:%Y-%m-%dT%H:%M:%S}.000Z",
        duration_s=blocks * BLOCK_NS / 1e9,
        sched="other",
        duty=100,
        noise=None,
        clock=Clock("tsc", 18.0, 10, 2_600_000_000, 0, 20),
        placement=Placement(
            mode="auto" if pinned else "none",
            producer=0 if pinned else None,
            accumulator=1 if pinned else None,
            journaller=None,
            sampler=None,
            hot=(0, 1) if pinned else (),
            housekeeping=(),
            why="two CPUs: the producer on 0, the accumulator on 1" if pinned else "the scheduler is free",
        ),
        histograms={name: _summary(name, merged[name], done) for name in merged},
        blocks=tuple(_in_short(part) for part in done),
        stalls=st.stalls_of_run(
            1_000, [t for part in done for t in part.stall_totals], _stalls(chance, blocks), blocks * BLOCK_NS / 1e9
        ),
        blocked_publishes=0,
        negative_deltas=0,
        threads=tuple(
            ThreadRecord(
                n, {str(i): 24_000 * blocks}, 0, chance.randrange(200), 0, 0, 0, 10**9, 10**6, 80, 12_000 + i, (i,)
            )
            for i, n in enumerate(("producer", "accumulator"))
        ),
        interrupts={
            n: Counter(says, {"0": chance.randrange(9_000), "1": chance.randrange(9_000)})
            for n, says in (
                ("LOC", "Local timer interrupts"),
                ("RES", "Rescheduling interrupts"),
                ("24", "virtio0-requests"),
            )
        },
        softirqs={n: Counter(n, {"0": chance.randrange(999), "1": 0}) for n in ("TIMER", "SCHED", "RCU")},
        steal_ns=10_000_000 * chance.randrange(5),
        steal_resolution_ns=10_000_000,
        core_hz=3_680_000_000,
        throttled_periods=0,
        mlocked=True,
        complete=True,
        disturbed=(ForeignLoad(4_321, "backup-agent", 1, 12.5),) if number % 10 == 9 else (),
        host=to_plain(host),
        applied=({"id": "timer-migration", "value": "0"},) if number % 4 == 3 else (),
        notes={
            "noise": NO_NOISE,
            "placement.sampler": "the workload ring has no sampler",
            "buckets": "only the workload 'spin' sorts its gaps by length",
            "blocks.temperature_celsius": "this host shows no temperature",
            "histograms": "null where the run has fewer than 1/(1-p) samples",
            **mark_notes(host.mark),
        },
        counted_s=blocks * 0.264,
    )
    return run, done, merged


def _block(
    index: int, moment: datetime.datetime, chance: random.Random, pinned: bool, counted: dict[str, list[dict[int, int]]]
) -> BlockDone:
    """A block; its counts go to ``counted``, too."""
    parts: dict[str, HistogramBlock] = {}
    transit: list[int] = []
    for name, floor in FLOORS.items():
        found, tail = _values(floor, chance, pinned)
        parts[name] = _part(found, tail)
        counted[name].append(found)
        if name == "accumulator_transit":
            # The intended times add values to the tail: all else of the two is the same.
            transit = [v for v in tail if v >= STALL_DECADES_NS[0]]
            more = dict(found)
            for value in transit[:40]:
                at = SPACE.index(value // 2)
                more[at] = more.get(at, 0) + 1
            parts[INTENDED] = _part(more, tail)
            counted[INTENDED].append(more)
    start_ns = index * (BLOCK_NS + 14_000_000)
    return BlockDone(
        index=index,
        start_ns=start_ns,
        end_ns=start_ns + BLOCK_NS,
        wall_start_s=moment.timestamp() + start_ns / 1e9,
        histograms=parts,
        threads=(),
        stalls=(),
        stall_totals=tuple(
            StallTotal(t, sum(v >= t for v in transit), sum(v for v in transit if v >= t)) for t in STALL_DECADES_NS
        ),
        blocked_publishes=0,
        negative_deltas=0,
        core_hz=3_680_000_000 + chance.randrange(10**6),
        ping_pong_ns=92.5,
        interrupts=None,
        softirqs=None,
        steal_ns=0,
        throttled_periods=0,
        parent_switches=0,
    )


def _values(floor: int, chance: random.Random, pinned: bool) -> tuple[dict[int, int], list[int]]:
    """Some 24,000 values as counts by counter, and their tail: a bell around the floor, and few long ones."""
    index, found = SPACE.index, dict[int, int]()
    middle, width = floor * chance.uniform(0.95, 1.1), floor * 0.08 + 8
    step = max(1, int(width / 40))
    for value in range(int(middle - 3 * width), int(middle + 4 * width), step):
        expected = 24_000 * step / (width * 2.5) * math.exp(-(((value - middle) / width) ** 2) / 2)
        count = int(expected * (0.8 + 0.4 * chance.random()))
        if count:
            at = index(max(value, 1))
            found[at] = found.get(at, 0) + count
    top = 5.0 if pinned else 6.5
    tail = [int(floor + 10 ** chance.uniform(2.5, top)) for _ in range(170)]
    for value in tail:
        at = index(value)
        found[at] = found.get(at, 0) + 1
    return found, tail


def _part(found: Mapping[int, int], tail: Sequence[int]) -> HistogramBlock:
    count = sum(found.values())
    return HistogramBlock(encoded(found), count, SPACE.bounds(min(found))[0], max(tail), count * 120, 0)


def encoded(found: Mapping[int, int]) -> str:
    """Counts by counter as ``stats.histogram.encode_histogram`` writes them, thirty times faster: a session has
    40,000."""
    packed, at = bytearray(), 0
    for index in sorted(found):
        for number in (*((-(index - at),) if index > at else ()), found[index]):
            left = (number << 1) ^ (number >> 63)
            while left > 0x7F:
                packed.append(left & 0x7F | 0x80)
                left >>= 7
            packed.append(left)
        at = index + 1
    head = struct.pack(">IIIIQQd", 0x1C849313, len(packed), 0, SPACE.digits, SPACE.lowest_ns, SPACE.highest_ns, 1.0)
    squeezed = zlib.compress(head + packed)
    return base64.b64encode(struct.pack(">II", 0x1C849314, len(squeezed)) + squeezed).decode("ascii")


def _merged(parts: Iterable[Mapping[int, int]]) -> HdrHistogram:
    whole = hg.new_histogram()
    view = hg.counts_array(whole)
    for part in parts:
        for index, count in part.items():
            view[index] += count
    hg.count_again(whole)
    return whole


def _summary(name: str, whole: HdrHistogram, done: Sequence[BlockDone]) -> HistogramSummary:
    parts = [part.histograms[name] for part in done]
    return hg.summarise_histogram(
        whole,
        min_ns=min(p.min for p in parts if p.min is not None),
        max_ns=max(p.max for p in parts if p.max is not None),
        total_ns=sum(p.total for p in parts),
    )


def _in_short(part: BlockDone) -> Block:
    main = part.histograms["accumulator_transit"]
    count = part.stall_totals[0].count
    return Block(
        part.index,
        part.start_ns,
        BLOCK_NS,
        main.count,
        110,
        5_120,
        61_000,
        main.max,
        count,
        part.core_hz,
        part.ping_pong_ns,
        0,
    )


def _stalls(chance: random.Random, blocks: int) -> tuple[Stall, ...]:
    """The worst ones, longest first."""
    found = []
    for _ in range(WORST):
        index = chance.randrange(blocks)
        start = index * (BLOCK_NS + 14_000_000) + chance.randrange(BLOCK_NS // 2)
        found.append(
            Stall(index, "accumulator", 1, start, start + int(10 ** chance.uniform(4, 6.5)), chance.randrange(1, 300))
        )
    return tuple(sorted(found, key=lambda s: s.start_ns - s.end_ns))
