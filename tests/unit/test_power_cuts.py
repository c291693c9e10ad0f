"""Power cuts enumerated: each state that a disk may have after a cut within apply or restore is given to the next boot's
``restore``, which brings everything back, or says that it is still owed.

``tests.powercuts`` computes the states, ``tests.cuthosts`` has the machines, the programs and the questions. Each test
names how many distinct states it looks at, so that fewer of them do not pass for none that fails.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.kinds import kind_of
from jitter_workshop.tuning.planning import plan
from jitter_workshop.tuning.registry import parse_wanted
from tests import cuthosts, hosttrees, madegrub
from tests.cuthosts import ONCE, WORDS, Box, Findings, record, survey
from tests.powercuts import Disk, Operation, Recorder, Unmodelled, cuts, distinct, lasting, put_tree

FOUR = ("isolcpus", "nohz-full", "rcu-nocbs", "irqaffinity")
TWO = ("nohz-full", "rcu-nocbs")


def all_back(found: Findings, at_least: int) -> None:
    """Nothing was wrong in any of at least so many distinct states."""
    print(found)
    assert not found.wrong, f"\n{found}"
    assert found.distinct + found.again > at_least, f"\n{found}"


# -- scenes -----------------------------------------------------------------------------------------------------------


def there_and_back(*words: str) -> Callable[[Box], None]:
    def play(box: Box) -> None:
        assert box.apply(words).refused == ()
        result = box.restore()
        assert result.left_alone == ()
        assert not result.needs_reboot
        assert box.changed() == []

    return play


def with_a_boot_between(*words: str) -> Callable[[Box], None]:
    def play(box: Box) -> None:
        assert box.apply(words).refused == ()
        box.boot()
        assert box.running()
        result = box.restore()
        assert result.left_alone == ()
        assert result.needs_reboot
        assert box.changed() == []

    return play


def two_applies(box: Box) -> None:
    assert box.apply(("isolcpus", "thp")).refused == ()
    assert box.apply(("isolcpus", "thp=never"), hot="1-3").refused == ()
    assert box.restore().left_alone == ()
    assert box.changed() == []


def one_first(box: Box) -> None:
    assert box.apply(TWO).refused == ()
    assert [one.tunable for one in box.restore(("nohz-full",)).restored] == ["nohz-full"]
    assert len(box.restore().restored) == 1
    assert box.changed() == []


def with_failures(box: Box) -> None:
    box.host.fails = 1
    assert len(box.apply(TWO).refused) == 1
    box.host.fails = 1
    assert "no space left" in box.restore().left_alone[0].reason
    assert box.restore().left_alone == ()
    assert box.changed() == []


def killed_in_restore(after: int) -> Callable[[Box], None]:
    def play(box: Box) -> None:
        assert box.recorder is not None
        box.apply(TWO)
        box.recorder.killed(box.restore, after)
        box.mark = len(box.recorder.ops)
        assert box.restore().left_alone == ()
        assert box.changed() == []

    return play


# -- the states themselves --------------------------------------------------------------------------------------------


def test_what_lasts_and_what_may_be_lost() -> None:
    ops = [
        Operation("create", "a", 1, "a", 10),
        Operation("write", "a", 10, data=b"x"),
        Operation("sync", "a", 10),
        Operation("rename", "b", 1, "a", 10, (2, "b")),
        Operation("sync", "/", 1),
        Operation("write", "b", 10, offset=1, data=b"y"),
    ]
    assert lasting(ops) == [True, True, True, False, True, False]
    assert lasting(ops[:3]) == [False, True, True], "a synced file's name does not last before its folder is synced"
    disk = Disk()
    disk.folders = {1: {"d": 2}, 2: {}}
    for op in (ops[0], ops[5]):
        disk.do(op)
    assert disk.tree(1) == {"a": b"\0y", "d": None}


def test_every_state_of_a_small_scene(tmp_path: Path) -> None:
    """A file that is put in place by the careful way is there whole, or not at all; by the careless way it may be
    empty, or torn."""
    states: dict[str, set[bytes | None]] = {}
    for way in ("careful", "careless"):
        root = tmp_path / way
        hosttrees.write(root, {"etc/f": "old"})
        recorder = Recorder(root)
        with recorder:
            file = os.open(root / "etc/f.new", os.O_WRONLY | os.O_CREAT, 0o644)
            os.write(file, b"brand new")
            if way == "careful":
                os.fsync(file)
            os.close(file)
            os.rename(root / "etc/f.new", root / "etc/f")
        states[way] = {cut.tree.get("etc/f") for cut in cuts(recorder)}
    assert states["careful"] == {b"old", b"brand new"}
    assert {b"old", b"", b"brand new", b"b", b"bran", b"\0" * 9} < states["careless"]


def test_nothing_is_done_to_the_disk_unseen(tmp_path: Path) -> None:
    hosttrees.write(tmp_path, {"etc/f": "old"})
    with pytest.raises(Unmodelled, match="without being recorded"), Recorder(tmp_path):
        (tmp_path / "etc/f").write_text("new")
    with pytest.raises(Unmodelled, match="os.link"), Recorder(tmp_path):
        os.link(tmp_path / "etc/f", tmp_path / "etc/g")


# -- the drop-ins of Debian's GRUB ------------------------------------------------------------------------------------


def test_drop_ins(tmp_path: Path) -> None:
    all_back(survey(cuthosts.debian(tmp_path), there_and_back(*WORDS)), 450)


def test_drop_ins_that_a_kernel_was_started_with(tmp_path: Path) -> None:
    all_back(survey(cuthosts.debian(tmp_path), with_a_boot_between(*TWO, "thp")), 140)


def test_the_folder_of_the_drop_ins_too(tmp_path: Path) -> None:
    all_back(survey(cuthosts.bare_debian(tmp_path), there_and_back("nohz-full")), 150)


def test_two_applies_one_on_the_other(tmp_path: Path) -> None:
    all_back(survey(cuthosts.debian(tmp_path), two_applies, few=5), 250)


def test_one_tunable_first(tmp_path: Path) -> None:
    all_back(survey(cuthosts.debian(tmp_path), one_first), 150)


def test_a_menu_that_cannot_be_made(tmp_path: Path) -> None:
    """It fails in apply, in restore, and in the restore of the next boot."""
    all_back(survey(cuthosts.debian(tmp_path), with_failures, fails=True), 130)


def test_a_cut_in_the_restore_after_a_cut(tmp_path: Path) -> None:
    all_back(survey(cuthosts.debian(tmp_path), there_and_back("nohz-full"), few=4, second=23), 250)


@pytest.mark.parametrize("after", [4, 9, 16])
def test_a_cut_after_a_killed_restore_and_another(tmp_path: Path, after: int) -> None:
    box = cuthosts.debian(tmp_path)
    all_back(survey(box, killed_in_restore(after), few=4, since=lambda _: box.mark), 20)


# -- one boot, grubby -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rescue", [False, True])
def test_an_entry_for_one_boot(tmp_path: Path, rescue: bool) -> None:
    all_back(survey(cuthosts.debian(tmp_path), there_and_back(*ONCE), rescue=rescue, second=40), 150)


def test_an_entry_for_one_boot_that_was_booted(tmp_path: Path) -> None:
    all_back(survey(cuthosts.debian(tmp_path), with_a_boot_between(*ONCE)), 150)


def test_entries_that_grubby_writes(tmp_path: Path) -> None:
    all_back(survey(cuthosts.fedora(tmp_path), there_and_back("nohz-full"), few=5), 150)


def test_entries_that_a_kernel_was_started_with(tmp_path: Path) -> None:
    all_back(survey(cuthosts.fedora(tmp_path), with_a_boot_between("nohz-full"), few=4), 100)


# -- much more of it --------------------------------------------------------------------------------------------------

MACHINES = {"drop-ins": cuthosts.debian, "folder": cuthosts.bare_debian, "grubby": cuthosts.fedora}


@pytest.mark.soak
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("scene", [there_and_back, with_a_boot_between])
def test_many_more_states(tmp_path: Path, machine: str, scene: Callable[..., Callable[[Box], None]]) -> None:
    few = 7 if machine == "grubby" else 10
    all_back(survey(MACHINES[machine](tmp_path), scene(*FOUR), few=few, second=50), 2_000)


@pytest.mark.soak
@pytest.mark.parametrize("play", [two_applies, one_first, with_failures, there_and_back(*ONCE)])
def test_many_more_states_of_other_scenes(tmp_path: Path, play: Callable[[Box], None]) -> None:
    all_back(survey(cuthosts.debian(tmp_path), play, few=10, second=5), 500)


@pytest.mark.soak
def test_a_restore_killed_anywhere(tmp_path: Path) -> None:
    total = 0
    for after in range(1, 40):
        box = cuthosts.debian(tmp_path / str(after))
        found = survey(box, killed_in_restore(after), since=lambda _, box=box: box.mark)
        all_back(found, 5)
        total += found.distinct
    assert total > 2_000
