"""The curves of the chapter on coordinated omission, from made-up runs of which both histograms are known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jitter_workshop.chart import canvas, style
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.measuring.curves import published_curves, told_apart_by_clock
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Cpu, Topology
from jitter_workshop.model.palette import MONO, PALETTES
from jitter_workshop.model.run import INTENDED, UNSTEADY, Run, of_transit
from jitter_workshop.presenter.runs.curves import curve_rows
from jitter_workshop.report.pictures import drawing
from jitter_workshop.stats import histogram as hg
from jitter_workshop.stats import scale
from jitter_workshop.stats.figures import FROM_DUE_TIME
from tests import madeup

SENT = [500] * 990 + [3_000_000] * 10
DUE = [500] * 980 + [5_000_000 * n for n in range(1, 21)]


@pytest.fixture
def walk() -> ChapterWalk:
    """The chapter with its first run: 1,000 messages, of which 20 were due long before they were sent."""
    workshop = Workshop.open()
    workshop.context.topology = Topology(
        tuple(Cpu(i, 0, i, 0, online=True, allowed=True, smt_siblings=CpuSet((i,))) for i in range(4)), ()
    )
    walk = workshop.walk("coordinated-omission")
    walk.record("measure", _stored(workshop))
    return walk


def _stored(workshop: Workshop) -> Run:
    made, blocks = madeup.make_run([SENT], label="stopped for 100 ms")
    due, due_blocks = madeup.make_run([DUE], name=INTENDED)
    made = replace(made, histograms={**made.histograms, **due.histograms})
    both = zip(blocks, due_blocks, strict=True)
    workshop.context.handle.add_run(
        made, tuple(replace(a, histograms={**a.histograms, **b.histograms}) for a, b in both)
    )
    return made


def test_the_further_curves_are_computed_once_for_a_run(walk: ChapterWalk, monkeypatch: pytest.MonkeyPatch) -> None:
    computed = []
    corrected = hg.corrected

    def counted(histogram: hg.HdrHistogram, interval_ns: int) -> hg.HdrHistogram:  # type: ignore[name-defined]
        computed.append(interval_ns)
        return corrected(histogram, interval_ns)

    monkeypatch.setattr(hg, "corrected", counted)
    first = walk.runs.curves()
    assert len(first) == 3
    assert computed == [10_000]
    assert [curve.curve for curve in walk.runs.curves()] == [curve.curve for curve in first]
    assert computed == [10_000]


def test_a_curve_has_one_sign_and_colour_beside_one_and_two_others(walk: ChapterWalk) -> None:
    def shown() -> dict[str, tuple[str, str]]:
        curves = [one.curve for one in walk.runs.curves()]
        shapes, colours = (style.looks(curves, theme, None) for theme in (MONO, PALETTES["dark"]))
        every = zip(curves, shapes, colours, strict=True)
        return {curve.label: (shape.glyph, str(colour.line)) for curve, shape, colour in every}

    first = shown()
    assert [glyph for glyph, _ in first.values()] == ["●", "▲", "▼"]
    again, parts = madeup.make_run([SENT], run_id="20250101-000000-aaaa", label="never stopped")
    # An earlier begin, as if the first run had been made anew after it.
    again = replace(again, started_at="2025-01-01T00:00:00.000Z")
    walk._context.handle.add_run(again, parts)
    walk.record("again", again)
    both = shown()
    # This run has no latency from the due time.
    assert list(both)[-1] == "transit: never stopped"
    assert both["transit: never stopped"][0] == "■"
    assert {label: look for label, look in both.items() if label in first} == first
    drawn = drawing.picture([one.curve for one in walk.runs.curves()])
    assert [one.number for one in drawn.series] == [0, 3, 4, 1]


def test_of_the_later_run_the_chart_has_the_latency_from_the_due_time_alone(walk: ChapterWalk) -> None:
    """It is the figure by which the chapter compares its runs, so a legend must have it."""
    again, parts = madeup.make_run([SENT], run_id="20270101-000000-aaaa", label="never stopped")
    due, due_parts = madeup.make_run([SENT], name=INTENDED)
    again = replace(again, histograms={**again.histograms, **due.histograms})
    both = [replace(a, histograms={**a.histograms, **b.histograms}) for a, b in zip(parts, due_parts, strict=True)]
    walk._context.handle.add_run(again, tuple(both))
    walk.record("again", again)
    labels = [one.label.partition(":")[0] for one in walk.runs.curves() if "never stopped" in one.label]
    assert labels == [FROM_DUE_TIME]
    assert walk.runs.curves()[-1].curve.role == "after"


def test_a_curve_has_the_latency_from_the_due_time_and_says_if_settings_changed(walk: ChapterWalk) -> None:
    (first,) = walk._context.handle.runs()
    runs = walk._context.runs
    unsteady = replace(first, notes={UNSTEADY: "isolation"})
    for run, label in ((first, first.label), (unsteady, f"{first.label} (settings changed)")):
        plain, due = runs.curve(run, transit=True), runs.curve(run)
        assert plain is not None
        assert due is not None
        assert plain.label == due.label == label
        assert (plain.from_due, due.from_due) == (False, True)
        assert due.curve.points != plain.curve.points
        assert due.run is not None
        assert due.run.latency == first.histograms[INTENDED]
    # A run that could not be stored has its table alone.
    lost = replace(first, id="20280101-000000-aaaa")
    runs.remember(lost)
    kept = runs.curve(lost)
    assert kept is not None
    assert kept.curve.count == first.histograms[INTENDED].count


@pytest.mark.parametrize("width", [36, 60, 80, 120, 160])
def test_the_legend_tells_the_curves_apart_by_their_first_words(walk: ChapterWalk, width: int) -> None:
    drawn = [shown.curve for shown in walk.runs.curves()]
    told = [line.plain[2:] for line in canvas.legend_lines(drawn, width=width, asked=99) if line.plain[0] != " "]
    assert len(told) == 3
    for line, begins in zip(told, ("transit", "from the d", "corrected"), strict=True):
        assert line.startswith(begins)
        # With less room a name is cut, at its end.
        assert width < 80 or "stopped for 100 ms" in line


def test_the_table_shows_each_curves_own_figures(walk: ChapterWalk) -> None:
    rows = {name: [cell.strip() for cell in cells] for name, *cells in curve_rows(walk.runs.curves()).rows}
    assert rows["max"] == ["3 ms", "100 ms", "3 ms"]
    assert rows["count"][0] == rows["count"][1] == "1,000"
    assert int(rows["count"][2].replace(",", "")) > 3_000 - 100


def test_the_chart_ends_where_the_runs_own_curve_ends(walk: ChapterWalk) -> None:
    own, due, repaired = (shown.curve for shown in walk.runs.curves())
    assert repaired.count > 3 * own.count - 100
    assert repaired.points[-1].percentile == own.points[-1].percentile == due.points[-1].percentile
    assert scale.ranges([own, due, repaired]).x_high == scale.ranges([own]).x_high
    assert repaired.points[-1].value_ns >= 3_000_000
    # Ten of the messages that were measured lie beyond such a point, not ten of the added ones.
    assert all(p.solid == (p.percentile <= 99 + 1e-9) for p in repaired.points)


def test_a_curve_of_transit_is_named_so_beside_one_from_the_due_time_alone(walk: ChapterWalk) -> None:
    (first,) = walk._context.handle.runs()
    runs, published = walk._context.runs, published_curves()[0]
    transit, due = runs.curve(first, transit=True), runs.curve(first)
    assert transit is not None
    assert due is not None
    assert told_apart_by_clock((published, transit)) == (published, transit)
    labels = [one.label for one in told_apart_by_clock((published, transit, due))]
    assert labels == [f"{published.label}, transit", f"{first.label}, transit", first.label]
    older = replace(of_transit(first), id="20280101-000000-bbbb")
    runs.remember(older)
    assert [one.label for one in runs.curves((first, older))] == [first.label, f"{first.label}, transit"]
