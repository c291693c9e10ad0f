"""Find a run in which far fewer messages were sent than planned, because a measured thread was stopped for long.

The ring's producer plans one message for each interval. While a thread is stopped, no message is sent. Latency counts
each message from when it was due (``model.run.INTENDED``), so it has this time. Transit, which begins when a message is
ready, leaves it out: in such a run its percentiles look far too good (coordinated omission). A count that grows with
the messages is too low.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from jitter_workshop.model.run import INTENDED, Run, of_transit
from jitter_workshop.stats.figures import KnownRun

LEAST_SENT = 0.9
"""A run with a smaller share of its planned messages sent few of them."""
_BY_STALLS = 0.5
"""The least share of the missing messages that the time in stalls must explain. A thread that is only slow, and never
stopped, also sends fewer messages."""
BY_MESSAGE = frozenset(("faults", "write-calls"))
"""The ids of the figures that grow with the number of messages."""


def sent_share(seen: KnownRun) -> float | None:
    """Return the share of the planned messages that a run of the ring sent, from 0 to less than LEAST_SENT. Return None
    if the run sent more, if no stalls explain the missing messages, or if the share is not known."""
    share, stopped = planned_share(seen), seen.run.stalls.stolen_ns_per_second / 1e9
    return share if share is not None and share < LEAST_SENT and stopped >= _BY_STALLS * (1 - share) else None


def planned_share(seen: KnownRun) -> float | None:
    """Return the share of the planned messages that a run of the ring sent; None if it is not known."""
    run, main = seen.run, seen.run.main_summary
    if seen.recorded is not None or seen.timeless or run.workload != "ring" or main is None:
        return None
    if run.interval_ns <= 0 or run.duration_s <= 0:
        return None
    return main.count * run.interval_ns / (run.duration_s * 1e9)


def share_told(share: float) -> str:
    """Return a share of the planned messages in words: ``9 %`` or ``less than 1 %``. One below LEAST_SENT is never told
    as LEAST_SENT, and one below the whole never as the whole."""
    if share < 0.01:
        return "less than 1 %"
    most = 89 if share < LEAST_SENT else 99 if share < 1.0 else 100
    return f"{min(round(100 * share), most)} %"


def sent_told(*shares: float) -> str:
    """Return shares of :func:`sent_share` as the words before "of the planned messages": ``only 9 % and 6 %``."""
    told = " and ".join(dict.fromkeys(map(share_told, shares)))
    return told if told.startswith("less") else f"only {told}"


def leaves_out_waits(seen: KnownRun) -> bool:
    """Return True if the latencies of a run are far too short: it sent few of its messages, and it has only transit."""
    return INTENDED not in seen.run.histograms and sent_share(seen) is not None


def clocks_differ(runs: Iterable[Run]) -> bool:
    """Return True if some runs of the ring have latencies from when a message was due, and others have only transit.
    Such runs are compared by transit. Other workloads have one clock."""
    return len({INTENDED in run.histograms for run in runs if run.workload == "ring"}) > 1


def on_one_clock(before: KnownRun, after: KnownRun) -> tuple[KnownRun, KnownRun] | None:
    """Return two runs whose latencies can be compared: the same runs if both count from when a message was due, else
    both by transit. Return None if transit leaves out the waits of one of them."""
    if all(INTENDED in seen.run.histograms for seen in (before, after)):
        return before, after
    if any(sent_share(seen) is not None for seen in (before, after)):
        return None
    first, second = (dataclasses.replace(seen, run=of_transit(seen.run)) for seen in (before, after))
    return first, second
