"""Choose the hot CPUs for ``status``, ``plan`` and ``apply``.

Hot CPUs are kept free for the latency-critical threads.

- The workshop chooses whole cores, with all their hardware threads (:func:`whole_cores`).
- A measured thread gets the first thread of a core; the other threads of this core stay idle.
- On a host of two cores, only one core can be hot. Two threads that exchange messages then use both threads of this
  core.
- A user may name the hot CPUs (``--cpus``), or this host may have isolated CPUs. Then only these CPUs are hot. The
  siblings of these CPUs are not hot, but they are also kept free of other work (``tuning.context.Host.kept_clear``). A
  note states this.
"""

from __future__ import annotations

import os
from typing import Literal

from jitter_workshop import paths
from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.host.cpu.topology import read_isolation, read_topology
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Topology
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import ID, clean

SIBLINGS = "every other CPU is a sibling of a hot CPU"
KEPT_FREE = "so the workshop keeps other work off"
HotCpusSource = Literal["asked", "class", "isolated", "tickless", "placement"]


@dataclass(frozen=True, slots=True)
class HotCpus:
    """Hold the chosen hot CPUs.

    - ``cpus``: at least one CPU; all are online.
    - ``why``: the reason for the choice, as a sentence.
    - ``source``: the reason as one word.
    - ``note``: a problem with the choice, or "".
    """

    cpus: CpuSet
    why: str
    source: HotCpusSource
    note: str = ""


def choose_hot(root: HostRoot, asked: str | None, topology: Topology | None = None) -> HotCpus:
    """Return the hot CPUs of a host, with the reason for their choice.

    ``asked``: a list of CPUs, which become the hot CPUs. If it is None, the first of these sets that is not empty is
    used:

    - the hot CPUs in this host's class file, if several users share this host as a class;
    - the isolated CPUs;
    - the tickless CPUs;
    - the cores on which the workshop would place the threads of the workload ``ring``.

    ``topology``: the host's CPUs; None to read them. Raise UsageError if ``asked`` is not a CPU list. Raise HostError
    if a CPU in ``asked`` is not online, or if the host shows no CPU.
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
        return HotCpus(hot, "--cpus names them", "asked", _note(machine, hot, another_choice=True))
    of_class = class_cpus(root) & online
    if of_class:
        return HotCpus(of_class, f"{paths.CLASS_FILE} names them", "class", _note(machine, of_class))
    isolation = read_isolation(root)
    isolated = isolation.isolated & online
    if isolated:
        by = "isolcpus" if isolated == (isolation.boot or CpuSet()) & online else "a control group"
        why = f"isolated from the scheduler by {by}"
        return HotCpus(isolated, why, "isolated", _note(machine, isolated))
    tickless = (isolation.nohz_full or CpuSet()) & online
    if tickless:
        return HotCpus(tickless, "these CPUs are tickless (nohz_full)", "tickless", _note(machine, tickless))
    hot, why = _placed(root, machine)
    return HotCpus(hot, why, "placement", _note(machine, hot))


def whole_cores(machine: Topology, threads: CpuSet) -> CpuSet:
    """Return ``threads`` with their online siblings. If no other CPU would be left, return ``threads`` alone.

    Source: Documentation/admin-guide/cpu-isolation.rst (Checklist: SMT).
    """
    cores = threads | machine.siblings_of(threads)
    return cores if machine.online - cores else threads


def class_cpus(root: HostRoot) -> CpuSet:
    """Return the hot CPUs in this host's class file. Return no CPUs if this host is no class host (a machine that
    several users share). Raise the errors of ``class_host``."""
    if root.recorded or not os.path.exists(paths.CLASS_FILE):  # noqa: PTH110 - quick
        return CpuSet()
    from jitter_workshop.flow.turns.classhost import class_host

    found = class_host()
    return found.described.hot_cpus if found is not None else CpuSet()


def cpus_of_option(text: str) -> CpuSet:
    """Return the CPUs that ``--cpus`` names. Raise UsageError if the text is no list, or an empty one."""
    try:
        cpus = CpuSet.parse_list(text)
    except ValueError:
        raise UsageError(f"--cpus takes a list such as 2-3,6, not '{clean(text, ID)}'") from None
    if not cpus:
        raise UsageError("--cpus names no CPU", "name at least one, such as --cpus 2-3")
    return cpus


def _asked(text: str, machine: Topology) -> CpuSet:
    hot = cpus_of_option(text)
    missing = hot - machine.online
    if missing:
        offline = CpuSet.of(c.id for c in machine.cpus) & missing
        what = f"CPU {offline} is offline" if offline else f"this host has no CPU {missing}"
        raise HostError(what, f"CPUs online: {machine.online}")
    return hot


def _placed(root: HostRoot, machine: Topology) -> tuple[CpuSet, str]:
    """Return the cores on which the workshop would place the ring, and the reason for them. If this process may use
    only one CPU, take the placement of the workload ``spin``."""
    from jitter_workshop.bench.placement import BESIDE_CPU_0, Wish, choose_cpus, how_near
    from jitter_workshop.flow.host_ops.known_lines import known_lines

    allowed = machine.allowed or machine.online
    wish = Wish(workload="ring" if len(allowed) > 1 else "spin")
    placement = choose_cpus(machine, wish, lines=known_lines(root, machine))
    threads = CpuSet(placement.hot)
    hot = whole_cores(machine, threads) if _first_threads(machine, threads) else threads
    if len(machine.online) == 1:
        return hot, "it is the only CPU"
    if placement.producer is None:
        return hot, "this process may use only this CPU"
    if placement.producer not in hot:
        return (
            hot,
            f"CPU {placement.producer} is left to the ring's producer and to other tasks, which may use CPU {hot} "
            "until it is isolated",
        )
    beside_0 = 0 in machine.siblings_of(threads)
    away = BESIDE_CPU_0 if beside_0 else "away from CPU 0" if 0 not in threads else ""
    there = "there" if hot == threads else f"on CPU {threads}"
    near = ", ".join(filter(None, (how_near(machine, threads), away, placement.line)))
    return hot, f"the workshop would place its threads {there}: {near}"


def _first_threads(machine: Topology, threads: CpuSet) -> bool:
    """Return True if ``threads`` and all their siblings can be hot CPUs together. This is so if the first CPU of each
    of their cores is in ``threads``. It is also so if all of ``threads`` are CPUs of one core without CPU 0.

    A hot CPU that is not its core's first one looks like an idle sibling to the tunables. The placement chooses such a
    CPU if the core's first CPU is CPU 0. The placement also chooses such a CPU if this process may not use the core's
    first CPU.
    """
    cores = [cpu.smt_siblings for number in threads if (cpu := machine.cpu(number)) is not None]
    together = len(set(cores)) == 1 and 0 not in machine.siblings_of(threads)
    return together or all(core.cpus[0] in threads for core in cores)


def _note(machine: Topology, hot: CpuSet, *, another_choice: bool = False) -> str:
    """Return a note on problems with the hot CPUs, or on siblings that must stay free. Return "" if there is nothing to
    note. ``another_choice``: True if the note may suggest one whole core in place of ``hot``. The note makes this
    suggestion if only siblings of ``hot`` are left for other work."""
    online, siblings = machine.online, machine.siblings_of(hot)
    if hot == online:
        return "every online CPU is hot, so no CPU is left for housekeeping and no work can be moved away"
    notes = []
    if 0 in hot and len(online) > 1:
        notes.append("CPU 0 is hot, but some kernel work cannot be moved away from it")
    if not online - hot - siblings:
        rest, slowed = online - hot, "this hot CPU" if len(hot) == 1 else "the hot CPUs"
        other = _whole_core(machine, hot) if another_choice else CpuSet()
        spare = "; 'status smt' shows which siblings can be spared" if len(rest) > 1 else ""
        spare = f"; --cpus {other} takes one whole core and leaves the others" if other else spare
        notes.append(f"{SIBLINGS}: tasks on CPU {rest} slow {slowed} down{spare}")
    elif siblings:
        one = len(siblings) == 1
        shares, them = ("shares a core with a hot CPU", "it") if one else ("share cores with hot CPUs", "them")
        notes.append(f"CPU {siblings} {shares}, {KEPT_FREE} {them}, too")
    return "; ".join(notes)


def _whole_core(machine: Topology, hot: CpuSet) -> CpuSet:
    """Return the CPUs of a core with a hot CPU, if other cores remain for housekeeping. A core without CPU 0 is
    preferred. Return no CPUs if there is no such core."""
    cores = [whole_cores(machine, CpuSet((cpu,))) for cpu in hot]
    free = [core for core in cores if not machine.siblings_of(core)]
    return min(free, key=lambda core: (0 in core, core.cpus), default=CpuSet())
