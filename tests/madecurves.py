"""Made-up curves for tests of pictures."""

from __future__ import annotations

from jitter_workshop.model.curve import CurvePoint, PercentileCurve
from jitter_workshop.stats import scale


def curve(label: str, values: list[int], solid: int | None = None, origin: str = "") -> PercentileCurve:
    """Values in ns at even steps of five decades; ``solid``: so many points are, None = all."""
    n = len(values)
    points = tuple(
        CurvePoint(scale.percentile_of_x(5 * i / max(n - 1, 1)), v, i < (n if solid is None else solid))
        for i, v in enumerate(sorted(values))
    )
    return PercentileCurve(label, points, 100_000, origin)
