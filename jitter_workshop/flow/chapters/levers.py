"""Find the settings that prevent a cause of lost time, and the chapter that teaches them. Every function is pure."""

from __future__ import annotations

import re
from typing import Literal

from jitter_workshop.host.irq.irq_affinity import Irq
from jitter_workshop.model.change import IRQ_AFFINITY
from jitter_workshop.model.course import Chapter, Course, touches_before
from jitter_workshop.model.diagnosis import Suspect
from jitter_workshop.model.evidence import CPU_THREADS, FAULT, FREE_THREADS, MEASURED
from jitter_workshop.model.spec import KINDS, helper_threads
from jitter_workshop.tuning.tunables.interrupts import refuses

PLACEMENT, FIFO = "placement", "fifo"
"""The levers that are not tunables: a CPU for each thread, and a real-time priority."""
_LOCK = "lock"
"""The lever of a chapter whose runs have different locks. It treats the helper threads of these runs."""
_TOUCHED = "touched"
"""The lever of a chapter with a run in new memory and a run in memory that the program touched before. It treats the
page faults of these runs."""

_TASKS = ("isolation", "isolcpus", FIFO)
_OF_KERNEL = re.compile("|".join(FREE_THREADS))
_UNBOUND = re.compile(r"kworker/u")
_BOUND = re.compile(rf"({'|'.join(CPU_THREADS)})/\d")
"""The names of kernel threads that are bound to one CPU."""
_STOPPERS = ("migration",)
"""The names of kernel threads of the stop class. Each is bound to one CPU, and preempts threads of every real-time
priority.
"""
_LEVERS: dict[str, tuple[str, ...]] = {
    "tasks": _TASKS,
    "irq": (IRQ_AFFINITY, "irqbalance"),
    "timer": ("nohz-full",),
    "tick": ("nohz-full",),
    "migration": (PLACEMENT, "isolation"),
    FAULT: ("thp", "numa-balancing", "ksm", "compaction"),
    "workqueue": ("workqueue-mask",),
}
_WORK_ITEMS = {"vmstat_update": ("stat-interval",)}
"""The levers of work items that the kernel queues on each CPU for itself, where no mask of workqueues keeps them away.
"""
_STEERED = "rps_trigger_softirq"
"""The kernel function by which a CPU hands received packets over to another CPU."""
_ANY = 1
"""The number of an interrupt of which only the name is known."""
_NET = (IRQ_AFFINITY, "rps-xps")
_SOFTIRQS = {
    "NET_RX": _NET,
    "NET_TX": _NET,
    "BLOCK": _NET,
    "IRQ_POLL": _NET,
    "TASKLET": _NET,
    "RCU": ("rcu-nocbs", "nohz-full"),
    "SCHED": ("nohz-full",),
    "TIMER": ("nohz-full",),
    "HRTIMER": ("nohz-full",),
}

Reach = Literal["this", "explained", "another", "bound", "below", "none"]
"""The place where a cause is treated.

- ``this``: the present chapter's change acts on it.
- ``explained``: the present chapter explains what helps, but its change does not act on the cause.
- ``another``: in another chapter.
- ``bound``: nowhere, because the cause is a thread that no setting can move.
- ``below``: nowhere, because the cause lies below this kernel.
- ``none``: nowhere, for any other reason.
"""


def levers(suspect: Suspect) -> tuple[str, ...]:
    """Return the settings that keep a cause off a hot CPU, the usual one first. Each setting is a tunable's id,
    PLACEMENT or FIFO. Return () if no setting helps."""
    if suspect.kind == "task":
        return _of_task(suspect.name)
    if suspect.kind == "softirq":
        return _SOFTIRQS.get(suspect.name, ())
    if suspect.kind == "vector" and suspect.name == _STEERED:
        return ("rps-xps",)
    if why_irq_stays(suspect):
        return ()
    if suspect.kind == "workqueue" and suspect.name in _WORK_ITEMS:
        return _WORK_ITEMS[suspect.name]
    return _LEVERS.get(suspect.kind, ())


def why_irq_stays(suspect: Suspect) -> str:
    """Return the reason why a cause is an interrupt that no mask moves, in the words of the plan; "" for other
    causes."""
    return refuses(Irq(_ANY, suspect.name, None)) if suspect.kind == "irq" else ""


def is_bound(task: str) -> bool:
    """Return True if a task of this name is a kernel thread that is bound to one CPU, so that no setting moves it."""
    return _BOUND.match(task) is not None


def is_unbound_worker(task: str) -> bool:
    """Return True if a task of this name is a kernel worker that no CPU owns: the mask of workqueues moves it."""
    return _UNBOUND.match(task) is not None


def _of_task(name: str) -> tuple[str, ...]:
    if name == "idle":
        return ("idle-states",)
    if name == "throttled":
        return ("cpu-max",)
    if _UNBOUND.match(name):
        return ("workqueue-mask", FIFO)
    if is_bound(name):
        return ()
    return ("kernel-threads", "isolation", FIFO) if _OF_KERNEL.match(name) else _TASKS


def reach_of_course(suspect: Suspect, chapter: Chapter, course: Course) -> tuple[Reach, str]:
    """Return a word on where the course treats a cause, and a chapter's title.

    The word is one of :data:`Reach`. For ``another``, the title is the title of the chapter that treats the cause. For
    other words, the title is "".
    """
    if chapter_treats(suspect, chapter):
        return "this", ""
    wanted = _wanted(suspect, chapter)
    if not wanted:
        bound = suspect.kind == "task" and is_bound(suspect.name)
        below = suspect.kind in ("no_event", "steal")
        return ("bound" if bound else "below" if below else "none"), ""
    for lever in wanted:
        for other in course.chapters:
            if lever in (*_of(other), *other.treats):
                return ("explained", "") if other.id == chapter.id else ("another", other.title)
    return "none", ""


def chapter_treats(suspect: Suspect, chapter: Chapter) -> bool:
    """Return True if the change of ``chapter`` acts on this cause. The steps ``diagnose`` and ``compare`` both ask this
    function, about the cause that ``suspects.woken_by`` names."""
    here = _of(chapter)
    bound = _BOUND.match(suspect.name) if suspect.kind == "task" else None
    # A real-time priority keeps even a thread away that is bound to the CPU.
    outranked = bound is not None and bound[1] not in _STOPPERS and FIFO in here
    return outranked or not here.isdisjoint(_wanted(suspect, chapter))


def _wanted(suspect: Suspect, chapter: Chapter) -> tuple[str, ...]:
    """Return the settings that prevent a cause in the runs of ``chapter``. For the threads of these runs, which no
    tunable keeps away, return PLACEMENT or _LOCK. Against page faults _TOUCHED comes first."""
    task = suspect.name if suspect.kind == "task" else ""
    if task in (MEASURED, *_own_threads(chapter)):
        return (PLACEMENT,)
    if any(task in helper_threads(one.lock) for one in chapter.measurements):
        return (_LOCK,)
    return (_TOUCHED, *levers(suspect)) if suspect.kind == FAULT else levers(suspect)


def _own_threads(chapter: Chapter) -> set[str]:
    """Return the names of the threads that the chapter measures. Measured threads that share a CPU take time from each
    other."""
    return {name for one in chapter.measurements for name in KINDS[one.workload].threads}


def _of(chapter: Chapter) -> set[str]:
    """Return the settings with which a chapter prevents causes: ids of tunables, and the levers that are none."""
    found = {word.partition("=")[0] for word in chapter.tunables}
    if chapter.changes == "placement":
        found.add(PLACEMENT)
    if any(one.sched_priority for one in chapter.measurements):
        found.add(FIFO)
    if len({one.lock for one in chapter.measurements}) > 1:
        found.add(_LOCK)
    if touches_before(chapter.measurements):
        found.add(_TOUCHED)
    return found
