"""Handle the host's settings line by line: show and apply a plan, show the applied changes, and restore them."""

from __future__ import annotations

from collections.abc import Container

from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.chapters.kept_settings import kept_settings
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.measuring.placement_plan import same_writes
from jitter_workshop.model.change import RestoreResult
from jitter_workshop.model.course import SLOTS
from jitter_workshop.model.text import PARAGRAPH, PATH, SENTENCE, WORD, clean, tally
from jitter_workshop.model.walk import PlanView
from jitter_workshop.plain.class_host import have_turn
from jitter_workshop.plain.talk import Talk
from jitter_workshop.presenter.host import plan as plan_view
from jitter_workshop.presenter.host.changes import (
    GONE_ALREADY,
    NOTHING_APPLIED,
    NOTHING_OF_CHAPTER,
    RESTORE_OTHERS,
    RESTORED_MEANWHILE,
    RESTORED_ON_LEAVING,
    RESTORES,
    applied_said,
    of_others_said,
    others_warned,
    restored_lines,
    root_words,
    with_values,
)
from jitter_workshop.presenter.host.plan import NO_RIGHTS, by_others
from jitter_workshop.presenter.text.lines import Lines, wrap

NOTHING_AGAIN = "This session has no earlier changes to apply again on this host."
REBOOT_NOW = "Leave with q, reboot, and start the workshop again. The chapter goes on here."
NEXT_BOOT = "next-boot"
"""The command for boot parameters of the next boot only, like the option of this name."""

# -- in a chapter -----------------------------------------------------------------------------------------------------


def barred(workshop: Workshop, walk: ChapterWalk) -> bool:
    """Return True if the chapter's changes cannot be written, because the user lacks the rights."""
    return workshop.context.agent_connection.rights == "none" and not walk.host.applied and bool(walk.plan().changes)


def tell_rights(workshop: Workshop, walk: ChapterWalk, talk: Talk) -> None:
    """Print what Enter will do at ``apply``. If this user lacks the rights, print the commands for a user with root's
    rights."""
    if barred(workshop, walk):
        talk.tell(NO_RIGHTS)
        talk.say(*by_others(walk.plan().words or walk.chapter.tunables, talk.width))
    elif walk.plan().changes:
        talk.tell(f"Enter writes this, {root_words(workshop)}.")


def unseen(walk: ChapterWalk, shown: PlanView | None) -> bool:
    """Return True if Enter at ``apply`` would write a plan that the learner has not seen.

    In a chapter that changes tunables, Enter writes exactly the plan that was shown. So the result is True only if no
    plan was shown. In a chapter that changes the placement, the present plan must have the same writes as the shown
    plan. If no plan can be made, the result is False.
    """
    if walk.host.rehearsed or walk.chapter.changes == "nothing":
        return False
    if walk.chapter.changes == "tunables":
        return shown is None
    try:
        return not same_writes(walk.plan(), shown)
    except WorkshopError:
        return False


def earned(walk: ChapterWalk) -> str:
    """Return a remark on the chapter's marks ``setting`` and ``curve``, such as "(curve measured)". If the chapter was
    done on a recorded host, the remark says only this fact."""
    if walk.host.rehearsed:
        return ", on a recording"
    marks = walk.progress.marks
    words = []
    if walk.chapter.program:
        words.append("program observed" if marks.get("curve") else "program not observed")
        words.append("change proven" if marks.get("setting") else "no change proven")
    if walk.chapter.tunables:
        words.append("setting verified" if marks.get("setting") else "setting not verified")
    if walk.chapter.measurements:
        words.append("curve measured" if marks.get("curve") else "curve not measured")
    return f" ({', '.join(words)})" if words else ""


def apply_chapter(workshop: Workshop, walk: ChapterWalk, talk: Talk, shown: PlanView | None) -> bool:
    """Apply the plan ``shown``, and print the result. If the plan cannot be applied, print the commands for a user with
    root's rights. Return False if the learner has to wait for the turn or for a reboot, else True."""
    if walk.host.rehearsed or walk.host.awaits_reboot:
        return True
    if barred(workshop, walk):
        return True
    if not have_turn(workshop, talk):
        return False
    talk.tell("Applying.")
    try:
        view = walk.apply(shown)
    except WorkshopError as error:
        talk.refused(error)
        talk.say(*by_others(walk.plan().words or walk.chapter.tunables, talk.width))
        if walk.sets:
            talk.tell(
                "If you have a root shell, type b first, then hand. You then type the commands into that shell, and "
                "the workshop watches the settings."
            )
        return True
    talk.notices([workshop.context.agent_connection.notice])
    talk.tell(view.text)
    for where, reason in view.refused:
        talk.tell(f"! Refused: {clean(where, PATH)}: {clean(reason, SENTENCE)}", "", "  ")
    if view.applied and not view.needs_reboot:
        talk.tell("To restore the old values before you leave the workshop, type restore.")
    if walk.host.awaits_reboot:
        talk.tell(f"{REBOOT_NOW} Enter goes on without a reboot.")
        return False
    return True


def choose_boots(walk: ChapterWalk, talk: Talk, word: str) -> bool:
    """Choose if boot parameters are set for every boot or for the next boot alone. ``word``: "every" or NEXT_BOOT.
    Return False if this host does not offer the choice, or if an error occurs."""
    way = walk.host.boots.way()
    if way is None or walk.host.awaits_reboot:
        talk.tell("The choice between the next boot and every boot is not possible here.")
        return False
    if word == NEXT_BOOT and way.why_not and not way.root_first:
        talk.tell(f"Boot parameters cannot be set for one boot alone: {clean(way.why_not, PARAGRAPH)}.")
        return False
    try:
        walk.host.boots.choose(once=word == NEXT_BOOT)
    except WorkshopError as error:
        talk.refused(error)
        return False
    return True


def agreed_to_restore(workshop: Workshop, idents: Container[str], talk: Talk) -> bool:
    """Return True if these tunables may be restored. If other programs have applied some of them, tell which, and ask
    the learner first. ``idents``: the ids of the tunables."""
    warned = others_warned(workshop.of_others(), idents)
    if not warned:
        return True
    for said in (*warned, RESTORE_OTHERS):
        talk.tell(said)
    if talk.ask("Enter restores the settings · any other answer changes nothing"):
        talk.tell("Nothing was restored.")
        return False
    return True


def restore_chapter(workshop: Workshop, walk: ChapterWalk, talk: Talk) -> bool:
    """Restore the settings of a chapter; before its first run, those of earlier chapters. Ask first if another program
    has applied some of them. Return False if the learner does not agree, else True."""
    kept = kept_settings(workshop, walk) if walk.current == SLOTS[0] and not walk.host.applied else None
    if kept is not None and walk.measuring.unmeasured(SLOTS[0]):
        if not agreed_to_restore(workshop, kept.to_give_back, talk):
            return False
        talk.say(*restored_lines(workshop.give_back(kept.to_give_back), talk.width))
        return True
    if not walk.chapter.tunables:
        talk.tell("This chapter changes nothing on the host, so there is nothing to restore.")
        return True
    if not agreed_to_restore(workshop, walk.host.ids, talk):
        return False
    talk.say(*restored_lines(walk.restore(), talk.width) or wrap(NOTHING_OF_CHAPTER, talk.width))
    return True


# -- on the path ------------------------------------------------------------------------------------------------------


def tell_changes(workshop: Workshop, talk: Talk) -> tuple[str, ...]:
    """Print which changes are in effect on the host now, and which changes of this session are no longer in effect.
    Return the commands to offer: "restore" for changes in effect, and "again" for changes no longer in effect."""
    commands: list[str] = []
    standing, lost = workshop.context.standing(), workshop.resumable()
    if standing:
        commands.append("restore")
        held = (
            f" {RESTORED_ON_LEAVING}, unless you keep the changes." if workshop.context.agent_connection.holding else ""
        )
        count = tally(workshop.written())
        talk.tell(f"APPLIED NOW: {count} ({with_values(standing)}).{held} Type restore for all of them.", "", "  ")
        for said in of_others_said(workshop.of_others()):
            talk.tell(said, "  ")
    if lost and not standing and workshop.context.agent_connection.holding:
        talk.tell(RESTORED_MEANWHILE)
    if lost:
        commands.append("again")
        words = ", ".join(clean(word) for word in lost)
        talk.tell(
            f"APPLIED BEFORE, but not applied now: {words}. Type 'again' to see one plan that applies all of them.",
            "",
            "  ",
        )
    return tuple(commands)


def restore_everything(workshop: Workshop, talk: Talk) -> None:
    """Restore all settings that this tool has changed on the host. Ask first if another program has applied some of
    them."""
    if not agreed_to_restore(workshop, workshop.of_others(), talk):
        return
    talk.say(*restored_lines(workshop.restore_all(), talk.width) or wrap(NOTHING_APPLIED, talk.width))


def apply_again(workshop: Workshop, talk: Talk) -> None:
    """Show one plan of all settings that this session had applied earlier. Apply the plan if the learner agrees."""
    words = workshop.resumable()
    if not words:
        talk.tell(NOTHING_AGAIN)
        return
    plan = workshop.resume_plan()
    talk.say("", *plan_view.plain_plan_lines(plan, talk.width), "")
    if not plan.changes:
        return
    if talk.ask(f"Enter {plan_view.enter_on_plan(plan)} · n change nothing") != "":
        talk.tell("Nothing was written.")
        return
    try:
        result = workshop.resume(plan)
    except WorkshopError as error:
        talk.refused(error)
        talk.say(*by_others(words, talk.width))
        return
    talk.notices([workshop.context.agent_connection.notice])
    for said in applied_said(result):
        talk.tell(said, "", "  ")
    talk.tell(f"{RESTORED_ON_LEAVING}.")


# -- on leaving -------------------------------------------------------------------------------------------------------


def let_go(workshop: Workshop, talk: Talk, ask: bool) -> None:
    """Restore the changes that last only until the learner leaves the workshop. If ``ask`` is True, first ask whether
    to keep these changes. If the input ends instead of an answer, the changes are restored."""
    agent_connection = workshop.context.agent_connection
    held = agent_connection.holding
    if held and not workshop.context.standing():
        # The agent restores a lease by itself if this process stood still for too long.
        agent_connection.close()
        talk.tell(GONE_ALREADY)
        return
    if held and ask and _kept(talk):
        try:
            agent_connection.keep()
        except WorkshopError as error:
            talk.refused(error)
    talk.say(*_after(agent_connection.close(), agent_connection.trouble, talk.width))
    if standing := workshop.context.standing():
        talk.tell(f"Still applied: {tally(workshop.written())} ({with_values(standing)}). {RESTORES}.", "", "  ")


def closing_lines(workshop: Workshop, width: int) -> Lines:
    """Close the workshop, and return lines about the settings that closing restored. The lines also name settings that
    could not be restored. Return [] if there are no settings of either kind."""
    told = workshop.context.agent_connection.trouble
    result = workshop.close()
    trouble = workshop.context.agent_connection.trouble
    return _after(result, "" if trouble == told else trouble, width)


def _after(result: RestoreResult, trouble: str, width: int) -> Lines:
    lines = restored_lines(result, width)
    if trouble:
        lines += wrap(f"! Not everything is restored: {trouble}. Run 'jitter-workshop restore'.", width, "", "  ")
    return lines


def _kept(talk: Talk) -> bool:
    talk.say("")
    talk.tell("The changes of this workshop are still applied.")
    while True:
        try:
            answer = talk.ask_anything("Enter restores the old values · keep leaves the changes applied")
        except EOFError:
            talk.say("")
            return False
        if answer in ("", "q"):
            return False
        if answer == "keep":
            return True
        talk.tell(f"Unknown answer '{clean(answer, WORD)}'.")
