"""Test what is said of two runs between which this tool changed nothing."""

from __future__ import annotations

import dataclasses
import textwrap

import pytest

from jitter_workshop.flow.measuring.comparing import compare_runs
from jitter_workshop.flow.measuring.unchanged import (
    UNCHANGED,
    figures_told,
    known_differences,
    said_of_unchanged,
    unchanged,
)
from jitter_workshop.model.effect import CauseTime, Effect
from jitter_workshop.model.run import ForeignLoad, Run, StallRate, ThreadRecord
from jitter_workshop.report.diagnosis_words import label
from jitter_workshop.stats.figures import FIGURES, KnownRun
from tests import madeup

LONGER = Effect("p99.9", ("5 ms", "4 ms"), 1.27, "better", "shorter")
TICK = CauseTime("local timer", (1e3, 2e3))


def made(*values: int, run_id: str = "20260101-000001-aaaa") -> Run:
    return madeup.make_run([[values[0]] * 2_000 + [values[1]] * 20], run_id=run_id)[0]


def known(run: Run) -> KnownRun:
    return KnownRun(run)


def on_cpus(run: Run, mode: str, producer: int) -> KnownRun:
    threads = (ThreadRecord("producer", {str(producer): 900, "7": 100}), ThreadRecord("accumulator", {"7": 1_000}))
    return KnownRun(dataclasses.replace(run, threads=threads, placement=dataclasses.replace(run.placement, mode=mode)))


def test_a_difference_without_a_change_is_no_chance_and_its_reason_is_not_known() -> None:
    told = unchanged(known(made(100, 90_000)), known(made(1_000, 90_000)))
    assert told.startswith(f"{UNCHANGED}, yet p99.9 differs by less than 5 %, the median by 10× and p90 by 10×.")
    assert told.endswith("The reason is not known. A change must do more, at least 2×.")
    assert not {"luck", "chance"} & set(told.lower().split())


def test_a_percentile_of_few_stalls_is_told_with_the_usual_mark() -> None:
    few = dataclasses.replace(LONGER, few=True)
    runs = known(made(100, 90_000)), known(made(100, 90_000))
    for one, told in ((few, "p99.9 differs by ~27 %."), (LONGER, "p99.9 differs by 27 %.")):
        assert told in said_of_unchanged([one], one, runs)


def test_a_median_that_differs_by_half_or_more_is_told_beside_three_larger_differences() -> None:
    larger = [Effect(f"p99.{'9' * n}", ("1 ms", "9 ms"), 9.0 - n, "worse", "longer") for n in range(1, 4)]
    judged = Effect(FIGURES["stalls-100us"].title, ("9", "18"), 2.0, "worse", "more", sort="stalls")
    runs = known(made(100, 90_000)), known(made(300, 90_000))
    for factor, told, name in ((2.6, True, "p50"), (2.6, True, "p50 from the due time"), (1.4, False, "p50")):
        median = Effect(name, ("87 ns", "223 ns"), factor, "worse", "longer")
        differences = sorted([*larger, median, judged], key=lambda one: -one.factor)
        names = [one.name for one in figures_told(differences, judged)]
        assert (name in names, judged.name in names, len(names)) == (told, True, 3)
        said = said_of_unchanged(differences, judged, runs)
        assert ("the median by 2.6×" in said) == told
        assert len(textwrap.wrap(said, 76)) <= 2


def test_at_most_three_differences_are_told_the_judged_one_among_them_and_in_two_lines() -> None:
    first = made(100, 90_000)
    rates = (StallRate(100_000, 20, 40.0, 4e6), StallRate(1_000, 90, 180.0, 5e6))
    first = dataclasses.replace(first, stalls=dataclasses.replace(first.stalls, rates=rates, stolen_ns_per_second=5e6))
    more = (StallRate(100_000, 40, 80.0, 1e8), StallRate(1_000, 90, 180.0, 2e8))
    second = made(300, 300_000)
    second = dataclasses.replace(
        second, stalls=dataclasses.replace(second.stalls, rates=more, stolen_ns_per_second=2e8)
    )
    told = unchanged(known(first), known(second))
    assert f"{UNCHANGED}, yet p99.9 differs by 3.3×, time in stalls by 40× and the median by 3×." in told
    assert told.endswith("A change must do more."), "a limit of 2× would be less than these runs differ by"
    # The longest names and the most known differences there can be.
    many = [Effect(f"stalls of {n} µs and more", ("0", "9"), 2e3, "worse", "more", sort="stalls") for n in (10, 100)]
    load = (ForeignLoad(7, "other", 1, 30.0),)
    for loads in ((), load):
        runs = known(first), known(dataclasses.replace(second, disturbed=loads))
        for judged in (LONGER, dataclasses.replace(LONGER, factor=1.01)):
            told = said_of_unchanged([*many, judged], judged, runs, ())
            assert judged.name in told
            assert len(textwrap.wrap(told, 76)) <= 2, told


@pytest.mark.parametrize(
    ("mode", "cpus", "names"), [("none", (0, 1), ["the CPUs"]), ("none", (1, 1), []), ("auto", (0, 1), [])]
)
def test_other_cpus_are_a_known_difference_if_the_scheduler_chose_them(
    mode: str, cpus: tuple[int, int], names: list[str]
) -> None:
    first, second = (on_cpus(made(100, 90_000), mode, cpu) for cpu in cpus)
    assert known_differences((first, second)) == names
    assert ("The reason is not known." in unchanged(first, second)) is not names


def test_a_cause_and_other_tasks_are_known_differences_and_time_without_an_event_is_none() -> None:
    first = known(made(100, 90_000))
    beside = known(dataclasses.replace(made(100, 90_000), disturbed=(ForeignLoad(7, "other", 1, 30.0),)))
    backup = CauseTime("task backup", (900e3, 0.0), task="backup")
    assert known_differences((first, beside), (backup, TICK)) == ["task backup", "other tasks"]
    assert known_differences((first, first), (dataclasses.replace(backup, named=False), TICK)) == []
    nothing = CauseTime(label("no_event", ""), (900e3, 0.0), named=False)
    assert known_differences((first, first), (nothing, TICK)) == ["stalls with no event"]
    told = compare_runs(first.run, made(100, 80_000, run_id="20260101-000002-aaaa"), causes=(backup, TICK)).headline
    assert "Known difference: task backup." in told


def test_a_count_is_a_known_difference_only_if_it_is_larger_in_the_slower_run() -> None:
    def preempted(times: int) -> KnownRun:
        threads = (ThreadRecord("accumulator", {"0": 1}, involuntary_switches=times),)
        return known(dataclasses.replace(made(100, 90_000), threads=threads))

    both = preempted(9_000), preempted(90)
    shorter, longer = (dataclasses.replace(LONGER, direction=way) for way in ("better", "worse"))
    (name,) = known_differences(both, judged=shorter)
    assert "preempted" in name
    assert known_differences(both, judged=longer) == []


def test_without_one_large_cause_the_two_that_differ_most_in_the_worse_run_come_before_the_cpus() -> None:
    runs = on_cpus(made(100, 90_000), "none", 1), on_cpus(made(100, 90_000), "none", 0)
    bash, kdamond = CauseTime("task bash", (7.26e6, 0.0)), CauseTime("task kdamond.0", (4.37e6, 0.0))
    other, back = CauseTime("local timer", (60e6, 40e6)), CauseTime("task sshd", (0.0, 9e6))
    third, less = CauseTime("task a", (2e6, 0.0)), CauseTime("task b", (0.9e6, 0.0))
    unsure = CauseTime("task c", (8e6, 0.0), at_most=(True, False))
    causes = (less, third, kdamond, unsure, other, bash, back, CauseTime("no event", (30e6, 9e6), named=False))
    first_worse, second_worse = (dataclasses.replace(LONGER, direction=way) for way in ("better", "worse"))
    named = ["task bash", "task kdamond.0", "the CPUs"]
    assert known_differences(runs, causes, first_worse) == named
    assert known_differences(runs, causes) == named, "without a judged figure the run with more stalled time is worse"
    assert known_differences(runs, causes, second_worse) == ["task sshd", "the CPUs"]
    assert known_differences(runs, (less, other), first_worse) == ["the CPUs"]
    told = said_of_unchanged([LONGER], first_worse, runs, causes)
    assert "Known differences: task bash, task kdamond.0, the CPUs." in told
    assert len(textwrap.wrap(told, 76)) <= 2
