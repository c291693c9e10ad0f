"""Say what load a host carries before anything is measured."""

from __future__ import annotations

from collections import Counter

from jitter_workshop.model.evidence import load_called
from jitter_workshop.model.host_load import HostLoad
from jitter_workshop.model.text import ID, cleaned_sentence, many
from jitter_workshop.presenter.text.lines import Lines, wrap

ALL_THE_SAME = "You can still learn here: each verdict names the load of its runs."
MOST_NAMES = 2
LOOKING = "Looking at the load for a second or two…"
UNKNOWN = "The load of this host cannot be read now."


def load_told(load: HostLoad | None) -> str:
    """Return the load of a host, such as ``Load 4.9 on 2 CPUs; qemu takes 87 % of one CPU.`` If the load hides the
    effects of the lessons, a sentence follows that says what the learner can do all the same. ``load``: None if the
    load cannot be read."""
    if load is None:
        return UNKNOWN
    return f"{load_sentence(load)} {ALL_THE_SAME}" if load.drowns else load_sentence(load)


def load_in_short(load: HostLoad) -> str:
    """Return a load in one row before a run, such as ``Load 4.9 on 2 CPUs, most from qemu: the run will show it.`` The
    task is named if it takes at least half of the time that all other tasks take."""
    cpus = many(load.cpus, "CPU")
    whole = f"Other tasks take {load.busy_percent:.0f} % of {cpus}"
    told = whole if load.average is None else f"Load {load.average:.1f} on {cpus}"
    name, percent = next(iter(_shares(load)), ("", 0.0))
    most = f", most from {name}" if name and percent / load.cpus >= load.busy_percent / 2 else ""
    return f"{told}{most}: the run will show it."


def load_sentence(load: HostLoad) -> str:
    """Return the load in one sentence: the average, then the tasks, then the hypervisor."""
    average = "" if load.average is None else f"Load {load.average:.1f} on {many(load.cpus, 'CPU')}"
    parts = _named(load)
    named_percent = sum(task.cpu_percent for task in load.tasks) / load.cpus
    if not parts or named_percent < load.busy_percent / 2:
        whose = "of the CPU" if load.cpus == 1 else f"of the {load.cpus} CPUs"
        parts.append(f"{'in all, ' if parts else ''}other tasks take {load.busy_percent:.0f} % {whose}")
    if load.steal_percent:
        parts.append(f"the hypervisor takes {load.steal_percent:.1f} %")
    told = "; ".join([*filter(None, [average]), *parts])
    return cleaned_sentence(told) if not average else f"{told}."


def told(load: HostLoad, width: int) -> Lines:
    """Return the lines on the load that the plain walk shows once."""
    return [*wrap(load_told(load), width, "! ", "  "), *wrap("Type load to look again.", width, "  ")]


def _named(load: HostLoad) -> list[str]:
    """Return the tasks that took most CPU time, as words."""
    tasks = Counter(load_called(task, ID) for task in load.tasks)
    return [
        f"{name} takes {percent:.0f} % of one CPU" if number == 1 else f"{number} × {name} take {percent:.0f} %"
        for name, percent in _shares(load)[:MOST_NAMES]
        for number in (tasks[name],)
    ]


def _shares(load: HostLoad) -> list[tuple[str, float]]:
    """Return (name, CPU time in per cent of one CPU) of the named tasks, the largest first. Tasks with the same name
    are added up."""
    shares: dict[str, float] = {}
    for task in load.tasks:
        name = load_called(task, ID)
        shares[name] = shares.get(name, 0) + task.cpu_percent
    return sorted(shares.items(), key=lambda one: -one[1])
