"""Lay out the causes of a run as rows of a table. The parts of the local timer stand indented below one row."""

from __future__ import annotations

from jitter_workshop.model.evidence import LOCAL_TIMER, NOTHING, Cause, EvidenceReport, is_of_timer
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import ID
from jitter_workshop.report.cause_words import cause_name, cause_words, causes_to_show, is_apart
from jitter_workshop.stats.scale import nice_ns

LOCAL_TIMER_WORDS = "local timer"


@dataclass(frozen=True, slots=True)
class CauseRow:
    """Hold one row. ``part``: True for a part of the local timer, which follows the row of the whole timer. The time
    of such a row is in the time of the whole timer, so a sum must not have both."""

    words: str
    cause: Cause
    part: bool = False


def cause_rows(report: EvidenceReport, limit: int = ID) -> list[CauseRow]:
    """Return the causes as rows, those with the most time first. If the local timer has several causes, one row has
    all of them together, and they follow as its parts. ``limit``: the largest length of a row's words."""
    causes = causes_to_show(report)
    parts = [one for one in causes if is_of_timer(one.kind, one.name)]
    if report.timer is None or len(parts) < 2:
        return [CauseRow(cause_name(one, limit), one) for one in causes]
    whole, rows = report.timer, list[CauseRow]()
    others = [one for one in causes if one not in parts]
    for one in sorted((*others, whole), key=lambda one: -one.total_ns):
        if one is not whole:
            rows.append(CauseRow(cause_name(one, limit), one))
            continue
        rows.append(CauseRow(LOCAL_TIMER_WORDS, whole))
        rows += [CauseRow(_part(part, limit), part, part=True) for part in parts]
    return rows


def _part(cause: Cause, limit: int) -> str:
    """Return the words for a part of the local timer, which stand below the words for the timer."""
    if cause.kind == "around":
        return "gap at its interrupt"
    if cause.kind == "vector" and cause.name == LOCAL_TIMER:
        return "interrupt"
    return cause_words(cause.kind, cause.name, limit)


def sum_of_causes(report: EvidenceReport) -> str:
    """Return a sentence with the time of all stalls, and with its three parts: time of tasks and events, gaps next to
    these, and time without an event."""
    taken: dict[str, int] = {}
    for one in report.causes:
        unknown = one.kind == "no_event" and one.name != NOTHING
        sort = "rest" if unknown else one.kind if one.kind in ("around", "no_event") else "named"
        taken[sort] = taken.get(sort, 0) + one.total_ns
    words = {
        "named": "tasks and events {}",
        "around": "gaps next to these (entry, exit, tracing) {}",
        "no_event": "no event {}",
        "rest": "unknown or asleep {}",
    }
    told = [said.format(nice_ns(taken[sort])) for sort, said in words.items() if taken.get(sort)]
    whole = f"The stalls took {nice_ns(sum(taken.values()))}{', summed over the threads' if is_apart(report) else ''}"
    return f"{whole}: {', '.join(told)}." if len(told) > 1 else f"{whole}."
