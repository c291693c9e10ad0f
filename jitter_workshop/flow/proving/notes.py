"""Put what happened in a series of runs into sentences. A proof and a screening are such series."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from jitter_workshop.bench.runner import Cancelled
from jitter_workshop.errors import MeasureError, WorkshopError
from jitter_workshop.flow.measuring import measure as measuring
from jitter_workshop.flow.turns.classhost import TurnOver, left_s, now_s, read_turns, rounded_duration
from jitter_workshop.model.change import LeftAlone
from jitter_workshop.model.proof import STOPPED_BY
from jitter_workshop.model.run import Run
from jitter_workshop.model.text import ID, LABEL, LINE, MOST_PHRASES, REASON, SENTENCE, clean, many
from jitter_workshop.stats.figures import KnownRun, counts_alone, figure_with_id
from jitter_workshop.stats.omission import BY_MESSAGE, sent_share

_SPEEDS = ("core-hz", "core-hz-spread")
"""Figures of a CPU's frequency: a cause of latency, though not a count."""


def too_short(what: str, total_s: float, rounds: str) -> str:
    """Return a warning if a series takes longer than the user's turn lasts, else "".

    - ``what``: the name of the series, such as "the proof".
    - ``total_s``: the duration of the series in seconds.
    - ``rounds``: the word for finished parts of the series, such as "rounds".
    """
    left = left_s(read_turns(), os.geteuid(), now_s())
    if left is None or total_s <= left:
        return ""
    takes = f"{what} takes about {rounded_duration(total_s)}, but your turn ends in {rounded_duration(left)}"
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
    told = f"other tasks used the measured CPUs in {many(len(disturbed), 'run')}, and the result includes these runs"
    return (f"{told}: {where} {_first(disturbed)}",)


def omission_note(few: Sequence[str], where: str) -> tuple[str, ...]:
    """Return a note that names the runs in which few of the planned messages were sent; () if there are none. ``few``:
    names of these runs, each with the share that was sent. ``where``: as in :func:`disturbance_note`."""
    if not few:
        return ()
    told = f"a thread was stopped for long in {many(len(few), 'run')}, so only a part of the planned messages was sent"
    return (f"{told}, and the transit leaves out these waits: {where} {_first(few)}",)


def _first(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others, such as ``1, 2, 3 and 4 more``."""
    more = f" and {len(names) - MOST_PHRASES} more" if len(names) > MOST_PHRASES else ""
    return ", ".join(names[:MOST_PHRASES]) + more


def cause_figure(shows: str, taken: Run | None) -> float | None:
    """Return a run's value of the figure ``shows``, if this figure measures a cause of jitter. Return None for other
    figures, such as a latency, because the proof has its own lines for these. Return None for a run that does not have
    the figure, and for a count by message in a run that sent few of its planned messages."""
    one = figure_with_id(shows) if shows else None
    if one is None or taken is None or not (counts_alone(one) or one.id in _SPEEDS):
        return None
    seen = KnownRun(taken)
    return None if one.id in BY_MESSAGE and sent_share(seen) is not None else one.of(seen)


def cause_note(shows: str, rounds: Sequence[tuple[float | None, float | None]]) -> tuple[str, ...]:
    """Return a note with two mean values of the figure ``shows``: without and with the change. Return () if each round
    lacks a value for one of the two sides. ``rounds``: the values of :func:`cause_figure`, without and with the
    change."""
    known = [(a, b) for a, b in rounds if a is not None and b is not None]
    if not known:
        return ()
    one = figure_with_id(shows)
    without, with_it = (one.with_unit(fmean(side)) for side in zip(*known, strict=True))
    told = f"{one.title}: {without} without the change, {with_it} with it"
    return (f"{told} (mean of the runs; a cause gets no verdict)",)


def each_once(sentences: Sequence[str]) -> tuple[str, ...]:
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
