"""Write a report as one web page that loads nothing and runs nothing, for the screen, for paper and for a text
browser.

The part that is visible first gives the results in words. The sections below it show the data. The page can contain the
session's raw data (``session.reportfile``); editing the page's words does not change the raw data. No text can become
markup: each text whose type is not :class:`Html` is cleaned and escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from html import escape
from importlib.resources import files as resources
from itertools import chain

from jitter_workshop.model.palette import CAUSES, PALETTES
from jitter_workshop.model.report import Command, ReportDocument
from jitter_workshop.model.run import Run
from jitter_workshop.model.text import PATH, REASON, SENTENCE, SHORT, clean, many
from jitter_workshop.report import blocks, sections
from jitter_workshop.report.blocks import Inline, ReportBlock
from jitter_workshop.report.pictures import small
from jitter_workshop.report.pictures.svg import render_heat_svg, render_matrix_svg, render_svg
from jitter_workshop.session import archive, reportfile
from jitter_workshop.session.store import OpenSession
from jitter_workshop.stats.sample_size import FEW_SAMPLES

MOST_BYTES = 1_000_000
"""The largest size of a page. A page of 20 runs with raw data is smaller; histograms of blocks and traces are added
while there is room."""
_IN_BASE64 = 0.74
"""The number of bytes of an archive that one byte of the page holds. It is less than 1, because base64 and its line
breaks make the archive longer."""
_FOR_WORDS = 2_000
"""An estimate of the bytes that the page needs for its text about the raw data. The text has a line for each file that
is left out."""
_A_LINE = 220
_LONG = 4_000
"""The largest number of characters of a text on a page."""

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_TAGS = {"name": "bdi", "code": "code", "strong": "strong", "aside": "small"}
_CLASSES = {"origin": "origin", "below": "below", "remark": "below remark"}
_PARAGRAPHS = {"how": "dim", "verdict": "headline"}
"""Style of a paragraph → its CSS class, if the two names differ."""
_VOID = frozenset({"meta", "link"})
_LINES = frozenset({"section", "table", "thead", "tbody", "tr", "ul", "ol", "dl", "figure", "details", "main", "nav"})
"""Elements after which the page's source has a line break."""


def files(document: ReportDocument, session: OpenSession, runs: Sequence[Run], name: str) -> dict[str, bytes]:
    """Return the page as one file with the name ``name``. The page contains the raw data if the report is about the
    whole session and is not private. Raise SessionError if the raw data cannot be read."""
    if document.private or {run.id for run in document.runs} < set(session.session.runs):
        # A user who left runs or names out does not want them in the raw data.
        return {name: html_page(document, None).encode()}
    drawn = _drawn(document)
    room = MOST_BYTES - len(_page(document, drawn, None).encode()) - _FOR_WORDS - _A_LINE * len(session.session.runs)
    packed = archive.pack_session(session.folder, room=max(0, int(room * _IN_BASE64)))
    return {name: _page(document, drawn, packed).encode()}


def html_page(document: ReportDocument, packed: bytes | None) -> str:
    """Return the page. ``packed``: the session's raw data as bytes (``session.archive``); None makes a page without raw
    data."""
    return _page(document, _drawn(document), packed)


def _drawn(document: ReportDocument) -> list[tuple[blocks.Section, Html]]:
    """Return (section, the section's markup) for all sections except the last one, which is about the page itself."""
    return [(one, _section(one)) for one in sections.sections(document)]


def _page(document: ReportDocument, drawn: Sequence[tuple[blocks.Section, Html]], packed: bytes | None) -> str:
    about = sections.section_on_report(document, tuple(_raw_data(document, packed)))
    every = (*drawn, (about, _section(about)))
    title, version = clean(document.title, REASON), clean(document.tool_version, SHORT)
    head = join_html(
        (
            tag("meta", charset="utf-8"),
            tag("title", title),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", http_equiv="Content-Security-Policy", content=Html(POLICY)),
            tag("meta", name="generator", content=f"{reportfile.GENERATOR} {version}"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("meta", name="referrer", content="no-referrer"),
            # Without this link a browser would ask the page's server for an icon.
            tag("link", rel="icon", href="data:,"),
            Html(f"<style>\n{_style()}</style>"),
        ),
        "\n",
    )
    kicker = tag("p", "Jitter Workshop · report", class_="kicker")
    contents = (tag("li", tag("a", one.heading, href=f"#{one.id}")) for one, _ in every)
    foot = f"Written by jitter-workshop {version}. This page loads no other files and runs no scripts."
    body = join_html(
        (
            tag("header", kicker, tag("h1", title), *map(block_html, sections.opening_blocks(document))),
            tag("nav", tag("ol", *contents), aria_label="Contents"),
            tag("main", *(markup for _, markup in every)),
            tag("footer", tag("p", foot)),
        )
    )
    page = f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}</body>\n</html>\n'
    return page if packed is None else reportfile.embed(page, packed)


@cache
def _style() -> str:
    text = resources("jitter_workshop.assets").joinpath("report.css").read_text(encoding="utf-8")
    for name in ("light", "dark"):
        text = text.replace(f"  @{name}@", f"  {_colours(name)}")
    return text


def _colours(theme: str) -> str:
    """Return the CSS variables for the colours of a theme. ``theme``: its name in ``model.palette``."""
    palette = PALETTES[theme]
    colours = {
        "paper": palette.background,
        "raised": palette.surface,
        "ink": palette.text,
        "dim": palette.dim,
        "line": palette.grid,
        "link": palette.cool,
        "good": palette.good,
        "bad": palette.bad,
        "warn": palette.accent,
        "bar": palette.cool,
        **{field.replace("_", "-"): getattr(palette, field) for field in sorted(set(CAUSES.values()))},
        small.REST: palette.faint,
    }
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


def _raw_data(document: ReportDocument, packed: bytes | None) -> Iterator[ReportBlock]:
    if packed is None:
        why = " The report was made for others (--private), so names are replaced." if document.private else ""
        yield blocks.Paragraph(f"The raw data are not in this file.{why}")
        return
    index = archive.read_index(packed)
    yield blocks.Paragraph(
        f"Session {clean(index.session)} is inside this file ({many(len(index.files), 'file')}, "
        f"{sum(f.size for f in index.files):,} bytes on disk), each file with its SHA-256. The command below imports "
        "the session. After that, 'report' shows the measured figures again, even if somebody has edited this page:"
    )
    yield blocks.Shell((Command("jitter-workshop sessions import REPORT.html", ""),))
    if not index.left_out:
        yield blocks.Paragraph("The import restores the session bit for bit, with nothing left out.")
        return
    left_out = many(len(index.left_out), "file")
    yield blocks.Paragraph(
        f"To keep this page small, {left_out} of the session are not in it: histograms of single blocks and kernel "
        "traces. No curve and no figure of this report needs these files. The import restores all other files bit "
        "for bit."
    )
    rows = tuple((blocks.code_span(f.path, PATH), f"{f.size:,}", f.why) for f in index.left_out)
    columns = (blocks.Column("file"), blocks.Column("bytes", number=True), blocks.Column("why"))
    yield blocks.Table("", f"Left out: {left_out}", columns, rows, most=0)


# -- markup ------------------------------------------------------------------------------------------------------------


class Html(str):
    """Hold text that is HTML markup and needs no escaping."""

    __slots__ = ()


def escaped_html(text: str) -> Html:
    """Return a text as markup, cleaned and escaped. The result is safe between tags and inside an attribute. A blank at
    either end of the text is kept."""
    if isinstance(text, Html):
        return text
    found = clean(text, _LONG)
    if not found:
        return Html(" " if text == " " else "")
    return Html(" " * text.startswith(" ") + escape(found, quote=True) + " " * text.endswith(" "))


def tag(element: str, /, *children: str, **attributes: str | int | None) -> Html:
    """Return an HTML element with its children and attributes. In attributes' names ``class_`` becomes ``class``, and
    other underscores become dashes. An attribute that is None or "" is left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped_html(str(value))}"'
        for key, value in attributes.items()
        if value not in (None, "")
    )
    if element in _VOID:
        return Html(f"<{element}{written}>")
    inner = "".join(map(escaped_html, children))
    return Html(f"<{element}{written}>{inner}</{element}>" + ("\n" if element in _LINES else ""))


def join_html(parts: Iterable[str], between: str = "") -> Html:
    """Return texts joined as markup. Plain texts are escaped. ``between``: the markup between two parts."""
    return Html(between.join(map(escaped_html, parts)))


def inline_html(text: Inline) -> Html:
    """Return a text within a line as markup."""
    if isinstance(text, str):
        return escaped_html(text)
    if isinstance(text, tuple):
        return join_html(map(inline_html, text))
    if isinstance(text, blocks.Bar):
        return Html(small.bar_picture(text.share))
    if isinstance(text, blocks.IntervalAxis):
        return join_html((text.text, Html(small.interval_axis(text.axis))))
    if isinstance(text, blocks.Interval):
        return join_html(
            (Html(small.ratio_picture(text.verdict, text.axis)), tag("span", text.text, class_="dim small nowrap"))
        )
    return _span(text)


def _span(span: blocks.Span) -> Html:
    inside = inline_html(span.text)
    if span.style in _TAGS:
        # A name is isolated, so that its direction of writing cannot turn the text beside it.
        return join_html((" " if span.style == "aside" else "", tag(_TAGS[span.style], inside)))
    if span.style == "link":
        return tag("a", inside, href=f"#{span.more}")
    if span.style == "time":
        return tag("time", inside, datetime=span.more)
    if span.style == "badge":
        sign, blank, word = inside.partition(" ")
        parts = (tag("span", Html(sign), aria_hidden="true"), Html(f" {word}")) if blank else (inside,)
        return tag("span", *parts, class_=f"badge {span.more}")
    if span.style == "few":
        value, _, mark = inside.rpartition(" ")
        figure = tag("span", Html(value), class_="few") if mark == FEW_SAMPLES else Html(value)
        return tag("span", figure, f" {mark}", title=span.more)
    return join_html((" " if span.style == "origin" else "", tag("span", inside, class_=_CLASSES[span.style])))


# -- blocks ------------------------------------------------------------------------------------------------------------


def _section(section: blocks.Section) -> Html:
    return tag("section", tag("h2", section.heading), *map(block_html, section.blocks), id=section.id)


def block_html(one: ReportBlock) -> Html:
    """Return a block of a report as markup."""
    if isinstance(one, blocks.Paragraph):
        return tag("p", inline_html(one.text), class_=_PARAGRAPHS.get(one.style, one.style))
    if isinstance(one, blocks.Bullets):
        return _bullets(one)
    if isinstance(one, blocks.Facts):
        rows = ((tag("dt", term), tag("dd", inline_html(told))) for term, told in one.rows)
        return tag("dl", *chain.from_iterable(rows), class_="facts")
    if isinstance(one, blocks.Table):
        return _table(one)
    if isinstance(one, blocks.Chart):
        return _chart(one)
    if isinstance(one, blocks.HeatChart):
        scroll = _wide(f"Chart: {one.title}", Html(render_heat_svg(one.heat, one.title, scope=f"chart-{one.number}")))
        figure = tag("figure", scroll, tag("figcaption", one.text), class_="chart")
        return figure if one.bursts else _folded(one.title, figure)
    if isinstance(one, blocks.MatrixChart):
        drawn = Html(render_matrix_svg(one.matrix, one.title, scope=f"chart-{one.number}"))
        scroll = _wide(f"Chart: {one.title}", drawn)
        return tag("figure", scroll, tag("figcaption", one.text), _table(one.table), class_="chart")
    if isinstance(one, blocks.StallList):
        return tag("ol", *map(_stall, one.stalls), class_="stalls")
    if isinstance(one, blocks.Shell):
        lines = (
            (tag("dt", tag("pre", tag("code", c.command))), tag("dd", clean(c.why, SENTENCE))) for c in one.commands
        )
        return tag("dl", *chain.from_iterable(lines), class_="commands")
    return tag(
        "section", tag("h3", inline_html(one.heading)), *map(block_html, one.blocks), class_=one.style, id=one.id
    )


def _bullets(one: blocks.Bullets) -> Html:
    items = [tag("li", inline_html(item)) for item in one.items]
    if one.most is None or len(items) <= one.most:
        return tag("ul", *items, class_="summary" if one.summary else "")
    rest = _folded(f"{len(items) - one.most:,} more", tag("ul", *items[one.most :]))
    return join_html((tag("ul", *items[: one.most]), rest))


def _table(one: blocks.Table) -> Html:
    rows = [_row(row, one.columns, f"{one.anchor}-{n}" if one.anchor else "") for n, row in enumerate(one.rows, 1)]
    if one.most is None or len(rows) <= one.most:
        return _rows(one, rows, one.caption)
    if not one.most:
        return _folded(one.caption, _rows(one, rows, one.caption))
    first = _rows(one, rows[: one.most], one.caption)
    rest = _rows(one, rows[one.most :], f"{one.caption}: the others")
    return join_html((first, _folded(f"{len(rows) - one.most:,} more", rest)))


def _rows(one: blocks.Table, rows: Sequence[Html], caption: str) -> Html:
    heads = (
        tag("th", inline_html(column.head), scope="col", class_="n" if column.number else "")
        if column.head
        else tag("td")
        for column in one.columns
    )
    head, body = tag("thead", tag("tr", *heads)), tag("tbody", *rows)
    return _wide(caption, tag("table", tag("caption", caption), head, body, class_=one.style))


def _row(row: blocks.Cells, columns: Sequence[blocks.Column], ident: str) -> Html:
    cells = (
        tag("td", inline_html(cell), class_="n" if column.number else "small" if column.prose else "")
        for cell, column in zip(row[1:], columns[1:], strict=True)
    )
    return tag("tr", tag("th", inline_html(row[0]), scope="row"), *cells, id=ident)


def _wide(label: str, inside: Html) -> Html:
    """Return an element that contains the markup ``inside``, and scrolls sideways if the markup is too wide.
    ``label``: the element's name for screen readers.
    """
    # Without a stop for the tab key a keyboard could not scroll it.
    return tag("div", inside, class_="wide", tabindex=0, role="region", aria_label=label)


def _folded(summary: str, inside: Html) -> Html:
    """Return an element that contains the markup ``inside``, and stays closed until the reader opens it. On paper it is
    open. ``summary``: the text that is always visible."""
    return tag("details", tag("summary", summary), inside)


def _chart(one: blocks.Chart) -> Html:
    drawn = Html(render_svg(one.curves, one.title, scope=f"chart-{one.number}", between=one.between))
    scroll = _wide(f"Chart: {clean(one.title)}", drawn)
    table = _folded("The same as a table", _table(one.table))
    return tag("figure", scroll, tag("figcaption", one.text), table, class_="chart")


def _stall(one: blocks.StallLine) -> Html:
    legend = [*zip(small.cause_styles(one.drawn), one.causes, strict=True)]
    legend += [(small.REST, one.rest)] if one.rest else []
    keys = (tag("li", tag("span", "■", class_=f"key {s}", aria_hidden="true"), f" {cause}") for s, cause in legend)
    notes = tag("ul", *(tag("li", note) for note in one.notes), class_="dim") if one.notes else Html("")
    return tag("li", tag("p", one.head), Html(small.timeline(one.drawn)), tag("ul", *keys, class_="legend"), notes)
