"""Compute the space between two curves, before and after a change, as pieces that a chart fills.

Both paths are straight between their points, as charts draw them. A piece is *better* where the second path is lower,
because paths are times or shares, and a lower one is better.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from jitter_workshop.stats.view import Point


@dataclass(frozen=True, slots=True)
class Piece:
    """Hold a space between two paths. Inside this space the same path is always the lower one. ``before``, ``after``:
    the points of both paths over this range of x, from left to right."""

    better: bool
    before: tuple[Point, ...]
    after: tuple[Point, ...]

    @property
    def outline(self) -> tuple[Point, ...]:
        """Return the corners of the piece: along the first path, and back along the second one."""
        return (*self.before, *reversed(self.after))


def pieces(before: Sequence[Point], after: Sequence[Point]) -> tuple[Piece, ...]:
    """Return the pieces between two paths, from left to right; () where the paths share no range of x.

    Points are (x, y), in the units of a view (log10); x never falls along a path. Where both paths are equal there is
    no piece.
    """
    if not before or not after:
        return ()
    low, high = max(before[0][0], after[0][0]), min(before[-1][0], after[-1][0])
    ends = sorted({x for x, _ in (*before, *after) if low < x < high} | ({low, high} if low < high else set()))
    found: list[Piece] = []
    for start, end in itertools.pairwise(ends):
        for x0, x1, (a0, a1), (b0, b1) in _uncrossed(start, end, _edge(before, start, end), _edge(after, start, end)):
            if a0 == b0 and a1 == b1:
                continue
            better = b0 + b1 < a0 + a1
            edge_a, edge_b = ((x0, a0), (x1, a1)), ((x0, b0), (x1, b1))
            last = found[-1] if found else None
            if last is not None and last.better == better and last.before[-1][0] == x0:
                found[-1] = Piece(better, (*last.before, *edge_a), (*last.after, *edge_b))
            else:
                found.append(Piece(better, edge_a, edge_b))
    return tuple(found)


def _edge(path: Sequence[Point], start: float, end: float) -> tuple[float, float]:
    """Return a path's heights at ``start`` and ``end``. The path must have no point between them. If it makes a
    vertical step at ``start`` or ``end``, return its height on the inner side of the step."""
    at = bisect.bisect_right(path, start, key=lambda point: point[0]) - 1
    (x0, y0), (x1, y1) = path[at], path[at + 1]
    slope = (y1 - y0) / (x1 - x0)
    return (
        y0 if start == x0 else y0 + slope * (start - x0),
        y1 if end == x1 else y0 + slope * (end - x0),
    )


def _uncrossed(
    start: float, end: float, a: tuple[float, float], b: tuple[float, float]
) -> list[tuple[float, float, tuple[float, float], tuple[float, float]]]:
    """Return parts (start, end, heights of a, heights of b) in which two edges do not cross: one part, or two that meet
    where they cross. ``a``, ``b``: the heights of each edge at ``start`` and ``end``."""
    left, right = a[0] - b[0], a[1] - b[1]
    if left * right >= 0:
        return [(start, end, a, b)]
    share = left / (left - right)
    x, y = start + share * (end - start), a[0] + share * (a[1] - a[0])
    if not start < x < end:
        return [(start, end, a, b)]
    return [(start, x, (a[0], y), (b[0], y)), (x, end, (y, a[1]), (y, b[1]))]
