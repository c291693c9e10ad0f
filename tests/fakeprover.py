"""A prover whose rounds are made up: what it is asked, and how its pages take what it says, is real."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.runner import Cancelled
from jitter_workshop.errors import HostError, WorkshopError
from jitter_workshop.flow.proving import chapter_proof
from jitter_workshop.flow.proving.proof_run import ProofObserver, ProofStep, Prover, ProveRequest
from jitter_workshop.model.change import Change, LeftAlone
from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.proof import PLACEMENT, Proof, ProofPlan, ProofRound
from jitter_workshop.model.run import Block, Clock, Progress, RunStarted
from jitter_workshop.model.spec import Placement, RunSpec
from jitter_workshop.model.verdict import Round
from jitter_workshop.stats.verdicts import judge_change
from jitter_workshop.tui import background as measuring
from tests.maderounds import make_rounds

BLOCKS = 2
PLACED = (
    Change(
        1,
        "placement",
        "sched_setaffinity(producer)",
        "any (0-3)",
        "1",
        "run",
        "low",
        "the next messages wait while it pauses",
    ),
    Change(2, "placement", "sched_setaffinity(accumulator)", "any (0-3)", "2", "run", "low", "it waits for each"),
)
_CLOCK = Clock("tsc", 9.7, 10, None, None, None)


class FakeProver(Prover):
    """``ratio``, ``seed``: of the made rounds. ``gate``: when set to an Event, the run number ``hold`` waits for it
    before its second block. ``fail``: raised by ``plan``; ``fail_later``: by ``prove``, after the first round."""

    ratio = 0.1
    seed = 5
    gate: threading.Event | None = None
    hold = 3
    fail: WorkshopError | None = None
    fail_later: WorkshopError | None = None
    left_alone: tuple[LeftAlone, ...] = ()
    changes: tuple[Change, ...] = PLACED
    others: tuple[Change, ...] | None = None
    """The changes that a second plan shows instead."""
    queue = ""
    look_s = 0.005

    made: list[FakeProver]
    reached_gate: threading.Event

    def plan(self) -> ProofPlan:
        if self.fail is not None:
            raise self.fail
        self.made.append(self)
        words = tuple(w for w in self._request.words if w != PLACEMENT)
        rounds = self._request.rounds
        changes = self.others if self.others is not None and len(self.made) > 1 else self.changes
        self._shown = ProofPlan(
            " ".join(words) or PLACEMENT,
            rounds,
            "ring",
            "quick",
            (1, 2),
            changes,
            5.0,
            17.0 * rounds,
            ("Hot CPUs 1-2.",),
        )
        return self._shown

    def prove(
        self,
        shown: ProofPlan,
        observer: ProofObserver,
        cancel: CancelToken,
        queued: Callable[[str], None] = lambda sentence: None,
    ) -> Proof:
        assert shown == self._shown
        rounds = make_rounds(self.seed, rounds=shown.rounds, ratio=self.ratio)
        if self.queue:
            queued(self.queue)
            while not cancel.wait(self.look_s) and not (self.gate and self.gate.is_set()):
                pass
            queued("")
        done: list[Round] = []
        stopped = ""
        try:
            for number, one in enumerate(rounds):
                for place in range(2):
                    self._run(2 * number + place, shown, one, observer, cancel)
                done.append(one)
                self._keep(shown, done, "", "")
                observer.round_done(tuple(done), shown.rounds, 17.0 * (shown.rounds - len(done)))
                if self.fail_later is not None:
                    raise self.fail_later
        except Cancelled as error:
            stopped = f"stopped by {error.reason}"
            if not done:
                observer.restoring()
                raise
        except WorkshopError as error:
            stopped = error.sentence()
        observer.restoring()
        return self._keep(shown, done, stopped, "2026-11-22T02:00:00Z")

    def _run(self, number: int, shown: ProofPlan, one: Round, observer: ProofObserver, cancel: CancelToken) -> None:
        side: Any = "without" if (number % 2 == 0) == (one.order == "AB") else "with"
        left_s = 8.5 * (2 * shown.rounds - number)
        watcher = observer.side_begins(ProofStep(number, 2 * shown.rounds, number // 2, one.order, side, left_s))
        watcher.started(RunStarted(RunSpec("ring", Placement("none"), BLOCKS, 250_000_000), _CLOCK, {}, True, {}))
        for block in range(BLOCKS):
            if block == 1 and number == self.hold and self.gate is not None:
                self.reached_gate.set()
                while not self.gate.is_set() and not cancel.wait(self.look_s):
                    pass
            if cancel.reason is not None:
                raise Cancelled(cancel.reason)
            made = Block(block, 0, 250_000_000, 1, 1, 1, 1, 1, 0)
            watcher.block_done(Progress(made, block + 1, BLOCKS, PercentileCurve("", (), 0), 1.0, 1_000))

    def _keep(self, shown: ProofPlan, done: Sequence[Round], stopped: str, ended: str) -> Proof:
        complete = len(done) == shown.rounds
        proof = Proof(
            format_version=1,
            id="20260101-000001-aaaa",
            subject=shown.subject,
            chapter=self._request.chapter,
            workload=shown.workload,
            preset=shown.preset,
            seed=7,
            planned=shown.rounds,
            started_at="2026-11-22T01:00:00Z",
            ended_at=ended,
            changes=shown.changes,
            rounds=tuple(ProofRound(one.order, "20260101-000002-aaaa", "20260101-000003-aaaa") for one in done),
            judgement=judge_change(done) if done else None,
            restored=not self.left_alone,
            left_alone=self.left_alone,
            complete=complete,
            stopped=stopped,
        )
        self._session.add_proof(proof)
        return proof


def use(monkeypatch: pytest.MonkeyPatch, **how: object) -> type[FakeProver]:
    """From now on chapters are proven like this. Each frame is waited for, and nothing after it: no run is there that
    a busy screen could disturb."""
    monkeypatch.setattr(measuring, "wait_until_others_sleep", lambda stopping: True)
    made = type("FakeProverHere", (FakeProver,), {"made": [], "reached_gate": threading.Event(), **how})
    monkeypatch.setattr(chapter_proof, "Prover", made)
    return made


def asked(made: type[FakeProver]) -> ProveRequest:
    """Return what the newest one was asked for."""
    return made.made[-1]._request


def proof_of(rounds: Sequence[Round], **how: Any) -> Proof:
    """A finished proof of these rounds."""
    proof = Proof(
        format_version=1,
        id="20260101-000001-aaaa",
        subject=PLACEMENT,
        chapter="pinning",
        workload="ring",
        preset="quick",
        seed=7,
        planned=len(rounds),
        started_at="2026-01-01T00:00:00Z",
        ended_at="2026-01-01T00:04:00Z",
        changes=PLACED,
        rounds=tuple(ProofRound(one.order, "a", "b") for one in rounds),
        judgement=judge_change(rounds) if rounds else None,
        restored=True,
    )
    return dataclasses.replace(proof, **how)


REFUSED = HostError("governor is applied already, so all runs would have it", "restore governor first")
