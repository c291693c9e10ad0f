"""A sentence of the product is asserted in one test file. Other tests use its named constant, or an error's type."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
LEAST_WORDS, LEAST_LENGTH = 5, 20
LITERAL = re.compile(
    r'#[^\n]*|(?P<prefix>\b[fFrRbBuU]{1,2})?(?P<quote>"""|\'\'\'|"|\')(?P<text>(?:\\.|(?!(?P=quote))[^\\])*)(?P=quote)',
    re.DOTALL,
)
"""A comment or a literal. Parsing each file would take several seconds."""
ALONE = re.compile(r"(?:^|\n)[ \t]*$")
MOST_EXCEPTIONS = 10
EXCEPTIONS: dict[str, str] = {}
"""Words that may stand in several test files → why."""


def literals(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each literal. Literals that Python joins are one. The pieces around the fields of an
    f-string are apart. Docstrings and notes are left out."""
    text, begun, end, line, counted = "", 0, -1, 1, 0
    for found in LITERAL.finditer(source):
        if found["quote"] is None or (len(found["quote"]) == 3 and ALONE.search(source, 0, found.start())):
            continue
        piece = found["text"]
        if "f" in (found["prefix"] or "").lower():
            piece = re.sub(r"\{\{|\}\}|\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}", "\0", piece)
        if end >= 0 and not source[end : found.start()].strip():
            text += piece
        else:
            yield from ((begun, part) for part in text.split("\0"))
            line, counted = line + source.count("\n", counted, found.start()), found.start()
            text, begun = piece, line
        end = found.end()
    yield from ((begun, part) for part in text.split("\0"))


def asserted_often(product: Path, tests: Path) -> dict[str, list[str]]:
    """Return each text of the product that literals of two or more test files quote → file and line of each literal."""
    said = "\0".join(text for file in product.rglob("*.py") for _, text in literals(file.read_text()))
    quoted: dict[str, dict[Path, int]] = {}
    for file in sorted(tests.rglob("*.py")):
        for line, text in literals(file.read_text()):
            words = text.strip(" .,:;!?")
            if len(words) >= LEAST_LENGTH and len(words.split()) >= LEAST_WORDS:
                quoted.setdefault(words, {}).setdefault(file, line)
    return {
        words: [f"{file.relative_to(tests.parent)}:{line}" for file, line in places.items()]
        for words, places in quoted.items()
        if len(places) > 1 and words in said
    }


def test_a_sentence_is_asserted_in_one_test_file() -> None:
    found = asserted_often(REPOSITORY / "jitter_workshop", REPOSITORY / "tests")
    assert len(EXCEPTIONS) <= MOST_EXCEPTIONS
    assert EXCEPTIONS.keys() <= found.keys(), "an exception that nothing needs"
    twice = sorted(found.keys() - EXCEPTIONS.keys())
    assert not twice, "\n".join(f"{', '.join(found[words])}: {words!r}" for words in twice)


def test_a_sentence_in_two_files_is_found_with_its_lines(tmp_path: Path) -> None:
    product, tests = tmp_path / "product", tmp_path / "tests"
    for folder in (product, tests):
        folder.mkdir()
    (product / "a.py").write_text(
        '"""A note that nothing but this says."""\nsay(f"{n} of the cats sat "\n    "on my old mat.")'
        "  # and nowhere else at all\n"
    )
    quoted = "assert 'note that nothing but this says'\nassert 'and nowhere else at all'\nassert 'of the cats sat'\n"
    (tests / "test_one.py").write_text('# it\'s a comment\nassert (\n    "cats sat on "\n    "my old mat" in said\n)\n')
    (tests / "test_two.py").write_text(quoted)
    (tests / "test_three.py").write_text(quoted)
    assert asserted_often(product, tests) == {}
    (tests / "test_two.py").write_text(f"{quoted}assert said == f'{{n}} cats sat on my old mat.'\n")
    assert asserted_often(product, tests) == {"cats sat on my old mat": ["tests/test_one.py:3", "tests/test_two.py:4"]}
