"""Warn of conditions on a host that make each measurement doubtful. When the workshop starts, it loads only this module
of the package."""

from __future__ import annotations

from jitter_workshop.errors import HostError
from jitter_workshop.host.kernel.hypervisor import read_mark
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.host import EMULATED, NO_VERDICT, HostSummary


def refuse_if_emulated(root: HostRoot) -> None:
    """Raise HostError on an emulated machine: its times mean nothing, so nothing can be judged by them."""
    if read_mark(root) == EMULATED:
        raise HostError(
            NO_VERDICT,
            "compare counts, not times: 'measure' shows counts, and on this machine the chapters compare counts, too",
        )


def warnings(host: HostSummary) -> tuple[str, ...]:
    """Return the warnings that are shown before a measurement on this host."""
    said: list[str] = []
    if host.on_battery:
        said.append("This machine runs on battery: its CPUs may be slower and sleep more deeply than on mains power.")
    if host.emulated:
        said.append(
            "These CPUs are emulated (QEMU without KVM). Settings and counters are real, but the measured times mean "
            "nothing."
        )
    elif host.hypervisor == "QEMU" and host.architecture == "x86_64":
        # KVM shows its clock to an x86 guest, unless it is hidden; without KVM, QEMU stalls for milliseconds.
        said.append(
            "These CPUs seem to be emulated (QEMU without KVM). Settings and counters are real, but the "
            "measured times mean nothing."
        )
    elif host.hypervisor == "QEMU":
        said.append(
            "These CPUs may be emulated: this host does not show whether QEMU uses KVM. Without KVM, settings "
            "and counters are real, but the measured times mean nothing."
        )
    limit = cpu_limit(host)
    if limit:
        said.append(limit)
    return tuple(said)


def cpu_limit(host: HostSummary) -> str:
    """Return a sentence on the effect of the cgroup's CPU limit on a measurement; "" without a limit."""
    if not host.cpu_max_quota_us or not host.cpu_max_period_us:
        return ""
    cpus = host.cpu_max_quota_us / host.cpu_max_period_us
    return (
        f"The cgroup's cpu.max allows {cpus:.3g} CPUs in each {host.cpu_max_period_us / 1000:g} ms: busy "
        "threads will be throttled, and this looks like a fault of the scheduler."
    )
