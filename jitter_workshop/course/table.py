"""Read a TOML table strictly: wrong types, missing and unknown keys become mistakes with their file and line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from jitter_workshop.course.files import SourceText, columns, first_control, heaped_marks
from jitter_workshop.course.problems import Problems, nearest
from jitter_workshop.course.toml_lines import KeyPath, key_lines, line_of, line_of_word

_POSITION = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)$")


@dataclass(slots=True)
class Table:
    """Hold one table. Each reader notes which key it took; :meth:`finish` reports the rest as unknown."""

    source: SourceText
    lines: dict[KeyPath, int]
    problems: Problems
    data: dict[str, Any]
    path: KeyPath = ()
    taken: set[str] = field(default_factory=set)

    def line(self, key: str | None = None) -> int:
        return line_of(self.lines, self.path if key is None else (*self.path, key))

    def wrong(self, key: str | None, message: str) -> None:
        """Note a mistake at a key (None: at the table)."""
        self.problems.add(self.source.file, self.line(key), message)

    def wrong_word(self, key: str, word: str, message: str) -> None:
        """Note a mistake at a word of a list."""
        line = line_of_word(self.source.text, self.lines, (*self.path, key), word)
        self.problems.add(self.source.file, line, message)

    def text(self, key: str, *, required: bool = True, limit: int = 200, default: str = "") -> str:
        value = self._take(key, required)
        if value is None:
            return default
        if not isinstance(value, str):
            self.wrong(key, f"{key} must be text in quotes")
            return default
        return self._checked(key, value, limit) or default

    def texts(self, key: str, *, limit: int = 600, most: int = 20) -> tuple[str, ...]:
        value = self._take(key, required=False)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value) or len(value) > most:
            self.wrong(key, f"{key} must be a list of at most {most} texts")
            return ()
        return tuple(self._checked(key, v, limit) for v in value)

    def integer(self, key: str, low: int, high: int, *, required: bool = True) -> int | None:
        value = self._take(key, required)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            self.wrong(key, f"{key} must be a whole number from {low} to {high}")
            return None
        return value

    def number(self, key: str, low: float, high: float) -> float | None:
        value = self._take(key, required=False)
        if value is None:
            return None
        # TOML can write NaN, which fails the comparison.
        if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
            self.wrong(key, f"{key} must be a number from {low:g} to {high:g}")
            return None
        return float(value)

    def boolean(self, key: str) -> bool | None:
        value = self._take(key, required=False)
        if value is not None and not isinstance(value, bool):
            self.wrong(key, f"{key} must be true or false")
            return None
        return value

    def choice(self, key: str, known: Iterable[str], *, required: bool = True) -> str | None:
        value = self._take(key, required)
        if value is None:
            return None
        names = list(known)
        if not isinstance(value, str) or value not in names:
            self.wrong(key, f"unknown {key} {_shown(value)}{nearest(str(value)[:40], names)}")
            return None
        return value

    def choices(self, key: str, known: Iterable[str], *, required: bool = True) -> tuple[str, ...]:
        value = self._take(key, required)
        if value is None:
            return ()
        names = list(known)
        if not isinstance(value, list):
            self.wrong(key, f"{key} must be a list")
            return ()
        good: list[str] = []
        for item in value:
            if not isinstance(item, str) or item not in names:
                self.wrong(key, f"unknown name {_shown(item)} in {key}{nearest(str(item)[:40], names)}")
            elif item in good:
                self.wrong(key, f"{key} names {item} twice")
            else:
                good.append(item)
        return tuple(good)

    def table(self, key: str) -> Table | None:
        value = self._take(key, required=False)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.wrong(key, f"{key} must be a table, [{key}]")
            return None
        return self._inner(value, (*self.path, key))

    def tables(self, key: str, most: int = 20) -> tuple[Table, ...]:
        value = self._take(key, required=False)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(v, dict) for v in value) or len(value) > most:
            self.wrong(key, f"{key} must be at most {most} tables, each [[{key}]]")
            return ()
        return tuple(self._inner(v, (*self.path, key, i)) for i, v in enumerate(value))

    def finish(self) -> None:
        """Report every key that no reader asked for."""
        for key in self.data:
            if key not in self.taken:
                left = [k for k in self.taken if k not in self.data] or sorted(self.taken)
                self.wrong(key, f"unknown key {_shown(key)}{nearest(key[:40], sorted(left))}")

    def _inner(self, data: dict[str, Any], path: KeyPath) -> Table:
        return Table(self.source, self.lines, self.problems, data, path)

    def _take(self, key: str, required: bool) -> Any:
        self.taken.add(key)
        if key not in self.data:
            if required:
                self.wrong(None, f"{key} is missing")
            return None
        return self.data[key]

    def _checked(self, key: str, value: str, limit: int) -> str:
        value = value.strip()
        if not value:
            self.wrong(key, f"{key} is empty")
        elif len(value) > limit:
            self.wrong(key, f"{key} is longer than {limit} characters")
        elif columns(value) > limit:
            self.wrong(key, f"{key} is wider than {limit} columns: its characters take two each")
        # TOML's \u escapes can produce characters that the file itself does not contain.
        elif not value.replace("\n", "").replace("\t", "").isprintable() or first_control(value) is not None:
            self.wrong(key, f"{key} holds a control or invisible character")
        elif heaped_marks(value):
            self.wrong(key, f"{key} holds accents that stand on nothing, or too many on one letter")
        else:
            return value
        return ""


def parse_table(source: SourceText, problems: Problems) -> Table | None:
    """Return the top table of a TOML text; None, with the mistake noted, when it is not TOML."""
    try:
        data = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        position = _POSITION.search(message)
        line = int(position.group(1)) if position and position.group(1) else source.text.count("\n") + 1
        problems.add(source.file, line, f"not TOML: {_POSITION.sub('', message)}")
        return None
    except (RecursionError, ValueError) as error:
        problems.add(source.file, 1, f"not TOML: {str(error)[:100]}")
        return None
    return Table(source, key_lines(source.text), problems, data)


def _shown(value: object) -> str:
    return repr(value) if len(repr(value)) <= 60 else repr(value)[:57] + "..."
