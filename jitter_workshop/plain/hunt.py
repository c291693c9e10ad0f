"""Run a hunt line by line. The workshop hides a noise. The learner sees what took the time, and then names the noise or
gives up."""

from __future__ import annotations

from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.flow.chapters import cure
from jitter_workshop.flow.chapters.hunt import NO_NOISE_HIDDEN
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.model.course import TREATED
from jitter_workshop.model.text import LABEL, WORD, clean
from jitter_workshop.plain.class_host import have_turn
from jitter_workshop.plain.run import run_plainly, tell_causes
from jitter_workshop.plain.settings import agreed_to_restore
from jitter_workshop.plain.talk import Talk
from jitter_workshop.presenter.course import action_meanings as meanings
from jitter_workshop.presenter.course import chapter as chapter_view
from jitter_workshop.presenter.course import hunt as words
from jitter_workshop.presenter.course.action_meanings import beside_a_word
from jitter_workshop.presenter.host.changes import others_warned, restored_lines
from jitter_workshop.presenter.host.status import plain_status_lines
from jitter_workshop.presenter.text.lines import wrap

HELP = (
    ("start", beside_a_word(meanings.HUNT)),
    ("name", f"{beside_a_word(meanings.NAME)}: name KIND"),
    ("give up", beside_a_word(meanings.GIVE_UP)),
    ("enough", beside_a_word(meanings.ENOUGH)),
    ("r, cure", f"list the cures, or {beside_a_word(meanings.CURE)}"),
    ("status", beside_a_word(meanings.STATUS)),
)


def to_hide(workshop: Workshop, walk: ChapterWalk) -> bool:
    """Return True if a noise has to be hidden before the step ``again`` is measured."""
    return walk.hunts and not workshop.hunts.hiding


def hunt_menu(workshop: Workshop, walk: ChapterWalk, offers_causes: bool) -> str:
    """Return the menu's entries for causes and for the hunt, with a separator at the end; "" if there are none.
    ``offers_causes``: True to offer the causes even before the first run."""
    shown = "v causes · " if walk.runs.run_in("measure") is not None else ""
    if not walk.hunts:
        return shown if offers_causes and not walk.host.rehearsed else ""
    hunt = workshop.hunts.hunt
    shown += "r cure · " if words.in_hunt(hunt) and walk.runs.run_in("again") is not None else ""
    if words.unanswered(hunt):
        return f"{shown}name KIND · give up · "
    return f"{shown}{'enough · ' if words.named(hunt) else ''}start · "


def obey_hunt_command(workshop: Workshop, walk: ChapterWalk, talk: Talk, answer: str) -> bool:
    """Carry out a command about causes or the hunt. Return False for other answers. Raise WorkshopError if the command
    fails."""
    word, _, rest = answer.partition(" ")
    if answer == "v" and not walk.host.rehearsed:
        tell_causes(workshop, walk, talk)
        return True
    if not walk.hunts:
        return False
    if answer == "start":
        if offer_hunt(workshop, walk, talk):
            walk.go("again")
    elif word == "name" or answer == "give up":
        hunt = workshop.hunts.hunt
        if hunt is None or not words.unanswered(hunt):
            raise UsageError(NO_NOISE_HIDDEN, "start hides a noise")
        found = workshop.hunts.answer(rest.strip().lower()) if word == "name" else workshop.hunts.give_up()
        talk.tell(words.hunt_answer_line(found, hunt))
        for heading, sentence in words.reasons(found, hunt):
            talk.tell(f"{heading}: {sentence}" if heading else sentence, "  ", "  ")
        if words.named(hunt):
            talk.tell(words.hunt_state(hunt, walk.runs.run_in("again") is not None))
    elif answer == "enough":
        workshop.hunts.enough()
        talk.tell(words.ENOUGH)
    elif word in ("cure", "r"):
        _cure(workshop, walk, talk, rest.strip())
    elif answer == "restore" and workshop.hunts.kept_away_by():
        _let_in(workshop, walk, talk)
    elif answer == "status":
        # The path also shows the status, but going there leaves this chapter and ends the noise.
        tell_status(workshop, talk)
    else:
        return False
    return True


def _let_in(workshop: Workshop, walk: ChapterWalk, talk: Talk) -> None:
    """Restore the settings that keep noises off the measured CPU. Ask first if another program has applied them."""
    if not agreed_to_restore(workshop, workshop.hunts.kept_away_by(), talk):
        return
    talk.say(*restored_lines(workshop.let_noises_in(), talk.width))
    # During a hunt, the settings can be the learner's cure, which the quiet run did not have.
    if walk.runs.run_in("measure") is not None and not words.in_hunt(workshop.hunts.hunt):
        talk.tell(words.RESTORED_FOR_HUNT)


def tell_status(workshop: Workshop, talk: Talk) -> None:
    """Show the checks of this host that could be better, each with the number of its chapter."""
    numbers = {entry.chapter_id: entry.number for entry in workshop.path()}
    talk.say("", *plain_status_lines(workshop.findings(), numbers, talk.width), "")


def tell_cured(walk: ChapterWalk, talk: Talk) -> bool:
    """Show if the learner's cure (a change against the hidden noise) helped, and return True. Return False if there is
    no run with a cure to compare."""
    view = cure.view(walk) if walk.hunts else None
    if view is not None:
        talk.chart(walk.runs.curves())
        talk.say(*wrap(words.cure_told(view), talk.width), "", *chapter_view.cured(view, talk.width), "")
    return view is not None


def _cure(workshop: Workshop, walk: ChapterWalk, talk: Talk, where: str) -> None:
    beside = walk.runs.run_in("again")
    if beside is None or not words.in_hunt(workshop.hunts.hunt):
        talk.tell(words.no_cure("type start", "measure"))
        return
    others = workshop.hunts.other_cpus(beside)
    if not where:
        talk.tell(words.ELSEWHERE)
        for command, what in words.cures(others[0] if others else None):
            talk.say(f"    {command}")
            talk.tell(what, "      ", "      ")
        talk.tell(words.offer_of_new_run(None), "  cure here    ", " " * 15)
        for cpu in others[:1]:
            talk.tell(words.offer_of_new_run(cpu), f"  cure {cpu:<8}", " " * 15)
        return
    if where != "here" and not (where.isascii() and where.isdigit() and int(where[:5]) in others):
        raise UsageError(
            f"'{clean(where, WORD)}' is not the number of a CPU", "type 'cure here', or 'cure' and the number of a CPU"
        )
    request = cure.request(walk, None if where == "here" else int(where[:5]))
    run = run_plainly(workshop, request, talk)
    walk.record(TREATED, run)
    if run.complete:
        workshop.hunts.weigh(beside, run)
        if walk.current == "compare":
            tell_cured(walk, talk)
        else:
            walk.go("compare")


def offer_hunt(workshop: Workshop, walk: ChapterWalk, talk: Talk) -> bool:
    """Offer to hide a noise, and hide one if the learner agrees. Return True if a noise was hidden. Raise HostError if
    none can be hidden."""
    if workshop.hunts.hiding and words.unanswered(workshop.hunts.hunt):
        talk.tell("A hidden noise runs already: name it, or give up.")
        return False
    if walk.runs.run_in("measure") is None:
        talk.tell(words.FIRST_QUIET)
        return False
    try:
        suspects = workshop.hunts.suspects(walk)
    except HostError:
        if not (said := _kept_away(workshop)):
            raise
        talk.tell(said)
        return False
    talk.say("")
    talk.tell(words.hunt_question(suspects))
    widest = max((len(suspect.id) for suspect in suspects), default=0)
    for suspect in suspects:
        talk.tell(clean(suspect.title, LABEL), f"  {suspect.id:<{widest}}  ", " " * (widest + 4))
    talk.tell(f"{words.BOUNDS} {words.YOURS}")
    if talk.ask("Enter hides one noise · any other answer hides none"):
        talk.tell("Nothing is hidden.")
        return False
    if not have_turn(workshop, talk):
        return False
    talk.tell(words.begun(workshop.hunts.begin(walk)))
    return True


def measures_quietly(workshop: Workshop, walk: ChapterWalk, talk: Talk) -> bool:
    """Return True if the first run of a chapter can be made now. In a hunt, this is the quiet run. If settings keep
    noises away, ask the learner first, and restore them if the learner agrees. Return False if the learner changes
    nothing, or if the settings could not be restored."""
    kept = () if words.in_hunt(workshop.hunts.hunt) else workshop.hunts.kept_away_by()
    if not walk.hunts or not kept:
        return True
    for said in (words.quiet_run_without(kept), *others_warned(workshop.of_others(), kept)):
        talk.tell(said)
    answer = talk.ask(f"{words.MEASURES_WITHOUT} · any other answer changes nothing")
    if not answer:
        talk.say(*restored_lines(workshop.let_noises_in(), talk.width))
        return not workshop.hunts.kept_away_by()
    if answer != "k":
        talk.tell("Nothing was measured.")
    return answer == "k"


def tell_hidden_noise(workshop: Workshop, walk: ChapterWalk, talk: Talk, remembers: bool) -> None:
    """Print that a hidden noise runs or has just ended. If there is no hidden noise, print what keeps the next one
    away. If ``remembers`` is True, print before this how earlier hunts ended."""
    if not walk.hunts:
        return
    standing = words.hunt_state(workshop.hunts.hunt, walk.runs.run_in("again") is not None)
    if not standing and remembers and (before := words.past_hunts(walk.progress.hunts, 3)):
        talk.tell(before)
    if said := standing or _kept_away(workshop):
        talk.tell(f"! {said}", "", "  ")


def _kept_away(workshop: Workshop) -> str:
    """Return the sentence on the applied tunables that would keep the next hidden noise away; "" if there are none, or
    during a hunt."""
    if words.in_hunt(workshop.hunts.hunt):
        return ""
    return words.kept_away(workshop.hunts.kept_away_by(), "type restore")


def tell_ended(workshop: Workshop, walk: ChapterWalk, talk: Talk, told: bool) -> bool:
    """Return True if the hidden noise has ended, for example from another terminal. Print a sentence on the noise's end
    if ``told`` is False. ``told``: True if the learner already knows of the end."""
    hunt = workshop.hunts.hunt if walk.hunts else None
    ended = hunt is not None and words.in_hunt(hunt) and not hunt.runs
    if ended and not told:
        talk.tell(f"! {words.noise_ended_message(hunt, walk.runs.run_in('again') is not None)}", "", "  ")
    return ended


def end_hunt(workshop: Workshop, talk: Talk) -> None:
    """End a hidden noise, because its chapter ends."""
    if workshop.hunts.hiding and words.unanswered(workshop.hunts.hunt):
        talk.tell(words.LEFT)
    workshop.hunts.end()
