"""Define how a run reports its progress to observers (the same for the screen, the plain walk and headless)."""

from __future__ import annotations

from typing import Protocol

from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.run import Block, Clock, Stall
from jitter_workshop.model.spec import RunSpec


@dataclass(frozen=True, slots=True)
class RunStarted:
    """Hold the facts of a calibrated child that is about to measure. ``tids``: thread name → kernel thread id, for
    tracers."""

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


class Witness(Protocol):
    """Record the host's activity during blocks. All methods are called on the runner's thread, none during a block. An
    exception from them ends the run like a failure of its child, with the finished blocks kept."""

    def begin(self, pid: int, tids: dict[str, int], clock: Clock) -> None:
        """Begin after the child is calibrated; the first block is next."""

    def before_block(self) -> None:
        """Prepare for a block that is about to begin."""

    def after_block(self, block: BlockTimes | None) -> None:
        """Take a finished block; None where it was spoiled and will be measured again."""


class BlockTimes(Protocol):
    """Give a witness the times of a block. ``start_ticks`` / ``end_ticks``: of the run's clock. Stalls count in ns from
    the block's start."""

    @property
    def index(self) -> int: ...
    @property
    def start_ns(self) -> int: ...
    @property
    def end_ns(self) -> int: ...
    @property
    def start_ticks(self) -> int: ...
    @property
    def end_ticks(self) -> int: ...
    @property
    def stalls(self) -> tuple[Stall, ...]: ...
    @property
    def unlisted(self) -> int: ...


class SilentObserver:
    """Ignore all events (headless)."""

    def started(self, event: RunStarted) -> None:
        return None

    def block_done(self, progress: Progress) -> None:
        return None
