"""/proc/stat: times per CPU and the rule for the steal clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.cpu.stat import CpuTimes, parse_cpu_stat, read_stat, steal_between
from jitter_workshop.host.root import HostRoot
from tests import hosttrees

ticks = st.integers(0, 2**50)
rows = st.dictionaries(st.integers(0, 9_999), st.lists(ticks, min_size=10, max_size=10), min_size=1, max_size=8)


@given(rows)
def test_times_round_trip(made: dict[int, list[int]]) -> None:
    text = "cpu  1 2 3 4\n" + "".join(f"cpu{n} {' '.join(map(str, values))}\n" for n, values in made.items())
    stat = parse_cpu_stat(text + "intr 1 2 3\nctxt 77\nbtime 99\n")
    assert {n: list(astuple(times)) for n, times in stat.per_cpu.items()} == made
    assert all(times.total == sum(made[n][:8]) for n, times in stat.per_cpu.items())


@given(st.one_of(st.text(max_size=300), st.text("cpu0123456789 \nctxtbme", max_size=300)))
def test_garbage_never_raises(text: str) -> None:
    stat = parse_cpu_stat(text)
    assert bool(stat.reason) == (not stat.per_cpu)


@pytest.mark.parametrize(
    "line", ["cpu0 1 2 3", "cpu0 1 2 x 4", "cpu0 -1 2 3 4", "cpux 1 2 3 4", "cpu0", "cpu9999999 1 2 3 4"]
)
def test_damaged_lines_are_left_out(line: str) -> None:
    assert parse_cpu_stat(line).per_cpu == {}


def test_an_old_kernel_without_steal_columns() -> None:
    assert parse_cpu_stat("cpu0 1 2 3 4\n").per_cpu == {0: CpuTimes(1, 2, 3, 4)}


def test_newer_columns_are_ignored() -> None:
    assert parse_cpu_stat("cpu0 1 2 3 4 5 6 7 8 9 10 11 12\n").per_cpu[0].guest_nice == 10


@pytest.mark.parametrize(
    ("steal", "guest", "available"),
    [(5, True, True), (5, None, True), (5, False, True), (0, False, False), (0, True, None), (0, None, None)],
)
def test_the_steal_clock_is_believed_when_it_ever_ran(steal: int, guest: bool | None, available: bool | None) -> None:
    stat = parse_cpu_stat(hosttrees.stat([0, 1], steal=steal), guest)
    assert stat.steal_available is available
    assert (stat.steal_percent is None) == (available is not True)


def test_steal_in_percent() -> None:
    stat = parse_cpu_stat(hosttrees.stat([0, 1], steal=40), True)
    assert stat.tick_ns == 10_000_000
    assert stat.steal_percent == pytest.approx(0.4)


def test_steal_between_two_readings() -> None:
    earlier = parse_cpu_stat(hosttrees.stat([0, 1], steal=0), True)
    later = parse_cpu_stat("cpu0 1 1 1 1 0 0 0 3 0 0\ncpu1 1 1 1 1 0 0 0 0 0 0\n", True)
    assert steal_between(earlier, later) == 30_000_000
    assert steal_between(earlier, later, [1]) == 0
    assert steal_between(earlier, later, [7]) is None
    assert steal_between(earlier, earlier) is None
    backwards = parse_cpu_stat("cpu0 1 1 1 1 0 0 0 2 0 0\ncpu1 1 1 1 1 0 0 0 1 0 0\n", True)
    assert steal_between(later, backwards) == 10_000_000


def test_missing_file_says_why(tmp_path: Path) -> None:
    stat = read_stat(HostRoot(tmp_path))
    assert stat.reason == "/proc/stat: no such file"
    assert stat.steal_percent is None


def test_only_online_cpus_have_times(host_tree: Callable[[str], Path]) -> None:
    assert list(read_stat(HostRoot(host_tree("offline"))).per_cpu) == [0, 1, 3, 4, 6]


def test_this_host_has_times() -> None:
    assert read_stat(HostRoot()).per_cpu
