"""Show how runs differ from a baseline, and whether they pass a gate."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from jitter_workshop.flow.chapters.judging import judge_pair
from jitter_workshop.flow.measuring.comparing import relation
from jitter_workshop.model.curve import Comparison, ComparisonRow
from jitter_workshop.model.run import INTENDED, Run, of_transit
from jitter_workshop.model.text import MESSAGE, SHORT, WORD, clean, many, shortened
from jitter_workshop.presenter.runs import effect, effect_table, one_run
from jitter_workshop.presenter.text.lines import Lines, table_lines, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.stats import sample_size
from jitter_workshop.stats.comparison import (
    MAX,
    NEAR,
    NEAR_MEANS,
    STALLS_PREFIX,
    STOLEN,
    amount,
    headline_measures,
    measure_name,
    ratio_told,
)
from jitter_workshop.stats.effect import count_effects, effects_of_change
from jitter_workshop.stats.figures import KnownRun
from jitter_workshop.stats.gate import Gate, GateVerdict
from jitter_workshop.stats.scale import ratio_text

NARROWEST, WIDEST = 40, 80
_MOST_COLUMNS = 3
_NARROW = 60
"""The width in cells below which each of several runs has a table of its own."""
_TWO_CLOCKS = (
    "The result above tells latency, from when a message was due. This table tells transit, from when it was ready."
)
_WITHOUT_PROOF = "Single runs prove nothing: two runs of the same thing differ too."


def comparison_lines(
    found: Sequence[Comparison], baseline: Run, others: Sequence[Run], metric: str, width: int, wanted: str | None
) -> Lines:
    """Return one comparison in full, or several comparisons as one table. The table has one column for each run. If
    the table would have too many columns, it has one row for each run instead. On a narrow terminal, each run has its
    own table. ``wanted``: a measure that a table of many runs must contain.
    """
    width = min(width, WIDEST)
    if len(found) == 1:
        return _one(found[0], baseline, others[0], metric, width)
    names = ["A", *(f"B{n}" for n in range(1, len(found) + 1))]
    lines = [Text(f"{len(found)} runs against A · {clean(metric, SHORT)}"), Text(), *_who("A", baseline, (), width)]
    for name, other, one in zip(names[1:], others, found, strict=True):
        lines += _who(name, other, one.differences, width)
    alike = [(n, b, c) for n, b, c in zip(names[1:], others, found, strict=True) if c.comparable]
    if alike:
        heads, comparable = [n for n, _, _ in alike], [c for _, _, c in alike]
        runs = [baseline, *(b for _, b, _ in alike)]
        marks = [_marks(one, metric) for one in runs]
        measures: Collection[str] = {row.measure for one in comparable for row in one.rows}
        if width < _NARROW:
            # A column for each run would cut the figures: each run has a table of its own.
            for head, one, mark in zip(heads, comparable, marks[1:], strict=True):
                rows = _in_short(_by_measure([head], [one], [marks[0], mark]))
                lines += [Text(), *table_lines(rows, width, right=range(1, 4), gap=1), *near(rows, width)]
            rows = []
        elif len(alike) <= _MOST_COLUMNS:
            rows = _by_measure(heads, comparable, marks)
        else:
            measures = headline_measures(comparable, baseline.workload, wanted)
            rows = _by_run(heads, [shortened(one.label or one.id, WORD) for one in runs], comparable, measures, marks)
        head_lines = 1 if len(alike) <= _MOST_COLUMNS else 2
        lines += [Text(), *table_lines(rows, width, right=range(1, 9), gap=1, head=head_lines)] if rows else []
        lines += [*_legend(marks, measures, width), *near(rows, width)]
        if len(alike) > _MOST_COLUMNS and width >= _NARROW:
            lines += [Text(), *wrap("To see all rows of each run, use --json, or compare fewer runs at a time.", width)]
    return [*lines, Text(), *wrap(_WITHOUT_PROOF, width)]


def _one(found: Comparison, baseline: Run, other: Run, metric: str, width: int) -> Lines:
    """Return a comparison of two runs: the runs, the table, and sentences on the differences."""
    lines: Lines = []
    if baseline.label or other.label:
        lines += wrap(
            f"{shortened(baseline.label or baseline.id, SHORT)} → {shortened(other.label or other.id, SHORT)}", width
        )
    lines += [*wrap(f"{baseline.id} → {other.id} · {clean(metric, SHORT)}", width), Text()]
    if found.comparable and metric == baseline.main_histogram:
        both = KnownRun(baseline), KnownRun(other)
        related = relation(baseline, other)
        lines += [
            *effect.result_of_two_runs(judge_pair(effects_of_change(*both), both, related), both, width).lines,
            Text(),
        ]
        if any(one.timeless for one in both):
            lines += [
                *effect_table.two_run_table(count_effects(*both), width, one_run.origin_of(both[0]), related),
                Text(),
            ]
    if found.rows:
        marks = [_marks(one, metric) for one in (baseline, other)]
        narrow = width < _NARROW
        heads = ["A", "B"] if narrow else [shortened(baseline.label or "A", WORD), shortened(other.label or "B", WORD)]
        rows = [["", *heads, "B/A"]]
        rows += [["", baseline.mark, other.mark, ""]] if baseline.mark or other.mark else []
        for row in found.rows:
            values = [amount(row.measure, value) for value in (row.a, row.b)]
            rows.append([measure_name(row.measure), *_marked(values, row.measure, marks), ratio_told(row)])
        rows = _in_short(rows) if narrow else rows
        lines += [
            *table_lines(rows, width, right=(1, 2, 3), gap=1 if narrow else 2),
            *_legend(marks, {row.measure for row in found.rows}, width),
            *near(rows, width),
            *_clocks_told(metric, baseline, other, width),
            Text(),
        ]
    return lines + wrap(clean(found.text, MESSAGE), width)


def _clocks_told(metric: str, baseline: Run, other: Run, width: int) -> Lines:
    """Return the sentence on two clocks, if the table's histogram is not the one of the result above it; else []."""
    due = all(run.latency_histogram == INTENDED for run in (baseline, other))
    return wrap(_TWO_CLOCKS, width) if due and metric == baseline.main_histogram else []


def _who(name: str, run: Run, unlike: Sequence[str], width: int) -> Lines:
    mark = f" · {run.mark}" if run.mark else ""
    lines = wrap(f"{clean(run.label, SHORT) + ' · ' if run.label else ''}{run.id}{mark}", width, f"{name:<4}")
    return lines + (wrap(f"not compared: {'; '.join(unlike)}", width, "    ") if unlike else [])


def _by_measure(
    heads: Sequence[str], found: Sequence[Comparison], marks: Sequence[Mapping[str, str]]
) -> list[list[str]]:
    """Return a row per measure, with two columns per run: the value, and its ratio to run A. ``marks``: the marks of
    each run, run A first."""
    of = [{row.measure: row for row in one.rows} for one in found]
    rows = [["", "A", *(cell for head in heads for cell in (head, f"{head}/A"))]]
    for measure in sorted({name for known in of for name in known}, key=_place):
        values = [next(known[measure].a for known in of if measure in known)]
        values += [known[measure].b if measure in known else None for known in of]
        a, *cells = _marked([amount(measure, value) for value in values], measure, marks)
        ratios = [ratio_told(known[measure]) if measure in known else "–" for known in of]
        rows.append([measure_name(measure), a, *(cell for pair in zip(cells, ratios, strict=True) for cell in pair)])
    return rows


def _by_run(
    heads: Sequence[str],
    labels: Sequence[str],
    found: Sequence[Comparison],
    measures: Sequence[str],
    marks: Sequence[Mapping[str, str]],
) -> list[list[str]]:
    """Return the two lines of the head, then a row per run, run A first. A row has five measures; the first and the
    fourth are followed by their ratio to run A."""
    rows = [["", *line] for line in zip(*map(_head, measures), strict=True)]
    for head_line, ratio in zip(rows, ("", "/A"), strict=True):
        head_line[2:2], head_line[6:6] = [ratio], [ratio]
    of = [{row.measure: row for row in one.rows} for one in found]
    first = {m: next((known[m].a for known in of if m in known), None) for m in measures}
    own = {m: ComparisonRow(m, None, value, None) for m, value in first.items() if value is not None}
    for head, label, known, mark in zip(["A", *heads], labels, [own, *of], marks, strict=True):
        cells = [amount(m, known[m].b if m in known else None) for m in measures]
        cells = [_marked([cell], m, [mark])[0] for cell, m in zip(cells, measures, strict=True)]
        ratios = [
            "" if head == "A" else ratio_told(known[m]) if m in known else "–" for m in (measures[0], measures[3])
        ]
        rows.append([f"{head:<4}{label}", cells[0], ratios[0], *cells[1:4], ratios[1], cells[4]])
    return rows


def _in_short(rows: Iterable[Sequence[str]]) -> list[list[str]]:
    """Return the rows with shorter names of measures, for a narrow terminal."""
    return [[row[0].replace("stalls over ", "stalls >"), *row[1:]] for row in rows]


def _head(measure: str) -> tuple[str, str]:
    """Return the two lines of a measure's head, as short as they can be. The first line is mostly ""."""
    if measure == STOLEN:
        above, _, name = measure_name(measure).rpartition(" ")
        return above, name
    return "", "worst" if measure == MAX else measure_name(measure).replace("stalls over", ">").replace("> ", ">")


def _place(measure: str) -> tuple[int, float]:
    """Return the sort key of a measure: stalls (the longest first), time in stalls, mean, percentiles, maximum."""
    if measure.startswith(STALLS_PREFIX):
        return 0, -float(measure.removeprefix(STALLS_PREFIX).removesuffix("_ns"))
    if measure.startswith("p"):
        return 3, float(measure.removeprefix("p"))
    return {STOLEN: 1, "mean": 2, MAX: 4}[measure], 0.0


def near(rows: Iterable[Iterable[str]], width: int) -> Lines:
    """Return the meaning of the sign for values that the clock cannot tell apart; [] if no cell has this sign."""
    return wrap(NEAR_MEANS, width, "", "   ", style="dim") if any(NEAR in cells for cells in rows) else []


def _marks(run: Run, metric: str) -> dict[str, str]:
    """Return measure → mark for the percentiles that a run has. A mark means that few samples or stalls are beyond the
    percentile."""
    summary = run.histograms.get(metric)
    if summary is None:
        return {}
    if metric == run.main_histogram:
        marks = sample_size.marks_of_run(of_transit(run))
    else:
        marks = sample_size.marks_of_run(run) if metric == INTENDED else sample_size.of_count(summary.count)
    return {f"p{p}": mark for p, mark in marks.items() if summary.percentiles.get(p) is not None}


def _marked(cells: Iterable[str], measure: str, marks: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the values of a measure, each followed by its run's mark."""
    return sample_size.marked(cells, [one.get(measure, "") for one in marks], "")


def _legend(marks: Sequence[Mapping[str, str]], measures: Collection[str], width: int) -> Lines:
    """Return the meaning of the marks of the shown measures, after a blank line; [] without marks."""
    found = sample_size.explain_marks(mark for one in marks for measure, mark in one.items() if measure in measures)
    return [Text(), *(line for one in found for line in _hanging(one, width))] if found else []


def _hanging(said: str, width: int) -> Lines:
    """Return a mark's meaning. If it needs several lines, the further lines begin below the first word of the
    meaning."""
    mark, _, words = said.partition("  ")
    return [Text(said)] if len(said) <= width else wrap(words.strip(), width, f"{mark}  ")


def gated(gate: Gate, verdicts: Sequence[GateVerdict], width: int) -> Lines:
    """Return lines with the gate's result. They name each run that failed. A run fails if its measure is higher than
    that of run A by more than the gate allows.
    """
    failed = [v for v in verdicts if v.higher]
    than = "than A" + (f" by more than {gate.tolerance * 100:g} %" if gate.tolerance else "")
    name = measure_name(gate.measure)
    if not failed:
        none = "the run is not" if len(verdicts) == 1 else "no run is"
        return wrap(f"gate {name} passed: {none} higher {than}", width)
    count = f"{len(failed)} of {many(len(verdicts), 'run')} {'is' if len(failed) == 1 else 'are'}"
    lines = wrap(f"gate {name} not passed: {count} higher {than}", width)
    for one in failed:
        ratio = f", {ratio_text(one.ratio)}" if one.ratio is not None else ""
        values = f"{amount(gate.measure, one.b)} against {amount(gate.measure, one.a)}"
        lines += wrap(f"{clean(one.label or one.run, SHORT)}: {values}{ratio}", width, "  ")
        if one.stalls_beyond is not None:
            stalls = many(one.stalls_beyond, "stall")
            lines += wrap(f"only {stalls} beyond this value: chance alone can cause such a difference", width, "    ")
    return lines
