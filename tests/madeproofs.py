"""Proofs made up from rounds of made hosts, for tests of what stores and shows them."""

from __future__ import annotations

from typing import Any

from jitter_workshop.model.change import Change
from jitter_workshop.model.proof import FORMAT_VERSION, Proof, ProofRound
from jitter_workshop.stats.verdicts import judge_change
from tests.maderounds import make_rounds

CHANGE = Change(
    n=1,
    tunable="thp",
    path="/sys/kernel/mm/transparent_hugepage/enabled",
    before="always",
    after="madvise",
    when="runtime",
    risk="low",
    why="Huge pages are made while others wait.",
    kind="choice",
)


def make_proof(
    ident: str = "20260101-000000-aaaa", subject: str = "thp", rounds: int = 10, ratio: float = 0.1, **changed: Any
) -> Proof:
    """A proof whose stalls are ``ratio`` times as frequent with the change; ``changed``: other fields of it."""
    made = make_rounds(7, rounds, ratio=ratio) if rounds else []
    fields: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "id": ident,
        "subject": subject,
        "chapter": "",
        "workload": "ring",
        "preset": "quick",
        "seed": 7,
        "planned": rounds or 10,
        "started_at": "2026-01-01T00:00:00.000000Z",
        "ended_at": "2026-01-01T00:03:00.000000Z",
        "changes": (CHANGE,),
        "rounds": tuple(ProofRound(one.order, f"run-{n}-a", f"run-{n}-b") for n, one in enumerate(made)),
        "judgement": judge_change(made) if made else None,
        "restored": True,
        "complete": bool(rounds),
    }
    return Proof(**{**fields, **changed})
