"""Show ``explain RUN`` for a terminal: the causes of a run's stalls, the worst stalls, and what else ran there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jitter_workshop.evidence.attribution import AROUND_NS, ARRIVAL_NS
from jitter_workshop.model import evidence as words
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.evidence import (
    Cause,
    EvidenceReport,
    ExplainedStall,
    InterferingTask,
    RemoteAction,
    Residence,
)
from jitter_workshop.model.run import AT, made_late
from jitter_workshop.model.text import called, clean
from jitter_workshop.report.text.terminal import Style, wrap
from jitter_workshop.stats.scale import nice_ns

WIDEST = 100
CAUSES, VISITORS, FULL = 14, 12, 3
"""Rows of causes and of visitors that are shown, and stalls shown in full; the JSON has all of them."""

SHADES = "█▓▒░"
REST = "·"
ITEM = "- "
"""The characters of a stall's timeline: the four largest causes, darkest first, and everything else."""

_KINDS = {
    "task": "task {}",
    "irq": "interrupt {}",
    "softirq": "softirq {}",
    "timer": "timer {}",
    "vector": "vector {}",
    "workqueue": "work {}",
    "migration": "moved by {}",
    "page_fault": "page fault ({})",
    "around": "around {}",
}
_NO_EVENTS = {
    words.NOTHING: "no event",
    words.ASLEEP: "asleep or stopped",
    words.LOST: "not known: events lost",
    words.MISSING: "not known: an event is missing",
    words.NOT_TRACED: "on a CPU not traced",
    words.CATCHING_UP: "catching up afterwards",
}
_STAND_IN = re.compile(r"task \d{1,6}")
"""The name of a task in a private report."""
_NOBODY = {words.IDLE: "waking from idle", words.THROTTLED: "throttled, the CPU idle"}
_ABOUT = {
    "around": f"around: a gap of at most {nice_ns(AROUND_NS)} that touches the named event ({nice_ns(ARRIVAL_NS)} "
    "before an interrupt): its entry and exit, the tracing itself, in a guest the hypervisor's part in it.",
    "no_event": "no event: the trace saw nothing in this time, so it has no named cause.",
}
_MISSING = (
    "not known: the trace contradicts itself there. A switch or an end is missing, though the kernel says that "
    "nothing was lost. So this time has no named cause."
)


def cause_words(kind: str, name: str, limit: int = 40) -> str:
    """Return a cause in words: ``softirq NET_RX``, ``waking from idle``, ``no event``; at most ``limit`` columns."""
    if kind == "no_event":
        return clean(_NO_EVENTS.get(name, f"no event ({name})"), limit)
    if kind == "task" and name in _NOBODY:
        return clean(_NOBODY[name], limit)
    if kind == "task" and _STAND_IN.fullmatch(name):
        return name
    return clean(_KINDS.get(kind, f"{clean(kind, 20)} {{}}").format(called(name, 64)), limit)


def named(one: Cause | InterferingTask, limit: int = 40) -> str:
    """Return ``cause_words``, and the number of threads of that name if there are several."""
    several = f" ({one.threads:,} threads)" if one.threads > 1 else ""
    return cause_words(one.kind, one.name, max(limit - len(several), 8)) + several


def bar(stall: ExplainedStall, width: int) -> tuple[str, tuple[tuple[str, str, int], ...]]:
    """Return a stall's time from left to right in ``width`` characters, and its legend: (character, cause, ns), the
    most time first. Each character shows the largest cause in its part of the time."""
    ranked = {(part.kind, part.name): place for place, part in enumerate(stall.parts)}
    columns: list[dict[str, float]] = [{} for _ in range(max(width, 1))]
    each = stall.duration_ns / len(columns) if stall.duration_ns > 0 else 1.0
    for piece in stall.timeline:
        place = ranked.get((piece.kind, piece.name), len(SHADES))
        character = SHADES[place] if place < len(SHADES) else REST
        for column, share in _spread(piece.offset_ns, piece.ns, each, len(columns)):
            columns[column][character] = columns[column].get(character, 0.0) + share
    drawn = "".join(max(column, key=lambda c: (column[c], c), default=REST) for column in columns)
    legend = [(SHADES[i], cause_words(p.kind, p.name), p.ns) for i, p in enumerate(stall.parts[: len(SHADES)])]
    rest = sum(part.ns for part in stall.parts[len(SHADES) :])
    if rest:
        more = len(stall.parts) - len(SHADES)
        legend.append((REST, f"{more} other cause{'' if more == 1 else 's'}", rest))
    return drawn, tuple(legend)


def _spread(offset: int, ns: int, each: float, columns: int) -> Iterator[tuple[int, float]]:
    """Yield the columns that a piece covers, with its share of each."""
    end = offset + ns
    for column in range(int(offset / each), columns):
        low, high = column * each, (column + 1) * each
        if low >= end:
            return
        yield column, min(high, end) - max(low, offset)


def render(report: EvidenceReport, style: Style, label: str = "") -> str:
    """Return the whole report, ending with a line break. ``label``: the run's label."""
    width = min(style.width, WIDEST)
    style = Style(width, style.colour)
    sections = [
        _headline(report, style, label),
        _warnings(report, style),
        _causes(report, style),
        _worst(report, style),
        _present(report.residence, style),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def stalls(report: EvidenceReport) -> str:
    """Return the number of stalls of all threads, and how many are apart in time if threads shared some."""
    apart = report.distinct is not None and report.distinct != report.stalls + report.unlisted
    return _count(report.stalls, "stall") + (
        f" of the measured threads ({report.distinct:,} apart in time)" if apart else ""
    )


def _headline(report: EvidenceReport, style: Style, label: str) -> list[str]:
    name = clean(label, 40) or "Run"
    title = clean(f"{name} · {clean(report.run, 40)}", style.width)
    return [style.paint(title, "strong"), *wrap(headline(report), style.width)]


def headline(report: EvidenceReport) -> str:
    """Return the number of stalls, the measured time, and the evidence behind it."""
    return (
        f"{stalls(report)} over {nice_ns(report.threshold_ns)} in {nice_ns(report.measured_ns)} · kernel trace, clock "
        f"{clean(report.clock, 20)} · {_count(report.events, 'event')}, {report.lost_events:,} lost"
    )


def _warnings(report: EvidenceReport, style: Style) -> list[str]:
    return [line for text in limits(report) for line in wrap(text, style.width)]


def limits(report: EvidenceReport) -> list[str]:
    """Return the limits of the statements about causes, one sentence each."""
    said = []
    if report.lost_events:
        lost = ", ".join(f"CPU {clean(cpu, 6)}: {number:,}" for cpu, number in list(report.lost_by_cpu.items())[:6])
        where = f" ({lost})" if lost else ""
        said.append(
            f"The buffer was full: {report.lost_events:,} events are lost{where}. The time after the last "
            "event of a block has no named cause. The blocks of --preset quick are shorter and need less room."
        )
    if report.unbalanced:
        said.append(
            f"{_count(report.unbalanced, 'event')} did not fit the events before; the cause of that time is not known."
        )
    if report.missing:
        some = ", ".join(clean(event, 40) for event in list(report.missing)[:6])
        more = f" and {len(report.missing) - 6} more" if len(report.missing) > 6 else ""
        said.append(f"This kernel does not give {some}{more}: their information is missing below.")
    said += [clean(note, 300) + "." for field, note in report.notes.items() if field not in ("below_now",)]
    return said


def _causes(report: EvidenceReport, style: Style) -> list[str]:
    if not report.causes:
        return ["No stall to explain." if not report.stalls else "Nothing is known of what took the time."]
    shares = report.below_now is not None
    name = style.width - 36 - (11 if shares else 0)
    heads = f"{'stalls':>8}{'in all':>9}{'worst':>9}{'a second':>10}" + (f"{'in time':>11}" if shares else "")
    lines = [style.paint("cause".ljust(name) + heads, "dim")]
    for cause in report.causes[:CAUSES]:
        share = f"{without(cause, report):>11}" if shares else ""
        lines.append(named(cause, name - 1).ljust(name) + _numbers(cause) + share)
    hidden = report.causes[CAUSES:]
    if hidden:
        total = sum(cause.total_ns for cause in hidden)
        lines.append(f"{_count(len(hidden), 'other cause')}, together {nice_ns(total)}")
    lines += [""] if shares or {c.kind for c in report.causes} & _ABOUT.keys() else []
    if told := in_time(report):
        lines += wrap(
            f"{told} The last column is the share without that cause and without the time around it.", style.width
        )
    for text in explanations(report):
        first, *more = wrap(text.removeprefix(ITEM), style.width - (4 if text.startswith(ITEM) else 0))
        indent = "    " if text.startswith(ITEM) else ""
        lines += [f"  {ITEM}{first}" if indent else first, *(f"{indent}{line}" for line in more)]
    return lines


def explanations(report: EvidenceReport) -> Iterator[str]:
    """Yield sentences that explain the kinds of cause that are no names. Sentences that begin with ITEM are candidates
    for a gap without an event; they come last."""
    if any(cause.kind == "no_event" and cause.name == words.MISSING for cause in report.causes):
        yield _MISSING
    for kind, text in _ABOUT.items():
        if any(cause.kind == kind and (kind != "no_event" or cause.name == words.NOTHING) for cause in report.causes):
            yield text
            if kind == "no_event" and report.candidates:
                yield "It may have been one of these; the trace cannot tell:"
                yield from (f"{ITEM}{clean(candidate, 200)}" for candidate in report.candidates)


def _numbers(cause: Cause) -> str:
    line = f"{cause.count:>8,}{nice_ns(cause.total_ns):>9}{nice_ns(cause.worst_ns):>9}"
    return line + f"{nice_ns(cause.ns_per_second):>10}"


def without(cause: Cause, report: EvidenceReport) -> str:
    """Return the share in time without a cause, or ``same`` if it would not change (more than one cause may have to
    go)."""
    said = _share(cause.below_without)
    return "same" if said == _share(report.below_now) else said


def in_time(report: EvidenceReport) -> str:
    """Return ``In time now: 99.9 % of 400,000 (accumulator).``; "" where that is not known."""
    if report.below_now is None or not report.messages:
        return ""
    return f"In time now: {_share(report.below_now)} of {report.messages:,} ({clean(report.main_thread, 20)})."


def _worst(report: EvidenceReport, style: Style) -> list[str]:
    if not report.worst:
        return []
    lines = [
        style.paint(line, "dim") for line in wrap(f"the worst stalls, from left to right in time; {AT}", style.width)
    ]
    for number, stall in enumerate(report.worst, 1):
        lines += [""] if 1 < number <= FULL + 1 else []
        lines += _stall(number, stall, style) if number <= FULL else [_short(number, stall, style.width)]
    return lines


def _first(stall: ExplainedStall) -> str:
    where = f" on CPU {stall.cpu}" if stall.cpu is not None else ""
    return f"{nice_ns(stall.duration_ns)} at {nice_ns(stall.at_ns)} · {clean(stall.thread, 20)}{where}"


def _short(number: int, stall: ExplainedStall, width: int) -> str:
    """Return a stall in one line, with its largest cause."""
    most = stall.parts[0] if stall.parts else None
    share = f" · {_percent(most.ns, stall.duration_ns)} {cause_words(most.kind, most.name)}" if most else ""
    return f"{number:>2}  " + clean(_first(stall) + share, width - 4)


def _percent(part: int, whole: int) -> str:
    share = 100 * part / whole if whole else 0.0
    return f"{share:.0f} %" if share >= 1 else "<1 %"


def _stall(number: int, stall: ExplainedStall, style: Style) -> list[str]:
    late = f", {said}" if (said := made_late(stall.thread, stall.messages)) else ""
    lines = [f"{number:>2}  " + style.paint(_first(stall) + late, "strong")]
    drawn, legend = bar(stall, style.width - 4)
    name = min(style.width - 24, 41)
    if stall.timeline:
        lines.append("    " + style.paint(drawn, "known"))
    for character, cause, ns in legend:
        took = f"{nice_ns(ns):>10}" + _percent(ns, stall.duration_ns).rjust(7)
        lines.append(f"    {character} {clean(cause, name - 1):<{name}}{took}")
    for note in stall.notes[:3]:
        lines += [f"      {line}" for line in wrap(clean(note, 160), style.width - 6)]
    for stack in stall.stacks[:1]:
        chain = " ← ".join(clean(function, 40) for function in stack.functions[:8])
        lines += [
            f"      {line}" for line in wrap(f"in the kernel at {nice_ns(stack.offset_ns)}: {chain}", style.width - 6)
        ]
    return lines


def _present(present: Residence | None, style: Style) -> list[str]:
    if present is None:
        return []
    lines = wrap(present.proof.sentence, style.width)
    lines[0] = style.paint(lines[0], "strong") if len(lines) == 1 else lines[0]
    if present.visitors:
        name = style.width - 41
        heads = f"{'CPU':>5}{'times':>12}{'in all':>12}{'longest':>12}"
        lines += ["", style.paint("who else ran".ljust(name) + heads, "dim")]
        for v in present.visitors[:VISITORS]:
            cells = f"{v.cpu:>5}{v.count:>12,}{nice_ns(v.total_ns):>12}{nice_ns(v.worst_ns):>12}"
            lines.append(named(v, name - 1).ljust(name) + cells)
        hidden = present.visitors[VISITORS:]
        lines += (
            [f"{_count(len(hidden), 'other')}, together {nice_ns(sum(v.total_ns for v in hidden))}"] if hidden else []
        )
    if present.threads:
        name = style.width - 41
        heads = f"{'CPU':>5}{'ran':>12}{'kept off':>12}{'preempted':>12}"
        lines += ["", style.paint("measured thread".ljust(name) + heads, "dim")]
        for t in present.threads[:VISITORS]:
            cells = f"{t.cpu:>5}{nice_ns(t.ran_ns):>12}{nice_ns(t.kept_waiting_ns):>12}{t.times_preempted:>12,}"
            lines.append(clean(t.thread, name - 1).ljust(name) + cells)
    others = [*deeds(present)]
    lines += [""] if others else []
    lines += [line for text in others for line in wrap(text, style.width)]
    hand = by_hand(present.proof.cpus)
    return lines + (["", style.paint("the same by hand", "dim"), *(f"  {line}" for line in hand)] if hand else [])


def deeds(present: Residence) -> Iterator[str]:
    """Yield sentences on requested frequencies, on what kept the tick, and on who sent interrupts and moved threads."""
    yield from frequencies(present)
    yield from _kept(present)
    yield from _deeds(present.deeds)


def frequencies(present: Residence) -> Iterator[str]:
    """Yield sentences on the requested changes of frequency."""
    for seen in present.frequencies[:4]:
        low, high = seen.lowest_khz / 1e6, seen.highest_khz / 1e6
        yield f"CPU {seen.cpu} was asked for another frequency {_times(seen.changes)}: {low:.2f} to {high:.2f} GHz."


def _kept(present: Residence) -> Iterator[str]:
    for kept in present.ticks_kept[:4]:
        reason = clean(kept.reason, 40) or "no reason given"
        yield f"The tick of CPU {kept.cpu} had to go on {_times(kept.count)}: {reason}."


def _deeds(deeds: Sequence[RemoteAction]) -> Iterator[str]:
    """Yield who sent interrupts and who moved threads: the three most frequent of each."""
    senders = [deed for deed in deeds if deed.what == "ipi"][:3]
    for deed in senders:
        target = f"CPU {deed.cpu}" if deed.cpu >= 0 else "several CPUs"
        what = f"{clean(deed.of, 40)} called on {target}" if deed.of else f"{target} reschedule"
        yield f"{called(deed.who, 20)} had {what} {_times(deed.count)}."
    for deed in [deed for deed in deeds if deed.what == "move"][:3]:
        yield f"{called(deed.who, 20)} moved {clean(deed.of, 20)} to CPU {deed.cpu} {_times(deed.count)}."


def by_hand(cpus: Sequence[int], seconds: int = 10) -> tuple[str, ...]:
    """Return commands that show the same with perf (tools/perf/Documentation) and trace-cmd; they need root's
    rights."""
    if not cpus:
        return ()
    which = CpuSet.of(cpus)
    mask = which.to_mask().replace(",", "").lstrip("0")
    return (
        f"perf sched record -C {which} -o tasks.data -- sleep {seconds}",
        "perf sched timehist -s -i tasks.data",
        f"perf kwork -k irq,softirq,workqueue record -C {which} -o work.data -- sleep {seconds}",
        "perf kwork report -i work.data",
        f"trace-cmd record -B by-hand -M {mask} -e sched_switch -e irq -e workqueue sleep {seconds}",
    )


def _share(share: float | None) -> str:
    """Return a share close to 1, with as many digits as are needed to see that it is not 1."""
    if share is None:
        return "–"
    if share >= 1:
        return "all"
    digits = next((d for d in range(1, 8) if (1 - share) * 100 >= 10**-d), 8)
    return f"{int(share * 100 * 10 ** (digits + 1)) / 10 ** (digits + 1):.{digits + 1}f} %"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")
