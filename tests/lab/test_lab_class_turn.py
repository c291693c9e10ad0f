"""The turn's control group on a real hierarchy of version 2, on a host without systemd: who is in it, who is kept off
the hot CPUs, and what is left at the end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.machine import PROJECT, Machine

pytestmark = pytest.mark.lab

LEARNER = 1000


def turn(project: str, learner: int) -> dict[str, object]:
    """(In the guest) a turn of a learner's process while another one of theirs waits, with a real-time priority and a
    child that does not end by itself; and the end."""
    import os
    import subprocess
    import sys

    sys.path.insert(0, project)
    from jitter_workshop.agent import caller_process
    from jitter_workshop.agent.turns.turn_cgroup import LOGINS, TURN, TurnGroup
    from jitter_workshop.host.root import HostRoot
    from jitter_workshop.host.tasks.cpusets import find_cpusets
    from jitter_workshop.model.cpuset import CpuSet
    from jitter_workshop.paths import RUN_DIR
    from jitter_workshop.tuning.writer import HostWriter

    os.makedirs(RUN_DIR, exist_ok=True)
    root, writer = HostRoot(), HostWriter()
    group = TurnGroup(root, writer)
    sets = find_cpusets(root)
    told: dict[str, object] = {"missing": group.missing, "version": sets.version if sets is not None else 0}
    start = "import subprocess, sys; sys.stdin.readline(); print(subprocess.Popen(['sleep', '600']).pid, flush=True); "
    start += "sys.stdin.read()"
    client = subprocess.Popen(
        (sys.executable, "-S", "-c", start),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        user=learner,
        group=learner,
    )
    other = subprocess.Popen(("sleep", "600"), user=learner, group=learner)
    try:
        origin = group.take_in(client.pid, learner)
        client.stdin.write("\n")
        client.stdin.flush()
        child = int(client.stdout.readline())
        moved = group.confine(frozenset({learner}), CpuSet.parse_list("0-1"))
        told["moved"] = moved
        told["groups"] = [group._group_of(pid) for pid in (client.pid, child, other.pid)]
        told["names"] = [f"/{TURN}", f"/{TURN}", f"/{LOGINS}"]
        told["cpus"] = [sorted(os.sched_getaffinity(pid)) for pid in (client.pid, other.pid)]
        caller_process.realtime(root, client.pid, [client.pid], 10, learner)
        told["priority"] = os.sched_getscheduler(client.pid) & ~os.SCHED_RESET_ON_FORK == os.SCHED_FIFO
        told["closed"] = group.close(client.pid, origin, learner)
        told["client"] = [client.poll(), group._group_of(client.pid) == origin, os.sched_getscheduler(client.pid)]
        told["exists"] = group.exists
        state = root.text(f"/proc/{child}/stat")
        told["child"] = "ended" if state is None or ") Z " in state else "runs"
    finally:
        for one in (client, other):
            one.kill()
            one.wait()
        told["released"] = group.close(None, "") or group.release()
        os.rmdir(RUN_DIR)
    return told


def test_a_turn_on_version_2(lab: Machine) -> None:
    with lab.unchanged():
        told: dict[str, Any] = lab.call(turn, PROJECT, LEARNER)
    assert (told["missing"], told["version"]) == ("", 2)
    assert told["groups"] == told["names"]
    assert told["moved"] >= 1
    assert told["cpus"][1] == [0, 1]
    assert {2, 3} <= set(told["cpus"][0])
    assert told["priority"]
    assert told["closed"] == ""
    assert told["client"] == [None, True, 0]
    assert (told["exists"], told["released"], told["child"]) == (False, "", "ended")
