"""Write a report as Markdown, with its charts as SVG files beside it.

No text of a session can become markup, neither in GitHub's renderer nor in any other renderer. Names that others chose
are put into code spans. In sentences, characters that could be markup are escaped. GitHub turns some words into links
(addresses, @mentions, #numbers) or pictures (:emoji:, $formulas$), even if they are escaped. So such words become code
spans. A paragraph is one line, because GitHub's comments show each line break.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote

from jitter_workshop.model.report import ReportDocument
from jitter_workshop.model.run import Run
from jitter_workshop.model.text import LINE, PATH, clean, minute
from jitter_workshop.report import blocks, sections
from jitter_workshop.report.blocks import Inline, ReportBlock
from jitter_workshop.report.formats.common import Files, name_beside
from jitter_workshop.report.pictures.heat_lines import heat_lines
from jitter_workshop.report.pictures.svg import render_heat_svg, render_matrix_svg, render_svg
from jitter_workshop.report.proof_words import pictures
from jitter_workshop.session.store import OpenSession

LONG = 2_000
"""The largest number of characters of one text in a report; longer texts are cut."""
_STRIP_COLUMNS = 100
_BAR = 20
_WIDEST_COLUMN = 44
"""The largest width to which columns are padded, for readers of the plain text."""
_NO_RAW_DATA = blocks.Paragraph(
    "The raw data are not in this file. 'jitter-workshop report --format html' makes a page that contains them."
)
_NO_CHARTS = "The charts are left out here. With '-o FILE', 'report' writes them beside that file."

_LINKED = re.compile(r"@|://|#\d|(?<!\w)www\.|\bgh-\d|:[\w+-]+:|\$|&#?\w+;|\b(?:mailto|xmpp):", re.IGNORECASE)
_MARKUP = re.compile(r"[\\`*\[\]<>~]")
_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_BEGINS_BLOCK = re.compile(r"(?:[-+#=]|\d{1,9}(?=[.)](?:\s|$)))")


def files(document: ReportDocument, session: OpenSession, runs: Sequence[Run], name: str) -> Files:
    """Return the report as a file with the name ``name``, and a file for each chart (``…-chart-N.svg``). For standard
    output return the report alone."""
    charts = {
        n: (
            name_beside(name, f"chart-{n}", ".svg"),
            render_svg(one.curves, one.title, scope=f"chart-{n}", between=one.between),
        )
        for n, one in enumerate(document.overlays, 1)
        if name
    }
    for heat in [one for one in sections.heat_charts(document) if name and one.bursts]:
        drawn = render_heat_svg(heat.heat, heat.title, scope=f"chart-{heat.number}")
        charts[heat.number] = name_beside(name, f"chart-{heat.number}", ".svg"), drawn
    matrix = sections.matrix_chart(document) if name else None
    if matrix is not None:
        drawn = render_matrix_svg(matrix.matrix, matrix.title, scope=f"chart-{matrix.number}")
        charts[matrix.number] = name_beside(name, f"chart-{matrix.number}", ".svg"), drawn
    text = markdown_text(document, {n: file for n, (file, _) in charts.items()})
    return {name: text.encode()} | {file: svg.encode() for file, svg in charts.values()}


def markdown_text(document: ReportDocument, charts: Mapping[int, str]) -> str:
    """Return the report as Markdown text that ends with a line break. ``charts``: number of a chart, from 1 → name of
    the file with its picture."""
    writer = _Writer(charts)
    parts = [markdown_heading(1, document.title), *writer.lines(sections.opening_blocks(document))]
    for section in sections.sections(document):
        parts += [markdown_heading(2, section.heading), *writer.lines(section.blocks)]
    for table in writer.at_end:
        parts += [markdown_heading(2, table.caption), *_table(table)]
    about = sections.section_on_report(document, ())
    parts += [markdown_heading(2, about.heading), *writer.lines((_NO_RAW_DATA, *about.blocks))]
    return "\n\n".join(part for part in parts if part) + "\n"


# -- blocks ------------------------------------------------------------------------------------------------------------


class _Writer:
    """Write a report's blocks as lines of Markdown. ``at_end``: long reference tables that were found so far, which are
    written after the sections."""

    def __init__(self, charts: Mapping[int, str]) -> None:
        self._charts = charts
        self.at_end: list[blocks.Table] = []

    def lines(self, found: Iterable[ReportBlock]) -> Iterator[str]:
        for one in found:
            yield from self._block(one)

    def _block(self, one: ReportBlock) -> Iterator[str]:
        if isinstance(one, blocks.Subsection):
            yield markdown_heading(3, inline_markdown(one.heading))
            yield from self.lines(one.blocks)
        elif isinstance(one, blocks.Chart):
            yield from self._chart(one)
        elif isinstance(one, blocks.HeatChart):
            yield from self._picture(one)
            if not one.bursts:
                yield fenced(heat_lines(one.heat))
        elif isinstance(one, blocks.MatrixChart):
            yield from self._picture(one)
            yield from self._block(one.table)
        elif isinstance(one, blocks.Table) and one.most == 0 and len(one.rows) > sections.LONG:
            self.at_end.append(one)
            yield markdown_line(f"{one.caption}, at the end of this report.")
        elif isinstance(one, blocks.Table):
            yield markdown_line(f"{one.caption.removesuffix('.')}.")
            yield from _table(one)
        elif isinstance(one, blocks.Paragraph):
            told = markdown_line(inline_markdown(one.text))
            yield Md(f"**{told}**") if one.style in ("attention", "origin") else told
        elif isinstance(one, blocks.Bullets):
            yield bullets(map(inline_markdown, one.items))
        elif isinstance(one, blocks.Facts):
            first, *others = [(markdown_sentence(term), inline_markdown(told)) for term, told in one.rows]
            yield markdown_table(first, others)
        elif isinstance(one, blocks.StallList):
            yield bullets(map(_stall, one.stalls))
        else:
            for command in one.commands:
                yield markdown_line(f"{clean(command.why, PATH)}:")
                yield fenced([command.command], "sh")

    def _chart(self, one: blocks.Chart) -> Iterator[str]:
        if one.number == 1 and not self._charts:
            yield markdown_line(_NO_CHARTS)
        yield from self._picture(one)
        yield from self._block(one.table)

    def _picture(self, one: blocks.Chart | blocks.HeatChart | blocks.MatrixChart) -> Iterator[str]:
        yield markdown_heading(3, one.title)
        if one.number in self._charts:
            yield Md(
                f"![{markdown_sentence(f'Chart: {clean(one.title, LINE)}', 160)}]({quote(self._charts[one.number])})"
            )
        yield markdown_line(one.text)


def _table(one: blocks.Table) -> Iterator[str]:
    """Yield the lines of a table. Below the table are its intervals, drawn as text. A column of sentences would make
    the table too wide, so such columns follow as a list.
    """
    wide = [n for n, column in enumerate(one.columns) if column.prose]
    kept = [n for n in range(len(one.columns)) if n not in wide]
    rows = [[inline_markdown(blocks.lower_lines(row[n])[0] if wide else row[n]) for n in kept] for row in one.rows]
    heads = [inline_markdown(one.columns[n].head) for n in kept]
    yield markdown_table(heads, rows, [at for at, n in enumerate(kept) if one.columns[n].number])
    intervals = [cell.verdict for row in one.rows for cell in row if isinstance(cell, blocks.Interval)]
    if any(verdict.low > 0 or verdict.high is not None for verdict in intervals):
        yield fenced(pictures(intervals, _STRIP_COLUMNS))
    if wide:
        yield bullets(_beside_table(row[0], [row[n] for n in wide]) for row in one.rows)


def _beside_table(head: Inline, wide: Sequence[Inline]) -> Md:
    """Return the cells of a row that are too wide for the table, as one item for the list below the table; "" for
    none."""
    name, lower = blocks.lower_lines(head)
    told = join_markdown(map(inline_markdown, (*lower, *wide)), "; ")
    return join_markdown((inline_markdown(name), ": ", told)) if told else Md("")


def _stall(one: blocks.StallLine) -> Md:
    causes = " · ".join([*one.causes, *([one.rest] if one.rest else [])])
    return markdown_sentence("; ".join([f"{one.head}: {causes}", *one.notes]))


# -- markup ------------------------------------------------------------------------------------------------------------


class Md(str):
    """Hold text that is Markdown and needs no escaping."""

    __slots__ = ()


def inline_markdown(text: Inline) -> Md:
    """Return a text within a line as Markdown."""
    if isinstance(text, str):
        return markdown_sentence(text)
    if isinstance(text, tuple):
        return join_markdown([part if isinstance(part, str) else inline_markdown(part) for part in text])
    if isinstance(text, blocks.Bar):
        return Md("█" * round(_BAR * text.share) or "▏")
    return markdown_sentence(text.text) if isinstance(text, blocks.Interval | blocks.IntervalAxis) else _span(text)


def _span(one: blocks.Span) -> Md:
    if one.style in ("name", "code") and isinstance(one.text, str):
        return span(one.text)
    told = inline_markdown(one.text)
    if one.style in ("strong", "badge", "remark"):
        return Md(f"{' ' if one.style == 'remark' else ''}**{told}**")
    if one.style == "origin":
        return Md(f" ({told})")
    if one.style == "time":
        # With seconds a time would look like an emoji's name (:00:).
        return markdown_sentence(f"{minute(one.more)} UTC")
    if one.style == "few":
        # The mark ~ needs no escape: with blanks around it, it does not strike text through.
        return Md(str(one.text))
    return Md({"aside": ", ", "below": "; "}.get(one.style, "") + told)


def markdown_sentence(text: str, limit: int = LONG) -> Md:
    """Return a sentence or a part of a sentence as Markdown. At the beginning of a line use :func:`markdown_line`."""
    if isinstance(text, Md):
        return text
    parts, code = list[str](), list[str]()
    for word in [*clean(text, limit).split(" "), ""]:
        if _LINKED.search(word):
            code.append(word)
            continue
        if code:
            parts.append(span(" ".join(code), limit))
            code = []
        parts.append(_UNDERSCORE.sub(r"\\_", _MARKUP.sub(r"\\\g<0>", word)))
    return Md(" ".join(parts).strip())


def markdown_line(text: str, limit: int = LONG) -> Md:
    """Return a sentence that begins a line, as Markdown. A dash or a number at the beginning is escaped, because it
    would begin a list."""
    told = markdown_sentence(text, limit)
    found = _BEGINS_BLOCK.match(told)
    if found is None:
        return told
    at = found.end() if told[0].isdigit() else 0
    return Md(f"{told[:at]}\\{told[at:]}")


def span(text: str, limit: int = LONG) -> Md:
    """Return a name, a path or a value unchanged, in a code span."""
    plain = clean(text, limit) or "(empty)"
    runs = {len(run) for run in re.findall("`+", plain)}
    fence = "`" * next(n for n in range(1, len(plain) + 2) if n not in runs)
    space = " " if plain[0] == "`" or plain[-1] == "`" else ""
    return Md(f"{fence}{space}{plain}{space}{fence}")


def join_markdown(parts: Iterable[str], between: str = "") -> Md:
    """Return the parts joined as Markdown, without empty parts. Plain text is escaped. A blank at the beginning or end
    of a part is kept.
    """
    return Md(between.join(_part(part) for part in parts if part))


def _part(text: str) -> str:
    if isinstance(text, Md):
        return text
    told = markdown_sentence(text)
    return f"{' ' if text[0] == ' ' else ''}{told}{' ' if text[-1] == ' ' and told else ''}"


def markdown_heading(level: int, text: str, limit: int = 160) -> Md:
    told = markdown_sentence(text, limit)
    # A ``#`` at the end of a heading would be taken as a part of its marks.
    return Md(f"{'#' * level} {told[:-1]}\\#" if told.endswith("#") else f"{'#' * level} {told}")


def bullets(items: Iterable[str]) -> Md:
    """Return a Markdown list; "" for no items."""
    return Md("\n".join(f"- {markdown_line(item)}" for item in items if item))


def fenced(lines: Iterable[str], language: str = "") -> Md:
    """Return the lines as a Markdown code block. Blanks are kept. A line break or control character inside a line
    becomes a blank."""
    shown = [clean_line(one) for one in lines]
    longest = max((len(run) for one in shown for run in re.findall("`+", one)), default=0)
    fence = "`" * max(3, longest + 1)
    return Md("\n".join([f"{fence}{language}", *shown, fence]))


def clean_line(text: str, limit: int = 4_000) -> str:
    """Return a text as one line without invisible characters and without characters that control a terminal. Blanks are
    kept."""
    if "  " not in text and not text.startswith(" "):
        return clean(text, limit)
    return "".join(" " if unicodedata.category(c)[0] == "C" else c for c in text[:limit]).rstrip()


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> Md:
    """Return a Markdown table with aligned columns. ``heads``: the columns' names. ``numbers``: indices of the columns
    that are aligned right."""
    right = frozenset(numbers)
    cells = [[_cell(markdown_sentence(one)) for one in line] for line in (heads, *rows)]
    widths = [min(max(3, *map(_wide, column)), _WIDEST_COLUMN) for column in zip(*cells, strict=True)]

    def written(line: Sequence[str]) -> str:
        padded = [
            " " * (width - _wide(one)) + one if number in right else one + " " * (width - _wide(one))
            for number, (one, width) in enumerate(zip(line, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * (width - 1) + (":" if number in right else "-") for number, width in enumerate(widths)]
    return Md("\n".join([written(cells[0]), f"| {' | '.join(rule)} |", *map(written, cells[1:])]))


def _cell(text: str) -> str:
    # A bar ends a cell even in a code span, unless it is escaped. Outside of tables it is no markup.
    return text.replace("|", "\\|")


def _wide(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
