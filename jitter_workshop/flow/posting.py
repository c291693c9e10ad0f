"""What a member of a class did, posted to the board: after a run and after a step, never while something is measured.

What is posted is the whole state each time, so that a post which did not arrive is made good by the next."""

from __future__ import annotations

from jitter_workshop.classroom.client import connect
from jitter_workshop.errors import SessionError, WorkshopError
from jitter_workshop.model.board import MAX_CHAPTERS, MAX_POINTS, MAX_TEXT, Posted, PostedChapter, PostedRun
from jitter_workshop.model.run import Run
from jitter_workshop.model.session import ChapterProgress
from jitter_workshop.model.text import clean
from jitter_workshop.session.store import OpenSession
from jitter_workshop.stats.curve import percentile_curve


def posted(session: OpenSession, people: tuple[str, ...] = ()) -> Posted:
    """A session as its board shows it: progress, predictions, and the curves of the chapters' runs. Hints by number,
    nothing else that was written."""
    state = session.session
    chapters = dict(list(state.chapters.items())[:MAX_CHAPTERS])
    known = {run.id: run for run in session.runs()}
    at = chapters.get(state.current_chapter or "")
    return Posted(
        session=clean(state.name, MAX_TEXT),
        people=people,
        chapter=state.current_chapter if at is not None else None,
        step=at.step if at is not None else "",
        chapters=tuple(_chapter(ident, progress) for ident, progress in chapters.items()),
        runs=tuple(
            made
            for ident, progress in chapters.items()
            for slot, run_id in list(progress.runs.items())[:2]
            if run_id in known and (made := _run(session, ident, slot, known[run_id])) is not None
        ),
    )


def post(session: OpenSession, people: tuple[str, ...] = ()) -> str:
    """Post it. Gives why that was not possible, in a sentence, or "": nobody's work waits for a board."""
    try:
        work = posted(session, people)
        with connect() as board:
            board.post(work)
    except WorkshopError as error:
        return error.sentence()
    return ""


def _chapter(ident: str, progress: ChapterProgress) -> PostedChapter:
    return PostedChapter(
        id=clean(ident, MAX_TEXT),
        step=clean(progress.step, MAX_TEXT),
        done=progress.done,
        setting=progress.marks.get("setting", False),
        curve=progress.marks.get("curve", False),
        hints=min(progress.hints, 100),
        prediction=progress.prediction,
    )


def _run(session: OpenSession, chapter: str, slot: str, run: Run) -> PostedRun | None:
    """None for a run without a curve."""
    try:
        curve = percentile_curve(session.histogram(run.id, run.main_histogram), run.label)
    except (SessionError, ValueError, KeyError):
        return None
    solid = [(point.percentile, point.value_ns) for point in curve.points if point.solid and point.percentile < 100]
    return PostedRun(
        id=clean(run.id, MAX_TEXT),
        label=clean(run.label, MAX_TEXT),
        chapter=clean(chapter, MAX_TEXT),
        slot=clean(slot, MAX_TEXT),
        workload=run.workload,
        at=clean(run.started_at, MAX_TEXT),
        points=tuple(solid[:MAX_POINTS]),
        stolen_ns_per_second=run.stalls.stolen_ns_per_second,
    )
