"""Build a page's chapters (guess, measurement, outcome), and the causes of the stolen time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jitter_workshop.model.curve import Comparison
from jitter_workshop.model.evidence import Cause, EvidenceReport, ExplainedStall
from jitter_workshop.model.report import Culprits, ReportedChapter, ReportedRun
from jitter_workshop.model.run import AT, made_late
from jitter_workshop.model.text import clean, many
from jitter_workshop.report.document_words import EVIDENCE
from jitter_workshop.report.html.charts import run_anchors, run_link
from jitter_workshop.report.html.write import (
    Html,
    Number,
    bullets,
    cell,
    figure_cell,
    folded,
    join,
    paragraphs,
    row,
    shown,
    svg_tag,
    table,
    tag,
)
from jitter_workshop.report.text import evidence as evidence_text
from jitter_workshop.stats.measurewords import amount, measure_name
from jitter_workshop.stats.scale import nice_ns, times

CAUSES = 14
"""Rows of causes that are shown at once; the others are folded."""
_SHADES = 4
_WIDTH, _HEIGHT = 640, 18


def chapters(found: Sequence[ReportedChapter], runs: Sequence[ReportedRun]) -> Html:
    """Return the chapters that were begun, in the order of the course."""
    by_id, anchors = {run.id: run for run in runs}, run_anchors(runs)
    return join(_chapter(one, by_id, anchors) for one in found)


def _chapter(one: ReportedChapter, runs: Mapping[str, ReportedRun], anchors: Mapping[str, str]) -> Html:
    marks = [
        "done" if one.done else "under way",
        {None: "sets nothing", True: "its setting stands as it should", False: "its setting is not as it should be"}[
            one.setting
        ],
        "curve measured" if one.curve else "curve not measured",
    ]
    made = [
        join([f"{clean(slot, 30)}: ", run_link(ident, runs, anchors)]) for slot, ident in list(one.runs.items())[:20]
    ]
    return tag(
        "section",
        tag("h3", shown(one.title, 80)),
        tag("p", "Gone through on a recording: nothing was measured on this host.", class_="origin")
        if one.rehearsed
        else None,
        tag("p", " · ".join(marks), class_="dim"),
        _prediction(one),
        tag("p", "Runs: ", join(made, ", ")) if made else None,
        tag("p", shown(one.comparison_text, 1_500)) if one.comparison_text else None,
        _comparison(one.comparison, one.title) if one.comparison is not None else None,
        tag("p", "What was learnt:") if one.learnt else None,
        bullets(shown(text, 600) for text in one.learnt),
        class_="chapter",
    )


def _prediction(one: ReportedChapter) -> Html | None:
    if not one.question:
        return None
    guess = shown(one.guess, 300) if one.guess else shown("nothing was predicted")
    lines = [tag("dt", "Asked"), tag("dd", shown(one.question, 600)), tag("dt", "Predicted"), tag("dd", guess)]
    if one.outcome is not None:
        near = {None: "", True: "near", False: "far"}[one.outcome.near]
        told = [shown(one.outcome.text, 600)]
        told += [tag("span", f"{near}", class_="badge plain")] if near else []
        told += [tag("span", shown(one.outcome.explanation, 900), class_="below")] if one.outcome.explanation else []
        lines += [tag("dt", "Measured"), tag("dd", join(told, " "))]
    return tag("dl", *lines, class_="facts")


def _comparison(found: Comparison, title: str) -> Html:
    if not found.comparable:
        return bullets(shown(text, 300) for text in found.differences)
    rows = (
        row(
            measure_name(one.measure),
            figure_cell(amount(one.measure, one.a)),
            figure_cell(amount(one.measure, one.b)),
            figure_cell(times(one.ratio)),
        )
        for one in found.rows
    )
    caption = f"{clean(title, 60)}: two single runs, described and not judged"
    return table(("measure", Number("first run"), Number("second run"), Number("ratio")), rows, caption, "narrow")


def culprits(found: Sequence[Culprits], runs: Sequence[ReportedRun]) -> Html:
    """Return the causes of the stolen time, run by run."""
    by_id, anchors = {run.id: run for run in runs}, run_anchors(runs)
    return join(_culprits(one, run_link(one.run, by_id, anchors)) for one in found)


def _culprits(one: Culprits, link: Html) -> Html:
    report = one.report
    # Texts that begin with a candidate's mark form a list.
    lead = [text for text in one.text if not text.startswith(evidence_text.ITEM)]
    items = [text.removeprefix(evidence_text.ITEM) for text in one.text if text.startswith(evidence_text.ITEM)]
    return tag(
        "section",
        tag("h3", link, " ", tag("small", EVIDENCE[one.evidence])),
        # The first sentence describes the table.
        paragraphs(lead[:1]),
        _causes(report) if report is not None else None,
        paragraphs(lead[1:]),
        bullets(shown(text, 400) for text in items),
        *([] if report is None or not report.worst else [_worst(report)]),
        class_="culprits",
    )


def _causes(report: EvidenceReport) -> Html:
    if not report.causes:
        return tag("p", "No stall to explain." if not report.stalls else "Nothing is known of what took the time.")
    most = max((cause.total_ns for cause in report.causes), default=0) or 1
    rows = [_cause(cause, most, report) for cause in report.causes]
    heads = (
        "cause",
        Number("in all"),
        "",
        Number("stalls"),
        Number("worst"),
        Number("a second"),
        *((Number("in time without it"),) if _shares(report) else ()),
    )
    told = evidence_text.in_time(report)
    caption = f"What took their time, largest first. {told} The last column: without that cause and what is around it."
    caption = caption if told else "What took their time, largest first"
    first = table(heads, rows[:CAUSES], caption, "causes")
    if len(rows) <= CAUSES:
        return first
    hidden = rows[CAUSES:]
    rest = folded(many(len(hidden), "smaller cause"), table(heads, hidden, "Smaller causes", "causes"))
    return join([first, rest])


def _shares(report: EvidenceReport) -> bool:
    return report.below_now is not None


def _cause(cause: Cause, most: int, report: EvidenceReport) -> Html:
    share = cause.total_ns / most
    cells = [
        figure_cell(nice_ns(cause.total_ns)),
        cell(_bar(share), "bar-cell"),
        figure_cell(f"{cause.count:,}"),
        figure_cell(nice_ns(cause.worst_ns)),
        figure_cell(nice_ns(cause.ns_per_second)),
    ]
    if _shares(report):
        cells.append(figure_cell(evidence_text.without(cause, report)))
    return row(shown(evidence_text.named(cause, 80), 80), *cells)


def _bar(share: float) -> Html:
    """Return a bar of a share (0..1); its number stands beside it."""
    wide = round(160 * min(max(share, 0.0), 1.0), 1)
    inside = svg_tag("rect", class_="bar", x=0, y=1, width=max(wide, 1.0), height=12)
    return Html(f'<svg class="bars" viewBox="0 0 160 14" width="160" height="14" aria-hidden="true">{inside}</svg>')


def _worst(report: EvidenceReport) -> Html:
    items = [tag("li", _stall(stall)) for stall in report.worst]
    return join(
        [tag("p", f"The worst stalls, each from left to right in time; {AT}."), tag("ol", *items, class_="stalls")]
    )


def _stall(stall: ExplainedStall) -> Html:
    where = f" on CPU {stall.cpu}" if stall.cpu is not None else ""
    late = made_late(stall.thread, stall.messages)
    head = f"{nice_ns(stall.duration_ns)} of {clean(stall.thread, 20)}{where}, at {nice_ns(stall.at_ns)}"
    parts = list(stall.parts[:_SHADES])
    legend = [
        join([tag("span", "■", class_=f"key shade-{n}", aria_hidden="true"), " ",
              shown(f"{evidence_text.cause_words(part.kind, part.name, 60)} {nice_ns(part.ns)}", 120)])
        for n, part in enumerate(parts)
    ]  # fmt: skip
    rest = sum(part.ns for part in stall.parts[_SHADES:])
    if rest:
        key = tag("span", "■", class_="key shade-rest", aria_hidden="true")
        legend.append(join([key, f" others {nice_ns(rest)}"]))
    return join(
        [
            tag("p", head, f", {late}" if late else ""),
            _timeline(stall),
            bullets(legend, "legend"),
            bullets((shown(note, 300) for note in stall.notes), "dim"),
        ]
    )


def _timeline(stall: ExplainedStall) -> Html:
    """Return a stall's time from left to right, with the four largest causes in their own shades."""
    ranked = {(part.kind, part.name): place for place, part in enumerate(stall.parts[:_SHADES])}
    whole = max(stall.duration_ns, 1)
    pieces = []
    for piece in stall.timeline[:400]:
        place = ranked.get((piece.kind, piece.name))
        x, wide = (round(_WIDTH * part / whole, 1) for part in (piece.offset_ns, piece.ns))
        shade = "rest" if place is None else str(place)
        pieces.append(svg_tag("rect", class_=f"shade-{shade}", x=x, y=0, width=max(wide, 0.5), height=_HEIGHT))
    opened = (
        f'<svg class="timeline" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
        'preserveAspectRatio="none" aria-hidden="true">'
    )
    return Html(f"{opened}{join(pieces)}</svg>")
