"""A percentile curve and what two of them say about each other (plain data; the arithmetic is in ``stats``)."""

from __future__ import annotations

from jitter_workshop.model.record import dataclass


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A value at a percentile (0..100). ``solid``: at least 10 samples lie beyond it."""

    percentile: float
    value_ns: int
    solid: bool


@dataclass(frozen=True, slots=True)
class PercentileCurve:
    """A curve to draw: ordered points. ``origin``: "" for what was measured here, else how it is marked
    ("published 2015", "recorded", "by cyclictest 2.40"). ``known_to``: the percentile beyond which only the last point
    is known, None where all are."""

    label: str
    points: tuple[CurvePoint, ...]
    count: int
    origin: str = ""
    known_to: float | None = None


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One line of a comparison: ``ratio`` = b / a, None where either side is unknown or zero."""

    measure: str
    a: float | None
    b: float | None
    ratio: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs between two single runs; it describes and claims no cause (DESIGN §6)."""

    run: str
    label: str
    comparable: bool
    differences: tuple[str, ...]
    rows: tuple[ComparisonRow, ...]
    text: str
