"""Say the result of two runs in a few words. The judgement is that of ``presenter.runs.effect``, which says it in
full."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.flow.measuring.known_reason import reason_of
from jitter_workshop.model.effect import Effects
from jitter_workshop.model.walk import CompareView, OwnLatency, OwnResult
from jitter_workshop.presenter.runs.disturbances import neither_is_better, noises_differ
from jitter_workshop.presenter.runs.effect import curve_is_quiet, explained_by, in_doubt, told_first
from jitter_workshop.stats.figures import KnownRun


def result_in_short(view: CompareView, runs: Sequence[KnownRun], *, unshown: bool = False) -> OwnResult:
    """Return the result of a chapter's two runs, without that of a proof. ``view``: their comparison. ``unshown``: True
    if this machine is emulated and cannot show the chapter's change."""
    found = view.effects
    if found is None or unshown or not view.comparison.comparable or view.relation != "changed":
        return OwnResult("not comparable")
    figure = True if found.shown is not None else False if found.missed is not None else None
    reason = reason_of(view.relation, runs[0], runs[1], found.causes)
    if reason is not None:
        unknown = explained_by(reason, found.shown or found.missed)
        return OwnResult("not comparable", None if unknown else figure)
    return OwnResult(_latency(found, runs), figure)


def _latency(found: Effects, runs: Sequence[KnownRun]) -> OwnLatency:
    """Return the words for the effect on latency or stalls. Two runs of different kinds are never called better."""
    first = told_first(found)
    if found.lead is None or first is None or curve_is_quiet(found, runs):
        return "no clear change"
    if noises_differ(runs) or neither_is_better(runs) or found.direction == "same":
        return "runs differ"
    if in_doubt(found.lead, found, runs):
        return "perhaps better" if found.direction == "better" else "perhaps worse"
    return found.direction
