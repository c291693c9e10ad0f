"""Publish the chapter and step of the instructor in one small file, which every user can read without asking a
service.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from jitter_workshop.errors import HostError
from jitter_workshop.model.board import Banner
from jitter_workshop.model.codec import from_plain, to_plain
from jitter_workshop.session import files

FILE = "banner.json"
_MAX_BYTES = 4096


def publish(folder: Path, banner: Banner | None) -> None:
    """Write the banner where all can read it; None removes it. Raises HostError."""
    try:
        if banner is None:
            (folder / FILE).unlink(missing_ok=True)
        else:
            files.replace(folder / FILE, files.json_line(to_plain(banner)), 0o644)
    except OSError as error:
        raise HostError(f"the banner cannot be shown: {error.strerror}") from error


def read(folder: Path, owners: frozenset[int]) -> Banner | None:
    """Return the instructor's current banner; None if there is none, or none of ``owners`` wrote it."""
    try:
        with os.fdopen(
            os.open(folder / FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK), "rb"
        ) as file:
            if os.fstat(file.fileno()).st_uid not in owners:
                return None
            data = file.read(_MAX_BYTES + 1)
        return from_plain(Banner, json.loads(data)) if len(data) <= _MAX_BYTES else None
    except (OSError, ValueError, RecursionError):
        return None
