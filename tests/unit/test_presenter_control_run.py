"""Test the warning of a run without a noise that was disturbed all the same."""

from __future__ import annotations

import dataclasses

import pytest

from jitter_workshop.flow.chapters.judging import judge_pair
from jitter_workshop.model.course import Shows
from jitter_workshop.model.run import INTENDED, Run, ThreadRecord
from jitter_workshop.presenter.runs import effect
from jitter_workshop.presenter.runs.control_run import control_told, disturbed_control, disturbed_told, is_disturbed
from jitter_workshop.presenter.runs.one_run import result_of_one_run
from jitter_workshop.presenter.text.lines import written
from jitter_workshop.stats.effect import effects_of_change
from jitter_workshop.stats.figures import P99_FROM_DUE_TIME, KnownRun
from tests import madeup

DUE = Shows(P99_FROM_DUE_TIME, 3.0)
WARNED = "has no noise, but other tasks took its CPUs 224 times."


def run(late_ns: int, **changed: object) -> Run:
    """A run by a schedule with a CPU for each thread, in which 2 % of the messages are so late from the due time."""
    threads = (ThreadRecord("producer", {"0": 1}, involuntary_switches=74),)
    threads += (ThreadRecord("accumulator", {"1": 1}, involuntary_switches=150),)
    made = madeup.make_run([[180] * 9_800 + [late_ns] * 200], block_s=1.0, threads=threads, pacing="schedule")[0]
    placement = dataclasses.replace(made.placement, mode="auto", producer=0, accumulator=1)
    main = made.histograms[made.main_histogram]
    made = dataclasses.replace(made, placement=placement, histograms={**made.histograms, INTENDED: main})
    return dataclasses.replace(made, **changed)  # type: ignore[arg-type]


STOPPED = KnownRun(run(50_000_000, noise="stall", id="stopped"))
BAD, QUIET = KnownRun(run(90_000)), KnownRun(run(1_500))


def test_a_disturbed_run_without_a_noise_is_told_with_the_key_that_makes_it_again() -> None:
    assert disturbed_control((STOPPED, BAD)) == 1
    assert disturbed_control((BAD, STOPPED)) == 0
    assert control_told((STOPPED, BAD), "m") == f"The second run {WARNED} Measure it again (m), or go on."
    pair = STOPPED, BAD
    result = effect.result_of_two_runs(judge_pair(effects_of_change(*pair, DUE), pair), pair, 300, key="m")
    assert WARNED in written(result.caveats), "a screen never cuts it"
    assert f"This run {WARNED}" in written(result_of_one_run(BAD, 300, DUE, key="m"))
    assert "no noise" not in written(result_of_one_run(STOPPED, 300, DUE, key="m"))


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (QUIET, "as quiet as it should be"),
        (STOPPED, "its noise disturbs it on purpose"),
        (KnownRun(dataclasses.replace(BAD.run, workload="spin")), "no messages"),
        (KnownRun(dataclasses.replace(BAD.run, placement=dataclasses.replace(BAD.run.placement, mode="none"))), "free"),
        (dataclasses.replace(BAD, recorded={}), "a run of another machine"),
    ],
)
def test_other_runs_have_no_warning(seen: KnownRun, why: str) -> None:
    assert not is_disturbed(seen), why
    assert disturbed_told(seen) == ""
    assert control_told((STOPPED, seen)) == ""


def test_a_factor_beyond_a_thousand_is_not_told_in_digits() -> None:
    unknown = run(20_000_000, threads=(ThreadRecord("producer", {"0": 1}),))
    assert "its p99 is more than 1,000 times its median" in disturbed_told(KnownRun(unknown))


def test_two_runs_beside_the_same_noise_have_no_control() -> None:
    assert disturbed_control((BAD, BAD)) is None
    assert disturbed_control((BAD,)) is None


def test_a_run_whose_preemptions_are_not_known_is_told_without_their_number() -> None:
    unknown = dataclasses.replace(BAD.run, threads=(ThreadRecord("producer", {"0": 1}),))
    assert "CPUs" not in disturbed_told(KnownRun(unknown))
    assert disturbed_told(KnownRun(unknown)).startswith("This run has no noise, but its p99 is 500 ")
