"""Two runs of a chapter side by side, and what may be said of them."""

from __future__ import annotations

from jitter_workshop.model.run import Run
from jitter_workshop.model.walk import CompareView

_MEASURE = "99.9"
_WORTH_SAYING = 1.5
"""A median that differs by less is not news beside the tail."""


def compare_runs(a: Run, b: Run) -> CompareView:
    """``a`` against ``b``. Two runs made in the same way differ by luck, and the headline says by how much."""
    from jitter_workshop.stats.comparison import compare

    comparison = compare(a, b, a.main_histogram)
    if not same_state(a, b):
        return CompareView(comparison, comparison.text, same_state=False)
    return CompareView(comparison, luck(a, b), same_state=True)


def same_state(a: Run, b: Run) -> bool:
    """Were both runs asked for in the same way? CPUs count only where they were set: the scheduler's choice is luck."""

    def state(run: Run) -> tuple[object, ...]:
        placement = run.placement
        cpus = (placement.producer, placement.accumulator, placement.journaller, placement.sampler)
        applied = tuple(sorted((k, v) for entry in run.applied for k, v in entry.items()))
        return (
            run.workload,
            run.pacing,
            run.interval_ns,
            run.sched,
            run.duty,
            run.noise,
            None if placement.mode == "none" else cpus,
            applied,
        )

    return state(a) == state(b)


def luck(a: Run, b: Run) -> str:
    """How far two equal runs lie apart at p99.9, in stalls and, if it jumped, at the median: the headline."""
    start = "This is luck: nothing was changed between these two runs, and "
    ratios = []
    if (ratio := _ratio(_percentile(a), _percentile(b))) is not None:
        ratios.append(f"p{_MEASURE} differs by {_times(ratio)}")
    if (rate := _ratio(*_common_stall_rate(a, b))) is not None:
        ratios.append(f"stalls over 100 µs by {_times(rate)}")
    if (ratio := _ratio(_percentile(a, "50"), _percentile(b, "50"))) is not None and ratio >= _WORTH_SAYING:
        ratios.append(f"even the median by {_times(ratio)}")
    if not ratios:
        return start + "they are too short to say by how much they differ."
    company = " Others used these CPUs meanwhile, which is part of it." if a.disturbed or b.disturbed else ""
    return f"{start}{_listed(ratios)}.{company} A change has to beat that before it means anything."


def _listed(parts: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _percentile(run: Run, percentile: str = _MEASURE) -> int | None:
    summary = run.histograms.get(run.main_histogram)
    return summary.percentiles.get(percentile) if summary else None


def _common_stall_rate(a: Run, b: Run) -> tuple[float | None, float | None]:
    def rate(run: Run) -> float | None:
        # Fewer than ten stalls make a ratio of noise to noise.
        return next((r.per_second for r in run.stalls.rates if r.threshold_ns == 100_000 and r.count >= 10), None)

    return rate(a), rate(b)


def _ratio(a: float | None, b: float | None) -> float | None:
    if not a or not b:
        return None
    return max(a / b, b / a)


def _times(ratio: float) -> str:
    if ratio < 1.05:
        return "less than 5 %"
    return f"{ratio:.1f}×" if ratio < 10 else f"{ratio:,.0f}×"
