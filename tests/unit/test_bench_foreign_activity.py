"""Test the search for other tasks on the measured CPUs, with made-up processes."""

from __future__ import annotations

import dataclasses
import os

import pytest

from jitter_workshop.bench import foreign_activity
from jitter_workshop.bench.foreign_activity import ProcessTimes
from jitter_workshop.flow.measuring.notes import disturbed_note
from jitter_workshop.model.noise import NOISE_KINDS
from jitter_workshop.model.run import ForeignLoad
from tests import madeup

Row = tuple[tuple[int, float], float, int | None, str, int]

ME = os.getpid()


def rows(monkeypatch: pytest.MonkeyPatch, found: list[Row]) -> None:
    monkeypatch.setattr(foreign_activity, "_processes", lambda: found)
    monkeypatch.setattr(foreign_activity.time, "monotonic", lambda: 110.0)


def test_only_others_on_the_measured_cpus_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    before = ProcessTimes(100.0, {(50, 1.0): 3.0, (51, 1.0): 0.0, (60, 1.0): 8.0})
    found: list[Row] = [
        ((50, 1.0), 4.0, 1, "kwork\x1b[31mer", 2),  # 1 s of 10 s on CPU 1
        ((51, 1.0), 5.0, 0, "elsewhere", 1),  # on a CPU that was not measured
        ((52, 1.0), 0.05, 1, "brief", 1),  # half a percent
        ((60, 2.0), 2.0, 1, "reused pid", 1),  # began anew: its own 2 s count
        ((ME, 1.0), 9.0, 1, "ourselves", 1),
        ((70, 1.0), 9.0, 1, "our child", ME),
        ((71, 1.0), 9.0, 1, "our grandchild", 70),
    ]
    rows(monkeypatch, found)
    loads = foreign_activity.activity_since(before, {1}).loads
    assert [(load.pid, load.name, load.cpu, load.cpu_percent) for load in loads] == [
        (60, "reused pid", 1, 20.0),
        (50, "kwork [31mer", 1, 10.0),
    ]


def test_without_fixed_cpus_all_tasks_count(monkeypatch: pytest.MonkeyPatch) -> None:
    rows(monkeypatch, [((51, 1.0), 5.0, 0, "elsewhere", 1)])
    assert [load.pid for load in foreign_activity.activity_since(ProcessTimes(100.0, {}), set()).loads] == [51]


def test_a_short_run_does_not_name_a_single_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    rows(monkeypatch, [((51, 1.0), 0.02, 0, "a tick or two", 1)])
    assert foreign_activity.activity_since(ProcessTimes(109.9, {}), set()).loads == ()


@pytest.mark.parametrize(("busy_s", "own_s", "percent"), [(19.0, 6.0, 20.0), (17.1, 6.0, 0.0), (19.0, 9.0, 0.0)])
def test_tasks_that_ended_meanwhile_are_told_without_a_name(
    monkeypatch: pytest.MonkeyPatch, busy_s: float, own_s: float, percent: float
) -> None:
    rows(monkeypatch, [((50, 1.0), 1.0, 1, "named", 1), ((51, 1.0), 5.0, 0, "elsewhere", 1)])
    monkeypatch.setattr(foreign_activity, "_busy_seconds", lambda: {0: 500.0, 1: busy_s})
    monkeypatch.setattr(foreign_activity, "own_seconds", lambda: 1.0 + own_s)
    before = ProcessTimes(100.0, {}, {0: 0.0, 1: 10.0}, 1.0)
    found = foreign_activity.activity_since(before, {1})
    assert [load.name for load in found.loads] == ["named"]
    assert found.unnamed_percent == percent
    assert foreign_activity.activity_since(before, set()).unnamed_percent is None
    assert foreign_activity.activity_since(before, {1, 7}).unnamed_percent is None


def test_the_time_of_a_measured_thread_in_a_killed_process_is_not_told_as_anothers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before the kernel has removed it, and after that."""
    gone = ((50, 1.0), 9.0, 1, "accumulator", 1)
    for left in ([gone], []):
        rows(monkeypatch, [*left, ((51, 1.0), 1.0, 1, "named", 1)])
        monkeypatch.setattr(foreign_activity, "_busy_seconds", lambda: {1: 20.0})
        before = ProcessTimes(100.0, {}, {1: 10.0}, 1.0)
        found = foreign_activity.activity_since(before, {1}, whole=False)
        assert [load.name for load in found.loads] == ["named"]
        assert found.unnamed_percent is None


def test_the_note_tells_of_tasks_without_a_name_and_of_unseen_ones() -> None:
    run, _ = madeup.make_run([[100] * 100])
    assert disturbed_note(run, 0.0) == ""
    assert "at least 20 % of a" in disturbed_note(run, 20.0)
    assert "measured CPU, but their names are not known" in disturbed_note(run, 20.0)
    named = dataclasses.replace(run, disturbed=(ForeignLoad(7, "other", 1, 30.0),))
    with_name, without = disturbed_note(named, 20.0).split("; ")
    assert with_name.endswith("measured CPUs: other (30 %)")
    assert without.startswith("other tasks used at least")
    stalled, _ = madeup.make_run([[100] * 100 + [50_000_000]])
    assert "but a task that began" in disturbed_note(stalled, None)


def test_the_note_beside_a_noise_of_ours_does_not_say_that_no_task_was_there() -> None:
    stalled, _ = madeup.make_run([[100] * 100 + [50_000_000]])
    assert disturbed_note(stalled, None, hunted=True) == ""
    for kind in NOISE_KINDS:
        assert disturbed_note(dataclasses.replace(stalled, noise=kind), 0.0) == ""
    other = dataclasses.replace(stalled, noise="greedy", disturbed=(ForeignLoad(7, "other", 1, 30.0),))
    assert "measured CPUs: other (30 %); other" in disturbed_note(other, 20.0)


def test_a_noise_of_ours_that_still_runs_does_not_count_as_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    rows(monkeypatch, [((70, 1.0), 4.0, 1, "hidden", ME), ((ME, 1.0), 3.0, 0, "ourselves", 1)])
    monkeypatch.setattr(foreign_activity, "_busy_seconds", lambda: {1: 17.0})
    monkeypatch.setattr(foreign_activity, "own_seconds", lambda: 3.0)
    # 7 s of 10 s on CPU 1: 3 of ours (on another CPU, perhaps), 4 of the noise, which had used 1 s before.
    assert (
        foreign_activity.activity_since(ProcessTimes(100.0, {(70, 1.0): 1.0}, {1: 10.0}, 0.0), {1}).unnamed_percent
        == 10.0
    )
    assert (
        foreign_activity.activity_since(ProcessTimes(100.0, {(70, 1.0): 0.0}, {1: 10.0}, 0.0), {1}).unnamed_percent
        == 0.0
    )


def test_this_very_host_can_be_looked_at() -> None:
    seen = foreign_activity.process_times()
    assert any(pid == ME for pid, _ in seen.cpu_seconds)
    assert all(load.pid != ME for load in foreign_activity.activity_since(seen, set()).loads)
