"""Define a report as plain data. ``flow.reporting.build`` makes the data once; the report's forms HTML, Markdown and
JSON are written only from these data. ``report --format json`` prints these fields (docs/report.md). Times are integers
in ns, unless the name of the field has another unit, such as ``_s``. If a value is unknown, it is None. The object with
this value has a field ``notes``, which gives the reason."""

from __future__ import annotations

from typing import Literal

from jitter_workshop.model.change import Change, LeftAlone, Skipped
from jitter_workshop.model.curve import Comparison, PercentileCurve
from jitter_workshop.model.evidence import EvidenceReport, Part
from jitter_workshop.model.host import HostSummary
from jitter_workshop.model.matrix import Matrix
from jitter_workshop.model.proof import Proof
from jitter_workshop.model.record import dataclass, field
from jitter_workshop.model.run import ForeignLoad, HistogramSummary, Stalls
from jitter_workshop.model.screening import Ranked
from jitter_workshop.model.status import HostEvent, Snapshot
from jitter_workshop.model.verdict import Standing
from jitter_workshop.model.walk import GuessOutcome

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class WaitedLatencies:
    """Hold the latencies of a run of the ring, which count from when a message was due. ``clock``: the words for this.
    ``standings``: as in ReportedRun."""

    clock: str
    histogram: HistogramSummary
    standings: tuple[Standing, ...]


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """Hold a run of a report. Percentiles are those of ``model.run.PERCENTILES``.

    - ``standings``: for each percentile, two numbers: the samples and the distinct stalls beyond the percentile. The
      larger these numbers are, the more reliable is the percentile's value.
    - ``applied``: the settings in effect, as ``ID=VALUE``.
    - ``role``: the purpose of the run, such as "pinning · measure" or "proof of irq-affinity, round 3, without"; "" for
      a run that belongs to no chapter, proof or screening.
    - ``curve``: the curve of its main histogram.
    - ``with_waits``: the latencies of a run of the ring from when a message was due, which its result tells. None for a
      run that has only those of ``histogram``.
    """

    id: str
    label: str
    role: str
    workload: str
    pacing: str
    preset: str | None
    started_at: str
    duration_s: float
    placement: str
    main_histogram: str
    histogram: HistogramSummary | None
    standings: tuple[Standing, ...]
    stalls: Stalls
    steal_ns: int | None
    applied: tuple[str, ...]
    disturbed: tuple[ForeignLoad, ...]
    complete: bool
    curve: PercentileCurve | None
    proof: str = ""
    notes: tuple[str, ...] = ()
    with_waits: WaitedLatencies | None = None


@dataclass(frozen=True, slots=True)
class ReportedDiagnosis:
    """Hold a learner's answer to "who took it?" about a chapter's first run.

    - ``run``: the run's id.
    - ``source``: the kind of the evidence: ``trace``, ``counters``, or ``emulated`` for an emulated machine. It is ""
      if the evidence no longer exists.
    - ``chosen``: the cause that the learner named.
    - ``right``: None if the evidence cannot decide.
    - ``most``: the cause that took most time. On an emulated machine, the cause with most events. None if not known.
    - ``share``: the share (0..1) of the stalled time ``stalled_ns`` that belongs to ``most``.
    - ``unknown_ns``: the part of ``stalled_ns`` whose cause is not known.
    - ``recorded``: the day and the machine of a recorded first run, "" for a run on this host.
    - ``threads``: the number of threads whose times are added up in each cause.
    - ``asks``: what was asked. ``most``: which cause took most time. ``ends``: which causes the chapter's change can
      end.
    - ``ended_ns``: the time of the causes that the chapter's change can end, as far as it is known.

    A time of 0 in ``chosen`` or ``most`` means that the time is not known.
    """

    run: str
    source: str
    chosen: Part
    right: bool | None
    most: Part | None
    share: float
    stalled_ns: int
    unknown_ns: int
    recorded: str = ""
    threads: int = 1
    asks: str = "most"
    ended_ns: int = 0


@dataclass(frozen=True, slots=True)
class ReportedChapter:
    """Hold a chapter that was begun.

    - ``runs``: slot → id of a run. The learner can measure a chapter with its noise or without it. These runs were made
      with the choice that was in effect when the report was made.
    - ``other_runs``: slot → id of a run that was made with the other choice.
    - ``comparison``: the chapter's first and second run side by side, without a verdict.
    - ``setting``: None if the chapter sets nothing.
    - ``diagnosis``: None if the learner has not named a cause.
    - ``skipped``: True if the learner went on without naming a cause.
    - ``measures``: False if the learner only reads in this chapter; such a chapter has no mark.
    - ``emulated``: True if the first run was made on an emulated machine, here or for the recording.
    - ``asks``: what the diagnosis asks, as in :class:`ReportedDiagnosis`.
    """

    id: str
    title: str
    question: str
    guess: str
    outcome: GuessOutcome | None
    runs: dict[str, str]
    comparison: Comparison | None
    comparison_text: str
    setting: bool | None
    curve: bool
    done: bool
    rehearsed: bool
    learnt: tuple[str, ...] = ()
    diagnosis: ReportedDiagnosis | None = None
    measures: bool = True
    other_runs: dict[str, str] = field(default_factory=dict)
    skipped: bool = False
    emulated: bool = False
    asks: str = "most"


@dataclass(frozen=True, slots=True)
class Overlay:
    """Hold a chart: a title, its curves, and one sentence on what to look for. ``change``: True if the first two curves
    show a run before a change and a run after it. The chart then fills the space between these two curves."""

    title: str
    text: str
    curves: tuple[PercentileCurve, ...]
    change: bool = False

    @property
    def between(self) -> tuple[int, int] | None:
        """Return the indices of the two curves between which the space is filled; None if no space is filled."""
        return (0, 1) if self.change and len(self.curves) > 1 else None


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Hold the heat map of a run.

    - ``run``: the run's id.
    - ``starts_s``: each block's start, in s from the run's start.
    - ``end_s``: the end of the last block.
    - ``block_s``: the median length of a block.
    - ``counts``: for each block, a list of pairs (n, number of values). The number counts the values from 10^(n/40) ns
      to 10^((n+1)/40) ns.
    - ``text``: sentences that name the blocks with the longest values, or say why the run has a heat map.
    - ``bursts``: True if the run's longest values come in bursts.
    - ``worst``: True for the run with the longest value of all runs that can have a heat map.
    """

    run: str
    starts_s: tuple[float, ...]
    end_s: float
    block_s: float
    counts: tuple[tuple[tuple[int, float], ...], ...]
    text: str
    bursts: bool = True
    worst: bool = False


@dataclass(frozen=True, slots=True)
class RunCauses:
    """Hold what is known of the causes of a run's stalls.

    - ``evidence``: ``trace``, ``counters``, or ``none`` if the run cannot be explained.
    - ``report``: the report on the run's trace, None without a trace.
    - ``text``: sentences on the trace or on the counters. If ``evidence`` is ``none``, the text is the reason.
    """

    run: str
    evidence: Literal["trace", "counters", "none"]
    report: EvidenceReport | None
    text: tuple[str, ...]


Fate = Literal["standing", "kept", "restored", "left_alone", "refused", "gone", "rebooted", "unknown"]


@dataclass(frozen=True, slots=True)
class ReportedChange:
    """Hold one write of this session, and its state today. There is one row for each ``applied`` and each ``refused``
    event.

    ``fate``:

    - standing: still in effect, and restored when the user leaves the workshop.
    - kept: still in effect, until the user runs ``restore``.
    - restored: restored at ``fate_at``.
    - left_alone: not restored, because somebody else had set another value.
    - refused: never written.
    - gone: no longer in the host's journal, although this session did not record a restore.
    - rebooted: a reboot removed the value.
    - unknown: the report was not made on the host of the write.

    ``text``: the fate in a few words. ``chapter`` and ``proof`` have the same meaning as in ``HostEvent``.
    """

    at: str
    tunable: str
    path: str
    before: str | None
    after: str | None
    read_back: str | None
    fate: Fate
    fate_at: str | None
    text: str
    chapter: str = ""
    proof: str = ""


@dataclass(frozen=True, slots=True)
class OpenPoint:
    """Hold one point that is still open. ``kind``:

    - ``check``: a tunable whose check finds something to improve.
    - ``chapter``: a chapter that is not done.
    - ``standing``: a setting that is still in effect.
    - ``reboot``: a reboot that is still needed.
    """

    kind: Literal["check", "chapter", "standing", "reboot"]
    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """Hold a shell command that repeats a result, and the reason to run it."""

    command: str
    why: str


@dataclass(frozen=True, slots=True)
class ReportedScreening:
    """Hold a screening with its result.

    - ``settings``: the settings that were switched on and off.
    - ``runs``: the number of runs that count.
    - ``budget_runs``: the number of planned runs.
    - ``measure``: the figure that is judged, "" if it is not decided.
    - ``text``: the result in words.
    - ``ranked``: the settings, sorted by their effect in the first pairs of runs. This effect decides which settings
      are then proven. Before these pairs are measured, ``ranked`` is ().
    - ``chosen``: the settings that were proven.

    Other fields are as in ``model.screening.Screening``.
    """

    id: str
    settings: tuple[str, ...]
    workload: str
    preset: str
    seed: int
    started_at: str
    ended_at: str
    runs: int
    budget_runs: int
    measure: str
    text: str
    ranked: tuple[Ranked, ...]
    chosen: tuple[str, ...]
    left_out: tuple[Skipped, ...]
    changes: tuple[Change, ...]
    complete: bool
    restored: bool
    stopped: str
    disturbed: int
    command: tuple[str, ...]
    metric: str
    options: tuple[str, ...]
    notes: tuple[str, ...]
    left_alone: tuple[LeftAlone, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportDocument:
    """Hold the whole report.

    - ``summary``: the first lines; each sentence follows from the data.
    - ``recorded``: the name of the recorded host that the session is about, else "".
    - ``host_name``: the host on which the session was begun.
    - ``events``: the recorded events, oldest first, without the writes of proofs.
    - ``changes``: one row for each write, with its state today. Writes that a proof made and restored are left out,
      because the proof lists them.
    - ``before``: the host's status when the session began.
    - ``after``: the host's status when the report was made, or its last known status. If ``before`` or ``after`` is
      None, ``notes`` has the reason under the name of the field.
    - ``hosts``: the hosts on which this session measured, newest first, without duplicates.
    - ``private``: True if the report is made for other people (``flow.reporting.anonymizer``). Then names are replaced,
      and no raw data are included.
    - ``heats``: heat maps of the newest runs whose longest values come in bursts, and of the run with the longest
      value. If no run has one, ``notes`` has the reason.
    - ``matrix``: the session's newest complete matrix. If no matrix is complete, the newest one. None if there is no
      matrix. The field ``host`` of the matrix is empty.
    - ``screenings``: oldest first.
    """

    format_version: int
    title: str
    made_at: str
    tool_version: str
    session_id: str
    session_name: str
    recorded: str
    summary: tuple[str, ...]
    host_line: str
    hosts: tuple[HostSummary, ...]
    chapters: tuple[ReportedChapter, ...]
    overlays: tuple[Overlay, ...]
    proofs: tuple[Proof, ...]
    runs: tuple[ReportedRun, ...]
    imports: tuple[str, ...]
    culprits: tuple[RunCauses, ...]
    events: tuple[HostEvent, ...]
    before: Snapshot | None
    after: Snapshot | None
    still_open: tuple[OpenPoint, ...]
    commands: tuple[Command, ...]
    notes: dict[str, str]
    changes: tuple[ReportedChange, ...] = ()
    host_name: str = ""
    private: bool = False
    heats: tuple[HeatMap, ...] = ()
    matrix: Matrix | None = None
    screenings: tuple[ReportedScreening, ...] = ()
