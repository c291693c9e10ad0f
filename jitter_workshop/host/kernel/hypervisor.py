"""Find out if this is a virtual machine, and which hypervisor runs it.

x86 processors carry the ``hypervisor`` flag in a guest (CPUID leaf 1, ECX bit 31). The name comes from /sys/hypervisor,
from clock sources that only one hypervisor offers, from the DMI strings or the device tree.

QEMU either uses KVM to run a guest, or emulates the guest's processors (TCG); the guest's hardware looks the same in
both cases. Only these prove KVM: KVM's clock, its PTP clock (drivers/ptp/ptp_kvm_common.c), stolen time, and the
product name that QEMU puts into the DMI strings of an arm64 guest. Without any of these the hypervisor is unknown, and
``doubt`` says so.
"""

from __future__ import annotations

from jitter_workshop.host.cpu.cpuinfo import CpuIdentity, read_cpu_identity
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.record import dataclass

_DMI = "/sys/class/dmi/id"
_CLOCKS = {
    "kvm-clock": "KVM",
    "hyperv_clocksource_tsc_page": "Hyper-V",
    "hyperv_clocksource_msr": "Hyper-V",
    "xen": "Xen",
}
_PTP = "/sys/class/ptp"
_STEAL = 8
"""Column of stolen time in the first line of /proc/stat; the first word is ``cpu``."""

QEMU = "QEMU"
_DMI_WORDS = (
    ("vmware", "VMware"),
    ("virtualbox", "VirtualBox"),
    ("innotek", "VirtualBox"),
    ("parallels", "Parallels"),
    ("apple virtualization", "Apple Virtualization"),
    ("bhyve", "bhyve"),
    ("xen", "Xen"),
    ("kvm", "KVM"),
    ("google compute engine", "KVM"),
    ("amazon ec2", "KVM"),
    ("openstack", "KVM"),
    ("qemu", QEMU),
)
"""Words in vendor or product strings, the most specific first."""


@dataclass(frozen=True, slots=True)
class Hypervisor:
    """Hold the hypervisor. ``guest``: True in a virtual machine, None if unknown. ``name``: None on bare metal;
    ``unknown hypervisor`` in a guest that does not show the name. ``source``: the file or flag that is the evidence.
    ``doubt``: a reason to doubt the times measured in this guest, in words; "" for none."""

    guest: bool | None
    name: str | None
    source: str
    doubt: str = ""


def read_hypervisor(root: HostRoot, identity: CpuIdentity | None = None) -> Hypervisor:
    """Find the hypervisor. ``identity``: the CPU's identity, if known; otherwise /proc/cpuinfo is read for it."""
    cpu = identity if identity is not None else read_cpu_identity(root)
    vendor, product = (root.word(f"{_DMI}/{name}", 60) or "" for name in ("sys_vendor", "product_name"))
    flag = cpu.has("hypervisor")
    named, source = _name(root, vendor, product)
    if flag is False and source != "/sys/hypervisor/type":
        return Hypervisor(False, None, "no hypervisor flag in /proc/cpuinfo")
    if flag or named:
        doubt = _doubt(cpu) if named == QEMU else ""
        source = source or "hypervisor flag in /proc/cpuinfo"
        return Hypervisor(True, named or "unknown hypervisor", source, doubt)
    if vendor:
        return Hypervisor(False, None, f"{_DMI}/sys_vendor")
    if root.text("/proc/device-tree/model"):
        return Hypervisor(False, None, "/proc/device-tree/model")
    return Hypervisor(None, None, "this host shows no processor flags, no DMI data and no device tree")


def _name(root: HostRoot, vendor: str, product: str) -> tuple[str | None, str]:
    if root.text("/sys/hypervisor/type") == "xen":
        return "Xen", "/sys/hypervisor/type"
    available = (root.text("/sys/devices/system/clocksource/clocksource0/available_clocksource") or "").split()
    for clock, name in _CLOCKS.items():
        if clock in available:
            return name, f"clock source {clock}"
    if vendor == "Microsoft Corporation" and product == "Virtual Machine":
        return "Hyper-V", f"{_DMI}/product_name"
    strings = f"{vendor}\n{product}".lower()
    for word, name in _DMI_WORDS:
        # The same cloud also rents out whole machines, and shows that in the product's name.
        if word in strings and "metal" not in product.lower():
            return _proven(root, name, f"{_DMI}/sys_vendor, product_name")
    if "xen" in (root.text("/proc/device-tree/hypervisor/compatible") or ""):
        return "Xen", "/proc/device-tree/hypervisor/compatible"
    if "linux,dummy-virt" in (root.text("/proc/device-tree/compatible") or ""):
        return _proven(root, QEMU, "/proc/device-tree/compatible")
    return None, ""


def _proven(root: HostRoot, name: str, source: str) -> tuple[str, str]:
    """Return the name and its evidence. QEMU becomes KVM if the guest has a feature that only KVM gives."""
    if name != QEMU:
        return name, source
    for clock in root.list_dir(_PTP)[:16]:
        if root.text(f"{_PTP}/{clock}/clock_name") == "KVM virtual PTP":
            return "KVM", f"{_PTP}/{clock}/clock_name"
    times = (root.head("/proc/stat", 400) or "").partition("\n")[0].split()
    if len(times) > _STEAL and times[0] == "cpu" and times[_STEAL].strip("0"):
        return "KVM", "stolen time in /proc/stat"
    return name, source


def _doubt(cpu: CpuIdentity) -> str:
    """Return a warning about a guest of QEMU: QEMU emulates its CPUs, or may do so."""
    if cpu.model is not None and "TCG" in cpu.model:
        return "QEMU emulates the CPUs of this guest: times measured here are meaningless"
    return "either an emulation by QEMU or a guest of KVM: this host does not show which"
