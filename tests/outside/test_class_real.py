"""A real agent and real users on this machine: behind its socket as systemd starts it, and by sudo. See realclass."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.agent.turns.turn_cgroup import LOGINS, TURN
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.cpusets import find_cpusets
from tests import realclass
from tests.realclass import STRANGER, STUDENTS, TEACHER, RealClass, group_of, running, until

pytestmark = pytest.mark.skipif(bool(realclass.missing()), reason=realclass.missing() or "-")

SETTING = Path("/proc/sys/vm/stat_interval")
WAYS = {"socket": "systemd-socket-activate", "sudo": "sudo"}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    if shutil.which(WAYS[request.param], path="/usr/sbin:/usr/bin:/sbin:/bin") is None:
        pytest.skip(f"{WAYS[request.param]} is not here")
    return str(request.param)


@pytest.fixture
def real(tmp_path: Path, way: str) -> Iterator[RealClass]:
    before = SETTING.read_text()
    made = RealClass(tmp_path / "over")
    try:
        made.listen() if way == "socket" else made.let_by_sudo()
        yield made
    finally:
        left = made.close()
        found = SETTING.read_text()
        if found != before:
            SETTING.write_text(before)
    assert (left, found) == ("", before)


def has_cpusets() -> bool:
    return find_cpusets(HostRoot()) is not None


def turn_folder() -> Path:
    sets = find_cpusets(HostRoot())
    assert sets is not None
    return Path(sets.where) / TURN


def logged(real: RealClass, name: str) -> list[Any]:
    return [json.loads(line) for line in real.read(f"/var/lib/jitter-workshop/{name}.jsonl").splitlines()]


def test_a_turn_of_real_users(real: RealClass) -> None:
    """Taken, used, ended by a kill of who had it, and the next one's."""
    before = SETTING.read_text()
    grace, alan = (real.person(user) for user in STUDENTS)
    taken = grace.does("take", wait_s=30)
    assert taken["number"] == 1
    child = grace.does("child", command=["/bin/sleep", "600"])["pid"]
    if has_cpusets():
        assert taken["group"] == ""
        assert (group_of(grace.process.pid), group_of(child)) == (f"/{TURN}", f"/{TURN}")
    assert grace.does("apply", wanted=["stat-interval"], cpus=real.hot)["applied"] == [str(SETTING)]
    assert SETTING.read_text() != before
    alan.asks("take", wait_s=60)
    if has_cpusets():
        until(lambda: group_of(alan.process.pid) == f"/{LOGINS}")
        assert os.sched_getaffinity(alan.process.pid) == set(real.housekeeping)
    grace.kill()
    assert alan.hears() == {"number": 2, "group": taken["group"]}
    assert SETTING.read_text() == before
    if has_cpusets():
        until(lambda: not running(child))
        assert group_of(alan.process.pid) == f"/{TURN}"
    assert alan.does("turn", do="give") == {}
    if has_cpusets():
        assert group_of(alan.process.pid) == f"/{LOGINS}"
        assert not turn_folder().exists()
    for name, what in (("turns", "turn began"), ("audit", "applied")):
        found = [(one["what"], one["user"]) for one in logged(real, name)]
        assert found[0] == (what, STUDENTS[0])
        assert {user for _, user in found} <= {*STUDENTS, "root"}


def test_a_login_during_a_turn_is_confined_too(real: RealClass) -> None:
    if not has_cpusets():
        pytest.skip("this host has no control groups with the cpuset controller")
    grace = real.person(STUDENTS[0])
    assert grace.does("take", wait_s=30)["number"] == 1
    late = real.person(STUDENTS[1])
    until(lambda: group_of(late.process.pid) == f"/{LOGINS}")


def test_processes_that_fork_without_end_are_ended_with_the_turn(real: RealClass) -> None:
    """At most 60 at a time, each of which starts another for 20 seconds at most."""
    if not has_cpusets():
        pytest.skip("this host has no control groups with the cpuset controller")
    code = (
        "import os, resource, signal; resource.setrlimit(resource.RLIMIT_NPROC, (60, 60))\n"
        "while True:\n"
        "    try: os.fork()\n"
        "    except OSError: pass\n"
        "    signal.alarm(20)\n"
    )
    grace, ada = real.person(STUDENTS[0]), real.person(TEACHER)
    assert grace.does("take", wait_s=30)["number"] == 1
    grace.does("child", command=[realclass.python(), "-c", code])
    procs = turn_folder() / "cgroup.procs"
    until(lambda: len(procs.read_text().split()) > 30)
    assert ada.does("turn", do="end") == {}
    until(lambda: not procs.exists())
    state = json.loads(real.read("/run/jitter-workshop/turns.json"))
    assert state["trouble"] == ""


def test_a_user_cannot_become_another_user(real: RealClass, way: str) -> None:
    """By the environment, that is; a stranger is not heard at all."""
    forged = real.person(STUDENTS[0], SUDO_UID="0", SUDO_USER="root", PKEXEC_UID="0", LISTEN_FDS="1", USER=TEACHER)
    assert "instructor" in forged.does("turn", do="freeze")["error"]
    assert real.person(TEACHER).does("turn", do="freeze") == {}
    assert real.person(STRANGER).does("turn", do="thaw")["error"]
    if way == "socket":
        real.run("chmod", "666", realclass.SOCKET)
        assert "is not in the group" in real.person(STRANGER).does("turn", do="thaw")["error"]
    assert json.loads(real.read("/run/jitter-workshop/turns.json"))["frozen_by"] == TEACHER


def test_root_instructs_however_they_became_it(real: RealClass) -> None:
    code = (
        f"import sys; sys.path.append({realclass.LIB!r}); from jitter_workshop.agent.client import connect_to_agent\n"
    )
    code += "agent = connect_to_agent(); agent.turn('freeze'); agent.close()"
    uid = real.run("id", "-u", STRANGER).stdout.strip()
    words = ("env", f"SUDO_UID={uid}", f"SUDO_USER={STRANGER}", realclass.python() or "", "-I", "-S", "-B", "-c", code)
    done = real.run(*words, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(real.read("/run/jitter-workshop/turns.json"))["frozen_by"] == "root"


def test_the_helper_takes_no_words_and_no_files(real: RealClass, way: str, tmp_path: Path) -> None:
    if way != "sudo":
        pytest.skip("of the helper")
    student = real.as_user(STUDENTS[0])
    for words in (("--sweep",), ("--listen",), ("--listen", "x")):
        done = subprocess.run(
            (*student, "sudo", "-n", *real.command(*words)), capture_output=True, text=True, check=False
        )
        assert done.returncode != 0
        assert "jitter-workshop agent" not in done.stderr  # sudo does not start it
    answers = tmp_path / "answers"
    with answers.open("wb") as out:
        done = subprocess.run(
            (*student, "sudo", "-n", *real.command()),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 2
    assert b"a pipe or a socket" in done.stderr
    assert answers.read_bytes() == b""
