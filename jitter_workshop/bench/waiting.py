"""Drive the workloads whose thread waits asleep: for a time (``wakeup``), or for a TCP segment (``ack``)."""

from __future__ import annotations

import errno
import os
from typing import Any

from jitter_workshop.bench import block_analysis as digest
from jitter_workshop.bench.block_analysis import Stamps
from jitter_workshop.bench.native import TickClock, ffi, lib
from jitter_workshop.bench.workload import Measured, most_messages, refused, usage_of
from jitter_workshop.errors import HostError, MeasureError, UsageError
from jitter_workshop.host.cpu.cpuidle import ResumeLatency, read_resume_latency
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.spec import RunSpec

_NO_LOOPBACK = (errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.ENETDOWN, errno.EHOSTUNREACH)


class Wakeup:
    """Run one thread that sleeps until a time (``clock_nanosleep``, CLOCK_MONOTONIC, absolute), again and again. How
    late it reads the clock is recorded. Its timer slack is set to 1 ns: the kernel's default of 50 µs is for threads
    that need no precision (prctl(2)). A real-time thread has none in any case."""

    def __init__(self, spec: RunSpec, clock: TickClock) -> None:
        self._spec, self._clock = spec, clock
        config = ffi.new("jw_wakeup_config *")
        config.clock = clock.native[0]
        config.most_wakeups = most_messages(spec)
        config.interval_ns = spec.interval_ns
        place = spec.placement.sampler
        config.cpu = -1 if place is None else place
        config.fifo_priority = spec.sched_priority
        error = ffi.new("int *")
        self._wakeup = lib.jw_wakeup_new(config, error)
        if self._wakeup == ffi.NULL:
            raise not_made(-error[0])
        status = lib.jw_wakeup_start(self._wakeup)
        if status != 0:
            lib.jw_wakeup_free(self._wakeup)
            raise refused(-status, "sleeper", place, spec.sched_priority)
        self.tids = {"sleeper": int(lib.jw_wakeup_tid(self._wakeup))}
        self._limit = "" if place is None else idle_limit(place, read_resume_latency(HostRoot(), place))

    def lock(self) -> bool:
        return bool(lib.jw_wakeup_lock_arrays(self._wakeup) == 0)

    def measure(self, index: int) -> Any:
        result = ffi.new("jw_wakeup_result *")
        if lib.jw_wakeup_block(self._wakeup, self._clock.ticks(self._spec.block_ns), result) != 0:
            raise MeasureError("the sleeping thread was stopped during a block")
        return result

    def digest(self, index: int, result: Any) -> Measured:
        cpus = lib.jw_wakeup_cpus(self._wakeup)
        found = digest.wakeup_block(
            self._clock.native,
            index,
            int(result.count),
            self._spec.threshold_ns,
            Stamps(lib.jw_wakeup_due(self._wakeup), cpus),
            Stamps(lib.jw_wakeup_woken(self._wakeup), cpus),
            self._spec.listed_stalls,
        )
        notes = {
            "blocked_publishes": "a sleeper publishes nothing",
            "ping_pong_ns": "one thread has no partner",
            "timer_slack": slack_note(int(result.slack_ns), self._spec.sched_priority),
        }
        if self._limit:
            notes["pm_qos"] = self._limit
        return Measured(
            digest=found,
            usage={"sleeper": usage_of(result.usage)},
            core_hz=int(result.core_hz) or None,
            ping_pong_ns=None,
            blocked_publishes=None,
            notes=notes,
            missed_wakeups=int(result.missed),
        )

    def close(self) -> None:
        lib.jw_wakeup_free(self._wakeup)
        self._wakeup = ffi.NULL


class Ack:
    """Run a sender and a receiver on one TCP connection over 127.0.0.1. The sender sends 64 bytes at every planned
    interval. The receiver sleeps in recv(2), takes the available bytes, stamps the time and answers with eight bytes,
    an ACK of the application. The interval between two of these stamps is recorded.

    The study that this follows does the same (Fixstars, lightning-kit): it stamps at the receiver, just before the
    answer. So the times come from the run's own clock, to one step of it, and show the CPU. The other ways without
    rights were not chosen. SOF_TIMESTAMPING_TX_ACK (Documentation/networking/timestamping.rst) stamps the arrival of
    TCP's own ACK by CLOCK_REALTIME, on the sender's CPU, and needs the error queue to be read for every segment.
    Polling TCP_INFO or SIOCOUTQ is no finer than a system call.
    """

    def __init__(self, spec: RunSpec, clock: TickClock) -> None:
        self._spec, self._clock = spec, clock
        config = ffi.new("jw_ack_config *")
        config.clock = clock.native[0]
        config.most_segments = most_messages(spec)
        config.interval_ns = spec.interval_ns
        places = (spec.placement.producer, spec.placement.accumulator)
        config.cpu = [-1 if cpu is None else cpu for cpu in places]
        config.fifo_priority = spec.sched_priority
        error = ffi.new("int *")
        self._ack = lib.jw_ack_new(config, error)
        if self._ack == ffi.NULL:
            raise not_made(-error[0])
        status = lib.jw_ack_start(self._ack, error)
        if status != 0:
            lib.jw_ack_free(self._ack)
            raise refused(-status, ("sender", "receiver")[error[0]], places[error[0]], spec.sched_priority)
        self.tids = {name: int(lib.jw_ack_tid(self._ack, i)) for i, name in enumerate(("sender", "receiver"))}

    def lock(self) -> bool:
        return bool(lib.jw_ack_lock_arrays(self._ack) == 0)

    def measure(self, index: int) -> Any:
        result = ffi.new("jw_ack_result *")
        status = lib.jw_ack_block(self._ack, self._clock.ticks(self._spec.block_ns), result)
        if status == -errno.ECANCELED:
            raise MeasureError("the measured threads were stopped during a block")
        if status != 0:
            raise MeasureError(f"the connection over the loopback device ended: {os.strerror(-status)}")
        return result

    def digest(self, index: int, result: Any) -> Measured:
        sender, receiver = (
            Stamps(lib.jw_ack_stamps(self._ack, i), lib.jw_ack_cpus(self._ack, i))
            for i in (lib.JW_ACK_SENDER, lib.JW_ACK_RECEIVER)
        )
        found = digest.ack_block(
            self._clock.native,
            index,
            int(result.sent),
            int(result.answered),
            self._spec.threshold_ns,
            sender,
            receiver,
            self._spec.listed_stalls,
        )
        return Measured(
            digest=found,
            usage={name: usage_of(result.usage[i]) for i, name in enumerate(self.tids)},
            core_hz=int(result.core_hz) or None,
            ping_pong_ns=None,
            blocked_publishes=int(result.blocked),
            notes={"ping_pong_ns": "segments go through the kernel, not through a line that two CPUs share"},
        )

    def close(self) -> None:
        lib.jw_ack_free(self._ack)
        self._ack = ffi.NULL


def slack_note(slack_ns: int, priority: int) -> str:
    """Describe the timer's slack for a reader of wake-up times. ``slack_ns`` < 0: it could not be read."""
    if priority:
        return "a real-time thread's timers have no slack"
    if slack_ns < 0:
        return "the kernel does not say how much slack the thread's timers have (its default is 50 µs)"
    return f"the thread asked for a timer slack of 1 ns and has {slack_ns:,} ns; other threads' default is 50 µs"


def idle_limit(cpu: int, limit: ResumeLatency) -> str:
    """Describe the limit on the idle states of one CPU (pm_qos_resume_latency_us), or "" where the host does not say.
    Source: Documentation/admin-guide/pm/cpuidle.rst"""
    if limit.text is None:
        return ""
    what = {"n/a": "n/a: it polls instead of idling", "0": "0: no limit for it alone"}
    return f"pm_qos_resume_latency_us of CPU {cpu} is {what.get(limit.text, f'{limit.text} µs')}"


def not_made(number: int) -> HostError | UsageError:
    """Return the error for a missing sleeper, or a missing connection between sender and receiver (``number``: an
    errno)."""
    if number == errno.ENOMEM:
        return HostError("there is not enough memory for the stamps of a block", "measure shorter blocks")
    if number == errno.EINVAL:
        return UsageError("an interval goes from 1 µs to 1 s here", "choose another --interval-us")
    if number in _NO_LOOPBACK:
        return HostError("this host's loopback device (lo) is not up", "bring it up: ip link set lo up")
    return HostError(f"there is no TCP connection over the loopback device: {os.strerror(number)}")
