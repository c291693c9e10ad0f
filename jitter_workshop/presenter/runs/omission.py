"""Warn of runs that sent few of their planned messages, because a thread was stopped for long."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.presenter.text.lines import Lines, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.stats.figures import KnownRun
from jitter_workshop.stats.omission import p999_with_waits, sent_share, share_told
from jitter_workshop.stats.scale import nice_ns


def few_sent(runs: Sequence[KnownRun], width: int) -> Lines:
    """Return the warning of :func:`warning` as lines; [] if there is nothing to warn of."""
    told = warning(runs)
    return wrap(told, width) if told else []


def warning(runs: Sequence[KnownRun]) -> Text:
    """Return a warning if some of ``runs``, one run or two, sent few of the planned messages. Return an empty text if
    all runs sent enough. The warning also has p99.9 with the waits, from the due time if the messages had a schedule.
    """
    shares = [sent_share(seen) for seen in runs]
    few = [(seen, share) for seen, share in zip(runs, shares, strict=True) if share is not None]
    if not few:
        return Text()
    which = ""
    if len(runs) > 1:
        one = "the first run" if shares[0] is not None else "the second run"
        which = f" in {'both runs' if len(few) > 1 else one}"
    told = " and ".join(share_told(share) for _, share in few)
    curves = "The curves leave" if len(few) > 1 else "The curve leaves"
    sent = f"Only {told} of the planned messages were sent{which}: a thread was stopped for long."
    found = Text(f"{sent} {curves} out these waits.", "bold bad")
    waits = [nice_ns(value) for seen, _ in few if (value := p999_with_waits(seen)) is not None]
    if not waits:
        return found
    on_schedule = all(seen.run.pacing == "schedule" for seen, _ in few)
    name = "p99.9 from the due time is" if on_schedule else "p99.9 with these waits is about"
    return found.append(f" {name} {' and '.join(waits)}.", "bold text")
