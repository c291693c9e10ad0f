"""A thief that takes a CPU at known times, and what a watch's journal says of these times."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jitter_workshop.session.watches import read_journal

NAME = "the thief"
_THIEF = """\
import ctypes, os, sys, time
cpu, ms, every, count = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
os.sched_setaffinity(0, {cpu})
ctypes.CDLL(None).prctl(15, b"the thief", 0, 0, 0)
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
for _ in range(count):
    time.sleep(every)
    began = time.monotonic_ns()
    while time.monotonic_ns() < began + ms * 1e6:
        pass
    print(began, time.monotonic_ns(), flush=True)
"""


@contextmanager
def thief(cpu: int, ms: float, every_s: float, count: int) -> Iterator[subprocess.Popen[str]]:
    """A real-time task (root only) that takes ``cpu`` for ``ms``, ``count`` times; its output has the times."""
    words = [sys.executable, "-c", _THIEF, str(cpu), str(ms), str(every_s), str(count)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


def times(told: str) -> list[tuple[int, int]]:
    return [(int(began), int(ended)) for began, ended in (line.split() for line in told.splitlines())]


def missed(folder: Path, planted: list[tuple[int, int]]) -> tuple[list[tuple[int, int]], int]:
    """The planted times within the watch that the journal neither names nor tells to be unwatched, and how many it
    names: a stall at that time, of which the thief took most of its own time."""
    entries = list(read_journal(folder))
    start = next(entry["monotonic_ns"] for entry in entries if entry["kind"] == "begin")
    gaps = [(start + e["at_ns"], start + e["at_ns"] + e["ns"]) for e in entries if e["kind"] == "not_watched"]
    end = start + round(next(entry["watch"]["duration_s"] for entry in entries if entry["kind"] == "end") * 1e9)
    named, lost = 0, []
    for began, ended in planted:
        if not start < began < ended < end:
            continue
        if any(_takes(entry, start, began, ended) for entry in entries if entry["kind"] == "stall"):
            named += 1
        elif not any(low < ended and began < high for low, high in gaps):
            lost.append((began - start, ended - start))
    return lost, named


def _takes(stall: dict[str, Any], start: int, began: int, ended: int) -> bool:
    low = start + stall["at_ns"]
    took = sum(part["ns"] for part in stall["parts"] or () if (part["kind"], part["name"]) == ("task", NAME))
    return bool(low < ended and began < low + stall["duration_ns"] and took > (ended - began) / 2)
