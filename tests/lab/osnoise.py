"""Compare the kernel's osnoise tracer with our timeline and our split of the same stretch.

The tracer has a thread that reads its clock without end, and says of every interrupt and every other thread that took
its CPU: who, from when, and for how long without what interrupted *that* (Documentation/trace/osnoise-tracer.rst). It
knows threads and interrupts alone. On a real-time kernel softirqs run in threads; a timer's function belongs to its
interrupt, work to its kworker. So our finer causes are summed into its coarser ones before anything is compared.

Pure functions; ``tests.lab.osnoise_stretch`` records. All ticks are of the TSC.
"""

from __future__ import annotations

import base64
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jitter_workshop.evidence.attribution import split
from jitter_workshop.evidence.timeline import NMI, build_timeline
from jitter_workshop.evidence.tracks import IRQ, TASK, TIMER, UNKNOWN, VECTOR, Segment, Timeline
from jitter_workshop.model.evidence import Rate, Window
from tests.madetrace import unpack

THREAD = "osnoise"

Cause = tuple[str, str]
"""``irq``, ``thread`` or ``nmi``, and the name as the tracer prints it (an NMI has none)."""

HANDLERS_NS = 20_000
"""Of one NMI many handlers are called, each an event of its own for us: those that follow so closely are one NMI's."""


class Noise(NamedTuple):
    """One interruption by the tracer. ``start_ns`` and ``duration_ns`` are of the scheduler's clock. ``stamp``: when it
    was told, at its end, in ticks."""

    cause: Cause
    start_ns: int
    duration_ns: int
    stamp: int


class Gap(NamedTuple):
    """A time in which the tracer's thread did not get to read its clock; ``count`` interruptions began in it."""

    start_ns: int
    duration_ns: int
    count: int
    stamp: int


_LINE = re.compile(r"\s*.{1,16}-\d+\s+\[(\d+)\]\s+\S+\s+(\d+): (\w+): (.*)")
_WHO = re.compile(r"(.*):(-?\d+) start (\d+)\.(\d{9}) duration (\d+) ns$")
_NMI = re.compile(r"()()start (\d+)\.(\d{9}) duration (\d+) ns$")
_GAP = re.compile(r"start (\d+)\.(\d{9}) duration (\d+) ns interference (\d+)$")
_KINDS = {"irq_noise": ("irq", _WHO), "thread_noise": ("thread", _WHO), "nmi_noise": ("nmi", _NMI)}


def read(text: str, cpu: int) -> tuple[list[Noise], list[Gap]]:
    """The tracer's own text, of one CPU. Raise ValueError for an event of its that is not understood, as is a softirq
    outside a thread: the lab's real-time kernel has none."""
    noises, gaps = [], []
    for line in text.splitlines():
        parts = _LINE.match(line)
        if parts is None or int(parts[1]) != cpu:
            continue
        stamp, event, said = int(parts[2]), parts[3], parts[4].strip()
        kind, form = _KINDS.get(event, ("", _GAP))
        found = form.match(said)
        if found and kind:
            start_ns = int(found[3]) * 10**9 + int(found[4])
            noises.append(Noise((kind, found[1].strip()), start_ns, int(found[5]), stamp))
        elif found and event == "sample_threshold":
            seconds, below, length, count = (int(number) for number in found.groups())
            gaps.append(Gap(seconds * 10**9 + below, length, count, stamp))
        else:
            raise ValueError(f"not understood: {line!r}")
    return noises, gaps


class Clock(NamedTuple):
    """The scheduler's clock in ticks: ``stamp`` ticks were ``at_ns`` of it, and it runs at ``rate``."""

    stamp: int
    at_ns: int
    rate: Rate

    def ticks(self, ns: int) -> int:
        return self.stamp + self.rate.to_ticks(ns - self.at_ns)


def scheduler_clock(gaps: Sequence[Gap], rate: Rate) -> Clock:
    """From gaps, each of which was stamped a little after it ended: the least such delays are taken for none. One in
    the first and one in the last third give the rate. Raise ValueError for fewer than six."""
    third = len(gaps) // 3
    if third < 2:
        raise ValueError(f"{len(gaps)} gaps are too few to compare clocks")

    def least(some: Sequence[Gap]) -> Gap:
        return min(some, key=lambda gap: rate.to_ns(gap.stamp) - gap.start_ns - gap.duration_ns)

    first, last = least(gaps[:third]), least(gaps[-third:])
    first_ns, last_ns = (gap.start_ns + gap.duration_ns for gap in (first, last))
    return Clock(first.stamp, first_ns, Rate(last.stamp - first.stamp, last_ns - first_ns))


@dataclass(slots=True)
class Stay:
    """One interruption by our timeline, in ticks. ``taken``: without what interrupted it."""

    cause: Cause
    start: int
    end: int = 0
    taken: int = 0
    segments: list[Segment] = field(default_factory=list)


def stays(segments: Iterable[Segment], own: int, rate: Rate) -> list[Stay]:
    """Our segments of one CPU, summed into the tracer's causes, by their beginning. ``own``: the tracer's thread."""
    handlers = rate.to_ticks(HANDLERS_NS)
    segments = list(segments)
    # A softirq's segment has the softirq's name, so what its thread is called is known from where it ran plainly.
    names = {segment.pid: segment.name for segment in segments if segment.kind == TASK}
    found: list[Stay] = []
    thread: Stay | None = None
    interrupt: Stay | None = None
    nmi: Stay | None = None
    pid = own
    on_task: set[int] = set()
    for segment in segments:
        if segment.pid != pid or segment.kind == UNKNOWN:
            thread = interrupt = None
            pid = segment.pid
        if segment.kind == UNKNOWN:
            continue
        if segment.kind == VECTOR and segment.name.split()[:1] == [NMI]:
            if nmi is None or segment.start - nmi.end > handlers:
                nmi = Stay(("nmi", ""), segment.start)
                found.append(nmi)
            _add(nmi, segment)
            continue
        # Some of a task lies between two interrupts, so what touches one is a function in it, or the rest of it.
        inside = segment.kind in (IRQ, VECTOR) or (segment.kind == TIMER and interrupt is not None)
        if inside and segment.serial not in on_task:
            if interrupt is None:
                interrupt = Stay(("irq", segment.name), segment.start)
                found.append(interrupt)
            _add(interrupt, segment)
            if thread is not None:
                thread.end = segment.end
            continue
        interrupt = None
        on_task.add(segment.serial)
        if pid == own:
            continue
        if thread is None:
            thread = Stay(("thread", names.get(pid, segment.name)), segment.start)
            found.append(thread)
        _add(thread, segment)
    return sorted(found, key=lambda stay: stay.start)


def _add(stay: Stay, segment: Segment) -> None:
    stay.end = segment.end
    stay.taken += segment.end - segment.start
    stay.segments.append(segment)


TOLERANCE_NS = 10_000
TOLERANCE = 0.05
"""The most by which two lengths of one interruption may differ: the larger of the two limits holds. The kernel calls
both tracers at the same points, one after the other, and each reads a clock there: osnoise first, then it writes its
event, then we. So ours is longer by what that costs, in the emulator 1 to 5 µs by the median."""


def near(ours_ns: int, theirs_ns: int, number: int = 1) -> bool:
    """Return True if two lengths, or two sums of ``number`` of them, are the same within the tolerance."""
    return abs(ours_ns - theirs_ns) <= max(TOLERANCE_NS * number, TOLERANCE * theirs_ns)


class Pair(NamedTuple):
    """One interruption that both saw: its lengths, how far apart at most they read their clocks of one moment, and
    whether it was itself interrupted. An emulator that does not run its CPU between two such readings makes one of the
    lengths that much longer."""

    ours_ns: int
    theirs_ns: int
    apart_ns: int
    nested: bool

    @property
    def near(self) -> bool:
        return near(self.ours_ns, self.theirs_ns)

    @property
    def held(self) -> bool:
        return self.apart_ns > TOLERANCE_NS


@dataclass(slots=True)
class Row:
    """One cause. ``only_ours``, ``only_theirs``: lengths in ns of those that one alone saw. ``finer``: what ours
    consist of, kind and name, in ns. The sums are of the pairs that were not held."""

    pairs: list[Pair] = field(default_factory=list)
    only_ours: list[int] = field(default_factory=list)
    only_theirs: list[int] = field(default_factory=list)
    finer: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def steady(self) -> list[Pair]:
        return [pair for pair in self.pairs if not pair.held]

    @property
    def ours_ns(self) -> int:
        return sum(pair.ours_ns for pair in self.steady)

    @property
    def theirs_ns(self) -> int:
        return sum(pair.theirs_ns for pair in self.steady)

    @property
    def sums_agree(self) -> bool:
        return near(self.ours_ns, self.theirs_ns, max(len(self.steady), 1))


def one_by_one(
    ours: Sequence[Stay], theirs: Sequence[Noise], clock: Clock, start: int, end: int, rate: Rate
) -> dict[Cause, Row]:
    """Every interruption between two moments beside the other's of the same cause that overlaps it most; none is
    another's twice. Those that reach an edge of the stretch could be told by one alone, and are left out."""
    rows: dict[Cause, Row] = {}
    placed: dict[Cause, list[tuple[int, int, Noise]]] = {}
    for noise in theirs:
        began = clock.ticks(noise.start_ns)
        placed.setdefault(noise.cause, []).append((began, max(noise.stamp, began), noise))
    used: set[Noise] = set()
    for stay in ours:
        best, most = None, 0
        for other in _from(placed.get(stay.cause, []), stay):
            common = min(other[1], stay.end) - max(other[0], stay.start)
            if common > most and other[2] not in used:
                best, most = other, common
        inside = start < stay.start and stay.end < end
        if best is not None:
            used.add(best[2])
            inside = inside and start < best[0] and best[1] < end
        if inside:
            row = rows.setdefault(stay.cause, Row())
            length = rate.to_ns(stay.taken)
            for segment in stay.segments:
                row.finer[segment.kind, segment.name] += rate.to_ns(segment.end - segment.start)
            if best is None:
                row.only_ours.append(length)
            else:
                row.pairs.append(_pair(stay, *best, rate))
    for cause, others in placed.items():
        for began, ended, noise in others:
            if noise not in used and start < began and ended < end:
                rows.setdefault(cause, Row()).only_theirs.append(noise.duration_ns)
    return rows


def _pair(stay: Stay, began: int, told: int, noise: Noise, rate: Rate) -> Pair:
    """At the end three clocks are read: the tracer's own, its event's, ours. When its own was is known of what nothing
    interrupted: by its length."""
    nested = stay.taken < stay.end - stay.start
    ended = told if nested else began + rate.to_ticks(noise.duration_ns)
    apart = max(abs(began - stay.start), abs(stay.end - told), abs(told - ended))
    return Pair(rate.to_ns(stay.taken), noise.duration_ns, rate.to_ns(apart), nested)


def _from(others: list[tuple[int, int, Noise]], stay: Stay) -> Iterator[tuple[int, int, Noise]]:
    """Those that may overlap: they are in order, and none of one cause overlaps the next of it."""
    place = max(bisect_left(others, stay.start, key=lambda other: other[0]) - 1, 0)
    for other in others[place:]:
        if other[0] >= stay.end:
            return
        yield other


@dataclass(frozen=True, slots=True)
class SplitGap:
    """One gap of the tracer's thread: what interrupted it, by cause in ns, by our split of the gap and by the tracer's
    events in it; ``counts``: interruptions that began in it, by us and by them."""

    gap: Gap
    ours: dict[Cause, int]
    theirs: dict[Cause, int]
    counts: tuple[int, int]

    @property
    def same(self) -> bool:
        """Return True if both name the same causes, and as many interruptions; none is an answer, too."""
        return self.ours.keys() == self.theirs.keys() and self.counts[0] == self.counts[1]

    @property
    def near(self) -> bool:
        """Return True if what was taken in all is the same within the tolerance."""
        return near(sum(self.ours.values()), sum(self.theirs.values()), max(self.counts[1], 1))


def split_gaps(
    gaps: Iterable[Gap], theirs: Sequence[Noise], ours: Sequence[Stay], timeline: Timeline, cpu: int, clock: Clock
) -> list[SplitGap]:
    """Return what our attribution says of each gap within the timeline. The tracer's thread is the timeline's only
    one."""
    (thread,) = timeline.threads
    label = sorted((s.start, s.end, stay.cause) for stay in ours for s in stay.segments)
    starts = [one[0] for one in label]
    begins = [stay.start for stay in ours]
    told = sorted(theirs, key=lambda noise: noise.start_ns)
    told_at = [noise.start_ns for noise in told]
    found = []
    for gap in gaps:
        end_ns = gap.start_ns + gap.duration_ns
        low, high = clock.ticks(gap.start_ns), clock.ticks(end_ns)
        if low < timeline.start or high >= timeline.end or high <= low:
            continue
        sums: Counter[Cause] = Counter()
        pieces = split(Window(low, high, cpu, thread), timeline)
        if sum(piece.ticks for piece in pieces) != high - low:
            raise ValueError(f"the parts of {gap} are not the whole")
        for piece in pieces:
            if piece.kind in ("around", "no_event"):
                continue
            for begin, end, cause in label[max(bisect_right(starts, piece.start) - 1, 0) :]:
                if begin >= piece.end:
                    break
                sums[cause] += max(min(end, piece.end) - max(begin, piece.start), 0)
        said: Counter[Cause] = Counter()
        for noise in told[bisect_left(told_at, gap.start_ns) : bisect_left(told_at, end_ns)]:
            said[noise.cause] += noise.duration_ns
        named = {cause: timeline.rate.to_ns(ticks) for cause, ticks in sums.items() if ticks}
        found.append(
            SplitGap(gap, named, dict(said), (bisect_left(begins, high) - bisect_left(begins, low), gap.count))
        )
    return found


@dataclass(frozen=True, slots=True)
class Comparison:
    """Of one stretch. ``rows``: one by one; ``gaps``: each that the tracer's thread felt within the stretch."""

    rows: dict[Cause, Row]
    gaps: list[SplitGap]

    @property
    def pairs(self) -> list[Pair]:
        return [pair for row in self.rows.values() for pair in row.pairs]

    @property
    def nested(self) -> list[Pair]:
        """The interruptions that were themselves interrupted: where time could be counted twice."""
        return [pair for pair in self.pairs if pair.nested and not pair.held]

    def table(self) -> str:
        """For a reader: of each cause how many both saw, or one alone; in how many the two clocks were read more than
        the tolerance apart; of the others the sums in ms; what ours consists of."""
        lines = [f"{'':24}{'both':>7}{'only ours':>11}{'theirs':>8}{'held':>6}{'ours':>12}{'theirs':>12}"]
        for cause, row in sorted(self.rows.items(), key=lambda one: -one[1].theirs_ns):
            held = len(row.pairs) - len(row.steady)
            lines.append(
                f"{' '.join(cause):24.24}{len(row.pairs):7,}{len(row.only_ours):11,}{len(row.only_theirs):8,}{held:6,}"
                f"{sum_ms([row.ours_ns]):>12}{sum_ms([row.theirs_ns]):>12}"
            )
            finer = [f"{kind} {name} {ns / 1e6:.3f}" for (kind, name), ns in row.finer.most_common(4)]
            if len(finer) > 1:
                lines.append(f"    by ours, with what was held: {', '.join(finer)}")
        pairs, gaps = self.pairs, self.gaps
        nested = self.nested
        lines += [
            f"{len(pairs):,} interruptions, {sum(pair.near for pair in pairs):,} of the same length",
            f"{len(nested):,} interrupted themselves, without that {sum_ms(pair.ours_ns for pair in nested)} by ours, "
            f"{sum_ms(pair.theirs_ns for pair in nested)} by theirs",
            f"{len(gaps):,} gaps, {sum(bool(gap.theirs) for gap in gaps):,} with interruptions: the same causes and as "
            f"many in {sum(gap.same for gap in gaps):,}, as long in {sum(gap.near for gap in gaps):,}",
        ]
        return "\n".join(lines)


def sum_ms(lengths_ns: Iterable[int]) -> str:
    return f"{sum(lengths_ns) / 1e6:.3f} ms"


def compare(raw: Mapping[str, Any]) -> Comparison:
    """Return what ``osnoise_stretch`` recorded. Raise ValueError where it cannot be compared."""
    (start, start_ns), (end, end_ns) = raw["start"], raw["end"]
    rate, cpu = Rate(end - start, end_ns - start_ns), raw["cpu"]
    events = list(unpack(base64.b64decode(raw["events"]), raw["strings"]))
    timeline = build_timeline(events, [cpu], {THREAD: raw["thread"]}, start, end, rate)
    noises, gaps = read(raw["osnoise"], cpu)
    clock = scheduler_clock([gap for gap in gaps if start <= gap.stamp < end], rate)
    ours = stays(timeline.cpus[cpu].segments, raw["thread"], rate)
    return Comparison(
        one_by_one(ours, noises, clock, start, end, rate),
        split_gaps(gaps, noises, ours, timeline, cpu, clock),
    )
