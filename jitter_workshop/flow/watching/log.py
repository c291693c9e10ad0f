"""Write the journal of a watch: stalls, steps of the clocks, and at regular intervals the sums so far."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from jitter_workshop.errors import SessionError
from jitter_workshop.flow.watching.tally import MOST_PARTS, Tally, WatchSubject, iso, report_of_watch, without_times
from jitter_workshop.model.codec import from_plain, to_plain
from jitter_workshop.model.watch import KeptStall, WatchReport
from jitter_workshop.session import watches
from jitter_workshop.session.ids import new_id
from jitter_workshop.session.traces import RunTrace
from jitter_workshop.stats.scale import nice_ns

STATE_S = 60.0
"""Least number of seconds between two entries with the sums."""
MOST_LINES = 20
"""Greatest number of stalls of one freeze that have a line each in the journal. Further stalls are only counted."""
_STEP_NS = 100_000_000
"""The shortest step of the wall clock, in ns, that the journal notes. Slewing is no step: it moves the clock by at most
0.5 ms in a second."""
_SLEPT_NS = 10_000_000
KILLED = "a kill of the watch or a stop of the host (the journal has no last line)"


class Teller(Protocol):
    """Send news of a watch to another program: to the user's command, or to Prometheus (through a file)."""

    def stall(self, report: WatchReport, worst: KeptStall, count: int) -> None:
        """Send the news that the trace was frozen. ``worst``: the longest stall in this trace. ``count``: the number of
        stalls in this trace."""

    def state(self, report: WatchReport) -> None:
        """Send the sums of the watch."""

    def close(self) -> None:
        """Stop sending at the end of the watch. Wait for the current message, but not for long."""


class Log:
    """Hold the results of a watch, and write its journal. ``folder``: the folder of the watch. ``clock``: returns the
    time of a clock without steps, in ns."""

    def __init__(
        self,
        subject: WatchSubject,
        tally: Tally,
        folder: Path,
        tellers: Sequence[Teller] = (),
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.subject, self.tally, self.folder = subject, tally, folder
        subject.folder = str(folder)
        self._tellers, self._clock = tellers, clock
        self._journal = watches.WatchJournal(folder)
        self._file_numbers = 0
        self._told_ns = 0
        self._wall_ns, self._slept_ns = _offsets()
        self.start_ns = 0

    def begin(self, start_ns: int) -> None:
        """Begin the watch at ``start_ns`` of the clock."""
        self.start_ns = start_ns
        self.subject.started_s = time.time() - (self._clock() - start_ns) / 1e9
        self._told_ns = self._clock()
        self._write("begin", monotonic_ns=start_ns, watch=to_plain(self.report()))

    def wall(self, at_ns: int) -> str:
        """Return the wall clock's time at a moment of the watch, in ISO 8601. ``at_ns``: ns since the watch began."""
        return iso(time.time() - (self._clock() - self.start_ns - at_ns) / 1e9)

    def not_watched(self, since_ns: int, parts: dict[str, int]) -> None:
        """Record a time in which the CPU or program was not watched. ``since_ns``: the beginning of this time, by
        ``clock``. ``parts``: reason why nothing was watched → its duration in ns."""
        self.tally.not_watched.update(parts)
        self._write("not_watched", at_ns=since_ns - self.start_ns, ns=sum(parts.values()))

    def new_file(self) -> str:
        """Return the name of the next frozen trace."""
        self._file_numbers += 1
        return f"stall-{self._file_numbers:05}.trace"

    def froze(self, stalls: Sequence[KeptStall], count: int, trace: RunTrace | None) -> None:
        """Record the stalls of one freeze in the journal. Save the longest stalls, with the frozen trace.

        - ``stalls``: the stalls to record, the longest first.
        - ``count``: how many stalls the freeze had in total.
        - ``trace``: the frozen trace; None if there is none.
        """
        file = next((one.file for one in stalls if one.file is not None), None)
        if file is not None and trace is not None and stalls[0].duration_ns > self.tally.least_kept_ns:
            why = watches.write_trace(self.folder, file, trace)
            if why:
                self.note("kept", f"a frozen trace could not be written: {why}")
                stalls = [_without_file(one) for one in stalls]
        else:
            stalls = [_without_file(one) for one in stalls]
        for gone in self.tally.add_kept(stalls):
            watches.remove_trace(self.folder, gone)
        for one in stalls[:MOST_LINES]:
            self._write("stall", **_short(one))
        if count > len(stalls[:MOST_LINES]):
            self._write("stalls", count=count, listed=len(stalls[:MOST_LINES]))
        if stalls:
            report = self.report()
            for teller in self._tellers:
                teller.stall(report, stalls[0], count)
        self.tick()

    def tick(self, *, now: bool = False) -> None:
        """Check the clocks for steps, and write the sums to the journal at intervals. The interval is STATE_S seconds.
        ``now``: True writes the sums at once."""
        self._look_at_clocks()
        at = self._clock()
        self.subject.duration_ns = max(at - self.start_ns, 0) if self.start_ns else 0
        if now or at - self._told_ns >= STATE_S * 1e9:
            self._told_ns = at
            report = self.report()
            self._write("state", watch=self._small(report))
            for teller in self._tellers:
                teller.state(report)

    def note(self, about: str, sentence: str) -> None:
        """Add a note to the report and the journal of the watch. The report has only the latest note for each subject.
        ``about``: the subject of the note."""
        self._write("note", about=about, note=sentence)
        before = self.subject.notes.get(about)
        if before is None or before == sentence:
            self.subject.notes[about] = sentence
        else:
            self.subject.notes[about] = f"{sentence} (the journal has earlier notes on this subject)"

    def trace_ended(self, why: str) -> None:
        """Record that no trace is available from now on. ``why``: the reason. If the trace has not yet shown a cause of
        any stall, the report uses counters."""
        self.subject.notes["trace"] = why
        self.subject.evidence = "trace" if self.tally.named else "counters"

    def report(self) -> WatchReport:
        return report_of_watch(self.subject, self.tally, self._journal.unwritten)

    def end(self, ended_by: str, end_ns: int) -> WatchReport:
        """End the watch: write the sums as the last line of the journal, and return the report."""
        self.subject.ended_by = ended_by
        self.subject.duration_ns = max(end_ns - self.start_ns, 0) if self.start_ns else 0
        report = self.report()
        self._write("end", last=True, watch=self._small(report))
        for teller in self._tellers:
            teller.state(report)
        return report

    def judged(self, verdict: dict[str, Any]) -> None:
        """Write the verdict into the journal."""
        self._write("verdict", last=True, **verdict)

    def discard(self) -> None:
        """Remove the folder of a watch that never began."""
        self._journal.close()
        watches.remove_watch(self.folder)

    def close(self) -> None:
        for teller in self._tellers:
            teller.close()
        self._journal.close()

    def _small(self, report: WatchReport) -> dict[str, Any]:
        plain: dict[str, Any] = to_plain(report)
        plain["kept"] = [_short(one) for one in report.kept[:MOST_LINES]]
        plain["causes"] = plain["causes"][:MOST_LINES] if plain["causes"] is not None else None
        return plain

    def _look_at_clocks(self) -> None:
        wall, slept = _offsets()
        gone, moved = slept - self._slept_ns, wall - self._wall_ns
        self._wall_ns, self._slept_ns = wall, slept
        if gone >= _SLEPT_NS:
            self.note("suspend", f"the host slept for {nice_ns(gone)}, and the watch does not include this time")
        if abs(moved - gone) >= _STEP_NS:
            words = f"the wall clock stepped by {nice_ns(moved - gone)}, but another clock measures all durations"
            self.note("clock_step", words)

    def _write(self, kind: str, *, last: bool = False, **entry: Any) -> None:
        self._journal.add({"kind": kind, "at": iso(time.time()), **entry}, last=last)


def _offsets() -> tuple[int, int]:
    """Return two differences in ns: the wall clock and CLOCK_BOOTTIME, each minus the monotonic clock. CLOCK_BOOTTIME
    also counts while the host is suspended."""
    monotonic = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return time.time_ns() - monotonic, time.clock_gettime_ns(time.CLOCK_BOOTTIME) - monotonic


def _short(stall: KeptStall) -> dict[str, Any]:
    """Return a stall's fields for the journal, without its timeline and its smaller parts."""
    plain: dict[str, Any] = to_plain(without_times([stall])[0])
    plain["parts"] = plain["parts"][:MOST_PARTS] if plain["parts"] is not None else None
    return plain


def _without_file(stall: KeptStall) -> KeptStall:
    return dataclasses.replace(stall, file=None)


def new_watch(top: Path | None) -> tuple[str, Path]:
    """Make the folder of a new watch. Return its id and the folder. Raise SessionError if that fails."""
    folder = watches.new_folder(top)
    return folder.name or new_id(), folder


def start_of(folder: Path) -> int:
    """Return the beginning of a watch from its journal, in ns of the monotonic clock. Raise SessionError if the journal
    does not record the beginning."""
    watches.check_folder(folder)
    for entry in watches.read_journal(folder):
        began = entry.get("monotonic_ns")
        if entry.get("kind") == "begin" and isinstance(began, int) and 0 < began < 1 << 63:
            return began
    raise SessionError(f"the journal in {folder} does not say when the watch began")


def from_journal(folder: Path) -> WatchReport:
    """Return the report of a watch from its journal. If the watch was killed, the report is as complete as the journal.
    Raise SessionError if the journal is empty or damaged.
    """
    watches.check_folder(folder)
    last: Any = None
    ended = False
    later: list[KeptStall] = []
    for entry in watches.read_journal(folder):
        try:
            if entry.get("kind") in ("begin", "state", "end"):
                last, later = from_plain(WatchReport, entry.get("watch")), []
                ended = entry["kind"] == "end"
            elif entry.get("kind") == "stall":
                later.append(from_plain(KeptStall, entry))
        except ValueError:
            continue
    if last is None:
        raise SessionError(f"the journal in {folder} is empty or damaged")
    report: WatchReport = last
    if ended:
        return report
    kept = sorted([*report.kept, *later], key=lambda one: (-one.duration_ns, one.at_ns))
    notes = dict(report.notes)
    if later:
        notes["stalls"] = f"{len(later):,} stalls came after the journal's last sums, so the sums leave them out"
    return dataclasses.replace(report, kept=tuple(kept), ended_by=KILLED, notes=notes)
