"""Key → line, checked against what tomllib reads."""

from __future__ import annotations

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.course.table import key_lines, line_of

TEXT = '''\
# a comment with [brackets] and "quotes
a = 1
b = """
c = 2
[not.a.table]
"""
d = [
  "x = 1",  # ] in a comment
  "]",
]
[t]
e = 'it"s'
[t.inner]
f = 1
[[list]]
g = 1
[[list]]
g = 2
[[list.deep]]
h = 1
'''


def test_every_key_is_on_its_line() -> None:
    tomllib.loads(TEXT)
    lines = key_lines(TEXT)
    expected = {
        ("a",): 2,
        ("b",): 3,
        ("d",): 7,
        ("t",): 11,
        ("t", "e"): 12,
        ("t", "inner"): 13,
        ("t", "inner", "f"): 14,
        ("list", 0, "g"): 16,
        ("list", 1, "g"): 18,
        ("list", 1, "deep", 0): 19,
        ("list", 1, "deep", 0, "h"): 20,
    }
    assert {path: line_of(lines, path) for path in expected} == expected
    assert ("c",) not in lines
    assert line_of(lines, ("list", 1, "missing")) == 17
    assert line_of(lines, ("nowhere", "at", "all")) == 1


VALUES = st.sampled_from(["1", '"a = b"', '["x", "]"]', "'[y]'", '"""\nz = 3\n"""', "[\n 1,\n 2\n]", "true # = ["])


@given(st.lists(VALUES, min_size=1, max_size=8), st.integers(0, 7))
def test_generated_keys_are_found(values: list[str], table_before: int) -> None:
    out, expected = "", {}
    table: tuple[str, ...] = ()
    for i, value in enumerate(values):
        if i == table_before:
            out += "[tab]\n"
            table = ("tab",)
        expected[(*table, f"k{i}")] = out.count("\n") + 1
        out += f"k{i} = {value}\n"
    tomllib.loads(out)
    lines = key_lines(out)
    assert {path: lines.get(path) for path in expected} == expected


@given(st.text(max_size=400))
def test_any_text_is_survived(text: str) -> None:
    assert all(1 <= line <= text.count("\n") + 1 for line in key_lines(text).values())
