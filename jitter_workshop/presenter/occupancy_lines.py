"""Return the third page of a run's causes: what ran where, with the chapter's subject on top."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from jitter_workshop.model.evidence import EvidenceReport, InterferingTask, Residence
from jitter_workshop.model.text import clean
from jitter_workshop.presenter import cause_lines as views
from jitter_workshop.presenter.lines import wrap
from jitter_workshop.report.text.evidence import cause_words, frequencies
from jitter_workshop.stats.scale import nice_ns

MOST_ROWS = 12
WORK = ("workqueue", "softirq", "timer", "irq", "vector")


def others(report: EvidenceReport, focus: Sequence[str], width: int) -> Iterator[Text]:
    """Yield the page. ``focus``: words of a chapter's ``evidence``; words without a section here are ignored."""
    present = report.residence
    if present is None:
        return
    if "frequency" in focus:
        yield from _frequency(present, width)
    if "residence" in focus:
        yield from _threads(present, width)
    if "work" in focus:
        yield from _work(present, width)
    yield from views.visitors(report, width)
    if "residence" not in focus:
        yield Text()
        yield from _threads(present, width)


def _threads(present: Residence, width: int) -> Iterator[Text]:
    yield Text("WHERE THE MEASURED THREADS RAN", "bold dim")
    name = width - 41
    yield Text(f"{'':<{name}}{'CPU':>5}{'ran':>12}{'kept off':>12}{'preempted':>12}", "dim")
    for t in present.threads[:MOST_ROWS]:
        cells = f"{t.cpu:>5}{nice_ns(t.ran_ns):>12}{nice_ns(t.kept_waiting_ns):>12}{t.times_preempted:>12,}"
        yield Text(f"{clean(t.thread, name - 1):<{name}}{cells}", "text")
    if len(present.threads) > MOST_ROWS:
        yield Text(f"and {len(present.threads) - MOST_ROWS} more", "dim")
    yield Text()


def _frequency(present: Residence, width: int) -> Iterator[Text]:
    yield Text("FREQUENCY", "bold dim")
    told = list(frequencies(present)) or ["Linux's trace shows no request for another frequency during the blocks."]
    for text in told:
        yield from wrap(Text(text, "text"), width)
    yield Text()


def _work(present: Residence, width: int) -> Iterator[Text]:
    """Yield work by function or vector. The average is the time of one call, without what interrupted it."""
    yield Text("WORK, SOFTIRQS AND INTERRUPTS", "bold dim")
    rows = sorted((v for v in present.visitors if v.kind in WORK), key=_rank)[:MOST_ROWS]
    name = width - 45
    yield Text(f"{'':<{name}}{'CPU':>5}{'times':>10}{'each':>10}{'longest':>10}{'in all':>10}", "dim")
    for v in rows:
        each = nice_ns(v.total_ns / v.count) if v.count else "–"
        cells = f"{v.cpu:>5}{v.count:>10,}{each:>10}{nice_ns(v.worst_ns):>10}{nice_ns(v.total_ns):>10}"
        yield Text(f"{cause_words(v.kind, v.name, name - 1):<{name}}{cells}", "text")
    if not rows:
        yield Text("None of them came to these CPUs.", "text")
    yield Text()


def _rank(visitor: InterferingTask) -> tuple[int, int]:
    return WORK.index(visitor.kind), -visitor.total_ns
