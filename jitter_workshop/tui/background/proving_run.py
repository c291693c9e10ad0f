"""Prove on a thread beside the screen, with reports between runs, and between the blocks of a run."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from textual.message import Message
from textual.message_pump import MessagePump

from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.proving.proof_run import ProofStep, Prover
from jitter_workshop.model.observe import RunObserver
from jitter_workshop.model.proof import Proof, ProofPlan
from jitter_workshop.model.verdict import Order, Round
from jitter_workshop.stats.verdicts import SoFar, so_far
from jitter_workshop.tui.background.measuring import Watching


@dataclass
class SideBegins(Message):
    """Report that a run of a round is about to begin. The handler sets ``painted`` once that is on the terminal."""

    step: ProofStep
    painted: threading.Event


@dataclass
class RoundDone(Message):
    """Report that a round is finished. ``seen``: the figures so far, computed on the proving thread."""

    seen: SoFar | None
    orders: tuple[Order, ...]
    left_s: float
    painted: threading.Event


class Restoring(Message):
    """Report that no further run follows, and that settings are given back."""


@dataclass
class PlanChanged(Message):
    """Report that the plan has changed since it was shown."""

    prover: Prover
    plan: ProofPlan


@dataclass
class ProofDone(Message):
    """Report a proof, perhaps with fewer rounds than were wanted."""

    proof: Proof


@dataclass
class ProofFailed(Message):
    """Report that there is no proof."""

    error: WorkshopError


class Proving(Watching):
    """Observe a proof under way. The prover calls this observer between runs, and the runner between blocks."""

    def __init__(self, target: MessagePump, workload: str) -> None:
        super().__init__(target)
        self._workload = workload

    def side_begins(self, step: ProofStep) -> RunObserver:
        self.show(SideBegins(step, self._painted))
        return self

    def round_done(self, rounds: tuple[Round, ...], planned: int, left_s: float) -> None:
        orders = tuple(one.order for one in rounds)
        self.show(RoundDone(so_far(rounds, self._workload), orders, left_s, self._painted))

    def restoring(self) -> None:
        self._target.post_message(Restoring())

    def stop_by(self, reason: str) -> None:
        """Ask it to end like :meth:`stop`. The proof will name ``reason`` as the cause."""
        self.cancel.cancel(reason)
        self.stop()
