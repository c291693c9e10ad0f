"""A made host with this machine's own processes and control groups in it, in a mount namespace of this process: whose
turn it is can be enforced there, by the kernel, and nothing outside of it changes. Needs root.

The made settings are files. ``/proc`` is the real one, with the made files laid over it. The cpuset hierarchy is the
part below a group of this test's own; where a host has none in version 1, ``groups`` is False, and turns have no group.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType

from tests import tuned_tree

CHECKOUT = Path(__file__).resolve().parents[1]
_NEWNS = 0x0002_0000
_CPUSET = Path("/sys/fs/cgroup/cpuset")
_libc = ctypes.CDLL(None, use_errno=True)


class OwnMachine:
    """``tree``: the host's root; ``top``: a folder that every user may pass, for sockets and homes."""

    def __init__(self) -> None:
        self._before = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        self.top = Path(tempfile.mkdtemp(prefix="class-soak-"))
        self.top.chmod(0o755)
        self._made = tuned_tree.make(self.top / "made")
        self.tree = self.top / "host"
        self.tree.mkdir()
        self._group = _CPUSET / f"class-soak-{os.getpid()}"
        self.groups = (_CPUSET / "cpuset.cpus").exists()

    def __enter__(self) -> OwnMachine:
        _called(_libc.unshare(_NEWNS), "unshare")
        mount("--make-rprivate", "/")
        for folder in (Path(sys.base_prefix), Path(sys.prefix), CHECKOUT):
            _open_the_way(folder.resolve())
        mount("--bind", self._made, self.tree)
        mount("-t", "proc", "proc", self.tree / "proc")
        for made in sorted((self._made / "proc").iterdir()):
            mount("--bind", made, self.tree / "proc" / made.name)
        if self.groups:
            self._own_groups()
        return self

    def _own_groups(self) -> None:
        self._group.mkdir()
        for name in ("cpuset.cpus", "cpuset.mems"):
            (self._group / name).write_text((_CPUSET / name).read_text())
        aside, place = self.top / "cpuset", self.tree / _CPUSET.relative_to("/")
        aside.mkdir()
        place.mkdir(parents=True)
        mount("--bind", self._group, aside)
        # Only what is mounted there is the hierarchy's top for who reads the table of mounts.
        umount(_CPUSET)
        mount("--bind", aside, _CPUSET)
        mount("--bind", aside, place)
        umount(aside)
        aside.rmdir()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _called(_libc.setns(self._before, _NEWNS), "setns")
        os.close(self._before)
        for _ in range(100):
            with contextlib.suppress(OSError):
                for folder in sorted(self._group.rglob("*/"), reverse=True):
                    folder.rmdir()
                self._group.rmdir()
            if not self._group.exists():
                break
            time.sleep(0.1)
        if kind is None:
            shutil.rmtree(self.top, ignore_errors=True)

    def contents(self) -> dict[str, bytes]:
        """Every made setting, to be equal before and after."""
        return {k: v for k, v in tuned_tree.contents(self._made).items() if k.partition("/")[0] in ("proc", "sys")}

    def group(self, name: str) -> Path:
        return self.tree / _CPUSET.relative_to("/") / name


def mount(*words: str | Path) -> None:
    subprocess.run(("mount", *map(str, words)), check=True, capture_output=True)


def umount(place: Path) -> None:
    subprocess.run(("umount", str(place)), check=True, capture_output=True)


def _open_the_way(folder: Path) -> None:
    """Let every user reach ``folder``: what lies beside it below a folder that is closed to them is not shown."""
    closed = [one for one in folder.parents if not one.stat().st_mode & stat.S_IXOTH]
    if not closed:
        return
    shut = closed[-1]
    aside = Path(tempfile.mkdtemp())
    mount("--bind", folder, aside)
    mount("-t", "tmpfs", "-o", "mode=755,size=1m", "tmpfs", shut)
    folder.mkdir(parents=True)
    mount("--move", aside, folder)
    aside.rmdir()


def _called(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
