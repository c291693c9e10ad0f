"""Test the rows of a table of causes: the local timer is one row with its parts, and the times add up."""

from __future__ import annotations

from dataclasses import replace

from jitter_workshop.model.evidence import EvidenceReport, is_of_timer
from jitter_workshop.presenter.runs.causes import cause_table
from jitter_workshop.report import sections
from jitter_workshop.report.blocks import Table
from jitter_workshop.report.cause_rows import cause_rows, sum_of_causes
from jitter_workshop.report.cause_words import any_without, in_time
from tests.madetrace import pair, tick
from tests.unit.test_evidence_summary import one, report


def traced(messages: int | None = 1_000) -> EvidenceReport:
    """Two stalls of a tick with gaps, one of a softirq, one without an event."""
    events = [*tick(10_000, 3_000), *tick(30_000, 5_000), *pair(50_000, 52_000, "softirq", "RCU")]
    windows = [(9_500, 13_500, 2), (29_000, 36_000, 3), (50_000, 52_000, 1), (80_000, 86_000, 4)]
    return report(one(events, windows), messages=messages)


def table(found: EvidenceReport, width: int = 100) -> list[str]:
    return [line.plain for line in cause_table(found, width)]


def test_the_local_timer_is_one_row_and_its_parts_follow() -> None:
    found = traced()
    assert [(row.words, row.part) for row in cause_rows(found)] == [
        ("local timer", False),
        ("timer tick_nohz_handler", True),
        ("gap at its interrupt", True),
        ("interrupt", True),
        ("no event", False),
        ("softirq RCU", False),
    ]
    whole, *rest = cause_rows(found)
    parts = [row.cause for row in rest if row.part]
    assert whole.cause.total_ns == sum(part.total_ns for part in parts) == 11_000
    # Two stalls have the timer, not as many as its parts have together.
    assert (whole.cause.count, whole.cause.worst_ns, whole.cause.late_messages) == (2, 7_000, 5)
    # Without one of the parts the messages are as late; without the timer they are not.
    assert whole.cause.below_without == 0.995
    assert {part.below_without for part in parts} == {0.990}


def test_rows_that_are_no_parts_add_up_to_the_time_of_all_stalls() -> None:
    found = traced()
    rows = cause_rows(found)
    assert sum(row.cause.total_ns for row in rows if not row.part) == sum(cause.total_ns for cause in found.causes)
    assert sum_of_causes(found) == (
        "The stalls took 19 µs: tasks and events 10 µs, gaps next to these (entry, exit, tracing) 3 µs, no event 6 µs."
    )
    threads = replace(found, stalls=4, distinct=3)
    assert sum_of_causes(threads).startswith("The stalls took 19 µs, summed over the threads: ")
    alone = replace(found, causes=tuple(cause for cause in found.causes if cause.name == "RCU"))
    assert sum_of_causes(alone) == "The stalls took 2 µs."


def test_one_cause_of_the_timer_or_an_older_report_has_no_parts() -> None:
    found = traced()
    assert not any(row.part for row in cause_rows(replace(found, timer=None)))
    bare = report(one(pair(1_000, 4_000, "vector", "local_timer"), [(1_000, 4_000, 1)]))
    assert [(row.words, row.part) for row in cause_rows(bare)] == [("local timer (interrupt)", False)]


def test_the_column_of_shares_stands_only_where_a_share_differs() -> None:
    found = traced()
    assert any_without(found)
    head = next(line for line in table(found) if line.startswith("cause "))
    assert "without it" in head
    lines = [line for line in table(found) if "tick_nohz_handler" in line or line.startswith("local timer")]
    assert "99.50 %" in lines[0]
    assert "%" not in lines[1].rsplit("%", 1)[0], "a part has its share of the time alone"
    two = report(one([*pair(1_000, 4_000, "irq", "nic0"), *pair(4_000, 9_000, "softirq", "RCU")], [(1_000, 9_000, 1)]))
    assert not any_without(two)
    assert in_time(two) == "99.90 % of 1,000 readings (sampler) were below 1 µs."
    sent = in_time(replace(two, main_thread="accumulator"))
    assert sent == "99.90 % of 1,000 messages (accumulator) were below 1 µs, counted from their sending."
    assert not any("without it" in line for line in table(two))
    assert not any_without(replace(two, below_now=None))
    assert in_time(replace(two, messages=None)) == ""


def test_a_part_is_indented_on_the_screen_and_marked_in_a_report() -> None:
    assert any(line.startswith("  timer tick_nohz_handler ") for line in table(traced(), 77))
    made = sections._causes(traced())
    assert isinstance(made, Table)
    assert "The stalls took 19 µs" in str(made.caption)
    assert "↳: a part of the local timer." in str(made.caption)
    names = [str(getattr(row[0], "text", row[0])) for row in made.rows]
    assert names[:2] == ["local timer", "↳ timer tick_nohz_handler"]


def test_parts_of_the_local_timer() -> None:
    parts = (("timer", "x"), ("vector", "local_timer"), ("irq", "arch_timer"), ("around", "local_timer"))
    assert all(is_of_timer(*part) for part in parts)
    others = (("task", "local_timer"), ("around", "RCU"), ("softirq", "TIMER"), ("irq", "nic0"), ("no_event", ""))
    assert not any(is_of_timer(*other) for other in others)
