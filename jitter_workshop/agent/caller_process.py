"""Move a caller's process or its threads to the isolated CPUs, or give threads a real-time priority.

The caller names the process by its number. A pidfd shows if the number now belongs to another process (pidfd_open(2)).
A move and a priority end with the process, so no journal records them.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Sequence

from jitter_workshop.errors import HostError, UsageError, reason
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.cpusets import CpusetGroup, Cpusets, find_cpusets
from jitter_workshop.host.tasks.listing import read_user_ids
from jitter_workshop.tuning.tunables.isolation import GROUP, own_group
from jitter_workshop.tuning.writer import HostWriter

MAX_PRIORITY = 49
"""The highest real-time priority that this tool gives. It is below the interrupt threads of a real-time kernel (50),
and below all threads that keep the machine running."""
MAX_THREADS = 1024


class HeldProcess(contextlib.AbstractContextManager["HeldProcess"]):
    """Hold a pidfd of a process that belongs to the user ``uid``. Root (0) may hold any process.

    Raise HostError if the process has ended, or belongs to another user.
    """

    def __init__(self, root: HostRoot, pid: int, uid: int) -> None:
        self.pid = pid
        try:
            self._file = os.pidfd_open(pid)
        except OSError as error:
            raise HostError(f"process {pid} cannot be opened: {reason(error)}") from error
        try:
            found = owners_of_process(root, pid)
            self.check()
            if uid != 0 and found != {uid}:
                raise HostError(f"process {pid} is not yours")
        except BaseException:
            os.close(self._file)
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._file)

    def check(self) -> None:
        """Raise HostError if the process has ended."""
        try:
            signal.pidfd_send_signal(self._file, 0)
        except OSError as error:
            raise HostError(f"process {self.pid} has ended") from error


def move_to_isolated_cpus(root: HostRoot, writer: HostWriter, pid: int, uid: int) -> str:
    """Move a process with all its threads to the isolated CPUs. Return these CPUs as a list such as ``2-3``.

    Raise HostError if no CPUs are isolated, or if the process does not belong to the user ``uid``. Raise HostError also
    if the process cannot be moved.
    """
    _, group = _own(root)
    with HeldProcess(root, pid, uid) as process:
        try:
            writer.write(f"{group.folder}/cgroup.procs", str(pid))
        except OSError as error:
            raise HostError(f"process {pid} cannot be put on CPU {group.effective}: {reason(error)}") from error
        process.check()
    return str(group.effective)


def place_threads(root: HostRoot, writer: HostWriter, pid: int, tids: Sequence[int], uid: int) -> str:
    """Move only the threads ``tids`` of a process to the isolated CPUs. Return these CPUs as a list such as ``2-3``.

    The kernel moves single threads only with cgroup version 1 (cgroup-v1/cgroups.rst). Raise UsageError if there are no
    threads or too many. Raise HostError with version 2, if no CPUs are isolated, or if a thread cannot be moved.
    """
    if not 0 < len(tids) <= MAX_THREADS:
        raise UsageError(f"'tids' must be a list of 1 to {MAX_THREADS} threads")
    sets, group = _own(root)
    if sets.version != 1:
        raise HostError("the control groups of this host (version 2) take whole processes only, not single threads")
    with HeldProcess(root, pid, uid) as process:
        for tid in tids:
            _check_thread(root, pid, tid)
        for tid in tids:
            _check_thread(root, pid, tid)
            try:
                writer.write(f"{group.folder}/tasks", str(tid))
            except OSError as error:
                raise HostError(f"thread {tid} cannot be put on CPU {group.effective}: {reason(error)}") from error
            process.check()
            try:
                _check_thread(root, pid, tid)
            except HostError:
                # The thread has ended meanwhile, and its number may be another program's.
                with contextlib.suppress(OSError):
                    writer.write(f"{sets.where}/{GROUP}-rest/tasks", str(tid))
                raise
    return str(group.effective)


def realtime(root: HostRoot, pid: int, tids: Sequence[int], priority: int, uid: int) -> None:
    """Set threads of a process to SCHED_FIFO with ``priority``. If ``priority`` is 0, set them to SCHED_OTHER.

    Children of the threads do not inherit the policy. Raise UsageError for a wrong priority or a wrong number of
    threads. Raise HostError if the kernel refuses.
    """
    if not 0 <= priority <= MAX_PRIORITY:
        raise UsageError(f"'priority' must be a number from 0 to {MAX_PRIORITY}")
    if not 0 < len(tids) <= MAX_THREADS:
        raise UsageError(f"'tids' must be a list of 1 to {MAX_THREADS} threads")
    with HeldProcess(root, pid, uid) as process:
        for tid in tids:
            _check_thread(root, pid, tid)
            policy = os.SCHED_FIFO if priority else os.SCHED_OTHER
            try:
                os.sched_setscheduler(tid, policy | os.SCHED_RESET_ON_FORK, os.sched_param(priority))
            except OSError as error:
                raise HostError(f"the priority of thread {tid} cannot be set: {reason(error)}") from error
            process.check()


def _own(root: HostRoot) -> tuple[Cpusets, CpusetGroup]:
    """Return a pair: the cgroup hierarchy, and this tool's group of isolated CPUs. Raise HostError if there is no such
    group."""
    sets = find_cpusets(root)
    group = own_group(root, sets) if sets is not None else None
    if sets is None or group is None:
        raise HostError("no CPUs are isolated by this tool now", "'jitter-workshop apply isolation' isolates them")
    return sets, group


def _check_thread(root: HostRoot, pid: int, tid: int) -> None:
    """Raise HostError if the thread ``tid`` does not belong to the process ``pid``."""
    if not root.is_dir(f"/proc/{pid}/task/{tid}"):
        raise HostError(f"thread {tid} does not belong to process {pid}")


def owners_of_process(root: HostRoot, pid: int) -> set[int]:
    """Return the different ids among the four user ids of a process (proc_pid_status(5)). Return an empty set if they
    cannot be read."""
    return set(read_user_ids(root, f"/proc/{pid}"))
