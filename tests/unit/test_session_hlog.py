"""Histogram logs: ours against the library's reader, and against damage."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from hypothesis import given, settings
from hypothesis import strategies as st

from jitter_workshop.session import hlog
from jitter_workshop.stats import histogram as hg

BASE_S = 1_767_225_600.123456


def interval(tag: str, start: float, values: list[int], length: float = 0.25) -> hlog.IntervalHistogram:
    h = hg.new_histogram()
    for value in values:
        h.record_value(value)
    return hlog.IntervalHistogram(tag, BASE_S + start, length, max(values, default=0), hg.encode_histogram(h))


INTERVALS = [
    interval("accumulator_transit", 0.0, [100, 4_000]),
    interval("publisher_interval", 0.0, [10_000]),
    interval("accumulator_transit", 0.310, [90, 7_123_456]),
    interval("publisher_interval", 0.310, []),
]


def written(tmp_path: Path, intervals: list[hlog.IntervalHistogram]) -> Path:
    path = tmp_path / "x.hlog"
    with path.open("wb") as file:
        hlog.write_log(file, intervals, BASE_S, ["a comment\nover two lines"])
    return path


def test_the_librarys_reader_reads_tags_times_and_counts(tmp_path: Path) -> None:
    reader = HistogramLogReader(str(written(tmp_path, INTERVALS)), HdrHistogram(1, 60_000_000_000, 3))
    found = []
    while (h := reader.get_next_interval_histogram()) is not None:
        found.append(h)
    assert [h.get_tag() for h in found] == [i.tag for i in INTERVALS]
    assert [hg.non_zero(h) for h in found] == [hg.non_zero(hg.decode_histogram(i.encoded)) for i in INTERVALS]
    assert reader.get_start_time_sec() == pytest.approx(BASE_S)
    assert found[2].get_start_time_stamp() == pytest.approx((BASE_S + 0.310) * 1000, abs=0.01)
    assert found[2].get_end_time_stamp() == pytest.approx((BASE_S + 0.560) * 1000, abs=0.01)


def test_written_intervals_are_read_back(tmp_path: Path) -> None:
    path = written(tmp_path, INTERVALS)
    back = list(hlog.read_intervals(path))
    assert [(i.tag, i.max_ns, i.encoded, i.length_s) for i in back] == [
        (i.tag, i.max_ns, i.encoded, i.length_s) for i in INTERVALS
    ]
    for ours, theirs in zip(INTERVALS, back, strict=True):
        assert theirs.start_s == pytest.approx(ours.start_s, abs=1e-5)
    assert [i.tag for i in hlog.read_intervals(path, "publisher_interval")] == ["publisher_interval"] * 2
    assert ",7.123456,HIST" in path.read_text()


@given(st.integers(0, 10**18), st.floats(0, 1e6), st.floats(0, 1e6))
def test_the_maximum_keeps_every_nanosecond(max_ns: int, start: float, length: float) -> None:
    text = hlog._line(hlog.IntervalHistogram("t", BASE_S + start, length, max_ns, "HIST"), BASE_S)
    back = hlog._parse(text.rstrip("\n"), BASE_S)
    assert back.max_ns == max_ns
    assert back.start_s == pytest.approx(BASE_S + start, abs=1e-5)
    assert back.length_s == pytest.approx(length, abs=1e-6)


@pytest.mark.parametrize("tag", ["", "a,b", "a b", "a\nb", "ü", "x" * 65])
def test_a_tag_that_would_break_the_log_is_refused(tag: str) -> None:
    with pytest.raises(ValueError, match="is not a valid tag"):
        hlog.write_log(io.BytesIO(), [hlog.IntervalHistogram(tag, BASE_S, 1, 1, "x")], BASE_S)


@pytest.mark.parametrize(
    "line", ["Tag=a,1,2", "Tag=a,x,1,1,HIST", "Tag=,1,1,1,H", "1,1,1e9999,H", "\u00e4", "1,2,3,4,5"]
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "bad.hlog"
    path.write_text(f"#ok\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 2"):
        list(hlog.read_intervals(path))


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_random_bytes_never_do_more_than_raise(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("hlog") / "x.hlog"
    path.write_bytes(data)
    try:
        list(hlog.read_intervals(path))
    except ValueError:
        return
