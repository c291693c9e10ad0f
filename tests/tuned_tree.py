"""A made host on which much can be applied: four CPUs with governors, energy preferences, idle states, interrupts,
workqueues and kernel switches; and the agent that works on it."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Plan
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.planning import digest, plan_changes
from jitter_workshop.tuning.tunables.registry import parse_wanted
from tests import agent_on_tree, hosttrees

STATE = "var/lib/jitter-workshop"
HOT = "2-3"
MANY = (
    "governor=performance", "min-frequency", "idle-states", "irq-affinity", "workqueue-mask", "thp", "stat-interval",
    "numa-balancing", "writeback", "rps-xps",
)  # fmt: skip
CPU = hosttrees.CPU


def make(root: Path) -> Path:
    """The tree; every plain file that MANY writes is in it."""
    hosttrees.small(root, 4)
    files: dict[str, str] = {}
    for n in range(4):
        files |= hosttrees.policy(
            n, cpus=str(n), driver="acpi-cpufreq", governor="powersave", low_khz=800_000, high_khz=2_400_000
        )
        for state, latency in ((0, 0), (1, 2), (2, 50), (3, 200)):
            folder = f"{CPU}/cpu{n}/cpuidle/state{state}"
            files |= {
                f"{folder}/name": f"C{state}\n" if state else "POLL\n",
                f"{folder}/latency": f"{latency}\n",
                f"{folder}/residency": f"{3 * latency}\n",
                f"{folder}/disable": "0\n",
            }
    files[f"{CPU}/cpuidle/current_driver"] = "acpi_idle\n"
    files[f"{CPU}/cpuidle/current_governor"] = "menu\n"
    files["proc/irq/default_smp_affinity"] = "f\n"
    for number in (24, 25, 26):
        files |= hosttrees.irq(number, "0-3")
    for name in ("", "writeback/"):
        files[f"sys/devices/virtual/workqueue/{name}cpumask"] = "f\n"
    files |= {
        "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n",
        "sys/kernel/mm/transparent_hugepage/defrag": "always defer defer+madvise [madvise] never\n",
        "proc/sys/vm/stat_interval": "1\n",
        "proc/sys/kernel/numa_balancing": "1\n",
        "proc/sys/vm/dirty_writeback_centisecs": "500\n",
        "proc/sys/vm/dirty_expire_centisecs": "3000\n",
        "proc/sys/vm/dirty_ratio": "20\n",
        "proc/sys/vm/dirty_background_ratio": "10\n",
        "proc/sys/vm/dirty_bytes": "0\n",
        "proc/sys/vm/dirty_background_bytes": "0\n",
    }
    return hosttrees.write(root, files)


def contents(root: Path) -> dict[str, bytes]:
    """Every file and folder but our own state, to be equal before and after."""
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else b"a folder"
        for path in sorted(root.rglob("*"))
        if not str(path.relative_to(root)).startswith("var")
    }


def planned(root: Path, words: Sequence[str] = MANY, hot: str = HOT) -> Plan:
    """Return what would be written there."""
    return plan_changes(Host(HostRoot(root), CpuSet.parse_list(hot)), parse_wanted(words))


class Agent:
    """``tests.agent_on_tree`` in a forked process of its own (no start-up to wait for), spoken to line by line."""

    def __init__(self, root: Path, *options: str) -> None:
        there, source = os.pipe()
        back, sink = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            code = 70
            try:
                # Ends of other agents' pipes, inherited by the fork, would keep those from seeing the end.
                for number in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
                    if number > 2 and number not in (there, sink):
                        with contextlib.suppress(OSError):
                            os.close(number)
                agent_on_tree.main(str(root), *options, source=there, sink=sink)
                code = 0
            finally:
                os._exit(code)
        os.close(there)
        os.close(sink)
        self._to = os.fdopen(source, "wb", buffering=0)
        self._from = os.fdopen(back, "rb")
        self._code: int | None = None
        self._id = 0

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def send(self, line: bytes) -> None:
        self._to.write(line + b"\n")

    def receive(self) -> Any:
        line = self._from.readline()
        return json.loads(line) if line else None

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def ask(self, verb: str, **fields: Any) -> Any:
        """The answer; an error is ``{"error": …}``, None where the agent has died."""
        self._id += 1
        try:
            self.send(json.dumps({"id": self._id, "verb": verb, **fields}).encode())
        except BrokenPipeError:
            return None
        reply = self.receive()
        return reply if reply is None or "error" in reply else reply["ok"]

    def apply(self, drawn: Plan, words: Sequence[str] = MANY, lease: float | None = None, hot: str = HOT) -> Any:
        shown = [digest(change) for change in drawn.changes]
        return self.ask("apply", wanted=list(words), cpus=hot, shown=shown, lease=lease)

    def end(self) -> int:
        """Close its input and wait for its end; -N for signal N."""
        if self._code is None:
            with contextlib.suppress(BrokenPipeError):
                self._to.close()
            self._code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            self._from.close()
        return self._code


def journals(root: Path, where: str = "") -> list[Path]:
    return sorted((root / STATE / "journal" / where).glob("*.jsonl"))
