"""Find the result of the learner's own two runs of each chapter, for the path at home.

The result is that of the step ``compare``, in a few words. Only a chapter without two runs shows a forecast.
"""

from __future__ import annotations

import dataclasses

from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.model.course import SLOTS, Chapter
from jitter_workshop.model.walk import OwnResult, PathEntry


class OwnResults:
    """Judge the two runs of each chapter once for each pair of runs: home asks for them at every redraw."""

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop
        self._judged: dict[str, tuple[tuple[object, ...], OwnResult | None]] = {}
        self._proofs: int | None = None
        """The number of proofs in this drawing of the path; None if not read yet. Reading them judges them all."""

    def path(self) -> tuple[PathEntry, ...]:
        """Return the chapters as ``Workshop.path`` does, each with its result."""
        path = self._workshop.path()
        chapters = {one.id: one for one in self._workshop.course.chapters}
        self._proofs = None
        return tuple(dataclasses.replace(e, result=self._result(chapters[e.chapter_id])) if e.here else e for e in path)

    def _result(self, chapter: Chapter) -> OwnResult | None:
        """Return the result of a chapter's two runs. Return None without them, in a hunt, and in a chapter that
        compares nothing."""
        context = self._workshop.context
        runs = context.progress(chapter.id).runs
        if chapter.hunt or not set(SLOTS) <= set(runs):
            return None
        made = tuple(runs[slot] for slot in SLOTS)
        if chapter.id not in self._judged or self._judged[chapter.id][0] != self._state(made):
            found = self._judge(chapter)
            # The judgement itself looks for kept reports.
            self._judged[chapter.id] = self._state(made), found
        return self._judged[chapter.id][1]

    def _state(self, made: tuple[str, ...]) -> tuple[object, ...]:
        """Return all on which a judgement rests: the two runs, equal runs of the session, proofs, and the reports on
        traces that are known. ``made``: the ids of the two runs."""
        context = self._workshop.context
        if self._proofs is None:
            self._proofs = len(context.handle.proofs())
        return (*made, len(context.runs.every()), self._proofs, context.runs.known_reports)

    def _judge(self, chapter: Chapter) -> OwnResult | None:
        # Before the first chapter is measured, home needs none of these modules.
        from jitter_workshop.flow.proving.chapter_proof import newest
        from jitter_workshop.presenter.proofs.proof import leads
        from jitter_workshop.presenter.runs.own_result import result_in_short

        walk = self._workshop.walk(chapter.id)
        if walk.runs.unread:
            # Without the reports, the judgement could be another one than that of the step compare.
            return OwnResult("not read")
        view = walk.comparison.view()
        of_change = chapter.changes != "nothing" or chapter.shows is not None
        if view is None or not (of_change or view.relation == "alike"):
            return None
        found = result_in_short(view, unshown=bool(walk.runs.unshown))
        proof = newest(self._workshop, walk)
        if proof is None or proof.judgement is None or not leads(proof):
            return found
        return dataclasses.replace(found, proof=proof.judgement.headline.verdict)
