"""Find a run in which far fewer messages were sent than planned, because a measured thread was stopped for long.

The ring's producer plans one message for each interval. While a thread is stopped, no message is sent, so the curve has
few values of this time. In such a run the percentiles look far too good (coordinated omission), and a count that grows
with the messages is too low.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.run import Progress, Run
from jitter_workshop.stats.curve import curve_value_at
from jitter_workshop.stats.figures import (
    FIGURES,
    FROM_DUE_TIME,
    INTENDED,
    LATENCIES,
    Figure,
    KnownRun,
    percentile_reader,
)

LEAST_SENT = 0.9
"""A run with a smaller share of its planned messages does not show how long the messages had to wait."""
SURELY_FEW = 0.7
"""A run that has sent a smaller share in its first half will hardly send LEAST_SENT of all its messages."""
_BY_STALLS = 0.5
"""The least share of the missing messages that the time in stalls must explain. A thread that is only slow, and never
stopped, also sends fewer messages."""
BY_MESSAGE = frozenset(("faults", "write-calls"))
"""The ids of the figures that grow with the number of messages."""
WITH_WAITS = " with the waits"
"""The words after the title of a latency that has the waits for a stopped thread."""
WAITS_EXPLAINED = "With the waits: a message not sent in time counts from when it was due."
"""The meaning of these words, for the first page that has them."""
WITHOUT_WAITS = frozenset(LATENCIES)
"""The ids of the latencies that leave out the waits for a stopped thread."""
JUDGED = "99.9"
"""The percentile of the ring that tells if the waits matter."""
CHANGED_BY_WAITS = 1.5
"""The least factor between a percentile with the waits and without them from which both are told."""


def sent_share(seen: KnownRun) -> float | None:
    """Return the share of the planned messages that a run of the ring sent, from 0 to less than LEAST_SENT. Return None
    if the run sent more, if no stalls explain the missing messages, or if the share is not known."""
    share = _share(seen)
    return share if share is not None and share < LEAST_SENT else None


def _share(seen: KnownRun) -> float | None:
    """Return the share of the planned messages that a run of the ring sent, from 0 to less than 1. Return None if no
    stalls explain the missing messages, or if the share is not known."""
    run, main = seen.run, seen.run.main_summary
    if seen.recorded is not None or seen.timeless or run.workload != "ring" or main is None:
        return None
    if run.interval_ns <= 0 or run.duration_s <= 0:
        return None
    share = main.count * run.interval_ns / (run.duration_s * 1e9)
    stopped = run.stalls.stolen_ns_per_second / 1e9
    return share if share < 1 and stopped >= _BY_STALLS * (1 - share) else None


def share_told(share: float) -> str:
    """Return a share of :func:`sent_share` in words: ``9 %`` or ``less than 1 %``."""
    return f"{min(round(100 * share), 89)} %" if share >= 0.01 else "less than 1 %"


def sent_told(*shares: float) -> str:
    """Return shares of :func:`sent_share` as the words before "of the planned messages": ``only 9 % and 6 %``."""
    told = " and ".join(dict.fromkeys(map(share_told, shares)))
    return told if told.startswith("less") else f"only {told}"


def with_waits(one: Figure) -> Figure:
    """Return a latency's figure with the waits that the curve leaves out.

    With the pacing ``schedule``, each message counts from its due time. With ``spin`` no message has a due time, and
    the messages that are missing in the producer's gaps are added (docs/measuring.md). ``one``: a figure of
    WITHOUT_WAITS.
    """
    return dataclasses.replace(one, title=f"{one.title}{WITH_WAITS}", read=percentile_reader(one.id, INTENDED))


def view_with_waits(run: Run) -> Run:
    """Return a run with the histogram that has the waits as its main one. Its percentiles then have the waits. The view
    is without blocks, which do not have the waits. ``run``: a run with the histogram INTENDED."""
    histograms = {**run.histograms, run.main_histogram: run.histograms[INTENDED]}
    return dataclasses.replace(run, histograms=histograms, blocks=())


def clock_with_waits(run: Run) -> str:
    """Return the words for the latencies of :func:`view_with_waits`: ``with the waits``, or ``from the due time`` if
    the messages had a schedule."""
    return FROM_DUE_TIME if run.pacing == "schedule" else WITH_WAITS.strip()


def needs_waits(seen: KnownRun) -> bool:
    """Return True if the latencies of a run are too short without the waits: it sent few of its planned messages, or
    the waits change the percentile JUDGED by the factor CHANGED_BY_WAITS or more."""
    share, one = _share(seen), FIGURES[JUDGED]
    if share is None or share < LEAST_SENT:
        return share is not None
    value, waits = one.of(seen), with_waits(one).of(seen)
    return value is not None and waits is not None and waits >= CHANGED_BY_WAITS * value


def waits_are_needed(curve: PercentileCurve, with_them: PercentileCurve) -> bool:
    """Return True if an unfinished run needs the waits, as :func:`needs_waits` says of a finished one. ``curve``,
    ``with_them``: its curves so far, without and with the waits."""
    if curve.count < LEAST_SENT * with_them.count:
        return True
    value, waits = (curve_value_at(one, float(JUDGED)) for one in (curve, with_them))
    return value is not None and waits is not None and waits >= CHANGED_BY_WAITS * value


def told_with_waits(runs: Sequence[KnownRun], *, wanted: bool = False) -> bool:
    """Return True if latencies of ``runs`` are told with the waits: one of them needs the waits, and all have them.
    ``wanted``: True if they are told beside a run that needs the waits."""
    return (wanted or any(map(needs_waits, runs))) and all(INTENDED in seen.run.histograms for seen in runs)


def has_waits(now: Progress, *, wanted: bool = False) -> bool:
    """Return True if an unfinished run is told with the waits: its blocks so far need them, and they are known. In its
    first half, the share of messages sent must be less than SURELY_FEW. The first blocks often need the waits where the
    finished run needs none, and this run, and those beside it, would be told with one quantity and then another.
    ``wanted``: True if the run is told beside runs that have the waits."""
    if now.with_waits is None:
        return False
    few = now.curve.count < SURELY_FEW * now.with_waits.count
    return wanted or (now.needs_waits and (few or 2 * now.done >= now.total))


def curve_so_far(now: Progress, *, wanted: bool = False) -> PercentileCurve:
    """Return the curve by which an unfinished run is told. ``wanted``: as in :func:`has_waits`."""
    return now.with_waits if now.with_waits is not None and has_waits(now, wanted=wanted) else now.curve


def compared_latency(one: Figure, before: KnownRun, after: KnownRun) -> Figure | None:
    """Return the figure by which two runs are compared in place of ``one``.

    If one of the runs needs the waits (:func:`needs_waits`), a latency is compared with the waits. Return None if a run
    does not have the latency with the waits: without them, the run looks better than it was. All other figures are
    compared as they are.
    """
    if one.id not in WITHOUT_WAITS or not (needs_waits(before) or needs_waits(after)):
        return one
    waits = with_waits(one)
    return waits if None not in (waits.of(before), waits.of(after)) else None
