"""Test the control group of a turn on made hierarchies of both versions: which tasks move where, and what is left."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from jitter_workshop.agent.turns.turn_cgroup import LOGINS, TURN, TurnGroup
from jitter_workshop.errors import HostError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.writer import HostWriter

TOP = {1: "/sys/fs/cgroup/cpuset", 2: "/sys/fs/cgroup"}
MOUNTS = {
    1: "30 24 0:26 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n",
    2: "30 24 0:26 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n",
}
FILES = {1: ("cpuset.cpus", "cpuset.mems", "cpuset.sched_load_balance"), 2: ("cpuset.cpus",)}


class Cgroups(HostWriter):
    """A kernel's control groups, as far as they are needed: files appear with a folder, processes are in one group."""

    def __init__(self, tree: Path, version: int) -> None:
        super().__init__(tree)
        self.tree, self.version = tree, version
        self.killed: list[int] = []

    def make_folder(self, path: str) -> None:
        super().make_folder(path)
        for name in (*FILES[self.version], "cgroup.procs", *(("cgroup.kill",) if self.version == 2 else ())):
            (self.tree / path.lstrip("/") / name).write_text("")

    def remove_folder(self, path: str) -> None:
        folder = self.tree / path.lstrip("/")
        if (folder / "cgroup.procs").read_text().split():
            raise OSError(errno.EBUSY, "busy")
        for file in folder.iterdir():
            file.unlink()
        super().remove_folder(path)

    def write(self, path: str, text: str) -> None:
        if path.endswith("/cgroup.procs"):
            self.move(int(text), path.rpartition("/")[0])
        elif path.endswith("/cgroup.kill"):
            self.killed += self.members(path.rpartition("/")[0])
            (self.tree / path.lstrip("/")).with_name("cgroup.procs").write_text("")
        else:
            super().write(path, text)

    def members(self, folder: str) -> list[int]:
        return [int(word) for word in (self.tree / folder.lstrip("/") / "cgroup.procs").read_text().split()]

    def move(self, pid: int, folder: str) -> None:
        for procs in (self.tree / TOP[self.version].lstrip("/")).rglob("cgroup.procs"):
            procs.write_text("".join(f"{word}\n" for word in procs.read_text().split() if word != str(pid)))
        with (self.tree / folder.lstrip("/") / "cgroup.procs").open("a") as out:
            out.write(f"{pid}\n")
        group = folder.removeprefix(TOP[self.version]) or "/"
        line = f"0::{group}\n" if self.version == 2 else f"5:cpuset:{group}\n0::/\n"
        (self.tree / "proc" / str(pid) / "cgroup").write_text(line)


class Host:
    def __init__(self, tree: Path, version: int) -> None:
        self.tree, self.version, self.top = tree, version, TOP[version]
        (tree / "proc/self").mkdir(parents=True)
        (tree / "proc/self/mountinfo").write_text(MOUNTS[version])
        top = tree / self.top.lstrip("/")
        top.mkdir(parents=True)
        for name, text in (("cgroup.procs", ""), ("cpuset.cpus", "0-3\n"), ("cpuset.mems", "0\n")):
            (top / name).write_text(text)
        if version == 2:
            (top / "cgroup.controllers").write_text("cpuset cpu\n")
            (top / "cgroup.subtree_control").write_text("\n")
        self.writer = Cgroups(tree, version)
        self.writer.make_folder(f"{self.top}/user")
        self.group = TurnGroup(HostRoot(tree), self.writer)
        self.processes: list[subprocess.Popen[bytes]] = []

    def process(self, uid: int, folder: str = "/user") -> int:
        one = subprocess.Popen(("/bin/sleep", "600"))
        self.processes.append(one)
        place = self.tree / "proc" / str(one.pid)
        place.mkdir()
        (place / "status").write_text(f"Name:\tsleep\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
        self.writer.move(one.pid, self.top + folder)
        return one.pid

    def where(self, pid: int) -> str:
        return self.group._group_of(pid)

    def close(self) -> None:
        for one in self.processes:
            one.kill()
            one.wait()


@pytest.fixture(params=[1, 2])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path, request.param)
    try:
        yield made
    finally:
        made.close()


def test_a_client_is_taken_in_and_put_back(host: Host) -> None:
    client, other = host.process(1001), host.process(1001)
    origin = host.group.take_in(client, 1001)
    assert (origin, host.where(client), host.where(other)) == ("/user", f"/{TURN}", "/user")
    assert host.group.close(client, origin) == ""
    assert host.where(client) == "/user"
    assert not host.group.exists


def test_a_process_of_another_user_is_not_taken_in(host: Host) -> None:
    client = host.process(1001)
    with pytest.raises(HostError, match="not yours"):
        host.group.take_in(client, 1002)
    assert host.where(client) == "/user"


def test_processes_left_in_the_group_are_ended(host: Host) -> None:
    client, child = host.process(1001), host.process(1001)
    origin = host.group.take_in(client, 1001)
    host.writer.move(child, host.group.folder)
    if host.version == 1:
        # The made hierarchy does not see a process end: without its folder in /proc it is in no group.
        kept = host.group._members
        dead = host.processes[1]

        def members(folder: str) -> tuple[int, ...]:
            return tuple(pid for pid in kept(folder) if pid != child or dead.poll() is None)

        host.group._members = members  # type: ignore[method-assign]
        assert host.group.close(client, origin) != "" or dead.wait() == -9
        assert dead.wait() == -9
    else:
        assert host.group.close(client, origin) == ""
        assert host.writer.killed == [child]
    assert host.where(client) == "/user"


def test_a_client_whose_group_has_gone_goes_to_the_top(host: Host) -> None:
    client = host.process(1001)
    host.group.take_in(client, 1001)
    assert host.group.close(client, "/gone/../../../etc") == ""
    assert host.where(client) in ("/", f"/{LOGINS}")


def test_students_are_confined_and_let_out_again(host: Host) -> None:
    student, teacher, holder = host.process(1001), host.process(1000), host.process(1002)
    host.group.take_in(holder, 1002)
    assert host.group.confine(frozenset({1001, 1002}), CpuSet.parse_list("0-1")) == 1
    assert [host.where(pid) for pid in (student, teacher, holder)] == [f"/{LOGINS}", "/user", f"/{TURN}"]
    assert (host.tree / host.top.lstrip("/") / LOGINS / "cpuset.cpus").read_text() == "0-1"
    assert host.group.confine(frozenset({1001}), CpuSet.parse_list("0-1")) == 0
    assert host.group.release() == ""
    assert host.where(student) == "/"


@pytest.mark.parametrize("used", [False, True])
def test_the_controller_is_switched_off_again_if_it_was_off_and_is_not_used_by_others(host: Host, used: bool) -> None:
    if host.version == 1:
        pytest.skip("of version 2")
    (host.tree / "run/jitter-workshop").mkdir(parents=True)
    control = host.tree / host.top.lstrip("/") / "cgroup.subtree_control"
    host.process(1001)
    host.group.confine(frozenset({1001}), CpuSet.parse_list("0-1"))
    assert control.read_text() == "+cpuset"
    if used:
        (host.tree / host.top.lstrip("/") / "user/cpuset.cpus").write_text("0\n")
        (host.tree / host.top.lstrip("/") / "user/cpuset.cpus.effective").write_text("0\n")
    assert host.group.release() == ""
    assert control.read_text() == ("+cpuset" if used else "-cpuset")
    assert list((host.tree / "run/jitter-workshop").iterdir()) == []


def isolate(host: Host) -> str:
    """The isolated set as the tunable of that name makes it; its name below the top."""
    name = "jitter-workshop" if host.version == 2 else "jitter-workshop-hot"
    host.writer.make_folder(f"{host.top}/{name}")
    place = host.tree / host.top.lstrip("/") / name
    files = {"cpuset.cpus": "2-3\n", "cpuset.cpus.effective": "2-3\n", "cpuset.effective_cpus": "2-3\n"}
    files |= {"cpuset.cpus.partition": "isolated\n"} if host.version == 2 else {"cpuset.sched_load_balance": "0\n"}
    for file, text in files.items():
        (place / file).write_text(text)
    return name


def test_a_child_on_the_isolated_cpus_measures_on_while_others_join(host: Host) -> None:
    name = isolate(host)
    placed = host.process(1001, f"/{name}")
    assert host.group.confine(frozenset({1001}), CpuSet.parse_list("0-1")) == 0
    assert host.where(placed) == f"/{name}"


def test_a_process_forked_while_the_turn_ends_is_ended_too(host: Host) -> None:
    """Also one that runs a program of another user's; other measurements there go on."""
    name = isolate(host)
    first, others = host.process(1001, f"/{name}"), host.process(1002, f"/{name}")
    kept, forked = host.group._members, []

    def members(folder: str) -> tuple[int, ...]:
        if not forked:
            forked.append(host.process(1001, f"/{name}"))
            status = host.tree / f"proc/{forked[0]}/status"
            status.write_text("Name:\tsleep\nUid:\t1001\t0\t0\t0\n")
        return tuple(pid for pid in kept(folder) if _running(host, pid))

    host.group._members = members  # type: ignore[method-assign]
    assert host.group.close(None, "", 1001) == ""
    ended = {one.pid: one.poll() for one in host.processes}
    assert ended == {first: -9, others: None, forked[0]: -9}


def _running(host: Host, pid: int) -> bool:
    return next(one for one in host.processes if one.pid == pid).poll() is None


@pytest.mark.parametrize("where", [TURN, LOGINS, "isolated", "user"])
def test_the_processes_that_look_after_turns_leave_the_groups_of_turns(host: Host, where: str) -> None:
    name = isolate(host) if where == "isolated" else where
    if where in (TURN, LOGINS):
        host.writer.make_folder(f"{host.top}/{name}")
    (host.tree / "proc" / str(os.getpid())).mkdir()
    host.writer.move(os.getpid(), f"{host.top}/{name}")
    host.group.step_aside()
    assert host.where(os.getpid()) == ("/user" if where == "user" else "/")


@pytest.mark.skipif(os.geteuid() != 0, reason="real-time priorities need root")
def test_a_real_time_priority_of_a_turn_ends_with_it(host: Host) -> None:
    """Of every process of the holder's, wherever it is; one that somebody else gave stays."""
    client, elsewhere, others, own = (host.process(uid) for uid in (1001, 1001, 1002, 1001))
    for pid in (client, elsewhere, others, own):
        (host.tree / f"proc/{pid}/task/{pid}").mkdir(parents=True)
        flag = 0 if pid == own else os.SCHED_RESET_ON_FORK
        try:
            os.sched_setscheduler(pid, os.SCHED_FIFO | flag, os.sched_param(10))
        except PermissionError:
            pytest.skip("root may not give real-time priorities here")
    origin = host.group.take_in(client, 1001)
    assert host.group.close(client, origin, 1001) == ""
    found = [os.sched_getscheduler(pid) & ~os.SCHED_RESET_ON_FORK for pid in (client, elsewhere, others, own)]
    assert found == [os.SCHED_OTHER, os.SCHED_OTHER, os.SCHED_FIFO, os.SCHED_FIFO]


def test_no_process_is_confined_where_systemd_does_it_or_no_cpu_is_left(host: Host) -> None:
    host.process(1001)
    assert host.group.confine(frozenset({1001}), CpuSet()) == 0
    (host.tree / "run/systemd/system").mkdir(parents=True)
    assert host.group.confine(frozenset({1001}), CpuSet.parse_list("0")) == 0


def test_a_host_without_cpusets_says_so(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text("")
    group = TurnGroup(HostRoot(tmp_path), HostWriter(tmp_path))
    assert "no control groups" in group.missing
    assert group.take_in(os.getpid(), 0) == ""
    assert group.close(None, "") == ""
    assert group.confine(frozenset({0}), CpuSet.parse_list("0")) == 0
    assert group.release() == ""
