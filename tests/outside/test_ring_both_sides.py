"""The ring on both sides of this host's isolation: the producer outside, the accumulator on the one isolated CPU. As
root, with control groups of version 1; left out, with the reason, where that is not to be had. All is given back.
No other test may run meanwhile: isolation moves every task off the CPU."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.bench.lock import TURN_VARIABLE
from jitter_workshop.flow.host_ops.host_status import draw_up
from jitter_workshop.flow.measuring.isolated_set import NOTE
from jitter_workshop.host.cpu.topology import read_topology
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.cpusets import find_cpusets
from jitter_workshop.model.change import Wanted
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.journal import read_journals
from tests.ownturn import turn_of

HOT = Path("/sys/fs/cgroup/cpuset/jitter-workshop-hot")
BALANCED = Path("/sys/fs/cgroup/cpuset/cpuset.sched_load_balance")
PATIENCE_S = 60.0
LAST = max(os.sched_getaffinity(0))


def _why_not() -> str:
    if os.geteuid() != 0:
        return "only root may change a host"
    if read_journals(HostRoot()):
        return "something is applied here"
    sets = find_cpusets(HostRoot())
    if sets is None or sets.version != 1:
        return "no cpuset here takes single threads"
    if LAST == 0:
        return "needs two CPUs"
    if read_topology(HostRoot()).siblings_of(CpuSet((LAST,))):
        return "its last CPU has a sibling, which is isolated with it"
    if not draw_up(Path("/"), (Wanted("isolation"),), str(LAST)).plan.changes:
        return "CPUs cannot be isolated here, or are isolated already"
    return ""


pytestmark = pytest.mark.skipif(bool(WHY := _why_not()), reason=WHY or "it can be had")


def start(tmp_path: Path, *words: str) -> subprocess.Popen[bytes]:
    environment = os.environ | {TURN_VARIABLE: turn_of(tmp_path)}
    command = [sys.executable, "-m", "jitter_workshop", *words]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def tell(tmp_path: Path, *words: str) -> str:
    done = start(tmp_path, *words)
    told, said = done.communicate(timeout=PATIENCE_S)
    assert done.returncode == 0, (told, said)
    return told.decode()


@pytest.fixture
def isolated(tmp_path: Path) -> Iterator[None]:
    before = BALANCED.read_text()
    tell(tmp_path, "apply", "isolation", "--cpus", str(LAST), "--yes")
    try:
        yield
    finally:
        tell(tmp_path, "restore", "isolation")
        assert not HOT.exists()
        assert BALANCED.read_text() == before


def measured(tmp_path: Path, *words: str) -> dict[str, Any]:
    run: dict[str, Any] = json.loads(tell(tmp_path, "measure", "--duration", "0.5", "--json", *words))
    return run


def wait_until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.005)


@pytest.mark.parametrize(("workload", "inside"), [("ring", "accumulator"), ("ack", "receiver")])
def test_a_workload_of_two_threads_is_measured_across_the_wall(
    isolated: None, tmp_path: Path, workload: str, inside: str
) -> None:
    run = measured(tmp_path, "--workload", workload)
    assert run["workload"] == workload
    assert run["placement"]["accumulator"] == LAST
    assert run["placement"]["producer"] != LAST
    assert run["placement"]["inside"] == [inside]
    assert NOTE not in run["notes"]
    # Each thread really handled its messages on its own side, in each of them.
    where = {thread["name"]: set(thread["messages_by_cpu"]) for thread in run["threads"]}
    assert where.pop(inside) == {str(LAST)}
    assert all(str(LAST) not in cpus for cpus in where.values())


def test_the_ring_compares_the_clocks_of_both_sides(isolated: None, tmp_path: Path) -> None:
    clock = measured(tmp_path)["clock"]
    assert clock["offset_ns"] is not None
    assert clock["offset_bound_ns"] >= 0


def test_a_killed_run_leaves_no_thread_in_the_set(isolated: None, tmp_path: Path) -> None:
    run = start(tmp_path, "measure", "--duration", "30", "--json")
    try:
        wait_until(lambda: len((HOT / "tasks").read_text().split()) == 1)
        (tid,) = (HOT / "tasks").read_text().split()
        assert f"\nTgid:\t{tid}\n" not in Path(f"/proc/{tid}/status").read_text()  # a thread, and not its process
    finally:
        run.send_signal(signal.SIGKILL)
        run.communicate()
    wait_until(lambda: not (HOT / "tasks").read_text().split())
