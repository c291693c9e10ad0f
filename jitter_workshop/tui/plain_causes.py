"""Who took the time of a chapter's run, line by line."""

from __future__ import annotations

import dataclasses

from jitter_workshop.flow import traced
from jitter_workshop.flow.walk import Walk
from jitter_workshop.flow.workshop import Workshop
from jitter_workshop.model.evidence import EvidenceReport
from jitter_workshop.model.run import Run
from jitter_workshop.model.text import clean
from jitter_workshop.report.explained import render
from jitter_workshop.report.terminal import Style
from jitter_workshop.tui.focus_words import offered
from jitter_workshop.tui.plain_run import run_plainly
from jitter_workshop.tui.plain_talk import Talk

_WORST = 5
"""How many of the worst stalls are listed: who took the time is to stay on the screen."""


def tell_causes(workshop: Workshop, walk: Walk, talk: Talk) -> None:
    """Of the run that the chapter shows; where none was traced, one more is offered. Raises WorkshopError."""
    run = traced.shown(workshop, walk)
    if run is None:
        further = None if walk.hunts else traced.once_more(walk)
        if further is None:
            talk.tell("Measure first: without a run there is nothing to explain.")
            return
        talk.tell(
            "No run of this chapter was traced: its own runs are not, so that tracing is not what they differ by."
        )
        if talk.ask("Enter measures once more, with a trace · anything else does not"):
            return
        talk.tell("Measuring. Ctrl-C stops the run, not the workshop.")
        run = run_plainly(workshop, further, talk.write, talk.width)
    _tell(workshop, run, talk)


def tell_offer(workshop: Workshop, walk: Walk, talk: Talk) -> None:
    """At the last step: what v shows."""
    talk.tell(offered(walk.chapter.evidence, walk.hunts or traced.shown(workshop, walk) is not None))


def _tell(workshop: Workshop, run: Run, talk: Talk) -> None:
    if not workshop.traced(run):
        talk.tell(clean(run.notes.get("evidence", "this run has no trace"), 300))
        return
    report = workshop.causes(run)
    if isinstance(report, EvidenceReport):
        report = dataclasses.replace(report, worst=report.worst[:_WORST])
    else:
        report = dataclasses.replace(report, worst=report.worst[:_WORST])
    talk.say("", *render(report, Style(talk.width), run.label).splitlines(), "")
