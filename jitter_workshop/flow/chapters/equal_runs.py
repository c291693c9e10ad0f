"""Find how far equal runs of a session differ: a change that moves a figure no further may be chance."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

from jitter_workshop.flow.chapters.cause_times import times_of_causes
from jitter_workshop.flow.measuring.comparing import same_state
from jitter_workshop.flow.measuring.known_reason import known_reason
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.effect import Effect, Effects
from jitter_workshop.model.run import Run
from jitter_workshop.stats.comparison import differences
from jitter_workshop.stats.effect import differences_by_figure
from jitter_workshop.stats.figures import KnownRun

_MOST = 4
"""The largest number of equal runs that are compared with each other, the newest ones."""


def factors_of_equal_runs(
    both: Sequence[KnownRun], every: Sequence[Run], known: Callable[[Run], KnownRun], chapter: Chapter
) -> dict[str, float]:
    """Return figure in words → the largest factor by which equal runs differ in it. The maximum is left out, because it
    is one event. Runs are equal if they were made in the same way as one of ``both``, all with a trace or all without.
    Two equal runs are left out if there is a known reason for their difference. ``both``: a chapter's two runs.
    ``every``: the runs of the session, oldest first. ``known``: a function that returns a run with its causes."""
    found: dict[str, float] = {}
    for one in both:
        alike = [known(run) for run in every if run.complete and same_state(one.run, run)]
        alike = [seen for seen in alike if _as_traced(seen, one)]
        for first, second in combinations(alike[-_MOST:], 2):
            if differences(first.run, second.run):
                continue
            if known_reason(first, second, times_of_causes(first, second, chapter)) is not None:
                continue
            for effect in differences_by_figure(first, second, chapter.judged_percentile).values():
                if not effect.one_event and not effect.at_least:
                    found[effect.name] = max(found.get(effect.name, 1.0), effect.factor)
    return found


def _as_traced(seen: KnownRun, one: KnownRun) -> bool:
    """Return True if a run and another one both have a trace, or both have none: tracing makes a run slower."""
    return (seen.report is None) == (one.report is None)


def beside_equal_runs(found: Effects, factors: Mapping[str, float]) -> Effects:
    """Return effects that know by how much equal runs differ. ``factors``: as from :func:`factors_of_equal_runs`."""

    def told(one: Effect | None) -> Effect | None:
        return None if one is None else dataclasses.replace(one, of_equal_runs=factors.get(one.name, 1.0))

    return dataclasses.replace(
        found,
        lead=told(found.lead),
        but=told(found.but),
        nearest=told(found.nearest),
        shown=told(found.shown),
        missed=told(found.missed),
        tail=told(found.tail),
        stalls=told(found.stalls),
        stalled=told(found.stalled),
        differences=tuple(one for effect in found.differences if (one := told(effect)) is not None),
    )
