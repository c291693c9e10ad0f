"""Warn of runs that sent few of their planned messages, because a thread was stopped for long."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.presenter.text.lines import Lines, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.stats.figures import FIGURES, KnownRun
from jitter_workshop.stats.omission import sent_share, share_told, with_waits
from jitter_workshop.stats.scale import nice_ns


def few_sent(runs: Sequence[KnownRun], width: int) -> Lines:
    """Return the warning of :func:`warning` as lines; [] if there is nothing to warn of."""
    told = warning(runs)
    return wrap(told, width) if told else []


def warning(runs: Sequence[KnownRun], name: str = "99.9", *, valued: bool = True) -> Text:
    """Return a warning if some of ``runs``, one run or two, sent few of the planned messages. Return an empty text if
    all runs sent enough. The warning also has a latency with the waits, from the due time if the messages had a
    schedule. ``name``: the id of this latency's figure. ``valued``: False if another sentence tells this latency.

    The warning is calm if each run with few messages had a noise of this tool beside it: such a noise stops threads on
    purpose. It is red if nothing of this tool explains why a thread was stopped.
    """
    shares = [sent_share(seen) for seen in runs]
    few = [(seen, share) for seen, share in zip(runs, shares, strict=True) if share is not None]
    if not few:
        return Text()
    which = ""
    if len(runs) > 1:
        one = "the first run" if shares[0] is not None else "the second run"
        which = f" in {'both runs' if len(few) > 1 else one}"
    shares_told = " and ".join(share_told(share) for _, share in few)
    expected = all(seen.run.noise is not None for seen, _ in few)
    loud, of_value = ("text", "text") if expected else ("bold bad", "bold text")
    found = Text(f"Only {shares_told} of the planned messages were sent{which}: a thread was stopped for long.", loud)
    waits = [nice_ns(value) for seen, _ in few if (value := with_waits(FIGURES[name]).of(seen)) is not None]
    if not waits:
        return found.append(" The latencies leave out their waits.", loud)
    if not valued:
        return found
    on_schedule = all(seen.run.pacing == "schedule" for seen, _ in few)
    title = FIGURES[name].title
    lead = f"From the due time, {title} is" if on_schedule else f"With the waits, {title} is about"
    return found.append(f" {lead} {' and '.join(waits)}.", of_value)
