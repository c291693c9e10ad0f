"""Test the files for HdrHistogram's tools, read back by these tools: counts, maxima and percentiles equal ours."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import json
import math
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.model.run import PERCENTILES, Run
from jitter_workshop.report.formats import hgrm as formats_hgrm
from jitter_workshop.report.formats import hlog as formats_hlog
from jitter_workshop.session.store import OpenSession, SessionStore
from jitter_workshop.stats import histogram as hg
from jitter_workshop.stats.geometry import Geometry
from tests.madereports import bare
from tests.madesessions import make_session
from tests.madeup import make_run

HERE = Path(__file__).parents[1] / "readers"
PLACE = Path(os.environ.get("JITTER_WORKSHOP_READERS") or "no-such-folder")
JARS = sorted({*PLACE.glob("HdrHistogram*.jar"), *Path("/usr/share/java").glob("hdrhistogram.jar")})
MORE = ("0.990000000000", "0.999000000000", "0.999900000000", "0.999990000000", "0.999999000000")
"""The percentiles of our reports that are no steps of HdrHistogram's."""

SPACE: Geometry = hg.geometry(hg.new_histogram())

needs_java = pytest.mark.skipif(
    not JARS or shutil.which("javac") is None, reason="no JDK or no HdrHistogram.jar (tests/readers/README.md)"
)
needs_node = pytest.mark.skipif(
    shutil.which("node") is None or not (PLACE / "node_modules" / "hdr-histogram-js").is_dir(),
    reason="no Node.js or no hdr-histogram-js (tests/readers/README.md)",
)
needs_plotter = pytest.mark.skipif(
    shutil.which("node") is None or not (PLACE / "plotFiles.html").is_file(),
    reason="no Node.js or no plotFiles.html (tests/readers/README.md)",
)


def ran(*words: object, **variables: str) -> str:
    done = subprocess.run(
        list(map(str, words)),
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def by_java(log: Path, jar: Path) -> dict[str, dict[str, Any]]:
    return listed(ran("java", "-cp", jar, HERE / "ReadBack.java", log, *PERCENTILES))


def by_node(log: Path) -> dict[str, dict[str, Any]]:
    return listed(ran("node", HERE / "readback.js", log, *PERCENTILES, NODE_PATH=str(PLACE / "node_modules")))


def listed(text: str) -> dict[str, dict[str, Any]]:
    return {found["tag"]: found for found in map(json.loads, text.splitlines())}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenSession]:
    with make_session(tmp_path_factory.mktemp("sessions"), 2) as one:
        yield one


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenSession]:
    """Runs at the edges: one sample, a block without any, values to the end of the range and beyond."""
    with SessionStore(tmp_path_factory.mktemp("odd")).create("odd", "host") as one:
        run, blocks = make_run(((4_321,),), run_id="20260101-000001-aaaa", label="one sample")
        one.add_run(run, blocks)
        run, blocks = make_run(((100, 200), (7,)), run_id="20260101-000002-aaaa", label="an empty block")
        nothing = dataclasses.replace(
            blocks[1].histograms[run.main_histogram],
            encoded=hg.encode_histogram(hg.new_histogram()),
            count=0,
            min=None,
            max=None,
        )
        blocks = (blocks[0], dataclasses.replace(blocks[1], histograms={run.main_histogram: nothing}))
        whole = hg.new_histogram()
        whole.record_value(100)
        whole.record_value(200)
        run = dataclasses.replace(
            run, histograms={run.main_histogram: hg.summarise_histogram(whole, min_ns=100, max_ns=200)}
        )
        one.add_run(run, blocks)
        values = (0, 1, 2_047, 2_048, 10**9, hg.HIGHEST_NS, hg.HIGHEST_NS)
        run, blocks = make_run((values, (3, *[50] * 2_000)), run_id="20260101-000003-aaaa", label="Ω to the end")
        summary = dataclasses.replace(run.histograms[run.main_histogram], overflow=1)
        one.add_run(dataclasses.replace(run, histograms={run.main_histogram: summary}), blocks)
        yield one


def written(session: OpenSession, runs: tuple[Run, ...], folder: Path, ending: str) -> list[Path]:
    made = formats_hlog if ending == "hlog" else formats_hgrm
    found = made.files(bare(), session, runs, f"x.{ending}")
    for name, content in found.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in found]


def same(found: dict[str, Any], session: OpenSession, run: Run, name: str) -> None:
    """The counts are equal, the maxima are the same to a histogram, and each percentile is ours or that of the next
    sample: where a rank falls between two samples, ours is the nearer one (as in the library for Python), and the
    libraries for Java and JavaScript take the next."""
    summary = run.histograms[name]
    assert found["count"] == summary.count
    low, high = SPACE.bounds(SPACE.index(summary.max or 0))
    assert low <= found["max"] <= high
    bins = hg.non_zero(session.histogram(run.id, name))
    reached = list(itertools.accumulate(b.samples for b in bins))
    known = {p: value for p, value in summary.percentiles.items() if value is not None}
    for percentile, value in known.items():
        rank = math.ceil(Fraction(percentile) * summary.count / 100)
        following = bins[bisect.bisect_left(reached, rank)].high
        assert found["percentiles"][percentile] in (value, following)
        if percentile in ("50", "90", "99"):
            assert found["percentiles"][percentile] == value


def table_of(text: str) -> list[str]:
    """The head and the rows of a distribution, and the line with its geometry, without the rows that only ours have."""
    lines = [line for line in text.splitlines() if re.match(r" |\d|#\[Buckets", line)]
    return [line for line in lines if not any(f" {one} " in line for one in MORE)]


@needs_java
@pytest.mark.parametrize("jar", JARS, ids=lambda jar: jar.stem)
def test_java_reads_every_histogram_of_a_run(session: OpenSession, tmp_path: Path, jar: Path) -> None:
    run = session.runs()[0]
    (log,) = written(session, (run,), tmp_path, "hlog")
    found = by_java(log, jar)
    assert sorted(found) == sorted(run.histograms)
    for name, one in found.items():
        assert one["intervals"] == len(run.blocks)
        assert one["start_s"] == 1_767_258_000.0
        assert one["first_ms"] == 1_767_258_000_000
        same(one, session, run, name)


@needs_java
@pytest.mark.parametrize("jar", JARS, ids=lambda jar: jar.stem)
def test_java_reads_several_runs_and_odd_ones(odd: OpenSession, tmp_path: Path, jar: Path) -> None:
    runs = odd.runs()
    (log,) = written(odd, runs, tmp_path, "hlog")
    found = by_java(log, jar)
    assert list(found) == ["one-sample", "an-empty-block", "to-the-end"]
    for one, run in zip(found.values(), runs, strict=True):
        same(one, odd, run, run.main_histogram)


@needs_java
def test_a_distribution_is_equal_to_that_of_java(session: OpenSession, odd: OpenSession, tmp_path: Path) -> None:
    """Row for row; of the footer, mean and maximum are the exact ones here and to three digits there."""
    for each in (session, odd):
        for run in each.runs():
            (log,) = written(each, (run,), tmp_path, "hlog")
            (path,) = written(each, (run,), tmp_path, "hgrm")
            java = by_java(log, JARS[-1])[run.main_histogram]["distribution"]
            assert table_of(path.read_text()) == table_of(java)
            deviation = [line.partition("StdDeviation")[2] for line in (java, path.read_text())]
            assert deviation[0].split("]")[0] == deviation[1].split("]")[0]


@needs_java
def test_javas_log_processor_makes_the_same_distribution(session: OpenSession, tmp_path: Path) -> None:
    run = session.runs()[1]
    (log,) = written(session, (run,), tmp_path, "hlog")
    (path,) = written(session, (run,), tmp_path, "hgrm")
    verb = ("java", "-cp", JARS[-1], "org.HdrHistogram.HistogramLogProcessor", "-i", log)
    out = tmp_path / "out"
    ran(*verb, "-tag", run.main_histogram, "-o", out, "-outputValueUnitRatio", "1")
    assert table_of((tmp_path / "out.hgrm").read_text()) == table_of(path.read_text())
    # A legend, then a line an interval.
    lines = [line for line in out.read_text().splitlines() if line and line[0].isdigit()]
    assert len(lines) == len(run.blocks)
    tags = ran(*verb, "-listtags").split("\n", 1)[1].split()
    assert tags == sorted(run.histograms)


@needs_node
def test_javascript_reads_every_histogram_of_a_run(session: OpenSession, tmp_path: Path) -> None:
    run = session.runs()[0]
    (log,) = written(session, (run,), tmp_path, "hlog")
    (path,) = written(session, (run,), tmp_path, "hgrm")
    found = by_node(log)
    assert sorted(found) == sorted(run.histograms)
    for name, one in found.items():
        assert sorted(one["listed"]) == sorted(run.histograms)
        assert (one["intervals"], one["first_ms"]) == (len(run.blocks), 1_767_258_000_000)
        same(one, session, run, name)
    values = [line.split()[:3] for line in table_of(found[run.main_histogram]["distribution"])[1:-1]]
    ours = [line.split()[:3] for line in table_of(path.read_text())[1:-1]]
    assert [one[0] for one in values] == [one[0] for one in ours]
    assert [one[2] for one in values] == [one[2] for one in ours]


@needs_node
def test_javascript_reads_several_runs_and_odd_ones(odd: OpenSession, tmp_path: Path) -> None:
    runs = odd.runs()
    (log,) = written(odd, runs, tmp_path, "hlog")
    found = by_node(log)
    assert list(found) == ["one-sample", "an-empty-block", "to-the-end"]
    for one, run in zip(found.values(), runs, strict=True):
        same(one, odd, run, run.main_histogram)


@needs_plotter
def test_the_plotter_draws_every_row(session: OpenSession, odd: OpenSession, tmp_path: Path) -> None:
    for each in (session, odd):
        for run in each.runs():
            (path,) = written(each, (run,), tmp_path, "hgrm")
            points = json.loads(ran("node", HERE / "plotted.js", PLACE / "plotFiles.html", path))
            lines = [line for line in path.read_text().splitlines() if re.match(r" |\d", line)]
            rows = [line.split() for line in lines[1:]]
            # It draws over 1/(1-p), which the last row, at 100 %, does not have.
            assert points == [[float(row[3]), float(row[0])] for row in rows[:-1]]
