"""Test the choice of hot CPUs (asked for, isolated, tickless, or measured on) and its reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.bench import placement
from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.flow.host_ops.hotcpus import KEPT_FREE, SIBLINGS, choose_hot, whole_cores
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Cpu, Topology
from jitter_workshop.tuning.context import Host
from tests import hosttrees

Tree = Callable[[str], Path]


def test_hot_cpus_that_are_asked_for_are_taken(host_tree: Tree) -> None:
    hot = choose_hot(HostRoot(host_tree("small3")), "1-2")
    assert (hot.cpus.cpus, hot.source, hot.note) == ((1, 2), "asked", "")


def test_isolated_cpus_win_over_the_placement(host_tree: Tree) -> None:
    hot = choose_hot(HostRoot(host_tree("server64")), None)
    assert (str(hot.cpus), hot.source) == ("30-31,62-63", "isolated")
    assert "isolcpus" in hot.why


def test_a_partition_of_cgroups_counts_as_isolated(tmp_path: Path) -> None:
    root = hosttrees.small(tmp_path, 4)
    hosttrees.write(root, {"sys/fs/cgroup/cpuset.cpus.isolated": "2-3\n"})
    hot = choose_hot(HostRoot(root), None)
    assert (hot.cpus.cpus, hot.source) == ((2, 3), "isolated")
    assert "control group" in hot.why


def test_tickless_cpus_are_next(tmp_path: Path) -> None:
    root = hosttrees.small(tmp_path, 4)
    hosttrees.write(root, {f"{hosttrees.CPU}/nohz_full": "3\n"})
    assert choose_hot(HostRoot(root), None).cpus.cpus == (3,)


def test_isolated_cpus_that_are_offline_do_not_count(tmp_path: Path) -> None:
    root = hosttrees.offline(tmp_path)
    hosttrees.write(root, {f"{hosttrees.CPU}/isolated": "5,7\n"})
    hot = choose_hot(HostRoot(root), None)
    assert hot.source == "placement"
    assert not {2, 5, 7} & set(hot.cpus)


def test_a_host_with_two_cpus_has_the_second_one_hot(host_tree: Tree) -> None:
    hot = choose_hot(HostRoot(host_tree("guest")), None)
    assert (hot.cpus.cpus, hot.source, hot.note) == ((1,), "placement", "")
    assert "CPU 0" in hot.why


def test_one_cpu_is_hot_and_leaves_none(host_tree: Tree) -> None:
    hot = choose_hot(HostRoot(host_tree("small1")), None)
    assert hot.cpus.cpus == (0,)
    assert "housekeeping" in hot.note


@pytest.mark.parametrize("name", sorted(hosttrees.EVERY))
def test_every_host_has_hot_cpus_that_are_online(name: str, host_tree: Tree) -> None:
    root = HostRoot(host_tree(name))
    hot = choose_hot(root, None)
    online = root.cpu_list("/sys/devices/system/cpu/online")
    assert online is not None
    assert hot.cpus
    assert set(hot.cpus) <= set(online)
    assert hot.why


@pytest.mark.parametrize("asked", ["x", "1-", "-1", "3-2", "99999999", "1,,2", "\x1b[31m"])
def test_hot_cpus_that_are_no_cpu_list_are_refused_on_one_line(asked: str, host_tree: Tree) -> None:
    with pytest.raises(UsageError, match="--cpus") as refused:
        choose_hot(HostRoot(host_tree("guest")), asked)
    assert refused.value.sentence().isprintable()


@pytest.mark.parametrize(("asked", "said"), [("5", "offline"), ("0,40", "no CPU 40")])
def test_cpus_that_are_not_online_are_refused(asked: str, said: str, host_tree: Tree) -> None:
    with pytest.raises(HostError, match=said):
        choose_hot(HostRoot(host_tree("offline")), asked)


def test_no_cpu_named_is_refused(host_tree: Tree) -> None:
    with pytest.raises(UsageError, match="names no CPU"):
        choose_hot(HostRoot(host_tree("guest")), "")


def test_cpu_0_and_all_cpus_are_taken_with_a_note(host_tree: Tree) -> None:
    root = HostRoot(host_tree("small3"))
    assert "CPU 0" in choose_hot(root, "0").note
    assert "every online CPU" in choose_hot(root, "0-2").note


def test_a_host_that_shows_no_cpu_is_said_to(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    with pytest.raises(HostError, match="this host shows nothing about"):
        choose_hot(HostRoot(tmp_path), None)


# -- whole cores -------------------------------------------------------------------------------------------------------


def test_the_workshop_chooses_whole_cores(host_tree: Tree) -> None:
    hot = choose_hot(HostRoot(host_tree("hybrid_laptop")), None)
    assert (str(hot.cpus), hot.source, hot.note) == ("2-7", "placement", "")
    assert "CPU 2,4,6" in hot.why


def test_siblings_that_are_not_asked_for_are_kept_free_and_named(host_tree: Tree) -> None:
    root = HostRoot(host_tree("server64"))
    hot = choose_hot(root, "2-3,6")
    assert (hot.cpus.cpus, hot.source) == ((2, 3, 6), "asked")
    assert hot.note == f"CPU 34-35,38 share cores with hot CPUs, {KEPT_FREE} them, too"
    assert str(Host(root, hot.cpus).kept_clear) == "2-3,6,34-35,38"
    assert choose_hot(HostRoot(host_tree("server64")), "2,34").note == ""


def test_siblings_of_isolated_cpus_are_named(tmp_path: Path) -> None:
    root = hosttrees.hybrid_laptop(tmp_path)
    hosttrees.write(root, {f"{hosttrees.CPU}/isolated": "2\n"})
    hot = choose_hot(HostRoot(root), None)
    assert (hot.cpus.cpus, f"{KEPT_FREE} it" in hot.note) == ((2,), True)


@pytest.mark.parametrize(
    ("cores", "asked", "another"),
    [
        (((0, 1), (2, 3)), "1-2", "--cpus 2-3 "),
        (((0, 1), (2, 3)), "0,3", "--cpus 2-3 "),
        (((0, 1), (2, 3), (4, 5)), "1,3,5", "--cpus 2-3 "),
        (((0, 1),), "0", ""),
        (((0, 1),), "1", ""),
    ],
)
def test_where_no_core_is_left_another_choice_is_named(
    cores: tuple[tuple[int, ...], ...], asked: str, another: str
) -> None:
    machine = Topology(
        tuple(Cpu(n, 0, at, 0, True, True, CpuSet(core)) for at, core in enumerate(cores) for n in core), ()
    )
    note = choose_hot(HostRoot("/nonexistent"), asked, machine).note
    assert SIBLINGS in note
    assert another in note if another else "--cpus" not in note
    for words in note.split("--cpus ")[1:]:
        assert "sibling" not in choose_hot(HostRoot("/nonexistent"), words.split()[0], machine).note


def test_two_threads_of_the_only_core_are_not_both_hot(tmp_path: Path) -> None:
    files = hosttrees.kernel("box") | hosttrees.cpu_lists("0-1")
    for cpu in (0, 1):
        files |= hosttrees.cpu_files(cpu, siblings=(0, 1))
    hot = choose_hot(HostRoot(hosttrees.write(tmp_path, files)), None)
    assert (hot.cpus.cpus, "sibling of a hot CPU" in hot.note) == ((1,), True)


@st.composite
def machines(draw: st.DrawFn) -> Topology:
    """Draw machines of 1 to 9 cores with 1, 2 or 4 threads each, numbered core by core or thread by thread, with some
    CPUs offline or forbidden to this process."""
    threads, count = draw(st.sampled_from((1, 2, 4))), draw(st.integers(1, 9))
    total = threads * count
    by_core = draw(st.booleans())
    core = [n // threads if by_core else n % count for n in range(total)]
    offline = draw(st.sets(st.integers(1, total), max_size=total // 2))
    usable = [n for n in range(total) if n not in offline]
    forbidden = draw(st.sets(st.sampled_from(usable), max_size=len(usable) - 1))
    packages = draw(st.integers(1, 2))
    cpus = tuple(
        Cpu(
            id=n,
            package=core[n] % packages,
            core=core[n],
            node=core[n] % packages,
            online=n not in offline,
            allowed=n in usable and n not in forbidden,
            smt_siblings=CpuSet.of(m for m in usable if core[m] == core[n]) or CpuSet((n,)),
        )
        for n in range(total)
    )
    return Topology(cpus, ())


@given(machines())
def test_hot_cores_are_whole_and_leave_a_cpu_for_other_work(machine: Topology) -> None:
    hot = choose_hot(HostRoot("/nonexistent"), None, machine)
    online = machine.online
    assert hot.cpus
    assert not hot.cpus - online
    assert online - hot.cpus or len(online) == 1
    siblings = machine.siblings_of(hot.cpus)
    if siblings:
        assert str(siblings) in hot.note or not online - hot.cpus - siblings
    if machine.allowed == online and 0 not in siblings:
        assert not siblings or not online - hot.cpus - siblings


@given(machines())
def test_measured_threads_run_on_hot_cpus_that_are_no_idle_siblings(machine: Topology) -> None:
    hot = choose_hot(HostRoot("/nonexistent"), None, machine)
    host = Host(HostRoot("/nonexistent"), hot.cpus, machine)
    if len(machine.allowed) > 1:
        placed = CpuSet(placement.choose_cpus(machine, placement.Wish()).hot)
        assert not placed - hot.cpus
        assert not placed & host.hot_siblings
    assert not host.hot_siblings - hot.cpus
    for cpu in hot.cpus - host.hot_siblings if host.hot_siblings else ():
        assert host.core(cpu) & hot.cpus - host.hot_siblings == CpuSet((cpu,))


@given(machines(), st.data())
def test_whole_cores_are_closed_under_siblings(machine: Topology, data: st.DataObject) -> None:
    threads = CpuSet.of(data.draw(st.sets(st.sampled_from(machine.online.cpus), min_size=1)))
    cores = whole_cores(machine, threads)
    assert not threads - cores
    if cores == threads:
        assert not machine.siblings_of(threads) or not machine.online - threads - machine.siblings_of(threads)
    else:
        assert not machine.siblings_of(cores)
        assert machine.online - cores
        assert whole_cores(machine, cores) == cores


@given(machines(), st.data())
def test_cpus_that_are_asked_for_are_hot_alone_and_their_cores_are_kept_free(
    machine: Topology, data: st.DataObject
) -> None:
    threads = CpuSet.of(data.draw(st.sets(st.sampled_from(machine.online.cpus), min_size=1)))
    hot = choose_hot(HostRoot("/nonexistent"), str(threads), machine)
    host = Host(HostRoot("/nonexistent"), hot.cpus, machine)
    assert hot.cpus == threads
    assert host.kept_clear | host.housekeeping == machine.online
    assert not host.kept_clear & host.housekeeping
    siblings = machine.siblings_of(threads)
    if machine.online - threads - siblings:
        assert host.kept_clear == threads | siblings == whole_cores(machine, threads)
        assert (KEPT_FREE in hot.note) == bool(siblings)
    else:
        assert host.kept_clear == threads
        assert (SIBLINGS in hot.note) == bool(siblings)
