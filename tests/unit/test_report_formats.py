"""Histogram logs and percentile distributions: what was measured, to the last sample, in a form that others read."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import math
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hdrh.log import HistogramLogReader
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.errors import SessionError, UsageError
from jitter_workshop.model.report import ReportDocument
from jitter_workshop.model.run import PERCENTILES, Run
from jitter_workshop.report.formats import common
from jitter_workshop.report.formats import hgrm as formats_hgrm
from jitter_workshop.report.formats import hlog as formats_hlog
from jitter_workshop.session import foreign, hlog
from jitter_workshop.session.foreign_text import MAX_NS
from jitter_workshop.session.store import OpenSession, SessionStore
from jitter_workshop.stats import histogram as hg
from jitter_workshop.stats.curve import curve_value_at, imported_curve
from tests.madereports import HOSTILE, bare, rich
from tests.madesessions import make_session
from tests.madeup import make_run


def document(*runs: Run) -> ReportDocument:
    return dataclasses.replace(bare(), session_name="a session")


def stored(folder: Path, *made: tuple[Run, tuple[Any, ...]]) -> OpenSession:
    session = SessionStore(folder).create("a session", "host")
    for run, blocks in made:
        session.add_run(run, blocks)
    return session


@pytest.fixture
def session(tmp_path: Path) -> OpenSession:
    return make_session(tmp_path / "sessions", 3, blocks=4)


def test_a_log_of_one_run_has_every_histogram_under_its_name(session: OpenSession, tmp_path: Path) -> None:
    run = session.runs()[0]
    ((name, content),) = formats_hlog.files(document(), session, [run], "one.hlog").items()
    path = tmp_path / name
    path.write_bytes(content)
    for tag, summary in run.histograms.items():
        intervals = list(hlog.read_intervals(path, tag))
        assert len(intervals) == 4
        assert max(one.max_ns for one in intervals) == summary.max
        total = hg.decode_histogram(intervals[0].encoded)
        for one in intervals[1:]:
            hg.add_counts(total, hg.decode_histogram(one.encoded))
        assert hg.summarise_histogram(total).count == summary.count
        assert hg.summarise_histogram(total).percentiles == summary.percentiles
    assert [one.start_s for one in hlog.read_intervals(path)] == sorted(
        one.start_s for one in hlog.read_intervals(path)
    )


def test_a_log_of_several_has_their_main_histograms_under_their_labels(session: OpenSession, tmp_path: Path) -> None:
    runs = session.runs()
    ((name, content),) = formats_hlog.files(document(), session, runs[::-1], "all.hlog").items()
    (tmp_path / name).write_bytes(content)
    starts = [one.start_s for one in hlog.read_intervals(tmp_path / name)]
    assert starts == sorted(starts)
    for tag, run in zip(("baseline", "pinned", "baseline-1"), runs, strict=True):
        assert f"#Tag={tag}: run {run.id}, ".encode() in content
        counted = sum(
            hg.decode_histogram(one.encoded).get_total_count() for one in hlog.read_intervals(tmp_path / name, tag)
        )
        assert counted == run.histograms["accumulator_transit"].count


def test_the_python_library_reads_the_log(session: OpenSession, tmp_path: Path) -> None:
    run = session.runs()[0]
    path = tmp_path / "one.hlog"
    path.write_bytes(formats_hlog.files(document(), session, [run], path.name)[path.name])
    total, whole = hg.new_histogram(), 0
    reader = HistogramLogReader(str(path), total)
    while reader.get_next_interval_histogram():
        whole += 1
    reader.close()
    assert whole == 4 * len(run.histograms)


@pytest.mark.parametrize("ending", ["hlog", "hgrm"])
def test_the_importer_reads_both_back(session: OpenSession, ending: str) -> None:
    made = formats_hlog if ending == "hlog" else formats_hgrm
    for run in session.runs():
        (content,) = made.files(document(), session, [run], f"x.{ending}").values()
        found = foreign.parse_foreign_file(content, f"x.{ending}")
        main = found[list(run.histograms).index(run.main_histogram)] if ending == "hlog" else found[0]
        summary = run.histograms[run.main_histogram]
        assert (main.unit, main.unit_stated) == ("ns", True)
        assert (main.count, main.max_ns) == (summary.count, summary.max)
        curve = imported_curve(main)
        for percentile in PERCENTILES:
            value = summary.percentiles[percentile]
            if value is None:
                continue
            shown = curve_value_at(curve, float(percentile))
            if ending == "hgrm":
                # Its rows are at the first sample that reaches a level, ours at the nearest one: one may lie between.
                bins = hg.non_zero(session.histogram(run.id, run.main_histogram))
                reached = list(itertools.accumulate(b.samples for b in bins))
                rank = math.ceil(Fraction(percentile) * summary.count / 100)
                value = bins[bisect.bisect_left(reached, rank)].high
            assert shown == min(value, summary.max or 0)


def test_a_distribution_in_full(tmp_path: Path) -> None:
    made = make_run(((100, 110, 5_000), (90, 120, 70_000)))
    session = stored(tmp_path, made)
    (content,) = formats_hgrm.files(document(), session, session.runs(), "x.hgrm").values()
    lines = content.decode("ascii").splitlines()
    assert lines[0] == "#[values in ns]"
    assert lines[1].startswith("#[jitter-workshop run 20260101-000000-aaaa, label 'baseline', ring, every 10000 ns,")
    assert lines[2:6] == [
        "       Value     Percentile TotalCount 1/(1-Percentile)",
        "",
        "      90.000 0.000000000000          1           1.00",
        "      90.000 0.100000000000          1           1.11",
    ]
    assert lines[-4:] == [
        "   70015.000 1.000000000000          6",
        "#[Mean    =    12570.000, StdDeviation   =    25739.553]",
        "#[Max     =    70000.000, Total count    =            6]",
        "#[Buckets =           26, SubBuckets     =         2048]",
    ]


def test_an_hgrm_file_of_one_sample_has_two_rows(tmp_path: Path) -> None:
    session = stored(tmp_path, make_run(((4_321,),)))
    (content,) = formats_hgrm.files(document(), session, session.runs(), "x.hgrm").values()
    rows = [line.split() for line in content.decode().splitlines() if line and line[0] == " " and "V" not in line]
    assert rows == [["4323.000", "0.000000000000", "1", "1.00"], ["4323.000", "1.000000000000", "1"]]
    (run,) = foreign.parse_foreign_file(content, "x.hgrm")
    assert (run.count, run.max_ns) == (1, 4_321)


def test_a_run_without_samples_is_written_in_both_formats(tmp_path: Path) -> None:
    run, blocks = make_run(((1,),))
    empty = hg.new_histogram()
    block = dataclasses.replace(
        blocks[0],
        histograms={
            "accumulator_transit": dataclasses.replace(
                blocks[0].histograms["accumulator_transit"],
                encoded=hg.encode_histogram(empty),
                count=0,
                min=None,
                max=None,
            )
        },
    )
    run = dataclasses.replace(run, histograms={"accumulator_transit": hg.summarise_histogram(empty)})
    session = stored(tmp_path, (run, (block,)))
    (content,) = formats_hgrm.files(document(), session, session.runs(), "x.hgrm").values()
    assert b"Total count    =            0]" in content
    with pytest.raises(SessionError, match="no rows"):
        foreign.parse_foreign_file(content, "x.hgrm")
    (content,) = formats_hlog.files(document(), session, session.runs(), "x.hlog").values()
    assert content.count(b"Tag=accumulator_transit,0.000000,0.250000,0.000000,HIST") == 1


def test_values_beyond_the_range_keep_the_true_maximum(tmp_path: Path) -> None:
    longest = 3 * hg.HIGHEST_NS
    run, blocks = make_run(((100, hg.HIGHEST_NS),))
    summary = run.histograms["accumulator_transit"]
    run = dataclasses.replace(
        run, histograms={"accumulator_transit": dataclasses.replace(summary, max=longest, overflow=1)}
    )
    session = stored(tmp_path, (run, blocks))
    (content,) = formats_hgrm.files(document(), session, session.runs(), "x.hgrm").values()
    assert b"#[1 values lie beyond the histogram's range and are counted at its end; the longest was 180 s]" in content
    (back,) = foreign.parse_foreign_file(content, "x.hgrm")
    assert (back.count, back.max_ns) == (2, longest)
    (content,) = formats_hlog.files(document(), session, session.runs(), "x.hlog").values()
    assert b"#accumulator_transit: 1 values lie beyond" in content


def test_several_distributions_are_files_beside_each_other(session: OpenSession) -> None:
    found = formats_hgrm.files(document(), session, session.runs(), "out/today.hgrm")
    assert list(found) == ["out/today-baseline.hgrm", "out/today-pinned.hgrm", "out/today-baseline-1.hgrm"]
    with pytest.raises(UsageError, match="one run"):
        formats_hgrm.files(document(), session, session.runs(), "")
    assert list(formats_hgrm.files(document(), session, session.runs()[:1], "")) == [""]


def test_a_damaged_run_is_left_out_and_said(session: OpenSession) -> None:
    first, second, _ = session.runs()
    session.blocks_file(first.id).write_bytes(b"Tag=accumulator_transit,0.0,0.25,1.0,HISTFAAAnonsense\n")
    session.blocks_file(first.id).with_name("merged.hlog").unlink()
    logs = formats_hlog.files(document(), session, session.runs(), "x.hlog")["x.hlog"]
    assert b"Tag=baseline," not in logs
    assert b"Tag=pinned," in logs
    assert any(f"run {first.id} is left out: the run's histograms are damaged" in said for said in session.notices)
    session.notices.clear()
    assert list(formats_hgrm.files(document(), session, (first, second), "x.hgrm")) == ["x-pinned.hgrm"]
    assert any(f"run {first.id} is left out" in said for said in session.notices)
    with pytest.raises(SessionError, match="none of these runs"):
        formats_hgrm.files(document(), session, (first,), "x.hgrm")
    with pytest.raises(SessionError, match="none of these runs"):
        formats_hlog.files(document(), session, (first,), "x.hlog")


@pytest.mark.parametrize("label", [*HOSTILE, "values in ms", "#[StartTime: 1]", "Tag=x,1,2,3,HIST"])
def test_hostile_labels_stay_in_their_comment(label: str, tmp_path: Path) -> None:
    made = [make_run(run_id=f"2026010{n}-000000-aaaa", label=label) for n in (1, 2)]
    session = stored(tmp_path / "s", *made)
    for runs in (session.runs()[:1], session.runs()):
        content = formats_hlog.files(document(), session, runs, "x.hlog")["x.hlog"]
        content.decode("ascii")
        lines = content.splitlines()
        assert all(re.match(rb'#|Tag=[\w.-]+,[\d.]+,[\d.]+,[\d.]+,HIST|"StartTimestamp"', line) for line in lines)
        found = foreign.parse_foreign_file(content, "x.hlog")
        assert len(found) == len(runs)
        assert {(run.unit, run.unit_stated, run.count) for run in found} == {("ns", True, 6)}
        assert all(run.started_at == "2026-01-01T00:00:00Z" for run in found)
        for name, distribution in formats_hgrm.files(document(), session, runs, "x.hgrm").items():
            assert re.fullmatch(r"x(-[\w.-]+)?\.hgrm", name, re.ASCII)
            distribution.decode("ascii")
            (run,) = foreign.parse_foreign_file(distribution, name)
            assert (run.unit, run.count, run.max_ns) == ("ns", 6, 70_000)


def test_a_report_for_others_gives_the_labels(session: OpenSession) -> None:
    run = session.runs()[0]
    shown = dataclasses.replace(rich().runs[0], id=run.id, label="host 1")
    private = dataclasses.replace(document(), runs=(shown,), private=True)
    assert b"label 'host 1'" in formats_hlog.files(private, session, [run], "x.hlog")["x.hlog"]
    assert b"label 'host 1'" in formats_hgrm.files(private, session, [run], "x.hgrm")["x.hgrm"]


@given(st.lists(st.tuples(st.text(max_size=70), st.sampled_from(["a", "A", "20260101-000000-aaaa", "baseline"]))))
def test_names_are_apart_short_and_plain(given_labels: list[tuple[str, str]]) -> None:
    template, _ = make_run(((100,),))
    runs = [
        dataclasses.replace(template, id=f"{ident}{number}", label=label)
        for number, (label, ident) in enumerate(given_labels)
    ]
    names = common.run_names(runs)
    assert len({name.lower() for name in names.values()}) == len(runs)
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]{1,43}", name) for name in names.values())


def test_an_ending_of_two_parts_is_taken_off() -> None:
    assert common.name_beside("a.pyperf.json", "x", ".pyperf.json") == "a-x.pyperf.json"


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("a.md", "a-x.svg"), ("dir.d/a", "dir.d/a-x.svg"), ("a.b.md", "a.b-x.svg"), (".md", ".md-x.svg")],
)
def test_names_of_files_beside(name: str, wanted: str) -> None:
    assert common.name_beside(name, "x", ".svg") == wanted


@given(st.lists(st.tuples(st.integers(1, 10**10), st.integers(1, 10**6)), min_size=1, max_size=40))
def test_rows_rise_to_the_last_sample_and_agree_with_the_percentiles(values: list[tuple[int, int]]) -> None:
    histogram = hg.new_histogram()
    for value, count in values:
        histogram.record_value(value, count)
    bins = hg.non_zero(histogram)
    total = sum(b.samples for b in bins)
    found = list(formats_hgrm.percentile_rows(bins, [50.0, 99.0, 99.9]))
    levels = [level for _, level, _ in found]
    assert levels == sorted(set(levels))
    assert {50.0, 99.0, 99.9} <= set(levels)
    assert found == sorted(found, key=lambda row: (row[1], row[0]))
    assert found[0][:2] == (bins[0].high, 0.0)
    assert found[-1] == (bins[-1].high, 100.0, total)
    for value, level, reached in found:
        assert reached == sum(b.samples for b in bins if b.high <= value)
        assert 100 * reached / total >= level


@given(st.integers(1, 2**62))
def test_counts_beyond_all_measure_end(samples: int) -> None:
    rows = list(formats_hgrm.percentile_rows([hg.Bin(1, 1, samples), hg.Bin(2, 2, 1)]))
    assert rows[-1] == (2, 100.0, samples + 1)
    assert len(rows) < 1_000


def test_the_importers_limit_of_a_value_is_beyond_ours() -> None:
    assert hg.HIGHEST_NS < MAX_NS


def test_two_tags_with_the_same_beginning_are_two(make_run: Callable[..., Any], tmp_path: Path) -> None:
    label = "one of twenty letters"
    made = [make_run(run_id=f"20260101-000000-aaa{n}", label=label) for n in "ab"]
    session = stored(tmp_path, *made)
    content = formats_hlog.files(document(), session, session.runs(), "x.hlog")["x.hlog"]
    assert [run.count for run in foreign.parse_foreign_file(content, "x.hlog")] == [6, 6]


def test_other_characters_than_ascii_are_written_for_every_tool(session: OpenSession) -> None:
    report = dataclasses.replace(document(), session_name="Ω µ")
    content = formats_hlog.files(report, session, session.runs(), "x.hlog")["x.hlog"]
    assert rb"#jitter-workshop session \u03a9 \xb5: 3 runs" in content
