"""Describe the causes of a run's stalls in sentences. Reports, the screen, the plain walk and the command line all show
these sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jitter_workshop.evidence.attribution import AROUND_NS, ARRIVAL_NS
from jitter_workshop.model import evidence as words
from jitter_workshop.model.evidence import Cause, CounterReport, EvidenceReport, InterferingTask
from jitter_workshop.model.host import MARK_NOTE
from jitter_workshop.model.irq_rows import CALLING, RESCHEDULING, WORKING
from jitter_workshop.model.program import ProgramReport
from jitter_workshop.model.spec import KINDS, MEASURED_THREADS
from jitter_workshop.model.text import (
    CELL,
    ID,
    MOST_NAMES,
    MOST_PHRASES,
    REASON,
    SENTENCE,
    USER,
    WORD,
    called,
    clean,
    cleaned_sentence,
    many,
)
from jitter_workshop.stats.scale import nice_ns, nice_number

ITEM = "- "
"""The characters in front of a sentence that is an item of a list."""

SENDER_ONLY, SAME = "sender only", ""
"""The words that a table of causes shows in place of a share of messages.

- SENDER_ONLY: the cause stopped no thread whose messages the share counts. The share counts transit, so messages that
  a stopped sender sent late are not in it.
- SAME: without the cause the stalls would be shorter, but long enough to make the same messages late.
"""
WITHOUT_IT = "without it"
"""The head of the table's column of :func:`without`."""

COUNTERS_ONLY = "counters only, no kernel trace"

_NO_STALL = "There is no stall to explain."
_KINDS = {
    "task": "task {}",
    "irq": "interrupt {}",
    "softirq": "softirq {}",
    "timer": "timer {}",
    "vector": "vector {}",
    "workqueue": "work {}",
    "migration": "move to another CPU ({})",
    "page_fault": "page fault ({})",
    "around": "gap at {}",
}
VECTORS = {
    "local_timer": "local timer (interrupt)",
    "call_function": "function call from other CPUs",
    "call_function_single": "function call from another CPU",
    "reschedule": "another CPU asks to reschedule",
    "sched_ttwu_pending": "another CPU wakes a task here",
    "rps_trigger_softirq": "another CPU passes packets on (RPS)",
    "irq_work": "the kernel's own interrupt (irq_work)",
    CALLING: "function call from other CPUs",
    RESCHEDULING: "another CPU asks to reschedule",
    WORKING: "the kernel's own interrupt (irq_work)",
}
"""Name of an interrupt vector in the kernel (on arm64: the reason of an interrupt between CPUs) → words for it. A gap
around a vector is named by the same words without the brackets."""
_NO_EVENTS = {
    words.NOTHING: "no event",
    words.ASLEEP: "asleep or stopped",
    words.LOST: "not known: events lost",
    words.MISSING: "not known: an event is missing",
    words.NOT_TRACED: "on a CPU not traced",
    words.CATCHING_UP: "catching up afterwards",
}
ANOTHER_TASK = "another task"
"""The name that a recorded run gives to all tasks together that belong neither to the kernel nor to the
measurement."""
_OTHERS = ("other tasks (not named in the recording)", "other tasks")
"""The words for ANOTHER_TASK: where they fit, and where they do not fit."""
_STAND_IN = re.compile(r"task \d{1,6}")
"""Match a name that stands for a task's name in a private report: ``task N``."""
_OUR_OWN = " (our own thread)"
_NO_TASK = {
    words.IDLE: "waking from idle",
    words.THROTTLED: "throttled while the CPU was idle",
    words.MEASURED: "our own threads that share a CPU",
}
"""Names of causes that have the kind ``task`` but are no task → their meanings."""
_ABOUT = {
    "migration": "move to another CPU: the scheduler moved the thread, and its new CPU was free until the thread ran "
    "there. The task in brackets is the one that was running when the scheduler moved the thread. Another task "
    "may have caused the move.",
    "around": (
        f"gap at: a time of at most {nice_ns(AROUND_NS)} next to the named event ({nice_ns(ARRIVAL_NS)} before an "
        "interrupt). It is the event's entry and exit, its tracing and, in a guest, the hypervisor's work."
    ),
    "no_event": "no event: the trace shows nothing in this time, so this time has no named cause.",
}
_NAMED = 2
"""The most tasks that a sentence names."""
_MISSING = (
    "not known: events in the trace contradict each other. A task switch or the end of an event is missing, but the "
    "kernel reports no lost event. This time has no named cause."
)
_NOT_OURS = (
    "another workshop?: this thread has the name of a measured thread, but this run did not start it. The thread "
    "probably belongs to another workshop on this host."
)
_WHOSE = (words.NOT_OURS, words.ANOTHER_WORKSHOP, words.THIS_WORKSHOP)
MUCH_UNKNOWN = 0.01
"""Unknown time is shown as a warning if its share of the measured time is larger than this."""
_MOST_OTHERS = 8
_UNBOUND, _BOUND = "unbound kernel workers", "kernel workers of one CPU"
_WORKER = re.compile(r"kworker/(u?)")


BRIEF, LISTED = 24, 48
"""The largest lengths of a cause's words in a row with several other texts, and in a list of causes."""


def cause_words(kind: str, name: str, limit: int = ID, *, measured: bool = True) -> str:
    """Return a cause in words of at most ``limit`` characters: ``softirq NET_RX``, ``waking from idle``, ``no event``.
    ``measured``: True if the cause belongs to a run, not to a user's program. Then, if there is room, the run's
    measured threads are called our own.
    """
    if kind == "no_event":
        return clean(_NO_EVENTS.get(name, f"no event ({name})"), limit)
    if kind == "task" and name in _NO_TASK:
        return clean(_NO_TASK[name], limit)
    if kind == "task" and name == ANOTHER_TASK:
        return next((said for said in _OTHERS if len(said) <= limit), clean(_OTHERS[-1], limit))
    if kind == "task" and _STAND_IN.fullmatch(name):
        return name
    if kind == "vector" and name in VECTORS:
        told = VECTORS[name] if len(VECTORS[name]) <= limit else VECTORS[name].partition(" (")[0]
        if len(told) <= limit:
            return told
    if kind == "around" and name in VECTORS:
        name = VECTORS[name].partition(" (")[0]
    own = _OUR_OWN if measured and kind == "task" and name in MEASURED_THREADS else ""
    said = _KINDS.get(kind, f"{clean(kind, WORD)} {{}}").format(called(name, USER))
    whose = next((mark for mark in _WHOSE if name.endswith(mark)), "") if kind == "task" else ""
    if whose and len(said) > limit:
        # The owner of a task tells more than its name.
        return clean(whose.strip(" ()"), limit)
    return clean(said + (own if len(said) + len(own) <= limit else ""), limit)


def cause_name(one: Cause | InterferingTask, limit: int = ID) -> str:
    """Return a cause in words of about ``limit`` characters. If several threads have the cause's name, the number of
    these threads follows."""
    several = f" ({one.threads:,} threads)" if one.threads > 1 else ""
    return cause_words(one.kind, one.name, max(limit - len(several), 8)) + several


def causes_to_show(report: EvidenceReport) -> tuple[Cause, ...]:
    """Return the causes of a run as tables show them, the largest first. The measured threads that took time from each
    other are one cause. A stall in which two of them took time counts twice. Its share without this cause is a lower
    limit if there are more than two measured threads.
    """
    threads = next((kind.threads for kind in KINDS.values() if report.main_thread in kind.threads), ())
    own = [one for one in report.causes if one.kind == "task" and one.name in MEASURED_THREADS]
    if len(threads) < 2 or not own:
        return tuple(report.causes)
    late = sum(one.late_messages for one in own)
    share = report.below_now
    if share is not None:
        share = min(share + sum(one.below_without - share for one in own if one.below_without is not None), 1.0)
    together = Cause(
        "task",
        words.MEASURED,
        count=sum(one.count for one in own),
        total_ns=sum(one.total_ns for one in own),
        worst_ns=max(one.worst_ns for one in own),
        ns_per_second=sum(one.ns_per_second for one in own),
        late_messages=late,
        below_without=share,
    )
    rest = [one for one in report.causes if one not in own]
    return tuple(sorted([*rest, together], key=lambda one: (-one.total_ns, one.kind, one.name)))


def stall_count_words(report: EvidenceReport) -> str:
    """Return the number of stalls of all threads in words. If stalls overlap, the text has a second number, in which
    overlapping stalls count as one.
    """
    of_threads = f" of the measured threads ({report.distinct:,} distinct)" if is_apart(report) else ""
    return many(report.stalls, "stall") + of_threads


def is_apart(report: EvidenceReport) -> bool:
    """Return True if stalls of several threads overlap, so that such a time counts for each of them."""
    return report.distinct is not None and report.distinct != report.stalls + report.unlisted


def cause_sentences(report: EvidenceReport | CounterReport) -> tuple[str, ...]:
    """Return the sentences that are shown with the table of a run's causes. The first sentence is the headline."""
    if isinstance(report, CounterReport):
        return stalls_headline(report), *time_taken_sentences(report), *others(report)
    return stalls_headline(report), *limits_of_trace(report), *explanations(report)


def stalls_headline(report: EvidenceReport | CounterReport) -> str:
    """Return a line with the number of stalls, the measured time, and the kind of evidence."""
    if isinstance(report, CounterReport):
        over = f"over {nice_ns(report.threshold_ns)} in {nice_ns(report.measured_ns)}"
        why = clean(report.notes.get("trace", ""), SENTENCE)
        mark = clean(report.notes.get(MARK_NOTE, ""), SENTENCE)
        told = f"{many(report.stalls, 'stall')} {over} · {COUNTERS_ONLY}: {why}."
        return f"{told} {cleaned_sentence(mark)}" if mark else told
    return f"{stalls_told(report)} · {trace_of(report)}"


def stalls_told(report: EvidenceReport) -> str:
    """Return the number of stalls, their least length and the measured time."""
    return f"{stall_count_words(report)} over {nice_ns(report.threshold_ns)} in {nice_ns(report.measured_ns)}"


def trace_of(report: EvidenceReport) -> str:
    """Return a few words on the trace of a run."""
    return trace_told(report.clock, report.events, report.lost_events)


def trace_told(clock: str, events: int, lost: int) -> str:
    """Return a few words on a kernel trace. ``clock``: the clock of its stamps. ``events``: how many events it has.
    ``lost``: how many events the kernel lost."""
    return f"kernel trace, clock {clean(clock, WORD)} · {many(events, 'event')}, {lost:,} lost"


def still_there(report: EvidenceReport) -> str:
    """Return a sentence on the other tasks that ran on the measured CPUs. The task that ran most often comes first.
    Return "" if the trace does not show which tasks ran.
    """
    if report.residence is None:
        return ""
    times: dict[str, int] = {}
    for one in report.residence.visitors:
        if one.kind == "task":
            worker = _WORKER.match(one.name)
            name = called(one.name, ID) if worker is None else _UNBOUND if worker[1] else _BOUND
            times[name] = times.get(name, 0) + one.count
    ranked = sorted(times.items(), key=lambda item: (-item[1], item[0]))
    if not ranked:
        return "" if report.lost_events else "The trace shows no other task on the measured CPUs."
    more = f", and {many(len(ranked) - MOST_PHRASES, 'other name')}" if len(ranked) > MOST_PHRASES else ""
    said = ", ".join(f"{name} {_times_and_rate(count, report)}" for name, count in ranked[:MOST_PHRASES])
    return f"The trace shows these other tasks on the measured CPUs: {said}{more}."


def _times_and_rate(count: int, report: EvidenceReport) -> str:
    """Return how often a task ran, such as ``13 times (2.6 a second)``. Without a measured time, return the count
    alone."""
    rate = f" ({nice_number(count * 1e9 / report.measured_ns)} a second)" if report.measured_ns > 0 else ""
    return f"{count:,} time{'' if count == 1 else 's'}{rate}"


# -- with a trace ------------------------------------------------------------------------------------------------------


def limits_of_trace(report: EvidenceReport) -> list[str]:
    """Return sentences on what the trace does not show: lost, unbalanced and missing events, and other notes."""
    said = []
    notes = dict(report.notes)
    if mark := notes.pop(MARK_NOTE, ""):
        said.append(cleaned_sentence(mark, SENTENCE))
    if report.lost_events:
        most = list(report.lost_by_cpu.items())[:MOST_NAMES]
        lost = ", ".join(f"CPU {clean(cpu, CELL)}: {number:,}" for cpu, number in most)
        where = f" ({lost})" if lost else ""
        said.append(
            f"The buffer was full: {report.lost_events:,} events are lost{where}. The time after the last event of a "
            "block has no named cause. With --preset quick, the blocks are shorter and need less room in the buffer."
        )
    if report.unbalanced:
        said.append(misfit_sentence(report))
    if report.missing:
        said.append(not_offered(report, MOST_NAMES))
    return said + [clean(note, SENTENCE) + "." for field, note in notes.items() if field != "below_now"]


def not_offered(report: EvidenceReport | ProgramReport, most: int) -> str:
    """Return a sentence on the events that this kernel does not offer. ``most``: the largest number of events that the
    sentence names.
    """
    some = ", ".join(clean(event, ID) for event in list(report.missing)[:most])
    more = f" and {len(report.missing) - most} more" if len(report.missing) > most else ""
    return f"This kernel does not offer the events {some}{more}. So the lines below have no data from these events."


def misfit_sentence(report: EvidenceReport) -> str:
    """Return a sentence on the events that did not fit the earlier events, and on how much of the measured time has no
    known cause; "" if all events fit."""
    return contradiction_sentence(report, report.unknown_ns, report.measured_ns) if report.unbalanced else ""


def lack_is_told(report: EvidenceReport) -> bool:
    """Return True if the sentence on the other tasks of a run tells how much time has no known cause because events
    contradict each other."""
    if not report.unbalanced or not report.unknown_ns or report.residence is None:
        return False
    return f" lacks {nice_ns(report.unknown_ns)}" in report.residence.proof.sentence


def contradiction_sentence(
    report: EvidenceReport | ProgramReport, unknown_ns: int | None = None, whole_ns: int = 0
) -> str:
    """Return a sentence on trace events that contradict earlier events. The sentence names the tasks that left a CPU
    although the kernel did not report this. ``unknown_ns``: the time whose cause is not known because of the
    contradictions; 0 or None if this time was not counted. ``whole_ns``: the traced time.
    """
    number, unknown = report.unbalanced, ""
    if unknown_ns:
        unknown = f"{nice_ns(unknown_ns)} of {nice_ns(whole_ns)} are not known."
    if sum(report.unreported.values()) != number:
        these = "this event" if number == 1 else "these events"
        unknown = f": {unknown}" if unknown else f". The cause of the time around {these} is not known."
        return f"{many(number, 'event')} did not fit the earlier events{unknown}"
    named = [clean(name, WORD) for name in report.unreported]
    more = f" and {many(len(named) - _NAMED, 'other task')}" if len(named) > _NAMED else ""
    events = "1 event of a task" if number == 1 else f"{number:,} events of tasks"
    tasks = f"{', '.join(named[:_NAMED])}{more}"
    return f"The trace lacks {events} that left the CPU: {tasks}.{f' So {unknown}' if unknown else ''}"


def is_patchy(report: EvidenceReport) -> bool:
    """Return True if the causes are in doubt. Much of the measured time has no known cause, or the amount of this time
    is not known."""
    return report.unknown_ns is None or report.unknown_ns > MUCH_UNKNOWN * report.measured_ns


def explanations(report: EvidenceReport) -> Iterator[str]:
    """Yield sentences that explain causes that are not obvious, such as time without an event. Each sentence that
    begins with ITEM names one thing that may have caused the time without an event."""
    if any(cause.kind == "no_event" and cause.name == words.MISSING for cause in report.causes):
        yield _MISSING
    if any(cause.kind == "task" and cause.name.endswith(words.NOT_OURS) for cause in report.causes):
        yield _NOT_OURS
    for kind, text in _ABOUT.items():
        if any(cause.kind == kind and (kind != "no_event" or cause.name == words.NOTHING) for cause in report.causes):
            yield text
            if kind == "no_event" and report.candidates:
                yield "The cause may be one of these tasks or events; the trace does not show which:"
                yield from (f"{ITEM}{clean(candidate, REASON)}" for candidate in report.candidates)


def no_cause(report: EvidenceReport) -> str:
    """Return the sentence in place of the table of causes, for a report that has none."""
    return "No stall has a known cause." if report.stalls else _NO_STALL


def without(cause: Cause, report: EvidenceReport) -> str:
    """Return the share of messages whose latency would be below the threshold without this cause. The result is a text
    for a table.

    Return SENDER_ONLY if the cause stopped only other threads than the one whose messages count. Return SAME, which is
    an empty text, if the share would not change.
    """
    if not cause.late_messages:
        return SENDER_ONLY
    said = _share(cause.below_without)
    return SAME if said == _share(report.below_now) else said


def any_without(report: EvidenceReport) -> bool:
    """Return True if the table of causes needs the column of :func:`without`: it has something to say of a cause."""
    if report.below_now is None or not report.messages:
        return False
    shown = (*causes_to_show(report), *((report.timer,) if report.timer is not None else ()))
    return any(without(cause, report) != SAME for cause in shown)


def in_time(report: EvidenceReport) -> str:
    """Return how many messages were below the threshold, such as ``99.9 % of 400,000 messages (accumulator) were below
    1 µs.`` If the table has the column of :func:`without`, the text also says what this column shows. Return "" if the
    share is not known."""
    if report.below_now is None or not report.messages:
        return ""
    messages = f"{report.messages:,} {_counted(report)} ({clean(report.main_thread, WORD)})"
    clock = ", counted from their sending" if _are_sent(report) else ""
    told = f"{_share(report.below_now)} of {messages} were below {nice_ns(report.threshold_ns)}{clock}."
    if not any_without(report):
        return told
    return f"{told} Column '{WITHOUT_IT}': this share if the cause took no time, where it differs."


def _counted(report: EvidenceReport) -> str:
    return next((kind.counted for kind in KINDS.values() if report.main_thread in kind.threads), "messages")


def _are_sent(report: EvidenceReport) -> bool:
    """Return True if another measured thread sends the messages that the report counts."""
    return report.main_thread in KINDS["ring"].threads


def words_of_column(report: EvidenceReport) -> str:
    """Return a sentence on the word that stands in the column of :func:`without` in place of a share. Return "" if it
    stands nowhere."""
    if report.below_now is None or not report.messages:
        return ""
    thread = clean(report.main_thread, WORD)
    if all(without(cause, report) != SENDER_ONLY for cause in causes_to_show(report)):
        return ""
    if not _are_sent(report):
        return f"{SENDER_ONLY}: the cause stopped only other threads than the {thread}."
    late = round(1e6 * report.messages / report.measured_ns) if report.measured_ns else 0
    held = f" At the rate of this run, a sender that stops for 1 ms sends about {many(late, 'message')} late."
    return (
        f"{SENDER_ONLY}: the cause stopped only other threads than the {thread}. Messages that a stopped sender sent "
        f"late are not in this share: it counts each message from its sending.{held if late else ''}"
    )


def _share(share: float | None) -> str:
    """Return a share near 1 as a percentage, with as many digits as are needed to see that it is not 100 %. Return
    ``all`` for 1, ``–`` for None."""
    if share is None:
        return "–"
    if share >= 1:
        return "all"
    digits = next((d for d in range(1, 8) if (1 - share) * 100 >= 10**-d), 8)
    return f"{int(share * 100 * 10 ** (digits + 1)) / 10 ** (digits + 1):.{digits + 1}f} %"


# -- with counters alone -----------------------------------------------------------------------------------------------


def time_taken_sentences(report: CounterReport) -> Iterator[str]:
    """Yield sentences that compare two times. One is the length of all stalls. The other is the time that the threads
    waited for a CPU. Counters tell nothing more about causes.
    """
    if not report.stalls:
        yield _NO_STALL
    elif report.waited_ns is None:
        reason = clean(report.notes.get("waited_ns", ""), REASON)
        yield (
            f"Stalls took {nice_ns(report.stalled_ns)}. It is not known how long the threads waited for a "
            f"CPU: {reason}."
        )
    else:
        waited, rest = report.waited_ns, report.stalled_ns - report.waited_ns
        said = (
            f"Stalls took {nice_ns(report.stalled_ns)}. In the same time the measured threads were ready to run "
            f"but waited {nice_ns(waited)} for a CPU (the scheduler's run delay)."
        )
        if rest > 0:
            yield (
                f"{said} At least about {nice_ns(rest)} of the stalls' time has another cause, which is not counted "
                "here: interrupts, a hypervisor, firmware, memory, or the threads' own sleep."
            )
        else:
            yield f"{said} These waits may explain all stalls, but they include waits that are too short for a stall."
    yield "Counters do not show which task had the CPU, or which task caused a stall. A trace does."


def others(report: CounterReport) -> Iterator[str]:
    """Yield a sentence for each task that was seen on the measured CPUs and does not belong to the measurement."""
    for load in report.disturbed[:_MOST_OTHERS]:
        where = f", last seen on CPU {load.cpu}" if load.cpu is not None else ""
        task = f"{words.load_called(load, ID)} (pid {load.pid})"
        yield f"{task} also ran on the measured CPUs and used {load.cpu_percent:g} % of a CPU{where}."
