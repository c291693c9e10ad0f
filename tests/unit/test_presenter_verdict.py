"""Test the one or two sentences that say what a change between two runs did."""

from __future__ import annotations

import dataclasses

import pytest

from jitter_workshop.flow.chapters.judging import judge_pair
from jitter_workshop.model.course import Shows
from jitter_workshop.model.effect import CauseTime, Effect, Effects
from jitter_workshop.model.run import Run, StallRate
from jitter_workshop.presenter.runs import verdict
from jitter_workshop.presenter.runs.effect import result_of_two_runs
from jitter_workshop.report.diagnosis_words import label
from jitter_workshop.stats.effect import effects_of_change
from jitter_workshop.stats.figures import FIGURES, KnownRun
from tests.unit.test_stats_effect import run

OF_100_US = FIGURES["stalls-100us"].title
STALLS = Effect(OF_100_US, ("1.6", "9.8 a second"), 6.1, "worse", "more", sort="stalls")


def told(found: Effects, *runs: Run, width: int = 78) -> str:
    first, second = runs or (run(), dataclasses.replace(run(), id="another"))
    return verdict.verdict_of_change(judge_pair(found, (KnownRun(first), KnownRun(second))), width).plain


def counted(stalls: int) -> Run:
    made = run()
    rates = (StallRate(100_000, stalls, float(stalls), 1e6),)
    return dataclasses.replace(made, id=f"with-{stalls}", stalls=dataclasses.replace(made.stalls, rates=rates))


def test_a_sure_effect_leads_with_its_size_and_leaves_its_values_to_the_table_to_save_a_line() -> None:
    tail = Effect("p99.9", ("210 µs", "12 µs"), 17.5, "better", "shorter")
    found = Effects(tail, None, tail, shown=Effect("moves", ("4.3", "0 a second"), 9.0, "same", "fewer", sort="cause"))
    moves = f"Moves: 9× fewer, 4.3 → 0 a second, {verdict.AS_EXPECTED}."
    whole = f"Looks better: p99.9 is 18× shorter, 210 µs → 12 µs. {moves}"
    assert told(found, width=len(whole)) == whole
    fewer = whole.replace(", 4.3 → 0 a second", "")
    assert told(found, width=len(whole) - 1) == fewer
    assert told(found, width=len(fewer) - 1) == fewer.replace(", 210 µs → 12 µs", "")
    assert [str(span.style) for span in verdict.verdict_of_change(judge_pair(found), 78).spans][:1] == ["bold good"]
    gone = dataclasses.replace(STALLS, values=("152", "0 a second"), direction="better", how="fewer", at_least=True)
    assert told(Effects(gone, None, gone)) == f"Looks better: {OF_100_US} are gone, 152 → 0 a second."
    new = dataclasses.replace(STALLS, values=("0", "12 a second"), at_least=True)
    assert told(Effects(new, None, new)) == f"Looks worse: {OF_100_US} are new, 0 → 12 a second."


def test_a_figure_that_a_run_does_not_have_is_said_to_be_unknown() -> None:
    before, after = KnownRun(run()), KnownRun(dataclasses.replace(run(), id="another"))
    found = effects_of_change(before, after, Shows("work:vmstat_update", 3.0))
    assert found.uncounted == "work items vmstat_update"
    assert told(found).startswith("The chapter's figure is not known. ")
    assert effects_of_change(before, after, Shows("preempted", 3.0)).uncounted == ""


def test_between_two_kinds_of_run_no_change_does_a_work() -> None:
    beside = dataclasses.replace(run(), id="another", noise="unbound")
    count = Effect("moves", ("0.6", "4.6 a second"), 7.6, "same", "more", sort="cause")
    moved = "Moves: 7.6× more, 0.6 → 4.6 a second,"
    shown, missed = Effects(None, None, count, shown=count), Effects(None, None, count, missed=count)
    assert told(shown, run(), beside).startswith(f"{moved} {verdict.AS_EXPECTED}.")
    assert told(missed, run(), beside).startswith(f"{moved} not {verdict.AS_EXPECTED}.")


def test_the_one_reason_for_perhaps_is_told() -> None:
    few = dataclasses.replace(STALLS, few=True)
    found = Effects(STALLS, None, STALLS, tail=STALLS)
    other = CauseTime("task terminal", (26e6, 69.8e6), own_load=True)
    nobody = CauseTime(label("no_event", ""), (1.8e6, 6.2e6), named=False)
    ours = CauseTime("work flush_to_ldisc", (1e6, 0.0), treated=True)
    for cause, why in ((other, "most of it from the chapter's noise"), (nobody, "most of it with no known cause")):
        beside = dataclasses.replace(found, causes=(cause, ours))
        assert told(beside) == f"Latency: perhaps worse ({why})."
        # A number of stalls is said before the cause, which the table has.
        assert told(beside, counted(8), counted(49)) == "Latency: perhaps worse (only 8 stalls before)."
        assert told(beside, counted(80), counted(490)) == f"Latency: perhaps worse ({why})."
    assert told(Effects(few, None, few)) == "Latency: perhaps worse (few stalls)."


@pytest.mark.parametrize(("ns", "asked"), [((1.8e6, 6.2e6), "second"), ((6.2e6, 1.8e6), "first")])
def test_the_run_with_more_time_of_an_unknown_cause_is_to_be_made_again(ns: tuple[float, float], asked: str) -> None:
    runs = KnownRun(run()), KnownRun(dataclasses.replace(run(), id="another"))
    direction, how = ("worse", "more") if asked == "second" else ("better", "fewer")
    moved = dataclasses.replace(STALLS, direction=direction, how=how)
    nobody = CauseTime(label("no_event", ""), ns, named=False)
    ours = CauseTime("work flush_to_ldisc", (0.1e6, 0.0), treated=True)
    judged = judge_pair(Effects(moved, None, moved, tail=moved, causes=(nobody, ours)), runs)
    offer = f"Measure the {asked} run again (m)."
    assert offer in " ".join(line.plain for line in result_of_two_runs(judged, runs, 78, key="m").caveats)
    assert not result_of_two_runs(judged, runs, 78).caveats, "without the key nothing can be done"
    known = dataclasses.replace(nobody, named=True)
    judged = judge_pair(Effects(moved, None, moved, tail=moved, causes=(known, ours)), runs)
    assert judged.unknown_run is None
    assert not result_of_two_runs(judged, runs, 78, key="m").caveats


@pytest.mark.parametrize(("left", "possible"), [(0.1e6, True), (1.9e6, False)])
def test_few_stalls_are_perhaps_a_gain_only_if_the_time_that_the_change_can_end_moved_enough(
    left: float, possible: bool
) -> None:
    """Nine stalls of 100 µs in a second need 900 µs; the change must have ended half of it."""
    fewer = dataclasses.replace(STALLS, values=("9", "0 a second"), direction="better", how="fewer", few=True)
    ours = CauseTime("work flush_to_ldisc", (2e6, left), treated=True)
    said = told(Effects(fewer, None, fewer, causes=(ours,)), counted(9), counted(0))
    assert said == ("Latency: perhaps better (few stalls)." if possible else verdict.NO_CHANGE)


@pytest.mark.parametrize(("ended", "possible"), [(2e6, True), (0.5e6, False)])
def test_a_curve_whose_median_moved_by_more_than_the_change_ended_is_no_gain(ended: float, possible: bool) -> None:
    """5,000 of 10,000 messages in a second were at least 200 ns faster: 1 ms a second."""
    lower = Effect("p90", ("350 ns", "85 ns"), 4.1, "better", "shorter")
    tail = Effect("p99.99", ("6.86 ms", "6.81 ms"), 1.01, "same", "")
    count = Effect("first write", ("112 µs", "175 ns"), 638.0, "same", "shorter", sort="cause")
    ours = CauseTime("page faults", (ended + 0.1e6, 0.1e6), treated=True)
    found = Effects(lower, None, lower, shown=count, tail=tail, causes=(ours,))
    before, after = run(p50=260, p90=350), dataclasses.replace(run(p50=60, p90=85), id="another")
    said = told(found, before, after)
    done = f"First write: 638× shorter, {verdict.AS_EXPECTED}."
    better = f"Looks better: p90 is 4.1× shorter. {done}"
    assert said == (better if possible else f"{done} {verdict.NO_CHANGE}")
    # The judged percentile is a result of its own, and so is a chapter without a count.
    assert "Looks better" in told(dataclasses.replace(found, tail=lower), before, after)
    assert "Looks better" in told(dataclasses.replace(found, shown=None), before, after)
    assert "Looks better" in told(found, before, dataclasses.replace(run(p50=260, p90=85), id="another"))
