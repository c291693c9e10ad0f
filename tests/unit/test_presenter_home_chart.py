"""The title of home's chart: the axes, the curves, and if their clocks are alike."""

from __future__ import annotations

from jitter_workshop.flow.measuring.curves import published_curves, scale_curve
from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.walk import RunCurve
from jitter_workshop.presenter.course.path import home_chart_title, one_clock_told

OWN = RunCurve("own", "own", PercentileCurve("own", (), 0, ""), None)
DUE = RunCurve("own", "own", PercentileCurve("own", (), 0, ""), None, from_due=True)


def test_the_title_offers_a_key_only_where_one_draws_the_first_curve() -> None:
    assert home_chart_title(None, True, "m") == "Latency by percentile: a laptop of 2015; m draws yours."
    assert home_chart_title(None, True, "") == "Latency by percentile: a laptop of 2015."


def test_the_title_says_if_the_two_curves_have_one_clock() -> None:
    assert "Not comparable" in home_chart_title(DUE, True, "")
    assert "Comparable: both count" in home_chart_title(OWN, True, "")
    for own in (OWN, DUE):
        assert home_chart_title(own, False, "") == "Latency by percentile: your run."


def test_only_another_clock_than_that_of_the_published_curve_is_told() -> None:
    assert one_clock_told(OWN) == ""
    assert one_clock_told(DUE) in home_chart_title(DUE, True, "")


def test_the_scale_has_the_figures_of_the_published_curve_and_a_short_name() -> None:
    (shown,) = scale_curve()
    assert shown.label == shown.curve.label == "laptop 2015"
    assert shown.curve.points == published_curves()[0].curve.points
