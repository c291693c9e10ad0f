"""Divide the space between two curves into pieces, which a chart fills with colour.

The two curves are paths, measured before and after a change. A path is straight between its points, as charts draw it.
A piece is *better* where the second path is lower, because lower times and lower shares are better.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from jitter_workshop.stats.view import Point


@dataclass(frozen=True, slots=True)
class AreaPiece:
    """Hold a piece of the space between two paths. Within a piece, the paths do not cross. ``better``: True if the
    second path is lower. ``before``, ``after``: the points of the first and of the second path, from left to right."""

    better: bool
    before: tuple[Point, ...]
    after: tuple[Point, ...]

    @property
    def outline(self) -> tuple[Point, ...]:
        """Return the corners of the piece: along the first path, and back along the second one."""
        return (*self.before, *reversed(self.after))


def pieces(before: Sequence[Point], after: Sequence[Point]) -> tuple[AreaPiece, ...]:
    """Return the pieces between two paths, from left to right. Where the paths are equal, there is no piece. Return ()
    if no range of x belongs to both paths.

    Points are (x, y) in the units of a view (log10), and x never decreases along a path.
    """
    if not before or not after:
        return ()
    low, high = max(before[0][0], after[0][0]), min(before[-1][0], after[-1][0])
    ends = sorted({x for x, _ in (*before, *after) if low < x < high} | ({low, high} if low < high else set()))
    found: list[AreaPiece] = []
    for start, end in itertools.pairwise(ends):
        for x0, x1, (a0, a1), (b0, b1) in _uncrossed(start, end, _edge(before, start, end), _edge(after, start, end)):
            if a0 == b0 and a1 == b1:
                continue
            better = b0 + b1 < a0 + a1
            edge_a, edge_b = ((x0, a0), (x1, a1)), ((x0, b0), (x1, b1))
            last = found[-1] if found else None
            if last is not None and last.better == better and last.before[-1][0] == x0:
                found[-1] = AreaPiece(better, (*last.before, *edge_a), (*last.after, *edge_b))
            else:
                found.append(AreaPiece(better, edge_a, edge_b))
    return tuple(found)


def _edge(path: Sequence[Point], start: float, end: float) -> tuple[float, float]:
    """Return the heights of a path at ``start`` and at ``end``. The path must have no point between ``start`` and
    ``end``. If the path has a vertical step at ``start`` or ``end``, it has two heights at this position. The function
    then returns the height on the side of the range between ``start`` and ``end``.
    """
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
    """Divide a range of x at the point where two edges cross. Return two parts, or one part if the edges do not cross.
    A part is (start, end, heights of a, heights of b). ``a``, ``b``: the heights of each edge at ``start`` and at
    ``end``."""
    left, right = a[0] - b[0], a[1] - b[1]
    if left * right >= 0:
        return [(start, end, a, b)]
    share = left / (left - right)
    x, y = start + share * (end - start), a[0] + share * (a[1] - a[0])
    if not start < x < end:
        return [(start, end, a, b)]
    return [(start, x, (a[0], y), (b[0], y)), (x, end, (y, a[1]), (y, b[1]))]
