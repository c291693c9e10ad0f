"""Screen settings. The first pairs of runs find the settings that matter, and further pairs prove these settings. All
settings are restored after each run.

This program holds the host's turn during the whole screening. The screening is saved after each pair, so it can be
resumed after a stop or a kill. If the screening stopped during a pair, both runs of this pair are made again.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.lock import host_turn
from jitter_workshop.errors import HostError, SessionError, UsageError
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.proving import proof_plan
from jitter_workshop.flow.proving.command_meter import CommandMeter
from jitter_workshop.flow.proving.meters import Taken
from jitter_workshop.flow.proving.notes import too_short
from jitter_workshop.flow.proving.proof_plan import CHANGE_S
from jitter_workshop.flow.proving.proof_recovery import change_is_in_effect
from jitter_workshop.flow.proving.screening_plan import (
    DrawnScreening,
    ScreenRequest,
    draw_up_screening,
    estimate_screening_time,
    other_writes,
)
from jitter_workshop.flow.proving.series import RemainingTime, RunSeries, Spoiled, in_turn, seed_of
from jitter_workshop.flow.proving.sides import NOT_SHOWN, SideName, TunableSides
from jitter_workshop.flow.turns.classhost import need_turn
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Skipped
from jitter_workshop.model.record import made_of
from jitter_workshop.model.run import RunObserver
from jitter_workshop.model.screening import (
    FORMAT_VERSION,
    ScreenedPair,
    ScreenedRun,
    Screening,
    ScreeningPlan,
)
from jitter_workshop.model.text import MOST_NAMES, PATH, SENTENCE, clean, many
from jitter_workshop.session import ids
from jitter_workshop.session.opened import OpenSession
from jitter_workshop.stats.screening import Arms, choose_settings, draw_pairs, draw_proofs, measure_of

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
        of ``draw_up_screening`` and of a command's run."""
        error = self._session.read_only_error()
        if error is not None:
            raise error
        in_class = need_turn(self._agent_connection)
        update_screenings(self._session)
        drawn = draw_up_screening(self._request, self._agent_connection)
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
        drawn = estimate_screening_time(drawn)
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
            raise HostError(*NOT_SHOWN)
        with in_turn(self._agent_connection, self._request.prove.wait_s, cancel, queued):
            series = _series(self._session, self._agent_connection, drawn, cancel, self._before)
            rounds = _ScreeningPairs(self._request, drawn, observer, series, self._before)
            with self._agent_connection.change_log.during(self._request.prove.chapter, series.id):
                made = series.make(rounds)
            self.not_kept = series.not_kept
            return made


def update_screenings(session: OpenSession, root: HostRoot | None = None) -> None:
    """Mark each unrestored screening as restored if this host's journal shows none of its settings. A session that is
    only read is not changed."""
    if session.read_only:
        return
    root = root or HostRoot(proof_plan.HERE)
    for one in session.screenings():
        if not one.restored and not change_is_in_effect(" ".join(one.settings), root):
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


def _series(
    session: OpenSession,
    agent_connection: AgentConnection,
    drawn: DrawnScreening,
    cancel: CancelToken,
    before: Screening | None,
) -> RunSeries:
    """Return the series of a screening. ``before``: the stopped screening that it resumes, or None."""
    times = RemainingTime(drawn.plan.budget_runs, drawn.meter.seconds, CHANGE_S, changes_always=True)
    everything = drawn.sides(range(len(drawn.plan.settings)))
    series = RunSeries(session, agent_connection, cancel, drawn.meter, times, everything)
    if before is not None:
        series.id = before.id
        for one in (*before.pairs, *before.proofs):
            with contextlib.suppress(SessionError):
                run = session.find(one.first.side.run) if one.first.side.run else None
                series.first = Taken(one.first.side, (), run=run) if run is not None else None
                break
    return series


@dataclass(eq=False)
class _ScreeningPairs:
    """Make the pairs of one screening. ``_before``: the stopped screening whose finished pairs, seed and notes are
    taken over, or None."""

    _request: ScreenRequest
    _drawn: DrawnScreening
    _observer: ScreeningObserver
    _series: RunSeries
    _before: Screening | None
    what = "the screening"

    def __post_init__(self) -> None:
        plan, before = self._drawn.plan, self._before
        self._sittings: tuple[str, ...] = (ids.timestamp(),)
        self._pairs: list[ScreenedPair] = []
        self._proofs: list[ScreenedPair] = []
        self._chosen: tuple[int, ...] = () if plan.pairs else tuple(range(len(plan.settings)))
        self._measure = ""
        self._refused: list[Skipped] = list(plan.left_out)
        if before is None:
            self._seed = seed_of(self._request.prove.seed)
            return
        self._seed = before.seed
        self._sittings = (*before.sittings, *self._sittings)
        self._pairs, self._proofs = list(before.pairs), list(before.proofs)
        self._chosen, self._measure = before.chosen, before.measure
        self._refused = list(before.left_out)

    @property
    def subject(self) -> str:
        return " ".join(self._drawn.plan.settings)

    @property
    def done(self) -> int:
        return len(self._pairs) + len(self._proofs)

    def make(self) -> None:
        self._try()
        self._make_pairs()

    def restoring(self) -> None:
        self._observer.restoring()

    def keep(self, made: Screening) -> None:
        self._series.session.add_screening(made)

    # -- pairs ---------------------------------------------------------------------------------------------------------

    def _try(self) -> None:
        """Apply and restore each setting once, and leave out settings that the host refuses. This trial comes before
        the first run. Raise HostError if fewer than two settings would remain. In a resumed screening, raise HostError
        if the host refuses any setting, because the screening's earlier runs used this setting."""
        screened = self._screened()
        for done, n in enumerate(screened):
            self._series.stop_if_due()
            setting = self._drawn.plan.settings[n]
            if why := self._refusal(n):
                if self.done or len(self._screened()) <= 2:
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
            self._series.apply(sides)
            why = sides.drifted()
        except HostError as error:
            if self._series.agent_connection.turn_lost():
                raise
            why = error.message
        self._series.restore()
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
            self._chosen = choose_settings(self._pairs, screened, plan.most, self._measure, plan.workload)
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

        one, other = self._series.pair(
            name,
            lambda: (self._run(part, number, of, 0, first_on), self._run(part, number, of, 1, second_on)),
            lambda one, other: (
                self._drawn.meter.unlike(one, other) or self._other_stack(one, first_on, other, second_on)
            ),
        )
        for place, taken in (("first", one), ("second", other)):
            self._series.note_run(f"{name}, {place} run", taken)
        return ScreenedPair(ScreenedRun(first_on, one.side), ScreenedRun(second_on, other.side))

    def _run(self, part: ScreeningPart, number: int, of: int, place: int, on: tuple[int, ...]) -> Taken:
        series, plan = self._series, self._drawn.plan
        series.stop_if_due()
        settings = tuple(plan.settings[n] for n in on)
        run = 2 * self.done + place
        step = ScreeningStep(run, plan.budget_runs, part, number, of, settings, series.times.left(run))
        watcher = self._observer.run_begins(step)
        sides = self._drawn.sides(on) if on else None
        if sides is not None:
            self._apply_for_a_run(sides)
        label = f"screen {part} · {number + 1} {'second' if place else 'first'}"
        side: SideName = "with" if on else "without"
        return series.measure(side, label, watcher, applied=sides, original=series.everything)

    def _other_stack(self, one: Taken, on: Sequence[int], other: Taken, other_on: Sequence[int]) -> str:
        """Return a sentence if the applied settings were wrong or changed in one of two runs; otherwise "". ``on``,
        ``other_on``: the settings that should be on in the runs ``one`` and ``other``."""
        ours = self._drawn.ids(range(len(self._drawn.plan.settings)))
        rests = []
        for taken, wanted in ((one, self._drawn.ids(on)), (other, self._drawn.ids(other_on))):
            stood = {item["id"]: item.get("value", "") for item in taken.applied}
            odd = sorted((stood.keys() & ours) ^ wanted)
            if odd:
                return f"{', '.join(odd[:MOST_NAMES])} did not have its planned state in a run"
            rests.append({name: value for name, value in stood.items() if name not in ours})
        names = sorted(name for name in rests[0].keys() | rests[1].keys() if rests[0].get(name) != rests[1].get(name))
        return f"{', '.join(names[:MOST_NAMES])} changed between the two runs of a pair" if names else ""

    def _apply_for_a_run(self, sides: TunableSides) -> None:
        """Apply the settings of a run. Raise Spoiled if a setting cannot be applied. The pair of runs is then repeated.
        This can succeed, because the setting could be applied in the trial."""
        try:
            self._series.apply(sides)
        except HostError as error:
            if self._series.agent_connection.turn_lost():
                raise
            self._series.restore()
            raise Spoiled(error.message) from None

    # -- what is kept --------------------------------------------------------------------------------------------------

    def _keep(self, part: ScreeningPart, of: int) -> None:
        # This state is read only if the process is killed, so it is marked as not restored.
        self.keep(dataclasses.replace(self.made("", restored=False), ended_at=""))
        self._observer.pair_done(part, len(getattr(self, f"_{part}")), of, self._series.times.left(2 * self.done))

    def made(self, stopped: str, restored: bool) -> Screening:
        plan, command, meter = self._drawn.plan, self._request.prove.command, self._drawn.meter
        notes, disturbed = (self._before.notes, self._before.disturbed) if self._before is not None else ((), 0)
        return made_of(
            Screening,
            plan,
            format_version=FORMAT_VERSION,
            id=self._series.id,
            seed=self._seed,
            planned_pairs=plan.pairs,
            planned_proofs=plan.proofs,
            sittings=self._sittings,
            ended_at=ids.timestamp(),
            pairs=tuple(self._pairs),
            proofs=tuple(self._proofs),
            chosen=self._chosen,
            measure=self._measure,
            restored=restored,
            left_out=tuple(self._refused),
            left_alone=self._series.left_alone,
            stopped=stopped,
            notes=tuple(dict.fromkeys((*notes, *self._series.notes("these are")))),
            disturbed=disturbed + self._series.disturbed,
            duration_s=self._request.prove.duration_s,
            unit=meter.unit if isinstance(meter, CommandMeter) else "",
            options=command.options if command is not None else (),
            asked=self._request.asked,
        )
