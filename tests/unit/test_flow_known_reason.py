"""Test the known reason why two runs that were made in the same way differ."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.flow.measuring.comparing import compare_runs
from jitter_workshop.flow.measuring.known_reason import causes_of_difference, known_reason, sentences, what_to_do
from jitter_workshop.model.effect import CauseTime
from jitter_workshop.model.evidence import MEASURED
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
        "Measure the first run again, or go on: equal runs can differ by as much."
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
    assert what_to_do(reason, "m") == "Measure the second run again (m), or go on: equal runs can differ by as much."


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
    told = written(effect.result_of_two_runs(effects_of_change(*pair), pair, "alike", 300).lines)
    assert told.count("planned messages") == 1
    assert told.startswith(
        "Not comparable: in the second run, only 46 % of the planned messages were sent and a thread "
    )
    assert "luck" not in told.lower()
    assert compare_runs(pair[0].run, pair[1].run).reason is not None
    # The other run's share is told if it is small, too; a similar one can be compared with the waits.
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


def test_equal_runs_with_a_known_reason_are_not_called_luck() -> None:
    first, second = (seen.run for seen in both(run(), run()))
    view = compare_runs(first, second, causes=(OURS, TICK))
    assert view.headline.startswith(f"Not comparable: in the first run, {OURS.label}")
    assert "luck" not in view.headline
    assert "The difference is luck" in compare_runs(first, second).headline
