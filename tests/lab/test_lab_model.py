"""The model of a kernel against real ones: the same writes, and after each of them the same masks, sets and refusals.

The property tests of apply and restore stand on the rules of ``tests/modelkernel.py`` for CPUs that come and go, for
partitions and sets, and for affinities.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.model.cpuset import CpuSet
from tests.lab.machine import Machine
from tests.lab.shapes import SHAPES
from tests.modelkernel import CPU, V1, V2, ModelKernel, ModelTask, Shape

pytestmark = pytest.mark.lab

OWN = "jitter-workshop"
CHILDREN = ("wide", "pinned", "some")
Write = tuple[str, ...]


def writes(seed: int, version: int, count: int) -> list[Write]:
    """Drawn writes: CPUs leave and return, tasks are bound, a set is made, changed, entered, left and removed.

    They are writes as the tool makes them: a set is given CPUs that are online before it becomes a partition or takes a
    task.
    """
    draw = random.Random(seed)
    online, listed = {0, 1, 2, 3}, {3}
    found: list[Write] = [("group", "make")] if version == 1 else [("controllers", "+cpuset"), ("group", "make")]
    found.append(("list", "3"))
    for _ in range(count):
        what = draw.choices(("online", "mask", "list", "partition", "move"), (4, 5, 2, 4 * (version == 2), 2))[0]
        if what == "online":
            cpu, state = draw.choice((1, 2, 3)), draw.choice((0, 1, 1))
            (online.add if state else online.discard)(cpu)
            listed -= {cpu} if version == 1 and not state else set()
            found.append(("online", str(cpu), str(state)))
        elif what == "mask":
            found.append(("mask", draw.choice(CHILDREN), draw.choice(("1", "3", "2-3", "0-1", "0,3", "0-3", "2"))))
        elif what == "list" and len(online) > 1:
            listed = set(draw.sample(sorted(online - {0}), draw.randint(1, len(online) - 1)))
            found.append(("list", ",".join(map(str, sorted(listed)))))
        elif what == "partition" and listed & online:
            found.append(("partition", draw.choice(("isolated", "isolated", "member"))))
        elif what == "move" and listed & online:
            found.append(("move", draw.choice(CHILDREN), draw.choice(("top", "group"))))
    found += [("online", str(cpu), "1") for cpu in (1, 2, 3)]
    found += [("move", name, "top") for name in CHILDREN]
    if version == 1:
        return [*found, ("group", "remove")]
    return [*found, ("partition", "member"), ("group", "remove"), ("controllers", "-cpuset")]


def on_the_kernel(
    project: str, version: int, own: str, names: list[str], writes: list[list[str]]
) -> list[list[object]]:
    """(In the guest) make the writes, and say after each its error and what the kernel says then."""
    import os
    import time

    top = "/sys/fs/cgroup" if version == 2 else "/sys/fs/cgroup/cpuset"
    members = "cgroup.procs" if version == 2 else "tasks"
    children = {}
    for name in names:
        child = os.fork()
        if child == 0:
            while True:
                time.sleep(0.005)
        children[name] = child

    def text(path: str) -> str:
        with open(path) as file:
            return file.read().strip()

    def put(path: str, value: str) -> None:
        file = os.open(path, os.O_WRONLY)
        try:
            os.write(file, value.encode())
        finally:
            os.close(file)

    def mask(tid: int) -> str:
        lines = text(f"/proc/{tid}/status").splitlines()
        return next(line.split()[1] for line in lines if line.startswith("Cpus_allowed_list:"))

    def state() -> dict[str, object]:
        time.sleep(0.06)
        masks = {name: mask(tid) for name, tid in ({"init": 1, "kthreadd": 2} | children).items()}
        found: dict[str, object] = {"tasks": masks}
        found["online"] = text("/sys/devices/system/cpu/online")
        group = f"{top}/{own}"
        if os.path.isdir(group):
            found["list"] = text(f"{group}/cpuset.cpus")
            if version == 2:
                found["partition"] = text(f"{group}/cpuset.cpus.partition").split(" (")[0]
                found["effective"] = text(f"{top}/cpuset.cpus.effective")
        return found

    def make(what: str, *rest: str) -> None:
        group = f"{top}/{own}"
        if what == "online":
            put(f"/sys/devices/system/cpu/cpu{rest[0]}/online", rest[1])
        elif what == "mask":
            low_high = [part.split("-") for part in rest[1].split(",")]
            os.sched_setaffinity(children[rest[0]], {c for p in low_high for c in range(int(p[0]), int(p[-1]) + 1)})
        elif what == "list":
            put(f"{group}/cpuset.cpus", rest[0])
        elif what == "partition":
            put(f"{group}/cpuset.cpus.partition", rest[0])
        elif what == "move":
            put(f"{top if rest[1] == 'top' else group}/{members}", str(children[rest[0]]))
        elif what == "controllers":
            put(f"{top}/cgroup.subtree_control", rest[0])
        elif rest[0] == "make":
            os.mkdir(group)
            if version == 1:
                put(f"{group}/cpuset.mems", "0")
        else:
            os.rmdir(group)

    found: list[list[object]] = [[0, state()]]
    try:
        for what in writes:
            error = 0
            try:
                make(*what)
            except OSError as refusal:
                error = refusal.errno or -1
            found.append([error, state()])
    finally:
        for child in children.values():
            os.kill(child, 9)
            os.waitpid(child, 0)
    return found


class Modelled:
    """The same writes on the model."""

    def __init__(self, top: Path, kernel: tuple[int, int], version: int) -> None:
        self.version = version
        self.kernel = ModelKernel(top, Shape(kernel=kernel, cgroup=version, virtio=False))
        every = set(self.kernel.possible)
        kept = {tid: task for tid, task in self.kernel.tasks.items() if task.name in ("init", "kthreadd")}
        self.kernel.tasks = kept | {400 + n: ModelTask(400 + n, name, set(every)) for n, name in enumerate(CHILDREN)}
        self.kernel.show()

    def make(self, what: str, *rest: str) -> int:
        """Make a write; its error, 0 for none."""
        mount = V2 if self.version == 2 else V1
        members, group = "cgroup.procs" if self.version == 2 else "tasks", f"{mount}/{OWN}"
        tids = {task.name: task.tid for task in self.kernel.tasks.values()}
        try:
            if what == "mask":
                self.kernel.set_affinity(tids[rest[0]], CpuSet.parse_list(rest[1]))
            elif what == "group" and rest[0] == "make":
                self.kernel.make_folder(group)
                if self.version == 1:
                    self.kernel.write(f"{group}/cpuset.mems", "0")
            elif what == "group":
                self.kernel.remove_folder(group)
            else:
                path, value = {
                    "online": lambda: (f"{CPU}/cpu{rest[0]}/online", rest[-1]),
                    "list": lambda: (f"{group}/cpuset.cpus", rest[0]),
                    "partition": lambda: (f"{group}/cpuset.cpus.partition", rest[0]),
                    "move": lambda: (f"{mount if rest[1] == 'top' else group}/{members}", str(tids[rest[0]])),
                    "controllers": lambda: (f"{mount}/cgroup.subtree_control", rest[0]),
                }[what]()
                self.kernel.write(path, value)
        except OSError as refusal:
            return refusal.errno or -1
        return 0

    def state(self) -> dict[str, Any]:
        kernel = self.kernel
        found: dict[str, Any] = {"tasks": {task.name: str(CpuSet.of(task.mask)) for task in kernel.tasks.values()}}
        found["online"] = str(CpuSet.of(kernel.online))
        own = kernel.groups.get(f"/{OWN}")
        if own is not None:
            found["list"] = str(CpuSet.of(own.asked))
            if self.version == 2:
                found["partition"] = own.partition.split(" (")[0]
                found["effective"] = str(CpuSet.of(kernel.effective("/")))
        return found


def compare(machine: Machine, tmp_path: Path, kernel: tuple[int, int], version: int, seeds: range, count: int) -> None:
    wrong = []
    for seed in seeds:
        drawn = writes(seed, version, count)
        real = machine.call(on_the_kernel, "", version, OWN, list(CHILDREN), [list(one) for one in drawn])
        model = Modelled(tmp_path / str(seed), kernel, version)
        for task in model.kernel.tasks.values():
            task.mask = set(CpuSet.parse_list(real[0][1]["tasks"][task.name]))
        for position, (error, state) in enumerate(real):
            made = 0 if position == 0 else model.make(*drawn[position - 1])
            before = drawn[:position]
            if (made != 0) != (error != 0):
                wrong.append((seed, before[-6:], f"the kernel answers {error}, the model {made}"))
                break
            if state != model.state():
                wrong.append((seed, before[-6:], f"the kernel: {state}", f"the model: {model.state()}"))
                break
    assert wrong == [], "\n".join(map(str, wrong))


def test_the_model_is_a_6_1(lab: Machine, tmp_path: Path) -> None:
    compare(lab, tmp_path, (6, 1), 2, range(4), 40)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "kernel", "version"), [("smt", (6, 1), 2), ("v1", (6, 1), 1), ("newest", (6, 12), 2), ("rt", (6, 1), 2)]
)
def test_the_model_is_a_kernel(
    name: str, kernel: tuple[int, int], version: int, lab_shape: Callable[..., Machine], tmp_path: Path
) -> None:
    compare(lab_shape(SHAPES[name]), tmp_path, kernel, version, range(100, 112), 60)
