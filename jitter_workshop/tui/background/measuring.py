"""A run in a thread beside the screen, arranged so that the screen does not disturb what is measured.

The runner calls the observer between blocks. The observer posts what was measured and waits until the frame that shows
it was painted and every other thread has gone to sleep; only then does it return, and the next block begins. While a
block runs the screen has nothing to do.
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
"""A frame that takes longer (a stopped terminal, a closing screen) does not hold up the run."""

QUIET_S = 0.025
QUIET_LIMIT_S = 0.5
"""Once painted, the screen may still lay out or write: it is waited for until it used no CPU for this long."""


def wait_until_others_sleep(stopping: Callable[[], bool] = lambda: False) -> bool:
    """Wait until no other thread of this process uses its CPUs; False where one still does after a while."""
    limit = time.monotonic() + QUIET_LIMIT_S
    while time.monotonic() < limit and not stopping():
        before = time.process_time_ns() - time.thread_time_ns()
        time.sleep(QUIET_S)
        # Two clocks, read one after the other, differ by the readings; the work of a frame is a hundred times that.
        if time.process_time_ns() - time.thread_time_ns() - before < 50_000:
            return True
    return False


@dataclass
class Queued(Message):
    """Somebody else measures on this host: ``sentence`` says who; "" once the turn has come."""

    sentence: str


@dataclass
class Calibrated(Message):
    """The child is ready and about to measure."""

    event: RunStarted


@dataclass
class BlockMeasured(Message):
    """A block is done; the handler sets ``painted`` once its frame is on the terminal."""

    progress: Progress
    painted: threading.Event


@dataclass
class RunDone(Message):
    """The run came to its end, or was stopped after some blocks (``run.complete`` is False). ``slot``: None for a run
    that is of no step."""

    slot: str | None
    run: Run


@dataclass
class RunFailed(Message):
    """There is no run."""

    error: WorkshopError


class Watching:
    """What is measured on a thread: the observer that the runner calls, and the way to stop it. Thread-safe."""

    def __init__(self, target: MessagePump) -> None:
        self.cancel = CancelToken()
        self.progress: Progress | None = None
        self.started_event: RunStarted | None = None
        self.waiting = ""
        """Behind whom it waits, in a sentence."""
        self.suspended = False
        """Was it asked to stop, together with this process, and did not go on yet?"""
        self._target = target
        self._painted = threading.Event()

    def queued(self, sentence: str) -> None:
        self._target.post_message(Queued(sentence))

    def started(self, event: RunStarted) -> None:
        self._target.post_message(Calibrated(event))

    def block_done(self, progress: Progress) -> None:
        self.show(BlockMeasured(progress, self._painted))

    def show(self, message: Message) -> None:
        """Post what holds the event ``_painted``, and wait until its frame is on the terminal and all is quiet."""
        if self.stopping or self.suspended:
            return
        self._painted.clear()
        if self._target.post_message(message):
            self._painted.wait(PAINT_LIMIT_S)
            wait_until_others_sleep(lambda: self.stopping)

    @property
    def stopping(self) -> bool:
        """Was it asked to end?"""
        return self.cancel.reason is not None

    def stop(self) -> None:
        """Ask it to end now; never waits. What is finished is kept."""
        self.cancel.cancel()
        self._painted.set()

    def suspend(self) -> None:
        """Ask the run to freeze its children and then this process, which all go on at SIGCONT; never waits. The
        terminal has to be given back before."""
        self.suspended = True
        self.cancel.suspend()
        self._painted.set()


class Measuring(Watching):
    """One run under way."""

    def __init__(self, target: MessagePump, slot: str | None, request: MeasureRequest) -> None:
        super().__init__(target)
        self.slot = slot
        self.request = request
