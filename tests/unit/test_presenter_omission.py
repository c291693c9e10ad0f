"""Test the warning of a run that sent few of its planned messages."""

from __future__ import annotations

from dataclasses import replace

from jitter_workshop.model.evidence import MEASURED, Cause, EvidenceReport
from jitter_workshop.model.run import INTENDED, Run
from jitter_workshop.presenter.runs.omission import blind_transit, correction_told, few_sent, sent_apart, to_repeat
from jitter_workshop.presenter.runs.run import run_result_lines
from jitter_workshop.report.diagnosis_words import label
from jitter_workshop.stats.figures import FIGURES, KnownRun
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


COUNT = FIGURES["write-calls"].title


def test_few_messages_are_told_if_they_make_a_figure_wrong() -> None:
    due, transit = KnownRun(sent(87, 120_000_000)), KnownRun(sent(87))
    few = "Only 9 % of the planned messages were sent: a thread was stopped for long. "
    assert not few_sent((due,))
    assert not few_sent((due,), [FIGURES["migrations"].title])
    assert few_sent((due,), [COUNT]).plain == f"{few}So too few {COUNT} were counted."
    assert few_sent((transit,)).plain == f"{few}The latencies leave out their waits."
    assert not few_sent((KnownRun(sent(950)),), [COUNT])


def test_the_warning_is_calm_beside_a_noise_of_this_tool_and_red_without_one() -> None:
    unexpected = sent(87)
    expected = replace(unexpected, noise="unbound")
    calm, red = (few_sent((KnownRun(run),)) for run in (expected, unexpected))
    assert calm.plain.startswith(
        "The noise (unbound) took the CPU for so long that only 9 % of the planned messages were sent. "
    )
    assert {calm.style, *(span.style for span in calm.spans)} == {"text"}
    assert {red.style, *(span.style for span in red.spans)} == {"bold bad", "text"}
    assert few_sent((KnownRun(expected), KnownRun(unexpected))).style == "bold bad"
    assert few_sent((KnownRun(expected), KnownRun(sent(1_000)))).style == "text"


def test_a_correction_without_a_message_on_the_way_is_told() -> None:
    made = replace(sent(1_000, 50), noise="stall", pacing="schedule")
    due = replace(made.histograms[INTENDED], max=100_000_000)
    for longest, told in ((49_999_999, True), (50_000_000, False)):
        main = replace(made.histograms[made.main_histogram], max=longest)
        run = replace(made, histograms={made.main_histogram: main, INTENDED: due})
        assert ("near transit" in correction_told(KnownRun(run))) is told
        assert correction_told(KnownRun(replace(run, noise=None))) == ""
    assert correction_told(KnownRun(sent(1_000))) == ""


def traced(run: Run, *took: tuple[str, str, int]) -> KnownRun:
    """The run with a report on its trace, in which these causes (kind, name) took so many ms."""
    causes = tuple(Cause(kind, name, 1, ms * 1_000_000, 0, 0.0, 0) for kind, name, ms in took)
    return KnownRun(run, report=EvidenceReport(1, "r", "trace", 1_000, "mono", 1, 0, causes, (), 10**9))


def test_the_warning_names_the_cause_that_stopped_a_thread_if_the_trace_shows_it() -> None:
    made = sent(87)
    ours = traced(made, ("task", "producer", 30), ("task", "accumulator", 30), ("task", "backup", 50))
    assert f": a thread was stopped for long, mostly by {label('task', MEASURED)}. " in few_sent((ours,)).plain
    half = traced(made, ("task", "backup", 40), ("task", "cron", 41), ("irq", "disk", 9))
    assert "for long. " in few_sent((half,)).plain
    assert "mostly" not in few_sent((traced(made, ("no_event", "", 90)),)).plain
    # A task that is not the load took the time, so the load does not explain it.
    loaded = replace(made, noise="unbound")
    red = few_sent((traced(loaded, ("task", "backup", 90), ("task", "unbound", 9)),))
    assert red.style == "bold bad"
    assert "mostly by task backup" in red.plain
    calm = few_sent((traced(loaded, ("task", "unbound", 90), ("task", "backup", 9)),))
    assert calm.style == "text"


def test_the_run_to_repeat_is_the_one_with_the_fewest_messages_and_no_load() -> None:
    few, fewer, enough = KnownRun(sent(87)), KnownRun(sent(60)), KnownRun(sent(1_000))
    loaded = KnownRun(replace(fewer.run, noise="unbound"))
    pairs = ((few, fewer), (fewer, few), (few, enough), (few, loaded), (loaded, enough), (enough, enough))
    assert [to_repeat(pair, ()) for pair in pairs] == [1, 0, 0, 0, None, None]
    due = KnownRun(sent(87, 120_000_000))
    assert [to_repeat((due,), titles) for titles in ((), (COUNT,))] == [None, 0]
    assert few_sent((few, fewer), key="m").plain.endswith(" Measure the second run again (m).")
    assert few_sent((few,), key="m").plain.endswith(" Measure again (m).")
    assert "again" not in few_sent((loaded,), key="m").plain
    assert few_sent((KnownRun(sent(5)), KnownRun(sent(6)))).plain.startswith(
        "Less than 1 % of the planned messages were "
    )


def test_of_two_runs_the_warning_says_which() -> None:
    few, fewer, enough = KnownRun(sent(87)), KnownRun(sent(60)), KnownRun(sent(1_000))
    assert few_sent((few, enough)).plain.startswith("Only 9 % of the planned messages were sent in the first run: ")
    assert few_sent((enough, few)).plain.startswith("Only 9 % of the planned messages were sent in the second run: ")
    both = few_sent((few, fewer)).plain
    assert both.startswith("Only 9 % and 6 % of the planned messages were sent in both runs: ")


def test_a_command_that_shows_transit_warns_before_it() -> None:
    run = sent(87, 120_000_000)
    lines = [line.plain for line in run_result_lines(run, 80)]
    at = next(place for place, line in enumerate(lines) if line.startswith("Only 9 % of the planned"))
    assert at < next(place for place, line in enumerate(lines) if "count" in line)
    told = " ".join(line.plain for line in blind_transit(run, 80))
    assert told.endswith(" Transit leaves out their waits; from when they were due, p99.9 is 120 ms.")
    assert " ".join(line.plain for line in blind_transit(sent(87), 80)).endswith(" Transit leaves out their waits.")
    assert blind_transit(sent(950, 120_000_000), 80) == []


def test_compare_says_why_a_run_sent_clearly_fewer_messages_though_latency_counts_them() -> None:
    whole, most, half = (KnownRun(sent(number, 120_000_000)) for number in (1_000, 700, 470))
    assert sent_apart((whole, half)) == "Sent of the planned messages: 100 % → 47 %. Those not sent count as late."
    assert sent_apart((half, whole)).startswith("Sent of the planned messages: 47 % → 100 %. ")
    nearly = KnownRun(sent(999, 120_000_000))
    assert sent_apart((nearly, half)).startswith("Sent of the planned messages: 99 % → 47 %. ")
    more = KnownRun(sent(600, 120_000_000))
    assert not sent_apart((most, more)), "a small difference is not told"
    assert not sent_apart((whole, whole))
    assert not sent_apart((whole,))
    scheduled = KnownRun(replace(half.run, pacing="schedule"))
    assert not sent_apart((whole, scheduled)), "a schedule sends late messages at once"
    assert not sent_apart((KnownRun(sent(1_000)), half)), "transit does not count them"
    slow = KnownRun(replace(half.run, stalls=replace(half.run.stalls, stolen_ns_per_second=1e6)))
    assert not sent_apart((whole, slow)), "a sender that is only slow was not stopped"
