"""Define how a run reports its progress to observers (the same for the screen, the plain walk and headless)."""

from __future__ import annotations

from typing import Protocol

from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.run import Block, Clock
from jitter_workshop.model.spec import RunSpec


@dataclass(frozen=True, slots=True)
class RunStarted:
    """Hold the facts of a calibrated child that is about to measure. ``tids``: thread name → kernel thread id, for the
    trace.
    """

    spec: RunSpec
    clock: Clock
    tids: dict[str, int]
    mlocked: bool
    notes: dict[str, str]


@dataclass(frozen=True, slots=True)
class Progress:
    """Hold the state after one more block. ``curve``: the main histogram's curve over all blocks so far."""

    block: Block
    done: int
    total: int
    curve: PercentileCurve
    seconds_left: float


class RunObserver(Protocol):
    """Receive a run's progress on the runner's thread, never during a block. The next block begins after ``block_done``
    returned."""

    def started(self, event: RunStarted) -> None: ...

    def block_done(self, progress: Progress) -> None: ...


class SilentObserver:
    """Ignore all events (headless)."""

    def started(self, event: RunStarted) -> None:
        return None

    def block_done(self, progress: Progress) -> None:
        return None
