"""Screen settings. The first pairs of runs find the settings that matter, and further pairs prove these settings. All
settings are restored after each run.

This program holds the host's turn during the whole screening. The screening is saved after each pair, so it can be
resumed after a stop or a kill. If the screening stopped during a pair, both runs of this pair are made again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.lock import host_turn
from jitter_workshop.errors import HostError, SessionError, UsageError, WorkshopError
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.proving import proof_plan
from jitter_workshop.flow.proving.command_meter import CommandMeter
from jitter_workshop.flow.proving.meters import Occasion, Taken
from jitter_workshop.flow.proving.proof_plan import CHANGE_S
from jitter_workshop.flow.proving.proof_recovery import stands
from jitter_workshop.flow.proving.screening_plan import DrawnScreening, ScreenRequest, draw, other_writes, timed
from jitter_workshop.flow.proving.series import (
    RemainingTime,
    Spoiled,
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
from jitter_workshop.flow.proving.sides import TunableSides
from jitter_workshop.flow.turns.classhost import need_turn
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import LeftAlone, Skipped
from jitter_workshop.model.record import made_of
from jitter_workshop.model.run import RunObserver
from jitter_workshop.model.screening import (
    FORMAT_VERSION,
    ScreenedPair,
    ScreenedRun,
    Screening,
    ScreeningPlan,
)
from jitter_workshop.model.text import PATH, SENTENCE, clean, many
from jitter_workshop.session import ids
from jitter_workshop.session.opened import OpenSession
from jitter_workshop.stats.screening import Arms, choose, draw_pairs, draw_proofs, measure_of

ScreeningPart = Literal["pairs", "proofs"]


@dataclass(frozen=True)
class ScreeningStep:
    """Describe the run that is about to begin. A screening has two parts: the search for settings that matter, and
    their proofs.

    - ``number``: the number of the run, from 0.
    - ``of``: how many runs the screening has.
    - ``pair``: the number of the pair within ``part``, from 0.
    - ``pairs``: how many pairs ``part`` has.
    - ``on``: the settings that are applied.
    - ``left_s``: the seconds until the end of the whole screening.
    """

    number: int
    of: int
    part: ScreeningPart
    pair: int
    pairs: int
    on: tuple[str, ...]
    left_s: float


class ScreeningObserver(Protocol):
    """Observe a screening. The screening's thread calls the methods, but never while a block is measured."""

    def tried(self, done: int, of: int) -> None:
        """Receive the progress of the trial of each setting before the first run. ``done``: how many settings were
        tried. ``of``: how many settings there are."""

    def run_begins(self, step: ScreeningStep) -> RunObserver:
        """Return the observer of the run that is about to begin."""

    def pair_done(self, part: ScreeningPart, done: int, of: int, left_s: float) -> None:
        """Receive the progress after a pair. ``done``: the number of finished pairs of ``part``. ``of``: the number of
        all pairs of ``part``. ``left_s``: the seconds until the end of the screening."""

    def chosen(self, settings: tuple[str, ...]) -> None:
        """Receive the settings that were chosen for the proofs."""

    def restoring(self) -> None:
        """Note that the last run has ended, and that the settings are being restored."""


class Screener:
    """Make one screening. ``plan`` may be called several times, ``screen`` once. The thread that calls ``screen`` must
    live until it returns. ``not_kept``: the reason why the screening could not be saved, or ""."""

    def __init__(self, request: ScreenRequest, session: OpenSession, agent_connection: AgentConnection) -> None:
        self._request = request
        self._session = session
        self._agent_connection = agent_connection
        self._drawn: DrawnScreening | None = None
        self._before: Screening | None = None
        self.not_kept = ""

    def plan(self, trying: Callable[[], None] = lambda: None) -> ScreeningPlan:
        """Return the plan of the screening, without changing a setting. The user's command is run once, to measure its
        time; ``trying`` is called before this run. Raise SessionError if the session cannot be written, and the errors
        of ``draw`` and of a command's run."""
        error = self._session.read_only_error()
        if error is not None:
            raise error
        in_class = need_turn(self._agent_connection)
        update_screenings(self._session)
        drawn = draw(self._request, self._agent_connection)
        self._before = self._to_resume(drawn) if self._request.resume else None
        if self._before is not None:
            drawn = dataclasses.replace(drawn, plan=dataclasses.replace(drawn.plan, done=self._before.runs))
        elif waiting := _stopped(self._session):
            said = f"Screening {waiting.id} was stopped after {many(waiting.runs, 'run')}; --resume goes on with it."
            drawn = _noticed(drawn, said)
        if isinstance(drawn.meter, CommandMeter):
            trying()
            own = contextlib.nullcontext() if in_class else host_turn(self._request.prove.wait_s)
            with own, contextlib.closing(CancelToken()) as nothing:
                drawn.meter.first_run("without", self._agent_connection, nothing)
        drawn = timed(drawn)
        if in_class and (said := too_short("the screening", drawn.plan.total_s, "pairs")):
            drawn = _noticed(drawn, said)
        self._drawn = drawn
        return drawn.plan

    def _to_resume(self, drawn: DrawnScreening) -> Screening:
        before = _stopped(self._session)
        if before is None:
            raise UsageError(
                "no screening of this session was stopped, so there is none to resume", "leave out --resume"
            )
        if said := _another(before, drawn, self._request):
            line = " ".join(("jitter-workshop", *before.asked))
            raise UsageError(f"screening {before.id} had another {said}", f"resume it with '{clean(line, PATH)}'")
        return before

    def screen(
        self,
        shown: ScreeningPlan,
        observer: ScreeningObserver,
        cancel: CancelToken,
        queued: Callable[[str], None] = lambda sentence: None,
    ) -> Screening:
        """Make the screening whose plan was ``shown``, save it in the session, and return it. All settings are restored
        at the end. A screening that ended early is returned, too, with the reason in ``stopped``. There is one
        exception: this call finished no pair, and restored all settings. Then the error that ended the screening is
        raised."""
        drawn = self._drawn
        if drawn is None or drawn.plan != shown:
            raise HostError("this plan is not the one that was shown", "ask for the plan again")
        with in_turn(self._agent_connection, self._request.prove.wait_s, cancel, queued):
            series = _Series(self._request, self._session, self._agent_connection, drawn, observer, cancel)
            series.begin(self._before)
            with self._agent_connection.change_log.during(self._request.prove.chapter, series.id):
                made = series.make()
            self.not_kept = series.not_kept
            return made


def update_screenings(session: OpenSession, root: HostRoot | None = None) -> None:
    """Mark each unrestored screening as restored if this host's journal shows none of its settings. A session that is
    only read is not changed."""
    if session.read_only:
        return
    root = root or HostRoot(proof_plan.HERE)
    for one in session.screenings():
        if not one.restored and not stands(" ".join(one.settings), root):
            # On a full disk it is recorded at the next call.
            with contextlib.suppress(SessionError):
                session.add_screening(dataclasses.replace(one, restored=True, left_alone=()))


def _stopped(session: OpenSession) -> Screening | None:
    """Return the session's newest screening if it is not complete; otherwise None."""
    known = session.screenings()
    return known[-1] if known and not known[-1].complete else None


def _another(before: Screening, drawn: DrawnScreening, request: ScreenRequest) -> str:
    """Return the first difference that prevents the resumption of a screening, else "". ``before``: the stopped
    screening. ``drawn``, ``request``: the present plan and request."""
    plan, command = drawn.plan, request.prove.command
    for what, old, new in (
        ("set of settings", before.settings, plan.settings),
        ("command", before.command, plan.command),
        ("workload", before.workload, plan.workload),
        ("metric", before.metric, plan.metric),
        ("set of options for its command", before.options, command.options if command is not None else ()),
        ("length of its runs", (before.preset, before.duration_s), (plan.preset, request.prove.duration_s)),
        ("set of hot CPUs", before.hot_cpus, plan.hot_cpus),
        ("number of pairs", (before.planned_pairs, before.planned_proofs), (plan.pairs, plan.proofs)),
    ):
        if old != new:
            return what
    odd = other_writes(before.changes, plan.changes)
    return f"write of {odd}" if odd else ""


def _noticed(drawn: DrawnScreening, sentence: str) -> DrawnScreening:
    return dataclasses.replace(drawn, plan=dataclasses.replace(drawn.plan, notices=(*drawn.plan.notices, sentence)))


@dataclass(eq=False)
class _Series:
    """Make the pairs of one screening. ``not_kept``: the reason why the screening could not be saved, or ""."""

    _request: ScreenRequest
    _session: OpenSession
    _agent_connection: AgentConnection
    _drawn: DrawnScreening
    _observer: ScreeningObserver
    _cancel: CancelToken

    def __post_init__(self) -> None:
        plan = self._drawn.plan
        self._meter = self._drawn.meter
        self._seed = self._request.prove.seed if self._request.prove.seed is not None else secrets.randbelow(1 << 31)
        self.id = ids.new_id()
        self._everything = self._drawn.sides(range(len(plan.settings)))
        self._applied: TunableSides | None = None
        self._sittings: tuple[str, ...] = (ids.timestamp(),)
        self._pairs: list[ScreenedPair] = []
        self._proofs: list[ScreenedPair] = []
        self._chosen: tuple[int, ...] = () if plan.pairs else tuple(range(len(plan.settings)))
        self._measure = ""
        self._refused: list[Skipped] = list(plan.left_out)
        self._earlier_notes: tuple[str, ...] = ()
        self._earlier_disturbed = 0
        self._first: Taken | None = None
        self._spoiled: list[str] = []
        self._disturbed: list[str] = []
        self._trouble: list[str] = []
        self._left_alone: tuple[LeftAlone, ...] = ()
        self._times = RemainingTime(plan.budget_runs, self._meter.seconds, CHANGE_S, changes_always=True)
        self.not_kept = ""

    def begin(self, before: Screening | None) -> None:
        """Take over the finished pairs, seed and notes of a stopped screening. Do nothing if ``before`` is None."""
        if before is None:
            return
        self.id, self._seed = before.id, before.seed
        self._sittings = (*before.sittings, *self._sittings)
        self._pairs, self._proofs = list(before.pairs), list(before.proofs)
        self._chosen, self._measure = before.chosen, before.measure
        self._refused = list(before.left_out)
        self._earlier_notes, self._earlier_disturbed = before.notes, before.disturbed
        for one in (*self._pairs, *self._proofs):
            with contextlib.suppress(SessionError):
                run = self._session.find(one.first.side.run) if one.first.side.run else None
                self._first = Taken(one.first.side, (), run=run) if run is not None else None
                break

    @property
    def _done(self) -> int:
        return 2 * (len(self._pairs) + len(self._proofs))

    def make(self) -> Screening:
        cause: WorkshopError | None = None
        done_before = self._done
        try:
            self._try()
            self._make_pairs()
        except WorkshopError as error:
            cause = cause_of(error, self._agent_connection)
        finally:
            restore_at_the_end(self._observer.restoring, self._restore_at_end, self._trouble)
        plan = self._drawn.plan
        still = stands(" ".join(plan.settings), HostRoot(proof_plan.HERE))
        back = not (self._left_alone or self._trouble or self._applied is not None or still)
        if back:
            self._left_alone = self._everything.strange()
        if cause is not None and self._done == done_before and back:
            # The stored state is that of the earlier sitting, or none.
            raise cause
        made, self.not_kept = kept(self._kept(cause, back), self._session.add_screening, "the screening")
        return made

    # -- pairs ---------------------------------------------------------------------------------------------------------

    def _try(self) -> None:
        """Apply and restore each setting once, and leave out settings that the host refuses. This trial comes before
        the first run. Raise HostError if fewer than two settings would remain. In a resumed screening, raise HostError
        if the host refuses any setting, because the screening's earlier runs used this setting."""
        screened = self._screened()
        for done, n in enumerate(screened):
            stop_if_due(self._agent_connection, self._cancel)
            setting = self._drawn.plan.settings[n]
            if why := self._refusal(n):
                if self._done or len(self._screened()) <= 2:
                    raise HostError(
                        f"{setting} cannot be applied here: {clean(why, SENTENCE)}", "leave this setting out"
                    )
                self._refused.append(Skipped(setting, f"the host refused it in a trial: {clean(why, SENTENCE)}"))
            self._observer.tried(done + 1, len(screened))

    def _refusal(self, n: int) -> str:
        """Apply and restore setting ``n`` once as a trial. Return the reason if the setting could not be applied or
        lost its value; "" if the trial succeeded.
        """
        sides = self._drawn.sides((n,))
        try:
            self._times.changed(lambda: self._apply(sides))
            why = sides.drifted()
        except HostError as error:
            if self._agent_connection.turn_lost():
                raise
            why = error.message
        self._restore()
        return why

    def _make_pairs(self) -> None:
        plan = self._drawn.plan
        screened = self._screened()
        for number, arms in enumerate(draw_pairs(len(plan.settings), self._seed)):
            if number >= len(self._pairs):
                self._pairs.append(self._pair("pairs", number, plan.pairs, arms))
                self._keep("pairs", plan.pairs)
        if self._pairs and not self._measure:
            self._measure = measure_of(self._pairs, plan.workload)[0]
            self._chosen = choose(self._pairs, screened, plan.most, self._measure, plan.workload)
        if not self._pairs:
            self._chosen = screened
        if not self._chosen:
            raise HostError(
                "the runs have no figure in common, so no setting can be chosen", "measure with another preset"
            )
        self._observer.chosen(tuple(plan.settings[n] for n in self._chosen))
        for number, arms in enumerate(draw_proofs(self._chosen, plan.proofs, self._seed)):
            if number >= len(self._proofs):
                self._proofs.append(self._pair("proofs", number, plan.proofs, arms))
                self._keep("proofs", plan.proofs)

    def _screened(self) -> tuple[int, ...]:
        out = {one.tunable for one in self._refused}
        return tuple(n for n, setting in enumerate(self._drawn.plan.settings) if setting not in out)

    def _pair(self, part: ScreeningPart, number: int, of: int, arms: Arms) -> ScreenedPair:
        """Make the two runs of a pair, and return the pair. If something spoils a run, make both runs of the pair
        again. ``arms``: the settings that are on in the first and in the second run, without those that the host
        refused.
        """
        screened = set(self._screened())
        first_on, second_on = (tuple(n for n in on if n in screened) for on in arms)
        name = f"pair {number + 1} of the {'proofs' if part == 'proofs' else 'screening'}"

        def make() -> tuple[Taken, Taken]:
            one = self._run(part, number, of, 0, first_on)
            other = self._run(part, number, of, 1, second_on)
            why = self._meter.unlike(one, other) or self._other_stack(one, first_on, other, second_on)
            if not why and self._first is not None:
                why = self._meter.changed(self._first, one)
            if why:
                raise Spoiled(why)
            return one, other

        one, other = until_good(make, self._spoiled, name)
        self._first = self._first or one
        for place, taken in (("first", one), ("second", other)):
            if taken.disturbed:
                self._disturbed.append(f"{name}, {place} run ({taken.disturbed})")
        return ScreenedPair(ScreenedRun(first_on, one.side), ScreenedRun(second_on, other.side))

    def _run(self, part: ScreeningPart, number: int, of: int, place: int, on: tuple[int, ...]) -> Taken:
        stop_if_due(self._agent_connection, self._cancel)
        settings = tuple(self._drawn.plan.settings[n] for n in on)
        step = ScreeningStep(
            self._done + place,
            self._drawn.plan.budget_runs,
            part,
            number,
            of,
            settings,
            self._times.left(self._done + place),
        )
        watcher = self._observer.run_begins(step)
        sides = self._drawn.sides(on)
        if on:
            self._apply_for_a_run(sides)
        label = f"screen {part} · {number + 1} {'second' if place else 'first'}"
        occasion = Occasion(
            "with" if on else "without", label, self.id, self._session, self._agent_connection, watcher, self._cancel
        )
        taken = self._times.ran(lambda: self._meter.measure(occasion))
        drifted = sides.drifted() if on else ""
        self._restore()
        drifted = drifted or drifted_without(self._everything.strange())
        need_whole(taken.complete, drifted, self._cancel)
        return taken

    def _other_stack(self, one: Taken, on: Sequence[int], other: Taken, other_on: Sequence[int]) -> str:
        """Return a sentence if the applied settings were wrong or changed in one of two runs; otherwise "". ``on``,
        ``other_on``: the settings that should be on in the runs ``one`` and ``other``."""
        ours = self._drawn.ids(range(len(self._drawn.plan.settings)))
        rests = []
        for taken, wanted in ((one, self._drawn.ids(on)), (other, self._drawn.ids(other_on))):
            stood = {item["id"]: item.get("value", "") for item in taken.applied}
            odd = sorted((stood.keys() & ours) ^ wanted)
            if odd:
                return f"{', '.join(odd[:6])} did not have its planned state in a run"
            rests.append({name: value for name, value in stood.items() if name not in ours})
        names = sorted(name for name in rests[0].keys() | rests[1].keys() if rests[0].get(name) != rests[1].get(name))
        return f"{', '.join(names[:6])} changed between the two runs of a pair" if names else ""

    # -- settings ------------------------------------------------------------------------------------------------------

    def _apply(self, sides: TunableSides) -> None:
        self._applied = sides
        sides.apply()

    def _apply_for_a_run(self, sides: TunableSides) -> None:
        """Apply the settings of a run. Raise Spoiled if a setting cannot be applied. The pair of runs is then repeated.
        This can succeed, because the setting could be applied in the trial."""
        try:
            self._times.changed(lambda: self._apply(sides))
        except HostError as error:
            if self._agent_connection.turn_lost():
                raise
            self._restore()
            raise Spoiled(error.message) from None

    def _restore(self) -> None:
        """Restore the settings of a run. Raise HostError if one of them stays applied."""
        if self._applied is None:
            return
        self._left_alone = self._applied.restore()
        self._applied = None
        need_restored(self._left_alone)

    def _restore_at_end(self) -> None:
        """Restore all settings at the end of the screening."""
        applied, self._applied = self._applied, None
        if applied is not None:
            self._left_alone = (*self._left_alone, *applied.restore())

    # -- what is kept --------------------------------------------------------------------------------------------------

    def _keep(self, part: ScreeningPart, of: int) -> None:
        # This state is read only if the process is killed, so it is marked as not restored.
        self._session.add_screening(dataclasses.replace(self._kept(None, back=False), ended_at=""))
        self._observer.pair_done(part, len(getattr(self, f"_{part}")), of, self._times.left(self._done))

    def _kept(self, cause: WorkshopError | None, back: bool) -> Screening:
        plan, command = self._drawn.plan, self._request.prove.command
        return made_of(
            Screening,
            plan,
            format_version=FORMAT_VERSION,
            id=self.id,
            seed=self._seed,
            planned_pairs=plan.pairs,
            planned_proofs=plan.proofs,
            sittings=self._sittings,
            ended_at=ids.timestamp(),
            pairs=tuple(self._pairs),
            proofs=tuple(self._proofs),
            chosen=self._chosen,
            measure=self._measure,
            restored=back,
            left_out=tuple(self._refused),
            left_alone=self._left_alone,
            stopped="" if cause is None else why_ended(cause),
            notes=tuple(
                dict.fromkeys(
                    (
                        *self._earlier_notes,
                        *self._meter.notes(),
                        *counted(self._spoiled),
                        *disturbance_note(self._disturbed, "these are"),
                        *self._trouble,
                    )
                )
            ),
            disturbed=self._earlier_disturbed + len(self._disturbed),
            duration_s=self._request.prove.duration_s,
            unit=self._meter.unit if isinstance(self._meter, CommandMeter) else "",
            options=command.options if command is not None else (),
            asked=self._request.asked,
        )
