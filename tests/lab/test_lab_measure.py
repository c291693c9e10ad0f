"""Measuring on isolated CPUs of a real kernel: where the threads ran. Latencies in an emulator mean nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from jitter_workshop.classroom import install
from jitter_workshop.errors import HostError
from jitter_workshop.flow.measuring.isolated_set import not_used
from jitter_workshop.practice.shape import Hardware, Shape
from tests.lab.machine import PROJECT, Machine

pytestmark = [pytest.mark.lab, pytest.mark.soak]

HOT = "2-3"
PATIENCE_S = 120.0
# Reading an emulated clock may take microseconds, which no threshold or interval may be near to.
SPIN = ("--workload", "spin", "--threshold-us", "1000")
RING = ("--workload", "ring", "--interval-us", "100")
NOT_USED = not_used("")


def measured(machine: Machine, *words: str, user: str = "root") -> dict[str, Any]:
    """A run of one second in the guest."""
    done = machine.workshop("measure", "--duration", "1", "--json", *words, user=user, check=True)
    run: dict[str, Any] = done.json()
    assert run["complete"], run["notes"]
    return run


def ran_on(run: dict[str, Any]) -> set[int]:
    return {cpu for thread in run["threads"] for cpu in thread["cpus"]}


def check_on_isolated_cpus(machine: Machine) -> None:
    with machine.unchanged():
        machine.workshop("apply", "isolation", "--cpus", HOT, "--yes", "--json", check=True)
        try:
            spin = measured(machine, *SPIN)
            ring = measured(machine, *RING)
            free = measured(machine, *SPIN, "--placement", "none")
            learners = measured(machine, *SPIN, user="learner")
        finally:
            machine.workshop("restore", "--json", check=True)
    for inside in (spin, ring):
        assert "isolation" not in inside["notes"]
        assert "isolated from the scheduler" in inside["placement"]["why"]
    assert len(ran_on(spin)) == 1
    assert ran_on(spin) <= {2, 3}
    assert ran_on(ring) == {2, 3}
    # A run that stays outside has the other CPUs, and says so.
    for outside in (free, learners):
        assert ran_on(outside) <= {0, 1}
        assert outside["notes"]["isolation"].startswith(NOT_USED)
    assert [one["id"] for one in spin["applied"]] == ["isolation"]
    assert "isolation" not in measured(machine, *SPIN)["notes"]


def test_a_run_is_made_on_the_isolated_cpus(lab: Machine) -> None:
    check_on_isolated_cpus(lab)


def test_a_run_is_made_in_a_set_of_version_1(lab_factory: Callable[..., Machine]) -> None:
    check_on_isolated_cpus(lab_factory(cgroup="v1"))


def check_divided(ring: dict[str, Any], cpu: int, processes: int) -> None:
    """The accumulator was on the isolated CPU and the producer outside, in so many processes."""
    assert ring["workload"] == "ring"
    assert "isolation" not in ring["notes"]
    assert (ring["placement"]["inside"], ring["placement"]["processes"]) == (["accumulator"], processes)
    assert ring["clock"]["offset_ns"] is not None
    where = {thread["name"]: set(thread["cpus"]) for thread in ring["threads"]}
    assert where.pop("accumulator") == {cpu}
    assert where["producer"] == {ring["placement"]["producer"]}
    assert all(cpu not in cpus for cpus in where.values())


def check_on_both_sides(machine: Machine, processes: int) -> None:
    """With one CPU isolated and its sibling offline, the ring has its accumulator there and its producer outside,
    before and after a whole process was inside."""
    with machine.unchanged():
        machine.workshop("apply", "smt", "isolation", "--cpus", "3", "--yes", "--json", check=True)
        try:
            runs = [measured(machine, *RING), measured(machine, *SPIN), measured(machine, *RING)]
        finally:
            machine.workshop("restore", "--json", check=True)
    assert ran_on(runs[1]) == {3}
    for ring in (runs[0], runs[2]):
        check_divided(ring, 3, processes)


def test_a_ring_is_on_both_sides_of_a_partition(lab: Machine) -> None:
    check_on_both_sides(lab, 2)


def test_a_ring_is_on_both_sides_of_a_set_of_version_1(lab_factory: Callable[..., Machine]) -> None:
    check_on_both_sides(lab_factory(cgroup="v1"), 1)


def test_a_real_time_accumulator_is_alone_in_a_partition(lab: Machine) -> None:
    with lab.unchanged():
        lab.workshop("apply", "isolation", "--cpus", HOT, "--yes", "--json", check=True)
        try:
            ring = measured(lab, *RING, "--producer-cpu", "0", "--no-journaller", "--sched", "fifo:10")
        finally:
            lab.workshop("restore", "--json", check=True)
    assert ring["sched"] == "fifo:10"
    check_divided(ring, ring["placement"]["accumulator"], 2)
    assert ring["placement"]["accumulator"] in (2, 3)


def wait_until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.2)


TWO = Shape("two", "Two cores without siblings.", hardware=Hardware(cores=2, threads=1))
SET = "/sys/fs/cgroup/jitter-workshop/cgroup.procs"


def test_the_workload_is_the_same_before_and_after_the_isolation_of_one_cpu_of_two(
    lab_shape: Callable[..., Machine],
) -> None:
    machine = lab_shape(TWO)
    with machine.unchanged():
        runs = [measured(machine, *RING)]
        machine.workshop("apply", "isolation", "--cpus", "1", "--yes", "--json", check=True)
        try:
            runs += [measured(machine, *RING), measured(machine, *RING, "--evidence")]
            ack = measured(machine, "--workload", "ack", "--interval-us", "10000")
            # A killed front end leaves nothing on the isolated CPU.
            killed = machine.start([machine.python, "-m", "jitter_workshop", "measure", *RING, "--duration", "600"])
            wait_until(lambda: bool(machine.read(SET)))
            killed.signal(9)
            killed.wait()
            wait_until(lambda: not machine.read(SET))
        finally:
            machine.workshop("restore", "--json", check=True)
        runs.append(measured(machine, *RING))
    assert [(run["workload"], run["placement"]["processes"]) for run in runs] == [("ring", n) for n in (1, 2, 2, 1)]
    for run in runs:
        assert run["placement"]["accumulator"] == 1
        assert all(thread["migrations"] is not None for thread in run["threads"])
    for run in runs[1:3]:
        check_divided(run, 1, 2)
    assert "evidence" not in runs[2]["notes"]
    assert (ack["placement"]["inside"], ack["placement"]["processes"]) == (["receiver"], 2)
    assert {thread["name"]: set(thread["cpus"]) for thread in ack["threads"]} == {"sender": {0}, "receiver": {1}}


CLASS = """name = "Lab"
hot_cpus = "1"
[may_apply]
students = ["*"]
"""


def serve_class(project: str, python: str, rules: str) -> int:
    """(In the guest) make it a class host whose agent listens, from a copy of the tool that only root can change.
    Return the agent's process."""
    import os
    import shutil
    import socket
    import subprocess

    for folder in ("/etc/jitter-workshop", "/run/jitter-workshop"):
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, 0o755)
    shutil.copytree(f"{project}/jitter_workshop", "/root/tool/jitter_workshop", ignore=shutil.ignore_patterns("*.pyc"))
    with open("/etc/group", "a") as file:
        file.write("jitterlab:x:990:learner\n")
    with open("/etc/jitter-workshop/class.toml", "w") as file:
        file.write(rules)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind("/run/jitter-workshop/agent.sock")
    os.chmod("/run/jitter-workshop/agent.sock", 0o666)
    listening.listen(16)
    # As systemd passes a socket on (sd_listen_fds(3)).
    start = "import os, sys; os.dup2(int(sys.argv[1]), 3); os.environ['LISTEN_PID'] = str(os.getpid()); "
    start += "os.execv(sys.argv[2], sys.argv[2:])"
    agent = [python, "-I", "-S", "-B", "/root/tool/jitter_workshop/agent/__main__.py", "--listen"]
    words = [python, "-I", "-S", "-c", start, str(listening.fileno()), *agent]
    files = [listening.fileno()]
    return subprocess.Popen(words, pass_fds=files, env={"LISTEN_FDS": "1"}, start_new_session=True).pid


def test_on_a_class_host_a_student_has_the_same_ring(lab_shape: Callable[..., Machine]) -> None:
    try:
        python = install.interpreter()
    except HostError as error:
        pytest.skip(f"no interpreter that a class host could use: {error.message}")
    machine = lab_shape(TWO)
    machine.call(serve_class, PROJECT, python, CLASS)
    machine.workshop("apply", "isolation", "--cpus", "1", "--yes", "--json", check=True)
    try:
        ring = measured(machine, *RING, user="learner")
    finally:
        machine.workshop("restore", "--json", check=True)
    check_divided(ring, 1, 2)
    assert "jitter-workshop" not in machine.list_dir("/sys/fs/cgroup")
