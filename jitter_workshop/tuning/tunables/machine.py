"""Define the tunables of the whole machine: power, PCIe, hypervisor, kernel flavour, cache shares."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.host.cpu.resctrl import RESCTRL
from jitter_workshop.host.cpu.stat import read_stat
from jitter_workshop.host.power import read_on_battery
from jitter_workshop.host.root import printable
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.status import Assessment
from jitter_workshop.model.text import MOST_LONG_NAMES, MOST_NAMES, WORD
from jitter_workshop.tuning.base import Observed, Setting, Settings, Tunable, Unavailable
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.tunables.single import read_value

PROFILE = "/sys/firmware/acpi/platform_profile"
ASPM_POLICY = "/sys/module/pcie_aspm/parameters/policy"
_IOMMU_GROUPS = "/sys/kernel/iommu_groups"
_GROUP_NAME = 64
"""The largest length of the name of a resource group."""
_MOST_GROUPS = 32
"""The largest number of IOMMU groups whose types are read."""


class KernelFlavour(Observed):
    id = "kernel-flavour"
    title = "Kernel flavour"
    why = (
        "A real-time kernel (PREEMPT_RT) runs interrupt handlers as threads and can be preempted nearly everywhere. "
        "So the worst case has a limit, but the common case is a little slower."
    )
    document = "Documentation/core-api/real-time/theory.rst"
    paths = ("/sys/kernel/realtime", "/proc/sys/kernel/version")

    def judge(self, host: Host) -> Assessment:
        realtime = host.kernel.realtime
        if realtime is None:
            return self.answer("unavailable", None, "the kernel's build line cannot be read")
        if realtime:
            return self.answer("ok", "PREEMPT_RT", "this kernel is built to limit the worst case")
        return self.answer(
            "info",
            "not real-time",
            "this kernel is good for throughput and for threads that spin on isolated CPUs; only PREEMPT_RT limits "
            "the worst case",
        )


class PlatformProfile(Settings):
    id = "platform-profile"
    title = "Platform profile of the firmware"
    why = (
        "The firmware itself chooses between low power and speed, without the kernel. With a quiet or low-power "
        "profile the firmware limits the clock. No governor can remove this limit."
    )
    danger = "more power, heat and noise"
    document = "Documentation/userspace-api/sysfs-platform_profile.rst"
    owns = (PROFILE,)
    default = "performance"
    values = "a profile that the firmware offers"
    rewritten_by = ("power-profiles-daemon", "tuned-ppd", "tlp", "system76-power")
    good = "the firmware favours speed"

    def settings(self, host: Host, value: str | None) -> Sequence[Setting]:
        current = read_value(host.root, PROFILE, "value", "the firmware offers no profiles")
        return [Setting(PROFILE, current, self.choose(value, host.root.words(f"{PROFILE}_choices")))]


class Mains(Observed):
    id = "mains"
    title = "Mains power"
    why = "On battery, firmware and power daemons lower the clock and use deeper idle states."
    document = "Documentation/power/power_supply_class.rst"
    paths = ("/sys/class/power_supply",)

    def judge(self, host: Host) -> Assessment:
        battery = read_on_battery(host.root)
        if battery is None:
            return self.answer("info", None, "this host shows no power supply: most servers and guests have none")
        if battery:
            return self.answer(
                "improve",
                "battery",
                "this machine runs on its battery",
                wanted="mains",
                fix="connect the machine to mains power",
            )
        return self.answer("ok", "mains", "this machine runs on mains power")


class PcieAspm(Settings):
    id = "pcie-aspm"
    title = "Power saving of PCIe links"
    why = (
        "A sleeping link needs microseconds to wake up. Before that, its device can neither interrupt a CPU nor "
        "receive writes."
    )
    danger = "more power"
    document = "Documentation/admin-guide/kernel-parameters.txt"
    owns = (ASPM_POLICY,)
    default = "performance"
    values = "performance, default, powersave or powersupersave"
    rewritten_by = ("tlp",)
    good = "links stay awake"

    def settings(self, host: Host, value: str | None) -> Sequence[Setting]:
        current = read_value(
            host.root, ASPM_POLICY, "choice", "the kernel does not manage the power of PCIe links (CONFIG_PCIEASPM)"
        )
        wanted = self.choose(value, [word.strip("[]") for word in host.root.words(ASPM_POLICY)])
        if value is None and host.guest:
            raise Unavailable("the hypervisor's host controls the links of a guest", only_host=True)
        return [Setting(ASPM_POLICY, current, wanted, "choice")]


class IommuState(Observed):
    id = "iommu"
    title = "IOMMU"
    why = (
        "With address translation, each transfer of a device needs a mapping, which is removed afterwards. With "
        "iommu=pt, the host's own devices work without translation. The gain is small."
    )
    danger = "without an IOMMU a device can reach all memory"
    document = "Documentation/admin-guide/kernel-parameters.txt"
    paths = ("/sys/class/iommu", _IOMMU_GROUPS)

    def judge(self, host: Host) -> Assessment:
        groups = host.root.numbered(_IOMMU_GROUPS, "")
        if not groups and not host.root.is_dir("/sys/kernel"):
            return self.answer("unavailable", None, "the IOMMU groups cannot be read: /sys/kernel is missing")
        if not groups:
            return self.answer("ok", "none", "the host translates no device's addresses")
        # ABI/testing/sysfs-kernel-iommu_groups: identity is passed through, DMA and DMA-FQ are translated.
        types = sorted(
            {kind for _, folder in groups[:_MOST_GROUPS] if (kind := host.root.word(f"{folder}/type", WORD))}
        )
        kinds = ", ".join(types) or "not shown"
        if types == ["identity"]:
            return self.answer("ok", kinds, "the host's own devices use memory without translation")
        reason = (
            "the IOMMU translates the addresses of some devices: the translation costs little time and protects memory"
        )
        return self.answer("info", kinds, reason)


class CacheShares(Observed):
    id = "resctrl"
    title = "Shares of cache and memory bandwidth"
    why = (
        "A hot thread shares a cache with programs on other cores, and these programs displace its data. Processors "
        "with resource control can reserve parts of the cache (ways) for the hot thread."
    )
    document = "Documentation/filesystems/resctrl.rst"

    def judge(self, host: Host) -> Assessment:
        root = host.root
        if root.text(f"{RESCTRL}/schemata") is None:
            why = "not mounted" if root.is_dir(RESCTRL) else "this kernel or processor has no resctrl"
            return self.answer("info", None, why, paths=(RESCTRL,))
        groups = [name for name in root.folders(RESCTRL) if name not in ("info", "mon_data", "mon_groups")]
        own = [n for n in groups if (root.cpu_list(f"{RESCTRL}/{n}/cpus_list") or CpuSet()) & host.hot]
        shares = ", ".join(root.folders(f"{RESCTRL}/info")[:MOST_NAMES]) or "nothing can be reserved"
        reason = (
            f"hot CPUs are in the group {', '.join(printable(name, _GROUP_NAME) for name in own[:MOST_LONG_NAMES])}"
            if own
            else "the hot CPUs share the cache with all other CPUs"
        )
        # The default group, the folder itself, is one more.
        return self.answer("info", f"{len(groups) + 1} groups, {shares}", reason, paths=(f"{RESCTRL}/schemata",))


class HypervisorState(Tunable):
    id = "hypervisor"
    title = "Hypervisor"
    why = (
        "A CPU of a guest is a thread on the host. The host can stop this thread at any instant. For interrupts and "
        "timers, the processor has to switch from the guest to the hypervisor."
    )
    when = "host"
    document = "Documentation/virt/kvm/x86/cpuid.rst"
    paths = ("/proc/cpuinfo",)

    def judge(self, host: Host) -> Assessment:
        found = host.hypervisor
        if found.guest is None:
            return self.answer("info", None, f"it is not known whether this machine is a guest: {found.source}")
        if not found.guest:
            return self.answer("ok", "bare metal", "only this kernel schedules these CPUs")
        owner = (
            "the hypervisor's owner can pin this guest's CPUs, keep other work off them, and give the guest huge pages"
        )
        reason = "; ".join(filter(None, (found.doubt, f"{owner}; a user of the guest cannot do this")))
        return self.answer("info", found.name, reason, only_host=True)


_STEAL_PERCENT = 0.01
"""The least steal that counts as bad, in percent of the time since boot: 100 µs in each second.

A smaller share may come from one moment at boot, and says nothing of the host now.
"""


class Steal(Tunable):
    id = "steal"
    title = "Time taken by the hypervisor"
    why = "Steal is time in which a CPU of this guest had work and the host ran something else."
    when = "host"
    document = "Documentation/filesystems/proc.rst"
    paths = ("/proc/stat",)

    def judge(self, host: Host) -> Assessment:
        if host.hypervisor.guest is False:
            return self.answer("ok", "none", "this kernel does not run in a virtual machine")
        stat = read_stat(host.root, host.hypervisor.guest)
        if stat.reason:
            return self.answer("unavailable", None, stat.reason)
        if stat.steal_available is not True:
            reason = "0 everywhere: nothing was taken, or this hypervisor does not report steal; measure to find out"
            return self.answer("info", "0", reason, only_host=True)
        mine = [stat.per_cpu[c] for c in host.hot if c in stat.per_cpu]
        total = sum(t.total for t in mine)
        share = 100 * sum(t.steal for t in mine) / total if total else 0.0
        value = f"{share:.2g} % of the hot CPUs' time since boot"
        if 0 < share < _STEAL_PERCENT:
            reason = f"less than {_STEAL_PERCENT:g} % since boot: measure to find out if time is taken now"
            return self.answer("info", value, reason, only_host=True)
        if not share:
            return self.answer("ok", "0 on the hot CPUs", "no time was taken since boot", only_host=True)
        reason, fix = (
            "the host ran something else while hot CPUs had work; nothing in this guest changes that",
            "ask the hypervisor's owner for CPUs of your own",
        )
        return self.answer("info", value, reason, wanted="0", fix=fix, only_host=True)
