"""Define a report as report blocks: headings, paragraphs, tables and the like, with the words of each.

``report.sections`` makes them from the document, once for all forms. The writers (``report.html``, ``report.markdown``,
``presenter.report_preview``) escape them and lay them out. Every text is cleaned already; none is escaped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.evidence import ExplainedStall
from jitter_workshop.model.report import Command
from jitter_workshop.model.text import called, clean
from jitter_workshop.model.verdict import Verdict
from jitter_workshop.stats.interval_plot import Axis

UNKNOWN = "–"

SpanStyle = Literal["name", "code", "strong", "origin", "aside", "time", "link", "badge", "few", "below", "remark"]
Inline: TypeAlias = "str | Span | Interval | IntervalAxis | Bar | tuple[Inline, ...]"
"""A text within a line, or several that follow each other."""
Cells: TypeAlias = "tuple[Inline, ...]"
"""A line of a table."""


@dataclass(frozen=True, slots=True)
class Span:
    """Hold a part of a line with a kind. ``name``: a name that others chose. ``code``: a path or a value as the host
    has it. ``origin``: the mark of data that was not measured here. ``aside``: less important than the text before it.
    ``time``: ``more`` is the stamp. ``link``: ``more`` is the id of its target. ``badge``: a sign and a word; ``more``
    is the kind. ``few``: a figure and its mark; ``more`` is the reason for the mark. ``below``: it is placed under the
    rest of its cell. ``remark``: the same, and it is needed to read the row.
    """

    style: SpanStyle
    text: Inline
    more: str = ""


@dataclass(frozen=True, slots=True)
class Interval:
    """Hold a verdict's interval: a picture on an axis, and the same in words."""

    verdict: Verdict
    axis: Axis
    text: str


@dataclass(frozen=True, slots=True)
class IntervalAxis:
    """Hold the labels of the axis of all intervals in a column, and the column's name."""

    axis: Axis
    text: str


@dataclass(frozen=True, slots=True)
class Bar:
    """Hold a share of the largest value, 0 to 1; the number is shown beside it."""

    share: float


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Hold a paragraph. ``unknown``: the reason why a part is missing. ``how``: an explanation how to read the next
    blocks. ``verdict``: it is the most important sentence of its part.
    """

    text: Inline
    style: Literal["", "dim", "how", "unknown", "attention", "origin", "verdict"] = ""


@dataclass(frozen=True, slots=True)
class Bullets:
    """Hold a list. ``most``: the number of items that are visible at first; None for all. ``summary``: it is the
    report's first lines.
    """

    items: tuple[Inline, ...]
    most: int | None = None
    summary: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """Hold terms, each with its description."""

    rows: tuple[tuple[str, Inline], ...]


@dataclass(frozen=True, slots=True)
class Column:
    """Hold the head of a column. ``number``: its cells are aligned right. ``brief``: a preview has it, too. ``prose``:
    its cells are sentences, which would make a table of plain text too wide."""

    head: Inline
    number: bool = False
    brief: bool = False
    prose: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Hold a table; the first cell of a row is its heading. ``most``: the number of rows that are visible at first, 0
    for a table that is for reference only, None for all. ``anchor``: links lead to ``ANCHOR-1``, …, the rows.
    ``latest``: a preview, which has no room for all rows, shows the last ones.
    """

    style: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Cells, ...]
    most: int | None = None
    anchor: str = ""
    latest: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """Hold a chart, and the same as a table. ``number``: its place among the charts, from 1."""

    number: int
    title: str
    text: str
    curves: tuple[PercentileCurve, ...]
    table: Table


@dataclass(frozen=True, slots=True)
class Stall:
    """Hold one stall: when and where, its largest causes with their time, and notes. ``drawn``: its time from left to
    right; the first causes have a shade of their own each."""

    head: str
    causes: tuple[str, ...]
    rest: str
    notes: tuple[str, ...]
    drawn: ExplainedStall


@dataclass(frozen=True, slots=True)
class Stalls:
    """Hold the worst stalls of a run, the longest first."""

    stalls: tuple[Stall, ...]


@dataclass(frozen=True, slots=True)
class Shell:
    """Hold lines of shell, each with its purpose. A line is shown character for character."""

    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """Hold a part of a section under a heading of its own. ``id``: the aim of links to it."""

    heading: Inline
    blocks: tuple[Block, ...]
    style: str = ""
    id: str = ""


Block: TypeAlias = Paragraph | Bullets | Facts | Table | Chart | Stalls | Shell | Part


@dataclass(frozen=True, slots=True)
class Section:
    """Hold a section of the report."""

    id: str
    heading: str
    blocks: tuple[Block, ...]


def name(text: str, limit: int = 80) -> Span:
    """Return a name that others chose."""
    return Span("name", called(text, limit))


def code(text: str | None, limit: int = 200) -> Inline:
    """Return a path or a value as the host has it; ``–`` for None."""
    return UNKNOWN if text is None else Span("code", clean(text, limit) or "(empty)")


def below(*parts: Inline) -> Span:
    """Return a text as a span that is placed under the rest of its cell."""
    return Span("below", parts)


def time(stamp: str | None, seconds: bool = False) -> Inline:
    """Return a moment in UTC for people; ``–`` if it is not known."""
    text = clean(stamp or "", 40)
    return Span("time", f"{text[:10]} {text[11 : 19 if seconds else 16]}".rstrip() + " UTC", text) if text else UNKNOWN


def listed(parts: list[Inline] | tuple[Inline, ...], between: str = ", ") -> Inline:
    """Return parts with a text between each two."""
    found: list[Inline] = []
    for part in parts:
        found += [between, part] if found else [part]
    return tuple(found)


def lower_lines(cell: Inline) -> tuple[tuple[Inline, ...], tuple[Inline, ...]]:
    """Split a cell: return its first line, and the spans that are placed under it."""
    parts = cell if isinstance(cell, tuple) else (cell,)
    lower = tuple(part for part in parts if isinstance(part, Span) and part.style in ("below", "remark"))
    return tuple(part for part in parts if part not in lower), tuple(part.text for part in lower)
