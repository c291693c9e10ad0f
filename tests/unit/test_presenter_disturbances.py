"""Test the sentence on two runs of which other tasks disturbed one, and which have no trace."""

from __future__ import annotations

import dataclasses

import pytest

from jitter_workshop.flow.chapters.judging import judge_pair
from jitter_workshop.model.effect import Effect, Effects
from jitter_workshop.model.evidence import EvidenceReport, QuietCpus, Residence
from jitter_workshop.model.run import ForeignLoad
from jitter_workshop.presenter.runs import effect
from jitter_workshop.presenter.runs.disturbances import disturbed_pair_told, disturbed_without_trace
from jitter_workshop.presenter.text.lines import written
from jitter_workshop.stats.figures import KnownRun
from tests.unit.test_stats_effect import run

QUIET = KnownRun(run())
LOAD = ForeignLoad(7, "python3", 1, 1.2)
DISTURBED = KnownRun(dataclasses.replace(run(), id="another", disturbed=(LOAD,)))


def traced(seen: KnownRun) -> KnownRun:
    residence = Residence((), (), (), (), (), QuietCpus((1,), 10**9, None, 0, 0, 0, ""))
    kept = EvidenceReport(1, "r", "trace", 1_000, "mono", 0, 0, (), (), 10**9, residence=residence)
    return dataclasses.replace(seen, report=kept)


def test_a_disturbed_run_without_a_trace_is_told_with_its_consequence_and_the_key() -> None:
    both = QUIET, DISTURBED
    said = "The second run was disturbed (python3, 1.2 % of a CPU): its tail is not comparable."
    assert disturbed_pair_told(both, judged=False) == said
    assert disturbed_pair_told(both, judged=False, key="m") == f"{said} m measures again."
    assert disturbed_pair_told(both[::-1], judged=False).startswith("The first run was")
    told = disturbed_pair_told((DISTURBED, DISTURBED), judged=False, key="m")
    assert told == "Both runs were disturbed (python3, 1.2 % of a CPU): their tails are not comparable."
    # A verdict that rests on latency has its own rule on other work.
    assert disturbed_pair_told(both, judged=True).endswith("its longest stalls may come from this.")


@pytest.mark.parametrize("both", [(QUIET, QUIET), (QUIET, traced(DISTURBED)), (traced(QUIET), traced(DISTURBED))])
def test_quiet_runs_and_runs_with_a_trace_have_no_such_sentence(both: tuple[KnownRun, KnownRun]) -> None:
    assert disturbed_without_trace(both) == ()
    assert disturbed_pair_told(both, judged=False) == ""


def test_a_result_names_a_disturbed_run_once() -> None:
    same = Effect("p99.9", ("5 µs", "5 µs"), 1.0, "same", "")
    both = QUIET, DISTURBED
    result = effect.result_of_two_runs(judge_pair(Effects(None, None, same, tail=same), both), both, 200, short=True)
    assert written(result.caveats).startswith("The second run was disturbed (python3, 1.2 % of a CPU): its tail is")
    assert written(result.lines).count("python3") == 1
