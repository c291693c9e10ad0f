"""What the kernel's trace says about a run. The fields of EvidenceReport are those of ``explain --json`` (DESIGN §9).

Times are whole ns unless a field says ticks (of the trace's clock). Names of tasks, interrupts and functions come from
outside: whoever shows them cleans them (``model.text.clean``).
"""

from __future__ import annotations

from jitter_workshop.model.record import dataclass, field
from jitter_workshop.model.version import FORMAT_VERSION as FORMAT_VERSION

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
"""``task``: somebody else ran (``idle``: nobody, and the thread had to be waited for). ``irq``: a device's handler.
``softirq``, ``timer`` (a function of a high-resolution timer), ``vector`` (the CPU's own interrupts, NMIs and what
another CPU had called here), ``workqueue``: by their names. ``migration``: between two CPUs; the name is who moved it.
``page_fault``: ``user`` or ``kernel``, by where the thread was. ``around NAME``: a short gap that touches NAME's event
(its entry and exit, what tracing it costs, a hypervisor's exits for it). ``no_event``: nothing that a trace can see."""

FAULT = "page_fault"
"""What lies around a page fault is around this, wherever the thread was."""

NOTHING = ""
ASLEEP = "asleep"
LOST = "events lost"
MISSING = "event missing"
NOT_TRACED = "CPU not traced"
CATCHING_UP = "catching up"
"""Names of ``no_event``: nothing happened by this trace; the thread slept (or was stopped) by its own doing; the trace
had no room for what happened; an event is not there that those around it ask for (a switch, an exit), though nothing
was lost; the thread was on a CPU that is not traced; a consumer took what had piled up while it was stopped."""

IDLE = "idle"
THROTTLED = "throttled"
"""Names of ``task`` where there was none: the thread was woken and its CPU had to come out of idle first; the thread
could run, its CPU did nothing, and the scheduler would not let it (a limit of its cgroup, or of real-time tasks)."""


@dataclass(frozen=True, slots=True)
class Rate:
    """How the trace's clock runs: ``ticks`` took ``ns``. Both above 0."""

    ticks: int = 1
    ns: int = 1

    def __post_init__(self) -> None:
        if self.ticks < 1 or self.ns < 1:
            raise ValueError("a clock's rate is above 0")

    def to_ns(self, ticks: int) -> int:
        """Whole ns, rounded down."""
        return ticks * self.ns // self.ticks

    def to_ticks(self, ns: int) -> int:
        """Whole ticks, rounded down."""
        return ns * self.ticks // self.ns


@dataclass(frozen=True, slots=True)
class Span:
    """One block: ``start`` and ``end`` in ticks, ``start_ns`` since the run began. ``messages``: of the main histogram
    in it, None where not known."""

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
    """A time [start, end) in ticks in which a measured thread did not do its work, ``messages`` of which it made late.

    ``cpu``: where the thread was last seen before. ``publish``: when a ring's consumer could first have seen its
    message. ``start_seen``: the thread itself read its clock at ``start``; where it did not, what held it may have
    begun before. ``due``: it was to be awake from ``start`` on, so that its sleep counts against whoever had its CPU.
    ``offset_ns`` (since the block began) and ``duration_ns``: as the benchmark said them, where it did.
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
    """What one cause took of a stall: ``kind`` one of CAUSE_KINDS."""

    kind: str
    name: str
    ns: int


@dataclass(frozen=True, slots=True)
class Slice:
    """A piece of a stall in order of time, ``offset_ns`` from the stall's start."""

    kind: str
    name: str
    offset_ns: int
    ns: int


@dataclass(frozen=True, slots=True)
class StackSeen:
    """Functions of the kernel, innermost first, at a moment of a stall; ``event``: what happened there."""

    offset_ns: int
    event: str
    functions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExplainedStall:
    """A stall with its causes. ``at_ns``: since the run began. ``cpu``: None where the run does not say. ``parts``,
    largest first, and ``timeline``, in order of time, each sum to ``duration_ns``; a timeline of very many pieces is
    coarse, the parts never are. ``notes``: who sent, who moved, in words."""

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
    """One cause over a run. ``count``: stalls that it is in, ``worst_ns``: the most it took of one; ``ns_per_second``:
    of measured time. ``late_messages``: messages in those stalls of the main thread.

    ``below_without``: the share (0..1) of messages that would stay below the threshold without this cause (and what is
    around it), None where the number of messages is not known. ``threads``: how many of this name ran there in the run.
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
    """How long a measured thread ran on a CPU (by the trace), and how long it was ready or moving but did not run."""

    thread: str
    cpu: int
    ran_ns: int
    kept_waiting_ns: int
    times_preempted: int


@dataclass(frozen=True, slots=True)
class InterferingTask:
    """What ran on a hot CPU beside the measured threads: how often, how long in all, the longest. Its own time only:
    what interrupted it is another visitor's. ``threads``: how many tasks of this name it were."""

    cpu: int
    kind: str
    name: str
    count: int
    total_ns: int
    worst_ns: int
    threads: int = 1


@dataclass(frozen=True, slots=True)
class FrequencySeen:
    """Changes of a CPU's frequency that the kernel asked for during the blocks."""

    cpu: int
    changes: int
    lowest_khz: int
    highest_khz: int


@dataclass(frozen=True, slots=True)
class RemoteAction:
    """Who did what to whom, how often. ``what``: ``ipi`` (``of``: the function that the target is to call), ``move``
    (``of``: the measured thread) or ``wake`` (``of``: the measured thread). ``cpu``: the target's, -1 for several."""

    what: str
    who: str
    of: str
    cpu: int
    count: int


@dataclass(frozen=True, slots=True)
class TickKept:
    """Why the tick of a CPU went on: ``reason`` is the kernel's word for what needs it."""

    cpu: int
    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class Proof:
    """Whether anything but the measured threads ran on the hot CPUs in a stretch. ``clean``: nothing did; None where
    the trace has gaps, is empty or lacks a kind of event, and so no answer. ``other_tasks``: stays of tasks, and of
    work in them; ``interruptions``: the rest (interrupts, softirqs, timers); ``taken_ns``: all of it. ``sentence`` says
    it."""

    cpus: tuple[int, ...]
    stretch_ns: int
    clean: bool | None
    other_tasks: int
    interruptions: int
    taken_ns: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Residence:
    """Who was where: all from the blocks of one run. ``deeds`` and ``ticks_kept``: the commonest 1,000."""

    threads: tuple[ThreadOnCpu, ...]
    visitors: tuple[InterferingTask, ...]
    frequencies: tuple[FrequencySeen, ...]
    deeds: tuple[RemoteAction, ...]
    ticks_kept: tuple[TickKept, ...]
    proof: Proof


@dataclass(frozen=True, slots=True)
class EvidenceReport:
    """``explain RUN``. ``causes``: largest first. ``worst``: the longest stalls. ``stalls``: those that were explained,
    each measured thread's counted for itself; ``distinct``: how many are apart in time, as ``measure`` counts them
    (None where not all of the run was traced); ``unlisted``: shorter ones that were counted and not listed. ``events``:
    how many the trace holds; ``unbalanced``: those without their other half. ``measured_ns``: the blocks' sum.

    ``below_now``: share (0..1) of the main thread's ``messages`` below the threshold. ``missing``: events that this
    kernel does not give, with the reason. ``notes``: field → why it is null. ``candidates``: what gaps without an event
    may be here, in sentences; none of them is a finding.
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
