"""In the guest, as root: one stretch of one CPU, traced by the kernel's osnoise tracer and by ours at the same time.

``python -m tests.lab.osnoise_stretch CPU SECONDS NOISE`` prints one JSON object: the text of osnoise's events and the
packed events of ours. The measured thread of both is the kernel's own ``osnoise/CPU``, which does nothing but read its
clock (Documentation/trace/osnoise-tracer.rst). Each has an instance of its own, with the TSC as its clock: the kernel
prints other clocks rounded to microseconds. ``tests.lab.osnoise`` compares them.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jitter_workshop.agent.client import AgentClient, agent_command
from jitter_workshop.bench.native import lib
from jitter_workshop.bench.noisechild import NoiseChild
from jitter_workshop.bench.noiseorder import order_for
from jitter_workshop.model.spec import Placement

TRACEFS = Path("/sys/kernel/tracing")
BUFFER_KB = 8192
LONG_US = 600_000_000
"""The tracer reports, and pauses, at the end of each such time: later than any stretch."""
PATIENCE_S = 30.0


@contextlib.contextmanager
def set_to(values: dict[Path, str]) -> Iterator[None]:
    """Files of the kernel with these values, in this order, and afterwards as they were, the last one first."""
    before: list[tuple[Path, str]] = []
    try:
        for path, value in values.items():
            before.append((path, path.read_text().strip()))
            path.write_text(value)
        yield
    finally:
        for path, value in reversed(before):
            path.write_text(value)


@contextlib.contextmanager
def osnoise(cpu: int) -> Iterator[tuple[Path, int]]:
    """The tracer at work on a CPU, in an instance of its own, and the number of its thread."""
    instance = TRACEFS / f"instances/jw-osnoise-{os.getpid()}"
    instance.mkdir()
    try:
        settings = {
            TRACEFS / "osnoise/cpus": str(cpu),
            TRACEFS / "osnoise/period_us": str(LONG_US),
            TRACEFS / "osnoise/runtime_us": str(LONG_US),
        }
        with set_to(settings):
            (instance / "trace_clock").write_text("x86-tsc")
            (instance / f"per_cpu/cpu{cpu}/buffer_size_kb").write_text(str(BUFFER_KB))
            (instance / "events/osnoise/enable").write_text("1")
            try:
                (instance / "current_tracer").write_text("osnoise")
                yield instance, _thread(f"osnoise/{cpu}")
            finally:
                (instance / "current_tracer").write_text("nop")
    finally:
        instance.rmdir()


def _thread(name: str) -> int:
    """The kernel's thread of this name; it has got its name and its CPU when it shows itself."""
    ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends:
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and (entry / "comm").read_text().strip() == name:
                    return int(entry.name)
    raise SystemExit(f"the kernel did not start {name}")


def _clock() -> tuple[int, int]:
    """The TSC and CLOCK_MONOTONIC at one moment, as near to each other as ten readings allow."""
    best = (1 << 62, 0, 0)
    for _ in range(10):
        first, now, last = _tsc(), time.monotonic_ns(), _tsc()
        best = min(best, (last - first, (first + last) // 2, now))
    return best[1], best[2]


def _tsc() -> int:
    return int(lib.jw_clock_read(lib.JW_CLOCK_TSC))


def _overrun(instance: Path, cpu: int) -> int:
    """Events for which osnoise's own instance had no room."""
    stats = (instance / f"per_cpu/cpu{cpu}/stats").read_text().splitlines()
    counts = ("overrun", "commit overrun", "dropped events")
    return sum(int(line.split(":")[1]) for line in stats if line.split(":")[0] in counts)


def stretch(cpu: int, seconds: float, kind: str) -> dict[str, Any]:
    """Both traces of a stretch beside a noise of the lab's."""
    others = sorted(os.sched_getaffinity(0) - {cpu})
    os.sched_setaffinity(0, others)
    order = order_for(kind, Placement(mode="auto", sampler=cpu), {*others, cpu}, 600)
    with osnoise(cpu) as (instance, pid), AgentClient(agent_command()) as agent:
        info = agent.evidence_begin(pid, [pid], str(cpu), "x86-tsc", False)
        with NoiseChild(order) as noise:
            (instance / "trace").write_text("")  # empties it; to switch it off would end the tracer's thread
            agent.evidence_start()
            start = _clock()
            time.sleep(seconds)  # the stretch itself
            end = _clock()
            told = agent.evidence_read()
            (instance / "tracing_on").write_text("0")
            bursts = noise.finish()
        agent.evidence_end()
        return {
            "kernel": os.uname().release,
            "noise": kind,
            "bursts": bursts.count,
            "cpu": cpu,
            "thread": pid,
            "start": start,
            "end": end,
            "missing": info.missing,
            "lost": told.lost,
            "strings": told.strings,
            "events": base64.b64encode(told.events).decode(),
            "osnoise_lost": _overrun(instance, cpu),
            "osnoise": (instance / "trace").read_text(),
        }


if __name__ == "__main__":
    json.dump(stretch(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]), sys.stdout)
