"""Test the words on two runs between which this tool changed nothing."""

from __future__ import annotations

import dataclasses

from jitter_workshop.flow.chapters.judging import judge_pair
from jitter_workshop.flow.measuring.known_reason import cause_by_chance
from jitter_workshop.flow.measuring.unchanged import UNCHANGED
from jitter_workshop.model.effect import CauseTime
from jitter_workshop.model.run import ThreadRecord
from jitter_workshop.presenter.runs import effect
from jitter_workshop.presenter.runs.unchanged import named_unchanged, notes_unchanged, result_unchanged
from jitter_workshop.presenter.text.lines import written
from jitter_workshop.stats.effect import effects_of_change, unlike
from jitter_workshop.stats.figures import KnownRun
from tests import madeup

BACKUP, TICK = CauseTime("task backup", (900e3, 0.0)), CauseTime("local timer", (1e3, 2e3))


def pair(before: dict[str, object], after: dict[str, object]) -> tuple[KnownRun, KnownRun]:
    first = madeup.make_run([[100] * 2_000 + [90_000] * 20])[0]
    second = madeup.make_run([[100] * 2_000 + [30_000] * 20], run_id="20260101-000001-aaaa")[0]
    return KnownRun(dataclasses.replace(first, **before)), KnownRun(dataclasses.replace(second, **after))  # type: ignore[arg-type]


def test_the_result_of_equal_runs_is_their_difference_and_the_reasons_are_notes() -> None:
    both = pair({}, {})
    found = dataclasses.replace(effects_of_change(*both), causes=(BACKUP, TICK))
    result = effect.result_of_two_runs(judge_pair(found, both, "alike"), both, 78)
    assert len(result.told) <= 2
    assert result.told[0].plain.startswith(UNCHANGED)
    assert [str(span.style) for span in result_unchanged(found, both).spans] == ["bold accent", "text"]
    assert "Known difference: task backup." in " ".join(written(result.told).split())
    assert "p99.9" in named_unchanged(found, both)
    long = dataclasses.replace(found, causes=(dataclasses.replace(BACKUP, label="task " + "b" * 60), TICK))
    said = result_unchanged(long, both).plain
    assert said.endswith(" must do more."), "this sentence stays"
    assert "Known difference" not in said
    assert notes_unchanged(long, both)[0].startswith("Known difference: task bbb")


def test_no_small_cause_and_none_of_many_is_most_of_the_difference() -> None:
    back = dataclasses.replace(BACKUP, ns=(0.0, 900e3))
    assert cause_by_chance((back, TICK)) is back
    # A cause with a small share, one that differs by less than a factor of 2, and one of many.
    for causes in (
        (dataclasses.replace(BACKUP, ns=(9e3, 0.0)), CauseTime("task a", (500e6, 500e6))),
        (dataclasses.replace(BACKUP, ns=(900e3, 600e3)), TICK),
        tuple(CauseTime(f"task {n}", (50e6 + n, 0.0)) for n in range(3)),
    ):
        assert cause_by_chance(causes) is None


def test_a_count_that_differs_by_more_than_chance_and_the_schedulers_cpus_are_notes() -> None:
    def threads(times: int, cpu: int) -> dict[str, object]:
        return {"threads": (ThreadRecord("accumulator", {str(cpu): 2_020}, involuntary_switches=times),)}

    both = pair(threads(666, 0), threads(84, 1))
    counted, placed = notes_unchanged(effects_of_change(*both), both)
    assert "the thread preempted" in counted
    assert "accumulator mostly on CPU 0 in the first run and on CPU 1 in the second." in placed
    swapped = {"threads": (ThreadRecord("producer", {"1": 7, "0": 3}), ThreadRecord("accumulator", {"0": 9}))}
    back = {"threads": (ThreadRecord("producer", {"0": 6, "1": 4}), ThreadRecord("accumulator", {"1": 9}))}
    told = notes_unchanged(effects_of_change(*pair(swapped, back)), pair(swapped, back))[-1]
    assert told == (
        "The scheduler chose the CPUs: producer mostly on CPU 1 in the first run and on CPU 0 in the second; "
        "accumulator the other way round."
    )
    # A factor that is too small, and numbers so small that chance explains them.
    assert unlike(*pair(threads(160, 0), threads(84, 0))) is None
    assert unlike(*pair(threads(5, 0), threads(1, 0))) is None
