"""Test how a condition on stalls is read and judged: a verdict says no more than what was watched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.errors import UsageError
from jitter_workshop.stats.acceptance import ACCEPTED, REJECTED, Acceptance, judge_condition, length_ns, parse_condition

HOUR = 3_600_000_000_000
CONDITION = Acceptance("stall < 20us for 12h", 20_000, 0, 12 * HOUR)


@pytest.mark.parametrize(
    ("text", "ns"),
    [("20us", 20_000), ("20 µs", 20_000), ("1.5ms", 1_500_000), ("0.25 s", 250_000_000), ("12h", 12 * HOUR)],
)
def test_a_length_of_time(text: str, ns: int) -> None:
    assert length_ns(text) == ns


@pytest.mark.parametrize("text", ["", "20", "us", "-1s", "0s", "1e9s", "nan s", "5 weeks", "1s; rm", "٣s"])
def test_a_text_that_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a length"):
        length_ns(text)


def test_conditions() -> None:
    assert parse_condition("stall < 20us for 12h") == CONDITION
    assert parse_condition("  stall<20us  for 12 h ").limit_ns == 20_000
    assert parse_condition("stalls over 1ms <= 3 for 90s") == Acceptance(
        "stalls over 1ms <= 3 for 90s", 1_000_000, 3, 90 * 10**9
    )


@pytest.mark.parametrize(
    "text", ["", "stall < 20us", "stall > 20us for 1h", "stall < 0us for 1h", "stalls over 1ms <= -1 for 1h", "x" * 999]
)
def test_a_text_that_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"condition|above 0"):
        parse_condition(text)


@pytest.mark.parametrize(
    ("count", "watched_ns", "verdict", "words"),
    [
        (0, 12 * HOUR, ACCEPTED, "at most 0.25 an hour, with 95 % confidence"),
        (0, 12 * HOUR - 1, None, "stalls in the rest are not known"),
        (1, 12 * HOUR, REJECTED, "none is allowed"),
        (1, HOUR, REJECTED, "1 stall of 20 µs or longer in 1 h watched"),
    ],
)
def test_verdicts(count: int, watched_ns: int, verdict: str | None, words: str) -> None:
    judged = judge_condition(CONDITION, count, watched_ns)
    assert judged.verdict == verdict
    assert words in judged.reason


@given(st.integers(0, 20), st.integers(0, 24 * HOUR), st.integers(0, 10))
def test_only_a_time_that_was_wholly_watched_is_accepted(count: int, watched_ns: int, most: int) -> None:
    condition = Acceptance("x", 20_000, most, 12 * HOUR)
    verdict = judge_condition(condition, count, watched_ns).verdict
    assert (verdict == REJECTED) == (count > most)
    assert (verdict == ACCEPTED) == (count <= most and watched_ns >= 12 * HOUR)
