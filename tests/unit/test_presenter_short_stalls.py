"""Test what is said about stalls that are too short to judge two runs, but that their curves show."""

from __future__ import annotations

import dataclasses

import pytest

from jitter_workshop.flow.chapters.judging import judge_pair
from jitter_workshop.model.evidence import Cause, EvidenceReport
from jitter_workshop.model.run import StallRate
from jitter_workshop.presenter.runs import effect
from jitter_workshop.presenter.runs.short_stalls import short_stalls_told
from jitter_workshop.presenter.text.lines import written
from jitter_workshop.stats.effect import effects_of_change
from jitter_workshop.stats.figures import KnownRun
from tests.unit.test_flow_suspects import report
from tests.unit.test_stats_effect import run

SECONDS = 5.0


def traced(counts: dict[str, int]) -> EvidenceReport:
    causes = tuple(
        Cause(kind, name, count, 2_000 * count, 9_000, 0.0, count)
        for (kind, _, name), count in ((key.partition(":"), count) for key, count in counts.items())
    )
    return dataclasses.replace(report(), causes=causes, measured_ns=round(SECONDS * 1e9))


def spin(us_1: int, us_10: int = 1_800, workload: str = "spin", **causes: int) -> KnownRun:
    """A run of five seconds with these numbers of stalls of 1 and 10 µs and more. ``causes``: the number of stalls of
    each cause in its trace; () for no trace."""
    rates = tuple(
        StallRate(ns, count, count / SECONDS, 0.0) for ns, count in ((1_000, us_1), (10_000, us_10), (100_000, 3))
    )
    made = run()
    made = dataclasses.replace(made, id=f"{us_1}-{us_10}", workload=workload, duration_s=SECONDS)
    made = dataclasses.replace(made, stalls=dataclasses.replace(made.stalls, rates=rates))
    found = {{"no_event": "no_event:", "nic": "irq:nic0", "timer": "timer:tick"}[k]: n for k, n in causes.items()}
    return KnownRun(made, traced(found) if found else None)


def test_many_more_short_stalls_are_told_with_the_cause_that_made_most_of_them() -> None:
    before, after = spin(3_229, no_event=1_202, timer=1_250), spin(12_235, no_event=10_981, timer=1_254)
    said = "Stalls of 1 to 10 µs: 286 → 2,090 a second, most with no event of the kernel."
    assert short_stalls_told((before, after)) == said
    assert short_stalls_told((after, before)) == said.replace("286 → 2,090", "2,090 → 286"), "also if they are gone"
    pair = before, after
    result = effect.result_of_two_runs(judge_pair(effects_of_change(*pair), pair), pair, 300)
    assert said in written(result.notes)
    named = spin(3_229, nic=100, timer=1_250), spin(12_235, nic=9_000, timer=1_254)
    assert short_stalls_told(named).endswith(" a second, most from interrupt nic0.")


def test_a_cause_of_less_than_half_of_the_difference_is_not_named() -> None:
    unknown = spin(3_229, no_event=1_202), spin(12_235, no_event=4_000)
    assert short_stalls_told(unknown).endswith("2,090 a second.")
    assert short_stalls_told((spin(3_229), spin(12_235))).endswith("2,090 a second."), "no run has a trace"


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (spin(3_229), spin(4_500), "less than a factor of 2"),
        (spin(1_803), spin(1_808), "few events"),
        (spin(3_229, workload="ring"), spin(12_235, workload="ring"), "a percentile judges a ring"),
        (spin(3_229), dataclasses.replace(spin(12_235), recorded={}), "a run of another machine"),
    ],
)
def test_other_short_stalls_are_not_told(before: KnownRun, after: KnownRun, why: str) -> None:
    assert short_stalls_told((before, after)) == "", why
