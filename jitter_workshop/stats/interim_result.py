"""Describe the rounds of a proof while more of them are made: figures of one measure, and no verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jitter_workshop.model.verdict import Round
from jitter_workshop.stats.measures import lines
from jitter_workshop.stats.multiple_comparisons import usual


@dataclass(frozen=True, slots=True)
class SoFar:
    """Hold one measure over all rounds so far. ``ratios``: with ÷ without of each round in order of time: 0.0 where
    there was nothing with the change, inf where there was nothing without it, None where there was nothing on either
    side."""

    measure: str
    name: str
    ratios: tuple[float | None, ...]


def so_far(rounds: Sequence[Round], workload: str = "ring") -> SoFar | None:
    """Return the measure that a judgement would report first, round by round; None where the rounds have none in
    common. The choice may change with the next round: it depends on how often stalls came."""
    shown = lines(rounds, workload)
    if not shown:
        return None
    line = shown[usual(shown)]
    if len(line.pairs.x) != len(rounds):
        return None
    return SoFar(line.measure, line.name, tuple(_ratio(x, y) for x, y in zip(line.pairs.x, line.pairs.y, strict=True)))


def _ratio(without: float, with_it: float) -> float | None:
    if without > 0:
        return with_it / without
    return math.inf if with_it > 0 else None
