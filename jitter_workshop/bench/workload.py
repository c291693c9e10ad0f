"""Run the threads of a workload in the measuring child: start, blocks and end, as in ``native/workload.c``."""

from __future__ import annotations

import errno
import os
import time
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

from jitter_workshop.bench.block_analysis import Stamps
from jitter_workshop.bench.native import TickClock, ffi, lib
from jitter_workshop.bench.protocol import BlockDone
from jitter_workshop.errors import HostError, MeasureError, UsageError, WorkshopError
from jitter_workshop.model.run import THREAD_COUNTS
from jitter_workshop.model.spec import KINDS, RunSpec

MOST_MESSAGES = 1 << 21
"""The most messages of a block. Each message costs ten bytes a thread; all this memory is resident before the block
begins."""


class Workload(ABC):
    """Run the measured threads from the construction of this object until :meth:`close`.

    Between blocks, the threads go on without recording. A subclass makes the native object (``_new``), and computes a
    block's results (``_analyse``).

    - ``threads``: the names of the threads in the native order.
    - ``tids``: thread name → kernel thread id.

    Raise UsageError or HostError if this spec cannot be measured here.
    """

    def __init__(self, spec: RunSpec, clock: TickClock) -> None:
        self._spec, self._clock = spec, clock
        fields = KINDS[spec.workload].threads
        self.threads = spec.threads
        self._inside = spec.placement.inside
        places = [getattr(spec.placement, fields[name]) for name in self.threads]
        config = ffi.new("jw_workload_config *")
        config.clock = clock.native[0]
        # A thread that is put into the isolated set gets its CPU later, and all get their priority only then: two
        # threads that spin with a priority on one CPU would stop this process.
        config.cpu = [
            -1 if cpu is None or name in self._inside else cpu for name, cpu in zip(self.threads, places, strict=True)
        ]
        config.apart = [int(spec.placement.processes > 1 and name in self._inside) for name in self.threads]
        config.fifo_priority = 0 if self._inside else spec.sched_priority
        config.most = self._most()
        config.interval_ns = spec.interval_ns
        error = ffi.new("int *")
        self._native = self._new(config, error)
        if self._native == ffi.NULL:
            raise self._not_made(-error[0])
        status = lib.jw_workload_start(self._native, error)
        if status != 0:
            self.close()
            raise refused(-status, self.threads[error[0]], places[error[0]], spec.sched_priority)
        self.tids = {name: int(lib.jw_workload_tid(self._native, i)) for i, name in enumerate(self.threads)}

    @property
    def tids_inside(self) -> tuple[int, ...]:
        """Return the numbers of the threads that have to be put into the isolated set; () for none. The number of a
        thread in a process of its own is that of the process."""
        return tuple(self.tids[name] for name in self._inside)

    def settle_inside(self) -> None:
        """Bind all threads to their CPUs and set their priorities. Call this after threads moved into the isolated set.

        Threads outside the set are bound again, too, because the move may have reset their affinities. Raise HostError
        if the kernel refuses.
        """
        fields, priority = KINDS[self._spec.workload].threads, self._spec.sched_priority
        for name in self.threads if self._inside else ():
            cpu = getattr(self._spec.placement, fields[name])
            try:
                if cpu is not None:
                    os.sched_setaffinity(self.tids[name], {cpu})
                if priority:
                    os.sched_setscheduler(self.tids[name], os.SCHED_FIFO, os.sched_param(priority))
            except OSError as error:
                raise refused(error.errno or 0, name, cpu, priority) from error

    def clock_offset(self) -> Any:
        """Measure the offset between the clocks of the measured threads' CPUs. Return a ``jw_offset *``.

        Return None if this workload cannot measure the offset, or if its threads did not answer.
        """
        return None

    def lock(self) -> bool:
        """Lock the memory that the measured threads touch, and no other memory. Return True if all of it is locked."""
        return bool(lib.jw_workload_lock(self._native) == 0)

    def measure(self, index: int) -> Any:
        """Measure one block and return native code's ``jw_block_result``. The calling thread sleeps meanwhile."""
        return self._block(self._request(index))

    def _block(self, request: Any) -> Any:
        result = ffi.new("jw_block_result *")
        status = lib.jw_workload_block(self._native, request, result)
        if status == -errno.ECANCELED:
            raise MeasureError("the measured threads were stopped during a block")
        if status == -errno.ECHILD:
            raise MeasureError(f"the process of the {' and the '.join(self._inside)} was killed")
        if status != 0:
            raise MeasureError(f"{self._lost()}: {os.strerror(-status)}")
        return result

    def analyse(self, index: int, result: Any) -> BlockDone:
        """Return the results of the block that :meth:`measure` has just measured, without the kernel's counters.

        This takes a while. The measured threads go on meanwhile, without recording.
        """
        found = self._analyse(index, result)
        start_ns = self._clock.monotonic_ns(found.start_ticks)
        threads = tuple(
            replace(thread, tid=self.tids[thread.name], **_usage(result.usage[self.threads.index(thread.name)]))
            for thread in found.threads
        )
        notes = dict(found.notes)
        if not result.core_hz:
            notes["core_hz"] = "this host does not let a user without rights count the processor's cycles"
        if any(thread.waited_ns is None for thread in threads):
            notes["waited_ns"] = (
                "this kernel does not count the time that a thread waits for its CPU (/proc/PID/schedstat, "
                "CONFIG_SCHED_INFO)"
            )
            notes["timeslices"] = "see threads.waited_ns"
        return replace(
            found,
            start_ns=start_ns,
            end_ns=start_ns + self._clock.ns(found.end_ticks - found.start_ticks),
            wall_start_s=time.time() - (time.monotonic_ns() - start_ns) / 1e9,
            threads=threads,
            core_hz=int(result.core_hz) or None,
            notes=notes,
        )

    def close(self) -> None:
        """End the threads and free the memory."""
        lib.jw_workload_free(self._native)
        self._native = ffi.NULL

    @abstractmethod
    def _new(self, config: Any, error: Any) -> Any:
        """Make the native object (``jw_workload *``), and return it. On failure return NULL, with -errno in
        ``error[0]``."""

    @abstractmethod
    def _analyse(self, index: int, result: Any) -> BlockDone:
        """Return the block just measured, with the figures and notes that only this workload has."""

    def _most(self) -> int:
        """Return the length of the native arrays for a block. Raise UsageError if one block would need longer arrays
        than allowed."""
        return most_messages(self._spec)

    def _request(self, index: int) -> Any:
        """Return the ``jw_block_request`` of a block: its number of messages, or its length in ticks.

        If the spec gives the whole run's number of messages, the request has a number; else a length.
        """
        request = ffi.new("jw_block_request *")
        request.count = messages_of_block(self._spec, index)
        request.duration_ticks = 0 if request.count else self._clock.ticks(self._spec.block_ns)
        return request

    def _stamps(self, series: int) -> Stamps:
        return Stamps(lib.jw_workload_stamps(self._native, series), lib.jw_workload_cpus(self._native, series))

    def _lost(self) -> str:
        """Return the message of the error for measured threads that could not go on."""
        return "the measured threads could not start the next block"

    def _not_made(self, number: int) -> WorkshopError:
        """Return the error for a native object that could not be made. ``number``: the errno."""
        if number == errno.ENOMEM:
            return HostError("there is not enough memory for the stamps of a block", "measure shorter blocks")
        if number == errno.EINVAL:
            return UsageError("the interval of this workload must be from 1 µs to 1 s", "choose another --interval-us")
        return HostError(f"the workload {self._spec.workload} could not be made: {os.strerror(number)}")


def _usage(native: Any) -> dict[str, Any]:
    """Return a thread's ``jw_usage`` as a dict: name of the field → count.

    The number of migrations is left out. A count that the kernel does not give is None.
    """
    found = {name: int(getattr(native, name)) for name in THREAD_COUNTS if name != "migrations"}
    return {name: count if count >= 0 else None for name, count in found.items()}


def messages_of_block(spec: RunSpec, index: int) -> int:
    """Return the number of messages of block ``index``.

    Return 0 if the run has no given number of messages; a block then ends by time.
    """
    if spec.messages is None:
        return 0
    share, rest = divmod(spec.messages, spec.blocks)
    return max(1, share + (1 if index < rest else 0))


def most_messages(spec: RunSpec) -> int:
    """Return the number of messages for which a block's arrays need room.

    Raise UsageError if one block has too many messages.
    """
    if spec.messages is not None:
        most = messages_of_block(spec, 0)
        if most > MOST_MESSAGES:
            raise UsageError(
                f"a block of {most} messages is too long: one block can hold {MOST_MESSAGES}",
                "cut the run into more blocks",
            )
        return most
    return max(1, min(MOST_MESSAGES, spec.block_ns // spec.interval_ns + 2))


def refused(number: int, thread: str, cpu: int | None, priority: int) -> HostError:
    """Return the error for a thread that could not be started or bound to its CPU. ``number``: the errno."""
    if number == errno.EPERM and priority > 0:
        return HostError(
            f"this user may not run threads with SCHED_FIFO priority {priority}",
            "raise RLIMIT_RTPRIO (ulimit -r) or measure with --sched other",
        )
    if cpu is not None and number in (errno.EINVAL, errno.EPERM):
        return HostError(
            f"the {thread} cannot run on CPU {cpu}: this CPU does not exist, is offline, or is not allowed to "
            "this process",
            "choose another CPU",
        )
    return HostError(f"the {thread} thread could not be started: {os.strerror(number)}")
