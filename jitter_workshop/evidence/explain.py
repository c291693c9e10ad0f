"""Explain the stalls of one block: split each stall by cause, with times in ticks and in ns."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from jitter_workshop.evidence.attribution import PRODUCER, Piece, split
from jitter_workshop.evidence.timeline import build_timeline
from jitter_workshop.evidence.tracks import Timeline
from jitter_workshop.model.evidence import BlockSpan, Window
from jitter_workshop.model.run import Stall
from jitter_workshop.model.trace import EventFields

_MOST_THREADS = 16

CauseKey = tuple[str, str]
"""A cause: its kind and its name."""


class SplitStall(NamedTuple):
    """Hold a stall that is split into pieces by cause. ``offset_ns``: the stall's start, counted from the block's
    start. ``edges_ns``: the start of each piece and the end of the last piece, counted from the stall's start."""

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

    span: BlockSpan
    timeline: Timeline
    stalls: tuple[SplitStall, ...]


def explain_block(
    span: BlockSpan,
    windows: Iterable[Window],
    events: Iterable[EventFields],
    cpus: Iterable[int],
    tids: Mapping[str, int],
    lost: Mapping[int, int] | None = None,
    own: Collection[int] = (),
) -> ExplainedBlock:
    """Return a block with its stalls split by cause. ``windows``: the stalls; empty windows are left out. See
    ``timeline.build_timeline`` for the other arguments."""
    timeline = build_timeline(events, cpus, tids, span.start, span.end, span.rate, lost, own)
    return ExplainedBlock(
        span, timeline, tuple(_in_ns(span, w, split(w, timeline)) for w in windows if w.end > w.start)
    )


def windows_of(stalls: Iterable[Stall], span: BlockSpan, workload: str) -> list[Window]:
    """Return a block's stalls as windows of its trace, in order of time. Stalls have times in ns since the run began.
    Windows have times in ticks of the trace's clock.

    The sampler and the receiver read the clock at the start and at the end of a stall. All other threads read it only
    at the end. For these other threads, a stall begins at this moment:

    - a ring's consumer: a message is published;
    - a ring's producer: a message is due;
    - a thread that waits for a timer: the timer is due.

    Leave out a stall that overlaps another stall of the same thread, or that ends before it begins. Our benchmark never
    lists such stalls, but an imported file may contain many.
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
    """Stop Python's garbage collector inside the context. The code in the context makes millions of small tuples
    without reference cycles. The collector's search for cycles would take a quarter of this code's run time.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _in_ns(span: BlockSpan, window: Window, pieces: tuple[Piece, ...]) -> SplitStall:
    """Return a stall with its window and pieces, and with times in ns. Each edge between two pieces is rounded only
    once. So the lengths of the pieces sum exactly to the length of the stall."""
    rate = span.rate
    ticks = window.end - window.start
    offset = window.offset_ns if window.offset_ns is not None else rate.to_ns(window.start - span.start)
    whole = window.duration_ns if window.duration_ns is not None else rate.to_ns(window.end - span.start) - offset
    edges = (0, *((piece.end - window.start) * whole // ticks for piece in pieces))
    return SplitStall(window, offset, whole, pieces, edges)
