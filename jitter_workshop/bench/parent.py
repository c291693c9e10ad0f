"""Hold a child's end of the pipes to its parent, and run a child from its first message to its end."""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from jitter_workshop.bench import protocol
from jitter_workshop.bench.native import die_with_parent
from jitter_workshop.bench.protocol import Failed
from jitter_workshop.errors import MeasureError, WorkshopError
from jitter_workshop.model.codec import CodecError, from_plain

NOT_UNDERSTOOD = "did not understand a message"
M = TypeVar("M")

PATIENCE_S = 30
"""The time in s for which a child waits for an answer. Then the child ends, because a parent that is stopped never
closes its pipes."""

_STACK_BYTES = 256 * 1024
_LONGEST_LINE = 1 << 20


class Silence(MeasureError):
    """Report that the parent sent no message within the expected time."""


class Parent:
    """Hold the pipes from the parent and to the parent. Other code's output to stdout is redirected to stderr.

    ``name``: the name of this process in messages.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._out = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def listen(self) -> None:
        """Begin to read stdin on a thread of its own, with a small stack (all memory is locked)."""
        threading.stack_size(_STACK_BYTES)
        threading.Thread(target=self._read, name="parent", daemon=True).start()

    def say(self, kind: str, payload: Any = None) -> None:
        rest = memoryview(protocol.message_line(kind, payload))
        while rest:
            rest = rest[self._out.write(rest) :]

    def hear(self, waits_s: Sequence[float] = (1.0,) * PATIENCE_S) -> tuple[str, Any]:
        """Return the kind and the data of the parent's next message.

        ``waits_s``: the lengths of several waits in seconds, one after the other. Their sum is the time limit. If this
        child is stopped (SIGSTOP), even a long stop uses up only one of the waits. Raise Silence if no message comes in
        time. Raise CodecError if a line is not a message.
        """
        for wait_s in waits_s:
            with contextlib.suppress(queue.Empty):
                return protocol.parse_message(self._lines.get(timeout=wait_s))
        raise Silence(f"{self.name} got no message from its parent for {sum(waits_s):.0f} s and ended")

    def _read(self) -> None:
        last = b""
        with contextlib.suppress(OSError, ValueError):
            while line := sys.stdin.buffer.readline(_LONGEST_LINE):
                self._lines.put(line)
                last = line
        # After the message "end" this process ends by itself, once it has waited for its own child. Else the parent has
        # gone, so no result is needed; no file has a name, so none is left behind.
        if last != protocol.message_line("end"):
            os._exit(0)


def serve_parent(name: str, kind: str, message: type[M], work: Callable[[Parent, M], None]) -> NoReturn:
    """Run this child process: read the first message, call ``work`` with it, and exit.

    ``name``: the child's name in messages. ``kind``, ``message``: the kind and the type of the first message. After an
    error, the child reports it to the parent and exits with status 2. The child also exits if its parent ends or its
    stdin is closed.
    """
    parent = Parent(name)
    status, failed = 2, None
    try:
        die_with_parent()
        parent.listen()
        heard, data = parent.hear()
        if heard != kind:
            raise CodecError(f"the message '{heard}' came instead of '{kind}'")
        work(parent, from_plain(message, data))
        status = 0
    except WorkshopError as error:
        failed = Failed(error.message, error.advice)
    except CodecError as error:
        failed = Failed(f"{name} {NOT_UNDERSTOOD} of its parent: {error}")
    except BrokenPipeError:
        pass
    except Exception as error:
        traceback.print_exc()
        failed = Failed(f"{name} failed: {type(error).__name__}: {error}")
    if failed is not None:
        # A parent that has gone needs no reason.
        with contextlib.suppress(OSError):
            parent.say("failed", failed)
    sys.stderr.flush()
    # Not sys.exit: the thread that waits for the parent would hold the interpreter's lock on stdin.
    os._exit(status)
