"""Read a TOML table strictly: wrong types, missing keys and unknown keys become mistakes with file and line.

tomllib gives no line numbers, so the keys are looked up in the text.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jitter_workshop.course.files import (
    Problems,
    SourceText,
    columns,
    first_control,
    heaped_marks,
    nearest,
    read_source,
)
from jitter_workshop.model.text import LABEL, REASON

KeyPath = tuple[str | int, ...]

_HEADER = re.compile(r"^\s*(\[\[?)\s*([A-Za-z0-9_.\-\"' ]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"^\s*([A-Za-z0-9_\-.\"']+)\s*=")
_STRING = re.compile(r'"""|\'\'\'|"(?:[^"\\]|\\.)*"|\'[^\']*\'|#.*')
_POSITION = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)$")


@dataclass(slots=True)
class TomlTable:
    """Hold one table of a TOML file, and check its keys. Each method that reads a key adds a mistake for a wrong value.
    The method ``finish`` adds a mistake for each key that no method has read."""

    source: SourceText
    problems: Problems
    data: dict[str, Any]
    path: KeyPath = ()
    taken: set[str] = field(default_factory=set)

    def line(self, key: str | None = None) -> int:
        return line_of(key_lines(self.source.text), self.path if key is None else (*self.path, key))

    def wrong(self, key: str | None, message: str) -> None:
        """Add a mistake at the line of the key ``key``; None means the line of the table."""
        self.problems.add(self.source.file, self.line(key), message)

    def wrong_word(self, key: str, word: str, message: str) -> None:
        """Add a mistake at the line of a word in a list."""
        line = line_of_word(self.source.text, key_lines(self.source.text), (*self.path, key), word)
        self.problems.add(self.source.file, line, message)

    def text(self, key: str, *, required: bool = True, limit: int = 200) -> str:
        value = self._take(key, required, lambda v: isinstance(v, str), "text in quotes")
        return "" if value is None else self._checked(key, value, limit)

    def texts(self, key: str, *, limit: int = 600, most: int = 20) -> tuple[str, ...]:
        value = self._take(key, False, lambda v: _is_list(v, str, most), f"a list of at most {most} texts")
        return tuple(self._checked(key, v, limit) for v in value or ())

    def integer(self, key: str, low: int, high: int, *, required: bool = True) -> int | None:
        words = f"a whole number from {low} to {high}"
        value: int | None = self._take(key, required, lambda v: type(v) is int and low <= v <= high, words)
        return value

    def number(self, key: str, low: float, high: float, *, required: bool = False) -> float | None:
        # TOML can write NaN, which fails the comparison.
        words = f"a number from {low:g} to {high:g}"
        value = self._take(key, required, lambda v: type(v) in (int, float) and low <= v <= high, words)
        return None if value is None else float(value)

    def boolean(self, key: str) -> bool | None:
        value: bool | None = self._take(key, False, lambda v: isinstance(v, bool), "true or false")
        return value

    def choice(self, key: str, known: Iterable[str], *, required: bool = True) -> str | None:
        value = self._take(key, required)
        names = list(known)
        if value is None or (isinstance(value, str) and value in names):
            return value
        self.wrong(key, f"unknown {key} {_shown(value)}{nearest(str(value), names)}")
        return None

    def choices(self, key: str, known: Iterable[str], *, required: bool = True) -> tuple[str, ...]:
        names = list(known)
        good: list[str] = []
        for item in self._take(key, required, lambda v: isinstance(v, list), "a list") or ():
            if not isinstance(item, str) or item not in names:
                self.wrong(key, f"unknown name {_shown(item)} in {key}{nearest(str(item), names)}")
            elif item in good:
                self.wrong(key, f"{key} lists {item} twice")
            else:
                good.append(item)
        return tuple(good)

    def table(self, key: str) -> TomlTable | None:
        value = self._take(key, False, lambda v: isinstance(v, dict), f"a table, [{key}]")
        return None if value is None else self._inner(value, (*self.path, key))

    def tables(self, key: str, most: int = 20) -> tuple[TomlTable, ...]:
        value = self._take(
            key, False, lambda v: _is_list(v, dict, most), f"at most {most} tables of the form [[{key}]]"
        )
        return tuple(self._inner(v, (*self.path, key, i)) for i, v in enumerate(value or ()))

    def finish(self) -> None:
        """Add the mistake "unknown key" for each key of the table that no method has read."""
        for key in self.data:
            if key not in self.taken:
                left = [k for k in self.taken if k not in self.data] or sorted(self.taken)
                self.wrong(key, f"unknown key {_shown(key)}{nearest(key, sorted(left))}")

    def _inner(self, data: dict[str, Any], path: KeyPath) -> TomlTable:
        return TomlTable(self.source, self.problems, data, path)

    def _take(self, key: str, required: bool, fits: Callable[[Any], bool] = lambda _: True, words: str = "") -> Any:
        """Return the value of ``key``, or None if the key is missing or its value is wrong. Add a mistake if a
        ``required`` key is missing. Add the mistake ``KEY must be WORDS`` if ``fits`` refuses the value."""
        self.taken.add(key)
        if key not in self.data:
            if required:
                self.wrong(None, f"{key} is missing")
            return None
        if not fits(self.data[key]):
            self.wrong(key, f"{key} must be {words}")
            return None
        return self.data[key]

    def _checked(self, key: str, value: str, limit: int) -> str:
        value = value.strip()
        if not value:
            self.wrong(key, f"{key} is empty")
        elif len(value) > limit:
            self.wrong(key, f"{key} is longer than {limit} characters")
        elif columns(value) > limit:
            self.wrong(key, f"{key} is wider than {limit} columns: some of its characters take two columns")
        # TOML's \u escapes can produce characters that the file itself does not contain.
        elif not value.replace("\n", "").replace("\t", "").isprintable() or first_control(value) is not None:
            self.wrong(key, f"{key} has a control character or an invisible one")
        elif heaped_marks(value):
            self.wrong(key, f"{key} has an accent without a letter, or a letter with too many accents")
        else:
            return value
        return ""


def parse_table(source: SourceText, problems: Problems) -> TomlTable | None:
    """Return the top table of a TOML text. If the text is no TOML, add a mistake to ``problems`` and return None."""
    try:
        data = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        position = _POSITION.search(message)
        line = int(position.group(1)) if position and position.group(1) else source.text.count("\n") + 1
        problems.add(source.file, line, f"not TOML: {_POSITION.sub('', message)}")
        return None
    except (RecursionError, ValueError) as error:
        problems.add(source.file, 1, f"not TOML: {str(error)[:REASON]}")
        return None
    return TomlTable(source, problems, data)


def _is_list(value: object, kind: type, most: int) -> bool:
    return isinstance(value, list) and len(value) <= most and all(isinstance(one, kind) for one in value)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LABEL else text[: LABEL - 3] + "..."


# The lines of keys ----------------------------------------------------------------------------------------------------


class KeyLines:
    """Find the lines of keys in the file ``folder/lesson.toml`` of a course in ``base``. ``file``: this file's name in
    messages."""

    def __init__(self, base: Path, folder: str) -> None:
        self.file = f"{folder}/lesson.toml"
        source = read_source(base, self.file, Problems())
        self._text = source.text if source else ""
        self._lines = key_lines(self._text)

    def line(self, *path: str | int, word: str = "") -> int:
        """Return the line number, from 1, of the key with this path. With ``word``, return the line on which the key's
        value has this word in quotes, if there is one."""
        return line_of_word(self._text, self._lines, path, word) if word else line_of(self._lines, path)


@functools.lru_cache(maxsize=4)
def key_lines(text: str) -> Mapping[KeyPath, int]:
    """Return the line numbers of keys and tables in a TOML text: key path → line, from 1. Keys that do not begin a line
    are left out; :func:`line_of` then finds the line of their table. The results for the last four texts are cached."""
    lines: dict[KeyPath, int] = {(): 1}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    open_quote = ""
    depth = 0
    for number, line in enumerate(text.split("\n"), start=1):
        at_statement = not open_quote and depth == 0
        if at_statement and (header := _HEADER.match(line)):
            table = _enter(header.group(1) == "[[", _parts(header.group(2)), counts)
            lines.setdefault(table, number)
            continue
        if at_statement and (key := _KEY.match(line)):
            lines.setdefault((*table, *_parts(key.group(1))), number)
        open_quote, depth = _after(line, open_quote, depth)
    return lines


def line_of(lines: Mapping[KeyPath, int], path: KeyPath) -> int:
    """Return the line of ``path``, or of the innermost table around it if the key is not in ``lines``."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


def line_of_word(text: str, lines: Mapping[KeyPath, int], path: KeyPath, word: str) -> int:
    """Return the line of ``word``, in quotes, in the value of the key ``path``. If there is no such line, return the
    line of the key.
    """
    start = line_of(lines, path)
    every = text.split("\n")
    end = min((line for line in lines.values() if line > start), default=len(every) + 1)
    quoted = (f'"{word}"', f"'{word}'")
    return next((n for n in range(start, end) if any(q in every[n - 1] for q in quoted)), start)


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _enter(is_array: bool, parts: tuple[str, ...], counts: dict[KeyPath, int]) -> KeyPath:
    """Return the key path for the header of a table. An array of tables adds two parts to the path: its name, and the
    index of the present table."""
    path: KeyPath = ()
    for position, part in enumerate(parts):
        path = (*path, part)
        last = position == len(parts) - 1
        if last and is_array:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _after(line: str, open_quote: str, depth: int) -> tuple[str, int]:
    """Return the open quotes and the number of open brackets at the end of ``line``. The quotes are those of a
    multi-line string that is still open; "" for none. ``open_quote``, ``depth``: the same two values at the beginning
    of the line.
    """
    rest = line
    if open_quote:
        _, closed, rest = line.partition(open_quote)
        if not closed:
            return open_quote, depth
    while True:
        token = _STRING.search(rest)
        plain = rest if token is None else rest[: token.start()]
        depth = max(0, depth + sum(plain.count(c) for c in "[{") - sum(plain.count(c) for c in "]}"))
        if token is None or token.group().startswith("#"):
            return "", depth
        rest = rest[token.end() :]
        if token.group() in ('"""', "'''"):
            _, closed, rest = rest.partition(token.group())
            if not closed:
                return token.group(), depth
