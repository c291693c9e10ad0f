"""Manage the control group of a turn. The group's processes may run on the hot CPUs. They are killed when the turn
ends.

The turn's group and the logins' group are directly below the top group with the cpuset controller
(Documentation/admin-guide/cgroup-v2.rst, "Cpuset"; cgroup-v1/cpusets.rst). A host without this controller also has
turns. There, users without the turn can also run on the hot CPUs. The report of a run then names disturbances by other
users.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence

from jitter_workshop.agent.caller_process import HeldProcess, owners_of_process
from jitter_workshop.errors import HostError, reason
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.cpusets import Cpusets, find_cpusets, path_of, read_groups
from jitter_workshop.host.tasks.listing import task_ids
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.paths import RUN_DIR
from jitter_workshop.tuning.tunables.isolation import own_group
from jitter_workshop.tuning.writer import HostWriter

TURN = "jitter-workshop-turn"
LOGINS = "jitter-workshop-logins"
_WAS_OFF = f"{RUN_DIR}/cpuset-was-off"
"""The path of a file that exists while the cpuset controller is on only for the groups of turns. It was off before."""
PATIENCE_S = 5.0
"""Time limit in seconds for killing the processes of a group. Processes may start new ones faster than these can be
killed."""
_STEP_S = 0.02
_PROCS_BYTES = 1 << 20
_AT_ONCE = 500
"""The largest number of processes that are held at a time, each by one descriptor."""


class TurnGroup:
    """Make and remove the turn's group on this host. ``missing``: the reason why the group cannot be made; "" if it can
    be made."""

    def __init__(self, root: HostRoot, writer: HostWriter) -> None:
        self._root = root
        self._writer = writer
        self._sets = find_cpusets(root)
        self.missing = "" if self._sets is not None else "this host has no control groups with the cpuset controller"

    @property
    def folder(self) -> str:
        """Return the path of the turn's group, even if the group does not exist."""
        return f"{self._where.where}/{TURN}"

    @property
    def exists(self) -> bool:
        return self._sets is not None and self._root.is_dir(self.folder)

    def take_in(self, pid: int, uid: int) -> str:
        """Move a process of the user ``uid`` into the turn's group, and return the process's former group.

        The turn's group is made if it is missing. :meth:`close` takes the former group as ``origin``. Return "" if the
        host has no groups with the cpuset controller. Raise HostError on failure.
        """
        if self._sets is None:
            return ""
        self._make(TURN, None)
        with HeldProcess(self._root, pid, uid) as process:
            origin = self._group_of(pid)
            self._put(pid, self.folder)
            process.check()
        return origin

    def close(self, client: int | None, origin: str, uid: int = 0) -> str:
        """Move ``client`` back to the group ``origin``, kill the turn's other processes, and remove the turn's group.

        If ``uid`` is not 0, also kill this user's processes in the group of isolated CPUs, and reset this user's
        real-time priorities. Return a text with the step that failed; "" for none.
        """
        if uid:
            self._calm(uid)
        if self._sets is None:
            return ""
        isolated = own_group(self._root, self._sets)
        inside = {self.folder, *([isolated.folder] if isolated is not None else [])}
        if client is not None:
            with contextlib.suppress(HostError):
                if f"{self._where.where}{self._group_of(client)}" in inside:
                    self._put_back(client, origin)
        ours = isolated.folder if isolated is not None and uid else ""
        if ours and self._end(ours, lambda pid: pid != client and self._of(pid, uid)):
            return f"processes in {ours} could not be killed"
        if not self.exists:
            return ""
        if self._end(self.folder, lambda pid: True):
            return f"processes in {self.folder} could not be killed"
        try:
            self._writer.remove_folder(self.folder)
        except FileNotFoundError:
            pass
        except OSError as error:
            return f"the control group {self.folder} cannot be removed: {reason(error)}"
        return ""

    def confine(self, uids: frozenset[int], housekeeping: CpuSet) -> int:
        """Move all processes of the users ``uids`` to the housekeeping CPUs. Return the number of moved processes.

        Processes in the turn's group or the group of isolated CPUs are not moved. Return 0 on a host with systemd,
        whose user.slice already keeps users off the hot CPUs. Return 0 also without control groups or housekeeping
        CPUs.
        """
        if self._sets is None or not housekeeping or not uids or self._root.is_dir("/run/systemd/system"):
            return 0
        self._make(LOGINS, housekeeping)
        inside = {f"/{TURN}", f"/{LOGINS}", *self._isolated()}
        moved = 0
        for pid in self._processes_of(uids):
            # A process that has ended meanwhile, or runs as another user now, is skipped.
            with contextlib.suppress(HostError, OSError):
                if self._group_of(pid) in inside:
                    continue
                self._put(pid, f"{self._where.where}/{LOGINS}")
                moved += 1
        return moved

    def release(self) -> str:
        """Move all processes out of the logins' group, and remove the group.

        The cpuset controller is switched off if this tool had switched it on. Return a text with the step that failed;
        "" for none.
        """
        if self._sets is None:
            return ""
        folder = f"{self._where.where}/{LOGINS}"
        if not self._root.is_dir(folder):
            return self._switch_off()
        for pid in self._members(folder):
            with contextlib.suppress(HostError):
                self._put(pid, self._where.where)
        try:
            self._writer.remove_folder(folder)
        except OSError as error:
            return f"the control group {folder} cannot be removed: {reason(error)}"
        return self._switch_off()

    def _switch_on(self) -> None:
        """Enable the cpuset controller in the top group. A version 2 group has the controller only if its parent group
        enables it."""
        control = f"{self._where.where}/cgroup.subtree_control"
        if self._where.version == 2 and "cpuset" not in (self._root.text(control) or "").split():
            with contextlib.suppress(OSError):
                self._writer.replace_file(_WAS_OFF, "")
            self._writer.write(control, "+cpuset")

    def _switch_off(self) -> str:
        """Switch the cpuset controller in the top group off, if this tool had switched it on and no group uses it now.

        Return the error as text; "" for none.
        """
        if self._root.text(_WAS_OFF) is None:
            return ""
        try:
            if not any(group.cpus for group in read_groups(self._root, self._where)):
                self._writer.write(f"{self._where.where}/cgroup.subtree_control", "-cpuset")
            self._writer.replace_file(_WAS_OFF, None)
        except OSError as error:
            return f"the cpuset controller could not be switched off: {reason(error)}"
        return ""

    def step_aside(self) -> None:
        """Move this process out of this tool's control groups. Raise HostError on failure.

        This protects a process that manages turns: the end of a turn kills all processes in the turn's group.
        """
        if self._sets is None:
            return
        me = os.getpid()
        if self._group_of(me) in {f"/{TURN}", f"/{LOGINS}", *self._isolated()}:
            self._put(me, self._where.where)

    def _isolated(self) -> tuple[str, ...]:
        """Return the path of this tool's group of isolated CPUs, as :meth:`_group_of` gives it.

        The path is in a tuple; the tuple is empty if there is no such group.
        """
        group = own_group(self._root, self._where)
        return () if group is None else (group.folder.removeprefix(self._where.where),)

    def _calm(self, uid: int) -> None:
        """Reset the real-time priorities that this tool gave to threads of the user ``uid``
        (``caller_process.realtime``)."""
        for pid in self._processes_of(frozenset({uid})):
            for tid in self._root.list_dir(f"/proc/{pid}/task"):
                with contextlib.suppress(OSError, ValueError):
                    if os.sched_getscheduler(int(tid)) == os.SCHED_FIFO | os.SCHED_RESET_ON_FORK:
                        os.sched_setscheduler(int(tid), os.SCHED_OTHER, os.sched_param(0))

    @property
    def _where(self) -> Cpusets:
        assert self._sets is not None
        return self._sets

    def _make(self, name: str, cpus: CpuSet | None) -> None:
        """Make a group with the CPUs ``cpus``; None means all CPUs of its parent group. Raise HostError on failure."""
        sets, folder = self._where, f"{self._where.where}/{name}"
        try:
            self._switch_on()
            with contextlib.suppress(FileExistsError):
                self._writer.make_folder(folder)
            if sets.version == 1:
                # A new group of version 1 has neither CPUs nor memory, so no process can join it. A group that balanced
                # its CPUs would undo their isolation (cpusets.rst, 1.7).
                self._writer.write(f"{folder}/cpuset.mems", self._root.text(f"{sets.where}/cpuset.mems") or "0")
                everything = self._root.text(f"{sets.where}/cpuset.cpus") or "0"
                self._writer.write(f"{folder}/cpuset.cpus", str(cpus) if cpus else everything)
                self._writer.write(f"{folder}/cpuset.sched_load_balance", "0" if cpus is None else "1")
            elif cpus is not None:
                self._writer.write(f"{folder}/cpuset.cpus", str(cpus))
        except OSError as error:
            raise HostError(f"the control group {folder} cannot be made: {reason(error)}") from error

    def _put(self, pid: int, folder: str) -> None:
        try:
            self._writer.write(f"{folder}/cgroup.procs", str(pid))
        except OSError as error:
            raise HostError(f"process {pid} cannot be moved to {folder}: {reason(error)}") from error

    def _put_back(self, pid: int, origin: str) -> None:
        """Move a process to the group ``origin``. If this fails, try the logins' group, then the top group."""
        for folder in (f"{self._where.where}{origin}", f"{self._where.where}/{LOGINS}", self._where.where):
            if folder != self.folder and self._root.is_dir(folder):
                with contextlib.suppress(HostError):
                    self._put(pid, folder)
                    return

    def _end(self, folder: str, chosen: Callable[[int], bool]) -> bool:
        """Kill the processes of a group for which ``chosen`` is True, until none is left.

        Return True if such processes are still alive after PATIENCE_S seconds.
        """
        ends = time.monotonic() + PATIENCE_S
        while members := [pid for pid in self._members(folder) if chosen(pid)]:
            if time.monotonic() >= ends:
                return True
            if folder == self.folder and self._where.version == 2:
                with contextlib.suppress(OSError):
                    self._writer.write(f"{folder}/cgroup.kill", "1")
                    time.sleep(_STEP_S)
                    continue
            # Stop them first: otherwise a process that forks fast enough would always leave new ones.
            for number in (signal.SIGSTOP, signal.SIGKILL):
                self._send(number, members, folder)
            time.sleep(_STEP_S)
        return False

    def _send(self, number: int, pids: Sequence[int], folder: str) -> None:
        """Send the signal ``number`` to each of ``pids`` that is still in the group ``folder``."""
        held: dict[int, int] = {}
        try:
            for pid in pids[:_AT_ONCE]:
                with contextlib.suppress(OSError):
                    held[pid] = os.pidfd_open(pid)
            # Open the pidfds first, then read the group again: a process with a reused number is not in the group.
            for pid in held.keys() & set(self._members(folder)):
                with contextlib.suppress(OSError):
                    signal.pidfd_send_signal(held[pid], number)
        finally:
            for descriptor in held.values():
                os.close(descriptor)

    def _members(self, folder: str) -> tuple[int, ...]:
        text = self._root.text(f"{folder}/cgroup.procs", _PROCS_BYTES) or ""
        # Processes outside this one's PID namespace are shown as 0.
        return tuple(int(word) for word in text.split() if word.isdigit() and word != "0")

    def _group_of(self, pid: int) -> str:
        """Return the path of a process's control group below the top group, such as "/user.slice".

        The path of the top group is "/". Raise HostError on failure.
        """
        text = self._root.text(f"/proc/{pid}/cgroup")
        if text is None:
            raise HostError(f"process {pid} has ended")
        path = path_of(self._where, text)
        if path is None:
            raise HostError(f"the control group of process {pid} is unknown")
        return path.removeprefix(self._where.top.rstrip("/")) or "/"

    def _of(self, pid: int, uid: int) -> bool:
        """Return True if ``uid`` is one of the four user ids of the process ``pid``.

        The real, effective, saved and file-system ids are all compared. They may differ in a set-user-ID program.
        """
        return uid in owners_of_process(self._root, pid)

    def _processes_of(self, uids: frozenset[int]) -> Iterator[int]:
        for pid in task_ids(self._root):
            found = owners_of_process(self._root, pid)
            if found and found <= uids:
                yield pid
