"""Define the report on a run's trace. ``explain --json`` prints the fields of EvidenceReport.

Times are whole ns, unless a field is in ticks of the trace's clock. Names of tasks, interrupts and functions come from
outside: clean them before they are shown (``model.text.clean``).
"""

from __future__ import annotations

from jitter_workshop.model.record import FORMAT_VERSION as FORMAT_VERSION
from jitter_workshop.model.record import dataclass, field
from jitter_workshop.model.run import Counter, CpuCounters, ForeignLoad, ThreadRecord

CAUSE_KINDS = (
    "task",
    "irq",
    "softirq",
    "timer",
    "vector",
    "workqueue",
    "migration",
    "page_fault",
    "around",
    "no_event",
)
"""The kinds of causes:

- ``task``: another task ran (``idle``: no task ran, see IDLE).
- ``irq``: the handler of a device's interrupt ran.
- ``softirq``: a softirq ran.
- ``workqueue``: a work item ran.
- ``timer``: a function of a high-resolution timer ran.
- ``vector``: an interrupt of the CPU itself, an NMI, or a function that another CPU called here.
- ``migration``: the thread was between two CPUs, and the CPU to which it was moved was free. The cause's name is that
  of the task that ran when the scheduler moved the thread.
- ``page_fault``: the kernel handled a page fault. The cause's name is the thread's mode, ``user`` or ``kernel``.
- ``around NAME``: a short gap that touches NAME's event (the event's entry and exit, the cost of tracing, a
  hypervisor's exits).
- ``no_event``: time without any event that a trace can show.
"""

FAULT = "page_fault"
"""The name of the gap around a page fault. It is the same for a fault in user mode and for one in kernel mode."""

NOTHING = ""
ASLEEP = "asleep"
LOST = "events lost"
MISSING = "event missing"
NOT_TRACED = "CPU not traced"
CATCHING_UP = "catching up"
"""Names of ``no_event``.

- NOTHING: no event in this trace.
- ASLEEP: the thread itself went to sleep (or was stopped).
- LOST: the trace had no room for the events.
- MISSING: an event (a switch, an exit) is absent although the events before and after require it, and no event was
  lost.
- NOT_TRACED: the thread was on a CPU that is not traced.
- CATCHING_UP: a consumer took the messages that had piled up while it was stopped.
"""

IDLE = "idle"
THROTTLED = "throttled"
"""Names of ``task`` for time in which no other task ran.

- IDLE: the thread was woken, and its CPU had to leave idle first.
- THROTTLED: the thread could run and its CPU was idle, but the scheduler did not let it run. A limit of its cgroup or
  of real-time tasks was reached.
"""


MEASURED = "the measured threads"
"""The name of ``task`` for all measured threads of a run together. The kernel's own names are too short for it."""
NOT_OURS = " (not our thread)"
ANOTHER_WORKSHOP, THIS_WORKSHOP = " (another workshop)", " (this workshop)"
"""Endings that are added to the names of some tasks: those that are called like a measured thread or like the workshop.
The thread id decides which ending is added. The kernel's own names are too short to contain an ending."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Hold the rate of the trace's clock: ``ticks`` ticks take ``ns`` ns. Raise ValueError if one of them is not above
    0."""

    ticks: int = 1
    ns: int = 1

    def __post_init__(self) -> None:
        if self.ticks < 1 or self.ns < 1:
            raise ValueError("a clock's rate is above 0")

    def to_ns(self, ticks: int) -> int:
        """Return ticks of the trace's clock as whole ns, rounded down."""
        return ticks * self.ns // self.ticks

    def to_ticks(self, ns: int) -> int:
        """Return ns as whole ticks of the trace's clock, rounded down."""
        return ns * self.ticks // self.ns


@dataclass(frozen=True, slots=True)
class Span:
    """Hold the time of one block: ``start`` and ``end`` in ticks, ``start_ns`` in ns since the run began. ``messages``:
    number of messages in the block's main histogram, None if not known."""

    index: int
    start: int
    end: int
    start_ns: int
    duration_ns: int
    messages: int | None = None

    @property
    def rate(self) -> Rate:
        return Rate(max(self.end - self.start, 1), max(self.duration_ns, 1))


@dataclass(frozen=True, slots=True)
class Window:
    """Hold a time in which a measured thread did not do its work, so that ``messages`` messages were late. ``start`` is
    included, ``end`` is not; both are in ticks.

    - ``cpu``: the CPU on which the thread was last seen before ``start``.
    - ``publish``: the tick at which the consumer of a ring could first have seen the message.
    - ``start_seen``: the thread read its clock at ``start``; if False, the cause may have begun earlier.
    - ``due``: the thread should have been awake from ``start`` on. If it slept on after that, this time is counted as
      time of the task that ran on the thread's CPU.
    - ``offset_ns``: the start by the benchmark's clock, since the block began; None if not known.
    - ``duration_ns``: the length by the benchmark's clock; None if not known.
    """

    start: int
    end: int
    cpu: int
    thread: str
    messages: int = 1
    publish: int | None = None
    start_seen: bool = True
    due: bool = False
    offset_ns: int | None = None
    duration_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """Hold the part of a stall that one cause took. ``ns``: the length of the part. ``kind``: one of CAUSE_KINDS."""

    kind: str
    name: str
    ns: int


@dataclass(frozen=True, slots=True)
class Slice:
    """Hold one piece of a stall's timeline. ``offset_ns``: the time from the stall's start to the piece's start."""

    kind: str
    name: str
    offset_ns: int
    ns: int


@dataclass(frozen=True, slots=True)
class StackSeen:
    """Hold the kernel's stack at one moment of a stall. ``functions``: innermost first. ``event``: the traced event at
    that moment."""

    offset_ns: int
    event: str
    functions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExplainedStall:
    """Hold a stall with its causes.

    - ``at_ns``: its start since the run began.
    - ``cpu``: None if not known.
    - ``parts``: the time by cause, largest first. The lengths of all parts add up to ``duration_ns``.
    - ``timeline``: the pieces in order of time. Their lengths add up to ``duration_ns``, too. A timeline of very many
      pieces is made coarser; the parts are always exact.
    - ``notes``: sentences on the tasks that sent an interrupt or moved a thread.
    """

    at_ns: int
    duration_ns: int
    cpu: int | None
    thread: str
    messages: int
    block: int
    parts: tuple[Part, ...]
    timeline: tuple[Slice, ...] = ()
    stacks: tuple[StackSeen, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cause:
    """Hold one cause over a run.

    - ``count``: number of stalls with this cause.
    - ``worst_ns``: the cause's largest part of one stall.
    - ``ns_per_second``: ns taken in a second of measured time.
    - ``late_messages``: number of the main thread's messages that were late because of these stalls.
    - ``below_without``: the share (0..1) of messages that would stay below the threshold if this cause, and the gaps
      right before and after it, had taken no time. None if the number of messages is not known.
    - ``threads``: number of threads of this name that ran on the hot CPUs.
    """

    kind: str
    name: str
    count: int
    total_ns: int
    worst_ns: int
    ns_per_second: float
    late_messages: int
    below_without: float | None = None
    threads: int = 1


@dataclass(frozen=True, slots=True)
class ThreadOnCpu:
    """Hold the time in which a measured thread ran on a CPU, by the trace. ``kept_waiting_ns``: time in which the
    thread was ready or moving but did not run."""

    thread: str
    cpu: int
    ran_ns: int
    kept_waiting_ns: int
    times_preempted: int


@dataclass(frozen=True, slots=True)
class InterferingTask:
    """Hold a task or event that ran on a hot CPU, with its count, total time and longest time. Measured threads are not
    included. Time in which a task was interrupted counts for the task or event that interrupted it. ``threads``: number
    of tasks of this name."""

    cpu: int
    kind: str
    name: str
    count: int
    total_ns: int
    worst_ns: int
    threads: int = 1


@dataclass(frozen=True, slots=True)
class FrequencySeen:
    """Hold the changes of a CPU's frequency for which the kernel asked during the blocks."""

    cpu: int
    changes: int
    lowest_khz: int
    highest_khz: int


@dataclass(frozen=True, slots=True)
class RemoteAction:
    """Hold an action of one task on another CPU or thread, with the number of times.

    - ``what``: ``ipi``, ``move`` or ``wake``.
    - ``of``: for ``ipi`` the function that the target is to call, else the measured thread.
    - ``cpu``: the CPU of the target, -1 for several CPUs.
    """

    what: str
    who: str
    of: str
    cpu: int
    count: int


@dataclass(frozen=True, slots=True)
class TickKept:
    """Hold the reason why a CPU's timer tick could not be stopped. ``reason``: the kernel's name for what needs the
    tick."""

    cpu: int
    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class QuietCpus:
    """Hold the evidence that only the measured threads ran on the hot CPUs in a stretch of time.

    - ``clean``: True if nothing else ran; None if the trace has gaps, is empty or lacks a kind of event.
    - ``other_tasks``: how often another task, or work inside a task, ran on these CPUs.
    - ``interruptions``: number of interrupts, softirqs and timers.
    - ``taken_ns``: the time that all of them took.
    - ``sentence``: the result in words.
    """

    cpus: tuple[int, ...]
    stretch_ns: int
    clean: bool | None
    other_tasks: int
    interruptions: int
    taken_ns: int
    sentence: str


@dataclass(frozen=True, slots=True)
class CpuLane:
    """Hold what one task or event did on a CPU in one second. ``who``: the task or event, with its count and times in
    this second. ``cells``: its time in each fiftieth of the second, in ns."""

    who: InterferingTask
    cells: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CpuSecond:
    """Hold one second of a CPU.

    - ``at_ns``: its start since the run began.
    - ``traced_ns``: the part of it that lies in blocks.
    - ``taken_ns``: the time of everything except the measured threads.
    - ``lanes``: the tasks and events that took most of the second, at most eight.
    - ``ours``: the time of the measured threads in each fiftieth of the second, in ns.
    """

    cpu: int
    at_ns: int
    traced_ns: int
    taken_ns: int
    lanes: tuple[CpuLane, ...]
    ours: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Residence:
    """Hold which tasks ran on which CPUs in the blocks of one run. ``deeds`` (actions on other CPUs) and ``ticks_kept``
    (ticks that could not be stopped): at most the 1,000 most frequent of each. ``second``: of all seconds of all
    measured CPUs, the one in which everything except the measured threads took most time; None if nothing else ran."""

    threads: tuple[ThreadOnCpu, ...]
    visitors: tuple[InterferingTask, ...]
    frequencies: tuple[FrequencySeen, ...]
    deeds: tuple[RemoteAction, ...]
    ticks_kept: tuple[TickKept, ...]
    proof: QuietCpus
    second: CpuSecond | None = None


@dataclass(frozen=True, slots=True)
class EvidenceReport:
    """Hold the result of ``explain RUN``.

    - ``causes``: largest first.
    - ``worst``: the longest stalls.
    - ``stalls``: number of explained stalls, counted for each measured thread separately.
    - ``distinct``: number of stalls when overlapping ones count once, as ``measure`` counts. None if only a part of the
      run was traced.
    - ``unlisted``: number of shorter stalls that are counted but not listed.
    - ``events``: number of events in the trace.
    - ``unbalanced``: number of events whose beginning or end is missing.
    - ``unreported``: task → how often the trace lacks the event of the switch from this task to another; only the eight
      tasks with the largest numbers.
    - ``unknown_ns``: the time in the blocks for which the trace does not show what ran on a measured CPU, because
      events are lost or missing. None in reports of earlier versions.
    - ``measured_ns``: the length of all blocks together.
    - ``below_now``: share (0..1) of the main thread's ``messages`` below the threshold.
    - ``missing``: event that this kernel does not provide → reason.
    - ``notes``: field → why it is null.
    - ``candidates``: sentences with possible explanations of gaps without an event; none of them is a finding.
    """

    format_version: int
    run: str
    evidence: str
    threshold_ns: int
    clock: str
    stalls: int
    lost_events: int
    causes: tuple[Cause, ...]
    worst: tuple[ExplainedStall, ...]
    measured_ns: int
    unlisted: int = 0
    distinct: int | None = None
    lost_by_cpu: dict[str, int] = field(default_factory=dict)
    events: int = 0
    unbalanced: int = 0
    unreported: dict[str, int] = field(default_factory=dict)
    unknown_ns: int | None = None
    main_thread: str = ""
    messages: int | None = None
    below_now: float | None = None
    residence: Residence | None = None
    missing: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CountedStall:
    """Hold a stall of a run without a trace. ``at_ns``: its start, from the run's start. ``parts``: always None,
    because only a trace shows the causes."""

    at_ns: int
    duration_ns: int
    cpu: int | None
    thread: str
    messages: int
    block: int
    parts: None = None


@dataclass(frozen=True, slots=True)
class CounterReport:
    """Hold the result of ``explain RUN`` without a trace (``"evidence": "counters"``). Its fields have the names of
    :class:`EvidenceReport`. Counters name no cause, so ``causes``, ``lost_events`` and the ``parts`` of each stall are
    null, with the reason in ``notes``. An empty list would mean that nothing took the time.

    - ``clock``: the clock of the run.
    - ``stalls``: number of distinct stalls that the benchmark counted; they took ``stalled_ns`` of the blocks'
      ``measured_ns``.
    - ``worst``: the longest of the stalls that the run lists one by one.
    - ``waited_ns``: the sum over the measured ``threads`` of their time in a run queue, runnable but not running; None
      if the kernel does not count this time. This sum includes waits that are too short to be a stall.
    - ``interrupts``, ``softirqs``: the number of each on the CPUs in ``cpus`` during ``counted_s``.
    - ``steal_ns``: steal within the blocks.
    - ``disturbed``: other tasks seen on these CPUs.
    - ``notes``: field → why it is null; the key ``trace`` says why there is no trace.
    """

    format_version: int
    run: str
    evidence: str
    threshold_ns: int
    clock: str
    stalls: int
    lost_events: None
    causes: None
    worst: tuple[CountedStall, ...]
    measured_ns: int
    stalled_ns: int
    waited_ns: int | None
    threads: tuple[ThreadRecord, ...]
    cpus: tuple[CpuCounters, ...]
    cpus_counted_ns: int
    interrupts: dict[str, Counter] | None
    softirqs: dict[str, Counter] | None
    counted_s: float | None
    steal_ns: int | None
    disturbed: tuple[ForeignLoad, ...]
    perf_event_paranoid: int | None
    notes: dict[str, str] = field(default_factory=dict)
