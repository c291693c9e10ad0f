"""The child of a matrix: CPUs that its threads do not get."""

from __future__ import annotations

import errno
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from jitter_workshop.bench import matrixchild
from jitter_workshop.bench.protocol import LineOrder

pytestmark = pytest.mark.native

TAKEN = 3


def test_a_cpu_that_no_thread_gets_is_left_out_after_two_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[int, int]] = []

    def ping_pong(_clock: object, first: int, second: int, found: Any) -> int:
        tried.append((first, second))
        found[0] = 80.04
        return -errno.ETIMEDOUT if TAKEN in (first, second) else 0

    monkeypatch.setattr(matrixchild, "lib", SimpleNamespace(jw_ping_pong=ping_pong))
    taken: Counter[int] = Counter()
    order = LineOrder(((0, TAKEN), (0, 1), (TAKEN, 1), (1, 2), (2, TAKEN)))
    told = matrixchild.time_pairs(None, order, taken)
    assert told.one_way_ns == (None, 80.0, None, 80.0, None)
    assert f"CPUs 0 and {TAKEN}" in told.why
    assert tried == list(order.pairs[:-1])
    again = matrixchild.time_pairs(None, order, taken)
    assert again.one_way_ns == told.one_way_ns
    assert tried[4:] == [(0, 1), (1, 2)]


def test_the_neighbours_of_a_taken_cpu_are_measured_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """One timeout with each of two taken CPUs is no reason to leave out the CPU between them."""

    def ping_pong(_clock: object, first: int, second: int, found: Any) -> int:
        found[0] = 80.0
        return -errno.ETIMEDOUT if first == 0 else 0

    monkeypatch.setattr(matrixchild, "lib", SimpleNamespace(jw_ping_pong=ping_pong))
    order = LineOrder(((0, 1), (1, 2), (0, 1), (1, 2)))
    assert matrixchild.time_pairs(None, order, Counter()).one_way_ns == (None, 80.0, None, 80.0)
