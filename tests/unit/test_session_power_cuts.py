"""Test a session's files after a power cut: each is whole, old or new, and stored data stay stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from jitter_workshop.model.status import HostEvent
from jitter_workshop.session import files, history
from tests.powercuts import Cut, Recorder, Tree, cuts

OLD, NEW = b"what stood there\n", b"what takes its place, which is longer\n"


@pytest.fixture
def session(tmp_path: Path) -> Path:
    made = tmp_path / "state" / "session"
    made.mkdir(parents=True)
    return made


def states(session: Path, play: Callable[[], object]) -> tuple[list[Cut], list[Tree]]:
    """Return every state that a cut may leave, and of these the contents after ``play`` had returned."""
    with Recorder(session.parents[1], lasting=("state",)) as recorder:
        play()
    found = list(cuts(recorder))
    return found, [cut.tree for cut in found if cut.after == len(recorder.ops)]


def test_a_replaced_file_is_the_old_one_or_the_new_one(session: Path) -> None:
    (session / "run.json").write_bytes(OLD)
    seen, after = states(session, lambda: files.write_whole(session / "run.json", NEW))
    assert {cut.tree["state/session/run.json"] for cut in seen} == {OLD, NEW}
    assert {tree["state/session/run.json"] for tree in after} == {NEW}


def test_a_folder_is_there_with_all_its_files_or_not_at_all(session: Path) -> None:
    wanted = {"state/session/run": None, "state/session/run/a": OLD, "state/session/run/in": None}
    wanted |= {"state/session/run/in/b": NEW, "state/session/run/c": NEW}
    content: dict[str, bytes | Callable[[BinaryIO], object]] = {
        "a": OLD,
        "in/b": NEW,
        "c": lambda file: file.write(NEW),
    }
    seen, after = states(session, lambda: files.write_folder(session / "run", content))
    whole = [{p: d for p, d in cut.tree.items() if p.startswith("state/session/run")} for cut in seen]
    assert all(found in ({}, wanted) for found in whole)
    assert {} in whole
    assert all(wanted.items() <= tree.items() for tree in after)


EVENT = HostEvent("2026-01-01T00:00:00.000000Z", "applied", "thp", "/sys/thp", "madvise", "never")


def test_events_that_were_added_stay_and_a_cut_takes_none_of_the_earlier_ones(session: Path) -> None:
    history.append(session, [EVENT])
    old = (session / history.FILE).read_bytes()
    seen, after = states(session, lambda: history.append(session, [EVENT]))
    new = (session / history.FILE).read_bytes()
    assert {tree[f"state/session/{history.FILE}"] for tree in after} == {new}
    for cut in seen:
        data = cut.tree[f"state/session/{history.FILE}"]
        assert data is not None
        assert data.startswith(old)
