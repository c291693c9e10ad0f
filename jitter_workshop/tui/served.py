"""Whether this workshop is shown in a browser: then there is no terminal, and nobody to ask a password."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NoReturn

from jitter_workshop.errors import HostError

SERVED = "JITTER_WORKSHOP_SERVED"


def served() -> bool:
    """Whether ``serve`` started this process."""
    return os.environ.get(SERVED) == "1"


def ask_nobody(_start: Callable[[], object]) -> NoReturn:
    """In the place of sudo's question. Raises HostError."""
    advice = "on a class host its agent makes changes; elsewhere use a terminal"
    raise HostError("in a browser nobody is asked for a password", advice)
