"""Measure how long a cache line takes between CPUs, in a child process.

The command is ``python -I -m jitter_workshop.bench.matrixchild``. The parent sends a few pairs of CPUs at a time, and
the child answers with their times. For each pair, two threads hand a cache line to each other, and the main thread
sleeps.

Another task may occupy a CPU all the time. Our thread then waits one or two seconds for this CPU, and the measurement
of the pair fails. After two such failures in a row, all further pairs with this CPU are left out.
"""

from __future__ import annotations

import errno
import os
from collections import Counter

from jitter_workshop.bench import launch
from jitter_workshop.bench.native import calibrate, ffi, lib
from jitter_workshop.bench.parent import Parent, serve_parent
from jitter_workshop.bench.protocol import LineOrder, LineTimes
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.codec import CodecError, from_plain

_TRIES = 2
"""After this many failed pairs in a row, a CPU is left out. A pair fails if a thread does not get its CPU in time."""


def answer_orders(parent: Parent, order: LineOrder) -> None:
    """Answer each order of the parent with the times of its pairs, until the parent sends ``end``. ``order``: the first
    order."""
    clock = calibrate(HostRoot())
    parent.say("ready", clock.describe(None, None))
    taken: Counter[int] = Counter()
    while True:
        parent.say("lines", time_pairs(clock.native, order, taken))
        kind, data = parent.hear()
        if kind == "end":
            return
        if kind != "lines":
            raise CodecError(f"'{kind}' is not a message that the measuring process knows")
        order = from_plain(LineOrder, data)


def time_pairs(clock: object, order: LineOrder, taken: Counter[int]) -> LineTimes:
    """Measure each pair of ``order`` once, and return the times.

    ``taken``: CPU → the number of successive pairs for which our thread could not run on this CPU. This function
    updates ``taken``.
    """
    found = ffi.new("double *")
    measured: list[float | None] = []
    why = ""
    for pair in order.pairs:
        if max(taken[cpu] for cpu in pair) >= _TRIES:
            measured.append(None)
            continue
        status = lib.jw_ping_pong(clock, *pair, found)
        for cpu in pair:
            taken[cpu] = taken[cpu] + 1 if status == -errno.ETIMEDOUT else 0
        measured.append(round(float(found[0]), 1) if status == 0 else None)
        if status and not why:
            reason = "a thread did not get its CPU in time" if status == -errno.ETIMEDOUT else os.strerror(-status)
            why = f"CPUs {pair[0]} and {pair[1]}: {reason}"
    return LineTimes(tuple(measured), why)


def main() -> None:
    serve_parent(launch.MEASURING, "lines", LineOrder, answer_orders)


if __name__ == "__main__":
    main()
