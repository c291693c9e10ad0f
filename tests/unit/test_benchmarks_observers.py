"""Test how two observers are compared, and how the output of rt-tests is read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.observers import cyclictest, figures, oslat, spin, wakeup

VALUES = st.floats(0.1, 1e6)


def rounds(*pairs: tuple[float, float]) -> list[tuple[dict[str, float], dict[str, float]]]:
    return [({"gaps": a}, {"gaps": b}) for a, b in pairs]


def test_tools_agree_as_long_as_each_differs_from_itself_as_much() -> None:
    noisy = rounds((100, 120), (130, 100), (100, 125))
    (same,) = figures("a beside b", noisy, rounds((110, 100), (100, 130), (118, 104)))
    assert same.met
    assert same.name == "a beside b: gaps"
    (other,) = figures("a beside b", noisy, rounds((210, 200), (200, 230), (218, 204)))
    assert not other.met
    assert "ratio 0.5" in other.how


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=8))
def test_a_tool_agrees_with_itself(pairs: list[tuple[float, float]]) -> None:
    (found,) = figures("a", rounds(*pairs), rounds(*pairs))
    assert found.value <= 1e-9


def test_the_output_of_the_tools_is_read() -> None:
    gaps = {"thread": {"0": {"histogram": {"1": 9_000, "5": 4, "6": 3, "40": 1}, "duration": 2.0, "max": 40}}}
    assert oslat(gaps) == {"gaps over 5 µs a second": 2.0, "longest gap": 40.0}
    late = {"thread": {"0": {"histogram": {"4": 1, "7": 5, "90": 1}, "cycles": 7, "max": 90}}}
    assert cyclictest(late) == {"median lateness": 7.5, "longest lateness": 90.0}
    with pytest.raises(ValueError, match="beyond the table"):
        cyclictest({"thread": {"0": {"histogram": {"4": 1}, "cycles": 7, "max": 90}}})


def test_our_own_runs_are_read() -> None:
    rates = [{"threshold_ns": 5_000, "per_second": 3.5}, {"threshold_ns": 10_000, "per_second": 1.0}]
    run = {"stalls": {"rates": rates}, "histograms": {"spin_gap": {"max": 40_000}}}
    assert spin(run) == {"gaps over 5 µs a second": 3.5, "longest gap": 40.0}
    run = {"histograms": {"wakeup_latency": {"percentiles": {"50": 7_500}, "max": 90_000}}}
    assert wakeup(run) == {"median lateness": 7.5, "longest lateness": 90.0}
