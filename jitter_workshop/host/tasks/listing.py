"""List all tasks in one pass over /proc, with their names, kinds and affinities; read the counters of a thread.

Tasks start and end during the pass; a task that has ended is left out. A task chooses its own name, so names are
untrusted; here each name is already one clean line. Sources: proc_pid_stat(5), proc_pid_status(5).
"""

from __future__ import annotations

from collections.abc import Iterator

from jitter_workshop.host.root import HostRoot, is_count, line_value, printable
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass

PF_WQ_WORKER = 0x0000_0020
PF_KTHREAD = 0x0020_0000
PF_NO_SETAFFINITY = 0x0400_0000
"""Flags of ``include/linux/sched.h`` in field 9 of ``stat``; the kernel refuses sched_setaffinity for a task with
0x04000000."""

_ENDED = ("Z", "X", "x")
_STAT_BYTES = 4_096
_STATUS_BYTES = 16_384


@dataclass(frozen=True, slots=True)
class Task:
    """Hold one process or thread. ``start_ticks``: its start in clock ticks (usually 10 ms) since boot; together with
    ``tid`` it is unique. ``flags``: the kernel's PF_ bits. ``cpu``: the CPU where it ran last. ``rt_priority``: 1 to
    99, 0 for a task that is not real-time. ``threads``: the number of threads of its process."""

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
        """Return True for a kernel thread."""
        return bool(self.flags & PF_KTHREAD)

    @property
    def fixed(self) -> bool:
        """Return True if the kernel lets no user change the task's affinity, as for threads that belong to one CPU."""
        return bool(self.flags & PF_NO_SETAFFINITY)

    @property
    def ended(self) -> bool:
        """Return True if the task no longer runs: it waits for its parent (``Z``) or is being removed (``X``). Its
        settings cannot change."""
        return self.state in _ENDED

    @property
    def worker(self) -> bool:
        """Return True for a worker of a workqueue; its affinity follows the masks of the workqueue."""
        return bool(self.flags & PF_WQ_WORKER)

    @property
    def folder(self) -> str:
        """Return the task's folder below /proc."""
        return f"/proc/{self.pid}" if self.tid == self.pid else f"/proc/{self.pid}/task/{self.tid}"


def task_ids(root: HostRoot) -> tuple[int, ...]:
    """Return the process ids (thread group leaders; every kernel thread is one) in number order."""
    return tuple(sorted(int(n) for n in root.list_dir("/proc") if n.isascii() and n.isdigit() and len(n) <= 10))


def read_task(root: HostRoot, pid: int, tid: int | None = None) -> Task | None:
    """Return one task, a process by ``pid`` or its thread ``tid``; None where it has ended or its line is damaged."""
    path = f"/proc/{pid}/stat" if tid is None else f"/proc/{pid}/task/{tid}/stat"
    return parse_stat(root.text(path, _STAT_BYTES), pid)


def each_process(root: HostRoot) -> Iterator[Task]:
    """Yield every running process and every kernel thread. One file is read for each of them.

    If the first thread of a process has ended and another one still runs, the process is yielded, too."""
    for pid in task_ids(root):
        task = read_task(root, pid)
        if task is not None and not (task.ended and task.threads < 2):
            yield task


def each_thread(root: HostRoot) -> Iterator[Task]:
    """Yield every running thread of every process, and every kernel thread. For a process with one thread no second
    file is read."""
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
    """Return the CPUs that a task may use, including offline ones; None if the task has ended."""
    return parse_allowed(root.text(f"{task.folder}/status", _STATUS_BYTES))


def context_switches(root: HostRoot, pid: int) -> int | None:
    """Return the sum of voluntary and involuntary switches of all threads that the process has now; None if no thread
    can be read."""
    statuses = (root.text(f"/proc/{pid}/task/{tid}/status") for tid, _ in root.numbered(f"/proc/{pid}/task", ""))
    found = [switches for text in statuses if (switches := parse_switches(text)) is not None]
    return sum(found) if found else None


def migrations(root: HostRoot, pid: int, tid: int) -> int | None:
    """Return how often a thread was moved to another CPU. Return None if it has ended, or the kernel (without
    CONFIG_SCHED_DEBUG) has no such file."""
    return parse_migrations(root.text(f"/proc/{pid}/task/{tid}/sched"))


def parse_switches(text: str | None) -> int | None:
    """Return the voluntary and involuntary switches of a ``status`` file; None where one of them is not shown."""
    voluntary, involuntary = (_value(text, f"{kind}_ctxt_switches") for kind in ("voluntary", "nonvoluntary"))
    return None if voluntary is None or involuntary is None else voluntary + involuntary


def parse_migrations(text: str | None) -> int | None:
    """Return ``se.nr_migrations`` of a ``sched`` file."""
    return _value(text, "se.nr_migrations")


def parse_stat(text: str | None, pid: int | None = None) -> Task | None:
    """Parse a ``stat`` line; the name is in parentheses and may itself contain blanks and parentheses.

    ``pid``: the process that the thread belongs to, None if the line is that of a process. Return None for any other
    text.
    """
    if text is None:
        return None
    first, _, rest = text.partition(" (")
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
        name=printable(name, 64) or "?",
        state=printable(fields[0], 1),
        flags=flags,
        threads=threads,
        start_ticks=start,
        cpu=cpu,
        rt_priority=priority,
    )


def parse_allowed(text: str | None) -> CpuSet | None:
    """Return ``Cpus_allowed_list`` of a ``status`` file; only a line that begins with it counts."""
    _, found, rest = ("\n" + (text or "")).rpartition("\nCpus_allowed_list:")
    return CpuSet.if_list(rest.partition("\n")[0]) if found else None


def _number(text: str) -> int | None:
    return int(text) if is_count(text) else None


def _value(text: str | None, key: str) -> int | None:
    """Return the number behind ``key:`` in a file's text; only the first such line counts. Text inside a task's name
    never counts."""
    return _number(line_value(text, key))
