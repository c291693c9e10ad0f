"""The class file: what an instructor decides about a shared machine (read by ``host/classfile.py``).

``/etc/jitter-workshop/class.toml`` belongs to root; where it is, the host is a class host::

    name = "Latency, autumn 2026"
    hot_cpus = "2-3"               # what students measure on and change; the rest looks after the machine
    instructors = ["ada"]          # user names
    longest_turn_minutes = 4
    preset = "quick"
    chapters = []                  # ids in order; none named: the whole course

    [may_apply]                    # ids of tunables; "*": whatever changes at run time and is not of high risk
    students = ["*"]
    grace = ["*", "hotplug"]       # one of them, by user name: instead of what students may
"""

from __future__ import annotations

from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass, field
from jitter_workshop.model.text import clean

GROUP = "jitterlab"
"""Who is in it may speak to the services of a class host; the service that is not root runs as a user of that name."""
STUDENTS = "students"
ANY = "*"
PRESETS = ("quick", "standard", "long")
TURN_LIMITS_S = (30, 6 * 3600)
MAX_BYTES = 64 * 1024
MAX_NAMES = 200
"""Of one list."""


@dataclass(frozen=True, slots=True)
class ClassFile:
    """``hot_cpus``: what turns measure on and change. ``chapters``: ids, () = all of the course. ``may_apply``: by user
    name or ``students``, ids of tunables or ``*``."""

    name: str
    hot_cpus: CpuSet
    instructors: tuple[str, ...] = ()
    chapters: tuple[str, ...] = ()
    longest_turn_s: float = 240.0
    preset: str = "quick"
    may_apply: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def instructs(self, user: str) -> bool:
        """Whether a user of this name is an instructor; root always is."""
        return user == "root" or user in self.instructors

    def allowed(self, user: str) -> tuple[str, ...]:
        """What a student of this name may apply: ids, or ``*``."""
        return self.may_apply.get(user, self.may_apply.get(STUDENTS, ()))


def is_name(word: object) -> bool:
    """Whether a word can be a user's name or an id: 1 to 64 visible characters without blanks, ``/`` and ``:``."""
    return (
        isinstance(word, str) and 0 < len(word) <= 64 and clean(word, 64) == word and not set(word) & set(" /:,\"'\\")
    )
