"""Judge a gate: which runs are higher than a baseline at one measure, and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jitter_workshop.model.curve import Comparison
from jitter_workshop.model.run import Run
from jitter_workshop.model.text import clean, many
from jitter_workshop.report.text.comparison import ratio_text
from jitter_workshop.stats import sample_size
from jitter_workshop.stats.comparison import amount, higher_at, measure_name, stall_measure
from jitter_workshop.stats.curve import SOLID_BEYOND
from jitter_workshop.stats.sample_size import standings


@dataclass(frozen=True, slots=True)
class Gate:
    """Hold a row's name, and how much higher a run may be to pass (0.1 = 10 %)."""

    measure: str
    tolerance: float = 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """Hold a gate's verdict on one run. ``stalls_beyond``: the number of distinct stalls behind its figure, if these
    are fewer than a verdict would need; None if there are enough, or none are needed."""

    run: str
    label: str
    a: float
    b: float
    ratio: float | None
    higher: bool
    stalls_beyond: int | None


def verdict(gate: Gate, comparison: Comparison, other: Run) -> Verdict | None:
    """Return the verdict on ``other``, from its comparison with the baseline; None if the comparison has no such
    row."""
    higher = higher_at(comparison, gate.measure, gate.tolerance)
    row = next((r for r in comparison.rows if r.measure == gate.measure), None)
    if higher is None or row is None or row.a is None or row.b is None:
        return None
    return Verdict(comparison.run, comparison.label, row.a, row.b, row.ratio, higher, _few(gate, other))


def render(gate: Gate, verdicts: Sequence[Verdict]) -> str:
    """Return if the gate is passed, and each run that is higher; ends with a line break."""
    failed = [v for v in verdicts if v.higher]
    than = "than A" + (f" by more than {gate.tolerance * 100:g} %" if gate.tolerance else "")
    name = measure_name(gate.measure)
    if not failed:
        return f"gate {name}: passed, {'it is not' if len(verdicts) == 1 else 'none is'} higher {than}\n"
    lines = [f"gate {name}: not passed, {many(len(failed), 'run')} of {len(verdicts)} higher {than}"]
    for one in failed:
        ratio = f", {ratio_text(one.ratio)}" if one.ratio is not None else ""
        lines.append(f"  {clean(one.label or one.run, 30)}: {amount(gate.measure, one.b)}")
        lines[-1] += f" against {amount(gate.measure, one.a)}{ratio}"
        if one.stalls_beyond is not None:
            lines.append(f"    it rests on only {many(one.stalls_beyond, 'stall')}: chance alone can do that")
    return "\n".join(lines) + "\n"


def _few(gate: Gate, other: Run) -> int | None:
    for rate in other.stalls.rates:
        if stall_measure(rate.threshold_ns) == gate.measure and rate.count < SOLID_BEYOND:
            return rate.count
    marks = sample_size.of_run(other)
    for one in standings(other):
        if f"p{one.percentile}" == gate.measure and marks[one.percentile]:
            return one.stalls_beyond
    return None
