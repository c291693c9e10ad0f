"""Isolation and kernel threads on a real kernel: the partition holds, is refused where others have the CPUs, and is
given back; narrowed affinities survive it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator

import pytest

from tests.lab import placing
from tests.lab.machine import PROJECT, Guest, Machine
from tests.lab.placing import do

pytestmark = pytest.mark.lab

TOP = "/sys/fs/cgroup"
OWN = f"{TOP}/jitter-workshop"
V1 = "/sys/fs/cgroup/cpuset"


def pinned(machine: Machine, cpus: str) -> Guest:
    """A waiting task that may use only these CPUs."""
    source = f"{inspect.getsource(placing.pinned)}\npinned({cpus!r})\n"
    guest = machine.start([machine.python, "-I", "-S", "-c", source])
    guest.wait_for(b"pinned")
    return guest


@pytest.fixture
def tasks(lab: Machine) -> Iterator[dict[str, Guest]]:
    """Waiting tasks on a hot CPU, on a housekeeping CPU, and on both."""
    guests = {cpus: pinned(lab, cpus) for cpus in ("3", "1", "0,3")}
    yield guests
    for guest in guests.values():
        guest.signal(9)
        guest.wait()


def test_a_partition_holds_and_is_given_back(lab: Machine, tasks: dict[str, Guest]) -> None:
    with lab.unchanged():
        assert do(lab, placing.assess, "3", ["isolation"])["isolation"][0] == "improve"
        made = do(lab, placing.apply, "3", ["isolation"])
        assert made["refused"] == {}
        assert all(change["same"] for change in made["changes"]), made
        assert lab.read(f"{OWN}/cpuset.cpus.partition") == "isolated"
        # CPU 2 shares a core with the hot one, so it is isolated, too.
        assert lab.read(f"{OWN}/cpuset.cpus.effective") == "2-3"
        assert lab.read(f"{TOP}/cpuset.cpus.effective") == "0-1"
        assert do(lab, placing.assess, "3", ["isolation"])["isolation"][0] == "ok"
        assert do(lab, placing.apply, "3", ["isolation"])["changes"] == []
        # This kernel overwrites every affinity when a partition is made; the limits are back all the same.
        assert do(lab, placing.affinity, tasks["1"].pid) == [1]
        assert do(lab, placing.affinity, tasks["0,3"].pid) == [0]
        assert do(lab, placing.affinity, tasks["3"].pid) == [0, 1]
        assert do(lab, placing.undo, made["changes"]) == []
        assert {cpus: do(lab, placing.affinity, guest.pid) for cpus, guest in tasks.items()} == {
            "3": [3],
            "1": [1],
            "0,3": [0, 3],
        }


def test_a_task_inside_goes_back_to_the_top(lab: Machine) -> None:
    with lab.unchanged():
        made = do(lab, placing.apply, "2-3", ["isolation"])
        guest = lab.start(["sleep", "1000"])
        lab.write(f"{OWN}/cgroup.procs", str(guest.pid))
        assert do(lab, placing.affinity, guest.pid) == [2, 3]
        assert do(lab, placing.undo, made["changes"]) == []
        assert lab.read(f"/proc/{guest.pid}/cgroup") == "0::/"
        assert do(lab, placing.affinity, guest.pid) == [0, 1, 2, 3]
        guest.signal(9)
        guest.wait()


def test_an_overlapping_sibling_is_in_the_way(lab: Machine) -> None:
    with lab.unchanged():
        lab.write(f"{TOP}/cgroup.subtree_control", "+cpuset")
        lab.run(["mkdir", f"{TOP}/other"], check=True)
        lab.write(f"{TOP}/other/cpuset.cpus", "2-3")
        state, reason = do(lab, placing.assess, "3", ["isolation"])["isolation"]
        assert state == "unavailable"
        assert "'other' also lists CPU 2-3" in reason
        assert "isolation" in do(lab, placing.apply, "3", ["isolation"])["skipped"]
        lab.run(["rmdir", f"{TOP}/other"], check=True)
        lab.write(f"{TOP}/cgroup.subtree_control", "-cpuset")


def overlapping(project: str, top: str) -> list[str]:
    """(In the guest) what the kernel's own answer makes of a partition whose sibling came after the plan."""
    import os
    import sys

    sys.path.insert(0, project)
    from jitter_workshop.host.root import HostRoot
    from jitter_workshop.tuning.setting_types.kinds import kind_of
    from jitter_workshop.tuning.writer import HostWriter

    kind, writer, path = kind_of("partition"), HostWriter(), f"{top}/jitter-workshop/cpuset.cpus.partition"
    kind_of("controllers").write(writer, f"{top}/cgroup.subtree_control", "cpuset")
    kind_of("cgroup").write(writer, f"{top}/jitter-workshop", "present")
    kind_of("cpu-list").write(writer, f"{top}/jitter-workshop/cpuset.cpus", "3")
    os.mkdir(f"{top}/late")
    writer.write(f"{top}/late/cpuset.cpus", "2-3")
    said = "nothing"
    try:
        kind.write(writer, path, "isolated")
    except OSError as error:
        said = str(error)
    found = kind.read(HostRoot(), path).text or ""
    kind.write(writer, path, "member")
    kind_of("cgroup").write(writer, f"{top}/jitter-workshop", "absent")
    os.rmdir(f"{top}/late")
    kind_of("controllers").write(writer, f"{top}/cgroup.subtree_control", "")
    return [found, said, str(kind.halfway(found, "isolated"))]


def test_an_invalid_partition_is_refused_with_the_kernels_reason(lab: Machine) -> None:
    with lab.unchanged():
        found, reason, halfway = lab.call(overlapping, PROJECT, TOP)
        assert found.startswith("isolated invalid")
        assert "not exclusive" in reason
        assert halfway == "True"


def test_kernel_threads_are_moved_and_given_back(lab: Machine) -> None:
    with lab.unchanged():
        made = do(lab, placing.apply, "2-3", ["kernel-threads"])
        assert made["refused"] == {}
        assert len(made["changes"]) > 5
        assert {change["found"] for change in made["changes"]} == {"0-1"}
        assert do(lab, placing.assess, "2-3", ["kernel-threads"])["kernel-threads"][0] == "ok"
        assert do(lab, placing.undo, made["changes"]) == []


def test_threads_moved_first_are_still_given_back_after_a_partition(lab: Machine) -> None:
    with lab.unchanged():
        threads = do(lab, placing.apply, "3", ["kernel-threads"])
        partition = do(lab, placing.apply, "3", ["isolation"])
        assert partition["refused"] == {}
        assert do(lab, placing.undo, partition["changes"]) == []
        assert do(lab, placing.undo, threads["changes"]) == []


@pytest.mark.soak
def test_version_1_sets_hold_and_are_given_back(lab_factory: Callable[..., Machine]) -> None:
    machine = lab_factory(cgroup="v1")
    limited = pinned(machine, "0,3")
    with machine.unchanged():
        made = do(machine, placing.apply, "3", ["isolation"])
        assert made["refused"] == {}
        assert machine.read(f"{V1}/cpuset.sched_load_balance") == "0"
        assert machine.read(f"{V1}/jitter-workshop-rest/cpuset.cpus") == "0-1"
        assert str(limited.pid) in machine.read(f"{V1}/jitter-workshop-rest/tasks").split()
        assert do(machine, placing.affinity, limited.pid) == [0]
        child = machine.start(["sleep", "1000"])
        assert do(machine, placing.affinity, child.pid) == [0, 1]
        assert do(machine, placing.assess, "3", ["isolation"])["isolation"][0] == "ok"
        assert do(machine, placing.undo, made["changes"]) == []
        assert do(machine, placing.affinity, limited.pid) == [0, 3]
        # Born in the set and in no journal: it went back to the top with the set's end.
        assert do(machine, placing.affinity, child.pid) == [0, 1, 2, 3]
