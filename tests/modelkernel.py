"""A model of what Linux does to a host's settings when one of them is written: for tests of apply and restore.

``ModelKernel`` is a ``HostWriter`` for a tree below a folder. It keeps the machine's state in memory, answers writes as
the kernel does, and writes the files that changed. It models what other settings lose by a write:

* a CPU that leaves or returns: interrupts and tasks that were bound to it, drivers that spread their queues anew,
  version 1 sets, SMT control, threads of a node (kernel/cpu.c, kernel/irq/cpuhotplug.c, kernel/cgroup/cpuset.c,
  drivers/net/virtio_net.c, mm/compaction.c);
* ``sched_setaffinity``: before 6.2 clamped to what the task's set has online, later the wish is kept (user_cpus_ptr);
* isolated partitions of version 2 and sets of version 1: which tasks' masks are overwritten, with what, and which
  writes are refused;
* threads of interrupts on a PREEMPT_RT kernel, which follow their interrupt by themselves;
* bound threads of the governor schedutil, which 6.1 opens when a partition goes.

``tests/lab/test_lab_model.py`` runs the same writes on real kernels and compares.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jitter_workshop.host.tasks.listing import PF_KTHREAD, PF_NO_SETAFFINITY
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.writer import HostWriter
from tests import hosttrees

CPU = "/sys/devices/system/cpu"
V2 = "/sys/fs/cgroup"
V1 = "/sys/fs/cgroup/cpuset"
WORKQUEUES = "/sys/devices/virtual/workqueue"
MACHINECHECK = "/sys/devices/system/machinecheck"
NO_CPUS = "Parent unable to distribute cpu downstream"
GOVERNORS = ("performance", "powersave", "schedutil")


@dataclass(frozen=True)
class Shape:
    """Hold what a machine is made of. ``kernel``: (6, 1) or (6, 12). ``cgroup``: 2, 1 or 0. ``siblings``: ``pairs``
    (0-1, 2-3) or ``halves`` (0,2 and 1,3). ``offline``: CPUs that somebody took offline before. ``frequency``: none,
    own or shared (one policy for each core). ``bound``: a governor's thread is bound to its policy (schedutil)."""

    cpus: int = 4
    threads: int = 2
    siblings: str = "pairs"
    nodes: int = 1
    kernel: tuple[int, int] = (6, 1)
    cgroup: int = 2
    realtime: bool = False
    offline: tuple[int, ...] = ()
    frequency: str = "none"
    bound: bool = False
    virtio: bool = True
    name: str = ""

    @functools.cache  # noqa: B019 - a few shapes, asked a million times
    def cores(self) -> list[tuple[int, ...]]:
        """The threads of each core."""
        if self.threads == 1:
            return [(cpu,) for cpu in range(self.cpus)]
        half = self.cpus // 2
        if self.siblings == "halves":
            return [(cpu, cpu + half) for cpu in range(half)]
        return [(2 * core, 2 * core + 1) for core in range(half)]

    @functools.cache  # noqa: B019
    def node_of(self, cpu: int) -> int:
        """The NUMA node of a CPU: whole cores, in order."""
        core = next(n for n, threads in enumerate(self.cores()) if cpu in threads)
        return core * self.nodes // len(self.cores())


@dataclass
class ModelTask:
    """One thread. ``mask``: where it may run. ``wish``: what a user asked for, which kernels from 6.2 keep. ``fixed``:
    it refuses sched_setaffinity. ``per_cpu``: bound to one CPU for good. ``follows``: the interrupt of its thread."""

    tid: int
    name: str
    mask: set[int]
    kernel: bool = False
    fixed: bool = False
    per_cpu: bool = False
    follows: int | None = None
    wish: set[int] | None = None
    group: str = "/"
    node: int | None = None
    start: int = 100


@dataclass
class ModelGroup:
    """A control group with CPUs. ``asked``: cpuset.cpus. ``partition``: version 2, as the file says it. ``refused``: a
    write made it a partition that is none, which newer kernels do not try again when a CPU leaves or returns."""

    asked: set[int] = field(default_factory=set)
    mems: str = ""
    balanced: bool = True
    partition: str = "member"
    refused: bool = False


@dataclass
class ModelIrq:
    """An interrupt. ``managed``: it refuses every write. ``queue``: a virtio card places it anew at each hotplug.
    ``moved``: it was moved, and its thread, which follows when it next arrives, has not followed yet."""

    number: int
    name: str
    mask: set[int]
    managed: bool = False
    queue: int | None = None
    moved: bool = False

    def move(self, mask: set[int]) -> None:
        self.mask, self.moved = set(mask), True


class ModelKernel(HostWriter):
    """The machine. ``write``, ``make_folder``, ``remove_folder``, ``set_affinity`` are what the product calls; methods
    with ``stranger_`` are what somebody else does meanwhile."""

    def __init__(self, top: Path, shape: Shape) -> None:
        super().__init__(top)
        self.top, self.shape = top, shape
        self.new = shape.kernel >= (6, 2)
        self.possible = set(range(shape.cpus))
        self.online = set(self.possible)
        self.groups: dict[str, ModelGroup] = {"/": ModelGroup(set(self.possible), "0")}
        self.controllers = False
        self.smt_off: set[int] = set()
        self.irqs = self._irqs()
        self.xps = {n: {n % shape.cpus} for n in range(2)} if shape.virtio else {}
        self.workqueues = {"": set(self.possible), "writeback/": set(self.possible)}
        self.governors = dict.fromkeys(self._policies(), "schedutil" if shape.bound else "powersave")
        self.files: dict[str, str] = {}
        self.tasks: dict[int, ModelTask] = {}
        self._had = self._each_has()
        self.step: Callable[[str], None] = lambda name: None
        """Called before and after each write: a test may die there."""
        self._clock = 200
        self._make_tasks()
        for cpu in shape.offline:
            self._goes(cpu)
        self._shown: dict[str, str] = {}
        hosttrees.write_quickly(top, self._fixed_files())
        for folder in self._folders():
            (top / folder[1:]).mkdir(parents=True, exist_ok=True)
        self.show()

    # Parts of the machine ---------------------------------------------------------------------------------------

    def _irqs(self) -> dict[int, ModelIrq]:
        every, n = sorted(self.possible), self.shape.cpus
        found = [
            ModelIrq(0, "timer", {0}, managed=True),
            ModelIrq(9, "acpi", set(every)),
            ModelIrq(24, "ahci[0000:00:1f.2]", set(every)),
            ModelIrq(25, "eth0-TxRx-0", {every[-1]}),
            ModelIrq(26, "nvme0q1", {every[-1]}, managed=True),
        ]
        if self.shape.virtio:
            found += [
                ModelIrq(30 + q, f"virtio0-{'input' if q % 2 == 0 else 'output'}.{q // 2}", {q % n}, queue=q)
                for q in range(4)
            ]
        return {irq.number: irq for irq in found}

    def _policies(self) -> dict[int, tuple[int, ...]]:
        """Each frequency policy by its first CPU."""
        if self.shape.frequency == "none":
            return {}
        if self.shape.frequency == "shared":
            return {core[0]: core for core in self.shape.cores()}
        return {cpu: (cpu,) for cpu in sorted(self.possible)}

    def _make_tasks(self) -> None:
        every = set(self.possible)
        last = max(every)
        self._born(1, "init", every)
        self._born(2, "kthreadd", every, kernel=True)
        for cpu in sorted(every):
            self._born(10 + cpu, f"ksoftirqd/{cpu}", {cpu}, kernel=True, fixed=True, per_cpu=True)
        self._born(50, "kauditd", every, kernel=True)
        self._born(51, "rcu_tasks", every, kernel=True)
        for node in range(self.shape.nodes):
            mine = {cpu for cpu in every if self.shape.node_of(cpu) == node}
            self._born(60 + node, f"kswapd{node}", mine, kernel=True)
            self._born(70 + node, f"kcompactd{node}", mine, kernel=True, node=node)
        if self.shape.bound:
            for number, cpus in self._policies().items():
                self._born(80 + number, f"sugov:{number}", set(cpus), kernel=True, fixed=True)
        if self.shape.realtime:
            for irq in self.irqs.values():
                if not irq.managed:
                    name = f"irq/{irq.number}-{irq.name[:8]}"
                    self._born(120 + irq.number, name, set(irq.mask), kernel=True, follows=irq.number)
        self._born(300, "sh", every)
        self._born(301, "pinned", {last}, wish={last})
        self._born(302, "some", {0, last}, wish={0, last})

    def _born(self, tid: int, name: str, mask: set[int], **more: object) -> None:
        self.tasks[tid] = ModelTask(tid, name, set(mask), **more)  # type: ignore[arg-type]

    # Files ------------------------------------------------------------------------------------------------------

    def _fixed_files(self) -> dict[str, str]:
        release = "6.1.0-30-rt-amd64" if self.shape.realtime else f"{self.shape.kernel[0]}.{self.shape.kernel[1]}.0"
        version = "#1 SMP PREEMPT_RT" if self.shape.realtime else "#1 SMP PREEMPT_DYNAMIC"
        files = hosttrees.kernel("model", release=release, version=version) | hosttrees.clock()
        files |= {
            "proc/cpuinfo": hosttrees.cpuinfo(self.shape.cpus, "Intel(R) Xeon(R)"),
            "proc/stat": hosttrees.stat(sorted(self.online)),
            "proc/self/cgroup": "0::/\n",
        }
        self.files["/proc/sys/vm/stat_interval"] = "1"
        self.files["/proc/irq/default_smp_affinity"] = _mask(self.possible)
        mounts = "22 27 0:21 / /proc rw - proc proc rw\n"
        if self.shape.cgroup == 2:
            mounts += "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
            files["sys/fs/cgroup/cgroup.controllers"] = "cpuset cpu io\n"
        elif self.shape.cgroup == 1:
            mounts += "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
            files["proc/self/cgroup"] = "3:cpuset:/\n"
        files["proc/self/mountinfo"] = mounts
        if self.shape.virtio:
            files |= hosttrees.network_card("eth1", driver="virtio_net", rps=("0", "0"), xps=("0", "0"))
        for number, cpus in self._policies().items():
            files |= hosttrees.policy(
                number,
                cpus=" ".join(map(str, cpus)),
                driver="acpi-cpufreq",
                governor=self.governors[number],
                low_khz=800_000,
                high_khz=2_400_000,
            )
            files[f"{CPU[1:]}/cpufreq/policy{number}/scaling_available_governors"] = f"{' '.join(GOVERNORS)}\n"
            self.files[f"{CPU}/cpufreq/policy{number}/scaling_min_freq"] = "800000"
        for node in range(self.shape.nodes):
            cpus = {cpu for cpu in self.possible if self.shape.node_of(cpu) == node}
            files[f"sys/devices/system/node/node{node}/cpulist"] = f"{_list(cpus)}\n"
        return files

    def _folders(self) -> list[str]:
        return [f"{WORKQUEUES}/writeback", *([V2] if self.shape.cgroup == 2 else [V1] if self.shape.cgroup else [])]

    def show(self) -> None:
        """Write the files that say something else now, and remove those that are gone."""
        wanted = self._texts()
        told = {path[1:]: f"{text}\n" for path, text in wanted.items() if self._shown.get(path) != text}
        hosttrees.write_quickly(self.top, told)
        for path in self._shown.keys() - wanted.keys():
            (self.top / path[1:]).unlink(missing_ok=True)
        self._shown = wanted

    def _texts(self) -> dict[str, str]:
        texts = dict(self.files)
        offline = self.possible - self.online
        texts |= {
            f"{CPU}/online": _list(self.online),
            f"{CPU}/offline": _list(offline),
            f"{CPU}/possible": _list(self.possible),
            f"{CPU}/present": _list(self.possible),
            f"{CPU}/isolated": "",
        }
        for cpu in self.possible:
            if cpu:
                texts[f"{CPU}/cpu{cpu}/online"] = str(int(cpu in self.online))
        for core in self.shape.cores():
            threads = [cpu for cpu in core if cpu in self.online]
            for cpu in threads:
                folder = f"{CPU}/cpu{cpu}/topology"
                node = self.shape.node_of(cpu)
                texts |= {
                    f"{folder}/core_cpus_list": _list(set(threads)),
                    f"{folder}/thread_siblings_list": _list(set(threads)),
                    f"{folder}/core_id": str(core[0]),
                    f"{folder}/physical_package_id": str(node),
                    f"{CPU}/cpu{cpu}/cache/index3/level": "3",
                    f"{CPU}/cpu{cpu}/cache/index3/type": "Unified",
                    f"{CPU}/cpu{cpu}/cache/index3/shared_cpu_list": _list(
                        {c for c in self.online if self.shape.node_of(c) == node}
                    ),
                    f"{MACHINECHECK}/machinecheck{cpu}/check_interval": self.files.get("check_interval", "12c"),
                }
        texts.pop("check_interval", None)
        if self.shape.threads > 1:
            texts[f"{CPU}/smt/control"] = "off" if self.smt_off else "on"
            seconds = {c for core in self.shape.cores() for c in core[1:]}
            texts[f"{CPU}/smt/active"] = str(int(bool(seconds & self.online)))
        rows = {str(irq.number): ([1] * len(self.online), f"IO-APIC 1-edge  {irq.name}") for irq in self.irqs.values()}
        texts["/proc/interrupts"] = hosttrees.interrupts(sorted(self.online), rows)
        for irq in self.irqs.values():
            texts[f"/proc/irq/{irq.number}/smp_affinity_list"] = _list(irq.mask)
        for queue, mask in self.xps.items():
            texts[f"/sys/class/net/eth1/queues/tx-{queue}/xps_cpus"] = _mask(mask)
        isolated = self._isolated()
        for name, mask in self.workqueues.items():
            shown = mask - isolated or mask if self.new and not name else mask
            texts[f"{WORKQUEUES}/{name}cpumask"] = _mask(shown)
        if self.new:
            texts[f"{WORKQUEUES}/cpumask_requested"] = _mask(self.workqueues[""])
        for number in self._policies():
            texts[f"{CPU}/cpufreq/policy{number}/scaling_governor"] = self.governors[number]
        texts |= self._group_texts()
        for task in self.tasks.values():
            flags = (PF_KTHREAD if task.kernel else 0) | (PF_NO_SETAFFINITY if task.fixed else 0)
            texts |= _task(task.tid, task.name, flags, _list(task.mask), task.start)
            texts[f"/proc/{task.tid}/cgroup"] = f"{'0:' if self.shape.cgroup == 2 else '3:cpuset'}:{task.group}"
        return texts

    def _group_texts(self) -> dict[str, str]:
        texts: dict[str, str] = {}
        if self.shape.cgroup == 2:
            texts[f"{V2}/cgroup.subtree_control"] = "cpuset" if self.controllers else ""
            texts[f"{V2}/cpuset.cpus.effective"] = _list(self.effective("/"))
            if self.new:
                texts[f"{V2}/cpuset.cpus.isolated"] = _list(self._isolated())
        for path, group in self.groups.items():
            members = "\n".join(str(t.tid) for t in self.tasks.values() if t.group == path)
            if self.shape.cgroup == 1:
                folder = V1 + (path if path != "/" else "")
                texts[f"{folder}/cpuset.cpus"] = _list(self.online if path == "/" else group.asked)
                texts[f"{folder}/cpuset.mems"] = group.mems
                texts[f"{folder}/cpuset.sched_load_balance"] = str(int(group.balanced))
                texts[f"{folder}/cpuset.effective_cpus"] = _list(self.effective(path))
                texts[f"{folder}/tasks"] = members
            elif self.shape.cgroup == 2 and path != "/":
                texts[f"{V2}{path}/cgroup.procs"] = members
                if self.controllers:
                    texts[f"{V2}{path}/cpuset.cpus"] = _list(group.asked)
                    texts[f"{V2}{path}/cpuset.cpus.effective"] = _list(self.effective(path))
                    texts[f"{V2}{path}/cpuset.cpus.partition"] = group.partition
                    if self.new:
                        texts[f"{V2}{path}/cpuset.cpus.exclusive"] = ""
        return texts

    # Contents of a set --------------------------------------------------------------------------------------------

    def _isolated(self) -> set[int]:
        """CPUs of valid isolated partitions."""
        return {c for g in self.groups.values() if g.partition == "isolated" for c in g.asked}

    def effective(self, path: str) -> set[int]:
        """The online CPUs that a set may use."""
        top = self.online - self._isolated()
        if path == "/":
            return top
        group = self.groups[path]
        if group.partition == "isolated":
            return group.asked & self.online
        return group.asked & top or top

    # Writes -------------------------------------------------------------------------------------------------------

    def write(self, path: str, text: str) -> None:
        """Answer a write as the kernel does. Raise OSError if the kernel would refuse it."""
        if path not in self._shown and path != f"{V2}/cgroup.procs":
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        with self._stepping(f"write {path}"):
            self._write(path, text.strip())

    @contextlib.contextmanager
    def _stepping(self, name: str) -> Iterator[None]:
        self.step(name)
        try:
            yield
        finally:
            self._had = self._each_has()
            self.show()
        self.step(name)

    def _write(self, path: str, text: str) -> None:
        parts = path.split("/")
        name = parts[-1]
        if path == f"{CPU}/smt/control":
            self._smt(text)
        elif name == "online" and path.startswith(f"{CPU}/cpu"):
            cpu = int(parts[-2][3:])
            if text == "1":
                if cpu in self.smt_off:
                    raise _error(errno.EPERM)
                self._comes(cpu)
            else:
                self._goes(cpu)
        elif path.startswith("/proc/irq/") and name == "smp_affinity_list":
            self._irq(self.irqs[int(parts[3])], set(CpuSet.parse_list(text)))
        elif name == "xps_cpus":
            self.xps[int(parts[-2][3:])] = set(CpuSet.parse_mask(text))
        elif path.startswith(WORKQUEUES):
            inside = path.removeprefix(f"{WORKQUEUES}/").removesuffix("cpumask")
            self.workqueues[inside] = set(CpuSet.parse_mask(text)) & self.possible
        elif name == "scaling_governor":
            self._governor(int(parts[-2][6:]), text)
        elif path == f"{V2}/cgroup.subtree_control":
            self._controllers(text)
        elif name in ("cgroup.procs", "tasks"):
            self._move(path, int(text))
        elif name.startswith("cpuset."):
            self._cpuset(path, name, text)
        elif name == "check_interval":
            self.files["check_interval"] = text
        else:
            self.files[path] = text

    def overwrite(self, path: str, data: bytes) -> None:
        raise AssertionError("no boot loader is modelled here")

    def _smt(self, text: str) -> None:
        if text == "off":
            going = {c for core in self.shape.cores() for c in core[1:]} & self.online
            for cpu in sorted(going):
                self._goes(cpu)
            self.smt_off = {c for core in self.shape.cores() for c in core[1:]}
        elif text == "on":
            coming, self.smt_off = self.smt_off, set()
            for cpu in sorted(coming - self.online):
                self._comes(cpu)
        else:
            raise _error(errno.EINVAL)

    def _goes(self, cpu: int) -> None:
        if cpu not in self.online:
            return
        if self.online == {cpu}:
            raise _error(errno.EBUSY)
        had = self._each_has()
        self.online.discard(cpu)
        for irq in self.irqs.values():
            if not irq.managed and not irq.mask & self.online:
                irq.move(self.online)
        self._partitions_checked()
        if self.shape.cgroup == 1:
            self._sets_lose(cpu)
        for number, cpus in self._policies().items():
            if not set(cpus) & self.online:
                self._end_governor(number)
        for task in self.tasks.values():
            if not task.per_cpu and not task.mask & self.online:
                task.mask, task.wish = set(self.possible), None
        self._sets_follow(had, hotplug=True)
        self._drivers()

    def _comes(self, cpu: int) -> None:
        if cpu in self.online:
            return
        had = self._each_has()
        self.online.add(cpu)
        for number, cpus in self._policies().items():
            if self.governors[number] == "schedutil" and set(cpus) & self.online == {cpu}:
                self._begin_governor(number)
        self._partitions_checked()
        self._sets_follow(had, hotplug=True)
        self._drivers()
        for task in self.tasks.values():
            if task.node is not None:
                task.mask = {c for c in self.possible if self.shape.node_of(c) == task.node}

    def _each_has(self) -> dict[str, set[int]]:
        return {path: self.effective(path) for path in self.groups}

    def _partitions_checked(self) -> None:
        """A CPU left or returned: partitions lose and regain what they are (``cpuset_hotplug_update_tasks``).

        One that has tasks and no CPU any more is none; the top has the others meanwhile. An older kernel tries one that
        is none again at each change, does not ask for its tasks then, and so lets it be one without a CPU every second
        time; its tasks keep the mask that they had, as an empty one is refused. A newer kernel waits for a CPU, and
        tries only what it took away by itself.
        """
        for path, group in self.groups.items():
            if group.partition == "isolated":
                if not self.online - self._isolated():
                    # All that is online is handed out: the kernel takes it back without telling the top's tasks.
                    group.partition = f"isolated invalid ({NO_CPUS})"
                elif self._populated(path) and not group.asked & self.online:
                    group.partition = f"isolated invalid ({NO_CPUS})"
                    self._top_changed(path)
            elif group.partition != "member" and not (self.new and group.refused) and not self._refusal(path):
                group.partition = "isolated"
                self._top_changed(path)

    def _populated(self, path: str) -> bool:
        return any(task.group == path for task in self.tasks.values())

    def _sets_lose(self, cpu: int) -> None:
        """Version 1 sets lose a CPU for good; tasks of one that is empty then go to its parent."""
        for path, group in list(self.groups.items()):
            if path == "/" or cpu not in group.asked:
                continue
            group.asked.discard(cpu)
            for task in [t for t in self.tasks.values() if t.group == path]:
                if group.asked:
                    self._set_mask(task, group.asked & self.online)
                else:
                    task.group = "/"
                    self._set_mask(task, self.possible)

    def _sets_follow(self, had: Mapping[str, set[int]], hotplug: bool = False) -> None:
        """Tasks of version 2 groups below the top follow where their group has other CPUs now.

        At a hotplug the kernel compares before it falls back to the parent's: a group that had none and has none is
        left alone, and one that uses its parent's is told each time.
        """
        if self.shape.cgroup == 2:
            top = self.effective("/")
            for path, group in self.groups.items():
                now = self.effective(path)
                if hotplug:
                    now = group.asked & (self.online if group.partition == "isolated" or not self.new else top)
                if path != "/" and path in had and now != had[path]:
                    for task in self.tasks.values():
                        if task.group == path:
                            self._set_mask(task, self.effective(path))
        self._had = self._each_has()

    def _drivers(self) -> None:
        """virtio_net spreads its queues over the CPUs that are online."""
        online = sorted(self.online)
        for irq in self.irqs.values():
            if irq.queue is not None:
                irq.move({online[irq.queue % len(online)]})
        for queue in self.xps:
            self.xps[queue] = {online[queue % len(online)]}

    def _irq(self, irq: ModelIrq, mask: set[int]) -> None:
        if irq.managed:
            raise _error(errno.EIO)
        if not mask & self.online:
            raise _error(errno.EINVAL)
        irq.move(mask)

    def _governor(self, number: int, name: str) -> None:
        if name not in GOVERNORS:
            raise _error(errno.EINVAL)
        old, self.governors[number] = self.governors[number], name
        if old == "schedutil" != name:
            self._end_governor(number)
        if name == "schedutil" != old:
            self._begin_governor(number)

    def _end_governor(self, number: int) -> None:
        for task in [t for t in self.tasks.values() if t.name == f"sugov:{number}"]:
            del self.tasks[task.tid]

    def _begin_governor(self, number: int) -> None:
        self._clock += 1
        cpus = set(self._policies()[number])
        self._born(1000 + self._clock, f"sugov:{number}", cpus, kernel=True, fixed=True, start=self._clock)

    # Tasks' masks -------------------------------------------------------------------------------------------------

    def set_affinity(self, tid: int, cpus: Iterable[int]) -> None:
        """``sched_setaffinity(2)``. Raise OSError if the kernel would refuse it."""
        with self._stepping(f"affinity {tid}"):
            self._set_affinity(tid, cpus)

    def _set_affinity(self, tid: int, cpus: Iterable[int]) -> None:
        task = self.tasks.get(tid)
        if task is None:
            raise _error(errno.ESRCH)
        if task.fixed:
            raise _error(errno.EINVAL)
        asked = set(cpus)
        # A partition without a CPU lets its tasks use what the top has.
        allowed = self.effective(task.group) or self.effective("/")
        if self.new and task.group == "/":
            allowed = self.possible - self._isolated()
            allowed = allowed if allowed & self.online else set(self.possible)
        mask = asked & allowed
        if not mask & self.online:
            raise _error(errno.EINVAL)
        if self.new:
            task.wish = asked
        task.mask = mask

    def _set_mask(self, task: ModelTask, mask: set[int]) -> None:
        """``set_cpus_allowed_ptr`` by a set: a user's wish narrows it from 6.2 on."""
        if self.new and task.wish is not None and mask & task.wish:
            mask = mask & task.wish
        if mask & self.online:
            task.mask = set(mask)

    def _top_changed(self, by: str = "") -> None:
        """The partition ``by`` came or went: the masks of the top's tasks (``update_tasks_cpumask``), and of those in
        other groups that have other CPUs by that (``update_sibling_cpumasks``)."""
        self._sets_follow({path: cpus for path, cpus in self._had.items() if path != by})
        for task in self.tasks.values():
            if task.group != "/" or task.per_cpu or (self.new and task.fixed):
                continue
            self._set_mask(task, self.possible - self._isolated() if self.new else self.effective("/"))

    def _move(self, path: str, tid: int) -> None:
        task = self.tasks.get(tid)
        if task is None:
            raise _error(errno.ESRCH)
        mount = V2 if self.shape.cgroup == 2 else V1
        target = path.rpartition("/")[0].removeprefix(mount) or "/"
        if task.group == target:
            return
        had = self.effective(task.group)
        if self.shape.cgroup == 1 and target != "/":
            group = self.groups[target]
            if not group.asked or not group.mems:
                raise _error(errno.ENOSPC)
        if task.fixed or (tid == 2 and target != "/"):
            raise _error(errno.EINVAL)
        if not self.effective(target):
            raise _error(errno.ENOSPC)
        task.group = target
        if self.shape.cgroup == 2 and self.new and self.effective(target) == had:
            return  # cpuset_attach() looks at no mask then
        self._attach(task, target)

    def _attach(self, task: ModelTask, target: str) -> None:
        """``cpuset_attach``: a task gets the CPUs of the group that it comes to."""
        if target == "/":
            self._set_mask(task, self.possible - self._isolated() if self.new else self.possible)
        else:
            self._set_mask(task, self.effective(target))

    # Control groups -----------------------------------------------------------------------------------------------

    def make_folder(self, path: str) -> None:
        """Make a group. Raise OSError if the kernel would refuse it."""
        mount = V2 if self.shape.cgroup == 2 else V1
        if not path.startswith(f"{mount}/"):
            super().make_folder(path)
            return
        name = path.removeprefix(mount)
        if name in self.groups:
            raise _error(errno.EEXIST)
        with self._stepping(f"mkdir {path}"):
            super().make_folder(path)
            self.groups[name] = ModelGroup()

    def remove_folder(self, path: str) -> None:
        """Remove an empty group. Raise OSError if the kernel would refuse it."""
        mount = V2 if self.shape.cgroup == 2 else V1
        if not path.startswith(f"{mount}/"):
            super().remove_folder(path)
            return
        name = path.removeprefix(mount)
        if name not in self.groups:
            raise _error(errno.ENOENT)
        if any(task.group == name for task in self.tasks.values()):
            raise _error(errno.EBUSY)
        with self._stepping(f"rmdir {path}"):
            group = self.groups.pop(name)
            if group.partition == "isolated":
                self._top_changed()
            self.show()
            (self.top / path[1:]).rmdir()

    def _controllers(self, text: str) -> None:
        """Groups have lists only as long as the controller is handed down; it goes and takes the lists along.

        Tasks below the top change their cpuset by that, which older kernels take for a move: they overwrite the masks
        (``cgroup_update_dfl_csses``, ``cpuset_attach``).
        """
        had, on = self._each_has(), text == "+cpuset"
        moved = [task for task in self.tasks.values() if task.group != "/" and on != self.controllers]
        if self.controllers and not on:
            for path, group in self.groups.items():
                was, group.partition = group.partition, "member"
                group.asked = group.asked if path == "/" else set()
                if was != "member":
                    self._top_changed(path)
        self.controllers = on
        self._sets_follow(had)
        for task in moved if not self.new else ():
            self._attach(task, task.group if on else "/")

    def _cpuset(self, path: str, name: str, text: str) -> None:
        mount = V2 if self.shape.cgroup == 2 else V1
        where = path.rpartition("/")[0].removeprefix(mount) or "/"
        group = self.groups[where]
        inside = [task for task in self.tasks.values() if task.group == where]
        if name == "cpuset.cpus":
            asked = set(CpuSet.parse_list(text))
            if self.shape.cgroup == 1 and (where == "/" or asked - self.online):
                raise _error(errno.EACCES if where == "/" else errno.EINVAL)
            if not asked and inside:
                raise _error(errno.ENOSPC)
            if asked == group.asked:
                return
            had, before, group.asked = self.effective(where), group.asked, asked
            if group.partition != "member":
                refusal = self._refusal(where)
                if self.new and group.partition != "isolated":
                    # A newer kernel asks of the list that goes, too, whether it left everybody a CPU.
                    refusal = refusal or self._refusal(where, before)
                self._become(where, refusal)
            elif self.effective(where) == had:
                return
            for task in inside:
                self._set_mask(task, self.effective(where))
        elif name == "cpuset.mems":
            group.mems = text
        elif name == "cpuset.sched_load_balance":
            group.balanced = text == "1"
        elif name == "cpuset.cpus.partition":
            if text == group.partition:
                return
            if text == "isolated":
                had = self.effective(where)
                self._become(where, self._refusal(where))
                if self.effective(where) != had:
                    for task in inside:
                        self._set_mask(task, self.effective(where))
            elif text == "member":
                was, group.partition = group.partition, "member"
                if was == "isolated" or not self.new:
                    self._top_changed(where)
            else:
                raise _error(errno.EINVAL)

    def _refusal(self, where: str, asked: set[int] | None = None) -> str:
        """Return why a group cannot be a partition, with its own list or another; nothing where it can. The top always
        has tasks and must keep a CPU; that the group's tasks need one, too, only a newer kernel asks."""
        asked = self.groups[where].asked if asked is None else asked
        others = {path: group for path, group in self.groups.items() if path not in ("/", where)}
        given = {cpu for group in others.values() if group.partition == "isolated" for cpu in group.asked}
        if not asked:
            return "Cpu list in cpuset.cpus is empty"
        if not self.new and asked & {cpu for group in others.values() for cpu in group.asked}:
            return "Cpu list in cpuset.cpus not exclusive"
        if not self.online - given - asked or (self.new and self._populated(where) and not asked & self.online):
            return NO_CPUS
        return ""

    def _become(self, where: str, refusal: str) -> None:
        """A write makes a group a partition, or one that is none."""
        group = self.groups[where]
        was, group.refused = group.partition, bool(refusal)
        group.partition = f"isolated invalid ({refusal})" if refusal else "isolated"
        if "isolated" in (was, group.partition):
            self._top_changed(where)

    # Actions of others --------------------------------------------------------------------------------------------

    def threads_follow(self) -> None:
        """Each interrupt arrives: the thread of one that was moved takes its CPUs (``irq_thread_check_affinity``)."""
        for task in self.tasks.values():
            irq = self.irqs[task.follows] if task.follows is not None else None
            if irq is not None and irq.moved and irq.mask & self.online:
                task.mask = irq.mask & self.online
                irq.moved = False
        self.show()

    def stranger_ends(self, tid: int) -> None:
        """A task ends."""
        del self.tasks[tid]
        self.show()

    def stranger_does(self, what: str, name: str = "", cpus: Iterable[int] = ()) -> bool:
        """Somebody switches a CPU, or makes, fills, isolates or removes a group ``name``; whether the kernel let them.
        No step of ours is counted."""
        self.step, step = (lambda name: None), self.step
        try:
            self._stranger_does(what, f"/{name}", sorted(cpus))
        except OSError:
            return False
        else:
            return True
        finally:
            self.step = step

    def _stranger_does(self, what: str, name: str, cpus: list[int]) -> None:
        mount = V2 if self.shape.cgroup == 2 else V1
        if what in ("off", "on"):
            if (cpus[0] in self.online) == (what == "on"):
                raise _error(errno.EALREADY)  # afterwards nothing shows that it was asked for
            self.write(f"{CPU}/cpu{cpus[0]}/online", str(int(what == "on")))
        elif self.shape.cgroup == 0 or (self.shape.cgroup == 1 and what in ("hand", "partition")):
            raise _error(errno.ENOENT)
        elif what == "hand":
            self.write(f"{V2}/cgroup.subtree_control", "+cpuset")
        elif what in ("slice", "partition"):
            if name in self.groups or set(cpus) - self.possible:
                raise _error(errno.EEXIST)
            if self.shape.cgroup == 2:
                self.write(f"{V2}/cgroup.subtree_control", "+cpuset")
            self.make_folder(f"{mount}{name}")
            try:
                self.write(f"{mount}{name}/cpuset.cpus", ",".join(map(str, cpus)))
                if self.shape.cgroup == 1:
                    self.write(f"{mount}{name}/cpuset.mems", "0")
                if what == "partition":
                    self.write(f"{mount}{name}/cpuset.cpus.partition", "isolated")
                    if self.groups[name].partition != "isolated":
                        raise _error(errno.EINVAL)
            except OSError:
                self.remove_folder(f"{mount}{name}")
                raise
        elif what == "gone":
            if name not in self.groups:
                raise _error(errno.ENOENT)
            for task in [t for t in self.tasks.values() if t.group == name]:
                self.write(f"{mount}/{self._members}", str(task.tid))
            self.remove_folder(f"{mount}{name}")
        elif what == "enter":
            task = next(t for t in self.tasks.values() if t.tid == cpus[0])
            self.write(f"{mount}{name.rstrip('/')}/{self._members}", str(task.tid))
        else:
            raise ValueError(what)

    @property
    def _members(self) -> str:
        return "cgroup.procs" if self.shape.cgroup == 2 else "tasks"

    def snapshot(self) -> dict[str, str]:
        """All that must be as before: every file, tasks' masks, policies and groups."""
        left_out = ("/proc/", "tasks", "cgroup.procs")
        found = {p: t for p, t in self._shown.items() if not p.startswith("/proc/") and not p.endswith(left_out)}
        found |= {p: t for p, t in self._shown.items() if p.startswith("/proc/irq/")}
        found |= {f"task {t.name}": f"{_list(t.mask)} in {t.group}" for t in self.tasks.values()}
        return found


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """One line for each difference; tasks that have ended are none."""
    return [
        f"{path}: {before.get(path, '(was not there)')!r} -> {after.get(path, '(is gone)')!r}"
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path) and not (path.startswith("task ") and path not in after)
    ]


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def _list(cpus: set[int]) -> str:
    return _list_of(frozenset(cpus))


def _mask(cpus: set[int]) -> str:
    return CpuSet.of(cpus).to_mask()


@functools.cache
def _list_of(cpus: frozenset[int]) -> str:
    return str(CpuSet.of(cpus))


@functools.cache
def _task(tid: int, name: str, flags: int, allowed: str, start: int) -> dict[str, str]:
    """The files of a task, which few writes change."""
    files = hosttrees.task(tid, name, flags=flags, allowed=allowed, start=start)
    return {f"/{path}": text.rstrip("\n") for path, text in files.items()}
