"""Tell if this workshop is shown in a browser: then there is no terminal on which sudo could ask for a password."""

from __future__ import annotations

import os

SERVED = "JITTER_WORKSHOP_SERVED"


def served() -> bool:
    """Return True if ``serve`` started this process."""
    return os.environ.get(SERVED) == "1"
