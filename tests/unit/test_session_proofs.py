"""Proofs in a session: whole, in order, and damaged, edited or cut-off ones told apart."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.errors import SessionError
from jitter_workshop.model.proof import Proof, ProofRound
from jitter_workshop.model.verdict import Order
from jitter_workshop.session.proofs import CUT_OFF, FOLDER
from jitter_workshop.session.store import OpenSession, SessionStore
from jitter_workshop.stats.rounds import rounds_of
from jitter_workshop.stats.verdicts import judge_change
from tests.madeproofs import make_proof
from tests.madeup import make_run


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


def test_a_proof_is_written_after_each_round_and_is_not_taken_for_cut_off(session: OpenSession) -> None:
    proof = make_proof(rounds=3, planned=10, ended_at="", complete=False, restored=False)
    session.add_proof(proof)
    assert session.proofs() == (proof,)
    assert session.notices == []


def test_an_unfinished_proof_is_marked_as_cut_off_at_the_next_start(session: OpenSession) -> None:
    proof = make_proof(rounds=3, planned=10, ended_at="", complete=False, restored=False)
    session.add_proof(proof)
    folder = session.folder
    session.close()
    with SessionStore(folder.parent).open(folder.name) as later:
        (found,) = later.proofs()
        assert (found.stopped, found.complete, found.rounds) == (CUT_OFF, False, proof.rounds)
        assert found.ended_at
        assert any("was interrupted" in notice and "3 of 10 rounds" in notice for notice in later.notices)


def test_a_reader_does_not_mark_an_unfinished_proof_as_cut_off(session: OpenSession) -> None:
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


def test_a_proof_of_a_newer_version_is_left_unread_on_disk(session: OpenSession) -> None:
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


# -- a file that claims what its rounds do not say ---------------------------------------------------------------------


def edited(session: OpenSession, proof: Proof, **said: Any) -> Path:
    """The proof stored, and its judgement edited behind the session's back."""
    session.add_proof(proof)
    path = session.folder / FOLDER / f"{proof.id}.json"
    value = json.loads(path.read_text())
    value["judgement"] |= said
    path.write_text(json.dumps(value))
    return path


def measured(session: OpenSession, rounds: int, made_for: str = "20260101-000000-aaaa") -> Proof:
    """A proof whose runs are in the session."""
    pairs = []
    for number in range(rounds):
        order: Order = "AB" if number % 2 else "BA"
        pair = []
        for side, stalls in enumerate((40, 2)):
            values = [100 + number] * 200 + [150_000 + 1_000 * number] * stalls
            ident = f"20260101-0000{number:02d}-{side:04x}"
            run, blocks = make_run([values, values], run_id=ident, proof=made_for)
            session.add_run(run, blocks)
            pair.append(run)
        pairs.append((order, *pair))
    kept = tuple(ProofRound(order, a.id, b.id) for order, a, b in pairs)
    said = judge_change(rounds_of(pairs), "ring")
    return dataclasses.replace(make_proof(rounds=rounds), rounds=kept, judgement=said)


def test_a_claim_needs_rounds_enough(session: OpenSession) -> None:
    proof = make_proof(rounds=3)
    assert proof.judgement is not None
    row = dataclasses.asdict(proof.judgement.rows[0]) | {"verdict": "lower"}
    headline = {"measure": row["measure"], "verdict": "lower", "text": "57x rarer"}
    path = edited(session, proof, rows=[row], headline=headline)
    assert session.proofs() == ()
    assert not path.exists()
    assert "too few rounds" in session.notices[0]


def test_a_headline_is_one_of_its_rows(session: OpenSession) -> None:
    edited(session, make_proof(), headline={"measure": "p50", "verdict": "higher", "text": "slower"})
    assert session.proofs() == ()
    assert "the headline is not one of the rows" in session.notices[0]


def test_a_stored_proof_agrees_with_its_runs(session: OpenSession) -> None:
    proof = measured(session, 10)
    session.add_proof(proof)
    assert session.proofs() == (proof,)
    assert session.notices == []


@pytest.mark.parametrize("said", ["a text", "a figure"])
def test_a_verdict_that_its_runs_do_not_give_is_judged_anew_and_told_once(session: OpenSession, said: str) -> None:
    proof = measured(session, 10)
    assert proof.judgement is not None
    row = dataclasses.replace(proof.judgement.rows[0], without=1e-9)
    headline = dataclasses.replace(proof.judgement.headline, text="57x rarer")
    other = {
        "a text": {"headline": dataclasses.asdict(headline)},
        "a figure": {"rows": [dataclasses.asdict(one) for one in (row, *proof.judgement.rows[1:])]},
    }[said]
    path = edited(session, proof, **other)
    folder = session.folder
    with SessionStore(folder.parent).open(folder.name) as reader:
        assert reader.read_only
        assert reader.proofs() == (proof,)
        assert any("left where it is" in notice for notice in reader.notices)
    assert session.proofs() == (proof,)
    assert len(session.notices) == 1
    assert "judged again" in session.notices[0]
    assert path.with_name(f"{path.name}.damaged-1").exists()
    session.close()
    with SessionStore(folder.parent).open(folder.name) as later:
        assert later.proofs() == (proof,)
        assert later.notices == []


def test_runs_that_were_made_for_another_proof_are_not_its_rounds(session: OpenSession) -> None:
    session.add_proof(measured(session, 10, made_for="20260101-000000-bbbb"))
    assert session.proofs() == ()
    assert "belongs to no proof" in session.notices[0]


def test_each_proof_is_judged_once(session: OpenSession, monkeypatch: pytest.MonkeyPatch) -> None:
    proof = measured(session, 10)
    session.add_proof(proof)
    assert session.proofs() == (proof,)
    monkeypatch.setattr("jitter_workshop.stats.verdicts.judge_change", None)
    assert session.proofs() == (proof,)
