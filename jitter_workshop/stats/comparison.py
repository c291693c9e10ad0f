"""Describe how two single runs differ, without naming a cause (docs/compare.md).

Two runs of one setup can differ by luck alone, so nothing here is a verdict. A verdict needs repeated rounds."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from jitter_workshop.model.curve import Comparison, ComparisonRow, ImportedRun
from jitter_workshop.model.host import EMULATED
from jitter_workshop.model.run import HANDOFF, PERCENTILES, HistogramSummary, Run, StallRate
from jitter_workshop.model.spec import KINDS, PACED
from jitter_workshop.model.text import ID, LABEL, WORD, clean
from jitter_workshop.stats.curve import curve_value_at, imported_curve
from jitter_workshop.stats.figures import DUE_TAIL, FIGURES, FROM_DUE_TIME, P99_FROM_DUE_TIME
from jitter_workshop.stats.scale import difference_told, nice_ns, nice_number, ratio_text

UNJUDGED = (
    "The times were measured on an emulated machine, so they mean nothing and are not judged. The counts are real."
)
"""The sentence that replaces judgements in a comparison if one of its runs was made on an emulated machine."""
NO_PROOF = "Two single runs cannot prove anything: two runs of the same setup also differ."

STALLS_PREFIX = "stalls_per_second_over_"
STOLEN = "stolen_ns_per_second"
MAX = "max"

WALL, USER, HELD_UP, MATCH, MEAN = "wall_time", "user_time", "held_up_time", "match", "mean"
"""Measures that a command's run can have. Any other name means a percentile of the histogram that the command wrote."""
NS = "ns"
"""The unit of all times of a command."""

_NAMES = {
    STOLEN: "time in stalls",
    MAX: "worst seen",
    WALL: "wall time",
    USER: "user time",
    HELD_UP: "time held up",
    MATCH: "the figure",
}
_HEADLINE_NS = 100_000
_SAME_RATIO = 1.1
_STOLEN_WORTH_SAYING = 1.2
_MEDIAN_WORTH_SAYING = 1.5
_TEXT_LINES, _TEXT_COLUMNS = 3, 76
_DUTY = "duty"


def differences(a: Run, b: Run) -> tuple[str, ...]:
    """Return the reasons, in words, why two runs cannot be compared; () if they can.

    The runs must have the same workload, clock, payload and duty. Two runs of ``ring`` must have the same pacing. Two
    runs of any workload except ``spin`` must have the same interval. If both runs have a pause, the pauses must be
    equal. Two runs cannot be compared if ``memory`` (memory used in addition to the work) is set for only one of them.
    The same holds if only one of them measured the hand-off, or took a lock.
    """
    found: list[str] = []
    alike = a.workload == b.workload
    pacing = ("pacing", a.pacing, b.pacing)
    interval = ("interval", nice_ns(a.interval_ns), nice_ns(b.interval_ns))
    for what, x, y in (
        ("workload", a.workload, b.workload),
        *((pacing,) if alike and a.workload == "ring" else ()),
        *((interval,) if alike and a.workload in PACED else ()),
        *((("time", *(HANDOFF if run.by_handoff else "transit" for run in (a, b))),) if alike else ()),
        ("clock", a.clock.source, b.clock.source),
        ("payload", *(KINDS[run.workload].payload if run.workload in KINDS else "" for run in (a, b))),
        (_DUTY, f"{a.duty} %", f"{b.duty} %"),
        *((("pause", a.pause, b.pause),) if a.pause and b.pause else ()),
        *((("memory", a.memory or "none", b.memory or "none"),) if not a.memory or not b.memory else ()),
        *((("lock", a.lock or "none", b.lock or "none"),) if not a.lock or not b.lock else ()),
    ):
        if x != y:
            found.append(f"{what}: {clean(x)} against {clean(y)}")
    return tuple(found)


def compare(a: Run, b: Run, metric: str | None = None, clock: str = "") -> Comparison:
    """Compare run ``b`` with the baseline ``a``: return a row for each measure.

    The measures are stall rates, time in stalls, the mean, the percentiles that are known for both runs, and the
    maximum. A row's ``ratio`` is b/a. Two times count as equal (ratio 1) if they differ by less than the resolution of
    the runs' clocks. If the resolutions differ, the coarser one decides. ``metric``: the name of a histogram; None for
    the workload's main one. ``clock``: words for its latencies (``model.curve.Comparison``). For runs that cannot be
    compared, the result has the reasons and no rows. Raise KeyError if the runs can be compared, but one of them lacks
    the histogram.
    """
    name = metric or a.main_histogram
    unlike = differences(a, b)
    if unlike:
        # The rates of two duties can be compared: they are per second of sampled time.
        what = "The curves of these two runs" if duties_alone(unlike) else "These two runs"
        text = f"{what} cannot be compared: {'; '.join(unlike)}."
        return Comparison(b.id, b.label, False, unlike, (), text)
    ha, hb = a.histograms[name], b.histograms[name]
    step_ns = max(a.clock.resolution_ns, b.clock.resolution_ns)
    rows = (*_stall_rows(a, b), *_value_rows(ha, hb, step_ns))
    text = UNJUDGED if EMULATED in (a.mark, b.mark) else _describe(a, b, rows, step_ns, name, clock)
    return Comparison(b.id, b.label, True, (), rows, text, name if name != a.main_histogram else "", clock)


def clock_told(found: Comparison) -> str:
    """Return the words for the latencies of a comparison that sets two clocks side by side, such as ``latencies from
    the due time``; "" for any other."""
    return f"latencies {found.clock}" if found.clock else ""


def duties_alone(unlike: Sequence[str]) -> bool:
    """Return True if the duty is the only one of the reasons of :func:`differences`."""
    return len(unlike) == 1 and unlike[0].startswith(_DUTY)


def higher_at(comparison: Comparison, measure: str, tolerance: float = 0.0) -> bool | None:
    """Return True if run B's value is above (1 + ``tolerance``) times run A's value. Otherwise return False.
    ``measure``: a row's name, such as ``p99.9`` or ``mean``. ``tolerance``: a share (0.1 = 10 %). Return None if the
    comparison has no such row.
    """
    row = next((r for r in comparison.rows if r.measure == measure), None)
    if row is None or row.a is None or row.b is None:
        return None
    return row.b > row.a * (1 + tolerance) and row.ratio != 1.0


def headline_measures(found: Sequence[Comparison], workload: str, wanted: str | None = None) -> tuple[str, ...]:
    """Return the names of the five most important rows. These are stalls, time in stalls, the median, a tail percentile
    and the maximum. The row for stalls counts those over 100 µs. If there were none, it is the row of the next shorter
    threshold that a stall exceeded. If no stall exceeded a shorter threshold, it is the row of the next longer one.
    ``wanted``: a measure that replaces the usual stalls or the usual tail percentile.
    """
    rows = {row.measure: row for one in found for row in one.rows}
    seen = {r.measure for one in found for r in one.rows if r.measure.startswith(STALLS_PREFIX) and (r.a or r.b)}
    lengths = sorted(int(m.removeprefix(STALLS_PREFIX).removesuffix("_ns")) for m in seen)
    near = [length for length in lengths if length <= _HEADLINE_NS][-1:] or lengths[:1] or [_HEADLINE_NS]
    stalls, tail = stall_measure(near[0]), _tail_percentile(rows, workload) or "p99.9"
    if wanted is not None and wanted.startswith(STALLS_PREFIX):
        stalls = wanted
    elif wanted is not None and wanted.startswith("p"):
        tail = wanted
    return stalls, STOLEN, "p50", tail, MAX


def stall_measure(threshold_ns: int) -> str:
    """Return the name of the row for stalls of at least ``threshold_ns``."""
    return f"{STALLS_PREFIX}{threshold_ns}_ns"


def measure_name(measure: str) -> str:
    """Return the name of a comparison's row for people: ``stalls over 100 µs``, ``time in stalls``, ``p99.9``. An
    unknown name, as from an edited file, is returned unchanged."""
    threshold = measure.removeprefix(STALLS_PREFIX).removesuffix("_ns")
    if measure.startswith(STALLS_PREFIX) and threshold.isascii() and threshold.isdecimal() and len(threshold) < 19:
        return f"stalls over {nice_ns(int(threshold))}"
    return _NAMES.get(measure, measure)


def amount(measure: str, value: float | None, unit: str = "") -> str:
    """Return a measure's value for people: a rate (``4.2/s``), time in stalls a second (``3.1 µs/s``), or a time; ``–``
    for None. ``unit``: the unit of a command's figure."""
    if value is None:
        return "–"
    if unit not in ("", NS):
        return f"{nice_number(value)} {clean(unit, WORD)}"
    if measure.startswith(STALLS_PREFIX):
        return f"{nice_number(value)}/s"
    return f"{nice_ns(value)}/s" if measure == STOLEN else nice_ns(value)


NEAR = "≈"
NEAR_MEANS = f"{NEAR}  the two values differ by less than one step of the clock"


def ratio_told(row: ComparisonRow) -> str:
    """Return the ratio of a comparison's row in readable form. Return NEAR (≈) if the two values are not equal but
    differ by less than the clock's resolution. Return ``–`` if both values are 0, because there is no ratio then.
    """
    if row.a == row.b == 0:
        return ratio_text(None)
    return NEAR if row.ratio == 1.0 and row.a != row.b else ratio_text(row.ratio)


def _stall_rows(a: Run, b: Run) -> list[ComparisonRow]:
    mine = {r.threshold_ns: r for r in a.stalls.rates}
    theirs = {r.threshold_ns: r for r in b.stalls.rates}
    rows = [
        _row(stall_measure(t), mine[t].per_second, theirs[t].per_second)
        for t in sorted(mine.keys() & theirs.keys(), reverse=True)
    ]
    if a.stalls.threshold_ns == b.stalls.threshold_ns:
        rows.append(_row(STOLEN, a.stalls.stolen_ns_per_second, b.stalls.stolen_ns_per_second))
    return rows


def _value_rows(a: HistogramSummary, b: HistogramSummary, step_ns: int) -> list[ComparisonRow]:
    pairs: list[tuple[str, float | None, float | None]] = [("mean", a.mean, b.mean)]
    pairs += [(f"p{p}", a.percentiles.get(p), b.percentiles.get(p)) for p in PERCENTILES]
    pairs.append((MAX, a.max, b.max))
    return [_row(what, x, y, step_ns) for what, x, y in pairs if x is not None and y is not None]


def _row(measure: str, a: float, b: float, step: float = 0.0) -> ComparisonRow:
    if a == b or (step and abs(a - b) < step):
        return ComparisonRow(measure, a, b, 1.0)
    return ComparisonRow(measure, a, b, b / a if a else None)


def _describe(a: Run, b: Run, rows: tuple[ComparisonRow, ...], step_ns: int, metric: str, clock: str) -> str:
    by_name = {r.measure: r for r in rows}
    tail = _tail_percentile(by_name, a.workload)
    due = clock == FROM_DUE_TIME and f"p{DUE_TAIL}" in by_name
    if due:
        tail = f"p{DUE_TAIL}"
    name = FIGURES[P99_FROM_DUE_TIME].title if due else f"{tail} {clock}" if clock else None
    parts = [_stalls_in_words(a, b), _percentile_in_words(by_name, tail, step_ns, name)]
    if tail != "p50" and not due:
        parts.append(_jump_in_words("p50", by_name.get("p50"), _MEDIAN_WORTH_SAYING))
    parts.append(_jump_in_words(measure_name(STOLEN), by_name.get(STOLEN), _STOLEN_WORTH_SAYING, "/s"))
    said = "These two runs: " + ("; ".join(filter(None, parts)) or "too few samples to say how they differ")
    worst = by_name.get(MAX)
    short_proof = NO_PROOF.partition(":")[0] + "."
    endings = [NO_PROOF, short_proof]
    if worst is not None:
        # The maximum is one value and has its own row, so it is left out if the text is too long.
        x, y = nice_ns(worst.a), nice_ns(worst.b)
        extremes = f"Worst seen: {x} in {_seconds(a.duration_s)}, then {y} in {_seconds(b.duration_s)}."
        endings = [f"{extremes} {NO_PROOF}", f"{extremes} {short_proof}", *endings]
    texts = [f"{said}. {ending}" for ending in endings]
    return next((t for t in texts if len(textwrap.wrap(t, _TEXT_COLUMNS)) <= _TEXT_LINES), texts[-1])


def _jump_in_words(what: str, row: ComparisonRow | None, worth_saying: float, unit: str = "") -> str:
    """Return the two values of a row in words. Return "" if their ratio is between 1/``worth_saying`` and
    ``worth_saying``. Also return "" if there is no row.
    """
    if row is None or (row.ratio is not None and 1 / worth_saying <= row.ratio <= worth_saying):
        return ""
    x, y = (nice_ns(v) + unit if v else "nothing" for v in (row.a, row.b))
    return f"{what} {x}, then {y}"


def _stalls_in_words(a: Run, b: Run) -> str:
    """Return in words how the stall rates of two runs differ. Both rates are for the same threshold, which both runs
    must have. It is the highest threshold of at most 100 µs that a stall exceeded. If there is none, it is the highest
    threshold above 100 µs that a stall exceeded. If no stall exceeded any of these thresholds, the words say so.
    Return "" if the runs have no threshold in common.
    """
    mine = {r.threshold_ns: r for r in a.stalls.rates}
    theirs = {r.threshold_ns: r for r in b.stalls.rates}
    thresholds = sorted(mine.keys() & theirs.keys(), key=lambda t: (t > _HEADLINE_NS, -t))
    for threshold in thresholds:
        x, y = mine[threshold], theirs[threshold]
        if x.count or y.count:
            return f"stalls over {nice_ns(threshold)} {_rate_in_words(x, y, a.rated_s, b.rated_s)}"
    if thresholds:
        return f"no stall over {nice_ns(min(thresholds))} in either run"
    return ""


def _rate_in_words(x: StallRate, y: StallRate, a_s: float, b_s: float) -> str:
    if not y.count:
        return f"{_per_second(x.per_second)}, then none in {_seconds(b_s)}"
    if not x.count:
        return f"none in {_seconds(a_s)}, then {_per_second(y.per_second)}"
    ratio = y.per_second / x.per_second
    if 1 / _SAME_RATIO <= ratio <= _SAME_RATIO:
        return f"about as often ({_per_second(y.per_second)})"
    return difference_told(max(ratio, 1 / ratio), "rarer" if ratio < 1 else "more often")


def _tail_percentile(rows: dict[str, ComparisonRow], workload: str) -> str | None:
    """Return the name of the percentile that stands for the tail: usually p99.9. If p99.9 is not known, it is the
    highest known percentile. For ``spin``, it is always the highest known percentile. ``spin`` has tens of millions of
    readings a second, so p99.9 is far below the tail. Return None if no percentile is known.
    """
    first = () if workload == "spin" else ("p99.9",)
    return next((p for p in (*first, *(f"p{p}" for p in reversed(PERCENTILES))) if p in rows), None)


def _percentile_in_words(
    rows: dict[str, ComparisonRow], preferred: str | None, step_ns: int, name: str | None = None
) -> str:
    """Return both values of a percentile in words; "" for no percentile. ``name``: the percentile's name in the words;
    None for ``preferred``."""
    if preferred is None:
        return ""
    row = rows[preferred]
    if row.ratio == 1.0:
        return f"{name or preferred} the same within the clock's step of {step_ns} ns"
    return f"{name or preferred} {nice_ns(row.a)}, then {nice_ns(row.b)}"


def _per_second(rate: float) -> str:
    if rate >= 1:
        return f"{nice_number(round(rate))}/s"
    return f"{rate * 60:.1f} a minute"


def _seconds(duration_s: float) -> str:
    return f"{duration_s:.0f} s" if duration_s >= 1 else f"{duration_s * 1000:.0f} ms"


def rate_in_words(run: Run) -> str:
    """Return a sentence on the rate of stalls over the run's threshold, with 95 % limits. Return "" for a run of an
    older version, which has no limits."""
    stalls = run.stalls
    low, high = stalls.per_second_low, stalls.per_second_high
    if low is None or high is None:
        return ""
    over = nice_ns(stalls.threshold_ns)
    if stalls.count == 0:
        text = f"no stall over {over} in {nice_ns(run.rated_s * 1e9)}: the true rate is below {_often(high)} (95 %)"
    else:
        between = f"between {_often(low)} and {_often(high)}"
        text = f"over {over}: {_often(stalls.per_second)}; the true rate is {between} (95 %)"
    return text + ", if stalls are independent"


def _often(per_second: float) -> str:
    """Return a rate for people: per second if it is at least 0.1 a second, else per hour."""
    return f"{nice_number(per_second)} a second" if per_second >= 0.1 else f"{nice_number(per_second * 3600)} an hour"


def import_line(run: ImportedRun) -> str:
    """Return one line that describes a run imported from another tool."""
    curve = imported_curve(run)
    p50, p999 = (nice_ns(curve_value_at(curve, p)) for p in (50.0, 99.9))
    figures = f"p50 {p50}, p99.9 {p999}, max {nice_ns(run.max_ns)}, {run.count:,} samples"
    return f"{clean(run.label, LABEL)} ({clean(run.origin, ID)}): {clean(run.measures, LABEL)}, {figures}"
