"""Find the host's boot loader, and a way to add kernel parameters that this tool can remove again.

No program is run; only files are read. Sources: GRUB's manual on /etc/default/grub and on Debian's drop-in folder,
grubby(8), the Boot Loader Specification on /boot/loader/entries, os-release(5).
"""

from __future__ import annotations

from typing import Literal

from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.shellfile import parse_assignments
from jitter_workshop.model.record import dataclass

Means = Literal["grub-dropin", "grubby", "by-hand", "none"]

GRUB_SETTINGS = "/etc/default/grub"
GRUB_DROPINS = "/etc/default/grub.d"
BLS_ENTRIES = "/boot/loader/entries"
FOLDERS = ("/boot/grub", "/boot/grub2")
ENTRY_ID = "jitter-workshop-once"
CUSTOM = "custom.cfg"
ENVIRONMENT = "grubenv"
"""GRUB's folders, the id of our menu entry for one boot, the file that holds the entry, and GRUB's environment block
(see ``next_boot``)."""
_OS_RELEASE = ("/etc/os-release", "/usr/lib/os-release")
_CONTAINER_MARKS = ("/run/.containerenv", "/.dockerenv", "/run/systemd/container")
_KERNEL_THREADS = "/proc/2/comm"
"""The name of the second process. It is ``kthreadd`` (kernel/kthread.c) where the kernel's own threads are visible. A
container with a PID namespace of its own does not see them."""
_LOADER_DIRS = ("/boot", "/efi", "/boot/efi")
_GRUBBY = ("/usr/sbin/grubby", "/usr/bin/grubby", "/sbin/grubby")
_UPDATE_GRUB = ("/usr/sbin/update-grub", "/sbin/update-grub")
_LINE_FILES = {
    "/boot/firmware/cmdline.txt": "the Raspberry Pi's firmware",
    "/boot/extlinux/extlinux.conf": "extlinux",
    "/boot/syslinux/syslinux.cfg": "syslinux",
    "/etc/zipl.conf": "zipl",
}
"""File with the kernel's parameters → the boot loader that reads this file, in words."""


@dataclass(frozen=True, slots=True)
class BootLoader:
    """Hold the boot loader of a host, and how kernel parameters are added.

    * ``means`` is ``grub-dropin``: this tool writes a file in GRUB_DROPINS and runs update-grub.
    * ``means`` is ``grubby``: this tool runs grubby.
    * ``means`` is ``by-hand``: the user must add the parameters; ``reason`` says to which file.
    * ``means`` is ``none``: no parameters can be added on this host; ``reason`` says where the parameters are set.

    ``name``: the boot loader's displayed name; "" if there is none. ``in_container``: True in a container and
    in a machine that runs from a container's image: their owner does not choose the kernel's parameters there.
    """

    means: Means
    name: str
    reason: str = ""
    in_container: bool = False


def read_families(root: HostRoot) -> tuple[str, ...]:
    """Return the ids of the host's distribution and its base distributions, such as ``("ubuntu", "debian")``. The
    distribution's own id comes first, then the nearest base. Return () if the host has no os-release."""
    for path in _OS_RELEASE:
        text = root.text(path)
        if text is not None:
            values = parse_assignments(text)
            return (values.get("ID", ""), *values.get("ID_LIKE", "").split())
    return ()


def read_boot_loader(root: HostRoot, hypervisor: str | None = None) -> BootLoader:
    """Return the host's boot loader, found by its files. ``hypervisor``: the name of the host's hypervisor; None if the
    host is no guest, or if this is not known.

    On some hosts only root can list /boot. For other users, /boot then counts as missing. The result may then be
    ``by-hand`` or ``none``, although this tool could add parameters. This wrong result does no harm, because the tool
    then writes nothing.
    """
    families = read_families(root)
    if any(present(root, mark) for mark in _CONTAINER_MARKS):
        return BootLoader("none", "", _of_an_image(root, hypervisor), in_container=True)
    if root.is_dir("/run/ostree-booted") or present(root, "/run/ostree-booted"):
        return BootLoader("by-hand", "OSTree", "this system is image-based: use rpm-ostree kargs --append-if-missing=…")
    entries = any(name.endswith(".conf") for name in root.list_dir(BLS_ENTRIES))
    if any(present(root, p) for p in _GRUBBY) and ({"fedora", "rhel"}.intersection(families) or entries):
        return BootLoader("grubby", "GRUB with boot loader entries")
    if present(root, GRUB_SETTINGS):
        if any(present(root, p) for p in _UPDATE_GRUB) and ("debian" in families or root.is_dir(GRUB_DROPINS)):
            return BootLoader("grub-dropin", "GRUB")
        where = f"GRUB_CMDLINE_LINUX in {GRUB_SETTINGS}"
        reason = f"add the parameters to {where}, then run grub-mkconfig -o /boot/grub/grub.cfg"
        return BootLoader("by-hand", "GRUB", reason)
    if any(present(root, f"{folder}/loader/loader.conf") for folder in _LOADER_DIRS):
        kernel_line = "/etc/kernel/cmdline"
        where = f"{kernel_line}, then run kernel-install" if present(root, kernel_line) else "the loader's entry"
        return BootLoader("by-hand", "systemd-boot", f"add the parameters to the options in {where}")
    for path, name in _LINE_FILES.items():
        if present(root, path):
            return BootLoader("by-hand", name, f"add the parameters to the kernel's line in {path}")
    reason = "this host has no files of a boot loader, so set the kernel's parameters where this machine is started"
    return BootLoader("none", "", reason)


def _of_an_image(root: HostRoot, hypervisor: str | None) -> str:
    """Return in a sentence where the kernel's parameters are set, for a host with the files of a container's image. A
    host that sees the kernel's own threads may be a whole machine, and is not called a container."""
    if root.word(_KERNEL_THREADS) != "kthreadd":
        return "this is a container or its image, so set kernel parameters on its host"
    machine = f"{hypervisor} guest" if hypervisor else "host"
    return f"this {machine} runs from a container's image, so set kernel parameters where its kernel is started"


def present(root: HostRoot, path: str) -> bool:
    """Return True if a file exists and can be read, even if it is empty."""
    return root.head(path, 1) is not None
