"""Open a practice machine for a verb: boot it, run one program inside on this process's streams, throw it away."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from jitter_workshop import paths
from jitter_workshop.commands.common.base import say
from jitter_workshop.errors import HostError, reason
from jitter_workshop.model.text import clean
from jitter_workshop.practice import kernels, qemu, relay, running
from jitter_workshop.practice.machine import Machine, booted
from jitter_workshop.practice.qemu import KEPT, MachineError, Options
from jitter_workshop.practice.shape import Shape

EMULATED = "its kernel and its counters are real, and its latencies are those of an emulator, which mean nothing"
"""The words about an emulated machine, shown before it starts."""


@contextlib.contextmanager
def opened(shape: Shape, kept: Path) -> Iterator[Machine]:
    """Boot a machine, and throw it away at the end. ``kept``: the folder of this host that the guest may write. Raise
    HostError if a program or the kernel is missing, MachineError if the machine does not boot."""
    cache = kernels.cache_dir()
    options = Options.of(shape)
    qemu.check(options, cache)
    kernels.verify(kernels.find(options.kernel, cache))
    try:
        kept.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise HostError(f"{kept} cannot be made: {reason(error)}", "set XDG_STATE_HOME") from error
    hardware = shape.hardware
    say(f"Starting a practice machine ({shape.name}: {hardware.cpus} CPUs, {hardware.memory_mib} MiB); {EMULATED}.")
    with running.folder(shape.name, cache) as work, _told(cache / running.LAST_LOG):
        machine = booted(Machine(replace(options, kept=kept), cache, work, cwd=KEPT))
        try:
            yield machine
        finally:
            machine.close()


def run_inside(shape: Shape, argv: Sequence[str], environment: dict[str, str], terminal: bool, own: bool) -> int:
    """Boot a machine, run a program in it to its end, and return its exit code, -N for signal N.

    ``own``: the words are those of this host's interpreter. ``terminal``: the program gets this process's terminal.
    Raise HostError if a program or the kernel is missing, MachineError if the machine does not boot or goes off.
    """
    with opened(shape, paths.state_dir() / "practice" / shape.name) as machine:
        return relayed(machine, [machine.python, *argv] if own else argv, environment, terminal)


def relayed(machine: Machine, words: Sequence[str], environment: dict[str, str], terminal: bool) -> int:
    """Run a program in the machine on this process's streams, or with its terminal. Raise HostError if there is no such
    program, MachineError if the machine goes off."""
    places = {f"XDG_{name}_HOME": f"{KEPT}/{name.lower()}" for name in ("STATE", "CONFIG")}
    try:
        with _guarded() if terminal else contextlib.nullcontext():
            return relay.run(machine, words, environment | places, terminal)
    except FileNotFoundError as error:
        raise HostError(f"there is no {clean(str(error.filename or words[0]), 200)} in the machine") from None
    except PermissionError as error:
        raise HostError(f"{clean(str(error.filename or words[0]), 200)} is no program") from None


@contextlib.contextmanager
def _told(log: os.PathLike[str]) -> Iterator[None]:
    """Shorten an error of the machine to its first line, and name the file with the machine's console."""
    try:
        yield
    except MachineError as error:
        raise MachineError(error.message.partition("\n")[0], f"its console is in {os.fspath(log)}") from None


@contextlib.contextmanager
def _guarded() -> Iterator[None]:
    from jitter_workshop.tui.terminal.terminal_restore import guarded_terminal

    with guarded_terminal():
        yield
