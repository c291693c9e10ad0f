"""Explain one block: take its stalls as windows of the trace and split each window by cause, in ticks and in ns."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from jitter_workshop.evidence.attribution import PRODUCER, Piece, split
from jitter_workshop.evidence.timeline import build
from jitter_workshop.evidence.tracks import Timeline
from jitter_workshop.model.evidence import Span, Window
from jitter_workshop.model.run import Stall
from jitter_workshop.model.trace import EventFields

_MOST_THREADS = 16

CauseKey = tuple[str, str]
"""A cause: its kind and its name."""


class SplitStall(NamedTuple):
    """Hold a stall, split into pieces by cause. ``offset_ns``: the time from the block's start to the stall's start.
    ``edges_ns``: the start of each piece and the end of the last piece, as times from the stall's start (0 to
    ``duration_ns``)."""

    window: Window
    offset_ns: int
    duration_ns: int
    pieces: tuple[Piece, ...]
    edges_ns: tuple[int, ...]

    def parts(self) -> dict[CauseKey, int]:
        """Return the time of each cause in ns. The times sum to ``duration_ns``. A cause whose time rounds to 0 is left
        out."""
        sums: Counter[CauseKey] = Counter()
        for piece, (start, end) in zip(self.pieces, pairwise(self.edges_ns), strict=True):
            if end > start:
                sums[piece.kind, piece.name] += end - start
        return sums


@dataclass(frozen=True, slots=True)
class ExplainedBlock:
    """Hold one explained block: its span of time, its timeline, and its stalls split into pieces."""

    span: Span
    timeline: Timeline
    stalls: tuple[SplitStall, ...]


def explain_block(
    span: Span,
    windows: Iterable[Window],
    events: Iterable[EventFields],
    cpus: Iterable[int],
    tids: Mapping[str, int],
    lost: Mapping[int, int] | None = None,
    own: Collection[int] = (),
) -> ExplainedBlock:
    """Split every window of a block. See ``timeline.build`` for the arguments. Empty windows are left out."""
    timeline = build(events, cpus, tids, span.start, span.end, span.rate, lost, own)
    return ExplainedBlock(
        span, timeline, tuple(_in_ns(span, w, split(w, timeline)) for w in windows if w.end > w.start)
    )


def windows_of(stalls: Iterable[Stall], span: Span, workload: str) -> list[Window]:
    """Return a block's stalls as windows, in order of time. The stalls are in ns since the run began, like
    ``span.start_ns``; the windows are in ticks of the trace's clock.

    The moment at which a stall begins depends on its thread:

    - a ring's consumer: the publication of a message;
    - a ring's producer: the time at which a message is due;
    - a thread that waits for a timer: the timer's time.

    These threads read the clock only at the end of a stall; the sampler and the receiver read it at the start, too.

    Impossible stalls are left out: those that overlap another stall of the same thread, or end before they begin. No
    benchmark lists them, but a foreign file with many of them would cause endless work.
    """
    rate = span.rate
    found = []
    last: dict[str, int] = {}
    for stall in sorted(stalls, key=lambda stall: (stall.start_ns, stall.end_ns)):
        free = last.get(stall.thread, stall.start_ns) if len(last) < _MOST_THREADS else last.get(stall.thread)
        if free is None or stall.start_ns < free or stall.duration_ns < 0:
            continue
        last[stall.thread] = stall.end_ns
        offset = stall.start_ns - span.start_ns
        start = span.start + rate.to_ticks(offset)
        end = max(span.start + rate.to_ticks(offset + stall.duration_ns), start + 1)
        consumer = workload == "ring" and stall.thread != PRODUCER
        found.append(
            Window(
                start=start,
                end=end,
                cpu=stall.cpu if stall.cpu is not None else -1,
                thread=stall.thread,
                messages=stall.messages,
                publish=start if consumer else None,
                start_seen=workload not in ("ring", "wakeup"),
                due=workload == "wakeup",
                offset_ns=offset,
                duration_ns=stall.duration_ns,
            )
        )
    return found


@contextmanager
def nothing_cyclic() -> Iterator[None]:
    """Stop the garbage collector inside the context. Millions of small tuples are made and dropped there, none in a
    cycle; a search for cycles among them would take a quarter of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _in_ns(span: Span, window: Window, pieces: tuple[Piece, ...]) -> SplitStall:
    """Return a stall's window and pieces with times in ns. Each edge between two pieces is rounded once, so that the
    lengths of the pieces sum to the length of the stall."""
    rate = span.rate
    ticks = window.end - window.start
    offset = window.offset_ns if window.offset_ns is not None else rate.to_ns(window.start - span.start)
    whole = window.duration_ns if window.duration_ns is not None else rate.to_ns(window.end - span.start) - offset
    edges = (0, *((piece.end - window.start) * whole // ticks for piece in pieces))
    return SplitStall(window, offset, whole, pieces, edges)
