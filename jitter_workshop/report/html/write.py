"""Write markup so that no text can become markup: everything that is not :class:`Html` already is cleaned and
escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from jitter_workshop.model.text import called, clean

LONG = 2_000
"""Characters of a text that a page shows."""
UNKNOWN = "–"

_VOID = frozenset({"br", "meta", "link", "col", "rect", "line", "circle", "polygon"})
_BLOCKS = frozenset({"section", "table", "thead", "tbody", "tr", "ul", "ol", "dl", "figure", "details", "main", "nav"})


class Html(str):
    """Hold text that is markup."""

    __slots__ = ()


Child = Html | str | None
"""Text is escaped, markup is not, None is left out."""


def shown(text: str, limit: int = LONG) -> Html:
    """Return a text as it may stand between tags or inside an attribute; a blank at either end stays."""
    if isinstance(text, Html):
        return text
    found = clean(text, limit)
    if not found:
        return Html(" " if text == " " else "")
    return Html(" " * text.startswith(" ") + escape(found, quote=True) + " " * text.endswith(" "))


def tag(element: str, /, *children: Child, **attributes: str | int | float | None) -> Html:
    """Return an element. ``class_`` is written as ``class``, other underscores become dashes; an attribute that is None
    is left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{shown(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if element in _VOID:
        return Html(f"<{element}{written}>")
    inner = "".join(shown(child) for child in children if child is not None)
    return Html(f"<{element}{written}>{inner}</{element}>" + ("\n" if element in _BLOCKS else ""))


def svg_tag(element: str, /, **attributes: str | int | float | None) -> Html:
    """Return an empty element of a picture."""
    return Html(tag(element, **attributes)[:-1] + "/>")


def join(parts: Iterable[Child], between: str = "") -> Html:
    """Join parts; ``between`` is text."""
    return Html(shown(between).join(shown(part) for part in parts if part is not None))


def name(text: str, limit: int = 80) -> Html:
    """Return a name that others chose, isolated so that its direction of writing cannot turn the text beside it."""
    return tag("bdi", called(text, limit))


def code(text: str | None, limit: int = 200) -> Html:
    """Return a path or a value as the host has it; ``–`` for None."""
    if text is None:
        return shown(UNKNOWN)
    return tag("code", shown(text, limit) or shown("(empty)"))


def paragraphs(texts: Iterable[str], class_: str | None = None) -> Html:
    """Return a paragraph for each text that is not empty."""
    return join(tag("p", text, class_=class_) for text in texts if text)


def bullets(items: Iterable[Child], class_: str | None = None) -> Html:
    """Return a list; empty markup for no items."""
    found = [tag("li", item) for item in items]
    return tag("ul", *found, class_=class_) if found else Html("")


class Number(str):
    """Mark a heading as the head of a column of numbers."""

    __slots__ = ()


def table(heads: Sequence[Child], rows: Iterable[Html], caption: str, class_: str | None = None) -> Html:
    """Return a table that scrolls sideways where there is no room. ``rows``: made by :func:`row`. A head of "" is an
    empty cell."""
    first = tag("tr", *map(_head, heads))
    inner = tag("table", tag("caption", caption), tag("thead", first), tag("tbody", *rows), class_=class_)
    # Without a stop for the tab key a keyboard could not scroll the table.
    return tag("div", inner, class_="wide", tabindex=0, role="region", aria_label=caption)


def _head(head: Child) -> Html:
    return tag("th", head, scope="col", class_="n" if isinstance(head, Number) else None) if head else tag("td")


def row(head: Child, *cells: Html, **attributes: str | None) -> Html:
    """Return a line of a table: its heading, then cells made by :func:`cell`."""
    return tag("tr", tag("th", head, scope="row"), *cells, **attributes)


def cell(child: Child, class_: str | None = None, title: str | None = None) -> Html:
    return tag("td", child, class_=class_, title=title)


def figure_cell(text: str, class_: str = "") -> Html:
    """Return a cell with a number, aligned right in digits of one width."""
    return cell(text, f"n {class_}".strip())


def when(stamp: str | None, seconds: bool = False) -> Html:
    """Return a moment in UTC for people; ``–`` if it is not known."""
    if not stamp:
        return shown(UNKNOWN)
    text = clean(stamp, 40)
    return tag("time", f"{text[:10]} {text[11 : 19 if seconds else 16]} UTC".replace("  ", " "), datetime=text)


def folded(summary: str, *inside: Child) -> Html:
    """Return a part that is closed until the reader opens it; it is open on paper."""
    return tag("details", tag("summary", summary), *inside)
