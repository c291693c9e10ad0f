"""The native recorder counts as HdrHistogram does, for any geometry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.bench.block_analysis import NativeHistogram
from jitter_workshop.bench.native import ffi, lib
from jitter_workshop.stats import histogram as histograms

pytestmark = pytest.mark.native

GEOMETRIES = [(1, 60_000_000_000, 3), (1, 1_000_000, 1), (1_000, 10_000_000_000, 2), (7, 3_600_000, 4)]


@st.composite
def recordings(draw: st.DrawFn) -> tuple[tuple[int, int, int], list[int]]:
    geometry = draw(st.sampled_from(GEOMETRIES))
    highest = geometry[1]
    near_powers = st.integers(0, highest.bit_length() - 1).flatmap(
        lambda bit: st.integers(-2, 2).map(lambda d: 2**bit + d)
    )
    values = st.one_of(
        st.integers(0, highest), st.integers(0, 5_000), near_powers.map(lambda v: max(0, min(v, highest)))
    )
    return geometry, draw(st.lists(values, max_size=200))


@given(recordings())
def test_counts_equal_the_librarys(case: tuple[tuple[int, int, int], list[int]]) -> None:
    geometry, values = case
    recorder, library = NativeHistogram(histograms.new_histogram(*geometry)), histograms.new_histogram(*geometry)
    lib.jw_record_many(recorder.native, ffi.new("int64_t[]", values), len(values))
    for value in values:
        library.record_value(min(value, library.highest_trackable_value))
    assert bytes(histograms.counts_array(recorder.histogram)) == bytes(histograms.counts_array(library))
    block = recorder.block()
    assert (block.count, block.total, block.overflow) == (len(values), sum(values), 0)
    assert (block.min, block.max) == ((min(values), max(values)) if values else (None, None))
    assert block.encoded == histograms.encode_histogram(library)


@given(st.lists(st.integers(-(2**62), 2**62), max_size=50))
def test_negative_and_too_large_values_are_counted_apart(values: list[int]) -> None:
    recorder = NativeHistogram()
    lib.jw_record_many(recorder.native, ffi.new("int64_t[]", values), len(values))
    block = recorder.block()
    taken = [v for v in values if v >= 0]
    assert recorder.negative == len(values) - len(taken)
    assert block.count == len(taken)
    assert block.overflow == sum(v > histograms.HIGHEST_NS for v in taken)
    assert block.max == max(taken, default=None)
    assert block.total == min(sum(taken), 2**63 - 1)
    decoded = histograms.decode_histogram(block.encoded)
    assert decoded.get_total_count() == len(taken)


@given(st.integers(0, 10**12), st.integers(1, 10**9), st.integers(0, 400))
def test_a_progression_is_its_values(first: int, step: int, times: int) -> None:
    together, one_by_one = NativeHistogram(), NativeHistogram()
    values = [v for k in range(times) if (v := first - k * step) >= 0]
    lib.jw_record_progression(together.native, first, step, times)
    lib.jw_record_many(one_by_one.native, ffi.new("int64_t[]", values), len(values))
    assert together.block() == one_by_one.block()
