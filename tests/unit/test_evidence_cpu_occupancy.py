"""Test the claim that only the measured threads ran on their CPUs: the events that it needs."""

from __future__ import annotations

import pytest

from jitter_workshop.evidence.cpu_occupancy import Presence
from jitter_workshop.evidence.explain import explain_block
from jitter_workshop.model.evidence import BlockSpan, QuietCpus, Residence
from jitter_workshop.model.spec import helper_threads
from jitter_workshop.model.trace import TraceEvent
from tests.unit.test_evidence_timeline import MEASURED, event, pair, switch, tick

BLOCK = 1_000_000


def proof(*blocks: list[TraceEvent], lost: int = 0, missing: tuple[str, ...] = ()) -> QuietCpus:
    present = Presence({"sampler": 1})
    for index, events in enumerate(blocks):
        span = BlockSpan(index, 0, BLOCK, index * BLOCK, BLOCK)
        present.add(explain_block(span, [], events, (1,), {"sampler": MEASURED}, {1: lost}).timeline)
    return present.residence(BLOCK * len(blocks), missing).proof


def woken() -> list[TraceEvent]:
    """A block before whose beginning the measured thread got its CPU."""
    return [switch(-100, 0, MEASURED)]


def test_a_block_that_shows_only_the_measured_thread_is_clean() -> None:
    found = proof(woken(), woken())
    assert found.clean is True
    assert found.sentence == "In 2 ms nothing but the measured threads ran on CPU 1."


def test_a_block_without_any_event_proves_nothing() -> None:
    found = proof(woken(), [], woken())
    assert found.clean is None
    assert (
        found.sentence == "In 3 ms the trace of CPU 1 is empty in 1 block, so nothing is known about other tasks there."
    )
    assert "is empty in 2 blocks, so" in proof([], []).sentence
    seen = [event(100, "irq_entry", "nic0", pid=MEASURED, a=7), event(200, "irq_exit", "nic0", pid=MEASURED, a=7)]
    dirty = proof(seen, [])
    assert dirty.clean is False
    assert dirty.sentence.endswith("1 block, so the true numbers may be higher.")


@pytest.mark.parametrize(
    ("missing", "clean", "says"),
    [
        (("irq:softirq_entry", "csd:csd_function_entry"), None, "is without irq:softirq_entry, so"),
        (("irq_vectors:local_timer_entry",), None, "is without irq_vectors:local_timer_entry, so"),
        (("nmi:nmi_handler",), None, "is without nmi:nmi_handler, so"),
        (("irq_vectors:*", "nmi:nmi_handler"), True, "nothing but"),  # arm64
        (("ipi:ipi_send_cpu", "exceptions:page_fault_user", "stacks"), True, "nothing but"),
    ],
)
def test_an_interruption_that_the_kernel_does_not_trace_is_not_excluded(
    missing: tuple[str, ...], clean: bool | None, says: str
) -> None:
    found = proof(woken(), missing=missing)
    assert found.clean is clean
    assert says in found.sentence


def test_lost_events_prove_nothing() -> None:
    found = proof(woken(), lost=3)
    assert found.clean is None
    assert " lacks " in found.sentence


def test_helpers_of_a_run_with_a_lock_are_no_other_tasks() -> None:
    helpers = helper_threads("inherit")
    events = woken()
    for number, name in enumerate(helpers):
        at, tid = 10_000 * (number + 1), 500 + number
        events.append(switch(at, MEASURED, tid, stays=True, names=("measured", name)))
        events.append(switch(at + 4_000, tid, MEASURED, names=(name, "measured")))

    def found(helpers: tuple[str, ...], *more: TraceEvent) -> Residence:
        present = Presence({"sampler": 1}, helpers)
        span = BlockSpan(0, 0, BLOCK, 0, BLOCK)
        present.add(explain_block(span, [], [*events, *more], (1,), {"sampler": MEASURED}).timeline)
        return present.residence(BLOCK)

    ours = found(helpers)
    assert (ours.visitors, ours.proof.clean, ours.second) == ((), True, None)
    assert ours.proof.sentence == "In 1 ms nothing but the measured threads and the helpers of their lock ran on CPU 1."
    assert ours.threads[0].kept_waiting_ns == 8_000, "the measured thread waited for them all the same"
    assert {one.name for one in found(()).visitors} == set(helpers)
    beside = found(helpers, *pair(50_000, 51_000, "irq", "nic0"))
    assert [(one.name, one.total_ns) for one in beside.visitors] == [("nic0", 1_000)]
    assert beside.second is not None
    assert beside.second.taken_ns == 1_000
    assert {one.who.name for one in beside.second.lanes} == {"nic0", *helpers}


def test_the_longest_time_of_a_work_item_ends_where_the_measured_thread_has_the_cpu() -> None:
    """The thread preempts the worker within one item: it sees two stalls, and none as long as both."""
    worker = 500
    events = [
        *woken(),
        switch(10_000, MEASURED, worker, stays=True),
        event(11_000, "work_start", "gc_worker", pid=worker),
        *pair(20_000, 21_000, "vector", "local_timer", pid=worker),
        switch(51_000, worker, MEASURED, stays=True),
        switch(60_000, MEASURED, worker, stays=True),
        event(80_000, "work_end", "gc_worker", pid=worker),
        switch(81_000, worker, MEASURED),
    ]
    span = BlockSpan(0, 0, BLOCK, 0, BLOCK)
    present = Presence({"sampler": 1})
    present.add(explain_block(span, [], events, (1,), {"sampler": MEASURED}, {1: 0}).timeline)
    (item,) = [one for one in present.residence(BLOCK).visitors if one.kind == "workqueue"]
    assert (item.count, item.total_ns, item.worst_ns) == (1, 59_000, 39_000)


def test_a_called_function_is_no_run_and_no_interruption_of_its_own() -> None:
    worker, softirqd = 500, 600
    events = [
        *woken(),
        # One run of a kernel worker with two work items, and an interrupt that comes in the first of them.
        switch(10_000, MEASURED, worker, stays=True, names=("measured", "kworker/1:1")),
        *pair(11_000, 15_000, "work", "vmstat_update", pid=worker),
        *tick(12_000, 1_000, pid=worker),
        *pair(16_000, 17_000, "work", "gc_worker", pid=worker),
        switch(18_000, worker, MEASURED, names=("kworker/1:1", "measured")),
        # Two more ticks; a softirq that follows the second one is an interruption of its own.
        *tick(30_000, 1_000),
        *tick(40_000, 1_000),
        *pair(41_500, 42_000, "softirq", "TIMER"),
        # A call from another CPU, with the function that it calls.
        event(50_000, "vector_entry", "call_function_single", a=251),
        *pair(50_100, 50_600, "csd", "flush_tlb_func"),
        event(51_000, "vector_exit", "call_function_single", a=251),
        # A task whose work is a softirq, and a timer's function in this softirq.
        switch(60_000, MEASURED, softirqd, stays=True, names=("measured", "ksoftirqd/1")),
        event(61_000, "softirq_entry", "HRTIMER", pid=softirqd, a=8),
        *pair(62_000, 63_000, "timer", "hrtimer_wakeup", pid=softirqd),
        event(64_000, "softirq_exit", "HRTIMER", pid=softirqd, a=8),
        switch(65_000, softirqd, MEASURED, names=("ksoftirqd/1", "measured")),
    ]
    present = Presence({"sampler": 1})
    timeline = explain_block(BlockSpan(0, 0, BLOCK, 0, BLOCK), [], events, (1,), {"sampler": MEASURED}).timeline
    assert timeline.unbalanced == 0
    present.add(timeline)
    residence = present.residence(BLOCK)
    assert {one.name: (one.count, one.nested, one.outer_kind, one.outer_name) for one in residence.visitors} == {
        "kworker/1:1": (1, 0, "", ""),
        "vmstat_update": (1, 1, "task", "kworker/1:1"),
        "gc_worker": (1, 1, "task", "kworker/1:1"),
        "local_timer": (3, 0, "", ""),
        "tick_nohz_handler": (3, 3, "vector", "local_timer"),
        "TIMER": (1, 0, "", ""),
        "call_function_single": (1, 0, "", ""),
        "flush_tlb_func": (1, 1, "vector", "call_function_single"),
        "ksoftirqd/1": (1, 0, "", ""),
        "HRTIMER": (1, 1, "task", "ksoftirqd/1"),
        "hrtimer_wakeup": (1, 1, "softirq", "HRTIMER"),
    }
    proof = residence.proof
    # Two tasks; three ticks, one softirq and one call.
    assert (proof.other_tasks, proof.interruptions, proof.nested) == (2, 5, 8)
    assert proof.sentence.startswith("In 1 ms other tasks ran twice on CPU 1, and there were 5 interruptions.")
    # Each row has its own time alone, so the sum is the time for which anything else had the CPU.
    assert proof.taken_ns == sum(one.total_ns for one in residence.visitors) == 8_000 + 2_000 + 500 + 1_000 + 5_000


def test_a_function_without_a_listed_caller_counts_itself() -> None:
    lone = explain_block(
        BlockSpan(0, 0, BLOCK, 0, BLOCK),
        [],
        [*woken(), *pair(100, 200, "timer", "hrtimer_wakeup"), *pair(300, 400, "csd", "flush_tlb_func")],
        (1,),
        {"sampler": MEASURED},
    )
    present = Presence({"sampler": 1})
    present.add(lone.timeline)
    found = present.residence(BLOCK)
    assert [(one.count, one.nested) for one in found.visitors] == [(1, 0), (1, 0)]
    assert found.proof.interruptions == 2
