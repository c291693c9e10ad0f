"""Writing to a host: one call a setting, files whole after a cut, and no link on the way is followed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop.tuning.writer import HostWriter
from tests.powercuts import Cut, Recorder, cuts

DROP_IN = "/etc/default/grub.d/50-ours.cfg"
OLD, NEW = "what stood there\n", "what takes its place, and is longer than that\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("etc/default/grub.d", "boot/grub", "sys/kernel", "sys/class/net", "sys/devices/net/eth0"):
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path


def states(root: Path, play: Callable[[HostWriter], object]) -> tuple[list[Cut], list[Cut]]:
    """Return every state that a cut may leave, and of these those after ``play`` had returned."""
    with Recorder(root, lasting=("boot", "etc")) as recorder:
        play(HostWriter(root))
    found = list(cuts(recorder))
    return found, [cut for cut in found if cut.after == len(recorder.ops)]


def test_a_drop_in_is_the_old_one_or_the_new_one_and_then_stays(root: Path) -> None:
    (root / DROP_IN[1:]).write_text(OLD)
    seen, after = states(root, lambda host: host.replace_file(DROP_IN, NEW))
    assert {cut.tree[DROP_IN[1:]] for cut in seen} == {OLD.encode(), NEW.encode()}
    assert {cut.tree[DROP_IN[1:]] for cut in after} == {NEW.encode()}
    assert (root / DROP_IN[1:]).stat().st_mode & 0o777 == 0o644


def test_a_drop_in_that_was_made_or_removed_stays_so(root: Path) -> None:
    _, after = states(root, lambda host: host.replace_file(DROP_IN, NEW))
    assert {cut.tree.get(DROP_IN[1:]) for cut in after} == {NEW.encode()}
    _, after = states(root, lambda host: host.replace_file(DROP_IN, None))
    assert {DROP_IN[1:] in cut.tree for cut in after} == {False}


@pytest.mark.parametrize(
    "clean",
    [
        lambda host: host.replace_file(DROP_IN, NEW),
        lambda host: host.replace_file(DROP_IN, None),
        lambda host: host.remove_unfinished(DROP_IN),
    ],
    ids=["replace", "remove", "make sure"],
)
def test_the_rest_of_a_killed_write_is_removed_for_good(root: Path, clean: Callable[[HostWriter], object]) -> None:
    folder = root / "etc/default/grub.d"
    (folder / ".50-ours.cfg.4711").write_text("half")
    (folder / ".50-ours.cfg.old").write_text("the user's")
    _, after = states(root, clean)
    names = {frozenset(path.rpartition("/")[2] for path in cut.tree if "/.50" in path) for cut in after}
    assert names == {frozenset({".50-ours.cfg.old"})}


def test_a_block_that_is_written_over_keeps_its_size_and_is_on_the_disk(root: Path) -> None:
    block = root / "boot/grub/grubenv"
    block.write_bytes(b"#" * 1024)
    inode = block.stat().st_ino
    _, after = states(root, lambda host: host.overwrite("/boot/grub/grubenv", b"next_entry=x\n"))
    assert {cut.tree["boot/grub/grubenv"] for cut in after} == {b"next_entry=x\n".ljust(1024, b"#")}
    assert block.stat().st_ino == inode


def test_a_setting_is_written_in_one_call(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[bytes] = []
    really = os.write
    monkeypatch.setattr(os, "write", lambda file, data: calls.append(bytes(data)) or really(file, data))
    (root / "sys/kernel/x").write_text("the longer value that stood there\n")
    HostWriter(root).write("/sys/kernel/x", "1")
    HostWriter(root).write("/sys/kernel/x", "")
    assert calls == [b"1", b"\n"]
    monkeypatch.setattr(os, "write", lambda file, data: 1)
    with pytest.raises(OSError, match="only a part"):
        HostWriter(root).write("/sys/kernel/x", "12")


def test_a_link_in_the_place_of_a_file_or_on_the_way_is_not_followed(root: Path) -> None:
    (root / "elsewhere").mkdir()
    (root / "elsewhere/x").write_text("theirs\n")
    (root / "sys/kernel/x").symlink_to(root / "elsewhere/x")
    (root / "sys/other").symlink_to(root / "elsewhere")
    host = HostWriter(root)
    for path in ("/sys/kernel/x", "/sys/other/x", "/sys/kernel/../other/x", "sys/kernel/x", "/sys/kernel/x\0"):
        with pytest.raises(OSError, match=r".+"):
            host.write(path, "ours")
    with pytest.raises(OSError, match="symbolic link"):
        host.make_folder("/sys/other/group")
    assert (root / "elsewhere/x").read_text() == "theirs\n"


def test_the_kernels_own_links_from_a_class_to_its_device_are_followed(root: Path) -> None:
    (root / "sys/devices/net/eth0/tx_queue_len").write_text("1000\n")
    (root / "sys/class/net/eth0").symlink_to(root / "sys/devices/net/eth0")
    (root / "sys/class/net/eth1").symlink_to(root / "etc")
    HostWriter(root).write("/sys/class/net/eth0/tx_queue_len", "500")
    assert (root / "sys/devices/net/eth0/tx_queue_len").read_text() == "500"
    with pytest.raises(OSError, match="symbolic link"):
        HostWriter(root).write("/sys/class/net/eth1/tx_queue_len", "500")
