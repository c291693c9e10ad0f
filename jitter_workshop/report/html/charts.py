"""Build a page's charts and its table of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jitter_workshop.model.report import Overlay, ReportedRun
from jitter_workshop.model.run import PERCENTILES
from jitter_workshop.model.text import clean, many
from jitter_workshop.model.verdict import Standing
from jitter_workshop.report.document_words import FEW, FEW_IN_CURVES, HEADLINE_STALL_NS, HOW_CURVES
from jitter_workshop.report.html.write import (
    UNKNOWN,
    Html,
    Number,
    cell,
    code,
    figure_cell,
    folded,
    join,
    name,
    row,
    shown,
    table,
    tag,
    when,
)
from jitter_workshop.report.pictures.svg import render_svg
from jitter_workshop.stats.curve import value_at
from jitter_workshop.stats.sample_support import FEW_STALLS, LEGEND, of_count, of_standings
from jitter_workshop.stats.scale import nice_ns, nice_number

_COLUMNS = ("50", "90", "99", "99.9", "99.99")


def charts(overlays: Sequence[Overlay]) -> Html:
    """Return every chart with a note on what to look for, and the same as a table."""
    return join([tag("p", HOW_CURVES, class_="dim"), *(_chart(one, n) for n, one in enumerate(overlays, 1))])


def _chart(overlay: Overlay, number: int) -> Html:
    picture = Html(render_svg(overlay.curves, overlay.title, scope=f"chart-{number}"))
    caption = tag("figcaption", shown(overlay.text, 600))
    scroll = tag(
        "div", picture, class_="wide", tabindex=0, role="region", aria_label=f"Chart: {clean(overlay.title, 80)}"
    )
    return tag("figure", scroll, caption, _same_as_table(overlay), class_="chart")


def _same_as_table(overlay: Overlay) -> Html:
    rows = []
    for curve in overlay.curves:
        origin = join([" ", tag("span", shown(curve.origin, 40), class_="origin")]) if curve.origin else None
        marks = of_count(curve.count)
        last = curve.points[-1].value_ns if curve.points else None
        rows.append(
            row(
                join([name(curve.label, 60), origin]),
                *(_of_curve(value_at(curve, float(p)), marks[p]) for p in _COLUMNS),
                figure_cell(nice_ns(last)),
                figure_cell(f"{curve.count:,}"),
            )
        )
    heads = ("curve", *(Number(f"p{p}") for p in _COLUMNS), Number("max"), Number("samples"))
    caption = f"Curves of the chart: {clean(overlay.title, 80)}. {FEW_IN_CURVES}"
    return folded("The same as a table", table(heads, rows, caption))


def _of_curve(value: int | None, mark: str) -> Html:
    if value is None or not mark:
        return figure_cell(nice_ns(value))
    return cell(join([tag("span", nice_ns(value), class_="few"), f" {mark}"]), "n", LEGEND[mark])


def run_anchors(runs: Sequence[ReportedRun]) -> dict[str, str]:
    """Return run id → the id of its line in the page."""
    return {run.id: f"run-{number}" for number, run in enumerate(runs, 1)}


def run_link(ident: str, runs: Mapping[str, ReportedRun], anchors: Mapping[str, str]) -> Html:
    """Return a run's label, as a link to its line where it has one."""
    run = runs.get(ident)
    text = name(run.label or run.id, 60) if run is not None else code(ident, 60)
    return tag("a", text, href=f"#{anchors[ident]}") if ident in anchors else text


def runs_table(runs: Sequence[ReportedRun]) -> Html:
    """Return the table of all runs. Marks show which percentiles have too few samples or stalls beyond them."""
    anchors = run_anchors(runs)
    percentiles = [p for p in PERCENTILES if any(_percentile(run, p) is not None for run in runs)]
    heads = (
        "run",
        "measured",
        *(Number(f"p{p}") for p in percentiles),
        Number("max"),
        Number(f"stalls over {nice_ns(HEADLINE_STALL_NS)}"),
        Number("time stolen"),
    )
    caption = f"{many(len(runs), 'run')}, oldest first. {FEW}"
    lines = (_run(run, percentiles, anchors[run.id]) for run in runs)
    return table(heads, lines, caption, "runs")


def _percentile(run: ReportedRun, percentile: str) -> int | None:
    return run.histogram.percentiles.get(percentile) if run.histogram is not None else None


def _run(run: ReportedRun, percentiles: Sequence[str], anchor: str) -> Html:
    standing = {one.percentile: one for one in run.standings}
    marks = of_standings(run.standings, run.stalls.threshold_ns)
    rate = next((r for r in run.stalls.rates if r.threshold_ns == HEADLINE_STALL_NS), None)
    head = [name(run.label or run.id, 60)]
    small = [code(run.id, 40), *([shown(run.role, 120)] if run.role else [])]
    return row(
        join([*head, tag("span", join(small, " · "), class_="below"), _remarks(run)]),
        cell(join([_how(run), tag("span", _moment(run), class_="below")])),
        *(_value(_percentile(run, p), standing.get(p), marks.get(p, "")) for p in percentiles),
        figure_cell(nice_ns(run.histogram.max if run.histogram is not None else None)),
        figure_cell(UNKNOWN if rate is None else f"{nice_number(rate.per_second)}/s"),
        figure_cell(f"{nice_ns(run.stalls.stolen_ns_per_second)}/s"),
        id=anchor,
    )


def _moment(run: ReportedRun) -> Html:
    return join([when(run.started_at, seconds=True), f", {nice_ns(run.duration_s * 1e9)}"])


def _how(run: ReportedRun) -> str:
    preset = f", {clean(run.preset, 20)}" if run.preset else ""
    return f"{clean(run.workload, 20)}{preset}, placement {clean(run.placement, 20)}"


def _remarks(run: ReportedRun) -> Html | None:
    """Return the remarks that are needed to read a run's figures; None if there are none."""
    said = [] if run.complete else ["stopped early"]
    said += [f"applied: {', '.join(clean(one, 60) for one in run.applied[:12])}"] if run.applied else []
    if run.disturbed:
        who = ", ".join(f"{clean(d.name, 40) or '(no visible name)'} on CPU {d.cpu}" for d in run.disturbed[:4])
        said.append(f"disturbed by {who}")
    said += [clean(note, 300) for note in run.notes if note]
    return tag("span", shown("; ".join(said), 1_200), class_="below remark") if said else None


def _value(value: int | None, standing: Standing | None, mark: str) -> Html:
    if value is None or standing is None or not mark:
        return figure_cell(nice_ns(value))
    if mark == FEW_STALLS:
        return cell(f"{nice_ns(value)} {mark}", "n", f"{many(standing.stalls_beyond, 'distinct stall')} beyond it")
    few = f"{standing.samples_beyond:.3g} samples beyond it"
    return cell(join([tag("span", nice_ns(value), class_="few"), f" {mark}"]), "n", few)
