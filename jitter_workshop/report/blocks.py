"""Define the blocks of which a report is made: headings, paragraphs, tables and the like, with their words.

``report.sections`` makes the blocks from the document. All formats of a report use the same blocks. The writers
(``report.html``, ``report.markdown``, ``presenter.report_preview``) escape the texts and lay out the blocks. The texts
in blocks are already cleaned of control characters, but not yet escaped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.evidence import ExplainedStall
from jitter_workshop.model.matrix import Matrix
from jitter_workshop.model.report import Command
from jitter_workshop.model.screening import Ranked
from jitter_workshop.model.text import ID, called, clean, day
from jitter_workshop.model.verdict import Verdict
from jitter_workshop.stats.heat import Heat
from jitter_workshop.stats.interval_plot import Axis

UNKNOWN = "–"

SpanStyle = Literal["name", "code", "strong", "origin", "aside", "time", "link", "badge", "few", "below", "remark"]
Inline: TypeAlias = "str | Span | Interval | IntervalAxis | Bar | tuple[Inline, ...]"
"""A text within a line, a :class:`Span`, an interval, or several of these in a row."""
Cells: TypeAlias = "tuple[Inline, ...]"
"""The cells of one line of a table."""


@dataclass(frozen=True, slots=True)
class Span:
    """Hold a part of a line with a style. ``more``: a further text, for the styles that need one. The styles are:

    * ``name``: a name that others chose.
    * ``code``: a path or a value as the host has it.
    * ``origin``: a note on data that were not measured here.
    * ``aside``: less important than the text before it.
    * ``time``: a time; ``more`` is the time in ISO 8601.
    * ``link``: a link; ``more`` is the id of its target.
    * ``badge``: a sign and a word; ``more`` is the kind of badge.
    * ``few``: a figure with a mark; ``more`` is the reason for the mark.
    * ``below``: a text in a second line of its cell.
    * ``remark``: like ``below``, but so important that without this text the row would be misunderstood.
    """

    style: SpanStyle
    text: Inline
    more: str = ""


@dataclass(frozen=True, slots=True)
class Interval:
    """Hold an interval, which a report draws on an axis and writes as text. The interval belongs to a proof's verdict
    or to a setting of a screening."""

    verdict: Verdict | Ranked
    axis: Axis
    text: str


@dataclass(frozen=True, slots=True)
class IntervalAxis:
    """Hold the axis that all intervals of a column share, and the column's name."""

    axis: Axis
    text: str


@dataclass(frozen=True, slots=True)
class Bar:
    """Hold a bar of a table. ``share``: the bar's length as a share of the longest bar's length, 0 to 1. The number
    that the bar stands for is shown beside the bar.
    """

    share: float


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Hold a paragraph. Some values of ``style`` tell the purpose of the paragraph. ``unknown``: it gives the reason
    why the report lacks something here. ``how``: it explains how to read the next blocks. ``verdict``: it is the most
    important sentence of its section.
    """

    text: Inline
    style: Literal["", "dim", "how", "unknown", "attention", "origin", "verdict"] = ""


@dataclass(frozen=True, slots=True)
class Bullets:
    """Hold a list. ``most``: the number of items that are visible at first; None for all. ``summary``: True for the
    list of the report's first lines."""

    items: tuple[Inline, ...]
    most: int | None = None
    summary: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """Hold a list of terms, each with its description."""

    rows: tuple[tuple[str, Inline], ...]


@dataclass(frozen=True, slots=True)
class Column:
    """Hold the head of a table's column. ``number``: the column's cells are aligned right. ``brief``: a preview also
    shows the column. ``prose``: the cells are sentences, which would make a table of plain text too wide.
    """

    head: Inline
    number: bool = False
    brief: bool = False
    prose: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Hold a table. The first cell of each row is the row's heading.

    ``most``: the number of rows that are visible at first; None for all. It is 0 for a table in which a reader only
    looks things up. ``anchor``: the prefix of the rows' ids for links, as in ``ANCHOR-1``. ``latest``: True if a
    preview that is too small for all rows shows the last ones.
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
    """Hold a chart of curves, and the curves' figures as a table. ``number``: the chart's place among the charts, from
    1 on. ``between``: the indices of two curves, measured before and after a change. The chart fills the space between
    these two curves.
    """

    number: int
    title: str
    text: str
    curves: tuple[PercentileCurve, ...]
    table: Table
    between: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class HeatChart:
    """Hold the heat map of a run. ``number``: the map's place among all charts of the report. ``text``: a sentence on
    what the map shows. ``bursts``: True if the run's longest values come in bursts; otherwise writers show the map
    folded or short. ``worst``: True for the map that a preview draws."""

    number: int
    title: str
    text: str
    heat: Heat
    bursts: bool = True
    worst: bool = False


@dataclass(frozen=True, slots=True)
class MatrixChart:
    """Hold a matrix of cache-line times, and the times of its clusters as a table. ``number``: the matrix's place among
    all charts of the report."""

    number: int
    title: str
    text: str
    matrix: Matrix
    table: Table


@dataclass(frozen=True, slots=True)
class StallLine:
    """Hold one stall in words: its time and place, its largest causes with their time, and notes. ``drawn``: the stall
    itself, which is drawn as a line of time in the colours of its causes."""

    head: str
    causes: tuple[str, ...]
    rest: str
    notes: tuple[str, ...]
    drawn: ExplainedStall


@dataclass(frozen=True, slots=True)
class StallList:
    """Hold the worst stalls of a run, the longest first."""

    stalls: tuple[StallLine, ...]


@dataclass(frozen=True, slots=True)
class Shell:
    """Hold shell commands, each with its purpose. Commands are shown unchanged, character for character."""

    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class Subsection:
    """Hold a part of a section under its own heading. ``id``: the target of links to this part."""

    heading: Inline
    blocks: tuple[ReportBlock, ...]
    style: str = ""
    id: str = ""


ReportBlock: TypeAlias = (
    Paragraph | Bullets | Facts | Table | Chart | HeatChart | MatrixChart | StallList | Shell | Subsection
)


@dataclass(frozen=True, slots=True)
class Section:
    """Hold a section of the report."""

    id: str
    heading: str
    blocks: tuple[ReportBlock, ...]


def name_span(text: str, limit: int = 80) -> Span:
    """Return a span for a name that others chose."""
    return Span("name", called(text, limit))


def code_span(text: str | None, limit: int = 200) -> Inline:
    """Return a span for a path or a value as the host has it; ``–`` if ``text`` is None."""
    return UNKNOWN if text is None else Span("code", clean(text, limit) or "(empty)")


def second_line(*parts: Inline) -> Span:
    """Join parts of a line into one span. It is shown as a second line of a table cell."""
    return Span("below", parts)


def time(stamp: str | None, seconds: bool = False) -> Inline:
    """Return a time in UTC, as people write it; ``–`` if ``stamp`` is None. ``seconds``: True also shows the
    seconds."""
    text = clean(stamp or "", ID)
    return Span("time", f"{day(text)} {text[11 : 19 if seconds else 16]}".rstrip() + " UTC", text) if text else UNKNOWN


def join_inline(parts: list[Inline] | tuple[Inline, ...], between: str = ", ") -> Inline:
    """Join parts of a line, with the text ``between`` between two of them."""
    found: list[Inline] = []
    for part in parts:
        found += [between, part] if found else [part]
    return tuple(found)


def lower_lines(cell: Inline) -> tuple[tuple[Inline, ...], tuple[Inline, ...]]:
    """Split a table's cell into two tuples: the parts of its first line, and the parts that are placed under that
    line."""
    parts = cell if isinstance(cell, tuple) else (cell,)
    lower = tuple(part for part in parts if isinstance(part, Span) and part.style in ("below", "remark"))
    return tuple(part for part in parts if part not in lower), tuple(part.text for part in lower)
