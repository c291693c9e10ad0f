"""Build lines of text for the screen, the plain walk and the command line.

A line is a ``Text`` (:mod:`~jitter_workshop.presenter.text.styled`) whose styles are words. A style is ``bold``,
``under`` (the row under the cursor), or a role of the palette, such as ``dim``, ``code`` or ``cause_task``. A role
becomes a colour only when the line is shown. The screen uses the colours of a theme (``tui.widgets.sheet``).
:func:`written` uses the terminal's own colours, or none.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.text import clean
from jitter_workshop.presenter.text.styled import Text, cell_len, is_narrow, set_cell_size

if TYPE_CHECKING:
    import datetime

Lines = list[Text]

NARROWEST, WIDEST = 60, 160
LEAST_WIDTH, LEAST_HEIGHT = 60, 16
"""The smallest terminal for the screen, in characters. A smaller one gets the line-by-line workshop. A terminal that
becomes smaller shows only a sentence that says so."""
PIPE_WIDTH = 100
"""The assumed width of a pipe or a file, which have no width of their own."""

_ON_A_TERMINAL = {
    "dim": "dim",
    "faint": "dim",
    "rule": "dim",
    "accent": "yellow",
    "good": "green",
    "bad": "red",
    "cool": "cyan",
    "text": "",
    "code": "",
    "under": "",
    "curve_before": "cyan",
    "curve_after": "yellow",
    "cause_task": "blue",
    "cause_irq": "yellow",
    "cause_softirq": "bright_yellow",
    "cause_timer": "cyan",
    "cause_work": "magenta",
    "cause_move": "bright_magenta",
    "cause_fault": "bright_cyan",
}
"""The roles in the sixteen colours that every terminal has."""
_ATTRIBUTES = {"bold": "1", "dim": "2", "italic": "3", "underline": "4", "reverse": "7"}
_COLOURS = {
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "bright_yellow": "93",
    "bright_magenta": "95",
    "bright_cyan": "96",
}
_IN_ASCII = str.maketrans("─│╭╯┌┐└┘┬┴█▓▒░·▏▶▲…━╸", "-|++++++++#=~..:>^.=-")
_BLANK = re.compile(r"(?<!\d) | (?!(?:ns|µs|ms|s|min|GHz|%)(?!\w))")
MANY_CPUS = 2_000
"""The most characters that are kept of a sentence before :func:`cpus_in_short` shortens its lists of CPUs."""
_CPU_LIST = r"(?<![\w.,-])\d+(?:-\d+)?(?:,\d+(?:-\d+)?){7,}(?![\w-])"
_SHORT_LIST, _FIRST_CPUS = 40, 4
_WAITING_BAR = 60
_LOWEST_NS = 10.0
_LONGEST = 4_000
"""The most characters of a paragraph that are shown."""


# -- at the edge -------------------------------------------------------------------------------------------------------


class Output:
    """Write lines to a stream, in the stream's width, and in colours on a terminal that has them.

    ``width``: the number of columns for text. COLUMNS overrides the terminal's own width; a pipe gets PIPE_WIDTH.
    ``colour``: True if escape sequences may be written. A NO_COLOR that is not empty, or a dumb TERM, means no colour.
    """

    def __init__(self, stream: TextIO | None = None, narrowest: int = NARROWEST) -> None:
        """Prepare output to a stream, None for standard output. ``narrowest``: the smallest width in cells."""
        self._stream = stream = stream or sys.stdout
        try:
            terminal = stream is not None and stream.isatty()
        except ValueError:
            terminal = False
        given = os.environ.get("COLUMNS", "")
        width = int(given) if given.isascii() and given.isdigit() and len(given) < 5 else 0
        if not width and terminal and stream is not None:
            try:
                width = os.get_terminal_size(stream.fileno()).columns
            except OSError:
                width = 80
        dumb = os.environ.get("TERM", "") in ("", "dumb")
        self.width = max(narrowest, min(width or PIPE_WIDTH, WIDEST))
        self.colour = terminal and not dumb and not os.environ.get("NO_COLOR")

    def show(self, lines: Iterable[Text]) -> None:
        """Write lines, each with a line break at its end."""
        self._stream.write(written(lines, self.colour))


def written(lines: Iterable[Text], colour: bool = False) -> str:
    """Return the lines as one string, each with a line break at its end. ``colour``: with escapes for the styles."""
    return "".join(f"{_escaped(line) if colour else line.plain.rstrip()}\n" for line in lines)


def in_ascii(lines: Lines) -> Lines:
    """Return the lines with each character of a drawn line, box or bar replaced by one ASCII character."""
    for line in lines:
        line.plain = line.plain.translate(_IN_ASCII)
    return lines


def _escaped(line: Text) -> str:
    line = line.copy()
    line.rstrip()
    ends = sorted({0, len(line), *(at for span in line.spans for at in (span.start, span.end))})
    made = ""
    for start, end in itertools.pairwise(ends):
        styles = [line.style, *(span.style for span in line.spans if span.start <= start < span.end)]
        codes = _codes(" ".join(styles))
        made += f"\x1b[{codes}m{line.plain[start:end]}\x1b[0m" if codes else line.plain[start:end]
    return made


@functools.cache
def _codes(style: str) -> str:
    """Return the codes of an escape sequence for a style: its attributes, sorted by number, then the colour that the
    style names last (ECMA-48, SGR). Return "" if the style has no attribute and no colour.
    """
    attributes: set[str] = set()
    colour = ""
    words = iter(" ".join(_ON_A_TERMINAL.get(word, word) for word in style.split()).split())
    for word in words:
        if word == "not":
            attributes.discard(_ATTRIBUTES[next(words)])
        elif word in _ATTRIBUTES:
            attributes.add(_ATTRIBUTES[word])
        else:
            colour = _COLOURS[word]
    return ";".join(filter(None, (*sorted(attributes), colour)))


# -- paragraphs --------------------------------------------------------------------------------------------------------


def first_lines(lines: Lines, most: int, width: int) -> Lines:
    """Return the first ``most`` lines. If there are more, the last returned one ends with …, within ``width`` cells."""
    found = lines[:most]
    if len(lines) > most:
        found[-1].truncate(max(width - 2, 1))
        found[-1].append(" …")
    return found


def cpus_in_short(text: str) -> str:
    """Return a text in which each long list of CPUs is shortened: ``195,199,203,207,…,255 (16 CPUs)``. Such a list
    keeps its first ranges and its last range, and tells its number of CPUs. Use this only where the whole list can be
    seen elsewhere (--json, a page of its own).
    """

    def shortened(found: re.Match[str]) -> str:
        listed = found[0]
        if len(listed) <= _SHORT_LIST:
            return listed
        ranges = listed.split(",")
        try:
            count = len(CpuSet.parse_list(listed))
        except ValueError:
            return listed
        return f"{','.join(ranges[:_FIRST_CPUS])},…,{ranges[-1]} ({count} CPUs)"

    # Hardly a text has so many commas: it is not searched, and the expression need not be compiled.
    return re.sub(_CPU_LIST, shortened, text) if text.count(",") >= 7 else text


_TITLE = "bold dim"
"""The style of a small title."""


def small_title(text: str) -> Text:
    """Return a small title."""
    return Text(text, _TITLE)


def is_title(line: Text) -> bool:
    """Return True if a line is a small title."""
    return line.style == _TITLE and bool(line.plain)


def wrap(text: Text | str, width: int, first: str = "", rest: str | None = None, style: str = "") -> Lines:
    """Break a text at blanks into lines of at most ``width`` cells. ``first``: the beginning of the first line.
    ``rest``: the beginning of the other lines; None for blanks as wide as ``first``. ``style``: the style of a ``str``;
    a ``Text`` keeps its own styles.

    A word that is longer than a line is broken after a character such as ``/`` or ``,``.
    """
    rest = " " * cell_len(first) if rest is None else rest
    if isinstance(text, str):
        plain = clean(text, _LONGEST)
        if cell_len(first) + cell_len(plain) <= width:
            return [Text(f"{first}{plain}", style)]
        found = _laid_out(plain, width, cell_len(first), cell_len(rest))
        # A plain text is put together as a string: half of what a verb prints is plain, and a Text costs much more.
        said = (" ".join(plain[start:end] for start, end in words) for words in found)
        return [Text(f"{rest if number else first}{one}", style) for number, one in enumerate(said)]
    lines: Lines = []
    for words in _laid_out(text.plain, width, cell_len(first), cell_len(rest)):
        line = Text(rest if lines else first, style=text.style)
        begun = words[0][0] if words else 0
        for start, end in words:
            # A single blank keeps its style, so that a marked phrase has no holes.
            blank = text[begun:start]
            line.append(blank if blank.plain in ("", " ") else " ").append(text[start:end])
            begun = end
        lines.append(line)
    return lines


def _laid_out(plain: str, width: int, first: int, rest: int) -> list[list[tuple[int, int]]]:
    """Return the words of each line, as positions (start, end) in the text. ``first``: the number of cells before the
    words of the first line. ``rest``: the number of cells before the words of each other line.
    """
    lines: list[list[tuple[int, int]]] = []
    line: list[tuple[int, int]] = []
    used, narrow = first, is_narrow(plain)
    for start, end in _words(plain):
        size = end - start if narrow else cell_len(plain[start:end])
        if line and used + 1 + size > width:
            lines.append(line)
            line, used = [], rest
        while not line and size > max(width - used, 1):
            cut = start + _break(plain[start:end], max(width - used, 1))
            lines.append([(start, cut)])
            start, used = cut, rest
            size = cell_len(plain[start:end])
        used += size + (1 if line else 0)
        line.append((start, end))
    return lines if not line and lines else [*lines, line]


def _words(plain: str) -> Iterator[tuple[int, int]]:
    """Yield the words of a text as (start, end); a number and its unit are one word."""
    start = 0
    for match in _BLANK.finditer(plain):
        if match.start() > start:
            yield start, match.start()
        start = match.end()
    if start < len(plain):
        yield start, len(plain)


def _break(word: str, room: int) -> int:
    """Return the position at which a word that is longer than ``room`` is cut. This is after the last ``/``, ``,`` or
    similar mark in the second half of the room, else in the second quarter, so that no part of a path is broken. Else
    it is after the last ``_``, ``-`` or ``.`` in the second half, else at the end of the room.
    """
    cut = max(len(set_cell_size(word, room)), 1) if cell_len(word) > room else len(word)
    marks = (("/,;|:=", cut // 2), ("/,;|:=", cut // 4), ("_-.", cut // 2))
    places = (word.rfind(mark, begin, cut) + 1 for some, begin in marks for mark in some)
    return next(filter(None, places), cut)


def items(texts: Iterable[Text | str], width: int, mark: str = " • ") -> Lines:
    """Return texts as a list, each with a mark before it."""
    return [line for text in texts for line in wrap(text, width, mark)]


def labelled(name: str, value: Text | str, width: int, column: int, style: str = "dim") -> Lines:
    """Return a name and, beside it, its value. The name takes ``column`` cells. Further lines of the value begin below
    the start of the value.
    """
    lines = wrap(value, max(width - column, 8))
    return [Text.assemble((f"{'' if n else name:<{column}}", style), line) for n, line in enumerate(lines)]


def two_ends(left: Text, right: Text, width: int) -> Text:
    """Return one line with ``left`` and ``right`` at its ends. Where both do not fit, ``right`` is cut first."""
    gap = width - left.cell_len - right.cell_len
    if gap < 2:
        right = right.copy()
        right.truncate(max(width - left.cell_len - 2, 0), ellipsis=True)
        gap = max(width - left.cell_len - right.cell_len, 1)
    return Text.assemble(left, " " * gap, right)


def in_columns(left: Lines, right: Lines, column: int, gap: int = 4) -> Lines:
    """Return two texts side by side. ``column``: the width of the left one in cells, of which no line is longer.
    ``gap``: the blanks between both."""
    return [
        Text.assemble(first, " " * (column + gap - first.cell_len), second) if second else first
        for first, second in itertools.zip_longest(left, right, fillvalue=Text())
    ]


_KEYS = frozenset(("Enter", "Esc", "Tab", "Space", "PgUp", "PgDn", "F1"))


def keyed(words: str) -> Text:
    """Return a line of key hints with the keys coloured. An example is ``Enter goes on · r looks again``. Each part
    begins with its key: a name such as Enter, one character, or a range such as 1–4 or a–f."""
    line = Text(style="dim")
    for number, part in enumerate(words.split(" · ")):
        tokens = part.split(" ")
        at = next((n for n, token in enumerate(tokens) if not _is_key(token)), len(tokens))
        line.append(" · " if number else "").append(" ".join(tokens[:at]), "bold cool")
        line.append((" " if at else "") + " ".join(tokens[at:]) if tokens[at:] else "")
    return line


def _is_key(token: str) -> bool:
    return token in _KEYS or len(token) == 1 or bool(re.fullmatch("[0-9][–-][0-9]|[a-z]–[a-z]", token))


# -- tables and bars ---------------------------------------------------------------------------------------------------


def table_lines(
    rows: Sequence[Sequence[str]], width: int, right: Iterable[int] = (), gap: int = 2, head: int = 1
) -> Lines:
    """Return rows as a table: each column is as wide as its widest cell, and ``gap`` cells are between two columns.
    ``right``: the columns that are aligned at the right. Where a line is too long, the widest column is cut. ``head``:
    how many of the first rows name the columns."""
    if not rows:
        return []
    right = set(right)
    sizes = column_sizes(rows)
    while sum(sizes) + gap * (len(sizes) - 1) > width and max(sizes) > 6:
        sizes[sizes.index(max(sizes))] -= 1
    lines: Lines = []
    for number, row in enumerate(rows):
        line = Text(style="dim" if number < head else "text")
        for i, cell in enumerate(row):
            line.append((" " * gap if i else "") + in_cells(cell, sizes[i], right=i in right))
        line.rstrip()
        lines.append(line)
    return lines


def column_sizes(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of each column in cells."""
    columns = max(map(len, rows), default=0)
    return [max((cell_len(row[i]) for row in rows if i < len(row)), default=0) for i in range(columns)]


def in_cells(text: str, width: int, right: bool = False) -> str:
    """Return a text in exactly this number of cells: cut with ``…``, or filled up with blanks."""
    if cell_len(text) > width:
        text = set_cell_size(text, max(width - 1, 0)).rstrip() + "…" * (width > 0)
    blanks = " " * (width - cell_len(text))
    return blanks + text if right else text + blanks


def local_time(moment: str) -> datetime.datetime | None:
    """Return an ISO moment in local time; None if the text is not a moment."""
    import datetime

    try:
        return datetime.datetime.fromisoformat(moment).astimezone()
    except (ValueError, OverflowError, OSError):
        return None


def grouped_number(number: int | None) -> str:
    """Return a count with a comma between thousands; ``–`` if the count is not known."""
    return "–" if number is None else f"{number:,}"


def bar_of_value(value: float, largest: float, width: int) -> str:
    """Return a bar that is ``width`` cells long for ``largest``, in steps of an eighth of a cell."""
    if largest <= 0 or value <= 0 or width < 1:
        return ""
    eighths = max(1, round(min(value / largest, 1.0) * width * 8))
    full, rest = divmod(eighths, 8)
    return "█" * full + ("▏▎▍▌▋▊▉"[rest - 1] if rest else "")


def thin_bar(value: float, largest: float, width: int) -> str:
    """Return a bar as :func:`bar_of_value` does, but as a heavy line, in steps of half a cell. Bars in neighbouring
    rows do not touch."""
    if largest <= 0 or value <= 0 or width < 1:
        return ""
    full, rest = divmod(max(1, round(min(value / largest, 1.0) * width * 2)), 2)
    return "━" * full + "╸" * rest


def progress_bar(done: float, total: float, width: int, rest: str = "─", style: str = "accent") -> Text:
    """Return a bar of progress, or of a share; ``rest`` is the character for the part that is not filled."""
    full = bar_of_value(done, max(total, 1), width)
    return Text(full, style).append(rest * max(width - len(full), 0), "rule")


def waiting(said: str, done: int, total: int, width: int) -> Lines:
    """Return a sentence on work that goes on, and a bar of its progress; no bar if ``total`` is 0."""
    lines = wrap(said, width, style="dim")
    return [*lines, progress_bar(done, total, max(1, min(width, _WAITING_BAR)), "░")] if total else lines


def log_bar(value_ns: float, largest_ns: float, width: int) -> str:
    """Return a bar on a logarithmic scale from 10 ns, because latencies differ by powers of ten."""
    if value_ns <= _LOWEST_NS or largest_ns <= _LOWEST_NS:
        return bar_of_value(1, 8 * width, width)
    return bar_of_value(math.log10(value_ns / _LOWEST_NS), math.log10(largest_ns / _LOWEST_NS), width)


# -- the progress of work ----------------------------------------------------------------------------------------------
