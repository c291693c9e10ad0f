"""Warn of a run that was to show this host without a noise, and was disturbed all the same."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.flow.chapters.judging import noises_differ
from jitter_workshop.model.effect import RUN_NAMES
from jitter_workshop.model.text import many
from jitter_workshop.stats.effect import MOST_BY_LUCK
from jitter_workshop.stats.figures import FIGURES, P99_FROM_DUE_TIME, KnownRun, transit_of
from jitter_workshop.stats.scale import nice_number

_FAR_ABOVE = 100.0
"""The least factor between p99 and the median of a run that was disturbed. In a quiet run with a CPU for each thread,
p99 usually is less than ten times the median."""
_FREE = "none"
"""The placement of threads that the scheduler may move: they can disturb each other on a quiet host, too."""


def disturbed_control(runs: Sequence[KnownRun]) -> int | None:
    """Return the index of the run without a noise, if the other run of two has one, and if this run was disturbed all
    the same. Return None if there is no such run."""
    if not noises_differ(runs):
        return None
    alone = next((at for at, seen in enumerate(runs) if seen.run.noise is None), None)
    return alone if alone is not None and is_disturbed(runs[alone]) else None


def control_told(runs: Sequence[KnownRun], key: str = "") -> str:
    """Return sentences on the run of :func:`disturbed_control`; "" if there is none. ``key``: the key that makes the
    run again; "" for none."""
    at = disturbed_control(runs)
    return "" if at is None else disturbed_told(runs[at], f"The {RUN_NAMES[at]} run", key)


def disturbed_told(seen: KnownRun, which: str = "This run", key: str = "") -> str:
    """Return sentences on one run without a noise that was disturbed, and what to do. They tell how often other tasks
    took its CPUs, or its p99 if this is not known. Return "" if it was not disturbed. ``which``: the words for the run.
    ``key``: as in :func:`control_told`."""
    if (found := _far_above(seen)) is None:
        return ""
    lost = [thread.involuntary_switches for thread in seen.run.threads]
    often = sum(one for one in lost if one is not None)
    again = f"Measure it again{f' ({key})' if key else ''}, or go on."
    times = "more than 1,000" if found > MOST_BY_LUCK else nice_number(float(f"{found:.2g}"))
    counted = often and None not in lost
    why = f"other tasks took its CPUs {many(often, 'time')}" if counted else f"its p99 is {times} times its median"
    return f"{which} has no noise, but {why}. {again}"


def is_disturbed(seen: KnownRun) -> bool:
    """Return True if a run without a noise was disturbed all the same."""
    return _far_above(seen) is not None


def _far_above(seen: KnownRun) -> float | None:
    """Return the factor between p99 and the median of a run, if it is at least _FAR_ABOVE; else None. Here p99 counts
    from the due time, if the messages had one. Return None for a run with a noise, for threads without a CPU of
    their own, and for runs of another machine or an emulated one."""
    run = seen.run
    if run.noise is not None or run.workload != "ring" or run.placement.mode == _FREE:
        return None
    if seen.timeless or seen.recorded is not None:
        return None
    # The median of transit: in a run that was stopped for long, most messages are late from their due time.
    value, median = FIGURES[P99_FROM_DUE_TIME].of(seen) or FIGURES["99"].of(seen), transit_of(seen, "50")
    if value is None or not median or value < _FAR_ABOVE * median:
        return None
    return value / median
