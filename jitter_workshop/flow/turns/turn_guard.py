"""A run that begins only in one's own turn."""

from __future__ import annotations

from collections.abc import Callable

from jitter_workshop.model.observe import Progress, RunObserver, RunStarted

HoldsTurn = Callable[[], object]
"""Raises once the turn is over."""


class TurnGuard:
    """Watches a run, and asks once more before its first block: a program that was stopped (Ctrl-Z, a debugger, a
    machine out of memory) between having the turn and having its child may have lost it, and somebody else measures.
    ``still`` raises then; afterwards the end of a turn ends the child from outside."""

    def __init__(self, observer: RunObserver, still: HoldsTurn) -> None:
        self._observer = observer
        self._still = still

    def started(self, event: RunStarted) -> None:
        self._still()
        self._observer.started(event)

    def block_done(self, progress: Progress) -> None:
        self._observer.block_done(progress)
