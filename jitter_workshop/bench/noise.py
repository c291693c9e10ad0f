"""A thief to order: ``python -I -m jitter_workshop.bench.noise spinners SECONDS``.

Spinners: one thread on each CPU that this process may use, 3 ms busy and 30 ms asleep, as a busy desktop would be. Says
one JSON line once they run. Ends with its parent, at the end of stdin, and after SECONDS in any case.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time

from jitter_workshop.bench.native import die_with_parent, ffi, lib

BUSY_NS = 3_000_000
IDLE_NS = 30_000_000
LONGEST_S = 604_800


def parse(arguments: list[str]) -> int:
    """The bound in seconds. Raises ValueError with one sentence."""
    if len(arguments) != 2 or arguments[0] != "spinners":
        raise ValueError("usage: noise spinners SECONDS")
    if not (arguments[1].isascii() and arguments[1].isdigit()) or not 0 < int(arguments[1]) <= LONGEST_S:
        raise ValueError(f"SECONDS must be a whole number from 1 to {LONGEST_S}")
    return int(arguments[1])


def wait_for_end(descriptor: int, seconds: float) -> None:
    """Sleep until the other side closes the pipe, or the time is over."""
    deadline = time.monotonic() + seconds
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    while (left_s := deadline - time.monotonic()) > 0:
        if poller.poll(left_s * 1000) and not os.read(descriptor, 4096):
            return


def main(arguments: list[str]) -> int:
    try:
        seconds = parse(arguments)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    die_with_parent()
    cpus = sorted(os.sched_getaffinity(0))
    refused = ffi.new("int *")
    spinners = lib.jw_spinners_start(cpus, len(cpus), BUSY_NS, IDLE_NS, refused)
    if spinners == ffi.NULL:
        print(f"the spinners could not be started: {os.strerror(-refused[0])}", file=sys.stderr)
        return 2
    try:
        # Unbuffered: the parent waits for this line.
        os.write(1, json.dumps({"noise": "spinners", "cpus": cpus}).encode() + b"\n")
        wait_for_end(0, seconds)
    finally:
        lib.jw_spinners_stop(spinners)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
