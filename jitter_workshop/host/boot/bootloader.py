"""Find the boot loader, and the way to add a kernel parameter so that it can be removed again.

Sources: GRUB's manual (/etc/default/grub, and on Debian its drop-in folder), grubby(8), the Boot Loader Specification
(/boot/loader/entries), os-release(5). No program is run: only files are read.
"""

from __future__ import annotations

from typing import Literal

from jitter_workshop.host.root import HostRoot, printable
from jitter_workshop.host.shellfile import parse_assignments
from jitter_workshop.model.record import dataclass

Means = Literal["grub-dropin", "grubby", "by-hand", "none"]

GRUB_SETTINGS = "/etc/default/grub"
GRUB_DROPINS = "/etc/default/grub.d"
BLS_ENTRIES = "/boot/loader/entries"
_OS_RELEASE = ("/etc/os-release", "/usr/lib/os-release")
_CONTAINER_MARKS = ("/run/.containerenv", "/.dockerenv", "/run/systemd/container")
_LOADER_DIRS = ("/boot", "/efi", "/boot/efi")


@dataclass(frozen=True, slots=True)
class Distribution:
    """Hold a distribution: ``id`` is ``debian``, ``fedora``, …

    ``like``: the distributions that it derives from, nearest first. ``name``: the name for display.
    """

    id: str
    like: tuple[str, ...]
    name: str

    def is_like(self, family: str) -> bool:
        return family == self.id or family in self.like


@dataclass(frozen=True, slots=True)
class BootLoader:
    """Hold the boot loader of a host.

    ``means``: how this tool adds parameters. ``grub-dropin``: a file in GRUB_DROPINS, then ``command``. ``grubby``:
    ``command``. ``by-hand``: ``reason`` says where the line goes. ``none``: not possible here; ``reason`` says who can.
    ``name``: the loader's, for display. ``settings``: the file that holds the line now, "" where none is known.
    """

    means: Means
    name: str
    distribution: Distribution
    settings: str = ""
    command: str = ""
    reason: str = ""


def read_distribution(root: HostRoot) -> Distribution:
    """Return the distribution of the first os-release file that exists; ``unknown`` where there is none."""
    for path in _OS_RELEASE:
        text = root.text(path)
        if text is None:
            continue
        values = parse_assignments(text)
        ident = printable(values.get("ID", ""), 40) or "linux"
        like = tuple(printable(word, 40) for word in values.get("ID_LIKE", "").split()[:8])
        return Distribution(ident, like, printable(values.get("PRETTY_NAME") or values.get("NAME") or ident, 80))
    return Distribution("unknown", (), "an unknown distribution")


def read_boot_loader(root: HostRoot) -> BootLoader:
    """Find the boot loader by its files.

    A folder that only root can list (/boot on some hosts) counts as missing; the answer is then the safe one: by hand.
    """
    distribution = read_distribution(root)
    if any(present(root, mark) for mark in _CONTAINER_MARKS):
        reason = "this is a container, or was made from one: the kernel's line is set where it is started"
        return BootLoader("none", "", distribution, reason=reason)
    if root.is_dir("/run/ostree-booted") or present(root, "/run/ostree-booted"):
        return BootLoader(
            "by-hand", "OSTree", distribution, reason="an image-based system: rpm-ostree kargs --append-if-missing=…"
        )
    return _grub(root, distribution) or _other(root, distribution)


def present(root: HostRoot, path: str) -> bool:
    """Return True if a file exists and may be read (an empty one too)."""
    return root.head(path, 1) is not None


def _grub(root: HostRoot, distribution: Distribution) -> BootLoader | None:
    grubby = next((p for p in ("/usr/sbin/grubby", "/usr/bin/grubby", "/sbin/grubby") if present(root, p)), None)
    entries = any(name.endswith(".conf") for name in root.list_dir(BLS_ENTRIES))
    if grubby is not None and (distribution.is_like("fedora") or distribution.is_like("rhel") or entries):
        return BootLoader("grubby", "GRUB with boot loader entries", distribution, GRUB_SETTINGS, grubby)
    if not present(root, GRUB_SETTINGS):
        return None
    update = next((p for p in ("/usr/sbin/update-grub", "/sbin/update-grub") if present(root, p)), None)
    if update is not None and (distribution.is_like("debian") or root.is_dir(GRUB_DROPINS)):
        return BootLoader("grub-dropin", "GRUB", distribution, GRUB_SETTINGS, update)
    return BootLoader(
        "by-hand",
        "GRUB",
        distribution,
        GRUB_SETTINGS,
        reason=f"add them to GRUB_CMDLINE_LINUX in {GRUB_SETTINGS}, then run grub-mkconfig -o /boot/grub/grub.cfg",
    )


def _other(root: HostRoot, distribution: Distribution) -> BootLoader:
    for folder in _LOADER_DIRS:
        if present(root, f"{folder}/loader/loader.conf"):
            kernel_line = "/etc/kernel/cmdline"
            where = f"{kernel_line}, then run kernel-install" if present(root, kernel_line) else "the loader's entry"
            return BootLoader(
                "by-hand", "systemd-boot", distribution, kernel_line, reason=f"add them to the options in {where}"
            )
    for path, name in (
        ("/boot/firmware/cmdline.txt", "the Raspberry Pi's firmware"),
        ("/boot/extlinux/extlinux.conf", "extlinux"),
        ("/boot/syslinux/syslinux.cfg", "syslinux"),
        ("/etc/zipl.conf", "zipl"),
    ):
        if present(root, path):
            return BootLoader("by-hand", name, distribution, path, reason=f"add them to the kernel's line in {path}")
    return BootLoader(
        "none",
        "",
        distribution,
        reason="no boot loader's files are here: the kernel's line is set where this machine is started",
    )
