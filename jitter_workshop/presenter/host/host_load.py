"""Say what load a host carries before anything is measured."""

from __future__ import annotations

from jitter_workshop.model.evidence import load_called
from jitter_workshop.model.host_load import HostLoad
from jitter_workshop.model.text import ID, cleaned_sentence, many
from jitter_workshop.presenter.text.lines import Lines, wrap

EVERYWHERE = "Every chapter that measures here will show this load."
ALL_THE_SAME = "You can still learn here: each verdict names the load that disturbed its runs. Runs may take longer."
MOST_NAMES = 2
KEYS = "Enter goes on · r looks again · ? help"
LOOKING = "Looking at the load for a second or two…"
UNKNOWN = "The load of this host cannot be read now."
GONE = "The load is gone: the chapters show this host as it is."


def load_that_hides(load: HostLoad) -> str:
    """Return the load that hides the effects of the lessons, such as ``Load 4.9 on 2 CPUs; qemu takes 87 % of one CPU.
    Every chapter that measures here will show this load.``"""
    return f"{load_sentence(load)} {EVERYWHERE}" if load.drowns else load_sentence(load)


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
    same = wrap(ALL_THE_SAME, width, "  ") if load.drowns else []
    return [*wrap(load_that_hides(load), width, "! ", "  "), *same, *wrap("Type load to look again.", width, "  ")]


def _named(load: HostLoad) -> list[str]:
    """Return the tasks that took most CPU time, as words. Tasks with the same name are added up."""
    shares: dict[str, list[float]] = {}
    for task in load.tasks:
        shares.setdefault(load_called(task, ID), []).append(task.cpu_percent)
    largest = sorted(shares.items(), key=lambda one: -sum(one[1]))[:MOST_NAMES]
    return [
        f"{name} takes {sum(found):.0f} % of one CPU"
        if len(found) == 1
        else f"{len(found)} × {name} take {sum(found):.0f} %"
        for name, found in largest
    ]
