"""Test the words on what a learner can do about the longest stall that a change has left."""

from __future__ import annotations

import dataclasses

import pytest

from jitter_workshop.course.loader import load_course
from jitter_workshop.model.effect import CauseTime
from jitter_workshop.model.evidence import LOST, EvidenceReport, ExplainedStall, Part
from jitter_workshop.presenter.course.next_step import LEAST_NS, QUEUED, in_order, most_time, what_is_left
from tests.unit.test_flow_suspects import cause, report

COURSE = load_course()
SIGNS = "the chapter 'Below the kernel' shows the signs of a hypervisor and of firmware"


def left(kind: str, name: str, ns: int = 4_040_000, whole: int = 4_040_000) -> EvidenceReport:
    """Return the report on a run whose longest stall has this main cause."""
    parts = (Part(kind, name, ns), *([Part("timer", "", whole - ns)] if whole > ns else []))
    short = ExplainedStall(0, 5_000, 1, "sampler", 1, 0, (Part("timer", "", 5_000),))
    worst = (short, ExplainedStall(9, whole, 1, "sampler", 1, 0, parts))
    return dataclasses.replace(report(cause(kind, name, 1, ns)), worst=worst)


def said(chapter: str, made: EvidenceReport) -> str:
    found = COURSE.chapter(chapter)
    assert found is not None
    return what_is_left(made, found, COURSE)


@pytest.mark.parametrize(
    ("chapter", "kind", "name", "ends"),
    [
        ("isolation", "workqueue", "gc_worker", "The chapter 'Workqueues and masks' treats it."),
        ("isolation", "task", "kworker/u4:2", "The chapter 'Workqueues and masks' treats it."),
        ("isolation", "task", "kworker/1:2", "The chapter 'Workqueues and masks' shows how to find its work."),
        ("workqueues", "task", "kworker/1:2", "Find out why the thread has work."),
        ("isolation", "vector", "local_timer", "The chapter 'The tick and RCU' treats it."),
        ("isolation", "irq", "eth0-rx-0", "The chapter 'Interrupts' treats it."),
        ("interrupts", "irq", "nvme0q1", "use fewer queues (a network card: ethtool -L)."),
    ],
)
def test_a_stall_that_is_left_names_its_cause_and_where_to_go(chapter: str, kind: str, name: str, ends: str) -> None:
    told = said(chapter, left(kind, name))
    assert told.startswith("**What is left:** the longest stall of the second run took 4.04 ms, most of it `")
    assert name.partition("/u")[0].partition(":")[0].replace("_", " ") in told.replace("_", " ")
    assert told.endswith(ends)


def test_a_latency_longer_than_the_longest_stall_gets_its_reason() -> None:
    found = COURSE.chapter("isolation")
    assert found is not None
    made = left("irq", "eth0-rx-0")
    assert f"took 4.04 ms ({QUEUED}), most of it" in what_is_left(made, found, COURSE, 6_000_000)
    assert QUEUED not in what_is_left(made, found, COURSE, 4_200_000)
    # Beside the longest stall with a known cause, max has another reason.
    longest = left("no_event", "", 9_000_000, 9_000_000).worst[1]
    told = what_is_left(dataclasses.replace(made, worst=(*made.worst, longest)), found, COURSE, 20_000_000)
    assert QUEUED not in told


def test_a_longer_stall_without_a_named_cause_does_not_hide_the_next_step() -> None:
    made, longest = left("workqueue", "wb_workfn"), left("no_event", "", 9_000_000, 9_000_000).worst[1]
    told = said("isolation", dataclasses.replace(made, worst=(*made.worst, longest)))
    assert told.startswith(
        "**What is left:** the longest stall of the second run, 9 ms, has no known main cause: "
        f"{SIGNS}. "
        "The longest one with a known cause took 4.04 ms, most of it `work wb_workfn`."
    )


def test_a_longest_stall_without_an_event_leads_to_the_chapter_below_the_kernel() -> None:
    assert said("isolation", left("no_event", "")) == (
        "**What is left:** the longest stall of the second run took 4.04 ms, most of it without an event of this "
        f"kernel: {SIGNS}."
    )


def test_explain_begins_with_the_largest_cause_of_each_run() -> None:
    tick, noise = CauseTime("local timer", (27e6, 7e6)), CauseTime("task unbound", (0, 746e6), own_load=True)
    assert most_time((noise, tick), 2) == (
        "**Your runs:** `local timer` took the most time in the first, 27 ms a second; "
        "`task unbound` (the chapter's noise) in the second, 746 ms (2 threads added up)."
    )
    both = "**Your runs:** in both, `local timer` took the most time"
    assert most_time((tick,)) == f"{both}, 27 ms and 7 ms a second."
    # As at the step diagnose, a time without an event is no cause that can be the largest one.
    empty = CauseTime("no event (memory)", (30e6, 1e6), named=False)
    assert most_time((empty, tick)) == (
        f"{both} of the causes with an event, 27 ms and 7 ms a second. No event (memory): 30 ms and 1 ms a second."
    )
    less = dataclasses.replace(empty, ns=(20e6, 1e6))
    assert most_time((less, tick)) == f"{both}, 27 ms and 7 ms a second."
    assert most_time(()) == most_time((noise,)) == most_time((empty,)) == ""
    assert most_time((dataclasses.replace(tick, at_most=(True, False)),)) == ""


def test_the_sources_of_a_page_stay_behind_the_next_step() -> None:
    assert in_order("runs", "a\n\nSource: b;\nc", "left") == "runs\n\na\n\nleft\n\nSource: b;\nc"
    assert in_order("", "a\n\nb", "left") == "a\n\nb\n\nleft"
    assert in_order("", "a\n\nSource: b", "") == "a\n\nSource: b"


def test_no_next_step_without_a_long_stall_that_has_a_named_cause() -> None:
    assert said("isolation", left("no_event", "", LEAST_NS - 1, LEAST_NS - 1)) == ""
    assert said("isolation", left("no_event", LOST)) == "", "the trace lacks the event"
    assert said("hypervisor", left("no_event", "")) == "", "it is this chapter"
    assert said("isolation", left("workqueue", "gc_worker", LEAST_NS - 1, LEAST_NS - 1)) == ""
    made, thirds = left("workqueue", "gc_worker"), [Part("irq", f"nic{n}", 1_500_000) for n in range(2)]
    mixed = dataclasses.replace(made.worst[1], parts=(Part("workqueue", "gc_worker", 1_040_000), *thirds))
    assert said("isolation", dataclasses.replace(made, worst=(mixed,))) == ""
    assert said("isolation", dataclasses.replace(left("workqueue", "gc_worker"), worst=())) == ""


def test_a_handler_that_took_far_longer_than_usual_is_not_named_as_the_reason() -> None:
    made = left("softirq", "RCU", 3_690_000, 3_690_000)
    usual = dataclasses.replace(made, causes=(cause("softirq", "RCU", 56, 3_690_000 + 55 * 4_000),))
    told = said("interrupts", usual)
    assert "softirq RCU`, 922 times as long as usual" in told
    assert told.endswith("The chapter 'Below the kernel' shows how to find that.")
    # Ten others are needed, and a factor of 100.
    assert "as usual" not in said(
        "interrupts", dataclasses.replace(made, causes=(cause("softirq", "RCU", 10, 4_000_000),))
    )
    long = (cause("softirq", "RCU", 56, 3_690_000 + 55 * 40_000),)
    assert "as usual" not in said("interrupts", dataclasses.replace(made, causes=long))
