"""Power cuts enumerated: each state that a disk may have after a cut within apply or restore is given to the next
boot's ``restore``, which brings everything back, or says that it is still owed.

``tests.powercuts`` computes the states, ``tests.cuthosts`` has the machines, the programs and the questions. Each test
names how many distinct states there are, so that fewer of them do not pass for none that fails.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import ApplyResult
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.planning import plan_changes
from jitter_workshop.tuning.setting_types.kinds import kind_of
from jitter_workshop.tuning.tunables.registry import parse_wanted
from jitter_workshop.tuning.writer import HostWriter, sync_written
from tests import cuthosts, hosttrees, madegrub
from tests.cuthosts import ONCE, WORDS, Box, Findings, record, survey
from tests.powercuts import Disk, Operation, Recorder, Unmodelled, cuts, lasting

pytestmark = pytest.mark.slow

FOUR = ("isolcpus", "nohz-full", "rcu-nocbs", "irqaffinity")
TWO = ("nohz-full", "rcu-nocbs")


def all_back(found: Findings, at_least: int) -> None:
    """Nothing was wrong in any of at least so many distinct states."""
    print(found)
    assert not found.wrong, f"\n{found}"
    assert found.distinct + found.again > at_least, f"\n{found}"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Return where a machine's tree is made, some thousand times over: in memory where that can be had."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="power-cuts-") as folder:
        yield Path(folder)


# -- scenes -----------------------------------------------------------------------------------------------------------


def everything_of(result: ApplyResult, words: Sequence[str]) -> None:
    assert result.refused == ()
    assert {one.tunable for one in result.applied} == {word.removeprefix("once:").partition("=")[0] for word in words}


def there_and_back(*words: str) -> Callable[[Box], None]:
    def play(box: Box) -> None:
        everything_of(box.apply(words), words)
        result = box.restore()
        assert result.left_alone == ()
        assert not result.needs_reboot
        assert box.changed() == []

    return play


def with_a_boot_between(*words: str) -> Callable[[Box], None]:
    def play(box: Box) -> None:
        everything_of(box.apply(words), words)
        box.boot()
        assert box.running()
        result = box.restore()
        assert result.left_alone == ()
        assert result.needs_reboot
        assert box.changed() == []

    return play


def two_applies(box: Box) -> None:
    everything_of(box.apply(("isolcpus", "thp")), ("isolcpus", "thp"))
    everything_of(box.apply(("isolcpus", "thp=never"), hot="1-3"), ("isolcpus", "thp"))
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


def killed_in_restore(after: int, *words: str) -> Callable[[Box], None]:
    def play(box: Box) -> None:
        assert box.recorder is not None
        box.apply(words)
        box.recorder.killed(box.restore, after)
        box.mark = len(box.recorder.ops)
        assert box.restore().left_alone == ()
        assert box.changed() == []

    return play


def before_a_sync(box: Box, words: Sequence[str]) -> list[int]:
    """Return how many operations of a restore come before each sync of what lasts and is not our journal."""
    box.ready()
    box.apply(words)
    ops = record(box, lambda box: box.restore() and None).ops
    assert box.changed() == []
    return [n for n, op in enumerate(ops) if op.kind == "sync" and not op.path.startswith("var")]


def after_a_killed_agent(box: Box) -> None:
    """Its folders are there, and not synced."""
    assert box.recorder is not None
    for folder in ("var", "var/lib"):
        os.mkdir(box.root / folder, 0o755)
    box.recorder.settled()
    for folder in ("var/lib/jitter-workshop", "var/lib/jitter-workshop/journal"):
        os.mkdir(box.root / folder, 0o755)
    assert box.apply(("nohz-full",)).refused == ()


# -- the states themselves --------------------------------------------------------------------------------------------


def test_the_disk_model_knows_which_operations_last() -> None:
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
    with pytest.raises(Unmodelled, match=r"os\.link"), Recorder(tmp_path):
        os.link(tmp_path / "etc/f", tmp_path / "etc/g")


# -- the drop-ins of Debian's GRUB ------------------------------------------------------------------------------------


def test_drop_ins(place: Path) -> None:
    all_back(survey(cuthosts.debian(place), there_and_back(*WORDS)), 500)


def test_drop_ins_that_a_kernel_was_started_with(place: Path) -> None:
    all_back(survey(cuthosts.debian(place), with_a_boot_between(*TWO, "thp")), 330)


def test_the_folder_of_the_drop_ins_too(place: Path) -> None:
    all_back(survey(cuthosts.bare_debian(place), there_and_back("nohz-full")), 280)


def test_two_applies_one_on_the_other(place: Path) -> None:
    all_back(survey(cuthosts.debian(place), two_applies, few=4), 550)


def test_one_tunable_first(place: Path) -> None:
    all_back(survey(cuthosts.debian(place), one_first), 360)


def test_a_menu_that_cannot_be_made(place: Path) -> None:
    """It fails in apply, in restore, and in the restore of the next boot."""
    all_back(survey(cuthosts.debian(place), with_failures, fails=True), 130)


def test_a_cut_in_the_restore_after_a_cut(place: Path) -> None:
    all_back(survey(cuthosts.debian(place), there_and_back("nohz-full"), few=4, second=60), 500)


MACHINES = {"drop-ins": cuthosts.debian, "folder": cuthosts.bare_debian, "grubby": cuthosts.fedora}


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        ("folder", ("nohz-full",)),
        ("drop-ins", ("nohz-full",)),
        ("drop-ins", ("once:nohz-full",)),
        ("grubby", ("nohz-full",)),
    ],
)
def test_a_restore_syncs_the_writes_of_a_killed_restore(place: Path, machine: str, words: tuple[str, ...]) -> None:
    """The next one finds everything as it was before, which is not yet on the disk."""
    total = 0
    moments = before_a_sync(MACHINES[machine](place / "tree"), words)
    assert len(moments) >= 3
    for after in moments:
        box = MACHINES[machine](place / str(after))
        scene, once = killed_in_restore(after, *words), words[0].startswith("once:")
        # GRUB forgets what was chosen for one boot, unless the machine is started from elsewhere.
        found = survey(box, scene, few=2, since=lambda _, box=box: box.mark, killed=False, rescue=once)
        assert not found.wrong, f"killed after {after}\n{found}"
        total += found.distinct
    print(f"{total} distinct states after {len(moments)} kills")
    assert total > 140


def test_a_folder_where_the_menu_cannot_be_made(place: Path) -> None:
    all_back(survey(cuthosts.bare_debian(place), with_failures, fails=True), 150)


def test_a_second_restore_says_again_that_the_kernel_needs_a_reboot(place: Path) -> None:
    box = cuthosts.debian(place)
    box.ready()
    box.apply(TWO)
    box.boot()
    box.host.fails = 1
    assert box.restore().needs_reboot
    assert box.restore().needs_reboot
    assert (box.changed(), box.owed()) == ([], [])


def test_the_menu_is_made_of_settings_that_were_read_again(place: Path) -> None:
    """A program that watches puts a drop-in back while another setting is given back."""
    box = cuthosts.debian(place)
    box.ready()
    everything_of(box.apply(("thp=never", "nohz-full")), ("thp", "nohz-full"))
    (file,) = (box.root / "etc/default/grub.d").glob("zz-*")
    text, really = file.read_text(), box.host.write

    def write(path: str, value: str) -> None:
        really(path, value)
        if path == f"/{cuthosts.THP}":
            file.write_text(text)

    box.host.write = write  # type: ignore[method-assign]
    assert box.restore().left_alone == ()
    assert (box.changed(), box.owed()) == ([], [])


def test_folders_that_a_killed_agent_had_made(place: Path) -> None:
    all_back(survey(cuthosts.debian(place), after_a_killed_agent), 150)


# -- one boot, grubby -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rescue", [False, True])
def test_an_entry_for_one_boot(place: Path, rescue: bool) -> None:
    all_back(survey(cuthosts.debian(place), there_and_back(*ONCE), rescue=rescue, second=40), 250)


def test_an_entry_for_one_boot_that_was_booted(place: Path) -> None:
    all_back(survey(cuthosts.debian(place), with_a_boot_between(*ONCE)), 150)


def test_entries_that_grubby_writes(place: Path) -> None:
    all_back(survey(cuthosts.fedora(place), there_and_back("nohz-full"), few=5), 350)


def test_entries_that_a_kernel_was_started_with(place: Path) -> None:
    all_back(survey(cuthosts.fedora(place), with_a_boot_between("nohz-full"), few=4), 350)


def test_a_block_that_a_cut_could_tear_is_left_alone(place: Path) -> None:
    """Without the refusal a torn block would hold neither the old value nor the new one."""
    box = cuthosts.debian(place)
    box.apply(ONCE)
    root, ours = box.root, (box.root / "boot/grub/custom.cfg").read_text()
    tearing, others = [], []
    for size in range(430, 520):
        (root / "boot/grub/grubenv").write_text(madegrub.block(kept="x" * size))
        (root / "boot/grub/custom.cfg").unlink(missing_ok=True)
        drawn = plan_changes(Host(HostRoot(root), CpuSet((2, 3))), parse_wanted(ONCE))
        (root / "boot/grub/custom.cfg").write_text(ours)
        (others if drawn.changes else tearing).append(size)
        if not drawn.changes:
            assert "survives a power cut" in drawn.skipped[0].reason
            with pytest.raises(OSError, match="survives a power cut"):
                kind_of("grub-next").write(HostWriter(root), "/boot/grub/grubenv(next_entry)", "jitter-workshop-once")
    header, line = len("# GRUB Environment Block\nkept=\n"), len("next_entry=jitter-workshop-once\n")
    assert tearing == [size for size in range(430, 520) if 512 - line < header + size < 512]
    assert others


@pytest.mark.parametrize("size", [449, 600])
def test_a_full_block_beside_the_border_of_sectors(place: Path, size: int) -> None:
    box = cuthosts.debian(place)
    (box.root / "boot/grub/grubenv").write_text(madegrub.block(kept="x" * size))
    all_back(survey(box, there_and_back(*ONCE), few=3), 130)


# -- the disk itself fails --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["boot/grub/grub.cfg", "boot/grub"])
def test_a_menu_that_cannot_be_synced_is_still_owed(place: Path, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    box = cuthosts.debian(place)
    box.ready()
    assert box.apply(TWO).refused == ()
    really = os.fsync

    def failing(number: int) -> None:
        if os.readlink(f"/proc/self/fd/{number}") == str(box.root / file):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        really(number)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing)
        (told,) = box.restore().left_alone
        assert (told.path, "EIO" in told.reason) == ("update-grub", True)
        assert box.owed()
    again = box.restore()
    assert ([(one.path, one.to) for one in again.restored], again.left_alone) == ([("update-grub", "done")], ())
    assert (box.changed(), box.owed()) == ([], [])


def test_a_path_that_cannot_be_synced_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only file system, a link that leads nowhere, a pipe, a folder that is not there."""
    hosttrees.write(tmp_path, {"boot/grub/grub.cfg": "x", "etc/default/grub": "x"})
    (tmp_path / "boot/grub/grubenv").symlink_to("../efi/grubenv")
    os.mkfifo(tmp_path / "boot/grub/pipe")
    synced = []

    def sync(number: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{number}").removeprefix(f"{tmp_path}/"))
        if len(synced) == 1:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "fsync", sync)
    sync_written(HostWriter(tmp_path))
    assert synced == ["boot/grub/grub.cfg", "boot/grub", "etc/default/grub", "etc/default"]


# -- much more of it --------------------------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("scene", [there_and_back, with_a_boot_between])
def test_many_more_states(place: Path, machine: str, scene: Callable[..., Callable[[Box], None]]) -> None:
    few = 7 if machine == "grubby" else 10
    all_back(survey(MACHINES[machine](place), scene(*FOUR), few=few, second=20), 1_000)


@pytest.mark.soak
@pytest.mark.parametrize("play", [two_applies, one_first, with_failures, there_and_back(*ONCE)])
def test_many_more_states_of_other_scenes(place: Path, play: Callable[[Box], None]) -> None:
    all_back(survey(cuthosts.debian(place), play, few=10, second=5), 500)


@pytest.mark.soak
def test_a_restore_killed_anywhere(place: Path) -> None:
    total = 0
    for after in range(1, 40):
        box = cuthosts.debian(place / str(after))
        found = survey(box, killed_in_restore(after, *TWO), since=lambda _, box=box: box.mark)
        all_back(found, 0)
        total += found.distinct
    assert total > 1_900
