"""Connect a program in the guest with this process's own streams, or with its terminal at full size.

On a terminal every key goes to the guest, even Ctrl-C and Ctrl-Z. This host's terminal is in raw mode; the guest's
terminal turns these two keys into signals. A new size of the terminal is passed on. At the end this host's terminal is
restored. If this process is killed, a guard of ``commands`` restores it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
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


class ResetAsked(Exception):
    """Report that a reset of the machine was asked for."""


def run(machine: Machine, argv: Sequence[str], env: dict[str, str], wake: int = -1) -> int:
    """Run a program in the guest until it ends, and return its exit code, -N for signal N. Return -SIGHUP if the
    terminal vanishes, because no key can end the program then. Raise ResetAsked if a reset is asked for.

    ``wake``: the descriptor that ``signalled`` yields, or -1. With a descriptor the program runs on this process's
    terminal. With -1 it uses this process's stdin, stdout and stderr, and has no terminal.
    """
    size = os.get_terminal_size(1) if wake >= 0 else None
    guest = machine.start(
        argv, env=env, sink=_write, terminal=None if size is None else (size.lines or 24, size.columns or 80)
    )
    with raw(0) if wake >= 0 else contextlib.nullcontext():
        return _relay(machine, guest, wake)


def _relay(machine: Machine, guest: Guest, wake: int) -> int:
    """Pass input on until the program has ended, and return its exit code. ``wake``: a descriptor that is readable when
    the terminal has another size or a reset is asked for. It is -1 if there is no terminal."""
    listening = sys.stdin is not None
    while guest.code is None:
        others = [0] if listening and guest.untaken < MOST_UNTAKEN else []
        ready = machine.turn(None, [*others, wake] if wake >= 0 else others, f"the end of {guest.argv[0]}")
        if wake in ready:
            if _RESET in os.read(wake, CHUNK):
                raise ResetAsked
            with contextlib.suppress(OSError):
                size = os.get_terminal_size(1)
                guest.resize(size.lines or 24, size.columns or 80)
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
    """Yield a descriptor that becomes readable when the terminal changes its size or a reset is asked for."""
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
