"""Test the reading of a run: the knee, the evidence, the guess and the distance between two equal runs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.course.guesses import NEAR_FACTOR, answer_for_value, judge_value, outcome
from jitter_workshop.course.loader import load_course
from jitter_workshop.flow.attribution import checks_with_cpus, cpus_of_thread, explain_run, fill_in, with_cpus
from jitter_workshop.flow.measuring.comparing import compare_runs, same_state
from jitter_workshop.flow.measuring.knee import (
    counted_seconds,
    knee_percentile,
    knee_sentences,
    messages_per_second,
    nice_percentile,
    stall_classes,
)
from jitter_workshop.flow.measuring.unchanged import UNCHANGED
from jitter_workshop.model.course import Answer, CommandByHand, GuessTask
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.curve import CurvePoint, PercentileCurve
from jitter_workshop.model.run import Block, Counter, Run, StallRate, Stalls, ThreadRecord
from jitter_workshop.model.session import Guess
from jitter_workshop.model.spec import Placement
from jitter_workshop.stats.figures import KnownRun
from jitter_workshop.stats.histogram import new_histogram, summarise_histogram
from tests import madeup
from tests.fakes import short_course

COURSE = load_course(short_course())


def run_with(**changed: object) -> Run:
    """Two blocks of half a second in which 100,000 messages came through."""
    made, _ = madeup.make_run()
    whole = new_histogram()
    for _ in range(1_000):
        whole.record_value(200)
    figures = replace(summarise_histogram(whole, min_ns=200, max_ns=200, total_ns=200_000), count=100_000)
    blocks = tuple(Block(i, i * 600_000_000, 500_000_000, 50_000, 200, 200, 200, 200, 0) for i in range(2))
    return replace(made, blocks=blocks, histograms={"accumulator_transit": figures}, **changed)  # type: ignore[arg-type]


def test_a_receivers_rate_over_its_threshold_is_told_first() -> None:
    rare = replace(stalls((500_000, 3, 2e6)), count=3, threshold_ns=500_000, per_second=3.0)
    told = replace(rare, per_second_low=0.619, per_second_high=8.77)
    run = replace(run_with(stalls=told), workload="ack")
    run = replace(run, histograms={"ack_interval": run.histograms["accumulator_transit"]})
    first, second, *_ = knee_sentences(run, ())
    assert first.startswith("Over 500 µs: 3 a second;")
    assert "is between 0.62 a second and" in first
    assert "8.77 a second (95 %)" in first
    assert first.endswith("if stalls are independent.")
    assert second.startswith("The run had 100,000 intervals a second")
    # A run of an older version has no limits, and the ring is judged by its messages.
    for other in (replace(run, stalls=rare), run_with(stalls=told)):
        assert not knee_sentences(other, ())[0].startswith("Over")


def test_the_knee_of_the_textbook() -> None:
    assert nice_percentile(knee_percentile(250, 0, 100_000)) == "p99.75"
    assert nice_percentile(knee_percentile(1, 0, 100_000)) == "p99.999"
    assert nice_percentile(knee_percentile(10, 1_000_000, 100_000)) == "p99"


@given(
    st.floats(0.001, 1e5), st.floats(0, 1e9), st.floats(0, 1e9), st.floats(1, 1e6), st.floats(1, 10, exclude_min=True)
)
def test_longer_or_more_frequent_thefts_move_the_knee_left(
    rate: float, stall: float, more: float, messages: float, factor: float
) -> None:
    knee = knee_percentile(rate, stall, messages)
    assert 0 <= knee <= 100
    assert knee_percentile(rate, stall + more, messages) <= knee
    assert knee_percentile(rate * factor, stall, messages) <= knee


@given(st.floats(0, 100))
def test_a_percentile_in_words_is_close_to_itself(percentile: float) -> None:
    text = nice_percentile(percentile)
    beyond = 100 - percentile
    assert abs(float(text[1:]) - percentile) <= max(beyond * 0.11, 1e-7)


def stalls(*rates: tuple[int, int, float]) -> Stalls:
    """(threshold, count, stolen ns) over one second."""
    made = tuple(StallRate(t, n, float(n), s) for t, n, s in rates)
    return Stalls(made[0].threshold_ns, made[0].count, made[0].per_second, made[0].stolen_ns_per_second, made)


def test_stalls_are_told_apart_by_length() -> None:
    found = stall_classes(stalls((1_000, 1_050, 5_000_000.0), (10_000, 50, 4_000_000.0), (100_000, 0, 0.0)))
    assert [(c.low_ns, c.high_ns, c.count) for c in found] == [(1_000, 10_000, 1_000), (10_000, 100_000, 50)]
    assert found[0].mean_ns == pytest.approx(1_000)
    assert found[1].mean_ns == pytest.approx(80_000)


def test_the_knee_in_sentences_computes_and_looks() -> None:
    run = run_with(stalls=stalls((1_000, 60, 50_100_000.0), (1_000_000, 50, 50_000_000.0)))
    curve = PercentileCurve(
        "x", (CurvePoint(0, 200, True), CurvePoint(95.2, 1_100_000, True), CurvePoint(99, 2_000_000, True)), 100_000
    )
    said = " ".join(knee_sentences(run, (("LOC (local timer)", 1, 250, 250.0),), curve))
    assert "100,000 messages a second" in said
    assert "250 times a second on CPU 1:" in said
    assert "over 1 ms came 50 times a second" in said
    assert "delayed about 100 messages" in said
    assert "begins to climb near p95." in said
    assert "curve passes 1 ms at p95.2." in said
    told = ("The run had", "over 1 ms came", "curve passes", "delayed", "begins to climb", "on CPU 1:", "If an event")
    places = [said.index(words) for words in told]
    assert places == sorted(places), "what was found is told first, then what it means"


def test_short_stalls_delay_a_message_in_as_many_cases_as_they_take_of_the_time() -> None:
    """Once a knee was computed at p96.1 beside a measured p98.3."""
    run = run_with(stalls=stalls((1_000, 4_000, 10_000_000.0)))
    said = " ".join(knee_sentences(run, ()))
    assert "took 2.5 µs on average. About 25 % of them delayed a message: the others fell between two" in said
    assert "begins to climb near p99." in said
    assert "Each stall delayed" not in said


def test_readings_and_stalls_of_a_sampler_that_pauses_are_of_the_same_time() -> None:
    run = run_with(
        stalls=replace(stalls((1_000, 100, 5_000_000.0)), rated_s=0.1),
        workload="spin",
        duty=10,
        interrupts={"LOC": Counter("", {"1": 500})},
    )
    run = replace(run, histograms={"spin_gap": run.histograms["accumulator_transit"]})
    assert "1,000,000 readings a second" in knee_sentences(run, ())[0]
    assert counted_seconds(run) == 1.0
    said = " ".join(knee_sentences(run, (("LOC", 1, 500, 500.0),)))
    assert "knee for this interrupt is at p99.95 if all" in said
    assert "all interrupts come while the thread samples" in said
    assert "is further right if most" in said


def test_many_stalls_a_second_are_a_plain_number() -> None:
    said = " ".join(knee_sentences(run_with(stalls=stalls((1_000, 1_453, 2_906_000.0))), (("RES", 1, 9, 7_774.4),)))
    assert "Stalls over 1 µs came 1,450 times a second" in said
    assert "came 7,770 times a second" in said


def test_where_a_sum_is_too_simple_none_is_given() -> None:
    run = run_with(stalls=stalls((1_000, 400, 800_000_000.0), (1_000_000, 400, 800_000_000.0)))
    said = " ".join(knee_sentences(run, ()))
    assert "Computed" not in said
    assert "80 % of the time" in said
    assert "also delay the producer" in said
    alone = replace(run, workload="spin", histograms={"spin_gap": run.histograms["accumulator_transit"]})
    said = " ".join(knee_sentences(alone, ()))
    assert "the calculation does not hold" in said
    assert "producer" not in said


def test_a_length_of_most_wake_ups_is_no_stall_and_an_interrupt_for_each_has_no_knee() -> None:
    run = run_with()
    rate = messages_per_second(run)
    assert rate is not None
    usual = stalls((1_000, round(0.99 * rate), 4e8), (10_000, round(0.96 * rate), 3e8), (100_000, 50, 1e7))
    woken = replace(
        run, stalls=usual, workload="wakeup", histograms={"wakeup_latency": run.histograms["accumulator_transit"]}
    )
    every, rare = (("LOC", 1, 9, share * rate) for share in (1.0, 0.25))
    said = " ".join(knee_sentences(woken, (every,)))
    assert "Stalls over 100 µs came 50 times a second" in said
    assert "Stalls of" not in said
    assert "The most frequent interrupt" not in said
    assert "The most frequent interrupt, LOC, came" in " ".join(knee_sentences(woken, (rare,)))
    of_ring = " ".join(knee_sentences(replace(run, stalls=usual), ()))
    assert "Stalls of 10 µs to 100 µs came" in of_ring


def test_a_handful_of_stalls_gets_no_rate() -> None:
    assert "Stalls" not in " ".join(knee_sentences(run_with(stalls=stalls((1_000, 9, 1e6))), ()))


THREADS = (
    ThreadRecord("producer", {"0": 90, "1": 10}, 0, 7, 3, 0, 0, tid=41, cpus=(0,)),
    ThreadRecord("accumulator", {"1": 100}, None, None, None, 0, 0, tid=42, cpus=(1,)),
)


def test_evidence_counts_only_the_cpus_that_were_used() -> None:
    run = run_with(
        threads=THREADS,
        interrupts={
            "LOC": Counter("Local timer interrupts", {"0": 300, "1": 250, "5": 9_000}),
            "31": Counter("virtio0\x1b[2J-input", {"1": 40, "0": 0}),
        },
        softirqs={"TIMER": Counter("TIMER", {"1": 12})},
    )
    found = explain_run(COURSE.chapters[2], run)
    assert found.interrupts[:2] == (("LOC (local timer)", 0, 300, 300.0), ("LOC (local timer)", 1, 250, 250.0))
    assert found.interrupts[2][1:3] == (1, 40)
    assert found.softirqs == (("TIMER", 1, 12, 12.0),)
    assert "\x1b" not in repr(found.interrupts)
    assert found.threads[0].residence == ((0, 90, 0.9), (1, 10, 0.1))
    assert found.threads[1].migrations is None
    assert any("awk '$1 == \"1\"'" in command for command, _ in found.by_hand)
    assert not any("{" in command and "_cpu" in command for command, _ in found.by_hand)


def test_rows_of_arm64_are_named_by_the_counted_interrupt() -> None:
    counters = {
        "11": Counter("arch_timer", {"1": 300}),
        "IPI0": Counter("Rescheduling interrupts", {"1": 40}),
        "IPI2": Counter("CPU stop interrupts", {"1": 4}),
        "43": Counter("ttyS0", {"1": 3}),
    }
    found = explain_run(COURSE.chapters[2], run_with(threads=THREADS, interrupts=counters))
    names = [name for name, *_ in found.interrupts]
    assert names == ["11 (arch_timer: local timer)", "IPI0 (rescheduling)", "IPI2 (CPU stop interrupts)", "43 (ttyS0)"]


def test_rates_are_of_the_time_that_was_counted() -> None:
    counters = {"LOC": Counter("Local timer interrupts", {"1": 300})}
    run = run_with(threads=THREADS, interrupts=counters, softirqs=counters, counted_s=1.2)
    found = explain_run(COURSE.chapters[2], run)
    assert [rate for *_, rate in (*found.interrupts, *found.softirqs)] == [250.0, 250.0]
    assert any("came 250 times a second" in sentence and "on CPU 1:" in sentence for sentence in found.knee)


def test_placeholders_of_a_run_without_threads_stay_readable() -> None:
    assert fill_in("perf -t {producer_tid} -C {cpus}", run_with(threads=THREADS)) == "perf -t 41 -C 0-1"
    assert fill_in("perf -t {producer_tid} -C {cpus}", run_with(threads=())) == "perf -t PRODUCER_TID -C CPUS"
    assert fill_in("{cpu}", run_with(threads=THREADS)) == "1"
    assert fill_in("{cpu}", run_with(threads=())) == "CPU"


def test_values_of_the_host_stand_beside_those_of_the_run() -> None:
    known = {"housekeeping": "2-3", "l3_part": "f"}
    text = "{cpus} {producer_tid} {housekeeping} {l3_part} {l3_rest}"
    assert fill_in(text, run_with(threads=THREADS), known) == "0-1 41 2-3 f L3_REST"
    asked = replace(COURSE.chapters[2], by_hand=(CommandByHand(text, "{l3_part}", "affinity:{housekeeping}", False),))
    assert explain_run(asked, run_with(threads=THREADS), None, known).by_hand == (("0-1 41 2-3 f L3_REST", "f"),)
    assert checks_with_cpus(asked, CpuSet((1,)), run_with(threads=THREADS), known) == ("affinity:2-3",)


def test_the_command_that_compares_a_cpu_with_one_number_gets_one_cpu_of_several_hot_ones() -> None:
    isolation, pinning = load_course().chapter("isolation"), load_course().chapter("pinning")
    assert isolation is not None
    assert pinning is not None
    compared = next(n for n, one in enumerate(isolation.by_hand) if "awk" in one.command)
    for hot, cpu in ((CpuSet.of((2, 3)), 2), (CpuSet.of((1,)), 1)):
        assert f'awk \'$1 == "{cpu}" ' in with_cpus(isolation, hot)[compared][0]
    asked = replace(pinning, by_hand=(CommandByHand("ps {cpu} {accumulator_cpu}", "", "", False),))
    assert with_cpus(asked, CpuSet.of((2, 3)))[0][0] == "ps 3 3"


@given(st.dictionaries(st.integers(0, 300).map(str), st.integers(0, 10**9), max_size=12))
def test_residence_is_all_of_it_busiest_first(counts: dict[str, int]) -> None:
    found = cpus_of_thread(ThreadRecord("x", counts, None, None, None, None, None))
    assert [n for _, n, _ in found] == sorted(counts.values(), reverse=True)
    if sum(counts.values()):
        assert sum(share for _, _, share in found) == pytest.approx(1)


MARK = GuessTask(
    "mark",
    "How long?",
    "measure",
    (
        Answer("a", "up to 1 µs", "Quiet.", up_to_ns=1_000),
        Answer("b", "up to 1 ms", "Visited.", up_to_ns=1_000_000),
        Answer("c", "more", "Queued."),
    ),
    percentile="99.9",
)


@given(st.integers(1, 10**10), st.integers(1, 10**10))
def test_near_means_within_a_factor_of_three_either_way(guess: int, measured: int) -> None:
    near, words = judge_value(guess, measured)
    assert near == (max(guess, measured) <= NEAR_FACTOR * min(guess, measured))
    assert near == judge_value(measured, guess)[0]
    assert words


@given(st.integers(0, 10**10))
def test_every_value_has_its_answer(value: int) -> None:
    answer = answer_for_value(MARK, value)
    assert answer.up_to_ns is None or value <= answer.up_to_ns


def test_a_mark_is_judged_and_explained() -> None:
    run = run_with()
    far = outcome(MARK, Guess(percentile="99.9", value_ns=2_000_000), KnownRun(run))
    assert (far.near, far.guessed_ns, far.measured_ns) == (False, 2_000_000, 200)
    assert "marked 2 ms at p99.9;" in far.text
    assert "; it was 200 ns, 10,000× shorter." in far.text
    assert "Quiet." in far.explanation
    assert "Queued." in far.explanation
    near = outcome(MARK, Guess(percentile="99.9", value_ns=210), KnownRun(run))
    assert near.near is True
    assert near.explanation.count("Quiet.") == 1
    empty = outcome(replace(MARK, percentile="99.9999"), Guess(value_ns=5), KnownRun(run))
    assert empty.near is None
    assert "too few messages" in empty.text


def test_a_choice_is_judged() -> None:
    task = GuessTask(
        "choice",
        "Which?",
        "again",
        (Answer("x", "This.", "No.", right=False), Answer("y", "That.", "Yes.", right=True)),
    )
    wrong = outcome(task, Guess(choice="x"), KnownRun(run_with()))
    assert (wrong.near, wrong.explanation) == (False, "No.")
    assert "The answer is: That." in wrong.text
    assert outcome(task, Guess(choice="y"), KnownRun(run_with())).near is True
    assert outcome(task, Guess(choice="gone"), KnownRun(run_with())).near is None


def placed(mode: str, producer: int | None) -> Placement:
    return Placement(mode, producer, None, None, None, (), (), "")


def test_equal_runs_differ_without_a_change_and_others_are_described() -> None:
    a = madeup.make_run([[100] * 2_000 + [90_000] * 20])[0]
    b = madeup.make_run([[100] * 2_000 + [30_000] * 20], run_id="20260101-000001-aaaa")[0]
    view = compare_runs(a, b)
    assert view.relation == "alike"
    assert view.headline.startswith(UNCHANGED)
    assert "p99.9 differs by 3×" in view.headline
    other = compare_runs(a, replace(b, placement=placed("auto", 1)))
    assert other.relation == "changed"
    assert UNCHANGED not in other.headline


def test_the_same_state_means_the_same_request() -> None:
    a, _ = madeup.make_run()
    assert same_state(replace(a, placement=placed("none", 0)), replace(a, placement=placed("none", 1)))
    assert not same_state(replace(a, placement=placed("chosen", 0)), replace(a, placement=placed("chosen", 1)))
    assert not same_state(a, replace(a, noise="spinners"))
    assert not same_state(a, replace(a, applied=({"id": "smt", "value": "off"},)))
