"""HdrHistogram's correction after the fact, by its definition (``copyCorrectedForCoordinatedOmission`` in Java; the
Python library's own recording goes one step below the interval)."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.stats import histogram as hg


def filled(values: list[int]) -> hg.HdrHistogram:  # type: ignore[name-defined]
    histogram = hg.new_histogram()
    for value in values:
        histogram.record_value(value)
    return histogram


@given(st.lists(st.integers(1, 50_000), max_size=30), st.integers(100, 5_000))
def test_each_long_value_is_joined_by_shorter_ones(values: list[int], interval: int) -> None:
    exact = [b.high for value in values for b in hg.non_zero(filled([value]))]
    joined = [
        v - k * interval for v in exact for k in range(v // interval + 1) if not k or v - k * interval >= interval
    ]
    assert hg.non_zero(hg.corrected(filled(values), interval)) == hg.non_zero(filled(joined))


def test_one_stall_is_joined_by_all_that_would_have_been_sent() -> None:
    found = hg.non_zero(hg.corrected(filled([100_000]), 10_000))
    assert sum(b.samples for b in found) == 10
    assert found[0].low <= 10_000 + 100
    assert found[-1].high >= 100_000


def test_nothing_above_the_interval_is_left_as_it_is() -> None:
    histogram = filled([10, 20, 30_000])
    assert hg.non_zero(hg.corrected(histogram, 40_000)) == hg.non_zero(histogram)


@pytest.mark.parametrize("interval", [0, -1])
def test_an_interval_below_a_nanosecond_makes_no_sense(interval: int) -> None:
    with pytest.raises(ValueError, match="at least 1 ns"):
        hg.corrected(filled([5]), interval)


def test_more_samples_than_a_histogram_holds_are_refused() -> None:
    histogram = hg.new_histogram()
    histogram.record_value(50_000_000_000, 1_000_000_000)
    with pytest.raises(ValueError, match="too many values"):
        hg.corrected(histogram, 1)


def test_many_long_values_do_not_make_the_correction_long() -> None:
    # Half a million messages, of which 10,000 were late by up to 100 ms: singly these are 50 million steps.
    late = filled([10_000 * n for n in range(1, 10_001)])
    late.record_value(900, 490_000)
    began = time.process_time()
    found = hg.corrected(late, 10_000)
    took_s = time.process_time() - began
    assert sum(b.samples for b in hg.non_zero(found)) > 50_000_000
    assert took_s < 1
