"""One name, one meaning: a public class, or a public name of a type, is defined in one module only."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import jitter_workshop

_PRODUCT = Path(jitter_workshop.__file__).parent
ONE_CONCEPT_AT_TWO_LAYERS: dict[str, str] = {}
"""Name → why two modules may define it. At most ten: two classes with one name are almost always two concepts."""


def public_names(source: str) -> Iterator[str]:
    """Yield the public classes and names of types that a module defines. A class inside another class has the name of
    its owner before its own, so it is left out."""
    for node in ast.parse(source).body:
        match node:
            case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                pass
            case ast.Assign(targets=[ast.Name(id=name)]):
                pass
            case _:
                continue
        if _is_of_a_type(name):
            yield name


def _is_of_a_type(name: str) -> bool:
    """Return True for CamelCase. Constants have no small letter; a type variable is a single letter."""
    return name[0].isupper() and not name.isupper()


def several_times(modules: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return each name that more than one module defines, with these modules. ``modules``: (name, source)."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for module, source in modules:
        for name in sorted(set(public_names(source))):
            found[name].append(module)
    return {name: where for name, where in found.items() if len(where) > 1}


def test_classes_and_names_of_types_are_found() -> None:
    source = (
        'class Run:\n    class Ended:\n        pass\nclass _Part: ...\nKind = Literal["a"]\nPath: TypeAlias = str\n'
        'T = TypeVar("T")\nMOST = 3\n_Pair = tuple[int, int]\nfound: list[str] = []\n'
    )
    assert list(public_names(source)) == ["Run", "Kind", "Path"]


def test_a_name_of_two_modules_is_found() -> None:
    modules = [
        ("a", "class Run: ...\nclass Block: ..."),
        ("b", "Run = tuple[int, int]\nRun = None"),
        ("c", "class Stall: ..."),
    ]
    assert several_times(modules) == {"Run": ["a", "b"]}


def test_a_public_class_or_name_of_a_type_is_defined_in_one_module() -> None:
    modules = ((str(path.relative_to(_PRODUCT)), path.read_text()) for path in sorted(_PRODUCT.rglob("*.py")))
    found = several_times(modules)
    assert len(ONE_CONCEPT_AT_TWO_LAYERS) <= 10
    assert {name: where for name, where in found.items() if name not in ONE_CONCEPT_AT_TWO_LAYERS} == {}
    assert set(ONE_CONCEPT_AT_TWO_LAYERS) <= set(found), "an exception that is needed no more"
