"""Build the activity of every CPU and the state of every measured thread from events of the kernel's trace.

The events are defined in Documentation/trace/events.rst and in two folders of Linux: include/trace/events (sched.h,
irq.h, timer.h, workqueue.h, csd.h) and arch/x86/include/asm/trace (irq_vectors.h, exceptions.h).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import count
from operator import itemgetter

from jitter_workshop.evidence.states import CpuState, ThreadState, UnfinishedEvent
from jitter_workshop.evidence.tracks import (
    IRQ,
    SOFTIRQ,
    TIMER,
    UNKNOWN,
    VECTOR,
    WORKQUEUE,
    CpuTrack,
    Segment,
    Sent,
    Timeline,
)
from jitter_workshop.model.evidence import ANOTHER_WORKSHOP, IDLE, LOST, NOT_OURS, THIS_WORKSHOP, WORKSHOP, Rate
from jitter_workshop.model.spec import MEASURED_THREADS
from jitter_workshop.model.trace import IN_IRQ, EventFields

_ELSEWHERE = frozenset({"migrate", "waking", "ipi_send", "frequency"})
"""The kinds of event that the second trace instance records. They may come from any CPU. For equal stamps in two
buffers the order is not known, so these events do not show which task runs."""

_PASSIVE = frozenset({"idle", "tick_stop", "stack"})
"""The kinds of event that do not change which task runs. The stack of a switch comes after the switch, with the pid of
the leaving task."""

_OF_A_PROGRAM = frozenset({"call", "call_end", "fork", "exec", "exit"})
"""The kinds of event for system calls, and for the begin and end of threads. Only ``evidence.lives`` reads these
events. They change neither a CPU's state nor a thread's state."""

NMI = "NMI"


def build_timeline(
    events: Iterable[EventFields],
    cpus: Iterable[int],
    tids: Mapping[str, int],
    start: int,
    end: int,
    rate: Rate | None = None,
    lost: Mapping[int, int] | None = None,
    own: Collection[int] | None = None,
) -> Timeline:
    """Return the timeline of one block from ``start`` to before ``end`` (ticks). Events before and after the block only
    set the state. Events may come in any order; events that contradict others are counted in ``unbalanced``.

    ``cpus``: the traced CPUs. ``tids``: measured thread → its id. ``lost``: CPU → the number of events that were lost.
    A full buffer loses the latest events. If a CPU has lost events, its state after its last event is unknown. ``own``:
    the thread ids of the workshop that measured, () if they are not known; None for the events of a user's program.

    In a run, two kinds of tasks get a suffix that shows whose task it is (``model.evidence.NOT_OURS``). The first kind
    has the workshop's name. The second kind has a measured thread's name, but another id.
    """
    return _Builder(events, cpus, tids, start, end, rate or Rate(), lost or {}, own).run()


def _ends(names: Mapping[int, str], measured: frozenset[int], own: Collection[int]) -> dict[int, str]:
    """Return pid → task name with a suffix, for each task that needs a suffix (see :func:`build_timeline`)."""
    found: dict[int, str] = {}
    for pid, name in names.items():
        if name in MEASURED_THREADS and pid not in measured:
            found[pid] = f"{name}{NOT_OURS}"
        elif name == WORKSHOP and own:
            found[pid] = f"{name}{THIS_WORKSHOP if pid in own else ANOTHER_WORKSHOP}"
    return found


class _Builder:
    def __init__(
        self,
        events: Iterable[EventFields],
        cpus: Iterable[int],
        tids: Mapping[str, int],
        start: int,
        end: int,
        rate: Rate,
        lost: Mapping[int, int],
        own: Collection[int] | None,
    ) -> None:
        self._events: Sequence[EventFields] = sorted(events, key=itemgetter(0))
        first, last = (self._events[0][0], self._events[-1][0]) if self._events else (start, end)
        self._begin, self._end = min(start, first), max(start, end, last)
        self._start, self._stop, self._rate = start, max(start, end), rate
        self._traced = frozenset(cpus)
        self._lost = {cpu: number for cpu, number in lost.items() if number > 0}
        self._names = {0: IDLE}
        for _, _, kind, pid, a, _, _, name, other, _ in self._events:
            if kind == "switch":
                self._names[a] = name
                self._names.setdefault(pid, other)
        self._ends = {} if own is None else _ends(self._names, frozenset(tids.values()), own)
        """Process id → the name of a task with an ending that says whose task it is. Only tasks whose names get an
        ending are in this table."""
        self._names |= self._ends
        self._names |= {tid: name for name, tid in tids.items() if tid not in self._names} | {0: IDLE}
        self._threads = {tid: ThreadState(name, tid, self._begin) for name, tid in tids.items()}
        self._tasks: defaultdict[int, list[UnfinishedEvent]] = defaultdict(list)
        self._serials = count(1).__next__
        self._states: dict[int, CpuState] = {}
        self._callers: dict[int, tuple[str, str]] = {}
        self._deeds: list[Sent] = []
        self._frequencies: list[tuple[int, int, int]] = []
        self._kept: Counter[tuple[int, str]] = Counter()
        self._stacks: dict[int, list[tuple[int, str, str]]] = {}
        self._latest: dict[int, str] = {}
        self._unreported: Counter[str] = Counter()

    def run(self) -> Timeline:
        states, traced = self._states, self._traced
        for event in self._events:
            ts, cpu, kind, pid, a, b, _, name, _, flags = event
            if kind in _ELSEWHERE:
                self._deed(event)
                continue
            if cpu not in traced or kind in _OF_A_PROGRAM:
                continue
            if kind in _PASSIVE:
                self._aside(event)
                if cpu in states:
                    states[cpu].last = ts
                continue
            state = states.get(cpu) or self._first(event)
            if pid != state.current and kind != "nmi":
                self._resync(state, event)
            state.last = ts
            self._latest[cpu] = kind
            self._step(state, ts, kind, pid, a, b, name, flags)
        return self._timeline()

    def _step(self, state: CpuState, ts: int, kind: str, pid: int, a: int, b: int, name: str, flags: int) -> None:
        """Apply an event to the CPU on which it happened, and to its thread. The commonest kinds are matched first."""
        match kind:
            case "softirq_entry":
                state.enter_on_task(ts, SOFTIRQ, a, "", name or f"softirq {a}")
            case "softirq_exit":
                state.leave_on_task(ts, SOFTIRQ, a, "", name or f"softirq {a}")
            case "switch":
                if pid in self._threads:
                    self._threads[pid].switched_out(ts, state.cpu, bool(b))
                state.switch(ts, a, self._ends.get(a, name))
                if a in self._threads:
                    self._threads[a].switched_in(ts, state.cpu)
            case "vector_entry":
                state.enter_vector(ts, a, name, name or f"vector {a}")
            case "vector_exit":
                state.leave_irq(ts, VECTOR, a, name, name or f"vector {a}")
            case "irq_entry":
                state.enter_irq(ts, IRQ, a, "", name or f"irq {a}")
            case "irq_exit":
                state.leave_irq(ts, IRQ, a, "", name or f"irq {a}")
            case "work_start":
                state.enter_on_task(ts, WORKQUEUE, 0, name, name or "work")
            case "work_end":
                state.leave_on_task(ts, WORKQUEUE, 0, name, name or "work")
            case "timer_entry":
                state.enter_within(ts, TIMER, name, name or "timer", bool(flags & IN_IRQ))
            case "timer_exit":
                state.leave_within(ts, TIMER, name, name or "timer")
            case "csd_entry":
                state.enter_within(ts, VECTOR, name, name or "call", bool(flags & IN_IRQ))
            case "csd_exit":
                state.leave_within(ts, VECTOR, name, name or "call")
            case "nmi":
                state.nmi(ts, self._rate.to_ticks(max(a, 0)), VECTOR, f"{NMI} {name}".rstrip())
            case "fault":
                if a == 1:
                    state.user(ts)
                if pid in self._threads:
                    self._threads[pid].faults.append(ts)
                    self._threads[pid].kinds.append("user" if a == 1 else "kernel")
            case _:
                state.unbalanced += 1

    def _first(self, event: EventFields) -> CpuState:
        """Make the state of a CPU from its first event, and return the state. The event shows which task ran before it.
        It also shows whether the CPU was in an interrupt, in a softirq or in the task.
        """
        _, cpu, kind, pid, _, _, _, _, other, flags = event
        state = self._states[cpu] = CpuState(cpu, self._begin, self._tasks, self._serials, self._callers)
        state.first_flags = flags
        state.run(pid, self._ends.get(pid, other) if kind == "switch" else self._names.get(pid, ""))
        if pid in self._threads:
            self._threads[pid].was_there(cpu)
        return state

    def _resync(self, state: CpuState, event: EventFields) -> None:
        """Handle an event of a task that is not the CPU's current task. A switch event is missing, so mark the time as
        unknown and continue with the event's task."""
        ts, cpu, _, pid, *_ = event
        if state.current in self._threads and self._threads[state.current].cpu == state.cpu:
            self._threads[state.current].lost_sight(state.since)
        outside = ts <= self._start or state.last >= self._stop
        if not outside:
            self._unreported[state.task_name] += 1
        state.doubt(ts)
        # Before and after the block tracing begins and ends, and what is missing there is no gap of the block.
        state.unbalanced -= outside
        state.irqs.clear()
        state.run(pid, self._names.get(pid, ""))
        if pid in self._threads:
            self._threads[pid].lost_sight(ts)
            self._threads[pid].switched_in(ts, cpu)

    def _deed(self, event: EventFields) -> None:
        ts, cpu, kind, pid, a, b, c, name, _, _ = event
        if kind == "frequency":
            self._frequencies.append((ts, b, a))
            return
        who = self._names.get(pid) or f"thread {pid}"
        if kind == "ipi_send":
            self._deeds.append(Sent(ts, "ipi", who, name, a, cpu))
            return
        thread = self._threads.get(a)
        if thread is None:
            return
        if kind == "waking":
            thread.woken(ts, b)
            self._deeds.append(Sent(ts, "wake", who, thread.name, b, cpu))
        else:
            thread.moved(ts, c, who, self._traced)
            self._deeds.append(Sent(ts, "move", who, thread.name, c, cpu))

    def _aside(self, event: EventFields) -> None:
        """Handle an event that does not change which task has the CPU."""
        ts, cpu, kind, _, a, _, _, name, _, _ = event
        if kind == "tick_stop" and a != 1:
            self._kept[cpu, name] += 1
        elif kind == "stack":
            self._stacks.setdefault(cpu, []).append((ts, self._latest.get(cpu, ""), name))

    def _timeline(self) -> Timeline:
        tracks: dict[int, CpuTrack] = {}
        blind: dict[int, int] = {}
        for cpu, state in self._states.items():
            if cpu in self._lost:
                blind[cpu] = state.last
                state.close(state.last)
                state.kind, state.name, state.serial = UNKNOWN, LOST, self._serials()
            state.close(self._end)
            tracks[cpu] = CpuTrack(state.segments)
        for cpu in (self._lost.keys() & self._traced) - tracks.keys():
            blind[cpu] = self._begin
            tracks[cpu] = CpuTrack([Segment(self._begin, self._end, UNKNOWN, LOST, -1, self._serials())])
        return Timeline(
            start=self._start,
            end=self._stop,
            rate=self._rate,
            traced=self._traced,
            cpus=tracks,
            threads={state.name: state.track(self._end, blind) for state in self._threads.values()},
            deeds=self._deeds,
            frequencies=self._frequencies,
            ticks_kept=self._kept,
            stacks=self._stacks,
            lost=dict(self._lost),
            events=len(self._events),
            unbalanced=sum(state.unbalanced for state in self._states.values()),
            unreported=self._unreported,
            callers=self._callers,
        )
