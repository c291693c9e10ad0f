"""Lint finds the sentences that a test of a whole program asserts, takes no data for a sentence, and finds a docstring
that names an error without its condition or begins with a question word."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
LONG = "one two three four five six seven eight nine"


def loaded() -> Any:
    spec = importlib.util.spec_from_file_location("prose", REPOSITORY / "scripts" / "prose.py")
    assert spec is not None
    assert spec.loader is not None
    prose = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(prose)
    return prose


def found(source: str) -> list[int]:
    return [line for line, _ in loaded().asserted_sentences(ast.parse(source))]


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


@pytest.mark.parametrize(
    "said",
    [
        "Read it. Raises HostError if it is missing.",
        "Raise HostError.",
        "Read it. Raise HostError, UsageError.",
        "Read it. Raise ``HostError`` or sqlite3.Error.",
        "Read it. Raise OSError for a folder, ValueError for an empty file, and HostError.",
        "Read it. Raise ValueError; its message is a sentence.",
    ],
)
def test_an_error_without_its_condition_is_found(said: str) -> None:
    assert loaded().ERRORS.search(said)


@pytest.mark.parametrize(
    "said",
    [
        "Raise HostError if the file is missing, UsageError for a wrong name.",
        "Read it. Raise HostError on failure.",
        "Read it. Raise the errors of ``look`` and :func:`read`.",
        "Read it. Raise OSError for a/b.txt and for a name of 'x'.",
        "Hold one. All methods raise HostError on failure.",
    ],
)
def test_an_error_with_its_condition_is_not(said: str) -> None:
    assert not loaded().ERRORS.search(said)


def test_a_docstring_and_a_note_that_begin_with_a_question_word_are_found(tmp_path: Path) -> None:
    (file := tmp_path / "one.py").write_text('"""Why."""\nA = 1\n"""What A is."""\nB = "How"\n"""The name of B."""\n')
    assert sorted(line for line, _ in loaded().findings(file)) == [1, 3]
