"""Describe all verbs and their options as data, for completions and for the man page."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from jitter_workshop.commands.common.base import VERBS, WORKSHOP, Parser, load_verb, verb_parser

ValueKind = Literal["words", "file", "folder", "text"]
"""The type of a value: some words, of which each may be offered; a file; a folder; any other text."""
_FOLDERS = ("DIR", "TREE", "FOLDER")
_FILES = ("FILE", "KEY")


@dataclass(frozen=True)
class Value:
    """Hold the value of an option, or a positional argument. ``name``: the name in the help, such as FILE. ``words``:
    the words that a completion offers. ``many``: True if several values may follow each other."""

    name: str
    kind: ValueKind
    words: tuple[str, ...] = ()
    many: bool = False


@dataclass(frozen=True)
class Option:
    """Hold an option. ``flags``: its names, such as ``("-o", "--output")``. ``value``: None for a switch."""

    flags: tuple[str, ...]
    value: Value | None
    help: str


@dataclass(frozen=True)
class Verb:
    """Hold a verb, or the workshop itself (``name`` is ""). ``line``: what the verb does, in one line. ``usage``: the
    usage line, without the program's name. ``doc``: the help below the options, with its line breaks. ``words``:
    (positional argument, help). ``command``: True if ``-- COMMAND…`` may follow."""

    name: str
    line: str
    usage: str
    doc: str
    options: tuple[Option, ...]
    words: tuple[tuple[Value, str], ...]
    command: bool

    @property
    def own(self) -> tuple[Option, ...]:
        """Return the options that not every verb has."""
        return tuple(option for option in self.options if option.flags[-1] not in ("--help", "--session", "--root"))


def verbs() -> tuple[Verb, ...]:
    """Return descriptions of the workshop itself and of each verb, in the order of the help."""
    return tuple(_verb(name) for name in (WORKSHOP, *VERBS))


def _verb(name: str) -> Verb:
    module = load_verb(name)
    parser = verb_parser(name, module.__doc__)
    module.add_arguments(parser)
    shown = "" if name == WORKSHOP else name
    options = tuple(_option(shown, action) for action in parser._actions if action.option_strings)
    if name == WORKSHOP:
        # cli.main prints it, before a parser is made.
        options += (Option(("--version",), None, "print the version of this program"),)
    return Verb(
        shown,
        VERBS.get(name, parser.description or ""),
        _usage(parser),
        parser.epilog or "",
        options,
        tuple((_value(shown, action), _help(action)) for action in parser._actions if not action.option_strings),
        parser.takes_command,
    )


def _usage(parser: Parser) -> str:
    said = " ".join(parser.format_usage().removeprefix("usage: ").split())
    return said.removeprefix(parser.prog).strip() + (" [-- COMMAND…]" if parser.takes_command else "")


def _option(verb: str, action: argparse.Action) -> Option:
    return Option(tuple(action.option_strings), None if action.nargs == 0 else _value(verb, action), _help(action))


def _help(action: argparse.Action) -> str:
    return (action.help or "").replace("%%", "%")


def _value(verb: str, action: argparse.Action) -> Value:
    many = action.nargs in ("*", "+")
    words = tuple(map(str, action.choices or ())) or _offered(verb, action)
    name = action.metavar if isinstance(action.metavar, str) else "|".join(words) if words else action.dest.upper()
    if words:
        return Value(name, "words", words, many)
    kind: ValueKind = "text"
    if any(name.startswith(one) for one in _FOLDERS):
        kind = "folder"
    elif any(name.startswith(one) for one in _FILES) or (verb, action.dest) == ("sessions", "id"):
        kind = "file"
    return Value(name, kind, (), many)


def _offered(verb: str, action: argparse.Action) -> tuple[str, ...]:
    """Return the words that a shell completion offers for an argument.

    Use this for an argument for which the parser accepts any word (see ``base.offer``). For other arguments, the
    completion offers the parser's choices.
    """
    find = _OFFERS.get((verb, action.dest))
    return find() if find is not None else getattr(action, "offered", ())


@functools.cache
def _tunables() -> tuple[str, ...]:
    from jitter_workshop.tuning.tunables import registry

    return tuple(one.id for one in registry.tunables())


def _provable() -> tuple[str, ...]:
    return (*_tunables(), "placement")


@functools.cache
def _chapters() -> tuple[str, ...]:
    from jitter_workshop.course.loader import load_course

    return tuple(one.id for one in load_course().chapters)


def _noises() -> tuple[str, ...]:
    from jitter_workshop.model.noise import NOISE_KINDS

    return NOISE_KINDS


def _shapes() -> tuple[str, ...]:
    from jitter_workshop.practice.shape import SHAPES

    return tuple(SHAPES)


def _scenarios() -> tuple[str, ...]:
    from jitter_workshop.course.scenarios import load_scenarios

    return tuple(load_scenarios())


_OFFERS: dict[tuple[str, str], Callable[[], tuple[str, ...]]] = {
    ("", "chapter"): _chapters,
    ("status", "ids"): _tunables,
    ("status", "explain"): _tunables,
    ("plan", "wanted"): _tunables,
    ("apply", "wanted"): _tunables,
    ("restore", "tunables"): _tunables,
    ("prove", "words"): _provable,
    ("measure", "noise"): _noises,
    ("practice", "shape"): _shapes,
    ("practice", "scenario"): _scenarios,
    ("lessons", "id"): _chapters,
    ("class", "chapter"): _chapters,
}
"""(verb, name in the parsed options) → a function that returns the words to offer."""


def taking_values(verb: Verb) -> Iterator[tuple[Option, Value]]:
    """Yield (option, value) for each option of a verb that takes a value."""
    for option in verb.options:
        if option.value is not None:
            yield option, option.value
