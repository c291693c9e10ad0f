"""Define the report on a run's trace. ``explain --json`` prints the fields of EvidenceReport.

Times are whole ns, unless a field is in ticks of the trace's clock. Names of tasks, interrupts and functions come from
outside: clean them before they are shown (``model.text.clean``).
"""

from __future__ import annotations

from jitter_workshop.model.irq_rows import TIMER_IRQS
from jitter_workshop.model.record import FORMAT_VERSION as FORMAT_VERSION
from jitter_workshop.model.record import dataclass, field
from jitter_workshop.model.run import Counter, CpuCounters, ForeignLoad, ThreadRecord
from jitter_workshop.model.spec import MEASURED_THREADS
from jitter_workshop.model.text import SHORT, called

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

LOCAL_TIMER = "local_timer"
"""The name of the vector by which the CPU's own timer interrupts it (x86)."""


def is_of_timer(kind: str, name: str) -> bool:
    """Return True if a cause is a part of the CPU's local timer: its interrupt, a timer's function, or a gap next to
    this interrupt."""
    interrupt = name == LOCAL_TIMER or name.endswith(TIMER_IRQS)
    return kind == "timer" or (kind in ("vector", "irq", "around") and interrupt)


IDLE = "idle"
THROTTLED = "throttled"
"""Names of ``task`` for time in which no other task ran.

- IDLE: the thread was woken, and its CPU had to leave idle first.
- THROTTLED: the thread could run and its CPU was idle, but the scheduler did not let it run. A limit of its cgroup or
  of real-time tasks was reached.
"""


CPU_THREADS = (
    "kworker",
    "ksoftirqd",
    "migration",
    "cpuhp",
    "idle_inject",
    "irq_work",
    "ktimers",
    "rcuc",
    "backlog_napi",
)
"""The beginnings of the names of kernel threads of which each CPU has its own, before a slash and the CPU
(Documentation/admin-guide/kernel-per-CPU-kthreads.rst)."""
FREE_THREADS = (
    "kswapd",
    "kcompactd",
    "khugepaged",
    "ksmd",
    "rcuo",
    "rcu_",
    "jbd2",
    "kauditd",
    "writeback",
    "khungtaskd",
)
"""The beginnings of the names of other kernel threads, which a mask can move."""
MEASURED = "the measured threads"
"""The name of ``task`` for all measured threads of a run together. The kernel's own names are too short for it."""
NOT_OURS = " (another workshop?)"
ANOTHER_WORKSHOP, THIS_WORKSHOP = " (another workshop)", " (this workshop)"
"""Endings that are added to the names of some tasks: those that are called like a measured thread or like the workshop.
The thread id decides which ending is added. The kernel's own names are too short to contain an ending. NOT_OURS has a
question mark: another program may have a thread with this name, too."""
WORKSHOP = "jitter-workshop"
"""The name that the kernel has for the workshop's process, from its command."""


def load_called(load: ForeignLoad, limit: int) -> str:
    """Return the name of a task that used CPU time beside this workshop, cut to ``limit`` characters. If the task has
    the name of the workshop or of a measured thread, words on its owner follow. No process of this workshop is such a
    task (``bench.foreign_activity``)."""
    whose = ANOTHER_WORKSHOP if load.name == WORKSHOP else NOT_OURS if load.name in MEASURED_THREADS else ""
    return f"{called(load.name, limit)}{whose}"


def task_called(name: str) -> str:
    """Return the name of a task, such as one of :func:`load_called`. A long name is cut, but not the words at its end
    that tell whose task it is."""
    whose = next((mark for mark in (ANOTHER_WORKSHOP, NOT_OURS, THIS_WORKSHOP) if name.endswith(mark)), "")
    return f"{called(name.removesuffix(whose), SHORT)}{whose}"


@dataclass(frozen=True, slots=True)
class Rate:
    """Hold the rate of the trace's clock: ``ticks`` ticks take ``ns`` ns. Raise ValueError if ``ticks`` or ``ns`` is 0
    or negative."""

    ticks: int = 1
    ns: int = 1

    def __post_init__(self) -> None:
        if self.ticks < 1 or self.ns < 1:
            raise ValueError("the rate of the trace's clock must be above 0")

    def to_ns(self, ticks: int) -> int:
        """Return ticks of the trace's clock as whole ns, rounded down."""
        return ticks * self.ns // self.ticks

    def to_ticks(self, ns: int) -> int:
        """Return ns as whole ticks of the trace's clock, rounded down."""
        return ns * self.ticks // self.ns


@dataclass(frozen=True, slots=True)
class BlockSpan:
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
    """Hold a time in which a measured thread did not do its work.

    - ``start`` (included), ``end`` (not included): ticks of the trace's clock.
    - ``messages``: the number of messages that were late because of this time.
    - ``cpu``: the CPU on which the thread was last seen before ``start``.
    - ``publish``: for a consumer of the ring, the first tick at which the consumer could see the late message. None for
      any other thread.
    - ``start_seen``: True if the thread read its clock at ``start``. If False, the cause may have begun earlier.
    - ``due``: True if the thread should have been awake from ``start`` on. If the thread still slept after ``start``,
      the cause is what ran on its CPU in this time.
    - ``offset_ns``: the time from the start of the block to ``start``, by the benchmark's clock; None if not known.
    - ``duration_ns``: the time from ``start`` to ``end``, by the benchmark's clock; None if not known.
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

    - ``at_ns``: the stall's start, since the run began.
    - ``cpu``: None if not known.
    - ``parts``: the time by cause, largest first. The lengths of all parts add up to ``duration_ns``.
    - ``timeline``: the pieces of the stall in order of time. The lengths of all pieces add up to ``duration_ns``, too.
      If there are very many pieces, they are replaced by slices of equal length. Each slice has the cause that took
      most of it. ``parts`` is always exact.
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
    """Hold one cause over a whole run.

    - ``count``: number of stalls with this cause.
    - ``worst_ns``: the longest time that the cause took in one stall.
    - ``ns_per_second``: ns that the cause took in a second of measured time.
    - ``late_messages``: number of the main thread's messages that were late because of the stalls with this cause.
    - ``below_without``: the share (0..1) of messages that would be below the threshold without this cause. To compute
      this share, each stall is shortened by the cause's time. The stall is also shortened by the gaps directly before
      and after the cause. The share is None if the number of messages is not known.
    - ``threads``: number of threads of this name that ran on the hot CPUs.
    - ``typical_ns``: the median of the times that the cause took in its stalls, with the gaps next to it. It is 0 in
      reports of earlier versions.
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
    typical_ns: int = 0


@dataclass(frozen=True, slots=True)
class ThreadOnCpu:
    """Hold the time for which a measured thread ran on one CPU, according to the trace. ``kept_waiting_ns``: the time
    for which the thread was runnable or being moved, but did not run."""

    thread: str
    cpu: int
    ran_ns: int
    kept_waiting_ns: int
    times_preempted: int


@dataclass(frozen=True, slots=True)
class InterferingTask:
    """Hold a task or event that took time on a hot CPU. Measured threads are not included, nor are the helpers of a
    lock's run. If an event interrupts a task, the time of the interruption counts only for the event.

    - ``worst_ns``: its longest time between two times in which a measured thread had the CPU.
    - ``threads``: number of tasks of this name.
    - ``nested``: how many of the ``count`` times it was called by another task or event of this CPU that is listed,
      too. Examples are a work item in its kernel worker, and a timer's function in the timer's interrupt. Such a time
      is part of the caller's time on the CPU, so no sum counts both.
    - ``outer_kind``, ``outer_name``: the task or event that called it most often; "" if ``nested`` is 0.
    """

    cpu: int
    kind: str
    name: str
    count: int
    total_ns: int
    worst_ns: int
    threads: int = 1
    nested: int = 0
    outer_kind: str = ""
    outer_name: str = ""

    @property
    def is_nested(self) -> bool:
        """Return True if it was called by another one at least half of the times."""
        return self.nested > 0 and 2 * self.nested >= self.count


@dataclass(frozen=True, slots=True)
class FrequencySeen:
    """Hold the frequency changes that the kernel requested for one CPU during the blocks."""

    cpu: int
    changes: int
    lowest_khz: int
    highest_khz: int


@dataclass(frozen=True, slots=True)
class RemoteAction:
    """Hold an action of one task on another CPU or thread.

    - ``what``: ``ipi`` for an interrupt, ``move`` or ``wake``.
    - ``who``: the task that acted.
    - ``of``: for ``ipi``, the function that the interrupted CPU is to call. For ``move`` and ``wake``, the measured
      thread that was moved or woken.
    - ``cpu``: the CPU that was interrupted, or the CPU of the measured thread. It is -1 if there are several such CPUs.
    - ``count``: the number of these actions.
    """

    what: str
    who: str
    of: str
    cpu: int
    count: int


@dataclass(frozen=True, slots=True)
class TickKept:
    """Hold the reason why the kernel could not stop a CPU's timer tick. ``reason``: the kernel's name for the reason,
    from its event ``timer:tick_stop``. ``count``: how often the kernel gave this reason."""

    cpu: int
    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class QuietCpus:
    """Hold the evidence that only the measured threads, and the helpers of their lock, ran on the hot CPUs. The
    evidence is about one period of time without interruption.

    - ``clean``: True if nothing else ran; None if the trace lacks time, is empty or lacks a kind of event.
    - ``other_tasks``: how often another task ran on these CPUs. A work item counts as part of its task.
    - ``interruptions``: number of interrupts, softirqs and other calls. A function that one of them calls is a part of
      it.
    - ``nested``: number of work items and functions that are such parts.
    - ``taken_ns``: the time that the other tasks and the interruptions took together.
    - ``sentence``: the result in words.
    """

    cpus: tuple[int, ...]
    stretch_ns: int
    clean: bool | None
    other_tasks: int
    interruptions: int
    taken_ns: int
    sentence: str
    nested: int = 0


@dataclass(frozen=True, slots=True)
class CpuLane:
    """Hold what one task or event did on a CPU in one second. ``who``: the task or event, with its count and times in
    this second. ``cells``: 50 values: the time in ns that the task or event took in each fiftieth of the second."""

    who: InterferingTask
    cells: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CpuSecond:
    """Hold one second of a CPU.

    - ``at_ns``: the start of this second, in ns since the run began.
    - ``traced_ns``: the part of this second that lies in blocks.
    - ``taken_ns``: the time of everything except the measured threads and the helpers of their lock.
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
    """Hold which tasks ran on which CPUs in the blocks of one run.

    - ``deeds``: actions on other CPUs, at most the 1,000 most frequent ones.
    - ``ticks_kept``: reasons why ticks could not be stopped, at most the 1,000 most frequent ones.
    - ``second``: the second of a measured CPU in which other tasks and events took most time. None if nothing else ran.
    """

    threads: tuple[ThreadOnCpu, ...]
    visitors: tuple[InterferingTask, ...]
    frequencies: tuple[FrequencySeen, ...]
    deeds: tuple[RemoteAction, ...]
    ticks_kept: tuple[TickKept, ...]
    proof: QuietCpus
    second: CpuSecond | None = None


@dataclass(frozen=True, slots=True)
class EvidenceReport:
    """Hold the result of ``explain RUN`` for a run with a trace.

    - ``causes``: largest first.
    - ``timer``: the parts of the local timer (:func:`is_of_timer`) as one cause of the kind ``timer``, without a name.
      None if a stall has none, and in reports of earlier versions.
    - ``worst``: the longest stalls.
    - ``stalls``: number of explained stalls, counted for each measured thread separately.
    - ``distinct``: number of stalls, if simultaneous stalls of several threads count as one stall (as in ``measure``).
      None if only a part of the run was traced.
    - ``unlisted``: number of stalls that are counted in ``stalls``, but are too short for the list ``worst``.
    - ``events``: number of events in the trace.
    - ``unbalanced``: number of events whose beginning or end is missing.
    - ``unreported``: task → how often the trace lacks the event of a switch away from this task. Only the eight tasks
      with the largest numbers are listed.
    - ``unknown_ns``: the time in the blocks in which lost or missing events hide what ran on a measured CPU. None in
      reports of earlier versions.
    - ``measured_ns``: the length of all blocks together.
    - ``below_now``: the share (0..1) of the main thread's ``messages`` that were below the threshold.
    - ``missing``: event that this kernel does not provide → reason.
    - ``notes``: field → the reason why its value is null.
    - ``candidates``: sentences with possible explanations of gaps without an event. None of these sentences is a
      finding.
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
    timer: Cause | None = None
    missing: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CountedStall:
    """Hold a stall of a run without a trace. ``at_ns``: the stall's start, since the run began. ``parts``: always None,
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
    """Hold the result of ``explain RUN`` for a run without a trace. Its fields have the names of
    :class:`EvidenceReport`.

    Counters do not show the causes of stalls. So ``causes``, ``lost_events`` and the ``parts`` of each stall are null,
    and ``notes`` gives the reason.

    - ``evidence``: always ``counters``.
    - ``clock``: the clock of the run.
    - ``stalls``: number of distinct stalls that the benchmark counted.
    - ``stalled_ns``: the time that these stalls took. It is a part of ``measured_ns``, the length of all blocks.
    - ``worst``: the longest of the stalls that the run lists one by one.
    - ``waited_ns``: the time that the measured ``threads`` spent runnable but not running, summed over the threads. It
      includes waits that are too short to be a stall. None if the kernel does not count this time.
    - ``interrupts``, ``softirqs``: the number of each kind on the CPUs in ``cpus`` during ``counted_s``.
    - ``steal_ns``: steal within the blocks.
    - ``disturbed``: other tasks seen on these CPUs.
    - ``notes``: field → the reason why its value is null. The key ``trace`` gives the reason why there is no trace.
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
