"""Compare a noise's own log with the attribution that the trace gives for the same time.

A burst is matched by cause where a piece of a stall has a cause of the kind that the burst was to be found as, while it
lasted; and in length where the pieces with its causes take as long as the burst took, within the larger of 10 % and
2 µs. A thread's burst took the time from its first clock reading to its last, and what lies between these two is
counted of the pieces. An interrupt cannot time itself, and none is as long as the next: it took what the sampler felt,
by its clock, from where nothing is known before it until where nothing is known behind it; the log has what one took
beforehand. Plain arithmetic: the pieces come from wherever stalls were split.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from jitter_workshop.evidence.attribution import Piece
from jitter_workshop.evidence.explain import ExplainedBlock
from jitter_workshop.evidence.tracks import TASK, UNKNOWN
from jitter_workshop.model.evidence import LOST, NOTHING, Rate
from jitter_workshop.model.noise import Burst, Bursts, What, is_cause

SHARE, LEAST_NS = 10, 2_000
"""A length is right within a SHARE-th part of it, or LEAST_NS."""

NO_EVENT, AROUND = "no_event", "around"

EDGE_NS = 10_000
"""The most time between a burst's own clock readings and the place where it is found: bringing a thread to a CPU, and
its first steps there, happen before it reads a clock."""
LATE_NS = 200_000
"""The same after the moment for which a timer was set: it comes only when the CPU takes interrupts."""


@dataclass(frozen=True, slots=True)
class Match:
    """One burst. ``pieces``: those with a cause of its; ``found_ns``: what they sum to. ``took_ns``: how long it was by
    somebody else; ``length``: whether both agree; None if it is not known."""

    burst: Burst
    pieces: tuple[Piece, ...]
    found_ns: int
    cause: bool
    took_ns: int | None

    @property
    def length(self) -> bool | None:
        return None if self.took_ns is None else length_fits(self.found_ns, self.took_ns)

    @property
    def as_before(self) -> bool:
        """Return True if it is as long as one took beforehand."""
        return length_fits(self.found_ns, self.burst.taken_ns)


@dataclass(slots=True)
class Truth:
    """All bursts of one sort (``What``). ``unseen``: bursts that did not happen within a block; ``lost``: that happened
    where the trace had no room, and says so. ``outside_ns``: blamed on the burst's first cause where no burst was;
    ``inside_ns``: where one was."""

    what: What
    matches: list[Match] = field(default_factory=list)
    unseen: int = 0
    lost: int = 0
    inside_ns: int = 0
    outside_ns: int = 0

    @property
    def by_cause(self) -> int:
        return sum(match.cause for match in self.matches)

    @property
    def measured(self) -> int:
        """Bursts whose length is known."""
        return sum(match.length is not None for match in self.matches)

    @property
    def in_length(self) -> int:
        return sum(match.cause and bool(match.length) for match in self.matches)


def length_fits(found_ns: int, wanted_ns: int) -> bool:
    return abs(found_ns - wanted_ns) <= max(wanted_ns // SHARE, LEAST_NS)


def own_pieces(what: What, pieces: Iterable[Piece]) -> list[Piece]:
    """The pieces that are a burst's: of its causes, and, where its length was measured as somebody else felt it, what
    is around them."""
    felt = what.length == "measured"
    return [
        piece
        for piece in pieces
        if any(
            is_cause(cause, cause[0] if felt and piece.kind == AROUND else piece.kind, piece.name)
            for cause in what.causes
        )
    ]


def is_main(what: What, piece: Piece) -> bool:
    """Return True if a piece has a cause of the kind that says it all: the rest of a burst's causes come along with
    it."""
    main = what.causes[0][0]
    return any(is_cause(cause, piece.kind, piece.name) for cause in what.causes if cause[0] == main)


def reach(burst: Burst, what: What, rate: Rate) -> tuple[int, int]:
    """Return where a burst may be found, in ticks. A burst that was ordered for a moment comes late. A burst that a
    call brought about was over when the call returned."""
    late = EDGE_NS
    if what.length == "measured":
        late = LATE_NS if burst.taken_ns >= burst.length_ns else 0
    return burst.start - rate.to_ticks(EDGE_NS), burst.end + rate.to_ticks(late)


def match(burst: Burst, what: What, pieces: Sequence[Piece], rate: Rate, between: tuple[int, int]) -> Match:
    """One burst against the pieces near it. ``between``: the end of the burst before and the start of the one after.
    A piece of an interrupt counts as a whole, but one that reaches into another burst ends where this one does."""
    before, after = between
    mine = [piece for piece in own_pieces(what, pieces) if piece.end > before and piece.start < after]
    cause = any(is_main(what, piece) for piece in mine)
    if what.length == "measured":
        ticks = sum(
            _within_ticks(
                piece,
                burst.start if piece.start < before else piece.start,
                burst.end if piece.end > after else piece.end,
            )
            for piece in mine
        )
        felt = ticks + _beside(mine, pieces, burst.start - rate.to_ticks(LEAST_NS))
        return Match(burst, tuple(mine), rate.to_ns(ticks), cause, rate.to_ns(felt))
    ticks = sum(_within_ticks(piece, burst.start, burst.end) for piece in mine)
    return Match(burst, tuple(mine), rate.to_ns(ticks), cause, burst.taken_ns or None)


def _within_ticks(piece: Piece, low: int, high: int) -> int:
    return max(0, min(piece.end, high) - max(piece.start, low))


def _beside(mine: Sequence[Piece], pieces: Sequence[Piece], since: int) -> int:
    """Ticks without an event that touch a burst's pieces: the sampler felt them together with it. A tick that began
    before ``since``, when the burst was not ordered yet, does not belong to the burst."""
    edges = {piece.start for piece in mine} | {piece.end for piece in mine}
    return sum(
        piece.ticks
        for piece in pieces
        if piece.kind == NO_EVENT
        and piece.name == NOTHING
        and piece.start >= since
        and (piece.start in edges or piece.end in edges)
    )


def truths(bursts: Bursts, blocks: Iterable[ExplainedBlock], wanted: Callable[[Burst], bool]) -> list[Truth]:
    """Every burst that is ``wanted`` and within a block, by what it was."""
    found = [Truth(what) for what in bursts.does]
    chosen = [burst for burst in bursts.list() if wanted(burst)]
    for block in blocks:
        pieces = sorted((p for stall in block.stalls for p in stall.pieces), key=lambda p: p.start)
        inside = [b for b in chosen if _within(b, found[b.what].what, block)]
        for number, truth in enumerate(found):
            sort = [b for b in chosen if b.what == number]
            _match_block(truth, [b for b in inside if b.what == number], sort, pieces, block)
    for number, truth in enumerate(found):
        truth.unseen = sum(b.what == number for b in chosen) - len(truth.matches) - truth.lost
    return found


def _within(burst: Burst, what: What, block: ExplainedBlock) -> bool:
    low, high = reach(burst, what, block.span.rate)
    return block.span.start <= low and high <= block.span.end


def _match_block(
    truth: Truth, inside: Sequence[Burst], sort: Sequence[Burst], pieces: Sequence[Piece], block: ExplainedBlock
) -> None:
    rate, starts = block.span.rate, [piece.start for piece in pieces]
    claimed: set[int] = set()
    places = {burst: place for place, burst in enumerate(sort)}
    for burst in inside:
        low, high = reach(burst, truth.what, rate)
        first = max(bisect_right(starts, low) - 1, 0)
        near = [piece for piece in pieces[first : bisect_left(starts, high)] if piece.end > low]
        if any(piece.kind == NO_EVENT and piece.name == LOST for piece in near):
            truth.lost += 1
            continue
        place = places[burst]
        before = min(sort[place - 1].end if place else block.span.start, burst.start)
        after = max(sort[place + 1].start if place + 1 < len(sort) else block.span.end, burst.end)
        one = match(burst, truth.what, near, rate, (before, after))
        claimed.update(id(piece) for piece in one.pieces)
        truth.matches.append(one)
    # A burst that is cut by the block's edge is no match, but the time that it took is no error.
    cut = [reach(b, truth.what, rate) for b in sort if b.end > block.span.start and b.start < block.span.end]
    for piece in pieces:
        if is_main(truth.what, piece):
            its = id(piece) in claimed or any(piece.start < high and piece.end > low for low, high in cut)
            ns = rate.to_ns(piece.ticks)
            truth.inside_ns += ns if its else 0
            truth.outside_ns += 0 if its else ns


def interruptions(block: ExplainedBlock, cpu: int, tid: int, over_ns: int) -> list[tuple[int, int]]:
    """Times, longer than ``over_ns``, in which by the trace a CPU did not run thread ``tid``. Times that reach over the
    block's edge are left out, and so are times that the trace does not know."""
    timeline = block.timeline
    track = timeline.cpus.get(cpu)
    found: list[tuple[int, int]] = []
    unknown: list[tuple[int, int]] = []
    for segment in track.between(timeline.start, timeline.end) if track is not None else ():
        if segment.kind == TASK and segment.pid == tid:
            continue
        if segment.kind == UNKNOWN:
            unknown.append((segment.start, segment.end))
        if found and found[-1][1] == segment.start:
            found[-1] = (found[-1][0], segment.end)
        else:
            found.append((segment.start, segment.end))
    least = block.span.rate.to_ticks(over_ns)
    return [
        (start, end)
        for start, end in found
        if end - start > least
        and timeline.start < start
        and end < timeline.end
        and not any(start < high and end > low for low, high in unknown)
    ]


def not_felt(times: Sequence[tuple[int, int]], block: ExplainedBlock) -> list[tuple[int, int]]:
    """Those that overlap no stall."""
    windows = sorted((stall.window.start, stall.window.end) for stall in block.stalls)
    starts = [start for start, _ in windows]
    latest = list(accumulate((end for _, end in windows), max))
    return [
        (start, end) for start, end in times if (place := bisect_left(starts, end)) == 0 or latest[place - 1] <= start
    ]


def blamed_ns(whats: Iterable[What], blocks: Iterable[ExplainedBlock]) -> tuple[int, int]:
    """Of all stalls: what is blamed on the first cause of any ``whats``, and all of it."""
    wanted = list(whats)
    blamed = every = 0
    for block in blocks:
        for stall in block.stalls:
            every += stall.duration_ns
            edges = stall.edges_ns
            blamed += sum(
                edges[place + 1] - edges[place]
                for place, piece in enumerate(stall.pieces)
                if any(is_main(what, piece) for what in wanted)
            )
    return blamed, every
