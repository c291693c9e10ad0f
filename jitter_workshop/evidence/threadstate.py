"""Follow one measured thread's state event by event: it runs, is ready, sleeps, or is on its way to another CPU."""

from __future__ import annotations

from collections.abc import Collection

from jitter_workshop.evidence.tracks import ASLEEP, ELSEWHERE, MOVING, READY, RUNS, UNSEEN, WOKEN, Stretch, ThreadTrack


class ThreadState:
    __slots__ = ("_roused", "_woken", "cpu", "detail", "faults", "kinds", "name", "since", "state", "stretches", "tid")

    def __init__(self, name: str, tid: int, begin: int) -> None:
        self.name, self.tid, self.since = name, tid, begin
        self.state, self.cpu, self.detail = UNSEEN, -1, ""
        self.stretches: list[Stretch] = []
        self.faults: list[int] = []
        self.kinds: list[str] = []
        self._woken = False
        self._roused = False

    def _to(self, ts: int, state: str, cpu: int, detail: str = "") -> None:
        if ts > self.since:
            self.stretches.append(Stretch(self.since, ts, self.state, self.cpu, self.detail))
            self.since = ts
        self.state, self.cpu, self.detail = state, cpu, detail

    def was_there(self, ts: int, cpu: int) -> None:
        """Set the thread as running since the trace began, as the first event of a CPU shows."""
        if self.state == UNSEEN and not self.stretches:
            self.state, self.cpu = RUNS, cpu

    def switched_in(self, ts: int, cpu: int) -> None:
        if self.state == ASLEEP and self._roused:
            # The waking event was stamped before the thread had left its own CPU: it never slept.
            self.state, self.detail = READY, WOKEN
        self._to(ts, RUNS, cpu)
        self._woken = self._roused = False

    def switched_out(self, ts: int, cpu: int, ready: bool) -> None:
        if self.state != RUNS or self.cpu != cpu:
            self.state, self.cpu, self.detail = UNSEEN, cpu, ""
        self._to(ts, READY if ready else ASLEEP, cpu)
        self._woken = False

    def woken(self, ts: int, cpu: int) -> None:
        if self.state == ASLEEP:
            self._to(ts, READY, cpu, WOKEN)
            self._woken = True
        else:
            self._roused = True

    def moved(self, ts: int, cpu: int, who: str, traced: Collection[int]) -> None:
        if cpu not in traced:
            self._to(ts, ELSEWHERE, cpu, who)
        elif self.state == ASLEEP or (self.state == READY and self._woken):
            # The scheduler chose the CPU to wake it on: its wait there is caused by that CPU.
            self._to(ts, self.state, cpu, self.detail)
        else:
            self._to(ts, MOVING, cpu, who)

    def lost_sight(self, ts: int) -> None:
        self._to(ts, UNSEEN, self.cpu)

    def track(self, end: int, blind: dict[int, int]) -> ThreadTrack:
        """Return the whole track until ``end``. ``blind``: CPU → time from which on the trace had no room."""
        if self.cpu in blind:
            self._to(max(blind[self.cpu], self.since), UNSEEN, self.cpu)
        self._to(end, UNSEEN, self.cpu)
        return ThreadTrack(self.name, self.tid, self.stretches, self.faults, self.kinds)
