"""Comparisons describe, and say nothing they cannot know."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.model.curve import ComparisonRow
from jitter_workshop.model.run import Clock, StallRate
from jitter_workshop.stats import comparison as cp

MakeRun = Callable[..., tuple[Any, Any]]


def with_stalls(run: Any, per_second: float, count: int, threshold_ns: int = 100_000) -> Any:
    rate = StallRate(threshold_ns, count, per_second, per_second * threshold_ns)
    return dataclasses.replace(run, stalls=dataclasses.replace(run.stalls, rates=(rate,)))


def test_stalls_come_first_then_percentiles_then_the_maximum(make_run: MakeRun) -> None:
    a, _ = make_run([[100] * 95 + [5_000_000] * 5])
    b, _ = make_run([[150] * 99 + [2_000]], run_id="b", label="pinned")
    found = cp.compare(a, b)
    assert [r.measure for r in found.rows] == [
        "stalls_per_second_over_1000000_ns",
        "stalls_per_second_over_100000_ns",
        "stalls_per_second_over_10000_ns",
        "stalls_per_second_over_1000_ns",
        "stolen_ns_per_second",
        "mean",
        "p50",
        "p90",
        "p99",
        "max",
    ]
    rows = {r.measure: r for r in found.rows}
    assert rows["p50"].ratio == pytest.approx(1.5, rel=0.01)
    assert rows["max"].b == 2_000
    assert (found.run, found.label, found.comparable) == ("b", "pinned", True)
    assert "Worst seen: 5 ms in 250" in found.text
    assert "250 ms, then 2 µs in" in found.text
    assert "2 µs in 250 ms" in found.text


def test_percentiles_without_enough_samples_are_left_out(make_run: MakeRun) -> None:
    a, _ = make_run([[100] * 2_000])
    b, _ = make_run([[100] * 50])
    assert "p99" not in {r.measure for r in cp.compare(a, b).rows}
    assert "p90" in {r.measure for r in cp.compare(a, b).rows}


def test_differences_below_the_clocks_resolution_are_the_same(make_run: MakeRun) -> None:
    a, _ = make_run([[100] * 2_000])
    b, _ = make_run([[109] * 2_000])
    found = cp.compare(a, b)
    assert {r.measure: r.ratio for r in found.rows}["p99.9"] == 1.0
    assert "p99.9 the same within" in found.text
    assert "within the clock's step of 10 ns" in found.text
    coarse = dataclasses.replace(a, clock=dataclasses.replace(a.clock, resolution_ns=1))
    fine = dataclasses.replace(b, clock=dataclasses.replace(b.clock, resolution_ns=1))
    assert {r.measure: r.ratio for r in cp.compare(coarse, fine).rows}["p99.9"] == pytest.approx(1.09)
    assert cp.ratio_told(ComparisonRow("p50", 10, 13, 1.0)) == cp.NEAR
    assert cp.ratio_told(ComparisonRow("p50", 10, 10, 1.0)) == "1×"
    assert cp.ratio_told(ComparisonRow("stalls_over_1000000_ns", 0, 0, 1.0)) == "–"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"workload": "spin"}, "workload: ring against spin"),
        ({"pacing": "schedule"}, "pacing: spin against schedule"),
        ({"interval_ns": 20_000}, "interval: 10 µs against 20 µs"),
        ({"clock": Clock("monotonic", 20, 1, None, None, None)}, "clock: tsc against monotonic"),
        ({"duty": 50}, "duty: 100 % against 50 %"),
        ({"transit_from": None}, "time: transit against hand-off"),
    ],
)
def test_unlike_runs_are_not_compared(make_run: MakeRun, change: dict[str, Any], said: str) -> None:
    a, _ = make_run()
    b, _ = make_run(**change)
    found = cp.compare(a, b)
    assert not found.comparable
    assert said in found.differences
    assert said in found.text
    assert found.rows == ()


@pytest.mark.parametrize(
    ("workload", "name", "change", "said"),
    [
        ("wakeup", "wakeup_latency", {"interval_ns": 20_000}, ("interval: 10 µs against 20 µs",)),
        ("wakeup", "wakeup_latency", {"pacing": "schedule"}, ()),
        ("ack", "ack_interval", {"interval_ns": 20_000}, ("interval: 10 µs against 20 µs",)),
        ("spin", "spin_gap", {"duty": 50, "pause": "sleep"}, ("duty: 100 % against 50 %",)),
    ],
)
def test_other_workloads_are_compared_where_they_are_alike(
    make_run: MakeRun, workload: str, name: str, change: dict[str, Any], said: tuple[str, ...]
) -> None:
    a, _ = make_run(workload=workload, name=name)
    b, _ = make_run(workload=workload, name=name, **change)
    assert cp.compare(a, b).differences == said
    assert cp.compare(a, a).comparable
    ring, _ = make_run()
    assert f"workload: ring against {workload}" in cp.compare(ring, b).differences


def test_a_sampler_that_sleeps_is_not_compared_with_one_that_pauses_busily(make_run: MakeRun) -> None:
    a, _ = make_run(workload="spin", name="spin_gap", duty=50, pause="sleep")
    b, _ = make_run(workload="spin", name="spin_gap", duty=50, pause="busy")
    assert cp.compare(a, b).differences == ("pause: sleep against busy",)


def test_two_uses_of_memory_are_compared_but_not_one_with_none(make_run: MakeRun) -> None:
    none, fresh, ready = (make_run(memory=memory)[0] for memory in (None, "fresh", "ready"))
    assert cp.compare(fresh, ready).comparable
    assert cp.compare(none, ready).differences == ("memory: none against ready",)


def test_two_kinds_of_lock_are_compared_but_not_one_with_none(make_run: MakeRun) -> None:
    none, plain, inherit = (make_run(lock=lock)[0] for lock in (None, "plain", "inherit"))
    assert cp.compare(plain, inherit).comparable
    assert cp.compare(none, plain).differences == ("lock: none against plain",)


def test_pacing_and_interval_mean_nothing_where_no_messages_are_sent(make_run: MakeRun) -> None:
    a, _ = make_run(workload="spin", name="spin_gap")
    b, _ = make_run(workload="spin", name="spin_gap", interval_ns=20_000, pacing="schedule")
    assert cp.compare(a, b).comparable


def test_the_largest_difference_is_said(make_run: MakeRun) -> None:
    def stolen(run: Any, ns_per_second: float) -> Any:
        return dataclasses.replace(run, stalls=dataclasses.replace(run.stalls, stolen_ns_per_second=ns_per_second))

    a = stolen(with_stalls(make_run([[75] * 2_000 + [16_200_000] * 20])[0], 10.0, 50), 378e6)
    b = stolen(with_stalls(make_run([[1_320_000] * 2_000 + [19_300_000] * 20])[0], 14.0, 70), 822e6)
    for x, y, median, thefts in ((a, b, "75 ns, then 1.32 ms", "378"), (b, a, "1.32 ms, then 75 ns", "822")):
        text = cp.compare(x, y).text
        assert f"p50 {median}" in text
        assert f"; time in stalls {thefts} ms/s, then" in text
        assert "cannot prove" in text
        assert len(textwrap.wrap(text, 76)) <= 3
    assert "time in stalls nothing, then 822 ms/s" in cp.compare(stolen(a, 0.0), b).text
    same = cp.compare(a, stolen(a, 378e6 * 1.19)).text
    assert "p50" not in same
    assert "time in stalls" not in same


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [
        ((57.0, 570), (1.0, 10), "stalls over 100 µs 57× rarer"),
        ((2.0, 20), (5.0, 50), "stalls over 100 µs 2.5× more often"),
        ((5.0, 50), (5.2, 52), "stalls over 100 µs about as often (5/s)"),
        ((5.0, 50), (0.0, 0), "stalls over 100 µs 5/s, then none in 500 ms"),
        ((0.0, 0), (0.1, 1), "stalls over 100 µs none in 500 ms, then 6.0 a minute"),
        ((0.0, 0), (0.0, 0), "no stall over 100 µs in either run"),
    ],
)
def test_stall_rates_in_words(make_run: MakeRun, x: tuple[float, int], y: tuple[float, int], said: str) -> None:
    a, b = with_stalls(make_run()[0], *x), with_stalls(make_run()[0], *y)
    assert f"These two runs: {said}" in cp.compare(a, b).text


def test_the_text_neither_praises_nor_proves(make_run: MakeRun) -> None:
    a, _ = make_run([[100] * 50 + [9_000_000] * 50])
    b, _ = make_run([[100] * 100])
    for text in (cp.compare(a, b).text, cp.compare(b, a).text):
        assert "cannot prove" in text
        for word in ("improve", "better", "worse", "because", "faster"):
            assert word not in text.lower()


def test_whether_b_is_higher(make_run: MakeRun) -> None:
    a, _ = make_run([[100] * 100])
    b, _ = make_run([[109] * 50 + [5_000] * 50])
    found = cp.compare(a, b)
    assert cp.higher_at(found, "p99") is True
    assert cp.higher_at(cp.compare(b, a), "p99") is False
    assert cp.higher_at(found, "p50") is False
    assert cp.higher_at(found, "p99.9") is None


def test_another_metric(make_run: MakeRun) -> None:
    a, _ = make_run(name="publisher_interval")
    assert cp.compare(a, a, "publisher_interval").rows[-1].ratio == 1.0
    with pytest.raises(KeyError):
        cp.compare(a, a, "nothing")


@given(st.floats(0, 1e9), st.floats(0, 1e9), st.integers(0, 100))
def test_a_ratio_is_b_over_a_or_one_or_unknown(a: float, b: float, step: int) -> None:
    row = cp._row("x", a, b, step)
    if row.ratio is None:
        assert a == 0
        assert b != 0
    elif row.ratio == 1.0:
        assert a == b or abs(a - b) < step or b / a == 1.0
    else:
        assert row.ratio == b / a
