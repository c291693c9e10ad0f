"""A disk that is full or has become read-only, and a kill inside a file's replacement: what was applied comes back."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.agent.lock import LOCK_FILE, HostLock
from jitter_workshop.agent.statedir import StateDir
from jitter_workshop.tuning.writer import HostWriter
from tests import hosttrees, tuned_tree
from tests.tuned_tree import STATE, Agent, contents, journals, planned

WORDS = ("governor", "thp", "stat-interval", "numa-balancing")
DROPINS = "etc/default/grub.d"
FULL = pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG, errno.EROFS])


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return tuned_tree.make(tmp_path)


def failing(number: int) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


def without_labels(patch: pytest.MonkeyPatch, number: int) -> None:
    """No file can be written at a place or cut; agents that are forked now find it so, too."""
    patch.setattr(os, "pwrite", failing(number))
    patch.setattr(os, "ftruncate", failing(number))


def read_only_state(patch: pytest.MonkeyPatch) -> None:
    """The state folder as on a disk that was mounted read-only after the apply: its files open for reading only."""
    really = os.open

    def opened(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        ours = path == LOCK_FILE or str(path).endswith(".jsonl")
        if ours and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return really(path, flags, mode, dir_fd=dir_fd)

    patch.setattr(os, "open", opened)
    for name in ("rename", "mkdir", "ftruncate"):
        patch.setattr(os, name, failing(errno.EROFS))


# A full disk ---------------------------------------------------------------------------------------------------------


@FULL
def test_a_lock_is_taken_and_let_go_without_its_label(number: int, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = StateDir(str(tree), os.geteuid())
    mine, other = HostLock(folder, "one"), HostLock(folder, "another")
    with monkeypatch.context() as patch:
        without_labels(patch, number)
        mine.take(0.0)
        assert mine.held
        mine.release()
        assert not mine.held
        other.take(0.0)
        assert other.held
        other.close()
    mine.take(0.0)
    mine.close()
    folder.close()


@FULL
def test_a_lease_ends_and_restore_works_without_the_label(
    number: int, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, drawn = contents(tree), planned(tree, WORDS)
    with monkeypatch.context() as patch:
        without_labels(patch, number)
        leased = Agent(tree)
        assert len(leased.apply(drawn, WORDS, lease=60.0)["applied"]) == len(drawn.changes)
        assert leased.end() == 0
        assert contents(tree) == before
        with Agent(tree) as agent:
            assert len(agent.apply(drawn, WORDS)["applied"]) == len(drawn.changes)
            back = agent.ask("restore")
            assert len(back["restored"]) == len(drawn.changes)
            assert back["left_alone"] == []
    assert contents(tree) == before
    assert journals(tree) == []


# A read-only disk ----------------------------------------------------------------------------------------------------


def test_a_read_only_disk_does_not_prevent_a_restore(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, drawn = contents(tree), planned(tree, WORDS)
    with Agent(tree) as agent:
        agent.apply(drawn, WORDS)
    (file,) = journals(tree)
    written = file.read_bytes()
    with monkeypatch.context() as patch:
        read_only_state(patch)
        with Agent(tree) as agent:
            back = agent.ask("restore")
    assert len(back["restored"]) == len(drawn.changes)
    (told,) = back["left_alone"]
    assert told["path"].endswith(file.name)
    assert "the journal could not be written" in told["reason"]
    assert contents(tree) == before
    assert file.read_bytes() == written
    with Agent(tree) as agent:
        assert agent.ask("restore")["left_alone"] == [], "with the disk writable again there is nothing to tell"
    assert contents(tree) == before
    assert journals(tree) == []


def test_a_torn_journal_on_a_read_only_disk_is_given_back_too(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(tree)
    with Agent(tree) as agent:
        agent.apply(planned(tree, WORDS), WORDS)
    (file,) = journals(tree)
    file.write_bytes(file.read_bytes() + b'{"record":"intent","n":99,"tunab')
    with monkeypatch.context() as patch:
        read_only_state(patch)
        with Agent(tree) as agent:
            assert len(agent.ask("restore")["left_alone"]) == 1
    assert contents(tree) == before


def test_nothing_is_applied_on_a_read_only_disk(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Agent(tree) as agent:
        agent.apply(planned(tree, ("thp",)), ("thp",))
        agent.ask("restore")
    assert (tree / STATE / LOCK_FILE).exists()
    before, drawn = contents(tree), planned(tree, WORDS)
    with monkeypatch.context() as patch:
        read_only_state(patch)
        with Agent(tree) as agent:
            assert "error" in agent.apply(drawn, WORDS)
    assert contents(tree) == before


# A kill inside the replacement of a file -----------------------------------------------------------------------------


@pytest.fixture
def debian(tree: Path) -> Path:
    return hosttrees.write(
        tree,
        {
            "etc/os-release": "ID=debian\n",
            "etc/default/grub": 'GRUB_CMDLINE_LINUX="console=ttyS0"\n',
            f"{DROPINS}/50-cloud.cfg": "\n",
            "usr/sbin/update-grub": "#!/bin/sh\n",
        },
    )


def test_restore_tidies_the_files_of_a_killed_replacement(debian: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, test = contents(debian), os.getpid()
    drawn = planned(debian, ("irqaffinity",))
    assert [change.kind for change in drawn.changes] == ["grub"]
    really = os.rename

    def killed(source: Any, *more: Any, **named: Any) -> None:
        if os.getpid() != test and str(source).startswith(".zz-jitter-workshop-"):
            os.kill(os.getpid(), signal.SIGKILL)
        really(source, *more, **named)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", killed)
        dying = Agent(debian)
        assert dying.apply(drawn, ("irqaffinity",)) is None
        assert dying.end() == -signal.SIGKILL
    left = set(contents(debian)) - set(before)
    assert len(left) == 1
    assert next(iter(left)).startswith(f"{DROPINS}/.zz-jitter-workshop-")
    with Agent(debian) as agent:
        assert agent.ask("restore")["left_alone"] == []
    assert contents(debian) == before
    assert journals(debian) == []


def test_only_our_own_unfinished_files_of_this_path_are_removed(tmp_path: Path) -> None:
    others = (
        "zz.cfg",
        ".zz.cfg",
        ".zz.cfg.",
        ".zz.cfg.swp",
        ".zz.cfg.12a",
        ".zz.cfg.bak.12",
        ".yy.cfg.12",
        "zz.cfg.12",
    )
    hosttrees.write(tmp_path, {f"etc/{name}": name for name in (*others, ".zz.cfg.12", ".zz.cfg.4194303")})
    HostWriter(tmp_path).remove_unfinished("/etc/zz.cfg")
    assert sorted(path.name for path in (tmp_path / "etc").iterdir()) == sorted(others)
    HostWriter(tmp_path).remove_unfinished("/etc/zz.cfg")
