"""Build a report as Markdown, with its charts as SVG beside it: for a wiki, a pull request, or to read as plain text.

It has the content of the web page (``report.html.page``) in the same order. The page's drawings are tables and strips
here, and the page's folded parts stand at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.proof import Proof
from jitter_workshop.model.report import Overlay, ReportDocument, ReportedRun
from jitter_workshop.model.run import PERCENTILES, Run
from jitter_workshop.model.text import clean, many
from jitter_workshop.model.verdict import CONFIDENCE, ENOUGH_ROUNDS, Judgement
from jitter_workshop.report.document_words import (
    FEW,
    FEW_IN_CURVES,
    HEADLINE_STALL_NS,
    HOW_CURVES,
    HOW_IT_COUNTS,
    HOW_VERDICTS,
    NOTHING_PROVEN,
    OWN_PLACE,
    SIGNS,
    given_back,
    summary,
    written,
)
from jitter_workshop.report.formats.common import Files, beside
from jitter_workshop.report.markdown import course
from jitter_workshop.report.markdown import host as markdown_host
from jitter_workshop.report.markdown.write import (
    UNKNOWN,
    Md,
    bullets,
    fenced,
    heading,
    join,
    line,
    name,
    picture,
    said,
    span,
    table,
    when,
)
from jitter_workshop.report.pictures.svg import render_svg
from jitter_workshop.report.text.proof import WORDS, company, pictures, span_of
from jitter_workshop.session.store import OpenSession
from jitter_workshop.stats.curve import value_at
from jitter_workshop.stats.measurewords import amount, measure_name
from jitter_workshop.stats.sample_support import of_count, of_standings
from jitter_workshop.stats.scale import nice_ns, nice_number, times

_COLUMNS = ("50", "90", "99", "99.9", "99.99")
_STRIP_COLUMNS = 100


def files(document: ReportDocument, session: OpenSession, runs: Sequence[Run], name: str) -> Files:
    """Return the text under ``name`` and each chart beside it (``…-chart-N.svg``). On standard output there is the text
    alone."""
    charts = {
        n: (beside(name, f"chart-{n}", ".svg"), render_svg(one.curves, one.title, scope=f"chart-{n}"))
        for n, one in enumerate(document.overlays, 1)
        if name
    }
    text = render(document, {n: file for n, (file, _) in charts.items()})
    return {name: text.encode()} | {file: svg.encode() for file, svg in charts.values()}


def render(document: ReportDocument, charts: Mapping[int, str]) -> str:
    """Return the text, ending with a line break. ``charts``: number of an overlay, from 1, → the file with its
    picture."""
    parts = [*_head(document), *_charts(document.overlays, charts), *_verdicts(document)]
    parts += course.culprits(document)
    parts += markdown_host.changes(document)
    parts += course.chapters(document)
    parts += markdown_host.status(document)
    parts += markdown_host.still_open(document)
    parts += markdown_host.commands(document)
    parts += _runs(document)
    parts += markdown_host.hosts(document)
    parts += markdown_host.status_in_full(document)
    parts += _notes(document)
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(document: ReportDocument) -> Iterator[str]:
    d = document
    yield heading(1, d.title)
    if d.recorded:
        yield join(
            [Md("**"), f"About a recorded host ({clean(d.recorded, 80)}), not one that was measured on.", Md("**")]
        )
    yield bullets(_summary(d))
    stamps = sorted(run.started_at for run in d.runs if run.started_at)
    facts = [
        ("Host", said(d.host_line, 300) or said("not known")),
        ("Session", join([name(d.session_name), " ", span(d.session_id, 60)])),
        (
            "Measured",
            Md(" to ".join(when(stamp) for stamp in dict.fromkeys((stamps[0], stamps[-1])))) if stamps else None,
        ),
        ("Written", join([when(d.made_at), f" by jitter-workshop {clean(d.tool_version, 30)}"])),
    ]
    first, *others = [(term, told) for term, told in facts if told]
    yield table(first, others)


def _summary(document: ReportDocument) -> Iterator[Md]:
    """Yield the document's first lines; a proof's line begins with its verdict."""
    for text, number, at in summary(document):
        if number is None:
            yield line(text, 600)
            continue
        proof = document.proofs[number]
        subject = clean(proof.subject, 60)
        rest = said(text[at + len(subject) :], 600)
        yield join([_word(proof.judgement), said(text[:at]), " ", name(subject, 60), rest])


def _word(judged: Judgement | None) -> Md:
    if judged is None:
        return Md("")
    word = judged.headline.verdict
    return Md(f"**{SIGNS[word]} {WORDS[word]}** ")


def _charts(overlays: Sequence[Overlay], charts: Mapping[int, str]) -> Iterator[str]:
    if not overlays:
        return
    yield heading(2, "Curves")
    yield line(HOW_CURVES)
    if not charts:
        yield line("The charts are left out here: written to a file ('-o FILE'), they lie beside it.")
    for number, overlay in enumerate(overlays, 1):
        yield heading(3, overlay.title)
        if number in charts:
            yield picture(f"Chart: {clean(overlay.title, 100)}", charts[number])
        yield line(overlay.text, 600)
        heads = ("curve", *(f"p{p}" for p in _COLUMNS), "max", "samples")
        yield table(heads, map(_curve, overlay.curves), range(1, len(heads)))
        if any(mark for curve in overlay.curves for mark in of_count(curve.count).values()):
            yield line(FEW_IN_CURVES)


def _curve(curve: PercentileCurve) -> list[str]:
    label = join([name(curve.label, 60), f" ({clean(curve.origin, 40)})" if curve.origin else ""])
    known = curve.points[-1].value_ns if curve.points else None
    marks = of_count(curve.count)
    values = [(value_at(curve, float(p)), marks[p]) for p in _COLUMNS]
    told = [f"{nice_ns(value)} {mark}".rstrip() if value is not None else nice_ns(None) for value, mark in values]
    return [label, *told, nice_ns(known), f"{curve.count:,}"]


def _verdicts(document: ReportDocument) -> Iterator[str]:
    yield heading(2, "Verdicts")
    if not document.proofs:
        yield line(NOTHING_PROVEN)
        yield line(document.notes.get("proofs", ""), 400)
        return
    yield line(HOW_VERDICTS)
    for proof in document.proofs:
        yield from _proof(proof)


def _proof(proof: Proof) -> Iterator[str]:
    judged = proof.judgement
    yield heading(3, name(proof.subject))
    if judged is None:
        yield Md("**Not judged: no round was finished.**")
    else:
        yield join([_word(judged), said(judged.headline.text + company(proof), 600)])
    yield line(_made(proof))
    if proof.stopped:
        yield line(f"Ended early: {clean(proof.stopped, 300)}.")
    if judged is not None and judged.rows:
        rows = [
            [
                measure_name(one.measure),
                amount(one.measure, one.without),
                amount(one.measure, one.with_it),
                times(one.ratio),
                span_of(one),
                Md(f"{SIGNS[one.verdict]} {WORDS[one.verdict]}"),
            ]
            for one in judged.rows
        ]
        heads = ("measure", "without", "with", "ratio", f"{CONFIDENCE * 100:.0f} % interval", "verdict")
        yield table(heads, rows, range(1, 5))
        if any(one.low > 0 or one.high is not None for one in judged.rows):
            yield fenced(pictures(judged.rows, _STRIP_COLUMNS))
        yield from _untold(judged)
    if judged is not None:
        yield line(judged.worst, 600)
        yield line(judged.drift.words, 600)
    yield from _ended(proof)


def _untold(judged: Judgement) -> Iterator[str]:
    """Yield why some lines cannot tell, and the number of rounds that would."""
    if judged.rounds < ENOUGH_ROUNDS:
        yield line(
            f"{many(judged.rounds, 'round')} give figures; a verdict needs {ENOUGH_ROUNDS}. Nothing above is one."
        )
        return
    untold = [one.words.replace(": cannot tell", "", 1) for one in judged.rows if one.verdict == "cannot_tell"]
    if untold:
        yield line("Lines without a verdict, and what would give one:")
        yield bullets(line(words, 500) for words in untold)


def _made(proof: Proof) -> str:
    done = len(proof.rounds)
    wanted = "" if done == proof.planned else f" of {proof.planned:,}"
    parts = [
        f"{many(done, 'round')}{wanted}",
        clean(proof.workload, 20) + (f", preset {clean(proof.preset, 20)}" if proof.preset else ""),
        f"from {when(proof.started_at)} to {when(proof.ended_at)}",
    ]
    if proof.rounds:
        parts.append(f"orders {' '.join(one.order for one in proof.rounds)} (seed {proof.seed})")
    return " · ".join(parts)


def _ended(proof: Proof) -> Iterator[str]:
    if proof.left_alone:
        yield Md(f"**{given_back(proof)}:**")
        yield bullets(
            join(
                [
                    span(one.path),
                    f": {clean(one.reason, 300)}; expected ",
                    span(one.expected),
                    ", found ",
                    span(one.found),
                ]
            )
            for one in proof.left_alone
        )
    else:
        told = f"{given_back(proof)}."
        yield line(told) if proof.restored else Md(f"**{told}**")
    yield bullets(line(note, 600) for note in proof.notes)
    if proof.changes:
        yield line(f"{written(proof)}:")
        rows = [[span(one.path), span(one.before), span(one.after), one.why] for one in proof.changes]
        yield table(("path", "without", "with", "why"), rows)


def _runs(document: ReportDocument) -> Iterator[str]:
    yield heading(2, "Runs")
    if not document.runs:
        yield line("Nothing was measured.")
    else:
        percentiles = [p for p in PERCENTILES if any(_percentile(run, p) is not None for run in document.runs)]
        yield line(f"{many(len(document.runs), 'run')}, oldest first.")
        yield Md(FEW)
        heads = ("run", *(f"p{p}" for p in percentiles), "max", f"stalls over {nice_ns(HEADLINE_STALL_NS)}", "stolen")
        yield table(heads, (_figures(run, percentiles) for run in document.runs), range(1, len(heads)))
        yield table(("run", "id", "measured", "begun", "time"), map(_measured, document.runs), (4,))
        yield bullets(filter(None, map(_remarks, document.runs)))
    if document.imports:
        yield heading(3, "From other tools, never part of a verdict")
        yield bullets(line(one, 400) for one in document.imports)
    yield line(document.notes.get("imports", ""), 400)


def _percentile(run: ReportedRun, percentile: str) -> int | None:
    return run.histogram.percentiles.get(percentile) if run.histogram is not None else None


def _figures(run: ReportedRun, percentiles: Sequence[str]) -> list[str]:
    marks = of_standings(run.standings, run.stalls.threshold_ns)
    rate = next((r for r in run.stalls.rates if r.threshold_ns == HEADLINE_STALL_NS), None)
    # A mark with blanks around it does not strike text through.
    values = [
        UNKNOWN if value is None else Md(f"{nice_ns(value)} {marks.get(p, '')}".rstrip())
        for p in percentiles
        for value in [_percentile(run, p)]
    ]
    return [
        name(run.label or run.id, 60),
        *values,
        nice_ns(run.histogram.max if run.histogram is not None else None),
        UNKNOWN if rate is None else f"{nice_number(rate.per_second)}/s",
        f"{nice_ns(run.stalls.stolen_ns_per_second)}/s",
    ]


def _measured(run: ReportedRun) -> list[str]:
    preset = f", {clean(run.preset, 20)}" if run.preset else ""
    return [
        name(run.label or run.id, 60),
        span(run.id, 40),
        f"{clean(run.workload, 20)}{preset}, placement {clean(run.placement, 20)}",
        when(run.started_at),
        nice_ns(run.duration_s * 1e9),
    ]


def _remarks(run: ReportedRun) -> Md:
    """Return the remarks that are needed to read a run's figures; "" if there are none."""
    told: list[str] = [said(run.role, 120)] if run.role else []
    told += [] if run.complete else ["stopped early"]
    told += [join(["applied: ", Md(", ".join(span(one, 60) for one in run.applied[:12]))])] if run.applied else []
    if run.disturbed:
        who = (join([name(one.name, 40), f" on CPU {one.cpu}"]) for one in run.disturbed[:4])
        told.append(join(["disturbed by ", Md(", ".join(who))]))
    told += [said(note, 300) for note in run.notes if note]
    return join([span(run.id, 40), ": ", join(told, "; ")]) if told else Md("")


def _notes(document: ReportDocument) -> Iterator[str]:
    yield heading(2, "About this report")
    yield line(HOW_IT_COUNTS)
    yield line("They are not in this file: the page that 'report' makes by itself (--format html) has them inside.")
    others = {key: text for key, text in document.notes.items() if key not in OWN_PLACE and text}
    yield bullets(join([Md("**"), said(key, 40), Md("**: "), said(text, 400)]) for key, text in others.items())
