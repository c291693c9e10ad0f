"""Re-check turn ownership before the first block."""

from __future__ import annotations

from collections.abc import Callable

from jitter_workshop.model.observe import Progress, RunObserver, RunStarted

HoldsTurn = Callable[[], object]
"""A check that raises once the turn is over."""


class TurnGuard:
    """Watch a run, and check the turn once more before its first block. A program can be stopped between taking the
    turn and starting its child (Ctrl-Z, a debugger, a machine out of memory). It may lose the turn meanwhile, and
    another user measures; ``still`` raises then. Later the end of a turn ends the child from outside."""

    def __init__(self, observer: RunObserver, still: HoldsTurn) -> None:
        self._observer = observer
        self._still = still

    def started(self, event: RunStarted) -> None:
        self._still()
        self._observer.started(event)

    def block_done(self, progress: Progress) -> None:
        self._observer.block_done(progress)
