"""Do slow work on a thread. So the screen stays usable, and no measurement is disturbed.

The runner calls the observer between two blocks. The observer makes the screen draw the result of the block. Then the
observer waits until the frame is painted and every other thread sleeps. Only then does the observer return, and the
next block begins. During a block, the screen has nothing to do.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, cast

from textual.screen import Screen

from jitter_workshop.bench.cancel import CancelToken, stop_this_process
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.flow.proving.proof_run import ProofStep
from jitter_workshop.model.run import Progress, RunObserver, RunStarted
from jitter_workshop.model.verdict import Order, Round
from jitter_workshop.stats.verdicts import SoFar, ratios_so_far
from jitter_workshop.tui.core.frame import Frame

T = TypeVar("T")

PAINT_LIMIT_S = 2.0
"""The longest wait for a frame, in seconds, so that a stopped terminal or a closing screen does not hold up the run."""

QUIET_S = 0.025
QUIET_LIMIT_S = 0.5
"""The longest wait before a block, in seconds. The block waits until no thread of the screen has used a CPU for QUIET_S
seconds. Without this wait, the screen could still lay out or write during the block."""


async def aside(work: Callable[[], T]) -> T:
    """Do ``work`` on a thread, and return its result or raise its error. If the caller is cancelled or the program
    ends, the program does not wait for the thread. An executor would wait for it.
    """
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
    """Wait until no other thread of this process uses a CPU. Return False if a thread still uses a CPU after
    QUIET_LIMIT_S seconds. Return False earlier if ``stopping()`` returns True."""
    limit = time.monotonic() + QUIET_LIMIT_S
    while time.monotonic() < limit and not stopping():
        before = time.process_time_ns() - time.thread_time_ns()
        time.sleep(QUIET_S)
        # The two clocks are read one after the other, so they differ by the reading's time; a frame's work is a hundred
        # times that.
        if time.process_time_ns() - time.thread_time_ns() - before < 50_000:
            return True
    return False


@dataclass(eq=False, kw_only=True)
class Watching:
    """Observe a measurement that runs on a thread, and stop the measurement on request.

    The runner calls the methods of this object on the measurement's thread. The functions ``drawn``, ``block_drawn``
    and ``tell`` are called on the screen's thread. ``drawn``: draws the screen anew. ``block_drawn``: draws the parts
    that change with each block. ``tell``: shows a sentence above the keys. ``left``: a function that stops the
    measurement when the user leaves. None means that :meth:`stop` is called.
    """

    screen: Screen[None]
    drawn: Callable[[], None]
    block_drawn: Callable[[], None]
    tell: Callable[[str], None]
    left: Callable[[], None] | None = None

    cancel: CancelToken = field(default_factory=CancelToken, init=False)
    progress: Progress | None = field(default=None, init=False)
    waiting: str = field(default="", init=False)
    """The reason why the measurement waits, as a sentence; "" while it does not wait."""
    in_block: bool = field(default=False, init=False)
    """True while a block is measured: nothing may be painted."""
    _suspended: bool = field(default=False, init=False)
    """True from the request to suspend the measurement until the measurement continues."""
    _painted: threading.Event = field(default_factory=threading.Event, init=False)

    def __post_init__(self) -> None:
        self._frame = cast(Frame, self.screen.app)
        self._frame.begin_run(self.left or self.stop, self.suspend, self._goes_on)

    def queued(self, sentence: str) -> None:
        self.waiting = sentence
        self.screen.call_later(self.drawn)

    def started(self, event: RunStarted) -> None:
        self.in_block = True

    def block_done(self, progress: Progress) -> None:
        self.progress = progress
        self.show(self.block_drawn)

    def show(self, draw: Callable[[], None]) -> None:
        """Make the screen call ``draw``. Wait until the new frame is on the terminal and all other threads sleep."""
        if self.stopping or self._suspended:
            return
        self._painted.clear()
        if self.screen.call_later(self._draw, draw):
            self._painted.wait(PAINT_LIMIT_S)
            wait_until_others_sleep(lambda: self.stopping)

    def _draw(self, draw: Callable[[], None]) -> None:
        draw()
        self._frame.when_painted(self.screen, self._painted.set)

    @property
    def stopping(self) -> bool:
        """Return True if the measurement was asked to end."""
        return self.cancel.reason is not None

    def stop(self, reason: str = "cancelled") -> None:
        """Ask the measurement to end now, and return at once. Finished blocks are kept. ``reason``: why the
        measurement ends. A proof that stops for this reason shows it to the user.
        """
        self.cancel.cancel(reason)
        self._painted.set()

    def suspend(self) -> None:
        """Ask the run to freeze its children and then this process, and return at once. SIGCONT makes all these
        processes go on. Before this call, the caller must restore the terminal's normal state.
        """
        self._suspended = True
        self.cancel.suspend()
        self._painted.set()

    def _goes_on(self) -> None:
        """Continue after a stop (Ctrl-Z) and SIGCONT."""
        if self._suspended:
            self._suspended = False
            self.screen.call_next(
                self.tell, "The run was suspended and goes on; the interrupted block is measured again."
            )

    def end(self) -> None:
        """Tell the app (``Frame``) that the measurement is over."""
        self._frame.end_run()
        if self._suspended:
            # It ended before its runner could act on the request: the terminal is given back already.
            stop_this_process()


@dataclass(eq=False, kw_only=True)
class Measuring(Watching):
    """Hold the run that is being made. ``slot``: the chapter's step for which the run is kept; None if the chapter
    does not keep the run.
    """

    slot: str | None
    request: MeasureRequest


@dataclass(eq=False, kw_only=True)
class Proving(Watching):
    """Observe a proof that is being made, and hold its progress.

    The prover calls this observer between runs; the runner calls it between blocks. ``step``: the present run.
    ``seen``: the figures of the finished rounds. ``orders``: the order of the runs in each finished round.
    ``gives_back``: True after the end of the last run, while the settings are being restored. ``ends_at``: the
    estimated end, in seconds of the monotonic clock.
    """

    workload: str
    ends_at: float
    step: ProofStep | None = field(default=None, init=False)
    seen: SoFar | None = field(default=None, init=False)
    orders: tuple[Order, ...] = field(default=(), init=False)
    gives_back: bool = field(default=False, init=False)

    @property
    def left_s(self) -> float:
        """Return the estimated number of seconds until the proof ends."""
        return max(self.ends_at - time.monotonic(), 0.0)

    def side_begins(self, step: ProofStep) -> RunObserver:
        self.in_block, self.progress, self.step = False, None, step
        self.ends_at = time.monotonic() + step.left_s
        self.show(self.drawn)
        return self

    def round_done(self, rounds: tuple[Round, ...], planned: int, left_s: float) -> None:
        self.in_block = False
        self.seen, self.orders = ratios_so_far(rounds, self.workload), tuple(one.order for one in rounds)
        self.ends_at = time.monotonic() + left_s
        self.show(self.drawn)

    def restoring(self) -> None:
        self.in_block, self.gives_back = False, True
        self.screen.call_later(self.drawn)
