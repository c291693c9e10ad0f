"""Test what a native core is found to lack, by the header that the program was written for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from jitter_workshop.bench.core_names import missing

HEADER = """
/* jw_spoken_of(only) { in a comment }; */
enum { JW_A = 0, JW_B = 1 };
typedef struct {
    int64_t *first, second[3]; /* two */
    union {
        jw_other ring;
    };
} jw_thing;
int jw_do(const jw_thing *thing, int how);
"""


class FakeFfi:
    """cffi's view of the types of a core: type → the names of its fields; "" for a union without a name."""

    error = KeyError

    def __init__(self, **types: tuple[Any, ...]) -> None:
        self._types = types

    def typeof(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(fields=self._types[name])


UNION = ("", SimpleNamespace(type=SimpleNamespace(fields=(("ring", None),))))


def test_a_core_with_every_name_lacks_nothing() -> None:
    core = SimpleNamespace(jw_do=1, JW_A=0, JW_B=1, jw_more=2)
    assert missing(FakeFfi(jw_thing=(("first", None), ("second", None), UNION)), core, HEADER) == []


def test_missing_parts_of_a_core_are_named() -> None:
    old = SimpleNamespace(JW_A=0)
    assert missing(FakeFfi(jw_thing=(("first", None), UNION)), old, HEADER) == ["jw_do", "JW_B", "jw_thing.second"]
    assert missing(FakeFfi(), SimpleNamespace(jw_do=1, JW_A=0, JW_B=1), HEADER) == ["jw_thing"]
