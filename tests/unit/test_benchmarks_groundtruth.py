"""Test which made-up bursts count as matched by made-up pieces."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.evidence.attribution import Piece
from jitter_workshop.evidence.explain import ExplainedBlock, SplitStall, explain_block
from jitter_workshop.evidence.timeline import build_timeline
from jitter_workshop.model.evidence import BlockSpan, Window
from jitter_workshop.model.noise import NOISES, Burst, Bursts, What, fill_in_name, noise, pack_bursts
from jitter_workshop.model.trace import TraceEvent
from tests.bench.figures import middle
from tests.bench.groundtruth import (
    EDGE_NS,
    LATE_NS,
    LEAST_NS,
    Truth,
    blamed_ns,
    interruptions,
    length_fits,
    not_felt,
    truths,
)
from tests.madetrace import MEASURED, OTHER, TIDS, pair, switch, tick

LENGTH = 10_000_000
GREEDY = noise("greedy")
START = 1_000_000


def burst(start: int, length: int, taken: int | None = None, what: int = 0, cpu: int = 1) -> Burst:
    return Burst(start, start + length, start, length, length if taken is None else taken, cpu, what)


def log(*bursts: Burst, kind: str = "greedy") -> Bursts:
    return Bursts(kind, fill_in_name(noise(kind).does, kind), pack_bursts(bursts))


def block(*stalls: Sequence[Piece], start: int = 0, end: int = LENGTH, ns: int | None = None) -> ExplainedBlock:
    """Each stall's pieces follow each other. ``ns``: how long the block is; as many ns as ticks unless told."""
    span = BlockSpan(0, start, end, 0, end - start if ns is None else ns)
    rate = span.rate
    split = []
    for pieces in stalls:
        window = Window(pieces[0].start, pieces[-1].end, 1, "sampler")
        edges = (0, *(rate.to_ns(piece.end - window.start) for piece in pieces))
        split.append(SplitStall(window, window.start - start, edges[-1], tuple(pieces), edges))
    return ExplainedBlock(span, build_timeline((), (1,), TIDS, start, end, rate), tuple(split))


def only(bursts: Bursts, *blocks: ExplainedBlock) -> Truth:
    return truths(bursts, blocks, lambda one: True)[0]


def greedy(start: int, length: int) -> Piece:
    return Piece("task", "greedy", start, start + length)


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_a_length_fits_within_a_tenth_or_two_microseconds(found: int, wanted: int) -> None:
    assert length_fits(found, wanted) is (abs(found - wanted) <= wanted // 10 or abs(found - wanted) <= LEAST_NS)


@given(st.integers(1, 500_000), st.integers(0, EDGE_NS - 1), st.integers(0, EDGE_NS - 1))
def test_of_a_threads_piece_the_part_between_its_clock_readings_is_compared(
    length: int, before: int, behind: int
) -> None:
    """The kernel's part, before its first reading and behind its last, is found by cause alone."""
    found = only(log(burst(START, length)), block([greedy(START - before, before + length + behind)]))
    (match,) = found.matches
    assert match.cause
    assert (match.found_ns, match.took_ns) == (length, length)
    assert (found.by_cause, found.in_length) == (1, 1)
    assert (found.inside_ns, found.outside_ns) == (before + length + behind, 0)


@given(st.integers(1, 500_000), st.integers(0, 500_000))
def test_a_part_of_a_burst_that_is_blamed_on_another_cause_is_missed(length: int, others: int) -> None:
    mine = length - min(others, length)
    pieces = [Piece("irq", "nic0", START + mine, START + length)] if mine < length else []
    found = only(log(burst(START, length)), block([*([greedy(START, mine)] if mine else []), *pieces]))
    assert found.matches[0].found_ns == mine
    assert found.in_length == int(mine > 0 and length_fits(mine, length))


@given(st.sampled_from([kind.id for kind in NOISES if kind.id not in ("greedy", "migration")]), st.integers(1, 400_000))
def test_another_cause_is_no_match_however_long_it_took(other: str, length: int) -> None:
    kind, name = fill_in_name(noise(other).does, other)[0].causes[0]
    found = only(log(burst(START, length)), block([Piece(kind, name, START, START + length)]))
    assert (found.by_cause, found.in_length, found.measured) == (0, 0, 1)
    assert (found.inside_ns, found.outside_ns) == (0, 0)


def test_a_burst_without_a_stall_is_not_matched() -> None:
    found = only(log(burst(START, 500)), block())
    assert (len(found.matches), found.by_cause, found.unseen) == (1, 0, 0)


@given(st.lists(st.tuples(st.integers(1, 100_000), st.integers(20_001, 100_000)), min_size=1, max_size=20))
def test_every_burst_is_counted_once(shapes: list[tuple[int, int]]) -> None:
    """In the first block, in the second, in neither: across the edge between them."""
    made, at = [], 0
    for length, gap in shapes:
        made.append(burst(at + gap, length))
        at = made[-1].end
    edges = ((0, at // 2), (at // 2, at + 2 * EDGE_NS))
    stalls = [[greedy(b.start, b.length_ns)] for b in made]
    blocks = [
        block(*(s for s in stalls if low <= s[0].start and s[0].end <= high), start=low, end=high)
        for low, high in edges
    ]
    inside = [b for b in made if any(low <= b.start - EDGE_NS and b.end + EDGE_NS <= high for low, high in edges)]
    found = only(log(*made), *blocks)
    assert [match.burst for match in found.matches] == inside
    assert found.unseen == len(made) - len(inside)
    assert found.by_cause == found.in_length == len(inside)
    assert found.outside_ns == 0


def test_a_piece_over_two_bursts_is_cut_between_them() -> None:
    """The noise did not run for 30 µs and no event says why: that is neither burst's."""
    one, two = burst(START, 100_000), burst(START + 130_000, 50_000)
    found = only(log(one, two), block([greedy(START - 2_000, 185_000)]))
    assert [match.found_ns for match in found.matches] == [100_000, 50_000]
    assert found.in_length == 2


def test_an_interrupt_within_a_burst_is_not_part_of_it() -> None:
    pieces = [greedy(START, 40_000), Piece("vector", "local_timer", START + 40_000, START + 60_000)]
    pieces.append(greedy(START + 60_000, 40_000))
    found = only(log(burst(START, 40_000), burst(START + 60_000, 40_000)), block(pieces))
    assert [match.found_ns for match in found.matches] == [40_000, 40_000]


def test_a_burst_where_events_were_lost_is_told_apart() -> None:
    found = only(log(burst(START, 100_000)), block([Piece("no_event", "events lost", START - 10, START + 10)]))
    assert (found.lost, len(found.matches), found.unseen) == (1, 0, 0)


def test_a_blamed_piece_without_a_burst_is_told() -> None:
    pieces = [greedy(START, 100_000)], [greedy(START + 1_000_000, 30_000)]
    found = only(log(burst(START, 100_000)), block(*pieces))
    assert (found.inside_ns, found.outside_ns) == (100_000, 30_000)


def test_a_gap_of_the_sampler_has_its_surroundings_and_may_come_late() -> None:
    at = START + LATE_NS // 2
    pieces = [
        Piece("around", "local_timer", at, at + 8_000),
        Piece("vector", "local_timer", at + 8_000, at + 9_000),
        Piece("timer", "timerfd_tmrproc", at + 9_000, at + 12_000),
        Piece("timer", "tick_nohz_handler", at + 12_000, at + 13_000),
    ]
    found = only(log(burst(START, 12_000), kind="timer"), block(pieces))
    assert (found.matches[0].found_ns, found.in_length) == (12_000, 1)
    # Its own clock readings are what a thread's burst is judged by: there the surroundings are not its.
    pieces = [Piece("around", "greedy", START - 5_000, START), greedy(START, 100_000)]
    assert only(log(burst(START, 100_000)), block(pieces)).matches[0].found_ns == 100_000


@given(st.integers(1, 40_000), st.integers(0, 40_000), st.integers(0, 40_000))
def test_an_interrupt_took_the_time_that_the_sampler_felt(own: int, before: int, behind: int) -> None:
    """Time without an event beside it is missing from the length; time that others took in between is not."""
    due = START - before
    pieces = [
        Piece("no_event", "", due, START),
        Piece("timer", "timerfd_tmrproc", START, START + own),
        Piece("no_event", "", START + own, START + own + behind),
        Piece("softirq", "RCU", START + own + behind, START + own + behind + 9_000),
        Piece("no_event", "", START + own + behind + 9_000, START + own + behind + 30_000),
    ]
    made = block([piece for piece in pieces if piece.ticks])
    (match,) = only(log(burst(due, 5_000), kind="timer"), made).matches
    beside = before + behind if behind else before
    assert (match.found_ns, match.took_ns) == (own, own + beside)
    assert match.length is length_fits(own, own + beside)
    assert match.as_before is length_fits(own, 5_000)


@pytest.mark.parametrize(("begun", "its"), [(-LEAST_NS, True), (-LEAST_NS - 1, False)])
def test_a_gap_that_began_before_a_burst_was_ordered_is_not_its(begun: int, its: bool) -> None:
    gap = Piece("no_event", "", START + begun, START + 50_000)
    called = Piece("vector", "flush_tlb_func", gap.end, gap.end + 7_000)
    (match,) = only(log(burst(START, 90_000, taken=7_000), kind="shootdown"), block([gap, called])).matches
    assert match.took_ns == 7_000 + (gap.ticks if its else 0)


def test_the_effect_of_a_call_is_over_when_it_returns() -> None:
    call = burst(START, 20_000, taken=7_000)
    pieces = [Piece("vector", "flush_tlb_func", START + 8_000, START + 15_000)]
    again = [Piece("vector", "flush_tlb_func", START + 28_000, START + 35_000)]
    found = only(log(call, kind="shootdown"), block(pieces, again))
    assert (found.matches[0].found_ns, found.in_length, found.outside_ns) == (7_000, 1, 7_000)


def test_the_rest_of_a_bursts_causes_alone_is_no_match() -> None:
    found = only(
        log(burst(START, 12_000), kind="timer"), block([Piece("vector", "local_timer", START, START + 12_000)])
    )
    assert (found.by_cause, found.matches[0].found_ns) == (0, 12_000)


def test_a_length_that_the_noise_does_not_know_is_not_judged() -> None:
    moved = Piece("migration", "migration", START, START + 5_000)
    found = only(log(burst(START, 4_000, taken=0), kind="migration"), block([moved]))
    assert (found.by_cause, found.measured, found.in_length) == (1, 0, 0)


@given(st.integers(2, 7))
def test_ticks_are_no_nanoseconds(factor: int) -> None:
    made = block([greedy(START, 300_000)], ns=LENGTH * factor)
    found = only(log(burst(START, 300_000, taken=300_000 * factor)), made)
    assert (found.matches[0].found_ns, found.in_length) == (300_000 * factor, 1)


def _explained(events: list[TraceEvent], windows: list[Window]) -> ExplainedBlock:
    return explain_block(BlockSpan(0, 0, 100_000, 0, 100_000), windows, events, (1,), TIDS)


EVENTS = [
    *tick(10_000, 1_500),
    *pair(11_600, 12_600, "softirq", "TIMER", number=1),
    switch(30_000, MEASURED, OTHER, stays=True),
    *tick(31_000, 500, pid=OTHER),
    switch(34_000, OTHER, MEASURED),
    *tick(50_000, 900),
    switch(99_500, MEASURED, OTHER, stays=True),
]


def test_interruptions_that_touch_are_one_and_short_ones_and_cut_ones_are_none() -> None:
    made = _explained(EVENTS, [])
    assert interruptions(made, 1, MEASURED, 1_000) == [(10_000, 11_500), (30_000, 34_000)]
    assert interruptions(made, 0, MEASURED, 1_000) == []


@given(st.lists(st.tuples(st.integers(0, 90_000), st.integers(1, 9_000)), max_size=8))
def test_an_interruption_is_felt_where_a_stall_overlaps_it(stalls: list[tuple[int, int]]) -> None:
    windows = [Window(start, start + length, 1, "sampler") for start, length in stalls]
    made = _explained(EVENTS, windows)
    times = interruptions(made, 1, MEASURED, 1_000)
    expected = [t for t in times if not any(w.start < t[1] and w.end > t[0] for w in windows)]
    assert not_felt(times, made) == expected


def test_only_time_of_a_noises_own_causes_is_blamed_on_it() -> None:
    made = block([greedy(START, 100_000), Piece("vector", "local_timer", START + 100_000, START + 130_000)])
    whats: tuple[What, ...] = fill_in_name(GREEDY.does, "greedy")
    assert blamed_ns(whats, [made]) == (100_000, 130_000)
    assert blamed_ns(fill_in_name(noise("timer").does, "timer"), [made]) == (0, 130_000)


@pytest.mark.parametrize(("count", "low", "high"), [(6, 0, 5), (10, 1, 8), (20, 5, 14), (40, 13, 26)])
def test_the_medians_interval_is_the_one_of_the_tables(count: int, low: int, high: int) -> None:
    """Ranks by the binomial distribution, as tables of the sign test have them."""
    assert middle([float(n) for n in range(count)]) == f"95 %: {low} to {high}"
    assert middle([1.0] * 5) == "too few for an interval"


def test_where_the_trace_contradicts_itself_a_burst_is_not_found() -> None:
    """No cause is named there, so that is a burst that was missed, not one that does not count."""
    found = only(log(burst(START, 100_000)), block([Piece("no_event", "event missing", START, START + 100_000)]))
    assert (found.lost, len(found.matches), found.by_cause) == (0, 1, 0)
