"""Follow the state of one CPU, and of one measured thread, event by event.

Handlers and functions can interrupt each other. The time then counts for the innermost handler or function. Each CPU
has a stack of hard interrupts. Each task has a stack of softirqs and work functions. The kernel may switch a task out
inside a work function, which may then continue on another CPU. With PREEMPT_RT it may also switch a task out inside a
softirq.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from typing import NamedTuple

from jitter_workshop.evidence.tracks import (
    ASLEEP,
    ELSEWHERE,
    MOVING,
    READY,
    RUNS,
    TASK,
    UNKNOWN,
    UNSEEN,
    VECTOR,
    WOKEN,
    WORKQUEUE,
    Segment,
    Stretch,
    ThreadTrack,
)
from jitter_workshop.model.evidence import IDLE, MISSING, THROTTLED

_DEEPEST = 32
"""The largest number of frames on one stack. No kernel nests so deep, so a deeper stream of events is not a trace."""

_made = tuple.__new__
"""Make a named tuple from an iterable of its fields, as a call of its class does, but three times as fast."""

_OF_SOFTIRQS = ("ksoftirqd/", "ktimers/")
"""The beginnings of the names of the tasks that run softirqs."""

_FUNCTION = -1
"""The number that marks a frame as a function, not as a vector."""


class UnfinishedEvent(NamedTuple):
    """Hold an interrupt, softirq or function that has begun and not ended yet. ``number`` and ``raw`` identify the
    event of its end."""

    kind: str
    number: int
    raw: str
    name: str
    serial: int


class CpuState:
    """Hold the state of one CPU.

    - ``tasks``: key of a task → its stack of softirqs and functions that have begun and not ended. All CPUs use the
      same dict.
    - ``serials``: a function that returns a new number for each stay of a task, and for each handler.
    - ``callers``: serial of a handler or function → the (kind, name) of what called it. All CPUs use the same dict. A
      timer's function is called by an interrupt or a softirq, a work item by a task, and a softirq by a task only if
      softirqs are that task's work. An interrupt has no caller.
    """

    def __init__(
        self,
        cpu: int,
        begin: int,
        tasks: defaultdict[int, list[UnfinishedEvent]],
        serials: Callable[[], int],
        callers: dict[int, tuple[str, str]],
    ) -> None:
        self.cpu = cpu
        self.since = self.last = begin
        self.segments: list[Segment] = []
        self.irqs: list[UnfinishedEvent] = []
        self.unbalanced = 0
        self.first_flags = 0
        self.fresh = True
        self.current = -1
        self.task_name = ""
        self._tasks = tasks
        self._serials = serials
        self._callers = callers
        self.task_serial = self.serial = serials()
        self.kind, self.name = UNKNOWN, ""

    @property
    def key(self) -> int:
        """Return the key of the current task's stack. Each CPU has an idle task of its own, and all idle tasks have the
        pid 0."""
        return self.current or -1 - self.cpu

    def run(self, pid: int, name: str) -> None:
        """Note that task ``pid`` has the CPU from now on."""
        self.current = pid
        self.task_name = _task_name(pid, name)
        self.task_serial = self._serials()
        self.own()

    def own(self) -> None:
        """Count the time from now on for the innermost interrupt, softirq or function that is open. If none is open,
        count the time for the current task."""
        stack = self.irqs or self._tasks.get(self.current or -1 - self.cpu)
        if stack:
            self.kind, _, _, self.name, self.serial = stack[-1]
        else:
            self.kind, self.name, self.serial = TASK, self.task_name, self.task_serial

    def close(self, ts: int) -> None:
        """End the current owner's time at ``ts``."""
        if ts > self.since:
            fields = (self.since, ts, self.kind, self.name, self.current, self.serial)
            self.segments.append(_made(Segment, fields))
            self.since = ts

    def doubt(self, ts: int) -> None:
        """Mark the time since the last event as unknown. An event is missing, so the trace does not show what ran."""
        self.unbalanced += 1
        self.kind, self.name, self.serial = UNKNOWN, MISSING, self._serials()
        self.close(ts)

    def switch(self, ts: int, pid: int, name: str) -> None:
        if self.irqs:
            self.no_interrupt(ts)
        self.close(ts)
        self.fresh = False
        self.run(pid, name)

    def no_interrupt(self, ts: int) -> None:
        """Handle an event that cannot happen inside a hard interrupt. If such an interrupt is still open, its exit
        event is missing. The time since the last event then becomes unknown."""
        if self.irqs:
            self.doubt(ts)
            self.irqs.clear()
            self.own()

    def user(self, ts: int) -> None:
        """Handle an event that shows the task outside the kernel. If a handler or function is still open, its exit
        event is missing. The time since the last event then becomes unknown."""
        self.fresh = False
        self.no_interrupt(ts)
        if self._tasks.get(self.key):
            self.doubt(ts)
            del self._tasks[self.key]
            self.own()

    def enter_vector(self, ts: int, number: int, raw: str, name: str) -> None:
        """Enter one of the CPU's own interrupts (a vector). Vectors are never nested."""
        if self.irqs and any(frame.kind == VECTOR and frame.number >= 0 for frame in self.irqs):
            self.no_interrupt(ts)
        self.enter_irq(ts, VECTOR, number, raw, name)

    def enter_irq(self, ts: int, kind: str, number: int, raw: str, name: str) -> None:
        self.close(ts)
        self._push(self.irqs, kind, number, raw, name)

    def enter_on_task(self, ts: int, kind: str, number: int, raw: str, name: str) -> None:
        """Enter a softirq or a work function on the current task. Softirqs are never nested in softirqs, nor work
        functions in work functions. An entry that contradicts this shows that an exit event is missing."""
        if self.irqs:
            self.no_interrupt(ts)
        self.close(ts)
        stack = self._tasks[self.key]
        for depth, frame in enumerate(stack):
            if frame.kind == kind:
                self.unbalanced += len(stack) - depth
                del stack[depth:]
                break
        if kind == WORKQUEUE or self.task_name.startswith(_OF_SOFTIRQS):
            self._called(stack, kind, number, raw, name, (TASK, self.task_name))
        else:
            self._push(stack, kind, number, raw, name)

    def enter_within(self, ts: int, kind: str, raw: str, name: str, hard: bool) -> None:
        """Enter a function. If a hard interrupt is open, or if ``hard`` is True, the function runs in a hard interrupt.
        Otherwise it runs on the current task.
        """
        self.close(ts)
        stack = self.irqs if self.irqs or hard else self._tasks[self.key]
        self._called(stack, kind, _FUNCTION, raw, name, None)

    def leave_irq(self, ts: int, kind: str, number: int, raw: str, name: str) -> None:
        if not self._pop(self.irqs, ts, kind, number, raw):
            self._left_only(ts, kind, name, 1)

    def leave_on_task(self, ts: int, kind: str, number: int, raw: str, name: str) -> None:
        if not self._pop(self._tasks.get(self.key, []), ts, kind, number, raw):
            self._left_only(ts, kind, name, 2)

    def leave_within(self, ts: int, kind: str, raw: str, name: str) -> None:
        stack = self._tasks.get(self.key, [])
        if not self._pop(self.irqs, ts, kind, _FUNCTION, raw) and not self._pop(stack, ts, kind, _FUNCTION, raw):
            self._left_only(ts, kind, name, 3)

    def nmi(self, ts: int, length: int, kind: str, name: str) -> None:
        """Record an NMI that ends at ``ts`` and had the CPU for ``length`` ticks. An NMI can interrupt any other
        handler."""
        start = max(ts - max(length, 0), self.since)
        self.close(start)
        if ts > start:
            self.segments.append(Segment(start, ts, kind, name, self.current, self._serials()))
            self.since = ts

    def _called(
        self,
        stack: list[UnfinishedEvent],
        kind: str,
        number: int,
        raw: str,
        name: str,
        task: tuple[str, str] | None,
    ) -> None:
        """Put a frame on ``stack``, as :meth:`_push` does, and note what called it: the frame below it, or ``task``
        if it is the first one. ``task``: None if no task calls such a thing."""
        caller = (stack[-1].kind, stack[-1].name) if stack else task
        self._push(stack, kind, number, raw, name)
        if caller is not None:
            self._callers[self.serial] = caller

    def _push(self, stack: list[UnfinishedEvent], kind: str, number: int, raw: str, name: str) -> None:
        """Put a frame on ``stack``. The time from now on belongs to this frame."""
        if len(stack) >= _DEEPEST:
            self.unbalanced += len(stack)
            stack.clear()
        serial = self._serials()
        stack.append(_made(UnfinishedEvent, (kind, number, raw, name, serial)))
        self.kind, self.name, self.serial = kind, name, serial

    def _pop(self, stack: list[UnfinishedEvent], ts: int, kind: str, number: int, raw: str) -> bool:
        """Leave the innermost frame that this exit event ends, and all frames inside it. Return False if no frame
        matches the event."""
        for depth in range(len(stack) - 1, -1, -1):
            its_kind, its_number, its_raw, _, _ = stack[depth]
            if its_kind == kind and its_number == number and (not raw or not its_raw or its_raw == raw):
                self.close(ts)
                self.unbalanced += len(stack) - 1 - depth
                del stack[depth:]
                self.own()
                return True
        return False

    def _left_only(self, ts: int, kind: str, name: str, context: int) -> None:
        """Handle the exit event of a handler whose entry event is not in the trace.

        If the handler began before the trace, count the CPU's time until now for the handler. Otherwise only count the
        exit as one without an entry. The handler began before the trace if two conditions hold:

        - No earlier event on this CPU has shown a switch or a task outside the kernel.
        - The exit is the CPU's first event, or the CPU's first event has the flags ``context``.

        ``context``: the flags that an event has if it happens inside such a handler.
        """
        if not self.fresh or not (self.first_flags & context or not self.segments):
            self.unbalanced += 1
            return
        self.close(ts)
        serial = self._serials()
        pid = self.current
        self.segments[:] = [
            Segment(s.start, s.end, kind, name, pid, serial) if s.kind == TASK else s for s in self.segments
        ]
        self.first_flags &= ~context


class ThreadState:
    """Hold the state of one measured thread: it runs, is ready, sleeps, or is moving to another CPU."""

    def __init__(self, name: str, tid: int, begin: int) -> None:
        self.name, self.tid, self.since = name, tid, begin
        self.state, self.cpu, self.detail = UNSEEN, -1, ""
        self.stretches: list[Stretch] = []
        self.faults: list[int] = []
        self.kinds: list[str] = []
        self._woken = False
        self._roused = False

    def _to(self, ts: int, state: str, cpu: int, detail: str = "") -> None:
        if ts > self.since:
            self.stretches.append(Stretch(self.since, ts, self.state, self.cpu, self.detail))
            self.since = ts
        self.state, self.cpu, self.detail = state, cpu, detail

    def was_there(self, cpu: int) -> None:
        """Mark the thread as running on ``cpu`` since the trace began, because the CPU's first event shows this."""
        if self.state == UNSEEN and not self.stretches:
            self.state, self.cpu = RUNS, cpu

    def switched_in(self, ts: int, cpu: int) -> None:
        if self.state == ASLEEP and self._roused:
            # The waking event came before the thread had left its CPU: the thread never slept.
            self.state, self.detail = READY, WOKEN
        self._to(ts, RUNS, cpu)
        self._woken = self._roused = False

    def switched_out(self, ts: int, cpu: int, ready: bool) -> None:
        if self.state != RUNS or self.cpu != cpu:
            self.state, self.cpu, self.detail = UNSEEN, cpu, ""
        self._to(ts, READY if ready else ASLEEP, cpu)
        self._woken = False

    def woken(self, ts: int, cpu: int) -> None:
        if self.state == ASLEEP:
            self._to(ts, READY, cpu, WOKEN)
            self._woken = True
        else:
            self._roused = True

    def moved(self, ts: int, cpu: int, who: str, traced: Collection[int]) -> None:
        if cpu not in traced:
            self._to(ts, ELSEWHERE, cpu, who)
        elif self.state == ASLEEP or (self.state == READY and self._woken):
            # The scheduler chose the CPU for the wake-up: the activity of that CPU causes the thread's wait.
            self._to(ts, self.state, cpu, self.detail)
        else:
            self._to(ts, MOVING, cpu, who)

    def lost_sight(self, ts: int) -> None:
        self._to(ts, UNSEEN, self.cpu)

    def track(self, end: int, blind: dict[int, int]) -> ThreadTrack:
        """Return the thread's track until ``end``. ``blind``: CPU → the time after which the CPU's events were lost."""
        if self.cpu in blind:
            self._to(max(blind[self.cpu], self.since), UNSEEN, self.cpu)
        self._to(end, UNSEEN, self.cpu)
        return ThreadTrack(self.name, self.tid, self.stretches, self.faults, self.kinds)


def _task_name(pid: int, name: str) -> str:
    if pid == 0:
        return IDLE
    return name if name and name not in (IDLE, THROTTLED) else f"{name} (thread {pid})".lstrip()
