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


def threaded(root: Path, pid: int = ME, uids: str = "1000\t1000\t1000\t1000") -> HostRoot:
    """A made host of version 2 whose group takes threads; the second thread of ``pid`` is 77."""
    host = tree(root, pid, uids)
    own = {"cgroup.type": "domain\n", "cgroup.threads": ""}
    hosttrees.write(root, {f"sys/fs/cgroup/jitter-workshop/{name}": text for name, text in own.items()})
    hosttrees.write(root, {"sys/fs/cgroup/cgroup.procs": "", "sys/fs/cgroup/cgroup.threads": ""})
    hosttrees.write(root, {f"proc/{pid}/task/77/stat": "77 (x) S\n"})
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


def test_in_version_2_the_group_becomes_threaded_and_the_process_goes_to_the_top(tmp_path: Path) -> None:
    root = tree(tmp_path, ME)
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
        assert caller_process.place_threads(root, Noting(tmp_path), ME, [ME], MINE) == "2-3"
    enters = ["/cgroup.procs", "/jitter-workshop/cgroup.threads"]
    assert written == ["/jitter-workshop/cgroup.type", *enters, *enters]
    assert (top / "jitter-workshop/cgroup.threads").read_text() == str(ME)
    assert (top / "cgroup.procs").read_text() == str(ME)


def test_a_version_2_group_with_a_process_inside_says_so(tmp_path: Path) -> None:
    root = tree(tmp_path, ME)  # it has no cgroup.type that could be written
    with pytest.raises(HostError, match="accepts only whole processes") as caught:
        caller_process.place_threads(root, HostWriter(tmp_path), ME, [ME], MINE)
    assert "end the processes in this control group first" in caught.value.sentence()


def test_on_a_class_host_no_process_goes_to_the_top(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="a class host with cgroup version 2 cannot"):
        caller_process.refuse_top(tree(tmp_path / "2", ME))
    caller_process.refuse_top(sets_of_version_1(tmp_path / "1", ME, []))


@pytest.mark.parametrize("uids", ["1001\t1001\t1001\t1001", "1000\t0\t0\t0", "1000\t1000\t1001\t1000", ""])
def test_nothing_is_written_for_a_process_with_another_user_id(tmp_path: Path, uids: str) -> None:
    """A set-user-id program has the caller's real id, but root's rights."""
    writer = Then(tmp_path, "-", lambda: None)
    with pytest.raises(HostError, match="is not yours"):
        caller_process.place_threads(threaded(tmp_path, uids=uids), writer, ME, [ME], MINE)
    assert writer.paths == []


def test_root_places_threads_of_all_users(tmp_path: Path) -> None:
    assert caller_process.place_threads(threaded(tmp_path), HostWriter(tmp_path), ME, [ME, 77], 0) == "2-3"


def test_one_thread_of_another_process_and_nothing_is_written(tmp_path: Path) -> None:
    writer = Then(tmp_path, "-", lambda: None)
    with pytest.raises(HostError, match="thread 1 does not belong"):
        caller_process.place_threads(threaded(tmp_path), writer, ME, [ME, 77, 1], MINE)
    assert writer.paths == []


def test_more_threads_than_the_limit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="1 to 1024"):
        caller_process.place_threads(threaded(tmp_path), HostWriter(tmp_path), ME, [ME] * 1025, MINE)


def test_a_thread_that_ends_while_its_process_moves_is_not_written(tmp_path: Path) -> None:
    root = threaded(tmp_path)
    writer = Then(tmp_path, "/cgroup.procs", lambda: shutil.rmtree(tmp_path / f"proc/{ME}/task/77"))
    with pytest.raises(HostError, match="thread 77 does not belong"):
        caller_process.place_threads(root, writer, ME, [77], MINE)
    assert writer.paths == ["/jitter-workshop/cgroup.type=threaded", f"/cgroup.procs={ME}"]


def test_in_version_2_a_number_that_became_another_programs_goes_back_to_the_top(tmp_path: Path) -> None:
    root = threaded(tmp_path)
    gone = tmp_path / f"proc/{ME}/task/77"
    writer = Then(tmp_path, "jitter-workshop/cgroup.threads", lambda: shutil.rmtree(gone))
    with pytest.raises(HostError, match="thread 77 does not belong"):
        caller_process.place_threads(root, writer, ME, [77], MINE)
    assert writer.paths[-2:] == ["/jitter-workshop/cgroup.threads=77", "/cgroup.threads=77"]


@pytest.mark.parametrize(("after", "writes"), [("/cgroup.procs", 2), ("/cgroup.threads", 3)])
def test_a_process_that_ends_meanwhile_gets_no_further_write(tmp_path: Path, after: str, writes: int) -> None:
    """Its number may be another program's: its threads' folder is still in the made host."""
    sleeper = subprocess.Popen(["sleep", "60"])

    def end() -> None:
        sleeper.kill()
        sleeper.wait()

    writer = Then(tmp_path, after, end)
    try:
        with pytest.raises(HostError, match=f"process {sleeper.pid} has ended"):
            caller_process.place_threads(threaded(tmp_path, sleeper.pid), writer, sleeper.pid, [77, sleeper.pid], MINE)
    finally:
        end()
    assert len(writer.paths) == writes
