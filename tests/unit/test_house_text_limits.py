"""A number that limits a text or a list has a name: the calls and the slices that shorten a text name their limit, and
so do the slices that take the first or the last items of a list.

A slice with a bare number may take something apart whose form is known. Such a slice is told apart by its place, see
``_taken_apart``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import jitter_workshop

_SHORTEN = {
    *("clean", "shortened", "called", "quoted_command", "code_span", "name_span"),
    *(
        "printable",
        "word",
        "plain_line",
        "plain_name",
        "cause_words",
        "cause_name",
        "shown_value",
        "value_told",
        "_text",
    ),
    *("not_offered",),
}
"""The functions that take a text, the path of a text, or a list, and its limit: those of ``model.text``,
``report.blocks``, ``host.root``, ``report.formats.common``, ``report.cause_words``, ``presenter.host.plan`` and
``flow.chapters.recorded``."""
_READ = {"text", "texts"}
"""The functions that read a text from a lesson's table or from a request. Their limit is ``limit`` or comes third."""
_ONE = 1
"""A limit of one character is no length to choose, but the form of the text."""
_LEAST = 3
"""From this number on, a slice is taken for a limit. Smaller slices mostly take one item or a pair."""
_IN_PARTS = {"split", "hexdigest"}
"""The methods whose results have parts of a known number or length: the words of a line, the digits of a sum."""
_PRODUCT = Path(jitter_workshop.__file__).parent


def bare_numbers(source: str) -> list[int]:
    """Return the lines in which a text or a list is shortened to a number without a name."""
    tree = ast.parse(source)
    apart = {part for whole in _taken_apart(tree) for part in ast.walk(whole) if isinstance(part, ast.Slice)}
    return sorted(node.lineno for node in ast.walk(tree) if node not in apart and any(map(_is_bare, _limits(node))))


def _taken_apart(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the expressions whose slices take something apart of a known form, and shorten nothing that is shown:

    - the slice is read as a number (``int``), is compared, or is unpacked (into names, or by ``*``);
    - the sliced value is a tuple, the words of a line, or the digits of a checksum.
    """
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="int") | ast.Attribute(value=ast.Name(id="int")), args=inner):
                yield from inner
            case ast.Compare(left=left, comparators=others):
                yield from (left, *others)
            case ast.Starred(value=ast.Subscript(slice=one)):
                yield one
            case ast.Assign(targets=[ast.Tuple()], value=ast.Subscript(slice=one)):
                yield one
            case ast.Subscript(value=ast.Tuple(), slice=one):
                yield one
            case ast.Subscript(value=ast.Call(func=ast.Attribute(attr=method)), slice=one) if method in _IN_PARTS:
                yield one


def _limits(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the limits of a call that shortens a text, or the number of a slice of the first or the last items."""
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
    assert bare_numbers("blocks.code_span(path, 300)\nname_span(label, LABEL)\nname_span(label, 60)") == [1, 3]


def test_a_bare_number_is_found_where_a_text_is_read_too() -> None:
    assert bare_numbers("printable(name, 60)\nprintable(state, 1)\nroot.word(path, 40)\nroot.word(path, ID)") == [1, 3]
    assert bare_numbers("table.text('id', limit=40)\ntable.texts('id', limit=ID, most=20)\ntable.texts('id')") == [1]
    assert bare_numbers("protocol.text(request, 'do', 20)\nprotocol.text(request, 'do', WORD)") == [1]
    assert bare_numbers("draw.text((1, 2), text, 255)") == []


def test_a_slice_to_a_bare_number_is_found() -> None:
    assert bare_numbers("text[:40]\ntext[:ID]\ntext[:2]\ntext[-500:]\ntext[-PATH:]\ntext[40:50]\ntext[:size]") == [1, 4]
    assert bare_numbers("f'{text[:40]!r}'\nstr(error)[:1_000].strip()") == [1, 2]


def test_a_list_that_is_cut_to_a_bare_number_is_found() -> None:
    assert bare_numbers("', '.join(names[:6])\nfor one in lines[:4]: ...\nlines[-8:]") == [1, 2, 3]
    assert bare_numbers("', '.join(names[:MOST])\nnames[:2]") == []
    assert bare_numbers("', '.join(name for name in sorted(names)[:3])\nprint(text.splitlines()[-8:])") == [1, 2]
    assert bare_numbers("not_offered(report, 6)") == [1]


def test_a_slice_that_takes_something_apart_is_not_found() -> None:
    assert bare_numbers("int(text[:4])\nint.from_bytes(whole[:4])\nint(text.ljust(6, '0')[:6] or '0')") == []
    assert bare_numbers("line[:8].rstrip() == 'options'\nclean(name, 40) == 'a'") == [2]
    assert bare_numbers("a, b, c = parts[:3]\nfields(*numbers[-3:])") == []
    assert bare_numbers("(*numbers, 0, 0)[:3]\npath.split('/')[:3]\nsha256(text).hexdigest()[:16]") == []


def test_no_text_and_no_list_is_shortened_to_a_number_without_a_name() -> None:
    found = [
        f"{path.relative_to(_PRODUCT)}:{line}"
        for path in sorted(_PRODUCT.rglob("*.py"))
        for line in bare_numbers(path.read_text())
    ]
    assert found == []
