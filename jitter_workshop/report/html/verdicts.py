"""Build the proofs of a page: the verdict in words first, then each line with its interval as a small picture."""

from __future__ import annotations

from jitter_workshop.model.proof import Proof
from jitter_workshop.model.text import clean, many
from jitter_workshop.model.verdict import Judgement, Verdict, VerdictWord
from jitter_workshop.report.document_words import HOW_VERDICTS, SIGNS, given_back, written
from jitter_workshop.report.html.write import (
    Html,
    Number,
    bullets,
    cell,
    code,
    figure_cell,
    folded,
    join,
    name,
    paragraphs,
    row,
    shown,
    svg_tag,
    table,
    tag,
    when,
)
from jitter_workshop.report.text.proof import WORDS, company
from jitter_workshop.stats import interval_plot
from jitter_workshop.stats.measurewords import amount, measure_name
from jitter_workshop.stats.scale import times

WIDTH, HEIGHT = 260, 26
_EDGE = 10
"""Pixels that stay free at both ends of a strip."""


def badge(word: VerdictWord) -> Html:
    """Return a verdict as a small label."""
    sign = tag("span", SIGNS[word], aria_hidden="true")
    return tag("span", sign, f" {WORDS[word]}", class_=f"badge {word.replace('_', '-')}")


def anchor(number: int) -> str:
    """Return the id of a proof's section."""
    return f"proof-{number}"


def proofs(found: tuple[Proof, ...]) -> Html:
    """Return all proofs, oldest first, and how to read them."""
    return join([tag("p", HOW_VERDICTS, class_="dim"), *(_proof(one, number) for number, one in enumerate(found, 1))])


def _proof(proof: Proof, number: int) -> Html:
    judged = proof.judgement
    return tag(
        "section",
        tag("h3", name(proof.subject, 80)),
        _headline(proof),
        _made(proof),
        _table(judged, proof.subject) if judged is not None else None,
        paragraphs((judged.worst, judged.drift.words) if judged is not None else ()),
        _restored(proof),
        bullets(shown(note, 600) for note in proof.notes),
        _changes(proof),
        class_="proof",
        id=anchor(number),
    )


def _headline(proof: Proof) -> Html:
    judged = proof.judgement
    if judged is None:
        return tag("p", "Not judged: no round was finished.", class_="headline")
    return tag(
        "p", badge(judged.headline.verdict), " ", shown(judged.headline.text + company(proof), 600), class_="headline"
    )


def _made(proof: Proof) -> Html:
    done = len(proof.rounds)
    wanted = "" if done == proof.planned else f" of {proof.planned:,}"
    orders = " ".join(one.order for one in proof.rounds)
    parts: list[Html | str] = [
        f"{many(done, 'round')}{wanted}",
        clean(proof.workload, 20) + (f", preset {clean(proof.preset, 20)}" if proof.preset else ""),
        join(["from ", when(proof.started_at), " to ", when(proof.ended_at)]),
    ]
    if orders:
        parts.append(f"orders {clean(orders, 400)} (seed {proof.seed})")
    stopped = tag("p", f"Ended early: {clean(proof.stopped, 300)}.", class_="attention") if proof.stopped else None
    return join([tag("p", join(parts, " · "), class_="dim"), stopped])


def _table(judged: Judgement, subject: str) -> Html:
    on = interval_plot.axis_of(judged.rows)
    interval = join(["interval", _axis_picture(on)])
    heads = ("measure", "verdict", Number("ratio"), interval, Number("without"), Number("with"), "in words")
    return table(
        heads,
        (_row(one, on) for one in judged.rows),
        f"What {clean(subject, 60)} did, line by line",
        "verdicts",
    )


def _row(one: Verdict, on: interval_plot.Axis) -> Html:
    span = f"{times(one.low)} to {times(one.high) if one.high is not None else 'any ratio'}"
    # The words contain the interval and the verdict, but here the interval has its own column, and the verdict a badge.
    said = one.words.partition(": ")[2].replace(f" ({span})", "")
    return row(
        measure_name(one.measure),
        cell(badge(one.verdict)),
        figure_cell(times(one.ratio)),
        cell(join([_strip_picture(one, on), tag("span", span, class_="dim small nowrap")])),
        figure_cell(amount(one.measure, one.without)),
        figure_cell(amount(one.measure, one.with_it)),
        cell(said.removeprefix("cannot tell").lstrip(":; "), "small"),
    )


def _x(place: float) -> float:
    return round(_EDGE + place * (WIDTH - 2 * _EDGE), 1)


def _strip_picture(one: Verdict, on: interval_plot.Axis) -> Html | None:
    """Return an interval on the judgement's axis; the numbers stand beside it. None where the rounds allow any
    ratio."""
    drawn = interval_plot.strip(one, on)
    kind = f"strip {one.verdict.replace('_', '-')}"
    if drawn is None:
        return None
    low, high, middle = _x(drawn.low), _x(drawn.high), HEIGHT / 2
    parts = [*_ground(on), svg_tag("line", class_="strip-line", x1=low, x2=high, y1=middle, y2=middle)]
    for x, goes_on, way in ((low, drawn.below, -1), (high, drawn.above, 1)):
        if goes_on:
            tip = f"{x + 7 * way:.1f},{middle} {x},{middle - 5} {x},{middle + 5}"
            parts.append(svg_tag("polygon", class_="strip-tip", points=tip))
        else:
            parts.append(svg_tag("line", class_="strip-line", x1=x, x2=x, y1=middle - 5, y2=middle + 5))
    if drawn.ratio is not None:
        parts.append(svg_tag("circle", class_="strip-dot", cx=_x(drawn.ratio), cy=middle, r=4.5))
    return _picture(join(parts), HEIGHT, kind)


def _ground(on: interval_plot.Axis) -> list[Html]:
    left, right = map(_x, on.band)
    one = _x(on.position(1.0))
    return [
        svg_tag("rect", class_="strip-band", x=left, y=0, width=round(right - left, 1), height=HEIGHT),
        svg_tag("line", class_="strip-one", x1=one, x2=one, y1=0, y2=HEIGHT),
    ]


def _axis_picture(on: interval_plot.Axis) -> Html:
    labels = [
        tag("text", label, x=_x(place), y=12, text_anchor=anchored)
        for (place, label), anchored in zip(on.ticks, ("start", "middle", "end"), strict=True)
    ]
    return _picture(join(labels), 16, "strip strip-axis")


def _picture(inside: Html, height: int, class_: str) -> Html:
    # The picture is hidden from screen readers, because the same stands beside it as text.
    opened = (
        f'<svg class="{class_}" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" aria-hidden="true">'
    )
    return Html(f"{opened}{inside}</svg>")


def _restored(proof: Proof) -> Html:
    if proof.left_alone:
        items = (
            join(
                [
                    code(one.path),
                    f": {clean(one.reason, 300)}; expected ",
                    code(one.expected),
                    ", found ",
                    code(one.found),
                ]
            )
            for one in proof.left_alone
        )
        return join([tag("p", f"{given_back(proof)}:", class_="attention"), bullets(items)])
    return tag("p", f"{given_back(proof)}.", class_=None if proof.restored else "attention")


def _changes(proof: Proof) -> Html | None:
    if not proof.changes:
        return None
    rows = (row(code(one.path), cell(code(one.before)), cell(code(one.after)), cell(one.why)) for one in proof.changes)
    return folded(
        written(proof),
        table(("path", "without", "with", "why"), rows, "Writes of one round"),
    )
