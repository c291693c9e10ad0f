"""Show the counters of a run without a trace, and commands that show more. Only commands that the user has the rights
to run are shown (Documentation/admin-guide/sysctl/kernel.rst on perf_event_paranoid, and perf-security.rst)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.evidence import CountedStall, CounterReport
from jitter_workshop.model.run import AT, Counter, made_late
from jitter_workshop.model.text import ID, LABEL, LINE, WORD, clean
from jitter_workshop.presenter.text.lines import Lines, grouped_number, small_title, table_lines, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.report.cause_words import others, stalls_headline, time_taken_sentences
from jitter_workshop.stats.scale import nice_ns, nice_number

ROWS = 8
"""The largest number of interrupts and softirqs that are shown; the JSON has all of them."""

THREAD, WHOLE = 2, 0
"""The highest perf_event_paranoid at which a user may watch their own threads, and the highest one for whole CPUs."""

_STEAL_HOLDS = (
    "The kernel counts steal in ticks, from the first block to the last. This includes the time between the blocks "
    "and the time in which the measured threads waited. So steal can be longer than the stalls above."
)
_SECONDS = 10
_PID = "$(pgrep -u $UID -nf bench.worker)"


CommandRow = tuple[str, str]
"""A command that this user may run during a measurement, and a description of its output."""


def counter_report_lines(report: CounterReport, width: int) -> Lines:
    """Return all lines of the report, without a title."""
    pages = (
        counters_head(report, width),
        counter_lines(report, width),
        longest_stall_lines(report, None, width),
        permitted_command_lines(report, width),
    )
    return [line for page in pages for line in (*page, Text())][:-1]


def counters_head(report: CounterReport, width: int) -> Iterator[Text]:
    """Yield the number of stalls, and why the run has only counters."""
    yield from wrap(stalls_headline(report), width, style="dim")


def counter_lines(report: CounterReport, width: int) -> Iterator[Text]:
    """Yield sentences on what the counters show, then each counter."""
    yield small_title("WHAT WAS COUNTED")
    for said in time_taken_sentences(report):
        yield from wrap(said, width)
    for rows in (_threads(report), _cpus(report), _interruptions(report)):
        if len(rows) > 1:
            yield from (Text(), *table_lines(rows, width, right=range(1, 7)))
    if not any(c.ran_ns is not None for c in report.cpus):
        for c in [c for c in report.cpus if c.steal_ns][:ROWS]:
            yield Text(f"The hypervisor took {nice_ns(c.steal_ns)} of CPU {c.cpu} (steal).")
    if any(c.steal_ns for c in report.cpus):
        yield from wrap(_STEAL_HOLDS, width, style="dim")
    for number, said in enumerate(others(report)):
        yield from (*([] if number else [Text()]), *wrap(said, width))


def _threads(report: CounterReport) -> list[list[str]]:
    """Return a row for each measured thread, below a row of column heads."""
    rows = [["thread", "waited", "on CPU", "preempted", "slept", "moved", "faults"]]
    for t in report.threads:
        faults = None if t.minor_faults is None or t.major_faults is None else t.minor_faults + t.major_faults
        counts = map(grouped_number, (t.involuntary_switches, t.voluntary_switches, t.migrations, faults))
        rows.append([clean(t.name, ID), nice_ns(t.waited_ns), nice_ns(t.ran_ns), *counts])
    return rows


def _cpus(report: CounterReport) -> list[list[str]]:
    """Return a row for each CPU whose tasks were counted: the sums over its tasks, and the steal."""
    known = [c for c in report.cpus if c.ran_ns is not None]
    rows = [["all tasks there", "waited", "ran", "came on", "steal"]]
    for c in known[:ROWS]:
        rows.append(
            [f"CPU {c.cpu}", nice_ns(c.waited_ns), nice_ns(c.ran_ns), grouped_number(c.timeslices), nice_ns(c.steal_ns)]
        )
    return rows + ([[f"{len(known) - ROWS} more CPUs"]] if len(known) > ROWS else [])


def _interruptions(report: CounterReport) -> list[list[str]]:
    """Return the most frequent interrupts and softirqs on the run's CPUs, with their counts. Their lengths are
    unknown, because the run has no trace.
    """
    found = sorted((*_rows(report.interrupts, ""), *_rows(report.softirqs, "softirq ")), key=lambda r: (-r[2], r))
    rows = [["interrupts and softirqs", "CPU", "times", "a second"]]
    for what, cpu, number in found[:ROWS]:
        rate = nice_number(number / report.counted_s) if report.counted_s else "–"
        rows.append([clean(what, LABEL), str(cpu), f"{number:,}", rate])
    return rows


def _rows(table: Mapping[str, Counter] | None, prefix: str) -> Iterator[tuple[str, int, int]]:
    for key, row in (table or {}).items():
        what = f"{prefix}{key}" + (f" ({row.name})" if row.name and row.name != key else "")
        for cpu, number in row.per_cpu.items():
            if cpu.isdigit():
                yield what, int(cpu), number


def longest_stall_lines(report: CounterReport, cursor: int | None, width: int) -> Iterator[Text]:
    """Yield the longest stalls: when each one happened, and where. The cause of a stall is unknown. ``cursor``: the
    index of the chosen stall.
    """
    yield small_title("THE LONGEST STALLS, WITHOUT A CAUSE")
    for index, stall in enumerate(report.worst):
        under = index == cursor
        line = Text("▸ " if under else "  ", "accent").append(
            _stall(index + 1, stall), "bold text" if under else "text"
        )
        line.truncate(width, pad=under)
        if under:
            line.stylize("under")
        yield line
    if report.worst:
        yield from wrap(AT, width, style="faint")


def _stall(number: int, stall: CountedStall) -> str:
    """Return a stall in one line: its length, its time in the run, its thread and its CPU."""
    where = f" on CPU {stall.cpu}" if stall.cpu is not None else ""
    late = f", {said}" if (said := made_late(stall.thread, stall.messages)) else ""
    when = f"{nice_ns(stall.duration_ns):>8} at {nice_ns(stall.at_ns)}"
    return f"{number:>2}  {when} · {clean(stall.thread, WORD)}{where}{late}"


# -- by hand -----------------------------------------------------------------------------------------------------------


def permitted_command_lines(report: CounterReport, width: int) -> Iterator[Text]:
    """Yield the commands that this user may run during a run, and the rights that an administrator can grant."""
    yield small_title("BY HAND")
    yield from wrap(paranoid_level(report), width)
    for title, commands in (
        ("commands for your present rights, to use during a run", permitted_commands(report)),
        ("rights that an administrator can give you", to_ask_for(report)),
    ):
        yield from (Text(), Text(title, "dim"))
        for command, shows in commands:
            yield from (*wrap(command, width, "  "), *wrap(shows, width, "    ", style="dim"))


def paranoid_level(report: CounterReport) -> str:
    """Describe what the host's perf_event_paranoid allows a user without CAP_PERFMON, in one or two sentences."""
    value = report.perf_event_paranoid
    if value is None:
        reason = clean(report.notes.get("perf_event_paranoid", "the file cannot be read"), LINE)
        return f"It is not known what perf may do on this host ({reason})."
    name = f"kernel.perf_event_paranoid is {value}"
    if value > THREAD:
        return (
            f"{name}: Debian refuses perf to users if the value is 3 or more, Ubuntu if it is 4 or more. For other "
            "kernels, these values have the effect of 2."
        )
    if value == THREAD:
        return (
            f"{name}: perf may watch your own threads, in user mode only. ('perf stat' then always counts 0 "
            "switches; 'perf record' writes the real switches.)"
        )
    if value > WHOLE:
        return f"{name}: perf may watch your own threads, also inside the kernel. It may not watch whole CPUs."
    return (
        f"{name}: perf may watch whole CPUs. To find the tracepoints, perf needs tracefs, which usually only root may "
        "read."
    )


def permitted_commands(report: CounterReport) -> Sequence[CommandRow]:
    """Return the commands that need no more rights than this user has. The user runs them during a measurement."""
    value = 4 if report.perf_event_paranoid is None else report.perf_event_paranoid
    found = [
        (
            f"cat /proc/{_PID}/task/*/schedstat",
            "for each thread: ns on a CPU, ns of waiting for a CPU, number of times on a CPU; read the file twice and "
            "subtract",
        )
    ]
    if value <= THREAD:
        found.append(
            (
                f"perf record -k CLOCK_MONOTONIC --switch-events -e dummy:u -o switches.data -p {_PID} "
                f"-- sleep {_SECONDS}; perf script -i switches.data --show-switch-events",
                (
                    "when each thread lost its CPU and got it back, but not which task took the CPU ('preempt': the "
                    "thread was still ready to run)"
                ),
            )
        )
    if value < THREAD:
        found.append(
            (
                f"perf stat -e context-switches,cpu-migrations,page-faults -p {_PID} -- sleep {_SECONDS}",
                "how often the process's threads were switched, were moved to another CPU, or had a page fault",
            )
        )
    return [*found, _whole_cpus(report)] if value <= WHOLE else found


def to_ask_for(report: CounterReport) -> Sequence[CommandRow]:
    """Return the rights that an administrator can grant, the right that allows least first."""
    value = report.perf_event_paranoid
    found = []
    if value is not None and value > WHOLE:
        then = f"then you may see which task has a CPU: {_whole_cpus(report)[0]}"
        found.append((f"sysctl kernel.perf_event_paranoid={WHOLE}", then))
    sudo = "sudo for this tool (docs/safety.md describes the agent, which then runs as root)"
    return [*found, (sudo, "then 'measure --evidence' records a trace, and 'explain' names the causes")]


def _whole_cpus(report: CounterReport) -> CommandRow:
    which = CpuSet.of(c.cpu for c in report.cpus)
    return (
        f"perf record --switch-events -e dummy:u -o cpu.data -C {which or '0'} -- sleep {_SECONDS}; "
        "perf script -i cpu.data --show-switch-events",
        "which task had the CPU at which time, and which task took the CPU from it",
    )
