"""Find the result of the learner's own two runs of each chapter, for the path at home.

The result is that of the step ``compare``, in a few words. Only a chapter without two runs shows a forecast.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.model.course import SLOTS, Chapter
from jitter_workshop.model.walk import OwnResult, PathEntry
from jitter_workshop.presenter.course.path import kind_or_result, unclear_told


class OwnResults:
    """Judge the two runs of each chapter once for each pair of runs: home asks for them at every redraw."""

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop
        self._judged: dict[str, tuple[tuple[object, ...], OwnResult | None]] = {}
        self._last: tuple[tuple[object, ...], str] = (), ""
        self._proofs: int | None = None
        """The number of proofs in this drawing of the path; None if not read yet. Reading them judges them all."""

    def path(self) -> tuple[PathEntry, ...]:
        """Return the chapters as ``Workshop.path`` does, each with its result."""
        path = self._workshop.path()
        chapters = {one.id: one for one in self._workshop.course.chapters}
        self._proofs = None
        return tuple(dataclasses.replace(e, result=self._result(chapters[e.chapter_id])) if e.here else e for e in path)

    def last_told(self, path: Sequence[PathEntry], since: str = "") -> tuple[str, str] | None:
        """Return the title of the chapter whose change was measured last, and what the change did, in words. Return
        None if there is no such chapter, or if its result is not known yet. ``path``: that of :meth:`path`. ``since``:
        the id of a run; a result older than this run is left out."""
        made = {e.chapter_id: self._workshop.context.progress(e.chapter_id).runs for e in path if e.result is not None}
        changed = [e for e in path if e.result is not None and e.result.latency != "alike"]
        last = max(changed, key=lambda entry: made[entry.chapter_id][SLOTS[1]], default=None)
        if last is None or last.result is None or last.result.latency == "not read":
            return None
        run = made[last.chapter_id][SLOTS[1]]
        if run < since:
            return None
        state = last.result, *self._state((run,))
        if self._last[0] != state:
            self._last = state, self._in_words(last)
        return last.title, self._last[1]

    def _in_words(self, entry: PathEntry) -> str:
        """Return what a chapter's change did: its figure if this moved as the lesson says, else the latency if this is
        surely better or worse or differs by plan, else the result in a few words."""
        from jitter_workshop.presenter.runs.effect_words import describe_effect, doubt_told

        view = self._workshop.walk(entry.chapter_id).comparison.view()
        judged = view.judgement if view is not None else None
        own = entry.result
        if own is None or own.proof is not None or judged is None:
            return kind_or_result(entry)[0]
        if judged.relation != "changed" or judged.reason is not None:
            return kind_or_result(entry)[0]
        tells = judged.sure or judged.latency == "differs"
        effect = judged.of_chapter if judged.work == "done" else judged.first if tells else None
        if effect is None:
            return kind_or_result(entry)[0]
        return "; ".join(filter(None, (f"{describe_effect(effect)}{doubt_told(effect)}", unclear_told(own))))

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
