"""Show the course from first to last, line by line."""

from __future__ import annotations

from dataclasses import replace

from jitter_workshop.flow.chapters.course_summary import CourseSummary
from jitter_workshop.model.walk import RunCurve
from jitter_workshop.plain.talk import Talk
from jitter_workshop.presenter import summary as words


def tell_summary(summary: CourseSummary, talk: Talk) -> None:
    """Tell the stack of curves, the gain of each step, the changes applied now, the open chapters and checks, and the
    results of the guesses."""
    where = ", on a recording" if summary.recorded else ""
    talk.tell(f"THE COURSE FROM FIRST TO LAST: {summary.done} of {summary.chapters} chapters done{where}")
    talk.say("")
    steps = summary.steps
    if steps:
        shown = words.drawn(steps, len(steps) - 1)
        talk.chart([_numbered(steps[n].shown, n + 1) for n in shown])
        if len(shown) < len(steps):
            talk.tell(f"Drawn: {', '.join(str(n + 1) for n in shown)} of {len(steps)}.")
        talk.say("", *(line for _, line in words.steps(summary, talk.width)), "")
        for number, step in enumerate(steps, 1):
            talk.tell(words.about(step), f"{number}: ", "   ")
    else:
        talk.tell(words.NO_STEPS)
    talk.say("", *words.rest(summary, talk.width))


def _numbered(shown: RunCurve, number: int) -> RunCurve:
    """Return the curve with its number in the table before its label."""
    label = f"{number} {shown.label}"
    return replace(shown, label=label, curve=replace(shown.curve, label=label))
