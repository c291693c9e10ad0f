"""Test the warning of a run that sent few of its planned messages."""

from __future__ import annotations

from dataclasses import replace

from jitter_workshop.model.run import Run
from jitter_workshop.presenter.runs.omission import few_sent, warning
from jitter_workshop.presenter.runs.run import run_result_lines
from jitter_workshop.stats.figures import INTENDED, KnownRun
from tests import madeup


def sent(number: int, due_ns: int | None = None) -> Run:
    """A run that sent so many of its 1,000 planned messages, because a thread was stopped in the other time."""
    made: Run = madeup.make_run([[100] * number], block_s=0.01)[0]
    main = made.main_summary
    assert main is not None
    main = replace(main, percentiles={**main.percentiles, "99.9": 100})
    due = {} if due_ns is None else {INTENDED: replace(main, percentiles={**main.percentiles, "99.9": due_ns})}
    stalls = replace(made.stalls, stolen_ns_per_second=1e9 - number * 1e6)
    return replace(made, stalls=stalls, histograms={**made.histograms, made.main_histogram: main, **due})


def test_one_run_is_told_with_its_share_and_p999_with_the_waits() -> None:
    few = warning((KnownRun(sent(87, 120_000_000)),))
    assert few.plain == (
        "Only 9 % of the planned messages were sent: a thread was stopped for long. "
        "With the waits, p99.9 is about 120 ms."
    )
    on_schedule = replace(sent(87, 120_000_000), pacing="schedule")
    assert warning((KnownRun(on_schedule),)).plain.endswith(". From the due time, p99.9 is 120 ms.")
    assert "p99.9" not in warning((KnownRun(sent(87)),)).plain
    assert not warning((KnownRun(sent(950)),))


def test_the_warning_is_calm_beside_a_noise_of_this_tool_and_red_without_one() -> None:
    unexpected = sent(87, 120_000_000)
    expected = replace(unexpected, noise="unbound")
    calm, red = (warning((KnownRun(run),)) for run in (expected, unexpected))
    assert calm.plain == red.plain
    assert {calm.style, *(span.style for span in calm.spans)} == {"text"}
    assert {red.style, *(span.style for span in red.spans)} == {"bold bad", "bold text"}
    assert warning((KnownRun(expected), KnownRun(unexpected))).style == "bold bad"
    assert warning((KnownRun(expected), KnownRun(sent(1_000)))).style == "text"


def test_of_two_runs_the_warning_says_which() -> None:
    few, fewer, enough = KnownRun(sent(87, 120_000_000)), KnownRun(sent(60, 300_000_000)), KnownRun(sent(1_000))
    assert warning((few, enough)).plain.startswith("Only 9 % of the planned messages were sent in the first run: ")
    assert warning((enough, few)).plain.startswith("Only 9 % of the planned messages were sent in the second run: ")
    both = warning((few, fewer)).plain
    assert both.startswith("Only 9 % and 6 % of the planned messages were sent in both runs: ")
    assert both.endswith("long. With the waits, p99.9 is about 120 ms and 300 ms.")
    assert warning((few, fewer), valued=False).plain.endswith("long.")
    # Without the waits, the latencies themselves are too short.
    assert warning((KnownRun(sent(87)),)).plain.endswith("The latencies leave out their waits.")
    assert few_sent((enough, enough), 80) == []


def test_the_whole_result_of_a_run_has_the_warning_before_the_latencies() -> None:
    run = sent(87)
    lines = [line.plain for line in run_result_lines(run, 80)]
    at = next(place for place, line in enumerate(lines) if line.startswith("Only 9 % of the planned"))
    assert at < next(place for place, line in enumerate(lines) if "count" in line)
    assert lines[at] == few_sent((KnownRun(run),), 80)[0].plain
