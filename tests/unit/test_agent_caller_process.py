"""Single threads in the isolated set: whose they are, when it is looked at, and where a wrong one goes back to."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop.agent import caller_process
from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.tuning.writer import HostWriter
from tests import hosttrees
from tests.callersown import MINE, sets_of_version_1, tree

ME = os.getpid()
"""A process that lives as long as the test. The made host says that it is the caller's."""


def owned(root: Path, pid: int = ME, uids: str = "1000\t1000\t1000\t1000") -> HostRoot:
    """A made host of version 1 whose process ``pid`` has the second thread 77."""
    host = sets_of_version_1(root, pid, [77])
    hosttrees.write(root, {f"proc/{pid}/status": f"Name:\tx\nUid:\t{uids}\n"})
    return host


class Then(HostWriter):
    """Note each write, and do something after the one whose path ends like ``after``."""

    def __init__(self, root: Path, after: str, do: Callable[[], object]) -> None:
        super().__init__(root)
        self.paths: list[str] = []
        self._after, self._do = after, do

    def write(self, path: str, value: str) -> None:
        super().write(path, value)
        self.paths.append(f"{path.removeprefix('/sys/fs/cgroup')}={value}")
        if path.endswith(self._after):
            self._do()


def test_a_single_thread_is_placed_and_its_process_stays(tmp_path: Path) -> None:
    root = sets_of_version_1(tmp_path, ME, [77])
    hot = tmp_path / "sys/fs/cgroup/cpuset/jitter-workshop-hot"
    assert caller_process.place_threads(root, HostWriter(tmp_path), ME, [77], MINE) == "3"
    assert (hot / "tasks").read_text() == "77"
    assert (hot / "cgroup.procs").read_text() == ""
    with pytest.raises(HostError, match=f"thread 1 does not belong to process {ME}"):
        caller_process.place_threads(root, HostWriter(tmp_path), ME, [1], MINE)
    with pytest.raises(HostError, match="is not yours"):
        caller_process.place_threads(root, HostWriter(tmp_path), ME, [77], MINE + 1)
    with pytest.raises(UsageError, match="'tids'"):
        caller_process.place_threads(root, HostWriter(tmp_path), ME, [], MINE)
    assert (hot / "tasks").read_text() == "77"


def test_a_number_that_became_another_programs_is_given_back(tmp_path: Path) -> None:
    root = sets_of_version_1(tmp_path, ME, [77])

    class Late(HostWriter):
        def write(self, path: str, value: str) -> None:
            super().write(path, value)
            shutil.rmtree(tmp_path / f"proc/{ME}/task/77", ignore_errors=True)

    with pytest.raises(HostError, match="thread 77 does not belong"):
        caller_process.place_threads(root, Late(tmp_path), ME, [77], MINE)
    assert (tmp_path / "sys/fs/cgroup/cpuset/jitter-workshop-rest/tasks").read_text() == "77"


def test_in_version_2_no_thread_is_placed_and_nothing_is_written(tmp_path: Path) -> None:
    writer = Then(tmp_path, "-", lambda: None)
    with pytest.raises(HostError, match="take whole processes only, not single threads"):
        caller_process.place_threads(tree(tmp_path, ME), writer, ME, [ME], MINE)
    assert writer.paths == []


@pytest.mark.parametrize("uids", ["1001\t1001\t1001\t1001", "1000\t0\t0\t0", "1000\t1000\t1001\t1000", ""])
def test_nothing_is_written_for_a_process_with_another_user_id(tmp_path: Path, uids: str) -> None:
    """A set-user-id program has the caller's real id, but root's rights."""
    writer = Then(tmp_path, "-", lambda: None)
    with pytest.raises(HostError, match="is not yours"):
        caller_process.place_threads(owned(tmp_path, uids=uids), writer, ME, [ME], MINE)
    assert writer.paths == []


def test_root_places_threads_of_all_users(tmp_path: Path) -> None:
    assert caller_process.place_threads(owned(tmp_path), HostWriter(tmp_path), ME, [ME, 77], 0) == "3"


def test_one_thread_of_another_process_and_nothing_is_written(tmp_path: Path) -> None:
    writer = Then(tmp_path, "-", lambda: None)
    with pytest.raises(HostError, match="thread 1 does not belong"):
        caller_process.place_threads(owned(tmp_path), writer, ME, [ME, 77, 1], MINE)
    assert writer.paths == []


def test_more_threads_than_the_limit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="1 to 1024"):
        caller_process.place_threads(owned(tmp_path), HostWriter(tmp_path), ME, [ME] * 1025, MINE)


def test_a_thread_that_ends_meanwhile_is_not_written(tmp_path: Path) -> None:
    root = owned(tmp_path)
    writer = Then(tmp_path, "-hot/tasks", lambda: shutil.rmtree(tmp_path / f"proc/{ME}/task/77"))
    with pytest.raises(HostError, match="thread 77 does not belong"):
        caller_process.place_threads(root, writer, ME, [ME, 77], MINE)
    assert writer.paths == [f"/cpuset/jitter-workshop-hot/tasks={ME}"]


def test_a_process_that_ends_meanwhile_gets_no_further_write(tmp_path: Path) -> None:
    """Its number may be another program's: its threads' folder is still in the made host."""
    sleeper = subprocess.Popen(["sleep", "60"])

    def end() -> None:
        sleeper.kill()
        sleeper.wait()

    writer = Then(tmp_path, "-hot/tasks", end)
    try:
        with pytest.raises(HostError, match=f"process {sleeper.pid} has ended"):
            caller_process.place_threads(owned(tmp_path, sleeper.pid), writer, sleeper.pid, [77, sleeper.pid], MINE)
    finally:
        end()
    assert len(writer.paths) == 1
