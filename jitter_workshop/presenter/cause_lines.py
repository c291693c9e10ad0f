"""Return the lines of the screen of a run's causes. All are pure functions of the report; names are made printable."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from jitter_workshop.model.evidence import Cause, EvidenceReport, ExplainedStall
from jitter_workshop.model.run import AT, made_late
from jitter_workshop.model.text import clean
from jitter_workshop.presenter.lines import log_bar, wrap
from jitter_workshop.report.text.evidence import (
    ITEM,
    REST,
    SHADES,
    bar,
    cause_words,
    deeds,
    explanations,
    named,
    stalls,
)
from jitter_workshop.stats.scale import nice_ns

MOST_CAUSES = 24
NOBODY = ("no_event", "around")
"""Kinds of cause that name no task, interrupt or other source."""
_NUMBERS = 34
_BAR = 16
_STALL_BAR = 24


def head(report: EvidenceReport, width: int) -> Iterator[Text]:
    """Yield the number of stalls, the size of the trace, and whether anything but the measured threads ran on their
    CPUs."""
    said = (
        f"{stalls(report)} over {nice_ns(report.threshold_ns)} in {nice_ns(report.measured_ns)} of measuring · "
        f"{report.events:,} events, {report.lost_events:,} lost"
    )
    yield from wrap(Text(said, "dim"), width)
    if report.residence is not None:
        yield from wrap(Text(clean(report.residence.proof.sentence, 300), "text"), width)
    if report.lost_events:
        lost = "The buffer was full: the time after the last event of a block has no named cause."
        yield from wrap(Text(lost, "bad"), width, "▲ ")
    if report.unbalanced:
        events = "1 event" if report.unbalanced == 1 else f"{report.unbalanced:,} events"
        unfit = f"{events} did not fit the events before; the cause of that time is not known."
        yield from wrap(Text(unfit, "bad"), width, "▲ ")


def causes(report: EvidenceReport, width: int) -> Iterator[Text]:
    """Yield the causes, the largest first, each with its total time (a logarithmic bar where there is room)."""
    yield Text("WHO TOOK THE TIME", "bold dim")
    if not report.causes:
        yield Text("No stall to explain.", "text")
        return
    bars = width >= _NUMBERS + _BAR + 30
    name = width - _NUMBERS - (_BAR + 1 if bars else 0)
    yield Text(f"{'':<{name}}{'stalls':>8}{'in all':>9}{'worst':>8}{'a second':>9}", "dim")
    largest = report.causes[0].total_ns
    for cause in report.causes[:MOST_CAUSES]:
        yield _cause(cause, name, largest if bars else 0)
    hidden = report.causes[MOST_CAUSES:]
    if hidden:
        rest = f"{len(hidden)} others, together {nice_ns(sum(c.total_ns for c in hidden))}"
        yield Text(rest, "dim")
    yield Text()
    for text in explanations(report):
        item = text.startswith(ITEM)
        first, rest = ("  - ", "    ") if item else ("", "")
        yield from wrap(Text(text.removeprefix(ITEM), "dim"), width, first, rest)


def _cause(cause: Cause, name: int, largest: int) -> Text:
    nobody = cause.kind in NOBODY
    line = Text(f"{named(cause, name - 1):<{name}}", "dim" if nobody else "text")
    line.append(f"{cause.count:>8,}{nice_ns(cause.total_ns):>9}{nice_ns(cause.worst_ns):>8}", "text")
    line.append(f"{nice_ns(cause.ns_per_second):>9}", "text")
    if largest:
        line.append(f" {log_bar(cause.total_ns, largest, _BAR, 100.0)}", "faint" if nobody else "accent")
    return line


def stall_line(number: int, stall: ExplainedStall, under: bool, width: int) -> Text:
    """Return a stall in one line: its length, its time in the run, its largest cause, and a bar of its parts where
    there is room."""
    line = Text("▸ " if under else "  ", "accent")
    line.append(f"{number:>2} {nice_ns(stall.duration_ns):>8} ", "bold text" if under else "text")
    line.append(f"at {nice_ns(stall.at_ns):<8} ", "dim")
    if width >= line.cell_len + _STALL_BAR + 24:
        line.append_text(coloured(bar(stall, _STALL_BAR)[0], stall))
        line.append(" ")
    if stall.parts:
        most = stall.parts[0]
        share = f"{100 * most.ns / stall.duration_ns:.0f} %" if stall.duration_ns else ""
        line.append(f"{share:>5} ", "dim")
        line.append(cause_words(most.kind, most.name, max(width - line.cell_len, 8)), "text")
    line.append(" " * max(width - line.cell_len, 0))
    if under:
        line.stylize("under")
    return line


def coloured(drawn: str, stall: ExplainedStall) -> Text:
    """Return a stall's bar, with a character and a colour for each cause. Parts without a named cause stay pale, so
    that the named causes are seen first."""
    colours = dict(zip(SHADES, ("accent", "cool", "good", "bad"), strict=True))
    for character, part in zip(SHADES, stall.parts, strict=False):
        if part.kind in NOBODY:
            colours[character] = "faint"
    made = Text()
    for character in drawn:
        made.append(character, colours.get(character, "dim"))
    return made


def stall_page(stall: ExplainedStall, width: int) -> Iterator[Text]:
    """Yield one stall in full: its CPU, its parts, the senders and wakers, and the kernel functions."""
    where = f" on CPU {stall.cpu}" if stall.cpu is not None else ""
    late = f" · {said}" if (said := made_late(stall.thread, stall.messages)) else ""
    said = f"{nice_ns(stall.duration_ns)} at {nice_ns(stall.at_ns)} · {clean(stall.thread, 20)}{where}{late}"
    yield from wrap(Text(said, "bold text"), width)
    yield from wrap(Text(AT, "faint"), width)
    drawn, legend = bar(stall, width)
    yield coloured(drawn, stall)
    name = max(width - 22, 12)
    for character, cause, ns in legend:
        share = 100 * ns / stall.duration_ns if stall.duration_ns else 0.0
        line = coloured(character, stall)
        line.append(f" {clean(cause, name - 1):<{name}}", "dim" if character == REST else "text")
        line.append(f"{nice_ns(ns):>10}", "text")
        line.append((f"{share:.0f} %" if share >= 1 else "<1 %").rjust(7), "dim")
        yield line
    for note in stall.notes[:4]:
        yield from wrap(Text(clean(note, 160), "dim"), width, "· ", "  ")
    for stack in stall.stacks[:1]:
        chain = " ← ".join(clean(function, 40) for function in stack.functions[:8])
        text = f"in the kernel at {nice_ns(stack.offset_ns)}: {chain}"
        yield from wrap(Text(text, "dim"), width, "· ", "  ")


def visitors(report: EvidenceReport, width: int) -> Iterator[Text]:
    """Yield what else was on the measured CPUs, and who sent, moved and woke."""
    present = report.residence
    if present is None:
        return
    yield Text("WHO ELSE RAN THERE", "bold dim")
    name = width - 35
    yield Text(f"{'':<{name}}{'CPU':>5}{'times':>10}{'in all':>10}{'longest':>10}", "dim")
    for v in present.visitors[:MOST_CAUSES]:
        cells = f"{v.cpu:>5}{v.count:>10,}{nice_ns(v.total_ns):>10}{nice_ns(v.worst_ns):>10}"
        yield Text(f"{named(v, name - 1):<{name}}{cells}", "text")
    told = list(deeds(present))
    if told:
        yield Text()
        for text in told:
            yield from wrap(Text(text, "dim"), width)
