"""Test a session's history of its host: appended, torn, edited, and with its two moments of status."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.errors import SessionError
from jitter_workshop.model.status import FORMAT_VERSION, CheckState, HostEvent, Snapshot
from jitter_workshop.session import history

EVENT = HostEvent("2026-01-01T00:00:00.000000Z", "applied", "thp", "/sys/thp", "madvise", "never", "never", boot_id="b")
BACK = HostEvent("2026-01-01T00:01:00.000000Z", "restored", "thp", "/sys/thp", "never", "madvise", chapter="memory")
SEEN = Snapshot(
    FORMAT_VERSION,
    "2026-01-01T00:00:00Z",
    "lab",
    "b",
    (1,),
    (CheckState("thp", "Huge pages", "ok", "never", None, ""),),
)


def test_events_come_back_in_their_order(tmp_path: Path) -> None:
    assert history.read_history(tmp_path) == ((), ())
    history.append(tmp_path, [BACK, EVENT])
    history.append(tmp_path, [])
    history.append(tmp_path, [BACK])
    assert history.read_history(tmp_path) == ((BACK, EVENT, BACK), ())
    assert (tmp_path / history.FILE).stat().st_mode & 0o077 == 0


def test_a_torn_line_costs_itself_alone(tmp_path: Path) -> None:
    history.append(tmp_path, [EVENT, BACK])
    path = tmp_path / history.FILE
    path.write_bytes(path.read_bytes()[:-30])
    found, notices = history.read_history(tmp_path)
    assert found == (EVENT,)
    assert notices == ("left out: 1 line of history.jsonl that cannot be read",)
    history.append(tmp_path, [BACK])
    assert history.read_history(tmp_path) == ((EVENT, BACK), notices)


def test_hostile_and_newer_lines_are_left_out_and_told(tmp_path: Path) -> None:
    history.append(tmp_path, [EVENT])
    lines = [
        b"[1]",
        b'"text"',
        b"null",
        b"{}",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"format_version": 1e999}',
        b'{"at": "' + b"x" * (history.MAX_LINE + 1) + b'"}',
        json.dumps({**json.loads((tmp_path / history.FILE).read_text()), "did": "exploded"}).encode(),
        json.dumps({**json.loads((tmp_path / history.FILE).read_text()), "path": ["/"]}).encode(),
        json.dumps({"format_version": FORMAT_VERSION + 1, "what": "else"}).encode(),
        b"",
    ]
    with (tmp_path / history.FILE).open("ab") as file:
        file.write(b"\n".join(lines) + b"\n")
    history.append(tmp_path, [BACK])
    found, notices = history.read_history(tmp_path)
    assert found == (EVENT, BACK)
    assert notices == (
        "left out: 10 lines of history.jsonl that cannot be read",
        "left out: 1 line of history.jsonl by a newer version",
    )


@given(st.binary(max_size=300), st.integers(0, 600))
def test_no_bytes_do_harm(tmp_path_factory: pytest.TempPathFactory, junk: bytes, at: int) -> None:
    folder = tmp_path_factory.mktemp("history")
    history.append(folder, [EVENT, BACK])
    path = folder / history.FILE
    whole = path.read_bytes()
    path.write_bytes(whole[:at] + junk + whole[at:])
    before, _ = history.read_history(folder)
    history.append(folder, [BACK])
    after, _ = history.read_history(folder)
    assert after[-1] == BACK
    assert after[: len(before)] == before


def test_a_history_that_is_no_regular_file_is_neither_read_nor_written(tmp_path: Path) -> None:
    path = tmp_path / history.FILE
    os.mkfifo(path)
    with pytest.raises(SessionError, match="not a regular file"):
        history.append(tmp_path, [EVENT])
    events, (problem,) = history.read_history(tmp_path)
    assert events == ()
    assert problem.split(": ") == ["history.jsonl cannot be read", "not a regular file"]
    path.unlink()
    elsewhere = tmp_path / "elsewhere"
    path.symlink_to(elsewhere)
    with pytest.raises(SessionError):
        history.append(tmp_path, [EVENT])
    assert not elsewhere.exists()


def test_the_first_status_is_kept_once_and_the_last_anew(tmp_path: Path) -> None:
    assert history.first(tmp_path) == (None, "no status was kept when this session began")
    assert history.last(tmp_path)[0] is None
    later = Snapshot(FORMAT_VERSION, "2026-01-02T00:00:00Z", "lab", "c", (1,), ())
    for snapshot in (SEEN, later):
        history.keep_first(tmp_path, snapshot)
        history.keep_last(tmp_path, snapshot)
    assert history.first(tmp_path) == (SEEN, "")
    assert history.last(tmp_path) == (later, "")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "damaged"),
        (b"[]", "damaged"),
        (b"{}", "damaged"),
        (b"\x00" * 50, "damaged"),
        (b'{"format_version": 99}', "written by a newer version"),
    ],
)
def test_a_damaged_status_is_none_and_says_why(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / history.FIRST_STATUS).write_bytes(content)
    found, said = history.first(tmp_path)
    assert found is None
    assert why in said
    assert history.has_first(tmp_path)  # it is not made anew: what it said is not known any more
