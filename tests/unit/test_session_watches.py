"""Test the journal of a watch: it survives a kill and a full disk, and a reader takes what is whole."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop.errors import SessionError
from jitter_workshop.session import watches
from jitter_workshop.session.watches import FOR_THE_END, JOURNAL, RESERVED, WatchJournal, new_folder, read_journal


def test_the_lines_are_read_back_in_order(tmp_path: Path) -> None:
    journal = WatchJournal(tmp_path)
    for number in range(5):
        journal.add({"kind": "stall", "number": number})
    journal.close()
    assert [entry["number"] for entry in read_journal(tmp_path)] == [0, 1, 2, 3, 4]
    assert (tmp_path / JOURNAL).stat().st_size < 200


def test_the_shortened_length_is_on_the_disk_before_the_file_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = WatchJournal(tmp_path)
    journal.add({"kind": "end"}, last=True)
    file, done = journal._file, []

    def noting(name: str) -> Callable[..., None]:
        call = getattr(os, name)

        def noted(number: int, *more: int) -> None:
            done.extend([name] if number == file else [])
            call(number, *more)

        return noted

    with monkeypatch.context() as patched:
        for name in ("ftruncate", "fsync", "close"):
            patched.setattr(os, name, noting(name))
        journal.close()
    assert done == ["ftruncate", "fsync", "close"]


def test_a_journal_that_was_never_closed_is_read(tmp_path: Path) -> None:
    journal = WatchJournal(tmp_path)
    journal.add({"kind": "begin"})
    journal.add({"kind": "stall"})
    assert (tmp_path / JOURNAL).stat().st_size == RESERVED
    assert [entry["kind"] for entry in read_journal(tmp_path)] == ["begin", "stall"]


def test_damaged_lines_are_left_out(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).write_bytes(b'{"kind":"begin"}\n{"kin\n[1]\n\xff\n{"kind":"end"}\n{"kind":"cut')
    assert [entry["kind"] for entry in read_journal(tmp_path)] == ["begin", "end"]


def test_a_full_disk_leaves_room_for_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = WatchJournal(tmp_path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    line = {"kind": "stall", "text": "x" * 1_000}
    for _ in range(2 * RESERVED // 1_000):
        journal.add(line)
    assert journal.unwritten > 0
    assert journal._end <= RESERVED - FOR_THE_END
    journal.add({"kind": "end"}, last=True)
    journal.close()
    assert [entry["kind"] for entry in read_journal(tmp_path)][-1] == "end"


def test_a_journal_stays_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watches, "MOST_BYTES", 10_000)
    journal = WatchJournal(tmp_path)
    for _ in range(100):
        journal.add({"kind": "stall", "text": "x" * 1_000})
    journal.add({"kind": "end"}, last=True)
    journal.close()
    assert journal.unwritten > 80
    assert [entry["kind"] for entry in read_journal(tmp_path)][-1] == "end"


def test_no_journal_without_its_first_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(SessionError, match="cannot write"):
        WatchJournal(tmp_path)


def test_a_folder_of_its_own_for_each_watch(tmp_path: Path) -> None:
    one, other = new_folder(tmp_path / "a"), new_folder(tmp_path / "a")
    assert one != other
    assert one.parent == other.parent == tmp_path / "a"
    with pytest.raises(SessionError, match="not the folder of a watch"):
        watches.check_folder(one)
