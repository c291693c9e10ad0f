"""Style lesson text: a small, safe subset of Markdown as styled lines of a given width.

It knows headings, paragraphs, lists, quotes, tables (as they stand), fenced code, ``code``, **strong** and *emphasis*.
Links show their text only. No markup can act, and control characters never reach the terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from jitter_workshop.model.fences import split_code
from jitter_workshop.model.palette import Palette
from jitter_workshop.model.text import clean

_INLINE = re.compile(
    r"`(?P<code>[^`]+)`|\*\*(?P<strong>[^*]+)\*\*|(?<![\w*])\*(?P<em>[^*\s][^*]*)\*(?![\w*])"
    r"|\[(?P<link>[^\]]+)\]\([^)]*\)"
)
_BULLET = re.compile(r"^(?P<lead>\s*)(?P<mark>[-*+]|\d{1,2}[.)])\s+(?P<rest>.*)$")
_LIMIT = 2_000


def styled(text: str, palette: Palette, base: str = "") -> Text:
    """Return one run of inline Markdown as text."""
    source = clean(text, _LIMIT)
    made = Text(style=base or palette.text)
    at = 0
    for match in _INLINE.finditer(source):
        made.append(source[at : match.start()])
        at = match.end()
        if match["code"] is not None:
            made.append(match["code"], Style.parse(palette.code))
        elif match["strong"] is not None:
            made.append(match["strong"], Style(bold=True))
        elif match["em"] is not None:
            made.append(match["em"], Style(italic=True))
        else:
            made.append(match["link"], Style(underline=True))
    made.append(source[at:])
    return made


def wrap(text: Text, width: int, first: str = "", rest: str | None = None) -> list[Text]:
    """Break a text at blanks into lines of at most ``width`` cells. The first line begins with ``first``, the others
    with ``rest``.

    Words that are longer than a line are cut. Styles stay.
    """
    rest = " " * cell_len(first) if rest is None else rest
    lines: list[Text] = []
    current = Text(first, style=text.style)
    room = width - cell_len(first)
    empty = True
    for word in _words(text):
        need = word.cell_len
        if not empty and need + 1 > room:
            lines.append(current)
            current, room, empty = Text(rest, style=text.style), width - cell_len(rest), True
        while need > room and empty and room > 0:
            head = word.copy()
            head.truncate(room)
            taken = max(len(head.plain), 1)
            current.append_text(word[:taken])
            word = word[taken:]
            need = word.cell_len
            lines.append(current)
            current, room = Text(rest, style=text.style), max(width - cell_len(rest), 1)
        if not empty:
            current.append(" ")
            room -= 1
        current.append_text(word)
        room -= need
        empty = False
    if not empty or not lines:
        lines.append(current)
    return lines


def _words(text: Text) -> Iterator[Text]:
    for word in text.split(" "):
        if word.plain:
            yield word


def prose(source: str, width: int, palette: Palette) -> list[Text]:
    """Return Markdown as lines of at most ``width`` cells."""
    lines: list[Text] = []
    paragraph: list[str] = []
    prefix = ("", "")

    def flush() -> None:
        nonlocal prefix
        if paragraph:
            lines.extend(wrap(styled(" ".join(paragraph), palette), width, *prefix))
            paragraph.clear()
        prefix = ("", "")

    def gap() -> None:
        if lines and lines[-1].plain:
            lines.append(Text())

    for raw, kind in split_code(source.splitlines()):
        if kind == "fence":
            flush()
            continue
        if kind == "code" or raw.lstrip().startswith("|"):
            flush()
            lines.append(Text("  " + clean_code(raw), style=palette.code if kind == "code" else palette.text))
            continue
        bullet = _BULLET.match(raw)
        if not raw.strip():
            flush()
            gap()
        elif raw.startswith("#"):
            flush()
            gap()
            title = styled(raw.lstrip("#").strip(), palette, f"bold {palette.accent}")
            lines.extend(wrap(title, width))
        elif bullet:
            flush()
            mark = "•" if bullet["mark"] in "-*+" else bullet["mark"]
            first = f"{' ' * min(cell_len(bullet['lead']), 6)} {mark} "
            prefix = (first, " " * cell_len(first))
            paragraph.append(bullet["rest"])
        elif raw.startswith(">"):
            if prefix[0] != "│ ":
                flush()
            prefix = ("│ ", "│ ")
            paragraph.append(raw.lstrip("> "))
        else:
            paragraph.append(raw.strip())
    flush()
    while lines and not lines[-1].plain:
        lines.pop()
    return lines


def clean_code(raw: str) -> str:
    """Return a line of code with its blanks kept. Every character that could control a terminal becomes a blank."""
    body = raw.expandtabs(4)
    indent = len(body) - len(body.lstrip(" "))
    return " " * min(indent, 40) + "".join(c if c.isprintable() else " " for c in body.strip())[:400]
