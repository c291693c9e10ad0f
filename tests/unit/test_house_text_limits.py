"""A number that limits a text has a name: the calls and the slices that shorten a text name their limit."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import jitter_workshop

_SHORTEN = {
    *("clean", "shortened", "called", "command_line", "code", "name"),
    *("printable", "word", "plain_line", "plain_name", "cause_words", "named", "shown_value", "value_told", "_text"),
}
"""The functions that take a text, or the path of a text, and its limit: those of ``model.text``, ``report.blocks``,
``host.root``, ``report.formats.common``, ``report.cause_words``, ``presenter.host.plan`` and
``flow.chapters.recorded``."""
_READ = {"text", "texts"}
"""The functions that read a text from a lesson's table or from a request. Their limit is ``limit`` or comes third."""
_ONE = 1
"""A limit of one character is no length to choose, but the form of the text."""
_LEAST = 30
"""From this number on, a slice is taken for a limit. Smaller slices mostly take a text apart, such as a date."""
_PRODUCT = Path(jitter_workshop.__file__).parent


def bare_numbers(source: str) -> list[int]:
    """Return the lines in which a text is shortened to a number without a name."""
    return [node.lineno for node in ast.walk(ast.parse(source)) if any(map(_is_bare, _limits(node)))]


def _limits(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the limits of a call that shortens a text, or the large end of a slice."""
    match node:
        case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called)) if called in _SHORTEN:
            yield from (*node.args[1:], *(keyword.value for keyword in node.keywords))
        case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called)) if called in _READ:
            yield from (keyword.value for keyword in node.keywords if keyword.arg == "limit")
            if isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "protocol":
                yield from node.args[2:]
        case ast.Slice(lower=None, upper=ast.Constant(value=int(most)) as end) if most >= _LEAST:
            yield end
        case ast.Slice(lower=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(most)) as end), upper=None) if (
            most >= _LEAST
        ):
            yield end


def _is_bare(limit: ast.expr) -> bool:
    return isinstance(limit, ast.Constant) and type(limit.value) is int and limit.value > _ONE


def test_a_bare_number_is_found() -> None:
    assert bare_numbers("clean(name, 40)\ncalled(name, limit=30)\nclean(name, ID)\nclean(name)") == [1, 2]
    assert bare_numbers("blocks.code(path, 300)\nname(label, LABEL)\nname(label, 60)") == [1, 3]


def test_a_bare_number_is_found_where_a_text_is_read_too() -> None:
    assert bare_numbers("printable(name, 60)\nprintable(state, 1)\nroot.word(path, 40)\nroot.word(path, ID)") == [1, 3]
    assert bare_numbers("table.text('id', limit=40)\ntable.texts('id', limit=ID, most=20)\ntable.texts('id')") == [1]
    assert bare_numbers("protocol.text(request, 'do', 20)\nprotocol.text(request, 'do', WORD)") == [1]
    assert bare_numbers("draw.text((1, 2), text, 255)") == []


def test_a_slice_to_a_bare_number_is_found() -> None:
    assert bare_numbers("text[:40]\ntext[:ID]\ntext[:10]\ntext[-500:]\ntext[-PATH:]\ntext[40:50]\ntext[:size]") == [
        1,
        4,
    ]
    assert bare_numbers("f'{text[:40]!r}'\nstr(error)[:1_000].strip()") == [1, 2]


def test_no_text_is_shortened_to_a_number_without_a_name() -> None:
    found = [
        f"{path.relative_to(_PRODUCT)}:{line}"
        for path in sorted(_PRODUCT.rglob("*.py"))
        for line in bare_numbers(path.read_text())
    ]
    assert found == []
