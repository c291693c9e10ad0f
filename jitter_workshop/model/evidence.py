"""Define the report of a run's trace. The fields of EvidenceReport are those of ``explain --json``.

Times are whole ns unless a field says ticks (of the trace's clock). Names of tasks, interrupts and functions come from
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
"""``task``: another task ran (``idle``: none ran, and the thread had to be waited for). ``irq``: a device's handler.
``softirq``, ``timer`` (a function of a high-resolution timer), ``vector`` (the CPU's own interrupts, NMIs, and
functions that another CPU called here) and ``workqueue``: by their names. ``migration``: between two CPUs; the name is
the task that moved it. ``page_fault``: ``user`` or ``kernel``, the mode in which the thread was. ``around NAME``: a
short gap that touches NAME's event (its entry and exit, the cost of tracing it, a hypervisor's exits for it).
``no_event``: time without any event that a trace can show."""

FAULT = "page_fault"
"""The name for the gap around a page fault; it is the same in user mode and in kernel mode."""

NOTHING = ""
ASLEEP = "asleep"
LOST = "events lost"
MISSING = "event missing"
NOT_TRACED = "CPU not traced"
CATCHING_UP = "catching up"
"""Names of ``no_event``. NOTHING: no event in this trace. ASLEEP: the thread slept (or was stopped) by its own doing.
LOST: the trace had no room for the events. MISSING: an event is absent that its neighbours imply (a switch, an exit),
though none was lost. NOT_TRACED: the thread was on a CPU that is not traced. CATCHING_UP: a consumer took the messages
that had piled up while it was stopped."""

IDLE = "idle"
THROTTLED = "throttled"
"""Names of ``task`` for time in which no other task ran. IDLE: the thread was woken, and its CPU had to leave idle
first. THROTTLED: the thread could run and its CPU was idle, but the scheduler did not let it run (a limit of its
cgroup, or of real-time tasks).
"""


@dataclass(frozen=True, slots=True)
class Rate:
    """Hold the rate of the trace's clock: ``ticks`` took ``ns``. Both are above 0, else ValueError."""

    ticks: int = 1
    ns: int = 1

    def __post_init__(self) -> None:
        if self.ticks < 1 or self.ns < 1:
            raise ValueError("a clock's rate is above 0")

    def to_ns(self, ticks: int) -> int:
        """Return whole ns, rounded down."""
        return ticks * self.ns // self.ticks

    def to_ticks(self, ns: int) -> int:
        """Return whole ticks, rounded down."""
        return ns * self.ticks // self.ns


@dataclass(frozen=True, slots=True)
class Span:
    """Hold one block: ``start`` and ``end`` in ticks, ``start_ns`` since the run began. ``messages``: number in the
    main histogram for this block, None where not known."""

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
    """Hold a time [start, end) in ticks in which a measured thread did not do its work and made ``messages`` late.

    ``cpu``: where the thread was last seen before. ``publish``: the first time at which a ring's consumer could have
    seen its message. ``start_seen``: the thread itself read its clock at ``start``; if False, the cause may have begun
    earlier. ``due``: the thread should have been awake from ``start`` on, so its sleep is blamed on the task that had
    its CPU. ``offset_ns`` (since the block began) and ``duration_ns``: as the benchmark reported them, else None.
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
    """Hold the time in ns that one cause took of a stall. ``kind``: one of CAUSE_KINDS."""

    kind: str
    name: str
    ns: int


@dataclass(frozen=True, slots=True)
class Slice:
    """Hold a piece of a stall in order of time, ``offset_ns`` from the stall's start."""

    kind: str
    name: str
    offset_ns: int
    ns: int


@dataclass(frozen=True, slots=True)
class StackSeen:
    """Hold functions of the kernel, innermost first, at a moment of a stall. ``event``: the event at that moment."""

    offset_ns: int
    event: str
    functions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExplainedStall:
    """Hold a stall with its causes. ``at_ns``: since the run began. ``cpu``: None where the run does not say.
    ``parts``, largest first, and ``timeline``, in order of time, each sum to ``duration_ns``. A timeline of very many
    pieces is coarse; the parts are always exact. ``notes``: senders and movers, in words."""

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
    """Hold one cause over a run. ``count``: stalls that contain it. ``worst_ns``: its largest part of one stall.
    ``ns_per_second``: per second of measured time. ``late_messages``: messages in those stalls of the main thread.

    ``below_without``: the share (0..1) of messages that would stay below the threshold without this cause (and the gaps
    around it), None where the number of messages is not known. ``threads``: threads of this name that ran there in the
    run.
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
    """Hold how long a measured thread ran on a CPU (by the trace), and how long it was ready or moving but did not
    run."""

    thread: str
    cpu: int
    ran_ns: int
    kept_waiting_ns: int
    times_preempted: int


@dataclass(frozen=True, slots=True)
class InterferingTask:
    """Hold a task or event that ran on a hot CPU beside the measured threads: count, total and longest time. The time
    is its own: time in which something else interrupted it counts for that other task or event. ``threads``: number of
    tasks of this name.
    """

    cpu: int
    kind: str
    name: str
    count: int
    total_ns: int
    worst_ns: int
    threads: int = 1


@dataclass(frozen=True, slots=True)
class FrequencySeen:
    """Hold the changes of a CPU's frequency that the kernel asked for during the blocks."""

    cpu: int
    changes: int
    lowest_khz: int
    highest_khz: int


@dataclass(frozen=True, slots=True)
class RemoteAction:
    """Hold an action of one task on another, with its count. ``what``: ``ipi`` (``of``: the function that the target is
    to call), ``move`` (``of``: the measured thread) or ``wake`` (``of``: the measured thread). ``cpu``: the target's,
    -1 for several."""

    what: str
    who: str
    of: str
    cpu: int
    count: int


@dataclass(frozen=True, slots=True)
class TickKept:
    """Hold the reason why a CPU's tick went on. ``reason`` is the kernel's word for what needs it."""

    cpu: int
    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class Proof:
    """Hold the evidence that only the measured threads ran on the hot CPUs in a stretch. ``clean``: nothing else ran;
    None (no answer) where the trace has gaps, is empty or lacks a kind of event. ``other_tasks``: number of times that
    another task, or work inside a task, ran there. ``interruptions``: the rest (interrupts, softirqs, timers).
    ``taken_ns``: the time of both together. ``sentence``: the result in words.
    """

    cpus: tuple[int, ...]
    stretch_ns: int
    clean: bool | None
    other_tasks: int
    interruptions: int
    taken_ns: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Residence:
    """Hold where each task ran, all from the blocks of one run. ``deeds`` and ``ticks_kept``: the commonest 1,000."""

    threads: tuple[ThreadOnCpu, ...]
    visitors: tuple[InterferingTask, ...]
    frequencies: tuple[FrequencySeen, ...]
    deeds: tuple[RemoteAction, ...]
    ticks_kept: tuple[TickKept, ...]
    proof: Proof


@dataclass(frozen=True, slots=True)
class EvidenceReport:
    """Hold the result of ``explain RUN``. ``causes``: largest first. ``worst``: the longest stalls. ``stalls``: number
    of explained stalls, counted for each measured thread on its own. ``distinct``: how many are apart in time, as
    ``measure`` counts them (None where not all of the run was traced). ``unlisted``: shorter ones that were counted and
    not listed. ``events``: number in the trace. ``unbalanced``: events whose beginning or end is missing.
    ``measured_ns``: the blocks' sum.

    ``below_now``: share (0..1) of the main thread's ``messages`` below the threshold. ``missing``: events that this
    kernel does not provide, with the reason. ``notes``: field → why it is null. ``candidates``: sentences with possible
    explanations of gaps without an event; none of them is a finding.
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
    main_thread: str = ""
    messages: int | None = None
    below_now: float | None = None
    residence: Residence | None = None
    missing: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CountedStall:
    """Hold a stall that only the benchmark saw. ``at_ns``: since the run began. ``parts`` is always null."""

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
    null, with the reason in ``notes``; an empty list would mean that nothing took the time.

    ``clock``: the run's. ``stalls``: all distinct stalls that the benchmark counted; they took ``stalled_ns`` of the
    blocks' ``measured_ns``. ``worst``: the longest ones that it listed.

    ``waited_ns``: the sum over the measured ``threads`` of their time in a run queue, runnable but not running; None
    where the kernel does not count it. It belongs to threads, not to stalls: short waits are in it, too. ``interrupts``
    and ``softirqs``: on the CPUs of ``cpus`` only, in ``counted_s``. ``steal_ns``: within the blocks. ``disturbed``:
    other tasks seen on those CPUs. ``notes``: field → why it is null, and ``trace``: why there is none.
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
