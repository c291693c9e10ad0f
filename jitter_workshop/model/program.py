"""Define the report on a program of the user's own. ``explain --json`` prints the fields of ProgramReport.

Times are whole ns. Names of tasks, interrupts and functions come from outside: clean them before they are shown
(``model.text.clean``).
"""

from __future__ import annotations

from jitter_workshop.model.evidence import FrequencySeen, Part
from jitter_workshop.model.record import dataclass, field

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
    """Hold the program that is observed. ``kind``: ``command``, ``process``, ``thread`` or ``cgroup``. ``name``: the
    command, the process's name, or the cgroup. ``pid``: None for a cgroup."""

    kind: str
    name: str
    pid: int | None


@dataclass(frozen=True, slots=True)
class ProcessSeen:
    """Hold one process of a list from which the user chooses.

    - ``start_ticks``: its start in clock ticks since boot. No other process has the same ``pid`` and ``start_ticks``.
    - ``user``: the name of its owner, or the owner's user id if there is no name.
    - ``cpu_percent``: its CPU time while the list was made, in percent of one CPU.
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
    """Hold the time that one cause took from a thread. ``kind``: as in ``model.evidence.CAUSE_KINDS``. ``count``: the
    number of hold-ups with this cause. A hold-up is a time in which a thread could have run but did not. ``worst_ns``:
    the longest time that the cause took in one hold-up."""

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
    - ``wakers``: a chain of at most three tasks or interrupts. The first waker woke the thread and ended the wait.
      During the wait, the second waker woke the first one, and the third waker woke the second one. () if the wait did
      not end.
    """

    kind: str
    name: str
    wakers: tuple[Waker, ...]
    count: int
    total_ns: int
    worst_ns: int


@dataclass(frozen=True, slots=True)
class Times:
    """Hold the times of one thread, or their sums over several threads. ``ran_ns``, ``waited_ns``, ``slept_ns``,
    ``blocked_ns`` and ``unknown_ns`` add up to exactly ``observed_ns``.

    - ``waited_ns``: the time in which the thread could have run, but had no CPU.
    - ``interrupted_ns``: the part of ``waited_ns`` that interrupts, softirqs and similar kernel work took. No other
      task was on the thread's CPU in this time.
    - ``preempted``: how often the thread lost its CPU although it could have run on.
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
    """Hold the number and the time of the page faults of all threads. The trace does not show when a fault ends, so
    most of the time is an estimate.

    - ``waited``: the number of faults that waited for a disk or for memory.
    - ``waited_ns``: the time of these waits. The lists ``blocked_on`` of the threads contain this time, too.
    - ``sampled``: the number of faults after which the same thread had another fault within 20 µs.
    - ``typical_ns``: the median time between a fault in ``sampled`` and the next fault of the thread; None if
      ``sampled`` is too small.
    - ``ran_ns``: the estimated time of all faults that did not wait; None if ``sampled`` is too small. The estimate is
      probably too long rather than too short. It never exceeds the time for which the threads ran.
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
    """Hold how much time the observation itself costs.

    - ``events``: number of events in the program's own threads.
    - ``event_ns``: the time that one event costs. This tool measures this time just before the observation: it makes
      the same system calls twice, without and with the trace. None if the calls were not slower with the trace.
    - ``tool_ran_ns``: the time for which this tool's processes had a CPU during the observation.
    """

    events: int
    event_ns: int | None
    tool_ran_ns: int


@dataclass(frozen=True, slots=True)
class ThreadTimes:
    """Hold the times of one thread, which :class:`Times` explains. Without a trace, some of these times are None.

    - ``began_ns``: the start of the thread's observed time, counted from the start of the observation.
    - ``causes``: a list of what took ``waited_ns``.
    - ``blocked_on``: a list of the waits in ``blocked_ns``.
    - ``slept_in``: a list of the waits in ``slept_ns``.
    - ``unknown_in``: a list of the reasons for ``unknown_ns``.
    - ``page_faults``: number of the thread's page faults. A fault that does not wait is a part of ``ran_ns``.
    - ``stolen_ns``: two times, computed from the steal of the thread's CPUs. The hypervisor took at least the first and
      at most the second time from ``ran_ns``.

    Each of the four lists begins with the longest time. The times of a list add up to the field that is named beside
    the list: the times in ``causes`` add up to ``waited_ns``. A list is None if only counters are known.
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
    """Hold how often, and for how long, a CPU quota stopped the program's control groups. The figures come from the
    groups' own counters (cpu.stat). If several threads or CPUs of a group were stopped together, the time may count
    once for each."""

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
    - ``causes``: each cause, with the time that it took from all threads together.
    - ``threads``: the threads that took most time.
    - ``all_threads``: the sums over all threads of the program, including threads that are not in ``threads``. None
      without a trace.
    - ``unreported``: task → how often the trace lacks the event of a switch away from this task. Only the eight tasks
      with the largest numbers are listed.
    - ``steal_ns``: the time that the hypervisor took on all CPUs, by the steal clock. The times in ``threads`` include
      the time that the hypervisor took.
    - ``steal``: the CPUs from which the hypervisor took time.
    - ``faults``, ``cost``: None without a trace.
    - ``exit_code``: the exit code of the command.
    - ``missing``: event that this kernel does not provide → reason.
    - ``notes``: field → the reason why its value is null or not complete.
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
