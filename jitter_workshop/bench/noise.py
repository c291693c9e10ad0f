"""Make a noise in a process of its own: ``python -I -m jitter_workshop.bench.noise``; stdin says which one.

Parent → child, a line of JSON each: the order (``noiseorder.NoiseOrder``), then ``{"aim": [tid, …]}`` where the noise
needs the thread to move, at last ``{"stop": true}``. Child → parent: ``{"ready": true}`` or ``{"refused": sentence}``,
the same after an aim, and after a stop the log. The process ends with its parent, with its stdin, and after the order's
seconds.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from typing import Any

from jitter_workshop.bench.native import calibrate, die_with_parent
from jitter_workshop.bench.noiselab import NoiseAtWork, plain_log
from jitter_workshop.bench.noiseorder import NoiseOrder, read_order
from jitter_workshop.errors import WorkshopError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.codec import to_plain

_LONGEST_LINE = 65_536
_ORDER_WITHIN_S = 60.0


class Lines:
    """Read lines of a pipe, each with a deadline on CLOCK_MONOTONIC."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""
        self._poller = select.poll()
        self._poller.register(descriptor, select.POLLIN)

    def next(self, deadline_s: float) -> bytes | None:
        """Return the next line; None at the end of the pipe, and when the time is over."""
        while b"\n" not in self._rest:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0 or len(self._rest) > _LONGEST_LINE:
                return None
            if self._poller.poll(left_s * 1000):
                chunk = os.read(self._descriptor, _LONGEST_LINE)
                if not chunk:
                    return None
                self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return line


def say(**words: Any) -> None:
    # Unbuffered: the parent waits for each line.
    rest = memoryview(json.dumps(words).encode() + b"\n")
    while rest:
        rest = rest[os.write(1, rest) :]


def serve(order: NoiseOrder, lines: Lines) -> None:
    """Make the noise until a stop, the end of the pipe or the deadline. Raise HostError where it cannot be made."""
    deadline_s = time.monotonic() + order.seconds
    work = NoiseAtWork(order, calibrate(HostRoot()))
    stopped = False
    say(ready=True)
    try:
        while (line := lines.next(deadline_s)) is not None:
            word = json.loads(line)
            if "aim" in word:
                work.aim([int(tid) for tid in word["aim"]])
                say(ready=True)
            if "stop" in word:
                bursts = work.stop()
                stopped = True
                say(log=to_plain(plain_log(bursts)))
                return
    finally:
        if not stopped:
            work.stop()


def main() -> int:
    die_with_parent()
    lines = Lines(0)
    try:
        order = read_order(lines.next(time.monotonic() + _ORDER_WITHIN_S) or b"")
        serve(order, lines)
    except WorkshopError as refusal:
        say(refused=refusal.message, advice=refusal.advice)
        return 2
    except (ValueError, TypeError, KeyError) as error:
        print(error, file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
