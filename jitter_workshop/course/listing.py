"""Add a chapter to the text of a course.toml without touching anything else in it, comments included."""

from __future__ import annotations

import re
import tomllib

_KEY = re.compile(r"^chapters[ \t]*=[ \t]*\[", re.MULTILINE)
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|\]')


def with_chapter(text: str, folder: str) -> str | None:
    """Return ``text`` whose ``chapters`` end with ``folder``, a plain name; None where that is not safe. The result
    must be equal to the old content except for the one chapter."""
    try:
        before = tomllib.loads(text)
        chapters = before.get("chapters")
        begin = _KEY.search(text)
        if begin is None or not isinstance(chapters, list) or folder in chapters:
            return None
        changed = _inserted(text, begin.end(), folder)
        if changed is None or tomllib.loads(changed) != {**before, "chapters": [*chapters, folder]}:
            return None
    except (tomllib.TOMLDecodeError, RecursionError):
        return None
    return changed


def _inserted(text: str, start: int, folder: str) -> str | None:
    """Return ``text`` with the name behind the last one of the list that begins at ``start``."""
    last = start
    for token in _TOKEN.finditer(text, start):
        if token.group() == "]":
            return _at(text, start, last, token.start(), f'"{folder}"')
        if not token.group().startswith("#"):
            last = token.end()
    return None


def _at(text: str, start: int, last: int, close: int, name: str) -> str:
    """Insert the name. ``last``: the end of the last name, ``start`` where there is none; ``close``: the bracket."""
    if last == start:
        return text[:start] + name + ("," if "\n" in text[start:close] else "") + text[start:]
    end = text.find("\n", last)
    if not last <= end < close:
        return text[:last] + f", {name}" + text[last:]
    # Each name has its own line: a comment behind the last name stays on that line.
    end -= text[end - 1] == "\r"
    line = text[text.rfind("\n", 0, last) + 1 : last]
    indent = line[: len(line) - len(line.lstrip())] or "    "
    newline = "\r\n" if text[end] == "\r" else "\n"
    comma = text[last:end].lstrip().startswith(",")
    kept = text[last:end] if comma else f",{text[last:end]}"
    return text[:last] + kept + newline + indent + name + ("," if comma else "") + text[end:]
