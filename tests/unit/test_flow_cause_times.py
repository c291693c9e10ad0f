"""The causes of two runs by the time that each took, and which of them is called the chapter's cause."""

from __future__ import annotations

import dataclasses

import pytest

from jitter_workshop.course.loader import builtin_course, load_course
from jitter_workshop.flow.chapters.asked_causes import asked_causes
from jitter_workshop.flow.chapters.cause_times import times_of_causes
from jitter_workshop.flow.chapters.judging import judge_pair
from jitter_workshop.flow.chapters.suspects import of_trace, suspect, woken_by
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.diagnosis import SeenCauses
from jitter_workshop.model.effect import CauseTime, Effects
from jitter_workshop.model.evidence import Cause, EvidenceReport
from jitter_workshop.model.run import ThreadRecord
from jitter_workshop.model.spec import KINDS
from jitter_workshop.presenter.course import diagnosis as words
from jitter_workshop.presenter.runs import causes, effect, effect_table, verdict
from jitter_workshop.presenter.runs.disturbances import own_threads_clause
from jitter_workshop.presenter.runs.one_run import result_of_one_run
from jitter_workshop.presenter.runs.result_table import CAN_END
from jitter_workshop.presenter.text.lines import written
from jitter_workshop.report.cause_words import cause_name, causes_to_show
from jitter_workshop.stats.effect import effects_of_change
from jitter_workshop.stats.figures import KnownRun
from jitter_workshop.stats.scale import nice_ns
from tests import madeup

COURSE = load_course(builtin_course())
MS = 1_000_000
SHARED = "our own threads that share a CPU"
EVERY_CAUSE = (
    *(("task", name) for name in (
        "bash", "idle", "kcompactd0", "ksoftirqd/1", "kworker/1:2", "kworker/u8:2", "lock holder",
        "migration/1", "throttled", "unbound",
    )),
    *(("softirq", name) for name in ("BLOCK", "HRTIMER", "NET_RX", "NET_TX", "RCU", "SCHED", "TASKLET", "TIMER")),
    *(("vector", name) for name in ("call_function", "call_function_single", "local_timer", "reschedule", "NMI")),
    *(("workqueue", name) for name in ("flush_to_ldisc", "vmstat_update", "mce_work")),
    ("irq", "eth0"), ("timer", "tick"), ("migration", "bash"), ("page_fault", "user"), ("no_event", ""),
)  # fmt: skip


def chapter(ident: str) -> Chapter:
    return next(one for one in COURSE.chapters if one.id == ident)


def traced(*causes: tuple[str, str, int], moved: int = 0, measured_s: float = 2.0) -> KnownRun:
    """A ring run of one second whose trace has these causes in ``measured_s`` seconds: kind, name, ns."""
    threads = (ThreadRecord("accumulator", {"0": 1}, migrations=moved),)
    run, _ = madeup.make_run([[100] * 9_000 + [9_000] * 1_000], block_s=1.0, threads=threads)
    found = tuple(Cause(kind, name, 1, ns, ns, 0.0, 0) for kind, name, ns in causes)
    report = EvidenceReport(1, run.id, "trace", 1_000, "mono", 1, 0, found, (), round(measured_s * 1e9))
    return KnownRun(run, report)


def listed(*causes: tuple[str, str, int], others: int = 0) -> KnownRun:
    """A recorded run of one second whose largest causes are these."""
    known = traced()
    found = tuple(suspect(kind, name, 1, ns) for kind, name, ns in causes)
    seen = SeenCauses("recorded", "trace", found, 9, sum(ns for _, _, ns in causes), 0, others)
    return dataclasses.replace(known, report=None, recorded={}, seen=seen)


SHARING = traced(
    ("task", "accumulator", 110 * MS), ("task", "producer", 104 * MS), ("task", "python", 800 * MS),
    ("migration", "python", 580), ("timer", "tick", 4 * MS), moved=7,
)  # fmt: skip
PINNED = traced(("task", "python", 790 * MS), ("timer", "tick", 5 * MS))


def told(before: KnownRun, after: KnownRun, ident: str, width: int = 120) -> str:
    of = chapter(ident)
    found = dataclasses.replace(effects_of_change(before, after, of.shows), causes=times_of_causes(before, after, of))
    other = dataclasses.replace(after, run=dataclasses.replace(after.run, id="another"))
    return written(effect.result_of_two_runs(judge_pair(found, (before, other)), (before, other), width).lines)


def test_each_cause_has_its_time_in_a_second_of_both_runs() -> None:
    found = {one.label: one for one in times_of_causes(SHARING, PINNED, chapter("pinning"))}
    assert found[SHARED].ns == (107 * MS, 0)
    assert found["task python"].ns == (400 * MS, 395 * MS)
    assert [one.label for one in found.values() if one.treated] == [SHARED, "moves to another CPU"]
    assert [one.label for one in found.values() if one.counted] == ["moves to another CPU"]
    assert next(iter(found)) == "task python", "the largest is first"


def test_a_task_has_its_name_unless_it_is_a_measured_thread() -> None:
    found = {one.label: one.task for one in times_of_causes(SHARING, PINNED, chapter("pinning"))}
    assert found == {**dict.fromkeys(found, ""), "task python": "python"}


def test_the_cause_of_a_chapter_is_the_one_that_took_the_time_and_not_the_counted_one() -> None:
    said = " ".join(told(SHARING, PINNED, "pinning").split())
    assert f"7 → 0 events, {verdict.AS_EXPECTED}." in said
    assert "threads moved to another CPU 7/s 0/s 7 → 0 events" in said
    assert f"{CAN_END} 107 ms/s 0 ms/s none after" in said
    assert f"{CAN_END} 0 ms/s 107 ms/s none before" in " ".join(told(PINNED, SHARING, "pinning").split())
    half = traced(("task", "accumulator", 50 * MS), ("task", "python", 790 * MS))
    assert f"{CAN_END} 107 ms/s 25 ms/s 4.3× less" in " ".join(told(SHARING, half, "pinning").split())
    more = traced(("task", "accumulator", 300 * MS), ("task", "python", 790 * MS))
    assert f"{CAN_END} 107 ms/s 150 ms/s 40 % more" in " ".join(told(SHARING, more, "pinning", 300).split())


@pytest.mark.parametrize("of", COURSE.chapters, ids=lambda one: one.id)
def test_compare_tells_the_rest_of_the_time_that_the_change_can_end_by_diagnose(of: Chapter) -> None:
    every = traced(*(("irq", f"device {n}", 100 * MS) for n in range(9)), *((*cause, 3 * MS) for cause in EVERY_CAUSE))
    half = traced(("irq", "another", 90 * MS))
    assert every.report is not None
    figure = of.shows.figure if of.shows is not None else ""
    ended = asked_causes(of_trace(every.report, figure=figure, most=None), of).ended_ns / 2
    found = dataclasses.replace(effects_of_change(every, half, of.shows), causes=times_of_causes(every, half, of))
    after = dataclasses.replace(half, run=dataclasses.replace(half.run, id="another"))
    for short in (True, False):
        result = effect.result_of_two_runs(judge_pair(found, (every, after)), (every, after), 400, short=short)
        said = " ".join(written(result.told).split())
        assert (f"{CAN_END} {nice_ns(round(ended))}/s " in said) == (ended > 0)
        assert written(result.lines).count("can end") == (ended > 0)


def test_a_cause_with_a_small_part_of_the_time_is_not_called_the_chapters_cause() -> None:
    moving = traced(("migration", "python", 580), ("task", "python", 800 * MS), moved=7)
    said = " ".join(told(moving, PINNED, "pinning").split())
    assert f"7 → 0 events, {verdict.AS_EXPECTED}." in said
    assert f"{CAN_END} 290 ns/s 0 ns/s none after; <1 % of all" in said
    untraced = dataclasses.replace(moving, report=None)
    assert times_of_causes(untraced, PINNED, chapter("pinning")) == ()
    assert verdict.AS_EXPECTED in told(untraced, PINNED, "pinning")


@pytest.mark.parametrize("of", COURSE.chapters, ids=lambda one: one.id)
def test_diagnose_and_compare_agree_on_the_causes_that_the_change_acts_on(of: Chapter) -> None:
    figure = of.shows.figure if of.shows is not None else ""
    ours = [("task", name) for one in of.measurements for name in KINDS[one.workload].threads]
    for kind, name in (*EVERY_CAUSE, *ours):
        before, after = traced((kind, name, 300 * MS)), traced(("irq", "another", 1))
        assert before.report is not None
        seen = of_trace(before.report, figure=figure)
        judged_as = words.means(woken_by(seen.suspects[0], seen), of, COURSE)
        compared_as = next(one for one in times_of_causes(before, after, of) if one.ns[0])
        assert (" acts on " in judged_as) is compared_as.treated, (kind, name, judged_as)


@pytest.mark.parametrize("of", [one for one in COURSE.chapters if "apply" in one.steps], ids=lambda one: one.id)
def test_a_change_acts_on_a_cause_that_its_own_figure_counts(of: Chapter) -> None:
    every = [times_of_causes(traced((*cause, 300 * MS)), traced(("irq", "another", 1)), of)[0] for cause in EVERY_CAUSE]
    counted = [one for one in every if one.counted]
    assert not counted or any(one.treated for one in counted)


def test_a_call_is_acted_on_where_the_change_acts_on_the_work_that_it_woke() -> None:
    calling = traced(
        ("vector", "call_function_single", 65 * MS), ("vector", "sched_ttwu_pending", 9 * MS),
        ("workqueue", "flush_to_ldisc", 6 * MS),
    )  # fmt: skip
    quiet = traced(("timer", "tick", 4 * MS))
    found = {one.label: one.treated for one in times_of_causes(calling, quiet, chapter("workqueues"))}
    assert found["function call from another CPU"]
    assert found["work flush_to_ldisc"]
    for before, after in ((calling, quiet), (quiet, calling)):
        assert "not meant to reduce" not in told(before, after, "workqueues")
    assert not any(one.treated for one in times_of_causes(calling, quiet, chapter("isolation")))


def test_a_trace_with_gaps_compares_nothing() -> None:
    gaps = traced(("task", "python", 10 * MS), ("no_event", "events lost", 11 * MS))
    assert times_of_causes(SHARING, gaps, chapter("pinning")) == ()
    assert times_of_causes(gaps, SHARING, chapter("pinning")) == ()


def test_an_unlisted_cause_of_a_recorded_run_took_at_most_as_long_as_the_smallest_listed_one() -> None:
    before = listed(("task", "producer", 90 * MS), ("task", "accumulator", 20 * MS), ("migration", "", 9), others=3)
    after = listed(("task", "python", 95 * MS), ("softirq", "RCU", 2 * MS), others=3)
    found = {one.label: one for one in times_of_causes(before, after, chapter("pinning"))}
    seconds = before.run.duration_s
    assert found[SHARED].ns == (110 * MS / seconds, 2 * MS / seconds)
    assert found[SHARED].at_most == (False, True)
    # Of the softirq it is not known in which run it took more, so it is left out; the moves are the chapter's figure.
    assert set(found) == {"task python", SHARED, "moves to another CPU"}
    rows = [line.plain for line in effect_table.two_run_table((), 80, causes=list(found.values()))]
    assert next(row for row in rows if row.startswith(SHARED)).split()[-4:] == ["<2", "ms", ">55×", "less"]
    assert rows[-1].endswith("<2 ms"), "no factor: it may have risen or fallen"


def test_the_table_has_the_largest_causes_and_those_of_the_chapter() -> None:
    found = times_of_causes(SHARING, PINNED, chapter("pinning"))
    table = effect_table.two_run_table((), 80, causes=effect_table.causes_with_row(found))
    assert table[0].plain.split() == ["TIME", "BY", "CAUSE,", "PER", "SECOND", "before", "after"]
    assert [line.plain.split("  ")[0] for line in table[1:]] == [
        "task python", SHARED, "moves to another CPU",
    ]  # fmt: skip
    assert table[2].plain.endswith("107 ms       0  none after")
    assert [str(span.style) for line in table[1:] for span in line.spans] == ["bold", "bold"]
    only = effect_table.two_run_table((), 80, causes=effect_table.causes_with_row(found), undecided=True)
    assert only[0].plain.split("  ")[0] == "THESE TWO RUNS: TIME BY CAUSE, PER SECOND"
    assert only[0].plain.split()[-4:] == ["run", "1", "run", "2"]
    assert only[2].plain.endswith("none in run 2")
    few = effect_table.causes_with_row(found, 2)
    assert [one.label for one in few] == ["task python", SHARED]
    many = [CauseTime(f"task {n}", (90.0 - n, 90.0 - n)) for n in range(8)]
    own = CauseTime("own", (2.0, 0), treated=True)
    shown = effect_table.causes_with_row([*many, own], 2)
    assert [one.label for one in shown] == ["task 0", "own", "7 other causes"]
    assert shown[-1].ns == (sum(90.0 - n for n in range(1, 8)),) * 2, "what has no row is added up"
    tiny = CauseTime("tiny", (1e3, 1e3)), CauseTime("task", (1e9, 1e9))
    assert [one.label for one in effect_table.causes_with_row(tiny)] == ["task"]


def test_a_cause_below_one_percent_has_no_bar() -> None:
    found = traced(("task", "python", 990 * MS), ("irq", "nic0", 11 * MS), ("softirq", "RCU", 9 * MS)).report
    assert found is not None
    rows = {line.plain.split("  ")[0]: line.plain for line in causes.cause_table(found, 100)}
    assert rows["task python"].endswith("98 % ━━━━━━━━━━━━━━━━━━━━━━━━")
    assert rows["interrupt nic0"].endswith("1 % ╸")
    assert rows["softirq RCU"].endswith("<1 %")


def test_our_own_threads_have_one_row_under_the_name_that_all_pages_use() -> None:
    seen = traced(("task", "producer", 90 * MS), ("task", "python", 60 * MS), ("task", "accumulator", 40 * MS))
    assert seen.report is not None
    report = dataclasses.replace(seen.report, main_thread="accumulator", messages=10_000, below_now=0.9, causes=tuple(
        dataclasses.replace(one, count=3, late_messages=late, below_without=share)
        for one, late, share in zip(seen.report.causes, (400, 100, 0), (0.94, 0.91, 0.9), strict=True)
    ))  # fmt: skip
    first, second = causes_to_show(report)
    assert (cause_name(first), second.name) == (SHARED, "python")
    assert (first.count, first.worst_ns, first.total_ns, first.late_messages) == (6, 90 * MS, 130 * MS, 400)
    assert first.below_without == pytest.approx(0.94)
    # A thread that is measured alone has no other one to share a CPU with.
    assert causes_to_show(dataclasses.replace(report, main_thread="sampler")) == report.causes
    assert own_threads_clause(KnownRun(seen.run, report)) == f"{SHARED} took 65 ms of each second"
    # The learner is still to name the largest cause.
    told = KnownRun(seen.run, report)
    assert SHARED in "".join(line.plain for line in result_of_one_run(told, 400))
    assert SHARED not in "".join(line.plain for line in result_of_one_run(told, 400, asks_causes=True))
    busier = traced(("task", "python", 600 * MS), ("task", "accumulator", 40 * MS)).report
    assert busier is not None
    assert own_threads_clause(KnownRun(seen.run, dataclasses.replace(busier, main_thread="accumulator"))) == ""
    assert own_threads_clause(KnownRun(seen.run)) == ""


def test_a_cause_that_a_sentence_names_always_has_a_row() -> None:
    many = [CauseTime(f"task {n}", (1e9 - n, 1e9 - n)) for n in range(8)]
    small = CauseTime(SHARED, (1e3, 2e3))
    found = Effects(None, None, None, causes=(*many, small))
    assert effect.named_causes(judge_pair(found), [f"{SHARED} (2 threads)", "task 9"]) == {SHARED}
    assert SHARED not in [one.label for one in effect_table.causes_with_row(found.causes)]
    for most in (1, 2, 5, None):
        rows = [one.label for one in effect_table.causes_with_row(found.causes, most, {SHARED})]
        if most is not None:
            assert rows.pop() == f"{len(many) + 1 - max(most, 2)} other causes"
        assert rows[-1] == SHARED
        assert rows[0] == "task 0", "the largest cause always has a row"
        assert most is None or len(rows) == max(most, 2)
    both = effect_table.causes_with_row(found.causes, 1, {"task 3", "task 5"})
    assert [one.label for one in both] == ["task 0", "task 3", "task 5", "6 other causes"]


def test_the_cause_of_the_headline_has_a_row_and_the_chapters_own_load_is_named() -> None:
    load = dataclasses.replace(SHARING, run=dataclasses.replace(SHARING.run, noise="python"))
    found = dataclasses.replace(
        effects_of_change(load, PINNED), causes=times_of_causes(load, PINNED, chapter("pinning"))
    )
    assert [one.label for one in found.causes if one.own_load] == ["task python"]
    named = effect.named_causes(judge_pair(found), ["task bash"])
    assert named == {SHARED}, "the sentence names its largest cause alone"
    shown = effect_table.causes_with_row(found.causes, 1, named)
    assert [one.label for one in shown] == ["task python", SHARED]
    head, *rows = (line.plain for line in effect_table.two_run_table((), 78, causes=shown))
    assert head.endswith("after")
    assert [row.split("  ")[0] for row in rows] == ["task python (the chapter's noise)", SHARED]
    other = [
        line.plain
        for line in effect_table.two_run_table(
            (), 78, causes=effect_table.causes_with_row(times_of_causes(SHARING, PINNED, chapter("pinning")))
        )
    ]
    assert not any("noise" in row for row in other)


def test_a_cause_with_more_time_than_all_stalls_is_explained_below_the_table() -> None:
    runs = (SHARING, PINNED)
    stalled = [seen.run.stalls.stolen_ns_per_second for seen in runs]
    within = [CauseTime("task python", (stalled[0], stalled[1]))]
    beyond = [CauseTime("task python", (stalled[0], stalled[1] + 1))]
    limit = [dataclasses.replace(beyond[0], at_most=(False, True))]
    for causes_, said in ((within, False), (beyond, True), (limit, False)):
        rows = [line.plain for line in effect_table.two_run_table((), 78, causes=causes_, runs=runs)]
        assert rows[-1].endswith("together.") is said
        assert ("Each cause is summed over the threads, so it can take more" in " ".join(rows)) is said
    assert len(effect_table.two_run_table((), 78, causes=beyond)) == 2
