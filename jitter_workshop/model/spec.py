"""Define what to measure: workload, pacing, blocks and placement, as the parent hands it to the child."""

from __future__ import annotations

from typing import Literal

from jitter_workshop.model.noise import NOISE_KINDS as NOISE_KINDS
from jitter_workshop.model.record import dataclass

WorkloadName = Literal["ring", "spin", "wakeup", "ack"]
Pacing = Literal["spin", "schedule"]
DUTIES = (100, 50, 10)
"""Shares of time in percent that ``spin`` may be busy."""
DUTY_PATTERNS_NS = {50: (1_000_000, 1_000_000), 10: (111_000, 1_000_000)}
"""The meaning of a duty below 100: (time of sampling, time of pause) (P. Lawrey's patterns, 2013)."""
Pause = Literal["sleep", "busy"]
"""How ``spin`` spends the time outside its duty: asleep, or busy without sampling."""
PlacementMode = Literal["auto", "none", "chosen"]

STALL_DECADES_NS = (1_000, 10_000, 100_000, 1_000_000)
"""The stall lengths whose rates every run states."""


@dataclass(frozen=True, slots=True)
class WorkloadKind:
    """Hold the facts of a workload: a new one is a row of ``KINDS``, a class in ``bench/workloads.py`` and a C file.

    ``title``: for people. ``threads``: in the order of native code, each with the field of its CPU in
    :class:`Placement`. ``rated``: the
    threads whose stalls count in a run's rates. The first one is the main histogram's. Overlapping stalls of two
    threads count once. ``histogram``: the one that charts and tables show first; ``counted``: its unit in words.
    ``makes``: the name of the things that a run makes, for rates a second. ``done``: the name of the things that a
    thread counts by CPU (``messages_by_cpu``). ``interval_ns``: the default time between two of the things it makes.
    ``threshold_ns``: the default length from which on a gap is a stall. ``paced``: it does something at every interval.
    ``waits``: its threads sleep in the kernel until the next one. ``payload``: what a message carries, "" for none.
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
    # A sleeper is seldom back within a µs.
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
PACED = tuple(name for name, kind in KINDS.items() if kind.paced)
TWO_THREADS = tuple(name for name, kind in KINDS.items() if len(kind.threads) > 1)
"""Workloads whose threads hand something to each other, each on a CPU of its own."""

LISTED_STALLS = 500
LISTED_WITH_EVIDENCE = 20_000


@dataclass(frozen=True, slots=True)
class Placement:
    """Hold the CPUs of the measured threads; in a run the requested ones.

    ``mode`` none: the scheduler is free, CPU fields are None. ``spin`` and ``wakeup`` have one thread, on ``sampler``.
    The sender of ``ack`` is on ``producer`` and its receiver on ``accumulator``. ``journaller_on`` is False where there
    is no CPU for it, and in runs of older versions. ``why`` says in a sentence or two how the CPUs were chosen and what
    that costs.
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

    @property
    def cpus(self) -> tuple[int, ...]:
        """Return the CPUs that measured threads are bound to; none where the scheduler is free."""
        places = (self.producer, self.accumulator, self.journaller, self.sampler)
        return tuple(cpu for cpu in places if cpu is not None)


@dataclass(frozen=True, slots=True)
class Preset:
    """Hold the division of a run into blocks."""

    name: str
    blocks: int
    block_ns: int


PRESETS: dict[str, Preset] = {
    "quick": Preset("quick", 20, 250_000_000),
    "standard": Preset("standard", 40, 1_000_000_000),
    "long": Preset("long", 3600, 1_000_000_000),
}


@dataclass(frozen=True, slots=True)
class RunSpec:
    """Hold one run, complete and resolved: all that the child needs. Times are in ns.

    ``messages``: total over all blocks, or None when blocks are timed by ``block_ns``. ``sched_priority``: 0 =
    SCHED_OTHER, 1..49 = SCHED_FIFO at that priority. ``threshold_gives_way``: the threshold is a default; it is
    replaced by the next decade if reading the clock takes too long for it. ``duty``: share of time in percent that
    ``spin`` samples. ``pause``: how it spends the rest. ``scratch_dir``: directory of the ring's record and journal
    files (unlinked at once). ``listed_stalls``: number of stalls that the child lists for a block, the longest.
    ``traced``: timed by a clock that the kernel's trace has, too. ``settle_s``: time of unrecorded messages before the
    first block, if longer than before other blocks. ``noise_period_ns``: approximate time from burst to burst of the
    noise, None: its kind's own.
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

    @property
    def threads(self) -> tuple[str, ...]:
        """Return the names of the measured threads, in the order of native code."""
        names = KINDS[self.workload].threads
        return tuple(name for name in names if name != "journaller" or self.placement.journaller_on)

    @property
    def block_length_ns(self) -> int:
        """Estimate the length of a block: by its time, or by its messages where that is shorter."""
        if self.messages is None:
            return self.block_ns
        return min(self.block_ns, self.messages // self.blocks * self.interval_ns)
