"""The programs of a guest with another processor than this host's: Python, what it needs, and busybox for the rest.

``fetch`` unpacks Debian's packages of that architecture into the cache, from the release that this host's packages are
of; nothing of them is installed. ``find`` looks, and never downloads.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.lab import apt, kernels

SUITE = "bookworm"
WANTED = ("python3.11", "busybox-static")
PYTHON = "/usr/bin/python3.11"
# What these packages depend on for their installation, which does not happen here.
LEFT_OUT = ("perl", "libperl", "mime-support", "mailcap", "media-types", "dpkg", "install-info", "tar")
LAYOUT = "1"


@dataclass(frozen=True)
class GuestRoot:
    """An unpacked tree: ``usr`` is mounted in the guest, ``busybox`` goes into its initrd."""

    folder: Path

    @property
    def usr(self) -> Path:
        return self.folder / "usr"

    @property
    def busybox(self) -> Path:
        return self.folder / "usr" / "bin" / "busybox"


def find(architecture: str, cache: Path) -> GuestRoot:
    """The tree from the cache; raises ``NotHere`` when it was never fetched."""
    folder = cache / f"{architecture}-root-{LAYOUT}"
    if not (folder / "complete").exists():
        raise kernels.NotHere(f"no programs for {architecture} in {cache} (python -m tests.lab.fetch --all gets them)")
    return GuestRoot(folder)


def fetch(architecture: str, cache: Path) -> GuestRoot:
    """Download and unpack; raises ``NotHere`` with the reason when it cannot."""
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=cache) as scratch:
        work, tree = Path(scratch), Path(scratch) / "tree"
        tree.mkdir()
        try:
            repository = apt.Apt(work / "apt", (SUITE,), architecture)
            for name in repository.needed(*WANTED):
                if not name.startswith(LEFT_OUT):
                    repository.download(name, work)
        except apt.AptFailed as reason:
            raise kernels.NotHere(str(reason)) from None
        for package in sorted(work.glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", str(package), str(tree)], check=True, timeout=120)
        _merge(tree)
        _applets(tree / "usr" / "bin")
        (tree / "complete").touch()
        target = cache / f"{architecture}-root-{LAYOUT}"
        shutil.rmtree(target, ignore_errors=True)
        tree.rename(target)
    return find(architecture, cache)


def _merge(tree: Path) -> None:
    """Move what lies beside /usr into it: the guest has only links there."""
    for name in ("bin", "sbin", "lib"):
        if (tree / name).is_dir() and not (tree / name).is_symlink():
            shutil.copytree(tree / name, tree / "usr" / name, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(tree / name)


def _applets(folder: Path) -> None:
    """Busybox stands in for all that is not unpacked. Its list is that of this host's own busybox."""
    listed = subprocess.run([kernels.tool("busybox"), "--list"], capture_output=True, text=True, check=True, timeout=30)
    for name in listed.stdout.split():
        if not (folder / name).exists():
            (folder / name).symlink_to("busybox")
