"""Test what is said about the cause of the longest stall, and that the sums over a run never tell it."""

from __future__ import annotations

import dataclasses

import pytest

from jitter_workshop.flow.chapters.judging import judge_pair
from jitter_workshop.flow.chapters.longest_stall import largest_cause, longest_stalls
from jitter_workshop.model.effect import CauseTime
from jitter_workshop.model.evidence import EvidenceReport, ExplainedStall, Part
from jitter_workshop.presenter.runs import effect, verdict
from jitter_workshop.presenter.runs.longest_stall import said_of_longest
from jitter_workshop.stats.effect import effects_of_change
from jitter_workshop.stats.figures import KnownRun
from tests.unit.test_flow_suspects import cause, report
from tests.unit.test_stats_effect import run, said

VMSTAT = Part("workqueue", "vmstat_update", 543_000)
NO_EVENT = CauseTime("no event (hypervisor, firmware, memory)", (2.21e6, 4.39e6), named=False)
TREATED = CauseTime("interrupt virtio1-req.0", (1e6, 0.9e6), treated=True)


def stall(*parts: Part, thread: str = "accumulator") -> ExplainedStall:
    return ExplainedStall(9, sum(part.ns for part in parts), 1, thread, 1, 0, parts)


def traced(*stalls: ExplainedStall) -> EvidenceReport:
    return dataclasses.replace(report(), worst=stalls, main_thread="accumulator")


def told(*parts: Part, back: bool = False, traces: bool = True) -> str:
    """The result of two runs, of which the second has one long value; ``back``: of which the first has it."""
    short = KnownRun(run(), traced(stall(Part("irq", "nic0", 9_000))) if traces else None)
    made = traced(stall(Part("timer", "", 5_000)), stall(*parts)) if traces else None
    long = KnownRun(dataclasses.replace(run(worst=607_000), id="another"), made)
    runs = (long, short) if back else (short, long)
    found = effects_of_change(*runs)
    assert found.lead is not None
    assert (found.lead.name, found.lead.one_event) == ("max", True)
    # The sums over the runs name another cause.
    causes = tuple(dataclasses.replace(c, ns=c.ns[::-1]) if back else c for c in (NO_EVENT, TREATED))
    lines = effect.result_of_two_runs(judge_pair(dataclasses.replace(found, causes=causes), runs), runs, 300).lines
    text = " ".join(line.plain for line in lines)
    assert "no event (hypervisor" not in text
    return text


def test_a_moved_maximum_is_explained_by_its_own_stall() -> None:
    assert "67× longer, one event" in told(VMSTAT)
    assert "Most of the longest stall was work vmstat_update." in told(VMSTAT, Part("task", "kworker/1:1", 37_000))
    assert "Most of the first run's longest stall was work vmstat_update." in told(VMSTAT, back=True)
    third = (Part("task", "rngd", 240_000), Part("irq", "nic0", 190_000), Part("softirq", "NET_RX", 170_000))
    assert "The largest part of the longest stall was task rngd." in told(*third)


def test_a_stall_without_a_known_cause_is_said_to_have_none() -> None:
    assert "The trace names no cause of the longest stall." in told(Part("no_event", "", 600_000), VMSTAT)
    assert "the longest stall" not in told(traces=False)


def test_a_percentile_that_many_stalls_decide_is_explained_by_the_sums() -> None:
    before, after = run(), dataclasses.replace(run(p90=4_200), id="another")
    found = effects_of_change(KnownRun(before), KnownRun(after))
    text = " ".join(said(dataclasses.replace(found, causes=(NO_EVENT, TREATED)), before, after).split())
    assert text.startswith("Latency: perhaps worse (most of it with no known cause).")
    assert "2.21 ms/s 4.39 ms/s +2.18 ms, most: no event" in text


@pytest.mark.parametrize("how", ["longer", "shorter"])
def test_nothing_is_said_of_a_run_without_a_stall(how: str) -> None:
    one = effect.Effect("max", ("1 µs", "2 µs"), 2.0, "worse", how, one_event=True)
    assert said_of_longest(one, (KnownRun(run(), traced()), KnownRun(run(), traced()))) == ""
    bare = KnownRun(run(), traced(stall()))
    assert said_of_longest(one, (bare, bare)).startswith("The trace names no cause of ")


def test_the_longest_stall_is_one_of_the_thread_that_measures() -> None:
    mine, other = stall(VMSTAT), stall(Part("irq", "nic0", 9_000_000), thread="journaller")
    assert longest_stalls(traced(other, mine)) == [mine]
    assert longest_stalls(traced(other)) == [other]


def test_parts_with_one_name_are_one_cause() -> None:
    parts = (
        Part("irq", "nic0", 50_000),
        Part("timer", "tick_nohz_handler", 30_000),
        Part("vector", "local_timer", 40_000),
    )
    made = stall(*parts)
    cause = largest_cause(made, traced(made))
    assert cause is not None
    assert (cause.kind, cause.total_ns) == ("timer", 70_000)


def test_a_moved_maximum_is_perhaps_a_gain_only_if_the_change_acts_on_its_stall() -> None:
    other = told(VMSTAT, back=True)
    assert other.startswith(f"{verdict.NO_CHANGE} "), "another cause"
    assert told(traces=False).startswith(f"{verdict.NO_CHANGE} "), "no trace"
    ours = Part("irq", "virtio1-req.0", 543_000)
    assert told(ours, back=True).startswith("Latency: perhaps better (one event). ")
    assert told(ours).startswith("Latency: perhaps worse (one event). ")


def test_the_longest_stall_in_a_handler_says_if_the_handler_is_usually_short() -> None:
    one = effect.Effect("max", ("1 µs", "2 µs"), 2.0, "worse", "longer", one_event=True)
    whole = dataclasses.replace(
        traced(stall(Part("softirq", "RCU", 600_000))), causes=(cause("softirq", "RCU", 31, 660_000),)
    )
    assert said_of_longest(one, (KnownRun(run(), traced()), KnownRun(run(), whole))).endswith(
        "was softirq RCU, 300 times as long as usual: the hypervisor or the firmware may have stopped the CPU in it."
    )
