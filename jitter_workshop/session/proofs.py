"""Keep the proofs of a session, each in a file ``proofs/ID.json``.

A proof's file is written again after each round. So at most one round is lost if the process is killed. A damaged file
is renamed, and a file of a newer version is left unchanged. If ``ended_at`` is "", the proof is still being made, or
its process was killed. If the runs of all rounds exist, the judgement is computed again, and the stored judgement is
not used.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import math
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from jitter_workshop.errors import SessionError
from jitter_workshop.model.codec import to_plain
from jitter_workshop.model.proof import FORMAT_VERSION, Proof
from jitter_workshop.model.run import Run
from jitter_workshop.model.text import LABEL, NAME, clean, many
from jitter_workshop.model.verdict import ENOUGH_ROUNDS, Judgement, Round
from jitter_workshop.session import files, ids

FOLDER = "proofs"
CUT_OFF = "the process that made it was killed"
"""The reason for the end of a proof whose last rounds were not stored."""
_ALIKE = 1e-9
"""The relative tolerance when two judgements are compared: logarithms differ in the last digit between C libraries."""


class Judge:
    """Judge stored proofs again from their runs. A judgement takes 20 ms, so judgements are cached. ``run``: a
    function that returns the run with an id; None if the run cannot be read. ``here``: a function that returns the ids
    of the runs that exist.
    """

    def __init__(self, run: Callable[[str], Run | None], here: Callable[[], Collection[str]]) -> None:
        self._run = run
        self._here = here
        self._known: dict[str, tuple[Proof, Judgement | None]] = {}

    def __call__(self, proof: Proof) -> Judgement | None:
        """Return the new judgement of a proof if it differs from the stored judgement. Return None if the two
        judgements are equal, or if a run is missing. Raise ValueError if a run does not belong to the proof."""
        stored, other = self._known.get(proof.id, (None, None))
        if stored != proof:
            other = self._judged(proof)
            self._known[proof.id] = proof, other
        return other

    def _judged(self, proof: Proof) -> Judgement | None:
        from jitter_workshop.stats.rounds import rounds_of
        from jitter_workshop.stats.verdicts import judge_change

        if proof.command and proof.rounds:
            return _other(proof, judge_change(_rounds_of_command(proof), proof.workload))
        here = self._here()
        if not proof.rounds or not all({one.without, one.with_it} <= set(here) for one in proof.rounds):
            return None
        found = [(one.order, self._run(one.without), self._run(one.with_it)) for one in proof.rounds]
        pairs = [(order, a, b) for order, a, b in found if a is not None and b is not None]
        if len(pairs) < len(found):
            return None
        if any(run.proof != proof.id for _, *both in pairs for run in both):
            raise ValueError("a run of the proof's rounds belongs to no proof or to another proof")
        return _other(proof, judge_change(rounds_of(pairs), proof.workload))


def _rounds_of_command(proof: Proof) -> tuple[Round, ...]:
    """Return the rounds of a proof that measured a user's command. The rounds have the figures that are stored in the
    proof. Raise ValueError if a figure is missing."""
    from jitter_workshop.stats.rounds import figure_rounds

    known = [(one.order, *one.figures) for one in proof.rounds if one.figures is not None]
    if len(known) < len(proof.rounds):
        raise ValueError("a round of the command has no figures")
    return figure_rounds(proof.metric, proof.unit, known)


def _other(proof: Proof, said: Judgement) -> Judgement | None:
    """Return the new judgement ``said`` if it differs from the judgement stored in the proof, else None. Differences by
    rounding do not count."""
    return None if _alike(to_plain(said), to_plain(proof.judgement)) else said


def store_proof(session: Path, proof: Proof) -> None:
    """Store a proof. It replaces an earlier stored state of this proof. Raise SessionError if that fails; the earlier
    state is then unchanged.
    """
    if not ids.is_folder_id(proof.id):
        raise SessionError(f"a proof cannot be stored as {clean(proof.id)}", "prove it again")
    folder = session / FOLDER
    files.make_folder(folder)
    files.write_json(folder / f"{proof.id}.json", to_plain(proof))


def read_proofs(session: Path, judge: Judge, *, ours: bool, own: str = "") -> tuple[tuple[Proof, ...], tuple[str, ...]]:
    """Return a session's proofs, oldest first, and notices about damaged or interrupted proofs.

    ``judge``: judges a proof again from its runs. If the new judgement differs from the stored one, the returned proof
    has the new one. The file with the stored one is then renamed. ``ours``: True if this process may write in the
    session. If so, no other process can be making a proof. So a proof without an end was interrupted: its ``stopped``
    becomes :data:`CUT_OFF`, and a notice tells the user. ``own``: the id of the proof that this process is making. This
    proof is not judged again.
    """

    def check(proof: Proof, ident: str) -> None:
        _check(proof, ident)
        if proof.id != own:
            judge(proof)

    stored, notices = files.read_each(session / FOLDER, Proof, "proof", FORMAT_VERSION, check, may_rename=ours)
    found = list[Proof]()
    for path, proof in stored:
        shown = clean(proof.id, NAME)
        other = judge(proof) if proof.id != own else None
        if other is not None:
            proof = dataclasses.replace(proof, judgement=other)
            where = files.put_aside(path, ours)
            if ours:
                # On a full disk it is judged and reported again at the next read.
                with contextlib.suppress(SessionError):
                    store_proof(session, proof)
            notices.append(
                f"proof {shown} does not fit its runs: it was edited, or another version judged it. The proof was "
                f"judged again from these runs. The old file is {where}"
            )
        if not proof.ended_at and ours and proof.id != own:
            proof = dataclasses.replace(proof, stopped=CUT_OFF, complete=False, ended_at=_written_at(path))
            done = f"{len(proof.rounds)} of {many(proof.planned, 'round')}"
            notices.append(
                f"proof {shown} of {clean(proof.subject, LABEL)} was interrupted: {CUT_OFF}. {done} are kept"
            )
        found.append(proof)
    return tuple(sorted(found, key=lambda p: (p.started_at, p.id))), tuple(notices)


def _written_at(path: Path) -> str:
    """Return the time at which a file was last written; the current time if the file no longer exists."""
    with contextlib.suppress(OSError):
        return ids.timestamp(datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC))
    return ids.timestamp()


def _check(proof: Proof, ident: str) -> None:
    """Raise ValueError if a stored proof has impossible values, or an id other than ``ident``. ``ident``: the id in the
    file's name. A user may have edited the file."""
    if proof.id != ident:
        raise ValueError("the file belongs to another proof")
    if not proof.subject or not 0 <= len(proof.rounds) <= proof.planned:
        raise ValueError("the number of rounds is impossible")
    said = proof.judgement
    if (said is None) != (not proof.rounds) or (said is not None and said.rounds != len(proof.rounds)):
        raise ValueError("the verdict does not fit the rounds")
    for row in said.rows if said is not None else ():
        numbers = (row.ratio, row.low, row.high, row.p, row.p_adjusted, row.without, row.with_it)
        known = all(n is None or math.isfinite(n) for n in numbers)
        if not known or row.low < 0 or not 0 < row.confidence < 1:
            raise ValueError("a figure of the verdict is not a number")
    if said is None:
        return
    claims = (*(row.verdict for row in said.rows), said.headline.verdict)
    if said.rounds < ENOUGH_ROUNDS and any(word != "cannot_tell" for word in claims):
        raise ValueError(f"the verdict is based on too few rounds ({ENOUGH_ROUNDS} are needed)")
    rows = {(row.measure, row.verdict) for row in said.rows} or {("", "cannot_tell")}
    if (said.headline.measure, said.headline.verdict) not in rows:
        raise ValueError("the headline is not one of the rows")


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=_ALIKE)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_alike(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_alike, a, b))
    return bool(a == b)
