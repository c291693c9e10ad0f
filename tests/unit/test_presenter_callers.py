"""Test the order of a table in which a row stands below the one that called it."""

from __future__ import annotations

from dataclasses import replace

from jitter_workshop.model.evidence import InterferingTask
from jitter_workshop.presenter.runs.callers import INDENTED, below_their_callers, name_of_row
from tests.unit.test_presenter_residence import shown

TIMER = InterferingTask(1, "vector", "local_timer", 2_511, 16_000_000, 170_000)
TICK = InterferingTask(1, "timer", "tick_nohz_handler", 2_509, 7_000_000, 15_000, 1, 2_509, "vector", "local_timer")
WORKER = InterferingTask(1, "task", "kworker/1:1", 14, 400_000, 36_000)
WORK = InterferingTask(1, "workqueue", "vmstat_update", 11, 60_000, 6_000, 1, 11, "task", "kworker/1:1")
BUSY = InterferingTask(1, "task", "rngd", 3, 450_000, 200_000)


def placed(*visitors: InterferingTask) -> list[tuple[int, str]]:
    return [(depth, one.name) for depth, one in below_their_callers(visitors)]


def test_a_row_stands_below_its_caller_and_the_times_of_both_count() -> None:
    # The worker with its work took more than the other task, without it less.
    assert placed(TIMER, TICK, BUSY, WORKER, WORK) == [
        (0, "local_timer"),
        (1, "tick_nohz_handler"),
        (0, "kworker/1:1"),
        (1, "vmstat_update"),
        (0, "rngd"),
    ]


def test_a_row_without_its_caller_in_the_table_is_not_indented() -> None:
    assert placed(WORK, replace(TICK, outer_name="other")) == [(0, "tick_nohz_handler"), (0, "vmstat_update")]
    # On another CPU, or called in fewer than half of the times.
    assert placed(WORKER, replace(WORK, cpu=2))[1][0] == 0
    assert placed(WORKER, replace(WORK, nested=5))[1][0] == 0


def test_rows_that_call_each_other_are_all_shown() -> None:
    first = replace(TICK, name="a", outer_kind="timer", outer_name="b")
    second = replace(TICK, name="b", outer_kind="timer", outer_name="a")
    assert sorted(name for _, name in placed(first, second, replace(first, name="c", outer_name="c"))) == [
        "a",
        "b",
        "c",
    ]


def test_a_long_name_does_not_make_an_indented_row_longer() -> None:
    hostile = replace(TICK, name="x\x1b" * 90)
    assert len(name_of_row(3, hostile)) <= 60
    assert name_of_row(1, WORK) == "  work vmstat_update"


def test_the_table_explains_an_indented_row() -> None:
    lines = shown((), visitors=(TIMER, TICK, WORKER, WORK))
    assert " ".join(lines).find(INDENTED.split(".")[0]) > 0
    rows = [line for line in lines if "tick_nohz_handler" in line or "local timer" in line]
    assert rows[0].startswith("local timer")
    assert rows[1].startswith("  timer tick_nohz_handler")
    assert INDENTED.split(".")[0] not in " ".join(shown((), visitors=(TIMER, WORKER)))
    work = shown(("work",), visitors=(TIMER, TICK, WORKER, WORK))
    assert [line.split()[0] for line in work[2:5]] == ["work", "local", "timer"]
    assert work[4].startswith("  timer tick_nohz_handler")
