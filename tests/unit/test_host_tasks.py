"""Tasks: who belongs to the kernel, who may be moved, and that vanished ones are left out."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.listing import (
    PF_KTHREAD,
    PF_NO_SETAFFINITY,
    PF_WQ_WORKER,
    Task,
    each_process,
    each_thread,
    parse_allowed,
    parse_task_stat,
    read_allowed_cpus,
    read_task,
    read_user_ids,
    task_ids,
)
from jitter_workshop.model.cpuset import CpuSet
from tests.hosttrees import task, write


def test_a_made_host(tmp_path: Path) -> None:
    files = task(2, "kthreadd", flags=PF_KTHREAD, allowed="0-3")
    files |= task(15, "ksoftirqd/1", flags=PF_KTHREAD | PF_NO_SETAFFINITY, allowed="1", cpu=1)
    files |= task(31, "kworker/u8:1-events", flags=PF_KTHREAD | PF_WQ_WORKER | PF_NO_SETAFFINITY, allowed="0-3")
    files |= task(900, "a (very) odd) name", allowed="0-1", start=4321, policy=1, priority=50, threads=2)
    files |= task(901, "second", pid=900, allowed="3")
    files |= {"proc/self/x": "", "proc/12x/stat": "x", "proc/77/stat": "damaged\n"}
    root = HostRoot(write(tmp_path, files))
    assert task_ids(root) == (2, 15, 31, 77, 900)
    everyone = tuple(each_process(root))
    assert [(t.tid, t.name, t.kernel, t.fixed, t.worker) for t in everyone] == [
        (2, "kthreadd", True, False, False),
        (15, "ksoftirqd/1", True, True, False),
        (31, "kworker/u8:1-events", True, True, True),
        (900, "a (very) odd) name", False, False, False),
    ]
    assert [t.tid for t in each_process(root) if t.kernel] == [2, 15, 31]
    one = everyone[3]
    assert (one.start_ticks, one.rt_priority, one.threads) == (4321, 50, 2)
    assert read_allowed_cpus(root, one) == CpuSet((0, 1))
    assert read_allowed_cpus(root, everyone[1]) == CpuSet((1,))
    threads = tuple(each_thread(root))
    assert [(t.tid, t.pid) for t in threads] == [(2, 2), (15, 15), (31, 31), (900, 900), (901, 900)]
    assert read_allowed_cpus(root, threads[-1]) == CpuSet((3,))
    assert read_user_ids(root, one.folder) == ()
    write(tmp_path, task(900, "x", uid=1000))
    assert read_user_ids(root, one.folder)[:1] == (1000,)


def test_this_process_and_its_threads() -> None:
    root = HostRoot()
    stop = threading.Event()
    other = threading.Thread(target=stop.wait)
    other.start()
    try:
        me = read_task(root, os.getpid())
        assert me is not None
        assert not me.kernel
        assert me.threads >= 2
        thread = read_task(root, os.getpid(), other.native_id)
        assert thread is not None
        assert (thread.tid, thread.pid) == (other.native_id, os.getpid())
        assert read_allowed_cpus(root, thread) is not None
        assert read_user_ids(root, thread.folder)[:1] == (os.getuid(),)
        assert other.native_id in [t.tid for t in each_thread(root)]
    finally:
        stop.set()
        other.join()


def test_zombies_are_left_out_of_processes_and_threads(tmp_path: Path) -> None:
    files = task(7, "zombie", state="Z", allowed="0-3") | task(8, "lives", allowed="0-3")
    files |= task(9, "first thread ended", state="Z", allowed="0-3", threads=3)
    files |= task(10, "lives on", pid=9, allowed="0-3") | task(11, "ended too", pid=9, state="X")
    root = HostRoot(write(tmp_path, files))
    assert [t.tid for t in each_process(root)] == [8, 9]
    assert [t.tid for t in each_thread(root)] == [8, 10]


def test_a_task_that_has_ended_reads_as_none(tmp_path: Path) -> None:
    root = HostRoot(tmp_path)
    assert read_task(root, 5) is None
    assert tuple(each_process(root)) == ()
    gone = Task(5, 5, "gone", "S", 0, 1, 0, 0, 0)
    assert read_allowed_cpus(root, gone) is None


@given(st.text(max_size=80))
def test_names_never_change_the_other_fields(name: str) -> None:
    """A task may call itself anything, a whole stat line too."""
    files = task(7, name, flags=PF_KTHREAD, start=99)
    found = parse_task_stat(files["proc/7/stat"])
    assert found is not None
    assert (found.tid, found.flags, found.start_ticks, found.threads) == (7, PF_KTHREAD, 99, 1)
    assert found.name.isprintable()


@given(st.one_of(st.text(max_size=200), st.from_regex(r"\d{1,4} \(x\) S( -?\d{1,25}){0,45}", fullmatch=True)))
def test_any_line_is_a_task_or_none(text: str) -> None:
    found = parse_task_stat(text)
    assert found is None or (found.tid >= 0 and found.start_ticks >= 0)
    parse_allowed(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Name:\tx\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\nMems_allowed_list:\t0\n", CpuSet((0, 1))),
        ("Cpus_allowed_list:\t\n", CpuSet()),
        ("Cpus_allowed_list:\tzero\n", None),
        ("xCpus_allowed_list:\t0\n", None),
        ("", None),
        (None, None),
    ],
)
def test_where_a_task_may_run(text: str | None, wanted: CpuSet | None) -> None:
    assert parse_allowed(text) == wanted
