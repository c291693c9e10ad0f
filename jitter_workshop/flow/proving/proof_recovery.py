"""Find proofs whose change was not restored, and check if the change is still applied. Then update these proofs in
their session."""

from __future__ import annotations

import contextlib
import dataclasses

from jitter_workshop.errors import HostError, SessionError
from jitter_workshop.flow.host_ops.agent_connection import standing_entries
from jitter_workshop.flow.host_ops.host_status import host_mismatch, known_boots
from jitter_workshop.flow.proving import proof_plan
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.summary import summarise_host
from jitter_workshop.model.proof import PLACEMENT, Proof
from jitter_workshop.model.text import ID, clean
from jitter_workshop.session import history
from jitter_workshop.session.opened import OpenSession
from jitter_workshop.session.proofs import CUT_OFF

RESTORED_LATER = "the proof could not restore all settings, but this host's journal shows that all are restored now"
_NOT_KNOWN = "this host does not show whether everything was restored: "


def update_proofs(session: OpenSession, root: HostRoot | None = None) -> None:
    """Check each unrestored proof, and store the result in the session. The host's journal shows if the change is still
    applied. A session that was opened only for reading is not changed."""
    if session.read_only:
        return
    for before, proof in zip(session.proofs(), with_present_state(session, root), strict=True):
        if _waits(before) and (proof != before or before.stopped == CUT_OFF):
            # On a full disk the result is recorded at the next call.
            with contextlib.suppress(SessionError):
                session.add_proof(proof)


def with_present_state(session: OpenSession, root: HostRoot | None = None) -> tuple[Proof, ...]:
    """Return the session's proofs, each with the present state of its change. A proof becomes ``restored`` if this
    host's journal shows no part of its change. On another host the state is unknown, and the proof gets a note.
    """
    proofs = session.proofs()
    if not any(map(_waits, proofs)):
        return proofs
    root = root or HostRoot(proof_plan.HERE)
    why = _elsewhere(session, root)
    return tuple(_with_present_state(proof, why, root) if _waits(proof) else proof for proof in proofs)


def _waits(proof: Proof) -> bool:
    return bool(proof.ended_at) and not proof.restored


def change_is_in_effect(subject: str, root: HostRoot) -> bool:
    """Return True if this tool's change of a proof's tunable is still in effect on the host. ``subject``: the settings
    of the proof, as words separated by blanks."""
    names = {word.partition("=")[0] for word in subject.split()}
    return any(entry.tunable in names for entry in standing_entries(root))


def _with_present_state(proof: Proof, why: str, root: HostRoot) -> Proof:
    if proof.subject == PLACEMENT:
        return dataclasses.replace(proof, restored=True)
    notes = tuple(note for note in proof.notes if not note.startswith(_NOT_KNOWN))
    if why:
        return dataclasses.replace(proof, notes=(*notes, f"{_NOT_KNOWN}{why}"))
    if change_is_in_effect(proof.subject, root):
        return proof
    later = () if proof.stopped == CUT_OFF else (RESTORED_LATER,)
    return dataclasses.replace(proof, restored=True, left_alone=(), notes=(*notes, *later))


def _elsewhere(session: OpenSession, root: HostRoot) -> str:
    """Return the reason why this host's journal says nothing about the session's proofs, else ""."""
    if session.session.recorded:
        return "the session is about a recorded host"
    try:
        here = clean(summarise_host(root).name, ID) or "host"
    except HostError as error:
        return error.message
    events, _ = history.read_history(session.folder)
    snapshots = (history.first(session.folder)[0], history.last(session.folder)[0])
    return host_mismatch(session.session, here, root, known_boots(session.runs(), events, snapshots))
