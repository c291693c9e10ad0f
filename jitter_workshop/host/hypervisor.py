"""Whether this is a virtual machine, and whose.

x86 processors carry the ``hypervisor`` flag in a guest (CPUID leaf 1, ECX bit 31). The name comes from /sys/hypervisor,
from clock sources that only one hypervisor offers, from the DMI strings or the device tree.
"""

from __future__ import annotations

from jitter_workshop.host.cpuinfo import CpuIdentity, read_cpu_identity
from jitter_workshop.host.root import HostRoot, printable
from jitter_workshop.model.record import dataclass

_DMI = "/sys/class/dmi/id"
_CLOCKS = {
    "kvm-clock": "KVM",
    "hyperv_clocksource_tsc_page": "Hyper-V",
    "hyperv_clocksource_msr": "Hyper-V",
    "xen": "Xen",
}
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
    ("qemu", "QEMU"),
)
"""Words in vendor or product strings, the most telling first."""


@dataclass(frozen=True, slots=True)
class Hypervisor:
    """``guest`` None: cannot be told. ``name``: None on bare metal, ``unknown hypervisor`` in a guest that does not
    say. ``product``: the DMI product or the machine's maker where shown. ``source``: what told it."""

    guest: bool | None
    name: str | None
    product: str | None
    source: str


def read_hypervisor(root: HostRoot, identity: CpuIdentity | None = None) -> Hypervisor:
    """Read the evidence; ``identity`` saves reading /proc/cpuinfo again."""
    cpu = identity if identity is not None else read_cpu_identity(root)
    vendor = printable(root.text(f"{_DMI}/sys_vendor") or "", 60)
    product = printable(root.text(f"{_DMI}/product_name") or "", 60) or _acpi_maker(root)
    flag = cpu.has("hypervisor")
    named, source = _name(root, vendor, product or "")
    if flag is False and source != "/sys/hypervisor/type":
        return Hypervisor(False, None, product, "no hypervisor flag in /proc/cpuinfo")
    if flag or named:
        return Hypervisor(True, named or "unknown hypervisor", product, source or "hypervisor flag in /proc/cpuinfo")
    if vendor:
        return Hypervisor(False, None, product, f"{_DMI}/sys_vendor")
    if root.text("/proc/device-tree/model"):
        return Hypervisor(False, None, product, "/proc/device-tree/model")
    return Hypervisor(None, None, product, "neither processor flags nor DMI nor a device tree are shown")


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
        # The same cloud rents out whole machines too, and says so in the product's name.
        if word in strings and "metal" not in product.lower():
            return name, f"{_DMI}/sys_vendor, product_name"
    if "xen" in (root.text("/proc/device-tree/hypervisor/compatible") or ""):
        return "Xen", "/proc/device-tree/hypervisor/compatible"
    if "linux,dummy-virt" in (root.text("/proc/device-tree/compatible") or ""):
        return "KVM", "/proc/device-tree/compatible"
    return None, ""


def _acpi_maker(root: HostRoot) -> str | None:
    """Firecracker has no DMI but signs its ACPI tables (which root alone can read)."""
    return "Firecracker" if "FIRECK" in (root.head("/sys/firmware/acpi/tables/FACP", 64) or "")[:24] else None
