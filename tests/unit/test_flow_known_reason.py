"""Test the known reason why two runs that were made in the same way differ."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.flow.chapters.judging import judge_pair
from jitter_workshop.flow.measuring.comparing import compare_runs
from jitter_workshop.flow.measuring.known_reason import (
    causes_of_difference,
    known_reason,
    loads_by_name,
    other_work,
    reason_of,
    sentences,
    what_to_do,
)
from jitter_workshop.flow.measuring.unchanged import UNCHANGED
from jitter_workshop.model.effect import CauseTime
from jitter_workshop.model.evidence import MEASURED, WORKSHOP
from jitter_workshop.model.run import ForeignLoad, Run, ThreadRecord
from jitter_workshop.presenter.runs import effect
from jitter_workshop.presenter.text.lines import written
from jitter_workshop.report.diagnosis_words import label
from jitter_workshop.stats.effect import MOVED, effects_of_change
from jitter_workshop.stats.figures import KnownRun
from tests import madeup

OURS = CauseTime(label("task", MEASURED), (97.3e6, 0.0))
BROWSER = CauseTime("task chromium", (66e6, 0.0), task="chromium")
TICK = CauseTime("local timer", (1e6, 1e6))


def run(ident: str = "20260101-000000-aaaa", *, sent: float = 1.0, preempted: int = 0) -> Run:
    """A ring run of one second that sent this share of its messages, because a thread was stopped in the other time."""
    threads = (ThreadRecord("accumulator", {"0": 1}, involuntary_switches=preempted),)
    made = madeup.make_run([[100] * 10_000], block_s=1.0, threads=threads, run_id=ident)[0]
    main = made.main_summary
    assert main is not None
    main = dataclasses.replace(main, count=round(sent * 100_000))
    stalls = dataclasses.replace(made.stalls, stolen_ns_per_second=(1 - sent) * 1e9)
    return dataclasses.replace(made, stalls=stalls, histograms={made.main_histogram: main})


def both(first: Run, second: Run) -> tuple[KnownRun, KnownRun]:
    return KnownRun(first), KnownRun(dataclasses.replace(second, id="20260101-000001-bbbb"))


def test_the_causes_of_the_trace_are_told_with_both_times_and_the_run_to_repeat() -> None:
    reason = known_reason(*both(run(), run()), (OURS, BROWSER, TICK))
    assert reason is not None
    assert sentences(reason) == (
        f"Not comparable: in the first run, {OURS.label} took 97.3 ms of each second (none in the second run). "
        "Measure the first run again. If you go on, this pair has no result."
    )
    # One cause alone explains less than half of the difference.
    three = (OURS, dataclasses.replace(BROWSER, ns=(90e6, 4e6)), CauseTime("task bash", (20e6, 0.0)))
    reason = known_reason(*both(run(), run()), three)
    assert reason is not None
    assert reason.told.endswith("of each second (none in the second run) and task chromium 90 ms (4 ms)")
    assert reason.causes == (OURS.label, "task chromium")
    back = [dataclasses.replace(one, ns=(one.ns[1], one.ns[0])) for one in three]
    reason = known_reason(*both(run(), run()), back)
    assert reason is not None
    assert (reason.run, reason.few) == (1, False)
    assert what_to_do(reason, key="m") == "Measure the second run again (m). If you go on, this pair has no result."


def test_nothing_is_a_reason_that_no_event_shows_or_that_is_small() -> None:
    unnamed = dataclasses.replace(OURS, label="no event", named=False)
    for causes in (
        (unnamed, TICK),
        (dataclasses.replace(OURS, at_most=(False, True)),),
        # Too little time, too small a factor, a small share, and one of many.
        (CauseTime("task cron", (900e3, 0.0)),),
        (CauseTime("task cron", (90e6, 60e6)),),
        (CauseTime("task cron", (30e6, 0.0)), CauseTime("task a", (500e6, 500e6))),
        tuple(CauseTime(f"task {n}", (50e6 + n, 0.0)) for n in range(5)),
    ):
        assert known_reason(*both(run(), run()), causes) is None
    assert known_reason(*both(run(), run())) is None


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1e9)), max_size=6))
def test_the_causes_explain_half_of_the_difference_and_at_least_doubled(times: list[tuple[float, float]]) -> None:
    causes = [CauseTime(f"task {n}", ns) for n, ns in enumerate(times)]
    found = causes_of_difference(causes)
    whole = [sum(one.ns[run] for one in causes) for run in (0, 1)]
    more = int(whole[1] > whole[0])
    assert len(found) <= 2
    assert all(one.ns[more] >= MOVED * one.ns[1 - more] for one in found)
    if found:
        assert 2 * sum(one.ns[more] - one.ns[1 - more] for one in found) >= whole[more] - whole[1 - more]


def test_few_messages_are_a_reason_and_are_told_once() -> None:
    pair = both(run(), run(sent=0.46))
    reason = known_reason(*pair, [dataclasses.replace(BROWSER, ns=(0.0, 466e6)), TICK])
    assert reason is not None
    assert reason.told == (
        "in the second run, only 46 % of the planned messages were sent and task chromium took 466 ms of each second "
        "(none in the first run)"
    )
    told = written(effect.result_of_two_runs(judge_pair(effects_of_change(*pair), pair, "alike"), pair, 300).lines)
    assert told.count("planned messages") == 1
    assert told.startswith(
        "Not comparable: in the second run, only 46 % of the planned messages were sent and a thread "
    )
    assert UNCHANGED not in told
    assert compare_runs(pair[0].run, pair[1].run).reason is not None
    # The other run's share is told if it is small, too; a similar one is no reason.
    reason = known_reason(*both(run(sent=0.87), run(sent=0.46)))
    assert reason is not None
    assert "only 46 % of the planned messages were sent (87 % in the first run)" in reason.told
    assert known_reason(*both(run(sent=0.5), run(sent=0.46))) is None
    # The run's own load stops threads on purpose.
    loaded = dataclasses.replace(run(sent=0.46), noise="spinners")
    assert known_reason(*both(dataclasses.replace(run(), noise="spinners"), loaded)) is None


def test_without_a_trace_the_counters_are_a_reason() -> None:
    busy = dataclasses.replace(run(preempted=666), disturbed=(ForeignLoad(7, "qemu", 1, 87.0),))
    reason = known_reason(*both(busy, run(preempted=84)))
    assert reason is not None
    assert reason.told == (
        "in the first run, the thread preempted: 666 a second (84 in the second run) and qemu used 87 % of a CPU"
    )
    assert known_reason(*both(run(preempted=5), run(preempted=1))) is None
    # The trace shows what the counted events took, so they are no reason beside it.
    assert known_reason(*both(busy, run(preempted=84)), (TICK,)) is None


def test_equal_runs_with_a_known_reason_are_told_with_it_alone() -> None:
    first, second = (seen.run for seen in both(run(), run()))
    view = compare_runs(first, second, causes=(OURS, TICK))
    assert view.headline.startswith(f"Not comparable: in the first run, {OURS.label}")
    assert UNCHANGED not in view.headline
    assert UNCHANGED in compare_runs(first, second).headline


PYTHON = CauseTime("task python", (83.9e6, 486e6), task="python")
LOAD = CauseTime("task unbound", (597e6, 531e6), task="unbound", own_load=True)


def test_another_task_that_took_much_more_makes_the_latency_of_a_change_not_comparable() -> None:
    pair = both(run(), run())
    reason = other_work(*pair, (LOAD, PYTHON, TICK))
    assert reason is not None
    assert sentences(reason, "changed") == (
        "Latency is not comparable: in the second run, task python took 486 ms of each second (83.9 ms in the first "
        "run). Measure the second run again. If you go on, latency stays undecided."
    )
    assert reason.causes == ("task python",)
    assert reason_of("changed", *pair, (LOAD, PYTHON)) == other_work(*pair, (LOAD, PYTHON))
    assert reason_of("hunted", *pair, (LOAD, PYTHON)) is None
    back = other_work(*pair, (LOAD, dataclasses.replace(PYTHON, ns=(486e6, 83.9e6))))
    assert back is not None
    assert back.run == 0
    # The same sizes count for two runs without a change between them.
    alike = known_reason(*pair, (PYTHON, TICK))
    assert alike is not None
    assert alike.told == reason.told


def test_a_task_is_no_reason_if_the_change_or_the_chapter_may_have_moved_it() -> None:
    pair = both(run(), run())
    for one in (
        dataclasses.replace(PYTHON, treated=True),
        dataclasses.replace(PYTHON, own_load=True),
        dataclasses.replace(PYTHON, at_most=(True, False)),
        dataclasses.replace(PYTHON, task="kworker/1:1"),
        dataclasses.replace(PYTHON, task=""),
        # Less than twice as much, less than a thousandth of the time, and a small share.
        dataclasses.replace(PYTHON, ns=(100e6, 190e6)),
        dataclasses.replace(PYTHON, ns=(0.0, 900e3)),
        dataclasses.replace(PYTHON, ns=(0.0, 50e6)),
    ):
        assert other_work(*pair, (LOAD, one)) is None
    # Most of the difference came from the change.
    cured = CauseTime("our own threads", (900e6, 0.0), treated=True)
    assert other_work(*pair, (cured, dataclasses.replace(PYTHON, ns=(200e6, 0.0)))) is None
    # Beside different noises, and on another machine, there is nothing to make again.
    loaded = KnownRun(dataclasses.replace(pair[1].run, noise="spinners"))
    assert other_work(pair[0], loaded, (PYTHON,)) is None


def test_without_a_trace_a_task_of_the_second_run_alone_is_a_reason() -> None:
    def beside(seen: KnownRun, *percents: float) -> KnownRun:
        loads = tuple(ForeignLoad(7 + n, "qemu", 1, percent) for n, percent in enumerate(percents))
        return KnownRun(dataclasses.replace(seen.run, disturbed=loads))

    first, second = both(run(), run())
    reason = other_work(beside(first, 10.0), beside(second, 30.0, 30.0))
    assert reason is not None
    assert reason.told == "in the second run, qemu used 60 % of a CPU (10 % in the first run)"
    assert other_work(beside(first, 4.0), beside(second, 8.9)) is None
    assert other_work(beside(first, 40.0), beside(second, 70.0)) is None
    # The change may have kept the task of the first run away.
    assert other_work(beside(first, 60.0), second) is None
    view = compare_runs(first.run, dataclasses.replace(beside(second, 60.0).run, sched="fifo"))
    assert view.relation == "changed"
    assert view.headline.startswith("Latency is not comparable: in the second run, qemu used 60 % of a CPU")


def test_tasks_of_one_name_are_added_up_and_say_whose_they_are() -> None:
    loads = ForeignLoad(7, "qemu", 1, 30.0), ForeignLoad(8, "qemu", 1, 20.0), ForeignLoad(9, WORKSHOP, 1, 3.0)
    assert loads_by_name(dataclasses.replace(run(), disturbed=loads)) == {
        "qemu": 50.0,
        f"{WORKSHOP} (another workshop)": 3.0,
    }
