"""Whether this workshop is shown in a browser: then there is no terminal, and nobody to ask a password."""

from __future__ import annotations

import os

SERVED = "JITTER_WORKSHOP_SERVED"


def served() -> bool:
    """Whether ``serve`` started this process."""
    return os.environ.get(SERVED) == "1"
