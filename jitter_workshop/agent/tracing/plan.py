"""Choose which events of the kernel's trace are recorded, on which CPUs, and with which filters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.trace.format import EventFormat
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.program import CALLS_THAT_WAIT, FUTEX
from jitter_workshop.model.record import dataclass

VECTORS = "irq_vectors"
_HOT = {
    "sched": ("sched_switch",),
    "irq": ("irq_handler_entry", "irq_handler_exit", "softirq_entry", "softirq_exit"),
    "nmi": ("nmi_handler",),
    "workqueue": ("workqueue_execute_start", "workqueue_execute_end"),
    "timer": ("tick_stop", "hrtimer_expire_entry", "hrtimer_expire_exit"),
    "csd": ("csd_function_entry", "csd_function_exit"),
    "power": ("cpu_idle",),
    "exceptions": ("page_fault_user", "page_fault_kernel"),
}
_SENDERS = {
    "sched": ("sched_migrate_task", "sched_waking"),
    "ipi": ("ipi_send_cpu", "ipi_send_cpumask"),
    "power": ("cpu_frequency",),
}
_ARM = {"ipi": ("ipi_entry", "ipi_exit")}
_ARM_SENDERS = {"ipi": ("ipi_raise",)}

_PROGRAM = {
    "sched": (
        *("sched_switch", "sched_waking", "sched_migrate_task"),
        *("sched_process_fork", "sched_process_exec", "sched_process_exit"),
    ),
    "irq": _HOT["irq"],
    "nmi": _HOT["nmi"],
    "workqueue": _HOT["workqueue"],
    "timer": ("hrtimer_expire_entry", "hrtimer_expire_exit"),
    "csd": _HOT["csd"],
    "power": ("cpu_frequency",),
}
"""Events of all tasks on all CPUs, recorded for a program that is not ours: any task may hold the program up, or wake
it."""
CALLS = tuple(call for calls in CALLS_THAT_WAIT.values() for call in calls)
"""The system calls of a program whose events are recorded: those that may wait."""
_FUTEX = f"syscalls:sys_enter_{FUTEX}"
_WAKES = (1, 129)
"""``FUTEX_WAKE`` of a shared and of a private futex (futex(2)): these calls never wait."""
_NOT_ITS_END = f"syscalls:sys_exit_{FUTEX}"
MOST_RANGES = 8
"""The largest number of ranges of thread numbers in a filter. The kernel checks every range at each event."""

_WITHOUT = {
    "csd": (
        "this kernel does not have the event, so the run cannot show which function an interrupt from another CPU ran"
    ),
    "ipi": "this kernel does not have the event, so the run cannot show which CPU sent an interrupt",
    "exceptions": "this kernel does not have the event, so the run cannot show page faults",
    "syscalls": (
        "this kernel does not have the events, so the report cannot name the system call in which a thread sleeps"
    ),
    VECTORS: "only x86 has these events; here other events show timers and interrupts between CPUs",
}
_NOT_HERE = "this kernel does not have the event"
_SLEEPS = "S"
"""Letter of an interruptible sleep in the print format of ``sched_switch``."""


@dataclass(frozen=True, slots=True)
class WantedEvents:
    """Hold the events to record, as a dict ``system:name`` → filter ("" for no filter).

    ``missing``: event that this kernel lacks → what a run cannot show without this event.
    """

    hot: dict[str, str]
    senders: dict[str, str]
    missing: dict[str, str]


def choose_events(root: HostRoot, folder: str, tids: Sequence[int], cpus: CpuSet) -> WantedEvents:
    """Return the events to record for our own threads ``tids``. Events that this kernel lacks are in
    ``WantedEvents.missing``.

    - ``WantedEvents.hot``: events on the hot CPUs ``cpus``. Page faults are recorded only for ``tids``.
    - ``WantedEvents.senders``: events on all CPUs, with filters for ``tids`` and ``cpus``. They include changes of a
      CPU's frequency, because another CPU may decide this change and record its event.
    """
    threads = " || ".join(f"pid == {tid}" for tid in tids)
    own = " || ".join(f"common_pid == {tid}" for tid in tids)
    one = " || ".join(f"cpu == {cpu}" for cpu in cpus)
    filters = {
        "exceptions:page_fault_user": own,
        "exceptions:page_fault_kernel": own,
        "sched:sched_migrate_task": threads,
        "sched:sched_waking": threads,
        "ipi:ipi_send_cpu": one,
        "ipi:ipi_send_cpumask": f"cpumask & CPUS{{{cpus}}}",
        "power:cpu_frequency": one.replace("cpu ", "cpu_id "),
    }
    missing: dict[str, str] = {}

    def here(groups: Mapping[str, tuple[str, ...]], told: bool = True) -> dict[str, str]:
        return _here(root, folder, groups, filters, missing if told else {})

    hot, senders = here(_HOT), here(_SENDERS)
    vectors = _vectors(root, folder)
    if vectors:
        hot |= here({VECTORS: vectors})
    else:
        missing[f"{VECTORS}:*"] = _WITHOUT[VECTORS]
        hot |= here(_ARM, told=False)
        if "ipi:ipi_send_cpu" not in senders:  # ipi_raise says the same, without the function
            senders |= here(_ARM_SENDERS, told=False)
            if "ipi:ipi_raise" in senders:
                missing = {title: why for title, why in missing.items() if not title.startswith("ipi:")}
    return WantedEvents(hot, senders, missing)


def wanted_of_program(root: HostRoot, folder: str, tids: Sequence[int], newest: int) -> WantedEvents:
    """Return the events to record for a program that is not ours.

    - ``WantedEvents.hot``: events of all tasks.
    - ``WantedEvents.senders``: events of the program's own threads: page faults, and the system calls in which a thread
      may wait.
    - ``WantedEvents.missing``: events that this kernel lacks.

    ``tids``: the program's present threads. ``newest``: the highest thread number so far. The program's later threads
    get higher numbers.
    """
    missing: dict[str, str] = {}
    hot = _here(root, folder, _PROGRAM, {}, missing)
    vectors = _vectors(root, folder)
    if vectors:
        hot |= _here(root, folder, {VECTORS: vectors}, {}, missing)
    else:
        missing[f"{VECTORS}:*"] = _WITHOUT[VECTORS]
        hot |= _here(root, folder, _ARM, {}, {})
    own = _here(root, folder, {"exceptions": _HOT["exceptions"]}, {}, missing)
    edges = tuple(f"sys_{edge}_{call}" for call in CALLS for edge in ("enter", "exit"))
    calls = _here(root, folder, {"syscalls": edges}, {}, {})
    calls.pop(_NOT_ITS_END, None)
    if not calls:
        missing["syscalls:*"] = _WITHOUT["syscalls"]
    # The kernel could follow new threads itself (``set_event_pid`` with ``event-fork``), but that costs 0.2 µs at each
    # switch of any task, more than to record the switch.
    return WantedEvents(hot, own_filters((*own, *calls), tids, newest), missing)


def own_filters(events: Iterable[str], tids: Sequence[int], newest: int | None) -> dict[str, str]:
    """Return a dict: each of ``events`` → the filter for a program's own threads.

    ``tids``: the program's threads. ``newest``: the highest thread number when ``tids`` was read. If low numbers are
    used again, ``newest`` is None, and the filters select all threads of the host.
    """
    only = "" if newest is None else f"({_numbers(tids, newest)})"
    waits = " && ".join(f"op != {op}" for op in _WAKES)
    futex = f"{waits} && {only}" if only else waits
    return {title: futex if title == _FUTEX else only for title in events}


def _numbers(tids: Sequence[int], newest: int) -> str:
    """Return the filter for the threads ``tids`` and for all threads with numbers above ``newest``. Many numbers become
    a few ranges, which may include numbers of other threads."""
    ranges = [[tid, tid] for tid in sorted(set(tids))]
    while len(ranges) > MOST_RANGES:
        place = min(range(1, len(ranges)), key=lambda at: ranges[at][0] - ranges[at - 1][1])
        ranges[place - 1][1] = ranges.pop(place)[1]
    some = [
        f"common_pid == {low}" if low == high else f"(common_pid >= {low} && common_pid <= {high})"
        for low, high in ranges
    ]
    return " || ".join((*some, f"common_pid > {newest}"))


def _here(
    root: HostRoot,
    folder: str,
    groups: Mapping[str, tuple[str, ...]],
    filters: Mapping[str, str],
    missing: dict[str, str],
) -> dict[str, str]:
    """Return the events of ``groups`` that this kernel has, with their filters. Add the events that it lacks to
    ``missing``."""
    found = {}
    for system, names in groups.items():
        for name in names:
            title = f"{system}:{name}"
            if root.is_dir(f"{folder}/events/{system}/{name}"):
                found[title] = filters.get(title, "")
            else:
                missing[title] = _WITHOUT.get(system, _NOT_HERE)
    return found


def stack_trigger(tids: Sequence[int], switch: EventFormat) -> str:
    """Return the trigger that records a kernel stack when a thread loses its CPU.

    ``tids``: the threads. The trigger ignores a thread that sleeps until a set time or waits for a message. Such sleeps
    are frequent. Each recorded stack delays the next thread on the CPU by some µs. Raise ValueError if the event format
    ``switch`` has no task state for these sleeps.
    """
    sleeps = next((state for state, letter in switch.symbols.items() if letter == _SLEEPS), None)
    if sleeps is None:
        raise ValueError("the kernel does not say which values of prev_state mean sleep")
    return f"stacktrace if ({' || '.join(f'prev_pid == {tid}' for tid in tids)}) && prev_state != {sleeps}"


def _vectors(root: HostRoot, folder: str) -> tuple[str, ...]:
    """Return the kernel's events for interrupt vectors: an entry and an exit event for each vector.

    If the kernel lacks the entry event or the exit event of a vector, leave the vector out.
    """
    names = set(root.folders(f"{folder}/events/{VECTORS}"))
    return tuple(
        f"{name}_{ending}"
        for name in sorted(name.removesuffix("_entry") for name in names if name.endswith("_entry"))
        for ending in ("entry", "exit")
        if f"{name}_exit" in names
    )
