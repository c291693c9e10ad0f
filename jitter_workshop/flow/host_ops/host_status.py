"""Check a host for ``status`` and ``plan``: hot CPUs, every check, drift, and what would be written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jitter_workshop.flow.host_ops.hotcpus import HotCpus, choose_hot
from jitter_workshop.host.cpu.topology import read_topology
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.summary import host_line, summarise
from jitter_workshop.model.assessment import Assessment
from jitter_workshop.model.change import Plan, Wanted
from jitter_workshop.model.host import HostSummary
from jitter_workshop.model.record import dataclass
from jitter_workshop.tuning import status
from jitter_workshop.tuning.base import Tunable
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.tunables import registry

if TYPE_CHECKING:
    from jitter_workshop.tuning.journal import Entry


@dataclass(frozen=True, slots=True)
class HostStatus:
    """Hold the checks of one host: ``checks[i]`` is the assessment of ``tunables[i]`` on ``host``."""

    host: Host
    hot: HotCpus
    tunables: tuple[Tunable, ...]
    checks: tuple[Assessment, ...]

    @property
    def summary(self) -> dict[str, int]:
        return status.summary(self.checks)

    def summarise(self) -> HostSummary:
        """Return the summary of the host, as it is stored with each run."""
        return summarise(self.host.root, self.host.topology)

    @property
    def line(self) -> str:
        """Return its name, its kernel and the host in a line."""
        summary = self.summarise()
        return f"{summary.name} · Linux {summary.kernel} · {host_line(summary)}"

    def groups(self) -> list[tuple[str, list[Assessment]]]:
        """Return the checks by family, in the order of the registry, under the family's heading."""
        found: dict[str, list[Assessment]] = {}
        for tunable, check in zip(self.tunables, self.checks, strict=True):
            found.setdefault(registry.heading(tunable), []).append(check)
        return list(found.items())


def look(root: Path, ids: Sequence[str] = (), cpus: str | None = None) -> HostStatus:
    """Check a host, in the registry's order; with ``ids`` only these checks. Raises UsageError for unknown ids and for
    CPUs that are no list, HostError where the host shows no CPU or not these."""
    chosen = tuple(registry.find(name) for name in ids)
    place = HostRoot(root)
    topology = read_topology(place)
    hot = choose_hot(place, cpus, topology)
    host = Host(place, hot.cpus, topology)
    asked = tuple(t for t in registry.tunables() if t in chosen) if chosen else registry.tunables()
    return HostStatus(host, hot, asked, status.assess_all(host, asked, _standing(place)))


@dataclass(frozen=True, slots=True)
class HostPlan:
    """Hold a plan, what was wanted, the host that it is for and the choice of its hot CPUs."""

    plan: Plan
    wanted: tuple[Wanted, ...]
    host: Host
    hot: HotCpus

    @property
    def words(self) -> tuple[str, ...]:
        """Return what was wanted, as a command line and the agent's protocol say it."""
        return tuple(map(str, self.wanted))


def draw_up(root: Path, wanted: Sequence[Wanted] = (), cpus: str | None = None) -> HostPlan:
    """Return the plan for what is wanted, or for all that status would improve at run time. Reads only.

    Raises UsageError and HostError as :func:`look` does, and UsageError for values that make no sense.
    """
    from jitter_workshop.tuning.planning import plan, wanted_by_status

    place = HostRoot(root)
    topology = read_topology(place)
    hot = choose_hot(place, cpus, topology)
    host = Host(place, hot.cpus, topology)
    chosen = tuple(wanted) or wanted_by_status(host)
    return HostPlan(plan(host, chosen), chosen, host, hot)


def _standing(root: HostRoot) -> Sequence[Entry]:
    """Return what we set on this host and have not given back. Loads the journal's reader only where there is one."""
    if not root.is_dir("/var/lib/jitter-workshop"):
        return ()
    from jitter_workshop.tuning.journal import active

    return active(root)
