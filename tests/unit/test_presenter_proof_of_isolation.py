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
KSOFTIRQD = InterferingTask(1, "task", "ksoftirqd/1", 12, 900_000, 80_000)
KWORKER = InterferingTask(1, "task", "kworker/1:2", 6, 300_000, 90_000)
MIGRATION = InterferingTask(1, "task", "migration/1", 1, 9_000, 9_000)
UNBOUND = InterferingTask(1, "task", "kworker/u4:1", 1, 2_000_000, 2_000_000)
TIMER = InterferingTask(1, "vector", "local_timer", 2_500, 90_000_000, 9_000_000)


def run(preempted: int | None) -> Run:
    """A ``spin`` run of ten seconds."""
    threads = (ThreadRecord("sampler", {"1": 1}, involuntary_switches=preempted),)
    made, _ = madeup.make_run([[100]], name="spin_gap", workload="spin", block_s=10.0, threads=threads)
    return made


def told(preempted: int | None, *visitors: InterferingTask, traced: bool = True, lost: int = 0) -> str:
    course = load_course()
    chapter = next(one for one in course.chapters if one.id == "isolation")
    proof = QuietCpus((1,), 10**10, False, 1, 2, 3, "Something ran.")
    present = Residence((), visitors, (), (), (), proof)
    report = EvidenceReport(1, "r", "trace", 1_000, "mono", 1, lost, (), (), 10**10, residence=present)
    return proof_told(KnownRun(run(preempted), report if traced else None), chapter, course)


def test_a_thread_that_was_never_preempted_is_the_proof() -> None:
    assert told(0, TIMER) == "No other task ran on this CPU in these 10 s: the thread was never preempted."


def test_a_failed_proof_names_the_longest_task_and_the_next_step() -> None:
    assert told(20, PYTHON, KSOFTIRQD, TIMER) == (
        "Not isolated: task python ran 3 times on CPU 1, at most 400 µs. "
        "Kernel threads bound to this CPU ran 12 times. Next: v (causes)."
    )
    # Kernel work beside it is counted, but it is no failure, so another task is named.
    assert told(20, PYTHON, UNBOUND) == (
        "Not isolated: task python ran 3 times on CPU 1, at most 400 µs, and 1 other task did, too. Next: v (causes)."
    )
    for untraced in (told(20, traced=False), told(20, TIMER)):
        assert untraced == "Other tasks ran on this CPU in these 10 s: 20 preemptions. Next: v (causes)."


def test_bound_kernel_threads_are_no_failure() -> None:
    assert told(19, KSOFTIRQD, KWORKER, MIGRATION, TIMER) == (
        "No other task ran on CPU 1 in these 10 s except bound kernel threads, which isolation cannot move: "
        "ksoftirqd/1 12 times, kworker/1:2 6 times, migration/1 once."
    )
    # A work item runs in such a thread, and another chapter is about these.
    assert told(6, KWORKER, GC).endswith("kworker/1:2 6 times. Next: v (causes), then chapter 'Workqueues and masks'.")


def test_kernel_workers_that_are_not_bound_are_an_exception_and_no_failure() -> None:
    treated = "The chapter 'Workqueues and masks' treats it."
    ran = "kworker/u4:1 ran once on CPU 1, at most 2 ms"
    assert told(1, UNBOUND, TIMER) == f"Isolated, except from kernel work: {ran}. {treated}"
    bound = "Kernel threads bound to this CPU ran 12 times."
    assert told(13, UNBOUND, KSOFTIRQD) == f"Isolated, except from kernel work: {ran}. {bound} {treated}"
    second = dataclasses.replace(UNBOUND, name="kworker/u4:2", worst_ns=13_600)
    assert told(2, UNBOUND, second).endswith(f"{ran}, and 1 other worker did, too. {treated}")
    # A preemption that the trace does not show may be by another task.
    for seen in (told(18, UNBOUND), told(1, UNBOUND, lost=1)):
        assert "solated" not in seen
        assert seen.endswith(f" only kernel work on CPU 1: {ran}. {treated}")
    assert told(18, UNBOUND).startswith("The trace shows 1 of 18 preemptions: only ")


def test_a_trace_that_does_not_show_every_preemption_says_so() -> None:
    assert told(23, KSOFTIRQD, KWORKER).startswith("The trace shows 18 of 23 preemptions: no other task on CPU 1 ")
    assert told(18, KSOFTIRQD, KWORKER, lost=1).startswith("The trace lost events. It shows no other task on CPU 1 ")


def test_many_bound_threads_are_cut_to_the_most_frequent_ones() -> None:
    workers = [InterferingTask(1, "task", f"kworker/1:{n}", 9 - n, 9_000, 1_000) for n in range(6)]
    assert told(39, *workers).endswith(
        "kworker/1:0 9 times, kworker/1:1 8 times, kworker/1:2 7 times, kworker/1:3 6 times, others 9 times."
    )


def test_a_run_without_the_count_says_nothing() -> None:
    assert told(None, GC) == ""


@pytest.mark.parametrize(("evidence", "says"), [(("left",), True), (("switches",), False)])
def test_only_a_chapter_that_asks_for_the_proof_tells_it(evidence: tuple[str, ...], says: bool) -> None:
    workshop = open_workshop()
    walk = walk_with(workshop.walk("baseline"), evidence=evidence)
    assert said_of_proof(walk, workshop.course) == ""
    walk.record("again", dataclasses.replace(run(3), id="20260101-000000-bbbb"))
    assert ("Other tasks ran on this CPU" in said_of_proof(walk, workshop.course)) is says
