"""Name a turn to measure that only one test has, so that tests do not wait for one another."""

from __future__ import annotations

import hashlib
from pathlib import Path


def turn_of(folder: Path) -> str:
    """Return the name of the turn that belongs to a test's own folder. A socket's name has at most 107 bytes (unix(7)),
    so it holds a digest of the folder's path."""
    return f"jitter-workshop.test.{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"
