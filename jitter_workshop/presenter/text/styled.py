"""Hold text with styles, and measure text in cells of a terminal.

A style is a few words, such as ``bold accent``: roles of the palette, and bold, dim, italic, underline and reverse.
:class:`Text` has only those methods of rich's ``Text`` that the presenter needs. rich itself is not used here, because
a command that prints lines must start fast. Loading rich takes longer than all checks of ``status``.
"""

from __future__ import annotations

from collections.abc import Iterable

from jitter_workshop.model.record import dataclass

_NARROW = frozenset(
    [
        *map(chr, (*range(0x20, 0x7F), *range(0xA0, 0xAD), *range(0xAE, 0x300), *range(0x2500, 0x25FD))),
        *"–—…→←↑↓✓✗▸•‹›“”‘’″−×√≤≥≈",
    ]
)
"""Characters that are one cell wide: those of this program's own sentences, lines and marks. For a text with other
characters, rich is asked, because rich has a table of all of them."""
_UNSHOWN = dict.fromkeys((0x07, 0x08, 0x0B, 0x0C, 0x0D))
"""Control characters that would move the cursor inside a line; a text has none of them."""


def is_narrow(text: str) -> bool:
    """Return True if each character of a text is known to be one cell wide."""
    return _NARROW.issuperset(text)


def cell_len(text: str) -> int:
    """Return the width of a text in cells."""
    if _NARROW.issuperset(text):
        return len(text)
    from rich import cells

    return cells.cell_len(text)


def set_cell_size(text: str, width: int) -> str:
    """Return a text in exactly this number of cells: cut, or filled up with blanks."""
    if _NARROW.issuperset(text):
        return text[: max(width, 0)].ljust(width)
    from rich import cells

    return cells.set_cell_size(text, width)


def _shown(text: str) -> str:
    return text if text.isprintable() else text.translate(_UNSHOWN)


@dataclass(frozen=True, slots=True)
class StyledRange:
    """Hold the style of a part of a text, from the character ``start`` until before ``end``."""

    start: int
    end: int
    style: str


class Text:
    """Hold text with a style for all of it, and spans with further styles. Where spans overlap, the later span
    decides. ``joined``: True if this line and the line above it belong on one page of the screen."""

    __slots__ = ("_plain", "joined", "spans", "style")
    __hash__ = None  # type: ignore[assignment]  # a text can change

    def __init__(self, text: str = "", style: str = "") -> None:
        self._plain = _shown(text)
        self.style = style
        self.spans: list[StyledRange] = []
        self.joined = False

    @classmethod
    def assemble(cls, *parts: str | Text | tuple[str, str], style: str = "") -> Text:
        """Return a text made of texts, of strings, and of strings with a style."""
        made = cls("", style)
        for part in parts:
            if isinstance(part, tuple):
                made.append(*part)
            else:
                made.append(part)
        return made

    def __len__(self) -> int:
        return len(self._plain)

    def __bool__(self) -> bool:
        return bool(self._plain)

    def __str__(self) -> str:
        return self._plain

    def __repr__(self) -> str:
        return f"Text({self._plain!r}, {self.style!r}, {self.spans!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Text):
            return NotImplemented
        return self._plain == other._plain and self.spans == other.spans

    def __getitem__(self, part: slice) -> Text:
        start, end, _ = part.indices(len(self._plain))
        found = Text(self._plain[start:end], self.style)
        found.spans = [
            StyledRange(max(span.start, start) - start, min(span.end, end) - start, span.style)
            for span in self.spans
            if max(span.start, start) < min(span.end, end)
        ]
        return found

    @property
    def plain(self) -> str:
        """Return the text without styles. The text can also be set. If the new text is shorter, styles end at
        its end.
        """
        return self._plain

    @plain.setter
    def plain(self, text: str) -> None:
        if len(text) < len(self._plain):
            end = len(text)
            self.spans = [StyledRange(s.start, min(s.end, end), s.style) for s in self.spans if s.start < end]
        self._plain = text

    @property
    def cell_len(self) -> int:
        """Return the width in cells."""
        return cell_len(self._plain)

    def copy(self) -> Text:
        """Return an independent copy with the same styles."""
        made = Text(self._plain, self.style)
        made.spans = list(self.spans)
        made.joined = self.joined
        return made

    def append(self, text: str | Text, style: str = "") -> Text:
        """Add text at the end, and return this text. ``style``: the style of a ``str``; a ``Text`` has its own."""
        at = len(self._plain)
        if isinstance(text, Text):
            style = text.style
            further = [StyledRange(span.start + at, span.end + at, span.style) for span in text.spans]
            self._plain += text._plain
        else:
            further = []
            self._plain += _shown(text)
        if style and len(self._plain) > at:
            self.spans.append(StyledRange(at, len(self._plain), style))
        self.spans += further
        return self

    def join(self, lines: Iterable[Text]) -> Text:
        """Return ``lines`` as one text, with this text between any two of them."""
        made = Text("", self.style)
        for number, line in enumerate(lines):
            if number:
                made.append(self)
            made.append(line)
        return made

    def stylize(self, style: str, start: int = 0, end: int | None = None) -> None:
        """Add a style to a part, by default to all of the text."""
        start, end, _ = slice(start, end).indices(len(self._plain))
        if style and start < end:
            self.spans.append(StyledRange(start, end, style))

    def rstrip(self) -> None:
        """Remove blanks at the end."""
        self.plain = self._plain.rstrip()

    def truncate(self, width: int, ellipsis: bool = False, pad: bool = False) -> None:
        """Cut the text to at most ``width`` cells. ``ellipsis``: a text that is cut ends with ``…``. ``pad``: a shorter
        text is filled up with blanks."""
        size = self.cell_len
        if size > width:
            self.plain = set_cell_size(self._plain, width - 1) + "…" if ellipsis else set_cell_size(self._plain, width)
        elif pad:
            self._plain += " " * (width - size)
