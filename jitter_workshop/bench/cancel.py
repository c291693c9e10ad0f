"""Stop or suspend a run from another thread or from a signal handler."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import weakref
from collections.abc import Iterator
from types import FrameType

_SUSPEND = b"z"
_CANCEL = b"c"


class CancelToken:
    """Hold the request to stop or suspend one run.

    The runner polls :meth:`fileno`. All methods may be called from any thread and from a signal handler. If the stop is
    requested before the run begins, the run stops at once.
    """

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._reason: str | None = None
        self._finalizer = weakref.finalize(self, _close, self._reader, self._writer)

    @property
    def reason(self) -> str | None:
        """Return the reason why the run has to stop; None if the run may go on."""
        return self._reason

    def cancel(self, reason: str = "cancelled") -> None:
        """Ask the run to stop; its finished blocks are kept. After several calls, the first ``reason`` counts."""
        if self._reason is None:
            self._reason = reason
        self._press(_CANCEL)

    def suspend(self) -> None:
        """Ask the runner to suspend the measuring child and then this process, as Ctrl-Z does.

        Both processes continue at SIGCONT. The interrupted block is measured again.
        """
        self._press(_SUSPEND)

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when a stop or a suspension is requested."""
        return self._reader

    def take_suspend(self) -> bool:
        """Return True if :meth:`suspend` was called since the last call of this method."""
        with contextlib.suppress(BlockingIOError):
            return _SUSPEND in os.read(self._reader, 4096)
        return False

    def wait(self, timeout_s: float) -> bool:
        """Wait up to ``timeout_s`` for a stop or a suspension. Return True if the run has to stop."""
        if self._reason is None and timeout_s > 0:
            poller = select.poll()
            poller.register(self._reader, select.POLLIN)
            poller.poll(timeout_s * 1000)
        return self._reason is not None

    def close(self) -> None:
        """Close the token's pipe. After this call, :meth:`cancel` and :meth:`suspend` no longer wake the runner."""
        self._finalizer()

    def _press(self, key: bytes) -> None:
        if self._finalizer.alive:
            # A full pipe already holds enough requests.
            with contextlib.suppress(BlockingIOError):
                os.write(self._writer, key)


@contextlib.contextmanager
def stopped_by_signals(token: CancelToken) -> Iterator[list[int]]:
    """During the context, let SIGHUP, SIGINT and SIGTERM stop a run, and SIGTSTP suspend it.

    Yield the list of the received stop signals; the list grows during the context. A signal that this process ignores
    stays ignored.
    """
    received: list[int] = []

    def stop(signum: int, _frame: FrameType | None) -> None:
        received.append(signum)
        token.cancel(signal.Signals(signum).name)

    def suspend(_signum: int, _frame: FrameType | None) -> None:
        token.suspend()

    wanted = {signal.SIGHUP: stop, signal.SIGINT: stop, signal.SIGTERM: stop, signal.SIGTSTP: suspend}
    before = {signum: signal.getsignal(signum) for signum in wanted}
    for signum, handler in wanted.items():
        if before[signum] is not signal.SIG_IGN:
            signal.signal(signum, handler)
    try:
        yield received
    finally:
        for signum, old in before.items():
            signal.signal(signum, old)


def stop_this_process() -> None:
    """Stop this process, with all its threads, until SIGCONT comes.

    The signal goes to the calling thread, so that this thread stops at once (signal(7)).
    """
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
