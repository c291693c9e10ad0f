"""Call every reader of ``host`` once: a recording has to give the same answers as its host.

A reader is a function ``read_…`` that takes the root alone, or the root and ``cpu`` or ``release``. A new one is
found by its name.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module

import jitter_workshop.host as package
from jitter_workshop.host.cpu.cpufreq import policy_folders, read_policy
from jitter_workshop.host.cpu.topology import read_topology
from jitter_workshop.host.irq.irq_affinity import read_effective, read_irqs, read_movable
from jitter_workshop.host.kernel.release import read_kernel
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.summary import summarise_host
from jitter_workshop.host.tasks.listing import each_thread, read_allowed_cpus
from jitter_workshop.model.cpuset import CpuSet

_SUPPLIED = ((), ("cpu",), ("release",))


def readers() -> Iterator[tuple[str, Callable[..., object], tuple[str, ...]]]:
    """Yield (package.module.name, function, arguments besides the root, as in _SUPPLIED) of each reader."""
    top = f"{package.__name__}."
    for module_info in sorted(pkgutil.walk_packages(package.__path__, top), key=lambda m: m.name):
        module = import_module(module_info.name)
        for name, function in sorted(vars(module).items()):
            if not name.startswith("read_") or not inspect.isfunction(function):
                continue
            if function.__module__ != module.__name__:
                continue
            first, *rest = inspect.signature(function).parameters.values()
            needed = tuple(p.name for p in rest if p.default is inspect.Parameter.empty)
            if first.name == "root" and needed in _SUPPLIED:
                yield f"{module_info.name.removeprefix(top)}.{name}", function, needed


def gather(root: HostRoot) -> dict[str, object]:
    """Return each reader's result by ``package.module.name`` (for a reader of one CPU: a dict by CPU)."""
    cpus = read_topology(root).cpus
    supplies: dict[str, object] = {"release": read_kernel(root).release}
    found: dict[str, object] = {"summary.summarise_host": summarise_host(root)}
    for name, function, needed in readers():
        if needed == ("cpu",):
            found[name] = {cpu.id: function(root, cpu.id) for cpu in cpus}
        else:
            found[name] = function(root, *(supplies[what] for what in needed))
    found["tasks.listing.read_allowed_cpus"] = {t.tid: read_allowed_cpus(root, t) for t in each_thread(root)}
    policies = policy_folders(root, CpuSet.of(cpu.id for cpu in cpus))
    found["cpu.cpufreq.read_policy"] = {folder: read_policy(root, folder) for folder in policies}
    irqs = [irq.number for irq in read_irqs(root)]
    for of_an_irq in (read_effective, read_movable):
        found[f"irq.irq_affinity.{of_an_irq.__name__}"] = {number: of_an_irq(root, number) for number in irqs}
    return found
