"""Restoring from a journal that is made by hand: what is not ours, or not done yet, is never called given back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import RestoreResult
from jitter_workshop.tuning.journal import Entry, Journal
from jitter_workshop.tuning.restoring import restore_journals
from jitter_workshop.tuning.setting_types.system import drop_in
from jitter_workshop.tuning.writer import HostWriter
from tests.hosttrees import write

NODES = "/proc/sys/kernel/numa_balancing"
KSM = "/sys/kernel/mm/ksm/run"
DROP_IN = "/etc/default/grub.d/zz-jitter-workshop-nohz-full.cfg"
BOOT = "0f5c1a52"


class Book:
    """A journal that keeps what it is told, as (record, …)."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *told: self.told.append((name, *told))


class Meddling(HostWriter):
    """A host where a write to KSM's switch also changes the balancing of nodes. deaf: it takes nothing else."""

    def __init__(self, root: Path, *, deaf: bool = False) -> None:
        super().__init__(root)
        self.deaf = deaf
        self.written: list[str] = []

    def write(self, path: str, text: str) -> None:
        self.written.append(path)
        if not self.deaf:
            super().write(path, text)
        if path == KSM:
            super().write(NODES, "1")


def journal(*writes: tuple[str, str, str, str, str], then: str = "") -> Journal:
    """A journal of ``writes`` (tunable, path, kind, before, after), all made in this boot."""
    made = Journal("000001-20261101T000000", boot_id=BOOT)
    for n, what in enumerate(writes, start=1):
        entry = Entry(made.id, n, *what, when="runtime", lease=False, then=then, boot_id=BOOT)
        entry.state, entry.read_back = "written", entry.after
        made.entries[n] = entry
    return made


def give_back(root: Path, made: Journal, writer: HostWriter | None = None, book: Book | None = None) -> RestoreResult:
    return restore_journals(HostRoot(root), writer or HostWriter(root), [(made, book or Book())], BOOT)


def test_a_file_that_the_tunable_does_not_own_is_not_touched(tmp_path: Path) -> None:
    write(tmp_path, {"etc/passwd": "ours\n"})
    made = journal(("ksm", "/etc/passwd", "value", "theirs", "ours"))
    left = give_back(tmp_path, made).left_alone
    assert (tmp_path / "etc/passwd").read_text() == "ours\n"
    assert "ksm may not write this path" in left[0].reason
    assert made.active


def test_a_value_of_another_program_stays(tmp_path: Path) -> None:
    write(tmp_path, {KSM[1:]: "2\n"})
    result = give_back(tmp_path, journal(("ksm", KSM, "number", "1", "0")))
    assert (tmp_path / KSM[1:]).read_text() == "2\n"
    assert not result.restored
    assert "has changed this setting" in result.left_alone[0].reason


def test_the_value_from_before_the_first_write_comes_back(tmp_path: Path) -> None:
    write(tmp_path, {KSM[1:]: "2\n"})
    made = journal(("ksm", KSM, "number", "1", "0"), ("ksm", KSM, "number", "0", "2"))
    assert not give_back(tmp_path, made).left_alone
    assert (tmp_path / KSM[1:]).read_text() == "1"
    assert not made.active


def test_nothing_is_undone_before_its_command_has_run(tmp_path: Path) -> None:
    write(tmp_path, {DROP_IN[1:]: drop_in("nohz_full=1"), "usr/sbin/update-grub": "#!/bin/sh\n"})
    made = journal(("nohz-full", DROP_IN, "grub", "", "nohz_full=1"), then="update-grub")
    # On a made tree no program runs, so the menu is not made anew.
    assert "must follow the restore failed" in give_back(tmp_path, made).left_alone[0].reason
    assert not (tmp_path / DROP_IN[1:]).exists()
    assert made.active


def test_the_newest_write_is_given_back_first_and_once_more_where_another_one_displaced_it(tmp_path: Path) -> None:
    write(tmp_path, {KSM[1:]: "0\n", NODES[1:]: "0\n"})
    writer = Meddling(tmp_path)
    made = journal(("ksm", KSM, "number", "1", "0"), ("numa-balancing", NODES, "number", "2", "0"))
    assert not give_back(tmp_path, made, writer).left_alone
    assert writer.written == [NODES, KSM, NODES]
    assert (tmp_path / NODES[1:]).read_text() == "2"


def test_a_setting_that_the_host_does_not_take_back_is_owed(tmp_path: Path) -> None:
    write(tmp_path, {NODES[1:]: "0\n"})
    book = Book()
    made = journal(("numa-balancing", NODES, "number", "2", "0"))
    result = give_back(tmp_path, made, Meddling(tmp_path, deaf=True), book)
    assert not result.restored
    assert [one[:2] for one in book.told] == [("owed", 1)]
    assert made.active[0].owed


def test_an_earlier_boots_undone_write_makes_no_value_ours(tmp_path: Path) -> None:
    write(tmp_path, {KSM[1:]: "1\n"})
    made = journal(("ksm", KSM, "number", "1", "0"), ("ksm", KSM, "number", "0", "2"))
    made.entries[1].state, made.entries[1].boot_id = "undone", "an earlier boot"
    # The host began this boot with 0. Somebody set the 1 that stood in the earlier boot.
    result = give_back(tmp_path, made)
    assert "has changed this setting" in result.left_alone[0].reason
    assert made.active


def test_an_owed_setting_is_restored_though_no_journal_is_chosen(tmp_path: Path) -> None:
    write(tmp_path, {KSM[1:]: "0\n", NODES[1:]: "0\n"})
    made = journal(("ksm", KSM, "number", "1", "0"), ("numa-balancing", NODES, "number", "2", "0"))
    made.entries[1].owed = "refused before"
    result = restore_journals(HostRoot(tmp_path), HostWriter(tmp_path), [(made, Book())], BOOT, among=())
    assert [one.tunable for one in result.restored] == ["ksm"]
    assert (tmp_path / KSM[1:]).read_text() == "1"
    assert (tmp_path / NODES[1:]).read_text() == "0\n"
