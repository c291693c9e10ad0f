"""A class host on a Debian root whose init is systemd: the units, both sockets, a student's turn, what a killed agent
leaves, where logins may run, and nothing left at the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.classroom import install
from jitter_workshop.errors import HostError
from tests.lab import watched
from tests.lab.machine import PROJECT, Done, Machine

pytestmark = [pytest.mark.lab, pytest.mark.soak]

LIMIT_S = 600.0
LAUNCHER = "/usr/local/bin/jitter-workshop"
GOVERNOR = "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor"
CLASS = """name = "Lab"
hot_cpus = "2-3"
instructors = ["other"]
[may_apply]
students = ["*"]
"""
START = "import sys; sys.path.insert(0, '/root/tool'); from jitter_workshop.cli import main; sys.exit(main())"
COPY = f"""
set -e
mkdir -p /root/tool/jitter_workshop
cd {PROJECT}
tar -cf - --exclude=__pycache__ jitter_workshop | tar -xf - -C /root/tool
tar -cf - --exclude=__pycache__ assets lessons | tar -xf - -C /root/tool/jitter_workshop
cp -r "$1" /root/tool/
"""


def listing() -> dict[str, str]:
    """(In the guest) what lies where a class host leaves something."""
    import os

    found = {}
    for top in ("/etc", "/opt", "/usr/local/bin", "/var/lib", "/run/jitter-workshop"):
        for folder, folders, files in os.walk(top):
            for name in (*folders, *files):
                path = f"{folder}/{name}"
                status = os.lstat(path)
                size = status.st_size if name in files else 0
                # The user database's lock, and its content before its last change, were left by no program of ours.
                if not name.endswith("-") and name != ".pwd.lock":
                    found[path] = f"{status.st_uid}:{status.st_gid} {status.st_mode:o} {size}"
    return found


def login(words: str) -> list[str]:
    """The command that runs a line of the shell as a login of the learner's has it: in a scope below ``user.slice``, in
    which the shell stays."""
    become = ["setpriv", "--reuid=learner", "--regid=learner", "--init-groups", "--reset-env", "/bin/sh", "-c"]
    return ["systemd-run", "--quiet", "--scope", "--slice=user-1000.slice", *become, f"{words}\nexit $?"]


def as_student(machine: Machine, words: str) -> Done:
    return machine.run(login(words), timeout_s=LIMIT_S)


def eventually(machine: Machine, what: Callable[[], Any], wanted: Any, limit_s: float = 300.0) -> None:
    ends = time.monotonic() + limit_s
    while (found := what()) != wanted:
        if time.monotonic() > ends:
            said = machine.run(["journalctl", "-b", "--no-pager", "-n", "60"]).stdout
            raise AssertionError(f"{found!r} instead of {wanted!r}\n{said}")
        time.sleep(0.2)


def test_a_class_on_systemd(lab_factory: Callable[..., Machine]) -> None:
    try:
        python = install.interpreter()
    except HostError as error:
        pytest.skip(f"no interpreter that a class host could use: {error.message}")
    described = next(Path(str(install.needed()[0].locate_file(""))).glob("jitter_workshop-*.dist-info"))
    machine = lab_factory(init="systemd")
    assert machine.read("/proc/1/comm") == "systemd"
    machine.run(["sh", "-c", COPY, "sh", str(described)], check=True)
    machine.call(_write, "/root/class.toml", CLASS)
    assert as_student(machine, "true").code == 0  # systemd makes user.slice with the first login, and keeps it
    before, tree = machine.call(listing), machine.watched_tree()
    said = machine.read("/sys/fs/cgroup/cgroup.subtree_control")

    # The tool alone, as install.py has it unpacked; what draws and measures takes minutes to compile in the emulator.
    made = machine.run(
        [python, "-I", "-S", "-c", START, "class", "init", "--yes", "--file", "/root/class.toml"], timeout_s=LIMIT_S
    )
    assert made.code == 0, made.stderr + machine.run(["journalctl", "-b", "--no-pager", "-n", "60"]).stdout
    machine.run(["usermod", "-aG", "jitterlab", "learner"], check=True)
    machine.run(["usermod", "-aG", "jitterlab", "other"], check=True)
    for name in ("agent", "board"):
        socket = f"jitter-workshop-{name}.socket"
        assert machine.run(["systemctl", "is-active", socket]).stdout.strip() == "active"
        assert machine.run(["systemctl", "is-enabled", socket]).stdout.strip() == "enabled"
    checked = machine.run([LAUNCHER, "class", "check"], timeout_s=LIMIT_S)
    assert (checked.code, checked.stdout.strip()) == (0, "everything is as it should be"), (
        checked.stdout + checked.stderr
    )

    # A login keeps to the housekeeping CPUs. The command that has the turn has all of them.
    where = "grep Cpus_allowed_list /proc/self/status"
    take = f"{LAUNCHER} class turn take -- {where}; {where}"
    assert as_student(machine, where).stdout.split()[1] == "0-1"
    turn = as_student(machine, take)
    assert turn.code == 0, turn.stderr
    assert [line.split()[1] for line in turn.stdout.splitlines() if line.startswith("Cpus")] == ["0-3", "0-1"]
    stranger = machine.run(["setpriv", "--reuid=65534", "--clear-groups", LAUNCHER, "class", "turn", "take"])
    assert stranger.code == 2
    assert "Permission denied" in stranger.stderr

    # A student changes something; the agent and all that belongs to it is killed; the service gives it back.
    was = machine.read(GOVERNOR)
    wanted = "powersave" if was == "performance" else "performance"
    holding = machine.start(login(f"{LAUNCHER} apply governor={wanted} --yes --hold"))
    eventually(machine, lambda: holding.code is not None or machine.read(GOVERNOR) == wanted, True)
    assert holding.code is None, (holding.stdout, holding.stderr)
    machine.run(["systemctl", "kill", "--kill-who=all", "-s", "KILL", "jitter-workshop-agent.service"], check=True)
    eventually(machine, lambda: machine.read(GOVERNOR), was)
    holding.signal(2)
    holding.wait(LIMIT_S)
    eventually(machine, lambda: machine.run([LAUNCHER, "class", "turn", "--json"]).json()["holder"], None)
    again = as_student(machine, take)
    assert again.code == 0, again.stderr

    gone = machine.run([LAUNCHER, "class", "remove", "--yes"], timeout_s=LIMIT_S)
    assert (gone.code, gone.stdout.strip()) == (0, "nothing is left"), gone.stdout + gone.stderr
    after = machine.call(listing)
    other = {path for path in before.keys() | after if before.get(path) != after.get(path)}
    assert {path: (before.get(path), after.get(path)) for path in other} == {}
    assert as_student(machine, where).stdout.split()[1] == "0-3"
    assert machine.run(["systemctl", "list-units", "--all", "--no-legend", "jitter-workshop*"]).stdout == ""
    assert watched.differences(tree, machine.watched_tree()) == []
    assert set(said.split()) <= set(machine.read("/sys/fs/cgroup/cgroup.subtree_control").split())


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
