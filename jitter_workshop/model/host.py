"""Define the summary of a host that is stored with every run and shown on the home screen."""

from __future__ import annotations

from jitter_workshop.model.record import dataclass, field


@dataclass(frozen=True, slots=True)
class HostSummary:
    """Hold the facts of a host on one page. A field that this host does not show is None, with the reason in ``notes``.

    ``cpu_max_quota_us`` / ``cpu_max_period_us``: the cgroup's CPU bandwidth limit, None where there is none.
    ``steal_percent``: share of time since boot that the hypervisor gave to others, None where there is no steal clock.
    ``packages``: sockets with online CPUs. ``smt``: True if any online core has two online threads. ``recorded``: read
    from a recorded tree, so that no field describes this process.
    """

    name: str
    kernel: str
    architecture: str
    cpu_model: str | None
    hypervisor: str | None
    cpus_online: tuple[int, ...]
    cpus_allowed: tuple[int, ...]
    isolated: tuple[int, ...]
    nohz_full: tuple[int, ...]
    governors: tuple[str, ...]
    cpuidle_driver: str | None
    clocksource: str | None
    thermal_zones: int
    realtime_kernel: bool | None
    steal_percent: float | None
    cpu_max_quota_us: int | None
    cpu_max_period_us: int | None
    on_battery: bool | None
    memlock_limit_bytes: int | None
    is_root: bool
    boot_id: str | None
    notes: dict[str, str] = field(default_factory=dict)
    packages: int | None = None
    smt: bool | None = None
    hottest_celsius: float | None = None
    recorded: bool = False
