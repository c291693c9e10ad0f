"""Find services that rewrite settings, and services that take CPU time unexpectedly.

Services are found by the names of their tasks. A task chooses its own name, so the name is a hint and no proof. On a
host with systemd, services are also found by the active units. Each active unit has a link in /run/systemd/units, so
this module need not run systemctl.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.listing import Task, each_process
from jitter_workshop.model.record import dataclass

ServiceKind = Literal["tuner", "load"]

UNITS_DIR = "/run/systemd/units"
_LINK = "invocation:"
_COMM_LENGTH = 15
"""The length to which the kernel cuts a task's name (TASK_COMM_LEN − 1)."""


@dataclass(frozen=True, slots=True)
class KnownService:
    """Describe a service that this tool knows.

    - ``name``: the service's common name.
    - ``kind``: ``tuner`` if the service changes the same settings as this tool; ``load`` if the service changes no
      settings, but takes CPU time.
    - ``does``: what the service does, in a few words.
    - ``tasks``: the names of its tasks.
    - ``unit``: its systemd unit.
    """

    name: str
    kind: ServiceKind
    does: str
    tasks: tuple[str, ...] = ()
    unit: str = ""


def _known(name: str, kind: ServiceKind, does: str, *tasks: str, unit: str = "") -> KnownService:
    return KnownService(name, kind, does, tuple(t[:_COMM_LENGTH] for t in tasks), unit or f"{name}.service")


KNOWN: tuple[KnownService, ...] = (
    _known("irqbalance", "tuner", "moves interrupts between CPUs", "irqbalance"),
    _known("tuned", "tuner", "sets governors, sysctls and affinities of its profile", "tuned"),
    _known("tuned-ppd", "tuner", "changes the profile of tuned", "tuned-ppd"),
    _known("power-profiles-daemon", "tuner", "sets the energy preference and boost", "power-profiles-daemon"),
    _known("tlp", "tuner", "sets governors, boost and PCIe power at each change of power supply", "tlp-pd"),
    _known("thermald", "tuner", "limits frequency and power to keep the host cool", "thermald"),
    _known("auto-cpufreq", "tuner", "sets governors and boost by load", "auto-cpufreq"),
    _known("cpufreqd", "tuner", "sets governors by rules of its own", "cpufreqd"),
    _known("cpupower", "tuner", "sets the governor at boot"),
    _known("laptop-mode", "tuner", "sets governors and writeback by power supply", unit="laptop-mode.service"),
    _known(
        "system76-power", "tuner", "sets governors and boost", "system76-power", unit="com.system76.PowerDaemon.service"
    ),
    _known("gamemode", "tuner", "sets the governor while a game runs", "gamemoded", unit="gamemoded.service"),
    _known("numad", "tuner", "moves processes and memory between nodes", "numad"),
    _known("ksmtuned", "tuner", "switches KSM on and off", "ksmtuned"),
    _known("rtirq", "tuner", "sets priorities of interrupt threads at boot"),
    _known("kubelet", "load", "runs pods, and sets the cgroups of all pods", "kubelet"),
    _known("docker", "load", "runs containers", "dockerd"),
    _known("containerd", "load", "runs containers", "containerd"),
    _known("crio", "load", "runs containers", "crio"),
    _known("libvirt", "load", "runs virtual machines", "libvirtd", "virtqemud", unit="libvirtd.service"),
    _known("cron", "load", "starts jobs at set times", "cron", "crond"),
    _known("snapd", "load", "refreshes packages in the background", "snapd"),
    _known("packagekit", "load", "refreshes packages in the background", "packagekitd"),
    _known("unattended-upgrades", "load", "installs updates in the background", "unattended-upgr", "apt.systemd.dai"),
    _known("fwupd", "load", "looks for firmware updates", "fwupd"),
    _known("auditd", "load", "logs system calls", "auditd"),
    _known("osqueryd", "load", "queries the whole host periodically", "osqueryd"),
    _known("netdata", "load", "samples the whole host every second", "netdata"),
    _known("collectd", "load", "samples the whole host periodically", "collectd"),
    _known("telegraf", "load", "samples the whole host periodically", "telegraf"),
    _known("pcp", "load", "samples the whole host periodically", "pmlogger", "pmcd", unit="pmcd.service"),
    _known("node-exporter", "load", "reads the whole host when asked", "node_exporter", "prometheus-node"),
)
"""The services that this tool knows. A service is found by a task's name, by its active systemd unit, or by both."""

SERVICE_TASKS: frozenset[str] = frozenset(task for service in KNOWN for task in service.tasks)
SERVICE_UNITS: frozenset[str] = frozenset(service.unit for service in KNOWN)


@dataclass(frozen=True, slots=True)
class RunningService:
    """Hold a known service that runs on this host.

    - ``pids``: the ids of its processes; () if only its unit is active. Some services do their work and exit.
    - ``unit_active``: True if its systemd unit is active; None on a host without systemd.
    """

    service: KnownService
    pids: tuple[int, ...]
    unit_active: bool | None

    @property
    def name(self) -> str:
        return self.service.name


@dataclass(frozen=True, slots=True)
class Services:
    """Hold the known services that run on this host. ``running``: these services in the order of ``KNOWN``, which
    begins with the tuners. ``systemd``: True if systemd runs this host. ``init``: the name of process 1, None if it
    cannot be read."""

    running: tuple[RunningService, ...]
    systemd: bool
    init: str | None

    @property
    def tuners(self) -> tuple[RunningService, ...]:
        return tuple(s for s in self.running if s.service.kind == "tuner")

    @property
    def loads(self) -> tuple[RunningService, ...]:
        return tuple(s for s in self.running if s.service.kind == "load")

    def find(self, name: str) -> RunningService | None:
        """Return the running service with this name; None if it does not run."""
        return next((s for s in self.running if s.name == name), None)


def read_services(root: HostRoot, tasks: Iterable[Task] | None = None) -> Services:
    """Return the known services that run on this host. ``tasks``: all processes, if the caller has read them already;
    otherwise /proc is read."""
    init = read_init(root)
    systemd = systemd_is_process_1(root, init)
    pids: dict[str, list[int]] = {}
    for task in each_process(root) if tasks is None else tasks:
        if task.name in SERVICE_TASKS and not task.kernel and task.tid == task.pid:
            pids.setdefault(task.name, []).append(task.pid)
    active = active_units(root) if systemd else frozenset()
    running: list[RunningService] = []
    for service in KNOWN:
        mine = tuple(sorted(pid for name in service.tasks for pid in pids.get(name, ())))
        if mine or service.unit in active:
            running.append(RunningService(service, mine, service.unit in active if systemd else None))
    return Services(tuple(running), systemd, init)


def read_init(root: HostRoot) -> str | None:
    """Return the name of process 1; None if it cannot be read."""
    return root.word("/proc/1/comm")


def systemd_is_process_1(root: HostRoot, init: str | None) -> bool:
    """Return True if process 1 is systemd. Then the name of process 1 is ``systemd``, and the folder
    /run/systemd/system exists (sd_booted(3)). ``init``: the name of process 1."""
    return init == "systemd" and root.is_dir("/run/systemd/system")


def active_units(root: HostRoot) -> frozenset[str]:
    """Return the names of systemd's active units. Return an empty set if the links to the units cannot be listed."""
    return frozenset(name.removeprefix(_LINK) for name in root.list_dir(UNITS_DIR) if name.startswith(_LINK))
