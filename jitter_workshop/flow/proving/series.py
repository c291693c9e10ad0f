"""Make a series of runs between which settings change. A proof and a screening are such series."""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.lock import host_turn
from jitter_workshop.bench.runner import Cancelled
from jitter_workshop.errors import HostError, SessionError, WaitStopped, WorkshopError
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.measuring import background_gate
from jitter_workshop.flow.proving import proof_plan
from jitter_workshop.flow.proving.meters import Meter, Occasion, Taken
from jitter_workshop.flow.proving.notes import disturbance_note, drifted_without, each_once, omission_note, why_ended
from jitter_workshop.flow.proving.proof_recovery import change_is_in_effect
from jitter_workshop.flow.proving.sides import SideName, Sides
from jitter_workshop.flow.turns.classhost import TurnOver, need_turn
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import LeftAlone
from jitter_workshop.model.proof import Proof
from jitter_workshop.model.run import RunObserver
from jitter_workshop.model.screening import Screening
from jitter_workshop.model.text import SENTENCE, clean
from jitter_workshop.session import ids
from jitter_workshop.session.opened import OpenSession
from jitter_workshop.stats.figures import KnownRun
from jitter_workshop.stats.omission import sent_share, share_told

MOST_LEFT_OUT = 3
"""Number of spoiled rounds that are measured again; one more ends the series. In a spoiled round something else changed
the host."""

T = TypeVar("T")
S = TypeVar("S", Proof, Screening)


class Spoiled(Exception):
    """Report that a round does not count. The message has the reason."""


class Rounds(Protocol[S]):
    """Make the rounds of one series, and the proof or the screening of them. A round is two runs.

    - ``what``: the name of the series in sentences, such as "the proof".
    - ``subject``: all its settings in one line.
    - ``done``: how many rounds are finished.
    """

    @property
    def what(self) -> str: ...

    @property
    def subject(self) -> str: ...

    @property
    def done(self) -> int: ...

    def make(self) -> None:
        """Make all rounds that are not finished. Raise WorkshopError if the series has to end early."""

    def restoring(self) -> None:
        """Tell the observer that the settings are being restored."""

    def made(self, stopped: str, restored: bool) -> S:
        """Return the proof or the screening of the finished rounds. ``stopped``: the reason why the series ended early,
        or "". ``restored``: True if all settings were restored."""

    def keep(self, made: S) -> None:
        """Save the proof or the screening in the session. Raise SessionError if this fails."""


@dataclass(eq=False)
class RunSeries:
    """Measure the runs of one proof or screening. Each change is restored after its run, and again at the end.

    - ``session``, ``agent_connection``, ``cancel``: where runs are stored, who changes settings, and who stops it.
    - ``meter``, ``times``: make the runs, and estimate the remaining time.
    - ``everything``: all settings of the series.
    - ``id``: the id that the runs and the change log have of the series.
    - ``first``: a run of the first round, with which each later round must be comparable; None if there is none yet.
    - ``left_alone``: the settings that could not be restored, or that others have changed.
    - ``not_kept``: the reason why the proof or the screening could not be saved, or "".
    """

    session: OpenSession
    agent_connection: AgentConnection
    cancel: CancelToken
    meter: Meter
    times: RemainingTime
    everything: Sides
    id: str = field(default_factory=ids.new_id)
    first: Taken | None = None
    left_alone: tuple[LeftAlone, ...] = ()
    not_kept: str = ""
    _applied: Sides | None = None
    _left_out: list[str] = field(default_factory=list)
    _disturbed: list[str] = field(default_factory=list)
    _few_sent: list[str] = field(default_factory=list)
    _trouble: list[str] = field(default_factory=list)

    def make(self, rounds: Rounds[S]) -> S:
        """Make the rounds, restore all settings, and save and return the proof or the screening. A series that ended
        early is returned, too. There is one exception: no round was finished here, and all settings were restored. Then
        the error that ended the series is raised."""
        cause: WorkshopError | None = None
        done_before = rounds.done
        try:
            rounds.make()
        except WorkshopError as error:
            cause = self._cause_of(error)
        finally:
            self._restore_at_the_end(rounds.restoring)
        still = change_is_in_effect(rounds.subject, HostRoot(proof_plan.HERE))
        restored = not (self.left_alone or self._trouble or still)
        if restored:
            # All our changes are restored: other values on the host are those of others, and the reader must know them.
            self.left_alone = self.everything.strange()
        if cause is not None and rounds.done == done_before and restored:
            # The stored state is that of an earlier sitting, or none.
            raise cause
        return self._kept(rounds, rounds.made("" if cause is None else why_ended(cause), restored))

    def _cause_of(self, error: WorkshopError) -> WorkshopError:
        """Return TurnOver if the user's turn has ended, because the end of the turn caused ``error``. Otherwise return
        ``error``."""
        over = "" if isinstance(error, TurnOver) else self.agent_connection.turn_lost()
        return TurnOver(over) if over else error

    def _kept(self, rounds: Rounds[S], made: S) -> S:
        """Save a proof or a screening, and return it. If it cannot be saved, add the reason to its notes."""
        try:
            rounds.keep(made)
        except SessionError as error:
            self.not_kept = f"{rounds.what} could not be saved: {error.sentence()}"
            return dataclasses.replace(made, notes=(*made.notes, self.not_kept))
        return made

    @property
    def disturbed(self) -> int:
        """Return the number of runs that other tasks disturbed."""
        return len(self._disturbed)

    def notes(self, where: str) -> tuple[str, ...]:
        """Return the notes about the runs and the settings. ``where``: the word before the names of disturbed runs,
        such as "round"."""
        return (
            *self.meter.notes(),
            *self.everything.notes(),
            *each_once(self._left_out),
            *disturbance_note(self._disturbed, where),
            *omission_note(self._few_sent, where),
            *self._trouble,
        )

    # -- a round -------------------------------------------------------------------------------------------------------

    def pair(
        self, name: str, runs: Callable[[], tuple[Taken, Taken]], unlike: Callable[[Taken, Taken], str]
    ) -> tuple[Taken, Taken]:
        """Return the two runs of a round. If the round is spoiled, make it again. Raise HostError if too many rounds
        of the series are spoiled, and the errors of ``runs``.

        - ``name``: the name of the round in notes.
        - ``runs``: makes the two runs. It raises Spoiled if one of them does not count.
        - ``unlike``: returns the reason why the two runs cannot be compared, or "".
        """
        while True:
            try:
                one, other = runs()
                why = unlike(one, other)
                if not why and self.first is not None:
                    why = self.meter.changed(self.first, one)
                if why:
                    raise Spoiled(why)
            except Spoiled as spoiled:
                if len(self._left_out) >= MOST_LEFT_OUT:
                    raise HostError(
                        f"the host changes during the measurement: {spoiled}",
                        "repeat it when nothing else changes the host",
                    ) from None
                self._left_out.append(f"{name} was measured again: {spoiled}")
            else:
                self.first = self.first or one
                return one, other

    def note_run(self, name: str, taken: Taken) -> None:
        """Note the run of this name if another task disturbed it, or if it sent few of its planned messages."""
        if taken.disturbed:
            self._disturbed.append(f"{name} ({taken.disturbed})")
        share = sent_share(KnownRun(taken.run)) if taken.run is not None else None
        if share is not None:
            self._few_sent.append(f"{name} ({share_told(share)})")

    # -- a run ---------------------------------------------------------------------------------------------------------

    def stop_if_due(self) -> None:
        """Raise Cancelled or TurnOver if the next run may not begin."""
        if self.cancel.reason is not None:
            raise Cancelled(self.cancel.reason)
        if over := self.agent_connection.turn_lost():
            raise TurnOver(over)

    def begin(self) -> None:
        """Apply and restore all settings once, as ``Sides.begin`` does. Raise the errors of ``Sides.begin``."""
        self._applied = self.everything
        self.times.changed(self.everything.begin)
        self._applied = None

    def apply(self, sides: Sides) -> None:
        """Apply the settings of a run. Raise HostError if a setting cannot be applied."""
        self._applied = sides
        self.times.changed(sides.apply)

    def measure(
        self, side: SideName, label: str, watcher: RunObserver, applied: Sides | None, original: Sides | None
    ) -> Taken:
        """Make a run, restore its settings, and return the run. Raise Cancelled if the run is not complete. Raise
        Spoiled if a setting changed. Raise the errors of :meth:`restore` and of ``Meter.measure``.

        - ``applied``: the settings of the run, which must keep their values; None if it has none.
        - ``original``: the settings that must have their old values after the run; None if these are not checked.
        """
        occasion = Occasion(side, label, self.id, self.session, self.agent_connection, watcher, self.cancel)
        taken = self.times.ran(lambda: self.meter.measure(occasion))
        drifted = applied.drifted() if applied is not None else ""
        self.restore()
        if not drifted and original is not None:
            drifted = drifted_without(original.strange())
        if not taken.complete:
            raise Cancelled(self.cancel.reason or "cancelled")
        if drifted:
            raise Spoiled(drifted)
        return taken

    # -- restoring -----------------------------------------------------------------------------------------------------

    def restore(self) -> None:
        """Restore the settings of a run, if there are any. Raise HostError if one of them stays applied."""
        if self._applied is None:
            return
        self.left_alone = self._applied.restore()
        self._applied = None
        if self.left_alone:
            left = self.left_alone[0]
            raise HostError(f"{left.tunable} could not be restored: {clean(left.reason, SENTENCE)}")

    def _restore_at_the_end(self, restoring: Callable[[], None]) -> None:
        """Restore the settings at the end. If ``restoring`` raises an error, the settings are restored first."""
        try:
            restoring()
        finally:
            applied, self._applied = self._applied, None
            try:
                if applied is not None:
                    self.left_alone = (*self.left_alone, *applied.restore())
            except WorkshopError as error:
                self._trouble.append(f"the change was not restored: {error.sentence()}")


def seed_of(wanted: int | None) -> int:
    """Return the seed that the user wanted, or a random one for None."""
    return wanted if wanted is not None else secrets.randbelow(1 << 31)


@contextlib.contextmanager
def in_turn(
    agent_connection: AgentConnection, wait_s: float, cancel: CancelToken, queued: Callable[[str], None]
) -> Iterator[None]:
    """Keep other programs from measuring on this host during a series of runs. On a class host, the user must already
    have the turn (the right to measure). Raise Cancelled if ``cancel`` was set while this function waited. Raise the
    errors of ``host_turn`` and ``need_turn``. ``queued``: as in ``flow.measuring.measure.measure_run``."""
    try:
        own = contextlib.nullcontext() if need_turn(agent_connection) else host_turn(wait_s, cancel, queued)
        with own, background_gate.HERE.measuring():
            yield
    except WaitStopped:
        raise Cancelled(cancel.reason or "cancelled") from None


class RemainingTime:
    """Estimate the remaining time of a series. The first estimate comes from the plan, later ones from measured times.

    - ``of``: how many runs the series has.
    - ``run_s``: the planned seconds of a run.
    - ``change_s``: the planned seconds to apply and restore a change.
    - ``changes_always``: True if every run has a change, False if half of the runs have one.
    """

    def __init__(self, of: int, run_s: float, change_s: float, changes_always: bool = False) -> None:
        self._of, self._run_s, self._change_s = of, run_s, change_s
        self._share = 1.0 if changes_always else 0.5
        self._runs: list[float] = []
        self._changes: list[float] = []

    def changed(self, change: Callable[[], None]) -> None:
        """Make a change, and note its time."""
        began = time.monotonic()
        change()
        self._changes.append(time.monotonic() - began)

    def ran(self, run: Callable[[], T]) -> T:
        """Call ``run`` to make a run, store the run's duration, and return the run's result."""
        began = time.monotonic()
        made = run()
        self._runs.append(time.monotonic() - began)
        return made

    def left(self, done: int) -> float:
        """Return the seconds that remain when run ``done`` begins."""
        run_s = sum(self._runs) / len(self._runs) if self._runs else self._run_s
        change_s = 2 * sum(self._changes) / len(self._changes) if self._changes else self._change_s
        return (self._of - done) * (run_s + change_s * self._share)
