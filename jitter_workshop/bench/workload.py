"""Define the interface of a workload for the measuring child, and the shared parts: a block's figures, limits,
refusals."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from typing import Any, Protocol

from jitter_workshop.bench.block_analysis import Digest
from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.model.spec import RunSpec

MOST_MESSAGES = 1 << 21
"""The most messages of a block: each costs ten bytes a thread, all of it resident before the block begins."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Hold one thread's use of the kernel during a block, by the thread's own reading. ``ran_ns``: on a CPU.
    ``waited_ns``: in a run queue, runnable but not running. ``timeslices``: times it came onto a CPU (both None where
    the kernel does not count them)."""

    voluntary_switches: int
    involuntary_switches: int
    minor_faults: int
    major_faults: int
    ran_ns: int
    waited_ns: int | None
    timeslices: int | None


@dataclass(frozen=True, slots=True)
class Measured:
    """Hold one block of a workload. ``usage``: by thread name. ``blocked_publishes``: None where nothing is published.
    ``missed_wakeups``: None where nothing sleeps."""

    digest: Digest
    usage: dict[str, Usage]
    core_hz: int | None
    ping_pong_ns: float | None
    blocked_publishes: int | None
    notes: dict[str, str] = field(default_factory=dict)
    missed_wakeups: int | None = None


class Workload(Protocol):
    """Run threads that exchange unrecorded messages from construction on, until ``close``."""

    tids: dict[str, int]

    def lock(self) -> bool:
        """Lock only the memory that the hot threads touch."""

    def measure(self, index: int) -> Any:
        """Measure one block and return native code's result; it only sleeps meanwhile."""

    def digest(self, index: int, result: Any) -> Measured:
        """Return the figures of the block that ``measure`` has just measured. It takes a while; the threads go on,
        unrecorded."""

    def close(self) -> None:
        """End the threads and free the memory."""


def messages_of_block(spec: RunSpec, index: int) -> int:
    """Return the messages of block ``index`` when the run has a total; 0 = the block is timed."""
    if spec.messages is None:
        return 0
    share, rest = divmod(spec.messages, spec.blocks)
    return max(1, share + (1 if index < rest else 0))


def refused(number: int, thread: str, cpu: int | None, priority: int) -> HostError:
    """Return the error for a thread that could not be started or placed (``number``: an errno)."""
    if number == errno.EPERM and priority > 0:
        return HostError(
            f"this user may not run threads with SCHED_FIFO priority {priority}",
            "raise RLIMIT_RTPRIO (ulimit -r) or measure with --sched other",
        )
    if cpu is not None and number in (errno.EINVAL, errno.EPERM):
        return HostError(
            f"the {thread} cannot run on CPU {cpu}: it does not exist, is offline or not allowed to this process",
            "choose another CPU",
        )
    return HostError(f"the {thread}'s thread could not be started: {os.strerror(number)}")


def most_messages(spec: RunSpec) -> int:
    """Return the number of messages that the arrays of a block are made for. Raise UsageError where that is more than
    one block can hold."""
    if spec.messages is not None:
        most = messages_of_block(spec, 0)
        if most > MOST_MESSAGES:
            raise UsageError(
                f"a block of {most} messages is more than the {MOST_MESSAGES} that one block can hold",
                "cut the run into more blocks",
            )
        return most
    return max(1, min(MOST_MESSAGES, spec.block_ns // spec.interval_ns + 2))


def usage_of(native: Any) -> Usage:
    """Convert a thread's ``jw_usage``."""
    return Usage(
        native.voluntary_switches,
        native.involuntary_switches,
        native.minor_faults,
        native.major_faults,
        native.ran_ns,
        native.waited_ns if native.waited_ns >= 0 else None,
        native.timeslices if native.timeslices >= 0 else None,
    )
