"""Build a report as one web page that loads nothing and runs nothing, for the screen, for paper and for a text browser.

The first screen tells the results in words; the sections below show the data behind them. The session's raw data can be
inside the page (``session.reportfile``); editing the words does not change the raw data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files as resources

from jitter_workshop.model.report import ReportDocument
from jitter_workshop.model.run import Run
from jitter_workshop.model.text import clean, many
from jitter_workshop.report.document_words import HOW_IT_COUNTS, NOTHING_PROVEN, OWN_PLACE, summary
from jitter_workshop.report.html import charts as html_charts
from jitter_workshop.report.html import course
from jitter_workshop.report.html import host as html_host
from jitter_workshop.report.html import verdicts as html_verdicts
from jitter_workshop.report.html.write import Html, Number, bullets, folded, join, name, shown, table, tag, when
from jitter_workshop.report.html.write import cell as table_cell
from jitter_workshop.report.html.write import row as table_row
from jitter_workshop.session import archive, reportfile
from jitter_workshop.session.archive import Index
from jitter_workshop.session.store import OpenSession

MOST_BYTES = 1_000_000
"""The size limit. A page of 20 runs stays below it, with raw data: histograms of blocks and traces go in while there is
room."""
_IN_BASE64 = 0.74
"""Bytes of an archive per byte of the page, line breaks included."""
_FOR_WORDS = 2_000
"""Estimated bytes of a page's text about its raw data; each file left out has a line of its own."""
_A_LINE = 220

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_NO_RAW_DATA = "The raw data are not in this file."


def files(document: ReportDocument, session: OpenSession, runs: Sequence[Run], name: str) -> dict[str, bytes]:
    """Return the page as a file of this name. It contains the session's raw data if the report is about all of it and
    is not private. Raises SessionError."""
    if document.private or {run.id for run in document.runs} < set(session.session.runs):
        # A user who left runs or names out does not want them in the raw data.
        return {name: render(document, None).encode()}
    sections = _sections(document)
    room = MOST_BYTES - len(_page(document, sections, None).encode()) - _FOR_WORDS - _A_LINE * len(session.session.runs)
    packed = archive.pack(session.folder, room=max(0, int(room * _IN_BASE64)))
    return {name: _whole(document, sections, packed).encode()}


def render(document: ReportDocument, packed: bytes | None) -> str:
    """Return the page. ``packed``: the session's raw data (``session.archive``), None = without them."""
    return _whole(document, _sections(document), packed)


Section = tuple[str, str, Html]
"""A section's id, its heading, and its content."""


def _whole(document: ReportDocument, sections: Sequence[Section], packed: bytes | None) -> str:
    page = _page(document, sections, packed)
    return page if packed is None else reportfile.embed(page, packed)


def _page(document: ReportDocument, sections: Sequence[Section], packed: bytes | None) -> str:
    every = [*sections, ("about", "About this report", _about(document, packed))]
    title = clean(document.title, 160)
    head = join(
        [
            tag("meta", charset="utf-8"),
            tag("title", title),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", http_equiv="Content-Security-Policy", content=Html(POLICY)),
            tag("meta", name="generator", content=f"{reportfile.GENERATOR} {clean(document.tool_version, 30)}"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("meta", name="referrer", content="no-referrer"),
            # Without this link a browser would ask the page's server for an icon.
            tag("link", rel="icon", href="data:,"),
            Html(f"<style>\n{_style()}</style>"),
        ],
        "\n",
    )
    main = tag("main", *(tag("section", tag("h2", heading), inside, id=ident) for ident, heading, inside in every))
    body = join([_header(document, title), _contents(every), main, _footer(document)])
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}</body>\n</html>\n'


@cache
def _style() -> str:
    return resources("jitter_workshop.assets").joinpath("report.css").read_text(encoding="utf-8")


def _sections(document: ReportDocument) -> list[Section]:
    """Return all sections but the one about the page itself, in the order in which a reader asks."""
    d = document
    found: list[Section] = []
    if d.overlays:
        found.append(("charts", "Curves", html_charts.charts(d.overlays)))
    found.append(("verdicts", "Verdicts", html_verdicts.proofs(d.proofs) if d.proofs else _nothing_proven(d)))
    found.append(("culprits", "Who stole the time", _or_why(d, "culprits", course.culprits(d.culprits, d.runs))))
    found.append(("changes", "Changes", join([html_host.changes(d), _notes(d, "changes", "events")])))
    if d.chapters or "chapters" in d.notes:
        told = course.chapters(d.chapters, d.runs)
        found.append(("chapters", "Chapters and predictions", join([told, _notes(d, "chapters")])))
    found.append(("status", "Status before and after", html_host.status(d)))
    found.append(("open", "Still open", html_host.still_open(d.still_open)))
    found.append(("again", "How to get there again", html_host.commands(d.commands)))
    found.append(("runs", "Runs", _runs(d)))
    found.append(("host", "Host", _or_why(d, "hosts", html_host.hosts(d.hosts))))
    return found


def _nothing_proven(document: ReportDocument) -> Html:
    why = document.notes.get("proofs", "")
    return join([tag("p", NOTHING_PROVEN), tag("p", shown(why, 400), class_="unknown") if why else None])


def _or_why(document: ReportDocument, key: str, told: Html) -> Html:
    return told if told.strip() else tag("p", f"Not known: {clean(document.notes.get(key, 'nothing was kept'), 400)}.")


def _notes(document: ReportDocument, *keys: str) -> Html:
    return join(tag("p", shown(document.notes[key], 400), class_="unknown") for key in keys if document.notes.get(key))


def _header(document: ReportDocument, title: str) -> Html:
    facts: list[Html] = []
    for term, told in _facts(document):
        facts += [tag("dt", term), tag("dd", told)]
    recorded = None
    if document.recorded:
        text = f"About a recorded host ({clean(document.recorded, 80)}), not one that was measured on."
        recorded = tag("p", text, class_="origin")
    return tag(
        "header",
        tag("p", "Jitter Workshop · report", class_="kicker"),
        tag("h1", title),
        recorded,
        bullets(_summary(document), "summary"),
        tag("dl", *facts, class_="facts"),
    )


def _facts(document: ReportDocument) -> Iterator[tuple[str, Html]]:
    yield "Host", shown(document.host_line, 300) or shown("not known")
    yield "Session", join([name(document.session_name, 80), " ", tag("code", shown(document.session_id, 60))])
    stamps = sorted(run.started_at for run in document.runs if run.started_at)
    if stamps:
        yield "Measured", join([when(stamps[0]), *([" to ", when(stamps[-1])] if len(stamps) > 1 else [])])
    yield "Written", join([when(document.made_at), f" by jitter-workshop {clean(document.tool_version, 30)}"])


def _summary(document: ReportDocument) -> Iterator[Html]:
    """Yield the document's first lines. A proof's line is marked by its verdict and links to the proof."""
    for line, number, at in summary(document):
        if number is None:
            yield shown(line, 600)
            continue
        proof = document.proofs[number]
        subject = clean(proof.subject, 60)
        link = tag("a", name(subject, 60), href=f"#{html_verdicts.anchor(number + 1)}")
        word = [html_verdicts.badge(proof.judgement.headline.verdict), " "] if proof.judgement is not None else []
        yield join([*word, shown(line[:at]), link, shown(line[at + len(subject) :], 600)])


def _contents(sections: Sequence[Section]) -> Html:
    items = [tag("li", tag("a", heading, href=f"#{ident}")) for ident, heading, _ in sections]
    return tag("nav", tag("ol", *items), aria_label="Contents")


def _runs(document: ReportDocument) -> Html:
    d = document
    parts = [html_charts.runs_table(d.runs) if d.runs else tag("p", "Nothing was measured.")]
    if d.imports:
        parts += [tag("h3", "From other tools, never part of a verdict"), bullets(shown(i, 400) for i in d.imports)]
    return join([*parts, _notes(d, "imports")])


def _about(document: ReportDocument, packed: bytes | None) -> Html:
    parts = [
        tag("p", HOW_IT_COUNTS),
        tag("h3", "Raw data"),
        _raw_data(document, packed),
    ]
    others = {key: text for key, text in document.notes.items() if key not in OWN_PLACE and text}
    if others:
        items = [join([tag("strong", clean(key, 40)), ": ", shown(text, 400)]) for key, text in others.items()]
        parts += [tag("h3", "Notes"), bullets(items)]
    return join(parts)


def _raw_data(document: ReportDocument, packed: bytes | None) -> Html:
    if packed is None:
        why = "It was made for others: names are replaced." if document.private else ""
        return tag("p", f"{_NO_RAW_DATA} {why}")
    index = archive.read_index(packed)
    text = (
        f"Session {clean(index.session, 80)} is inside this file ({many(len(index.files), 'file')}, "
        f"{sum(f.size for f in index.files):,} bytes on disk), each file with its SHA-256. The command "
        "below brings it back. 'report' then shows the measured figures again, even if this page was edited:"
    )
    command = tag("pre", tag("code", "jitter-workshop sessions import REPORT.html"))
    return join([tag("p", text), command, _left_out(index)])


def _left_out(index: Index) -> Html:
    if not index.left_out:
        return tag("p", "It comes back bit for bit, with nothing left out.")
    rows = (table_row(tag("code", f.path), table_cell(f"{f.size:,}", "n"), table_cell(f.why)) for f in index.left_out)
    listed = table(("file", Number("bytes"), "why"), rows, "Files of the session that are not in this page")
    text = (
        f"{many(len(index.left_out), 'file')} of it would have made this page too large and are left out (histograms "
        "of single blocks, kernel traces); every curve and figure of this report comes back without them, and all that "
        "comes back is as it was, bit for bit."
    )
    return join([tag("p", text), folded("Files left out", listed)])


def _footer(document: ReportDocument) -> Html:
    text = f"Written by jitter-workshop {clean(document.tool_version, 30)}. This page loads nothing and runs nothing."
    return tag("footer", tag("p", text))
