"""Show a run as text: the usual latency table (mean, min, 50 … 99.9999 %, max, count), stalls, threads, clock.

At most 80 columns, no escapes: it may go to a terminal, a file or a mail.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from itertools import zip_longest

from jitter_workshop.model.imported import ImportedRun
from jitter_workshop.model.run import HUNTED, PERCENTILES, UNSTEADY, GapBucket, HistogramSummary, Run, ThreadRecord
from jitter_workshop.model.text import clean
from jitter_workshop.stats import sample_size
from jitter_workshop.stats.curve import imported_curve, value_at
from jitter_workshop.stats.scale import nice_ns, nice_number

WIDTH = 80

_LABEL = 14
_COLUMN = 16
_PER_TABLE = 4
_RESIDENCE = 52
_UNKNOWN = "–"
_PACE = {"wakeup": "a wake-up", "ack": "a segment"}
_NUMBER_AND_UNIT = re.compile(r"(\d) (ns|µs|ms|s|min|GHz|%)")

_A_WORD = re.compile(r"[\w.@%+:,/][\w.@%+:,/-]*")

_SHOWN_NOTES = (
    "complete",
    UNSTEADY,
    HUNTED,
    "isolation",
    "evidence",
    "noise",
    "duty",
    "timer_slack",
    "pm_qos",
    "disturbed",
    "cpu_max",
    "blocks",
    "suspended",
    "mlocked",
)
"""Notes that change how a run is read. The other notes give reasons for nulls and are in the JSON."""


def remark(run: Run) -> str:
    """Return the notes of a run that its user should be told at once, in sentences; "" if there are none."""
    said = [run.notes.get(note, "") for note in (HUNTED, "evidence", "suspended", UNSTEADY)]
    if run.placement.mode != "none":
        said.append(run.notes.get("isolation", ""))
    return " ".join(f"{clean(one[:1].upper() + one[1:], 400)}." for one in said if one)


def render(run: Run) -> str:
    """Return the whole report of a run, ending with a line break."""
    parts = [_headline(run), *_tables(run), _stalls(run), _buckets(run), _threads(run), _facts(run)]
    return "\n\n".join(part for part in parts if part) + "\n"


def kept(run: Run, session: str, traced: bool, named: bool = False) -> str:
    """Tell where a run is kept and, if evidence was asked for, the command that shows it. Ends with a line break.
    ``named``: the session was given by name, so other verbs may open another one."""
    name = clean(session)
    lines = [_fact("kept", f"as {run.id} in session {name}")]
    if traced or run.counters is not None:
        # A name that a shell would split is not put into a command.
        of_it = f" --session {name}" if named and _A_WORD.fullmatch(name) else ""
        command = f"'explain @1{of_it}'"
        text = f"there is no trace of it; {command} says what could be counted instead"
        if traced:
            text = f"the kernel's trace is kept with it: {command} says what took the time of its stalls"
        lines.append(_fact("evidence", text))
    return "\n".join(lines) + "\n"


def _headline(run: Run) -> str:
    what = [run.workload, f"placement {run.placement.mode}"]
    if run.workload == "ring":
        paced = f"a message every {nice_ns(run.interval_ns)}"
        what.append(paced if run.pacing == "spin" else f"{paced}, on schedule")
    elif run.workload in _PACE:
        what.append(f"{_PACE[run.workload]} every {nice_ns(run.interval_ns)}")
    if run.sched != "other":
        what.append(clean(run.sched, 20))
    if run.duty != 100:
        what.append(f"busy {run.duty} % of the time" if run.pause != "busy" else f"samples {run.duty} % of the time")
    if run.noise:
        what.append(f"with {clean(run.noise, 20)}")
    what.append(f"{nice_ns(run.duration_s * 1e9)} in {_count(len(run.blocks), 'block')}")
    name = clean(run.label, 60) or "Run"
    return f"{name} · {run.id}\n{' · '.join(what)}"


def _tables(run: Run) -> list[str]:
    """Return tables of at most four histograms: times from send to receive first, then times between messages."""
    names = sorted(run.histograms, key=lambda name: name.endswith("_interval"))
    groups: list[list[str]] = []
    for name in names:
        together = groups and groups[-1][0].endswith("_interval") == name.endswith("_interval")
        if together and len(groups[-1]) < _PER_TABLE:
            groups[-1].append(name)
        else:
            groups.append([name])
    marks = {name: sample_size.of_count(summary.count) for name, summary in run.histograms.items()}
    marks |= {run.main_histogram: sample_size.of_run(run)} if run.main_histogram in marks else {}
    for name, summary in run.histograms.items():
        marks[name] = {p: mark for p, mark in marks[name].items() if summary.percentiles.get(p) is not None}
    legend = sample_size.legend(mark for some in marks.values() for mark in some.values())
    tables = [_table([(n, run.histograms[n], marks[n]) for n in group], bool(legend)) for group in groups]
    return [*tables, "\n".join(f"  {line}" for line in legend)]


def _table(columns: Sequence[tuple[str, HistogramSummary, Mapping[str, str]]], marked: bool) -> str:
    """Return a table with a column per histogram, with its percentiles' marks."""
    words = [clean(name, 40).rpartition("_") for name, _, _ in columns]
    summaries = [summary for _, summary, _ in columns]
    percentiles = [(p, [m.get(p, "") for _, _, m in columns]) for p in PERCENTILES]

    def row(label: str, cells: Sequence[str], marks: Sequence[str] = ()) -> str:
        return _row(label, sample_size.marked(cells, marks or [""] * len(cells)) if marked else cells)

    lines = [row("", [first for first, _, _ in words]), row("", [last for _, _, last in words])]
    lines.append(row("mean", [nice_ns(s.mean) for s in summaries]))
    lines.append(row("min", [nice_ns(s.min) for s in summaries]))
    lines += [row(f"{p} %", [nice_ns(s.percentiles.get(p)) for s in summaries], marks) for p, marks in percentiles]
    lines.append(row("max", [nice_ns(s.max) for s in summaries]))
    lines.append(row("count", [f"{s.count:,}" for s in summaries]))
    if any(s.overflow for s in summaries):
        lines.append(row("beyond range", [f"{s.overflow:,}" for s in summaries]))
    return "\n".join(line for line in lines if line)


def _row(label: str, cells: Sequence[str]) -> str:
    return ("  " + label.ljust(_LABEL) + "".join(cell[:_COLUMN].rjust(_COLUMN) for cell in cells)).rstrip()


def _stalls(run: Run) -> str:
    if not run.stalls.rates:
        return ""
    # An interval between ACKs also contains the time in which nothing was due.
    taken = "in them / s" if run.workload == "ack" else "stolen / s"
    lines = [_row("intervals over" if run.workload == "ack" else "stalls over", ["count", "per second", taken])]
    lines += [
        _row(nice_ns(r.threshold_ns), [f"{r.count:,}", nice_number(r.per_second), nice_ns(r.stolen_ns_per_second)])
        for r in run.stalls.rates
    ]
    if run.workload == "ack":
        lines += [_fact("rate", text) for text in (rate_in_words(run),) if text]
    elif run.rated_s < run.duration_s:
        looked = f"of the {nice_ns(run.rated_s * 1e9)} in which it sampled, out of {nice_ns(run.duration_s * 1e9)}"
        lines.append(_fact("rates", f"are {looked}"))
    return "\n".join(lines)


def rate_in_words(run: Run) -> str:
    """Tell how often an interval over the threshold occurs, and what a run of this length can know about it; "" for
    runs of older versions."""
    stalls = run.stalls
    low, high = stalls.per_second_low, stalls.per_second_high
    if low is None or high is None:
        return ""
    over = nice_ns(stalls.threshold_ns)
    if stalls.count == 0:
        text = f"none over {over} in {nice_ns(run.rated_s * 1e9)}: fewer than {_often(high)}, at 95 %"
    else:
        between = f"between {_often(low)} and {_often(high)}"
        text = f"over {over}: {_often(stalls.per_second)}; the true rate lies {between}, at 95 %"
    return text + ", if they come independently"


def _often(per_second: float) -> str:
    """Return a rate for people, per second or per hour."""
    return f"{nice_number(per_second)} a second" if per_second >= 0.1 else f"{nice_number(per_second * 3600)} an hour"


def _buckets(run: Run) -> str:
    """Return ``spin``'s gaps in the 26 classic buckets, without empty buckets, in two columns."""
    if run.buckets is None or run.sampled_s is None:
        return ""
    head = f"  gaps per hour of sampled time ({nice_ns(run.sampled_s * 1e9)} sampled)"
    used = [b for b in run.buckets if b.count]
    if not used:
        return f"{head}: none of {nice_ns(run.buckets[0].from_ns)} or more"
    half = (len(used) + 1) // 2
    cells = [_bucket(bucket) for bucket in used]
    rows = [f"{left}{right}".rstrip() for left, right in zip_longest(cells[:half], cells[half:], fillvalue="")]
    return "\n".join((head, *rows))


def _bucket(bucket: GapBucket) -> str:
    end = "" if bucket.to_ns is None else nice_ns(bucket.to_ns)
    span = f"{nice_ns(bucket.from_ns)} to {end}" if end else f"{nice_ns(bucket.from_ns)} and more"
    rate = "–" if bucket.per_hour is None else f"{bucket.per_hour:,.0f}"
    return f"    {span:<18}{rate:>16}"


def _threads(run: Run) -> str:
    if not run.threads:
        return ""
    lines = ["  thread        waited  preempted   moved  faults   where its work was done"]
    lines += [_thread(thread) for thread in run.threads]
    return "\n".join(lines)


def _thread(thread: ThreadRecord) -> str:
    faults = None
    if thread.minor_faults is not None and thread.major_faults is not None:
        faults = thread.minor_faults + thread.major_faults
    numbers = (thread.voluntary_switches, thread.involuntary_switches, thread.migrations, faults)
    waited, preempted, moved, faulted = (_UNKNOWN if n is None else f"{n:,}" for n in numbers)
    return f"  {clean(thread.name, 12):<12}{waited:>8}{preempted:>11}{moved:>8}{faulted:>8}   {_residence(thread)}"


def _residence(thread: ThreadRecord) -> str:
    """Return the CPUs where a thread did its work, the busiest first, as many as fit: ``CPU 1 75 %, 0 20 % +2
    more``."""
    total = sum(thread.messages_by_cpu.values())
    shares = sorted(thread.messages_by_cpu.items(), key=lambda item: (-item[1], int(item[0])))
    shown: list[str] = []
    text = ""
    for cpu, count in shares:
        shown.append(f"{cpu} {_percent(count, total)}")
        hidden = len(shares) - len(shown)
        longer = f"CPU {', '.join(shown)}" + (f" +{hidden} more" if hidden else "")
        if text and len(longer) > WIDTH - _RESIDENCE:
            break
        text = longer
    return text or _UNKNOWN


def _facts(run: Run) -> str:
    clock = (
        f"{clean(run.clock.source, 20)}, {run.clock.cost_ns:.1f} ns a reading, steps of {run.clock.resolution_ns} ns"
    )
    if run.clock.offset_ns is not None and run.clock.offset_bound_ns is not None:
        clock += f", between CPUs {run.clock.offset_ns} ± {run.clock.offset_bound_ns} ns"
    facts = [("clock", clock), ("placement", clean(run.placement.why, 400))]
    own = [b.parent_switches for b in run.blocks if b.parent_switches is not None]
    seen = []
    if run.core_hz is not None:
        seen.append(f"core at {run.core_hz / 1e9:.2f} GHz")
    if run.steal_ns is not None:
        step = f" (steps of {nice_ns(run.steal_resolution_ns)})" if run.steal_resolution_ns else ""
        seen.append(f"stolen by the hypervisor {nice_ns(run.steal_ns)}{step}")
    if run.blocked_publishes:
        what = "no room for a segment" if run.workload == "ack" else "ring full"
        seen.append(f"{what} {run.blocked_publishes:,} times")
    if run.missed_wakeups:
        seen.append(f"{run.missed_wakeups:,} periods were over before the thread could sleep")
    if run.negative_deltas:
        seen.append(f"{run.negative_deltas:,} negative differences left out")
    if run.throttled_periods:
        seen.append(f"throttled by its cgroup in {run.throttled_periods:,} periods")
    if own:
        seen.append(f"the workshop itself woke {sum(own):,} times during blocks")
    if seen:
        facts.append(("seen", "; ".join(seen)))
    facts.append(("noise", _noise(run)))
    nothing = () if run.noise else ("noise",)
    facts += [("note", clean(run.notes[n], 400)) for n in _SHOWN_NOTES if n in run.notes and n not in nothing]
    return "\n".join(_fact(name, text) for name, text in facts if text)


def _noise(run: Run) -> str:
    """Describe a noise by its own log; "" without a noise."""
    if run.noise is None:
        return ""
    kind, bursts = clean(run.noise, 20), run.noise_bursts
    if bursts is None:
        return f"{kind}: {clean(run.notes.get('noise_bursts', 'what it did is not known'), 200)}"
    took = (
        "how long the thread waited is not known" if bursts.taken_ns is None else f"{nice_ns(bursts.taken_ns)} in all"
    )
    return f"{kind} logged {_count(bursts.count, 'burst')}, {took}, from before the first block until after the last"


def _fact(name: str, text: str) -> str:
    indent = "  " + " " * _LABEL
    # A number stays on the line of its unit.
    joined = _NUMBER_AND_UNIT.sub("\\1\u00a0\\2", text)
    filled = textwrap.fill(
        joined, WIDTH, initial_indent="  " + name.ljust(_LABEL), subsequent_indent=indent, break_on_hyphens=False
    )
    return filled.replace("\u00a0", " ")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _percent(part: int, whole: int) -> str:
    """Return a share; 100 % only for all, and 0 % only for none."""
    share = 100 * part / whole if whole else 0.0
    if share >= 99.95 and part != whole:
        return ">99.9 %"
    if 0 < share < 0.05:
        return "<0.1 %"
    return f"{share:.3g} %"


def import_line(run: ImportedRun) -> str:
    """Return an imported run of another tool in a line."""
    curve = imported_curve(run)
    p50, p999 = (nice_ns(value_at(curve, p)) for p in (50.0, 99.9))
    figures = f"p50 {p50}, p99.9 {p999}, max {nice_ns(run.max_ns)}, {run.count:,} samples"
    return f"{clean(run.label, 60)} ({clean(run.origin, 40)}): {clean(run.measures, 60)}, {figures}"
