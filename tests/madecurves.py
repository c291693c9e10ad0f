"""Made-up curves for tests of pictures."""

from __future__ import annotations

from jitter_workshop.model.curve import CurvePoint, PercentileCurve


def percentile_of_x(x: float) -> float:
    """Return the percentile at a position of the chart's axis."""
    return 100 * (1 - 10**-x)


def curve(label: str, values: list[int], solid: int | None = None, origin: str = "") -> PercentileCurve:
    """Values in ns at even steps of five decades; ``solid``: so many points are, None = all."""
    n = len(values)
    points = tuple(
        CurvePoint(percentile_of_x(5 * i / max(n - 1, 1)), v, i < (n if solid is None else solid))
        for i, v in enumerate(sorted(values))
    )
    return PercentileCurve(label, points, 100_000, origin)
