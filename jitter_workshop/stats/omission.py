"""Find a run in which far fewer messages were sent than planned, because a measured thread was stopped for long.

The ring's producer plans one message for each interval. While a thread is stopped, no message is sent, so the curve has
few values of this time. In such a run the percentiles look far too good (coordinated omission), and a count that grows
with the messages is too low.
"""

from __future__ import annotations

from jitter_workshop.stats.figures import INTENDED, LATENCIES, KnownRun

LEAST_SENT = 0.9
"""A run with a smaller share of its planned messages does not show how long the messages had to wait."""
_BY_STALLS = 0.5
"""The least share of the missing messages that the time in stalls must explain. A thread that is only slow, and never
stopped, also sends fewer messages."""
BY_MESSAGE = frozenset(("faults", "write-calls"))
"""The ids of the figures that grow with the number of messages."""
WITHOUT_WAITS = frozenset(LATENCIES)
"""The ids of the latencies that leave out the waits for a stopped thread."""


def sent_share(seen: KnownRun) -> float | None:
    """Return the share of the planned messages that a run of the ring sent, from 0 to less than LEAST_SENT. Return None
    if the run sent more, if no stalls explain the missing messages, or if the share is not known."""
    run, main = seen.run, seen.run.main_summary
    if seen.recorded is not None or seen.timeless or run.workload != "ring" or main is None:
        return None
    if run.interval_ns <= 0 or run.duration_s <= 0:
        return None
    share = main.count * run.interval_ns / (run.duration_s * 1e9)
    stopped = run.stalls.stolen_ns_per_second / 1e9
    return share if share < LEAST_SENT and stopped >= _BY_STALLS * (1 - share) else None


def share_told(share: float) -> str:
    """Return a share of :func:`sent_share` in words: ``9 %`` or ``less than 1 %``."""
    return f"{min(round(100 * share), 89)} %" if share >= 0.01 else "less than 1 %"


def p999_with_waits(seen: KnownRun) -> int | None:
    """Return p99.9 in ns with the waits that the curve leaves out. Return None if the run does not have this value.

    With the pacing ``schedule``, each message counts from its due time. With ``spin`` no message has a due time, and
    the messages that are missing in the producer's gaps are added (docs/measuring.md).
    """
    found = seen.run.histograms.get(INTENDED)
    return None if found is None else found.percentiles.get("99.9")
