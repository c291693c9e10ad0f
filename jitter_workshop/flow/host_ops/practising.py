"""Open a practice machine from the workshop, if this host can run one.

A practice machine can show chapters that this host cannot show. It can open at such a chapter. The workshop runs the
command ``practice`` in its own terminal. This command starts the machine, connects it to the terminal, and deletes it
at the end.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from types import FrameType

from jitter_workshop.errors import HostError
from jitter_workshop.model.host import HostSummary
from jitter_workshop.practice import kernels, qemu, room
from jitter_workshop.practice.shape import DEFAULT, SHAPES, Shape

SHAPE: Shape = SHAPES[DEFAULT]
"""The shape of the practice machine that the workshop opens."""
HERE = "this is a practice machine already"
IN_A_BROWSER = "a practice machine needs a terminal, and this is a page in a browser"
_ENDING = (signal.SIGTERM, signal.SIGHUP)


def refuse_if_no_practice(host: HostSummary, *, served: bool = False) -> None:
    """Raise HostError if this workshop cannot open a practice machine. The error names the command that helps.
    ``served``: True if the workshop is shown in a browser."""
    if host.accelerator is not None:
        raise HostError(HERE, "q leaves it")
    if served:
        raise HostError(IN_A_BROWSER, "in a terminal: jitter-workshop practice")
    qemu.refuse_if_no_qemu(qemu.MachineOptions.of(SHAPE), kernels.kernel_cache_dir())
    room.check_memory(SHAPE.name, SHAPE.hardware.memory_mib)


def practice_command(chapter: str = "", *, plain: bool = False) -> list[str]:
    """Return the command that opens a practice machine. ``chapter``: the chapter to open in the machine, "" for the
    list of all chapters. ``plain``: the workshop in the machine runs line by line."""
    own = [sys.executable, "-m", "jitter_workshop"]
    flags = ["--plain"] if plain else []
    return [*own, "practice", *(["--", *own, *flags, "--chapter", chapter] if chapter else flags)]


def practise(command: list[str]) -> int:
    """Run a command in this terminal, and return its exit code, -N after signal N.

    Ctrl-C has an effect only in the practice machine. A signal that would end this process ends the command first. Call
    this on the main thread, while nothing is drawn on the terminal. Raise HostError if the command cannot be started.
    """
    child: subprocess.Popen[bytes] | None = None

    def end(number: int, frame: FrameType | None) -> None:
        del number, frame
        if child is not None:
            child.terminate()

    heard: dict[int, Callable[[int, FrameType | None], None]] = dict.fromkeys(_ENDING, end)
    heard[signal.SIGINT] = lambda number, frame: None
    # The child does not inherit a handler, as it would inherit that a signal is ignored.
    before = {number: signal.signal(number, handler) for number, handler in heard.items()}
    try:
        child = subprocess.Popen(command, env=os.environ)
        return child.wait()
    except OSError as error:
        raise HostError(f"the practice machine cannot be started: {error.strerror}") from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
