"""Remember which runs were read completely and are undamaged, so that a list of sessions need not read them again.

The file ``checked-runs.json`` is in the folder of all sessions. For each undamaged run, it has the size, the inode and
the times of the run's file. If these values have changed, the run is read again. If ``checked-runs.json`` is missing or
damaged, all runs are read again.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from jitter_workshop.errors import SessionError
from jitter_workshop.session import files

FILE = "checked-runs.json"

FileIdentity = list[int]
"""The size of a file in bytes, its inode, and its times of change in ns (mtime, ctime)."""


class CheckedRuns:
    """Hold the list of undamaged runs below a folder of sessions. Each run has an identity: the size, inode and times
    of its file. If the identity differs, the file has changed since it was read."""

    def __init__(self, sessions: Path) -> None:
        self._path = sessions / FILE
        self._before = _read(self._path)
        self._now: dict[str, FileIdentity] = {}

    def is_good(self, name: str, file: str) -> bool:
        """Return True if the run was found good, and its file has not changed since. ``name``: SESSION/RUN."""
        identity = _identity(file)
        if identity is None or self._before.get(name) != identity:
            return False
        self._now[name] = identity
        return True

    def found_good(self, name: str, file: str) -> None:
        """Remember that a run was just read completely and is not damaged."""
        if (identity := _identity(file)) is not None:
            self._now[name] = identity

    def keep(self) -> None:
        """Write the list of undamaged runs to the file, without runs that no longer exist. Do nothing if the file has
        this list already. If the file cannot be written, the old file stays and no error is raised."""
        if self._now != self._before:
            with contextlib.suppress(SessionError, OSError):
                files.write_whole(self._path, files.json_line({"format_version": 1, "runs": self._now}))


def _read(path: Path) -> dict[str, Any]:
    try:
        value = files.read_json(path)
    except (OSError, ValueError):
        return {}
    runs = value.get("runs")
    return runs if value.get("format_version") == 1 and isinstance(runs, dict) else {}


def _identity(file: str) -> FileIdentity | None:
    try:
        found = os.stat(file)  # noqa: PTH116 - one call a run, and there are hundreds
    except OSError:
        return None
    return [found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns]
