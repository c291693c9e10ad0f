"""Measure what each event of the kernel's trace costs a hand-off (as root, with tracefs).

Two threads on one CPU hand over 100,000 messages a second; each wakes the other one by a futex (``handoffs paced``).
The median transit with a set of events enabled is compared with that of the same program without any. The sets run in
random order, in rounds. The last one is what ``explain`` records of a program.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
from pathlib import Path

from jitter_workshop.agent.tracing import plan
from jitter_workshop.agent.tracing.capture import newest_thread
from jitter_workshop.host.root import HostRoot
from tests import livetrace
from tests.bench.figures import Figure, keep, middle
from tests.bench.program import SOURCE

ROUNDS, MESSAGES = 20, "50000"
TRACEFS = "/sys/kernel/tracing"
SWITCH, WAKING, FUTEX = "sched:sched_switch", "sched:sched_waking", "syscalls:sys_enter_futex"
Events = dict[str, str]
"""Event → its filter, "" for none."""


def sets() -> dict[str, tuple[Events, str]]:
    """Return the sets of events, each with the trace's clock."""
    whole = plan.wanted_of_program(HostRoot(), TRACEFS, (os.getpid(),), newest_thread(HostRoot()))
    every = whole.hot | whole.senders
    both = {SWITCH: "", WAKING: ""}
    return {
        "sched_switch": ({SWITCH: ""}, "mono"),
        "sched_waking": ({WAKING: ""}, "mono"),
        "the begin of a futex call that may wait": ({FUTEX: every[FUTEX]}, "mono"),
        "sched_switch and sched_waking": (both, "mono"),
        "sched_switch and sched_waking, clock local": (both, "local"),
        "sched_switch and sched_waking, filters let none through": (
            {SWITCH: "prev_pid == 1", WAKING: "pid == 1"},
            "mono",
        ),
        "sched_switch, sched_waking and the futex call": (both | {FUTEX: every[FUTEX]}, "mono"),
        "all that explain records": (every, "mono"),
    }


class Trace:
    """Hold a trace instance of this benchmark."""

    def __init__(self) -> None:
        self._folder = Path(TRACEFS) / "instances" / f"jw-bench-{os.getpid()}"
        self._folder.mkdir()
        self._enabled: list[str] = []
        self._write("buffer_size_kb", "16384")
        for option in ("overwrite", "norecord-cmd", "norecord-tgid"):
            self._write("trace_options", option)

    def _write(self, file: str, text: str) -> None:
        (self._folder / file).write_text(text)

    def record(self, events: Events, clock: str) -> None:
        self._write("trace_clock", clock)
        for title, only in events.items():
            folder = f"events/{title.replace(':', '/')}"
            self._write(f"{folder}/filter", only or "0")
            self._write(f"{folder}/enable", "1")

    def nothing(self) -> None:
        self._write("events/enable", "0")
        self._write("trace", "")

    def close(self) -> None:
        self.nothing()
        self._folder.rmdir()


def run(folder: Path) -> list[Figure]:
    if why := livetrace.why_not():
        print(f"events: {why}", file=sys.stderr)
        return []
    program = folder.resolve() / "handoffs"
    subprocess.run(["cc", "-O2", "-pthread", "-o", str(program), str(SOURCE)], check=True)

    def transit() -> float:
        done = subprocess.run([program, "paced", MESSAGES], capture_output=True, check=True, text=True, timeout=60)
        return float(done.stderr.split()[1])

    chosen: dict[str, tuple[Events, str]] = {"nothing": ({}, "mono"), **sets()}
    found: dict[str, list[float]] = {name: [] for name in chosen}
    trace = Trace()
    try:
        for _ in range(ROUNDS):
            for name in random.sample(list(chosen), len(chosen)):
                trace.record(*chosen[name])
                found[name].append(transit())
                trace.nothing()
    finally:
        trace.close()
    keep(folder, "events", found)
    figures = []
    for name, values in found.items():
        ratios = [value / plain for value, plain in zip(values, found["nothing"], strict=True)]
        how = f"{statistics.median(values):.0f} ns; {ROUNDS} rounds, {middle(ratios)}"
        figures.append(Figure(f"{name}: transit p50 by a futex", statistics.median(ratios), "×", None, how))
    return figures
