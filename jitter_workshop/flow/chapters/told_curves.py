"""Choose the latencies by which runs are told outside their chapter, such as at home and in the list of all curves.

They are those of the run's result: with the waits for messages that were not sent, if the result has them
(``stats.omission``), and from the due time in a chapter that judges by it.
"""

from __future__ import annotations

from collections.abc import Iterable

from jitter_workshop.flow.chapters.session_context import SessionContext, key_of
from jitter_workshop.model.course import SLOTS, TREATED, Course
from jitter_workshop.model.run import Run
from jitter_workshop.model.session import Session
from jitter_workshop.model.walk import RunCurve
from jitter_workshop.stats.figures import KnownRun, by_due_time
from jitter_workshop.stats.omission import told_with_waits


def told_curves(runs: Iterable[Run], context: SessionContext, course: Course) -> tuple[RunCurve, ...]:
    """Return the curves of ``runs``, each with the latencies of its result (:func:`runs_with_waits`). A run without a
    curve is left out."""
    waits = runs_with_waits(runs := tuple(runs), context.runs.every(), context.session, course)
    curves = (context.runs.curve(run, with_waits=run.id in waits) for run in runs)
    return tuple(curve for curve in curves if curve is not None)


def runs_with_waits(runs: Iterable[Run], every: Iterable[Run], session: Session, course: Course | None) -> set[str]:
    """Return the ids of the runs in ``runs`` whose results have the waits, or latencies from the due time.

    A run of a chapter has the waits if one of the chapter's runs needs them, as in the chapter's comparison. A run of a
    proof has none, as the verdict. Any other run has them if it needs them itself. ``every``: all runs of the session.
    ``course``: the course whose chapters may judge by the due time; None for none.
    """
    known = {run.id: run for run in every}
    by_due = {key_of(course.id, one.id) for one in course.chapters if by_due_time(one.shows)} if course else set()
    beside, due = dict[str, tuple[Run, ...]](), set[str]()
    for key, progress in session.chapters.items():
        for slots in (progress.runs, progress.other_runs):
            made = tuple(known[ident] for slot in (*SLOTS, TREATED) if (ident := slots.get(slot)) in known)
            beside |= dict.fromkeys((run.id for run in made), made)
            due |= {run.id for run in made if key in by_due}

    def told(run: Run) -> bool:
        together = [KnownRun(one) for one in beside.get(run.id, (run,))]
        return told_with_waits(together, wanted=run.id in due)

    return {run.id for run in runs if run.proof is None and told(run)}
