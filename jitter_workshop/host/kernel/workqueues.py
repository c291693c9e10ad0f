"""Read which CPUs may run deferred kernel work.

Sources: Documentation/core-api/workqueue.rst, Documentation/ABI/testing/sysfs-bus-workqueue. Per-CPU workqueues follow
none of these masks.
"""

from __future__ import annotations

from jitter_workshop.host.fields import Fields
from jitter_workshop.host.root import HostRoot, printable
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass, field

FOLDER = "/sys/devices/virtual/workqueue"

PATHS = {
    "cpumask": f"{FOLDER}/cpumask",
    "requested": f"{FOLDER}/cpumask_requested",
    "isolated": f"{FOLDER}/cpumask_isolated",
}

_NO_WORKQUEUES = ("cpumask", "cpumask_requested", "cpumask_isolated", "power", "subsystem", "uevent")


@dataclass(frozen=True, slots=True)
class WorkqueueMasks:
    """Hold the limits for all unbound workqueues.

    ``cpumask``: where they run. ``requested``: the mask before isolated partitions (``isolated``) are subtracted; both
    from 6.7. None where not shown (``reasons``).
    """

    cpumask: CpuSet | None
    requested: CpuSet | None
    isolated: CpuSet | None
    reasons: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Workqueue:
    """Hold one workqueue that sysfs shows.

    ``affinity_scope`` (from 6.5) is the word that was set: ``default``, where the kernel adds its meaning in brackets.
    Values that a kernel or a per-CPU workqueue does not show are None.
    """

    name: str
    folder: str
    cpumask: CpuSet | None
    affinity_scope: str | None
    affinity_strict: bool | None
    nice: int | None
    per_cpu: bool | None


def read_workqueue_masks(root: HostRoot) -> WorkqueueMasks:
    """Read the global masks: three small files."""
    fields = Fields(root, PATHS)
    return WorkqueueMasks(
        cpumask=fields.cpu_mask("cpumask"),
        requested=fields.cpu_mask("requested"),
        isolated=fields.cpu_mask("isolated"),
        reasons=fields.reasons,
    )


def workqueue_names(root: HostRoot) -> tuple[str, ...]:
    """Return the names of the workqueues that can be tuned one by one. Untrusted where shown."""
    return tuple(n for n in root.list_dir(FOLDER) if n not in _NO_WORKQUEUES)


def read_workqueue(root: HostRoot, name: str) -> Workqueue:
    """Return one workqueue by name."""
    folder = f"{FOLDER}/{name}"
    fields = Fields(root, {f: f"{folder}/{f}" for f in ("cpumask", "affinity_strict", "nice", "per_cpu")})
    scope = printable(root.text(f"{folder}/affinity_scope") or "", 40).split()
    return Workqueue(
        name=printable(name, 64),
        folder=folder,
        cpumask=fields.cpu_mask("cpumask"),
        affinity_scope=scope[0] if scope else None,
        affinity_strict=fields.switch("affinity_strict"),
        nice=fields.integer("nice"),
        per_cpu=fields.switch("per_cpu"),
    )


def read_workqueues(root: HostRoot) -> tuple[Workqueue, ...]:
    """Return every workqueue that sysfs shows, by name."""
    return tuple(read_workqueue(root, name) for name in workqueue_names(root))
