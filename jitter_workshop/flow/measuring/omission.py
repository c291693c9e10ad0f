"""Compute three curves of one run for the chapter about coordinated omission: as received, from the intended send
time, and as received with HdrHistogram's later correction."""

from __future__ import annotations

from jitter_workshop.errors import SessionError
from jitter_workshop.model.run import Run
from jitter_workshop.model.walk import RunCurve
from jitter_workshop.session.store import OpenSession
from jitter_workshop.stats import histogram as hg
from jitter_workshop.stats.curve import percentile_curve

INTENDED = "accumulator_intended"


def further_curves(handle: OpenSession, run: Run) -> tuple[RunCurve, ...]:
    """Return the second and the third curve; those that the run or the session does not have are left out."""
    found: list[RunCurve] = []
    label = run.label or run.id
    try:
        found.append(RunCurve(f"{run.id}-intended", f"{label}: from the due time", handle.curve(run, INTENDED), run))
        received = handle.histogram(run.id, run.main_histogram)
        invented = hg.corrected(received, run.interval_ns)
    except (SessionError, ValueError):
        return tuple(found)
    words = f"{label}: corrected afterwards"
    return (*found, RunCurve(f"{run.id}-corrected", words, percentile_curve(invented, words), run))
