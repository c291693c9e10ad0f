"""Define the kinds for control groups: groups, the cpuset controller, partitions, and workqueue masks.

Isolated partitions narrow the masks of workqueues, so these masks are here too. Sources:
Documentation/admin-guide/cgroup-v2.rst, Documentation/admin-guide/cgroup-v1/cpusets.rst,
Documentation/core-api/workqueue.rst.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from jitter_workshop.host.root import HostRoot, TextReading, printable
from jitter_workshop.model.cpuset import CpuSet, parse_partition
from jitter_workshop.model.text import LABEL, NAME
from jitter_workshop.tuning.setting_types.kinds import CpuList, CpuMask, Kind

if TYPE_CHECKING:
    from jitter_workshop.tuning.switched import Switched
    from jitter_workshop.tuning.writer import HostWriter

OWN = "jitter-workshop"
"""Prefix of the names of our own groups."""
ABSENT = "absent"
PRESENT = "present"
CONTROLLER = "cpuset"

_EMPTYING_ROUNDS = 5
_LIST_BYTES = 16 << 20


class CgroupFolder(Kind):
    """Handle a version 2 group. The value is ``absent`` or ``present``. Before a group is removed, its tasks are moved
    to its parent."""

    name = "cgroup"
    members = "cgroup.procs"

    def read(self, root: HostRoot, path: str) -> TextReading:
        return TextReading(PRESENT if root.is_dir(path) else ABSENT)

    def write(self, writer: HostWriter, path: str, value: str) -> None:
        if value == PRESENT:
            with contextlib.suppress(FileExistsError):
                writer.make_folder(path)
        elif value == ABSENT:
            self._remove(writer, path)
        else:
            raise OSError(errno.EINVAL, "the value for a group must be present or absent")

    def exists(self, root: HostRoot, path: str) -> bool:
        return root.is_dir(path)

    def _remove(self, writer: HostWriter, path: str) -> None:
        if writer.reader.is_dir(path):
            when_empty(writer, path, self.members, lambda: writer.remove_folder(path))


class GroupCpus(CpuList):
    """Handle ``cpuset.cpus`` of our own version 2 group.

    Before an empty list is written, the tasks of the group are moved to its parent. The kernel accepts no empty list
    while the group has tasks (ENOSPC).
    """

    name = "cgroup-cpus"

    def write(self, writer: HostWriter, path: str, value: str) -> None:
        if value.strip():
            writer.write(path, value)
        else:
            when_empty(writer, path.rpartition("/")[0], "cgroup.procs", lambda: writer.write(path, ""))


def when_empty(writer: HostWriter, folder: str, members: str, then: Callable[[], None]) -> None:
    """Move all tasks of a group to its parent, and call ``then`` on the empty group.

    ``members``: the name of the file that lists the group's tasks. If ``then`` fails because new tasks have entered the
    group, both steps are repeated. Raise OSError (EBUSY) if new tasks keep entering the group.
    """
    parent = folder.rpartition("/")[0]
    for _ in range(_EMPTYING_ROUNDS):
        for member in (writer.reader.text(f"{folder}/{members}", _LIST_BYTES) or "").split():
            with contextlib.suppress(ProcessLookupError):
                writer.write(f"{parent}/{members}", member)
        try:
            then()
        except OSError as error:
            if error.errno not in (errno.EBUSY, errno.ENOSPC):
                raise
        else:
            return
    raise OSError(errno.EBUSY, "new tasks start in the group again and again")


class CpusetFolder(CgroupFolder):
    """Handle a version 1 cpuset with its lists of CPUs and memory nodes.

    The value is ``absent`` or ``cpus 0-2 mems 0``. A single Change makes the cpuset and sets its lists. The reason is
    that a cpuset without lists accepts no tasks, and a cpuset with tasks accepts no empty list.
    """

    name = "cpuset"
    members = "tasks"

    def read(self, root: HostRoot, path: str) -> TextReading:
        if not root.is_dir(path):
            return TextReading(ABSENT)
        return TextReading(cpuset_text(*(root.text(f"{path}/cpuset.{part}") or "" for part in ("cpus", "mems"))))

    def meaning(self, value: str) -> object:
        return parse_cpuset_text(value)

    def write(self, writer: HostWriter, path: str, value: str) -> None:
        try:
            parts = parse_cpuset_text(value)
        except ValueError as error:
            raise OSError(errno.EINVAL, str(error)) from None
        if parts is None:
            self._remove(writer, path)
            return
        with contextlib.suppress(FileExistsError):
            writer.make_folder(path)
        writer.write(f"{path}/cpuset.cpus", str(parts[0]))
        writer.write(f"{path}/cpuset.mems", str(parts[1]))

    def by_kernel(self, root: HostRoot, path: str, found: str, known: Collection[str], switched: Switched) -> bool:
        """Return True if the kernel may have changed a ``known`` value to ``found``. The kernel removes CPUs that went
        offline from the value. For a cpuset of this tool, always return True."""
        if path.rpartition("/")[2].startswith(OWN):
            return True
        try:
            now, values = parse_cpuset_text(found), [parse_cpuset_text(text) for text in known]
        except ValueError:
            return False
        lost = {one[0] & online for one in values if one is not None for online in switched.online}
        return switched.cpus and now is not None and now[0] in lost

    def halfway(self, found: str, after: str) -> bool:
        try:
            parts, wanted = parse_cpuset_text(found), parse_cpuset_text(after)
        except ValueError:
            return False
        return parts is not None and wanted is not None and parts[0] in (CpuSet(), wanted[0]) and not parts[1]


def cpuset_text(cpus: str, mems: str) -> str:
    """Return the value ``cpus 0-2 mems 0`` from a list of CPUs and a list of memory nodes. An empty list becomes
    ``none``."""
    return f"cpus {cpus or 'none'} mems {mems or 'none'}"


def parse_cpuset_text(text: str) -> tuple[CpuSet, CpuSet] | None:
    """Return a pair from a value like ``cpus 0-2 mems 0``: the CPUs and the memory nodes. Return None for ``absent``.

    Raise ValueError if ``text`` has neither form.
    """
    if text == ABSENT:
        return None
    words = text.split(" ")
    if len(words) != 4 or words[0] != "cpus" or words[2] != "mems":
        raise ValueError(f"not a cpuset: {text[:LABEL]!r}")
    cpus, mems = (CpuSet() if word == "none" else CpuSet.parse_list(word) for word in (words[1], words[3]))
    return cpus, mems


class Controllers(Kind):
    """Handle the cpuset controller in ``cgroup.subtree_control``. The value is ``cpuset`` if child groups may use the
    controller, else "".

    Other controllers in the file belong to other programs and are ignored.
    """

    name = "controllers"

    def read(self, root: HostRoot, path: str) -> TextReading:
        reading = root.reading(path)
        if reading.text is None:
            return reading
        return TextReading(CONTROLLER if CONTROLLER in reading.text.split() else "")

    def write(self, writer: HostWriter, path: str, value: str) -> None:
        if value not in ("", CONTROLLER):
            raise OSError(errno.EINVAL, "this tool switches only the cpuset controller")
        user = "" if value else self._user(writer.reader, path.rpartition("/")[0])
        if user:
            raise OSError(
                errno.EBUSY,
                f"without the cpuset controller, the control group '{user}' would lose its own CPUs",
            )
        writer.write(path, f"{'+' if value else '-'}{CONTROLLER}")

    def _user(self, root: HostRoot, top: str) -> str:
        """Return the name of another program's group for which the controller has an effect; "" for none."""
        for name in root.folders(top):
            cpus = root.text(f"{top}/{name}/cpuset.cpus")
            kind = (root.text(f"{top}/{name}/cpuset.cpus.partition") or "member").split(" ")[0]
            if not name.startswith(OWN) and (cpus or kind != "member"):
                return printable(name, LABEL)
        return ""


class Partition(Kind):
    """Handle ``cpuset.cpus.partition``.

    The kernel accepts a request that it cannot fulfil, and then reports the failure in the same file. A write that ends
    in such a failure counts as refused, with the kernel's reason.
    """

    name = "partition"

    def write(self, writer: HostWriter, path: str, value: str) -> None:
        writer.write(path, value)
        answer = writer.reader.text(path) or ""
        try:
            state = parse_partition(answer)
        except ValueError:
            raise OSError(errno.EINVAL, f"the kernel answers '{printable(answer, NAME)}'") from None
        if not state.valid:
            reason = printable(state.reason) or "the kernel gives no reason"
            raise OSError(errno.EBUSY, f"the kernel rejects this partition: {reason}")

    def halfway(self, found: str, after: str) -> bool:
        return found.startswith(f"{after} invalid")


class UnboundMask(CpuMask):
    """Handle the CPU mask of all unbound workqueues. ``read`` returns the requested mask.

    Kernels from 6.8 on show ``cpumask`` without the CPUs of isolated partitions. The requested mask is in another file.
    """

    name = "workqueue-mask"

    def read(self, root: HostRoot, path: str) -> TextReading:
        wish = root.reading(f"{path}_requested")
        return wish if wish.text is not None else root.reading(path)
