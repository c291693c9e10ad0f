"""Measure on a thread beside the screen, so that the screen does not disturb the measurement.

The runner calls the observer between blocks. The observer posts the block's result. Then it waits until the frame with
that result is painted and every other thread sleeps. Only then it returns, and the next block begins. While a block
runs, the screen has nothing to do.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from textual.message import Message
from textual.message_pump import MessagePump

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.model.observe import Progress, RunStarted
from jitter_workshop.model.run import Run

PAINT_LIMIT_S = 2.0
"""The longest wait for a frame, in seconds: a stopped terminal or a closing screen does not hold up the run."""

QUIET_S = 0.025
QUIET_LIMIT_S = 0.5
"""Seconds without CPU use by the screen's threads before the next block, and the limit of this wait. After a frame is
painted, the screen may still lay out or write."""


def wait_until_others_sleep(stopping: Callable[[], bool] = lambda: False) -> bool:
    """Wait until no other thread of this process uses a CPU. Return False if one still does at the limit, or when
    ``stopping``."""
    limit = time.monotonic() + QUIET_LIMIT_S
    while time.monotonic() < limit and not stopping():
        before = time.process_time_ns() - time.thread_time_ns()
        time.sleep(QUIET_S)
        # The two clocks are read one after the other, so they differ by the reading's time; a frame's work is a hundred
        # times that.
        if time.process_time_ns() - time.thread_time_ns() - before < 50_000:
            return True
    return False


@dataclass
class Queued(Message):
    """Report that the run waits for another measurement on this host. ``sentence`` names it; "" once the turn has
    come."""

    sentence: str


@dataclass
class Calibrated(Message):
    """Report that the child is ready and about to measure."""

    event: RunStarted


@dataclass
class BlockMeasured(Message):
    """Report that a block is done. The handler sets ``painted`` once its frame is on the terminal."""

    progress: Progress
    painted: threading.Event


@dataclass
class RunDone(Message):
    """Report a run that came to its end, or was stopped after some blocks (``run.complete`` is False). ``slot``: None
    for a run that belongs to no step."""

    slot: str | None
    run: Run


@dataclass
class RunFailed(Message):
    """Report that the run failed."""

    error: WorkshopError


class Watching:
    """Observe a measurement on a thread, and stop it. The runner calls this observer. Thread-safe."""

    def __init__(self, target: MessagePump) -> None:
        self.cancel = CancelToken()
        self.progress: Progress | None = None
        self.started_event: RunStarted | None = None
        self.waiting = ""
        """A sentence on the measurement that it waits for; "" while it does not wait."""
        self.suspended = False
        """True after it was asked to stop together with this process, until it goes on."""
        self._target = target
        self._painted = threading.Event()

    def queued(self, sentence: str) -> None:
        self._target.post_message(Queued(sentence))

    def started(self, event: RunStarted) -> None:
        self._target.post_message(Calibrated(event))

    def block_done(self, progress: Progress) -> None:
        self.show(BlockMeasured(progress, self._painted))

    def show(self, message: Message) -> None:
        """Post a message with the event ``_painted``. Wait until its frame is on the terminal and all is quiet."""
        if self.stopping or self.suspended:
            return
        self._painted.clear()
        if self._target.post_message(message):
            self._painted.wait(PAINT_LIMIT_S)
            wait_until_others_sleep(lambda: self.stopping)

    @property
    def stopping(self) -> bool:
        """Return True if it was asked to end."""
        return self.cancel.reason is not None

    def stop(self) -> None:
        """Ask it to end now, without waiting. Finished blocks are kept."""
        self.cancel.cancel()
        self._painted.set()

    def suspend(self) -> None:
        """Ask the run to freeze its children and then this process, without waiting. All go on at SIGCONT. The terminal
        has to be given back before."""
        self.suspended = True
        self.cancel.suspend()
        self._painted.set()


class Measuring(Watching):
    """Hold one run under way."""

    def __init__(self, target: MessagePump, slot: str | None, request: MeasureRequest) -> None:
        super().__init__(target)
        self.slot = slot
        self.request = request
