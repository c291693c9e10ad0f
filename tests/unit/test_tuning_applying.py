"""A plan whose earlier steps change what its later ones find: what the host does by itself is no foreign value."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Change
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning import applying
from jitter_workshop.tuning.applying import apply_changes
from jitter_workshop.tuning.setting_types.kinds import kind_of
from jitter_workshop.tuning.switched import Switched
from jitter_workshop.tuning.writer import HostWriter
from tests import hosttrees

ONLINE = f"/{hosttrees.CPU}/cpu3/online"
LIST = "/proc/irq/24/smp_affinity_list"
MASK = "/sys/class/net/eth0/queues/rx-0/rps_cpus"
sets = st.frozensets(st.integers(0, 130), max_size=12).map(CpuSet.of)


class Driver(HostWriter):
    """Takes a CPU out of the masks at once when it goes offline."""

    def write(self, path: str, text: str) -> None:
        super().write(path, f"{text}\n")
        if path == ONLINE and text == "0":
            super().write(LIST, "2\n")
            super().write(MASK, "4\n")


class Book:
    """A journal that is not read again."""

    def __getattr__(self, name: str) -> Any:
        return lambda *told: None


def change(n: int, path: str, before: str, after: str, kind: str) -> Change:
    return Change(n, "irq-affinity", path, before, after, "runtime", "low", "Because.", kind=kind)


OFFLINE = change(1, ONLINE, "1", "0", "number")
LATER = (change(2, LIST, "2-3", "0-1", "cpu-list"), change(3, MASK, "c", "3", "cpu-mask"))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = hosttrees.cpu_lists("0-3") | {ONLINE[1:]: "1\n", LIST[1:]: "2-3\n", MASK[1:]: "c\n"}
    return hosttrees.write(tmp_path, files)


def test_masks_that_lost_the_cpu_that_the_plan_took_offline_are_as_planned(tree: Path) -> None:
    done = apply_changes(HostRoot(tree), Driver(tree), (OFFLINE, *LATER), Book())
    assert done.refused == ()
    assert [one.read_back for one in done.applied] == ["0", "0-1", "3"]


@pytest.mark.parametrize(("path", "text"), [(LIST, "1-2"), (LIST, "0"), (MASK, "6"), (MASK, "1")])
def test_a_foreign_value_is_still_foreign(tree: Path, path: str, text: str) -> None:
    class Meddler(Driver):
        def write(self, to: str, value: str) -> None:
            super().write(to, value)
            if to == ONLINE:
                HostWriter.write(self, path, f"{text}\n")

    done = apply_changes(HostRoot(tree), Meddler(tree), (OFFLINE, *LATER), Book())
    assert [one.path for one in done.refused] == [path]
    assert (tree / path[1:]).read_text().strip() == text


def test_without_a_cpu_that_went_offline_a_smaller_mask_is_foreign(tree: Path) -> None:
    hosttrees.write(tree, {LIST[1:]: "2\n", MASK[1:]: "4\n"})
    done = apply_changes(HostRoot(tree), Driver(tree), LATER, Book())
    assert [one.path for one in done.refused] == [LIST, MASK]


def test_a_stop_is_asked_for_before_each_write(tree: Path) -> None:
    answers = iter((False, True))
    done = apply_changes(HostRoot(tree), HostWriter(tree), LATER, Book(), lambda: next(answers))
    assert [one.path for one in done.applied] == [LIST]
    assert [one.path for one in done.refused] == [MASK]
    assert (tree / MASK[1:]).read_text() == "c\n"


def test_a_refused_change_that_stands_all_the_same_is_in_the_journal(tree: Path) -> None:
    class Noted(Book):
        def written(self, n: int, says: str) -> None:
            told.append((n, says))

        def refused(self, n: int, why: str) -> None:
            told.append((n, "refused"))

    told: list[tuple[int, str]] = []
    answers = iter((False, True))
    done = apply_changes(HostRoot(tree), Driver(tree), (OFFLINE, *LATER), Noted(), lambda: next(answers))
    assert [one.path for one in done.refused] == [LIST, MASK]
    # The CPU that went offline has taken the other settings along: a restore has to know.
    assert {(2, "2"), (3, "4")} <= set(told)
    assert "refused" not in {says for _, says in told}


@given(sets, sets, sets)
def test_a_list_and_a_mask_lose_the_cpus_that_leave(some: CpuSet, online: CpuSet, other: CpuSet) -> None:
    root, switched = HostRoot(Path("/nowhere")), Switched(some, (online,), cpus=True)
    left = some & online
    list_, mask = kind_of("cpu-list"), kind_of("cpu-mask")
    assert list_.by_kernel(root, "/x", str(left), {str(some)}, switched)
    assert mask.by_kernel(root, "/x", left.to_mask(), {some.to_mask()}, switched)
    assert list_.by_kernel(root, "/x", str(other), {str(some)}, switched) == (other == left)
    assert mask.by_kernel(root, "/x", other.to_mask(), {some.to_mask()}, switched) == (other == left)
    assert not list_.by_kernel(root, "/x", str(left), {str(some)}, Switched(some))


@pytest.mark.parametrize("text", ["", "3-", "x", "0-3 4", "\x1b[3m", "0-99999999999"])
def test_text_that_is_no_set_of_cpus_is_never_the_kernels(text: str) -> None:
    switched = Switched(CpuSet((0, 1)), (CpuSet((0,)),), cpus=True)
    for kind in (kind_of("cpu-mask"), kind_of("affinity"), kind_of("cpuset"), kind_of("number"), kind_of("unit")):
        path = "sched_setaffinity(1@1)" if kind.name == "affinity" else "/x"
        assert not kind.by_kernel(HostRoot(Path("/nowhere")), path, text or "x", {"5"}, switched)


@pytest.mark.parametrize("fails", [True, False])
def test_a_change_that_is_not_in_the_menu_waits_for_no_boot(
    tree: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    def follow(name: str, root: HostRoot, writer: HostWriter) -> None:
        if fails:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(applying, "run_then", follow)
    planned = dataclasses.replace(OFFLINE, when="boot", then="update-grub")
    done = apply_changes(HostRoot(tree), HostWriter(tree), (planned,), Book())
    assert [one.path for one in done.refused] == (["update-grub"] if fails else [])
    assert done.needs_reboot is not fails
