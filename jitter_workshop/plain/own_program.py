"""Lead line by line through a chapter on the learner's own program. The learner chooses a program, observes it, and
chooses a change to prove."""

from __future__ import annotations

import contextlib

from jitter_workshop.bench.runner import Cancelled
from jitter_workshop.flow.chapters.own_program import SAMPLES, parse_command
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.proving import chapter_proof
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


def _led(walk: ChapterWalk) -> bool:
    """Return True if the chapter is about the learner's program, and a program can be observed here."""
    return walk.chapter.program and not walk.program.why_not


def observes(walk: ChapterWalk) -> bool:
    """Return True if the key Enter starts the observation of the program at the step ``measure``."""
    return _led(walk) and walk.program.work.observed is None


# -- the steps: entries of the menu, each with a separator at the end ("" if there are none), and what is shown -------


def menu_of_choices(walk: ChapterWalk) -> str:
    """Return the entries that choose a program."""
    return f"program 1-{len(SAMPLES)} · command CMD · " if _led(walk) else ""


def menu_of_observation(walk: ChapterWalk) -> str:
    """Return the entry that observes the program once more."""
    return "m observe again · " if _led(walk) and not observes(walk) else ""


def menu_of_changes(walk: ChapterWalk) -> str:
    """Return the entry that chooses the change to prove."""
    return "change NAME · " if _led(walk) else ""


def show_choices(walk: ChapterWalk, talk: Talk) -> None:
    """Print the programs to choose from. Print nothing in chapters that are not about a program."""
    if walk.chapter.program:
        talk.say("", *words.program_choice_lines(walk.program.work, talk.width, "command CMD"), "")


def show_observed(walk: ChapterWalk, talk: Talk) -> None:
    """Print what was observed of the program, and the outcome of the guess. Print nothing if no program can be
    observed."""
    if _led(walk):
        talk.say(*words.seen(walk.program.work, talk.width), "")
        _tell_outcome(walk, talk)


def show_changes(workshop: Workshop, walk: ChapterWalk, talk: Talk) -> None:
    """Print the changes that can be proven, and the newest proof. Print nothing if no program can be observed."""
    if _led(walk):
        talk.say(
            *words.change_choice_lines(walk.program.work, chapter_proof.provable_changes(workshop), talk.width), ""
        )
        talk.say(*words.proven(chapter_proof.newest(workshop, walk), talk.width), "")


def show_lasting(workshop: Workshop, walk: ChapterWalk, talk: Talk) -> None:
    """Print how the proven change is made to last. Print nothing if no program can be observed."""
    if _led(walk):
        proof = chapter_proof.newest(workshop, walk)
        talk.say(*words.lasting(walk.program.work, proof, str(walk.host.hot()), talk.width), "")


def obey_program_command(workshop: Workshop, walk: ChapterWalk, talk: Talk, answer: str) -> bool:
    """Carry out a command about the program. Return False for other answers. Raise WorkshopError if the command
    fails."""
    if not walk.chapter.program:
        return False
    word, _, rest = answer.partition(" ")
    if answer == "m":
        observe_own_program(workshop, walk, talk)
    elif word == "program" and rest.isascii() and rest.isdigit() and 0 < int(rest[:4]) <= len(SAMPLES):
        walk.program.choose(SAMPLES[int(rest) - 1].words)
        show_choices(walk, talk)
    elif word == "command":
        walk.program.choose(parse_command(rest))
        show_choices(walk, talk)
    else:
        return False
    return True


def heard_change(workshop: Workshop, walk: ChapterWalk, talk: Talk, answer: str) -> bool:
    """Choose the change that the proof is to make. Return False for other answers. Raise WorkshopError if the change
    cannot be chosen."""
    word, _, rest = answer.partition(" ")
    if word != "change" or not walk.chapter.program:
        return False
    offered = chapter_proof.provable_changes(workshop)
    if rest not in offered:
        talk.tell(f"'{clean(rest, ID)}' is not among the changes: {', '.join(offered)}.")
        return True
    walk.program.choose_change(rest)
    talk.say(*words.change_choice_lines(walk.program.work, offered, talk.width), "")
    talk.say(*words.proven(chapter_proof.newest(workshop, walk), talk.width), "")
    return True


def observe_own_program(workshop: Workshop, walk: ChapterWalk, talk: Talk) -> None:
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
        talk.say(*program_view.program_report_lines(walk.program.report, talk.width), "")
    _tell_outcome(walk, talk)


def _tell_outcome(walk: ChapterWalk, talk: Talk) -> None:
    outcome = walk.guess.outcome()
    if outcome is None:
        return
    talk.tell(f"{mark(outcome.near)} {outcome.text}", "", "  ")
    for paragraph in outcome.explanation.split("\n\n") if outcome.near is not None else ():
        talk.tell(paragraph, "  ")
    talk.say("")
