"""Return the hints for a learner before a step is measured."""

from __future__ import annotations

from jitter_workshop.flow.measuring.isolated_set import CpuBudget
from jitter_workshop.model.run import Run
from jitter_workshop.stats.scale import nice_ns

QUIET_NS = 10_000
"""A baseline with p99.99 below this has little to teach: the workshop offers a noise (a "thief")."""

WITHOUT_SETTINGS = "This chapter's settings do not stand: a run now measures the host without them. 'apply' sets them."


def thief_offered(run: Run | None) -> str:
    """Return a sentence that offers a noise (a "thief") where the run of a ring is quiet, else ""."""
    if run is None or run.workload != "ring":
        return ""  # p99.99 of hundreds of millions of readings is always short
    summary = run.histograms.get(run.main_histogram)
    value = summary.percentiles.get("99.99") if summary else None
    if value is None or value >= QUIET_NS:
        return ""
    return (
        f"This host is quiet already: p99.99 is {nice_ns(value)}. Wake a thief for this chapter? "
        "Spinners, one thread a CPU, are busy for 3 ms and asleep for 30; they stop with the run."
    )


def other_workload(asked: str, taken: str, room: CpuBudget) -> str:
    """Return the reason why another workload than the lesson's is measured, "" where it is the same."""
    if asked == taken:
        return ""
    if room.cpus >= 2:
        return f"The run before was of {taken}, so {taken} measures again, instead of the {asked}."
    said = f"The {asked} needs two CPUs: the loop {taken} measures instead of it."
    if not room.reduced:
        return said
    return f"{said} While CPU {room.isolated} is isolated, a run has one: give that back first to measure the {asked}."
