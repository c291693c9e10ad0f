"""explain without a trace: what is said of counters, at any width, for any host, and never a thief's name."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.flow.attribution import counted_report
from jitter_workshop.model.codec import from_plain, to_plain
from jitter_workshop.model.evidence import CounterReport
from jitter_workshop.model.run import AT, Counter, Run
from jitter_workshop.presenter.runs.causes import stall_report_lines
from jitter_workshop.presenter.runs.counters import longest_stall_lines, paranoid_level, permitted_commands, to_ask_for
from jitter_workshop.presenter.text.lines import written
from jitter_workshop.report.cause_words import time_taken_sentences
from tests.madecounted import COUNTERS, HOSTILE, fields
from tests.madeup import make_run


def measured(**how: Any) -> Run:
    return make_run(**fields(**how))[0]


def report(paranoid: int | None = 2, **how: Any) -> CounterReport:
    run = measured(**how)
    return counted_report(run, dataclasses.replace(COUNTERS, perf_event_paranoid=paranoid), 10)


def test_the_time_of_a_stall_is_told_with_its_origin() -> None:
    assert AT in " ".join(written(stall_report_lines(report(), 80)).split())
    assert AT in [line.plain for line in longest_stall_lines(report(), 0, 80)]


def test_no_cause_is_claimed_and_every_null_has_its_reason() -> None:
    plain = to_plain(report())
    assert (plain["evidence"], plain["causes"], plain["lost_events"]) == ("counters", None, None)
    assert [stall["parts"] for stall in plain["worst"]] == [None]
    assert {"trace", "causes", "worst.parts", "lost_events", "cpus.steal_ns"} <= plain["notes"].keys()
    assert "noise" not in plain["notes"]
    assert json.loads(json.dumps(plain)) == plain


def test_figures_are_those_of_the_runs_own_cpus() -> None:
    found = report()
    assert found.interrupts == {"LOC": Counter("Local timer", {"1": 500}), "36": Counter(HOSTILE, {"1": 3})}
    assert found.softirqs == {"NET_RX": Counter("NET_RX", {"1": 20})}
    assert (found.stalled_ns, found.waited_ns, found.measured_ns) == (10_000_000, 8_000_000, 2_000_000_000)


def test_the_hypervisors_time_is_not_set_against_the_stalls() -> None:
    found = report()
    stolen = dataclasses.replace(found, cpus=tuple(dataclasses.replace(c, steal_ns=1_010_000_000) for c in found.cpus))
    assert "So steal can be longer than the stalls" in " ".join(written(stall_report_lines(stolen, 80)).split())
    none = dataclasses.replace(found, cpus=tuple(dataclasses.replace(c, steal_ns=0) for c in found.cpus))
    assert "The kernel counts steal" not in written(stall_report_lines(none, 80))


def test_of_a_sampler_that_paused_the_stalls_are_those_it_saw() -> None:
    run = measured()
    paused = dataclasses.replace(run, duty=10, stalls=dataclasses.replace(run.stalls, rated_s=run.duration_s / 10))
    assert counted_report(paused, COUNTERS, 10).stalled_ns == counted_report(run, COUNTERS, 10).stalled_ns // 10


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (
            {},
            "waited 8 ms for a CPU (the scheduler's run delay). At least about 2 ms",
        ),
        ({"waited_ns": 11_000_000}, "waited 11 ms for a CPU (the scheduler's run delay)"),
        ({"waited_ns": 11_000_000}, "These waits may explain all stalls"),
        ({"waited_ns": None}, "waited for a CPU: not counted here."),
        ({"count": 0, "stolen": 0.0}, "no stall to explain."),
    ],
)
def test_the_sentence_claims_only_as_much_as_the_counters_allow(how: dict[str, Any], words: str) -> None:
    said = " ".join(time_taken_sentences(report(**how)))
    assert words in said
    assert "Counters do not show which task" in said


@given(st.integers(0, 10**12), st.integers(0, 10**9))
def test_another_cause_is_named_only_if_the_stalls_exceed_the_counted_wait(waited_ns: int, stolen: int) -> None:
    found = report(waited_ns=waited_ns, stolen=float(stolen))
    claims_a_rest = "another cause, which is not counted" in " ".join(time_taken_sentences(found))
    assert claims_a_rest is (found.stalled_ns > waited_ns)


@given(st.integers(60, 160), st.none() | st.integers(-1, 4), st.none() | st.integers(0, 10**12))
def test_any_report_fits_its_width_and_has_no_escapes(width: int, paranoid: int | None, waited: int | None) -> None:
    text = written(stall_report_lines(report(paranoid, waited_ns=waited), width, HOSTILE))
    assert text.endswith("\n")
    assert "\x1b" not in text
    assert all(len(line) <= min(width, 100) for line in text.splitlines())
    assert not any(line.startswith("forged") for line in text.splitlines())


@pytest.mark.parametrize(
    ("paranoid", "own", "counts", "whole", "ask"),
    [
        (None, False, False, False, False),
        (4, False, False, False, True),
        (3, False, False, False, True),
        (2, True, False, False, True),
        (1, True, True, False, True),
        (0, True, True, True, False),
        (-1, True, True, True, False),
    ],
)
def test_the_commands_by_hand_follow_the_setting_of_the_host(
    paranoid: int | None, own: bool, counts: bool, whole: bool, ask: bool
) -> None:
    found = report(paranoid)
    commands = [command for command, _ in permitted_commands(found)]
    assert "schedstat" in commands[0]
    assert any("--switch-events" in c and " -p " in c for c in commands) is own
    assert any(c.startswith("perf stat") for c in commands) is counts
    assert any("-C 1" in c for c in commands) is whole
    assert any("sysctl" in command for command, _ in to_ask_for(found)) is ask
    assert (str(paranoid) in paranoid_level(found)) is (paranoid is not None)


def test_a_run_with_counters_is_kept_and_an_older_one_is_read() -> None:
    plain = to_plain(measured())
    assert from_plain(Run, plain) == measured()
    del plain["counters"]
    for name in ("ran_ns", "waited_ns", "timeslices"):
        del plain["threads"][0][name]
    older = from_plain(Run, plain)
    assert older.counters is None
    assert older.threads[0].waited_ns is None
