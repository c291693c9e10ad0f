"""Who changed what on a class host, and when: one JSON object a line in root's own folder, for root's eyes.

What was refused is kept apart, and whose turn it was, too: who asks a million times, or takes the turn and gives it
back a million times, writes over nobody's changes.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from typing import Any

from jitter_workshop.agent.statedir import StateDir
from jitter_workshop.model.text import clean

CHANGES = "audit.jsonl"
TURNS = "turns.jsonl"
REFUSALS = "refusals.jsonl"
MAX_BYTES = 8 << 20
"""Of each; a full one becomes ``.1``, in the place of the one before."""

_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class Audit:
    """The three logs. A line that cannot be written keeps nobody from giving back: it is left out."""

    def __init__(self, folder: StateDir, user: str, uid: int) -> None:
        self._folder = folder
        self._who = {"user": user, "uid": uid}

    def changed(self, what: str, **more: Any) -> None:
        """Something was applied or given back, or could not be; an instructor did something."""
        self._append(CHANGES, what, more)

    def turn(self, what: str, **more: Any) -> None:
        """A turn began or ended."""
        self._append(TURNS, what, more)

    def refused(self, what: str, why: str) -> None:
        self._append(REFUSALS, what, {"why": why})

    def _append(self, name: str, what: str, more: dict[str, Any]) -> None:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        words = {key: clean(value, 400) if isinstance(value, str) else value for key, value in more.items()}
        line = json.dumps({"at": at, **self._who, "what": what, **words}, separators=(",", ":")).encode() + b"\n"
        with contextlib.suppress(OSError):
            file = self._opened(name, len(line))
            try:
                os.write(file, line)
            finally:
                os.close(file)

    def _opened(self, name: str, room: int) -> int:
        """A log with room for so many bytes, as a locked descriptor: of all who find it full, one renames it. Raises
        OSError."""
        folder = self._folder.state
        while True:
            file = os.open(name, _FLAGS, 0o600, dir_fd=folder)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                mine = os.fstat(file)
                if _same(mine, name, folder):
                    if mine.st_size + room <= MAX_BYTES or not mine.st_size:
                        return file
                    os.rename(name, f"{name}.1", src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.close(file)
                raise
            os.close(file)


def _same(file: os.stat_result, name: str, folder: int) -> bool:
    """Whether a file that was opened by its name still has it."""
    try:
        return os.path.samestat(file, os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return False
