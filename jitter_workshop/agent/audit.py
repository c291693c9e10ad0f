"""Who changed what on a class host, and when: one JSON object a line in root's own folder, for root's eyes.

What was refused is kept apart: who asks for it a million times writes over nobody's changes.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import Any

from jitter_workshop.agent.statedir import StateDir
from jitter_workshop.model.text import clean

CHANGES = "audit.jsonl"
REFUSALS = "refusals.jsonl"
MAX_BYTES = 8 << 20
"""Of each; a full one becomes ``.1``, in the place of the one before."""


class Audit:
    """The two logs. A line that cannot be written keeps nobody from giving back: it is left out."""

    def __init__(self, folder: StateDir, user: str, uid: int) -> None:
        self._folder = folder
        self._who = {"user": user, "uid": uid}

    def changed(self, what: str, **more: Any) -> None:
        """Something began, was applied, given back, ended."""
        self._append(CHANGES, what, more)

    def refused(self, what: str, why: str) -> None:
        self._append(REFUSALS, what, {"why": why})

    def _append(self, name: str, what: str, more: dict[str, Any]) -> None:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        words = {key: clean(value, 400) if isinstance(value, str) else value for key, value in more.items()}
        line = json.dumps({"at": at, **self._who, "what": what, **words}, separators=(",", ":")).encode() + b"\n"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        with contextlib.suppress(OSError):
            file = os.open(name, flags, 0o600, dir_fd=self._folder.state)
            try:
                if os.fstat(file).st_size + len(line) > MAX_BYTES:
                    os.rename(name, f"{name}.1", src_dir_fd=self._folder.state, dst_dir_fd=self._folder.state)
                    os.close(file)
                    file = os.open(name, flags, 0o600, dir_fd=self._folder.state)
                os.write(file, line)
            finally:
                os.close(file)
