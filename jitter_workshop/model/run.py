"""Define the result of a measurement, and the events that a run sends to its observers.

``measure --json`` prints these fields; their names must not change.

Times are integers in ns; means are floats. A set of CPUs is an array of integers. An unknown value is None, and
``notes`` gives the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.host import EMULATED, mark_of
from jitter_workshop.model.irq_rows import Counter as Counter
from jitter_workshop.model.record import FORMAT_VERSION as FORMAT_VERSION
from jitter_workshop.model.record import dataclass, field
from jitter_workshop.model.spec import KINDS, Placement, RunSpec

PERCENTILES = ("50", "90", "99", "99.9", "99.99", "99.999", "99.9999")
"""The percentiles that every report has as rows. A value is None if there are fewer than 1/(1-p) samples."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Hold the clock from which a run's time stamps come. ``offset_ns``: the clock's offset between the hot CPUs. The
    true offset is within ± ``offset_bound_ns`` of this value."""

    source: str
    cost_ns: float
    resolution_ns: int
    rate_hz: int | None
    offset_ns: int | None
    offset_bound_ns: int | None


@dataclass(frozen=True, slots=True)
class HistogramSummary:
    """Hold the summary of a histogram. ``max`` is the true maximum; ``overflow``: number of values beyond the
    histogram's range."""

    unit: str
    count: int
    min: int | None
    max: int | None
    mean: float | None
    percentiles: dict[str, int | None]
    overflow: int = 0


@dataclass(frozen=True, slots=True)
class Stall:
    """Hold a time in which a measured thread did not do its work. ``start_ns`` (included) and ``end_ns`` (not included)
    count from the run's start.

    ``thread``: producer | accumulator | journaller | sampler | sleeper | sender | receiver. ``messages``: number of
    messages that were late because of the stall.
    """

    block: int
    thread: str
    cpu: int | None
    start_ns: int
    end_ns: int
    messages: int

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns


AT = "at: time since the start of the run, pauses included"
"""The note that explains the time of a stall in a table. Pauses are included, so the time can be larger than the run's
measured time."""


def made_late(thread: str, messages: int) -> str:
    """Return the number of late messages in words, such as ``12 messages late``. Return "" for fewer than two messages.
    Also return "" for the thread ``sampler``, because ``spin`` has no messages."""
    return f"{messages:,} messages late" if messages > 1 and thread != "sampler" else ""


@dataclass(frozen=True, slots=True)
class StallRate:
    """Hold the figures of all distinct stalls of at least ``threshold_ns``: their number, their rate, and the time that
    they took.

    JSON has this time as ``stall_ns_per_second``, and the same number under two older names: ``stolen_ns_per_second``
    and ``interference_ns_per_second``. The older names stay for readers of older files."""

    threshold_ns: int
    count: int
    per_second: float
    stolen_ns_per_second: float


@dataclass(frozen=True, slots=True)
class StallTotal:
    """Hold the number and the total time of the distinct stalls of at least ``threshold_ns`` in one block. A block
    lists only some of its stalls. This record counts all of them."""

    threshold_ns: int
    count: int
    stolen_ns: int


@dataclass(frozen=True, slots=True)
class Stalls:
    """Hold the stalls of a run of at least ``threshold_ns``: the totals, the rates, and the longest stalls in full.

    - ``stolen_ns_per_second``: the sum of the stalls' lengths in a second. JSON has it as ``stall_ns_per_second``, and
      the same number under two older names: ``stolen_ns_per_second`` and ``interference_ns_per_second``. The older
      names stay for readers of older files.
    - ``rates``: the number, rate and time of stalls above several thresholds (``model.spec.STALL_DECADES_NS``).
    - ``per_second_low``, ``per_second_high``: the 95 % limits of the true rate. They are correct only if stalls are
      independent of each other (``stats.exact``). None in runs of older versions.
    - ``rated_s``: the seconds in which the workload could see stalls. All rates refer to this time. In runs of older
      versions it is None, and the rates refer to ``duration_s``.
    """

    threshold_ns: int
    count: int
    per_second: float
    stolen_ns_per_second: float
    rates: tuple[StallRate, ...] = ()
    worst: tuple[Stall, ...] = ()
    per_second_low: float | None = None
    per_second_high: float | None = None
    rated_s: float | None = None


@dataclass(frozen=True, slots=True)
class GapBucket:
    """Hold the number of ``spin``'s gaps in one range of lengths.

    - ``from_ns`` (included), ``to_ns`` (not included): the range. A ``to_ns`` of None means no upper end.
    - ``per_hour``: gaps in an hour of sampled time, None if no time was sampled.
    """

    from_ns: int
    to_ns: int | None
    count: int
    per_hour: float | None


@dataclass(frozen=True, slots=True)
class ThreadRecord:
    """Hold the counts of one measured thread in a run or in one block.

    - ``messages_by_cpu``: CPU number as text → how many messages (or clock readings) the thread handled on this CPU.
    - ``cpus``: CPUs on which the thread ran.
    - ``ran_ns``: time on a CPU, by the thread's own clock.
    - ``waited_ns``: time in a run queue, runnable but not running.
    - ``timeslices``: how often the thread began to run on a CPU.
    - ``write_calls``: the thread's system calls that write, to files of any kind (``syscw`` of
      ``/proc/PID/task/TID/io``). None if the kernel does not count them, and in runs of older versions.

    ``waited_ns`` and ``timeslices`` are the scheduler's figures (Documentation/scheduler/sched-stats.rst), read just
    before and after each block. They are None if the kernel does not count them, and in runs of older versions. In
    blocks of older versions, ``tid`` is 0 and ``cpus`` is ().
    """

    name: str
    messages_by_cpu: dict[str, int]
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    migrations: int | None = None
    minor_faults: int | None = None
    major_faults: int | None = None
    ran_ns: int | None = None
    waited_ns: int | None = None
    timeslices: int | None = None
    tid: int = 0
    cpus: tuple[int, ...] = ()
    write_calls: int | None = None


THREAD_COUNTS = (
    "voluntary_switches",
    "involuntary_switches",
    "migrations",
    "minor_faults",
    "major_faults",
    "ran_ns",
    "waited_ns",
    "timeslices",
    "write_calls",
)
"""The fields of a thread's record that grow during a run. The values of the blocks are added up."""


@dataclass(frozen=True, slots=True)
class Block:
    """Hold the main figures of one block. The figures of all blocks show how the values change during the run.
    ``start_ns`` counts from the run's start.

    - ``ping_pong_ns``: median time of a one-way cache-line transfer between the producer's and the accumulator's CPU,
      measured just before the block.
    - ``parent_switches``: context switches of the parent while the block ran. Each one shows that the workshop
      itself used CPU time.
    - ``temperature_celsius``: the temperature of the hottest zone, read between blocks.
    """

    index: int
    start_ns: int
    duration_ns: int
    count: int
    p50: int | None
    p99: int | None
    p999: int | None
    max: int | None
    stalls: int
    core_hz: int | None = None
    ping_pong_ns: float | None = None
    parent_switches: int | None = None
    temperature_celsius: float | None = None
    throttle_events: int | None = None


@dataclass(frozen=True, slots=True)
class ForeignLoad:
    """Hold a task that used a hot CPU and does not belong to the run. The task used the CPU just before or after the
    run. Tasks are not examined during a block."""

    pid: int
    name: str
    cpu: int | None
    cpu_percent: float


@dataclass(frozen=True, slots=True)
class CpuCounters:
    """Hold the scheduler's sums over all tasks on a CPU; a sum is None if this kernel does not have it.

    - ``ran_ns``: the time that tasks ran.
    - ``waited_ns``: the time that tasks waited in the CPU's queue.
    - ``timeslices``: how often a task came onto the CPU.
    - ``steal_ns``: time that the hypervisor took, a multiple of a tick (10 ms on nearly every kernel). None if there is
      no steal clock.
    """

    cpu: int
    ran_ns: int | None
    waited_ns: int | None
    timeslices: int | None
    steal_ns: int | None


@dataclass(frozen=True, slots=True)
class Counters:
    """Hold counters of a run that has no trace. A user can read these counters without root's rights.

    - ``counted_ns``: the time that the counters cover. This time begins before the first block and ends after the last
      block. It includes the pauses between blocks.
    - ``cpus``: counters of the CPUs that the measured threads could use.
    - ``perf_event_paranoid``: the host's setting at the time of the run.
    """

    why_no_trace: str
    counted_ns: int
    cpus: tuple[CpuCounters, ...]
    perf_event_paranoid: int | None


UNSTEADY = "applied"
"""The key of the note which says that settings of this tool changed during the run."""
MEANWHILE = "during this run"
"""The words by which the note UNSTEADY refers to the run."""

INTENDED = "accumulator_intended"
"""The name of the ring's histogram with the times from when a message was due to its receipt."""
READY = "ready"
HANDOFF = "hand-off"
"""The name of an older run's transit in a comparison. This transit begins at the publication. A newer run's transit
begins when the message is ready."""
HUNTED = "hunt"
"""The key of the note that a hidden noise ran during the run."""

BESIDE = "measured while a hidden noise was running"


@dataclass(frozen=True, slots=True)
class BurstTotal:
    """Hold the number of a noise's bursts, and the CPU time that the bursts took. Both figures come from the noise's
    own log. The noise counts from a time before the run's first block until a time after the last block. ``taken_ns``:
    None if the noise cannot measure this time."""

    count: int
    taken_ns: int | None


@dataclass(frozen=True, slots=True)
class Run:
    """Hold one run, as stored in ``run.json`` and printed by ``measure --json``.

    Some fields belong to one workload. They are None for other workloads and in runs of older versions:

    - ``buckets``: ``spin``'s gaps by length.
    - ``sampled_s``: the seconds in which ``spin`` read the clock.
    - ``pause``: how ``spin`` spent the time in which it did not read the clock (sleep | busy).
    - ``missed_wakeups``: the number of ``wakeup``'s periods that were over before its thread could sleep.
    - ``first_write_ns``: the lower quartile of the times that ``ring``'s accumulator took for messages whose copies
      begin a new 2 MiB of memory. If such a write causes a page fault, this is the time of a fault without delays.
    - ``huge_pages``: the number of huge pages that the kernel gave for the copies, if huge pages were asked for.
    - ``transit_from``: the moment at which the ring's transit begins. ``ready`` means the moment before the message is
      copied into its slot. In runs of older versions the transit begins when the message is published, like
      ``accumulator_handoff`` in newer runs.

    Other fields:

    - ``counted_s``: the seconds that ``interrupts``, ``softirqs`` and the other counters cover. This time is
      ``duration_s`` plus the lead-in of each block. None in runs of older versions, and if a lead-in is not known.
    - ``counters``: counters if evidence was requested but there is no trace, else None.
    - ``cpu_hz``: the frequency of the measured CPUs, as the kernel knew it at the end of each block. For each block,
      the mean over these CPUs is computed. ``cpu_hz`` is the median of these means.
    - ``idle_entries``: how often the measured CPUs entered an idle state.
    - ``idle_exit_us``: the sum of the exit latencies that the kernel gives for these idle states.
    - ``proof``: id of the proof that the run belongs to (``model.proof``), else None.
    - ``settle_s``: the seconds at the run's start that were not recorded, because a change had just been made. None if
      all was recorded.
    - ``memory``: how a measured thread used memory in addition to its work (``model.spec.MemoryUse``), None for no such
      use.
    - ``lock``: the lock that the thread of ``wakeup`` took after each wake-up (``model.spec.LockUse``), None for no
      lock.
    """

    format_version: int
    id: str
    label: str
    workload: str
    pacing: str
    interval_ns: int
    preset: str | None
    started_at: str
    duration_s: float
    sched: str
    duty: int
    noise: str | None
    clock: Clock
    placement: Placement
    histograms: dict[str, HistogramSummary]
    blocks: tuple[Block, ...]
    stalls: Stalls
    blocked_publishes: int | None
    negative_deltas: int
    threads: tuple[ThreadRecord, ...]
    interrupts: dict[str, Counter] | None
    softirqs: dict[str, Counter] | None
    steal_ns: int | None
    steal_resolution_ns: int | None
    core_hz: int | None
    throttled_periods: int | None
    mlocked: bool
    complete: bool
    disturbed: tuple[ForeignLoad, ...]
    host: dict[str, Any]
    applied: tuple[dict[str, str], ...]
    notes: dict[str, str] = field(default_factory=dict)
    counted_s: float | None = None
    noise_bursts: BurstTotal | None = None
    buckets: tuple[GapBucket, ...] | None = None
    sampled_s: float | None = None
    pause: str | None = None
    missed_wakeups: int | None = None
    counters: Counters | None = None
    proof: str | None = None
    settle_s: float | None = None
    memory: str | None = None
    cpu_hz: int | None = None
    idle_entries: int | None = None
    idle_exit_us: int | None = None
    transit_from: str | None = None
    lock: str | None = None
    first_write_ns: int | None = None
    huge_pages: int | None = None

    @property
    def mark(self) -> str:
        """Return the mark of the run's curves and times: ``emulated``, ``guest``, or "" for none."""
        return mark_of(self.host)

    @property
    def in_guest(self) -> bool:
        """Return True if the run was made in a virtual machine whose times count: an emulated machine is none."""
        return bool(self.host.get("hypervisor")) and self.mark != EMULATED

    @property
    def main_histogram(self) -> str:
        """Return the name of the histogram that the charts and tables of this workload show first."""
        kind = KINDS.get(self.workload)
        return kind.histogram if kind is not None else next(iter(self.histograms), "")

    @property
    def main_summary(self) -> HistogramSummary | None:
        """Return the summary of the main histogram; None if the run has no such histogram."""
        return self.histograms.get(self.main_histogram)

    @property
    def latency_histogram(self) -> str:
        """Return the name of the histogram whose values the workshop tells as latencies. In a run of the ring, latency
        counts from when a message was due. A run without this histogram has only its main one, the transit."""
        return INTENDED if INTENDED in self.histograms else self.main_histogram

    @property
    def latency(self) -> HistogramSummary | None:
        """Return the summary of the latencies; None if the run has none."""
        return self.histograms.get(self.latency_histogram)

    def percentile(self, name: str) -> int | None:
        """Return the value in ns of a percentile of the latencies; None if it is not known. ``name``: one of
        PERCENTILES."""
        return self.latency.percentiles.get(name) if self.latency is not None else None

    @property
    def by_handoff(self) -> bool:
        """Return True if this run's transit of the ring begins when a message is published. This is so in runs of older
        versions."""
        return self.workload == "ring" and self.transit_from is None

    @property
    def main_thread(self) -> str:
        """Return the name of the thread whose times are in the main histogram; "" for an unknown workload."""
        kind = KINDS.get(self.workload)
        return kind.rated[0] if kind is not None else ""

    @property
    def rated_s(self) -> float:
        """Return the seconds to which the rates of the run's stalls refer."""
        return self.duration_s if self.stalls.rated_s is None else self.stalls.rated_s


def bare_run(**known: Any) -> Run:
    """Return a run with the fields ``known``. All other fields are empty, zero or unknown."""
    unknown = ("preset", "noise", "blocked_publishes", "interrupts", "softirqs", "steal_ns", "steal_resolution_ns")
    nothing: dict[str, Any] = {
        **dict.fromkeys((*unknown, "core_hz", "throttled_periods")),
        **dict.fromkeys(("id", "label", "pacing", "started_at", "sched"), ""),
        **dict.fromkeys(("blocks", "threads", "disturbed", "applied"), ()),
        **dict.fromkeys(("interval_ns", "duty", "negative_deltas"), 0),
        "format_version": FORMAT_VERSION,
        "duration_s": 0.0,
        "clock": Clock("", 0.0, 1, None, None, None),
        "placement": Placement("none"),
        "histograms": {},
        "stalls": Stalls(0, 0, 0.0, 0.0),
        "mlocked": False,
        "complete": True,
        "host": {},
    }
    return Run(**{**nothing, **known})


def of_transit(run: Run) -> Run:
    """Return a run of the ring whose latencies are the transit: it lacks the histogram INTENDED. Other runs are
    returned unchanged."""
    if INTENDED not in run.histograms:
        return run
    # Verbs that only read the host load this module, and need no dataclasses.
    from dataclasses import replace

    return replace(run, histograms={name: one for name, one in run.histograms.items() if name != INTENDED})


def apart_from_proofs(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Return the runs that belong to no proof. A proof lists its own runs, which are too many for other lists."""
    return tuple(run for run in runs if run.proof is None)


def of_one_kind(runs: Sequence[Run], workload: str) -> bool:
    """Return True if every run has this workload, or if ``runs`` is empty."""
    return all(run.workload == workload for run in runs)


def like_the_newest(runs: Sequence[Run]) -> tuple[Run, ...]:
    """Return the runs that have the same workload as the last of ``runs``. Their order is not changed. Only such runs
    belong in one chart."""
    return tuple(run for run in runs if run.workload == runs[-1].workload)


@dataclass(frozen=True, slots=True)
class RunStarted:
    """Report that the child is calibrated and about to measure. ``tids``: thread name → kernel thread id (for
    traces)."""

    spec: RunSpec
    clock: Clock
    tids: dict[str, int]
    mlocked: bool
    notes: dict[str, str]


@dataclass(frozen=True, slots=True)
class Progress:
    """Hold the state of a run after a block. ``curve``: the main histogram's curve over all blocks so far.
    ``threshold_ns``: the shortest length of a stall. ``due``: the curve of the latencies from when a message was due,
    over all blocks so far; None for other workloads than the ring. ``rates``: the stalls of all blocks so far, by their
    least length; () if they are not known."""

    block: Block
    done: int
    total: int
    curve: PercentileCurve
    seconds_left: float
    threshold_ns: int
    due: PercentileCurve | None = None
    rates: tuple[StallRate, ...] = ()

    @property
    def latency(self) -> PercentileCurve:
        """Return the curve of the latencies so far (``Run.latency``)."""
        return self.due or self.curve


class RunObserver(Protocol):
    """Receive a run's events, on the runner's thread and never during a block. The next block begins only after
    ``block_done`` has returned."""

    def started(self, event: RunStarted) -> None: ...

    def block_done(self, progress: Progress) -> None: ...


class SilentObserver:
    """Ignore all events of a run. Use this observer if a run shows no progress."""

    def started(self, event: RunStarted) -> None:
        return None

    def block_done(self, progress: Progress) -> None:
        return None
