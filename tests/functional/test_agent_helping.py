"""Test the agent's help for the caller's own processes, and its refusal for all others."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from jitter_workshop.agent import caller_process
from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.tuning.writer import HostWriter
from tests import hosttrees, tuned_tree
from tests.tuned_tree import Agent

MINE = 1000


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """A process that sleeps until it is told to end."""
    sleeper = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    yield sleeper
    sleeper.communicate()


def tree(root: Path, pid: int, uids: str = "1000\t1000\t1000\t1000", partition: str = "isolated") -> HostRoot:
    """A made host that has an isolated set, and says of ``pid`` whose it is."""
    files = {
        "cgroup.controllers": "cpuset\n",
        "jitter-workshop/cpuset.cpus": "2-3\n",
        "jitter-workshop/cpuset.cpus.effective": "2-3\n",
        "jitter-workshop/cpuset.cpus.partition": f"{partition}\n",
        "jitter-workshop/cgroup.procs": "\n",
    }
    hosttrees.write(root, hosttrees.cgroup2("/", files))
    return HostRoot(
        hosttrees.write(
            root, {f"proc/{pid}/status": f"Name:\tx\nUid:\t{uids}\n", f"proc/{pid}/task/{pid}/stat": "1 (x) S\n"}
        )
    )


def test_a_process_of_the_callers_own_is_placed(tmp_path: Path, process: subprocess.Popen[bytes]) -> None:
    root = tree(tmp_path, process.pid)
    assert caller_process.place(root, HostWriter(tmp_path), process.pid, MINE) == "2-3"
    assert (tmp_path / "sys/fs/cgroup/jitter-workshop/cgroup.procs").read_text() == str(process.pid)


@pytest.mark.parametrize("uids", ["1001\t1001\t1001\t1001", "1000\t0\t0\t0", "1000\t1000\t1001\t1000", ""])
def test_a_process_of_somebody_else_is_not_touched(tmp_path: Path, process: subprocess.Popen[bytes], uids: str) -> None:
    root = tree(tmp_path, process.pid, uids)
    with pytest.raises(HostError, match="is not yours"):
        caller_process.place(root, HostWriter(tmp_path), process.pid, MINE)
    with pytest.raises(HostError, match="is not yours"):
        caller_process.realtime(root, process.pid, [process.pid], 10, MINE)
    assert (tmp_path / "sys/fs/cgroup/jitter-workshop/cgroup.procs").read_text() == "\n"
    assert os.sched_getscheduler(process.pid) == os.SCHED_OTHER


def test_what_has_ended_is_not_touched(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    with pytest.raises(HostError, match=f"process {ended.pid} cannot be opened"):
        caller_process.place(tree(tmp_path, ended.pid), HostWriter(tmp_path), ended.pid, MINE)


@pytest.mark.parametrize("partition", ["member", "isolated invalid (Cpu list in cpuset.cpus not exclusive)", "root"])
def test_only_a_set_that_holds_takes_processes(
    tmp_path: Path, process: subprocess.Popen[bytes], partition: str
) -> None:
    with pytest.raises(HostError, match="no CPUs are isolated by this tool now"):
        caller_process.place(tree(tmp_path, process.pid, partition=partition), HostWriter(tmp_path), process.pid, MINE)


def test_a_priority_is_given_and_taken_back(tmp_path: Path, process: subprocess.Popen[bytes]) -> None:
    root = tree(tmp_path, process.pid)
    try:
        caller_process.realtime(root, process.pid, [process.pid], 49, MINE)
    except HostError as refusal:
        pytest.skip(f"no real-time priority is to be had here: {refusal}")
    assert os.sched_getscheduler(process.pid) == os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
    assert os.sched_getparam(process.pid).sched_priority == 49
    caller_process.realtime(root, process.pid, [process.pid], 0, MINE)
    assert os.sched_getscheduler(process.pid) == os.SCHED_OTHER | os.SCHED_RESET_ON_FORK


def test_no_priority_above_49_and_no_thread_of_another_process(
    tmp_path: Path, process: subprocess.Popen[bytes]
) -> None:
    root = tree(tmp_path, process.pid)
    for priority in (50, 99, -1):
        with pytest.raises(UsageError, match="from 0 to 49"):
            caller_process.realtime(root, process.pid, [process.pid], priority, MINE)
    with pytest.raises(HostError, match=f"thread 1 does not belong to process {process.pid}"):
        caller_process.realtime(root, process.pid, [1], 10, MINE)
    with pytest.raises(UsageError, match="'tids'"):
        caller_process.realtime(root, process.pid, [], 10, MINE)


def sets_of_version_1(root: Path, pid: int, tids: Sequence[int]) -> HostRoot:
    """The same with sets of version 1, and these threads of ``pid``."""
    tree(root, pid)
    hot = "sys/fs/cgroup/cpuset/jitter-workshop-hot"
    return HostRoot(
        hosttrees.write(
            root,
            {
                "proc/self/mountinfo": "30 20 0:26 / /sys/fs/cgroup/cpuset rw - cgroup cpuset rw,cpuset\n",
                f"{hot}/cpuset.cpus": "3\n",
                f"{hot}/cpuset.effective_cpus": "3\n",
                f"{hot}/cpuset.sched_load_balance": "0\n",
                f"{hot}/tasks": "",
                f"{hot}/cgroup.procs": "",
                "sys/fs/cgroup/cpuset/jitter-workshop-rest/tasks": "",
                **{f"proc/{pid}/task/{tid}/stat": f"{tid} (x) S\n" for tid in tids},
            },
        )
    )


def test_a_single_thread_is_placed_and_its_process_stays(tmp_path: Path, process: subprocess.Popen[bytes]) -> None:
    root = sets_of_version_1(tmp_path, process.pid, [77])
    hot = tmp_path / "sys/fs/cgroup/cpuset/jitter-workshop-hot"
    assert caller_process.place_threads(root, HostWriter(tmp_path), process.pid, [77], MINE) == "3"
    assert (hot / "tasks").read_text() == "77"
    assert (hot / "cgroup.procs").read_text() == ""
    with pytest.raises(HostError, match=f"thread 1 does not belong to process {process.pid}"):
        caller_process.place_threads(root, HostWriter(tmp_path), process.pid, [1], MINE)
    with pytest.raises(HostError, match="is not yours"):
        caller_process.place_threads(root, HostWriter(tmp_path), process.pid, [77], MINE + 1)
    with pytest.raises(UsageError, match="'tids'"):
        caller_process.place_threads(root, HostWriter(tmp_path), process.pid, [], MINE)
    assert (hot / "tasks").read_text() == "77"


def test_a_number_that_became_another_programs_is_given_back(tmp_path: Path, process: subprocess.Popen[bytes]) -> None:
    root = sets_of_version_1(tmp_path, process.pid, [77])

    class Late(HostWriter):
        def write(self, path: str, value: str) -> None:
            super().write(path, value)
            shutil.rmtree(tmp_path / f"proc/{process.pid}/task/77", ignore_errors=True)

    with pytest.raises(HostError, match="thread 77 does not belong"):
        caller_process.place_threads(root, Late(tmp_path), process.pid, [77], MINE)
    assert (tmp_path / "sys/fs/cgroup/cpuset/jitter-workshop-rest/tasks").read_text() == "77"


def test_in_version_2_the_group_becomes_threaded_and_the_process_goes_to_the_top(
    tmp_path: Path, process: subprocess.Popen[bytes]
) -> None:
    root = tree(tmp_path, process.pid)
    top = tmp_path / "sys/fs/cgroup"
    own = {"cgroup.type": "domain\n", "cgroup.threads": ""}
    hosttrees.write(tmp_path, {f"sys/fs/cgroup/jitter-workshop/{name}": text for name, text in own.items()})
    hosttrees.write(tmp_path, {"sys/fs/cgroup/cgroup.procs": ""})
    written: list[str] = []

    class Noting(HostWriter):
        def write(self, path: str, value: str) -> None:
            written.append(path.removeprefix("/sys/fs/cgroup"))
            super().write(path, value)

    for _ in range(2):
        assert caller_process.place_threads(root, Noting(tmp_path), process.pid, [process.pid], MINE) == "2-3"
    enters = ["/cgroup.procs", "/jitter-workshop/cgroup.threads"]
    assert written == ["/jitter-workshop/cgroup.type", *enters, *enters]
    assert (top / "jitter-workshop/cgroup.threads").read_text() == str(process.pid)
    assert (top / "cgroup.procs").read_text() == str(process.pid)


def test_a_version_2_group_with_a_process_inside_says_so(tmp_path: Path, process: subprocess.Popen[bytes]) -> None:
    root = tree(tmp_path, process.pid)  # it has no cgroup.type that could be written
    with pytest.raises(HostError, match="takes no single threads") as caught:
        caller_process.place_threads(root, HostWriter(tmp_path), process.pid, [process.pid], MINE)
    assert "end it first" in caught.value.sentence()


def test_on_a_class_host_no_process_goes_to_the_top(tmp_path: Path, process: subprocess.Popen[bytes]) -> None:
    with pytest.raises(HostError, match="a class host cannot"):
        caller_process.refuse_top(tree(tmp_path / "2", process.pid))
    caller_process.refuse_top(sets_of_version_1(tmp_path / "1", process.pid, []))


def test_a_thread_over_the_connection(tmp_path: Path, process: subprocess.Popen[bytes]) -> None:
    tuned_tree.make(tmp_path)
    sets_of_version_1(tmp_path, process.pid, [77])
    with Agent(tmp_path) as agent:
        assert agent.ask("place_threads", pid=process.pid, tids=[77]) == {"cpus": "3"}
        for tids in (None, 7, [True], ["1"], [-1], []):
            assert "must be a" in agent.ask("place_threads", pid=process.pid, tids=tids)["error"]["message"]


def test_over_the_connection(tmp_path: Path, process: subprocess.Popen[bytes]) -> None:
    tuned_tree.make(tmp_path)
    tree(tmp_path, process.pid)
    with Agent(tmp_path) as agent:
        assert agent.ask("place", pid=process.pid) == {"cpus": "2-3"}
        for wrong in (None, True, "1", -1, 1 << 40, 1.5):
            assert "'pid' must be a whole number" in agent.ask("place", pid=wrong)["error"]["message"]
        for tids in (None, 7, [True], ["1"], [-1]):
            asked = agent.ask("realtime", pid=process.pid, tids=tids, priority=1)
            assert "must be a" in asked["error"]["message"]
        assert "from 0 to 49" in agent.ask("realtime", pid=process.pid, tids=[1], priority=99)["error"]["message"]
