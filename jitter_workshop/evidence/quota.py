"""Find the times in which a program waited because its CPU quota was used up.

A control group that has used up its quota waits for its next period (Documentation/scheduler/sched-bwc.rst). The kernel
has no trace event for this stop. It has a trace event for the timer at the beginning of each period
(``sched_cfs_period_timer``). The trace also shows how long the program's threads ran. If they ran for the whole quota
since the last timer, the stop lasts until the next timer.
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
    """Find the times in which a CPU quota stopped the threads of ``tracks``. ``quota``: the quota and its period, in
    ns. Some stops are missed if several groups have timers, or if other threads use the same quota. Each stop that is
    found is real."""

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
        """Return the time until which the CPU quota stopped a thread. The thread waited from ``start`` to ``end``.
        Return None if the quota did not stop the thread, or if the trace does not show a stop."""
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
