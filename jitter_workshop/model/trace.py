"""Define the events of the kernel's trace. Also define their packed form, which the agent sends and a run stores.

The events contain no kernel addresses: a function is given by its name. Names of tasks, interrupts and functions come
from outside.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from jitter_workshop.model.record import dataclass, field

KINDS = (
    "switch",
    "migrate",
    "waking",
    "ipi_send",
    "irq_entry",
    "irq_exit",
    "softirq_entry",
    "softirq_exit",
    "vector_entry",
    "vector_exit",
    "nmi",
    "work_start",
    "work_end",
    "tick_stop",
    "timer_entry",
    "timer_exit",
    "csd_entry",
    "csd_exit",
    "frequency",
    "idle",
    "fault",
    "stack",
    "call",
    "call_end",
    "fork",
    "exec",
    "exit",
)
"""The fields of an event, by its kind. ``pid`` is always the thread in whose context the event happened, 0 = idle.

- ``switch``: pid leaves the CPU. a = the next thread. b = 1 if pid could go on running. c = state + 256 × the next
  thread's priority (below 100: real-time) + 65,536 × pid's priority; state = the kernel's letter for pid's state as a
  character code (S, D, T, …), 0 if pid could go on running. name = the next thread's name. other = pid's name.
- ``migrate``: pid moves thread a from CPU b to c, name = its name.
- ``waking``: pid wakes thread a for CPU b, name = its name.
- ``ipi_send``: pid sends an interrupt to CPU a, name = the function that it is to call.
- ``irq_*``: a = number, name = handler.
- ``softirq_*``: a = vector, name = its name.
- ``vector_*``: a = vector, name = its kind.
- ``nmi``: at its end, a = its length in ns, name = handler.
- ``work_*``: name = function.
- ``tick_stop``: a = 1 if the tick stopped, name = what kept the tick on.
- ``timer_*``: name = function.
- ``csd_*``: name = the function that an interrupt from another CPU ran.
- ``frequency``: a = kHz, b = CPU.
- ``idle``: a = idle state, -1 when the CPU leaves idle, b = CPU.
- ``fault``: a = 1 for user mode, b = error code.
- ``stack``: name = functions of the kernel, innermost first, at the previous event on this CPU.
- ``call`` and ``call_end``: pid enters or leaves the system call ``name``.
- ``fork``: pid starts thread a, name = its name.
- ``exec``: pid becomes another program, name = its file.
- ``exit``: pid is ending.
"""

IN_IRQ = 1
IN_SOFTIRQ = 2
"""Flags of an event. IN_IRQ: the event happened in a hard interrupt. IN_SOFTIRQ: it happened in a softirq."""

_RECORD = struct.Struct("<QHBBiiiiII")
RECORD_BYTES = _RECORD.size
_KIND_INDEX = {kind: index for index, kind in enumerate(KINDS)}


class TraceEvent(NamedTuple):
    """Hold one event. ``ts``: ticks of the trace's clock. :data:`KINDS` explains the other fields."""

    ts: int
    cpu: int
    kind: str
    pid: int
    a: int = 0
    b: int = 0
    c: int = 0
    name: str = ""
    other: str = ""
    flags: int = 0


EventFields = tuple[int, int, str, int, int, int, int, str, str, int]
"""The fields of a :class:`TraceEvent`, in its order. A trace has millions of events, and plain tuples are faster to
make."""


class Strings:
    """Give each name of an event a number. Equal names get the same number; the number 0 stands for ""."""

    def __init__(self, known: Sequence[str] = ("",)) -> None:
        self.all = list(known)
        self._numbers = {name: number for number, name in enumerate(self.all)}

    def number(self, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self.all)
            self.all.append(name)
        return number

    def __contains__(self, name: str) -> bool:
        return name in self._numbers


def pack_events(events: Iterable[TraceEvent], strings: Strings) -> bytes:
    """Return events packed as records of RECORD_BYTES bytes, and add their names to ``strings``. Raise struct.error if
    a value does not fit: a time must be below 2^64, any other number must fit into 32 bits with a sign."""
    number, one = strings.number, _RECORD.pack
    return b"".join(
        one(e.ts, e.cpu, _KIND_INDEX[e.kind], e.flags, e.pid, e.a, e.b, e.c, number(e.name), number(e.other))
        for e in events
    )


def unpack_fields(packed: bytes, strings: Sequence[str]) -> Iterator[EventFields]:
    """Yield the events that :func:`pack_events` packed, as plain tuples, which take a third of the time of named ones.
    Raise ValueError if the data is damaged."""
    if len(packed) % RECORD_BYTES:
        raise ValueError("the packed events are cut off")
    kinds = KINDS
    try:
        for ts, cpu, kind, flags, pid, a, b, c, name, other in _RECORD.iter_unpack(packed):
            yield ts, cpu, kinds[kind], pid, a, b, c, strings[name], strings[other], flags
    except IndexError as error:
        raise ValueError("a packed event has a name that is not in its table") from error


@dataclass(frozen=True, slots=True)
class TraceInfo:
    """Hold the setup of a trace.

    - ``clock``: the trace's clock (``x86-tsc``: ticks of the TSC; ``mono``: ns).
    - ``enabled``: traced events as ``system:name``.
    - ``missing``: event that this kernel does not provide → reason.
    - ``buffer_kb``: size of the buffer for each of ``cpus``.
    - ``stacks``: True if the trace records the kernel's stack when a measured thread is preempted.
    - ``own_view``: True if the host has not mounted the trace's file system, and the agent mounted it for itself alone.
    """

    clock: str
    cpus: tuple[int, ...]
    enabled: tuple[str, ...]
    missing: dict[str, str]
    buffer_kb: int
    stacks: bool = False
    own_view: bool = False


@dataclass(frozen=True, slots=True)
class TraceRead:
    """Hold the events since the trace's start. The kernel records two traces. The first trace has the events of the
    measured CPUs. The second trace has moves, wakes and interrupts on all CPUs.

    - ``events``: the packed events of both traces, in order of time.
    - ``strings``: the table of all names in these events.
    - ``lost``: measured CPU → number of events that were lost because the CPU's buffer was full. CPUs without losses
      are left out. The lost events came after the last stored event of the CPU.
    - ``lost_elsewhere``: CPU → number of events that the second trace lost.
    - ``whole_from``: a time in ticks: after it, the trace has all events. It is needed for buffers in which the newest
      events overwrite the oldest events.
    """

    events: bytes
    strings: tuple[str, ...]
    lost: dict[int, int]
    lost_elsewhere: dict[int, int] = field(default_factory=dict)
    whole_from: int = 0
