"""Define the messages between a parent and its children: JSON, one object a line.

A worker measures a run:

- The parent sends ``spec`` first, ``go`` for each block, ``noise`` to get the log of a noise inside the worker, and
  ``end`` at last.
- The worker sends ``ready``, one ``block`` for each ``go``, and ``noise`` with the log.
- If ``Placement.inside`` names threads, the worker sends ``inside`` before ``ready``. The parent lets these threads, or
  their process, be moved into the isolated set, and answers ``placed``.

The parent decides how many blocks there are, and may have a block measured again. Between blocks, the measured threads
keep exchanging unrecorded messages.

A noise process makes a noise:

- The parent sends ``order`` first, ``aim`` with a thread to move if the noise needs one, and ``noise`` to end the
  noise.
- The noise process answers ``order`` with ``aimed``, each ``aim`` with another ``aimed``, and ``noise`` with its log.

The child of a matrix measures times between CPUs:

- The parent sends ``lines`` with pairs of CPUs, again and again, and ``end`` at last.
- The child sends ``ready`` with its clock once, and answers each ``lines`` with a ``lines`` that has the times.

All children may send ``failed`` at any time. A child ends when one of its pipes is closed.
"""

from __future__ import annotations

import json
from typing import Any, Protocol

from jitter_workshop.model.codec import CodecError, to_plain
from jitter_workshop.model.matrix import CpuPair
from jitter_workshop.model.record import dataclass, field
from jitter_workshop.model.run import Clock, Counter, Stall, StallTotal, ThreadRecord
from jitter_workshop.model.text import NAME

NO_CORE = "the native core cannot be loaded"
"""The last line of a child without the compiled module. The parent recognises this case by the text."""

BUILD_IT = "build it with 'make workshop' in the checkout, or 'pip install' the package again with this Python"

OLD_CORE = "the native core is older than this program"
"""The last line of a child whose compiled module was built before the Python code. The parent recognises this case by
the text."""

REBUILD_IT = "build it again with 'make workshop', or install an installed package again"


@dataclass(frozen=True, slots=True)
class Ready:
    """Hold the facts of a child that is ready to measure.

    - ``tids``: thread name → kernel thread id.
    - ``sched``: the scheduling policy in force, ``other`` or ``fifo:N``.
    - ``threshold_ns``: the threshold of stalls in use, if the clock is too slow for the spec's threshold; else None.
    """

    clock: Clock
    tids: dict[str, int]
    mlocked: bool
    sched: str
    notes: dict[str, str] = field(default_factory=dict)
    threshold_ns: int | None = None


@dataclass(frozen=True, slots=True)
class MoveInside:
    """Ask the parent to have threads moved into the isolated set.

    ``tids``: the kernel's ids of these threads. The threads are not bound to CPUs yet.
    """

    tids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HistogramBlock:
    """Hold one histogram of one block. ``encoded``: HdrHistogram V2 compressed, base64. ``max``: the true maximum.
    ``overflow``: the number of values beyond the histogram's range. ``total``: the exact sum in ns."""

    encoded: str
    count: int
    min: int | None
    max: int | None
    total: int
    overflow: int


@dataclass(frozen=True, slots=True)
class BlockDone:
    """Hold the results of one block.

    - ``start_ns``, ``end_ns``: start and end by CLOCK_MONOTONIC. ``wall_start_s``: start in Unix time.
    - ``start_ticks``, ``end_ticks``: start and end by the run's own clock.
    - ``stalls``: the longest stalls, at most the spec's ``listed_stalls``. Their times count from ``start_ns``.
    - ``unlisted``: the number of all other stalls. If two threads stall at the same time, this counts as two stalls.
    - ``stall_totals``: all stalls, by threshold. If two threads stall at the same time, this counts as one stall.

    The kernel's counters are read just before and just after the block:

    - ``interrupts``, ``softirqs``: the growth of each CPU's counters.
    - ``idle_entries``: how often the measured CPUs entered an idle state.
    - ``idle_exit_us``: the sum of the exit latencies that these idle states promise.
    - ``cpu_hz``: the mean frequency of the measured CPUs just after the block, as the kernel knows it.
    - ``throttled_periods``: the growth of the cgroup's counter.
    - ``counted_ns``: the time between the two readings. It is longer than the block.

    Some fields are for one workload:

    - ``buckets``: the number of ``spin``'s gaps, by length (``stats.stalls``).
    - ``sampled_ns``: the time in which ``spin`` sampled.
    - ``missed_wakeups``: the number of periods that were over before the thread of ``wakeup`` could sleep.
    - ``first_writes_ns``: the times of ``ring``'s accumulator for the messages whose copies begin a new 2 MiB.
    - ``huge_pages``: the number of huge pages that the copies are in, if huge pages were asked for.
    """

    index: int
    histograms: dict[str, HistogramBlock]
    threads: tuple[ThreadRecord, ...]
    stalls: tuple[Stall, ...]
    stall_totals: tuple[StallTotal, ...]
    negative_deltas: int
    start_ns: int = 0
    end_ns: int = 0
    wall_start_s: float = 0.0
    blocked_publishes: int | None = None
    core_hz: int | None = None
    ping_pong_ns: float | None = None
    interrupts: dict[str, Counter] | None = None
    softirqs: dict[str, Counter] | None = None
    steal_ns: int | None = None
    throttled_periods: int | None = None
    parent_switches: int | None = None
    notes: dict[str, str] = field(default_factory=dict)
    counted_ns: int | None = None
    start_ticks: int = 0
    end_ticks: int = 0
    buckets: tuple[int, ...] | None = None
    sampled_ns: int | None = None
    missed_wakeups: int | None = None
    unlisted: int = 0
    cpu_hz: int | None = None
    idle_entries: int | None = None
    idle_exit_us: int | None = None
    first_writes_ns: tuple[int, ...] | None = None
    huge_pages: int | None = None


class RunRecorder(Protocol):
    """Record what else happens on the host during a run.

    All methods are called on the runner's thread, and never during a block. If a method raises a WorkshopError, the run
    ends, and its finished blocks are kept.
    """

    def begin(self, pid: int, tids: dict[str, int], clock: Clock) -> None:
        """Begin to record. This is called before the first block. ``tids``: thread name → kernel thread id."""

    def before_block(self) -> None:
        """Prepare for a block that is about to begin."""

    def after_block(self, block: BlockDone | None) -> None:
        """Receive a finished block. ``block`` is None if the block was spoiled and will be measured again."""


@dataclass(frozen=True, slots=True)
class NoiseLog:
    """Hold the log of a noise: the answer to the parent's message ``noise``. ``records``: the packed bursts
    (``model.noise``), compressed by zlib, as base64. ``unlogged``: the number of bursts for which the log had no
    room."""

    records: str
    unlogged: int


@dataclass(frozen=True, slots=True)
class LineOrder:
    """Ask for the time of a cache line between the CPUs of each pair."""

    pairs: tuple[CpuPair, ...]


@dataclass(frozen=True, slots=True)
class LineTimes:
    """Hold the times of an order's pairs, in ns. Each time is for one way between the CPUs. None means that the pair
    was not measured.

    ``why``: the first failed pair with the reason; "" for none.
    """

    one_way_ns: tuple[float | None, ...]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """Report that the child cannot go on. ``message``: the cause in one sentence. ``advice``: what to do."""

    message: str
    advice: str = ""


def message_line(kind: str, payload: Any = None) -> bytes:
    """Return one protocol line: ``{"kind": …, "data": …}``."""
    return json.dumps({"kind": kind, "data": to_plain(payload)}, separators=(",", ":")).encode() + b"\n"


def parse_message(raw: bytes) -> tuple[str, Any]:
    """Return the kind and the raw data of a protocol line. Raise CodecError if the line is not a message."""
    try:
        value = json.loads(raw)
        return str(value["kind"]), value.get("data")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CodecError(f"a line of the protocol is not valid: {raw[:NAME]!r}") from error
