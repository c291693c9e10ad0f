"""Define the report on a program of the user's own. ``explain --json`` prints the fields of ProgramReport.

Times are whole ns. Names of tasks, interrupts and functions come from outside: clean them before they are shown
(``model.text.clean``).
"""

from __future__ import annotations

from jitter_workshop.model.evidence import FrequencySeen, Part
from jitter_workshop.model.record import dataclass, field

TARGET_KINDS = ("command", "process", "thread", "cgroup")

WAIT_KINDS = ("sleep", "futex", "io", "lock", "child", "page_fault", "kernel", "stopped")
"""The kinds of waits. All kinds except ``sleep`` are blocking.

- ``sleep``: the thread asked to wait for a time or for events (nanosleep, poll, epoll_wait, …).
- ``futex``: it waits for another thread's futex.
- ``io``: it reads, writes, sends or receives.
- ``lock``: it waits for a lock of files, a semaphore or a message queue.
- ``child``: it waits for a child process. With ``vfork`` and ``clone`` it waits until the child runs a program of its
  own.
- ``page_fault``: its page fault waits for a disk or for memory.
- ``kernel``: it waits in the kernel, in a call for memory or outside of the traced calls.
- ``stopped``: a signal or a debugger stopped it.
"""

CALLS_THAT_WAIT: dict[str, tuple[str, ...]] = {
    "sleep": (
        *("nanosleep", "clock_nanosleep", "poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait"),
        *("epoll_pwait2", "pause", "rt_sigsuspend", "rt_sigtimedwait"),
    ),
    "futex": ("futex", "futex_wait", "futex_waitv"),
    "io": (
        *("read", "readv", "pread64", "preadv", "preadv2", "write", "writev", "pwrite64", "pwritev", "pwritev2"),
        *("recvfrom", "recvmsg", "recvmmsg", "sendto", "sendmsg", "sendmmsg", "accept", "accept4", "connect"),
        *("fsync", "fdatasync", "sync", "syncfs", "sendfile64", "splice", "copy_file_range"),
        *("io_uring_enter", "io_getevents", "io_pgetevents", "openat", "close", "unlink", "unlinkat"),
        *("rename", "renameat2", "ftruncate", "fallocate", "fadvise64", "getdents64", "msync", "ioctl"),
    ),
    "lock": ("flock", "fcntl", "semop", "semtimedop", "msgrcv", "msgsnd", "mq_timedreceive", "mq_timedsend"),
    "child": ("wait4", "waitid", "vfork", "clone", "clone3"),
    "kernel": ("mmap", "munmap", "madvise", "execve"),
}
"""Kind of a wait → the system calls in which a program may wait in this way. The trace records no other calls. Of
``futex`` it records only the beginnings of calls that may wait (see ``evidence.lives``)."""

FUTEX = "futex"

MOST_PROCESSES = 256
"""The largest number of a program's processes that are observed."""

OBSERVED_S = 10
"""Seconds for which a running program is observed, unless another time is asked for."""

REAL_TIME_THROTTLED = "real-time throttling"
"""The name of a cause of the kind ``task``: a real-time thread could run, but an ordinary task or no task had its CPU.
The kernel keeps a part of each second for ordinary tasks (``sched_rt_runtime_us``, the fair server)."""

NOT_WOKEN = "not woken"
"""The name of a sleep that began before the trace and lasted until the trace's end. Its system call is not known."""


@dataclass(frozen=True, slots=True)
class Target:
    """Hold the program that is observed. ``kind``: one of TARGET_KINDS. ``name``: the command, the process's name, or
    the cgroup. ``pid``: None for a cgroup."""

    kind: str
    name: str
    pid: int | None


@dataclass(frozen=True, slots=True)
class ProcessSeen:
    """Hold one process of a list from which the user chooses.

    - ``start_ticks``: its start in clock ticks since boot. No other process has the same ``pid`` and ``start_ticks``.
    - ``user``: its owner's name, or the user id if it has no name.
    - ``cpu_percent``: its CPU time during the short time in which the list was made, in percent of one CPU.
    - ``started_at``: its start as ISO time, UTC.
    - ``command``: its command line as its owner wrote it, "" if it has none.
    """

    pid: int
    start_ticks: int
    name: str
    user: str
    cpu_percent: float
    started_at: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class TimeTaken:
    """Hold the time that one cause took from a thread. ``kind``: as in ``model.evidence.CAUSE_KINDS``. ``count``:
    number of hold-ups with this cause. ``worst_ns``: the cause's largest part of one hold-up."""

    kind: str
    name: str
    count: int
    total_ns: int
    worst_ns: int


@dataclass(frozen=True, slots=True)
class Waker:
    """Hold a task or interrupt that woke a thread. ``kind``: as in ``model.evidence.CAUSE_KINDS``."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Hold the time for which a thread slept or was blocked on one thing.

    - ``kind``: one of WAIT_KINDS.
    - ``name``: the system call, "" if the trace does not show it.
    - ``wakers``: a chain of at most three tasks or interrupts; () if the wait did not end. The first woke the thread,
      which ended the wait. The second woke the first, and the third woke the second; these two wake-ups came during the
      wait, too.
    """

    kind: str
    name: str
    wakers: tuple[Waker, ...]
    count: int
    total_ns: int
    worst_ns: int


@dataclass(frozen=True, slots=True)
class Times:
    """Hold the time of one thread, or the sum over threads. ``ran_ns`` + ``waited_ns`` + ``slept_ns`` + ``blocked_ns``
    + ``unknown_ns`` = ``observed_ns``, to the ns.

    - ``waited_ns``: the thread could have run, but something else had the CPU.
    - ``interrupted_ns``: the part of ``waited_ns`` in which no other task had the thread's CPU, but an interrupt, a
      softirq or the like ran there.
    - ``preempted``: how often the thread lost its CPU while it could go on.
    """

    observed_ns: int = 0
    ran_ns: int = 0
    waited_ns: int = 0
    slept_ns: int = 0
    blocked_ns: int = 0
    unknown_ns: int = 0
    interrupted_ns: int = 0
    preempted: int = 0


@dataclass(frozen=True, slots=True)
class FaultTimes:
    """Hold the page faults of all threads.

    The trace does not show when a fault ends. A fault is known to be over only when the thread's own code has the next
    fault.

    - ``waited``: how many faults waited for a disk or for memory. They took ``waited_ns`` in all; these waits are in
      ``blocked_on``, too.
    - ``sampled``: the number of faults that were followed by another fault within 20 µs.
    - ``typical_ns``: the median of the times between these faults; None if ``sampled`` is too small.
    - ``ran_ns``: the estimated time of all faults that did not wait; None if ``sampled`` is too small. The estimate is
      more likely too long than too short, and never longer than the threads ran.
    """

    count: int
    waited: int
    waited_ns: int
    sampled: int
    typical_ns: int | None
    ran_ns: int | None


@dataclass(frozen=True, slots=True)
class CpuSteal:
    """Hold the time that a hypervisor took from one CPU, in whole ticks of the steal clock (10 ms)."""

    cpu: int
    ns: int


@dataclass(frozen=True, slots=True)
class OwnCost:
    """Hold what the observation itself costs.

    - ``events``: events in the program's own threads.
    - ``event_ns``: the time that one event costs. It is measured just before the observation: a process of this tool
      makes the same calls without and with the trace. None if the calls were not slower with the trace.
    - ``tool_ran_ns``: how long this tool's processes had a CPU while the program was observed.
    """

    events: int
    event_ns: int | None
    tool_ran_ns: int


@dataclass(frozen=True, slots=True)
class ThreadTimes:
    """Hold one thread's time, in the parts that :class:`Times` explains. Without a trace some parts are None.

    - ``began_ns``: the beginning of its observed time, since the observation began.
    - ``causes``, ``blocked_on``, ``slept_in``, ``unknown_in``: the causes of ``waited_ns``, ``blocked_ns``,
      ``slept_ns`` and ``unknown_ns``, in this order. Each list sums to its time; the largest cause comes first. None
      means that only counters are known.
    - ``page_faults``: number of its page faults. The trace shows no end of a fault, so its length is in ``ran_ns``.
    - ``stolen_ns``: the least and the largest part of ``ran_ns`` that the hypervisor can have taken, by the steal of
      the CPUs on which the thread ran.
    """

    tid: int
    name: str
    began_ns: int
    observed_ns: int
    ran_ns: int | None
    waited_ns: int | None
    slept_ns: int | None
    blocked_ns: int | None
    unknown_ns: int | None
    interrupted_ns: int | None
    preempted: int | None
    page_faults: int | None
    causes: tuple[TimeTaken, ...] | None
    blocked_on: tuple[Wait, ...] | None
    slept_in: tuple[Wait, ...] | None
    unknown_in: tuple[TimeTaken, ...] | None
    slept_times: int | None = None
    stolen_ns: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class HoldUp:
    """Hold a time in which a thread could have run and did not. ``at_ns``: its start since the observation began. The
    ``parts`` (largest first) sum to ``duration_ns``."""

    at_ns: int
    duration_ns: int
    cpu: int | None
    thread: str
    tid: int
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Throttled:
    """Hold how often the program's control groups used up their CPU quota, and for how long they were stopped. The
    figures are the groups' own counters (cpu.stat). A group with several runnable threads or CPUs may count the same
    time several times."""

    periods: int
    stopped_ns: int | None


@dataclass(frozen=True, slots=True)
class ProgramReport:
    """Hold the result of ``explain`` for a program. Its fields have the names of ``model.evidence.EvidenceReport``.

    - ``run``: always None.
    - ``evidence``: ``trace`` or ``counters``.
    - ``duration_ns``: how long the program was observed.
    - ``stalls``: number of hold-ups of at least ``threshold_ns``, in all threads.
    - ``worst``: the longest of these hold-ups.
    - ``causes``: the sums over all threads.
    - ``all_threads``: the sum over the listed ``threads`` and those that are not listed because they took less time;
      None without a trace.
    - ``unreported``: task → how often the trace lacks the event of the switch from this task to another; only the eight
      tasks with the largest numbers.
    - ``steal_ns``: the hypervisor's time on all CPUs, by the steal clock; the times above include it.
    - ``steal``: the CPUs from which the hypervisor took time.
    - ``faults``, ``cost``: None without a trace.
    - ``exit_code``: the exit code of the command.
    - ``missing``: event that this kernel does not provide → reason.
    - ``notes``: field → why it is null or not complete.
    """

    format_version: int
    run: None
    target: Target
    evidence: str
    clock: str
    duration_ns: int
    threshold_ns: int | None
    stalls: int | None
    lost_events: int | None
    causes: tuple[TimeTaken, ...] | None
    worst: tuple[HoldUp, ...] | None
    threads: tuple[ThreadTimes, ...]
    all_threads: Times | None
    left_out: int = 0
    events: int = 0
    unbalanced: int = 0
    unreported: dict[str, int] = field(default_factory=dict)
    steal_ns: int | None = None
    throttled: Throttled | None = None
    steal: tuple[CpuSteal, ...] = ()
    faults: FaultTimes | None = None
    cost: OwnCost | None = None
    frequencies: tuple[FrequencySeen, ...] = ()
    exit_code: int | None = None
    missing: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
