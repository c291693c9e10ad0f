"""Connect a program in the guest with this process's streams, or with its terminal.

On a terminal every key goes to the guest, even Ctrl-C and Ctrl-Z: this host's terminal is in raw mode. The guest is
told when the terminal changes its size. At the end this host's terminal gets its old settings back. This is so even if
this process is killed (see ``commands``).

If the guest does not read a typed key, this process sends the machine a ping. If the machine does not answer, the user
is asked what to do: reset the machine, end the machine, or wait.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import termios
import time
import tty
from collections.abc import Collection, Iterator, Sequence
from types import FrameType

from jitter_workshop.practice.machine import Guest, Machine
from jitter_workshop.practice.running import RESET_SIGNAL

CHUNK = 16384
MOST_UNTAKEN = 65536
"""The most bytes of input that may wait in the guest until the program reads them; further input waits on this host."""


def on_terminal() -> bool:
    """Return True if stdin and stdout are a terminal."""
    try:
        return sys.stdin is not None and os.isatty(0) and os.isatty(1)
    except OSError:
        return False


PING_S = 5.0
"""Seconds after which the machine is asked for an answer if it has not taken a typed key."""
SILENT_S = 20.0
"""Seconds after which a machine counts as hung if it has not answered. A busy host slows an emulated machine down."""
HUNG = (
    "The machine has not answered for {:.0f} s. r restarts the machine, q ends the machine, any other key waits longer."
)


class ResetAsked(Exception):
    """Signal that a user or another process has asked for a reset of the machine."""


def run_in_guest(machine: Machine, argv: Sequence[str], env: dict[str, str], wake: int = -1) -> int:
    """Run a program in the guest, and return its exit code, -N for signal N. If this process's terminal disappears,
    return -SIGHUP at once. Raise ResetAsked if a reset of the machine was requested.

    ``wake``: the descriptor that :func:`signalled` yields, if the program shall use this process's terminal. If
    ``wake`` is -1, the program has no terminal, and uses this process's stdin, stdout and stderr.
    """
    guest = machine.start(argv, env=env, sink=_write, terminal=_size() if wake >= 0 else None)
    with raw(0) if wake >= 0 else contextlib.nullcontext():
        return _relay(machine, guest, wake)


def _relay(machine: Machine, guest: Guest, wake: int) -> int:
    """Pass input to the guest until its program has ended, and return the exit code. ``wake``: a descriptor that
    becomes readable after a change of the terminal's size or a request for a reset; -1 without a terminal."""
    listening = sys.stdin is not None
    watch, asleep_s = _Silence(machine, guest), _asleep_s()
    while guest.code is None:
        others = [0] if listening and guest.untaken < MOST_UNTAKEN else []
        patience_s = watch.left_s() if wake >= 0 else None
        ready = machine.turn(patience_s, [*others, wake] if wake >= 0 else others, f"the end of {guest.argv[0]}")
        if _asleep_s() - asleep_s > 1:
            asleep_s = _asleep_s()
            machine.set_clock()
        if wake >= 0 and watch.hung(set(ready) - {0, wake}):
            if 0 in ready:
                ready.remove(0)
            code = _ask()
            if code is not None:
                return code
            watch.wait_on()
            _drawn_anew(guest)
        if wake in ready:
            if _RESET in os.read(wake, CHUNK):
                raise ResetAsked
            with contextlib.suppress(OSError):
                rows, columns = _size()
                guest.resize(rows, columns)
        if 0 in ready and guest.code is None:
            try:
                data = os.read(0, CHUNK)
            except OSError:
                data = b""
            if data:
                guest.send(data)
            elif wake >= 0:
                return -signal.SIGHUP
            else:
                listening = False
                guest.close_stdin()
    return guest.code


class _Silence:
    """Find out if a machine hangs. A machine hangs if two things are true: the guest has not read a typed key, and the
    machine does not answer a ping."""

    def __init__(self, machine: Machine, guest: Guest) -> None:
        self._machine, self._guest = machine, guest
        self._since: float | None = None
        self._asked: int | None = None

    def left_s(self) -> float | None:
        """Return the seconds until :meth:`hung` has to be called. Return None if the guest has read all typed keys."""
        if not self._guest.untaken:
            self._since = self._asked = None
            return None
        if self._since is None:
            self._since = time.monotonic()
        limit_s = PING_S if self._asked is None else SILENT_S
        return max(0.0, self._since + limit_s - time.monotonic())

    def hung(self, heard: Collection[int]) -> bool:
        """Return True if the guest has not read a typed key, and has sent nothing for SILENT_S seconds. After PING_S
        seconds of silence, send the machine a ping. ``heard``: descriptors on which the machine has just sent
        something."""
        if heard or not self._guest.untaken or self._since is None:
            self._since = self._asked = None
            return False
        if self._asked is None and time.monotonic() - self._since >= PING_S:
            self._asked = self._machine.ping()
        return time.monotonic() - self._since >= SILENT_S

    def wait_on(self) -> None:
        """Begin again to wait for an answer."""
        self._since = self._asked = None


def _ask() -> int | None:
    """Ask the user whether to end or reset a machine that hangs, or to wait. Return -SIGTERM if the user ends the
    machine, None if the user waits. Raise ResetAsked if the user resets the machine."""
    _write(f"\r\n{HUNG.format(SILENT_S)}\r\n".encode(), b"")
    termios.tcflush(0, termios.TCIFLUSH)
    try:
        key = os.read(0, 1)
    except OSError:
        key = b""
    if key == b"r":
        raise ResetAsked
    if key in (b"q", b""):
        return -signal.SIGTERM
    return None


def _drawn_anew(guest: Guest) -> None:
    """Make a full-screen program draw its screen again: change the size of its terminal for a moment, and then set the
    right size."""
    with contextlib.suppress(OSError):
        rows, columns = _size()
        guest.resize(rows, columns - 1)
        guest.resize(rows, columns)


def _size() -> tuple[int, int]:
    """Return the terminal's rows and columns. A terminal that does not know its size counts as 24 × 80."""
    size = os.get_terminal_size(1)
    return size.lines or 24, size.columns or 80


def _asleep_s() -> float:
    """Return the total time that this host has been suspended since its boot, in seconds."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)


def _write(out: bytes, err: bytes) -> None:
    for number, data in ((1, out), (2, err)):
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(number, rest) :]


@contextlib.contextmanager
def raw(descriptor: int) -> Iterator[None]:
    """Keep a terminal in raw mode during the ``with`` block."""
    before = termios.tcgetattr(descriptor)
    tty.setraw(descriptor, termios.TCSANOW)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


_RESIZED, _RESET = b"s", b"r"


@contextlib.contextmanager
def signalled() -> Iterator[int]:
    """Yield a descriptor that becomes readable when the terminal's size changes or a reset is requested. The byte that
    can then be read from the descriptor tells which of the two has happened."""
    reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    words = {signal.SIGWINCH: _RESIZED, RESET_SIGNAL: _RESET}

    def came(number: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(writer, words[signal.Signals(number)])

    before = {number: signal.signal(number, came) for number in words}
    try:
        yield reader
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reader)
        os.close(writer)
