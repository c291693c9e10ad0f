"""Prove a change. Each round has a run without the change and a run with it, in random order. After each run with the
change, the old values are restored.

This program holds the host's turn during the whole proof. So no other measurement runs while settings change. The proof
is saved after each round. The finished rounds are judged even if the proof ends early.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.lock import host_turn
from jitter_workshop.errors import HostError
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.proving.command_meter import CommandMeter
from jitter_workshop.flow.proving.meters import Taken
from jitter_workshop.flow.proving.notes import cause_figure, cause_note, too_short
from jitter_workshop.flow.proving.proof_plan import (
    CHANGE_S,
    DrawnProof,
    ProveRequest,
    draw_up_proof,
    estimate_proof_time,
    tried,
)
from jitter_workshop.flow.proving.proof_recovery import update_proofs
from jitter_workshop.flow.proving.series import RemainingTime, RunSeries, in_turn, seed_of
from jitter_workshop.flow.proving.sides import NOT_SHOWN, SideName, Sides
from jitter_workshop.flow.turns.classhost import need_turn
from jitter_workshop.model.proof import FORMAT_VERSION, PLACEMENT, Proof, ProofPlan, ProofRound
from jitter_workshop.model.record import made_of
from jitter_workshop.model.run import RunObserver
from jitter_workshop.model.text import clean
from jitter_workshop.model.verdict import ENOUGH_ROUNDS, Order, Round
from jitter_workshop.session import ids
from jitter_workshop.session.opened import OpenSession
from jitter_workshop.stats.rounds import draw_orders
from jitter_workshop.stats.verdicts import judge_change

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
        time. Raise SessionError if the session cannot be written, and the errors of ``draw_up_proof`` and of a
        command's run."""
        error = self._session.read_only_error()
        if error is not None:
            raise error
        # On a class host only a turn gives the hot CPUs: without the turn a plan would have none.
        in_class = need_turn(self._agent_connection)
        update_proofs(self._session)
        self._drawn = draw_up_proof(self._request, self._agent_connection)
        if isinstance(self._drawn.meter, CommandMeter):
            self._drawn = self._tried(self._drawn, self._drawn.meter, in_class)
        self._drawn = estimate_proof_time(self._drawn, self._session.proofs(), self._session.runs())
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
        the end. ``queued``: as in ``flow.measuring.measure.measure_run``.

        A proof that ended early is returned, too: ``complete`` is False, and ``stopped`` has the reason. There is one
        exception: no round was finished, and all settings were restored. Then the error that ended the proof is raised.
        This error is Cancelled if ``cancel`` ended the proof.
        """
        drawn = self._drawn
        if drawn is None or drawn.plan != shown:
            raise HostError(*NOT_SHOWN)
        with in_turn(self._agent_connection, self._request.wait_s, cancel, queued):
            series = _series(self._session, self._agent_connection, drawn, cancel)
            with self._agent_connection.change_log.during(self._request.chapter, series.id):
                proof = series.make(_ProofRounds(self._request, drawn, observer, series))
            self.not_kept = series.not_kept
            return proof


def _series(
    session: OpenSession, agent_connection: AgentConnection, drawn: DrawnProof, cancel: CancelToken
) -> RunSeries:
    """Return the series of a proof. Its first estimate of the time is the plan's."""
    plan = drawn.plan
    change_s = CHANGE_S if plan.subject != PLACEMENT else 0.0
    run_s = max(plan.total_s / plan.rounds - change_s, 0.0) / 2
    times = RemainingTime(2 * plan.rounds, run_s, change_s)
    return RunSeries(session, agent_connection, cancel, drawn.meter, times, drawn.sides)


@dataclass(eq=False)
class _ProofRounds:
    """Make the rounds of one proof, each with a run without the change and a run with it."""

    _request: ProveRequest
    _drawn: DrawnProof
    _observer: ProofObserver
    _series: RunSeries
    what = "the proof"

    def __post_init__(self) -> None:
        self._plan: ProofPlan = self._drawn.plan
        self._sides: Sides = self._drawn.sides
        self._seed = seed_of(self._request.seed)
        self._started_at = ids.timestamp()
        self._rounds: list[Round] = []
        self._causes: list[tuple[float | None, float | None]] = []

    @property
    def subject(self) -> str:
        return self._plan.subject

    @property
    def done(self) -> int:
        return len(self._rounds)

    def make(self) -> None:
        self._series.begin()
        for number, order in enumerate(draw_orders(self._plan.rounds, self._seed)):
            self._round(number, order)

    def restoring(self) -> None:
        self._observer.restoring()

    def keep(self, made: Proof) -> None:
        self._series.session.add_proof(made)

    def _round(self, number: int, order: Order) -> None:
        series, meter = self._series, self._drawn.meter
        without, with_it = series.pair(
            f"round {number + 1}",
            lambda: self._pair(number, order),
            lambda without, with_it: meter.spoiled(without, with_it, self._sides.ids),
        )
        self._rounds.append(Round(order, without.side, with_it.side))
        shows = self._request.shows
        self._causes.append((cause_figure(shows, without.run), cause_figure(shows, with_it.run)))
        for side, taken in (("without", without), ("with", with_it)):
            series.note_run(f"{number + 1} {side}", taken)
        # This state of the proof is read only if the process is killed, so it is marked as not restored.
        self.keep(dataclasses.replace(self.made("", restored=False), ended_at="", complete=False))
        self._observer.round_done(tuple(self._rounds), self._plan.rounds, series.times.left(2 * len(self._rounds)))

    def _pair(self, number: int, order: Order) -> tuple[Taken, Taken]:
        """Make the runs of a round. Return first the run without the change, then the run with it."""
        sides: tuple[SideName, SideName] = ("without", "with") if order == "AB" else ("with", "without")
        made = {side: self._run(2 * number + place, number, order, side) for place, side in enumerate(sides)}
        return made["without"], made["with"]

    def _run(self, number: int, round_number: int, order: Order, side: SideName) -> Taken:
        series = self._series
        series.stop_if_due()
        left_s = series.times.left(number)
        watcher = self._observer.side_begins(
            ProofStep(number, 2 * self._plan.rounds, round_number, order, side, left_s)
        )
        label = f"prove {clean(self._plan.subject, _SUBJECT)} · {round_number + 1} {side}"
        if side == "without":
            return series.measure(side, label, watcher, applied=None, original=self._sides)
        series.apply(self._sides)
        return series.measure(side, label, watcher, applied=self._sides, original=None)

    def made(self, stopped: str, restored: bool) -> Proof:
        rounds, plan = tuple(self._rounds), self._plan
        return made_of(
            Proof,
            plan,
            format_version=FORMAT_VERSION,
            id=self._series.id,
            chapter=self._request.chapter,
            duration_s=self._request.duration_s,
            seed=self._seed,
            planned=plan.rounds,
            started_at=self._started_at,
            ended_at=ids.timestamp(),
            rounds=tuple(map(_kept, rounds)),
            judgement=judge_change(rounds, plan.workload) if rounds else None,
            restored=restored,
            left_alone=self._series.left_alone,
            complete=len(rounds) == plan.rounds,
            stopped=stopped,
            unit=self._drawn.meter.unit if isinstance(self._drawn.meter, CommandMeter) else "",
            options=self._request.command.options if self._request.command is not None else (),
            notes=(
                *cause_note(self._request.shows, self._causes),
                *self._series.notes("round"),
                *self._early(),
            ),
            disturbed=self._series.disturbed,
        )

    def _early(self) -> tuple[str, ...]:
        """Return a warning if the user stopped the proof when it had enough rounds for a verdict."""
        if self._series.cancel.reason is None or not ENOUGH_ROUNDS <= len(self._rounds) < self._plan.rounds:
            return ()
        often = "a proof that is stopped at the first difference shows luck too often"
        return (f"{often}: decide the number of rounds first",)


def _kept(one: Round) -> ProofRound:
    """Return a round in the form that the session stores. It has the ids of its runs or, for a user's command, the
    command's figures."""
    a, b = one.without.figure, one.with_it.figure
    figures = (a.value, b.value) if a is not None and b is not None else None
    return ProofRound(one.order, one.without.run, one.with_it.run, figures)
