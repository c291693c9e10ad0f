"""Prepare the causes of a run for the question that a chapter's diagnosis asks. Every function is pure."""

from __future__ import annotations

import dataclasses

from jitter_workshop.flow.chapters.levers import chapter_treats
from jitter_workshop.flow.chapters.suspects import PERHAPS, woken_by
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.diagnosis import SeenCauses


def asked_causes(seen: SeenCauses, chapter: Chapter) -> SeenCauses:
    """Return the causes of a run from which the learner of ``chapter`` chooses an answer.

    - Each cause on which the chapter's change acts is marked (``acts``).
    - ``wanted`` is the question of the chapter.
    - Time without a kernel event is left out, and returned as ``unnamed_ns``. It stays among the causes in a chapter
      without a change, and in a run without another cause. No setting can shorten this time, and in a guest it is
      nearly always the largest part. Its possible reasons are told once: by its label among the causes, else by notes.

    Runs of this host and recorded runs follow the same rules.
    """
    marked = tuple(dataclasses.replace(one, acts=chapter_treats(woken_by(one, seen), chapter)) for one in seen.suspects)
    seen = dataclasses.replace(seen, suspects=marked, wanted=chapter.asks)
    named = tuple(one for one in marked if one.kind != "no_event")
    if (chapter.changes == "nothing" and chapter.asks == "most") or not named:
        # The label of this choice has the possible reasons.
        reasons = len(named) < len(marked)
        return dataclasses.replace(
            seen, notes=tuple(one for one in seen.notes if not (reasons and one.startswith(PERHAPS)))
        )
    unnamed_ns = sum(one.total_ns or 0 for one in marked if one.kind == "no_event")
    return dataclasses.replace(seen, suspects=named, unnamed_ns=unnamed_ns)
