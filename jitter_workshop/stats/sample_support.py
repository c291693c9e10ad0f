"""Tell how many samples and stalls support each percentile, and mark those with too few in a table."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from jitter_workshop.model.run import PERCENTILES, Run
from jitter_workshop.model.verdict import Standing
from jitter_workshop.model.walk import RunCurve
from jitter_workshop.stats.curve import SOLID_BEYOND
from jitter_workshop.stats.rounds import stalls_beyond

FEW_SAMPLES, FEW_STALLS = "·", "~"
LEGEND = {
    FEW_SAMPLES: "fewer than ten samples beyond it: the chart draws it dotted",
    FEW_STALLS: "fewer than ten distinct stalls beyond it: luck moves it from run to run",
}
_RARE = 99.0
"""Beyond this percentile a handful of stalls decides (DESIGN §6)."""


def standings(run: Run) -> tuple[Standing, ...]:
    """Return the support of each percentile of a run's main histogram; () without that histogram."""
    summary = run.histograms.get(run.main_histogram)
    if summary is None:
        return ()
    found: list[Standing] = []
    for percentile in PERCENTILES:
        value = summary.percentiles.get(percentile)
        stalls = stalls_beyond(run, value) if value is not None else 0
        beyond = summary.count * (1 - Fraction(percentile) / 100)
        solid = value is not None and beyond >= SOLID_BEYOND
        found.append(Standing(percentile, value, float(beyond), stalls, solid, solid and stalls >= SOLID_BEYOND))
    return tuple(found)


def of_count(count: int) -> dict[str, str]:
    """Return percentile → mark, by the number of samples alone; "" for a curve whose number is not known (0)."""
    return {p: FEW_SAMPLES if count and count * (100 - float(p)) / 100 < SOLID_BEYOND else "" for p in PERCENTILES}


def of_run(run: Run) -> dict[str, str]:
    """Return percentile → mark for a run's main histogram."""
    return of_standings(standings(run), run.stalls.threshold_ns)


def of_standings(found: Iterable[Standing], threshold_ns: int) -> dict[str, str]:
    """Return percentile → mark, by samples and by distinct stalls. A value shorter than ``threshold_ns``, a run's
    shortest stall, is not judged by stalls."""
    marks = {}
    for one in found:
        few = one.solid and not one.proof and float(one.percentile) > _RARE
        stalls = few and one.value_ns is not None and one.value_ns >= threshold_ns
        marks[one.percentile] = FEW_STALLS if stalls else "" if one.solid else FEW_SAMPLES
    return marks


def of_curve(shown: RunCurve) -> dict[str, str]:
    """Return the marks of a curve in a chart: those of its run, else by its samples."""
    return of_run(shown.run) if shown.run is not None else of_count(shown.curve.count)


def marked(cells: Iterable[str], marks: Iterable[str], between: str = " ") -> list[str]:
    """Return cells with their marks behind them, and as much blank behind cells without one."""
    return [f"{cell}{between}{mark or ' '}" for cell, mark in zip(cells, marks, strict=True)]


def legend(marks: Iterable[str]) -> list[str]:
    """Return a line for each mark that occurs."""
    present = set(marks)
    return [f"{mark}  {said}" for mark, said in LEGEND.items() if mark in present]
