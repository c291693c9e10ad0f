"""The figure of a command's run: which one is chosen, and how it is read from output and files that may be damaged."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.errors import MeasureError, UsageError
from jitter_workshop.flow.programs import metrics
from jitter_workshop.flow.programs.metrics import Metric, metric_of_options
from jitter_workshop.model.verdict import CommandFigure

SAMPLES = Path(__file__).parents[1] / "imports"


def suite(*benchmarks: dict[str, Any], **common: Any) -> bytes:
    return json.dumps({"version": "1.0", "metadata": common, "benchmarks": list(benchmarks)}).encode()


def benchmark(*values: Any, **about: Any) -> dict[str, Any]:
    return {"metadata": about, "runs": [{"values": list(values)}, {"warmups": [[1, 0.5]]}]}


@pytest.mark.parametrize(
    ("given", "measure", "options"),
    [
        ({}, "wall_time", ("--metric", "wall")),
        ({"metric": "user"}, "user_time", ("--metric", "user")),
        ({"metric": "held-up"}, "held_up_time", ("--metric", "held-up")),
        ({"match": "x=(.)", "unit": "MB/s"}, "match", ("--match", "x=(.)", "--unit", "MB/s")),
        ({"match": "x=(.)", "unit": "µs"}, "match", ("--match", "x=(.)", "--unit", "us")),
        ({"hlog": "a.hlog"}, "p99", ("--metric", "p99", "--hlog", "a.hlog")),
        ({"hlog": "a", "metric": "p99.9"}, "p99.9", ("--metric", "p99.9", "--hlog", "a")),
        ({"pyperf": "a.json", "metric": "nbody"}, "mean", ("--metric", "nbody", "--pyperf", "a.json")),
    ],
)
def test_options_choose_a_metric_and_can_be_told_again(
    given: dict[str, str], measure: str, options: tuple[str, ...]
) -> None:
    metric = metric_of_options(**{"metric": None, **given})
    assert metric.measure == measure
    assert metric.options == options
    names = {"--metric": "metric", "--match": "match", "--hlog": "hlog", "--pyperf": "pyperf", "--unit": "unit"}
    again = {names[option]: value for option, value in zip(options[::2], options[1::2], strict=True)}
    assert metric_of_options(**{"metric": None, **again}) == metric


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"metric": "speed"}, "no metric 'speed'"),
        ({"metric": "p99"}, "no metric 'p99'"),
        ({"match": "(.)", "hlog": "x", "unit": "ns"}, "--match and --hlog contradict"),
        ({"hlog": "x", "pyperf": "y"}, "--hlog and --pyperf contradict"),
        ({"match": "(.)"}, "--match needs --unit"),
        ({"match": "(.)", "unit": "ns", "metric": "wall"}, "--match is the metric already"),
        ({"match": "(", "unit": "ns"}, "no regular expression"),
        ({"match": "a", "unit": "ns"}, "one pair of brackets"),
        ({"match": "(a)(b)", "unit": "ns"}, "one pair of brackets"),
        ({"match": "(" + "a" * 1000 + ")", "unit": "ns"}, "longer than 1,000"),
        ({"match": "(a)", "unit": "\x1b[31m"}, "--unit must be a word"),
        ({"match": "(a)", "unit": ""}, "--unit must be a word"),
        ({"hlog": "x", "unit": "MB"}, "cannot be MB"),
        ({"hlog": "x", "metric": "max"}, "a histogram has no 'max'"),
        ({"hlog": "x", "metric": "p0"}, "a histogram has no 'p0'"),
        ({"hlog": ""}, "--hlog needs the path"),
        ({"pyperf": "a\0b"}, "--pyperf needs the path"),
        ({"unit": "ns"}, "--unit is for"),
    ],
)
def test_options_that_make_no_sense_are_one_sentence(given: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError) as told:
        metric_of_options(**{"metric": None, **given})
    assert says in told.value.sentence()


def sound(read: Callable[[], CommandFigure]) -> bool:
    """Return True if reading gives a figure that can be compared, or fails in one line."""
    try:
        value = read().value
    except MeasureError as error:
        return "\n" not in error.sentence()
    return math.isfinite(value) and value >= 0


# -- output ------------------------------------------------------------------------------------------------------------


def match(pattern: str, unit: str = "us") -> Metric:
    return metric_of_options(None, match=pattern, unit=unit)


def test_the_last_match_counts_and_a_unit_of_time_becomes_ns() -> None:
    output = "warm-up p99=900\np99=12.5 us\n"
    assert match("p99=([0-9.]+)").of_output(output) == CommandFigure("match", "ns", 12_500.0)
    assert match("p99=([0-9.]+)", "MB/s").of_output(output) == CommandFigure("match", "MB/s", 12.5)


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("", "--match finds nothing in its output"),
        ("p=", "--match finds nothing"),
        ("p=none", "'none', which is not a number"),
        ("p=-3", "'-3', which is not a number"),
        ("p=nan", "not a number"),
        ("p=inf", "not a number"),
        ("p=1e999", "not a number"),
        ("p=\x1b[31mred", "not a number"),
        ("p=1e15", "longer than thirty days"),
    ],
)
def test_an_output_without_a_figure_is_one_sentence(output: str, says: str) -> None:
    with pytest.raises(MeasureError) as told:
        match(r"p=(\S+)").of_output(output)
    assert says in told.value.sentence()
    assert "\x1b" not in told.value.sentence()


def test_a_long_output_is_searched_at_its_end() -> None:
    with pytest.raises(MeasureError, match="the last 4 MiB of"):
        match("p=(1)").of_output("x" * metrics.SEARCHED)


@given(st.floats(0, 1e12), st.sampled_from(["ns", "us", "ms", "s"]))
def test_any_number_of_an_output_comes_back(value: float, unit: str) -> None:
    scale = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]
    metric = match(r"p=(\S+)", unit)
    if value * scale <= 30 * 86_400e9:
        assert math.isclose(metric.of_output(f"p={value!r}").value, value * scale)
    else:
        with pytest.raises(MeasureError):
            metric.of_output(f"p={value!r}")


@given(st.text(max_size=200))
def test_any_output_gives_a_figure_or_one_sentence(output: str) -> None:
    assert sound(lambda: match(r"p=?(\S*)", "x").of_output(output))


# -- files -------------------------------------------------------------------------------------------------------------


def histogram(name: str, percentile: str = "p90", unit: str | None = None) -> tuple[CommandFigure, tuple[str, ...]]:
    return metric_of_options(percentile, hlog=name, unit=unit).of_file((SAMPLES / name).read_bytes())


def test_a_percentile_is_read_from_a_distribution_in_the_unit_that_is_given() -> None:
    in_us, notes = histogram("percentiles.hgrm", "p50", "us")
    in_ms, assumed = histogram("percentiles.hgrm", "p50")
    assert in_us.measure == "p50"
    assert in_us.unit == "ns"
    assert in_ms.value == 1000 * in_us.value
    assert not notes
    assert "ms was assumed" in assumed[0]


def test_a_log_of_one_tag_gives_its_percentile() -> None:
    name = next(path.name for path in SAMPLES.glob("*.report.enc"))
    low, high = (histogram(name, percentile)[0].value for percentile in ("p50", "p99"))
    assert 0 < low <= high


@pytest.mark.parametrize(
    ("name", "percentile", "says"),
    [
        ("intervals-v2.hlog", "p50", "several histograms"),
        ("percentiles.hgrm", "p99.999", "samples are larger than p99.999"),
        ("README.md", "p50", "unknown format"),
    ],
)
def test_a_histogram_without_the_percentile_is_one_sentence(name: str, percentile: str, says: str) -> None:
    with pytest.raises(MeasureError) as told:
        histogram(name, percentile)
    assert says in told.value.sentence()
    assert "a file that cannot be used" in told.value.message


def test_the_mean_of_a_benchmark_is_read_from_pyperfs_json() -> None:
    only = metric_of_options(None, pyperf="x.json")
    assert only.of_file(suite(benchmark(0.5, 1.5, name="a")))[0] == CommandFigure("mean", "ns", 1e9)
    assert only.of_file(suite(benchmark(4, 6), unit="byte"))[0] == CommandFigure("mean", "byte", 5.0)
    two = suite(benchmark(1.0, name="a"), benchmark(3.0, name="b"))
    assert metric_of_options("b", pyperf="x.json").of_file(two)[0].value == 3e9


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not JSON"),
        (b"[]", "no object"),
        (b"{}", "no benchmark of pyperf"),
        (b'{"benchmarks": 5}', "no benchmark of pyperf"),
        (b'{"benchmarks": [{"runs": 5}, 7]}', "no benchmark of pyperf"),
        (
            suite(benchmark(1.0, name="a"), benchmark(2.0, name="b\x1b")),
            "it has 2 benchmarks; choose one with --metric",
        ),
        (suite(benchmark()), "has no values"),
        (suite(benchmark("fast")), "a value is not a number"),
        (suite(benchmark(-1.0)), "a value is not a number"),
        (suite(benchmark(True)), "a value is not a number"),
        (suite(benchmark(10**400)), "a value is not a number"),
        (suite(benchmark(1.0), unit="acre"), "no unit 'acre'"),
        (suite(benchmark(1e9)), "longer than thirty days"),
        (b'{"benchmarks": [{"runs": [{"values": [NaN]}]}]}', "not JSON"),
    ],
)
def test_a_damaged_pyperf_file_is_one_sentence(data: bytes, says: str) -> None:
    with pytest.raises(MeasureError) as told:
        metric_of_options(None, pyperf="x.json").of_file(data)
    assert says in told.value.sentence()
    assert "\x1b" not in told.value.sentence()


def test_a_benchmark_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(MeasureError, match="no benchmark 'c'") as told:
        metric_of_options("c", pyperf="x.json").of_file(suite(benchmark(1.0, name="a"), benchmark(2.0, name="b")))
    assert told.value.advice == "it has a, b"


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["runs", "values", "metadata", "name", "unit", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_gives_a_figure_or_one_sentence(value: Any) -> None:
    data = json.dumps({"benchmarks": [value]}).encode()
    assert sound(lambda: metric_of_options(None, pyperf="x.json").of_file(data)[0])
