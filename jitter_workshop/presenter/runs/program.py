"""Show where the time of a program's threads went, by the kernel's trace or by counters."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence

from jitter_workshop.model.evidence import THROTTLED
from jitter_workshop.model.host import MARK_NOTE
from jitter_workshop.model.palette import CAUSES
from jitter_workshop.model.program import (
    NOT_WOKEN,
    OBSERVED_S,
    REAL_TIME_THROTTLED,
    FaultTimes,
    HoldUp,
    OwnCost,
    ProcessSeen,
    ProgramReport,
    ThreadTimes,
    TimeTaken,
    Wait,
)
from jitter_workshop.model.text import (
    ID,
    LABEL,
    MOST_ENTRIES,
    MOST_PHRASES,
    MOST_SENTENCES,
    PATH,
    SENTENCE,
    SHORT,
    WORD,
    called,
    clean,
    cleaned_sentence,
    many,
)
from jitter_workshop.presenter.runs.causes import long_one_line, whole_percent
from jitter_workshop.presenter.text.lines import (
    Lines,
    bar_of_value,
    column_sizes,
    in_cells,
    local_time,
    small_title,
    table_lines,
    wrap,
)
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.report.cause_words import (
    COUNTERS_ONLY,
    cause_words,
    contradiction_sentence,
    not_offered,
    trace_told,
)
from jitter_workshop.stats.scale import nice_ns

WIDEST = 100
MOST_THREADS, MOST_CAUSES, MOST_WAITS, MOST_HOLDUPS = 16, 12, 12, 10
"""The most rows that are shown of each table; the JSON has all of them."""
HELD_UP = "THE LONGEST TIMES IN WHICH A THREAD COULD RUN AND DID NOT"
CHOOSE = (
    f"Choose a process. The workshop observes it for {OBSERVED_S} seconds; the process continues to run. Then you see "
    "where its threads spent their time, and which tasks made them wait."
)
NO_PROGRAM_HERE = "This is a recorded host: no program runs on it."
NOTHING_TO_LIST = "No process of a program was found."
_AT = "at: the time since the observation began. A thread is held up while it is ready to run but does not run."
_BY_HAND = (
    "schedstat has three numbers: ns on a CPU, ns of waiting for a CPU, and how often the thread got a CPU. Read the "
    "file twice and subtract. You need no rights to read it for your own programs. perf sched needs root's rights."
)
_BAR, _LEAST_BAR, _SECONDS = 24, 6, OBSERVED_S
_GAP, _LEAST_COMMAND = 2, 16
"""The number of blanks between two columns of the list of processes, and the least width of a command line."""
_WHAT = {"command": "command", "process": "process", "thread": "thread", "cgroup": "control group"}
_PARTS = (
    "waited: the thread was ready to run, but another task or an interrupt had the CPU. slept: the thread had asked "
    "to wait for a time or for events. blocked: it waited for another thread, a disk or something similar."
)
_COUNTS = (
    "waited: the thread was ready to run, but waited in a CPU's queue. preempted: how often the kernel took the CPU "
    "from it. slept: how often the thread itself gave up its CPU."
)
_RIGHTS = (
    "Only the kernel's trace shows which tasks took the time. For a trace, run this tool as root, or get sudo for "
    "it. Its agent then runs as root: docs/safety.md says what the agent can do."
)


def program_report_lines(report: ProgramReport, width: int) -> Lines:
    """Return the report on a program's time, in at most 100 columns."""
    width = min(width, WIDEST)
    target = report.target
    number = f" (pid {target.pid})" if target.pid is not None else ""
    lines = [Text(clean(f"{_WHAT[target.kind].capitalize()} {called(target.name, LABEL)}{number}", width), "bold")]
    lines += [*program_head(report, width), *program_sentences(report, width), Text(), *threads(report, width)]
    if report.causes is not None:
        lines += [Text(), *waiting_cause_lines(report.causes, width)]
        for part in (list(waits(report, width)), list(_holdups(report, width))):
            lines += [Text(), *part] if part else []
    return lines


def program_head(report: ProgramReport, width: int) -> Iterator[Text]:
    """Yield how long the program was observed, and if a trace or counters were used. Also yield what the report
    lacks.
    """
    observed = f"{nice_ns(report.duration_ns)} observed"
    if report.evidence == "trace":
        told = trace_told(report.clock, report.events, report.lost_events or 0)
        yield from wrap(f"{observed} · {told}", width, style="dim")
    else:
        why = clean(report.notes.get("trace", ""), SENTENCE)
        yield from wrap(f"{observed} · {COUNTERS_ONLY}: {why}.", width, style="dim")
        yield from wrap(_RIGHTS, width)
    for limit in _limits(report):
        yield from wrap(limit, width, "▲ ", style="bad")


def program_sentences(report: ProgramReport, width: int) -> Iterator[Text]:
    """Yield a sentence for each known fact about the program as a whole, such as throttling, page faults or the exit
    code."""
    for said in _figures(report):
        yield from wrap(said, width)


def _limits(report: ProgramReport) -> Iterator[str]:
    """Yield sentences on what the report lacks."""
    if mark := report.notes.get(MARK_NOTE, ""):
        yield cleaned_sentence(mark, SENTENCE)
    if report.evidence == "trace":
        for name in ("trace", "threads"):
            if name in report.notes:
                yield f"{clean(report.notes[name], SENTENCE)}.".capitalize()
        if report.throttled is not None and report.throttled.periods:
            yield (
                "The kernel stopped the program's control groups during the observation. The trace has no event for "
                "such a stop. So this tool uses a rule. A wait counts as throttled if the program had used up its "
                "quota since its group's timer last ran. Any other wait counts for the task that had the CPU."
            )
        if report.unbalanced:
            yield contradiction_sentence(report)
        if report.missing:
            yield not_offered(report, MOST_ENTRIES)


def _figures(report: ProgramReport) -> Iterator[str]:
    if report.throttled is not None and report.throttled.periods:
        times = many(report.throttled.periods, "time")
        stopped = report.throttled.stopped_ns
        took = f", stopped for {nice_ns(stopped)} in all" if stopped is not None else ""
        yield f"The program's control groups used up their CPU quota {times}{took} (cpu.stat)."
    if report.steal_ns:
        yield _stolen(report)
    if report.faults is not None and report.faults.count:
        yield _faults(report.faults)
    if report.cost is not None:
        yield _cost(report.cost, report)
    for seen in report.frequencies[:MOST_SENTENCES]:
        low, high = seen.lowest_khz / 1e6, seen.highest_khz / 1e6
        yield f"The kernel asked CPU {seen.cpu} for {low:.2f} to {high:.2f} GHz, {many(seen.changes, 'time')}."
    if report.exit_code:
        yield f"The command ended with exit code {report.exit_code}."


def _stolen(report: ProgramReport) -> str:
    """Return sentences on the time that the hypervisor took from the CPUs. They also name up to three threads: those
    that lost the most time. For each thread, they tell the least and the greatest time that it may have lost.
    """
    each = [f"{nice_ns(one.ns)} of CPU {one.cpu}" for one in report.steal]
    where = ", ".join(each) if 0 < len(each) <= MOST_ENTRIES else f"{nice_ns(report.steal_ns or 0)} of {len(each)} CPUs"
    said = f"The hypervisor took {where} (steal clock, in steps of 10 ms)."
    hit = [one for one in report.threads if one.stolen_ns is not None and one.stolen_ns[1]]
    hit.sort(key=lambda one: -(one.stolen_ns or (0, 0))[1])
    parts = []
    for one in hit[:MOST_PHRASES]:
        least, most = one.stolen_ns or (0, 0)
        limits = f"{nice_ns(least)} to {nice_ns(most)}" if least else f"at most {nice_ns(most)}"
        parts.append(f"{limits} of the running time of thread {one.tid}")
    return f"{said} That is {', '.join(parts)}." if parts else f"{said} This time is part of the threads' times."


def _faults(faults: FaultTimes) -> str:
    """Return the number of page faults, and their time as far as it is known."""
    said = f"{many(faults.count, 'page fault')}"
    if faults.waited:
        said += f", {faults.waited:,} of which waited for a disk or memory, for {nice_ns(faults.waited_ns)}"
    if faults.ran_ns is None or faults.typical_ns is None:
        return (
            f"{said}. The trace does not show when a fault ends. So if the thread did not wait during a fault, the "
            "time of the fault is part of 'ran'."
        )
    whose = "The time of the other faults" if faults.waited else "The time of the faults"
    return (
        f"{said}. {whose} is part of 'ran'. This time is about {nice_ns(faults.ran_ns)} in all, if each fault took "
        f"{nice_ns(faults.typical_ns)}: the median of {faults.sampled:,} faults that were directly followed by "
        "another fault."
    )


def _cost(cost: OwnCost, report: ProgramReport) -> str:
    """Return what the observation itself has cost the program."""
    said = f"Cost of the trace: {many(cost.events, 'event')} in the program's threads"
    ran = report.all_threads.ran_ns if report.all_threads is not None else 0
    if cost.event_ns is not None:
        took = cost.events * cost.event_ns
        share = f", {100 * took / ran:.1f} % of what they ran" if ran else ""
        said += f", of about {nice_ns(cost.event_ns)} each (measured just before): {nice_ns(took)}{share}"
    else:
        said += "; the time of an event could not be measured on this busy host"
    return f"{said}. During the observation, this tool's own processes used {nice_ns(cost.tool_ran_ns)} of CPU time."


def threads(report: ProgramReport, width: int) -> Iterator[Text]:
    """Yield where each thread's time went, and what the columns mean."""
    yield small_title("WHERE THE TIME OF THE PROGRAM'S THREADS WENT")
    traced = report.evidence == "trace"
    if traced:
        rows = [["thread", "observed", "ran", "waited", "slept", "blocked", "unknown", "preempted"]]
    else:
        rows = [["thread", "observed", "ran", "waited", "preempted", "slept", "faults"]]
    for one in report.threads[:MOST_THREADS]:
        rows.append(_thread(one, traced))
    total = report.all_threads
    if total is not None and len(report.threads) + report.left_out > 1:
        times = (total.observed_ns, total.ran_ns, total.waited_ns, total.slept_ns, total.blocked_ns, total.unknown_ns)
        number = len(report.threads) + report.left_out
        rows.append([f"all {number:,} threads", *map(nice_ns, times), f"{total.preempted:,}"])
    if len(rows) == 1:
        yield Text("No thread of the program was seen.")
        return
    yield from table_lines(rows, width, right=range(1, 8))
    hidden = len(report.threads) - MOST_THREADS
    if hidden > 0:
        yield Text(f"{many(hidden + report.left_out, 'thread')} that ran less: see --json", "dim")
    yield Text()
    yield from wrap(_PARTS if traced else _COUNTS, width, style="dim")


def _thread(one: ThreadTimes, traced: bool) -> list[str]:
    name = f"{called(one.name, SHORT)} ({one.tid})"
    if not traced:
        counts = (one.preempted, one.slept_times, one.page_faults)
        times = map(nice_ns, (one.observed_ns, one.ran_ns, one.waited_ns))
        return [name, *times, *("–" if count is None else f"{count:,}" for count in counts)]
    times = map(nice_ns, (one.observed_ns, one.ran_ns, one.waited_ns, one.slept_ns, one.blocked_ns, one.unknown_ns))
    return [name, *times, f"{one.preempted or 0:,}"]


def waiting_cause_lines(found: Sequence[TimeTaken], width: int) -> Iterator[Text]:
    """Yield the causes of the waited time, the largest first."""
    yield small_title("WHO HAD THE CPU WHILE THREADS WAITED")
    if not found:
        yield Text("No thread waited for a CPU.")
        return
    rows = [["cause", "times", "in all", "worst"]]
    for cause in found[:MOST_CAUSES]:
        name = _cause(cause.kind, cause.name, 60)
        rows.append([name, f"{cause.count:,}", nice_ns(cause.total_ns), nice_ns(cause.worst_ns)])
    first, *lines = table_lines(rows, width, right=range(1, 4))
    yield first
    for cause, line in zip(found, lines, strict=False):
        line.style = CAUSES.get(cause.kind, "text")
        yield line
    hidden = found[MOST_CAUSES:]
    if hidden:
        yield Text(f"{many(len(hidden), 'other cause')}, together {nice_ns(sum(c.total_ns for c in hidden))}", "dim")


def waits(report: ProgramReport, width: int) -> Iterator[Text]:
    """Yield the waits of the threads, the longest first: what each wait was for, and who ended it. Yield nothing if
    there were none."""
    found = [(one, wait) for one in report.threads for wait in (*(one.blocked_on or ()), *(one.slept_in or ()))]
    if not found:
        return
    found.sort(key=lambda pair: (pair[1].kind == "sleep", -pair[1].total_ns, pair[0].tid))
    yield small_title("WHAT THREADS WAITED FOR, AND WHO ENDED THE WAIT")
    shown = found[:MOST_WAITS]
    rows = [["thread", "for", "times", "in all", "worst"]]
    for one, wait in shown:
        times = f"{wait.count:,}", nice_ns(wait.total_ns), nice_ns(wait.worst_ns)
        rows.append([f"{called(one.name, WORD)} ({one.tid})", wait_words(wait), *times])
    first, *lines = table_lines(rows, width, right=(2, 3, 4))
    yield first.append("  woken by", "dim")
    for line, (_, wait) in zip(lines, shown, strict=True):
        by = wakers(wait)
        if line.cell_len + 2 + len(by) <= width:
            yield line.append(f"  {by}", "dim")
        else:
            yield line
            yield from wrap(by, width, "    ", style="dim")
    if len(found) > MOST_WAITS:
        yield Text(f"{many(len(found) - MOST_WAITS, 'other row')}: see --json", "dim")


def wait_words(wait: Wait) -> str:
    """Return in words what a thread waited for, such as ``io read``."""
    if wait.name in (NOT_WOKEN, wait.kind):
        return wait.name
    return f"{clean(wait.kind, WORD).replace('_', ' ')} {clean(wait.name, SHORT)}".strip()


def wakers(wait: Wait) -> str:
    """Return in words the chain of wakers that ended a wait. First comes the task or event that woke the thread, then
    what woke that task, and so on. Return ``–`` if the wait did not end.
    """
    return " ← ".join(_cause(waker.kind, waker.name, 32) for waker in wait.wakers) or "–"


def _holdups(report: ProgramReport, width: int) -> Iterator[Text]:
    """Yield the longest hold-ups with their largest causes."""
    if not report.worst:
        return
    yield small_title(HELD_UP)
    for number, one in enumerate(report.worst[:MOST_HOLDUPS], 1):
        where = f" on CPU {one.cpu}" if one.cpu is not None else ""
        parts = [f"{_cause(part.kind, part.name, 32)} {nice_ns(part.ns)}" for part in one.parts[:MOST_PHRASES]]
        thread = f"{called(one.thread, WORD)} ({one.tid})"
        said = f"{nice_ns(one.duration_ns)} at {nice_ns(one.at_ns)} · {thread}{where}: {', '.join(parts)}"
        yield from wrap(said, width, f"{number:>2}  ")


def holdup_line(number: int, one: HoldUp, under: bool, width: int) -> Text:
    """Return a hold-up in one line: its length, its time, its thread, its largest cause. ``under``: the hold-up is
    under the cursor."""
    return long_one_line(number, one, under, width, lambda room: Text(f"{called(one.thread, WORD)} ", "dim"), _cause)


def holdup_page(one: HoldUp, width: int) -> Iterator[Text]:
    """Yield one hold-up in full: when and where it was, and each of its causes with a bar of its share."""
    where = f" on CPU {one.cpu}" if one.cpu is not None else ""
    said = f"{nice_ns(one.duration_ns)} at {nice_ns(one.at_ns)} · {called(one.thread, WORD)} ({one.tid}){where}"
    yield from wrap(said, width, style="bold text")
    yield from wrap(_AT, width, style="faint")
    rows = [
        [_cause(part.kind, part.name, 60), nice_ns(part.ns), whole_percent(part.ns, one.duration_ns)]
        for part in one.parts
    ]
    for part, line in zip(one.parts, table_lines(rows, width, right=(1, 2), head=False), strict=True):
        room = min(width - line.cell_len - 1, _BAR)
        if room >= _LEAST_BAR:
            line.append(f" {bar_of_value(part.ns, one.duration_ns, room)}", CAUSES.get(part.kind, "faint"))
        yield line


def no_holdups(report: ProgramReport) -> str:
    """Say why there is no hold-up to show."""
    if report.worst is None:
        return "Counters do not show single hold-ups. The kernel's trace shows them."
    return f"No thread was held up for {nice_ns(report.threshold_ns or 0)} or longer."


def program_commands(report: ProgramReport) -> tuple[str, ...]:
    """Return shell commands that show the same facts about a running process. The first command reads counters; the
    others trace the threads' switches and need root's rights (perf-sched(1)). Return () if the process's number is not
    known."""
    pid = report.target.pid
    if pid is None:
        return ()
    return (
        f"cat /proc/{pid}/task/*/schedstat",
        f"perf sched record -o tasks.data -- sleep {_SECONDS}",
        f"perf sched timehist -p {pid} -s -i tasks.data",
    )


def program_command_lines(report: ProgramReport, width: int) -> Iterator[Text]:
    """Yield the commands of :func:`program_commands` below a heading."""
    commands = program_commands(report)
    if commands:
        yield small_title("THE SAME BY HAND")
        for command in commands:
            yield from wrap(command, width, "  ")
        yield from wrap(_BY_HAND, width, style="dim")


# -- the list to choose from -------------------------------------------------------------------------------------------


def process_rows(found: Sequence[ProcessSeen], width: int, numbered: bool = False) -> Lines:
    """Return a head, and a line for each process of a list with its name, number, user, CPU and start. If there is
    room, the line also has the beginning of the process's command line. ``numbered``: each line begins with its place
    in the list (1, 2, 3).
    """
    rows = [[*([""] if numbered else []), "process", "pid", "user", "CPU", "since"]]
    for place, one in enumerate(found, 1):
        shown = [called(one.name, ID), str(one.pid), clean(one.user, WORD) or "–", f"{one.cpu_percent:.0f} %"]
        rows.append([*([str(place)] if numbered else []), *shown, begun_text(one.started_at)])
    sizes = column_sizes(rows)
    room = width - sum(sizes) - _GAP * len(sizes)
    if room >= _LEAST_COMMAND and any(one.command for one in found):
        commands = ["command", *(clean(one.command, PATH) for one in found)]
        rows = [[*row, in_cells(command, room).rstrip()] for row, command in zip(rows, commands, strict=True)]
    lead = 1 if numbered else 0
    return table_lines(rows, width, right=(*range(lead), lead + 1, lead + 3), gap=_GAP)


def begun_text(started_at: str, now: datetime.datetime | None = None) -> str:
    """Return when a process began, in local time: ``14:02`` today, else ``2026-11-27``."""
    began = local_time(started_at)
    if began is None:
        return "–"
    today = (now or datetime.datetime.now(datetime.UTC)).astimezone()
    return f"{began:%H:%M}" if began.date() == today.date() else f"{began:%Y-%m-%d}"


def matching(found: Sequence[ProcessSeen], words: str) -> tuple[ProcessSeen, ...]:
    """Return the processes whose name contains a text; capitals make no difference."""
    return tuple(one for one in found if words.casefold() in clean(one.name).casefold())


def _cause(kind: str, name: str, limit: int) -> str:
    """Return a cause in words, with at most ``limit`` characters of its name. For throttling, return the name itself.
    The words of :func:`cause_words` say that the CPU was idle, but another task may have run on it.
    """
    by_limit = kind == "task" and name in (THROTTLED, REAL_TIME_THROTTLED)
    return name if by_limit else cause_words(kind, name, limit, measured=False)
