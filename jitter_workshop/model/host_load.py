"""Define a host's load: the CPU time that other tasks and the hypervisor took in a second or two."""

from __future__ import annotations

from jitter_workshop.model.record import dataclass
from jitter_workshop.model.run import ForeignLoad


@dataclass(frozen=True, slots=True)
class HostLoad:
    """Hold the load of a host during a second or two.

    - ``average``: the kernel's load average of the last minute; None if it cannot be read.
    - ``cpus``: the number of online CPUs.
    - ``busy_percent``: the CPU time of other tasks, in percent of the time of all CPUs together.
    - ``steal_percent``: the same for the time that the hypervisor took; None if not known.
    - ``tasks``: other tasks that took a large part of one CPU, largest first.
    - ``drowns``: True if the load is so large that it will disturb the figures of every lesson.
    """

    average: float | None
    cpus: int
    busy_percent: float
    steal_percent: float | None
    tasks: tuple[ForeignLoad, ...]
    drowns: bool
