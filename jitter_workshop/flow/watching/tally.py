"""Add up the results of a watch: its time, the counts of stalls, their causes, and the worst stalls."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from jitter_workshop.model.evidence import Cause, EvidenceReport, ExplainedStall
from jitter_workshop.model.watch import FORMAT_VERSION, KeptStall, WatchRate, WatchReport
from jitter_workshop.stats.exact import rate_limits
from jitter_workshop.stats.stalls import stall_thresholds

MOST_PARTS = 8
"""The most parts of a stall in a journal's line and in the text for the command of ``--exec``."""
MOST_CAUSES = 500
"""Greatest number of causes that are counted separately. Tasks can have any number of names, so there is a limit. All
other causes are summed up in OTHERS."""
OTHERS = ("task", "(other names)")
_HOUR_S = 3600


class Sums(Protocol):
    """Define the sums of one cause that :class:`Tally` can add up. Both a run's causes and a program's causes have
    these fields."""

    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def count(self) -> int: ...
    @property
    def total_ns(self) -> int: ...
    @property
    def worst_ns(self) -> int: ...


READ_SHARE = 0.2
"""The greatest share of the watched time that readings of the trace may take in the long run."""
MOST_CREDIT_NS, LEAST_CREDIT_NS = 10_000_000_000, -2_000_000_000


@dataclass(slots=True)
class Allowance:
    """Limit the share of a watch that is spent on reading traces. ``credit_ns``: the time that reading may still take.
    Watching increases the credit by READ_SHARE of the watched time, and each reading of a trace reduces the credit by
    the time that the reading took. The credit never falls below a lower limit. So the watch can soon read traces again
    after many stalls. The credit has an upper limit, too."""

    credit_ns: int = MOST_CREDIT_NS // 2

    def watched(self, ns: int) -> None:
        self.credit_ns = min(self.credit_ns + round(ns * READ_SHARE), MOST_CREDIT_NS)

    def read(self, ns: int) -> None:
        self.credit_ns = max(self.credit_ns - ns, LEAST_CREDIT_NS)


def iso(unix_s: float) -> str:
    """Return a time as ISO 8601, UTC, with milliseconds."""
    moment = datetime.datetime.fromtimestamp(unix_s, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(slots=True)
class Tally:
    """Add up the results of a watch. ``keep``: how many of the worst stalls are saved."""

    threshold_ns: int
    keep: int
    watched_ns: int = 0
    not_watched: Counter[str] = field(default_factory=Counter)
    counts: Counter[int] = field(default_factory=Counter)
    kept: list[KeptStall] = field(default_factory=list)
    named: int = 0
    freezes: int = 0
    frozen_ns: int = 0
    allowance: Allowance = field(default_factory=Allowance)
    _causes: dict[tuple[str, str], tuple[int, int, int]] = field(default_factory=dict)

    @property
    def stalls(self) -> int:
        """Return the number of stalls that reached the threshold."""
        return self.counts[self.threshold_ns]

    @property
    def least_kept_ns(self) -> int:
        """Return the length of the shortest kept stall; 0 while there is room for more."""
        return self.kept[-1].duration_ns if len(self.kept) >= self.keep and self.kept else 0

    def may_read(self, longest_ns: int) -> bool:
        """Return True if the trace of a group of stalls may be read now. ``longest_ns``: the longest of these stalls.
        Without credit, a trace may be read only if ``longest_ns`` is among the watch's longest stalls.
        """
        return self.allowance.credit_ns > 0 or longest_ns > self.least_kept_ns

    def froze(self, ns: int) -> None:
        """Count one freeze of the trace. ``ns``: how long it took to freeze the trace and to read it."""
        self.freezes += 1
        self.frozen_ns += ns
        self.allowance.read(ns)

    def count_lengths(self, lengths_ns: Iterable[int]) -> None:
        """Count stalls by their lengths."""
        for length in lengths_ns:
            for least in stall_thresholds(self.threshold_ns):
                self.counts[least] += length >= least

    def add_causes(self, causes: Iterable[Sums]) -> None:
        """Add the sums of stalls whose trace was read."""
        for one in causes:
            key = (one.kind, one.name)
            if key not in self._causes and len(self._causes) >= MOST_CAUSES:
                key = OTHERS
            count, total, worst = self._causes.get(key, (0, 0, 0))
            self._causes[key] = (count + one.count, total + one.total_ns, max(worst, one.worst_ns))

    def add_kept(self, stalls: Iterable[KeptStall]) -> frozenset[str]:
        """Add new stalls, and keep only the worst of all stalls. Return the trace files that are no longer needed."""
        before = {one.file for one in self.kept}
        every = sorted([*self.kept, *stalls], key=lambda one: (-one.duration_ns, one.at_ns))
        self.kept = every[: self.keep]
        needed = {one.file for one in self.kept}
        return frozenset(file for file in (before | {one.file for one in every}) - needed if file is not None)

    def causes(self) -> tuple[Cause, ...]:
        """Return the causes, the largest first."""
        watched = self.watched_ns
        found = [
            Cause(kind, name, count, total, worst, total * 1e9 / watched if watched else 0.0, 0)
            for (kind, name), (count, total, worst) in self._causes.items()
        ]
        return tuple(sorted(found, key=lambda cause: (-cause.total_ns, cause.kind, cause.name)))

    def rates(self) -> tuple[WatchRate, ...]:
        """Return, for each length, how many stalls had at least this length: in total, and in an hour of watched
        time."""
        return tuple(self._rate(least) for least in stall_thresholds(self.threshold_ns))

    def _rate(self, least_ns: int) -> WatchRate:
        count, watched_s = self.counts[least_ns], self.watched_ns / 1e9
        limits = rate_limits(count, watched_s)
        if limits is None:
            return WatchRate(least_ns, count, None, None, None)
        return WatchRate(least_ns, count, count / watched_s * _HOUR_S, *(limit * _HOUR_S for limit in limits))


@dataclass(slots=True)
class WatchSubject:
    """Describe the watched CPU or program. ``started_s``: the wall clock's time in seconds when the watch began. It is
    0 if the watch has not begun yet."""

    id: str
    watching: str
    pid: int | None = None
    cpu: int | None = None
    clock: str = ""
    evidence: str = "trace"
    started_s: float = 0.0
    duration_ns: int = 0
    ended_by: str = ""
    folder: str | None = None
    missing: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)


def report_of_watch(subject: WatchSubject, tally: Tally, unwritten: int = 0) -> WatchReport:
    """Return the report on a watch up to now."""
    traced = subject.evidence == "trace" or tally.named > 0
    notes = dict(subject.notes)
    if not traced:
        notes.setdefault("causes", "without a trace no cause is known")
    unnamed = tally.stalls - tally.named
    if traced and unnamed > 0:
        notes["named"] = f"{unnamed:,} of the stalls have no named cause, because their trace was not read or not whole"
    if unwritten:
        notes["journal"] = f"there was no room for {unwritten:,} lines of the journal"
    return WatchReport(
        format_version=FORMAT_VERSION,
        id=subject.id,
        watching=subject.watching,
        pid=subject.pid,
        cpu=subject.cpu,
        started_at=iso(subject.started_s) if subject.started_s else "",
        duration_s=subject.duration_ns / 1e9,
        watched_s=tally.watched_ns / 1e9,
        not_watched_ns=dict(tally.not_watched),
        threshold_ns=tally.threshold_ns,
        stalls=tally.stalls,
        named=tally.named,
        rates=tally.rates(),
        causes=tally.causes() if traced else None,
        kept=tuple(tally.kept),
        freezes=tally.freezes,
        frozen_ns=tally.frozen_ns,
        evidence=subject.evidence,
        clock=subject.clock,
        ended_by=subject.ended_by,
        folder=subject.folder,
        unwritten=unwritten,
        missing=dict(subject.missing),
        notes=notes,
    )


def evidence_of(report: WatchReport) -> EvidenceReport:
    """Return a watch's causes as an EvidenceReport, the type for a run's causes. So the same code can show both."""
    return EvidenceReport(
        format_version=FORMAT_VERSION,
        run=report.id,
        evidence="trace",
        threshold_ns=report.threshold_ns,
        clock=report.clock,
        stalls=report.named,
        lost_events=0,
        causes=report.causes or (),
        worst=tuple(one.explained() for one in report.kept),
        measured_ns=round(report.watched_s * 1e9),
        missing=report.missing,
    )


def as_kept(stall: ExplainedStall, at: str, file: str | None) -> KeptStall:
    """Return an explained stall as a ``KeptStall``, the form in which a watch saves stalls."""
    return KeptStall(
        *(stall.at_ns, at, stall.duration_ns, stall.cpu, stall.thread),
        parts=stall.parts,
        timeline=stall.timeline,
        notes=stall.notes,
        file=file,
    )


def without_times(stalls: Iterable[KeptStall]) -> tuple[KeptStall, ...]:
    """Return stalls without their timelines, which are long."""
    return tuple(replace(one, timeline=None) for one in stalls)


def time_not_watched(not_watched: Mapping[str, int]) -> int:
    """Return the time in ns that was not watched."""
    return sum(not_watched.values())
