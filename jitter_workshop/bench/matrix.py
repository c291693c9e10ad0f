"""Measure how long a cache line takes from one CPU to another. A child process measures.

The child gets a few pairs of CPUs at a time, and returns their times. There are several passes. Each pass measures each
pair once, in a random order of its own. So other work on the host disturbs near and far pairs alike. A pair's time is
the median over the passes.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from jitter_workshop.bench import launch, protocol
from jitter_workshop.bench.cancel import CancelToken, stop_this_process
from jitter_workshop.bench.protocol import LineOrder, LineTimes
from jitter_workshop.errors import MeasureError
from jitter_workshop.model.matrix import CpuPair
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.run import Clock

M = TypeVar("M")

PASSES = 3
LIMIT_S = 60.0
"""The seconds after which no further pairs are measured."""
BATCH = 32
"""The number of pairs that the child measures at a time. Between two batches a run can be stopped."""
_USUAL_S = 0.0012
"""The usual time of one pair in one pass, in seconds; 0.5 to 2 ms were measured."""
_READY_WITHIN_S = 60.0

Told = Callable[[int, int], None]
"""A function that is called as the measurement goes on. Its arguments are the number of finished measurements, and the
number of all measurements."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Hold the median time of each measured pair, in ns.

    ``why``: the reason why some pairs are missing; "" if none is missing. ``stopped``: the reason that was recorded
    when the user stopped the measurement; None if the measurement was not stopped.
    """

    ns: dict[CpuPair, float]
    clock: Clock
    duration_s: float
    why: str = ""
    stopped: str | None = None


def expected_s(pairs: int) -> float:
    """Estimate the seconds that it takes to start the child and to measure this number of pairs."""
    return 0.5 + pairs * PASSES * _USUAL_S


def measure_pairs(
    pairs: Sequence[CpuPair],
    told: Told,
    cancel: CancelToken,
    *,
    command: Sequence[str] | None = None,
    limit_s: float = LIMIT_S,
    seed: int | None = None,
) -> Measured:
    """Measure each pair several times, and return the median times.

    The calling thread must not end before this function returns. ``told`` is called with the number of finished
    measurements, and the number of all measurements. ``command``: the command line of another child with the same
    protocol. Raise MeasureError if no pair was measured. The child is always ended and reaped.
    """
    found: dict[CpuPair, list[float]] = {}
    began = time.monotonic()
    why, stopped, clock = "", None, None
    with launch.Child(command or launch.command(launch.MATRIX)) as child:
        done = 0
        for batch in _batches(pairs, random.Random(seed)):
            if time.monotonic() - began > limit_s:
                why = why or f"the limit of {limit_s:g} s was reached before all pairs were measured"
                break
            child.send(protocol.message_line("lines", LineOrder(tuple(batch))))
            if clock is None:
                clock = _answer(child, cancel, "ready", Clock)
            answer = _answer(child, cancel, "lines", LineTimes) if clock is not None else None
            if answer is None:
                stopped = cancel.reason or "cancelled"
                break
            if len(answer.one_way_ns) != len(batch):
                raise MeasureError(
                    f"the measuring process sent {len(answer.one_way_ns)} times for {len(batch)} pairs of CPUs"
                )
            why = why or answer.why
            for pair, ns in zip(batch, answer.one_way_ns, strict=True):
                if ns is not None:
                    found.setdefault(pair, []).append(ns)
            done += len(batch)
            told(done, len(pairs) * PASSES)
        else:
            child.end(protocol.message_line("end"))
    if not found or clock is None:
        reason = "stopped before the first pairs were measured" if stopped else f"no pair could be measured: {why}"
        raise MeasureError(f"{reason}; nothing was kept")
    medians = {pair: round(statistics.median(values), 1) for pair, values in sorted(found.items())}
    complete = len(medians) == len(set(pairs))
    return Measured(medians, clock, time.monotonic() - began, "" if complete else why or "stopped", stopped)


def _batches(pairs: Sequence[CpuPair], chance: random.Random) -> list[list[CpuPair]]:
    """Return the pairs for all passes, in batches that are measured one after the other.

    Each pass has all pairs in a random order of its own.
    """
    batches = []
    for _ in range(PASSES):
        order = list(pairs)
        chance.shuffle(order)
        batches += [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
    return batches


def _answer(child: launch.Child, cancel: CancelToken, wanted: str, message: type[M]) -> M | None:
    """Return the child's next message; None if the user stops the measurement."""
    while True:
        event = child.wait(cancel, _READY_WITHIN_S)
        if event.kind == "suspend":
            child.stop()
            stop_this_process()
            child.resume()
            continue
        if event.kind == "cancel":
            return None
        if event.kind == "timeout":
            raise MeasureError(f"the measuring process did not answer within {_READY_WITHIN_S:.0f} s")
        return child.message(event, wanted, message)
