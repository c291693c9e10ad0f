"""One name, one meaning: a public function of a module has a name that no other module gives to a function."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import jitter_workshop

_PRODUCT = Path(jitter_workshop.__file__).parent


class Interface(NamedTuple):
    """Hold one function that several modules have, because a caller chooses among these modules. ``places``: folders
    and files below the package; "" is the package."""

    places: tuple[str, ...]
    why: str


INTERFACES = {
    "add_arguments": Interface(("commands",), "each verb adds its own options to the parser that cli gives it"),
    "run": Interface(("commands", "cli.py"), "runs a command line: cli the whole one, the module of a verb its own"),
    "main": Interface(("",), "the beginning of a program: the product, its agent, its children, its samples"),
    "files": Interface(("report", "flow/reporting"), "each format of a report makes its files; draft imports it"),
    "detect": Interface(("session",), "each foreign format recognizes its files; session.foreign asks them in turn"),
    "parse": Interface(("session",), "each foreign format reads its files; session.foreign calls the one that fits"),
}
"""Name → the interface. At most ten: other functions with one name are almost always two meanings."""
_MOST_INTERFACES = 10


def public_functions(source: str) -> Iterator[str]:
    """Yield the names of a module's public functions. Methods have the name of their class before their own, so they
    are left out."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield node.name


def several_times(modules: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return each name that more than one module gives to a function, with these modules. Modules in the places of an
    interface count as one. ``modules``: (path below the package, source)."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    inside: set[str] = set()
    for module, source in modules:
        for name in public_functions(source):
            if name in INTERFACES and _is_below(module, INTERFACES[name].places):
                inside.add(name)
            else:
                found[name].add(module)
    return {name: sorted(where) for name, where in found.items() if len(where) + (name in inside) > 1}


def _is_below(module: str, places: Iterable[str]) -> bool:
    return any(not place or module == place or module.startswith(f"{place}/") for place in places)


def _product() -> list[tuple[str, str]]:
    return [(str(path.relative_to(_PRODUCT)), path.read_text()) for path in sorted(_PRODUCT.rglob("*.py"))]


def test_functions_are_found() -> None:
    source = "def run(): ...\nasync def listen(): ...\ndef _part(): ...\nclass Run:\n    def end(self): ...\n"
    assert list(public_functions(source)) == ["run", "listen"]


def test_a_name_of_two_modules_is_found() -> None:
    modules = [("a.py", "def judge(): ..."), ("b.py", "def judge(): ..."), ("c.py", "def _judge(): ...")]
    assert several_times(modules) == {"judge": ["a.py", "b.py"]}


def test_the_name_of_an_interface_belongs_to_its_places() -> None:
    verbs = [("commands/apply.py", "def run(): ..."), ("commands/classes/turn.py", "def run(): ...")]
    assert several_times(verbs) == {}
    assert several_times([*verbs, ("bench/runner.py", "def run(): ...")]) == {"run": ["bench/runner.py"]}
    assert several_times([*verbs, ("commands_of_others.py", "def run(): ...")]) == {"run": ["commands_of_others.py"]}


def test_a_public_function_has_a_name_of_its_own() -> None:
    assert several_times(_product()) == {}


def test_an_interface_is_one() -> None:
    assert len(INTERFACES) <= _MOST_INTERFACES
    for name, interface in INTERFACES.items():
        where = [module for module, source in _product() if name in public_functions(source)]
        assert len(where) > 1, f"{name}: an interface of one module"
        assert all(_is_below(module, interface.places) for module in where)
        assert all(any(_is_below(module, (place,)) for module in where) for place in interface.places), name
