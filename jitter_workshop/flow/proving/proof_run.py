"""Prove a change. Each round has a run without the change and a run with it, in random order. After each run with the
change, the change is restored (undone).

This program holds the host's turn during the whole proof. So no other measurement runs while settings change. The proof
is saved after each round. The finished rounds are judged even if the proof ends early.
"""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.lock import host_turn
from jitter_workshop.errors import HostError, WorkshopError
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.proving import proof_plan
from jitter_workshop.flow.proving.command_meter import CommandMeter
from jitter_workshop.flow.proving.meters import Occasion, Taken
from jitter_workshop.flow.proving.proof_plan import CHANGE_S, DrawnProof, ProveRequest, draw, timed, tried
from jitter_workshop.flow.proving.proof_recovery import stands, update_proofs
from jitter_workshop.flow.proving.series import (
    RemainingTime,
    Spoiled,
    cause_figure,
    cause_note,
    cause_of,
    counted,
    disturbance_note,
    drifted_without,
    in_turn,
    kept,
    need_restored,
    need_whole,
    restore_at_the_end,
    stop_if_due,
    too_short,
    until_good,
    why_ended,
)
from jitter_workshop.flow.proving.sides import SideName, Sides
from jitter_workshop.flow.turns.classhost import need_turn
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import LeftAlone
from jitter_workshop.model.proof import FORMAT_VERSION, PLACEMENT, Proof, ProofPlan, ProofRound
from jitter_workshop.model.record import made_of
from jitter_workshop.model.run import RunObserver
from jitter_workshop.model.text import clean
from jitter_workshop.model.verdict import ENOUGH_ROUNDS, Order, Round
from jitter_workshop.session import ids
from jitter_workshop.session.opened import OpenSession
from jitter_workshop.stats.rounds import draw_orders
from jitter_workshop.stats.verdicts import judge

__all__ = ["ProofObserver", "ProofStep", "ProveRequest", "Prover"]

_SUBJECT = 36


@dataclass(frozen=True)
class ProofStep:
    """Describe the run that is about to begin.

    - ``number``: the number of the run, from 0.
    - ``of``: how many runs the proof has.
    - ``round``: the number of the round, from 0.
    - ``left_s``: the seconds until the end of the whole proof.
    """

    number: int
    of: int
    round: int
    order: Order
    side: SideName
    left_s: float


class ProofObserver(Protocol):
    """Observe a proof. The proof's thread calls the methods, but never while a block is measured."""

    def side_begins(self, step: ProofStep) -> RunObserver:
        """Return the observer of the run that is about to begin."""

    def round_done(self, rounds: tuple[Round, ...], planned: int, left_s: float) -> None:
        """Receive the finished rounds, which are not judged yet. ``planned``: the number of all rounds. ``left_s``: the
        seconds until the end of the proof."""

    def restoring(self) -> None:
        """Note that the last run has ended, and that the settings are being restored."""


class Prover:
    """Make one proof. ``plan`` may be called several times, ``prove`` once. The thread that calls ``prove`` must not
    end before ``prove`` returns. ``not_kept``: the reason why the proof could not be saved, or ""."""

    def __init__(self, request: ProveRequest, session: OpenSession, agent_connection: AgentConnection) -> None:
        self._request = request
        self._session = session
        self._agent_connection = agent_connection
        self._drawn: DrawnProof | None = None
        self.not_kept = ""

    def plan(self) -> ProofPlan:
        """Return the plan of the proof, without changing a setting. The user's command is run once, to measure its
        time. Raise SessionError if the session cannot be written, and the errors of ``draw`` and of a command's run."""
        error = self._session.read_only_error()
        if error is not None:
            raise error
        # On a class host only a turn gives the hot CPUs: without the turn a plan would have none.
        in_class = need_turn(self._agent_connection)
        update_proofs(self._session)
        self._drawn = draw(self._request, self._agent_connection)
        if isinstance(self._drawn.meter, CommandMeter):
            self._drawn = self._tried(self._drawn, self._drawn.meter, in_class)
        self._drawn = timed(self._drawn, self._session.proofs(), self._session.runs())
        if in_class and (said := too_short("the proof", self._drawn.plan.total_s, "rounds")):
            plan = dataclasses.replace(self._drawn.plan, notices=(*self._drawn.plan.notices, said))
            self._drawn = dataclasses.replace(self._drawn, plan=plan)
        return self._drawn.plan

    def _tried(self, drawn: DrawnProof, meter: CommandMeter, in_class: bool) -> DrawnProof:
        """Run the command once, and return the plan with the estimated duration. While the command runs, no other
        program may measure on this host. ``in_class``: True if the user already has the turn (the right to measure) on
        a class host."""
        placed = drawn.plan.subject == PLACEMENT
        own = contextlib.nullcontext() if in_class else host_turn(self._request.wait_s)
        with own, contextlib.closing(CancelToken()) as nothing:
            return tried(drawn, meter.first_run("with" if placed else "without", self._agent_connection, nothing))

    def prove(
        self,
        shown: ProofPlan,
        observer: ProofObserver,
        cancel: CancelToken,
        queued: Callable[[str], None] = lambda sentence: None,
    ) -> Proof:
        """Make the proof whose plan was ``shown``, save it in the session, and return it. All settings are restored at
        the end. ``queued``: as in ``flow.measuring.measure.measure``.

        A proof that ended early is returned, too: ``complete`` is False, and ``stopped`` has the reason. There is one
        exception: no round was finished, and all settings were restored. Then the error that ended the proof is raised.
        This error is Cancelled if ``cancel`` ended the proof.
        """
        drawn = self._drawn
        if drawn is None or drawn.plan != shown:
            raise HostError("this plan is not the one that was shown", "ask for the plan again")
        with in_turn(self._agent_connection, self._request.wait_s, cancel, queued):
            series = _Series(self._request, self._session, self._agent_connection, drawn, observer, cancel)
            with self._agent_connection.change_log.during(self._request.chapter, series.id):
                proof = series.make()
            self.not_kept = series.not_kept
            return proof


@dataclass(eq=False)
class _Series:
    """Make the rounds of one proof. ``not_kept``: the reason why the proof could not be saved, or ""."""

    _request: ProveRequest
    _session: OpenSession
    _agent_connection: AgentConnection
    _drawn: DrawnProof
    _observer: ProofObserver
    _cancel: CancelToken

    def __post_init__(self) -> None:
        self._plan: ProofPlan = self._drawn.plan
        self._sides: Sides = self._drawn.sides
        self._meter = self._drawn.meter
        self._seed = self._request.seed if self._request.seed is not None else secrets.randbelow(1 << 31)
        self.id = ids.new_id()
        self._started_at = ids.timestamp()
        self._rounds: list[Round] = []
        self._causes: list[tuple[float | None, float | None]] = []
        self._first: Taken | None = None
        self._left_out: list[str] = []
        self._disturbed: list[str] = []
        self._trouble: list[str] = []
        self._left_alone: tuple[LeftAlone, ...] = ()
        change_s = CHANGE_S if self._plan.subject != PLACEMENT else 0.0
        run_s = max(self._plan.total_s / self._plan.rounds - change_s, 0.0) / 2
        self._times = RemainingTime(2 * self._plan.rounds, run_s, change_s)
        self.not_kept = ""

    def make(self) -> Proof:
        cause: WorkshopError | None = None
        try:
            self._times.changed(self._sides.begin)
            for number, order in enumerate(draw_orders(self._plan.rounds, self._seed)):
                self._round(number, order)
        except WorkshopError as error:
            cause = cause_of(error, self._agent_connection)
        finally:
            restore_at_the_end(self._observer.restoring, self._restore_at_end, self._trouble)
        still = stands(self._plan.subject, HostRoot(proof_plan.HERE))
        back = not (self._left_alone or self._trouble or self._sides.standing or still)
        if back:
            # All our changes are restored: other values on the host are those of others, and the reader must know them.
            self._left_alone = self._sides.strange()
        if cause is not None and not self._rounds and back:
            raise cause
        proof, self.not_kept = kept(self._proof(cause, back), self._session.add_proof, "the proof")
        return proof

    # -- rounds --------------------------------------------------------------------------------------------------------

    def _round(self, number: int, order: Order) -> None:
        without, with_it = until_good(lambda: self._pair(number, order), self._left_out, f"round {number + 1}")
        self._first = self._first or without
        self._rounds.append(Round(order, without.side, with_it.side))
        shows = self._request.shows
        self._causes.append((cause_figure(shows, without.run), cause_figure(shows, with_it.run)))
        for side, taken in (("without", without), ("with", with_it)):
            if taken.disturbed:
                self._disturbed.append(f"{number + 1} {side} ({taken.disturbed})")
        # This state of the proof is read only if the process is killed, so it is marked as not restored.
        self._session.add_proof(dataclasses.replace(self._proof(None, back=False), ended_at="", complete=False))
        self._observer.round_done(tuple(self._rounds), self._plan.rounds, self._times.left(2 * len(self._rounds)))

    def _pair(self, number: int, order: Order) -> tuple[Taken, Taken]:
        """Make a round, and return the run without the change and the run with it. Raise Spoiled if the runs differ by
        more than the change, or cannot be compared with the first round."""
        sides: tuple[SideName, SideName] = ("without", "with") if order == "AB" else ("with", "without")
        made = {side: self._run(2 * number + place, number, order, side) for place, side in enumerate(sides)}
        why = self._meter.spoiled(made["without"], made["with"], self._sides.ids)
        if not why and self._first is not None:
            why = self._meter.changed(self._first, made["without"])
        if why:
            raise Spoiled(why)
        return made["without"], made["with"]

    def _run(self, number: int, round_number: int, order: Order, side: SideName) -> Taken:
        stop_if_due(self._agent_connection, self._cancel)
        left_s = self._times.left(number)
        watcher = self._observer.side_begins(
            ProofStep(number, 2 * self._plan.rounds, round_number, order, side, left_s)
        )
        if side == "with":
            self._times.changed(self._sides.apply)
        label = f"prove {clean(self._plan.subject, _SUBJECT)} · {round_number + 1} {side}"
        occasion = Occasion(side, label, self.id, self._session, self._agent_connection, watcher, self._cancel)
        taken = self._times.ran(lambda: self._meter.measure(occasion))
        if side == "with":
            drifted = self._sides.drifted()
            self._restore()
        else:
            drifted = drifted_without(self._sides.strange())
        need_whole(taken.complete, drifted, self._cancel)
        return taken

    # -- restoring -----------------------------------------------------------------------------------------------------

    def _restore(self) -> None:
        """Restore the change after a run with it. Raise HostError if a part of the change stays applied."""
        self._left_alone = self._sides.restore()
        need_restored(self._left_alone)

    def _restore_at_end(self) -> None:
        """Restore the change at the end of the proof."""
        self._left_alone = (*self._left_alone, *self._sides.restore())

    # -- what is kept --------------------------------------------------------------------------------------------------

    def _proof(self, cause: WorkshopError | None, back: bool) -> Proof:
        rounds, plan = tuple(self._rounds), self._plan
        return made_of(
            Proof,
            plan,
            format_version=FORMAT_VERSION,
            id=self.id,
            chapter=self._request.chapter,
            duration_s=self._request.duration_s,
            seed=self._seed,
            planned=plan.rounds,
            started_at=self._started_at,
            ended_at=ids.timestamp(),
            rounds=tuple(map(_kept, rounds)),
            judgement=judge(rounds, plan.workload) if rounds else None,
            restored=back,
            left_alone=self._left_alone,
            complete=len(rounds) == plan.rounds,
            stopped="" if cause is None else why_ended(cause),
            unit=self._meter.unit if isinstance(self._meter, CommandMeter) else "",
            options=self._request.command.options if self._request.command is not None else (),
            notes=(
                *cause_note(self._request.shows, self._causes),
                *self._meter.notes(),
                *self._sides.notes(),
                *counted(self._left_out),
                *disturbance_note(self._disturbed, "round"),
                *self._trouble,
                *self._early(),
            ),
            disturbed=len(self._disturbed),
        )

    def _early(self) -> tuple[str, ...]:
        """Return a warning if the user stopped the proof when it had enough rounds for a verdict."""
        if self._cancel.reason is None or not ENOUGH_ROUNDS <= len(self._rounds) < self._plan.rounds:
            return ()
        often = "a proof that is stopped at the first difference shows luck too often"
        return (f"{often}: decide the number of rounds first",)


def _kept(one: Round) -> ProofRound:
    """Return a round in the form that the session stores. It has the ids of its runs or, for a user's command, the
    command's figures."""
    a, b = one.without.figure, one.with_it.figure
    figures = (a.value, b.value) if a is not None and b is not None else None
    return ProofRound(one.order, one.without.run, one.with_it.run, figures)
