"""Show the causes of a chapter's run, line by line."""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType

from jitter_workshop.flow.attribution import Stopped
from jitter_workshop.flow.chapters.walk import ChapterSession
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.model.evidence import EvidenceReport
from jitter_workshop.model.run import Run
from jitter_workshop.model.text import clean
from jitter_workshop.plain.run import run_plainly
from jitter_workshop.plain.talk import Talk
from jitter_workshop.presenter.causes import explained
from jitter_workshop.presenter.lines import LateLine

_WORST = 5
"""The number of worst stalls that are listed; with few of them the causes above stay on the screen."""


def tell_causes(workshop: Workshop, walk: ChapterSession, talk: Talk) -> None:
    """Show the causes of the run that the chapter shows. Where no run has a trace, offer one more run with a trace.
    Raises WorkshopError.
    """
    run = walk.traced_run()
    if run is None:
        further = None if walk.hunts else walk.traced_request()
        if further is None:
            talk.tell("Measure first: without a run there is nothing to explain.")
            return
        talk.tell(
            "No run of this chapter has a trace: its own runs are measured without one, so that they can be compared."
        )
        if talk.ask("Enter measures once more, with a trace · any other key does not"):
            return
        run = run_plainly(workshop, further, talk)
    _tell(workshop, run, talk)


def _tell(workshop: Workshop, run: Run, talk: Talk) -> None:
    if not workshop.traced(run):
        talk.tell(clean(run.notes.get("evidence", "this run has no trace"), 300))
        return
    try:
        with stopped_by_ctrl_c() as progress:
            report = workshop.causes(run, partial(progress, "explaining"))
    except Stopped:
        talk.tell("Stopped: v begins again.")
        return
    if isinstance(report, EvidenceReport):
        report = dataclasses.replace(report, worst=report.worst[:_WORST])
    else:
        report = dataclasses.replace(report, worst=report.worst[:_WORST])
    talk.say("", *explained(report, talk.width, run.label), "")


@contextmanager
def stopped_by_ctrl_c() -> Iterator[Callable[[str, int, int], None]]:
    """While this is open, let Ctrl-C end the work, and not the workshop. Yield a function that shows the work's
    progress (what, done, total), and raises Stopped after Ctrl-C was pressed."""
    pressed: list[int] = []
    late = LateLine()

    def press(signum: int, _: FrameType | None) -> None:
        pressed.append(signum)

    def progress(what: str, done: int, total: int) -> None:
        if pressed:
            raise Stopped("it was stopped")
        late.told(f"{what} (Ctrl-C stops it)", done, total)

    before = signal.signal(signal.SIGINT, press)
    try:
        yield progress
    finally:
        signal.signal(signal.SIGINT, before)
        late.close()
