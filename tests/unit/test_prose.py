"""Lint finds the sentences that a test of a whole program asserts, takes no data for a sentence, and finds a docstring
that names an error without its condition, a docstring or a comment that begins with a question word, a sentence whose
subject is a clause, and a test's name that is a riddle."""

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
    "said",
    [
        LONG,
        f"{LONG}\n",
        f"\n{LONG}",
        *(f"{sign} {LONG}" for sign in "✓!▸○•·◆#→"),
        f"4 {LONG}",
        f"1. {LONG}",
        f"'{LONG}' ten",
        f", {LONG}",
        f"·  {LONG}",
        f"{LONG} a=1",
        f"{LONG} /etc/hosts",
        f"/etc/hosts: {LONG}",
        f"{LONG}; 'jitter-workshop plan --sh' ten",
        f"jitter-workshop: {LONG}; --root ten",
        "one two · three = four · five · six, seven eight (nine)",
    ],
)
def test_a_sentence_in_an_assert_is_found(said: str) -> None:
    for source in (f"{said!r} in out", f"out == ({said!r}, 1)", f"out == 1 and {said!r} in out"):
        assert found(f"assert {source}") == [1]


def test_a_sentence_between_the_fields_of_a_text_is_found() -> None:
    assert found(f"assert said.startswith(f'{{zero}} {LONG} {{ten}}')") == [1]


@pytest.mark.parametrize(
    "said",
    [
        "one two three four five six seven eight",
        "✓ one two three four five six seven eight: 9 · a = b / c",
        "1 2 3 4 5 6 7 8 9 10",
        f"{LONG}\nten",
        "one  two three four five six seven eight nine",
        f"1  {LONG}",
        f"one\t{LONG}",
        f"one │ {LONG}",
        f"one | {LONG}",
        f"$ {LONG}",
        f"  $ {LONG}\n",
        f"{LONG} && ten",
        f"test -t 0 || {LONG}",
        f"jitter-workshop plan --sh {LONG}",
        f"sudo jitter-workshop apply {LONG} --cpus 1",
        "/one/two/three/four/five/six/seven/eight/nine",
        "console=ttyS0 isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3 irqaffinity=0-1",
    ],
)
def test_a_command_a_row_and_a_page_are_no_sentences(said: str) -> None:
    assert found(f"assert out == {said!r}") == []


@pytest.mark.parametrize("source", [f"assert said, 1\nsaid = '{LONG}'", f"assert said, '{LONG}'"])
def test_a_text_outside_of_an_assert_is_not_found(source: str) -> None:
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


@pytest.mark.parametrize("word", ["who", "whoever", "what", "whatever", "nobody", "somebody", "anybody", "everybody"])
def test_a_test_name_that_is_a_riddle_is_found(word: str, tmp_path: Path) -> None:
    source = (
        f"def test_{word}_waits(): ...\n\n\nasync def test_a_page_shows_{word}(): ...\n\n\ndef {word}_waits(): ...\n"
    )
    assert sorted(questions(tmp_path / "one.py", source)) == [1, 4]


def test_a_test_name_that_is_a_statement_is_not_found(tmp_path: Path) -> None:
    assert questions(tmp_path / "one.py", "def test_a_whole_somebodys_name_stays(): ...\n") == []


def questions(file: Path, text: str) -> list[int]:
    file.write_text(text)
    return [line for line, _ in loaded().findings(file)]


@pytest.mark.parametrize("word", ["What", "Whether", "Who", "Whom", "Whose", "Where", "How", "Why", "Which"])
@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("one.py", "a = 1\n# {} it is.\n", 2),
        ("one.py", "a = 1  # {} it is\n", 1),
        ("one.py", "def a():\n    # {} it is --------\n    # in two lines.\n    return 1\n", 2),
        ("one.sh", "#!/bin/sh\na=1\n\n# {} it is.\n", 4),
        ("one.sh", "a=1 # {} it is\n", 1),
        ("one.c", "int a;\n/* {} it is. */\nint b;\n", 2),
        ("one.c", "/*\n * {} it is. */\n", 2),
        ("one.h", "int a; // {} it is\n", 1),
    ],
)
def test_a_comment_that_begins_with_a_question_word_is_found(
    word: str, name: str, text: str, line: int, tmp_path: Path
) -> None:
    if (word, text[:3]) != ("Where", "/*\n"):  # in the lines below the first one "Where" may say when
        assert questions(tmp_path / name, text.format(word)) == [line]


@pytest.mark.parametrize(
    "said", ["# It reads\n# twice. What is lost is told\n", "# It reads.\n# What is lost is told\n"]
)
def test_a_later_sentence_of_a_comment_is_found(said: str, tmp_path: Path) -> None:
    for name, text in (("one.py", said), ("one.sh", said), ("one.c", f"/{said.replace('#', ' *')[1:]} */\n")):
        assert questions(tmp_path / name, text) == [2]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("one.py", "a = '# What'\n# Somebody tells what it is. Is it?\n# It tells\n# who. What is it?\n"),
        ("one.sh", "#!/bin/sh\n# Tell what it is.\necho 'What it is'  # and where\n"),
        ("one.c", '/* Tell what it is. Which one\n * is it? */\nchar a[] = "What it is";\n'),
    ],
)
def test_other_comments_and_texts_are_not(name: str, text: str, tmp_path: Path) -> None:
    assert questions(tmp_path / name, text) == []


@pytest.mark.parametrize(
    "said",
    [
        "What has no line is not claimed.",
        "One line.\nWho rehearses sees\nit.",
        "- One.\n- Whether it is near stands there.",
        "1. Whatever it is, it goes.",
        "It is (so.) What is left\nis kept. Why?",
        "| a | One file. What comes later is seen | b |",
        "Read this:\n\nWhat counts:\n\n- one?",
    ],
)
def test_a_clause_as_subject_is_found_in_a_document(said: str, tmp_path: Path) -> None:
    where = next(n for n, line in enumerate(said.split("\n"), 1) if "Wh" in line)
    assert questions(tmp_path / "one.md", said) == [where]


@pytest.mark.parametrize("said", ["Read it. What is left is kept.", "Read it.\n\nWho rehearses sees it."])
def test_a_clause_as_subject_is_found_in_a_docstring_and_a_note(said: str, tmp_path: Path) -> None:
    where = [n for n, line in enumerate(said.split("\n"), 1) if "Wh" in line]
    assert questions(tmp_path / "one.py", f'"""{said}"""\n') == where
    assert questions(tmp_path / "one.py", f'a = 1\n"""{said}"""\n') == [n + 1 for n in where]


def test_a_question_in_a_docstring_is_not_found(tmp_path: Path) -> None:
    assert questions(tmp_path / "one.py", 'def a():\n    """Ask the host. What has it?"""\n') == []


def test_a_clause_as_subject_is_found_in_a_lesson(tmp_path: Path) -> None:
    assert questions(tmp_path / "one.toml", 'a = 1\ntext = "One. What follows is one."\n') == [2]


@pytest.mark.parametrize(
    "said",
    [
        "# What runs where\n\n## 1. Who took it\n",
        "What has no line? Who moves my\nthreads?, and others.",
        "Read. What does the page of `a.h` say\nto whom? It does.",
        "**What it means.** One. *Who took the time* tells it.",
        "| What a noise is | Where it is |",
        "Where it is missing, one sentence says so.",
        "It tells what it is; what is left is told.",
        "One.\n\n```toml\na = 1\nWhat is this\n```\n",
    ],
)
def test_questions_headings_and_titles_are_not(said: str, tmp_path: Path) -> None:
    assert questions(tmp_path / "one.md", said) == []
