"""Measure lines between CPUs in a process of its own: ``python -I -m jitter_workshop.bench.matrixchild``.

The parent sends pairs of CPUs, some at a time. The child answers with the time of each pair. Its main thread sleeps
while two threads, one on each CPU, hand a line to each other.
"""

from __future__ import annotations

import os

from jitter_workshop.bench import launch
from jitter_workshop.bench.native import calibrate, ffi, lib
from jitter_workshop.bench.parent import Parent, serve
from jitter_workshop.bench.protocol import LineOrder, LineTimes
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.codec import CodecError, from_plain


def measure(parent: Parent, order: LineOrder) -> None:
    """Answer orders until the parent sends ``end``. ``order``: the first one."""
    clock = calibrate(HostRoot())
    parent.say("ready", clock.describe(None, None))
    while True:
        parent.say("lines", times(clock.native, order))
        kind, data = parent.hear()
        if kind == "end":
            return
        if kind != "lines":
            raise CodecError(f"'{kind}' is not a message that the measuring process knows")
        order = from_plain(LineOrder, data)


def times(clock: object, order: LineOrder) -> LineTimes:
    """Measure each pair once."""
    found = ffi.new("double *")
    measured: list[float | None] = []
    why = ""
    for first, second in order.pairs:
        status = lib.jw_ping_pong(clock, first, second, found)
        measured.append(round(float(found[0]), 1) if status == 0 else None)
        if status and not why:
            why = f"CPUs {first} and {second}: {os.strerror(-status)}"
    return LineTimes(tuple(measured), why)


def main() -> None:
    serve(launch.MEASURING, "lines", LineOrder, measure)


if __name__ == "__main__":
    main()
