"""The hunt line by line: hide a noise, see who took the time, name it or give up."""

from __future__ import annotations

import dataclasses

from jitter_workshop.errors import UsageError
from jitter_workshop.flow.hunt import Finding, Hunt
from jitter_workshop.flow.walk import Walk
from jitter_workshop.flow.workshop import Workshop
from jitter_workshop.model.course import StepName
from jitter_workshop.model.text import clean
from jitter_workshop.report.explained import render
from jitter_workshop.report.terminal import Style
from jitter_workshop.tui import hunt_words as words
from jitter_workshop.tui.plain_talk import Talk

_WORST = 5
"""How many of the worst stalls are listed: who took the time is to stay on the screen."""

HELP = (
    ("start", "hide a noise, which is yours to name"),
    ("v", "who took the time of this chapter's newest run"),
    ("name", "name the hidden noise: name KIND"),
    ("give up", "be told which it was"),
)


def to_hide(workshop: Workshop, walk: Walk, step: StepName) -> bool:
    """Is a noise to be hidden before a step is measured?"""
    return walk.hunts and step == "again" and not workshop.hiding


def menu(workshop: Workshop, walk: Walk) -> str:
    """What can be typed in a hunt, in front of help and quit; "" elsewhere."""
    if not walk.hunts:
        return ""
    shown = "v causes · " if walk.run_in("measure") is not None else ""
    return shown + ("name KIND · give up · " if words.unanswered(workshop.hunt) else "start · ")


def heard(workshop: Workshop, walk: Walk, talk: Talk, answer: str) -> bool:
    """Do what was typed, where it belongs to a hunt; False where it does not."""
    word, _, rest = answer.partition(" ")
    if not walk.hunts:
        return False
    if answer == "start":
        start(workshop, walk, talk)
    elif answer == "v":
        _causes(workshop, walk, talk)
    elif word == "name":
        hunt = _going_on(workshop)
        _tell(workshop.name_noise(rest.strip().lower()), hunt, talk)
    elif answer == "give up":
        hunt = _going_on(workshop)
        _tell(workshop.give_up(), hunt, talk)
    else:
        return False
    return True


def start(workshop: Workshop, walk: Walk, talk: Talk) -> bool:
    """Say what would be hidden, ask, and hide it. Raises HostError."""
    if workshop.hiding:
        talk.tell("A hidden noise runs already: name it, or give up.")
        return False
    suspects = workshop.suspects(walk.chapter.id)
    talk.say("")
    talk.tell(words.asked(suspects))
    widest = max((len(suspect.id) for suspect in suspects), default=0)
    for suspect in suspects:
        talk.tell(clean(suspect.title, 60), f"  {suspect.id:<{widest}}  ", " " * (widest + 4))
    talk.tell(f"{words.BOUNDS} {words.YOURS}")
    if talk.ask("Enter hides one of them · anything else does not"):
        talk.tell("Nothing is hidden.")
        return False
    talk.tell(words.begun(workshop.begin_hunt(walk.chapter.id)))
    return True


def tell_standing(workshop: Workshop, walk: Walk, talk: Talk) -> None:
    """Whether a hidden noise runs, at every page of its chapter."""
    if walk.hunts and (said := words.standing(workshop.hunt)):
        talk.tell(f"! {said}", "", "  ")


def _going_on(workshop: Workshop) -> Hunt:
    hunt = workshop.hunt
    if hunt is None or not words.unanswered(hunt):
        raise UsageError("nothing is hidden now", "start hides a noise")
    return hunt


def _tell(finding: Finding, hunt: Hunt, talk: Talk) -> None:
    talk.tell(words.verdict(finding, hunt))
    for heading, sentence in words.reasons(finding, hunt):
        talk.tell(f"{heading}: {sentence}" if heading else sentence, "  ", "  ")


def _causes(workshop: Workshop, walk: Walk, talk: Talk) -> None:
    run = walk.run_in("again") or walk.run_in("measure")
    if run is None:
        talk.tell("Measure first: without a run there is nothing to explain.")
    elif not workshop.traced(run):
        talk.tell(clean(run.notes.get("evidence", "this run has no trace"), 300))
    else:
        report = workshop.causes(run)
        few = report.worst[:_WORST]
        short = dataclasses.replace(report, worst=few)  # type: ignore[arg-type]
        talk.say("", *render(short, Style(talk.width), run.label).splitlines(), "")
