"""Find what took a run's longest stall, by this stall's own part of the trace.

The sums over a run do not tell this: the cause with the most time in all need not have any part in the longest stall.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from jitter_workshop.flow.chapters.suspects import suspect_of_part
from jitter_workshop.model.diagnosis import Suspect
from jitter_workshop.model.effect import Effect
from jitter_workshop.model.evidence import EvidenceReport, ExplainedStall
from jitter_workshop.stats.figures import KnownRun

_NO_SOURCE = ("no_event", "around")
"""Kinds of causes that name nothing that took the time."""
_HANDLERS = ("softirq", "irq", "vector", "timer")
"""Kinds of causes that do about the same work each time."""
_FAR_ABOVE = 100.0
"""The least factor between one time of a handler and its mean time in the other stalls, from which on something else
must have stopped the CPU in it."""
_LEAST_OTHERS = 10


def longest_stalls(report: EvidenceReport) -> list[ExplainedStall]:
    """Return the longest stalls of a run, the longest first. These are the stalls of the thread that measures the
    latency, if it has any; else those of all measured threads."""
    of_main = [stall for stall in report.worst if stall.thread == report.main_thread]
    return sorted(of_main or report.worst, key=lambda stall: -stall.duration_ns)


def largest_cause(stall: ExplainedStall, report: EvidenceReport) -> Suspect | None:
    """Return the cause that took most of a stall, under the name that it has at the step ``diagnose``. Its
    ``total_ns`` is its time in this stall. Return None for a stall without parts. ``report``: the report with this
    stall."""
    found: dict[tuple[str, str], Suspect] = {}
    for part in stall.parts:
        one = suspect_of_part(part, report)
        before = found.get((one.kind, one.name))
        taken = (one.total_ns or 0) + (before.total_ns or 0 if before is not None else 0)
        found[one.kind, one.name] = dataclasses.replace(one, total_ns=taken)
    return max(found.values(), key=lambda one: one.total_ns or 0, default=None)


def is_named(cause: Suspect | None) -> bool:
    """Return True if a cause of a stall has a name: the trace shows which task, interrupt or other event it is."""
    return cause is not None and cause.kind not in _NO_SOURCE


def took_half(cause: Suspect | None, stall: ExplainedStall) -> bool:
    """Return True if a cause took at least half of a stall."""
    return cause is not None and 2 * (cause.total_ns or 0) >= stall.duration_ns


def times_its_usual(cause: Suspect, report: EvidenceReport) -> float | None:
    """Return how many times as long a handler took in one stall as it took on average in the run's other stalls.
    Return None for other causes, below _FAR_ABOVE, and if fewer than _LEAST_OTHERS other stalls have this cause.
    ``cause``: the handler, with its time in the one stall. ``report``: the report with this stall.

    A CPU that is stopped while it handles an interrupt or a softirq shows the whole stop as time of this handler.
    """
    if cause.kind not in _HANDLERS:
        return None
    whole = report.timer if cause.kind == "timer" else None
    whole = whole or next((one for one in report.causes if (one.kind, one.name) == (cause.kind, cause.name)), None)
    if whole is None or whole.count - 1 < _LEAST_OTHERS:
        return None
    taken = cause.total_ns or 0
    usual = max(whole.total_ns - taken, 1) / (whole.count - 1)
    return taken / usual if taken >= _FAR_ABOVE * usual else None


def largest_of_longest(effect: Effect, runs: Sequence[KnownRun]) -> tuple[ExplainedStall, Suspect | None] | None:
    """Return the longest stall of the run in which a figure was larger, and the cause that took most of it. ``effect``:
    the effect on a figure that one stall, or few, decide, such as the maximum. ``runs``: the two runs. Return None if
    this run has no trace, or no stall."""
    if len(runs) != 2:
        return None
    report = runs[effect.larger].report
    stalls = longest_stalls(report) if report is not None else []
    return None if report is None or not stalls else (stalls[0], largest_cause(stalls[0], report))
