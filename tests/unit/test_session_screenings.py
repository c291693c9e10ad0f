"""Screenings in a session: kept whole, set aside if they are damaged, and packed with the session."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.errors import SessionError
from jitter_workshop.model.screening import ScreenedPair, ScreenedRun, Screening
from jitter_workshop.model.verdict import CommandFigure
from jitter_workshop.session.archive import is_known
from jitter_workshop.session.store import SessionStore
from jitter_workshop.stats.rounds import side_of_figure
from tests.madescreenings import blank

FIRST, SECOND = "20260101-000000-aaaa", "20260102-000000-bbbb"


def run(*on: int) -> ScreenedRun:
    return ScreenedRun(on, side_of_figure(CommandFigure("wall_time", "ns", 5.0 + sum(on))))


def made(ident: str = FIRST) -> Screening:
    early = blank(3, 1, 10, id=ident, workload="command", command=("true",), chosen=(0, 1, 2))
    pairs = (ScreenedPair(run(0, 2), run(1)), ScreenedPair(run(), run(0, 1, 2)))
    return dataclasses.replace(early, proofs=pairs, sittings=(f"2026-01-0{1 + (ident == SECOND)}T00:00:00Z",))


def test_stored_screenings_are_read_back_oldest_first(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    with store.create("screens", "host") as session:
        session.add_screening(made(SECOND))
        session.add_screening(made())
        name = session.session.id
    with store.open(name) as session:
        assert session.screenings() == (made(), made(SECOND))
        assert session.find_screening("@1") == made(SECOND)
        assert session.find_screening(FIRST[:10]) == made()
        with pytest.raises(SessionError, match="no screening"):
            session.find_screening("@3")
        assert session.notices == []
    assert is_known(f"screenings/{FIRST}.json")
    assert not is_known("screenings/../x.json")


def _pair_with_both(plain: dict[str, Any]) -> None:
    plain["proofs"][0]["second"]["on"] = [0, 1]


def _too_many(plain: dict[str, Any]) -> None:
    plain["planned_proofs"] = 1


def _unknown_setting(plain: dict[str, Any]) -> None:
    plain["chosen"] = [0, 7]


def _no_figure(plain: dict[str, Any]) -> None:
    plain["proofs"][1]["first"]["side"]["figure"] = None


def _other_id(plain: dict[str, Any]) -> None:
    plain["id"] = SECOND


def _twice(plain: dict[str, Any]) -> None:
    plain["settings"] = ["thp", "thp", "swap"]


@pytest.mark.parametrize("edit", [_pair_with_both, _too_many, _unknown_setting, _no_figure, _other_id, _twice])
def test_an_impossible_one_is_set_aside_and_named(tmp_path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    store = SessionStore(tmp_path)
    with store.create("screens", "host") as session:
        session.add_screening(made())
        (path,) = (session.folder / "screenings").glob("*.json")
        plain = json.loads(path.read_text())
        edit(plain)
        path.write_text(json.dumps(plain))
        assert session.screenings() == ()
        assert any(f"screening {FIRST} is damaged" in notice for notice in session.notices)
        assert not path.exists()


def test_a_screening_of_a_newer_version_is_left_unread_on_disk(tmp_path: Path) -> None:
    with SessionStore(tmp_path).create("screens", "host") as session:
        session.add_screening(made())
        (path,) = (session.folder / "screenings").glob("*.json")
        path.write_text(path.read_text().replace('"format_version":1', '"format_version":2', 1))
        assert session.screenings() == ()
        assert path.exists()
