"""Test which inputs answer a question of the plain walk."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.plain.answering import index_of_answer, is_number, no_such


@given(st.integers(1, 9), st.integers(0, 10**6))
def test_a_number_is_the_answer_with_this_number_or_none(count: int, number: int) -> None:
    assert is_number(str(number))
    assert index_of_answer(str(number), count) == (number - 1 if 1 <= number <= count else None)


@given(st.integers(1, 9), st.text(max_size=3))
def test_nothing_but_a_number_is_an_answer(count: int, typed: str) -> None:
    found = index_of_answer(typed, count)
    assert found is None or 0 <= found < count
    assert found is None or is_number(typed)


@pytest.mark.parametrize("typed", ["", "1a", "²", "-1", "٣", "ab", "+1"])
def test_only_ascii_digits_are_the_number_of_an_answer(typed: str) -> None:
    assert not is_number(typed)
    assert index_of_answer(typed, 9) is None


def test_a_number_without_an_answer_is_told() -> None:
    assert no_such(4) == "The answers are 1 to 4. Enter goes on without an answer."
