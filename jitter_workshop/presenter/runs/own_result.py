"""Say the result of two runs in a few words. The judgement is that of ``flow.chapters.judging``."""

from __future__ import annotations

from jitter_workshop.model.judgement import LatencyVerdict
from jitter_workshop.model.walk import CompareView, OwnLatency, OwnResult

_IN_SHORT: dict[LatencyVerdict, OwnLatency] = {
    "better": "better",
    "worse": "worse",
    "perhaps better": "perhaps better",
    "perhaps worse": "perhaps worse",
    "differs": "difference seen",
    "": "not compared",
    "not comparable": "not comparable",
}
"""The judgements on latency in the words of home. Any other judgement is no clear change."""


def result_in_short(view: CompareView, *, unshown: bool = False) -> OwnResult:
    """Return the result of a chapter's two runs, without that of a proof. ``view``: their comparison. ``unshown``: True
    if this machine is emulated and cannot show the chapter's change."""
    judged = view.judgement
    alike = view.comparison.comparable and view.relation == "alike" and not unshown
    if judged is not None and alike and judged.reason is None and judged.found.tail is not None:
        return OwnResult("alike", apart=judged.found.tail.factor)
    if judged is None or unshown or not view.comparison.comparable or view.relation != "changed":
        return OwnResult("not comparable")
    figure = {"done": True, "not done": False}.get(judged.work)
    return OwnResult(_IN_SHORT.get(judged.latency, "no clear change"), figure)
