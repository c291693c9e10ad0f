"""The sampler's 26 buckets."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.stats import stalls as bk

COUNTS = st.lists(st.integers(0, 10**9), min_size=26, max_size=26)


def test_the_buckets_are_the_classic_ones() -> None:
    assert len(bk.BUCKETS_NS) == 26
    assert list(bk.BUCKETS_NS) == sorted(set(bk.BUCKETS_NS))
    assert (bk.BUCKETS_NS[0], bk.BUCKETS_NS[18], bk.BUCKETS_NS[19], bk.BUCKETS_NS[-1]) == (2_000, 800_000, 10**6, 10**8)


@given(COUNTS, st.integers(1, 10**15))
def test_a_rate_is_for_an_hour_of_sampled_time(counts: list[int], sampled_ns: int) -> None:
    made = bk.buckets(counts, sampled_ns)
    assert [b.count for b in made] == counts
    for bucket, following in pairwise(made):
        assert bucket.to_ns == following.from_ns
    assert made[-1].to_ns is None
    for bucket in made:
        assert bucket.per_hour == pytest.approx(bucket.count / (sampled_ns / 3.6e12))


def test_without_time_there_is_no_rate() -> None:
    assert {b.per_hour for b in bk.buckets([0] * 26, 0)} == {None}


def test_other_numbers_of_buckets_are_refused() -> None:
    with pytest.raises(ValueError, match=r".*"):
        bk.buckets([1, 2], 1)
