"""Test the agent's help for the caller's own processes, and its refusal for all others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jitter_workshop.agent import caller_process
from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.tuning.writer import HostWriter
from tests import tuned_tree
from tests.callersown import MINE, sets_of_version_1, tree
from tests.tuned_tree import Agent


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """A process that sleeps until it is told to end."""
    sleeper = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    yield sleeper
    sleeper.communicate()


def test_a_process_of_the_callers_own_is_placed(tmp_path: Path, process: subprocess.Popen[bytes]) -> None:
    root = tree(tmp_path, process.pid)
    assert caller_process.move_to_isolated_cpus(root, HostWriter(tmp_path), process.pid, MINE) == "2-3"
    assert (tmp_path / "sys/fs/cgroup/jitter-workshop/cgroup.procs").read_text() == str(process.pid)


@pytest.mark.parametrize("uids", ["1001\t1001\t1001\t1001", "1000\t0\t0\t0", "1000\t1000\t1001\t1000", ""])
def test_a_process_of_another_user_is_not_touched(tmp_path: Path, process: subprocess.Popen[bytes], uids: str) -> None:
    root = tree(tmp_path, process.pid, uids)
    with pytest.raises(HostError, match="is not yours"):
        caller_process.move_to_isolated_cpus(root, HostWriter(tmp_path), process.pid, MINE)
    with pytest.raises(HostError, match="is not yours"):
        caller_process.realtime(root, process.pid, [process.pid], 10, MINE)
    assert (tmp_path / "sys/fs/cgroup/jitter-workshop/cgroup.procs").read_text() == "\n"
    assert os.sched_getscheduler(process.pid) == os.SCHED_OTHER


def test_a_process_that_has_ended_cannot_be_placed(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    with pytest.raises(HostError, match=f"process {ended.pid} cannot be opened"):
        caller_process.move_to_isolated_cpus(tree(tmp_path, ended.pid), HostWriter(tmp_path), ended.pid, MINE)


@pytest.mark.parametrize("partition", ["member", "isolated invalid (Cpu list in cpuset.cpus not exclusive)", "root"])
def test_only_a_set_that_holds_takes_processes(
    tmp_path: Path, process: subprocess.Popen[bytes], partition: str
) -> None:
    with pytest.raises(HostError, match="no CPUs are isolated by this tool now"):
        caller_process.move_to_isolated_cpus(
            tree(tmp_path, process.pid, partition=partition), HostWriter(tmp_path), process.pid, MINE
        )


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
