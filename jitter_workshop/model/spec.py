"""Define what to measure: workload, pacing, blocks and placement. The parent passes these data to the child."""

from __future__ import annotations

import typing
from typing import Literal

from jitter_workshop.model.record import dataclass

WorkloadName = Literal["ring", "spin", "wakeup", "ack"]
Pacing = Literal["spin", "schedule"]
DUTIES = (100, 50, 10)
"""The possible shares of time, in percent, in which ``spin`` samples."""
DUTY_PATTERNS_NS = {50: (1_000_000, 1_000_000), 10: (111_000, 1_000_000)}
"""Duty of ``spin`` below 100 % → (ns of sampling, ns of pause). The patterns are those of P. Lawrey (2013)."""
Pause = Literal["sleep", "busy"]
"""The way in which ``spin`` spends the time without sampling: asleep or busy."""
MemoryUse = Literal["none", "ready", "fresh", "huge", "file", "far", "near"]
"""The use of memory by a measured thread, in addition to its work.

- ``ready``, ``fresh``, ``huge`` and ``file``: the accumulator of ``ring`` keeps a copy of each message. ``ready``
  memory was touched before the run. In ``fresh`` memory each page's first write is a fault. ``huge`` memory is fresh,
  too, but the kernel is asked for huge pages. With ``file`` the kernel writes each copy, by one system call, to a file
  that is only in memory.
- ``far`` and ``near``: ``spin`` loads four cache lines from such memory before each reading of the clock (CHASE_BYTES).
"""
MEMORY_OF: dict[MemoryUse, WorkloadName] = {
    "ready": "ring",
    "fresh": "ring",
    "huge": "ring",
    "file": "ring",
    "far": "spin",
    "near": "spin",
}
FAULTING: frozenset[MemoryUse] = frozenset(("fresh", "huge"))
"""The uses of memory with which the first write to each page is a page fault of the measured thread."""
CHASE_BYTES: dict[MemoryUse, int] = {"far": 32 << 20, "near": 128 << 10}
"""Bytes of the memory from which ``spin`` loads: ``far`` exceeds the private caches of any core, ``near`` fits into
them."""
LockUse = Literal["none", "plain", "inherit"]
"""The lock that the thread of ``wakeup`` takes after each wake-up. Another thread of the run on the same CPU, with a
priority lower by two, holds the lock now and then. A third thread with a priority between the two never takes the lock,
and keeps the CPU for 3 ms at a time. With ``inherit`` the holder gets the priority of the thread that waits
(PTHREAD_PRIO_INHERIT)."""
LOCKS = typing.get_args(LockUse)
LOCK_PRIORITY = 3
"""The lowest priority of SCHED_FIFO for a run with a lock: its two other threads have lower priorities."""
LOCK_HELPERS = ("lock-holder", "between")
"""The names of the two other threads of a run with a lock, as native/wakeup.c sets them. These threads live only while
blocks are measured, so no list of the run's own thread ids has them."""
PlacementMode = Literal["auto", "none", "chosen"]

STALL_DECADES_NS = (1_000, 10_000, 100_000, 1_000_000)
"""The thresholds in ns for which every run gives a rate of stalls."""


@dataclass(frozen=True, slots=True)
class WorkloadKind:
    """Hold the facts of a workload. A new workload needs a row of ``KINDS``, a class in ``bench/workloads.py`` and a C
    file.

    - ``title``: the name that users see.
    - ``threads``: thread → the field of :class:`Placement` with the thread's CPU. The threads have the same order as in
      the native code.
    - ``rated``: the threads whose stalls count in a run's rates. The first of them fills the main histogram. Stalls of
      two threads at the same time count as one stall.
    - ``histogram``: the histogram that charts and tables show first.
    - ``counted``: a word for the samples in this histogram, such as "intervals".
    - ``makes``: a word for what a run makes again and again, such as "messages". This word is used for rates, as in
      "messages a second".
    - ``done``: the heading for a thread's counts by CPU (``messages_by_cpu``).
    - ``interval_ns``: the default time in ns between two messages, wake-ups or segments.
    - ``threshold_ns``: the default length in ns of the shortest stall.
    - ``paced``: True if the workload does something once in each interval.
    - ``waits``: True if its threads sleep in the kernel until the next interval.
    - ``payload``: the content of a message, "" for none.
    """

    title: str
    threads: dict[str, str]
    rated: tuple[str, ...]
    histogram: str
    counted: str
    makes: str
    done: str
    interval_ns: int
    threshold_ns: int
    paced: bool = True
    waits: bool = False
    payload: str = ""


KINDS: dict[str, WorkloadKind] = {
    "ring": WorkloadKind(
        title="Messages through the ring",
        threads={"producer": "producer", "accumulator": "accumulator", "journaller": "journaller"},
        rated=("accumulator", "producer"),
        histogram="accumulator_transit",
        counted="messages",
        makes="messages",
        done="where their messages were handled",
        interval_ns=10_000,
        threshold_ns=1_000,
        payload="64-byte record",
    ),
    "spin": WorkloadKind(
        title="Gaps in a tight clock loop",
        threads={"sampler": "sampler"},
        rated=("sampler",),
        histogram="spin_gap",
        counted="readings",
        makes="readings",
        done="where the clock was read",
        interval_ns=10_000,
        threshold_ns=1_000,
        paced=False,
    ),
    # A sleeping thread seldom runs again within a µs.
    "wakeup": WorkloadKind(
        title="How late timers wake",
        threads={"sleeper": "sampler"},
        rated=("sleeper",),
        histogram="wakeup_latency",
        counted="wake-ups",
        makes="wake-ups",
        done="where it woke up",
        interval_ns=1_000_000,
        threshold_ns=10_000,
        waits=True,
    ),
    # An interval between ACKs is never much shorter than the one between segments.
    "ack": WorkloadKind(
        title="Intervals between ACKs",
        threads={"sender": "producer", "receiver": "accumulator"},
        rated=("receiver",),
        histogram="ack_interval",
        counted="intervals",
        makes="segments",
        done="where their segments were handled",
        interval_ns=100_000,
        threshold_ns=500_000,
        waits=True,
        payload="TCP segments",
    ),
}
MEASURED_THREADS = frozenset(name for kind in KINDS.values() for name in kind.threads)
"""The names of the measured threads of all workloads."""
PACED = tuple(name for name, kind in KINDS.items() if kind.paced)
TWO_THREADS = tuple(name for name, kind in KINDS.items() if len(kind.threads) > 1)
"""Workloads in which two threads, each on a CPU of its own, pass something to each other."""


def busy_threads(workload: str) -> int:
    """Return how many threads of a workload are busy all the time, without a journaller. Return 0 if its threads sleep
    until the next interval."""
    return 0 if KINDS[workload].waits else 2 if workload in TWO_THREADS else 1


LISTED_STALLS = 500
LISTED_WITH_EVIDENCE = 20_000


@dataclass(frozen=True, slots=True)
class Placement:
    """Hold the CPUs of the measured threads, as requested.

    - ``mode``: ``auto``, ``chosen`` or ``none``. With ``none`` the scheduler chooses the CPUs, and the CPU fields are
      None.
    - ``producer``, ``accumulator``: for ``ack``, the CPUs of the sender and the receiver.
    - ``sampler``: the CPU of the only thread of ``spin`` or ``wakeup``.
    - ``journaller_on``: False if there is no CPU for a journaller, and in runs of older versions.
    - ``why``: how the CPUs were chosen, and the disadvantage of this choice, in a sentence or two.
    - ``inside``: the threads that run in this tool's isolated set, while the other threads of the run are outside.
      () if the run is not divided.
    - ``processes``: the number of processes that have the measured threads. It is 2 if the threads ``inside`` are in a
      process of their own, because the host's control groups take only whole processes (version 2).
    - ``line``: a text with the measured time of a cache line from one chosen CPU to the other. It is "" if this time
      did not decide the choice.
    """

    mode: PlacementMode
    producer: int | None = None
    accumulator: int | None = None
    journaller: int | None = None
    sampler: int | None = None
    hot: tuple[int, ...] = ()
    housekeeping: tuple[int, ...] = ()
    why: str = ""
    journaller_on: bool = False
    inside: tuple[str, ...] = ()
    line: str = ""
    processes: int = 1

    @property
    def cpus(self) -> tuple[int, ...]:
        """Return the CPUs to which measured threads are bound; () if the scheduler chooses."""
        places = (self.producer, self.accumulator, self.journaller, self.sampler)
        return tuple(cpu for cpu in places if cpu is not None)


def helper_threads(lock: str | None) -> tuple[str, ...]:
    """Return the names of the threads that a run has in addition to its measured threads; () for a run without a lock.
    A trace of the run shows these threads as tasks on the measured CPU. They are no load from outside.

    ``lock``: one of LOCKS, or None, as in a run of an older version.
    """
    return () if lock in (None, "none") else LOCK_HELPERS


@dataclass(frozen=True, slots=True)
class Preset:
    """Hold a named division of a run into blocks: their number, and the length of each."""

    name: str
    blocks: int
    block_ns: int


PRESETS: dict[str, Preset] = {
    "quick": Preset("quick", 20, 250_000_000),
    "standard": Preset("standard", 40, 1_000_000_000),
    "long": Preset("long", 3600, 1_000_000_000),
}

START_S, START_TRACED_S = 1.0, 2.0
"""Seconds that a run takes in addition to its blocks, without and with the kernel's trace: the child starts,
calibrates, locks memory, and ends; the trace is set up and taken down (measured)."""
LEAST_BETWEEN_S = 0.11
"""Seconds between two blocks of most workloads on a quiet host (measured on a guest with two CPUs)."""
_BETWEEN_OF_RING_S = 0.2
_TRACE_S = 0.08
_BESIDE_NOISE = 1.4


def between_blocks_s(workload: str, *, traced: bool = False, noisy: bool = False) -> float:
    """Return the usual seconds between two blocks: the pause, the lead-in, and the work behind a block (measured on a
    guest with two CPUs that had other work, too). A block of the ring has the most to analyse. A noise takes a part of
    the CPUs for that work.
    """
    own_s = (_BETWEEN_OF_RING_S if workload == "ring" else LEAST_BETWEEN_S) + (_TRACE_S if traced else 0.0)
    return own_s * (_BESIDE_NOISE if noisy else 1.0)


def clock_seconds(measured_s: float, blocks: float, between_s: float, *, traced: bool = False) -> float:
    """Return the estimated length of a run in s, including its start and the pauses between blocks.

    - ``measured_s``: the seconds in which the run measures.
    - ``blocks``: the number of blocks.
    - ``between_s``: the seconds between two blocks, such as :func:`between_blocks_s`.
    - ``traced``: True if the run has a trace.
    """
    return (START_TRACED_S if traced else START_S) + measured_s + blocks * between_s


@dataclass(frozen=True, slots=True)
class RunSpec:
    """Hold all that the child needs for one run, with every default filled in.

    - ``messages``: the number of messages in all blocks, or None if only ``block_ns`` ends a block.
    - ``sched_priority``: 0 = SCHED_OTHER, 1..49 = SCHED_FIFO at that priority.
    - ``threshold_gives_way``: True if the threshold is a default. If reading the clock takes too long, ``spin`` then
      raises the threshold, such as to 10 µs.
    - ``duty``: the share of time in which ``spin`` samples, in percent.
    - ``pause``: how ``spin`` spends the other time.
    - ``scratch_dir``: directory of the ring's record and journal files, which are deleted as soon as they are open.
    - ``listed_stalls``: the greatest number of stalls that the child lists for one block, the longest first.
    - ``traced``: True if the run uses a clock that the kernel's trace has, too.
    - ``settle_s``: seconds of unrecorded messages before the first block. Each block has a short time of unrecorded
      messages before it, even if ``settle_s`` is 0.
    - ``noise_period_ns``: approximate time from burst to burst of the noise, None for the default of its kind.
    - ``memory``: how a measured thread uses memory in addition to its work.
    - ``tail_ns``: time from the first stall in a block of ``spin`` until the block ends. None if a stall does not end a
      block.
    - ``lock``: the lock that the thread of ``wakeup`` takes after each wake-up.
    """

    workload: WorkloadName
    placement: Placement
    blocks: int
    block_ns: int
    messages: int | None = None
    pacing: Pacing = "spin"
    interval_ns: int = 10_000
    threshold_ns: int = 1_000
    duty: int = 100
    sched_priority: int = 0
    ring_slots: int = 8_192
    scratch_dir: str = "/tmp"
    noise: str | None = None
    preset: str | None = None
    listed_stalls: int = LISTED_STALLS
    traced: bool = False
    pause: Pause = "sleep"
    threshold_gives_way: bool = False
    settle_s: float = 0.0
    noise_period_ns: int | None = None
    memory: MemoryUse = "none"
    tail_ns: int | None = None
    lock: LockUse = "none"

    @property
    def threads(self) -> tuple[str, ...]:
        """Return the names of the measured threads, in the order of native code."""
        names = KINDS[self.workload].threads
        return tuple(name for name in names if name != "journaller" or self.placement.journaller_on)

    @property
    def block_length_ns(self) -> int:
        """Return the estimated length of a block in ns. It is the shorter of two times: the block's time limit, and the
        time that the block's messages need."""
        if self.messages is None:
            return self.block_ns
        return min(self.block_ns, self.messages // self.blocks * self.interval_ns)
