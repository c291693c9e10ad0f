"""Show comparisons as text for a terminal, a file or a mail: at most 80 columns, no escapes."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence

from jitter_workshop.model.curve import Comparison, ComparisonRow
from jitter_workshop.model.run import Run
from jitter_workshop.model.text import clean
from jitter_workshop.stats import sample_size
from jitter_workshop.stats.comparison import MAX, STALLS_PREFIX, STOLEN, amount, headline_measures, measure_name

WIDTH = 80
_LABEL, _COLUMN, _RATIO = 26, 20, 10
_NAME, _A, _VALUE, _SHORT = 19, 10, 9, 8
_MOST_COLUMNS = (WIDTH - _NAME - _A) // (_VALUE + _SHORT)
_WITHOUT_PROOF = "Single runs cannot prove anything: the same thing measured twice also differs."


def render_all(
    found: Sequence[Comparison], baseline: Run, others: Sequence[Run], metric: str, wanted: str | None = None
) -> str:
    """Return one comparison as :func:`render`, or several as one table. The table has a column per run, or a line per
    run where the columns would not fit. ``wanted``: a measure that must be in that table. Ends with a line break."""
    if len(found) == 1:
        return render(found[0], baseline, others[0], metric)
    names = ["A", *(f"B{n}" for n in range(1, len(found) + 1))]
    lines = [f"{len(found)} runs against A · {clean(metric, 30)}", "", _who(names[0], baseline, ())]
    lines += [_who(n, b, c.differences) for n, b, c in zip(names[1:], others, found, strict=True)]
    compared = [(n, b, c) for n, b, c in zip(names[1:], others, found, strict=True) if c.comparable]
    if compared:
        runs = [c for _, _, c in compared]
        heads = [n for n, _, _ in compared]
        marks = [marks_of(one, metric) for one in (baseline, *(b for _, b, _ in compared))]
        if len(compared) <= _MOST_COLUMNS:
            lines += ["", *_by_measure(heads, runs, marks)]
            lines += _legend(marks, {row.measure for one in runs for row in one.rows})
        else:
            labels = [clean(one.label or one.id, 15) for one in (baseline, *(b for _, b, _ in compared))]
            measures = headline_measures(runs, baseline.workload, wanted)
            lines += ["", *_by_run(heads, labels, runs, measures, marks), *_legend(marks, measures)]
            lines += ["", "Every row of each: --json, or fewer runs at a time."]
    return "\n".join([*lines, "", *textwrap.wrap(_WITHOUT_PROOF, WIDTH)]) + "\n"


def render(comparison: Comparison, baseline: Run, other: Run, metric: str) -> str:
    """Return the two runs, the rows, and the comparison's text, ending with a line break."""
    lines = [f"{baseline.id} → {other.id} · {clean(metric, 30)}", ""]
    if baseline.label or other.label:
        lines.insert(0, f"{clean(baseline.label or baseline.id, 34)} → {clean(other.label or other.id, 34)}")
    if comparison.rows:
        ours, theirs = marks_of(baseline, metric), marks_of(other, metric)
        lines.append(_line("", clean(baseline.label or "A", 18), clean(other.label or "B", 18), "B/A"))
        for row in comparison.rows:
            a, b = amount(row.measure, row.a), amount(row.measure, row.b)
            marks = ours.get(row.measure, ""), theirs.get(row.measure, "")
            lines.append(_line(measure_name(row.measure), a, b, ratio_text(row.ratio), *marks))
        lines += [*_legend((ours, theirs), {row.measure for row in comparison.rows}), ""]
    lines += textwrap.wrap(clean(comparison.text, 2_000), WIDTH)
    return "\n".join(lines) + "\n"


def ratio_text(ratio: float | None) -> str:
    """Return a ratio in three digits: ``1.15×``, ``57×``, ``1/57``; ``–`` where unknown, ``=`` where the values are
    equal."""
    if ratio is None:
        return "–"
    if ratio == 1.0:
        return "="
    if ratio <= 0:
        return "0"
    if ratio >= 9.95:
        return f"{ratio:,.0f}×"
    return f"{ratio:.2f}×" if ratio > 0.1 else f"1/{1 / ratio:,.0f}"


def marks_of(run: Run, metric: str) -> dict[str, str]:
    """Return measure → mark for the percentiles that a run knows. A mark shows that few samples or stalls lie
    beyond."""
    summary = run.histograms.get(metric)
    if summary is None:
        return {}
    marks = sample_size.of_run(run) if metric == run.main_histogram else sample_size.of_count(summary.count)
    return {f"p{p}": mark for p, mark in marks.items() if summary.percentiles.get(p) is not None}


def _legend(marks: Sequence[Mapping[str, str]], measures: Collection[str]) -> list[str]:
    """Return the meaning of the marks of the shown measures, after a blank line; [] without marks."""
    found = sample_size.legend(mark for one in marks for measure, mark in one.items() if measure in measures)
    return ["", *found] if found else []


def _line(name: str, a: str, b: str, ratio: str, mark_a: str = "", mark_b: str = "") -> str:
    """Return a row; a mark stands in the blank behind its value."""
    a, b = f"{a:>{_COLUMN}}{mark_a or ' '}", f"{b:>{_COLUMN - 1}}{mark_b or ' '}"
    return f"{name:<{_LABEL}}{a}{b}{ratio:>{_RATIO - 1}}".rstrip()


def _who(name: str, run: Run, unlike: Sequence[str]) -> str:
    said = f"{name:<4}{clean(run.label, 34) + ' · ' if run.label else ''}{run.id}"
    why = textwrap.wrap("not compared: " + "; ".join(unlike), WIDTH - 4) if unlike else []
    return "\n    ".join([said, *why])


def _by_measure(heads: Sequence[str], found: Sequence[Comparison], marks: Sequence[Mapping[str, str]]) -> list[str]:
    """Return a line per measure, with two columns per run: its value, and the ratio to A. ``marks``: A's first."""
    of = [{row.measure: row for row in one.rows} for one in found]
    lines = [
        f"{'':<{_NAME}}{'A':>{_A}}" + "".join(f"{head:>{_VALUE}}{head + '/A':>{_SHORT}}" for head in heads).rstrip()
    ]
    for measure in sorted({name for rows in of for name in rows}, key=_place):
        a = next(rows[measure].a for rows in of if measure in rows)
        line = f"{measure_name(measure):<{_NAME}}{amount(measure, a):>{_A}}"
        before = marks[0].get(measure, "")
        for rows, mark in zip(of, marks[1:], strict=True):
            row = rows.get(measure)
            line += _value(amount(measure, row.b if row else None), before)
            line += _behind(_ratio(row), mark.get(measure, ""))
            before = ""
        lines.append(line.rstrip())
    return lines


def _by_run(
    heads: Sequence[str],
    labels: Sequence[str],
    found: Sequence[Comparison],
    measures: Sequence[str],
    marks: Sequence[Mapping[str, str]],
) -> list[str]:
    """Return a line per run, A first, with five measures; the first and the fourth have their ratio to A."""
    stalls, stolen, middle, tail, worst = measures
    lines = [
        f"{'':<{_NAME}}{_short(stalls):>{_VALUE}}{'/A':>{_SHORT}}{'stolen':>10}{_short(middle):>{_VALUE}}"
        f"{_short(tail):>{_VALUE}}{'/A':>{_SHORT}}{'worst':>8}"
    ]
    of = [{row.measure: row for row in one.rows} for one in found]
    first = {m: next((rows[m].a for rows in of if m in rows), None) for m in measures}
    own = [{m: ComparisonRow(m, None, value, None) for m, value in first.items() if value is not None}, *of]
    for head, label, rows, mark in zip(["A", *heads], labels, own, marks, strict=True):
        values = {m: amount(m, rows[m].b if m in rows else None) for m in measures}
        ratios = ["" if head == "A" else _ratio(rows.get(m)) for m in (stalls, tail)]
        lines.append(
            f"{head:<4}{label:<{_NAME - 4}}{values[stalls]:>{_VALUE}}{ratios[0]:>{_SHORT}}{values[stolen]:>10}"
            f"{values[middle]:>{_VALUE}}{_value(values[tail], mark.get(middle, ''))}"
            f"{_behind(ratios[1], mark.get(tail, ''))}{values[worst]:>8}".rstrip()
        )
    return lines


def _value(value: str, before: str) -> str:
    """Return a column, with the mark of the value before it in its first blank."""
    return f"{before}{value:>{_VALUE - len(before)}}"


def _behind(ratio: str, mark: str) -> str:
    """Return a ratio's column, with the mark of its value in its first blank."""
    return f"{mark}{ratio:>{_SHORT - len(mark)}}"


def _ratio(row: ComparisonRow | None) -> str:
    """Return a ratio in at most seven characters, so that columns stay apart."""
    if row is None:
        return "–"
    if row.ratio is not None and row.ratio != 1.0 and not 1e-4 < row.ratio < 1e4 and row.ratio > 0:
        return ">9,999×" if row.ratio > 1 else "<1/9999"
    return ratio_text(row.ratio)


def _short(measure: str) -> str:
    return measure_name(measure).replace("stalls over", ">").replace("> ", ">")


def _place(measure: str) -> tuple[int, float]:
    """Return the place of a measure in a table: stalls from the longest, stolen time, mean, percentiles, maximum."""
    if measure.startswith(STALLS_PREFIX):
        return 0, -float(measure.removeprefix(STALLS_PREFIX).removesuffix("_ns"))
    if measure.startswith("p"):
        return 3, float(measure.removeprefix("p"))
    return {STOLEN: 1, "mean": 2, MAX: 4}[measure], 0.0
