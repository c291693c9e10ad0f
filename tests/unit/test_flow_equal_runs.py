"""Test that a change counts only if it moves a figure further than equal runs of the session differ."""

from __future__ import annotations

import dataclasses

import pytest

from jitter_workshop.course.loader import builtin_course, load_course
from jitter_workshop.flow.chapters.equal_runs import beside_equal_runs, factors_of_equal_runs
from jitter_workshop.flow.chapters.judging import judge_pair
from jitter_workshop.model.run import Run
from jitter_workshop.presenter.runs import effect
from jitter_workshop.presenter.text.lines import written
from jitter_workshop.stats.effect import effects_of_change
from jitter_workshop.stats.figures import KnownRun
from tests import madeup
from tests.unit.test_flow_suspects import report

PINNING = next(one for one in load_course(builtin_course()).chapters if one.id == "pinning")


def run(ident: str, p90: int, **changed: object) -> Run:
    values = [100] * 8_000 + [p90] * 2_000
    made = madeup.make_run([values], block_s=1.0, run_id=f"20260101-00000{ident}-aaaa", noise="unbound")[0]
    return dataclasses.replace(made, **changed)  # type: ignore[arg-type]


def result(first: Run, second: Run, *others: Run, short: bool = False) -> str:
    """Return the result of two runs of a session that has other runs, too."""
    both = KnownRun(first), KnownRun(second)
    factors = factors_of_equal_runs(both, (*others, first, second), KnownRun, PINNING)
    found = beside_equal_runs(effects_of_change(*both), factors)
    return " ".join(written(effect.result_of_two_runs(judge_pair(found, both), both, 400, short=short).told).split())


BEFORE, AFTER = run("2", 9_000), run("3", 3_000, sched="fifo")


def test_a_change_no_larger_than_the_difference_of_equal_runs_may_be_chance() -> None:
    assert result(BEFORE, AFTER).startswith("Looks better: ")
    told = result(BEFORE, AFTER, run("1", 36_000))
    assert told.startswith("Latency: perhaps better (equal runs here differed by 4×).")
    assert "p90 9 µs 3 µs 3× shorter (equal runs here differed by 4×)" in told
    assert result(BEFORE, AFTER, run("1", 18_000)).startswith("Looks better: "), "3 times is more than 2 times"
    equal = result(BEFORE, AFTER, run("1", 12_000, sched="fifo"))
    assert equal.startswith("Latency: perhaps better "), "equal to the second"


def test_the_limit_is_two_or_the_larger_factor_between_equal_runs() -> None:
    little = run("3", 6_000, sched="fifo")
    assert "p99.9 ~9 µs ~6 µs 33 % shorter (2× needed)" in result(BEFORE, little)
    assert "p99.9 ~9 µs ~6 µs 33 % shorter (equal runs here differed by 4×)" in result(BEFORE, little, run("1", 36_000))


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (run("1", 36_000, noise=None), "another load"),
        (run("1", 36_000, complete=False), "a run that was stopped"),
        (run("1", 36_000, workload="ack"), "another workload"),
        (run("1", 36_000, applied=({"id": "isolation"},)), "other settings"),
    ],
)
def test_other_runs_are_not_equal(other: Run, why: str) -> None:
    assert result(BEFORE, AFTER, other).startswith("Looks better: "), why


def test_runs_that_cannot_be_compared_and_runs_with_another_trace_set_no_limit() -> None:
    both = KnownRun(BEFORE), KnownRun(AFTER)
    far = run("1", 36_000)
    assert factors_of_equal_runs(both, (far, BEFORE, AFTER), KnownRun, PINNING)["p90"] == 4.0

    def traced(one: Run) -> KnownRun:
        return KnownRun(one, report() if one.id == far.id else None)

    assert factors_of_equal_runs(both, (far, BEFORE, AFTER), traced, PINNING) == {}
    main = far.main_summary
    assert main is not None
    few = dataclasses.replace(far, histograms={far.main_histogram: dataclasses.replace(main, count=10)})
    stopped = dataclasses.replace(few, noise=None, stalls=dataclasses.replace(few.stalls, stolen_ns_per_second=9e8))
    alone = dataclasses.replace(BEFORE, noise=None)
    assert factors_of_equal_runs((KnownRun(alone), both[1]), (stopped, alone), KnownRun, PINNING) == {}
