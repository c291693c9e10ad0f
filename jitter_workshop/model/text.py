"""Make names from outside safe to print on a terminal, such as names of tasks, hosts and files. Also find the code
blocks of a page."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from typing import Literal

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories of characters that draw nothing or control the terminal:

- controls,
- format marks, also those that reverse the direction of writing,
- surrogates, private and unassigned code points,
- separators of lines and paragraphs.
"""


# The largest numbers of characters that are shown of a text from outside, one for each kind of text.
CELL = 12
"""The largest length of a text in a narrow cell of a table: a number, a date, a thread."""
WORD = 20
"""The largest length of one word: a unit, a version, a kind of workload or noise, a thread."""
SHORT = 30
"""The largest length of a name in a row with several other texts."""
ID = 40
"""The largest length of an id, a verb or a step, and of a host's name beside other words."""
LABEL = 60
"""The largest length of a name that a person gave to a session, a run or a tool, and of a chapter's title."""
USER = 64
"""The largest length of a user's name, and of a name in a class file."""
NAME = 80
"""The largest length of any other name: of a task, a host, a file."""
LINE = 120
"""The largest length of a value or a path that stands in a line with other words."""
REASON = 200
"""The largest length of a reason from another program or a library, and of a short note."""
PATH = 300
"""The largest length of a path or a command line."""
SENTENCE = 400
"""The largest length of a sentence: a reason, a note of a run, a message with its advice."""
PARAGRAPH = 600
"""The largest length of two or three sentences."""
MESSAGE = 2_000
"""The largest length of a whole message of several sentences."""
# The largest numbers of items that are told in a row, one for each kind of item.
MOST_PHRASES = 3
"""The most phrases in one sentence, such as commands, reasons, or tasks with their times."""
MOST_LONG_NAMES = 3
"""The most long names in one sentence, such as names of files or of runs."""
MOST_ENTRIES = 4
"""The most paths, values, or names with a value in one sentence or list."""
MOST_NAMES = 6
"""The most names in one sentence, such as names of settings or of services."""
MOST_WORDS = 8
"""The most short words or numbers in one sentence."""
MOST_SENTENCES = 4
"""The most sentences of one kind, such as one for each CPU."""
_DAY = len("2026-01-01")
_LONGEST = 4_000
"""The largest length of a text that is made into a sentence, if no other length is given."""
_HEAD = 5
"""The least length of the beginning that a shortened name keeps. The mark and the blank after this beginning are
counted, too."""


def clean(text: object, limit: int = NAME) -> str:
    """Return ``text`` as one line of at most ``limit`` characters, without control characters, escapes and direction
    marks.

    Removed characters become one blank; a text that is too long ends with ``…``."""
    raw = str(text)[: limit * 8 + 64]
    # Printable characters are in no hidden category, and nearly every text has no others.
    visible = raw if raw.isprintable() else "".join(" " if unicodedata.category(c) in _HIDDEN else c for c in raw)
    line = " ".join(visible.split())
    return line if len(line) <= limit else line[: max(limit - 1, 0)].rstrip() + "…"


def shortened(text: object, limit: int = NAME) -> str:
    """Return a text cleaned by :func:`clean`, without its middle if it is too long: ``isolation: fr… spinners``. Names
    of runs often differ only at the end, so the end is kept."""
    line = clean(text, 4 * NAME)
    if len(line) <= limit:
        return line
    words, most = line.split(" "), (limit - 1) * 3 // 5
    tail = words[-1]
    for word in reversed(words[:-1]):
        if len(word) + 1 + len(tail) > most:
            break
        tail = f"{word} {tail}"
    # The end begins with a whole word, unless the last word alone is too long.
    whole = len(words) > 1 and len(tail) <= limit - _HEAD
    tail = tail if whole else line[len(line) - max(most, 0) :].strip()
    gap = "… " if whole else "…"
    return f"{line[: max(limit - len(gap) - len(tail), 0)].rstrip()}{gap}{tail}"[: max(limit, 0)]


def capital(text: str) -> str:
    """Return a text with a capital as its first letter."""
    return f"{text[:1].upper()}{text[1:]}"


def cleaned_sentence(text: object, limit: int = _LONGEST) -> str:
    """Return a text cleaned by :func:`clean` as a sentence: it begins with a capital, and gets a full stop if it does
    not end with ``.``, ``!`` or ``?``."""
    said = capital(clean(text, limit))
    return said if not said or said.endswith((".", "!", "?")) else f"{said}."


def called(name: object, limit: int = NAME) -> str:
    """Return a name cleaned by :func:`clean`. For a name without visible characters return "(no visible name)"."""
    return clean(name, limit) or clean("(no visible name)", limit)


def quoted_command(words: Iterable[str], limit: int = PATH) -> str:
    """Return the words of a command as one clean line, quoted as for a shell."""
    import shlex

    return clean(shlex.join(words), limit)


def day(stamp: str) -> str:
    """Return the day of a stored time (ISO 8601, UTC) in the form ``2026-01-01``; "" if ``stamp`` is ""."""
    return clean(stamp, ID)[:_DAY]


def minute(stamp: str) -> str:
    """Return a stored time (ISO 8601, UTC) in the form ``2026-01-01 09:30``; "" if ``stamp`` is ""."""
    text = clean(stamp, ID)
    return f"{day(text)} {text[11:16]}".strip()


def many(count: int, what: str) -> str:
    """Return a number with the noun ``what``, in the plural where it is needed: ``1 write``, ``2,200 writes``, ``no
    writes``."""
    number = f"{count:,}" if count else "no"
    return f"{number} {what}{'' if count == 1 else 's'}"


def fell_away(ended: int, changed: int = 0) -> str:
    """Return sentences on those writes of a plan that were not made. Return "" if all writes were made. ``ended``: the
    number of writes whose tasks had ended. ``changed``: the number of writes whose settings had changed since the plan
    was shown."""
    tasks, were = ("task", "was") if ended == 1 else ("tasks", "were")
    said = [f"{many(ended, 'write')} {were} not needed: the {tasks} had ended."] if ended else []
    settings, were, its = ("setting", "was", "its") if changed == 1 else ("settings", "were", "their")
    also = "also " if ended else ""
    if changed:
        said.append(f"{many(changed, 'write')} {were} {also}left out: {its} {settings} had changed since the plan.")
    return " ".join(said)


def tally(tunables: Iterable[str], of: int = 0) -> str:
    """Return the numbers of tunables and of writes in words, such as ``2 settings, 22 writes``. ``tunables``: for each
    write, the id of its tunable. ``of``: a larger number of writes from which these are taken, as in ``1 setting, 54 of
    60 writes``; the reader can then check the sum."""
    ids = tuple(tunables)
    writes = f"{len(ids):,} of {many(of, 'write')}" if of > len(ids) else many(len(ids), "write")
    return f"{many(len(set(ids)), 'setting')}, {writes}"


LineKind = Literal["text", "fence", "code"]


def split_code(lines: Iterable[str]) -> Iterator[tuple[str, LineKind]]:
    """Yield each line of a page with its kind: code, a fence of code, or text.

    A code block begins with a line of at least three ` or ~. At most one plain word follows these characters. The block
    ends with a line of at least as many of the same characters. The first and the last line are not indented. All
    readers of Markdown understand such blocks in the same way.
    """
    fence = ""
    for line in lines:
        mark = fence_mark(line)
        rest = line[len(mark) :].strip()
        if fence:
            closed = mark.startswith(fence) and not rest
            fence = "" if closed else fence
            yield line, "fence" if closed else "code"
        elif mark and all(c.isalnum() or c in "+-_.#" for c in rest):
            fence = mark
            yield line, "fence"
        else:
            yield line, "text"


def fence_mark(line: str) -> str:
    """Return the fence at the beginning of a line: three or more of the characters ` or ~. Return "" if the line begins
    with no fence."""
    mark = line[: len(line) - len(line.lstrip(line[:1]))] if line[:1] in ("`", "~") else ""
    return mark if len(mark) >= 3 else ""
