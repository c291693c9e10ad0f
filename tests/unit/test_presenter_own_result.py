"""Test the result of two runs in a few words: it says what the full result says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jitter_workshop.flow.chapters.judging import judge_pair
from jitter_workshop.model.effect import CauseTime, Effect, Effects, Relation
from jitter_workshop.model.run import Run
from jitter_workshop.model.walk import CompareView, OwnResult
from jitter_workshop.presenter.runs.own_result import result_in_short
from jitter_workshop.stats.comparison import compare
from jitter_workshop.stats.figures import KnownRun
from tests import madeup

BETTER = Effect("p99.9", ("210 µs", "12 µs"), 17.0, "better", "shorter")
WORSE = replace(BETTER, values=("12 µs", "210 µs"), direction="worse", how="longer")
COUNT = Effect("moves", ("4.27", "0 a second"), 43.0, "same", "fewer", sort="cause")
ALIKE = Effect("p99.9", ("17 ms", "11 ms"), 1.57, "better", "shorter")


def run(noise: str | None = None) -> Run:
    made: Run = madeup.make_run([[100] * 1_000], block_s=0.01, noise=noise)[0]
    return made


def result(
    found: Effects, relation: Relation = "changed", noises: tuple[str | None, str | None] = (None, None)
) -> OwnResult:
    a, b = (run(noise) for noise in noises)
    judged = judge_pair(found, (KnownRun(a), KnownRun(b)), relation)
    return result_in_short(CompareView(compare(a, b), "", relation, found, judgement=judged))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (Effects(BETTER, None, BETTER), OwnResult("better")),
        (Effects(WORSE, None, WORSE), OwnResult("worse")),
        (Effects(BETTER, None, BETTER, shown=COUNT), OwnResult("better", True)),
        (Effects(BETTER, None, BETTER, missed=COUNT), OwnResult("better", False)),
        (Effects(replace(BETTER, few=True), None, BETTER), OwnResult("perhaps better")),
        (
            Effects(replace(WORSE, within_runs=True), None, WORSE, shown=replace(COUNT, factor=2.0)),
            OwnResult("perhaps worse", True),
        ),
        (Effects(None, None, ALIKE, shown=COUNT, tail=ALIKE), OwnResult("no clear change", True)),
        (Effects(None, None, ALIKE, tail=ALIKE), OwnResult("no clear change")),
    ],
)
def test_the_result_in_short_is_the_direction_and_its_doubt_and_the_chapters_figure(
    found: Effects, said: OwnResult
) -> None:
    assert result(found) == said


def test_a_latency_that_another_cause_changed_is_not_decided() -> None:
    found = Effects(WORSE, None, WORSE, shown=COUNT)
    judged = replace(judge_pair(found, (KnownRun(run(None)), KnownRun(run(None)))), latency="perhaps worse")
    for doubt, latency in (("another cause", "not decided"), ("few stalls", "perhaps worse")):
        seen = replace(judged, doubt=doubt)  # type: ignore[arg-type]
        view = CompareView(compare(run(None), run(None)), "", "changed", found, judgement=seen)
        assert result_in_short(view).latency == latency


def test_a_latency_without_a_figure_that_can_be_compared_is_not_compared() -> None:
    assert result(Effects(None, None, COUNT, shown=COUNT)) == OwnResult("not compared", True)
    assert result(Effects(None, None, None, missed=COUNT, left_out="waits")) == OwnResult("not compared", False)


def test_two_runs_without_a_change_have_their_distance_as_result() -> None:
    assert result(Effects(None, None, ALIKE, tail=ALIKE), "alike") == OwnResult("alike", apart=1.57, judge="p99.9")


def test_a_percentile_of_few_stalls_has_its_distance_and_a_mark() -> None:
    few = replace(ALIKE, few=True)
    said = OwnResult("alike", apart=1.57, judge="p99.9", few=True)
    assert result(Effects(None, None, few, tail=few), "alike") == said


@pytest.mark.parametrize("doubt", ["few", "at_least", "by_chance"])
def test_equal_runs_with_few_events_have_no_distance(doubt: str) -> None:
    judge = replace(ALIKE, sort="stalls", **{doubt: True})
    assert result(Effects(None, None, judge, tail=judge), "alike") == OwnResult("alike")
    assert result(Effects(None, None, None), "alike") == OwnResult("alike")


def test_a_latency_that_is_the_chapters_figure_was_compared() -> None:
    own = replace(ALIKE, name="p50")
    assert result(Effects(None, None, own, missed=own, tail=own)).latency == "no clear change"


def test_a_count_that_moved_more_than_the_curve_became_worse_is_the_result() -> None:
    assert result(Effects(WORSE, None, WORSE, shown=COUNT)) == OwnResult("no clear change", True)


@pytest.mark.parametrize("relation", ["unsteady", "strayed"])
def test_runs_between_which_more_or_nothing_changed_are_not_comparable(relation: Relation) -> None:
    assert result(Effects(BETTER, None, BETTER, shown=COUNT), relation) == OwnResult("not comparable")


def test_another_task_makes_the_latency_not_comparable_and_leaves_the_count() -> None:
    busy = CauseTime("task python", (1e6, 4e8), task="python")
    assert result(Effects(BETTER, None, BETTER, shown=COUNT, causes=(busy,))) == OwnResult("not comparable", True)
    stalls = replace(COUNT, name="stalls of 1 ms and more", sort="stalls")
    assert result(Effects(BETTER, None, BETTER, shown=stalls, causes=(busy,))) == OwnResult("not comparable")


def test_runs_beside_different_noises_differ_and_none_is_better() -> None:
    assert result(Effects(BETTER, None, BETTER), noises=("stopper", None)).latency == "difference seen"


def test_an_emulated_machine_that_cannot_show_the_change_has_no_result_in_times() -> None:
    a = run()
    found = Effects(BETTER, None, BETTER)
    view = CompareView(compare(a, a), "", "changed", found, judgement=judge_pair(found))
    assert result_in_short(view, unshown=True) == OwnResult("not comparable")
