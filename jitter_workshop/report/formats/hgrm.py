"""Write percentile distributions (``.hgrm``) for plotters, in the form of HdrHistogram's
``outputPercentileDistribution``.

A file holds one distribution: the main histogram of one run, with values in ns. The file has the same rows that
HdrHistogram's library writes. There are five steps from 0 to 50 %, five from 50 to 75 %, and so on. Each range is half
as wide as the one before. There is one more row for each percentile that a report shows. Mean and Max in the footer are
the benchmark's exact values, because a histogram keeps only three digits.
"""

from __future__ import annotations

import contextlib
import decimal
import itertools
import math
import operator
from collections import deque
from collections.abc import Iterator, Sequence

from jitter_workshop.errors import SessionError, UsageError
from jitter_workshop.model.report import ReportDocument
from jitter_workshop.model.run import PERCENTILES, HistogramSummary, Run
from jitter_workshop.report.formats.common import (
    ONE_RUN,
    Files,
    as_shown,
    beyond_range,
    described,
    name_beside,
    run_names,
)
from jitter_workshop.session import hlog
from jitter_workshop.session.opened import MERGED_FILE, OpenSession
from jitter_workshop.stats.encoded import ByteBudget, decode_counts
from jitter_workshop.stats.geometry import Bin, Geometry
from jitter_workshop.stats.histogram import geometry, non_zero, samples_needed

ENDING = ".hgrm"
TICKS = 5
"""The number of rows for each half of the remaining distance to 100 %, as in HdrHistogram's tools."""


def files(document: ReportDocument, session: OpenSession, runs: Sequence[Run], name: str) -> Files:
    """Return the files for the runs, each with one distribution. If there is a single run, its file has the name
    ``name``. If there are several runs, each file's name is made of ``name`` and the run's name.

    Raise UsageError for several runs on standard output. Raise SessionError if no run has a histogram to write.
    """
    if len(runs) > 1 and not name:
        raise UsageError("an .hgrm file holds one run", ONE_RUN)
    runs = as_shown(document, runs)
    names = run_names(runs)
    found: Files = {}
    for run in runs:
        if run.main_histogram not in run.histograms:
            session.notices.append(f"run {run.id} has no histogram and is left out")
            continue
        try:
            space, bins = _read(session, run)
        except SessionError as error:
            session.notices.append(f"run {run.id} is left out: {error.sentence()}")
            continue
        own = name if len(runs) == 1 else name_beside(name, names[run.id], ENDING)
        found[own] = distribution(run, space, bins)
    if not found:
        raise SessionError("none of these runs has a histogram that can be read", "measure again")
    return found


def _read(session: OpenSession, run: Run) -> tuple[Geometry, list[Bin]]:
    """Return the geometry and the counters of a run's main histogram. Raise SessionError if no histogram can be
    read."""
    # This path does not use the library's own histogram and takes half of the time: a session may have hundreds of
    # runs.
    whole = session.blocks_file(run.id).with_name(MERGED_FILE)
    with contextlib.suppress(OSError, ValueError):
        for interval in hlog.read_intervals(whole, run.main_histogram):
            space, counted = decode_counts(interval.encoded, ByteBudget(len(interval.encoded) * 1_000))
            return space, space.bins(counted.items())
    histogram = session.histogram(run.id, run.main_histogram)
    return geometry(histogram), non_zero(histogram)


def distribution(run: Run, space: Geometry, bins: Sequence[Bin]) -> bytes:
    """Return the content of a file: comments that describe the run, the rows, and the footer. A run without samples has
    no rows."""
    name = run.main_histogram
    lines = ["#[values in ns]", f"#[jitter-workshop {described(run)}: {name}]"]
    if more := beyond_range(run, name):
        lines.append(f"#[{more}]")
    lines += [f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>14}", ""]
    digits, count = space.digits, sum(b.samples for b in bins)
    # The percentiles of a report that this number of samples supports have a row, too.
    known = [float(p) for p in PERCENTILES if count >= samples_needed(p)]
    for value, level, total in percentile_rows(bins, known):
        last = "" if level == 100.0 else f" {_fixed(1 / (1 - level / 100), 2):>14}"
        lines.append(f"{value:12.{digits}f} {_fixed(level / 100, 12)} {total:10d}{last}")
    mean, deviation, longest = _footer(run.histograms[name], bins)
    half = space.sub_bucket_half_count
    lines += [
        f"#[Mean    = {mean:12.{digits}f}, StdDeviation   = {deviation:12.{digits}f}]",
        f"#[Max     = {longest:12.{digits}f}, Total count    = {count:12d}]",
        f"#[Buckets = {space.counts_len // half - 1:12d}, SubBuckets     = {2 * half:12d}]",
    ]
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def percentile_rows(
    bins: Sequence[Bin], also: Sequence[float] = (), ticks: int = TICKS
) -> Iterator[tuple[int, float, int]]:
    """Yield (value, percentile, samples up to this value), in the steps of HdrHistogram's PercentileIterator.

    A counter stands for a range of values. The value at a percentile is the upper end of one counter's range. This
    counter is the first at which the sum of samples reaches the percentile. The last row is at 100 %. ``also``: further
    percentiles that get a row (0..100, ascending). ``ticks``: the number of steps in each range of percentiles. A range
    is half of the distance that remains to 100 %.
    """
    count = sum(b.samples for b in bins)
    if not count:
        return
    reached = list(itertools.accumulate(b.samples for b in bins))
    more = deque(also)
    at, level = 0, 0.0

    def row(wanted: float) -> tuple[int, float, int]:
        nonlocal at
        while 100.0 * reached[at] / count < wanted:
            at += 1
        return bins[at].high, wanted, reached[at]

    while level < 100.0:
        while more and more[0] < level:
            yield row(more.popleft())
        if more and more[0] == level:
            more.popleft()
        yield row(level)
        if reached[at] == count:
            break
        # This is the library's own arithmetic, so that every digit is the same.
        halves = int(math.log(100.0 / (100.0 - level)) / math.log(2)) + 1
        before, level = level, level + 100.0 / (ticks * 2**halves)
        if level == before:
            # With more samples than a float can tell apart, there is no further level.
            break
    yield from (row(one) for one in more)
    yield bins[-1].high, 100.0, count


def _fixed(value: float, places: int) -> str:
    """Return a value as text with ``places`` decimals. Halves are rounded up, as Java does."""
    return f"{decimal.Decimal(repr(value)).quantize(decimal.Decimal(1).scaleb(-places), decimal.ROUND_HALF_UP):f}"


def _footer(summary: HistogramSummary, bins: Sequence[Bin]) -> tuple[float, float, int]:
    """Return the mean, the standard deviation and the maximum for the footer; all three are 0 without samples. The
    deviation is computed as if each sample were in the middle of its counter's range. For the deviation, the mean of
    these middle values is used, not the returned mean.
    """
    count = sum(b.samples for b in bins)
    if not count:
        return 0.0, 0.0, 0
    middles = [(low + high + 1) // 2 for low, high, _ in bins]
    samples = [b.samples for b in bins]
    mean = sum(map(operator.mul, middles, samples)) / count
    deviation = math.sqrt(
        sum((middle - mean) ** 2 * many for middle, many in zip(middles, samples, strict=True)) / count
    )
    exact = mean if summary.mean is None else summary.mean
    return exact, deviation, bins[-1].high if summary.max is None else summary.max
