"""Show ``explain RUN`` for a run without a trace: the counters, their limits, and commands that this user may run by
hand (Documentation/admin-guide/sysctl/kernel.rst: perf_event_paranoid, perf-security.rst)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.evidence import CountedStall, CounterReport
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.run import AT, Counter, made_late
from jitter_workshop.model.text import called, clean
from jitter_workshop.report.text.terminal import Style, wrap
from jitter_workshop.stats.scale import nice_ns

WIDEST = 100
ROWS = 8
"""Interrupts and softirqs that are shown; the JSON has all of them."""

THREAD, WHOLE = 2, 0
"""The highest perf_event_paranoid at which a user may still watch their own threads, and whole CPUs."""

_OF_THREADS, _OF_CPUS, _OF_COUNTS = (9, 9, 11, 7, 6, 7), (11, 11, 11, 11), (6, 11, 11)
"""Widths of the columns of the tables. A name has the rest of the line, at least 11 columns on the narrowest
terminal."""

_UNKNOWN = "–"
_PID = "$(pgrep -u $UID -nf bench.worker)"


@dataclass(frozen=True, slots=True)
class ByHand:
    """Hold a command that this user may run beside a measurement, and what it shows."""

    command: str
    shows: str


def render(report: CounterReport, style: Style, label: str = "") -> str:
    """Return the whole report, ending with a line break. ``label``: the run's label."""
    width = min(style.width, WIDEST)
    style = Style(width, style.colour)
    title = f"{clean(label, 40) or 'Run'} · {clean(report.run, 40)}"
    sections = [
        [style.paint(clean(title, width), "strong"), *wrap(headline(report), width)],
        [line for said in verdict(report) for line in wrap(said, width)],
        list(threads(report, style)),
        list(cpus(report, style)),
        list(interruptions(report, style)),
        [line for said in others(report) for line in wrap(said, width)],
        list(_worst(report, style)),
        list(_by_hand(report, style)),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def headline(report: CounterReport) -> str:
    """Return the number of stalls, and that only counters are known about them."""
    stalls = f"{report.stalls:,} stall" + ("" if report.stalls == 1 else "s")
    return (
        f"{stalls} over {nice_ns(report.threshold_ns)} in {nice_ns(report.measured_ns)} · counters only, no kernel "
        f"trace: {clean(report.notes.get('trace', ''), 300)}."
    )


def verdict(report: CounterReport) -> Iterator[str]:
    """Yield sentences on what the counters say about the stalls' time; they claim no more than that."""
    if not report.stalls:
        yield "No stall to explain."
    elif report.waited_ns is None:
        reason = clean(report.notes.get("waited_ns", ""), 200)
        yield (
            f"Stalls took {nice_ns(report.stalled_ns)}. How much of it the threads waited for a CPU is not known: "
            f"{reason}."
        )
    else:
        waited, rest = report.waited_ns, report.stalled_ns - report.waited_ns
        said = (
            f"Stalls took {nice_ns(report.stalled_ns)}. In the same time the measured threads waited {nice_ns(waited)} "
            "for a CPU while they could have run, by the scheduler's own count (run delay)"
        )
        if rest > 0:
            yield (
                f"{said}: about {nice_ns(rest)} of the stalls, or more, was something else, which is not counted here: "
                "interrupts, a hypervisor, firmware, memory, or a sleep of their own."
            )
        else:
            yield f"{said}: that may be all of it, though waits too short for a stall are in it, too."
    yield "Counters do not say who had the CPU, nor which task caused which stall. A trace does."


def threads(report: CounterReport, style: Style) -> Iterator[str]:
    """Yield a row for each measured thread."""
    if not report.threads:
        return
    name = style.width - sum(_OF_THREADS)
    heads = ("waited", "on CPU", "preempted", "slept", "moved", "faults")
    yield style.paint("thread".ljust(name) + _cells(heads, _OF_THREADS), "dim")
    for t in report.threads:
        faults = None if t.minor_faults is None or t.major_faults is None else t.minor_faults + t.major_faults
        figures = (
            _ns(t.waited_ns),
            _ns(t.ran_ns),
            _number(t.involuntary_switches),
            _number(t.voluntary_switches),
            _number(t.migrations),
            _number(faults),
        )
        yield clean(t.name, name - 1).ljust(name) + _cells(figures, _OF_THREADS)


def cpus(report: CounterReport, style: Style) -> Iterator[str]:
    """Yield a row for each CPU whose tasks were counted, all together, and the hypervisor's time there."""
    known = [c for c in report.cpus if c.ran_ns is not None]
    if not known:
        stolen = [c for c in report.cpus if c.steal_ns]
        for c in stolen[:ROWS]:
            yield f"The hypervisor took {_ns(c.steal_ns)} of CPU {c.cpu} (it counts in ticks)."
        return
    name = style.width - sum(_OF_CPUS)
    heads = ("waited", "ran", "came on", "stolen")
    yield style.paint("all tasks there".ljust(name) + _cells(heads, _OF_CPUS), "dim")
    for c in known[:ROWS]:
        figures = (_ns(c.waited_ns), _ns(c.ran_ns), _number(c.timeslices), _ns(c.steal_ns))
        yield f"CPU {c.cpu}".ljust(name) + _cells(figures, _OF_CPUS)
    if len(known) > ROWS:
        yield f"{len(known) - ROWS} more CPUs"


def interruptions(report: CounterReport, style: Style) -> Iterator[str]:
    """Yield the most frequent interrupts and softirqs on the CPUs of the run: how often, never how long."""
    rows = sorted((*_rows(report.interrupts, ""), *_rows(report.softirqs, "softirq ")), key=lambda r: (-r[2], r))
    if not rows:
        return
    name = style.width - sum(_OF_COUNTS)
    heads = ("CPU", "times", "a second")
    yield style.paint("interrupts and softirqs there".ljust(name) + _cells(heads, _OF_COUNTS), "dim")
    for what, cpu, count in rows[:ROWS]:
        rate = f"{count / report.counted_s:,.1f}" if report.counted_s else _UNKNOWN
        yield clean(what, name - 1).ljust(name) + _cells((str(cpu), f"{count:,}", rate), _OF_COUNTS)


def others(report: CounterReport) -> Iterator[str]:
    """Yield tasks of others that were seen there."""
    for load in report.disturbed[:ROWS]:
        where = f", last seen on CPU {load.cpu}" if load.cpu is not None else ""
        yield f"Also there: {called(load.name, 40)} (pid {load.pid}), {load.cpu_percent:g} % of a CPU{where}."


def stall_line(number: int, stall: CountedStall) -> str:
    """Return a stall in one line: its length, when and where."""
    where = f" on CPU {stall.cpu}" if stall.cpu is not None else ""
    late = f", {said}" if (said := made_late(stall.thread, stall.messages)) else ""
    when = f"{nice_ns(stall.duration_ns):>8} at {nice_ns(stall.at_ns)}"
    return f"{number:>2}  {when} · {clean(stall.thread, 20)}{where}{late}"


def level(report: CounterReport) -> str:
    """Describe what the host's perf_event_paranoid allows a user without CAP_PERFMON, in a sentence or two."""
    value = report.perf_event_paranoid
    if value is None:
        reason = clean(report.notes.get("perf_event_paranoid", "it cannot be read"), 120)
        return f"It is not known what perf may do here ({reason})."
    name = f"kernel.perf_event_paranoid is {value}"
    if value > THREAD:
        return (
            f"{name}: Debian (from 3 on) and Ubuntu (from 4 on) then refuse perf to users; other kernels take it as 2."
        )
    if value == THREAD:
        return (
            f"{name}: perf may watch your own threads, in user mode only. (Switches that 'perf stat' counts are "
            "then always 0; those that 'perf record' notes are real.)"
        )
    if value > WHOLE:
        return f"{name}: perf may watch your own threads, in the kernel too, and no whole CPU."
    return f"{name}: perf may watch whole CPUs. Its tracepoints lie in tracefs, which only root may read as a rule."


def by_hand(report: CounterReport, seconds: int = 10) -> tuple[ByHand, ...]:
    """Return the commands that need no more rights than this user had, to be run during a measurement."""
    value, which = report.perf_event_paranoid, CpuSet.of(c.cpu for c in report.cpus)
    found = [
        ByHand(
            f"cat /proc/{_PID}/task/*/schedstat",
            "each thread: ns on a CPU, ns waiting for one, times that it got one; twice, and subtract",
        )
    ]
    if value is not None and value <= THREAD:
        found.append(
            ByHand(
                f"perf record -k CLOCK_MONOTONIC --switch-events -e dummy:u -o switches.data -p {_PID} "
                f"-- sleep {seconds}; perf script -i switches.data --show-switch-events",
                "when each thread lost its CPU and got it back ('preempt': it could have gone on); not to whom",
            )
        )
    if value is not None and value < THREAD:
        found.append(
            ByHand(
                f"perf stat -e context-switches,cpu-migrations,page-faults -p {_PID} -- sleep {seconds}",
                "how often its threads were switched, moved, and had a page fault",
            )
        )
    if value is not None and value <= WHOLE:
        found.append(_whole_cpus(which, seconds))
    return tuple(found)


def to_ask_for(report: CounterReport, seconds: int = 10) -> tuple[ByHand, ...]:
    """Return what an administrator can allow, the smallest right first."""
    value = report.perf_event_paranoid
    found = []
    if value is not None and value > WHOLE:
        which = CpuSet.of(c.cpu for c in report.cpus)
        found.append(
            ByHand(
                f"sysctl kernel.perf_event_paranoid={WHOLE}",
                f"then you may see who has a CPU: {_whole_cpus(which, seconds).command}",
            )
        )
    found.append(
        ByHand(
            "sudo for this tool (docs/safety.md says what its part for root can do)",
            "then 'measure --evidence' traces, and 'explain' names the causes",
        )
    )
    return tuple(found)


def _whole_cpus(which: CpuSet, seconds: int) -> ByHand:
    return ByHand(
        f"perf record --switch-events -e dummy:u -o cpu.data -C {which or '0'} -- sleep {seconds}; "
        "perf script -i cpu.data --show-switch-events",
        "who has the CPU when, and who took it from whom",
    )


def hand_lines(report: CounterReport, width: int) -> Iterator[tuple[str, str]]:
    """Yield the commands to run by hand, as (style, line): ``text``, ``dim`` and ``command``."""
    yield from (("text", line) for line in wrap(level(report), width))
    for heading, commands in (
        ("without more rights, while a run goes on", by_hand(report)),
        ("to ask an administrator for", to_ask_for(report)),
    ):
        yield ("dim", "")
        yield ("dim", heading)
        for one in commands:
            yield from (("command", f"  {line}") for line in wrap(one.command, width - 2))
            yield from (("dim", f"    {line}") for line in wrap(one.shows, width - 4))


def _by_hand(report: CounterReport, style: Style) -> Iterator[str]:
    for kind, line in hand_lines(report, style.width):
        yield style.paint(line, "dim") if kind == "dim" else line


def _worst(report: CounterReport, style: Style) -> Iterator[str]:
    if report.worst:
        for line in wrap(f"the longest stalls, as the benchmark saw them; {AT}", style.width):
            yield style.paint(line, "dim")
    for number, stall in enumerate(report.worst, 1):
        yield stall_line(number, stall)[: style.width]


def _rows(table: Mapping[str, Counter] | None, prefix: str) -> Iterator[tuple[str, int, int]]:
    for key, row in (table or {}).items():
        what = f"{prefix}{key}" + (f" ({row.name})" if row.name and row.name != key else "")
        for cpu, count in row.per_cpu.items():
            if cpu.isdigit():
                yield what, int(cpu), count


def _cells(texts: tuple[str, ...], widths: tuple[int, ...]) -> str:
    return "".join(f"{text:>{width}}" for text, width in zip(texts, widths, strict=True))


def _ns(value: int | None) -> str:
    return _UNKNOWN if value is None else nice_ns(value)


def _number(value: int | None) -> str:
    return _UNKNOWN if value is None else f"{value:,}"
