"""Choose the figure of a command's run, and read its value.

The figure is a time of the run, or a number in the command's output. It can also be a number in a file that the command
writes. The figure's value is zero or more, because a proof compares ratios. Output and files of the command are
untrusted. They are read within limits, and damaged content raises an error whose message is one sentence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jitter_workshop.errors import MeasureError, SessionError, UsageError
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import LABEL, MOST_ENTRIES, MOST_NAMES, NAME, PATH, REASON, WORD, clean
from jitter_workshop.model.verdict import CommandFigure
from jitter_workshop.session import foreign
from jitter_workshop.session.foreign_text import MAX_NS, UNITS, broken, load_json
from jitter_workshop.stats.comparison import HELD_UP, MATCH, MEAN, NS, USER, WALL
from jitter_workshop.stats.curve import SOLID_BEYOND, curve_value_at, imported_curve

OF_TIMES = {"wall": WALL, "user": USER, "held-up": HELD_UP}
"""The value of ``--metric`` → the measure, for a command that writes no figure of its own."""
SEARCHED = 4 << 20
"""Bytes at the end of a command's output that ``--match`` searches."""
PERCENTILE = "p99"
_PERCENTILE = re.compile(r"p([0-9]{1,2}(?:\.[0-9]{1,6})?)", re.ASCII)
_LONGEST_PATTERN = 1_000
_LARGEST = 1e300
_PYPERF_UNITS = {"second": "s", "byte": "byte", "integer": "count"}
"""pyperf's units → the units that are shown."""


@dataclass(frozen=True, slots=True)
class Metric:
    """Hold the metric of a proof: the number that is read from each run of the command, and then compared. At most one
    of ``pattern``, ``histogram`` and ``pyperf`` is set.

    - ``measure``: the name of this number, as in the field ``measure`` of ``CommandFigure``.
    - ``pattern``: a regular expression that finds the number in the command's output, or "".
    - ``histogram``: the path of the histogram file that the command writes, or "".
    - ``pyperf``: the path of the pyperf file that the command writes, or "".
    - ``unit``: the value of ``--unit``, or "".
    - ``benchmark``: the name of the benchmark to read from a pyperf file with several benchmarks, else "".
    """

    measure: str
    pattern: str = ""
    histogram: str = ""
    pyperf: str = ""
    unit: str = ""
    benchmark: str = ""

    @property
    def file(self) -> Path | None:
        """Return the file that the command writes; None if the figure is not read from a file."""
        path = self.histogram or self.pyperf
        return Path(path) if path else None

    @property
    def options(self) -> tuple[str, ...]:
        """Return the options of ``prove`` that choose this metric."""
        own = next((name for name, measure in OF_TIMES.items() if measure == self.measure), "")
        chosen = self.benchmark if self.pyperf else self.measure if self.histogram else own
        pairs = (
            ("--metric", chosen),
            ("--match", self.pattern),
            ("--hlog", self.histogram),
            ("--pyperf", self.pyperf),
            ("--unit", self.unit),
        )
        return tuple(word for option, value in pairs if value for word in (option, value))

    def of_output(self, output: str) -> CommandFigure:
        """Return the figure at the last match of the pattern in a command's output. Raise MeasureError if nothing
        matches, or if the matched text is not a number of zero or more."""
        last = None
        for last in re.finditer(self.pattern, output):  # noqa: B007 - the last one counts
            pass
        if last is None:
            where = (
                f"the last {SEARCHED >> 20} MiB of the command's output" if len(output) >= SEARCHED else "its output"
            )
            raise MeasureError(f"--match finds nothing in {where}", "try the pattern with 'CMD | grep -E PATTERN'")
        text = last[1] or ""
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 <= value < _LARGEST:
            raise MeasureError(f"--match finds '{clean(text, WORD)}', which is not a number of zero or more")
        if self.unit in UNITS:
            return _time(MATCH, value * UNITS[self.unit], "the figure that --match finds")
        return CommandFigure(MATCH, self.unit, value)

    def of_file(self, data: bytes) -> tuple[CommandFigure, tuple[str, ...]]:
        """Read the figure from the file that a command wrote. Return the figure, and notes for the report of the proof.
        Raise MeasureError if the file has no usable figure."""
        name = clean(self.histogram or self.pyperf, PATH)
        try:
            return self._of_histogram(data, name) if self.histogram else (self._of_pyperf(data, name), ())
        except SessionError as error:
            raise MeasureError(f"the command wrote a file that cannot be used: {error.message}", error.advice) from None

    def _of_histogram(self, data: bytes, name: str) -> tuple[CommandFigure, tuple[str, ...]]:
        runs = foreign.parse_foreign_file(data, name, unit=self.unit or None)
        if len(runs) > 1:
            tags = ", ".join(clean(run.label, LABEL) for run in runs[:MOST_ENTRIES])
            broken(name, f"it has several histograms ({tags})", advice="let the command write only one histogram")
        percentile = self.measure.removeprefix("p")
        beyond = round(runs[0].count * (100 - float(percentile)) / 100)
        if float(percentile) > 50 and beyond < SOLID_BEYOND:
            few = f"only {beyond} of its {runs[0].count:,} samples are larger than {self.measure}"
            broken(name, f"{few}, and {SOLID_BEYOND} are needed", advice="choose a lower percentile with --metric")
        value = curve_value_at(imported_curve(runs[0]), float(percentile))
        if value is None:
            broken(name, f"it has no value for {self.measure}", advice="choose a lower percentile with --metric")
        return CommandFigure(self.measure, NS, float(value)), runs[0].notes

    def _of_pyperf(self, data: bytes, name: str) -> CommandFigure:
        value = load_json(data, name)
        common = value.get("metadata")
        found = dict(_benchmarks(value, common if isinstance(common, dict) else {}))
        if not found:
            broken(name, "it has no benchmark of pyperf")
        if self.benchmark and self.benchmark not in found:
            listed = ", ".join(clean(one, LABEL) for one in list(found)[:MOST_NAMES])
            broken(name, f"it has no benchmark '{clean(self.benchmark, LABEL)}'", advice=f"it has {listed}")
        if not self.benchmark and len(found) > 1:
            listed = ", ".join(clean(one, LABEL) for one in list(found)[:MOST_NAMES])
            broken(name, f"it has {len(found)} benchmarks", advice=f"choose one with --metric: {listed}")
        unit, values = found[self.benchmark] if self.benchmark else next(iter(found.values()))
        if not values:
            broken(name, "its benchmark has no values")
        if not all(_is_figure(one) for one in values):
            broken(name, "a value is not a number of zero or more")
        if unit not in _PYPERF_UNITS:
            broken(name, f"pyperf has no unit '{clean(unit, WORD)}'")
        mean = math.fsum(values) / len(values)
        known = _PYPERF_UNITS[unit]
        return _time(MEAN, mean * UNITS[known], name) if known in UNITS else CommandFigure(MEAN, known, mean)


def metric_of_options(
    metric: str | None,
    match: str | None = None,
    hlog: str | None = None,
    pyperf: str | None = None,
    unit: str | None = None,
) -> Metric:
    """Return the metric that these options of ``prove`` choose. Raise UsageError if an option is invalid, or if two
    options contradict each other."""
    given = [name for name, value in (("--match", match), ("--hlog", hlog), ("--pyperf", pyperf)) if value is not None]
    if len(given) > 1:
        raise UsageError(
            f"{given[0]} and {given[1]} contradict each other", "give only one of the two: a proof compares one figure"
        )
    unit = {"µs": "us"}.get(unit, unit) if unit is not None else None
    if unit is not None and (unit != clean(unit, WORD) or not unit):
        raise UsageError(f"--unit must be a word of 1 to {WORD} characters")
    if match is not None:
        if metric is not None:
            raise UsageError("--match is the metric already", "leave --metric out")
        if unit is None:
            raise UsageError("--match needs --unit", "give ns, us, ms, s, or another word such as MB/s")
        return Metric(MATCH, pattern=_pattern(match), unit=unit)
    if hlog is not None:
        if unit is not None and unit not in UNITS:
            raise UsageError(f"the unit of a histogram cannot be {unit}", f"choose one of {', '.join(UNITS)}")
        found = _PERCENTILE.fullmatch(metric or PERCENTILE)
        if found is None or not float(found[1]) > 0:
            raise UsageError(
                f"a histogram has no '{clean(metric, WORD)}'",
                "choose a percentile with --metric, such as p99.9; the maximum is one event and proves nothing",
            )
        return Metric(metric or PERCENTILE, histogram=_path(hlog, "--hlog"), unit=unit or "")
    if unit is not None:
        raise UsageError("--unit is for --match and --hlog")
    if pyperf is not None:
        return Metric(MEAN, pyperf=_path(pyperf, "--pyperf"), benchmark=metric or "")
    if metric is not None and metric not in OF_TIMES:
        raise UsageError(
            f"there is no metric '{clean(metric, WORD)}'",
            f"choose {', '.join(OF_TIMES)}, or a figure of the command by --match, --hlog or --pyperf",
        )
    return Metric(OF_TIMES[metric or "wall"])


def _pattern(match: str) -> str:
    if len(match) > _LONGEST_PATTERN:
        raise UsageError(f"--match is longer than {_LONGEST_PATTERN:,} characters")
    try:
        groups = re.compile(match).groups
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"--match is no regular expression: {clean(error, REASON)}") from None
    if groups != 1:
        raise UsageError(
            f"--match must have one pair of brackets around the figure, not {groups}", "for example 'p99=([0-9.]+)'"
        )
    return match


def _path(text: str, option: str) -> str:
    if not text or "\0" in text or len(text) > PATH:
        raise UsageError(f"{option} needs the path of a file")
    return text


def _time(measure: str, ns: float, name: str) -> CommandFigure:
    if ns > MAX_NS:
        raise MeasureError(f"{name} is longer than thirty days", "give its unit: --unit ns, us, ms or s")
    return CommandFigure(measure, NS, ns)


def _benchmarks(value: dict[str, Any], common: dict[str, Any]) -> Iterator[tuple[str, tuple[str, Sequence[Any]]]]:
    """Yield (name, (unit, values)) for each benchmark in a pyperf file. ``common``: the metadata of the whole file.
    Entries that are not benchmarks are left out.
    """
    listed = value.get("benchmarks")
    for number, one in enumerate(listed if isinstance(listed, list) else []):
        if not isinstance(one, dict) or not isinstance(one.get("runs"), list):
            continue
        own = one.get("metadata")
        about = {**common, **(own if isinstance(own, dict) else {})}
        runs = [run.get("values") for run in one["runs"] if isinstance(run, dict)]
        values = [v for found in runs if isinstance(found, list) for v in found]
        yield str(about.get("name", f"benchmark {number + 1}"))[:NAME], (str(about.get("unit", "second")), values)


def _is_figure(value: Any) -> bool:
    # A comparison takes numbers of any size; infinity and NaN are outside.
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LARGEST
