"""Say the result of two runs in a few words. The judgement is that of ``presenter.runs.main_effect``."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.flow.measuring.known_reason import reason_of
from jitter_workshop.model.walk import CompareView, OwnLatency, OwnResult
from jitter_workshop.presenter.runs.main_effect import LatencyVerdict, explained_by, judge_latency
from jitter_workshop.stats.figures import KnownRun

_IN_SHORT: dict[LatencyVerdict, OwnLatency] = {
    "better": "better",
    "worse": "worse",
    "perhaps better": "perhaps better",
    "perhaps worse": "perhaps worse",
    "differs": "runs differ",
    "not comparable": "not comparable",
}
"""The judgements on latency in the words of home. Any other judgement is no clear change."""


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
    return OwnResult(_IN_SHORT.get(judge_latency(found, runs), "no clear change"), figure)
