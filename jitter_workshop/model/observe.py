"""How a run tells those who watch it where it is (the same for the screen, the plain walk and headless)."""

from __future__ import annotations

from typing import Protocol

from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.run import Block, Clock, Stall
from jitter_workshop.model.spec import RunSpec


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The child is calibrated and about to measure. ``tids``: thread name → kernel thread id, for tracers."""

    spec: RunSpec
    clock: Clock
    tids: dict[str, int]
    mlocked: bool
    notes: dict[str, str]


@dataclass(frozen=True, slots=True)
class Progress:
    """One more block is done. ``curve``: the main histogram's curve over all blocks so far."""

    block: Block
    done: int
    total: int
    curve: PercentileCurve
    seconds_left: float


class RunObserver(Protocol):
    """Called on the runner's thread, never during a block. The next block begins after ``block_done`` returned."""

    def started(self, event: RunStarted) -> None: ...

    def block_done(self, progress: Progress) -> None: ...


class Witness(Protocol):
    """Whoever records what the host does during blocks. All are called on the runner's thread, none during a block;
    what they raise ends the run like a failure of its child, with the finished blocks kept."""

    def begin(self, pid: int, tids: dict[str, int], clock: Clock) -> None:
        """The child is calibrated; the first block is next."""

    def before_block(self) -> None:
        """A block is about to begin."""

    def after_block(self, block: BlockTimes | None) -> None:
        """It is done; None where it was spoiled and will be measured again."""


class BlockTimes(Protocol):
    """What a witness needs of a block. ``start_ticks`` / ``end_ticks``: of the run's clock; stalls count in ns from the
    block's start."""

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
    """Watches nothing (headless)."""

    def started(self, event: RunStarted) -> None:
        return None

    def block_done(self, progress: Progress) -> None:
        return None
