"""Connect a program in the guest with this process's own streams, or with its terminal at full size.

In a terminal each key goes inside, Ctrl-C and Ctrl-Z as well: the terminal here is raw, and the guest's terminal makes
signals of them. A new size is passed on. The terminal is restored at the end; ``commands`` has a guard for the case
that this process is killed.
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

CHUNK = 16384
MOST_UNTAKEN = 65536
"""Bytes of input that the guest's program may not have read yet; more waits here."""


def on_terminal() -> bool:
    """Return True if stdin and stdout are a terminal."""
    try:
        return sys.stdin is not None and os.isatty(0) and os.isatty(1)
    except OSError:
        return False


def run(machine: Machine, argv: Sequence[str], env: dict[str, str], terminal: bool) -> int:
    """Run a program in the guest until it ends, and return its exit code, -N for signal N. Return -SIGHUP if the
    terminal vanishes, because no key can end the program then.

    ``terminal``: it gets a terminal, which is this process's own. Otherwise its stdin, stdout and stderr are this
    process's own.
    """
    with contextlib.ExitStack() as stack:
        size = os.get_terminal_size(1) if terminal else None
        guest = machine.start(
            argv, env=env, sink=_write, terminal=None if size is None else (size.lines or 24, size.columns or 80)
        )
        wake = -1
        if terminal:
            wake = stack.enter_context(_resizes(guest))
            stack.enter_context(raw(0))
        return _relay(machine, guest, wake)


def _relay(machine: Machine, guest: Guest, wake: int) -> int:
    """Pass input on until the program has ended, and return its exit code. ``wake``: readable when the terminal has
    another size, -1 for no terminal."""
    listening = sys.stdin is not None
    while guest.code is None:
        others = [0] if listening and guest.untaken < MOST_UNTAKEN else []
        ready = machine.turn(None, [*others, wake] if wake >= 0 else others, f"the end of {guest.argv[0]}")
        if wake in ready:
            os.read(wake, CHUNK)
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
    """Have a terminal in raw mode during the block."""
    before = termios.tcgetattr(descriptor)
    tty.setraw(descriptor, termios.TCSANOW)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _resizes(guest: Guest) -> Iterator[int]:
    """Give a descriptor that can be read once the terminal has changed its size."""
    reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def changed(_number: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(writer, b"s")

    before = signal.signal(signal.SIGWINCH, changed)
    try:
        yield reader
    finally:
        signal.signal(signal.SIGWINCH, before)
        os.close(reader)
        os.close(writer)
