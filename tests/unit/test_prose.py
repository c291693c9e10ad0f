"""Lint finds the sentences that a test of a whole program asserts, and takes no data for a sentence."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
LONG = "one two three four five six seven eight nine"


def found(source: str) -> list[int]:
    spec = importlib.util.spec_from_file_location("prose", REPOSITORY / "scripts" / "prose.py")
    assert spec is not None
    assert spec.loader is not None
    prose = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(prose)
    return [line for line, _ in prose.asserted_sentences(ast.parse(source))]


@pytest.mark.parametrize(
    "source",
    [
        f"assert '{LONG}' in said",
        f"assert said == ('{LONG}', 1)",
        f"assert said == '{LONG}\\n'",
        f"assert said.startswith(f'{LONG} {{ten}}')",
    ],
)
def test_a_sentence_in_an_assert_is_found(source: str) -> None:
    assert found(source) == [1]


@pytest.mark.parametrize(
    "source",
    [
        "assert 'one two three four five six seven eight' in said",
        f"assert said == '{LONG} a=1'",
        f"assert said == '{LONG} /etc'",
        f"assert said == '{LONG}\\nten'",
        f"assert said == '# {LONG}'",
        f"assert said, 1\nsaid = '{LONG}'",
        f"assert said, '{LONG}'",
    ],
)
def test_data_and_what_no_assert_asks_for_are_not(source: str) -> None:
    assert found(source) == []
