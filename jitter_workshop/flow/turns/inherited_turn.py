"""Measure in a turn that a parent process holds: ``class turn take -- CMD``."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

from jitter_workshop import paths
from jitter_workshop.errors import BusyError, HostError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.listing import read_task
from jitter_workshop.model.turn import TurnState

_DEEPEST = 64
_STATUS_BYTES = 16_384


def turn_above(state: TurnState, root: HostRoot, pid: int | None = None) -> bool:
    """Return True if this user's turn is held by a parent of this process (``pid``), at any distance."""
    turn = state.turn
    if turn is None or turn.uid != os.geteuid() or turn.returning:
        return False
    at = os.getpid() if pid is None else pid
    for _ in range(_DEEPEST):
        at = _parent(root, at)
        if at <= 1:
            return False
        if at == turn.client.pid:
            task = read_task(root, at)
            return task is not None and task.start_ticks == turn.client.start
    return False


@contextlib.contextmanager
def only_one() -> Iterator[None]:
    """Allow one measurement of this user at a time: several processes may run in one turn. Raises BusyError,
    HostError."""
    folder = paths.state_dir()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / "measuring.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise HostError(f"{folder} cannot be written: {error.strerror}") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BusyError("another measurement of yours runs in this turn", "wait for its end") from None
        yield
    finally:
        os.close(lock)


def _parent(root: HostRoot, pid: int) -> int:
    """Return the id of a process's parent, 0 where it cannot be read."""
    for line in (root.text(f"/proc/{pid}/status", _STATUS_BYTES) or "").splitlines():
        name, _, value = line.partition(":")
        if name == "PPid" and value.strip().isdigit():
            return int(value)
    return 0
