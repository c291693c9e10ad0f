"""Run one program in a practice machine, for a verb.

The machine is started for the program and removed after it. The program uses this process's standard streams.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from jitter_workshop.commands.common.base import print_notice
from jitter_workshop.errors import HostError, reason
from jitter_workshop.model.text import PATH, SENTENCE, clean
from jitter_workshop.practice import base, kernels, kvm, qemu, relay, room, running
from jitter_workshop.practice.machine import Machine, booted
from jitter_workshop.practice.qemu import KEPT, MachineError, MachineOptions, PowerLost
from jitter_workshop.practice.saved import Resumable
from jitter_workshop.practice.shape import SHAPES, Shape

EMULATED = "the machine's kernel and counters are real, but its latencies come from an emulator and mean nothing"
"""The words about an emulated machine, shown before it starts."""
AGAIN = "Enter starts the machine again in its state after the boot. q and Enter end this program."
VIRTUAL = "the machine's kernel and counters are real, but its latencies are those of a virtual machine"


Opened = tuple[Machine, int]
"""A started practice machine, and a file descriptor. The descriptor comes from ``relay.signalled`` and wakes the relay
at a signal; it is -1 without a terminal."""


@contextlib.contextmanager
def opened(shape: Shape, kept: Path, terminal: bool = False, network: bool = False) -> Iterator[Opened]:
    """Start a practice machine, yield it, and remove it at the end.

    ``kept``: a folder of this host to which the machine may write. ``terminal``: True if a program in the machine uses
    this process's terminal; the user can then reset the machine. ``network``: see ``qemu.MachineOptions``. Raise
    HostError if a program or the kernel is missing, or if memory or disk space is too small. Raise MachineError if the
    machine does not start.
    """
    cache = kernels.kernel_cache_dir()
    try:
        kept.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise HostError(f"{kept} cannot be made: {reason(error)}", "set XDG_STATE_HOME") from error
    signals = relay.signalled() if terminal else contextlib.nullcontext(-1)
    with running.folder(shape.name, cache) as work, _told(cache / running.LAST_LOG), signals as wake:
        machine = _started(shape, cache, work, kept, network)
        try:
            yield machine, wake
        finally:
            machine.close()


def run_inside(
    shape: Shape, argv: Sequence[str], environment: dict[str, str], terminal: bool, own: bool, network: bool = False
) -> int:
    """Run a program in a new practice machine, and return the program's exit code.

    Return -N if signal N ended the program.

    - ``own``: True if the program is this host's Python interpreter, and ``argv`` has only its arguments. False if
      ``argv`` is the program's whole command line.
    - ``terminal``: True if the program uses this process's terminal. Then the program starts again after the user
      resets or restarts the machine.

    Raise the errors of :func:`opened`. Raise PowerLost if the machine ends before the program.
    """
    with opened(shape, running.kept_folder(shape.name), terminal, network) as (machine, wake):
        while True:
            try:
                return relayed((machine, wake), [machine.python, *argv] if own else argv, environment)
            except relay.ResetAsked:
                reset_machine(machine)
            except PowerLost as lost:
                if not terminal or not _wanted_again(lost, machine):
                    raise
                machine.reset()


def terminal_words() -> dict[str, str]:
    """Return the environment variables that describe this terminal to programs in the machine."""
    return {name: os.environ[name] for name in ("TERM", "COLORTERM", "NO_COLOR") if name in os.environ}


def relayed(inside: Opened, words: Sequence[str], environment: dict[str, str]) -> int:
    """Run a program in the machine, on this process's streams or terminal, and return its exit code. Raise HostError if
    the program cannot be run. Raise MachineError if the machine ends before the program. Raise ResetAsked if the user
    asks for a reset."""
    machine, wake = inside
    places = {f"XDG_{name}_HOME": f"{KEPT}/{name.lower()}" for name in ("STATE", "CONFIG")}
    try:
        if wake >= 0:
            running.count_reset(machine.work)
        with _guarded() if wake >= 0 else contextlib.nullcontext():
            return relay.run_in_guest(machine, words, environment | places, wake)
    except FileNotFoundError as error:
        raise HostError(f"there is no {clean(str(error.filename or words[0]), PATH)} in the machine") from None
    except PermissionError as error:
        raise HostError(f"{clean(str(error.filename or words[0]), PATH)} is not a program") from None


def _wanted_again(lost: PowerLost, machine: Machine) -> bool:
    """Report that the machine has ended, with the path of its console's log. Return True if the user wants the machine
    to start again."""
    _leave_screen()
    cache = kernels.kernel_cache_dir()
    running.keep_log(machine.work, cache)
    print_notice(f"{_first_line(lost)}. The console output of the machine is in {cache / running.LAST_LOG}.")
    print_notice(AGAIN)
    try:
        return sys.stdin.readline() == "\n"
    except (OSError, ValueError):
        return False


def _leave_screen() -> None:
    """Leave full-screen mode and restore the terminal. The program in the practice machine cannot do this, because the
    machine has ended or is being reset.
    """
    from jitter_workshop.tui.terminal.terminal_restore import LEAVE

    with contextlib.suppress(OSError):
        os.write(1, LEAVE.encode())


def reset_machine(machine: Machine) -> None:
    """Reset a machine that uses a terminal: go back to its state right after its start. Raise MachineError if the
    machine does not start again."""
    _leave_screen()
    print_notice("The machine returns to the state that it had when it was started.")
    machine.reset()


def save_booted_machine(shape: Shape) -> None:
    """Boot a practice machine once and save it, so that its next start is short.

    Raise HostError if the machine cannot be started, MachineError if it fails later.
    """
    cache = kernels.kernel_cache_dir()
    with running.folder(shape.name, cache) as work, _told(cache / running.LAST_LOG):
        _started(shape, cache, work, None).close()


def _started(shape: Shape, cache: Path, work: Path, kept: Path | None, network: bool = False) -> Machine:
    """Start a practice machine and return it. The machine continues from its saved state if there is one; otherwise it
    boots. Print a line that says which of the two it does. Raise the errors of :func:`opened`."""
    usable = not shape.emulated and kvm.probe_kvm().usable
    options = replace(MachineOptions.of(shape), kept=kept, accelerator="kvm" if usable else "tcg", network=network)
    qemu.refuse_if_no_qemu(options, cache)
    room.check_memory(shape.name, shape.hardware.memory_mib)
    room.check_space(cache, room.START_MIB, "a start")
    machine = _machine(options, shape, cache, work)
    saved = isinstance(machine, Resumable) and machine.is_saved
    if not saved:
        kernels.verify_kernel(kernels.find_kernel(options.kernel, cache))
    has = shape.hardware
    how = "Continuing" if saved else "Booting"
    what = f"{shape.name}: {has.cpus} CPUs, at most {has.memory_mib} MiB, {'KVM' if usable else 'emulated'}"
    print_notice(f"{how} a practice machine ({what}); {VIRTUAL if usable else EMULATED}.")
    if not saved and isinstance(machine, Resumable) and machine.saves:
        print_notice("The machine is saved after this boot. Later starts continue from there and are much shorter.")
    booted(machine)
    if machine.options.accelerator != options.accelerator:
        print_notice(f"KVM could not start the machine, so it is emulated: {EMULATED}.")
    if isinstance(machine, Resumable) and machine.unsaved:
        print_notice(
            f"The next start boots again, because the machine is not saved: {clean(machine.unsaved, SENTENCE)}."
        )
    return machine


def _machine(options: MachineOptions, shape: Shape, cache: Path, work: Path) -> Machine:
    """Return a practice machine that is not started yet. If the disk image for saved states cannot be made, the machine
    boots at each start. A line on stderr then states the reason.
    """
    try:
        made = base.find_base(cache) or base.make_base(cache, work)
    except HostError as error:
        print_notice(f"Each start boots, because the machine is not saved: {clean(error.message, SENTENCE)}.")
        return Machine(options, cache, work, cwd=KEPT)
    # A scenario's boot parameters are drawn anew each time.
    name = f"{shape.name}-network" if options.network else shape.name
    return Resumable(options, cache, work, made, name, cwd=KEPT, saves=shape == SHAPES[shape.name])


@contextlib.contextmanager
def _told(log: os.PathLike[str]) -> Iterator[None]:
    """Shorten a MachineError of the body to its first line, and add the log's path. ``log``: the file with the output
    of the machine's console."""
    try:
        yield
    except MachineError as error:
        raise MachineError(_first_line(error), f"the console output of the machine is in {os.fspath(log)}") from None


def _first_line(error: MachineError) -> str:
    return error.message.partition("\n")[0]


@contextlib.contextmanager
def _guarded() -> Iterator[None]:
    from jitter_workshop.tui.terminal.terminal_restore import guarded_terminal

    with guarded_terminal():
        yield
