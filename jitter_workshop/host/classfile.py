"""Define and read the class file: an instructor's rules for a shared machine.

``/etc/jitter-workshop/class.toml`` belongs to root. Root's process reads it with the standard library only. A host that
has this file is a class host::

    name = "Latency, autumn 2026"
    hot_cpus = "2-3"               # CPUs that students measure on and change; the rest is housekeeping
    instructors = ["ada"]          # user names
    longest_turn_minutes = 4
    preset = "quick"
    chapters = []                  # ids in order; empty: the whole course

    [may_apply] # ids of tunables; "*": all that need no reboot and have no high risk students = ["*"] grace = ["*",
    "hotplug"] # this list replaces "students" for the user "grace"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jitter_workshop.errors import UsageError
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass, field
from jitter_workshop.model.text import ID, LINE, USER, clean

GROUP = "jitterlab"
"""The name of a group, and also of a user. Members of the group may connect to the services of a class host. The
service of the board runs as the user, because it does not need root's rights."""
ASK_TO_JOIN = "ask the instructor to add you, then log in again"
"""The advice for a user who is not in GROUP."""
STUDENTS = "students"
ANY = "*"
PRESETS = ("quick", "standard", "long")
TURN_LIMITS_S = (30, 6 * 3600)
MAX_BYTES = 64 * 1024
MAX_NAMES = 200
"""The largest number of names in one list."""


_ADVICE = "docs/teaching.md shows a complete class file"


@dataclass(frozen=True, slots=True)
class ClassFile:
    """Hold the contents of a class file. ``hot_cpus``: the CPUs that students measure on and change. ``chapters``: ids
    of chapters, () for the whole course. ``may_apply``: user name or ``students`` → ids of tunables, or ``*``."""

    name: str
    hot_cpus: CpuSet
    instructors: tuple[str, ...] = ()
    chapters: tuple[str, ...] = ()
    longest_turn_s: float = 240.0
    preset: str = "quick"
    may_apply: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def instructs(self, user: str) -> bool:
        """Return True if the user with this name is an instructor. Root is always an instructor."""
        return user == "root" or user in self.instructors

    def allowed(self, user: str) -> tuple[str, ...]:
        """Return the tunables that the student with this name may apply: ids, or ``*``."""
        return self.may_apply.get(user, self.may_apply.get(STUDENTS, ()))


def is_name(word: object) -> bool:
    """Return True if a word can be a user's name or an id. Such a word has 1 to 64 visible characters. Blanks, ``/``,
    ``:``, commas, quotes and backslashes are not allowed."""
    return (
        isinstance(word, str)
        and 0 < len(word) <= USER
        and clean(word, USER) == word
        and not set(word) & set(" /:,\"'\\")
    )


def parse_class(data: bytes, where: str = "the class file") -> ClassFile:
    """Return the rules in the bytes of a class file. ``where``: the file's name for messages.

    Raise UsageError if the file is invalid. A file with an unknown key is invalid. The key may be the misspelt name of
    a limit. The limit would then have no effect.
    """
    import tomllib

    if len(data) > MAX_BYTES:
        raise UsageError(f"{where} is larger than {MAX_BYTES} bytes", _ADVICE)
    try:
        found = tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise UsageError(f"{where} is not UTF-8 text", _ADVICE) from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{where} cannot be read: {clean(error, LINE)}", _ADVICE) from error
    problem, advice = _problem(found)
    if problem:
        raise UsageError(f"{where}: {problem}", advice)
    return ClassFile(
        name=found["name"],
        hot_cpus=_cpus(found["hot_cpus"]),
        instructors=_once(found.get("instructors", ())),
        chapters=_once(found.get("chapters", ())),
        longest_turn_s=float(found.get("longest_turn_minutes", 4)) * 60,
        preset=found.get("preset", "quick"),
        may_apply={who: _once(ids) for who, ids in found.get("may_apply", {}).items()},
    )


def _problem(found: Mapping[str, Any]) -> tuple[str, str]:
    """Return the first error in a parsed class file, and advice. Return two empty texts if the file is valid."""
    for key in sorted(found.keys() - _FORMS.keys()):
        return f"unknown key '{clean(key, ID)}'", f"use one of {', '.join(_FORMS)}"
    for key, value in found.items():
        fits, form = _FORMS[key]
        if not fits(value):
            return f"{key} must be {form}", _ADVICE
    for key in _NEEDED:
        if key not in found:
            return f"{key} is missing", _ADVICE
    for who, ids in found.get("may_apply", {}).items():
        if not is_name(who):
            return f"may_apply: '{clean(who, ID)}' is not a user name", _ADVICE
        if not _are_names(ids):
            return f"may_apply.{who} must be {_NAMES}", _ADVICE
    return "", ""


def _is_title(value: object) -> bool:
    return isinstance(value, str) and value != "" and clean(value, _TITLE) == value


def _cpus(value: object) -> CpuSet:
    return (CpuSet.if_list(value) if isinstance(value, str) else None) or CpuSet()


def _are_names(value: object) -> bool:
    return isinstance(value, list) and len(value) <= MAX_NAMES and all(is_name(one) for one in value)


def _is_turn(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and _LOW_S <= value * 60 <= _HIGH_S


def _is_table(value: object) -> bool:
    return isinstance(value, dict) and len(value) <= MAX_NAMES


def _once(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


_TITLE = 80
_LOW_S, _HIGH_S = TURN_LIMITS_S
_NAMES = f"a list of at most {MAX_NAMES} names"
_NEEDED = ("name", "hot_cpus")
_FORMS: dict[str, tuple[Callable[[object], object], str]] = {
    "name": (_is_title, f"a text of 1 to {_TITLE} visible characters"),
    "hot_cpus": (_cpus, 'a list of CPUs, such as "2-3"'),
    "instructors": (_are_names, _NAMES),
    "chapters": (_are_names, _NAMES),
    "longest_turn_minutes": (_is_turn, f"a number from {_LOW_S / 60:g} to {_HIGH_S / 60:g}"),
    "preset": (PRESETS.__contains__, f"one of {', '.join(PRESETS)}"),
    "may_apply": (_is_table, "a table with lines such as students = [ids]"),
}
"""Key of a class file → a check of the key's value, and the required form in words. The check returns a true value if
the form is right."""
