"""Prepare the causes of a run for the question that a chapter's diagnosis asks. Every function is pure."""

from __future__ import annotations

import dataclasses

from jitter_workshop.flow.chapters.levers import chapter_treats
from jitter_workshop.flow.chapters.suspects import woken_by
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.diagnosis import SeenCauses


def asked_causes(seen: SeenCauses, chapter: Chapter) -> SeenCauses:
    """Return the causes of a run from which the learner of ``chapter`` chooses an answer.

    - Each cause on which the chapter's change acts is marked (``acts``).
    - ``wanted`` is the question of the chapter.
    - Time without a kernel event is left out in every chapter, and returned as ``unnamed_ns``. It is no cause: the
      trace cannot say what took it, and no setting can shorten it. In a guest it is nearly always the largest part, in
      many short stalls.

    Runs of this host and recorded runs follow the same rules.
    """
    marked = tuple(dataclasses.replace(one, acts=chapter_treats(woken_by(one, seen), chapter)) for one in seen.suspects)
    seen = dataclasses.replace(seen, suspects=marked, wanted=chapter.asks)
    named = tuple(one for one in marked if one.kind != "no_event")
    unnamed_ns = sum(one.total_ns or 0 for one in marked if one.kind == "no_event")
    return dataclasses.replace(seen, suspects=named, unnamed_ns=unnamed_ns)
