"""Provide shared functions for proofs and screenings. Each of the two is a series of runs with changing settings."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import TypeVar

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.lock import host_turn
from jitter_workshop.bench.runner import Cancelled
from jitter_workshop.errors import HostError, MeasureError, SessionError, WaitStopped, WorkshopError
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.measuring import background_gate
from jitter_workshop.flow.measuring import measure as measuring
from jitter_workshop.flow.turns.classhost import TurnOver, left_s, minutes, need_turn, now_s, read_turns
from jitter_workshop.model.change import LeftAlone
from jitter_workshop.model.proof import STOPPED_BY, Proof
from jitter_workshop.model.run import Run
from jitter_workshop.model.screening import Screening
from jitter_workshop.model.text import ID, LABEL, LINE, REASON, SENTENCE, clean, many
from jitter_workshop.stats.figures import KnownRun, counts_alone, figure

MOST_LEFT_OUT = 3
"""Number of spoiled rounds that are measured again; one more ends the series. In a spoiled round something else changed
the host."""


_NAMED = 3
_SPEEDS = ("core-hz", "core-hz-spread")
"""Figures of a CPU's frequency: a cause of latency, though not a count."""
T = TypeVar("T")
S = TypeVar("S", Proof, Screening)


class Spoiled(Exception):
    """Report that a round does not count. The message has the reason."""


def until_good(make: Callable[[], T], left_out: list[str], what: str) -> T:
    """Make a round. If the round is spoiled, make it again. Return the first round that is not spoiled. Raise HostError
    if too many rounds of the series are spoiled, and the errors of ``make``.

    - ``make``: makes the round.
    - ``left_out``: receives a note about each spoiled round of the series.
    - ``what``: the name of the round in these notes.
    """
    while True:
        try:
            return make()
        except Spoiled as spoiled:
            if len(left_out) >= MOST_LEFT_OUT:
                raise HostError(
                    f"the host changes during the measurement: {spoiled}",
                    "repeat it when nothing else changes the host",
                ) from None
            left_out.append(f"{what} was measured again: {spoiled}")


@contextlib.contextmanager
def in_turn(
    agent_connection: AgentConnection, wait_s: float, cancel: CancelToken, queued: Callable[[str], None]
) -> Iterator[None]:
    """Keep other programs from measuring on this host during a series of runs. On a class host, the user must already
    have the turn (the right to measure). Raise Cancelled if ``cancel`` was set while this function waited. Raise the
    errors of ``host_turn`` and ``need_turn``. ``queued``: as in ``flow.measuring.measure.measure``."""
    try:
        own = contextlib.nullcontext() if need_turn(agent_connection) else host_turn(wait_s, cancel, queued)
        with own, background_gate.HERE.measuring():
            yield
    except WaitStopped:
        raise Cancelled(cancel.reason or "cancelled") from None


def stop_if_due(agent_connection: AgentConnection, cancel: CancelToken) -> None:
    """Raise Cancelled or TurnOver if the next run may not begin."""
    if cancel.reason is not None:
        raise Cancelled(cancel.reason)
    if over := agent_connection.turn_lost():
        raise TurnOver(over)


def need_whole(complete: bool, drifted: str, cancel: CancelToken) -> None:
    """Raise Cancelled if a run is not ``complete``. Raise Spoiled if a setting lost its value during the run.
    ``drifted``: a sentence about this setting, or ""."""
    if not complete:
        raise Cancelled(cancel.reason or "cancelled")
    if drifted:
        raise Spoiled(drifted)


def need_restored(left_alone: Sequence[LeftAlone]) -> None:
    """Raise HostError if a setting stays applied after a run."""
    if left_alone:
        left = left_alone[0]
        raise HostError(f"{left.tunable} could not be restored: {clean(left.reason, SENTENCE)}")


def restore_at_the_end(told: Callable[[], None], restore: Callable[[], None], trouble: list[str]) -> None:
    """Restore the changes at the end of a series. If ``told`` raises an error, the changes are restored first. Then the
    error is raised again.

    - ``told``: tells the observer that the changes are being restored.
    - ``restore``: restores the changes.
    - ``trouble``: receives a sentence if ``restore`` raises a WorkshopError.
    """
    try:
        told()
    finally:
        try:
            restore()
        except WorkshopError as error:
            trouble.append(f"the change was not restored: {error.sentence()}")


def kept(made: S, keep: Callable[[S], None], what: str) -> tuple[S, str]:
    """Save a proof or a screening. Return it with "". If it cannot be saved, add the reason to its notes, and return
    both. ``keep``: saves it. ``what``: its name in the reason, such as "the proof"."""
    try:
        keep(made)
    except SessionError as error:
        why = f"{what} could not be saved: {error.sentence()}"
        return dataclasses.replace(made, notes=(*made.notes, why)), why
    return made, ""


def cause_of(error: WorkshopError, agent_connection: AgentConnection) -> WorkshopError:
    """Return the error to report for a series that ended early. Return TurnOver if the user's turn has ended, because
    the end of the turn caused ``error``. Otherwise return ``error``."""
    over = "" if isinstance(error, TurnOver) else agent_connection.turn_lost()
    return TurnOver(over) if over else error


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


def too_short(what: str, total_s: float, rounds: str) -> str:
    """Return a warning if a series takes longer than the user's turn lasts, else "".

    - ``what``: the name of the series, such as "the proof".
    - ``total_s``: the duration of the series in seconds.
    - ``rounds``: the word for finished parts of the series, such as "rounds".
    """
    left = left_s(read_turns(), os.geteuid(), now_s())
    if left is None or total_s <= left:
        return ""
    takes = f"{what} takes about {minutes(total_s)}, but your turn ends in {minutes(left)}"
    return f"{takes}: only the {rounds} that are finished by then are judged"


def drifted_without(strange: Sequence[LeftAlone]) -> str:
    """Return a sentence about a setting that changed while no change was applied; "" if there is none. ``strange``: the
    settings whose values differ from the values before the series."""
    if not strange:
        return ""
    one = strange[0]
    says, before = clean(one.found, LABEL), clean(one.expected, LABEL)
    return f"{clean(one.path, LINE)} is '{says}' without the change, but its value before was '{before}'"


def disturbance_note(disturbed: Sequence[str], where: str) -> tuple[str, ...]:
    """Return a note that names the runs disturbed by other tasks; () if there are none. ``disturbed``: names of these
    runs. ``where``: the word before the names, such as "round"."""
    if not disturbed:
        return ()
    named = ", ".join(disturbed[:_NAMED])
    more = f" and {len(disturbed) - _NAMED} more" if len(disturbed) > _NAMED else ""
    runs = many(len(disturbed), "run")
    return (f"other tasks used the measured CPUs in {runs}, and the result includes these runs: {where} {named}{more}",)


def cause_figure(shows: str, taken: Run | None) -> float | None:
    """Return a run's value of the figure ``shows``, if this figure measures a cause of jitter. Return None for other
    figures, such as a latency, because the proof has its own lines for these. Return None for a run that does not have
    the figure."""
    one = figure(shows) if shows else None
    if one is None or taken is None or not (counts_alone(one) or one.id in _SPEEDS):
        return None
    return one.of(KnownRun(taken))


def cause_note(shows: str, rounds: Sequence[tuple[float | None, float | None]]) -> tuple[str, ...]:
    """Return a note with two mean values of the figure ``shows``: without and with the change. Return () if each round
    lacks a value for one of the two sides. ``rounds``: the values of :func:`cause_figure`, without and with the
    change."""
    known = [(a, b) for a, b in rounds if a is not None and b is not None]
    if not known:
        return ()
    one = figure(shows)
    without, with_it = (one.with_unit(fmean(side)) for side in zip(*known, strict=True))
    told = f"{one.title}: {without} without the change, {with_it} with it"
    return (f"{told} (mean of the runs; a cause gets no verdict)",)


def counted(sentences: Sequence[str]) -> tuple[str, ...]:
    """Return each sentence once. A sentence that occurs several times gets its count, such as ``(3 times)``."""
    return tuple(s if n == 1 else f"{s} ({n} times)" for s, n in Counter(sentences).items())


def why_ended(cause: WorkshopError) -> str:
    """Return the reason why a series ended early, in words."""
    if isinstance(cause, TurnOver):
        return f"the turn ended: {clean(cause.why, REASON)}"
    if isinstance(cause, Cancelled):
        return f"{STOPPED_BY}{clean(cause.reason, ID)}"
    if isinstance(cause, measuring.RunNotKept):
        return clean(cause.message, SENTENCE)
    prefix = "a measurement failed: " if isinstance(cause, MeasureError) else ""
    return f"{prefix}{clean(cause.sentence(), SENTENCE)}"
