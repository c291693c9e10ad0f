"""Read a class file (``model/classfile.py``). Root reads it too, so this uses the standard library only."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from jitter_workshop.errors import UsageError
from jitter_workshop.model.classfile import MAX_BYTES, MAX_NAMES, PRESETS, TURN_LIMITS_S, ClassFile, is_name
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.text import clean

_KEYS = ("name", "hot_cpus", "instructors", "chapters", "longest_turn_minutes", "preset", "may_apply")
_ADVICE = "docs/teaching.md shows a whole one"


def parse_class(data: bytes, where: str = "the class file") -> ClassFile:
    """Return the class that a file describes.

    An unknown word is refused, because a misspelt limit would mean no limit. Raise UsageError.
    """
    if len(data) > MAX_BYTES:
        raise UsageError(f"{where} is larger than {MAX_BYTES} bytes", _ADVICE)
    try:
        found = tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise UsageError(f"{where} is not UTF-8 text", _ADVICE) from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{where} cannot be read: {clean(error, 120)}", _ADVICE) from error
    read = _Reader(where, found)
    # Check this first: a misspelt word would otherwise be reported as a missing one.
    read.only(_KEYS)
    low, high = TURN_LIMITS_S
    minutes = read.number("longest_turn_minutes", 4.0)
    if not low <= minutes * 60 <= high:
        raise read.refuse(f"longest_turn_minutes is a number from {low / 60:g} to {high / 60:g}")
    preset = read.text("preset", "quick", 20)
    if preset not in PRESETS:
        raise read.refuse(f"preset is one of {', '.join(PRESETS)}")
    return ClassFile(
        name=read.text("name", None, 80),
        hot_cpus=read.cpus("hot_cpus"),
        instructors=read.names("instructors"),
        chapters=read.names("chapters"),
        longest_turn_s=minutes * 60,
        preset=preset,
        may_apply=read.permissions("may_apply"),
    )


class _Reader:
    """Take the keys of a table and check the type and range of each."""

    def __init__(self, where: str, table: Mapping[str, Any]) -> None:
        self._where = where
        self._left = dict(table)

    def refuse(self, why: str, advice: str = _ADVICE) -> UsageError:
        return UsageError(f"{self._where}: {why}", advice)

    def text(self, key: str, default: str | None, limit: int) -> str:
        value = self._left.pop(key, default)
        if value is None:
            raise self.refuse(f"{key} is missing")
        if not isinstance(value, str) or not clean(value, limit) or clean(value, limit) != value:
            raise self.refuse(f"{key} is a text of 1 to {limit} visible characters")
        return value

    def number(self, key: str, default: float) -> float:
        value = self._left.pop(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.refuse(f"{key} is a number")
        return float(value)

    def cpus(self, key: str) -> CpuSet:
        value = self._left.pop(key, None)
        if value is None:
            raise self.refuse(f"{key} is missing")
        try:
            found = CpuSet.parse_list(value) if isinstance(value, str) else CpuSet()
        except ValueError:
            found = CpuSet()
        if not found:
            raise self.refuse(f'{key} is a list of CPUs, as "2-3"')
        return found

    def names(self, key: str) -> tuple[str, ...]:
        return self._names(key, self._left.pop(key, []))

    def permissions(self, key: str) -> dict[str, tuple[str, ...]]:
        table = self._left.pop(key, {})
        if not isinstance(table, dict) or len(table) > MAX_NAMES:
            raise self.refuse(f"{key} is a table: who = [ids]")
        for who in table:
            if not is_name(who):
                raise self.refuse(f"{key}: '{clean(who, 40)}' is not a user name")
        return {who: self._names(f"{key}.{who}", ids) for who, ids in table.items()}

    def only(self, keys: Sequence[str]) -> None:
        unknown = sorted(self._left.keys() - set(keys))
        if unknown:
            raise self.refuse(f"there is no '{clean(unknown[0], 40)}'", f"one of {', '.join(keys)}")

    def _names(self, key: str, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or len(value) > MAX_NAMES or not all(is_name(one) for one in value):
            raise self.refuse(f"{key} is a list of at most {MAX_NAMES} names")
        return tuple(dict.fromkeys(value))
