"""Find out if this host is a virtual machine, and which hypervisor runs it.

x86 processors have the flag ``hypervisor`` in a guest (CPUID leaf 1, ECX bit 31). The hypervisor's name comes from
/sys/hypervisor, DMI strings or the device tree. If only one hypervisor offers the host's clock source, the clock source
shows the hypervisor, too.

QEMU runs a guest with KVM, or emulates the guest's processors (TCG). The guest's hardware looks the same in both cases.

- Signs of KVM: KVM's clock source, KVM's PTP clock (drivers/ptp/ptp_kvm_common.c), steal, and KVM's CPUID
  signature. On arm64, the product name in the DMI strings is another sign.
- Signs of TCG: the name of the emulated processor, and TCG's CPUID signature.
- A practice machine names KVM or TCG on its kernel's command line.

Without any of these signs, it is unknown if KVM or TCG runs the guest. The field ``doubt`` then says so.
"""

from __future__ import annotations

from jitter_workshop.host.boot.cmdline import read_command_line
from jitter_workshop.host.cpu.cpuinfo import CpuIdentity, read_cpu_identity
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.host import mark_of
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import LABEL

_DMI = "/sys/class/dmi/id"
_CLOCKS = {
    "kvm-clock": "KVM",
    "hyperv_clocksource_tsc_page": "Hyper-V",
    "hyperv_clocksource_msr": "Hyper-V",
    "xen": "Xen",
}
_PTP = "/sys/class/ptp"
_STEAL = 8
"""Index of the word with the steal in the first line of /proc/stat. The word at index 0 is ``cpu``."""
_MOST_CLOCKS = 16
"""The largest number of PTP clocks whose names are read."""

QEMU = "QEMU"
PRACTICE_WORD = "practice.accelerator"
"""The boot parameter by which a practice machine names its accelerator; its value is one of ``ACCELERATORS``. The
kernel ignores it, because a name with a dot could belong to a module (init/main.c, unknown_bootoption)."""
ACCELERATORS = ("tcg", "kvm")
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
"""Words in vendor or product strings, each with the hypervisor that they prove. The most specific words come first."""


_DOUBTS = {
    True: "QEMU emulates the CPUs of this guest: times measured here are meaningless",
    None: "either an emulation by QEMU or a guest of KVM: this host does not show which",
    False: "",
}
"""Reasons to doubt the times in a guest of QEMU. Key: True if the guest's processors are emulated, None if this is
unknown."""


@dataclass(frozen=True, slots=True)
class Hypervisor:
    """Hold the hypervisor of a host.

    - ``guest``: True in a virtual machine, None if unknown.
    - ``name``: the hypervisor's name; None on bare metal, ``unknown hypervisor`` in a guest that does not show the
      name.
    - ``source``: the file or flag that proves the name.
    - ``doubt``: the reason why times measured in this guest may be wrong, or "".
    - ``emulated``: True if software emulates the guest's processors, None if unknown.
    - ``accelerator``: one of ``ACCELERATORS`` in a practice machine, "" on any other host.
    """

    guest: bool | None
    name: str | None
    source: str
    doubt: str = ""
    emulated: bool | None = None
    accelerator: str = ""


def read_hypervisor(root: HostRoot, identity: CpuIdentity | None = None) -> Hypervisor:
    """Return the host's hypervisor. ``identity``: the CPU's identity, if the caller knows it; None: read it from
    /proc/cpuinfo."""
    cpu = identity if identity is not None else read_cpu_identity(root)
    vendor, product = (root.word(f"{_DMI}/{name}", LABEL) or "" for name in ("sys_vendor", "product_name"))
    flag = cpu.has("hypervisor")
    accelerator = _accelerator(root)
    named, source = _name(root, vendor, product)
    if accelerator:
        named, source = "KVM" if accelerator == "kvm" else QEMU, "/proc/cmdline"
    if flag is False and source not in ("/sys/hypervisor/type", "/proc/cmdline"):
        return Hypervisor(False, None, "no hypervisor flag in /proc/cpuinfo", emulated=False)
    if flag and named in (None, QEMU) and not accelerator:
        named, source = _signed(root, named, source)
    if flag or named:
        emulated = _emulated(named, cpu, accelerator or source)
        doubt = _DOUBTS[emulated] if named == QEMU else ""
        source = source or "hypervisor flag in /proc/cpuinfo"
        return Hypervisor(True, named or "unknown hypervisor", source, doubt, emulated, accelerator)
    if vendor:
        return Hypervisor(False, None, f"{_DMI}/sys_vendor", emulated=False)
    if root.text("/proc/device-tree/model"):
        return Hypervisor(False, None, "/proc/device-tree/model", emulated=False)
    return Hypervisor(None, None, "this host shows no processor flags, no DMI data and no device tree")


def read_mark(root: HostRoot) -> str:
    """Return the mark for values measured on this host, such as ``emulated``; "" for none. The marks are those of
    ``model.host.mark_of``."""
    found = read_hypervisor(root)
    return mark_of({"emulated": found.emulated, "accelerator": found.accelerator})


def _accelerator(root: HostRoot) -> str:
    """Return the accelerator that a practice machine names on its kernel's command line; "" on any other host."""
    said = read_command_line(root).value(PRACTICE_WORD)
    return said if said in ACCELERATORS else ""


_LEAF = "CPUID leaf 0x40000000"


def _signature(root: HostRoot) -> str:
    """Return the CPUID signature of this host's processor; "" for a recorded host."""
    from jitter_workshop.host.cpu import cpuid  # loads ctypes, for guests that show no other sign

    return "" if root.recorded else cpuid.hypervisor_signature()


def _signed(root: HostRoot, named: str | None, source: str) -> tuple[str | None, str]:
    """Return the hypervisor's name and the evidence for it, from the processor's CPUID signature. If the processor
    gives no known signature, return ``named`` and ``source``."""
    from jitter_workshop.host.cpu import cpuid

    signature = _signature(root)
    name = {cpuid.KVM: "KVM", cpuid.TCG: QEMU}.get(signature)
    return (name, f"{_LEAF}: {signature}") if name is not None else (named, source)


def _emulated(named: str | None, cpu: CpuIdentity, evidence: str) -> bool | None:
    """Return True if QEMU emulates the host's processors, False if another hypervisor runs the host, None if unknown.

    ``named``: the hypervisor's name. ``evidence``: in a practice machine, the accelerator that its kernel's command
    line names. On any other host, the source of ``named``.
    """
    if named is None:
        return None
    if named != QEMU:
        return False
    tells = evidence == "tcg" or evidence.startswith(_LEAF) or (cpu.model is not None and "TCG" in cpu.model)
    return True if tells else None


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
    """Return "KVM" and the evidence if ``name`` is QEMU, and the guest shows KVM's features. Otherwise return ``name``
    and ``source`` unchanged."""
    if name != QEMU:
        return name, source
    for clock in root.list_dir(_PTP)[:_MOST_CLOCKS]:
        if root.text(f"{_PTP}/{clock}/clock_name") == "KVM virtual PTP":
            return "KVM", f"{_PTP}/{clock}/clock_name"
    times = (root.head("/proc/stat", 400) or "").partition("\n")[0].split()
    if len(times) > _STEAL and times[0] == "cpu" and times[_STEAL].strip("0"):
        return "KVM", "steal in /proc/stat"
    return name, source
