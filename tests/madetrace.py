"""Traces for tests: events one line each, and a whole made-up block as large as is wanted."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence

from hypothesis import strategies as st

from jitter_workshop.model.run import Stall
from jitter_workshop.model.trace import KINDS, Strings, TraceEvent, TraceInfo, pack_events, unpack_fields
from jitter_workshop.session.traces import RunTrace, TracedBlock

MEASURED = 100
"""The thread that traces are about, on CPU 1."""
OTHER = 200
TIDS = {"sampler": MEASURED}


def event(ts: int, kind: str, name: str = "", *, cpu: int = 1, pid: int = MEASURED, **rest: object) -> TraceEvent:
    return TraceEvent(ts, cpu, kind, pid, name=name, **rest)  # type: ignore[arg-type]


def unpack(packed: bytes, strings: Sequence[str]) -> Iterator[TraceEvent]:
    """The events of ``pack``, with names for their fields."""
    return map(TraceEvent._make, unpack_fields(packed, strings))


def switch(
    ts: int, out: int, into: int, *, stays: bool = False, cpu: int = 1, names: tuple[str, str] = ("", "")
) -> TraceEvent:
    """``out`` leaves CPU ``cpu`` to ``into``; ``stays``: it could go on running. ``names``: of the two."""
    known = {0: "swapper/1", MEASURED: "measured", OTHER: "other"}
    return TraceEvent(
        ts,
        cpu,
        "switch",
        out,
        a=into,
        b=int(stays),
        name=names[1] or known.get(into, f"task{into}"),
        other=names[0] or known.get(out, f"task{out}"),
    )


def stolen(name: str) -> tuple[list[TraceEvent], tuple[Stall, ...]]:
    """Return the events and the two stalls of a time in which a task ``name`` took 20 µs, and a tick 4 µs."""
    events = [
        switch(10_000, MEASURED, OTHER, stays=True, names=("", name)),
        switch(30_000, OTHER, MEASURED, names=(name, "")),
        *tick(50_000, 4_000),
    ]
    return events, (Stall(0, "sampler", 1, 9_000, 31_000, 1), Stall(0, "sampler", 1, 50_000, 54_000, 1))


def tick(ts: int, length: int, *, cpu: int = 1, pid: int = MEASURED) -> list[TraceEvent]:
    """A timer interrupt with its function inside, from ``ts`` for ``length`` ticks (at least 4)."""
    where = {"cpu": cpu, "pid": pid}
    return [
        event(ts, "vector_entry", "local_timer", a=236, flags=1, **where),  # type: ignore[arg-type]
        event(ts + 1, "timer_entry", "tick_nohz_handler", flags=1, **where),  # type: ignore[arg-type]
        event(ts + length - 1, "timer_exit", "tick_nohz_handler", flags=1, **where),  # type: ignore[arg-type]
        event(ts + length, "vector_exit", "local_timer", a=236, flags=1, **where),  # type: ignore[arg-type]
    ]


def pair(
    start: int, end: int, what: str, name: str, *, cpu: int = 1, pid: int = MEASURED, number: int = 7
) -> list[TraceEvent]:
    """The entry and the exit of an irq, a softirq, a vector, a timer, a csd or a work function."""
    first, last = ("start", "end") if what == "work" else ("entry", "exit")
    flags = 1 if what in ("irq", "vector") else 0
    where = {"cpu": cpu, "pid": pid, "a": number, "flags": flags}
    return [event(start, f"{what}_{first}", name, **where), event(end, f"{what}_{last}", name, **where)]  # type: ignore[arg-type]


def block(number: int, *, cpus: Iterable[int] = (1, 2), seed: int = 1, step: int = 4_000) -> list[TraceEvent]:
    """About ``number`` events of a noisy block: ticks with softirqs, device interrupts, another task and its work on
    each CPU. The measured threads are MEASURED on the first CPU, the next number on the next one, and so on."""
    rand = random.Random(seed)
    found: list[TraceEvent] = []
    clocks = {cpu: 1_000 + cpu for cpu in cpus}
    threads = {cpu: MEASURED + place for place, cpu in enumerate(clocks)}
    while len(found) < number:
        for cpu in clocks:
            ts, mine = clocks[cpu], threads[cpu]
            where = {"cpu": cpu, "pid": mine}
            what = rand.randrange(4)
            if what == 0:
                found += tick(ts, 400, **where)
                found += pair(ts + 450, ts + 900, "softirq", "TIMER", number=1, **where)
            elif what == 1:
                found += pair(ts, ts + 300, "irq", "nic0", number=24, **where)
                found += pair(ts + 350, ts + 950, "softirq", "NET_RX", number=3, **where)
            elif what == 2:
                found.append(switch(ts, mine, OTHER + cpu, stays=True, cpu=cpu, names=("measured", "kworker/1:1")))
                found += pair(ts + 10, ts + 900, "work", "vmstat_update", number=0, cpu=cpu, pid=OTHER + cpu)
                found.append(switch(ts + 1_000, OTHER + cpu, mine, cpu=cpu, names=("kworker/1:1", "measured")))
            else:
                found += pair(ts, ts + 500, "csd", "flush_tlb_func", number=0, **where)
            clocks[cpu] = ts + step + rand.randrange(step)
    return sorted(found, key=lambda e: e.ts)


def trace_of(events: list[TraceEvent], stalls: tuple[Stall, ...]) -> RunTrace:
    """One block of 100,000 ticks of a ns each."""
    strings = Strings()
    packed = pack_events(events, strings)
    info = TraceInfo("x86-tsc", (1,), ("sched:sched_switch",), {"csd:csd_function_entry": "not in this kernel"}, 64)
    block = TracedBlock(0, 0, 100_000, 0, 100_000, stalls, {}, packed)
    return RunTrace(info, TIDS, tuple(strings.all), (block,))


ANY_EVENTS = st.lists(
    st.builds(
        TraceEvent,
        ts=st.integers(-5, 60),
        cpu=st.integers(0, 3),
        kind=st.sampled_from([*KINDS, "switch", "switch", "waking", "migrate", "fork"]),
        pid=st.integers(-1, 5),
        a=st.integers(-1, 5),
        b=st.integers(-1, 3),
        c=st.sampled_from([0, 68, 83, 84, 90, -1, 68 + 256 * 49, 83 + 256 * 120]),
        name=st.sampled_from(["", "one", "read", "idle", "\x1b[2J", "sched_cfs_period_timer"]),
        other=st.sampled_from(["", "three"]),
        flags=st.integers(0, 3),
    ),
    max_size=80,
)
"""Events that no kernel would make in this order: on CPUs 0 to 3, of threads -1 to 5."""
