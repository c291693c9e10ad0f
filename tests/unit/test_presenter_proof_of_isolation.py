"""Test the words on whether a run proves that no other task ran on the measured CPU."""

from __future__ import annotations

import dataclasses

import pytest

from jitter_workshop.course.loader import load_course
from jitter_workshop.model.evidence import EvidenceReport, InterferingTask, QuietCpus, Residence
from jitter_workshop.model.run import Run, ThreadRecord
from jitter_workshop.presenter.course.proof_of_isolation import proof_told, said_of_proof
from jitter_workshop.stats.figures import KnownRun
from tests import madeup
from tests.fakes import open_workshop, walk_with

GC = InterferingTask(1, "workqueue", "gc_worker", 1, 6_604_000, 3_979_317)
PYTHON = InterferingTask(1, "task", "python", 3, 900_000, 400_000)
TIMER = InterferingTask(1, "vector", "local_timer", 2_500, 90_000_000, 9_000_000)


def run(preempted: int | None) -> Run:
    """A ``spin`` run of ten seconds."""
    threads = (ThreadRecord("sampler", {"1": 1}, involuntary_switches=preempted),)
    made, _ = madeup.make_run([[100]], name="spin_gap", workload="spin", block_s=10.0, threads=threads)
    return made


def told(preempted: int | None, *visitors: InterferingTask, traced: bool = True) -> str:
    course = load_course()
    chapter = next(one for one in course.chapters if one.id == "isolation")
    proof = QuietCpus((1,), 10**10, False, 1, 2, 3, "Something ran.")
    present = Residence((), visitors, (), (), (), proof)
    report = EvidenceReport(1, "r", "trace", 1_000, "mono", 1, 0, (), (), 10**10, residence=present)
    return proof_told(KnownRun(run(preempted), report if traced else None), chapter, course)


def test_a_thread_that_was_never_preempted_is_the_proof() -> None:
    assert told(0, TIMER) == "These 10 s prove that no other task ran on this CPU: the thread was never preempted."


def test_a_failed_proof_names_the_longest_task_and_the_next_step() -> None:
    assert told(20, PYTHON, GC, TIMER) == (
        "These 10 s do not prove isolation: 20 preemptions, the longest by work gc_worker (3.98 ms). Next: v (causes), "
        "then chapter 'Workqueues and masks'."
    )
    # This chapter itself keeps ordinary tasks away.
    assert told(1, PYTHON).endswith("isolation: 1 preemption, the longest by task python (400 µs). Next: v (causes).")
    for untraced in (told(20, traced=False), told(20, TIMER)):
        assert untraced == "These 10 s do not prove isolation: 20 preemptions. Next: v (causes)."


def test_a_run_without_the_count_says_nothing() -> None:
    assert told(None, GC) == ""


@pytest.mark.parametrize(("evidence", "says"), [(("left",), True), (("switches",), False)])
def test_only_a_chapter_that_asks_for_the_proof_tells_it(evidence: tuple[str, ...], says: bool) -> None:
    workshop = open_workshop()
    walk = walk_with(workshop.walk("baseline"), evidence=evidence)
    assert said_of_proof(walk, workshop.course) == ""
    walk.record("again", dataclasses.replace(run(3), id="20260101-000000-bbbb"))
    assert ("do not prove isolation" in said_of_proof(walk, workshop.course)) is says
