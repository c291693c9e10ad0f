"""Define the class file: an instructor's rules for a shared machine (read by ``host/classfile.py``).

``/etc/jitter-workshop/class.toml`` belongs to root. A host that has this file is a class host::

    name = "Latency, autumn 2026"
    hot_cpus = "2-3"               # CPUs that students measure on and change; the rest is housekeeping
    instructors = ["ada"]          # user names
    longest_turn_minutes = 4
    preset = "quick"
    chapters = []                  # ids in order; empty: the whole course

    [may_apply]                    # ids of tunables; "*": all that change at run time and are not of high risk
    students = ["*"]
    grace = ["*", "hotplug"]       # one student, by user name: replaces the list of students
"""

from __future__ import annotations

from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass, field
from jitter_workshop.model.text import USER, clean

GROUP = "jitterlab"
"""Members of this group may speak to the services of a class host. The service that is not root runs as a user of this
name."""
STUDENTS = "students"
ANY = "*"
PRESETS = ("quick", "standard", "long")
TURN_LIMITS_S = (30, 6 * 3600)
MAX_BYTES = 64 * 1024
MAX_NAMES = 200
"""The limit for one list."""


@dataclass(frozen=True, slots=True)
class ClassFile:
    """Hold a class file. ``hot_cpus``: CPUs that turns measure on and change. ``chapters``: ids, () = the whole course.
    ``may_apply``: user name or ``students`` → ids of tunables or ``*``."""

    name: str
    hot_cpus: CpuSet
    instructors: tuple[str, ...] = ()
    chapters: tuple[str, ...] = ()
    longest_turn_s: float = 240.0
    preset: str = "quick"
    may_apply: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def instructs(self, user: str) -> bool:
        """Return True if a user of this name is an instructor; root always is."""
        return user == "root" or user in self.instructors

    def allowed(self, user: str) -> tuple[str, ...]:
        """Return the ids that a student of this name may apply, or ``*``."""
        return self.may_apply.get(user, self.may_apply.get(STUDENTS, ()))


def is_name(word: object) -> bool:
    """Check that a word can be a user's name or an id: 1 to 64 visible characters, without blanks, ``/``, ``:``,
    commas, quotes and backslashes."""
    return (
        isinstance(word, str)
        and 0 < len(word) <= USER
        and clean(word, USER) == word
        and not set(word) & set(" /:,\"'\\")
    )
