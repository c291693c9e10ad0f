"""Find the line of a key in a TOML text: tomllib keeps no positions, and a mistake must name its line."""

from __future__ import annotations

import re

KeyPath = tuple[str | int, ...]

_HEADER = re.compile(r"^\s*(\[\[?)\s*([A-Za-z0-9_.\-\"' ]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"^\s*([A-Za-z0-9_\-.\"']+)\s*=")
_STRING = re.compile(r'"""|\'\'\'|"(?:[^"\\]|\\.)*"|\'[^\']*\'|#.*')


def key_lines(text: str) -> dict[KeyPath, int]:
    """Return key path → line (from 1), for tables, arrays of tables and keys at the beginning of a line.

    It never raises; a key that is not found here is reported on its table's line (see :func:`line_of`).
    """
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


def line_of(lines: dict[KeyPath, int], path: KeyPath) -> int:
    """Return the line of ``path`` or of the nearest table around it."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


def line_of_word(text: str, lines: dict[KeyPath, int], path: KeyPath, word: str) -> int:
    """Return the line of the quoted ``word`` in the value of ``path``, where it has its own; else that of ``path``."""
    start = line_of(lines, path)
    every = text.split("\n")
    end = min((line for line in lines.values() if line > start), default=len(every) + 1)
    quoted = (f'"{word}"', f"'{word}'")
    return next((n for n in range(start, end) if any(q in every[n - 1] for q in quoted)), start)


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _enter(is_array: bool, parts: tuple[str, ...], counts: dict[KeyPath, int]) -> KeyPath:
    """Return the path of a table header, with the index of each array of tables on the way."""
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
    """Return the quotes of a multi-line string and the depth of brackets that are still open behind this line."""
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
