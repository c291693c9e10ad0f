"""Before a run: how far it will reach, and how long a percentile takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.bench import runner
from jitter_workshop.errors import UsageError
from jitter_workshop.flow.measuring import run_length
from jitter_workshop.flow.measuring.request import MeasureRequest, blocks
from jitter_workshop.model.run import PERCENTILES, Stall
from jitter_workshop.model.spec import Placement, RunSpec
from jitter_workshop.plain import views as plain_views
from jitter_workshop.presenter.runs.run import about_to_measure
from tests import madeup

MakeRun = Callable[..., tuple[Any, Any]]
ROUGH = "A percentile with fewer than ten stalls beyond it gets a ~."


def placed(made: tuple[Any, Any]) -> Any:
    run, _ = made
    return dataclasses.replace(run, placement=dataclasses.replace(run.placement, mode="auto"))


def stalled(run: Any, values_ns: list[int], messages: int) -> Any:
    """A run whose listed stalls made so many messages late each."""
    worst = tuple(Stall(0, "accumulator", None, n, n + value, messages) for n, value in enumerate(values_ns))
    return dataclasses.replace(run, stalls=dataclasses.replace(run.stalls, worst=worst, rates=()))


def test_a_preset_is_reckoned_by_its_interval() -> None:
    found = run_length.outlook(MeasureRequest(), ())
    assert (found.seconds, found.messages, found.solid, found.distinct) == (5.0, 500_000, "99.99", None)
    said = f"5 s of measuring, about 500,000 messages: enough for p99.99 at most. {ROUGH}"
    assert run_length.run_length_sentences(found) == (
        f"{said} With its start and pauses it takes about 10 s, longer on a busy host."
    )
    traced = run_length.outlook(MeasureRequest(evidence=True), ())
    assert traced.clock_s == pytest.approx(2.0 + 5.0 + 20 * 0.28), "a traced run takes longer to start, and to read"
    sleeper = run_length.outlook(MeasureRequest(workload="wakeup"), ())
    assert (sleeper.messages, sleeper.solid) == (5_000, "99")
    assert "wake-ups" in run_length.run_length_sentences(sleeper)
    few = run_length.outlook(MeasureRequest(messages=2_000), ())
    told = f"20 ms of measuring, about 2,000 messages: enough for p99 at most. {ROUGH} "
    assert run_length.run_length_sentences(few).startswith(told)
    assert "too few for any percentile" in run_length.run_length_sentences(
        run_length.outlook(MeasureRequest(messages=9), ())
    )


def test_the_rate_of_spin_is_known_by_its_first_run(make_run: MakeRun) -> None:
    request = MeasureRequest(workload="spin")
    assert "only the run shows how many readings this makes." in run_length.run_length_sentences(
        run_length.outlook(request, ())
    )
    with pytest.raises(UsageError, match="not known before a first run"):
        run_length.until(request, "99.9", ())
    run = placed(make_run([[20] * 10_000], name="spin_gap", workload="spin"))
    assert run_length.outlook(request, (run,)).messages == pytest.approx(5 * 10_000 / run.duration_s)


def test_the_pace_is_that_of_a_run_like_it_else_the_interval(make_run: MakeRun) -> None:
    assert run_length.expected_rate(MeasureRequest(), ()) == 100_000
    assert run_length.expected_rate(MeasureRequest(workload="spin"), ()) is None
    run = placed(make_run([[100] * 2_700] * 2))
    assert run_length.expected_rate(MeasureRequest(), (run,)) == pytest.approx(2 * 2_700 / run.duration_s)


def test_the_pauses_are_those_of_the_newest_run_of_any_kind(make_run: MakeRun) -> None:
    run, _ = make_run([[100] * 100] * 3, block_s=0.25)
    blocks = tuple(dataclasses.replace(b, start_ns=n * 650_000_000) for n, b in enumerate(run.blocks))
    slow = dataclasses.replace(run, blocks=blocks)
    found = run_length.outlook(MeasureRequest(workload="wakeup"), (slow,))
    assert found.like is None
    # The ring's pauses are twice the usual ones, so those of any other kind will be, too.
    assert found.clock_s == pytest.approx(1.0 + 5.0 + 20 * 2 * 0.11)
    assert "longer on a busy host" in run_length.run_length_sentences(found)
    noisy = run_length.outlook(MeasureRequest(noise="unbound"), (slow,))
    assert noisy.clock_s == pytest.approx(1.0 + 5.0 + 20 * 2 * 0.2 * 1.4)


def test_stalls_of_a_run_like_it_say_how_many_distinct_ones_there_will_be(make_run: MakeRun) -> None:
    run = placed(make_run([[100] * 24_000 + [50_000] * 999 + [60_000]], label="mine"))
    run = stalled(run, [50_000] * 25, 40)
    found = run_length.outlook(MeasureRequest(), (run,))
    assert found.like == "'mine'"
    assert found.messages == pytest.approx(500_000, rel=0.01)
    assert (found.solid, found.distinct) == ("99.99", "99.9")
    said = "enough to know p99.9, if stalls come as often as in 'mine'; the values up to p99.99 rest on few stalls."
    assert said in run_length.run_length_sentences(found)


def test_the_time_by_the_clock_counts_the_time_beside_the_blocks(make_run: MakeRun) -> None:
    plain, traced = (run_length.outlook(MeasureRequest(evidence=evidence), ()) for evidence in (False, True))
    assert plain.seconds == traced.seconds == 5.0
    assert traced.clock_s - plain.clock_s == pytest.approx(1.0 + 20 * 0.08)
    settling = run_length.outlook(MeasureRequest(settle_s=3.0), ())
    assert settling.clock_s - plain.clock_s == pytest.approx(3.0)
    spec = RunSpec("ring", Placement("none"), 20, 250_000_000, traced=True)
    assert runner.expected_seconds(spec) == pytest.approx(traced.clock_s)


def test_the_time_by_the_clock_follows_the_pace_of_a_run_like_it(make_run: MakeRun) -> None:
    usual = run_length.outlook(MeasureRequest(), ()).clock_s
    run = placed(make_run([[100] * 1_000] * 3))
    for beside_s in (0.05, 0.4):
        blocks = tuple(
            dataclasses.replace(block, start_ns=round(n * (block.duration_ns + beside_s * 1e9)))
            for n, block in enumerate(run.blocks)
        )
        paced = dataclasses.replace(run, blocks=blocks)
        found = run_length.outlook(MeasureRequest(), (paced,))
        assert found.clock_s - usual == pytest.approx(20 * (beside_s - 0.2))
        # A trace takes its time, whatever a run without one has shown.
        traced = run_length.outlook(MeasureRequest(evidence=True), (paced,))
        assert traced.clock_s - usual == pytest.approx(1.0 + 20 * (max(beside_s, 0.28) - 0.2))
    one = dataclasses.replace(run, blocks=run.blocks[:1])
    assert run_length.outlook(MeasureRequest(), (one,)).clock_s == usual


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        ({"interval_ns": 50_000}, {}),
        ({"noise": "spinners"}, {}),
        ({"complete": False}, {}),
        ({}, {"placement": "none"}),
        ({}, {"workload": "ack"}),
        ({}, {"pacing": "schedule"}),
    ],
)
def test_a_run_of_another_kind_says_nothing(make_run: MakeRun, change: dict[str, Any], asked: dict[str, Any]) -> None:
    run = placed(make_run([[100] * 1_000]))
    run = dataclasses.replace(run, **change)
    request = MeasureRequest(**asked)
    assert run_length.like(request, (run,)) is None
    assert run_length.like(MeasureRequest(), (placed(make_run([[100] * 9])), run)) is not None


def test_a_forecast_begins_with_the_messages_of_a_run_beside_the_same_load(make_run: MakeRun) -> None:
    free = dataclasses.replace(make_run([[100] * 11_500] * 2, label="free", block_s=0.25)[0], noise="unbound")
    free = dataclasses.replace(free, placement=dataclasses.replace(free.placement, mode="none"))
    pinned = MeasureRequest(placement="auto", noise="unbound", duration_s=10.0)
    found = run_length.outlook(pinned, (stalled(free, [40_000_000] * 20, 4_000),))
    assert (found.messages, found.like, found.beside, found.beside_made) == (1_000_000, None, "'free'", 460_000)
    said = run_length.run_length_sentences(found)
    assert said.startswith("10 s of measuring, at most 1,000,000 messages; 'free' made 460,000: enough to know p")
    assert (found.solid, found.distinct) == ("99.99", "99.99"), "460,000 messages are too few for p99.999"
    assert "99.999" not in said
    assert run_length.expected_rate(pinned, (free,)) == pytest.approx(46_000)
    _, need = run_length.until(dataclasses.replace(pinned, duration_s=None), "50", (free,))
    assert "which take 1 s" in need


def test_beside_more_load_than_in_any_run_no_percentile_is_promised(make_run: MakeRun) -> None:
    alone = placed(make_run([[100] * 20_000] * 2, label="alone", block_s=0.25))
    found = run_length.outlook(MeasureRequest(noise="unbound"), (alone,))
    assert (found.messages, found.solid, found.distinct, found.like, found.beside) == (400_000, None, None, None, None)
    told = "5 s of measuring, at most 400,000 messages: the noise decides how many are made, and which percentiles "
    assert run_length.run_length_sentences(found).startswith(told)
    assert "take at least 10 s:" in run_length.until(MeasureRequest(noise="unbound"), "99.999", ())[1]


def test_without_a_load_only_a_run_that_made_few_counts_for_another_placement(make_run: MakeRun) -> None:
    whole, few = (placed(make_run([[100] * count] * 2, label="it", block_s=0.25)) for count in (24_000, 15_000))
    free = MeasureRequest(placement="none")
    assert run_length.outlook(free, (whole,)).beside is None
    assert run_length.outlook(free, (few,)).beside_made == 300_000
    assert run_length.run_length_sentences(run_length.outlook(free, (few,))).startswith(
        "5 s of measuring, at most 500,000 messages; 'it' made 300,000: enough to know p"
    )


def test_until_a_percentile_is_solid() -> None:
    request, said = run_length.until(MeasureRequest(), "p99.999%", ())
    assert said.startswith("p99.999 needs 1,000,000 messages")
    why = "ten of these messages lie beyond the percentile"
    assert f"which take 10 s: {why}. With its start and pauses it takes about " in said
    assert request.duration_s == pytest.approx(10.5)
    assert run_length.until(MeasureRequest(), "50", ())[0].duration_s == 1.0
    long, _ = run_length.until(MeasureRequest(), "99.9999", ())
    assert long.preset == "standard"
    assert blocks(long).count < 200


def test_until_counts_stalls_where_they_are_known(make_run: MakeRun) -> None:
    run = placed(make_run([[100] * 24_000 + [50_000] * 1_000], label=""))
    run = stalled(run, [50_000] * 25, 40)
    request, said = run_length.until(MeasureRequest(), "99.9", (run,))
    plain, _ = run_length.until(MeasureRequest(), "99.9", ())
    assert request.duration_s is not None
    assert plain.duration_s is not None
    assert f"ten stalls like those of {run.id}" in said
    assert run_length.until(MeasureRequest(), "99", (run,))[1].count("ten of these messages lie beyond") == 1


@pytest.mark.parametrize("percentile", ["", "95", "max", "-1", "100", "nan", "99.99999", "p", "\x1b[31m"])
def test_a_percentile_that_the_report_lacks_is_refused(percentile: str) -> None:
    with pytest.raises(UsageError, match="--for-percentile cannot be") as caught:
        run_length.until(MeasureRequest(), percentile, ())
    assert "\x1b" not in caught.value.sentence()


def test_lengths_that_contradict_and_lengths_beyond_a_day_are_refused() -> None:
    for other in ({"messages": 5}, {"duration_s": 3.0}):
        with pytest.raises(UsageError, match="sets the duration itself"):
            run_length.until(MeasureRequest(**other), "99", ())
    with pytest.raises(UsageError, match="a run lasts at most a day"):
        run_length.until(MeasureRequest(workload="wakeup", interval_ns=1_000_000_000), "99.999", ())


@given(
    st.sampled_from(PERCENTILES),
    st.integers(100, 1_000_000),
    st.sampled_from(["ring", "ack", "wakeup"]),
    st.integers(1, 50),
)
def test_a_run_is_long_enough_for_the_percentile_asked_for(
    percentile: str, interval_ns: int, workload: Any, late: int
) -> None:
    request = MeasureRequest(workload=workload, interval_ns=max(interval_ns, 10_000))
    made = placed(madeup.make_run([[100] * 900], workload="ring", interval_ns=request.interval_ns))
    runs = (stalled(made, [5_000] * 3, late),) if workload == "ring" else ()
    try:
        longer, _ = run_length.until(request, percentile, runs)
    except UsageError:
        return
    found = run_length.outlook(longer, runs)
    assert found.solid is not None
    assert float(found.solid) >= float(percentile)
    if found.distinct is not None:
        assert float(found.distinct) >= float(percentile)


def test_a_chapter_says_it_on_the_screen_and_line_by_line() -> None:
    request = MeasureRequest(label="after", noise="spinners")
    said = run_length.chapter_length_sentences(request, ())
    how_many = "the noise decides how many are made, and which percentiles they reach."
    assert said.startswith(f"5 s of measuring, at most 500,000 messages: {how_many} With its start ")
    what, how = plain_views.to_be_measured(request, ()).split(". ", 1)
    assert what.split(", ") == ["To be measured: 'after'", "ring", "quick", "with spinners"]
    assert how == said
    lines = [line.plain for line in about_to_measure(request, False, 240, said)]
    whole = about_to_measure(dataclasses.replace(request, workload="spin", preset="quick", duration_s=10.0), False, 60)
    said_of_ring = "by p99.9: only 100 messages a second are slower. One stall of 1 ms delays 100, so one such stall"
    assert any(line.startswith(f"judged   {said_of_ring}") for line in lines)
    # Messages that a stopped sender did not send count, too, so the ring's pace stays; other threads make fewer.
    slow = about_to_measure(request, False, 180, said, per_second=10_800.0)
    assert [line.plain for line in slow if line.plain.startswith("judged")] == [lines[-1]]
    late = about_to_measure(MeasureRequest(workload="wakeup", interval_ns=10_000), False, 180, said, per_second=10_800)
    assert "judged   by p99.9: only 11 wake-ups a second are slower" in [line.plain for line in late]
    told = " ".join(" ".join(line.plain for line in whole).split())
    assert "by stalls of 100 µs and more a second: ticks alone decide percentiles" in told
    woken = about_to_measure(MeasureRequest(workload="wakeup"), False, 150, asked="50")
    assert "judged   by p50: half of all wake-ups take longer" in [line.plain for line in woken]
    assert "40 blocks of 0.25 s" in "\n".join(line.plain for line in whole)
    assert f"gives    {said}" in lines
    # The run of a wrong request tells the error.
    assert run_length.chapter_length_sentences(MeasureRequest(duration_s=-1.0), ()) == ""
