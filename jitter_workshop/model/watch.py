"""Define the result of a watch. ``watch --json`` prints the fields of WatchReport. A verdict file has the fields of
WatchVerdict.

Times are whole ns, unless a name says seconds. ``at_ns`` is the time since the watch began. Its clock does not follow
steps of the wall clock. Names of tasks, interrupts and functions come from outside: clean them before they are shown
(``model.text.clean``).
"""

from __future__ import annotations

from typing import Any

from jitter_workshop.model.evidence import Cause, ExplainedStall, Part, Slice
from jitter_workshop.model.record import FORMAT_VERSION as FORMAT_VERSION
from jitter_workshop.model.record import dataclass, field

BETWEEN, READING, SUSPENDED = "between blocks", "reading the trace", "suspended"
STEAL = "stolen by the hypervisor"
"""The reasons why a time was not watched. BETWEEN: a sampler counts, settles and sends a block's figures. READING: a
trace was frozen and read. SUSPENDED: the watch itself was stopped, or its measuring process had to be started again.
STEAL: the steal clock counted this time, and no stall in it can be seen. JSON and Prometheus have these texts, so each
text stays as it is."""


@dataclass(frozen=True, slots=True)
class WatchRate:
    """Hold the number and the rate of stalls of at least ``threshold_ns``. The rate is per hour of watched time, with
    its exact Poisson limits (95 %). The rate and its limits are None if nothing was watched."""

    threshold_ns: int
    count: int
    per_hour: float | None
    per_hour_low: float | None
    per_hour_high: float | None


@dataclass(frozen=True, slots=True)
class KeptStall:
    """Hold one of the worst stalls of a watch.

    - ``parts``: the time by cause, largest first. The parts sum to ``duration_ns``.
    - ``why_no_parts``: the reason why there is no trace of the stall. Without a trace, ``parts`` and ``timeline`` are
      None.
    - ``at``: the wall clock's time of the stall's start (UTC).
    - ``file``: the file with the frozen trace of the stall's block, below the watch's folder; None if there is none.
    """

    at_ns: int
    at: str
    duration_ns: int
    cpu: int | None
    thread: str
    parts: tuple[Part, ...] | None
    timeline: tuple[Slice, ...] | None = None
    notes: tuple[str, ...] = ()
    why_no_parts: str = ""
    file: str | None = None

    def explained(self) -> ExplainedStall:
        """Return the stall in the form of a run's stalls, so that the screens can show it in the same way."""
        parts = self.parts if self.parts is not None else (Part("no_event", self.why_no_parts, self.duration_ns),)
        return ExplainedStall(
            *(self.at_ns, self.duration_ns, self.cpu, self.thread, 1, 0),
            parts=parts,
            timeline=self.timeline or (),
            notes=self.notes,
        )


@dataclass(frozen=True, slots=True)
class WatchVerdict:
    """Hold the verdict on a condition.

    - ``verdict``: ``accepted``, ``rejected``, or None if the data do not decide.
    - ``stalls``: number of stalls of ``limit_ns`` or longer.
    - ``per_hour_high``: the upper 95 % limit of the number of these stalls in an hour.
    - ``not_watched_ns``: the time that was not watched, by its reason.
    - ``host``: the host's facts.
    - ``applied``: the settings that this tool has changed on this host.
    - ``checks``: the state of each of the host's settings.
    - ``made_by``: this tool's version.
    """

    format_version: int
    accept: str
    verdict: str | None
    reason: str
    limit_ns: int
    most: int
    for_ns: int
    stalls: int
    per_hour_low: float | None
    per_hour_high: float | None
    watched_ns: int
    not_watched_ns: dict[str, int]
    started_at: str
    ended_at: str
    duration_s: float
    ended_by: str
    watching: str
    cpu: int | None
    evidence: str
    worst: tuple[KeptStall, ...]
    causes: tuple[Cause, ...] | None
    host: dict[str, Any]
    applied: tuple[dict[str, str], ...]
    checks: tuple[dict[str, Any], ...]
    made_by: str
    notes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WatchReport:
    """Hold the result of ``watch``.

    - ``watching``: ``spin``, or the program's name.
    - ``duration_s``: the length of the watch.
    - ``watched_s``: the watched part of ``duration_s``.
    - ``not_watched_ns``: reason → the time that was not watched for this reason.
    - ``stalls``: number of stalls of at least ``threshold_ns``.
    - ``named``: number of stalls whose trace was read.
    - ``rates``: rates of stalls of at least ``threshold_ns``, and of longer stalls.
    - ``causes``: the sums over the ``named`` stalls, largest first; None without a trace.
    - ``kept``: the worst stalls, the longest first.
    - ``freezes``: how often the trace was frozen and read. ``frozen_ns``: the time that all freezes took together.
    - ``evidence``: ``trace`` or ``counters``.
    - ``verdict``: as in WatchVerdict. The verdict is also None if the user gave no condition.
    - ``file``: the verdict file; None if there is none.
    - ``folder``: the folder with the journal and the frozen traces.
    - ``notes``: field → the reason why its value is null or not complete.
    """

    format_version: int
    id: str
    watching: str
    pid: int | None
    cpu: int | None
    started_at: str
    duration_s: float
    watched_s: float
    not_watched_ns: dict[str, int]
    threshold_ns: int
    stalls: int
    named: int
    rates: tuple[WatchRate, ...]
    causes: tuple[Cause, ...] | None
    kept: tuple[KeptStall, ...]
    freezes: int
    frozen_ns: int
    evidence: str
    clock: str
    ended_by: str
    verdict: str | None = None
    reason: str = ""
    file: str | None = None
    folder: str | None = None
    unwritten: int = 0
    missing: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
