"""Root's journal on the disk: announced before it is written, whole after a cut, and believed only where it is root's.

The states that a cut may leave are enumerated by ``tests.powercuts``; these are the journal's own promises, without a
host.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.agent.journal import JournalFile, close_finished, open_journals
from jitter_workshop.agent.statedir import DONE, StateDir
from jitter_workshop.errors import HostError
from jitter_workshop.model.change import Change
from jitter_workshop.tuning.journal import Journal, parse_journal
from tests.powercuts import Recorder, Tree, cuts

BOOT = "a-boot"
FOLDER = "var/lib/jitter-workshop/journal"
FIRST = Change(1, "thp", "/sys/thp", "madvise", "never", "runtime", "low", "because")
SECOND = Change(2, "ksm", "/sys/ksm", "1", "0", "runtime", "low", "because")


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "var").mkdir()
    return tmp_path


@pytest.fixture
def folder(top: Path) -> Iterator[StateDir]:
    made = StateDir(str(top), os.geteuid())
    yield made
    made.close()


def begin(folder: StateDir, *changes: Change) -> JournalFile:
    made = JournalFile.create(folder, boot_id=BOOT, uid=1000, hot_cpus=(2, 3), wanted=("thp",))
    made.intents(changes)
    return made


def journal_of(tree: Tree, ident: str) -> Journal:
    data = tree[f"{FOLDER}/{ident}.jsonl"]
    assert data is not None
    return parse_journal(ident, data)


def after(top: Path, play: Callable[[], Any]) -> list[Tree]:
    """Return what a cut may leave once ``play`` has returned."""
    with Recorder(top, lasting=("var",)) as recorder:
        play()
    return [cut.tree for cut in cuts(recorder, since=len(recorder.ops))]


# -- what is on the disk ----------------------------------------------------------------------------------------------


def test_a_journal_is_on_the_disk_with_its_folders_before_anything_is_announced(top: Path) -> None:
    made: list[JournalFile] = []

    def play() -> None:
        folder = StateDir(str(top), os.geteuid())
        made.append(JournalFile.create(folder, boot_id=BOOT, uid=1000, hot_cpus=(2, 3), wanted=("thp",), pid=4711))

    for tree in after(top, play):
        found = journal_of(tree, made[0].id)
        assert (found.boot_id, found.uid, found.hot_cpus, found.wanted) == (BOOT, 1000, (2, 3), ("thp",))
        assert (found.problems, found.pid) == ([], 4711)


def test_a_folder_that_a_killed_agent_made_is_made_to_last(top: Path) -> None:
    with Recorder(top, lasting=("var",)) as recorder:
        # As an agent leaves them that is killed between making a folder and syncing the one above.
        for name in ("var/lib", "var/lib/jitter-workshop"):
            (top / name).mkdir(mode=0o755)
        above = os.open(top / "var", os.O_RDONLY)
        os.fsync(above)
        os.close(above)
        made = begin(StateDir(str(top), os.geteuid()), FIRST)
    for cut in cuts(recorder, since=len(recorder.ops)):
        assert list(journal_of(cut.tree, made.id).entries) == [1]


def test_announced_writes_are_on_the_disk(top: Path, folder: StateDir) -> None:
    made = begin(folder)
    for tree in after(top, lambda: made.intents([FIRST, SECOND])):
        assert [entry.path for entry in journal_of(tree, made.id).active] == [FIRST.path, SECOND.path]


def test_a_value_that_was_handed_down_is_on_the_disk(top: Path, folder: StateDir) -> None:
    made = begin(folder, FIRST)
    for tree in after(top, lambda: made.handed(1, "always")):
        assert journal_of(tree, made.id).entries[1].before == "always"


def test_the_results_of_the_writes_are_on_the_disk_when_the_journal_is_closed(top: Path, folder: StateDir) -> None:
    made = begin(folder, FIRST, SECOND)

    def play() -> None:
        made.written(1, "never")
        made.undone(2, "same")
        made.close()

    for tree in after(top, play):
        assert {n: entry.state for n, entry in journal_of(tree, made.id).entries.items()} == {1: "written", 2: "undone"}


def test_a_finished_journal_is_in_one_of_the_two_folders_after_any_cut(top: Path, folder: StateDir) -> None:
    made = begin(folder, FIRST)
    made.undone(1, "restored")
    ident = made.id
    os.close(folder.subfolder(DONE))
    with Recorder(top, lasting=("var",)) as recorder:
        opened, _ = open_journals(folder, BOOT)
        close_finished(folder, opened, everything=True)
    made.close()
    for cut in cuts(recorder):
        places = [f"{FOLDER}/{ident}.jsonl", f"{FOLDER}/{DONE}/{ident}.jsonl"]
        assert sum(place in cut.tree for place in places) == 1
        assert (places[1] in cut.tree) or cut.after < len(recorder.ops)


def test_the_newest_journal_is_put_away_first(top: Path, folder: StateDir) -> None:
    """An older one tells that a restore which was cut short had given back more than it could write down."""
    for _ in range(3):
        made = begin(folder, FIRST)
        made.undone(1, "restored")
        made.close()
    with Recorder(top, lasting=("var",)) as recorder:
        opened, _ = open_journals(folder, BOOT)
        close_finished(folder, opened, everything=True)
    moved = [op.name[:6] for op in recorder.ops if op.kind == "rename"]
    assert moved == ["000003", "000002", "000001"]


# -- order and names --------------------------------------------------------------------------------------------------


def test_numbers_grow_after_journals_were_put_away(folder: StateDir) -> None:
    first = begin(folder, FIRST)
    first.undone(1, "restored")
    first.close()
    opened, _ = open_journals(folder, BOOT)
    close_finished(folder, opened, everything=True)
    second, third = begin(folder, FIRST), begin(folder, SECOND)
    assert [one.id[:6] for one in (first, second, third)] == ["000001", "000002", "000003"]
    opened, told = open_journals(folder, BOOT)
    assert [journal.id for journal, _ in opened] == [second.id, third.id]
    assert told == ()


def test_a_torn_end_is_cut_off_before_more_is_added(folder: StateDir) -> None:
    made = begin(folder, FIRST)
    os.write(made._file, b'{"record":"intent","n":2,')
    made.close()
    ((_, again),), _ = open_journals(folder, BOOT)
    again.intents([SECOND])
    again.close()
    ((journal, _),), _ = open_journals(folder, BOOT)
    assert list(journal.entries) == [1, 2]
    assert journal.problems == []


def test_half_a_record_is_taken_back(folder: StateDir, monkeypatch: pytest.MonkeyPatch) -> None:
    made = begin(folder, FIRST)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", _half(os.write))
        with pytest.raises(OSError, match="No space"):
            made.intents([SECOND])
    made.written(1, "never")
    made.close()
    ((journal, _),), _ = open_journals(folder, BOOT)
    assert (journal.problems, list(journal.entries), journal.entries[1].read_back) == ([], [1], "never")


def _half(really: Callable[[int, Any], int]) -> Callable[[int, Any], int]:
    """Take thirty bytes, and then have no room."""
    taken: list[int] = []

    def write(file: int, data: Any) -> int:
        if taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken.append(30)
        return really(file, bytes(data)[:30])

    return write


# -- whom it is believed from -----------------------------------------------------------------------------------------


def spoiled(folder: StateDir, path: Path, how: str) -> None:
    if how == "second name":
        os.link(path, path.parents[1] / "elsewhere")
    elif how == "group":
        path.chmod(0o664)
    elif how == "all":
        path.chmod(0o646)
    elif how == "owner":
        folder.owner += 1
    elif how == "pipe":
        path.unlink()
        os.mkfifo(path, 0o644)
    elif how == "link":
        path.rename(path.parents[1] / "elsewhere")
        path.symlink_to(path.parents[1] / "elsewhere")


@pytest.mark.parametrize("how", ["second name", "group", "all", "owner", "pipe", "link"])
def test_a_journal_that_others_may_have_made_is_not_believed(top: Path, folder: StateDir, how: str) -> None:
    made = begin(folder, FIRST)
    made.close()
    path = top / FOLDER / f"{made.id}.jsonl"
    spoiled(folder, path, how)
    opened, told = open_journals(folder, BOOT)
    assert opened == []
    assert [one.path for one in told] == [f"/{FOLDER}/{made.id}.jsonl"]
    assert os.path.lexists(path)


@pytest.mark.parametrize("mode", [0o775, 0o757])
@pytest.mark.parametrize("name", ["var/lib/jitter-workshop", FOLDER])
def test_a_folder_that_others_may_write_is_refused(top: Path, name: str, mode: int) -> None:
    StateDir(str(top), os.geteuid()).close()
    (top / name).chmod(mode)
    with pytest.raises(HostError):
        StateDir(str(top), os.geteuid())


def test_a_folder_of_another_user_is_refused(top: Path) -> None:
    StateDir(str(top), os.geteuid()).close()
    with pytest.raises(HostError):
        StateDir(str(top), os.geteuid() + 1)


def test_a_link_in_the_place_of_a_folder_is_refused(top: Path) -> None:
    (top / "elsewhere").mkdir()
    (top / "var/lib").symlink_to(top / "elsewhere")
    with pytest.raises(HostError):
        StateDir(str(top), os.geteuid())
