"""Warn of runs that sent few of their planned messages, because a thread was stopped for long."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.model.effect import RUN_NAMES
from jitter_workshop.model.evidence import MEASURED
from jitter_workshop.model.spec import MEASURED_THREADS
from jitter_workshop.model.text import WORD, capital, clean
from jitter_workshop.presenter.text.lines import Lines, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.report.diagnosis_words import label
from jitter_workshop.stats.figures import FIGURES, INTENDED, KnownRun
from jitter_workshop.stats.omission import sent_share, sent_told, with_waits
from jitter_workshop.stats.scale import nice_ns

_STOP = "stall"
"""The noise that stops the producer and the accumulator once."""
_MOSTLY = 0.5
"""The least share of the stalled time with which a cause is named as the one that stopped a thread."""


def few_sent(runs: Sequence[KnownRun], width: int, key: str = "") -> Lines:
    """Return the warning of :func:`warning` as lines; [] if there is nothing to warn of. ``key``: the key that makes a
    run again; "" for none."""
    told = warning(runs, key=key)
    return wrap(told, width) if told else []


def warning(runs: Sequence[KnownRun], name: str = "99.9", *, valued: bool = True, key: str = "") -> Text:
    """Return a warning if some of ``runs``, one run or two, sent few of the planned messages. Return an empty text if
    all runs sent enough. The warning names the cause that stopped a thread, if the trace shows one. The warning also
    has a latency with the waits, from the due time if the messages had a schedule. ``name``: the id of this latency's
    figure. ``valued``: False if another sentence tells this latency. ``key``: the key that makes the run of
    :func:`to_repeat` again; "" for none.

    The warning is calm if the own load of each run with few messages took the CPU: it does so on purpose. It is red
    if nothing of this tool explains why a thread was stopped.
    """
    shares = [sent_share(seen) for seen in runs]
    few = [(seen, share) for seen, share in zip(runs, shares, strict=True) if share is not None]
    if not few:
        return Text()
    which = ""
    if len(runs) > 1:
        one = "the first run" if shares[0] is not None else "the second run"
        which = f" in {'both runs' if len(few) > 1 else one}"
    sent = f"{sent_told(*(share for _, share in few))} of the planned messages were sent{which}"
    expected = all(_by_own_load(seen) for seen, _ in few)
    if expected:
        loads = dict.fromkeys(clean(seen.run.noise, WORD) for seen, _ in few)
        found = f"The noise ({', '.join(loads)}) took the CPU for so long that {sent}."
    else:
        causes = {_stopped_by(seen) for seen, _ in few}
        by = f", mostly by {next(iter(causes))}" if len(causes) == 1 and None not in causes else ""
        found = f"{capital(sent)}: a thread was stopped for long{by}."
    loud, of_value = ("text", "text") if expected else ("bold bad", "bold text")
    told = Text(found, loud)
    waits = [nice_ns(value) for seen, _ in few if (value := with_waits(FIGURES[name]).of(seen)) is not None]
    if not waits:
        told.append(" The latencies leave out their waits.", loud)
    elif valued:
        on_schedule = all(seen.run.pacing == "schedule" for seen, _ in few)
        title = FIGURES[name].title
        lead = f"From the due time, {title} is" if on_schedule else f"With the waits, {title} is about"
        told.append(f" {lead} {' and '.join(waits)}.", of_value)
    if key and (again := to_repeat(runs)) is not None:
        run = f" the {RUN_NAMES[again]} run" if len(runs) > 1 else ""
        told.append(f" Measure{run} again ({key}).", "text")
    return told


def correction_told(seen: KnownRun) -> str:
    """Return a sentence if the corrected curve of a run stays near transit, because the noise stopped the threads while
    no message was on the way: no transit is as long as half of the stop. Return "" for other runs."""
    due = seen.run.histograms.get(INTENDED)
    main = seen.run.main_summary
    if seen.run.noise != _STOP or due is None or main is None or seen.timeless:
        return ""
    if main.max is None or due.max is None or 2 * main.max >= due.max:
        return ""
    return "No message was on the way at the stop, so the corrected curve stays near transit."


def to_repeat(runs: Sequence[KnownRun]) -> int | None:
    """Return the index of the run that should be made again, because it sent few of its planned messages and its own
    load does not explain that. Of two such runs, return the one that sent fewer. Return None if there is none."""
    shares = {at: share for at, seen in enumerate(runs) if (share := sent_share(seen)) is not None}
    found = {at: share for at, share in shares.items() if not _by_own_load(runs[at])}
    return min(found, key=lambda at: found[at], default=None)


def _by_own_load(seen: KnownRun) -> bool:
    """Return True if the load that this tool made beside a run stopped its threads. The trace, if there is one, must
    not show that a task which is not this load took most of the time."""
    if seen.run.noise is None:
        return False
    most = _main_cause(seen)
    return most is None or most[0] != "task" or most[1] in (seen.run.noise, MEASURED)


def _stopped_by(seen: KnownRun) -> str | None:
    """Return the words for the cause that took most of a run's stalled time, by its trace; None if it is not known."""
    most = _main_cause(seen)
    return None if most is None or most[0] in ("no_event", "around") else label(*most)


def _main_cause(seen: KnownRun) -> tuple[str, str] | None:
    """Return the kind and the name of the cause that took at least the share _MOSTLY of a run's stalled time. The
    measured threads are one cause. Return None if no cause did, or if the run has no trace."""
    took: dict[tuple[str, str], int] = {}
    for one in seen.report.causes if seen.report is not None else ():
        key = one.kind, MEASURED if one.kind == "task" and one.name in MEASURED_THREADS else one.name
        took[key] = took.get(key, 0) + one.total_ns
    most = max(took, key=lambda key: took[key], default=None)
    return most if most is not None and took[most] >= _MOSTLY * sum(took.values()) > 0 else None
