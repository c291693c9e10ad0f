"""Define a percentile curve and the comparison of two (plain data; the arithmetic is in ``stats``)."""

from __future__ import annotations

from jitter_workshop.model.record import dataclass


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Hold a value in ns at a percentile (0..100). ``solid``: at least 10 samples lie beyond it."""

    percentile: float
    value_ns: int
    solid: bool


@dataclass(frozen=True, slots=True)
class PercentileCurve:
    """Hold a curve to draw, with its points in order. ``origin``: "" for a curve measured here, else its mark
    ("published 2015", "recorded", "by cyclictest 2.40"). ``known_to``: beyond this percentile only the last point is
    known; None where all are."""

    label: str
    points: tuple[CurvePoint, ...]
    count: int
    origin: str = ""
    known_to: float | None = None


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """Hold one line of a comparison. ``ratio`` = b / a, None where either side is unknown or zero."""

    measure: str
    a: float | None
    b: float | None
    ratio: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Hold the differences of two single runs. It describes and claims no cause."""

    run: str
    label: str
    comparable: bool
    differences: tuple[str, ...]
    rows: tuple[ComparisonRow, ...]
    text: str
