"""Write each change of a plan as one line for root's shell.

A learner types these lines by hand, while the workshop checks that each setting gets its planned value. ``plan_script``
writes the same changes as a script, which reads each setting before it writes the setting.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from jitter_workshop.model.change import Change
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.report.plan_script import CALL_PATH, FORMS, TASK_PATH, quote
from jitter_workshop.tuning.ordering import ordered, ordering_facts
from jitter_workshop.tuning.setting_types.system import setting

_FILES = frozenset(
    {
        *FORMS,
        *("frequency-limit", "workqueue-mask", "irq-across", "mask-across", "cgroup-cpus"),
    }
)
"""The kinds of setting that are one file. The line writes the change's value to this file as it is."""
_PLAIN = re.compile(r"[A-Za-z0-9_./:,+@%-]+")
_SETS = "/sys/fs/cgroup/cpuset"


def shell_line(change: Change) -> str:
    """Return the line of shell that makes a change; "" if no line can make it."""
    kind, path, value = change.kind, _word(change.path), change.after
    task, call = TASK_PATH.fullmatch(change.path), CALL_PATH.fullmatch(change.path)
    if kind in _FILES:
        return _echo(value.strip(), path)
    if kind in ("cgroup", "folder"):
        return f"{'rmdir' if value == 'absent' else 'mkdir'} {path}"
    if kind == "controllers":
        return _echo(f"{'+' if value else '-'}cpuset", path)
    if kind == "cpuset":
        return _set(change.path, value)
    if kind == "watchdog":
        soft, nmi = int("soft=1" in value), int("nmi=1" in value)
        folder = change.path.rpartition("/")[0]
        writes = (("soft_watchdog", soft), ("nmi_watchdog", nmi), (change.path.rpartition("/")[2], soft | nmi))
        return "; ".join(_echo(str(number), _word(f"{folder}/{name}")) for name, number in writes)
    if kind == "dirty-limit":
        place = change.path if value.endswith("%") else f"{change.path.removesuffix('_ratio')}_bytes"
        return _echo(value.rstrip("%"), _word(place))
    if kind in ("affinity", "affinity-across", "irq-thread") and task is not None:
        return f"taskset -pc {_word(_list(value))} {task[1]}"
    if kind == "task-cgroup" and task is not None:
        return _echo(task[1], _word(f"{_SETS}{value.rstrip('/')}/tasks"))
    if kind == "grub":
        return _grub(value, path)
    if kind == "grubby" and call is not None:
        added = f" --args={quote(value)}" if value else ""
        return f"grubby --update-kernel=ALL --remove-args={_word(call[1].replace('+', ' '))}{added}"
    if kind == "unit" and call is not None:
        return f"systemctl {'start' if value == 'active' else 'stop'} {_word(call[1])}"
    return ""


def move_tasks_line(changes: Sequence[Change]) -> str:
    """Return one shell line that moves the tasks of several changes to one cgroup v1 set. All changes must name this
    set. If a task has already ended, the shell goes on with the next task.
    """
    tasks = [found[1] for one in changes if (found := TASK_PATH.fullmatch(one.path))]
    place = _word(f"{_SETS}{changes[0].after.rstrip('/')}/tasks")
    return f"for task in {' '.join(tasks)}; do echo $task > {place}; done"


def moves_alike(change: Change) -> tuple[str, str] | None:
    """Return (old set, new set) for a change that moves a task; None for any other change. Changes with the same two
    sets can share one line (:func:`move_tasks_line`)."""
    moves = change.kind == "task-cgroup" and TASK_PATH.fullmatch(change.path) is not None
    return (change.before, change.after) if moves else None


def way_back(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Return changes that restore the old values, in an order that works. For example, a CPU comes online before a
    change that needs this CPU."""
    back = [dataclasses.replace(one, before=one.after, after=one.before) for one in reversed(changes)]
    places = ordered([ordering_facts(one.path, one.kind, one.after) for one in back])
    return tuple(dataclasses.replace(back[place], n=n) for n, place in enumerate(places, start=1))


def _echo(value: str, place: str) -> str:
    # Not every echo prints these values as they are.
    plain = value and not value.startswith("-") and "\\" not in value
    said = f"echo {_word(value)}" if plain else f"printf '%s\\n' {_word(value)}"
    return f"{said} > {place}"


def _grub(value: str, path: str) -> str:
    """Return the shell line that writes the workshop's GRUB settings file. ``value``: the kernel parameters; "" to
    remove the file. Return "" if a user has changed the file: its exact text is then not known, so no line can write
    it."""
    try:
        return f"printf '%s\\n' {quote(setting(value))} > {path}" if value else f"rm {path}"
    except OSError:
        return ""


def _set(path: str, value: str) -> str:
    """Return the shell line that makes or removes a cgroup v1 set. ``value``: ``absent`` to remove the set, else its
    CPUs and memory nodes, such as ``cpus 0-2 mems 0``."""
    words = value.split(" ")
    if value == "absent":
        return f"rmdir {_word(path)}"
    cpus, nodes = _echo(words[1], _word(f"{path}/cpuset.cpus")), _echo(words[-1], _word(f"{path}/cpuset.mems"))
    return f"mkdir {_word(path)}; {cpus}; {nodes}"


def _list(value: str) -> str:
    """Return a CPU list in the form in which the kernel shows it."""
    cpus = CpuSet.if_list(value)
    return value if cpus is None else str(cpus)


def _word(text: str) -> str:
    """Return ``text`` as one word of the shell. It is quoted only if it needs quotes."""
    return text if _PLAIN.fullmatch(text) else quote(text)
