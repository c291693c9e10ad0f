"""A proof in a thread beside the screen: what it tells of between runs, and of its runs between blocks."""

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
from jitter_workshop.stats.interim_result import SoFar, so_far
from jitter_workshop.tui.background.measuring import Watching


@dataclass
class SideBegins(Message):
    """A run of a round is about to begin; the handler sets ``painted`` once that is on the terminal."""

    step: ProofStep
    painted: threading.Event


@dataclass
class RoundDone(Message):
    """A round is finished. ``seen``: the figures so far, reckoned on the thread that proves."""

    seen: SoFar | None
    orders: tuple[Order, ...]
    left_s: float
    painted: threading.Event


class Restoring(Message):
    """No run follows; what was set is given back."""


@dataclass
class PlanChanged(Message):
    """What would be written is not what was shown any more."""

    prover: Prover
    plan: ProofPlan


@dataclass
class ProofDone(Message):
    """There is a proof, perhaps of fewer rounds than were wanted."""

    proof: Proof


@dataclass
class ProofFailed(Message):
    """There is none."""

    error: WorkshopError


class Proving(Watching):
    """A proof under way: the observer that the prover calls between runs, and its runs between blocks."""

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
        """The same as :meth:`stop`; the proof will say by what it was stopped."""
        self.cancel.cancel(reason)
        self.stop()
