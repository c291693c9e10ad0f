"""Define the tunables that take CPUs offline. One takes the siblings of hot CPUs offline. The other takes hot CPUs
offline and brings them back at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.host.cpu.topology import CPU_DIR
from jitter_workshop.host.root import printable
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.status import Assessment
from jitter_workshop.model.text import MOST_ENTRIES, WORD
from jitter_workshop.tuning.base import Tunable, Unavailable, Write, left_for_the_rest
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.setting_types.cpu import CYCLED
from jitter_workshop.tuning.setting_types.kinds import kind_of
from jitter_workshop.tuning.tunables.hotplug_side_effects import OWNS as DISPLACED
from jitter_workshop.tuning.tunables.hotplug_side_effects import displaced
from jitter_workshop.tuning.tunables.single import one_of

SMT_CONTROL = f"{CPU_DIR}/smt/control"


class Smt(Tunable):
    id = "smt"
    title = "SMT siblings of hot CPUs"
    why = (
        "The two threads of a core share its execution units and first-level caches. So work on a hot CPU's sibling "
        "slows the hot CPU down. The scheduler's statistics do not show this effect."
    )
    danger = "the other CPUs also do the siblings' work; 'off' disables one thread of every core"
    risk = "medium"
    document = "Documentation/ABI/testing/sysfs-devices-system-cpu"
    owns = (f"{CPU_DIR}/cpu*/online", SMT_CONTROL, *DISPLACED)
    default = "siblings"
    values = "siblings (of the hot CPUs) or off (for every core)"

    def judge(self, host: Host) -> Assessment:
        both = _shared(host)
        if both and not host.hot_siblings:
            others = {host.core(cpu) for cpu in host.not_hot}
            two = "two threads that exchange messages need both CPUs, and on one core each thread slows the other down"
            fix = "choose the threads of two cores as hot CPUs" if len(others) > 1 else ""
            reason = f"CPU {both} belong to one core, and no other core is hot: {two}"
            return self.answer("info", "shared", reason, wanted="two hot cores", fix=fix)
        siblings = _siblings(host)
        if not siblings:
            if host.guest:
                reason = (
                    "this guest sees no siblings; only its hypervisor knows whether these CPUs share cores with others"
                )
                return self.answer("info", "none shown", reason, only_host=True)
            if not any(host.root.text(f"{CPU_DIR}/cpu{cpu}/topology/core_id") for cpu in host.hot):
                return self.answer("unavailable", None, "this host does not show which CPUs share a core")
            return self.answer("ok", "idle", "no other thread runs on the hot CPUs' cores")
        paths = [_online_path(cpu) for cpu in siblings.cpus[:MOST_ENTRIES]]
        if not siblings - host.isolation.isolated:
            reason = f"the siblings, CPU {siblings}, are isolated too: only tasks that are placed on them run there"
            return self.answer("ok", "isolated", reason, wanted="idle", paths=paths)
        reason = f"the scheduler puts work on the hot CPUs' siblings, CPU {siblings}"
        try:
            _spare_siblings(host)
        except Unavailable as refusal:
            fix = "choose hot CPUs whose siblings you can spare, or leave the siblings without work"
            return self.answer("info", "in use", f"{reason}; {refusal.reason}", wanted="idle", paths=paths, fix=fix)
        return self.answer("improve", "in use", reason, wanted="idle", paths=paths)

    def writes(self, host: Host, value: str | None) -> Sequence[Write]:
        wanted = one_of(self, value, ("siblings", "off"))
        left_for_the_rest(host)
        if wanted == "off":
            return self._off(host)
        if not _siblings(host):
            return []
        going = _spare_siblings(host)
        offline = [Write(_online_path(cpu), "1", "0", "number") for cpu in going]
        return [*displaced(host, going, host.housekeeping - going), *offline]

    def takes_offline(self, host: Host, value: str | None) -> CpuSet:
        if not self.writes(host, value):
            return CpuSet()
        return host.second_threads if value == "off" else _spare_siblings(host)

    def _off(self, host: Host) -> list[Write]:
        reading = host.root.reading(SMT_CONTROL)
        control = printable(reading.text or "", WORD)
        if control == "off":
            return []
        # A number of threads a core (from 6.6) can be changed as well; forceoff and notsupported cannot.
        if control != "on" and not control.isdigit():
            why = f"the kernel says {control}" if control else f"{SMT_CONTROL}: {reading.reason or 'is empty'}"
            raise Unavailable(f"SMT cannot be switched on or off on this host: {why}")
        leaving = host.second_threads
        offline = (host.root.cpu_list(f"{CPU_DIR}/present") or host.online) - host.online
        if offline:
            raise Unavailable(
                f"CPU {offline} are offline already: when SMT is switched on again, these CPUs would also come online"
            )
        working = leaving & host.hot - host.hot_siblings
        if working:
            many = "are hot and also the second threads of their cores: they"
            how = "is hot and also the second thread of its core: it" if len(working) == 1 else many
            raise Unavailable(f"CPU {working} {how} would go offline")
        held = leaving & (host.isolation.partitions or CpuSet())
        if held:
            raise Unavailable(_held(held))
        if not leaving:
            return []
        stay = host.housekeeping - leaving
        if not stay:
            raise Unavailable("with SMT off, no CPU would be left for other work")
        return [*displaced(host, leaving, stay), Write(SMT_CONTROL, control, "off")]


class Hotplug(Tunable):
    """Take hot CPUs offline and bring them back online. The state is never *ok*, because the host does not show if its
    CPUs were taken offline and brought back before.
    """

    id = "hotplug"
    title = "Hot CPUs taken offline and back"
    why = (
        "When a CPU goes offline, its timers, interrupts and tasks move to other CPUs. Most of them stay there when "
        "the CPU comes back online. So the CPU also loses work that no setting can move."
    )
    danger = (
        "each time a CPU goes offline or comes back, all CPUs stop for a moment; interrupts and tasks that were bound "
        "to the CPU are afterwards bound to others"
    )
    risk = "medium"
    document = "Documentation/core-api/cpu_hotplug.rst"
    owns = (f"{CPU_DIR}/cpu*/online", *DISPLACED)

    def judge(self, host: Host) -> Assessment:
        self._check(host)
        reason = "a hot CPU that goes offline and back before a run leaves its timers and interrupts to the other CPUs"
        return self.answer("info", None, reason, paths=[_online_path(cpu) for cpu in host.hot.cpus[:MOST_ENTRIES]])

    def writes(self, host: Host, value: str | None) -> Sequence[Write]:
        stay = self._check(host)
        cycle = kind_of("cpu-cycle")
        return [
            *displaced(host, host.hot, stay),
            *(
                Write(_online_path(cpu), cycle.read(host.root, _online_path(cpu)).text or "", CYCLED, "cpu-cycle")
                for cpu in _removable(host, host.hot)
            ),
        ]

    def _check(self, host: Host) -> CpuSet:
        """Return the CPUs that take over the work while the hot CPUs are offline. Raise Unavailable if no hot CPU can
        go offline."""
        rest = left_for_the_rest(host)
        if not _removable(host, host.hot):
            raise Unavailable(f"CPU {host.hot} cannot be taken offline on this host")
        held = host.hot & (host.isolation.partitions or CpuSet())
        if held:
            raise Unavailable(
                f"an isolated cpuset contains CPU {held} and would no longer work: apply the tunable hotplug first, "
                "then isolation"
            )
        return rest


def _siblings(host: Host) -> CpuSet:
    """Return the siblings of the latency-critical threads' CPUs. Some of these siblings may be hot."""
    return host.siblings | host.hot_siblings


def _spare_siblings(host: Host) -> CpuSet:
    """Return the siblings that can go offline.

    Raise Unavailable if no sibling can be taken offline, or if no housekeeping CPU would be left. Also raise it if a
    sibling belongs to an isolated cpuset. Raise it, too, if there is only one hot core, and two threads that
    communicate need both of its CPUs.
    """
    both, siblings = _shared(host), _siblings(host)
    if both and not host.hot_siblings:
        raise Unavailable(f"CPU {both} are the only hot core, and two threads that exchange messages need both")
    going = _removable(host, siblings)
    if siblings and not going:
        raise Unavailable(f"CPU {siblings} cannot be taken offline on this host")
    held = going & (host.isolation.partitions or CpuSet())
    if held:
        raise Unavailable(_held(held))
    if not host.housekeeping - going:
        raise Unavailable(f"without CPU {going} no CPU would be left for other work")
    return going


def _held(cpus: CpuSet) -> str:
    return (
        f"CPU {cpus} already belongs to an isolated cpuset: restore the tunable isolation, apply smt, then apply "
        "isolation again"
    )


def _removable(host: Host, cpus: CpuSet) -> CpuSet:
    """Return the CPUs in ``cpus`` that are online and can be taken offline. The first CPU often cannot."""
    return CpuSet.of(cpu for cpu in cpus if host.root.text(_online_path(cpu)) == "1")


def _online_path(cpu: int) -> str:
    return f"{CPU_DIR}/cpu{cpu}/online"


def _shared(host: Host) -> CpuSet:
    """Return the hot CPUs that share a core with another hot CPU."""
    return CpuSet.of(cpu for cpu in host.hot if len(host.core(cpu) & host.hot) > 1)
