"""Tell which changes were applied, restored and left alone, and which are applied now."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from jitter_workshop.errors import HeldError, WorkshopError
from jitter_workshop.model.change import Applied, ApplyResult, RestoreResult
from jitter_workshop.model.text import (
    ID,
    LABEL,
    MESSAGE,
    MOST_NAMES,
    PARAGRAPH,
    PATH,
    SENTENCE,
    WORD,
    called,
    clean,
    cleaned_sentence,
    fell_away,
    many,
    tally,
)
from jitter_workshop.model.walk import ApplyView, Fact
from jitter_workshop.presenter.host.plan import by_others, shown_value, value_told
from jitter_workshop.presenter.text.lines import Lines, local_time, small_title, wrap
from jitter_workshop.presenter.text.styled import Text

if TYPE_CHECKING:
    from jitter_workshop.flow.chapters.workshop import Workshop
    from jitter_workshop.tuning.journal import AppliedBy, Entry

_REBOOT = "Some of the changes take effect at the next boot."

NOTHING_APPLIED = "No setting of this host is changed by this tool."
NOTHING_OF_CHAPTER = "No setting of this chapter is applied on this host."
_WAIT = (
    "Only one program at a time may change this host, so wait until that one is finished. Then press b and Enter to "
    "see the plan again. Enter alone goes on without this change: the second run then measures this host as it is."
)
RESTORED_ON_LEAVING = "The old values are restored when you leave the workshop"
RESTORED_MEANWHILE = "The old values have been restored: this workshop was suspended for too long, or the agent ended."
RESTORES = "'jitter-workshop restore' restores the old values"
GONE_ALREADY = "The changes had been restored already."


def list_ids(tunables: Iterable[str]) -> str:
    """Return the ids as a list in words, without repetitions. More than six ids are cut to six, followed by the number
    of the others."""
    words = list(dict.fromkeys(clean(name, ID) for name in tunables))
    more = len(words) - MOST_NAMES
    return ", ".join(words[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def with_values(standing: Iterable[Mapping[str, str]]) -> str:
    """Return tunables with their values, such as ``governor=performance, thp``."""
    words = (f"{one['id']}={one['value']}" if one.get("value") else one["id"] for one in standing)
    return ", ".join(clean(word) for word in words)


def count_of_changes(tunables: Sequence[str], of: int = 0) -> str:
    """Return a count of tunables and writes, such as ``2 settings, 22 writes (governor, thp)``. ``tunables``: for each
    write, the id of the tunable that the write belongs to. ``of``: as in :func:`tally`.
    """
    return f"{tally(tunables, of)} ({list_ids(tunables)})"


def root_words(workshop: Workshop) -> str:
    """Return the words ``as root`` for a key that changes settings. If sudo may ask for a password first, the words say
    so."""
    asks = workshop.context.agent_connection.rights == "sudo"
    return "as root (sudo may ask for your password first)" if asks else "as root"


# -- applied -----------------------------------------------------------------------------------------------------------


def applied_said(result: ApplyResult) -> list[str]:
    """Return sentences on the result of an apply. Each sentence tells one fact, such as a refused write."""
    made = [one.tunable for one in result.applied]
    said = [f"Applied: {count_of_changes(made, result.shown)}." if made else "Nothing was applied."]
    said += [fell_away(result.ended, result.changed)] if result.ended or result.changed else []
    for one in result.refused:
        where = f" {clean(one.path, PATH)}" if one.path else ""
        said.append(f"Refused: {clean(one.tunable, ID)}{where}: {clean(one.reason, SENTENCE)}.")
    return said + ([_REBOOT] if result.needs_reboot else [])


def applied(result: ApplyResult, differently: Sequence[Applied], width: int, held: bool = False) -> Lines:
    """Return the result of an apply. ``differently``: the writes whose file had a value other than the written one when
    it was read back. ``held``: True if the old values are restored at the end of the workshop; the lines then say
    so."""
    lines = _result(applied_said(result), width, "good" if result.applied else "bold")
    if differently:
        lines += [Text(), small_title("NOT THE VALUE THAT WAS WRITTEN")]
    for one in differently:
        wrote, found = shown_value(one.after), shown_value(one.read_back)
        lines += wrap(f"{clean(one.path, PATH)}: {wrote} was written, but {found} was read back", width, "  ", "    ")
    if result.applied:
        lines += [Text(), *wrap(f"{RESTORED_ON_LEAVING if held else RESTORES}.", width)]
    return lines


def applied_step_lines(view: ApplyView, checks: Sequence[Fact], width: int) -> Lines:
    """Return the result of a chapter's apply and the host's values now. ``checks``: the chapter's tunables, read
    again."""
    sign, colour = ("✓", "good") if view.settled and not view.refused else ("▸", "accent")
    lines = [small_title("RESULT"), *wrap(clean(view.text, PARAGRAPH), width, f"{sign} ", style=f"bold {colour}")]
    # No part of the host refused a write that the learner has not typed.
    lines += [Text(), small_title("NOT MADE AS PLANNED" if view.by_hand else "REFUSED")] if view.refused else []
    for where, reason in view.refused:
        lines += wrap(Text.assemble(f"{clean(where, PATH)}: ", (clean(reason, SENTENCE), "dim")), width, " ✗ ")
    if not checks:
        return lines
    from jitter_workshop.presenter.host.status import fact_lines  # which the first screen does not need

    return [*lines, Text(), *fact_lines(checks, width, "READ AGAIN ON THIS HOST")]


def not_applied(error: WorkshopError, words: Sequence[str], width: int, held: Iterable[str] = ()) -> Lines:
    """Return the lines for an apply that failed: the reason, and what the learner can do. ``held``: the ids of the
    tunables that other programs have applied. If another program holds the host, the lines name them and say to
    wait."""
    lines = [small_title("NOT APPLIED"), *wrap(cleaned_sentence(error.message), width)]
    if error.advice and "plan --sh" not in error.advice:
        lines += wrap(cleaned_sentence(error.advice), width, "→ ")
    if isinstance(error, HeldError):
        applied_now = f"Applied by others now: {named}." if (named := list_ids(held)) else ""
        return [*lines, *wrap(applied_now, width), Text(), *wrap(_WAIT, width)]
    tail = (
        "Press Enter to go on without this change: the second run then measures this host as it is. To come back "
        "here, press b and then Enter."
    )
    return [*lines, Text(), *by_others(words, width), Text(), *wrap(tail, width)]


# -- restored ----------------------------------------------------------------------------------------------------------


def restored_said(result: RestoreResult, of: int = 0) -> list[str]:
    """Return sentences on what was restored and what was left alone. A last sentence says if a reboot is necessary.
    Return [] if there is nothing to say. ``of``: the number of our writes that were in effect; 0 if not known."""
    said = [f"Restored: {count_of_changes([one.tunable for one in result.restored], of)}."] if result.restored else []
    for one in result.left_alone:
        found = f" (the value is now {shown_value(one.found, LABEL)})" if one.found is not None else ""
        said.append(f"Left alone: {clean(one.path, PATH)}: {clean(one.reason, SENTENCE)}{found}.")
    return said + ([_REBOOT] if result.needs_reboot else [])


def came_back(result: RestoreResult, before: int = 0, after: int = 0) -> str:
    """Return the result of a restore as one paragraph. ``before``, ``after``: the number of our writes in effect before
    and after the restore; 0 if not known. If ``before`` is known, the text also tells how many writes needed no
    restore."""
    gone = [GONE_ALREADY] if result.needs_reboot and not result.restored and not result.left_alone else []
    said = [*gone, *restored_said(result, max(before - after, 0))]
    rest = before - after - len(result.restored) - len(result.left_alone)
    if result.restored and rest > 0:
        needs = "needs" if rest == 1 else "need"
        said.append(f"{many(rest, 'write')} {needs} no restore: the task has ended, or the old value is back already.")
    return " ".join(said) or "There was nothing to restore."


def restored_lines(result: RestoreResult, width: int) -> Lines:
    """Return the sentences of :func:`restored_said` as lines, [] if there are none."""
    return [line for said in restored_said(result) for line in wrap(said, width, "", "  ")]


def restore_result(result: RestoreResult, width: int) -> Lines:
    """Return the result of a restore: sentences, then each restored setting with its values."""
    removed = result.trace_instances_removed
    if not (result.restored or result.left_alone or removed or result.needs_reboot):
        return wrap(f"Nothing to restore: {NOTHING_APPLIED[:1].lower()}{NOTHING_APPLIED[1:]}", width)
    said = restored_said(result)
    if result.needs_reboot and not result.restored and not result.left_alone:
        said.insert(0, GONE_ALREADY)
    lines = _result(said[:1] if result.restored else said, width, "good" if result.restored else "bold")
    for one in result.restored:
        values = f"{shown_value(one.from_)} → {shown_value(one.to)}"
        lines += wrap(f"{clean(one.path, PATH)}: {values}", width, "  ", "    ")
    if removed:
        lines += [*wrap(f"Removed: {_left_over(removed)}.", width, style="good"), *_items(removed, width)]
    return lines + _result(said[1:] if result.restored else [], width, "accent")


def farewell(workshop: Workshop) -> str:
    """Restore the changes that last only as long as the workshop, and close the connection to root's agent. Return the
    lines for a plain terminal: what was restored, and what is still applied."""
    held, before = workshop.context.agent_connection.holding, len(workshop.written())
    result = workshop.context.agent_connection.close()
    after = workshop.written()
    standing = applied_now_text(after)
    lines = []
    if result.restored or result.left_alone:
        lines.append(came_back(result, before, len(after)))
    elif held and standing:
        lines.append("Some changes may not have been restored.")
    elif held:
        # The agent restores a lease by itself if this process stood still for too long.
        lines.append(GONE_ALREADY)
    lines += [f"{standing}. 'jitter-workshop restore' restores them."] if standing else []
    return "".join(f"{line}\n" for line in lines)


# -- applied now -------------------------------------------------------------------------------------------------------


def applied_now_text(written: Sequence[str]) -> str:
    """Return a text such as ``Applied now: 2 settings, 22 writes (governor, thp)``; "" if ``written`` is empty.
    ``written``: one entry for each write, the id of the tunable that the write changed."""
    return f"Applied now: {count_of_changes(written)}" if written else ""


def applied_told(who: AppliedBy, other: str = "another workshop") -> str:
    """Return when a tunable was applied, and by which program. ``other``: the words for that program if it still runs.
    An example is ``applied 19:01 by another workshop (pid 15852)``."""
    moment = local_time(who.time)
    when = f"applied {moment:%H:%M}" if moment is not None else "applied"
    if who.running:
        return f"{when} by {other} (pid {who.pid})"
    return f"{when} by a program that has ended since" if who.pid is not None else when


def of_others_said(others: Mapping[str, AppliedBy]) -> list[str]:
    """Return sentences on tunables that other programs have applied. Each sentence names the tunables of one apply, its
    time and its program."""
    together: dict[str, list[str]] = {}
    for ident, who in others.items():
        together.setdefault(applied_told(who), []).append(ident)
    return [f"Not yours: {list_ids(idents)}, {told}." for told, idents in together.items()]


RESTORE_OTHERS = "Restore what you did not apply?"
"""The question before settings that other programs have applied are restored."""
OTHERS_MAY_MEASURE = "Another workshop may be measuring now and may need these settings."
"""The warning before a key restores settings that another workshop has applied."""


def others_warned(others: Mapping[str, AppliedBy], idents: Container[str]) -> list[str]:
    """Return the sentences to show before these tunables are restored: which of them other programs have applied, and
    the warning. Return [] if other programs have applied none of them. ``others``: all tunables that other programs
    have applied."""
    found = {ident: who for ident, who in others.items() if ident in idents}
    return [*of_others_said(found), OTHERS_MAY_MEASURE] if found else []


def standing_lines(
    entries: Sequence[Entry],
    problems: Sequence[str],
    traces: Sequence[str],
    names: Mapping[str, str],
    by: Mapping[str, AppliedBy],
    width: int,
) -> Lines:
    """Return lines on the settings that ``restore`` would restore. ``problems``: sentences on damaged journals.
    ``traces``: the names of trace instances that a killed measurement left behind. ``names``: for each path of a task's
    setting, the task's name. ``by``: for each tunable, the program that applied it."""
    if not entries and not problems and not traces:
        return wrap(NOTHING_APPLIED, width)
    lines: Lines = []
    if entries or problems:
        lines += wrap(
            f"{applied_now_text([entry.tunable for entry in entries]) or 'Applied now: nothing'}.", width, style="bold"
        )
    tunable = ""
    for entry in entries:
        if entry.tunable != tunable:
            tunable = entry.tunable
            who = f"  {applied_told(by[tunable], 'jitter-workshop')}" if tunable in by else ""
            lines += [Text(), Text.assemble((clean(tunable, ID), "bold cool"), (who, "dim"))]
        sure = "" if entry.state == "written" else "  (perhaps not written)"
        sure = f"  (not restored yet: {entry.owed})" if entry.owed else sure
        values = f"{value_told(entry.before, entry.kind)} → {value_told(entry.after, entry.kind)}"
        of_task = f" of {called(names[entry.path], WORD)}" if entry.path in names else ""
        lines += wrap(f"{clean(entry.path, SENTENCE)}{of_task}: {values}{sure}", width, "  ", "    ")
    if problems:
        lines += [Text(), small_title("DAMAGED"), *_items(problems, width)]
    if traces:
        lines += [Text()] if lines else []
        lines += [*wrap(f"'restore' removes {_left_over(traces)}.", width, style="bold"), *_items(traces, width)]
    return lines


def _left_over(names: Sequence[str]) -> str:
    return f"{many(len(names), 'instance')} of the kernel's trace that a measurement made before it was killed"


def _items(texts: Iterable[str], width: int) -> Lines:
    return [line for text in texts for line in wrap(clean(text, MESSAGE), width, "  ", "    ")]


def _result(said: Sequence[str], width: int, style: str) -> Lines:
    """Return the sentences as paragraphs. The first paragraph has the style ``style``. Sentences on settings that were
    refused or left alone are coloured."""
    loud = ("Refused", "Left alone")
    return [
        line
        for n, one in enumerate(said)
        for line in wrap(one, width, "", "  ", style="accent" if one.startswith(loud) else "" if n else style)
    ]
