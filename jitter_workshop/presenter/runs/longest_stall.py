"""Say what took the longest stall of one of two runs (``flow.chapters.longest_stall``)."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.flow.chapters.longest_stall import (
    is_named,
    largest_of_longest,
    times_its_usual,
    took_half,
)
from jitter_workshop.model.effect import Effect
from jitter_workshop.stats.figures import KnownRun
from jitter_workshop.stats.scale import times_told

STOPPED_INSIDE = "the hypervisor or the firmware may have stopped the CPU in it"


def said_of_longest(effect: Effect, runs: Sequence[KnownRun]) -> str:
    """Return a sentence on the stall and the cause of :func:`largest_of_longest`; "" if there is none."""
    found = largest_of_longest(effect, runs)
    if found is None:
        return ""
    stall, cause = found
    which = "the first run's longest stall" if effect.larger == 0 else "the longest stall"
    if cause is None or not is_named(cause):
        return f"The trace names no cause of {which}."
    share = "Most" if took_half(cause, stall) else "The largest part"
    report = runs[effect.larger].report
    times = times_its_usual(cause, report) if report is not None else None
    why = f", {times_told(times)} times as long as usual: {STOPPED_INSIDE}" if times is not None else ""
    return f"{share} of {which} was {cause.label}{why}."
