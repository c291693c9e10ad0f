"""Test the marks of percentiles with too few samples or stalls: they are the same in every table."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.model.curve import CurvePoint, PercentileCurve
from jitter_workshop.model.run import PERCENTILES, Stall
from jitter_workshop.model.walk import RunCurve
from jitter_workshop.presenter.runs.curves import curve_rows, percentile_table
from jitter_workshop.presenter.runs.run import run_result_lines
from jitter_workshop.presenter.text.lines import written
from jitter_workshop.stats import sample_size
from jitter_workshop.stats.sample_size import standings

MakeRun = Callable[..., tuple[Any, Any]]


@pytest.fixture
def run(make_run: MakeRun) -> Any:
    """20,000 messages, 60 of 50 µs in three stalls: p99.9 has samples enough and stalls too few, p99.99 neither."""
    made, _ = make_run([[100] * 19_940 + [50_000] * 60], label="mine")
    worst = tuple(Stall(0, "accumulator", None, n, n + 50_000, 20) for n in range(3))
    return dataclasses.replace(made, stalls=dataclasses.replace(made.stalls, worst=worst, rates=()))


def test_a_run_is_marked_by_samples_and_by_stalls(run: Any) -> None:
    assert sample_size.marks_of_run(run) == {
        "50": "", "90": "", "99": "", "99.9": "~", "99.99": "·", "99.999": "·", "99.9999": "·",
    }  # fmt: skip
    assert [s.proof for s in standings(run)] == [False] * 7


def test_a_percentile_shorter_than_a_stall_is_not_judged_by_stalls(make_run: MakeRun) -> None:
    quiet, _ = make_run([[100] * 20_000])
    assert sample_size.marks_of_run(quiet)["99.9"] == ""


@given(st.integers(0, 10**9))
def test_more_samples_never_stand_on_less(count: int) -> None:
    marks = sample_size.of_count(count)
    if not count:
        assert set(marks.values()) == {""}
        return
    for percentile in PERCENTILES:
        enough = count * (100 - float(percentile)) / 100 >= 10
        assert marks[percentile] == ("" if enough else "·")
    assert sorted(marks[p] for p in PERCENTILES) == [marks[p] for p in PERCENTILES]


def test_every_table_says_the_same(run: Any) -> None:
    curve = PercentileCurve("mine", (CurvePoint(0.0, 100, True), CurvePoint(100.0, 50_000, False)), 20_000)
    published = PercentileCurve("laptop", (CurvePoint(0.0, 168, True), CurvePoint(100.0, 900, False)), 0, "2015")
    shown = [RunCurve("x", "mine", curve, run), RunCurve("y", "laptop", published, None)]
    screen = [line.plain for line in percentile_table(shown, 80)]
    for lines in (written(run_result_lines(run, 80)).splitlines(), screen):
        (marked,) = [line for line in lines if "99.9 " in line or line.strip().startswith("p99.9 ")]
        assert "50 µs ~" in marked
        assert any("fewer than ten distinct stalls beyond this value" in line for line in lines)
        assert any("fewer than ten samples beyond this value" in line for line in lines)
        assert max(map(len, lines)) <= 80
    assert [len(row) for row in curve_rows(shown).rows] == [3] * 9


def test_the_meaning_of_a_mark_stands_before_the_mark_and_is_never_cut(run: Any) -> None:
    curve = PercentileCurve("mine", (CurvePoint(0.0, 100, True), CurvePoint(100.0, 50_000, False)), 20_000)
    for width in (40, 60, 80):
        lines = [line.plain for line in percentile_table([RunCurve("x", "mine", curve, run)], width)]
        said = next(n for n, line in enumerate(lines) if line.startswith("~  fewer"))
        assert said < next(n for n, line in enumerate(lines) if line.startswith("p99.9 "))
        assert "varies by chance" in " ".join(" ".join(lines).split())
        assert max(map(len, lines)) <= width


def test_a_table_without_marks_has_no_room_for_them(make_run: MakeRun) -> None:
    text = written(run_result_lines(dataclasses.replace(make_run([[100] * 5])[0], histograms={}), 80))
    assert "·  fewer" not in text
    nothing = RunCurve("y", "laptop", PercentileCurve("laptop", (), 0, "2015"), None)
    assert curve_rows([nothing]).beside == ""


def test_four_curves_have_their_whole_names_above_their_figures(run: Any) -> None:
    """The chapter on coordinated omission has the longest names of the course."""
    curve = PercentileCurve("x", (CurvePoint(0.0, 100, True), CurvePoint(100.0, 50_000, False)), 20_000)
    of = ("transit: stopped 100 ms", "from the due time: stopped 100 ms", "corrected: stopped 100 ms")
    names = [*of, "from the due time: never stopped"]
    text = written(percentile_table([RunCurve(name, name, curve, run) for name in names], 77))
    assert "…" not in text
    for name in names:
        assert all(word in text for word in name.split())


def test_no_figure_is_cut_for_a_mark(run: Any) -> None:
    curve = PercentileCurve("a long label", (CurvePoint(0.0, 100, True), CurvePoint(100.0, 50_000, False)), 20_000)
    for many in range(1, 9):
        lines = [line.plain for line in percentile_table([RunCurve("x", "a long label", curve, run)] * many, 80)]
        (p999,) = [line for line in lines if line.startswith("p99.9 ")]
        assert p999.count("50 µs") == many
        assert p999.count("~") == many
        assert "……" not in "".join(lines)
        assert max(map(len, lines)) <= 80
