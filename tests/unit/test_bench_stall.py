"""The arithmetic of a stall to order: when it is due, whether it fell within its block, what is said of it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.bench import stall as stalls
from jitter_workshop.bench.stall import STALL_NS, OrderedStall
from jitter_workshop.errors import MeasureError
from jitter_workshop.model.spec import Placement, RunSpec
from tests import madeup

SPEC = RunSpec("ring", Placement("none"), blocks=20, block_ns=250_000_000, noise="stall")


class Child:
    """Notes what is done to it, and when by the made-up clock."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.said: list[tuple[str, int]] = []

    def stop(self) -> None:
        self.clock.now_ns += 1_000
        self.said.append(("stop", self.clock.now_ns))

    def resume(self) -> None:
        self.said.append(("resume", self.clock.now_ns))


class Clock:
    now_ns = 5_000_000_000

    def monotonic_ns(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(stalls, "time", made)
    return made


def block(start_ns: int, end_ns: int) -> Any:
    return dataclasses.replace(madeup.make_run()[1][0], start_ns=start_ns, end_ns=end_ns)


def happened(clock: Clock) -> tuple[OrderedStall, int, int]:
    """A stall, and from when to when the child stood still."""
    stall, child = OrderedStall(SPEC), Child(clock)
    stall.happen(child)  # type: ignore[arg-type]
    (_, began_ns), (_, ended_ns) = child.said
    assert ended_ns - began_ns == STALL_NS
    return stall, began_ns, ended_ns


def test_it_is_due_in_the_block_in_the_middle_once(clock: Clock) -> None:
    stall, began_ns, ended_ns = happened(clock)
    assert [i for i in range(20) if stall.due(i)] == [10]
    assert stall.hit(block(began_ns, ended_ns))
    assert not any(stall.due(i) for i in range(20))
    assert OrderedStall(dataclasses.replace(SPEC, blocks=1)).due(0)


@pytest.mark.parametrize(("early_ns", "late_ns"), [(1, 0), (0, 1), (STALL_NS, -STALL_NS)])
def test_a_block_that_holds_only_a_part_is_not_the_one(clock: Clock, early_ns: int, late_ns: int) -> None:
    stall, began_ns, ended_ns = happened(clock)
    assert not stall.hit(block(began_ns + early_ns, ended_ns - late_ns))
    assert stall.due(10)


def test_messages_due_during_a_stall_must_still_be_sent_in_its_block(clock: Clock) -> None:
    """A stop late in a timed block draws the block out to its own end, and nothing is caught up. A block of so many
    messages sends them all."""
    stall, _, ended_ns = happened(clock)
    assert not stall.hit(block(ended_ns - SPEC.block_ns + 24_000_000, ended_ns + 1))
    stall, _, ended_ns = happened(clock)
    assert stall.hit(block(ended_ns - SPEC.block_ns + 25_000_000, ended_ns + 1))
    counted, child = OrderedStall(dataclasses.replace(SPEC, messages=500_000)), Child(clock)
    counted.happen(child)  # type: ignore[arg-type]
    assert counted.hit(block(clock.now_ns - SPEC.block_ns, clock.now_ns))


def test_the_child_goes_on_after_every_end_of_the_wait(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(clock, "sleep", stopped)
    child = Child(clock)
    with pytest.raises(KeyboardInterrupt):
        OrderedStall(SPEC).happen(child)  # type: ignore[arg-type]
    assert [what for what, _ in child.said] == ["stop", "resume"]


def test_it_begins_so_that_its_middle_is_the_blocks() -> None:
    stall = OrderedStall(SPEC)
    stall.learn(1_000, block(41_001_000, 300_000_000))
    assert stall.begins_after_s() == pytest.approx(0.041 + 0.075)


def test_without_an_earlier_block_the_unrecorded_messages_are_reckoned_with() -> None:
    slow = dataclasses.replace(SPEC, interval_ns=100_000)
    assert OrderedStall(slow).begins_after_s() - OrderedStall(SPEC).begins_after_s() == pytest.approx(0.09)


def test_it_gives_up_after_some_tries() -> None:
    stall = OrderedStall(SPEC)
    for _ in range(9):
        assert not stall.hit(block(0, 1))
    with pytest.raises(MeasureError, match="in 10 tries"):
        stall.hit(block(0, 1))


def test_a_stall_is_told_with_its_length_moment_and_block(clock: Clock) -> None:
    stall, began_ns, ended_ns = happened(clock)
    assert stall.note(0) == "the run ended before its middle, so the measuring process was not stopped"
    assert stall.hit(block(began_ns - 75_000_000, ended_ns))
    assert stall.note(began_ns - 2_500_000_000) == (
        "the whole measuring process was stopped on purpose, once, for 100.0 ms, 2.500 s after the start of the run "
        "(block 11 of 20)"
    )


@given(st.integers(1, 10**9), st.integers(1, 100), st.integers(100, 10**6))
def test_a_block_is_as_long_as_its_messages_or_its_time(messages: int, blocks: int, interval_ns: int) -> None:
    spec = dataclasses.replace(SPEC, messages=messages, blocks=blocks, interval_ns=interval_ns)
    assert spec.block_length_ns == min(SPEC.block_ns, messages // blocks * interval_ns)
    assert dataclasses.replace(spec, messages=None).block_length_ns == SPEC.block_ns
