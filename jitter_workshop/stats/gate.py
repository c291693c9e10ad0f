"""Judge a gate: find out if a measure of a run is too high. The measure is compared with the baseline's value of the
same measure.
"""

from __future__ import annotations

from dataclasses import dataclass

from jitter_workshop.model.curve import Comparison
from jitter_workshop.model.run import Run, of_transit
from jitter_workshop.stats import sample_size
from jitter_workshop.stats.comparison import higher_at, stall_measure
from jitter_workshop.stats.curve import SOLID_BEYOND
from jitter_workshop.stats.sample_size import standings


@dataclass(frozen=True, slots=True)
class Gate:
    """Hold a gate: a limit for one measure of a run. ``measure``: the name of a comparison's row. ``tolerance``: the
    share by which the run may be higher than the baseline and still pass (0.1 = 10 %)."""

    measure: str
    tolerance: float = 0.0


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """Hold a gate's verdict on one run. ``stalls_beyond``: the number of distinct stalls above the judged percentile,
    or longer than the judged length. It is set only if these stalls are too few for a verdict. It is None if there are
    enough stalls. It is also None if the verdict on this measure needs no number of stalls.
    """

    run: str
    label: str
    a: float
    b: float
    ratio: float | None
    higher: bool
    stalls_beyond: int | None


def gate_verdict(gate: Gate, comparison: Comparison, other: Run) -> GateVerdict | None:
    """Return the gate's verdict on the run ``other``. ``comparison``: the run compared with the baseline. Return None
    if the comparison lacks the row of the gate's measure."""
    higher = higher_at(comparison, gate.measure, gate.tolerance)
    row = next((r for r in comparison.rows if r.measure == gate.measure), None)
    if higher is None or row is None or row.a is None or row.b is None:
        return None
    return GateVerdict(comparison.run, comparison.label, row.a, row.b, row.ratio, higher, _few(gate, other))


def _few(gate: Gate, other: Run) -> int | None:
    for rate in other.stalls.rates:
        if stall_measure(rate.threshold_ns) == gate.measure and rate.count < SOLID_BEYOND:
            return rate.count
    # The gate compares main histograms, which for the ring are transit.
    other = of_transit(other)
    marks = sample_size.marks_of_run(other)
    for one in standings(other):
        if f"p{one.percentile}" == gate.measure and marks[one.percentile]:
            return one.stalls_beyond
    return None
