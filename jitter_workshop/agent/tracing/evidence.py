"""Serve the agent's verb ``evidence``: record the kernel's trace during a caller's measurement (``capture``)."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from jitter_workshop.agent import policy, protocol
from jitter_workshop.agent.caller_process import HeldProcess
from jitter_workshop.agent.tracing import instances
from jitter_workshop.agent.tracing.capture import BUFFER_KB, LEAST_KB, NEVER, Capture, newest_thread
from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.host.root import HostRoot, line_value
from jitter_workshop.model.program import MOST_PROCESSES
from jitter_workshop.model.text import WORD
from jitter_workshop.model.trace import TraceInfo
from jitter_workshop.tuning.writer import HostWriter

CLOCKS = ("x86-tsc", "mono")
MAX_THREADS = 64
MAX_FOLLOWED = 16_384
"""The largest number of threads in a followed program's processes at the beginning."""
PIECE_BYTES = 512 << 10
"""The size of a piece of the trace: an answer is one line, and lines are at most 1 MiB."""


class ConnectionCapture:
    """Hold the capture of one connection, if the connection has begun one. All methods raise HostError on failure."""

    def __init__(self, root: HostRoot, writer: HostWriter, top: str, uid: int) -> None:
        self._root = root
        self._writer = writer
        self._top = top.rstrip("/")
        self._uid = uid
        self._capture: Capture | None = None
        self._pieces: list[bytes] = []

    def answer(self, request: dict[str, Any]) -> Any:
        """Answer an ``evidence`` request as ``protocol`` describes.

        Raise UsageError if the request is invalid, or if it needs a recording and none was prepared.
        """
        step = protocol.text(request, "do", WORD)
        if step == "begin":
            return self._begin(request)
        if step not in ("start", "drain", "read", "piece", "end"):
            raise UsageError("'do' must be begin, start, drain, read, piece or end")
        if self._capture is None:
            raise UsageError("this connection records no trace", "send 'begin' first")
        if step == "start":
            self._pieces = []
            self._capture.start()
            return {}
        if step == "drain":
            kept, ended = self._capture.drain()
            return {"kept_bytes": kept, "ended": ended}
        if step == "read":
            since = protocol.number_field(request, "since", NEVER) if request.get("since") is not None else 0
            found, lost, elsewhere, whole_from = self._capture.read(since)
            self._pieces = [found[at : at + PIECE_BYTES] for at in range(0, len(found), PIECE_BYTES)]
            return {
                "pieces": len(self._pieces),
                "lost": lost,
                "lost_elsewhere": elsewhere,
                "whole_from": whole_from,
            }
        if step == "piece":
            import base64

            number = protocol.number_field(request, "number")
            if number >= len(self._pieces):
                raise UsageError("the trace has no piece with this number")
            return {"data": base64.b64encode(self._pieces[number]).decode()}
        self.close()
        return {}

    def close(self) -> None:
        """Remove the capture's trace instances from the kernel."""
        capture, self._capture, self._pieces = self._capture, None, []
        if capture is not None:
            capture.close()

    def _begin(self, request: dict[str, Any]) -> TraceInfo:
        if self._capture is not None:
            raise UsageError("this connection already records a trace", "send 'end' first")
        follows = request.get("pids") is not None
        tids: tuple[int, ...] = ()
        if follows:
            pids = protocol.numbers_field(request, "pids", MOST_PROCESSES)
        else:
            pids = (protocol.number_field(request, "pid"),)
            tids = protocol.numbers_field(request, "tids", MAX_THREADS)
        clock, stacks = protocol.text(request, "clock", WORD), request.get("stacks") is True
        kilobytes = (
            BUFFER_KB if request.get("buffer_kb") is None else protocol.number_field(request, "buffer_kb", BUFFER_KB)
        )
        if clock not in CLOCKS:
            raise UsageError(f"'clock' must be {' or '.join(CLOCKS)}")
        if not follows and not tids:
            raise UsageError("no thread is named in 'tids'")
        if not pids:
            raise UsageError("no process is named in 'pids'")
        cpus = policy.host_for(self._root, protocol.text(request, "cpus")).hot
        if instances.own_numbers(self._writer):
            raise HostError(
                "the same process has different ids in the kernel's trace and in this container",
                "run jitter-workshop outside the container",
            )
        if sys.byteorder != "little":
            raise HostError("this program reads the kernel's trace only on little-endian machines")
        with contextlib.ExitStack() as held:
            if follows:
                # Of many processes some may have ended since the caller listed them.
                pids = tuple(pid for pid in pids if self._root.is_dir(f"/proc/{pid}")) or pids
            processes = tuple(held.enter_context(HeldProcess(self._root, pid, self._uid)) for pid in pids)
            newest = newest_thread(self._root)
            if follows:
                tids = self._threads_of(pids)
            else:
                for tid in tids:
                    if self._root.is_dir(f"/proc/{pids[0]}/task/{tid}"):
                        continue
                    if line_value(self._root.text(f"/proc/{tid}/status"), "PPid") != str(pids[0]):
                        raise HostError(f"thread {tid} does not belong to process {pids[0]}")
                    processes += (held.enter_context(HeldProcess(self._root, tid, self._uid)),)
            follows_from = newest if follows else None
            self._capture = Capture(
                *(self._root, self._writer, self._top, processes, tids, cpus),
                newest=follows_from,
                overwrites=request.get("overwrite") is True,
            )
            held.pop_all()  # from here on the capture closes them
        try:
            return self._capture.begin(clock, max(kilobytes, LEAST_KB), stacks and not follows)
        except BaseException:
            with contextlib.suppress(HostError):
                self.close()
            raise

    def _threads_of(self, pids: tuple[int, ...]) -> tuple[int, ...]:
        """Return the numbers of the threads of the processes ``pids``. Raise HostError if there are no threads or too
        many."""
        tids = tuple(tid for pid in pids for tid, _ in self._root.numbered(f"/proc/{pid}/task", "", digits=10))
        if not tids:
            raise HostError("the process has ended")
        if len(tids) > MAX_FOLLOWED:
            raise HostError(f"the program has more than {MAX_FOLLOWED} threads")
        return tids
