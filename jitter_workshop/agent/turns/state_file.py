"""Share the state of the turns between root's processes: one file in ``/run/jitter-workshop``.

Only root writes the file, under a lock that no other user can open. Every user may read the file. Files in ``/run`` are
gone after a reboot.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from jitter_workshop import paths
from jitter_workshop.agent.statedir import open_below, open_or_read
from jitter_workshop.errors import HostError, reason
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.listing import read_task
from jitter_workshop.model.codec import from_plain, parse_object, to_plain
from jitter_workshop.model.descriptor import closed_after
from jitter_workshop.model.turn import Process, TurnState
from jitter_workshop.paths import RUN_DIR
from jitter_workshop.tuning.journal import current_boot

STATE_FILE = "turns.json"
LOCK_FILE = "turns.lock"
MAX_BYTES = 1 << 20


def now_s() -> float:
    """Return the seconds since the machine's start."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def process_identity(pid: int) -> Process | None:
    """Return the identity of a process; None if the process has ended.

    No other process ever has the same identity, even if the kernel uses the process's number again.
    """
    task = read_task(HostRoot(), pid)
    return None if task is None or task.ended else Process(pid, task.start_ticks)


def alive(one: Process) -> bool:
    """Return True if the process ``one`` still runs, and its number was not given to a later process."""
    return process_identity(one.pid) == one


def parse_turn_state(data: bytes, boot_id: str) -> TurnState:
    """Return the state of the turns from the content of its file. If the file is of another boot or cannot be read,
    return a state without a turn."""
    try:
        state = from_plain(TurnState, parse_object(data))
    except ValueError:
        return TurnState(boot_id)
    return state if state.boot_id == boot_id else TurnState(boot_id)


def published(folder: str = "") -> TurnState:
    """Return the state of the turns as every user may read it; a state without a turn if there is no file.

    ``folder``: the folder of the file; "" means ``/run/jitter-workshop``.
    """
    boot = current_boot(HostRoot()) or ""
    try:
        with (Path(folder or paths.RUN_DIR) / STATE_FILE).open("rb") as file:
            return parse_turn_state(file.read(MAX_BYTES + 1), boot)
    except OSError:
        return TurnState(boot)


class TurnFile:
    """Hold the folder ``/run/jitter-workshop`` below ``top``, and make it if it is missing. Raise HostError on
    failure."""

    def __init__(self, top: str = "/", owner: int = 0) -> None:
        self._boot_id = current_boot(HostRoot()) or ""
        self._folder = open_below(top, RUN_DIR, owner)
        try:
            self._lock = open_or_read(LOCK_FILE, self._folder, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            os.close(self._folder)
            raise HostError(f"{RUN_DIR}/{LOCK_FILE} cannot be used: {reason(error)}") from error

    def close(self) -> None:
        os.close(self._lock)
        os.close(self._folder)

    def read(self) -> TurnState:
        """Return the current state of the turns. If there is no file, return a state without a turn."""
        try:
            file = os.open(STATE_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._folder)
        except OSError:
            return TurnState(self._boot_id)
        with os.fdopen(file, "rb") as source:
            return parse_turn_state(source.read(MAX_BYTES + 1), self._boot_id)

    @contextlib.contextmanager
    def changing(self) -> Iterator[ChangingState]:
        """Lock the state of the turns for a change, and yield a ChangingState. At the end, write its ``state`` and wake
        the agents that the change concerns.

        If the body raises an exception, the state is unchanged.
        """
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        try:
            before = self.read()
            draft = ChangingState(before)
            yield draft
            if draft.state != before:
                self._write(draft.state)
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)
        if draft.state != before:
            wake(_concerned(before) | _concerned(draft.state))

    def _write(self, state: TurnState) -> None:
        data = json.dumps(to_plain(state), separators=(",", ":")).encode() + b"\n"
        temporary = f".{STATE_FILE}.new"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=self._folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(temporary, flags, 0o644, dir_fd=self._folder), "wb") as out:
                os.fchmod(out.fileno(), 0o644)
                out.write(data)
            os.rename(temporary, STATE_FILE, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except OSError as error:
            raise HostError(f"the state of the turns cannot be written: {reason(error)}") from error


class ChangingState:
    """Hold the state of the turns during a change."""

    def __init__(self, state: TurnState) -> None:
        self.state = state


def wake(agents: Iterable[Process]) -> None:
    """Wake root's processes ``agents``, so that they check the state of the turns again. A process that has ended is
    skipped."""
    for agent in agents:
        if agent.pid == os.getpid():
            continue
        with contextlib.suppress(OSError), closed_after(os.pidfd_open(agent.pid)) as held:
            if alive(agent):
                signal.pidfd_send_signal(held, signal.SIGUSR1)


def _concerned(state: TurnState) -> set[Process]:
    turn = {state.turn.agent} if state.turn is not None else set()
    return turn | {one.agent for one in state.queue}
