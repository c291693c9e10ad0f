"""Summarise a run's stalls: causes, longest stalls, and each cause's number of late messages. Also list possible
reasons for gaps without an event.
"""

from __future__ import annotations

import heapq
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median_low

from jitter_workshop.evidence.attribution import AROUND_NS
from jitter_workshop.evidence.cpu_occupancy import Presence
from jitter_workshop.evidence.explain import CauseKey, ExplainedBlock, SplitStall
from jitter_workshop.evidence.tracks import MOST_UNREPORTED, TASK, Sent
from jitter_workshop.model.evidence import (
    FAULT,
    FORMAT_VERSION,
    Cause,
    EvidenceReport,
    ExplainedStall,
    Part,
    Slice,
    StackSeen,
    is_of_timer,
)
from jitter_workshop.model.run import Run
from jitter_workshop.stats.scale import nice_ns

TOP = 10
_MOST_SLICES = 1_000
_MOST_STACKS = 8
_MOST_NOTES = 6
_AROUND, _NO_EVENT = "around", "no_event"


@dataclass(slots=True)
class _Sums:
    """Hold the sums of one cause over all stalls. ``saved``: the number of late messages that would be in time without
    this cause. ``each``: the times in the stalls, with the gaps next to the cause."""

    count: int = 0
    total_ns: int = 0
    worst_ns: int = 0
    late: int = 0
    saved: int = 0
    each: array[int] = field(default_factory=lambda: array("q"))

    def add(self, took: int, beside: int, late: int, saved: int) -> None:
        """Add one stall.

        ``took``: the cause's time in it, in ns. ``beside``: the time of the gaps next to the cause. ``late``: the
        stall's late messages. ``saved``: how many of them would be in time without the cause.
        """
        self.count += 1
        self.total_ns += took
        self.worst_ns = max(self.worst_ns, took)
        self.late += late
        self.saved += saved
        self.each.append(took + beside)


@dataclass(slots=True)
class _Totals:
    causes: defaultdict[CauseKey, _Sums] = field(default_factory=lambda: defaultdict(_Sums))
    timer: _Sums = field(default_factory=_Sums)
    late: int = 0

    def add(self, stall: SplitStall, threshold_ns: int, main: bool) -> None:
        parts = stall.parts()
        messages = stall.window.messages if main else 0
        self.late += messages
        of_timer = 0
        for key, took in parts.items():
            name = FAULT if key[0] == "page_fault" else key[1]
            beside = parts.get((_AROUND, name), 0) if key[0] not in (_AROUND, _NO_EVENT) else 0
            saved = stall.duration_ns - took - beside < threshold_ns
            self.causes[key].add(took, beside, messages, messages if saved else 0)
            of_timer += took if is_of_timer(*key) else 0
        if of_timer:
            saved = stall.duration_ns - of_timer < threshold_ns
            self.timer.add(of_timer, 0, messages, messages if saved else 0)


def summarise_run(
    blocks: Iterable[ExplainedBlock],
    *,
    run: str,
    threshold_ns: int,
    clock: str,
    main_thread: str,
    messages: int | None = None,
    unlisted: int = 0,
    distinct: int | None = None,
    notes: Mapping[str, str] | None = None,
    missing: Mapping[str, str] | None = None,
    top: int = TOP,
    placed: Mapping[str, int] | None = None,
    lost_elsewhere: int = 0,
    candidates: Sequence[str] = (),
    helpers: Collection[str] = (),
) -> EvidenceReport:
    """Return the report on a run. Only one of the blocks is in memory at a time.

    ``main_thread``: the thread whose messages count (accumulator, sampler, …). ``messages``: the number of all messages
    of ``main_thread``. ``unlisted``: the number of stalls that were counted but not listed. ``distinct``: the number of
    stalls that do not overlap. ``notes``: known reasons for gaps in the report. ``placed``: thread → the CPU to which
    it was pinned. ``lost_elsewhere``: the number of lost events, of the kinds that are traced on all CPUs.
    ``candidates``: see :func:`candidates`. ``helpers``: the names of the run's threads that are not measured.

    If a stall without a cause would be below the threshold, its late messages count for this cause. Otherwise none of
    its messages counts for the cause, although some might have been in time. So the number of late messages of a cause
    is a lower bound.
    """
    totals, worst, present = _Totals(), _Worst(top), Presence(placed, helpers)
    lost: Counter[int] = Counter()
    unreported: Counter[str] = Counter()
    stalls = measured_ns = events = unbalanced = 0
    for block in blocks:
        for stall in block.stalls:
            totals.add(stall, threshold_ns, stall.window.thread == main_thread)
        worst.add(block)
        present.add(block.timeline, block.span.start_ns)
        lost.update(block.timeline.lost)
        stalls += len(block.stalls)
        measured_ns += block.span.duration_ns
        events += block.timeline.events
        unbalanced += block.timeline.unbalanced
        unreported.update(block.timeline.unreported)
    noted = dict(notes or {})
    if not messages:
        noted["below_now"] = "the number of messages is not known"
    if unlisted:
        noted["stalls"] = (
            f"{unlisted:,} shorter stalls were counted but not listed, so this report has no causes for them"
        )
    if lost_elsewhere:
        noted["lost_events"] = (
            f"{lost_elsewhere:,} of these lost events were moves, wakes or calls from one CPU to another"
        )
    return EvidenceReport(
        format_version=FORMAT_VERSION,
        run=run,
        evidence="trace",
        threshold_ns=threshold_ns,
        clock=clock,
        stalls=stalls,
        lost_events=lost.total() + lost_elsewhere,
        causes=_causes(totals, measured_ns, messages, present.threads()),
        worst=worst.found(),
        measured_ns=measured_ns,
        unlisted=unlisted,
        distinct=distinct,
        lost_by_cpu={str(cpu): number for cpu, number in sorted(lost.items())},
        events=events,
        unbalanced=unbalanced,
        unreported=dict(unreported.most_common(MOST_UNREPORTED)),
        unknown_ns=present.unknown_ns,
        main_thread=main_thread,
        messages=messages or None,
        below_now=_share(totals.late, messages),
        residence=present.residence(measured_ns, missing or {}),
        timer=_cause(("timer", ""), totals.timer, totals.late, measured_ns, messages) if totals.timer.count else None,
        missing=dict(missing or {}),
        notes=noted,
        candidates=tuple(candidates),
    )


def candidates(run: Run) -> tuple[str, ...]:
    """Return possible explanations of gaps without an event in this run, the likeliest first.

    Each is a sentence with facts of the run, and none is proven. The sentences are not cleaned: they contain names that
    this program did not choose.
    """
    hypervisor = run.host.get("hypervisor")
    throttled = sum(block.throttle_events or 0 for block in run.blocks)
    found = []
    if hypervisor:
        found.append(f"the hypervisor ({hypervisor}) ran something else: {_steal(run)}")
    if throttled:
        found.append(f"the processor lowered its own clock {throttled:,} times in this run (throttling)")
    if not hypervisor:
        found.append("the firmware stopped all CPUs (SMI): this run did not count such stops")
    if run.host.get("smt"):
        found.append(
            "the other thread of the same core was busy (SMT): the trace of this CPU does not show the other thread"
        )
    found.append("memory: another thread used the same cache line, page or bus at that moment")
    return tuple(found)


class _Worst:
    """Keep the longest stalls seen so far, the longest first. Of two equal stalls the earlier one comes first."""

    def __init__(self, top: int) -> None:
        self._top = max(top, 0)
        self._found: list[ExplainedStall] = []

    def add(self, block: ExplainedBlock) -> None:
        least = self._found[-1].duration_ns if len(self._found) == self._top and self._found else -1
        longest = heapq.nsmallest(
            self._top,
            (stall for stall in block.stalls if stall.duration_ns > least),
            key=lambda stall: (-stall.duration_ns, stall.offset_ns),
        )
        found = self._found + [explain_stall(block, stall) for stall in longest]
        self._found = sorted(found, key=lambda stall: (-stall.duration_ns, stall.at_ns))[: self._top]

    def found(self) -> tuple[ExplainedStall, ...]:
        return tuple(self._found)


def _share(late: int, messages: int | None) -> float | None:
    return max(1 - late / messages, 0.0) if messages else None


def _causes(totals: _Totals, measured_ns: int, messages: int | None, threads: Mapping[str, int]) -> tuple[Cause, ...]:
    found = [
        _cause(key, sums, totals.late, measured_ns, messages, threads.get(key[1], 1) if key[0] == TASK else 1)
        for key, sums in totals.causes.items()
    ]
    return tuple(sorted(found, key=lambda cause: (-cause.total_ns, cause.kind, cause.name)))


def _cause(key: CauseKey, sums: _Sums, late: int, measured_ns: int, messages: int | None, threads: int = 1) -> Cause:
    """Return a cause with its sums. ``late``: the late messages of all stalls. ``messages``: all messages, None if not
    known."""
    return Cause(
        kind=key[0],
        name=key[1],
        count=sums.count,
        total_ns=sums.total_ns,
        worst_ns=sums.worst_ns,
        ns_per_second=sums.total_ns * 1e9 / measured_ns if measured_ns > 0 else 0.0,
        late_messages=sums.late,
        below_without=_share(late - sums.saved, messages),
        threads=threads,
        typical_ns=median_low(sums.each) if sums.each else 0,
    )


def explain_stall(block: ExplainedBlock, stall: SplitStall) -> ExplainedStall:
    """Return one stall as the report shows it: its parts, slices, CPU, notes and stacks."""
    parts = [Part(kind, name, ns) for (kind, name), ns in stall.parts().items()]
    return ExplainedStall(
        at_ns=block.span.start_ns + stall.offset_ns,
        duration_ns=stall.duration_ns,
        cpu=stall.window.cpu if stall.window.cpu >= 0 else None,
        thread=stall.window.thread,
        messages=stall.window.messages,
        block=block.span.index,
        parts=tuple(sorted(parts, key=lambda part: (-part.ns, part.kind, part.name))),
        timeline=_slices(stall),
        stacks=_stacks(block, stall),
        notes=_notes(block, stall),
    )


def _slices(stall: SplitStall) -> tuple[Slice, ...]:
    """Return the pieces of a stall in order of time, at most _MOST_SLICES. A stall with more pieces is cut into slices
    of equal length. Each slice gets the cause that took the most time in this slice.
    """
    every = [
        (start, end, (piece.kind, piece.name))
        for piece, (start, end) in zip(stall.pieces, pairwise(stall.edges_ns), strict=True)
        if end > start
    ]
    if len(every) > _MOST_SLICES:
        every = list(_coarse(every, stall.duration_ns))
    return tuple(Slice(*key, start, end - start) for start, end, key in every)


def _coarse(every: Sequence[tuple[int, int, CauseKey]], whole: int) -> Iterator[tuple[int, int, CauseKey]]:
    place = 0
    for column in range(_MOST_SLICES):
        low, high = whole * column // _MOST_SLICES, whole * (column + 1) // _MOST_SLICES
        took: Counter[CauseKey] = Counter()
        while place < len(every) and every[place][0] < high:
            start, end, key = every[place]
            took[key] += min(end, high) - max(start, low)
            if end > high:
                break
            place += 1
        if high > low:
            yield low, high, took.most_common(1)[0][0]


def _cpus(block: ExplainedBlock, stall: SplitStall) -> set[int]:
    """Return the CPUs on which the thread was during a stall."""
    window = stall.window
    thread = block.timeline.threads.get(window.thread)
    seen = {stretch.cpu for stretch in thread.between(window.start, window.end)} if thread is not None else set()
    return {cpu for cpu in (seen | {window.cpu}) if cpu >= 0}


def _stacks(block: ExplainedBlock, stall: SplitStall) -> tuple[StackSeen, ...]:
    window, timeline = stall.window, block.timeline
    found = [
        StackSeen(timeline.rate.to_ns(ts - window.start), event, tuple(functions.split(";")))
        for cpu in _cpus(block, stall)
        for ts, event, functions in timeline.stacks.get(cpu, ())
        if window.start <= ts < window.end
    ]
    return tuple(sorted(found, key=lambda seen: seen.offset_ns)[:_MOST_STACKS])


def _notes(block: ExplainedBlock, stall: SplitStall) -> tuple[str, ...]:
    """Return sentences on the tasks that sent interrupts to the thread's CPU, moved the thread or woke it during the
    stall."""
    window, deeds = stall.window, block.timeline.deeds
    cpus = _cpus(block, stall)
    vectors = any(piece.kind == "vector" for piece in stall.pieces)
    said: Counter[str] = Counter()
    # Another CPU sends an interrupt a short time before the interrupt stops this CPU.
    begin = window.start - block.timeline.rate.to_ticks(AROUND_NS)
    for deed in deeds[bisect_left(deeds, begin, key=lambda deed: deed.ts) :]:
        if deed.ts >= window.end:
            break
        ipi = deed.what == "ipi" and vectors and deed.cpu in cpus
        if ipi or (deed.of == window.thread and deed.what != "ipi" and deed.ts >= window.start):
            said[_said(deed)] += 1
    return tuple(text + (f", {number:,} times" if number > 1 else "") for text, number in said.most_common(_MOST_NOTES))


def _said(deed: Sent) -> str:
    who = f"{deed.who} on CPU {deed.by}"
    if deed.what == "ipi":
        return f"{who} made CPU {deed.cpu} run {deed.of}" if deed.of else f"{who} made CPU {deed.cpu} reschedule"
    if deed.what == "move":
        return f"{deed.of} was moved to CPU {deed.cpu} while {deed.who} ran on CPU {deed.by}"
    return f"{who} woke {deed.of}"


def _steal(run: Run) -> str:
    if run.steal_ns is None:
        return "the kernel does not say (no steal clock)"
    if run.steal_ns:
        return f"the steal clock grew by {nice_ns(run.steal_ns)} in this run"
    steps = f" of {nice_ns(run.steal_resolution_ns)}" if run.steal_resolution_ns else ""
    return f"the steal clock did not grow, but this clock counts only in steps{steps}"
