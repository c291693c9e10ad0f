"""Split the time of a stall by cause.

A window is the time of one stall, from its start to its end. It is cut into pieces without gaps, and each piece has one
cause. For any trace, the lengths of the pieces sum exactly to the length of the window.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from jitter_workshop.evidence.tracks import (
    ASLEEP,
    ELSEWHERE,
    IRQ,
    MOVING,
    READY,
    RUNS,
    TASK,
    UNKNOWN,
    UNSEEN,
    VECTOR,
    WOKEN,
    CpuTrack,
    Stretch,
    ThreadTrack,
    Timeline,
)
from jitter_workshop.model import evidence as words
from jitter_workshop.model.evidence import Window

AROUND_NS = 10_000
"""The longest gap next to an event that still counts as the event's surroundings. Some time passes from the moment an
interrupt takes a CPU to its first event, and from its last event to the next clock reading. The interrupt's entry and
exit, the tracing (0.1 to 0.5 µs an event) and cold caches take this time. A guest also needs one or more exits to the
hypervisor, of 1 to 5 µs each. The limit is twice the longest such gap. A longer gap has a cause of its own, which the
trace did not record."""

ARRIVAL_NS = 50_000
"""The limit AROUND_NS for a gap that ends with an interrupt's first event, if no other cause of the gap is known.

A guest's interrupt first goes to the hypervisor. A KVM guest's thread had gaps of 20 to 50 µs without an event. Of
these gaps, 35 to 51 % ended with an interrupt; chance alone gives 1 to 2.5 %. So at most one gap in fifteen is named
after an interrupt that came by chance. Beyond 50 µs it would be one in three (docs/attribution.md has the table).
"""

CATCH_UP_NS = 200
"""The longest time in ns in which a consumer of the ring reads a waiting message. Usually this takes 20 to 100 ns,
including the journaller's copy."""

PRODUCER = "producer"
_MIGRATION, _FAULT, _AROUND, _NO_EVENT = "migration", "page_fault", "around", "no_event"
_HOLE = OWN = "hole"
_INTERRUPTS = (IRQ, VECTOR)
_ITS_OWN = (words.NOTHING, words.ASLEEP)
"""The names of ``no_event`` pieces during which the thread may still be in its page fault."""


class Piece(NamedTuple):
    """Hold a part of a window that has one cause. ``start`` is included, ``end`` is not; both are ticks of the trace
    clock. ``kind``: one of ``model.evidence.CAUSE_KINDS``."""

    kind: str
    name: str
    start: int
    end: int

    @property
    def ticks(self) -> int:
        return self.end - self.start


def split(window: Window, timeline: Timeline) -> tuple[Piece, ...]:
    """Split the time of a window by cause. Return pieces longer than 0 in order of time, without gaps, from the
    window's start to its end. Return () for an empty window."""
    if window.end <= window.start:
        return ()
    around = timeline.rate.to_ticks(AROUND_NS)
    raw = _raw(window, timeline, timeline.threads.get(window.thread))
    if window.publish is not None and all(piece.kind == _HOLE for piece in raw):
        sender = _of_sender(window, timeline, around)
        if sender is not None:
            return sender
    return _resolve(window, timeline, raw, around)


def _of_sender(window: Window, timeline: Timeline, around: int) -> tuple[Piece, ...] | None:
    """Return the causes of a message's delay in its producer, as pieces of the window. The delay is between the
    message's stamp and its publication. The consumer cannot cause this delay. Return None if no event stopped the
    producer in this time. Also return None if the window does not belong to a consumer.
    """
    producer = timeline.threads.get(PRODUCER)
    if producer is None or window.publish is None:
        return None
    cpu = next((stretch.cpu for stretch in producer.between(window.publish, window.publish + 1)), -1)
    its = Window(window.start, window.end, cpu, PRODUCER, window.messages)
    pieces = _resolve(its, timeline, _raw(its, timeline, producer), around)
    # An event that begins after the stamp did not stop the producer there: the time before it has no event.
    return pieces if pieces[0].kind != _NO_EVENT else None


def _sender_stopped(window: Window, timeline: Timeline, hole: Piece) -> list[Piece]:
    """Return the causes that stopped the producer during a hole in the consumer's window.

    A hole is a time in which the consumer ran or may have run, but got no message. Return [] if the producer may have
    run during a part of the hole. Also return [] if the window does not belong to a consumer.
    """
    producer = timeline.threads.get(PRODUCER)
    if producer is None or window.publish is None:
        return []
    raw = _raw(Window(hole.start, hole.end, -1, PRODUCER), timeline, producer)
    return raw if all(piece.kind not in (_HOLE, _NO_EVENT) for piece in raw) else []


def _raw(window: Window, timeline: Timeline, thread: ThreadTrack | None) -> list[Piece]:
    """Return the time of a window as pieces, by the state of the window's thread. A piece of the kind ``hole`` is time
    in which the thread ran or may have run. :func:`_resolve` gives each hole a cause."""
    found: list[Piece] = []
    at = window.start
    for stretch in thread.between(window.start, window.end) if thread is not None else ():
        if stretch.start > at:
            _on_cpu(found, timeline, thread, window.cpu, at, min(stretch.start, window.end))
        low, high = max(stretch.start, window.start), min(stretch.end, window.end)
        if stretch.state == MOVING:
            for piece in _between_cpus(timeline, thread, stretch, low, high):
                _add(found, *piece)
        elif stretch.state == ELSEWHERE:
            # The thread ran on a CPU that is not traced, and read its clock there: this reading ended the window.
            sent = stretch.start > window.start and window.messages <= 1
            _add(found, _MIGRATION if sent else _NO_EVENT, stretch.detail if sent else words.NOT_TRACED, low, high)
        elif stretch.state == ASLEEP and not window.due:
            _add(found, _NO_EVENT, words.ASLEEP, low, high)
        else:
            cpu = stretch.cpu if stretch.cpu >= 0 and stretch.state != UNSEEN else window.cpu
            runs, kept = stretch.state == RUNS, stretch.state == READY and stretch.detail != WOKEN
            _on_cpu(found, timeline, thread, cpu, low, high, runs, words.THROTTLED if kept else words.IDLE)
        at = high
    if at < window.end:
        _on_cpu(found, timeline, thread, window.cpu, at, window.end)
    return found


def by_state(thread: ThreadTrack, timeline: Timeline, start: int, end: int) -> Iterator[tuple[str, Piece]]:
    """Yield (state, piece) for a thread's time from ``start`` to before ``end``, without gaps. The state is a constant
    of ``evidence.tracks``, such as RUNS.

    In a piece of the kind OWN, the thread ran. A piece of the kind ``no_event`` is sleep (name ``asleep``) or unknown
    time. Any other piece names the cause that kept the thread from running. If a thread waits on another CPU after a
    move, the cause is the task on this CPU. If no task runs there, the cause is ``migration``.
    """
    at = start
    for stretch in thread.between(start, end):
        low, high = max(stretch.start, at), min(stretch.end, end)
        if low > at:
            yield UNSEEN, Piece(_NO_EVENT, words.NOT_TRACED, at, low)
        found: list[Piece] = []
        state = stretch.state
        if state == ASLEEP:
            _add(found, _NO_EVENT, words.ASLEEP, low, high)
        elif state == MOVING:
            found += _between_cpus(timeline, thread, stretch, low, high)
        elif state in (RUNS, READY):
            kept = state == READY and stretch.detail != WOKEN
            _on_cpu(
                found, timeline, thread, stretch.cpu, low, high, state == RUNS, words.THROTTLED if kept else words.IDLE
            )
        else:
            _add(found, _NO_EVENT, words.NOT_TRACED, low, high)
        yield from ((state, piece) for piece in found)
        at = high
    if at < end:
        yield UNSEEN, Piece(_NO_EVENT, words.NOT_TRACED, at, end)


def _between_cpus(
    timeline: Timeline, thread: ThreadTrack | None, stretch: Stretch, low: int, high: int
) -> Iterator[Piece]:
    """Yield the causes of a moved thread's wait on its new CPU, from ``low`` to ``high``. If the CPU is busy, the cause
    is its task or interrupt. If the CPU is free, the cause is the move."""
    found: list[Piece] = []
    _on_cpu(found, timeline, thread, stretch.cpu, low, high)
    for piece in found:
        free = piece.kind == _HOLE or (piece.kind == TASK and piece.name == words.IDLE)
        yield Piece(_MIGRATION, stretch.detail, *piece[2:]) if free else piece


def _on_cpu(
    found: list[Piece],
    timeline: Timeline,
    thread: ThreadTrack | None,
    cpu: int,
    low: int,
    high: int,
    runs: bool = False,
    idle: str = words.IDLE,
) -> None:
    """Append to ``found`` what ran on CPU ``cpu`` from ``low`` to before ``high``, as pieces.

    Time in which the thread itself ran becomes a ``hole``.

    - ``runs``: True to count each task on this CPU as if it were the thread.
    - ``idle``: the name for time in which no task ran.
    """
    track = timeline.cpus.get(cpu)
    if track is None:
        name = words.NOTHING if cpu in timeline.traced else words.NOT_TRACED
        _add(found, _HOLE if not name else _NO_EVENT, name, low, high)
        return
    own = thread.tid if thread is not None else None
    at = low
    for segment in track.between(low, high):
        begin, end = max(segment.start, low), min(segment.end, high)
        if begin > at:
            _add(found, _HOLE, "", at, begin)
        if segment.kind == UNKNOWN:
            _add(found, _NO_EVENT, segment.name, begin, end)
        elif segment.kind == TASK and (segment.pid == own or runs or own is None):
            _add(found, _HOLE, "", begin, end)
        else:
            nobody = segment.kind == TASK and segment.pid == 0
            _add(found, segment.kind, idle if nobody else segment.name, begin, end)
        at = end
    if at < high:
        _add(found, _HOLE, "", at, high)


def _add(found: list[Piece], kind: str, name: str, start: int, end: int) -> None:
    """Add a piece to ``found``; merge it with the last piece if both have the same kind and name."""
    if end <= start:
        return
    if found and found[-1].kind == kind and found[-1].name == name:
        found[-1] = Piece(kind, name, found[-1].start, end)
    else:
        found.append(Piece(kind, name, start, end))


def _resolve(window: Window, timeline: Timeline, raw: list[Piece], around: int) -> tuple[Piece, ...]:
    """Return the pieces of a window, with a cause for each hole. The cause can be the thread's page fault, the event
    beside the hole, or a stop of the producer. Otherwise the hole is ``no_event``. ``raw``: the pieces with holes.
    ``around``: the longest hole, in ticks, that belongs to the event beside it."""
    found: list[Piece] = []
    faulted: str | None = None
    raw = _with_faults(raw, timeline.threads.get(window.thread))
    for place, piece in enumerate(raw):
        kind, name = piece.kind, piece.name
        if kind == _HOLE:
            near = _neighbour(window, timeline, raw, place, around)
            kind, name = (_AROUND, near) if near is not None else (_NO_EVENT, words.NOTHING)
            if near is None and _catches_up(window, timeline, raw, place):
                name = words.CATCHING_UP
            elif near is None and (stopped := _sender_stopped(window, timeline, piece)):
                for other in stopped:
                    _add(found, *other)
                continue
            elif near is None and (arriving := _arriving(timeline, raw, place)) is not None:
                kind, name = _AROUND, arriving
        if kind == _FAULT:
            faulted = name
        elif faulted is not None and kind == _NO_EVENT and name in _ITS_OWN and window.messages <= 1:
            # Until the thread's next clock reading, the thread counts as still in its last fault.
            kind, name = _FAULT, faulted
        _add(found, kind, name, piece.start, piece.end)
    return tuple(found)


def _with_faults(raw: list[Piece], thread: ThreadTrack | None) -> list[Piece]:
    """Cut each hole at the beginning of the thread's page fault, and return all pieces. The rest of the hole counts as
    page fault, because the trace shows no end of page faults.
    """
    found: list[Piece] = []
    for piece in raw:
        fault = thread.fault(piece.start, piece.end) if thread is not None and piece.kind == _HOLE else None
        if fault is None:
            found.append(piece)
            continue
        if fault[0] > piece.start:
            found.append(piece._replace(end=fault[0]))
        found.append(Piece(_FAULT, fault[1], fault[0], piece.end))
    return found


def _catches_up(window: Window, timeline: Timeline, raw: list[Piece], place: int) -> bool:
    """Return True if the consumer read old messages during the hole at ``place``. The hole must be the last piece of
    the window, and short. The old messages had collected while the consumer was stopped."""
    if window.publish is None or window.messages < 2 or place == 0 or place != len(raw) - 1:
        return False
    return timeline.rate.to_ns(raw[place].ticks) <= window.messages * CATCH_UP_NS


def _neighbour(window: Window, timeline: Timeline, raw: list[Piece], place: int, around: int) -> str | None:
    """Return the cause of the longer of the two pieces beside a short hole. The first hole of a window may have no
    piece beside it. Then return the cause that ended shortly before the window. Return None if the hole is longer than
    ``around`` ticks, or if there is no such cause.
    """
    hole = raw[place]
    if hole.ticks > around:
        return None
    beside = [raw[i] for i in (place - 1, place + 1) if 0 <= i < len(raw) and raw[i].kind not in (_HOLE, _NO_EVENT)]
    if beside:
        longest = max(beside, key=lambda piece: piece.ticks)
        return longest.name if longest.kind != _FAULT else words.FAULT
    if place or window.start_seen:
        return None
    return _just_before(window, timeline, hole, around)


def _arriving(timeline: Timeline, raw: list[Piece], place: int) -> str | None:
    """Return the interrupt right after a hole, if its delivery may have caused the hole; else None. A delivery takes at
    most ARRIVAL_NS."""
    if place + 1 == len(raw) or raw[place + 1].kind not in _INTERRUPTS:
        return None
    return raw[place + 1].name if raw[place].ticks <= timeline.rate.to_ticks(ARRIVAL_NS) else None


def _just_before(window: Window, timeline: Timeline, hole: Piece, around: int) -> str | None:
    """Return the cause that ended shortly before a window; None if there is none. This cause also explains the window's
    first hole, because the CPU needs time to return to the thread.
    """
    thread = timeline.threads.get(window.thread)
    cpu = window.cpu
    if thread is not None and thread.starts:
        stretch = thread.stretches[max(bisect_right(thread.starts, hole.start) - 1, 0)]
        cpu = stretch.cpu if stretch.state == RUNS else cpu
    track = timeline.cpus.get(cpu)
    own = thread.tid if thread is not None else None
    for segment in (track or CpuTrack([])).before(hole.start):
        if hole.end - segment.end > around or segment.kind == UNKNOWN:
            return None
        if segment.kind != TASK or segment.pid != own:
            return segment.name
    return None
