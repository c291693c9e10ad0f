"""Work on a thread beside the screen: slow reading, measuring and proving, without disturbing the measurement.

The runner calls the observer between blocks. The observer has the screen draw the block's result. Then it waits until
that frame is painted and every other thread sleeps. Only then it returns, and the next block begins. While a block
runs, the screen has nothing to do.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from typing import TypeVar, cast

from textual.screen import Screen

from jitter_workshop.bench.cancel import CancelToken, stop_this_process
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.flow.proving.proof_run import ProofStep
from jitter_workshop.model.observe import Progress, RunObserver, RunStarted
from jitter_workshop.model.verdict import Order, Round
from jitter_workshop.stats.verdicts import SoFar, so_far
from jitter_workshop.tui.core.frame import Frame

T = TypeVar("T")

PAINT_LIMIT_S = 2.0
"""The longest wait for a frame, in seconds: a stopped terminal or a closing screen does not hold up the run."""

QUIET_S = 0.025
QUIET_LIMIT_S = 0.5
"""Seconds without CPU use by the screen's threads before the next block, and the limit of this wait. After a frame is
painted, the screen may still lay out or write."""


async def aside(work: Callable[[], T]) -> T:
    """Return the result of ``work``, done on a thread, or raise its error. After cancellation, or when the program
    ends, the thread goes on alone. A thread of an executor would keep the process until it is done."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def ended(setter: Callable[..., None], result: object) -> None:
        if not future.done():
            setter(result)

    def run() -> None:
        # The loop may have ended meanwhile; then the result is dropped.
        with contextlib.suppress(RuntimeError):
            try:
                result = work()
            except Exception as error:
                loop.call_soon_threadsafe(ended, future.set_exception, error)
            else:
                loop.call_soon_threadsafe(ended, future.set_result, result)

    threading.Thread(target=run, name="aside", daemon=True).start()
    return await future


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


class Watching:
    """Observe a measurement on a thread, and stop it. The runner calls this observer; what draws is called on the
    screen's thread.

    ``drawn``: draws everything anew. ``block_drawn``: draws the parts that change with each block. ``tell``: shows a
    sentence above the keys. ``stop``: stops it when the workshop is left; None for :meth:`stop`.
    """

    def __init__(
        self,
        screen: Screen[None],
        drawn: Callable[[], None],
        block_drawn: Callable[[], None],
        tell: Callable[[str], None],
        stop: Callable[[], None] | None = None,
    ) -> None:
        self.cancel = CancelToken()
        self.progress: Progress | None = None
        self.waiting = ""
        """A sentence on the measurement that it waits for; "" while it does not wait."""
        self.in_block = False
        """True while a block is measured: nothing may be painted."""
        self._suspended = False
        """True after it was asked to stop together with this process, until it goes on."""
        self._screen = screen
        self._frame = cast(Frame, screen.app)
        self._drawn = drawn
        self._block_drawn = block_drawn
        self._tell = tell
        self._painted = threading.Event()
        self._frame.begin_run(stop or self.stop, self.suspend, self._goes_on)

    def queued(self, sentence: str) -> None:
        self.waiting = sentence
        self._screen.call_later(self._drawn)

    def started(self, event: RunStarted) -> None:
        self.in_block = True

    def block_done(self, progress: Progress) -> None:
        self.progress = progress
        self.show(self._block_drawn)

    def show(self, draw: Callable[[], None]) -> None:
        """Have the screen draw. Wait until its frame is on the terminal and all is quiet."""
        if self.stopping or self._suspended:
            return
        self._painted.clear()
        if self._screen.call_later(self._draw, draw):
            self._painted.wait(PAINT_LIMIT_S)
            wait_until_others_sleep(lambda: self.stopping)

    def _draw(self, draw: Callable[[], None]) -> None:
        draw()
        self._frame.when_painted(self._screen, self._painted.set)

    @property
    def stopping(self) -> bool:
        """Return True if it was asked to end."""
        return self.cancel.reason is not None

    def stop(self, reason: str = "cancelled") -> None:
        """Ask it to end now, without waiting. Finished blocks are kept. A proof names the ``reason``."""
        self.cancel.cancel(reason)
        self._painted.set()

    def suspend(self) -> None:
        """Ask the run to freeze its children and then this process, without waiting. All go on at SIGCONT. The terminal
        has to be given back before."""
        self._suspended = True
        self.cancel.suspend()
        self._painted.set()

    def _goes_on(self) -> None:
        """Go on after a stop (Ctrl-Z) and SIGCONT."""
        if self._suspended:
            self._suspended = False
            self._screen.call_next(self._tell, "It was stopped and goes on; the part that was cut is measured again.")

    def end(self) -> None:
        """Report to the frame that the work is over."""
        self._frame.end_run()
        if self._suspended:
            # It ended before its runner could act on the request: the terminal is given back already.
            stop_this_process()


class Measuring(Watching):
    """Hold one run under way. ``slot``: None for a run that belongs to no step."""

    def __init__(
        self,
        slot: str | None,
        request: MeasureRequest,
        screen: Screen[None],
        drawn: Callable[[], None],
        block_drawn: Callable[[], None],
        tell: Callable[[str], None],
    ) -> None:
        super().__init__(screen, drawn, block_drawn, tell)
        self.slot = slot
        self.request = request


class Proving(Watching):
    """Hold a proof under way. The prover calls this observer between runs, and the runner between blocks.

    ``step``: the run under way. ``seen``: the figures of the rounds so far, and their ``orders``. ``gives_back``:
    no further run follows, and settings are given back.
    """

    def __init__(
        self,
        workload: str,
        left_s: float,
        screen: Screen[None],
        drawn: Callable[[], None],
        block_drawn: Callable[[], None],
        tell: Callable[[str], None],
        stop: Callable[[], None],
    ) -> None:
        super().__init__(screen, drawn, block_drawn, tell, stop)
        self.step: ProofStep | None = None
        self.seen: SoFar | None = None
        self.orders: tuple[Order, ...] = ()
        self.gives_back = False
        self._workload = workload
        self._left_s, self._left_at = left_s, time.monotonic()

    @property
    def left_s(self) -> float:
        """Return the estimated seconds that it will still take."""
        return max(self._left_s - (time.monotonic() - self._left_at), 0.0)

    def side_begins(self, step: ProofStep) -> RunObserver:
        self.in_block, self.progress, self.step = False, None, step
        self._left_s, self._left_at = step.left_s, time.monotonic()
        self.show(self._drawn)
        return self

    def round_done(self, rounds: tuple[Round, ...], planned: int, left_s: float) -> None:
        self.in_block = False
        self.seen, self.orders = so_far(rounds, self._workload), tuple(one.order for one in rounds)
        self._left_s, self._left_at = left_s, time.monotonic()
        self.show(self._drawn)

    def restoring(self) -> None:
        self.in_block, self.gives_back = False, True
        self._screen.call_later(self._drawn)
