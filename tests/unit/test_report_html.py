"""The page: whole, without anything to load or run, true to the document, and closed to what others named."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitter_workshop.model.report import ReportDocument
from jitter_workshop.model.text import clean
from jitter_workshop.report import html
from jitter_workshop.report.blocks import Column, Span, Table, code_span, name_span
from jitter_workshop.report.html import Html, block_html, escaped_html, inline_html, tag
from jitter_workshop.report.sections import NOTHING_PROVEN
from jitter_workshop.session import reportfile
from jitter_workshop.stats.comparison import measure_name
from jitter_workshop.stats.curve import curve_value_at
from jitter_workshop.stats.scale import nice_ns
from jitter_workshop.stats.verdicts import span_told
from tests import madereports
from tests.madereports import HOSTILE

VOID = {"meta", "link", "br", "col"}
ALLOWED = {
    *("html", "head", "meta", "title", "link", "style", "body", "header", "nav", "main", "section", "footer", "h1"),
    *("h2", "h3", "p", "ul", "ol", "li", "dl", "dt", "dd", "a", "div", "span", "strong", "small", "bdi", "code", "pre"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "details", "summary", "time"),
    *("svg", "desc", "rect", "text", "tspan", "line", "polyline", "circle", "polygon", "path"),
}
ATTRIBUTES = {
    *("lang", "charset", "name", "content", "http-equiv", "rel", "href", "class", "id", "scope", "tabindex", "role"),
    *("aria-label", "aria-hidden", "aria-labelledby", "datetime", "title", "open", "xmlns", "viewbox", "width"),
    *("height", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "points", "transform", "text-anchor", "d"),
    "preserveaspectratio",
}


class Parsed(HTMLParser):
    """Hold what a browser would see: the elements, nested as they should be, and the text of each."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []
        self.comments: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((name, {key: value or "" for key, value in attributes}))
        assert len(attributes) == len(dict(attributes))
        if name not in VOID:
            self.open.append(name)

    def handle_startendtag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((name, {key: value or "" for key, value in attributes}))

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def named(self, element: str) -> list[dict[str, str]]:
        return [attributes for found, attributes in self.elements if found == element]

    @property
    def text(self) -> str:
        return "".join(text for where, text in self.texts if where != "style")


@pytest.fixture(scope="module")
def document() -> ReportDocument:
    return madereports.rich()


@pytest.fixture(scope="module")
def page(document: ReportDocument) -> str:
    return html.html_page(document, None)


@pytest.fixture(scope="module")
def parsed(page: str) -> Parsed:
    return Parsed(page)


def test_it_loads_nothing_and_runs_nothing(parsed: Parsed, page: str) -> None:
    assert {element for element, _ in parsed.elements} <= ALLOWED
    assert {key for _, attributes in parsed.elements for key in attributes} <= ATTRIBUTES
    for attributes in parsed.named("a"):
        assert attributes["href"].startswith("#")
    assert [a["href"] for a in parsed.named("link")] == ["data:,"]
    policies = [a["content"] for a in parsed.named("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    assert policies == [html.POLICY]
    assert "default-src 'none'" in html.POLICY
    styles = "".join(text for where, text in parsed.texts if where == "style")
    assert not re.search(r"@import|url\(|expression|https?:", styles)
    assert "style=" not in page
    assert parsed.comments == []


def test_it_is_in_order_for_all_readers(parsed: Parsed) -> None:
    assert parsed.named("html") == [{"lang": "en"}]
    assert len(parsed.named("h1")) == len(parsed.named("main")) == len(parsed.named("nav")) == 1
    assert all(a.get("scope") in ("col", "row") for a in parsed.named("th"))
    assert len(parsed.named("caption")) == len(parsed.named("table"))
    assert len(parsed.named("figcaption")) == len(parsed.named("figure")) == 3
    ids = [a["id"] for _, a in parsed.elements if "id" in a]
    assert len(ids) == len(set(ids))
    assert {a["href"][1:] for a in parsed.named("a")} <= set(ids)
    for attributes in parsed.named("svg"):
        assert attributes.get("aria-hidden") == "true" or {"role", "aria-labelledby"} <= set(attributes)
    levels = [int(element[1]) for element, _ in parsed.elements if re.fullmatch(r"h[1-6]", element)]
    assert levels[0] == 1
    assert all(second - first <= 1 for first, second in itertools.pairwise(levels))


def test_the_head_of_the_page_has_the_summary(page: str, document: ReportDocument) -> None:
    head = Parsed(page.replace("<nav", "<header><nav").split("<header>")[1].join(("<header>", ""))).text
    for line in document.summary:
        assert clean(line, 600) in head
    assert "▼ lower Proven of irq-affinity: stalls over 100 µs: 21× rarer" in head
    assert "? cannot tell Not proven of thp=never: stalls over 100 µs: cannot tell" in head
    links = re.findall(r'href="#(proof-\d)"', page.split("<nav")[0])
    assert links == [f"proof-{number}" for number in range(1, 5)]
    assert "lab03 · KVM guest" in head
    assert "2026-01-01 00:00 UTC" in head


def test_its_figures_are_those_of_the_document(parsed: Parsed, document: ReportDocument) -> None:
    text = parsed.text
    for run in document.runs:
        assert run.histogram is not None
        for percentile in ("50", "99", "99.9"):
            assert nice_ns(run.histogram.percentiles[percentile]) in text
        assert nice_ns(run.histogram.max) in text
    for proof in document.proofs:
        for one in proof.judgement.rows if proof.judgement is not None else ():
            assert measure_name(one.measure) in text
            assert span_told(one.low, one.high) in text
        if proof.judgement is not None:
            assert proof.judgement.headline.text in text
            assert proof.judgement.worst in text
            assert proof.judgement.drift.words in text
    for change in document.changes:
        assert clean(change.path, 300) in text
    for command in document.commands:
        assert command.command in text
    for one in document.culprits:
        for cause in one.report.causes if one.report is not None else ():
            assert nice_ns(cause.total_ns) in text


def test_a_verdict_says_no_more_than_its_data(document: ReportDocument) -> None:
    """Each badge is the judgement's own word, and what was not judged has none."""
    page = html.html_page(document, None)
    for number, proof in enumerate(document.proofs, 1):
        part = page.split(f'id="proof-{number}"')[1].split("</section>")[0]
        badges = re.findall(r'class="badge ([a-z-]+)"', part)
        rows = proof.judgement.rows if proof.judgement is not None else ()
        headline = [proof.judgement.headline.verdict] if proof.judgement is not None else []
        assert badges == [word.replace("_", "-") for word in (*headline, *(one.verdict for one in rows))]


def test_few_samples_are_marked_in_words_too(page: str, document: ReportDocument) -> None:
    few = sum(one.value_ns is not None and not one.solid for run in document.runs for one in run.standings)
    assert few
    # The tables of the charts' curves have columns up to p99.99.
    curves = [curve for one in document.overlays for curve in one.curves]
    marked = [
        percentile
        for curve in curves
        for percentile, beyond in (("50", 0.5), ("90", 0.1), ("99", 0.01), ("99.9", 1e-3), ("99.99", 1e-4))
        if curve.count and curve.count * beyond < 10 and curve_value_at(curve, float(percentile)) is not None
    ]
    assert marked
    few += len(marked)
    assert len(re.findall(r'<span class="few">[^<]+</span> ·', page)) == few
    assert "· marks a percentile with fewer than ten samples beyond it" in page


def test_recorded_and_published_data_are_marked(page: str) -> None:
    assert "published 2015" in page
    assert "recorded: nothing was measured on this host" in page
    assert "Done on a recording" in page
    assert "about a recorded host (a recorded laptop)" in html.html_page(madereports.bare(), None)


def test_an_unknown_part_has_its_reason() -> None:
    text = Parsed(html.html_page(madereports.bare(), None)).text
    assert "Status before: this session is older" in text
    assert "Status after: the host cannot be read." in text
    assert NOTHING_PROVEN in text
    assert "Nothing was measured." in text


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_name_stays_where_it_is(hostile: str, page: str) -> None:
    quiet = Parsed(html.html_page(_renamed("plain"), None))
    found = Parsed(html.html_page(_renamed(hostile), None))
    assert [(e, sorted(a)) for e, a in found.elements] == [(e, sorted(a)) for e, a in quiet.elements]
    assert clean(hostile, 40).removesuffix("…") in found.text
    raw = html.html_page(_renamed(hostile), None)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", raw)
    assert len(raw) < 60_000


def _renamed(label: str) -> ReportDocument:
    """A small report in which everything that others name is called the same."""
    run = dataclasses.replace(madereports.made_runs(1)[0][1], label=label, notes=(label,), role=label)
    assert run.curve is not None
    run = dataclasses.replace(run, curve=dataclasses.replace(run.curve, label=label))
    assert run.curve is not None
    whole = madereports.bare()
    return dataclasses.replace(
        whole,
        title=f"report {label}",
        session_name=label,
        summary=(label,),
        host_line=label,
        runs=(run,),
        imports=(label,),
        hosts=(dataclasses.replace(madereports.HOST, name=label, cpu_model=label, kernel=label),),
        overlays=(madereports.Overlay(label, label, (run.curve,)),),
        proofs=(madereports.made_proof(subject=f"x {label}", notes=(label,), stopped=label),),
        still_open=(madereports.OpenPoint("check", label, label, label),),
        commands=(madereports.Command(label, label),),
        notes={"other": label, "before": label},
    )


@settings(max_examples=40)
@given(st.text(max_size=80))
def test_any_name_stays_where_it_is(label: str) -> None:
    document = dataclasses.replace(
        madereports.bare(), title="t " + label, session_name=label, summary=("s " + label,), imports=("i " + label,)
    )
    found = Parsed(html.html_page(document, None))
    assert {element for element, _ in found.elements} <= ALLOWED
    assert clean(label, 80) in " ".join(found.text.split())


@given(st.text(max_size=50), st.text(max_size=50))
def test_text_never_becomes_markup(text: str, other: str) -> None:
    table = Table(other, other, (Column(text), Column(other)), ((text, Span("few", text, other)),), anchor=other)
    spans = map(inline_html, (name_span(text), code_span(text), Span("time", text, other), Span("badge", text, other)))
    made: Iterable[Html] = (escaped_html(text), *spans, tag("p", text, title=other), block_html(table))
    known = {"p", "bdi", "code", "time", "span", "div", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    for one in made:
        plain = Parsed(one)
        assert {element for element, _ in plain.elements} <= known


def test_a_page_of_twenty_runs_is_small(page: str) -> None:
    assert len(page.encode()) < 250_000


# -- the archive in the page -------------------------------------------------------------------------------------------


def test_an_archive_is_found_again_and_changes_nothing_that_is_seen(page: str) -> None:
    archive = bytes(range(256)) * 40
    whole = reportfile.embed(page, archive)
    assert reportfile.archive_in(whole.encode()) == reportfile.Embedded(archive, True)
    parsed = Parsed(whole)
    assert parsed.text.split() == Parsed(page).text.split()
    assert len(parsed.comments) == 1


def test_ends_of_lines_do_not_matter(page: str) -> None:
    whole = reportfile.embed(page, b"archive")
    assert reportfile.archive_in(whole.replace("\n", "\r\n").encode()) == reportfile.Embedded(b"archive", True)


def test_edited_words_are_told_and_edited_data_refused(page: str) -> None:
    whole = reportfile.embed(page, b"the archive" * 51)
    words = whole.replace("lower", "higher")
    assert reportfile.archive_in(words.encode()) == reportfile.Embedded(b"the archive" * 51, False)
    with pytest.raises(Exception, match="edited or cut"):
        reportfile.archive_in(whole.replace("dGhlIGFyY2hpdmV", "dGhlIGFyY2hpdmU", 1).encode())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda p: p[: p.index(b"-->") - 40], "is cut off"),
        (lambda p: p[: len(p) // 3], "is cut off"),
        (lambda p: p[: p.index(b"<!-- jitter")] + b"</body></html>", "without raw data"),
        (lambda p: p + p, "more than one session"),
        (lambda p: p.replace(b"archive 2\n", b"archive 3\n"), "newer version"),
        (lambda p: p.replace(b"archive 2\n", b"archive 1\n"), "before the first release"),
        (lambda p: p.replace(b"sha256=", b"sha512=", 1), "was edited"),
        (lambda p: b"<!doctype html><html><body>hello</body></html>", "did not write"),
        (lambda p: p.replace(b"\n-->", b"=A\n-->"), "base64 is broken"),
        (lambda p: p.replace(b"\n-->", b"AAAA\n-->"), "edited or cut"),
    ],
)
def test_a_page_that_is_not_whole_says_how(change: object, told: str, page: str) -> None:
    whole = reportfile.embed(page, b"the archive" * 51).encode()
    changed = change(whole)  # type: ignore[operator]
    assert reportfile.is_page(changed)
    with pytest.raises(Exception, match=told) as caught:
        reportfile.archive_in(changed)
    assert "\n" not in str(caught.value)
