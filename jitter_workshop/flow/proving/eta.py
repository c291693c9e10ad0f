"""Estimate the time that a proof still takes."""

from __future__ import annotations

import time
from collections.abc import Callable

from jitter_workshop.flow.proving.proof_plan import CHANGE_S, Drawn, run_seconds
from jitter_workshop.model.proof import PLACEMENT


class Times:
    """Estimate at first, then use the times that runs and changes took."""

    def __init__(self, drawn: Drawn) -> None:
        self._of = 2 * drawn.plan.rounds
        self._run_s = run_seconds(drawn.sides.request("with"))[1]
        self._change_s = CHANGE_S if drawn.plan.subject != PLACEMENT else 0.0
        self._runs: list[float] = []
        self._changes: list[float] = []

    def changed(self, change: Callable[[], None]) -> None:
        began = time.monotonic()
        change()
        self._changes.append(time.monotonic() - began)

    def ran(self, seconds: float) -> None:
        self._runs.append(seconds)

    def left(self, done: int) -> float:
        """Return the seconds that remain when run ``done`` begins."""
        run_s = sum(self._runs) / len(self._runs) if self._runs else self._run_s
        change_s = 2 * sum(self._changes) / len(self._changes) if self._changes else self._change_s
        return (self._of - done) * (run_s + change_s / 2)
