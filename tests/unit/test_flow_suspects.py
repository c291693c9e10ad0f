"""The list of causes that a learner chooses from, and the judgement of the answer."""

from __future__ import annotations

import dataclasses
import itertools
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.course.loader import builtin_course, load_course
from jitter_workshop.flow.chapters import levers
from jitter_workshop.flow.chapters.levers import chapter_treats
from jitter_workshop.flow.chapters.suspects import (
    LEAST_PIECE,
    MOST,
    MOST_LONGEST,
    STEAL,
    TASKS,
    TICK,
    judge_diagnosis,
    main_pieces,
    of_counters,
    of_trace,
)
from jitter_workshop.flow.chapters.suspects import suspect as suspect_of
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.diagnosis import SeenCauses, Suspect
from jitter_workshop.model.evidence import (
    ANOTHER_WORKSHOP,
    CAUSE_KINDS,
    MEASURED,
    NOT_OURS,
    Cause,
    EvidenceReport,
    ExplainedStall,
    Part,
    Slice,
)
from jitter_workshop.model.irq_rows import CALLING, RESCHEDULING
from jitter_workshop.model.run import Counter, Run, ThreadRecord
from jitter_workshop.model.spec import helper_threads
from jitter_workshop.presenter.course import diagnosis as words
from jitter_workshop.report.cause_words import cause_words
from jitter_workshop.report.diagnosis_words import NEAR, OWN_SIGN, took_most
from jitter_workshop.tuning.tunables.interrupts import MANAGED
from tests import madeup

COURSE = load_course(builtin_course())
KINDS = st.sampled_from(CAUSE_KINDS)
NAMES = st.sampled_from(("", "python", "local_timer", "RCU", "page_fault", "events lost", "asleep", "e\x1b[2J"))
CAUSES = st.lists(
    st.tuples(KINDS, NAMES, st.integers(1, 500), st.integers(1, 10**9)), max_size=30, unique_by=lambda c: c[:2]
)


def cause(kind: str, name: str, count: int, total_ns: int) -> Cause:
    return Cause(kind, name, count, total_ns, total_ns, 0.0, 0)


def report(*causes: Cause) -> EvidenceReport:
    return EvidenceReport(1, "r", "trace", 1_000, "mono", sum(c.count for c in causes), 0, causes, (), 1)


def seen_of(*causes: tuple[str, str, int, int]) -> SeenCauses:
    return of_trace(report(*(cause(*one) for one in causes)))


def counted(waited_ns: int | None = 0, steal_ns: int | None = 0, stolen_ns: int = 1_000_000, **changed: object) -> Run:
    thread = ThreadRecord("sampler", {"1": 10}, 3, 41, 2, 0, 0, waited_ns=waited_ns, tid=7, cpus=(1,))
    run, _ = madeup.make_run(workload="spin", threads=(thread,), steal_ns=steal_ns, **changed)
    stalls = dataclasses.replace(run.stalls, count=9, stolen_ns_per_second=stolen_ns / run.rated_s)
    return dataclasses.replace(run, stalls=stalls)


# -- the list ----------------------------------------------------------------------------------------------------------


@given(CAUSES)
def test_no_time_is_lost_or_named_twice(causes: list[tuple[str, str, int, int]]) -> None:
    seen = seen_of(*causes)
    whole = sum(ns for _, _, _, ns in causes)
    own = sum(ns for kind, name, _, ns in causes if kind == "no_event" and name == "asleep")
    listed = sum(one.total_ns or 0 for one in seen.suspects)
    assert seen.stalled_ns == whole
    assert listed + seen.unknown_ns + own <= whole
    if not seen.others:
        assert listed + seen.unknown_ns + own == whole


@given(CAUSES)
def test_the_order_is_that_of_the_numbers_and_every_cause_has_one_key(causes: list[tuple[str, str, int, int]]) -> None:
    seen = seen_of(*causes)
    labels = [one.label.casefold() for one in seen.suspects]
    order = [(-(one.count or 0), label) for one, label in zip(seen.suspects, labels, strict=True)]
    assert order == sorted(order)
    assert len(seen.suspects) <= MOST
    assert len({one.id for one in seen.suspects}) == len(seen.suspects)
    assert all(label.isprintable() for label in labels)


def test_the_time_next_to_an_interrupt_is_a_known_part_of_its_time() -> None:
    (timer, task) = seen_of(
        ("vector", "local_timer", 3, 60), ("around", "local_timer", 3, 40), ("task", "a", 1, 9)
    ).suspects
    assert (timer.total_ns, timer.around_ns, task.around_ns) == (100, 40, 0)


def test_the_order_says_nothing_of_the_time() -> None:
    first = seen_of(("task", "a", 1, 10), ("irq", "b", 1, 20), ("softirq", "RCU", 1, 30))
    second = seen_of(("task", "a", 1, 30), ("irq", "b", 1, 10), ("softirq", "RCU", 1, 20))
    assert [one.id for one in first.suspects] == [one.id for one in second.suspects]


@given(st.lists(st.integers(1, 9_000), min_size=1, max_size=4))
def test_a_cause_of_one_event_has_its_median_and_one_of_several_has_none(medians: list[int]) -> None:
    causes = [
        dataclasses.replace(cause("task", f"kworker/1:{n}", 9, 9_000_000), typical_ns=typical)
        for n, typical in enumerate(medians)
    ]
    gaps = dataclasses.replace(cause("around", "kworker/1:0", 99, 1), typical_ns=1)
    merged = next(one for one in of_trace(report(*causes, gaps)).suspects if one.kind == "task")
    assert merged.typical_ns == (medians[0] if len(medians) == 1 else 0)


def test_causes_that_a_learner_would_call_one_are_one() -> None:
    seen = seen_of(
        ("vector", "local_timer", 400, 4_000),
        ("timer", "tick_nohz_handler", 300, 3_000),
        ("around", "local_timer", 200, 2_000),
        ("around", "python", 5, 10),
        ("task", "python", 4, 90),
        ("page_fault", "user", 2, 50),
        ("page_fault", "kernel", 1, 60),
        ("around", "page_fault", 1, 5),
        ("migration", "swapper", 1, 7),
        ("migration", "python", 1, 8),
        ("no_event", "", 3, 77),
    )
    assert {(one.kind, one.name): one.total_ns for one in seen.suspects} == {
        ("timer", ""): 9_000,
        ("task", "python"): 100,
        ("page_fault", ""): 115,
        ("migration", ""): 15,
        ("no_event", ""): 77,
    }
    assert next(one.count for one in seen.suspects if one.kind == "timer") == 400


def test_a_task_of_the_chapters_own_load_is_marked() -> None:
    causes = [cause("task", "unbound", 9, 90), cause("task", "python", 1, 5), cause("irq", "unbound", 1, 2)]
    marked = of_trace(report(*causes), "unbound").suspects
    assert [(one.kind, one.name) for one in marked if one.own_load] == [("task", "unbound")]
    assert not any(one.own_load for one in of_trace(report(*causes)).suspects)
    seen = of_trace(report(*causes), "unbound")
    shown = [line.plain for line in words.suspect_lines(seen, -1, None, 74)]
    assert not any(OWN_SIGN in line or words.OWN_LOAD in line for line in shown), "the mark would show the answer"
    answered = judge_diagnosis(seen, "irq:unbound")
    for width in (44, 60, 120):
        rows = [line.plain for line in words.suspect_lines(seen, -1, answered, width)]
        assert sum(f"task unbound {OWN_SIGN} " in row for row in rows) == 1
        at = next(n for n, row in enumerate(rows) if row.strip().startswith(f"{OWN_SIGN} {words.OWN_LOAD}"))
        assert rows[at + 2].count("━") >= 4, "the mark takes no room from the bars"


def test_by_counters_the_own_load_is_among_the_other_tasks() -> None:
    for load, among in (("unbound", True), ("faults", True), ("terminal", True), ("disk", False), ("bandwidth", False)):
        seen = of_counters(dataclasses.replace(counted(waited_ns=5_000), noise=load))
        assert [one.kind for one in seen.suspects if one.own_load] == ([TASKS] if among else [])
        shown = " ".join(
            line.plain for line in words.suspect_lines(seen, -1, judge_diagnosis(seen, seen.suspects[0].id), 80)
        )
        assert (f"{OWN_SIGN} {words.OWN_LOAD} is among them" in shown) is among
    assert not any(one.own_load for one in of_counters(counted(waited_ns=5_000)).suspects)


def test_the_interrupts_that_the_load_brings_are_its_own_in_a_trace_and_in_counters() -> None:
    names = ("virtio4-input", "virtio1-req.0")
    traced = of_trace(report(*(cause("irq", name, 9, 90) for name in names)), "hwrng", irqs=names[:1])
    rows = {str(n): Counter(name, {"1": 250}) for n, name in enumerate(names, 34)}
    by_counters = of_counters(counted(interrupts=rows), irqs=names[:1])
    for seen in (traced, by_counters):
        assert {one.name: one.own_load for one in seen.suspects if one.kind == "irq"} == {
            "virtio4-input": True,
            "virtio1-req.0": False,
        }
    told = [line.plain for line in words.suspect_lines(traced, -1, judge_diagnosis(traced, "irq:virtio4-input"), 80)]
    assert any(f"interrupt virtio4-input {OWN_SIGN}" in row for row in told)
    assert any(row.strip().startswith(f"{OWN_SIGN} {words.OWN_LOAD}") for row in told)


def test_workers_are_one_cause_by_where_they_are_bound() -> None:
    names = ("kworker/u8:0", "kworker/u8:4", "kworker/u9:1", "kworker/1:2", "kworker/1:0H", "kworker/12:1")
    seen = seen_of(*(("task", name, 1, 10) for name in names), ("around", "kworker/u8:4", 1, 3))
    assert {one.name: one.total_ns for one in seen.suspects} == {"kworker/u": 33, "kworker/1": 20, "kworker/12": 10}
    assert [one.label for one in seen.suspects][-1] == "task kworker/u:… (kernel workers)"
    assert levers.levers(seen.suspects[-1])[0] == "workqueue-mask"
    assert levers.reach_of_course(seen.suspects[0], chapter("workqueues"), COURSE)[0] == "bound"


@pytest.mark.parametrize("name", ["arch_timer", "GICv3  27 Level     arch_timer", "INTC 5 Edge riscv-timer"])
def test_the_timer_of_other_processors_is_a_timer(name: str) -> None:
    assert [one.kind for one in seen_of(("irq", name, 9, 90)).suspects] == ["timer"]
    seen = of_counters(counted(interrupts={"11": Counter(name, {"1": 250})}))
    assert [one.count for one in seen.suspects if one.kind == TICK] == [250]


def test_the_smallest_causes_are_left_out_and_counted() -> None:
    seen = seen_of(*(("task", f"t{n:02}", 1, 100 * n + 1) for n in range(MOST + 4)))
    assert seen.others == 4
    assert {one.name for one in seen.suspects} == {f"t{n:02}" for n in range(4, MOST + 4)}


def test_a_run_without_stalls_is_quiet() -> None:
    assert seen_of().quiet
    assert not seen_of(("task", "a", 1, 10)).quiet
    assert of_counters(dataclasses.replace(counted(), threads=())).suspects == ()


SMALL = [("task", f"t{n}", 9, 1_000 + n) for n in range(12)]


@pytest.mark.parametrize(
    ("figure", "kind", "name"),
    [
        ("work:flush_to_ldisc", "workqueue", "flush_to_ldisc"),
        ("work-items", "workqueue", "flush_to_ldisc"),
        ("ticks", "timer", ""),
        ("net-rx", "softirq", "NET_RX"),
        ("device-interrupts", "irq", "eth0"),
        ("migrations", "migration", ""),
        ("faults", "page_fault", ""),
    ],
)
def test_the_cause_that_the_chapter_treats_is_listed_however_small_it_is(figure: str, kind: str, name: str) -> None:
    tiny = ("flush_to_ldisc", "vmstat_update")
    causes = [*SMALL, *(("workqueue", one, 1, 5 - n) for n, one in enumerate(tiny))]
    causes += [("timer", "tick", 1, 3), ("softirq", "NET_RX", 1, 3), ("irq", "eth0", 1, 3), ("migration", "a", 1, 3)]
    made = report(*(cause(*one) for one in [*causes, ("page_fault", "user", 1, 2)]))
    plain, named = of_trace(made), of_trace(made, figure=figure)
    assert not [one for one in plain.suspects if one.kind == kind]
    assert [one.name for one in named.suspects if one.kind == kind] == [name]
    assert (len(named.suspects), named.others) == (MOST, plain.others)
    assert max(one.total_ns or 0 for one in named.suspects) == 1_011
    assert max(one.count or 0 for one in named.suspects) == named.suspects[0].count


@given(CAUSES, st.sampled_from(("ticks", "faults", "preempted", "work:python", "")))
def test_the_largest_causes_stay_but_one_for_every_figure(causes: list[tuple[str, str, int, int]], figure: str) -> None:
    made = report(*(cause(*one) for one in causes))
    plain, named = of_trace(made), of_trace(made, figure=figure)
    assert len(named.suspects) == len(plain.suspects)
    assert len({one.id for one in plain.suspects} - {one.id for one in named.suspects}) <= 1


def test_counters_list_the_causes_that_the_chapter_treats_too() -> None:
    rows = {str(n): Counter(f"card{n}", {"1": 100 + n}) for n in range(40, 52)}
    run = counted(interrupts={**rows, "LOC": Counter("", {"1": 2})})
    assert "tick:" not in [one.id for one in of_counters(run).suspects]
    assert "tick:" in [one.id for one in of_counters(run, figure="ticks").suspects]


# -- one stall to read -------------------------------------------------------------------------------------------------

PIECES = st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 1_000)), min_size=1, max_size=40)


def stall_of(pieces: list[tuple[str, int]]) -> ExplainedStall:
    found: list[Slice] = []
    at = 0
    for name, ns in pieces:
        found.append(Slice("task", name, at, ns))
        at += ns
    return ExplainedStall(0, at, 1, "sampler", 1, 0, (), tuple(found))


@given(PIECES)
def test_the_main_pieces_are_long_in_order_and_no_two_alike_follow(pieces: list[tuple[str, int]]) -> None:
    stall = stall_of(pieces)
    found = main_pieces(stall)
    for piece, following in itertools.pairwise(found):
        assert piece.offset_ns + piece.ns <= following.offset_ns
        assert piece.name != following.name
    assert all(piece.ns >= LEAST_PIECE * stall.duration_ns for piece in found)
    starts = {piece.offset_ns for piece in stall.timeline}
    assert {piece.offset_ns for piece in found} <= starts
    long = [piece for piece in stall.timeline if piece.ns >= LEAST_PIECE * stall.duration_ns]
    assert bool(found) == bool(long)


def test_the_example_is_the_stall_with_the_fewest_main_pieces_but_more_than_one() -> None:
    one, two = stall_of([("a", 900), ("b", 1)]), stall_of([("a", 90), ("b", 10)])
    three = stall_of([("a", 90), ("b", 10), ("a", 90)])
    given = dataclasses.replace(report(cause("task", "a", 1, 1)), worst=(three, one, two))
    shown = of_trace(given).stall
    assert shown is not None
    assert [piece.name for piece in shown.timeline] == ["a", "b"]
    assert shown.duration_ns == 100
    assert of_trace(dataclasses.replace(given, worst=(one,))).stall is None
    # Two long pieces after many short ones would leave out how the stall began.
    begun = stall_of([*[("c", 10), ("d", 10)] * 20, ("a", 300), ("b", 300)])
    assert len(main_pieces(begun)) == 2
    assert of_trace(dataclasses.replace(given, worst=(begun,))).stall is None


def test_an_example_with_an_unknown_piece_is_the_last_choice() -> None:
    known = stall_of([("a", 90), ("b", 10), ("a", 90)])
    hole = stall_of([("a", 90), ("b", 10)])
    first, second = hole.timeline
    for name in ("event missing", "events lost", "CPU not traced"):
        unknown = dataclasses.replace(hole, timeline=(first, dataclasses.replace(second, kind="no_event", name=name)))
        given = dataclasses.replace(report(cause("task", "a", 1, 1)), worst=(unknown, known))
        shown = of_trace(given).stall
        assert shown is not None
        assert [piece.name for piece in shown.timeline] == ["a", "b", "a"]
        assert of_trace(dataclasses.replace(given, worst=(unknown,))).stall is not None
    # Time without an event is the hypervisor's or the firmware's: such a stall is a good example.
    below = dataclasses.replace(hole, timeline=(first, dataclasses.replace(second, kind="no_event", name="")))
    shown = of_trace(dataclasses.replace(report(cause("task", "a", 1, 1)), worst=(known, below))).stall
    assert shown is not None
    assert [piece.name for piece in shown.timeline] == ["a", ""]


def test_the_cause_of_the_longest_stalls_is_the_one_with_most_of_their_time() -> None:
    long, short = (
        ExplainedStall(0, total, 1, "accumulator", 1, 0, tuple(Part(kind, name, ns) for kind, name, ns in parts))
        for total, parts in ((500, [("task", "bash", 450), ("no_event", "", 50)]), (90, [("no_event", "", 90)]))
    )
    given = report(cause("no_event", "", 900, 90_000), cause("task", "bash", 1, 450))
    found = of_trace(dataclasses.replace(given, worst=(long, short, short))).longest
    assert found is not None
    assert (found.number, found.total_ns) == (3, 680)
    assert (found.cause.kind, found.cause.name, found.cause.total_ns) == ("task", "bash", 450)
    many = of_trace(dataclasses.replace(given, worst=(long, *[short] * 20))).longest
    assert many is not None
    assert many.number == MOST_LONGEST
    assert many.cause.kind == "no_event"
    assert of_trace(given).longest is None


def test_possible_reasons_without_an_event_are_told_if_such_time_is_a_large_part() -> None:
    given = dataclasses.replace(report(cause("no_event", "", 9, 100), cause("task", "a", 9, 900)), candidates=("SMT",))
    assert any("SMT" in note for note in of_trace(given).notes)
    small = report(cause("no_event", "", 9, 99), cause("task", "a", 9, 901))
    assert of_trace(dataclasses.replace(small, candidates=("SMT",))).notes == ()


# -- judging a trace ---------------------------------------------------------------------------------------------------


@given(CAUSES)
def test_the_largest_cause_is_right_and_one_far_below_is_wrong(causes: list[tuple[str, str, int, int]]) -> None:
    seen = seen_of(*causes)
    if not seen.suspects:
        return
    most = max(one.total_ns or 0 for one in seen.suspects)
    for one in seen.suspects:
        found = judge_diagnosis(seen, one.id)
        assert found is not None
        assert found.chosen == one
        if seen.unknown_ns > most:
            assert (found.right, found.most) == (None, None)
        else:
            assert found.right == ((one.total_ns or 0) >= NEAR * most)
            assert found.most is not None
            assert found.most.total_ns == most
            assert 0 < found.share <= 1


@pytest.mark.parametrize(("less", "right"), [(100, True), (90, True), (89, False)])
def test_within_a_tenth_is_right(less: int, right: bool) -> None:
    found = judge_diagnosis(seen_of(("task", "a", 1, 100), ("task", "b", 9, less)), "task:b")
    assert found is not None
    assert found.right is right


CALL, ITEM = ("vector", "call_function_single", 6_699, 95_800_000), ("workqueue", "flush_to_ldisc", 6_746, 60_000_000)
WAKE_UP = ("vector", "sched_ttwu_pending", 6_650, 9_000_000)
TO_ITEMS = "work:flush_to_ldisc"


def with_calls(*others: tuple[str, str, int, int], figure: str = TO_ITEMS, nameless: bool = False) -> SeenCauses:
    """Return the causes of a run in which calls from another CPU took most. ``nameless``: the kernel does not name the
    functions that were called."""
    found = report(*(cause(*one) for one in (CALL, *others)))
    missing = {"csd:csd_function_entry": "this kernel does not have it"} if nameless else {}
    return of_trace(dataclasses.replace(found, missing=missing), figure=figure)


@pytest.mark.parametrize("nameless", [True, False])
def test_the_work_that_calls_of_another_cpu_woke_is_right_as_well(nameless: bool) -> None:
    seen = with_calls(ITEM, ("task", "python", 400, 70_000_000), *(() if nameless else (WAKE_UP,)), nameless=nameless)
    found = judge_diagnosis(seen, "workqueue:flush_to_ldisc")
    assert found is not None
    assert found.most is not None
    assert (found.right, found.most.name) == (True, "call_function_single")
    other = judge_diagnosis(seen, "task:python")
    assert other is not None
    assert other.right is False
    said = words.judged_diagnosis(found, seen, chapter("workqueues"), COURSE)
    took = "took the most time: 95.8 ms" if nameless else "(wakes a task here) took the most time: 105 ms"
    assert said.startswith(
        "✓ Counts as right: it is not the largest cause, but the same event. Function call from anoth"
    )
    assert f"unction call from another CPU {took}" in said
    assert "; work flush_to_ldisc took 60 ms" in said
    assert "was seen in 6,699 stalls, and work flush_to_ldisc in 6,746. " in said
    assert said.endswith("The change of this chapter acts on this cause: work flush_to_ldisc.")
    assert "counts as right" in words.several_right(seen, found)
    rows = [line.plain for line in words.suspect_lines(seen, -1, found, 100)]
    assert sum("✓ work flush" in row or "✓ function call" in row for row in rows) == 2
    assert "; it is the same event and took 9 ns" in took_most("a", 99, 1.0, "it", 9, right=True)
    assert "; it took 95 ns" in took_most("a", 99, 1.0, "it", 95, right=True)
    assert ("The trace shows that this call mostly wakes a task on this CPU: " in said) is not nameless
    assert judge_diagnosis(seen, "vector:sched_ttwu_pending") is None, "the wake-up is a part of the call"
    workers = ("task", "kworker/u10:0", 4_394, 20_000_000), ("task", "kworker/u10:1", 2_384, 15_000_000)
    for shown, right in ((workers, True), (workers[1:], False)):
        worked = with_calls(ITEM, *shown, *(() if nameless else (WAKE_UP,)), nameless=nameless)
        by_worker = judge_diagnosis(worked, "task:kworker/u")
        assert by_worker is not None
        assert by_worker.right is right
        assert "work flush_to_ldisc in 6,746" in words.judged_diagnosis(
            by_worker, worked, chapter("workqueues"), COURSE
        )
    named = judge_diagnosis(seen, "vector:call_function_single")
    assert named is not None
    said = words.judged_diagnosis(named, seen, chapter("workqueues"), COURSE)
    assert said.startswith("✓ Right. Function call from another CPU")
    assert said.endswith("acts on this cause: work flush_to_ldisc.")


def test_the_calls_of_arm64_wake_tasks_as_well() -> None:
    # On arm64 the event ipi:ipi_entry gives an interrupt the words of its row in /proc/interrupts.
    call = ("vector", CALLING, *CALL[2:])
    for others, right in (((ITEM, WAKE_UP), True), ((ITEM,), False)):
        found = judge_diagnosis(
            of_trace(report(*(cause(*one) for one in (call, *others))), figure=TO_ITEMS), "workqueue:flush_to_ldisc"
        )
        assert found is not None
        assert found.right is right
    asked = words.means(suspect_of("vector", RESCHEDULING, 9, 900), chapter("workqueues"), COURSE)
    assert "keep the woken task off this CPU" in asked


def test_interrupts_between_cpus_are_the_same_causes_on_every_processor() -> None:
    rows = {
        "IPI0": Counter("Rescheduling interrupts", {"1": 250}),
        "IPI1": Counter("Function call interrupts", {"1": 40}),
        "IPI2": Counter("CPU stop interrupts", {"1": 1}),
        "16": Counter("arm-pmu", {"1": 7}),
        "17": Counter("arm-pmu", {"1": 5}),
    }
    x86 = {"RES": Counter("", {"1": 250}), "CAL": Counter("", {"1": 40}), "PMI": Counter("", {"1": 12})}
    arm = of_counters(counted(interrupts=rows))
    assert arm.suspects == of_counters(counted(interrupts=x86)).suspects
    assert [(one.id, one.count) for one in arm.suspects if one.kind == "vector"] == [
        ("vector:CAL", 40),
        ("vector:PMI", 12),
        ("vector:RES", 250),
    ]


@pytest.mark.parametrize(
    "seen",
    [
        with_calls(ITEM),  # the functions are named, and none is the wake-up
        with_calls(ITEM, ("vector", "sched_ttwu_pending", 900, 9_000_000)),
        with_calls(("workqueue", "flush_to_ldisc", 5_000, 60_000_000), WAKE_UP),
        with_calls(("workqueue", "flush_to_ldisc", 8_400, 60_000_000), WAKE_UP),
        with_calls(ITEM, WAKE_UP, figure="net-rx"),
    ],
)
def test_work_is_wrong_beside_calls_that_other_numbers_or_functions_keep_apart(seen: SeenCauses) -> None:
    found = judge_diagnosis(seen, "workqueue:flush_to_ldisc")
    assert found is not None
    assert found.right is False
    said = words.judged_diagnosis(found, seen, chapter("workqueues"), COURSE)
    assert said.startswith("✗ Not this one. Function call from another CPU ")
    assert said.endswith("To stop such calls, keep the woken task or work item off this CPU.")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("reschedule", "keep the woken task off this CPU"),
        ("call_function", "often to wake a task on this CPU"),
        ("flush_tlb_func", "changed memory mappings"),
        ("irq_work", "No chapter of this course has a setting against the kernel's own interrupt (irq_work)."),
    ],
)
def test_no_vector_is_called_without_a_remedy_because_another_cpu_sends_it(name: str, says: str) -> None:
    said = words.means(suspect_of("vector", name, 9, 900), chapter("workqueues"), COURSE)
    assert says in said
    assert "no setting moves" not in said


@pytest.mark.parametrize(
    ("name", "treated"),
    [("eth0-rx-0", True), ("nvme0q0", True), ("nvme0q3", False), ("virtio1-req.0", False), ("virtio4-input", True)],
)
def test_an_interrupt_that_the_kernel_places_itself_is_no_cause_that_the_chapter_ends(name: str, treated: bool) -> None:
    suspect = suspect_of("irq", name, 9, 900)
    assert chapter_treats(suspect, chapter("interrupts")) is treated
    told = words.means(suspect, chapter("interrupts"), COURSE)
    assert ("Move your thread to another CPU, or let the device use fewer queues" in told) is not treated
    # The plan gives the same reason.
    assert (MANAGED in told) is not treated


def test_a_trace_with_gaps_judges_no_answer() -> None:
    seen = seen_of(("task", "a", 1, 100), ("no_event", "events lost", 1, 101))
    found = judge_diagnosis(seen, "task:a")
    assert found is not None
    assert found.right is None


def test_a_cause_that_was_not_seen_is_no_answer() -> None:
    assert judge_diagnosis(seen_of(("task", "a", 1, 1)), "task:b") is None


# -- counters ----------------------------------------------------------------------------------------------------------


def test_counters_of_the_used_cpus_alone_are_listed() -> None:
    run = counted(
        waited_ns=800_000,
        steal_ns=0,
        interrupts={
            "LOC": Counter("Local timer interrupts", {"0": 900, "1": 250}),
            "41": Counter("eth0-rx-0", {"1": 3}),
            "42": Counter("nvme0q1", {"0": 70}),
            "43": Counter("eth0-rx-0", {"1": 2}),
            "MIS": Counter("", {"1": 1}),
        },
        softirqs={"NET_RX": Counter("NET_RX", {"1": 3}), "RCU": Counter("RCU", {"0": 5})},
    )
    seen = of_counters(run, "a reason")
    assert {one.id: one.count for one in seen.suspects} == {
        "tasks:": 41,
        "tick:": 250,
        "irq:eth0-rx-0": 5,
        "softirq:NET_RX": 3,
        "migration:": 2,
    }
    assert (seen.source, seen.why_no_trace) == ("counters", "a reason")
    assert [one.kind for one in seen.suspects if one.total_ns is not None] == [TASKS]


def test_counters_tell_a_sleeper_how_often_its_cpu_had_to_leave_idle() -> None:
    run = dataclasses.replace(counted(), workload="wakeup", idle_entries=4_700)
    waking = of_counters(run).suspect("task:idle")
    assert waking is not None
    assert (waking.label, waking.count, waking.total_ns) == ("waking from idle", 4_700, None)
    chapter = COURSE.chapter("idle-states")
    assert chapter is not None
    assert levers.reach_of_course(waking, chapter, COURSE)[0] == "this"
    for other in (dataclasses.replace(run, workload="spin"), dataclasses.replace(run, idle_entries=None)):
        assert of_counters(other).suspect("task:idle") is None
    rows = {str(n): Counter(f"card{n}", {"1": 5_000 + n}) for n in range(40, 52)}
    crowded = dataclasses.replace(run, interrupts=rows)
    assert of_counters(crowded).suspect("task:idle") is None
    assert of_counters(crowded, figure="idle-exit").suspect("task:idle") is not None


@given(st.integers(0, 2_000_000), st.integers(0, 2_000_000))
def test_counters_decide_only_as_far_as_their_times_prove(waited_ns: int, steal_ns: int) -> None:
    seen = of_counters(counted(waited_ns, steal_ns))
    rest = max(1_000_000 - waited_ns - steal_ns, 0)
    assert abs(seen.unknown_ns - rest) <= 1
    for one in seen.suspects:
        found = judge_diagnosis(seen, one.id)
        assert found is not None
        largest = max(waited_ns, steal_ns)
        if seen.unknown_ns > largest:
            # The rest took more than each time that is known: a counter without a time may have been the one.
            assert found.right is (False if one.total_ns is not None else None)
        else:
            assert found.right == ((one.total_ns or 0) >= NEAR * largest)
            assert one.total_ns is not None or not found.right


def test_threads_that_do_not_tell_how_long_they_waited_prove_nothing() -> None:
    seen = of_counters(counted(waited_ns=None, steal_ns=None))
    assert TASKS not in [one.kind for one in seen.suspects]
    assert STEAL not in [one.kind for one in seen.suspects]
    found = judge_diagnosis(seen, seen.suspects[0].id)
    assert found is not None
    assert found.right is None


# -- what it means -----------------------------------------------------------------------------------------------------


def chapter(ident: str) -> Chapter:
    found = COURSE.chapter(ident)
    assert found is not None
    return found


def test_measured_threads_that_share_a_cpu_are_one_cause() -> None:
    """Many tasks of one name are one cause, so the two threads of the ring are one, too: else both look small."""
    causes = (("task", "python", 90, 114), ("task", "accumulator", 50, 91), ("task", "producer", 40, 88))
    seen = seen_of(*causes)
    assert [(one.name, one.total_ns, one.count) for one in seen.suspects] == [
        ("python", 114, 90),
        ("the measured threads", 179, 50),
    ]
    assert seen.suspects[1].label == cause_words("task", MEASURED)
    found = judge_diagnosis(seen, "task:the measured threads")
    assert found is not None
    assert found.right
    assert [one.name for one in seen_of(*causes[:2]).suspects] == ["python", "accumulator"]


@pytest.mark.parametrize(
    ("kind", "name", "within", "how"),
    [
        ("task", "dbwriter", "isolation", "this"),
        ("task", "dbwriter", "pinning", "another"),
        ("task", "dbwriter", "realtime", "this"),
        ("task", "accumulator", "pinning", "this"),
        ("task", "the measured threads", "pinning", "this"),
        ("task", "kworker/u8:2", "workqueues", "this"),
        ("task", "kworker/1:2", "workqueues", "bound"),
        ("task", "kworker/1:2", "realtime", "this"),
        ("task", "migration/1", "realtime", "bound"),
        ("task", "accumulator", "isolation", "this"),
        ("task", "kcompactd0", "workqueues", "explained"),
        ("task", "idle", "idle-states", "this"),
        ("workqueue", "flush_to_ldisc", "workqueues", "this"),
        ("workqueue", "vmstat_update", "memory", "explained"),
        ("workqueue", "vmstat_update", "workqueues", "another"),
        ("irq", "eth0", "interrupts", "this"),
        ("softirq", "NET_RX", "interrupts", "this"),
        ("softirq", "SCHED", "interrupts", "another"),
        ("timer", "", "tick", "this"),
        ("tick", "", "isolation", "another"),
        ("migration", "", "pinning", "this"),
        ("page_fault", "", "memory", "this"),
        ("page_fault", "", "own-part", "this"),
        ("page_fault", "", "system-calls", "another"),
        ("no_event", "", "isolation", "below"),
        ("steal", "", "isolation", "below"),
        ("vector", "call_function", "isolation", "none"),
        ("vector", "rps_trigger_softirq", "interrupts", "explained"),
    ],
)
def test_each_cause_leads_to_the_chapter_that_treats_it(kind: str, name: str, within: str, how: str) -> None:
    suspect = Suspect(f"{kind}:{name}", kind, name, name, 1, 1)
    found, title = levers.reach_of_course(suspect, chapter(within), COURSE)
    assert found == how
    assert bool(title) == (how == "another")


@pytest.mark.parametrize("name", helper_threads("plain"))
def test_a_helper_of_a_run_with_a_lock_is_treated_only_where_the_lock_changes(name: str) -> None:
    found, of = Suspect("", "task", name, name, 1, 1), chapter("locks")
    assert levers.reach_of_course(found, of, COURSE) == ("this", "")
    assert levers.chapter_treats(found, of)
    same = dataclasses.replace(of, measurements=of.measurements[:1])
    assert not levers.chapter_treats(found, same), "neither isolation nor FIFO keeps it away"


def test_the_helpers_have_the_names_that_native_code_sets() -> None:
    source = (Path(__file__).parents[2] / "native" / "wakeup.c").read_text()
    assert tuple(re.findall(r'below_the_sleeper\("([^"]+)"', source)) == helper_threads("inherit")
    assert helper_threads("none") == ()


@pytest.mark.parametrize("mark", [NOT_OURS, ANOTHER_WORKSHOP])
def test_against_a_thread_of_another_workshop_no_chapter_is_named_but_its_end(mark: str) -> None:
    suspect = Suspect("task:x", "task", f"sampler{mark}", "", 1, 1)
    said = words.means(suspect, chapter("workqueues"), COURSE)
    assert "Another workshop" in said
    assert "Isolation" not in said
    assert "change acts on" in words.means(suspect, chapter("isolation"), COURSE)


def test_every_lever_is_used_or_treated_by_a_chapter() -> None:
    known = {word.partition("=")[0] for one in COURSE.chapters for word in (*one.tunables, *one.treats)}
    known |= {levers.PLACEMENT, levers.FIFO}
    suspects = [Suspect("", kind, name, "", 1, 1) for kind in levers._LEVERS for name in ("",)]
    suspects += [Suspect("", "softirq", name, "", 1, 1) for name in levers._SOFTIRQS]
    suspects += [Suspect("", "task", name, "", 1, 1) for name in ("idle", "throttled", "kswapd0", "kworker/u8:1", "x")]
    for suspect in suspects:
        assert set(levers.levers(suspect)) <= known, suspect
