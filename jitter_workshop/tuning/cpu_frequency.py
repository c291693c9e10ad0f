"""The clock of the CPUs: governor, energy preference, lowest frequency, boost."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.host.cpufreq import FrequencyPolicy, read_cpufreq
from jitter_workshop.tuning.base import Setting, Settings, Unavailable
from jitter_workshop.tuning.context import Host


class Governor(Settings):
    id = "governor"
    title = "CPU governor"
    why = (
        "A governor that follows the load changes the clock while a message is on its way: each change costs "
        "microseconds, and the first messages after a pause run at the lowest frequency."
    )
    danger = "more power and heat"
    document = "Documentation/admin-guide/pm/cpufreq.rst"
    owns = ("/sys/devices/system/cpu/cpufreq/policy*/scaling_governor",)
    default = "performance"
    values = "a governor that the driver offers"
    order = 30
    culprits = ("tuned", "power-profiles-daemon", "tlp", "thermald")
    good = "the hot CPUs keep their highest clock"

    def settings(self, host: Host, value: str | None) -> Sequence[Setting]:
        policies = hot_policies(host)
        if not policies:
            raise no_cpufreq(host)
        return [
            Setting(
                f"{_POLICIES}/policy{p.id}/scaling_governor",
                p.governor,
                self.choose(value, p.available_governors),
                reason="the governor cannot be read",
            )
            for p in policies
        ]


_POLICIES = "/sys/devices/system/cpu/cpufreq"


def hot_policies(host: Host) -> list[FrequencyPolicy]:
    """The frequency policies that a hot CPU belongs to."""
    return [p for p in read_cpufreq(host.root, current=False) if set(p.cpus) & set(host.hot)]


def no_cpufreq(host: Host) -> Unavailable:
    """Why this host has no cpufreq."""
    if host.guest:
        return Unavailable(
            "a guest has no cpufreq: the hypervisor's host sets the clock; ask its owner", only_host=True
        )
    return Unavailable("this kernel has no cpufreq driver for this processor")
