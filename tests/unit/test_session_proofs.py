"""Proofs in a session: whole, in order, and damaged, edited or cut-off ones told apart."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.errors import SessionError
from jitter_workshop.session.proofs import CUT_OFF, FOLDER
from jitter_workshop.session.store import OpenSession, SessionStore
from tests.madeproofs import make_proof


@pytest.fixture
def session(tmp_path: Path) -> Iterator[OpenSession]:
    with SessionStore(tmp_path / "sessions").create("proofs", "host") as made:
        yield made


def test_a_proof_comes_back_as_it_was(session: OpenSession) -> None:
    proof = make_proof()
    session.add_proof(proof)
    assert session.proofs() == (proof,)
    assert session.notices == []


def test_they_are_in_the_order_of_time_and_found_by_id_subject_and_number(session: OpenSession) -> None:
    late = make_proof("20260102-000000-bbbb", started_at="2026-01-02T00:00:00.000000Z")
    early = make_proof()
    session.add_proof(late)
    session.add_proof(early)
    assert session.proofs() == (early, late)
    assert session.find_proof("@1") == late
    assert session.find_proof("20260101") == early
    assert session.find_proof("thp") == late
    with pytest.raises(SessionError, match="no proof nothing"):
        session.find_proof("nothing")


def test_it_is_written_anew_after_each_round_and_nobody_calls_it_cut_off_meanwhile(session: OpenSession) -> None:
    proof = make_proof(rounds=3, planned=10, ended_at="", complete=False, restored=False)
    session.add_proof(proof)
    assert session.proofs() == (proof,)
    assert session.notices == []


def test_one_without_an_end_was_cut_off(session: OpenSession) -> None:
    proof = make_proof(rounds=3, planned=10, ended_at="", complete=False, restored=False)
    session.add_proof(proof)
    folder = session.folder
    session.close()
    with SessionStore(folder.parent).open(folder.name) as later:
        (found,) = later.proofs()
        assert (found.stopped, found.complete, found.rounds) == (CUT_OFF, False, proof.rounds)
        assert found.ended_at
        assert any("was interrupted" in notice and "3 of 10 rounds" in notice for notice in later.notices)


def test_whoever_only_reads_does_not_call_it_cut_off(session: OpenSession) -> None:
    proof = make_proof(rounds=3, planned=10, ended_at="", complete=False)
    session.add_proof(proof)
    with SessionStore(session.folder.parent).open(session.folder.name) as reader:
        assert reader.read_only
        assert reader.proofs() == (proof,)


def spoil(session: OpenSession, **changed: Any) -> Path:
    proof = make_proof()
    session.add_proof(proof)
    path = session.folder / FOLDER / f"{proof.id}.json"
    value = json.loads(path.read_text())
    path.write_text(json.dumps({**value, **changed}))
    return path


@pytest.mark.parametrize(
    "changed",
    [
        {"id": "20260101-000000-cccc"},
        {"subject": ""},
        {"planned": 3},
        {"rounds": []},
        {"judgement": None},
        {"seed": "seven"},
    ],
)
def test_a_damaged_or_edited_one_is_set_aside(session: OpenSession, changed: dict[str, Any]) -> None:
    path = spoil(session, **changed)
    assert session.proofs() == ()
    assert not path.exists()
    assert path.with_name(f"{path.name}.damaged-1").exists()
    assert len(session.notices) == 1
    assert "is damaged" in session.notices[0]
    assert session.proofs() == ()


def test_a_figure_that_is_no_number_is_damage(session: OpenSession) -> None:
    proof = make_proof()
    session.add_proof(proof)
    path = session.folder / FOLDER / f"{proof.id}.json"
    value = json.loads(path.read_text())
    value["judgement"]["rows"][0]["low"] = float("nan")
    path.write_text(json.dumps(value))
    assert session.proofs() == ()


def test_a_newer_one_is_left_alone(session: OpenSession) -> None:
    path = spoil(session, format_version=99)
    assert session.proofs() == ()
    assert path.exists()
    assert "newer version" in session.notices[0]


def test_a_torn_file_never_stands_in_for_a_whole_one(session: OpenSession) -> None:
    session.add_proof(make_proof())
    (session.folder / FOLDER / ".new-20260101-000000-aaaa.json-1234").write_text("{")
    assert len(session.proofs()) == 1


def test_a_hostile_id_is_no_path(session: OpenSession) -> None:
    with pytest.raises(SessionError):
        session.add_proof(dataclasses.replace(make_proof(), id="../../etc/passwd"))
