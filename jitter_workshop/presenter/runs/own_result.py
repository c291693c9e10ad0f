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
    "not comparable": "not comparable",
}
"""The judgements on latency in the words of home. Any other judgement is no clear change."""


def result_in_short(view: CompareView, *, unshown: bool = False) -> OwnResult:
    """Return the result of a chapter's two runs, without that of a proof. ``view``: their comparison. ``unshown``: True
    if this machine is emulated and cannot show the chapter's change."""
    judged = view.judgement
    alike = view.comparison.comparable and view.relation == "alike" and not unshown
    if judged is not None and alike and judged.reason is None:
        judge = judged.found.tail
        # A count of few stalls differs by chance, and a factor of none is not known. A percentile of few is marked.
        if judge is None or judge.at_least or judge.by_chance or (judge.few and judge.sort == "stalls"):
            return OwnResult("alike")
        return OwnResult("alike", apart=judge.factor, judge=judge.name, few=judge.few)
    if judged is None or unshown or not view.comparison.comparable or view.relation != "changed":
        return OwnResult("not comparable")
    figure = {"done": True, "not done": False}.get(judged.work)
    found = judged.found
    felt = found.tail or found.nearest
    if not judged.latency and (found.left_out or felt is None or felt.sort == "cause"):
        return OwnResult("not compared", figure)
    if judged.doubt == "another cause":
        return OwnResult("not decided", figure)
    return OwnResult(_IN_SHORT.get(judged.latency, "no clear change"), figure)
