"""A number that limits a text has a name: each call of ``model.text`` names the kind of its text."""

from __future__ import annotations

import ast
from pathlib import Path

import jitter_workshop

_SHORTEN = {"clean", "shortened", "called", "command_line"}
_PRODUCT = Path(jitter_workshop.__file__).parent


def bare_numbers(source: str) -> list[int]:
    """Return the lines in which a text is shortened to a number without a name."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    shortening = (c for c in calls if isinstance(c.func, ast.Name) and c.func.id in _SHORTEN)
    return [
        c.lineno
        for c in shortening
        for limit in (*c.args[1:], *(k.value for k in c.keywords))
        if isinstance(limit, ast.Constant)
    ]


def test_a_bare_number_is_found() -> None:
    assert bare_numbers("clean(name, 40)\ncalled(name, limit=30)\nclean(name, ID)\nclean(name)") == [1, 2]


def test_no_text_is_shortened_to_a_number_without_a_name() -> None:
    found = [
        f"{path.relative_to(_PRODUCT)}:{line}"
        for path in sorted(_PRODUCT.rglob("*.py"))
        for line in bare_numbers(path.read_text())
    ]
    assert found == []
