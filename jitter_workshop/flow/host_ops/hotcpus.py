"""Choose the hot CPUs, which run the latency-critical threads, for ``status``, ``plan`` and ``apply``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from jitter_workshop import paths
from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.host.cpu.topology import read_isolation, read_topology
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Topology
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import clean

Source = Literal["asked", "class", "isolated", "tickless", "placement"]


@dataclass(frozen=True, slots=True)
class HotCpus:
    """Hold the chosen hot CPUs. ``cpus``: at least one, all online. ``why``: the reason for the choice, as a sentence.
    ``source``: the reason as one word. ``note``: a problem with the choice, or ""."""

    cpus: CpuSet
    why: str
    source: Source
    note: str = ""


def choose_hot(root: HostRoot, asked: str | None, topology: Topology | None = None) -> HotCpus:
    """Return the hot CPUs. These are the CPUs in ``asked`` (a CPU list), else the hot CPUs of the class, else the
    isolated ones, else the tickless ones, else those of the ring's placement. ``topology``: given if it is known.

    Raises UsageError for text that is no list, HostError for CPUs that are not online, and if the host shows no CPU.
    """
    machine = topology if topology is not None else read_topology(root)
    online = machine.online
    if not online:
        raise HostError(
            "this host shows nothing about its CPUs",
            "/sys/devices/system/cpu/online and the folders next to it are missing or unreadable",
        )
    if asked is not None:
        hot = _asked(asked, machine)
        return HotCpus(hot, "--cpus names them", "asked", _note(machine, hot))
    of_class = class_cpus(root) & online
    if of_class:
        return HotCpus(of_class, f"{paths.CLASS_FILE} names them", "class", _note(machine, of_class))
    isolation = read_isolation(root)
    isolated = isolation.isolated & online
    if isolated:
        by = "isolcpus" if isolated == (isolation.boot or CpuSet()) & online else "a cgroup partition"
        return HotCpus(isolated, f"they are isolated from the scheduler by {by}", "isolated", _note(machine, isolated))
    tickless = (isolation.nohz_full or CpuSet()) & online
    if tickless:
        return HotCpus(tickless, "they are tickless (nohz_full)", "tickless", _note(machine, tickless))
    hot, why = _placed(machine)
    return HotCpus(hot, why, "placement", _note(machine, hot))


def class_cpus(root: HostRoot) -> CpuSet:
    """Return the hot CPUs of the class on a class host; no CPUs elsewhere. Raises the errors of ``class_host``."""
    if root.recorded or not Path(paths.CLASS_FILE).exists():
        return CpuSet()
    from jitter_workshop.flow.turns.classhost import class_host

    found = class_host()
    return found.described.hot_cpus if found is not None else CpuSet()


def listed(text: str) -> CpuSet:
    """Return the CPUs that ``--cpus`` names, at least one. Raises UsageError."""
    try:
        cpus = CpuSet.parse_list(text)
    except ValueError:
        raise UsageError(f"--cpus takes a list such as 2-3,6, not '{clean(text, 40)}'") from None
    if not cpus:
        raise UsageError("--cpus names no CPU", "name at least one, such as --cpus 2-3")
    return cpus


def _asked(text: str, machine: Topology) -> CpuSet:
    hot = listed(text)
    missing = hot - machine.online
    if missing:
        offline = CpuSet.of(c.id for c in machine.cpus) & missing
        what = f"CPU {offline} is offline" if offline else f"this host has no CPU {missing}"
        raise HostError(what, f"CPUs online: {machine.online}")
    return hot


def _placed(machine: Topology) -> tuple[CpuSet, str]:
    """Return the hot CPUs of the ring's placement, and the reason for them. If only one CPU exists or may be used, the
    placement is that of ``spin``."""
    from jitter_workshop.bench.placement import BESIDE_CPU_0, Wish, choose, how_near

    allowed = machine.allowed or machine.online
    placement = choose(machine, Wish(workload="ring" if len(allowed) > 1 else "spin"))
    hot = CpuSet(placement.hot)
    if len(machine.online) == 1:
        return hot, "it is the only CPU"
    if placement.producer is None:
        return hot, "this process may use only this CPU"
    if placement.producer not in hot:
        return hot, f"the workshop measures there; CPU {placement.producer} sends the messages and does all other work"
    beside_0 = 0 in machine.siblings_of(hot)
    away = BESIDE_CPU_0 if beside_0 else "away from CPU 0" if 0 not in hot else ""
    return hot, f"the workshop would place its threads there: {', '.join(filter(None, (how_near(machine, hot), away)))}"


def _note(machine: Topology, hot: CpuSet) -> str:
    online = machine.online
    if hot == online:
        return "every online CPU is hot, so no CPU is left for housekeeping and nothing can be moved away"
    notes = []
    if 0 in hot and len(online) > 1:
        notes.append("CPU 0 is hot: it boots the machine and keeps work that cannot be moved")
    if not online - hot - machine.siblings_of(hot):
        rest, slowed = online - hot, "it" if len(hot) == 1 else "them"
        spare = "; 'status smt' shows which of them can be spared" if len(rest) > 1 else ""
        notes.append(f"every other CPU is a sibling of a hot one: tasks on CPU {rest} slow {slowed} down{spare}")
    return "; ".join(notes)
