"""Switches and migrations of threads, from the kernel's own files and from this process."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.listing import (
    context_switches,
    migrations,
    parse_migrations,
    parse_switches,
)
from tests import hosttrees

STATUS = "Name:\tworker\nPid:\t7\nThreads:\t2\nvoluntary_ctxt_switches:\t{}\nnonvoluntary_ctxt_switches:\t{}\n"
SCHED = "worker (7, #threads: 2)\n-------\nse.exec_start      :     1.5\nse.nr_migrations : {}\nnr_switches : 9"
count = st.integers(0, 2**63)


@given(count, count)
def test_switches_round_trip(voluntary: int, involuntary: int) -> None:
    assert parse_switches(STATUS.format(voluntary, involuntary)) == voluntary + involuntary


@given(count)
def test_migrations_round_trip(number: int) -> None:
    assert parse_migrations(SCHED.format(number)) == number


@given(st.text(max_size=200))
def test_garbage_never_raises(text: str) -> None:
    for source in (text, STATUS.format(text, 1), SCHED.format(text)):
        parse_switches(source)
        found = parse_migrations(source)
        assert found is None or found >= 0


def test_a_cut_off_status_is_unknown() -> None:
    assert parse_switches(STATUS.split("nonvoluntary", maxsplit=1)[0]) is None
    assert parse_switches(None) is None
    assert parse_migrations("worker (7)\nse.nr_migrations : -3\n") is None


def test_switches_are_summed_over_threads(tmp_path: Path) -> None:
    hosttrees.write(
        tmp_path,
        {
            "proc/7/task/7/status": STATUS.format(5, 2),
            "proc/7/task/9/status": STATUS.format(10, 20),
            "proc/9/sched": SCHED.format(4),
            "proc/7/task/10/comm": "gone in between",
            "proc/8/task/8/comm": "x",
        },
    )
    root = HostRoot(tmp_path)
    assert context_switches(root, 7) == 37
    assert migrations(root, 9) == 4
    assert migrations(root, 7) is None
    assert context_switches(root, 8) is None
    assert context_switches(root, 6) is None


def test_this_process_counts() -> None:
    root = HostRoot()
    assert context_switches(root, os.getpid()) is not None
    with ThreadPoolExecutor(1) as another:
        found = migrations(root, another.submit(threading.get_native_id).result())
    if found is None:
        pytest.skip("this kernel has no /proc/PID/sched")
    assert found >= 0
