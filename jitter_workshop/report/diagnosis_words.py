"""Say in words if the evidence supports a learner's answer to "who took it?". Reports, the screen, the plain walk and
the command line use these words."""

from __future__ import annotations

from jitter_workshop.model.text import clean
from jitter_workshop.report.cause_words import LISTED, cause_words
from jitter_workshop.stats.scale import nice_ns

TASKS, TICK, STEAL = "tasks", "tick", "steal"
"""Kinds of causes that appear only in runs with counters and without a trace."""

NEAR = 0.9
"""An answer is right if its cause took at least this share of the time of the largest cause. Where times mean nothing,
numbers of events are compared instead."""
OWN_SIGN = "*"
"""The sign beside a cause that is, or includes, the load that the chapter made."""
ACTS_SIGN = "↓"
"""The sign beside a cause on which the chapter's change acts."""
NO_EVENT = (
    "Time without an event is not in the list: the hypervisor, the firmware or the memory may have taken it. The trace "
    "cannot tell which."
)
"""The one wording for time without an event. The absence of an event is no cause, so no chapter asks for it."""
WITHOUT_EVENT = "no event, so no named cause"
LACKS_EVENT = "not known: an event is missing"
OF_THEMSELVES = "asleep, or catching up"
"""The words for the stalled times that are no choice, one for each reason:

- WITHOUT_EVENT: the trace is complete, and nothing of this kernel ran.
- LACKS_EVENT: the trace has a gap, so a cause of this kernel is possible.
- OF_THEMSELVES: nothing kept the threads from running.
"""
UNDECIDED_TASKS = "Nothing shows which tasks these were, so this answer is neither right nor wrong."

IN_A_GUEST = "On a guest, each interrupt's time contains the hypervisor's part."
"""The sentence below a list of causes with an interrupt, which a trace of the guest cannot split further."""
LEAST_AROUND = 0.1
"""The least share of an interrupt's time that lies next to its handler and is told."""
UNEVEN = 2
"""The least factor between the mean and the median of a cause's times at which both are told."""
_FAULT = "page_fault"
INTERRUPTS = frozenset({"timer", "irq", "vector"})
"""Kinds of causes that are interrupts."""

_LABELS = {
    "timer": "local timer (tick and other timers)",
    "migration": "moves to another CPU",
    "page_fault": "page faults of our own threads",
    "no_event": "no event (hypervisor, firmware, memory)",
    TASKS: "other tasks on our CPU",
    TICK: "local timer (tick and other timers)",
    STEAL: "the hypervisor (steal)",
}


def label(kind: str, name: str) -> str:
    """Return a cause in words, for the list from which a learner chooses. Causes that a learner would not distinguish
    get the same words.
    """
    return _LABELS.get(kind) or cause_words(kind, name, LISTED)


def around_told(cause: str, around_ns: int, total_ns: int, guest: bool) -> str:
    """Return a sentence on the part of an interrupt's time that lies next to its handler. ``cause``: its name.
    ``guest``: True if the run was made on a guest."""
    parts = "entry, exit, tracing and the hypervisor" if guest else "entry, exit and tracing"
    told = f"{nice_ns(around_ns)} of {nice_ns(total_ns)}"
    return f"{cause.partition(' (')[0].capitalize()}: {told} lie just before and after the interrupt ({parts})."


def uneven_told(kind: str, cause: str, typical_ns: int, mean_ns: float) -> str:
    """Return sentences on a cause whose mean time in a stall is far above its median; "" if it is not. ``kind``,
    ``cause``: its kind and its name. ``typical_ns``: the median, 0 if it is not known."""
    if not 0 < UNEVEN * typical_ns <= mean_ns:
        return ""
    until = " The trace shows no end of a page fault, so its time lasts until the next event." if kind == _FAULT else ""
    name = cause.partition(" of ")[0] if kind == _FAULT else cause
    half = f"at most {nice_ns(typical_ns)} in half of the stalls"
    return f"{name}: {half}, {nice_ns(round(mean_ns))} on average, because a few are long.{until}"


def can_end(ended_ns: int, stalled_ns: int, seconds: float = 0.0, threads: int = 1) -> str:
    """Return a sentence on the part of the stalled time that the chapter's change can end.

    ``ended_ns``: the time of the causes on which the change acts. ``stalled_ns``: the time of all stalls. ``seconds``:
    the measured time; with 0, the times are those of the whole run. ``threads``: the number of threads whose times are
    added up.
    """
    parts, per = (ended_ns, stalled_ns), ""
    if seconds:
        parts, per = (round(ended_ns / seconds), round(stalled_ns / seconds)), " a second"
    summed = f", summed over {threads} threads" if threads > 1 else ""
    return f"This change can end {nice_ns(parts[0])} of the {nice_ns(parts[1])} of stalls{per}{summed}."


def acts_on(cause: str, acts: bool) -> str:
    """Return a sentence that says if the chapter's change acts on a cause. ``cause``: the cause's name, which the
    sentence repeats if several causes may be named before it; "" if the sentence before names only this cause.
    ``acts``: True if the change acts on it."""
    on = f"this cause: {cause}" if cause else "it"
    whose = "The change of this chapter" if cause else "This chapter's change"
    return f"{whose} {'acts' if acts else 'does not act'} on {on}."


def took(chosen: str, chosen_ns: int | None, share: float) -> str:
    """Return a sentence with the time of the learner's answer; "" if the time is not known.

    ``chosen``: the name of the answer. ``chosen_ns``: its time. ``share``: its share (0..1) of all stalled time.
    """
    return f"{chosen} took {nice_ns(chosen_ns)}, {_part(share)} of the time of all stalls." if chosen_ns else ""


def _part(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.01 else "less than 1 %"


def took_most(
    most: str,
    most_ns: int,
    share: float,
    other: str = "",
    other_ns: int | None = None,
    threads: int = 1,
    right: bool | None = None,
    *,
    of_these: bool = False,
) -> str:
    """Return a sentence that names the cause with most of the stalled time.

    ``most``: the cause's name. ``most_ns``: its time. ``share``: its share (0..1) of all stalled time. ``other``: the
    learner's answer, if it is another cause, otherwise "". ``other_ns``: the time of ``other``; None if not known.
    ``threads``: the number of threads whose times are added up. The sentence names it, if there are several.
    ``right``: True if ``other`` is a right answer. If it took less time than a near one, the sentence says why.
    ``of_these``: True if the time without an event is longer still, so that the cause is only the largest of the list.
    """
    summed = f" summed over {threads} threads" if threads > 1 else ""
    of = " of these causes" if of_these else ""
    said = f"{most} took the most time{of}: {nice_ns(most_ns)}{summed}, {_part(share)} of the time of all stalls"
    if other:
        same = "is the same event and " if right and same_event(most_ns, other_ns) else ""
        said += f"; {other} {same}took {nice_ns(other_ns) if other_ns is not None else 'less'}"
    return f"{said}."


def longest_come_from(number: int, cause: str, took_ns: int, total_ns: int) -> str:
    """Return a sentence on the longest stalls, if another cause than the largest took most of their time.

    ``number``: how many stalls these are. ``cause``: the cause that took most of their time. ``took_ns``: the time that
    it took in them. ``total_ns``: the time of these stalls.
    """
    verb = "make the tail, have" if number > 1 else "makes the tail, has"
    return f"The {_longest(number)}, which {verb} another largest cause: {cause}, {_of(took_ns, total_ns)}."


def longest_have_no_event(number: int, took_ns: int, total_ns: int) -> str:
    """Return a sentence on the longest stalls, if time without an event is their largest part. The parameters are those
    of :func:`longest_come_from`."""
    return f"In the {_longest(number)}, {_tail(number)}, the largest part has no event: {_of(took_ns, total_ns)}."


def longest_come_from_it(number: int, took_ns: int, total_ns: int) -> str:
    """Return a sentence on the longest stalls, if the largest cause of all stalls is the largest in them, too. The
    parameters are those of :func:`longest_come_from`."""
    return f"It is also the largest cause in the {_longest(number)}, {_tail(number)}: {_of(took_ns, total_ns)}."


def _longest(number: int) -> str:
    return f"{number} longest stalls" if number > 1 else "longest stall"


def _tail(number: int) -> str:
    return "which make the tail" if number > 1 else "which makes the tail"


def _of(took_ns: int, total_ns: int) -> str:
    return f"{nice_ns(took_ns)} of {nice_ns(total_ns)}"


def same_event(most_ns: int, other_ns: int | None) -> bool:
    """Return True if a right answer took too little time to be right by its time. It is then right because it is the
    same event as the largest cause: a call of another CPU, and the task that this call woke. ``most_ns``, ``other_ns``:
    the times of the largest cause and of the answer."""
    return (other_ns or 0) < NEAR * most_ns


def came_most(most: str, other: str = "") -> str:
    """Return the sentences on ``most``: the cause that came most often on an emulated machine. ``other``: the cause
    that the learner named, if this was another one; otherwise "".
    """
    said = f"{most} came most often{f'; {other} came less often' if other else ''}"
    return f"{said}. The machine was emulated, so the time of each cause is not known."


def undecided_sentence(
    source: str, chosen: str, chosen_ns: int | None, right: bool | None, unknown_ns: int, all_ns: int
) -> str:
    """Return a sentence for an answer that cannot be judged, because the largest cause is not known.

    ``source``: ``trace`` or ``counters``. ``chosen``: the cause that the learner named. ``chosen_ns``: the time of
    ``chosen``; None if not known. ``right``: False if the evidence shows at least that the answer is wrong; otherwise
    None. ``unknown_ns``: the stalled time without a known cause. ``all_ns``: all stalled time.
    """
    rest, whole = nice_ns(unknown_ns), nice_ns(all_ns)
    if source == "trace":
        return f"The trace lacks events: the cause of {rest} of the {whole} is not known, so no answer can be judged."
    if right is False:
        took = nice_ns(chosen_ns) if chosen_ns is not None else "–"
        return f"{clean(chosen)} took {took}; at least {rest} of the {whole} has another cause."
    return (
        f"Counters cannot show which answer is right. For at least {rest} of the {whole}, they count the causes but "
        "do not measure their time."
    )
