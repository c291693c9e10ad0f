"""Files of other tools as they are: what was read equals what the tools themselves say."""

from __future__ import annotations

import base64
import io
import os
import struct
import zlib
from collections import Counter
from pathlib import Path

import pytest

from jitter_workshop.errors import SessionError
from jitter_workshop.model.curve import ImportedRun
from jitter_workshop.session import foreign, hlog
from jitter_workshop.session.foreign_text import MAX_NS
from jitter_workshop.stats import histogram as hg
from jitter_workshop.stats.curve import curve_value_at, imported_curve
from jitter_workshop.stats.geometry import layout

SAMPLES = Path(__file__).parents[1] / "imports"
REPORT = "encoded-result-histogram-Accumulator_Message_Transit_Latency__ns_-20151104-LABEL_baseline.report.enc"


def read(name: str, **options: str) -> ImportedRun:
    (run,) = foreign.parse_foreign_file(foreign.content(SAMPLES / name), name, **options)
    return run


def at(run: ImportedRun, *percentiles: float) -> list[int | None]:
    curve = imported_curve(run)
    assert curve.origin == run.origin != ""
    return [curve_value_at(curve, p) for p in percentiles]


def test_a_log_of_java() -> None:
    """The figures are Java's own, of all intervals without a tag added up."""
    first, tagged = foreign.parse_foreign_file(foreign.content(SAMPLES / "intervals-v2.hlog"), "intervals-v2.hlog")
    assert (first.label, tagged.label) == ("intervals-v2", "intervals-v2 reads")
    assert (first.count, at(first, 50, 99.9)) == (2_000, [109_631, 18_006_015])
    assert abs(first.max_ns - 36_012_031) < 1_000
    assert (first.started_at, first.duration_s) == ("2026-09-21T14:13:20Z", 4.0)
    assert (first.unit, first.unit_stated, first.origin) == ("ns", False, "imported log")
    assert "--unit" in first.notes[0]


def test_the_format_before_it_says_the_same() -> None:
    """Version 1 packs its counters otherwise, and has no tags: both series are in one."""
    together: Counter[tuple[int, int]] = Counter()
    for one in foreign.parse_foreign_file(foreign.content(SAMPLES / "intervals-v2.hlog"), "intervals-v2.hlog"):
        together.update({(low, high): samples for low, high, samples in one.bins})
    assert {(low, high): n for low, high, n in read("intervals-v1.hlog").bins} == together


def test_the_original_workshops_encoded_histogram() -> None:
    run = read(REPORT)
    assert (run.label, run.origin, run.unit_stated, run.duration_s) == ("baseline", "by perf-workshop", True, None)
    assert (run.count, run.max_ns, at(run, 50)) == (4_001, 2_359_295, [183])
    assert run.measures == "Accumulator Message Transit Latency ns"


def test_a_histogram_alone() -> None:
    text = (SAMPLES / REPORT).read_text().strip().rpartition(",")[2]
    (run,) = foreign.parse_foreign_file(text.encode() + b"\n", "one.txt", label="alone", unit="us")
    assert (run.label, run.count, run.unit_stated, at(run, 50)) == ("alone", 4_001, True, [183_999])


def test_our_own_log_comes_back(tmp_path: Path) -> None:
    made = {"accumulator_transit": [90, 4_000, 7_123_456], "publisher_interval": [10_000, 10_200]}
    intervals = []
    for tag, values in made.items():
        one = hg.new_histogram()
        for value in values:
            one.record_value(value)
        intervals.append(hlog.IntervalHistogram(tag, 1_790_000_000.5, 0.25, max(values), hg.encode_histogram(one)))
    target = io.BytesIO()
    hlog.write_log(target, intervals, 1_790_000_000.5, ["jitter-workshop run x, values in ns, Interval_Max in ms"])
    runs = foreign.parse_foreign_file(target.getvalue(), "mine.hlog")
    assert [(r.label, r.measures) for r in runs] == [
        ("mine accumulator_transit", "accumulator transit"),
        ("mine publisher_interval", "publisher interval"),
    ]
    assert [(r.count, r.max_ns, r.unit_stated, r.notes) for r in runs] == [
        (3, 7_123_456, True, ()),
        (2, 10_200, True, ()),
    ]
    assert runs[0].started_at == "2026-09-21T14:13:20Z"
    for run, interval in zip(runs, intervals, strict=True):
        assert run.bins == tuple(map(tuple, hg.non_zero(hg.decode_histogram(interval.encoded))))


def test_a_log_whose_writer_was_stopped() -> None:
    whole = (SAMPLES / "intervals-v2.hlog").read_bytes()
    last = whole.rstrip(b"\n").rindex(b"\n")
    (first, tagged) = foreign.parse_foreign_file(whole[: last + 200], "cut.hlog")
    assert (first.count, tagged.count) == (2_000, 1_500)
    assert "cut off" in " ".join(tagged.notes)
    with pytest.raises(SessionError, match=r"^cut.hlog:12: "):
        foreign.parse_foreign_file(whole[: last + 200] + b"\n", "cut.hlog")


@pytest.mark.parametrize(
    ("name", "unit"), [("percentiles.hgrm", "us"), ("percentiles-bare.hgrm", "us"), ("percentiles.csv", "ms")]
)
def test_percentiles_with_and_without_header(name: str, unit: str) -> None:
    run = read(name, unit=unit)
    assert (run.count, run.bins, run.unit_stated, run.notes) == (2_000, (), True, ())
    assert abs(run.max_ns - 36_012_031) < 1_000
    assert abs((at(run, 50)[0] or 0) - 109_631) < 500
    assert imported_curve(run).points[-1].value_ns == run.max_ns
    assert "state its unit: ms was assumed" in read(name).notes[0]


def test_percentiles_that_say_their_unit() -> None:
    text = b"# values in ns\n" + (SAMPLES / "percentiles.hgrm").read_bytes()
    (run,) = foreign.parse_foreign_file(text, "x.hgrm")
    assert (run.unit, run.unit_stated, run.max_ns) == ("ns", True, 36_012)


def test_cyclictests_json() -> None:
    run = read("cyclictest.json")
    assert (run.origin, run.measures, run.unit, run.unit_stated) == (
        "by cyclictest 2.40",
        "timer wake-up latency",
        "us",
        True,
    )
    assert (run.count, run.beyond, run.min_ns, run.max_ns) == (3_000, 31, 42_000, 7_263_999)
    assert (run.started_at, run.host) == ("2026-11-21T22:17:51Z", "bench")
    # 31 of 3,000 lie beyond its 200 µs: p99 is one of them, and is not known.
    assert at(run, 50, 90, 99, 99.9) == [74_999, 94_999, None, None]
    assert imported_curve(run).points[-1].value_ns == run.max_ns


def test_the_text_of_cyclictest_agrees_with_its_json() -> None:
    text, json = read("cyclictest.txt"), read("cyclictest.json")
    assert (text.bins, text.beyond, text.min_ns, text.max_ns) == (json.bins, json.beyond, json.min_ns, json.max_ns)
    assert not text.unit_stated
    assert "--unit ns" in text.notes[0]
    assert read("cyclictest.txt", unit="us").notes == json.notes


def test_cyclictest_in_nanoseconds() -> None:
    run = read("cyclictest-ns.json")
    assert (run.unit, run.unit_stated, run.count) == ("ns", True, 300)
    assert all(low == high for low, high, _ in run.bins)


@pytest.mark.parametrize(("name", "beyond"), [("cyclictest-two-threads.hist", 42), ("cyclictest-sum.txt", 185)])
def test_cyclictests_threads_are_added_up_once(name: str, beyond: int) -> None:
    run = read(name)
    assert (run.count, run.beyond) == (2_000, beyond)
    assert "2 threads added up" in run.notes


@pytest.mark.parametrize("name", ["oslat.json", "oslat.txt"])
def test_oslat(name: str) -> None:
    run = read(name)
    assert (run.origin, run.measures, run.unit_stated) == ("by oslat 2.40", "gap of a busy loop", True)
    assert (run.count, run.beyond, run.min_ns, run.max_ns) == (51_160_619, 332, 1_000, 8_076_000)
    assert run.bins[:2] == ((1, 1_000, 51_159_170), (1_001, 2_000, 172))
    assert run.duration_s == 1.998
    # 51,159,170 of 51,160,619 lie in the first bucket.
    assert at(run, 99, 99.99) == [1_000, 1_000]
    assert (at(run, 99.999)[0] or 0) > 5_000


def test_oslats_bias_and_threads() -> None:
    biased = read("oslat-bias.txt")
    assert biased.bins[0] == (1_000, 2_000, 41_062_332)
    two = read("oslat-two-threads.txt")
    assert two.count == 27_955_616
    assert "2 threads of the CPUs 0, 1 added up" in two.notes


FINE_JSON = """{"cmdline": "oslat -W 500", "rt_test_version": "2.60",
"thread": {"0": {"cpu": 1, "min": 120, "max": 91000,
"histogram": {"0.500": 100, "1.000": 5, "32.000": 2}}}}"""
FINE_TEXT = """oslat V 2.60
        Core:\t 1
    0.500 (us):\t 100
    1.000 (us):\t 5
    ...
    32.000 (us):\t 2 (including overflows)
     Minimum:\t 0.120 (us)
     Maximum:\t 91.000 (us)
    Duration:\t 1.000 (sec)
"""


@pytest.mark.parametrize("text", [FINE_JSON, FINE_TEXT])
def test_oslats_buckets_of_less_than_a_microsecond(text: str) -> None:
    """Later versions name them with decimals; the JSON's extremes are in ns then."""
    (run,) = foreign.parse_foreign_file(text.encode(), "x")
    assert (run.origin, run.bins, run.beyond) == ("by oslat 2.60", ((1, 500, 100), (501, 1_000, 5)), 2)
    assert (run.min_ns, run.max_ns) == (120, 91_000)


def test_a_table_without_its_empty_rows() -> None:
    """As later versions of cyclictest write it; here with the line ends and the mark of an editor."""
    text = "\ufeff# Histogram\r\n000003 000010\r\n000007 000001\r\n# Total: 000000011\r\n# Min Latencies: 00003\r\n"
    text += "# Avg Latencies: 00003\r\n# Max Latencies: 00007\r\n# Histogram Overflows: 00000\r\n# Thread 0:\r\n\r\n"
    (run,) = foreign.parse_foreign_file(text.encode(), "x", unit="us")
    assert (run.bins, run.max_ns, run.notes) == (((3_000, 3_999, 10), (7_000, 7_999, 1)), 7_999, ())


def test_wrk2s_spectrum_among_its_other_lines() -> None:
    text = """Running 30s test @ http://localhost:80/
  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       0.921     0.000000            1         1.00
      15.127     0.999997        39497    262144.00
      27.131     1.000000        39500          inf
#[Mean    =        9.747, StdDeviation   =        4.270]
#[Max     =       27.120, Total count    =        39500]
----------------------------------------------------------
  56093 requests in 30.00s, 29.41MB read
"""
    (run,) = foreign.parse_foreign_file(text.encode(), "x")
    assert (run.origin, run.count, run.min_ns, run.max_ns, run.notes) == ("by wrk2", 39_500, 921_000, 27_120_000, ())
    assert len(run.points) == 2


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"hello\n", "an unknown format"),
        (b"<html><body>report</body></html>", "an unknown format"),
        (b'{"a": 1}', "an unknown format"),
        (b"# Histogram\n000001 000003\n", "x: the file is cut off: the line '# Total:' is missing"),
        (b"# Histogram\n000001 0000a3\n", "x:2: this row has something other"),
        (b"# Histogram\n000002 000003\n000001 000001\n", "x:3: the buckets do not ascend"),
        (b"T: 0 (10229) P: 0 I:1000 C:    500 Min:     61 Act:   75\n", "no histogram; measure with cyclictest -h"),
        (b'{"cmdline:": "cyclictest -q", "thread": {"0": {"cycles": 5, "min": 1, "max": 2}}}', "no histogram"),
        (
            b'{"cmdline:": "cyclictest -q", "thread": {"0": {"histogram": {"1": 9}, "cycles": 5, "min": 1, "max": 2}}}',
            "hold 9 samples, but",
        ),
        (
            b'{"cmdline:": "cyclictest", "thread": {"0": {"histogram": {"1": -9}, "cycles": 5, "min": 1, "max": 2}}}',
            "an invalid bucket",
        ),
        (
            b'{"cmdline:": "cyclictest -q", "thread": {"0": {"histogram": {"1": NaN}, "cycles": 5}}}',
            "NaN is not a JSON number",
        ),
        (b'{"cmdline:": "cyclictest -q",\n "thread": {', "x:2: not JSON"),
        (
            b'{"cmdline:": "oslat", "thread": {"0": {"histogram": {"1e9": 1}, "min": 1, "max": 1}}}',
            "an invalid bucket",
        ),
        (b'{"cmdline:": "oslat", "thread": ' + b"[" * 200_000, "nested too deeply"),
        (b"    001 (us):\t 5\n    002 (us):\t 3\n", "the table is cut off"),
        (b"1.0 0.500 1 2.0\n0.5 0.750 2 4.0\n", "x:2: a value, percentile or count"),
        (b"1.0 0.500 1 2.0\n1.5 0.750 2 4.0\n", "no footer, and its last row is not at 100 %"),
        (b"#[Histogram log format version 1.3]\n", "the log has no histogram"),
        (b"0.1,1.0,2.0,HISTFAAAAAA=\n", "x:1: the histogram"),
        (b"0.1,1.0,2.0,HISTFAAAAAA=\nTag=a,-1,2,3,HISTa\n", "x:1: the histogram"),
    ],
)
def test_an_unreadable_file_is_refused_with_advice(data: bytes, said: str) -> None:
    with pytest.raises(SessionError) as caught:
        foreign.parse_foreign_file(data, "x")
    assert said in caught.value.sentence()
    assert caught.value.advice


def packed(lowest: int, highest: int, digits: int, body: bytes, cookie: int = 0x1C849313) -> bytes:
    """A log of one interval whose histogram has this header and these packed counters."""
    inner = struct.pack(">IIIIQQd", cookie, len(body), 0, digits, lowest, highest, 1.0) + body
    squeezed = zlib.compress(inner)
    outer = struct.pack(">II", 0x1C849314 if cookie == 0x1C849313 else 0x1C849302, len(squeezed)) + squeezed
    return b"0.000,1.000,0.001," + base64.b64encode(outer) + b"\n"


def test_the_finest_histograms_of_the_library_are_read() -> None:
    """Five digits from 1 ns to an hour: 3.4 million counters, of which few are in use."""
    line = packed(1, 3_600_000_000_000, 5, b"\xff\x88\x7a\x02")
    (run,) = foreign.parse_foreign_file(line, "fine.hlog", unit="ns")
    space = layout(1, 3_600_000_000_000, 5)
    assert run.bins == ((*space.bounds(1_000_000), 1),)


@pytest.mark.parametrize("shape", [(1, 60_000_000_000, 3), (1_000, 3_600_000_000, 2), (7, 1_000_000, 1)])
def test_bins_of_many_counters_are_those_of_each(shape: tuple[int, int, int]) -> None:
    space = layout(*shape)
    found = space.bins((index, index + 1) for index in range(space.counts_len))
    assert found == [(*space.bounds(index), index + 1) for index in range(space.counts_len)]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (packed(1, (1 << 62), 5, b"\x02"), "is too large"),
        (packed(1, 3_600_000_000_000, 9, b"\x02"), "cannot have this range"),
        (packed(0, 1_000, 3, b"\x02"), "cannot have this range"),
        (packed(1, 1_000_000, 3, bytes(30_000_000)), "the histogram is cut off"),
        (packed(1, 1_000_000, 3, bytes(3_000_000)), "the histogram is cut off"),
        (packed(1, 1_000_000, 3, bytes(30_000)), "beyond its limits"),
        (packed(1, 3_600_000_000_000, 5, b"\x02" * 600_000), "uses more than 500,000 counters"),
        (packed(1, 1_000_000, 3, b"\xff" * 8 + b"\x7f\x02"), "beyond its limits"),
        (packed(1, 1_000_000, 3, (b"\xfe" * 8 + b"\x7f") * 3), "beyond its limits"),
        (packed(1, 1 << 62, 1, b"\x02" * 900), "thirty days"),
        (packed(1, 1_000, 3, b"\xff\xff\xff\xff", 0x1C849341), "negative counts"),
        (packed(1, 1_000, 3, b"\x00\x00\x01", 0x1C849341), "unknown size"),
        (packed(1, 1_000_000, 3, b"\x00"), "holds no samples"),
    ],
)
def test_histograms_made_to_harm(line: bytes, said: str) -> None:
    with pytest.raises(SessionError, match=said):
        foreign.parse_foreign_file(line, "x.hlog")


def test_thousands_of_bombs_share_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jitter_workshop.session.foreign_hlog.MAX_PACKED_BYTES", 100_000)
    bomb = packed(1, 3_600_000_000_000, 4, b"\x02" * 20_000)
    assert len(bomb) < 200
    with pytest.raises(SessionError, match=r"x.hlog:5: the unpacked histograms are too large"):
        foreign.parse_foreign_file(bomb * 20_000, "x.hlog")
    zeros = packed(1, 3_600_000_000_000, 4, bytes(2_000_000), 0x1C849381)
    with pytest.raises(SessionError, match=r"x.hlog:1: the unpacked histograms are too large"):
        foreign.parse_foreign_file(zeros * 20_000, "x.hlog")


def test_a_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SessionError, match="not a regular file"):
        foreign.content(tmp_path / "pipe")
    with pytest.raises(SessionError, match="no such file"):
        foreign.content(tmp_path / "none")
    with pytest.raises(SessionError, match="not a regular file"):
        foreign.content(tmp_path)
    with pytest.raises(SessionError, match="not a regular file"):
        foreign.content(Path("/dev/zero"))


def test_a_name_cannot_steer_the_terminal() -> None:
    (run,) = foreign.parse_foreign_file((SAMPLES / "oslat.txt").read_bytes(), "a\x1b[2Jb\u202e.txt")
    assert run.label.isprintable()
    assert run.source.isprintable()
    assert max(high for _, high, _ in run.bins) < MAX_NS
