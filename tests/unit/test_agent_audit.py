"""The audit: who changed what, and that no user can push it out."""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jitter_workshop.agent import audit
from jitter_workshop.agent.audit import CHANGES, REFUSALS, TURNS, AuditLog


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Any]:
    state = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield SimpleNamespace(state=state)
    os.close(state)


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_refusals_never_push_a_change_out_of_the_audit(
    folder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "MAX_BYTES", 2000)
    AuditLog(folder, "ada", 1000).note(CHANGES, "applied", tunable="thp", path="/sys/x", before="a", after="b")
    mallory = AuditLog(folder, "mallory", 1001)
    for number in range(200):
        mallory.note(REFUSALS, "refused", why=f"number {number}")
    (kept,) = lines(tmp_path / CHANGES)
    assert (kept["user"], kept["what"], kept["before"]) == ("ada", "applied", "a")
    assert lines(tmp_path / REFUSALS)[-1]["why"] == "number 199"
    assert all(file.stat().st_size <= 2000 for file in tmp_path.iterdir())


def test_turns_never_push_a_change_out_of_the_audit(
    folder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "MAX_BYTES", 2000)
    AuditLog(folder, "ada", 1000).note(CHANGES, "applied", tunable="thp", path="/sys/x", before="a", after="b")
    mallory = AuditLog(folder, "mallory", 1001)
    for number in range(200):
        mallory.note(TURNS, "turn began", number=number)
    (kept,) = lines(tmp_path / CHANGES)
    assert (kept["user"], kept["what"]) == ("ada", "applied")
    assert lines(tmp_path / TURNS)[-1]["number"] == 199
    assert len(lines(tmp_path / f"{TURNS}.1")) > 5


def test_a_log_that_is_a_link_is_not_opened(folder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").touch()
    (tmp_path / CHANGES).symlink_to(tmp_path / "elsewhere")
    opened: list[str] = []
    real = os.open

    def once(name: str, *more: Any, **options: Any) -> int:
        opened.append(name)
        # A log that is a link would be opened again and again.
        assert len(opened) == 1, "the link was followed"
        return real(name, *more, **options)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", once)
        AuditLog(folder, "ada", 1000).note(CHANGES, "applied", tunable="thp")
    assert opened == [CHANGES]
    assert (tmp_path / "elsewhere").read_bytes() == b""


def test_only_one_process_renames_a_full_log(folder: Any, tmp_path: Path) -> None:
    """Two who rename it one after the other would leave nothing of it."""
    log = tmp_path / CHANGES
    log.write_bytes(b"x" * audit.MAX_BYTES)
    with log.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        late = threading.Thread(target=lambda: AuditLog(folder, "ada", 1000).note(CHANGES, "applied", tunable="thp"))
        late.start()
        inode = os.fstat(held.fileno()).st_ino
        ends = time.monotonic() + 20
        while not any("->" in one and f":{inode} " in one for one in Path("/proc/locks").read_text().splitlines()):
            assert late.is_alive()
            assert time.monotonic() < ends
        log.rename(f"{log}.1")  # what another does meanwhile
        log.write_text('{"what":"of another"}\n')
    late.join()
    assert [one["what"] for one in lines(log)] == ["of another", "applied"]
    assert (tmp_path / f"{CHANGES}.1").stat().st_size == audit.MAX_BYTES


def test_words_of_callers_stay_on_their_line(folder: Any, tmp_path: Path) -> None:
    AuditLog(folder, "ada", 1000).note(CHANGES, "turn", doing='\x1b[2J"}\n{"user":"root"')
    (kept,) = lines(tmp_path / CHANGES)
    assert kept["user"] == "ada"
    assert "\x1b" not in kept["doing"]


def test_a_log_that_cannot_be_written_does_not_prevent_a_restore(folder: Any, tmp_path: Path) -> None:
    (tmp_path / CHANGES).mkdir()
    (tmp_path / TURNS).mkdir()
    (tmp_path / REFUSALS).symlink_to(tmp_path / "elsewhere")
    log = AuditLog(cast(Any, folder), "ada", 1000)
    log.note(CHANGES, "applied")
    log.note(TURNS, "turn began")
    log.note(REFUSALS, "refused", why="no")
    assert not (tmp_path / "elsewhere").exists()
