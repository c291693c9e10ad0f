"""Test proofs that were not restored: only the journal of their own host decides what is still in place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jitter_workshop.flow.proving import proof_recovery
from jitter_workshop.flow.proving.proof_recovery import RESTORED_LATER, update_proofs
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.summary import summarise_host
from jitter_workshop.model.change import LeftAlone
from jitter_workshop.session.proofs import CUT_OFF
from jitter_workshop.session.store import OpenSession, SessionStore
from tests import tuned_tree
from tests.madeproofs import make_proof
from tests.madeup import make_run

LEFT = LeftAlone("thp", "/sys/kernel/mm/transparent_hugepage/enabled", "madvise", "never", "somebody changed it")
BOOT = "proc/sys/kernel/random/boot_id"


@pytest.fixture
def root(tmp_path: Path) -> HostRoot:
    tree = tuned_tree.make(tmp_path / "tree")
    (tree / BOOT).parent.mkdir(parents=True, exist_ok=True)
    (tree / BOOT).write_text("this-boot\n")
    return HostRoot(tree)


@pytest.fixture
def session(tmp_path: Path, root: HostRoot) -> Iterator[OpenSession]:
    with SessionStore(tmp_path / "sessions").create("proofs", summarise_host(root).name) as made:
        yield made


def test_a_proof_with_open_changes_is_settled_once_no_change_stands(session: OpenSession, root: HostRoot) -> None:
    session.add_proof(make_proof(restored=False, left_alone=(LEFT,)))
    update_proofs(session, root)
    (proof,) = session.proofs()
    assert (proof.restored, proof.left_alone, proof.notes) == (True, (), (RESTORED_LATER,))


def test_a_proof_whose_change_is_still_applied_is_not_settled(
    session: OpenSession, root: HostRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proof_recovery, "change_is_in_effect", lambda subject, root: True)
    proof = make_proof(restored=False, left_alone=(LEFT,))
    session.add_proof(proof)
    update_proofs(session, root)
    assert session.proofs() == (proof,)


def test_a_proof_of_another_host_is_nothing_that_this_journal_knows(tmp_path: Path, root: HostRoot) -> None:
    with SessionStore(tmp_path / "others").create("proofs", "another") as session:
        session.add_proof(make_proof(restored=False, ended_at="", complete=False))
        folder = session.folder
    with SessionStore(folder.parent).open(folder.name) as later:
        for _ in range(2):
            update_proofs(later, root)
            (proof,) = later.proofs()
            assert (proof.restored, proof.stopped) == (False, CUT_OFF)
            (note,) = proof.notes
            assert "does not show whether everything was restored" in note
            assert "the session was made on another" in note


@pytest.mark.parametrize(("boot", "known"), [("this-boot", True), ("another-boot", False)])
def test_nor_one_of_a_boot_that_the_session_does_not_know(
    session: OpenSession, root: HostRoot, boot: str, known: bool
) -> None:
    run, blocks = make_run(host={"boot_id": boot})
    session.add_run(run, blocks)
    session.add_proof(make_proof(restored=False))
    update_proofs(session, root)
    (proof,) = session.proofs()
    assert proof.restored is known
