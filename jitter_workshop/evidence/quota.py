"""Find the waits in which a program's control group was stopped because its CPU quota was used up.

The kernel has no event for such a stop, but it has one for the timer that begins a group's next period
(``sched_cfs_period_timer``). The trace also shows how long the program's threads ran. If a group has run for its whole
quota since the last such timer, its threads are stopped until the next timer (Documentation/scheduler/sched-bwc.rst).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate

from jitter_workshop.evidence.tracks import RUNS, ThreadTrack
from jitter_workshop.model.trace import EventFields

PERIOD_TIMER = "sched_cfs_period_timer"
SLICE_NS = 5_000_000
"""The part of a quota that each CPU may hold and not use (``sched_cfs_bandwidth_slice_us``)."""


class Stops:
    """Find the times in which the groups of the threads ``tracks`` were stopped. ``quota``: the groups' quota and its
    period, in ns. If several groups have timers, or other threads use the quota, too, some stopped waits are missed.
    All waits that are found were really stopped."""

    def __init__(self, events: Iterable[EventFields], tracks: Iterable[ThreadTrack], quota: tuple[int, int]) -> None:
        quota_ns, self._period = quota
        self._periods = [event[0] for event in events if event[2] == "timer_entry" and event[7] == PERIOD_TIMER]
        ran = [(one.start, one.end, one.cpu) for track in tracks for one in track.stretches if one.state == RUNS]
        held_back = len({cpu for _, _, cpu in ran}) * SLICE_NS
        self._least = max(quota_ns - held_back, quota_ns // 2, 1)
        self._starts = sorted(start for start, _, _ in ran)
        self._ends = sorted(end for _, end, _ in ran)
        self._started = [0, *accumulate(self._starts)]
        self._ended = [0, *accumulate(self._ends)]

    def until(self, start: int, end: int) -> int | None:
        """Return the time until which a thread was stopped because the quota was used up. The thread waited from
        ``start`` to ``end``. Return None if it was not stopped, or if the trace does not show it."""
        place = bisect_right(self._periods, start)
        if place == len(self._periods) or self._periods[place] > end:
            return None
        # Before the first timer of the trace there was one a period earlier, or the group's first period began.
        began = self._periods[place - 1] if place else self._periods[0] - self._period
        ran = self._ran_before(start) - self._ran_before(began)
        return self._periods[place] if ran >= self._least else None

    def _ran_before(self, moment: int) -> int:
        """Return the sum of the times for which the program's threads ran before a moment."""
        began, ended = bisect_left(self._starts, moment), bisect_left(self._ends, moment)
        # The threads that still run then have run until that moment.
        return self._ended[ended] - self._started[began] + (began - ended) * moment
