"""Give Python access to the native core; only the measuring children import it.

``lib`` and ``ffi`` are cffi's: their contents are declared in ``native/api.h``.
"""

from __future__ import annotations

import errno
import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jitter_workshop.bench.core_names import missing
from jitter_workshop.bench.protocol import BUILD_IT, NO_CORE, OLD_CORE, REBUILD_IT
from jitter_workshop.errors import MeasureError
from jitter_workshop.host.cpu.cpuinfo import Clocksource, read_clocksource
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.run import Clock

try:
    import jitter_workshop.bench._native as _native
except ImportError as error:
    raise MeasureError(f"{NO_CORE} ({error})", BUILD_IT) from error

ffi: Any = _native.ffi
lib: Any = _native.lib

HEADER = Path(__file__).parents[2] / "native" / "api.h"
"""The file that declares all names of the core. Only a checkout has it; an installed package was built together with
its core."""


def refuse_old_core(core_ffi: Any, core_lib: Any, header: str) -> None:
    """Raise MeasureError if a core lacks a name that ``header``, the text of ``native/api.h``, declares."""
    if absent := missing(core_ffi, core_lib, header):
        raise MeasureError(f"{OLD_CORE} (it has no {absent[0]})", REBUILD_IT)


if HEADER.is_file():
    refuse_old_core(ffi, lib, HEADER.read_text(encoding="utf-8"))

NS_PER_S = 1_000_000_000
_CALIBRATION_S = 0.1
OFFSET_ROUNDS = 2_000
"""The largest number of times that the clocks of two CPUs are compared, to find their offset."""

_SOURCES: dict[str, int] = {"tsc": lib.JW_CLOCK_TSC, "arch_sys_counter": lib.JW_CLOCK_CNTVCT}
"""The kernel's clock source → the counter that can be read directly in its place. Every other clock source is read by
clock_gettime."""
_TRACED = (lib.JW_CLOCK_TSC,)
"""Counters that are also a clock of the kernel's trace (``x86-tsc``). The trace has no clock for the counter of arm64,
but it has CLOCK_MONOTONIC everywhere (``mono``; Documentation/trace/ftrace.rst, trace_clock)."""


def raise_if_failed(status: int, what: str) -> None:
    """Raise MeasureError if a native call returned ``-errno``. ``what``: the first words of the message; the reason
    follows them.
    """
    if status < 0:
        raise MeasureError(f"{what}: {os.strerror(-status)}")


@dataclass(frozen=True, slots=True)
class TickClock:
    """Hold a calibrated clock. ``native``: a ``jw_clock *``. ``cost_ns``: the time of one reading. ``resolution_ns``:
    the most frequent difference between two readings. ``rate_hz``: ticks a second by CLOCK_MONOTONIC_RAW."""

    native: Any
    name: str
    cost_ns: float
    resolution_ns: int
    rate_hz: int

    def ns(self, ticks: int) -> int:
        return int(lib.jw_clock_ns(self.native, ticks))

    def ticks(self, ns: int) -> int:
        return int(lib.jw_clock_ticks(self.native, ns))

    def monotonic_ns(self, ticks: int) -> int:
        """Convert ``ticks``, a recent time of this clock, to CLOCK_MONOTONIC in ns."""
        now = bracket(self.native.source, time.CLOCK_MONOTONIC)
        now_ns = int(now.ns)
        return now_ns - self.ns(now.ticks - ticks) if now.ticks >= ticks else now_ns

    def describe(self, first_cpu: int | None, second_cpu: int | None) -> Clock:
        """Return the clock's figures for a run. Measure the clock's offset between the two CPUs, if both are given."""
        found = ffi.new("jw_offset *")
        known = first_cpu is not None and second_cpu is not None
        if known and lib.jw_clock_offset(self.native.source, first_cpu, second_cpu, OFFSET_ROUNDS, found) == 0:
            return self.with_offset(found)
        return self.with_offset(None)

    def with_offset(self, found: Any) -> Clock:
        """Return the clock's figures for a run. ``found``: a ``jw_offset *``, None if the offset was not measured."""
        offset_ns = bound_ns = None
        if found is not None:
            offset_ns = self.ns(abs(found.offset_ticks)) * (1 if found.offset_ticks >= 0 else -1)
            bound_ns = self.ns(found.bound_ticks)
        return Clock(self.name, self.cost_ns, self.resolution_ns, self.rate_hz, offset_ns, bound_ns)


def bracket(source: int, posix_clock: int) -> Any:
    """Read the counter ``source`` and the clock ``posix_clock`` at the same moment. Return both values as a
    ``jw_bracket *``."""
    found = ffi.new("jw_bracket *")
    raise_if_failed(
        lib.jw_clock_bracket(source, posix_clock, found), "the clock could not be compared with the kernel's clock"
    )
    return found


def new_clock(source: int, rate_hz: int) -> Any:
    """Return a ``jw_clock *`` for the counter ``source``.

    Raise MeasureError if this processor does not have the counter, or if the rate is impossible.
    """
    clock = ffi.new("jw_clock *")
    raise_if_failed(lib.jw_clock_init(clock, source, rate_hz), f"a clock of {rate_hz} Hz cannot be used")
    return clock


def choose_source(kernel: Clocksource, traced: bool) -> int:
    """Return the counter of the kernel's clock, if programs can read it directly; else ``clock_gettime``.

    ``traced``: True to accept only a counter that the kernel's trace can also use.
    """
    source = _SOURCES.get(kernel.current or "", lib.JW_CLOCK_MONOTONIC)
    if (source == lib.JW_CLOCK_TSC and not kernel.tsc_trusted) or (traced and source not in _TRACED):
        source = lib.JW_CLOCK_MONOTONIC
    return source if lib.jw_clock_usable(source) else int(lib.JW_CLOCK_MONOTONIC)


def calibrate(root: HostRoot, traced: bool = False) -> TickClock:
    """Choose the clock (see ``choose_source``), measure its rate, cost and resolution, and return it. This takes about
    0.1 s."""
    kernel = read_clocksource(root)
    source = choose_source(kernel, traced)
    if source == lib.JW_CLOCK_MONOTONIC:
        name, rate_hz = "clock_monotonic", NS_PER_S
    else:
        name, rate_hz = kernel.current or "", _rate_hz(source)
    native = new_clock(source, rate_hz)
    cost_ns = lib.jw_clock_cost_ticks(source, 0) * NS_PER_S / rate_hz
    resolution_ns = max(1, round(lib.jw_clock_step_ticks(source) * NS_PER_S / rate_hz))
    return TickClock(native, name, round(cost_ns, 3), resolution_ns, rate_hz)


def _rate_hz(source: int) -> int:
    first = bracket(source, time.CLOCK_MONOTONIC_RAW)
    time.sleep(_CALIBRATION_S)
    last = bracket(source, time.CLOCK_MONOTONIC_RAW)
    if last.ns <= first.ns or last.ticks <= first.ticks:
        raise MeasureError("the processor's counter or the kernel's clock does not advance")
    ticks, ns = int(last.ticks) - int(first.ticks), int(last.ns) - int(first.ns)
    return (ticks * NS_PER_S + ns // 2) // ns


def lock_memory() -> tuple[bool, str]:
    """Lock all memory of this process. Return (True, "") or (False, the reason)."""
    _, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (hard, hard))
    # Under a limit, later mappings would fail once it is used up: then only the present memory is locked.
    for future in (1, 0):
        status = lib.jw_lock_memory(future)
        if status == 0:
            return True, ""
    reason = "RLIMIT_MEMLOCK is too low" if -status in (errno.ENOMEM, errno.EPERM) else os.strerror(-status)
    return False, f"the process could not be locked in memory: {reason}"


def die_with_parent() -> None:
    """Let the kernel kill this process when the parent's thread that started it ends.

    Exit at once if the parent has ended already. Raise MeasureError if the kernel refuses.
    """
    parent = os.getppid()
    raise_if_failed(lib.jw_die_with_parent(), "the kernel cannot end this process when the parent process ends")
    if os.getppid() != parent:
        raise SystemExit(0)
