"""Start the measuring children, exchange messages with them, and end them.

A child runs isolated (``python -I``: no PYTHONPATH, no user site, no current folder). The parent passes its own module
search path to the child, so that both run the same code. A child leads its own session, so the terminal's signals do
not reach it.

The kernel kills a child when the parent's *thread* that started it ends (PR_SET_PDEATHSIG). So start a child on a
thread that lives as long as the child.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, TypeVar

from jitter_workshop.bench import protocol
from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.protocol import BUILD_IT, NO_CORE, OLD_CORE, REBUILD_IT
from jitter_workshop.errors import MeasureError, WorkshopError
from jitter_workshop.model.codec import CodecError, from_plain
from jitter_workshop.model.text import PARAGRAPH, REASON, SENTENCE, clean

M = TypeVar("M")

WORKER = "jitter_workshop.bench.worker"
NOISE = "jitter_workshop.bench.noise"
MATRIX = "jitter_workshop.bench.matrixchild"
MEASURING = "the measuring process"
NOISY = "the noise process"
"""The names that the two children have in sentences: the measuring process and the noise process."""

_BOOTSTRAP = (
    "import json, runpy, sys; "
    "sys.path[:] = json.loads(sys.argv[1]); module = sys.argv[2]; del sys.argv[1:3]; "
    "runpy.run_module(module, run_name='__main__', alter_sys=True)"
)
_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH")
_LONGEST_LINE = 64 << 20
_STDERR_KEPT = 8_192


def command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs ``module`` of this process's package in an isolated interpreter. Raise MeasureError
    if the interpreter's path is not known.
    """
    if not sys.executable:
        raise MeasureError("Python does not know the path of its own program", "start Python by its full path")
    paths = [str(Path(entry).absolute()) for entry in sys.path]
    return [sys.executable, "-I", "-c", _BOOTSTRAP, json.dumps(paths), module, *arguments]


def child_environment() -> dict[str, str]:
    """Return the environment variables for a child: only a few of this process's variables."""
    return {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}


@dataclass(frozen=True, slots=True)
class ChildEvent:
    """Hold the result of :meth:`Child.wait`: a line, the end of the child's output, a stop, a suspension, or a
    timeout."""

    kind: Literal["line", "end", "cancel", "suspend", "timeout"]
    line: bytes = b""


class Child:
    """Start a child process with pipes for stdin, stdout and stderr.

    The end of a ``with`` block always ends and reaps the child. Raise MeasureError if the child cannot be started.

    - ``name``: the child's name in messages.
    - ``refusal``: the type of error to raise if the child reports a failure.
    - ``variables``: the child's environment; None means :func:`child_environment`.
    - ``files``: descriptors that the child inherits under the same numbers.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        name: str = MEASURING,
        refusal: type[WorkshopError] = MeasureError,
        variables: Mapping[str, str] | None = None,
        files: Sequence[int] = (),
    ) -> None:
        self._name, self._refusal = name, refusal
        try:
            self._process = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=child_environment() if variables is None else variables,
                start_new_session=True,
                pass_fds=files,
            )
        except OSError as error:
            raise MeasureError(f"{name} could not be started: {error.strerror or error}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._stdin, self._stdout, self._stderr = self._process.stdin, self._process.stdout, self._process.stderr
        os.set_blocking(self._stderr.fileno(), False)
        self._buffer = bytearray()
        self._complaints = bytearray()
        self._ended = False

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, line: bytes) -> None:
        """Write a line to the child. A child that has ended is not an error here: :meth:`wait` will report it."""
        with contextlib.suppress(BrokenPipeError):
            self._stdin.write(line)
            self._stdin.flush()

    def wait(self, token: CancelToken | None = None, timeout_s: float | None = None) -> ChildEvent:
        """Wait for the next event of the child or of ``token``, and return it.

        Return an event ``timeout`` after ``timeout_s`` seconds; None means no time limit.
        """
        poller = select.poll()
        poller.register(self._stdout, select.POLLIN)
        poller.register(self._stderr, select.POLLIN)
        if token is not None:
            poller.register(token.fileno(), select.POLLIN)
        while True:
            if token is not None and token.reason is not None:
                return ChildEvent("cancel")
            end = self._buffer.find(b"\n")
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                return ChildEvent("line", line)
            if self._ended:
                return ChildEvent("end")
            ready = poller.poll(None if timeout_s is None else timeout_s * 1000)
            if not ready:
                return ChildEvent("timeout")
            for descriptor, _ in ready:
                if descriptor == self._stdout.fileno():
                    self._fill()
                elif descriptor == self._stderr.fileno():
                    if not self._listen():
                        poller.unregister(descriptor)
                elif token is not None and token.take_suspend() and token.reason is None:
                    return ChildEvent("suspend")

    def stop(self) -> None:
        """Freeze the child and all processes of its group. Return once the child has stopped or ended."""
        self._signal(signal.SIGSTOP)
        with contextlib.suppress(ChildProcessError):
            # WNOWAIT leaves the status for Popen, which does the reaping.
            os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def end(self, farewell: bytes = b"", patience_s: float = 2.0) -> int:
        """End the child, reap it, and return its exit status as ``subprocess`` gives it.

        First send ``farewell``, and close the child's stdin. If the child still runs after ``patience_s`` seconds, send
        SIGTERM. One second later, send SIGKILL.
        """
        if farewell:
            self.send(farewell)
        with contextlib.suppress(OSError):
            self._stdin.close()
        for patience, signum in ((patience_s, signal.SIGTERM), (1.0, signal.SIGKILL)):
            try:
                self._process.wait(patience)
                break
            except subprocess.TimeoutExpired:
                # A frozen process does not see SIGTERM before it continues.
                self._signal(signum)
                self._signal(signal.SIGCONT)
        status = self._process.wait()
        self._listen()
        self._stdout.close()
        self._stderr.close()
        return status

    def kill(self, patience_s: float = 0.0) -> None:
        """End the child and reap it, as :meth:`end` does. Do nothing if the child was ended before."""
        if not self._stdout.closed:
            self.end(patience_s=patience_s)

    def ended(self) -> MeasureError:
        """Return the error for a child that ended by itself.

        The message has the signal, or the exit code with the child's last line on stderr.
        """
        status = self.end()
        if status < 0:
            try:
                name = signal.Signals(-status).name
            except ValueError:
                name = f"signal {-status}"
            return MeasureError(f"{self._name} was killed by {name}")
        complaints = self._complaints.decode(errors="replace").strip().splitlines()
        last = clean(complaints[-1], REASON) if complaints else ""
        for said, remedy in ((NO_CORE, BUILD_IT), (OLD_CORE, REBUILD_IT)):
            if said in last:
                return MeasureError(said + last.partition(said)[2], remedy)
        return MeasureError(f"{self._name} ended with exit code {status}{f': {last}' if last else ''}")

    def message(self, event: ChildEvent, wanted: str, message: type[M]) -> M:
        """Return the message that ``event`` contains, as an object of the type ``message``.

        ``wanted``: the kind of message to accept. Raise MeasureError if the child has ended, or if it sent another
        message. Raise the error ``refusal`` of the constructor if the child reports a failure.
        """
        if event.kind == "end":
            raise self.ended()
        try:
            kind, data = protocol.parse_message(event.line)
            if kind == "failed":
                failed = from_plain(protocol.Failed, data)
                raise self._refusal(clean(failed.message, PARAGRAPH), clean(failed.advice, PARAGRAPH))
            if kind != wanted:
                raise CodecError(f"the message '{kind}' came instead of '{wanted}'")
            return from_plain(message, data)
        except CodecError as error:
            raise MeasureError(f"{self._name} sent a wrong message: {clean(error, SENTENCE)}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _signal(self, signum: signal.Signals) -> None:
        # Popen knows if it was reaped; afterwards its number may belong to another process.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signum)

    def _fill(self) -> None:
        chunk = os.read(self._stdout.fileno(), 1 << 20)
        self._buffer += chunk
        self._ended = not chunk
        if len(self._buffer) > _LONGEST_LINE:
            raise MeasureError(f"{self._name} sent a line that is too long")

    def _listen(self) -> bool:
        """Read the child's stderr, and remember its last part. Return False once the child has closed its stderr."""
        while True:
            try:
                chunk = os.read(self._stderr.fileno(), 65_536)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            self._complaints += chunk
            del self._complaints[:-_STDERR_KEPT]
