"""Parse a typed placement: ``2,4`` (producer, accumulator, journaller in this order) or ``producer=2 acc=4``."""

from __future__ import annotations

import re

from jitter_workshop.errors import UsageError

ROLES = ("producer", "accumulator", "journaller")

_HOW = "type 2,4 or producer=2 accumulator=4"


def parse_choice(text: str) -> dict[str, int]:
    """Return role → CPU. An empty text is the empty choice (automatic). Raises UsageError with a sentence."""
    words = [word for word in re.split(r"[\s,;]+", text.strip()) if word]
    chosen: dict[str, int] = {}
    named = [("=" in word) for word in words]
    if any(named) and not all(named):
        raise UsageError("some CPUs have a name in front and some have none", _HOW)
    if len(words) > len(ROLES):
        raise UsageError(f"{len(words)} CPUs for {len(ROLES)} threads", _HOW)
    for place, word in enumerate(words):
        name, equals, number = word.rpartition("=")
        role = _role(name) if equals else ROLES[place]
        if role in chosen:
            raise UsageError(f"the {role} is named twice", _HOW)
        chosen[role] = _cpu(number)
    twice = next((cpu for cpu in chosen.values() if list(chosen.values()).count(cpu) > 1), None)
    if twice is not None:
        raise UsageError(f"CPU {twice} cannot run two measured threads", "give each thread a CPU of its own")
    return chosen


def _role(name: str) -> str:
    fits = [role for role in ROLES if role.startswith(name.lower())]
    if len(fits) != 1:
        raise UsageError("that is none of the threads", f"they are {', '.join(ROLES)}")
    return fits[0]


def _cpu(number: str) -> int:
    if not (number.isascii() and number.isdigit()) or len(number) > 6:
        raise UsageError("a CPU is a whole number", _HOW)
    return int(number)
