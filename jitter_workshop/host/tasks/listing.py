"""List all tasks in one pass over /proc, and read the counters of a thread.

Tasks start and end during the pass; ended tasks are left out. A task chooses its own name, so names are untrusted. This
module returns names as one printable line. Sources: proc_pid_stat(5), proc_pid_status(5).
"""

from __future__ import annotations

from collections.abc import Iterator

from jitter_workshop.host.root import HostRoot, is_count, line_value, printable
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass

PF_WQ_WORKER = 0x0000_0020
PF_KTHREAD = 0x0020_0000
PF_NO_SETAFFINITY = 0x0400_0000
"""Bits of a task's flags in field 9 of its ``stat`` (``include/linux/sched.h``). The kernel refuses sched_setaffinity
for a task with 0x04000000, PF_NO_SETAFFINITY."""

_ENDED = ("Z", "X", "x")
_TASK_NAME = 64
"""The largest length of a task's name: those of kworkers in /proc are longer than 15 characters."""
_STAT_BYTES = 4_096
_STATUS_BYTES = 16_384


@dataclass(frozen=True, slots=True)
class Task:
    """Hold one process or thread.

    - ``flags``: the kernel's PF_ bits.
    - ``threads``: how many threads the task's process has.
    - ``start_ticks``: the start time in clock ticks since boot (usually 10 ms each). ``tid`` and ``start_ticks``
      together identify the task.
    - ``cpu``: the CPU on which the task last ran.
    - ``rt_priority``: 1 to 99; 0 for a task that is not real-time.
    """

    tid: int
    pid: int
    name: str
    state: str
    flags: int
    threads: int
    start_ticks: int
    cpu: int
    rt_priority: int

    @property
    def kernel(self) -> bool:
        """Return True if the task is a kernel thread."""
        return bool(self.flags & PF_KTHREAD)

    @property
    def fixed(self) -> bool:
        """Return True if the kernel lets no user change the task's affinity. An example is a kernel thread that belongs
        to one CPU."""
        return bool(self.flags & PF_NO_SETAFFINITY)

    @property
    def ended(self) -> bool:
        """Return True if the task no longer runs. The settings of such a task cannot change any more. Such a task waits
        for its parent (``Z``) or is being removed (``X``)."""
        return self.state in _ENDED

    @property
    def worker(self) -> bool:
        """Return True if the task is a worker of a workqueue. The affinity of a worker follows the masks of the
        workqueues."""
        return bool(self.flags & PF_WQ_WORKER)

    @property
    def folder(self) -> str:
        """Return the path of the task's folder in /proc."""
        return f"/proc/{self.pid}" if self.tid == self.pid else f"/proc/{self.pid}/task/{self.tid}"


def task_ids(root: HostRoot) -> tuple[int, ...]:
    """Return the ids of all processes, the smallest first. A process has the id of its first thread, the thread group
    leader. Each kernel thread is a process of its own."""
    return tuple(sorted(int(n) for n in root.list_dir("/proc") if n.isascii() and n.isdigit() and len(n) <= 10))


def read_task(root: HostRoot, pid: int, tid: int | None = None) -> Task | None:
    """Return a task: the process ``pid``, or its thread ``tid``. Return None if the task has ended, or if its line in
    ``stat`` is damaged."""
    path = f"/proc/{pid}/stat" if tid is None else f"/proc/{pid}/task/{tid}/stat"
    return parse_task_stat(root.text(path, _STAT_BYTES), pid)


def each_process(root: HostRoot) -> Iterator[Task]:
    """Yield every running process and every kernel thread. One file is read for each of them.

    A process is also yielded if its first thread has ended, but another of its threads still runs.
    """
    for pid in task_ids(root):
        task = read_task(root, pid)
        if task is not None and not (task.ended and task.threads < 2):
            yield task


def each_thread(root: HostRoot) -> Iterator[Task]:
    """Yield every running thread of every process, and every kernel thread. One file is read for each thread."""
    for task in each_process(root):
        if not task.ended:
            yield task
        if task.kernel or task.threads < 2:
            continue
        for tid, _ in root.numbered(f"/proc/{task.pid}/task", "", digits=10):
            if tid == task.tid:
                continue
            thread = read_task(root, task.pid, tid)
            if thread is not None and not thread.ended:
                yield thread


def read_allowed_cpus(root: HostRoot, task: Task) -> CpuSet | None:
    """Return the CPUs that a task may use, including offline CPUs; None if the task has ended."""
    return parse_allowed(root.text(f"{task.folder}/status", _STATUS_BYTES))


def read_user_ids(root: HostRoot, folder: str) -> tuple[int, ...]:
    """Return the four user ids of a task, in the order of the line ``Uid:``: real, effective, saved, file system.

    ``folder``: the path of the task's folder in /proc. Return () if the ids cannot be read, as those of a task that has
    ended.
    """
    # No _STATUS_BYTES here: the file of a user with thousands of groups is longer.
    words = line_value(root.text(f"{folder}/status"), "Uid").split()[:4]
    return tuple(int(word) for word in words if is_count(word))


def context_switches(root: HostRoot, pid: int) -> int | None:
    """Return the number of a process's context switches, voluntary and involuntary together. The threads that the
    process has now are added up. Return None if no thread can be read."""
    statuses = (root.text(f"/proc/{pid}/task/{tid}/status") for tid, _ in root.numbered(f"/proc/{pid}/task", ""))
    found = [switches for text in statuses if (switches := parse_switches(text)) is not None]
    return sum(found) if found else None


def migrations(root: HostRoot, tid: int) -> int | None:
    """Return how often the scheduler moved a thread to another CPU. Return None if the thread has ended, or if the
    kernel (without CONFIG_SCHED_DEBUG) does not show this number. ``tid``: the id of a thread of any process. /proc
    has a folder for each thread, although it lists only processes (proc_tid(5))."""
    return parse_migrations(root.text(f"/proc/{tid}/sched"))


def parse_switches(text: str | None) -> int | None:
    """Return the sum of the voluntary and the involuntary context switches in the text of a ``status`` file. Return
    None if one of the two numbers is missing."""
    voluntary, involuntary = (_value(text, f"{kind}_ctxt_switches") for kind in ("voluntary", "nonvoluntary"))
    return None if voluntary is None or involuntary is None else voluntary + involuntary


def parse_migrations(text: str | None) -> int | None:
    """Return the number of migrations, ``se.nr_migrations``, in the text of a ``sched`` file; None if it is not
    shown."""
    return _value(text, "se.nr_migrations")


def parse_task_stat(text: str | None, pid: int | None = None) -> Task | None:
    """Return the task in the text of a ``stat`` file (proc_pid_stat(5)). Return None if the text has another form.

    ``pid``: the process that the thread belongs to. None means that the file describes a process.
    """
    if text is None:
        return None
    first, _, rest = text.partition(" (")
    # A name may itself contain blanks and parentheses, so it ends at the last closing one.
    name, closing, tail = rest.rpartition(") ")
    fields = tail.split()
    if not closing or len(fields) < 20 or not (first.isascii() and first.isdigit() and len(first) <= 10):
        return None
    numbers = [_number(fields[i]) if i < len(fields) else 0 for i in (6, 17, 19, 36, 37)]
    if None in numbers:
        return None
    flags, threads, start, cpu, priority = (n or 0 for n in numbers)
    tid = int(first)
    return Task(
        tid=tid,
        pid=tid if pid is None else pid,
        name=printable(name, _TASK_NAME) or "?",
        state=printable(fields[0], 1),
        flags=flags,
        threads=threads,
        start_ticks=start,
        cpu=cpu,
        rt_priority=priority,
    )


def parse_allowed(text: str | None) -> CpuSet | None:
    """Return the CPUs that the line ``Cpus_allowed_list:`` of a ``status`` file lists. Return None if the file lacks
    this line, or if the list is damaged."""
    _, found, rest = ("\n" + (text or "")).rpartition("\nCpus_allowed_list:")
    return CpuSet.if_list(rest.partition("\n")[0]) if found else None


def _number(text: str) -> int | None:
    return int(text) if is_count(text) else None


def _value(text: str | None, key: str) -> int | None:
    """Return the number after ``key:`` in the first line that begins with this key. Return None if no line begins with
    the key, or if no number follows."""
    return _number(line_value(text, key))
