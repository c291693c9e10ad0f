"""Check that a stored proof claims no more than its rounds support: its file is the user's own, and may have been
edited."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any

from jitter_workshop.model.codec import to_plain
from jitter_workshop.model.proof import Proof
from jitter_workshop.model.run import Run
from jitter_workshop.model.verdict import ENOUGH_ROUNDS, Judgement

_ALIKE = 1e-9
"""The relative tolerance: logarithms differ in their last digit from one C library to the next."""


class Judge:
    """Judge stored proofs again from their runs, each once (20 ms). ``run``: returns a run of the session by id, or
    None. ``here``: returns the ids of the runs that exist."""

    def __init__(self, run: Callable[[str], Run | None], here: Callable[[], Collection[str]]) -> None:
        self._run = run
        self._here = here
        self._known: dict[str, tuple[Proof, Judgement | None]] = {}

    def __call__(self, proof: Proof) -> Judgement | None:
        """Return the judgement of a proof's runs where it differs from the file's, else None; None also where not all
        of its runs exist. Raise ValueError where they cannot be its rounds."""
        stored, other = self._known.get(proof.id, (None, None))
        if stored != proof:
            other = self._judged(proof)
            self._known[proof.id] = proof, other
        return other

    def _judged(self, proof: Proof) -> Judgement | None:
        from jitter_workshop.stats.rounds import rounds_of
        from jitter_workshop.stats.verdicts import judge

        here = self._here()
        if not proof.rounds or not all({one.without, one.with_it} <= set(here) for one in proof.rounds):
            return None
        found = [(one.order, self._run(one.without), self._run(one.with_it)) for one in proof.rounds]
        pairs = [(order, a, b) for order, a, b in found if a is not None and b is not None]
        if len(pairs) < len(found):
            return None
        if any(run.proof != proof.id for _, *both in pairs for run in both):
            raise ValueError("a run of its rounds was not made for it")
        said = judge(rounds_of(pairs), proof.workload)
        return None if _alike(to_plain(said), to_plain(proof.judgement)) else said


def check_claims(said: Judgement) -> None:
    """Raise ValueError where a judgement claims a change from too few rounds, or its headline is none of its rows."""
    claims = (*(row.verdict for row in said.rows), said.headline.verdict)
    if said.rounds < ENOUGH_ROUNDS and any(word != "cannot_tell" for word in claims):
        raise ValueError(f"it claims something, and a verdict needs {ENOUGH_ROUNDS} rounds")
    rows = {(row.measure, row.verdict) for row in said.rows} or {("", "cannot_tell")}
    if (said.headline.measure, said.headline.verdict) not in rows:
        raise ValueError("its headline is none of its rows")


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=_ALIKE)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_alike(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_alike, a, b))
    return bool(a == b)
