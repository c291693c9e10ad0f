"""Find a chapter's runs with the kernel's trace, and request one more run with it where there is none.

A chapter's own runs are made without the trace, so that tracing is no difference between two of them; in a hunt every
run has it.
"""

from __future__ import annotations

import dataclasses

from jitter_workshop.flow.chapters.session_context import SessionContext
from jitter_workshop.flow.chapters.walk import SLOTS, ChapterSession
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.model.course import TREATED
from jitter_workshop.model.run import Run

TRACED = ", traced"
"""The end of the label of a run that was made once more to be traced."""


def shown(session: Workshop | SessionContext, walk: ChapterSession) -> Run | None:
    """Return the run whose causes a chapter shows: its newest traced one; in a hunt the newest beside the noise (with a
    cure, if one was tried), traced or not. None where there is none."""
    if walk.hunts:
        slots = (walk.current,) if walk.current in SLOTS else ()
        return next((r for s in (*slots, TREATED, "again", "measure") if (r := walk.run_in(s)) is not None), None)
    labels = {f"{m.label}{TRACED}" for m in walk.chapter.measurements}
    ours = set(walk.progress.runs.values())
    found = [r for r in session.runs() if (r.id in ours or r.label in labels) and session.traced(r)]
    return found[-1] if found else None


def once_more(walk: ChapterSession) -> MeasureRequest | None:
    """Return the request for the chapter's newest measurement once more, with the trace; None where nothing is measured
    yet. Raises what ``ChapterSession.request`` raises."""
    measured = [slot for slot in SLOTS if walk.run_in(slot) is not None]
    if not measured:
        return None
    request = walk.request(measured[-1])
    return dataclasses.replace(request, label=f"{request.label}{TRACED}", evidence=True)
