"""Lead line by line through a chapter on the learner's own program. The learner chooses a program, observes it, and
chooses a change to prove."""

from __future__ import annotations

import contextlib

from jitter_workshop.bench.runner import Cancelled
from jitter_workshop.flow.chapters.own_program import SAMPLES, parse_command
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.proving import chapter_proof
from jitter_workshop.model.course import StepName
from jitter_workshop.model.text import ID, clean
from jitter_workshop.plain import class_host as of_class
from jitter_workshop.plain.run import stopping
from jitter_workshop.plain.talk import Talk
from jitter_workshop.presenter.course import action_meanings as meanings
from jitter_workshop.presenter.course import own_program as words
from jitter_workshop.presenter.course.action_meanings import beside_a_word
from jitter_workshop.presenter.course.path import mark
from jitter_workshop.presenter.runs import program as program_view

HELP = (
    ("program", f"{beside_a_word(meanings.PROGRAMS)}: program 1 to program {len(SAMPLES)}"),
    ("command", f"{beside_a_word(meanings.COMMAND)}: command ./server-test 1000"),
    ("change", "at 'compare': choose the change to prove: change placement"),
)


def observes(walk: ChapterWalk, step: StepName) -> bool:
    """Return True if the key Enter starts the observation of the program at this step."""
    program = walk.program
    return walk.chapter.program and step == "measure" and not program.why_not and program.work.observed is None


def menu(walk: ChapterWalk, step: StepName) -> str:
    """Return the menu's entries for the learner's program, with a separator at the end; "" if there are none."""
    if not walk.chapter.program or walk.program.why_not:
        return ""
    return {
        "look": f"program 1-{len(SAMPLES)} · command CMD · ",
        "measure": "" if observes(walk, step) else "m observe again · ",
        "compare": "change NAME · ",
    }.get(step, "")


def show(workshop: Workshop, walk: ChapterWalk, talk: Talk, step: StepName) -> None:
    """Print what a step shows about the learner's program. Print nothing in chapters that are not about a program."""
    if not walk.chapter.program:
        return
    work = walk.program.work
    if step == "look":
        talk.say("", *words.choices(work, talk.width, "command CMD"), "")
    elif walk.program.why_not:
        return
    elif step == "measure":
        talk.say(*words.seen(work, talk.width), "")
        _tell_outcome(walk, talk)
    elif step == "compare":
        talk.say(*words.changes(work, chapter_proof.changes(workshop), talk.width), "")
        talk.say(*words.proven(chapter_proof.newest(workshop, walk), talk.width), "")
    elif step == "explain":
        proof = chapter_proof.newest(workshop, walk)
        talk.say(*words.lasting(work, proof, str(walk.host.hot()), talk.width), "")


def heard(workshop: Workshop, walk: ChapterWalk, talk: Talk, step: StepName, answer: str) -> bool:
    """Carry out a command about the program. Return False for other answers. Raise WorkshopError if the command
    fails."""
    if not walk.chapter.program:
        return False
    word, _, rest = answer.partition(" ")
    if answer == "m":
        observe(workshop, walk, talk)
    elif word == "program" and rest.isascii() and rest.isdigit() and 0 < int(rest[:4]) <= len(SAMPLES):
        walk.program.choose(SAMPLES[int(rest) - 1].words)
        talk.say("", *words.choices(walk.program.work, talk.width, "command CMD"), "")
    elif word == "command":
        walk.program.choose(parse_command(rest))
        talk.say("", *words.choices(walk.program.work, talk.width, "command CMD"), "")
    elif word == "change" and step == "compare":
        offered = chapter_proof.changes(workshop)
        if rest not in offered:
            talk.tell(f"'{clean(rest, ID)}' is not among the changes: {', '.join(offered)}.")
            return True
        walk.program.choose_change(rest)
        talk.say(*words.changes(walk.program.work, offered, talk.width), "")
        talk.say(*words.proven(chapter_proof.newest(workshop, walk), talk.width), "")
    else:
        return False
    return True


def observe(workshop: Workshop, walk: ChapterWalk, talk: Talk) -> None:
    """Observe the learner's program, and tell how its threads spent their time. Ctrl-C ends the observation. Raise
    WorkshopError if the program cannot be observed."""
    if walk.program.why_not:
        talk.tell(f"Nothing is observed: {walk.program.why_not}.")
        return
    if not of_class.have_turn(workshop, talk):
        return
    talk.tell(f"{words.OBSERVING} {words.RUNS}")
    with stopping() as token, contextlib.closing(workshop.context.agent_connection.beside()) as agent:

        def told(rest_s: float) -> None:
            if token.reason is not None:
                raise Cancelled(token.reason)

        walk.program.observe(agent, told)
    talk.say("", *words.spoken(walk.program.work, talk.width), "")
    if walk.program.report is not None:
        talk.say(*program_view.explained(walk.program.report, talk.width), "")
    _tell_outcome(walk, talk)


def _tell_outcome(walk: ChapterWalk, talk: Talk) -> None:
    outcome = walk.guess.outcome()
    if outcome is None:
        return
    talk.tell(f"{mark(outcome.near)} {outcome.text}", "", "  ")
    for paragraph in outcome.explanation.split("\n\n") if outcome.near is not None else ():
        talk.tell(paragraph, "  ")
    talk.say("")
