"""Make a noise inside the measuring process, or in its own process: ``python -I -m jitter_workshop.bench.noise``.

A noise process gets its order through the pipe (``protocol.py``). It ends when its parent ends, when its stdin is
closed, or when the order's time is over. The native code is ``native/noise*.c``.
"""

from __future__ import annotations

import base64
import errno
import os
import time
import zlib
from collections.abc import Collection, Sequence

from jitter_workshop.bench import launch
from jitter_workshop.bench.native import NS_PER_S, TickClock, bracket, calibrate, ffi, lib
from jitter_workshop.bench.noiseorder import LONGEST_S, NoiseOrder, check_order, order_for
from jitter_workshop.bench.parent import Parent, Silence, serve_parent
from jitter_workshop.bench.protocol import NoiseLog
from jitter_workshop.errors import HostError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.codec import CodecError
from jitter_workshop.model.noise import Burst, Bursts, noise, pack_bursts, unpack_bursts
from jitter_workshop.model.spec import RunSpec


class NoiseAtWork:
    """Run a noise from the construction of this object until :meth:`stop`, or until its time limit.

    The construction may take 0.1 s. Raise HostError if this host cannot make the noise.
    """

    def __init__(self, order: NoiseOrder, clock: TickClock) -> None:
        kind = noise(order.kind)
        self._order = order
        self._clock = clock
        self._began = _moment(clock)
        cpus = ffi.new("int32_t[]", list(order.cpus) or [order.hot])
        name = ffi.new("char[]", order.name.encode(errors="replace"))
        config = ffi.new("jw_noise_config *")
        config.clock = clock.native[0]
        config.kind = getattr(lib, f"JW_NOISE_{order.kind.upper()}")
        config.hot, config.other, config.away = order.hot, order.other, order.away
        config.busy_ns, config.period_ns = kind.busy_ns, order.period_ns or kind.period_ns
        config.deadline_ns = time.monotonic_ns() + order.seconds * NS_PER_S
        config.most_bursts = order.most_bursts
        config.seed = order.seed
        config.cpus, config.cpus_len = cpus, len(order.cpus)
        config.name = name
        refused = ffi.new("int *")
        self._native = lib.jw_noise_start(config, refused)
        if self._native == ffi.NULL:
            raise HostError(f"this host cannot make the noise {order.kind}: {_reason(order, -refused[0])}")

    def aim(self, tids: Sequence[int]) -> None:
        """Tell the noise to move the threads ``tids`` to other CPUs.

        As a test, the noise immediately moves the first thread to another CPU and back. Raise HostError if this fails.
        """
        tid, away = tids[0], self._order.away
        try:
            before = os.sched_getaffinity(tid)
            os.sched_setaffinity(tid, {away})
            os.sched_setaffinity(tid, before)
        except OSError as error:
            raise HostError(
                f"the noise {self._order.kind} could not move the measured thread to CPU {away} ({error.strerror})"
            ) from error
        lib.jw_noise_aim(self._native, ffi.new("int32_t[]", list(tids)), len(tids))

    def stop(self) -> Bursts:
        """End all threads of the noise, and return the log of its bursts. Call this method only once."""
        native = self._native
        lib.jw_noise_stop(native)
        room = self._order.most_bursts
        found = ffi.new("jw_burst[]", room)
        count = min(int(lib.jw_noise_bursts(native, found, room)), room)
        unlogged = int(lib.jw_noise_unlogged(native))
        lib.jw_noise_free(native)
        first, last = self._began, _moment(self._clock)

        def monotonic_ns(ticks: int) -> int:
            # Interpolate between two moments at which both clocks were read: NTP slews one of them.
            return first[1] + (ticks - first[0]) * (last[1] - first[1]) // max(1, last[0] - first[0])

        ns = self._clock.ns
        records = pack_bursts(
            Burst(b.start, b.end, monotonic_ns(b.start), ns(b.end - b.start), ns(b.taken), max(0, b.cpu), b.what)
            for b in found[0:count]
        )
        return unpack_bursts(self._order.kind, self._order.name, records, unlogged)


def noise_inside(spec: RunSpec, allowed: Collection[int], clock: TickClock) -> NoiseAtWork | None:
    """Start the noise that runs inside the measuring process, and return it. Return None if the run has no such noise.

    ``allowed``: the CPUs that this process was allowed to use before it moved away from the hot CPUs. Raise HostError
    if this host cannot make the noise.
    """
    if spec.noise is None or noise(spec.noise).by != "inside":
        return None
    # It ends with the process; the order's time limit is only required by its type.
    order = order_for(spec.noise, spec.placement, allowed, LONGEST_S, period_ns=spec.noise_period_ns)
    return NoiseAtWork(order, clock)


def plain_log(bursts: Bursts) -> NoiseLog:
    """Return ``bursts`` as a log that can be sent through a pipe. ``noisechild.read_log`` reads this log."""
    return NoiseLog(base64.b64encode(zlib.compress(bursts.records, 1)).decode(), bursts.unlogged)


def _moment(clock: TickClock) -> tuple[int, int]:
    now = bracket(clock.native.source, time.CLOCK_MONOTONIC)
    return int(now.ticks), int(now.ns)


def _reason(order: NoiseOrder, number: int) -> str:
    if number == errno.ENOTSUP:
        return f"the noise had no effect on CPU {order.hot}"
    if number == errno.ENOSYS:
        return "this kernel cannot steer packets in a network namespace (CONFIG_RPS, CONFIG_NET_NS, Linux 5.2)"
    if number in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"this process lacks the rights ({os.strerror(number)})"
    if number == errno.EINVAL:
        cpus = order.cpus or tuple(sorted({cpu for cpu in (order.hot, order.other) if cpu >= 0}))
        return f"the threads of the noise may not use CPU {', '.join(map(str, cpus))}"
    return os.strerror(number)


def make_noise(parent: Parent, order: NoiseOrder) -> None:
    """Make the noise ``order`` until the parent asks for its log, or until its time is over.

    Raise HostError if this host cannot make the noise. Raise CodecError if the order or a message is invalid.
    """
    check_order(order)
    deadline_s = time.monotonic() + order.seconds
    work = NoiseAtWork(order, calibrate(HostRoot()))
    parent.say("aimed")
    kind, tid = "", 0
    while kind != "noise":
        try:
            # One wait without a timer in between: this process must make no noise but the ordered one.
            kind, tid = parent.hear([max(0.0, deadline_s - time.monotonic())])
        except Silence:
            break
        if kind == "aim":
            work.aim([int(tid)])
            parent.say("aimed")
        elif kind != "noise":
            raise CodecError(f"'{kind}' is not a message that the noise process knows")
    log = work.stop()
    if kind == "noise":
        parent.say("noise", plain_log(log))


if __name__ == "__main__":
    serve_parent(launch.NOISY, "order", NoiseOrder, make_noise)
