"""Test the view of a run in a chapter's last step, on the screen and line by line."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.course.guesses import MeasuredAnswers
from jitter_workshop.model.course import Answer, GuessTask
from jitter_workshop.model.curve import ComparisonRow
from jitter_workshop.model.walk import CompareView, Explanation, ThreadEvidence
from jitter_workshop.presenter.course.chapter import (
    _share,
    comparison,
    explanation,
    guess_choice_lines,
    rates_of,
    recording_lines,
    switches_told,
)
from jitter_workshop.stats.comparison import compare
from tests import madeup


def shown(view: Explanation, width: int = 60) -> list[str]:
    return [line.plain for line in explanation(view, (view,), width)]


def explained(**changed: object) -> Explanation:
    run, _ = madeup.make_run()
    threads = (ThreadEvidence("accumulator", 1, 2, 0, ((1, 327_651_123, 0.9999), (0, 30_123, 0.0001))),)
    view = Explanation(run, threads, (("LOC", 1, 38_870, 7_774.0),), (("NET_RX", 1, 6_300, 1_260.4),), (), ())
    return dataclasses.replace(view, **changed)  # type: ignore[arg-type]


def test_rates_are_plain_numbers() -> None:
    text = "\n".join(shown(explained()))
    assert "7,770" in text
    assert "1,260" in text
    assert "e+0" not in text


def test_counts_before_and_after_stand_side_by_side() -> None:
    first = explained(interrupts=(("LOC", 1, 10_000, 2_000.0), ("36", 1, 900, 180.0)))
    second = explained(interrupts=(("LOC", 1, 10_500, 2_100.0), ("TLB", 1, 50, 10.0), ("LOC", 3, 5_000, 1_000.0)))
    rows = [line.plain.split() for line in explanation(second, (first, second), 60)]
    head = rows.index(["INTERRUPTS", "ON", "THEIR", "CPUs,", "PER", "SECOND"]) + 1
    assert rows[head] == ["CPU", "run", "1", "run", "2"]
    for row in (["LOC", "1", "2,000", "2,100"], ["36", "1", "180", "0", *["none", "in", "run", "2"]]):
        assert row in rows
    assert ["LOC", "3", "–", "1,000"] in rows
    assert ["slept", "preempted", "moved"] in rows


@pytest.mark.parametrize(
    ("evidence", "order"),
    [
        (("work", "interrupts", "softirqs", "stalls"), "INTERRUPTS SOFTIRQS SWITCHES"),
        (("softirqs", "switches", "interrupts"), "SOFTIRQS SWITCHES INTERRUPTS"),
        (("switches", "interrupts"), "SWITCHES INTERRUPTS SOFTIRQS"),
        ((), "SWITCHES INTERRUPTS SOFTIRQS"),
    ],
)
def test_the_evidence_has_the_order_of_the_lesson(evidence: tuple[str, ...], order: str) -> None:
    view = explained()
    lines = [line.plain for line in explanation(view, (view,), 60, evidence=evidence)]
    assert lines[0]
    assert [line.split()[0] for line in lines if line.startswith(tuple(order.split()))] == order.split()


@pytest.mark.parametrize("width", [46, 52, 60, 78])
def test_the_work_on_a_cpu_is_told_whole(width: int) -> None:
    lines = shown(explained(), width)
    assert max(map(len, lines)) <= width
    (line,) = (line for line in lines if line.startswith("accumulator  CPU 1"))
    assert line.endswith(" >99.9 %  327,651,123")
    assert "█" in line


def test_the_bars_of_all_threads_and_runs_have_one_scale() -> None:
    few = ThreadEvidence("journaller", 2, 0, 0, ((0, 1_000, 1.0),))
    first, second = explained(threads=(few,)), explained(threads=(*explained().threads, few))
    lines = [line.plain for line in explanation(second, (first, second), 60)]
    bars = [line for line in lines if line.startswith(("accumulator  CPU", "journaller   CPU"))]
    assert [line.count("█") for line in bars] == [bars[0].count("█")] * 3
    assert [len(line) for line in bars] == [60] * 3


def test_a_sentence_sums_the_switches_of_several_runs() -> None:
    first, second = (explained(threads=(ThreadEvidence("sampler", 0, n, 0, ((1, 5, 1.0),)),)) for n in (1_670, 18))
    lines = [line.plain for line in explanation(second, (first, second), 60)]
    assert "The thread was preempted 1,670 → 18 times." in lines
    # One CPU in both runs needs no bar.
    assert "sampler: CPU 1 in both runs" in lines
    assert not [line for line in lines if "█" in line]
    elsewhere = explained(threads=(ThreadEvidence("sampler", 0, None, 0, ((2, 5, 1.0),)),))
    lines = [line.plain for line in explanation(elsewhere, (first, elsewhere), 60)]
    assert not [line for line in lines if "The thread was" in line or "both runs" in line]
    assert len([line for line in lines if "█" in line]) == 2


def test_threads_that_are_no_longer_moved_but_still_preempted_are_explained() -> None:
    def switched(preempted: int, moved: int) -> Explanation:
        return explained(threads=(ThreadEvidence("sampler", 0, preempted, moved, ((1, 5, 1.0),)),))

    def said(*runs: Explanation) -> str:
        return " ".join(line.plain for line in switches_told(runs, 200))

    told = said(switched(358, 39), switched(401, 0))
    assert told.startswith("The thread was preempted 358 → 401 times, and moved 39 → 0 times.")
    assert told.endswith("still preempted: other tasks may use this CPU, and the thread waits there.")
    for other in (switched(170, 0), switched(401, 1)):
        assert "still preempted" not in said(switched(358, 39), other)
    assert "still preempted" not in said(switched(358, 0), switched(401, 0))


def test_of_runs_that_do_not_compare_only_the_reason_is_shown() -> None:
    a, _ = madeup.make_run()
    view = CompareView(compare(a, dataclasses.replace(a, duty=10, lock="plain")), "", "changed")
    said = [line.plain for line in comparison(view, 70)]
    assert said[0] == "! Not comparable: duty: 100 % against 10 %; lock: none against plain"
    assert not [line for line in said if "second ÷ first" in line]


def test_the_rows_of_a_comparison_say_in_words_how_far_they_differ() -> None:
    a, _ = madeup.make_run()
    rows = (
        ComparisonRow("stalls_per_second_over_1000000_ns", 4.8, 0.2, 0.2 / 4.8),
        ComparisonRow("stalls_per_second_over_100000_ns", 9.0, 0.0, 0.0),
        ComparisonRow("50", 10.0, 10.0, 1.0),
        ComparisonRow("99", 10.0, 12.0, 1.0),
        ComparisonRow("99.9", 10.0, 25.0, 2.5),
    )
    compared = dataclasses.replace(compare(a, dataclasses.replace(a, id="b")), rows=rows, text="")
    said = [" ".join(line.plain.split()) for line in comparison(CompareView(compared, "", "hunted"), 80)]
    assert said[:5] == [
        "run 1 run 2",
        "stalls of 1 ms and more 4.8/s 0.2/s 24× fewer",
        "stalls of 100 µs and more 9/s 0/s none in the second",
        "p99 10 ns 12 ns ≈",
        "p99.9 10 ns 25 ns 2.5× more",
    ]


def test_of_two_duties_the_curves_alone_do_not_compare() -> None:
    a, _ = madeup.make_run()
    view = CompareView(compare(a, dataclasses.replace(a, duty=10)), "", "changed")
    assert view.comparison.text == "The curves of these two runs cannot be compared: duty: 100 % against 10 %."
    assert next(line.plain for line in comparison(view, 70)) == "Curves not comparable: duty: 100 % against 10 %"


def test_a_sampler_has_no_messages() -> None:
    sampled, _ = madeup.make_run(workload="spin", name="spin_gap")
    for view, words in ((explained(run=sampled), "where the clock was read"), (explained(), "messages were handled")):
        assert words in "\n".join(shown(view)).lower()
    assert "messages" not in "\n".join(shown(explained(run=sampled)))


def test_shares_never_round_a_few_to_none() -> None:
    assert _share(0.0001).strip() == "<0.1 %"
    assert _share(0.9999).strip() == ">99.9 %"
    assert _share(1.0).strip() == "100.0 %"


def test_a_measured_question_marks_the_right_answer_and_the_wrong_guess() -> None:
    answers = (
        Answer("moved", "threads moved", ""),
        Answer("preempted", "threads preempted", ""),
        Answer("no", "none", ""),
    )
    task = GuessTask("choice", "Which falls?", "again", answers)
    known = MeasuredAnswers(("moved",), {"moved": "3.5 → 0 a second", "preempted": "369 → 402 a second"})
    rows = guess_choice_lines(task, 1, "fixed", 60, known)
    plain = [line.plain for line in rows]
    assert plain[2] == f"✓ 1  threads moved{'3.5 → 0 a second':>42}"
    assert plain[3].startswith("✗ 2  threads preempted (your guess)")
    assert plain[3].endswith("369 → 402 a second")
    assert plain[4] == "  3  none"
    assert plain[-1] == "fixed"
    beside = dataclasses.replace(known, beside=("preempted",))
    assert guess_choice_lines(task, 1, "", 60, beside)[3].plain.startswith("≈ 2  threads preempted (your guess)")
    # Without room, the figure stands below its answer.
    narrow = [line.plain for line in guess_choice_lines(task, -1, "fixed", 30, known)]
    assert "     3.5 → 0 a second" in narrow
    assert not any("✗" in line for line in narrow)
    assert "✓" not in "".join(line.plain for line in guess_choice_lines(task, 1, "", 60))


def test_a_banner_of_a_recording_leaves_out_where_a_parameter_is_set_before_it_cuts_a_sentence() -> None:
    reason = (
        "it needs a boot parameter: set kernel parameters where the kernel of this machine is started, by its owner"
    )
    wide = recording_lines(reason, "lab-stock", True, 160)
    assert wide[-1].plain.rstrip().endswith("by its owner.")
    narrow = recording_lines(reason, "lab-stock", True, 76)
    assert " ".join(" ".join(line.plain for line in narrow).split()) == (
        "ON A RECORDING lab-stock: not on this host, because it needs a boot parameter."
    )
    offered = recording_lines(reason, "lab-stock", True, 76, "P opens a practice machine.")
    assert offered[-1].plain.rstrip().endswith("P opens a practice machine.")
    assert len(recording_lines("w " * 200, "lab-stock", True, 76)) == 2


def rate_rows(*runs: dict[str, int], seconds: float = 8.0) -> list[str]:
    """Return the rows of a table of rates on CPU 1. ``runs``: the events of each run, by name."""
    rates = [[(name, 1, count, count / seconds) for name, count in one.items()] for one in runs]
    return [line.plain for line in rates_of("INTERRUPTS", rates, 80)[3:]]


def test_a_rate_that_clearly_moved_has_its_factor() -> None:
    rows = rate_rows({"LOC": 2_216, "TLB": 30, "RES": 7}, {"LOC": 2_220, "TLB": 0, "RES": 15})
    assert [row.split("  ")[-1].strip() for row in rows] == ["278", "none in run 2", "1.88"], "few events may be chance"
    assert rate_rows({"CAL": 1}, {"CAL": 31})[0].endswith("31× more")
    assert "×" not in rate_rows({"CAL": 31})[0]
    assert "×" not in rate_rows({"CAL": 1}, {"CAL": 31}, {"CAL": 1})[0]


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_a_rate_is_said_to_have_moved_only_beyond_chance_and_twice(first: int, second: int) -> None:
    told = any(word in rate_rows({"CAL": first}, {"CAL": second})[0] for word in ("×", "none"))
    far = max(first, second) >= 2 * min(first, second)
    assert told == (far and (first - second) ** 2 > 16 * (first + second))
