"""The histogram room against HdrHistogram's own library, and against damaged input."""

from __future__ import annotations

import base64
import dataclasses
import struct
import zlib

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from jitter_workshop.model.run import PERCENTILES
from jitter_workshop.stats import histogram as hg

VALUES = st.lists(
    st.tuples(st.integers(0, 60_000_000_000), st.integers(1, 5_000)),
    max_size=60,
)
GEOMETRIES = st.sampled_from([(1, 60_000_000_000, 3), (1, 3_600_000_000, 2), (1000, 10**9, 1), (3, 10**6, 4)])


def filled(values: list[tuple[int, int]]) -> HdrHistogram:
    h = hg.new_histogram()
    for value, count in values:
        h.record_value(value, count)
    return h


def encoded(body: bytes, cookie: int = 0x1C849313, payload: bytes | None = None, **header: int) -> str:
    inner = struct.pack(
        ">IIIIQQd",
        cookie,
        header.get("length", len(body)),
        header.get("offset", 0),
        header.get("digits", 3),
        header.get("lowest", 1),
        header.get("highest", 60_000_000_000),
        1.0,
    )
    packed = zlib.compress(inner + body) if payload is None else payload
    return base64.b64encode(struct.pack(">II", 0x1C849314, len(packed)) + packed).decode()


@given(GEOMETRIES, st.lists(st.integers(0, 10**11), min_size=1, max_size=50))
def test_the_index_and_the_bounds_are_the_librarys(shape: tuple[int, int, int], values: list[int]) -> None:
    h = HdrHistogram(*shape)
    space = hg.geometry(h)
    for value in values:
        inside = min(value, shape[1])
        assert space.index(value) == h.get_counts_array_index(inside)
        assert space.bounds(space.index(value)) == (
            h.get_lowest_equivalent_value(inside),
            h.get_highest_equivalent_value(inside),
        )
    theirs = (h.unit_magnitude, h.sub_bucket_half_count_magnitude, h.sub_bucket_half_count, h.sub_bucket_mask)
    assert dataclasses.astuple(space) == (*shape, *theirs, h.counts_len)


@settings(max_examples=40, deadline=None)
@given(VALUES)
def test_percentiles_are_the_librarys(values: list[tuple[int, int]]) -> None:
    h = filled(values)
    ours = hg.summarise_histogram(h).percentiles
    theirs = h.get_percentile_to_value_dict([float(p) for p in PERCENTILES])
    for p in PERCENTILES:
        if h.total_count >= hg.samples_needed(p):
            assert ours[p] == theirs[float(p)]
        else:
            assert ours[p] is None


@settings(max_examples=40, deadline=None)
@given(VALUES)
def test_encoding_and_decoding_keep_every_count_and_agree_with_the_library(values: list[tuple[int, int]]) -> None:
    h = filled(values)
    text = hg.encode_histogram(h)
    back, theirs = hg.decode_histogram(text), HdrHistogram.decode(text)
    assert hg.non_zero(back) == hg.non_zero(h) == hg.non_zero(theirs)
    assert (back.total_count, back.min_value, back.max_value) == (
        theirs.total_count,
        theirs.min_value,
        theirs.max_value,
    )


@settings(max_examples=30, deadline=None)
@given(VALUES, VALUES)
def test_adding_is_recording_both(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    both, first = filled(a + b), filled(a)
    hg.add_counts(first, filled(b))
    assert hg.non_zero(first) == hg.non_zero(both)
    assert first.total_count == both.total_count


def test_adding_another_geometry_keeps_the_count_and_refuses_values_that_do_not_fit() -> None:
    small = hg.new_histogram(1, 1_000_000, 2)
    small.record_value(12_345, 7)
    h = hg.new_histogram()
    hg.add_counts(h, small)
    assert h.total_count == 7
    h.record_value(10**9)
    with pytest.raises(ValueError, match="beyond"):
        hg.add_counts(small, h)


@pytest.mark.parametrize(
    ("percentile", "needed"),
    [("50", 2), ("90", 10), ("99.9", 1000), ("99.9999", 1_000_000), ("40", 2), ("85", 7), ("99.7", 334)],
)
def test_how_many_samples_a_percentile_needs(percentile: str, needed: int) -> None:
    assert hg.samples_needed(percentile) == needed


def test_a_percentile_appears_with_its_last_missing_sample() -> None:
    h = hg.new_histogram()
    h.record_value(100, 999)
    assert hg.summarise_histogram(h).percentiles["99.9"] is None
    h.record_value(100)
    assert hg.summarise_histogram(h).percentiles["99.9"] == 100


def test_counting_from_outside_then_settling_then_encoding() -> None:
    h = hg.new_histogram()
    view = hg.counts_array(h)
    view[hg.geometry(h).index(4_000)] += 3
    view[len(view) - 1] += 2
    hg.count_again(h)
    assert h.total_count == 5
    assert hg.non_zero(hg.decode_histogram(hg.encode_histogram(h))) == hg.non_zero(h)


def test_a_value_beyond_the_range_is_clamped_and_can_be_encoded() -> None:
    h = hg.new_histogram()
    hg.counts_array(h)[-1] += 1
    hg.count_again(h)
    h.max_value = 10**15
    assert hg.decode_histogram(hg.encode_histogram(h)).total_count == 1
    s = hg.summarise_histogram(h, min_ns=10**15, max_ns=10**15, total_ns=10**15, overflow=1)
    assert (s.min, s.max, s.mean, s.overflow) == (10**15, 10**15, 1e15, 1)


def test_no_percentile_is_above_the_true_maximum() -> None:
    h = hg.new_histogram()
    h.record_value(1_000_001, 2_000)
    s = hg.summarise_histogram(h, max_ns=1_000_001)
    assert hg.percentile_values(hg.non_zero(h))["99.9"] != 1_000_001
    assert s.percentiles["50"] == s.percentiles["99.9"] == s.max == 1_000_001
    assert hg.summarise_histogram(h).percentiles["99.9"] == hg.percentile_values(hg.non_zero(h))["99.9"]


def test_the_summary_of_nothing_says_nothing() -> None:
    s = hg.summarise_histogram(hg.new_histogram())
    assert (s.count, s.min, s.max, s.mean) == (0, None, None, None)
    assert set(s.percentiles.values()) == {None}


def test_zero_is_a_value() -> None:
    h = hg.new_histogram()
    h.record_value(0, 4)
    assert hg.non_zero(hg.decode_histogram(hg.encode_histogram(h))) == [hg.Bin(0, 0, 4)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense!",
        "AAAA",
        encoded(b"", cookie=0x1C849301),
        encoded(b"", digits=9),
        encoded(b"", digits=0),
        encoded(b"", lowest=0),
        encoded(b"", highest=1 << 63),
        encoded(b"", digits=5, highest=(1 << 62) - 1, lowest=1)[:-4],
        encoded(b"", length=5),
        encoded(b"", offset=7),
        encoded(b"\x80"),
        encoded(b"\xff" * 9),
        encoded(b"\x01\x02" * 3 + b"\xff\xff\xff\x7f\x02"),
        encoded(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
        encoded(b"\x02" * 27_649),
        encoded(b"", payload=b"not zlib"),
        encoded(b"", payload=zlib.compress(b"\0" * 20_000_000)),
    ],
)
def test_hostile_histograms_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="histogram"):
        hg.decode_histogram(text)


@given(st.binary(max_size=200))
def test_random_bytes_never_do_more_than_raise(data: bytes) -> None:
    for text in (base64.b64encode(data), encoded(data)):
        try:
            hg.decode_histogram(text)
        except ValueError:
            continue


@given(st.integers(0, 200), st.integers(0, 255))
def test_a_damaged_histogram_is_found_or_still_a_histogram(at: int, byte: int) -> None:
    h = filled([(70, 1000), (4_000, 20), (3_000_000, 2)])
    raw = bytearray(base64.b64decode(hg.encode_histogram(h)))
    raw[at % len(raw)] = byte
    try:
        assert hg.decode_histogram(base64.b64encode(bytes(raw))).total_count >= 0
    except ValueError:
        return
