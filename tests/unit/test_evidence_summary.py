"""A run's causes, its worst stalls, and who was on the hot CPUs."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.evidence.cpu_occupancy import Presence, covered
from jitter_workshop.evidence.explain import ExplainedBlock, explain_block
from jitter_workshop.evidence.summary import summarise_run
from jitter_workshop.model.codec import from_plain, to_plain
from jitter_workshop.model.evidence import CAUSE_KINDS, BlockSpan, EvidenceReport, InterferingTask, ThreadOnCpu, Window
from jitter_workshop.model.trace import TraceEvent
from jitter_workshop.report.cause_words import still_there
from tests.madetrace import MEASURED, OTHER, TIDS, block, event, pair, switch, tick

BLOCK = 1_000_000


def one(
    events: list[TraceEvent], windows: list[tuple[int, int, int]], *, index: int = 0, lost: dict[int, int] | None = None
) -> ExplainedBlock:
    """A block of a million ticks of 1 ns. ``windows``: start, end, messages."""
    span = BlockSpan(index, 0, BLOCK, index * 2 * BLOCK, BLOCK)
    found = [Window(start, end, 1, "sampler", messages) for start, end, messages in windows]
    return explain_block(span, found, events, (1,), TIDS, lost)


def report(*blocks: ExplainedBlock, **rest: object) -> EvidenceReport:
    wanted = {"run": "r", "threshold_ns": 1_000, "clock": "mono", "main_thread": "sampler", "messages": 1_000, **rest}
    return summarise_run(blocks, **wanted)  # type: ignore[arg-type]


def test_causes_add_up_over_blocks_largest_first() -> None:
    first = one(
        [*pair(1_000, 4_000, "irq", "nic0"), *pair(50_000, 52_000, "softirq", "RCU")],
        [(1_000, 4_000, 3), (50_000, 52_000, 1)],
    )
    second = one(pair(1_000, 9_000, "irq", "nic0"), [(500, 9_000, 1)], index=1)
    found = report(first, second)
    assert [(c.kind, c.name, c.count, c.total_ns, c.worst_ns, c.late_messages) for c in found.causes] == [
        ("irq", "nic0", 2, 11_000, 8_000, 4),
        ("softirq", "RCU", 1, 2_000, 2_000, 1),
        ("around", "nic0", 1, 500, 500, 1),
    ]
    assert found.causes[0].ns_per_second == pytest.approx(11_000 / 0.002)
    assert [c.typical_ns for c in found.causes] == [3_000, 2_000, 500]
    assert (found.stalls, found.measured_ns, found.lost_events, found.events) == (3, 2 * BLOCK, 0, 6)


@given(st.lists(st.tuples(st.integers(1_000, 9_000), st.integers(0, 900)), min_size=1, max_size=40))
def test_the_typical_time_is_the_median_of_one_cause_with_its_gaps(took: list[tuple[int, int]]) -> None:
    """``took``: the time of the interrupt and of the gap before it, for each stall."""
    stalls = [(20_000 * number, gap, ns) for number, (ns, gap) in enumerate(took, 1)]
    events = [event for at, gap, ns in stalls for event in pair(at + gap, at + gap + ns, "irq", "nic0")]
    windows = [(at, at + gap + ns, 1) for at, gap, ns in stalls]
    nic = next(c for c in report(one(events, windows)).causes if c.kind == "irq")
    assert nic.typical_ns == sorted(ns + gap for ns, gap in took)[(len(took) - 1) // 2]


def test_the_share_in_time_now_and_without_each_cause() -> None:
    events = [*pair(1_000, 4_000, "irq", "nic0"), *pair(50_000, 52_000, "softirq", "RCU")]
    found = report(one(events, [(900, 4_500, 3), (50_000, 52_000, 1), (80_000, 85_000, 6)]))
    assert found.below_now == pytest.approx(0.990)
    without = {(c.kind, c.name): c.below_without for c in found.causes}
    assert without[("irq", "nic0")] == pytest.approx(0.993)  # what is around it goes with it
    assert without[("softirq", "RCU")] == pytest.approx(0.991)
    assert without[("no_event", "")] == pytest.approx(0.996)
    assert without[("around", "nic0")] == pytest.approx(0.990)


def test_whose_a_thread_is_is_decided_by_its_id_and_not_by_its_name() -> None:
    """In a class two workshops measure on one host: both have a thread called sampler."""
    theirs, mine, another = 900, 901, 902
    names = {theirs: "sampler", mine: "jitter-workshop", another: "jitter-workshop"}
    events = []
    for start, (pid, name) in zip((10_000, 30_000, 50_000), names.items(), strict=True):
        events += [
            switch(start, MEASURED, pid, stays=True, names=("sampler", name)),
            switch(start + 5_000, pid, MEASURED, names=(name, "sampler")),
        ]
    windows = [Window(start, start + 5_000, 1, "sampler") for start in (10_000, 30_000, 50_000)]
    span = BlockSpan(0, 0, BLOCK, 0, BLOCK)
    found = report(explain_block(span, windows, events, (1,), TIDS, None, own=(MEASURED, mine)))
    whose = {"sampler (another workshop?)", "jitter-workshop (this workshop)", "jitter-workshop (another workshop)"}
    assert {cause.name for cause in found.causes if cause.kind == "task"} == whose
    assert found.residence is not None
    assert {one.name for one in found.residence.visitors} == whose
    assert "sampler (another workshop?) 1 time" in still_there(found)
    # A trace of an older version does not have the workshop's own threads.
    unknown = report(explain_block(span, windows, events, (1,), TIDS))
    assert {cause.name for cause in unknown.causes} == {"sampler (another workshop?)", "jitter-workshop"}


def test_remaining_tasks_are_told_from_the_trace() -> None:
    came = {"kworker/u8:1": 3, "kworker/1:2": 2, "qemu": 5, "cron": 1}
    visitors = tuple(InterferingTask(1, "task", name, count, 10 * count, 10) for name, count in came.items())
    quiet = report(one([], []))
    assert quiet.residence is not None
    told = still_there(replace(quiet, residence=replace(quiet.residence, visitors=visitors), measured_ns=5 * 10**9))
    assert told == (
        "The trace shows these other tasks on the measured CPUs: qemu 5 times (1 a second), unbound kernel workers "
        "3 times (0.6 a second), kernel workers of one CPU 2 times (0.4 a second), and 1 other name."
    )
    assert still_there(quiet) == "The trace shows no other task on the measured CPUs."


def test_other_threads_stalls_count_and_their_messages_do_not() -> None:
    both = report(one(pair(1_000, 4_000, "irq", "nic0"), [(1_000, 4_000, 3)]), main_thread="accumulator")
    assert (both.causes[0].count, both.causes[0].late_messages, both.below_now) == (1, 0, 1.0)
    unknown = report(one([], [(1_000, 4_000, 3)]), messages=None)
    assert unknown.below_now is None
    assert unknown.causes[0].below_without is None
    assert "below_now" in unknown.notes


def test_the_worst_are_in_full_and_longest_first() -> None:
    first = one([*tick(1_000, 2_000), *pair(40_000, 48_000, "irq", "nic0")], [(900, 3_100, 1), (40_000, 48_000, 1)])
    second = one(pair(5_000, 13_000, "softirq", "RCU"), [(5_000, 13_000, 2), (20_000, 21_000, 1)], index=1)
    found = report(first, second, top=3)
    assert [(w.at_ns, w.duration_ns, w.block) for w in found.worst] == [
        (40_000, 8_000, 0),
        (2 * BLOCK + 5_000, 8_000, 1),
        (900, 2_200, 0),
    ]
    last = found.worst[2]
    assert [(p.kind, p.name, p.ns) for p in last.parts] == [
        ("timer", "tick_nohz_handler", 1_998),
        ("around", "local_timer", 200),
        ("vector", "local_timer", 2),
    ]
    assert [(s.name, s.offset_ns, s.ns) for s in last.timeline] == [
        ("local_timer", 0, 100),
        ("local_timer", 100, 1),
        ("tick_nohz_handler", 101, 1_998),
        ("local_timer", 2_099, 1),
        ("local_timer", 2_100, 100),
    ]
    assert report(first, top=0).worst == ()


def test_a_stall_names_senders_and_movers_and_shows_its_stacks() -> None:
    events = [
        event(990, "ipi_send", "flush_tlb_func", cpu=0, pid=OTHER, a=1),
        event(1_010, "ipi_send", "flush_tlb_func", cpu=0, pid=OTHER, a=1),
        event(1_020, "ipi_send", "flush_tlb_func", cpu=0, pid=OTHER, a=1),
        event(1_030, "ipi_send", "flush_tlb_func", cpu=0, pid=OTHER, a=3),
        event(1_040, "ipi_send", cpu=0, pid=OTHER, a=1),
        *pair(1_100, 1_200, "csd", "flush_tlb_func", number=0),
        switch(1_300, MEASURED, OTHER, stays=True),
        event(1_300, "stack", "__schedule+0x2a0;schedule;do_fault"),
        event(1_310, "migrate", pid=OTHER, a=MEASURED, b=1, c=1),
        switch(1_400, OTHER, MEASURED),
    ]
    found = report(one(events, [(1_000, 1_500, 1)])).worst[0]
    assert found.notes == (
        "other on CPU 0 made CPU 1 run flush_tlb_func, 3 times",
        "other on CPU 0 made CPU 1 reschedule",
        "sampler was moved to CPU 1 while other ran on CPU 1",
    )
    assert [(s.offset_ns, s.event, s.functions) for s in found.stacks] == [
        (300, "switch", ("__schedule+0x2a0", "schedule", "do_fault"))
    ]


def test_a_stall_on_an_unknown_cpu_has_no_cpu() -> None:
    span = BlockSpan(0, 0, BLOCK, 0, BLOCK)
    block = explain_block(span, [Window(100, 200, -1, "sampler")], [], (1,), TIDS)
    assert report(block).worst[0].cpu is None


def test_lost_events_and_missing_ones_are_told() -> None:
    blocks = [one(tick(100, 50), [], lost={1: 5}), one([], [], index=1, lost={1: 2})]
    found = report(*blocks, missing={"csd:csd_function_entry": "not in this kernel"}, unlisted=12)
    assert (found.lost_events, found.lost_by_cpu) == (7, {"1": 7})
    assert report(*blocks, lost_elsewhere=3).lost_events == 10
    assert found.missing == {"csd:csd_function_entry": "not in this kernel"}
    assert "12" in found.notes["stalls"]


def test_a_run_without_blocks_or_stalls_is_a_report_too() -> None:
    assert (report().stalls, report().causes, report().worst) == (0, (), ())
    quiet = report(one([], []))
    assert quiet.residence is not None
    assert quiet.residence.proof.clean is None  # not even its own thread is in that trace
    woken = report(one([switch(-100, 0, MEASURED)], [])).residence
    assert woken is not None
    assert woken.proof.clean is True
    assert woken.proof.sentence.startswith("In 1 ms nothing but")
    assert woken.proof.sentence.endswith(" ran on CPU 1.")


def test_the_report_is_json_and_comes_back() -> None:
    found = report(one([*tick(1_000, 2_000), *block(300, cpus=(1,))], [(900, 3_100, 1), (10_000, 90_000, 4)]))
    assert from_plain(EvidenceReport, json.loads(json.dumps(to_plain(found)))) == found


def test_visitors_own_their_time_only() -> None:
    events = [
        switch(1_000, MEASURED, OTHER, stays=True),
        *pair(2_000, 3_000, "irq", "nic0", pid=OTHER),
        *pair(3_000, 3_500, "softirq", "NET_RX", pid=OTHER),
        switch(5_000, OTHER, MEASURED),
        *pair(8_000, 8_200, "irq", "nic0"),
        switch(9_000, MEASURED, 0),
        switch(9_500, 0, MEASURED),
    ]
    found = report(one(events, [])).residence
    assert found is not None
    assert found.visitors == (
        InterferingTask(1, "task", "other", 1, 2_500, 2_500),
        InterferingTask(1, "irq", "nic0", 2, 1_200, 1_000),
        InterferingTask(1, "softirq", "NET_RX", 1, 500, 500),
    )
    assert found.threads == (ThreadOnCpu("sampler", 1, BLOCK - 4_000 - 500 - 200, 4_000, 1),)
    proof = found.proof
    assert (proof.clean, proof.other_tasks, proof.interruptions, proof.taken_ns) == (False, 1, 3, 4_200)
    assert proof.sentence.startswith("In 1 ms other tasks ran")
    assert "ran once on CPU 1, and" in proof.sentence
    assert proof.sentence.endswith("3 interruptions. Together they took 4.2 µs of CPU time.")


def test_threads_of_one_name_are_one_cause_and_are_counted() -> None:
    events = []
    for turn, tid in enumerate((301, 302, 302, 301)):
        at = 10_000 * (turn + 1)
        names = ("measured", "python")
        events.append(switch(at, MEASURED, tid, stays=True, names=names))
        events.append(switch(at + 2_000, tid, MEASURED, names=(names[1], names[0])))
    events += [switch(60_000, MEASURED, OTHER, stays=True), switch(62_000, OTHER, MEASURED)]
    found = report(one(events, [(9_900, 63_000, 1)]))
    assert found.residence is not None
    assert [(v.name, v.count, v.threads) for v in found.residence.visitors] == [("python", 4, 2), ("other", 1, 1)]
    assert {cause.name: cause.threads for cause in found.causes if cause.kind == "task"} == {"python": 2, "other": 1}
    assert {cause.threads for cause in found.causes if cause.kind != "task"} == {1}


def test_only_time_in_the_block_counts() -> None:
    events = [switch(-500, MEASURED, OTHER, stays=True), switch(100, OTHER, MEASURED), *tick(BLOCK + 10, 50)]
    events = [e._replace(ts=e.ts + 1_000) for e in events]
    block = explain_block(BlockSpan(0, 1_000, 1_000 + BLOCK, 0, BLOCK), [], events, (1,), TIDS)
    present = Presence()
    present.add(block.timeline)
    assert present.residence(BLOCK).visitors == (InterferingTask(1, "task", "other", 1, 100, 100),)


def test_a_cpu_without_any_event_was_its_threads_where_that_was_pinned() -> None:
    present = Presence({"sampler": 1})
    present.add(one([], []).timeline)
    assert present.residence(BLOCK).threads == (ThreadOnCpu("sampler", 1, BLOCK, 0, 0),)
    unplaced = Presence()
    unplaced.add(one([], []).timeline)
    assert unplaced.residence(BLOCK).threads == ()


def test_a_trace_with_gaps_proves_nothing() -> None:
    gaps = Presence()
    gaps.add(one([], [], lost={1: 3}).timeline)
    assert gaps.residence(BLOCK).proof.clean is None
    assert " lacks " in gaps.residence(BLOCK).proof.sentence
    assert Presence().residence(0).proof.clean is None
    some = Presence()
    some.add(one(tick(100, 50), [], lost={1: 3}).timeline)
    assert some.residence(BLOCK).proof.clean is False
    assert " lacks " in some.residence(BLOCK).proof.sentence
    assert some.residence(BLOCK).proof.sentence.endswith(", so the true numbers may be higher.")
    assert 0 < some.unknown_ns < BLOCK
    assert gaps.unknown_ns == BLOCK


def test_time_that_is_not_known_on_several_cpus_counts_once() -> None:
    assert covered([(30, 40), (0, 10), (5, 20), (32, 35)]) == 30
    assert covered([]) == 0


def test_frequencies_ticks_and_deeds_are_counted() -> None:
    events = [
        event(100, "frequency", pid=0, a=2_000_000, b=1),
        event(200, "frequency", pid=0, a=3_000_000, b=1),
        event(210, "tick_stop", "SCHED", pid=0, a=0),
        event(220, "tick_stop", "SCHED", pid=0, a=0),
        event(300, "ipi_send", "flush_tlb_func", cpu=0, pid=OTHER, a=1),
    ]
    found = report(one(events, [])).residence
    assert found is not None
    assert [(f.cpu, f.changes, f.lowest_khz, f.highest_khz) for f in found.frequencies] == [
        (1, 2, 2_000_000, 3_000_000)
    ]
    assert [(t.cpu, t.reason, t.count) for t in found.ticks_kept] == [(1, "SCHED", 2)]
    assert [(d.what, d.who, d.of, d.cpu, d.count) for d in found.deeds] == [
        ("ipi", f"thread {OTHER}", "flush_tlb_func", 1, 1)
    ]


@given(st.integers(0, 5), st.lists(st.tuples(st.integers(0, 500_000), st.integers(1, 40_000)), max_size=12))
def test_the_times_of_the_causes_add_up_to_the_times_of_the_stalls(seed: int, windows: list[tuple[int, int]]) -> None:
    events = block(200, cpus=(1,), seed=seed)
    made = one(events, [(start, start + length, 1) for start, length in windows])
    found = report(made, top=100)
    assert sum(cause.total_ns for cause in found.causes) == sum(length for _, length in windows)
    assert all(cause.kind in CAUSE_KINDS and cause.worst_ns <= cause.total_ns for cause in found.causes)
    assert len(found.worst) == len(windows)
    for stall in found.worst:
        assert sum(part.ns for part in stall.parts) == stall.duration_ns
        assert sum(piece.ns for piece in stall.timeline) == stall.duration_ns
    assert found.below_now is not None
    for cause in found.causes:
        assert cause.below_without is not None
        assert cause.below_without >= found.below_now
