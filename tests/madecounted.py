"""A made-up run that was to be traced and could not be: what the kernel and the benchmark counted of it."""

from __future__ import annotations

from typing import Any

from jitter_workshop.model.run import Counter, Counters, CpuCounters, ForeignLoad, Stall, Stalls, ThreadRecord

HOSTILE = "\x1b[2J[red]evil\nforged"
COUNTERS = Counters("the trace is for root", 3_000_000_000, (CpuCounters(1, 5, 6, 7, None),), 2)


def fields(waited_ns: int | None = 8_000_000, stolen: float = 5_000_000.0, count: int = 3) -> dict[str, Any]:
    """A run's fields: two seconds on CPU 1, ``stolen`` ns a second of it in stalls."""
    return {
        "duration_s": 2.0,
        "counted_s": 2.0,
        "stalls": Stalls(1_000, count, count / 2, stolen, (), (Stall(0, "sampler", 1, 10, 30_010, 1),)),
        "threads": (ThreadRecord("sampler", {"1": 100}, 3, 41, 0, 2, 0, 1_900_000_000, waited_ns, 44, 42, (1,)),),
        "interrupts": {"LOC": Counter("Local timer", {"0": 900, "1": 500}), "36": Counter(HOSTILE, {"1": 3})},
        "softirqs": {"NET_RX": Counter("NET_RX", {"1": 20})},
        "disturbed": (ForeignLoad(7, HOSTILE, 1, 30.0),),
        "notes": {
            "evidence": "no trace: the trace is for root",
            "threads.waited_ns": "not counted here",
            "counters.cpus.steal_ns": "not a guest",
            "noise": "none",
        },
        "counters": COUNTERS,
    }
