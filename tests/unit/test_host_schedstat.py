"""All tasks' time on a CPU and in its queue, from the kernel's own table."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.cpu.stat import (
    Schedstat,
    cpu_schedstats,
    parse_cpu_schedstats,
    schedstat_between,
)
from jitter_workshop.host.root import HostRoot
from tests import hosttrees

count = st.integers(0, 2**64 - 1)
figures = st.builds(Schedstat, count, count, st.integers(1, 2**64 - 1))


def table(per_cpu: dict[int, Schedstat], version: int = 15) -> str:
    """As kernel/sched/stats.c prints it (version 17 names its domains)."""
    lines = [f"version {version}", "timestamp 4295000000"]
    for cpu, one in per_cpu.items():
        lines.append(f"cpu{cpu} 1 0 3 4 5 6 {one.ran_ns} {one.waited_ns} {one.timeslices}")
        lines.append(f"domain0 {'SMT ' if version > 16 else ''}00000003 {' '.join(['7'] * 36)}")
    return "\n".join(lines) + "\n"


@given(st.dictionaries(st.integers(0, 8191), figures, min_size=1, max_size=9), st.sampled_from((15, 16, 17)))
def test_a_table_round_trips(per_cpu: dict[int, Schedstat], version: int) -> None:
    assert parse_cpu_schedstats(table(per_cpu, version)).per_cpu == per_cpu


@given(st.text(max_size=300))
def test_garbage_never_raises_and_is_never_a_figure_below_zero(text: str) -> None:
    for source in (text, f"version 15\n{text}", f"version 15\ncpu0 {text}\ncpu{text}"):
        found = parse_cpu_schedstats(source)
        assert bool(found.per_cpu) is not bool(found.reason)
        assert all(min(s.ran_ns, s.waited_ns, s.timeslices) >= 0 for s in found.per_cpu.values())


@given(figures, figures)
def test_the_difference_of_two_schedstat_readings_is_never_negative(one: Schedstat, grown: Schedstat) -> None:
    later = Schedstat(one.ran_ns + grown.ran_ns, one.waited_ns + grown.waited_ns, one.timeslices + grown.timeslices)
    assert schedstat_between(one, later) == grown
    assert schedstat_between(later, one) == Schedstat(0, 0, 0)
    assert schedstat_between(None, later) is None
    assert schedstat_between(one, None) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "shows no version"),
        ("cpu0 1 0 3 4 5 6 7 8 9\n", "shows no version"),
        ("version 14\ncpu0 1 2 3 4 5 6 7 8 9 10 11 12\n", "has version 14, older than 15"),
        ("version 15\ntimestamp 5\ncpu0 1 0 3 4 5 6 7 8\n", "lists no CPU"),
    ],
)
def test_a_table_that_cannot_be_read_says_why(text: str, reason: str) -> None:
    found = parse_cpu_schedstats(text)
    assert found.per_cpu == {}
    assert found.reason == f"/proc/schedstat {reason}"


def test_files_below_a_root(tmp_path: Path) -> None:
    one = Schedstat(10, 20, 30)
    hosttrees.write(tmp_path, {"proc/schedstat": table({0: one, 3: one})})
    assert cpu_schedstats(HostRoot(tmp_path)).per_cpu == {0: one, 3: one}
    assert cpu_schedstats(HostRoot(tmp_path / "proc")).reason == "/proc/schedstat: no such file"
