"""The agent on a real kernel: everything applied and given back, killed between its steps, cut from power, without
rights."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from jitter_workshop.practice.qemu import PowerLost
from tests.lab.machine import Machine
from tests.lab.test_lab_boot import DROPINS, settings

pytestmark = pytest.mark.lab

STATE = "/var/lib/jitter-workshop"
HOT = "2-3"


def kill(machine: Machine, cpus: str, points: int, *words: str, timeout_s: float = 900) -> dict[str, Any]:
    """``tests.lab.killing`` in the guest."""
    done = machine.run(
        [machine.python, "-m", "tests.lab.killing", cpus, str(points), *words], check=True, timeout_s=timeout_s
    )
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_everything_is_applied_and_given_back(lab: Machine) -> None:
    with lab.unchanged():
        shown = lab.workshop("plan", "--cpus", HOT, "--json", check=True).json()
        words = list(dict.fromkeys(change["tunable"] for change in shown["changes"]))
        assert {"governor", "idle-states", "irq-affinity", "workqueue-mask", "isolation"} <= set(words)
        done = lab.workshop("apply", *words, "--cpus", HOT, "--yes", "--json")
        assert done.code in (0, 1), done.stderr
        said = done.json()
        assert len(said["applied"]) >= 20
        # A write that the kernel refuses is told with its reason, and the rest is done.
        assert all(one["reason"] and one["path"] for one in said["refused"])
        assert done.code == (1 if said["refused"] else 0)
        assert lab.read("/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor") == "performance"
        # A learner without rights sees what is applied.
        listed = lab.workshop("restore", "--list", "--json", user="learner", check=True).json()
        assert len(listed["active"]) >= len(said["applied"])
        back = lab.workshop("restore", "--json")
        assert back.code == 0, back.stdout
        assert lab.workshop("restore", "--json", check=True).json()["restored"] == []


def test_a_kill_at_fifty_points_loses_nothing(lab: Machine) -> None:
    with lab.unchanged():
        told = kill(lab, HOT, 52)
        assert told["wrong"] == []
    assert told["moments"] >= 50
    assert told["killed"] >= 45, told


@pytest.mark.soak
@pytest.mark.parametrize("words", [(), ("hotplug",), ("smt=off",)])
def test_a_kill_at_every_point_loses_nothing(lab: Machine, words: tuple[str, ...]) -> None:
    with lab.unchanged():
        told = kill(lab, HOT, 0, *words, timeout_s=3000)
        assert told["wrong"] == []
    assert told["killed"] > 0


def test_without_rights_it_is_one_sentence(lab: Machine) -> None:
    with lab.unchanged():
        done = lab.workshop("apply", "governor", "--cpus", HOT, "--yes", "--json", user="learner")
        assert (done.code, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
        assert "needs root's rights" in done.stderr or "sudo" in done.stderr


def test_a_restricted_rule_needs_roots_own_tree(lab: Machine) -> None:
    """A learner who may run only the agent, from a tree that somebody else may write, is refused with the reason; one
    who may run anything is told whose code it is."""
    if lab.run(["sh", "-c", "command -v sudo"]).code:
        pytest.skip("sudo is not on this host, so it is not in the guest")
    copy = "rm -rf /srv/open; mkdir -p /srv/open; cp -r jitter_workshop /srv/open/; chmod -R a+w /srv/open"
    lab.run(["sh", "-c", copy], check=True)
    agent = f"{lab.python} -I -S -B /srv/open/jitter_workshop/agent/__main__.py"
    rule = f"learner ALL=(root) NOPASSWD: {agent}\n"
    lab.run(["sh", "-c", "cat > /etc/sudoers.d/lab; chmod 440 /etc/sudoers.d/lab"], stdin=rule.encode(), check=True)
    try:
        done = lab.run(["sudo", "-n", *agent.split()], user="learner", stdin=b'{"id":1,"verb":"hello"}\n')
        assert (done.code, done.stdout) == (2, ""), done
        assert "will not run as root from" in done.stderr
        assert "others" in done.stderr or "belongs to user" in done.stderr
        everything = b"learner ALL=(ALL) NOPASSWD: ALL\n"
        lab.run(["sh", "-c", "cat > /etc/sudoers.d/lab"], stdin=everything, check=True)
        done = lab.run(["sudo", "-n", *agent.split()], user="learner", stdin=b'{"id":1,"verb":"hello"}\n', check=True)
        assert "runs as root from /srv/open" in done.json()["ok"]["notice"]
    finally:
        lab.run(["rm", "-rf", "/etc/sudoers.d/lab", "/srv/open"])


def test_a_lease_ends_when_its_holder_is_killed(lab: Machine) -> None:
    with lab.unchanged():
        held = lab.start([lab.python, "-m", "jitter_workshop", "apply", "governor", "--cpus", HOT, "--yes", "--hold"])
        held.wait_for(b"Applied")
        assert lab.read("/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor") == "performance"
        held.signal(9)
        held.wait()
        gone = f"for i in $(seq 100); do ls {STATE}/journal/*.jsonl >/dev/null 2>&1 || exit 0; sleep 0.2; done; exit 1"
        lab.run(["sh", "-c", gone], check=True)


def test_power_cut_in_the_middle(lab_factory: Callable[..., Machine]) -> None:
    """The power goes right after a boot parameter's file was put in place. At the next boot the run-time entries are
    void and the files are taken away again."""
    machine = lab_factory(disk=True)
    machine.call(settings)
    governor = "/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor"
    was = machine.read(governor)
    words = ("governor=performance", "stat-interval", "isolcpus", "nohz-full")
    with pytest.raises(PowerLost):
        machine.run([machine.python, "-m", "tests.lab.killing", HOT, "replace", *words])
    machine.boot()
    assert machine.read(governor) == was
    ours = [name for name in machine.list_dir(DROPINS) if "jitter-workshop" in name]
    assert len(ours) == 1
    listed = machine.workshop("restore", "--list", "--json", check=True).json()
    # The other one was announced, and the power went before its write.
    assert [(one["tunable"], one["state"]) for one in listed["active"]] == [
        ("isolcpus", "intent"),
        ("nohz-full", "intent"),
    ]
    back = machine.workshop("restore", "--json").json()
    assert {one["tunable"] for one in back["restored"]} <= {"isolcpus"}
    # The test does not try to make GRUB's menu anew. If this cannot be done in here, that alone is told.
    assert {one["path"] for one in back["left_alone"]} <= {"update-grub"}
    assert [name for name in machine.list_dir(DROPINS) if "jitter-workshop" in name] == []
    assert machine.read(governor) == was
