"""CPUs, cores, packages and caches of unlike machines."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.cpu import topology as subject
from jitter_workshop.host.cpu.topology import parse_size, read_topology
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.cgroup import Cgroup
from jitter_workshop.model.cpuset import CpuSet
from tests import hosttrees
from tests.hosttrees import CPU, write


def test_a_guest(host_tree: Callable[[str], Path]) -> None:
    machine = read_topology(HostRoot(host_tree("guest")))
    assert [(c.id, c.package, c.core, c.node, c.core_type) for c in machine.cpus] == [
        (0, 0, 0, 0, None),
        (1, 0, 1, 0, None),
    ]
    assert machine.online == machine.allowed == CpuSet((0, 1))
    cache = machine.last_level_cache(1)
    assert cache is not None
    assert (cache.level, cache.size_bytes, cache.cpus) == (3, 32 << 20, CpuSet((0, 1)))


def test_a_server_with_two_packages_and_smt(host_tree: Callable[[str], Path]) -> None:
    machine = read_topology(HostRoot(host_tree("server64")))
    assert len(machine.cpus) == 64
    cpu = machine.cpu(50)
    assert cpu is not None
    assert (cpu.package, cpu.node, cpu.core, cpu.smt_siblings) == (1, 1, 2, CpuSet((18, 50)))
    assert {len(c.smt_siblings) for c in machine.cpus} == {2}
    assert [(c.level, str(c.cpus)) for c in machine.caches if c.level == 3] == [(3, "0-15,32-47"), (3, "16-31,48-63")]
    assert sum(c.level == 1 and c.kind == "Instruction" for c in machine.caches) == 32


def test_a_hybrid_laptop_names_its_cores(host_tree: Callable[[str], Path]) -> None:
    machine = read_topology(HostRoot(host_tree("hybrid_laptop")))
    assert [c.core_type for c in machine.cpus] == ["performance"] * 8 + ["efficiency"] * 8
    assert machine.cpus[3].smt_siblings == CpuSet((2, 3))
    assert machine.caches == ()
    assert machine.last_level_cache(0) is None


def test_unlike_capacities_tell_the_core_types(host_tree: Callable[[str], Path]) -> None:
    machine = read_topology(HostRoot(host_tree("arm_server")))
    assert [c.core_type for c in machine.cpus] == ["efficiency"] * 4 + ["performance"] * 4


@pytest.mark.parametrize("capacities", [["1024"] * 3, ["1024", "1000", "900"], ["", "1024", "0"], ["x", "y", "z"]])
def test_alike_or_unknown_capacities_tell_nothing(tmp_path: Path, capacities: list[str]) -> None:
    hosttrees.small(tmp_path, 3)
    for n, text in enumerate(capacities):
        hosttrees.write(tmp_path, {f"{CPU}/cpu{n}/cpu_capacity": text})
    assert [c.core_type for c in read_topology(HostRoot(tmp_path)).cpus] == [None] * 3


def test_offline_cpus_are_listed_and_unknown(host_tree: Callable[[str], Path]) -> None:
    machine = read_topology(HostRoot(host_tree("offline")))
    assert [c.id for c in machine.cpus] == list(range(8))
    assert machine.online == machine.allowed == CpuSet((0, 1, 3, 4, 6))
    gone = machine.cpu(5)
    assert gone is not None
    assert (gone.online, gone.allowed, gone.package, gone.core, gone.node) == (False, False, -1, -1, -1)
    assert gone.smt_siblings == CpuSet((5,))


def test_without_the_list_each_cpus_own_file_counts(host_tree: Callable[[str], Path], tmp_path: Path) -> None:
    hosttrees.offline(tmp_path)
    for text in ("", "damaged"):
        (tmp_path / CPU / "online").write_text(text)
        assert read_topology(HostRoot(tmp_path)).online == CpuSet((0, 1, 3, 4, 6))


@pytest.mark.parametrize("count", [1, 3])
def test_small_machines(tmp_path: Path, count: int) -> None:
    machine = read_topology(HostRoot(hosttrees.small(tmp_path, count)))
    assert machine.online == CpuSet.of(range(count))
    assert all(c.package == 0 for c in machine.cpus)


def test_an_empty_tree_is_an_empty_topology(tmp_path: Path) -> None:
    assert read_topology(HostRoot(tmp_path)).cpus == ()


def test_cpus_without_a_topology_folder_stand_alone(tmp_path: Path) -> None:
    hosttrees.write(tmp_path, {f"{CPU}/online": "0-1\n", f"{CPU}/cpu0/uevent": "", f"{CPU}/cpu1/uevent": ""})
    assert [(c.package, c.core, c.node, c.smt_siblings) for c in read_topology(HostRoot(tmp_path)).cpus] == [
        (0, 0, 0, CpuSet((0,))),
        (0, 1, 0, CpuSet((1,))),
    ]


def test_a_live_host_is_limited_by_mask_and_cpuset(monkeypatch: pytest.MonkeyPatch) -> None:
    online = CpuSet.of(range(8))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {1, 2, 3, 9})
    monkeypatch.setattr(subject, "read_cgroup", lambda root: Cgroup(2, cpuset=CpuSet((2, 3, 4))))
    assert subject.allowed_cpus(HostRoot(), online) == CpuSet((2, 3))
    monkeypatch.setattr(subject, "read_cgroup", lambda root: Cgroup(2, cpuset=CpuSet((6,))))
    assert subject.allowed_cpus(HostRoot(), online) == CpuSet((1, 2, 3))
    monkeypatch.setattr(subject, "read_cgroup", lambda root: Cgroup(None))
    assert subject.allowed_cpus(HostRoot(), online) == CpuSet((1, 2, 3))


def test_this_host_agrees_with_its_affinity_mask() -> None:
    machine = read_topology(HostRoot())
    assert set(machine.allowed) <= os.sched_getaffinity(0)
    assert len(machine.online) == os.sysconf("SC_NPROCESSORS_ONLN")


@given(st.integers(0, 10**12 - 1), st.sampled_from(["", "K", "M", "G"]))
def test_sizes_round_trip(number: int, unit: str) -> None:
    assert parse_size(f"{number}{unit}") == number * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[unit]


@given(st.text(max_size=40))
def test_garbage_in_every_file_never_raises(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    root = tmp_path_factory.mktemp("garbage")
    files = hosttrees.cpu_files(0, caches=[(1, "Data", "32K", "0")])
    raw = text.encode(errors="replace")
    for path in (
        *files,
        f"{CPU}/online",
        f"{CPU}/cpu0/cpu_capacity",
        "sys/devices/system/node/node0/cpulist",
        "sys/devices/cpu_core/cpus",
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(raw)
    assert any(c.id == 0 for c in read_topology(HostRoot(root)).cpus)
    parse_size(text)


def test_folders_and_links_where_files_are_expected(tmp_path: Path) -> None:
    hosttrees.small(tmp_path, 3)
    folder = tmp_path / CPU / "cpu1/topology"
    for name in ("core_id", "core_cpus_list"):
        (folder / name).unlink()
    (folder / "core_id").mkdir()
    (folder / "core_cpus_list").symlink_to("core_cpus_list")
    os.mkfifo(folder / "die_id")
    (tmp_path / CPU / "cpu7").write_text("not a folder")
    machine = read_topology(HostRoot(tmp_path))
    assert [(c.id, c.core, c.online) for c in machine.cpus] == [
        (0, 0, True),
        (1, 1, True),
        (2, 2, True),
        (7, -1, False),
    ]


class Counting(HostRoot):
    """Counts the files and folders that are opened."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.opened = 0

    def _bytes(self, path: str, limit: int, *, whole: bool) -> tuple[bytes | None, str]:
        self.opened += 1
        return super()._bytes(path, limit, whole=whole)

    def list_dir(self, path: str) -> tuple[str, ...]:
        self.opened += 1
        return super().list_dir(path)


def test_shared_parts_of_cpus_are_read_once(tmp_path: Path) -> None:
    """64 CPUs in 32 cores, 4 core complexes, 2 packages: 15 files a core, 4 a last-level cache, 2 a package and few."""
    root = Counting(hosttrees.big(tmp_path, cpus=64, irqs=0, nodes=4))
    machine = read_topology(root)
    assert root.opened <= 32 * 15 + 4 * 4 + 2 * 2 + 20
    assert [len(c.smt_siblings) for c in machine.cpus] == [2] * 64
    assert [c.package for c in machine.cpus] == [*[0] * 16, *[1] * 16] * 2
    assert [c.core for c in machine.cpus] == [*range(32)] * 2
    assert [c.node for c in machine.cpus] == [n for n in range(4) for _ in range(8)] * 2
    kinds = [(1, "Data", 32), (1, "Instruction", 32), (2, "Unified", 32), (3, "Unified", 4)]
    assert [(k[0], k[1], sum((c.level, c.kind) == k[:2] for c in machine.caches)) for k in kinds] == kinds
    assert str(machine.last_level_cache(40).cpus) == "8-15,40-47"  # type: ignore[union-attr]
    assert machine.online == CpuSet.of(range(64))


def test_cores_with_fewer_caches_beside_others(tmp_path: Path) -> None:
    """A small core without an L2 has its shared L3 in the place where a large one has its own L2."""
    files = hosttrees.cpu_lists("0-3")
    shared = (3, "Unified", "4096K", "0-3")
    for n in (0, 1):
        files |= hosttrees.cpu_files(n, caches=[(1, "Data", "32K", str(n)), shared])
    for n in (2, 3):
        files |= hosttrees.cpu_files(n, caches=[(1, "Data", "64K", str(n)), (2, "Unified", "512K", str(n)), shared])
    machine = read_topology(HostRoot(write(tmp_path, files)))
    assert [(c.level, str(c.cpus), c.size_bytes) for c in machine.caches] == [
        (1, "0", 32 << 10),
        (1, "1", 32 << 10),
        (1, "2", 64 << 10),
        (1, "3", 64 << 10),
        (2, "2", 512 << 10),
        (2, "3", 512 << 10),
        (3, "0-3", 4 << 20),
    ]


def test_siblings_that_share_no_cache_are_both_read(tmp_path: Path) -> None:
    """Virtual machines show threads of one core with caches of their own."""
    files = hosttrees.cpu_lists("0-1")
    for n in (0, 1):
        files |= hosttrees.cpu_files(
            n, siblings=(0, 1), caches=[(1, "Data", "32K", str(n)), (2, "Unified", "1M", "0-1")]
        )
    machine = read_topology(HostRoot(write(tmp_path, files)))
    assert [(c.level, str(c.cpus)) for c in machine.caches] == [(1, "0"), (1, "1"), (2, "0-1")]


def test_the_first_of_a_group_may_be_offline(tmp_path: Path) -> None:
    """The kernel takes offline CPUs out of their groups' lists; a recording may still name them."""
    files = hosttrees.cpu_lists("1-3", possible="0-3", offline="0")
    files |= hosttrees.cpu_files(0, online=False)
    for n in (1, 2, 3):
        pair = (0, 1) if n == 1 else (2, 3)
        files |= hosttrees.cpu_files(
            n, package=1, core=n // 2, siblings=pair, caches=[(1, "Data", "32K", hosttrees.ranges(pair))]
        )
    machine = read_topology(HostRoot(write(tmp_path, files)))
    assert [(c.id, c.online, c.package, c.core) for c in machine.cpus] == [
        (0, False, -1, -1),
        (1, True, 1, 0),
        (2, True, 1, 1),
        (3, True, 1, 1),
    ]
    assert [str(c.cpus) for c in machine.caches] == ["0-1", "2-3"]


@pytest.mark.parametrize("damage", hosttrees.DAMAGES)
def test_damaged_files_make_cpus_that_stand_alone(tmp_path: Path, damage: str) -> None:
    write(tmp_path, hosttrees.cpu_lists("0-1"))
    for cpu in (0, 1):
        for name in ("core_id", "physical_package_id", "core_cpus_list", "core_siblings_list"):
            hosttrees.damage(tmp_path / f"{CPU}/cpu{cpu}/topology/{name}", damage)
        for name in ("level", "type", "shared_cpu_list", "size"):
            hosttrees.damage(tmp_path / f"{CPU}/cpu{cpu}/cache/index0/{name}", damage)
        hosttrees.damage(tmp_path / f"{CPU}/cpu{cpu}/cpu_capacity", damage)
    machine = read_topology(HostRoot(tmp_path))
    assert [(c.id, c.package, c.core, c.smt_siblings) for c in machine.cpus] == [
        (0, 0, 0, CpuSet((0,))),
        (1, 0, 1, CpuSet((1,))),
    ]
    assert machine.caches == ()
