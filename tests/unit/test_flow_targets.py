"""Test how a program is found: its process, threads of it by name or number, the processes of a control group."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jitter_workshop.bench import foreign_activity
from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.programs import targets
from jitter_workshop.flow.programs.targets import find_cgroup, find_process
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.program import Target
from tests import hosttrees

PF_KTHREAD = 0x0020_0000
MOUNTS = (
    "30 23 0:26 / /sys/fs/cgroup rw - tmpfs cgroup rw\n"
    "31 30 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    "32 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)


def stat(tid: int, name: str, state: str = "S", flags: int = 0) -> str:
    rest = [state, *["1", "1", "1", "0", "0"], str(flags), *["0"] * 8, "20", "0", "1", "0", "77", *["0"] * 20]
    return f"{tid} ({name}) {' '.join(rest)}\n"


@pytest.fixture
def root(tmp_path: Path) -> HostRoot:
    files = {"proc/self/mountinfo": MOUNTS}
    for pid, name, threads in (
        (100, "server", {100: "server", 101: "worker", 102: "worker"}),
        (200, "other", {200: "other"}),
    ):
        files[f"proc/{pid}/stat"] = stat(pid, name)
        files[f"proc/{pid}/status"] = f"Name:\t{name}\nTgid:\t{pid}\n"
        files |= {f"proc/{pid}/task/{tid}/stat": stat(tid, one) for tid, one in threads.items()}
    files["proc/100/task/101/children"] = f"200 {os.getpid()}"
    files["proc/200/status"] += "Uid:\t1\t1\t1\t1\n"
    files["proc/100/status"] += "Uid:\t1\t1\t1\t1\n"
    files["proc/101/stat"] = stat(101, "worker")
    files["proc/101/status"] = "Name:\tworker\nTgid:\t100\n"
    files["proc/300/stat"] = stat(300, "kthreadd", flags=PF_KTHREAD)
    files["proc/400/stat"] = stat(400, "gone", "Z")
    files["sys/fs/cgroup/cpu/web/cgroup.procs"] = "200\n"
    files["sys/fs/cgroup/cpu/web/inner/cgroup.procs"] = f"100\n300\n400000\n{os.getpid()}\n"
    files["sys/fs/cgroup/unified/empty/cgroup.procs"] = ""
    return HostRoot(hosttrees.write(tmp_path, files))


def test_a_process_is_found_with_all_its_threads_and_children(root: HostRoot) -> None:
    found = find_process(root, 100)
    assert (found.target, found.pids, found.only, found.children) == (
        Target("process", "server", 100),
        (100, 200),
        (),
        True,
    )


def test_a_child_of_another_user_is_left_out(root: HostRoot, tmp_path: Path) -> None:
    (tmp_path / "proc/200/status").write_text("Name:\tother\nTgid:\t200\nUid:\t0\t0\t0\t0\n")
    assert find_process(root, 100).pids == (100,)


@pytest.mark.parametrize(("thread", "tids"), [("worker", (101, 102)), ("102", (102,)), ("server", (100,))])
def test_threads_are_found_by_name_and_by_number(root: HostRoot, thread: str, tids: tuple[int, ...]) -> None:
    found = find_process(root, 100, thread)
    assert (found.target.kind, found.pids, found.only, found.children) == ("thread", (100,), tids, False)


@pytest.mark.parametrize("path", ["/sys/fs/cgroup/cpu/web", "web", "/web/", "web/../web"])
def test_a_control_group_has_the_processes_of_those_below_it(root: HostRoot, path: str) -> None:
    found = find_cgroup(root, path)
    # Threads of the kernel, ended processes and this program itself are left out.
    assert (found.target, found.pids) == (Target("cgroup", "/sys/fs/cgroup/cpu/web", None), (100, 200))


@pytest.mark.parametrize(
    ("pid", "thread", "why"),
    [
        (99, None, "there is no process 99"),
        (400, None, "there is no process 400"),
        (300, None, "a thread of the kernel"),
        (101, None, "101 is a thread of process 100; use --pid 100 --thread 101"),
        (100, "nobody\x1b[2J", "no thread 'nobody [2J'; its threads are called server, worker"),
    ],
)
def test_an_id_that_is_no_program_is_refused_in_a_sentence(
    root: HostRoot, pid: int, thread: str | None, why: str
) -> None:
    with pytest.raises(WorkshopError) as refused:
        find_process(root, pid, thread)
    assert why in refused.value.sentence()


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "needs the folder of a control group"),
        ("../../etc", "needs the folder of a control group"),
        ("/etc", "there is no control group /etc"),
        ("empty", "no process in the control group"),
    ],
)
def test_a_path_that_is_no_control_group_is_refused_in_a_sentence(root: HostRoot, path: str, why: str) -> None:
    with pytest.raises(WorkshopError, match=why):
        find_cgroup(root, path)


def seen(pid: int, percent: float, *, ours: bool = False) -> foreign_activity.ProcessUse:
    return foreign_activity.ProcessUse(pid, 1_700_000_000.0, "as psutil names it", 0, percent / 200, percent, ours)


def test_the_list_has_the_processes_that_can_be_explained_the_busiest_first(
    root: HostRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = [seen(100, 3.04), seen(200, 91.0), seen(300, 50), seen(400, 50), seen(101, 0.0, ours=True), seen(9_000, 1)]
    monkeypatch.setattr(targets, "LOOK_S", 0.0)
    monkeypatch.setattr(foreign_activity, "uses", lambda before, elapsed_s: used)
    found = targets.list_processes(root)
    # Kernel threads, what has ended, and what this process started are left out.
    assert [(one.pid, one.name, one.cpu_percent) for one in found] == [(200, "other", 91.0), (100, "server", 3.0)]
    assert {(one.start_ticks, one.started_at) for one in found} == {(77, "2023-11-14T22:13:20+00:00")}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("python\0-m\0a b\0", "python -m 'a b'"),
        ("nginx: master process\0\0\0", "nginx: master process"),
        ("sh\0-c\0echo \x1b[2J\n\u202eforged\0", "sh -c 'echo [2J forged'"),
        ("", ""),
    ],
)
def test_a_command_line_is_one_clean_line(root: HostRoot, tmp_path: Path, line: str, told: str) -> None:
    assert targets.command_of(root, 100) == ""
    (tmp_path / "proc/100/cmdline").write_text(line)
    assert targets.command_of(root, 100) == told
    (tmp_path / "proc/100/cmdline").write_text("server\0" + "x" * 100_000)
    assert len(targets.command_of(root, 100)) == 300


def test_a_number_that_belongs_to_another_process_now_is_told(root: HostRoot, tmp_path: Path) -> None:
    assert find_process(root, 100, start_ticks=77).pids == (100, 200)
    with pytest.raises(WorkshopError, match=r"100 has ended, and its number belongs to another process now \(server\)"):
        find_process(root, 100, start_ticks=76)
    with pytest.raises(WorkshopError, match="400 has ended"):
        find_process(root, 400, start_ticks=77)
    (tmp_path / "proc/100/stat").unlink()
    with pytest.raises(WorkshopError, match="100 has ended"):
        find_process(root, 100, start_ticks=77)


def test_a_program_of_another_user_is_told_with_its_owner(root: HostRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    found = find_process(root, 100)
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000_000)
    whose = targets.owner(root, 100)
    assert targets.not_ours(root, found) == (f"process 100 (server) belongs to {whose}, and only root may follow it")
    for uid in (0, 1):
        monkeypatch.setattr(os, "geteuid", lambda uid=uid: uid)
        assert targets.not_ours(root, found) == ""


def test_a_process_with_the_rights_of_another_user_belongs_to_that_user(
    root: HostRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1)
    (tmp_path / "proc/100/status").write_text("Uid:\t1\t4000000000\t4000000000\t4000000000\n")
    assert targets.owner(root, 100) == "4000000000"
    assert "belongs to 4000000000" in targets.not_ours(root, find_process(root, 100))
    assert targets.owner(root, 77_777) == ""
