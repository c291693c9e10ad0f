"""Test the choice of hot CPUs (asked for, isolated, tickless, or measured on) and its reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.flow.host_ops.hotcpus import choose_hot
from jitter_workshop.host.root import HostRoot
from tests import hosttrees

Tree = Callable[[str], Path]


def test_what_is_asked_for_wins(host_tree: Tree) -> None:
    hot = choose_hot(HostRoot(host_tree("server64")), "2-3,6")
    assert (hot.cpus.cpus, hot.source, hot.note) == ((2, 3, 6), "asked", "")


def test_isolated_cpus_win_over_the_placement(host_tree: Tree) -> None:
    hot = choose_hot(HostRoot(host_tree("server64")), None)
    assert (str(hot.cpus), hot.source) == ("30-31,62-63", "isolated")
    assert "isolcpus" in hot.why


def test_a_partition_of_cgroups_counts_as_isolated(tmp_path: Path) -> None:
    root = hosttrees.small(tmp_path, 4)
    hosttrees.write(root, {"sys/fs/cgroup/cpuset.cpus.isolated": "2-3\n"})
    hot = choose_hot(HostRoot(root), None)
    assert (hot.cpus.cpus, hot.source) == ((2, 3), "isolated")
    assert "cgroup" in hot.why


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


def test_of_two_cpus_the_second_is_hot(host_tree: Tree) -> None:
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
def test_what_is_no_list_is_refused_on_one_line(asked: str, host_tree: Tree) -> None:
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
