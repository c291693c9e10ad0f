"""Interrupts, workqueues and packet steering on a real kernel: counts follow a move, managed interrupts refuse."""

from __future__ import annotations

import pytest

from tests.lab import placing
from tests.lab.machine import Machine
from tests.lab.placing import do

pytestmark = pytest.mark.lab

WQ = "/sys/devices/virtual/workqueue"


def counts(name: str) -> list[int]:
    """(In the guest) arrivals per CPU of the interrupt whose line ends with this name."""
    with open("/proc/interrupts") as file:
        cpus = len(file.readline().split())
        for line in file:
            fields = line.split()
            if fields[-1] == name:
                return [int(field) for field in fields[1 : cpus + 1]]
    raise LookupError(name)


def test_interrupts_leave_the_hot_cpus_and_come_back(lab: Machine) -> None:
    # Every message of the harness is an interrupt of the virtio port.
    port = next(name for name in lab.read("/proc/interrupts").split() if name.endswith("-virtqueues"))
    with lab.unchanged():
        state, reason = do(lab, placing.assess, "0,2-3", ["irq-affinity"])["irq-affinity"]
        assert state == "improve", reason
        made = do(lab, placing.apply, "0,2-3", ["irq-affinity=all"])
        assert all(change["same"] for change in made["changes"])
        before = lab.call(counts, port)
        for _ in range(10):
            lab.read("/proc/uptime")
        grown = [new - old for new, old in zip(lab.call(counts, port), before, strict=True)]
        assert grown[1] >= 10
        assert sum(grown) == grown[1]
        assert lab.read("/proc/irq/default_smp_affinity").lstrip("0,") == "2"

        # Managed interrupts, and the timer's, refuse, whatever they are called; all that was foretold has come true.
        assert all("EIO" in why or "EPERM" in why for why in made["refused"].values()), made["refused"]
        names = lab.read("/proc/interrupts")
        refused = [path.split("/")[3] for path in made["refused"]]
        described = [line.split()[-1] for n in refused for line in names.splitlines() if line.split()[0] == f"{n}:"]
        assert {"timer", "nvme0q1"} <= set(described)
        state, reason = do(lab, placing.assess, "0,2-3", ["irq-affinity"])["irq-affinity"]
        assert (state, f"{len(refused)} cannot be moved" in reason) == ("ok", True), (reason, described)
        assert do(lab, placing.undo, made["changes"]) == []


def test_workqueues_leave_the_hot_cpus_and_come_back(lab: Machine) -> None:
    with lab.unchanged():
        made = do(lab, placing.apply, "2-3", ["workqueue-mask"])
        assert made["refused"] == {}
        assert lab.read(f"{WQ}/cpumask").lstrip("0,") == "3"
        assert lab.read(f"{WQ}/writeback/cpumask").lstrip("0,") == "3"
        assert do(lab, placing.assess, "2-3", ["workqueue-mask"])["workqueue-mask"][0] == "ok"
        assert do(lab, placing.undo, made["changes"]) == []


def test_packets_are_steered_off_the_hot_cpus(lab: Machine) -> None:
    card = next((name for name in lab.list_dir("/sys/class/net") if name != "lo"), None)
    if card is None:
        pytest.skip("the lab machine shows no network card")
    queue = f"/sys/class/net/{card}/queues/rx-0/rps_cpus"
    with lab.unchanged():
        before = lab.read(queue)
        lab.write(queue, "c")
        made = do(lab, placing.apply, "3", ["rps-xps"])
        assert made["refused"] == {}
        # CPU 2 shares a core with the hot one.
        assert lab.read(queue) == "3"
        assert do(lab, placing.undo, made["changes"]) == []
        assert lab.read(queue) == "c"
        lab.write(queue, before)


def test_reports_speak_of_this_host(lab: Machine) -> None:
    said = do(lab, placing.assess, "3", ["user-tasks", "napi", "network-card", "irqbalance"])
    assert said["irqbalance"][0] == "ok"
    assert said["user-tasks"][0] == "info"
    # CPU 2 is the sibling of CPU 3, so it has to be free, too.
    assert "processes may run on CPU 2-3" in said["user-tasks"][1]
    assert "ethtool -c" in said["network-card"][1]
