"""A made host that answers writes as a kernel does: control groups come with files, tasks change places, masks follow.

``MadeKernel`` is a ``HostWriter`` for trees of ``hosttrees``. It knows only what the tools write: groups of both
versions, places and affinities of tasks, the masks of workqueues, files that refuse.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable
from pathlib import Path

from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.writer import HostWriter

GROUP_FILES = {
    1: {"cpuset.cpus": "\n", "cpuset.mems": "\n", "cpuset.sched_load_balance": "1\n", "tasks": ""},
    2: {
        "cpuset.cpus": "\n",
        "cpuset.cpus.partition": "member\n",
        "cpuset.cpus.effective": "\n",
        "cgroup.procs": "",
    },
}
MEMBERS = ("tasks", "cgroup.procs")


class MadeKernel(HostWriter):
    """``refusals``: errno by path. ``written``: every path in order. ``groups``: the version of each mount point."""

    def __init__(self, root: Path, *, groups: dict[str, int] | None = None) -> None:
        super().__init__(root)
        self.top = root
        self.refusals: dict[str, int] = {}
        self.written: list[str] = []
        self.groups = groups or {}
        self.invalid = ""
        """The reason that a partition gets instead of becoming valid."""

    def write(self, path: str, text: str) -> None:
        self.written.append(path)
        if path in self.refusals:
            raise OSError(self.refusals[path], os.strerror(self.refusals[path]))
        name = path.rpartition("/")[2]
        if name == "cgroup.subtree_control":
            have = self._text(path).split()
            word = text[1:]
            have = [*([word] if text[0] == "+" else []), *(w for w in have if w != word)]
            text = " ".join(have)
        elif name in MEMBERS:
            self._move(path, text)
            return
        elif name == "cpuset.cpus" and not text and self._populated(path.rpartition("/")[0]):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        elif name == "cpuset.cpus.partition" and self.invalid and text == "isolated":
            text = f"isolated invalid ({self.invalid})"
        super().write(path, f"{text}\n")
        if name == "cpuset.cpus" and (self.top / path[1:]).with_name("cpuset.cpus.effective").exists():
            super().write(f"{path}.effective", f"{text}\n")
        if path.endswith("/workqueue/cpumask") and (self.top / f"{path[1:]}_requested").exists():
            super().write(f"{path}_requested", f"{text}\n")

    def make_folder(self, path: str) -> None:
        super().make_folder(path)
        for name, text in GROUP_FILES.get(self._version(path), {}).items():
            (self.top / path[1:] / name).write_text(text)

    def remove_folder(self, path: str) -> None:
        folder = self.top / path[1:]
        if self._populated(path):
            raise OSError(errno.EBUSY, "Device or resource busy")
        for file in folder.iterdir():
            file.unlink()
        super().remove_folder(path)

    def set_affinity(self, tid: int, cpus: Iterable[int]) -> None:
        path = f"/proc/{tid}/status"
        self.written.append(path)
        if path in self.refusals:
            raise OSError(self.refusals[path], os.strerror(self.refusals[path]))
        file = self.top / path[1:]
        file.write_text(re.sub(r"(Cpus_allowed_list:\t).*", rf"\g<1>{CpuSet.of(cpus)}", file.read_text()))

    def _move(self, path: str, tid: str) -> None:
        """Put a task into the group of this file and out of the others of its hierarchy."""
        mount = next(m for m in sorted(self.groups, key=len, reverse=True) if path.startswith(f"{m}/"))
        folder, _, name = path.rpartition("/")
        for file in (self.top / mount[1:]).glob(f"**/{name}"):
            file.write_text("".join(f"{t}\n" for t in file.read_text().split() if t != tid))
        members = self.top / path[1:]
        members.write_text("".join(f"{t}\n" for t in sorted([*map(int, members.read_text().split()), int(tid)])))
        place = self.top / f"proc/{tid}/cgroup"
        if place.exists() and self.groups[mount] == 1:
            inside = folder.removeprefix(mount) or "/"
            place.write_text(re.sub(r"(:cpuset:).*", rf"\g<1>{inside}", place.read_text()))

    def _populated(self, path: str) -> bool:
        files = [self.top / path[1:] / name for name in MEMBERS]
        return any(file.read_text().split() for file in files if file.exists())

    def _version(self, path: str) -> int:
        return self.groups.get(path.rpartition("/")[0], 0)

    def _text(self, path: str) -> str:
        return (self.top / path[1:]).read_text()


def tree(root: Path) -> dict[str, str]:
    """Every file below ``root`` by its path, folders with a slash at the end."""
    found: dict[str, str] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        found[name if path.is_file() else f"{name}/"] = path.read_text() if path.is_file() else ""
    return found
