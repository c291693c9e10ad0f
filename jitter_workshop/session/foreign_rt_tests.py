"""Read the histograms of cyclictest and oslat, two programs of rt-tests, as text and as JSON (``--json``).

cyclictest (``-h``, ``-H``, ``--histfile``) measures how late a timer wakes a sleeping thread. Bucket N has the
latencies from N to below N+1, in whole µs, or in whole ns with ``-N``. The text does not state its unit. The text's
footer has the number of samples that were too large for the histogram. The JSON lacks this number: it is the number of
cycles minus the sum of the buckets.

oslat measures the gaps between readings of the clock in a busy loop, as our ``spin`` does. Bucket N has the gaps of at
most N µs that are too long for the previous bucket. The last bucket also has all longer gaps. With ``-W``, the names of
buckets have decimals. Minimum and maximum are then in ns in the JSON, but in µs in the text.

The samples of all threads are added up.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from jitter_workshop.model.curve import ImportedRun
from jitter_workshop.model.text import WORD, clean
from jitter_workshop.session.foreign_text import (
    HEAD_BYTES,
    MAX_BINS,
    MAX_COLUMNS,
    UNITS,
    broken,
    decimal,
    is_json,
    load_json,
    moment,
    numbered_lines,
    run_of,
    whole_number_of_json,
    whole_number_of_text,
)

N = TypeVar("N", int, Fraction)

_US = 1_000
_MOST_CPUS = 16
"""The most CPUs that a note names."""
_COMMAND = 4_096
"""The largest length of a command line that is read."""
_JSON = re.compile(rb'"cmdline:?"\s*:\s*"(?:[^"\\\s]{0,200}/)?(cyclictest|oslat)[ "\\]')
_TEXT_OF_CYCLICTEST = re.compile(rb"^(?:# Histogram[ \t\r]*$|# (?:Min|Max) Latencies:|T: *[0-9]+ \()", re.MULTILINE)
_TEXT_OF_OSLAT = re.compile(rb"^ *[0-9]{1,12}(?:\.[0-9]{1,6})? \(us\):\t", re.MULTILINE)
_FOOTER = re.compile(r"# (Total|Min Latencies|Avg Latencies|Max Latencies|Histogram Overflows):(.*)", re.DOTALL)
_NEEDED = ("Total", "Min Latencies", "Max Latencies", "Histogram Overflows")
_DIGITS = frozenset("0123456789")
_LONGER = "measure with cyclictest -h 1000 (or a larger number if latencies are longer than 1000 µs)"
_VERSION = re.compile(r"oslat V ([0-9][0-9A-Za-z.]{0,10})")
_SUMMARY = ("Core", "Minimum", "Maximum", "Duration")
_OVERFLOWS = "(including overflows)"


def detect(data: bytes) -> bool:
    """Return True for a file of cyclictest or oslat. A JSON file is recognized by its command line, a text by its
    comments or rows."""
    return _tool(data) is not None


def parse(data: bytes, name: str, unit: str | None) -> tuple[ImportedRun, ...]:
    """Return one run with the samples of all threads. For a file of oslat, ``unit`` must be "us" or None, because
    oslat's buckets state their unit. Raise SessionError for a damaged file."""
    if _tool(data) == "cyclictest":
        return (_cyclictest_json(data, name, unit) if is_json(data) else _cyclictest_text(data, name, unit),)
    if unit not in (None, "us"):
        broken(name, "oslat's buckets are in µs", advice="leave out --unit")
    return (_oslat_json(data, name) if is_json(data) else _oslat_text(data, name),)


def _tool(data: bytes) -> str | None:
    if is_json(data):
        found = _JSON.search(data[:HEAD_BYTES])
        return found[1].decode() if found else None
    if _TEXT_OF_OSLAT.search(data):
        return "oslat"
    return "cyclictest" if _TEXT_OF_CYCLICTEST.search(data) else None


# The JSON of both -----------------------------------------------------------------------------------------------------


def _threads(
    value: dict[str, Any], name: str, tool: str, required: Collection[str], advice: str
) -> tuple[Counter[str], dict[str, list[int]]]:
    """Return the buckets and the figures of all threads in a JSON file.

    The first dict maps the name of a bucket to its samples, added up over all threads. The second dict maps each key to
    a list with one figure for each thread. The keys are those in ``required``, and ``cpu``. Raise SessionError if a
    thread has no histogram or lacks a required figure.
    """
    threads = value.get("thread")
    if not isinstance(threads, dict) or not 0 < len(threads) <= MAX_COLUMNS:
        broken(name, f"the file has no data on threads of {tool}")
    buckets: Counter[str] = Counter()
    figures: dict[str, list[int]] = {key: [] for key in (*required, "cpu")}
    for key, thread in threads.items():
        where = f"thread {clean(key, WORD)}"
        if not isinstance(thread, dict) or not isinstance(thread.get("histogram"), dict):
            broken(name, f"{where} has no histogram", advice=advice)
        for word, known in figures.items():
            figure = whole_number_of_json(thread.get(word))
            if figure is not None:
                known.append(figure)
            elif word in required:
                broken(name, f"{where} has no {word}")
        for bucket, samples in thread["histogram"].items():
            many = whole_number_of_json(samples)
            if many is None or decimal(bucket) is None:
                broken(name, f"{where} has an invalid bucket")
            buckets[bucket] += many
    return buckets, figures


def _header(value: dict[str, Any]) -> dict[str, Any]:
    """Return version, start and host of a JSON file."""
    system = value.get("sysinfo")
    return {
        "tool_version": _text_of(value, "rt_test_version"),
        "started_at": moment(_text_of(value, "start_time")),
        "host": system.get("nodename", "") if isinstance(system, dict) else "",
    }


def _text_of(value: dict[str, Any], key: str) -> str:
    """Return the text that a JSON file has for ``key``; "" if there is none. In files of rt-tests up to 2.x, some keys
    end with a colon."""
    found = value.get(key, value.get(f"{key}:", ""))
    return found if isinstance(found, str) else ""


# cyclictest -----------------------------------------------------------------------------------------------------------


def _cyclictest_json(data: bytes, name: str, unit: str | None) -> ImportedRun:
    value = load_json(data, name)
    named, figures = _threads(value, name, "cyclictest", ("cycles", "min", "max"), _LONGER)
    buckets: Counter[int] = Counter()
    for text, samples in named.items():
        at = whole_number_of_text(text)
        if at is None:
            broken(name, "the file has an invalid bucket")
        buckets[at] += samples
    counted, cycles = buckets.total(), sum(figures["cycles"])
    if counted > cycles:
        broken(name, f"the buckets hold {counted:,} samples, but by the file the run measured only {cycles:,} cycles")
    edges = (min(figures["min"]), max(figures["max"]))
    notes = _added_up(len(figures["min"]), figures["cpu"])
    return _cyclictest(name, buckets, unit or _unit_of(value), cycles - counted, edges, notes, **_header(value))


def _unit_of(value: dict[str, Any]) -> str | None:
    """Return the unit of cyclictest's JSON file, ``ns`` or ``us``; None if the file does not state it. The key
    ``resolution_in_ns`` is 1 for ns (option ``-N``) and 0 for µs. Older files do not have this key: there, ``-N`` in
    the recorded command line decides.
    """
    resolution = value.get("resolution_in_ns")
    if resolution in (0, 1) and not isinstance(resolution, bool):
        return "ns" if resolution else "us"
    words = _text_of(value, "cmdline")[:_COMMAND]
    try:
        given = shlex.split(words)[1:]
    except ValueError:
        return None
    short = any(re.fullmatch(r"-[A-Za-z]*N", word) for word in given)
    return ("ns" if short or "--nsecs" in given else "us") if given else None


def _cyclictest_text(data: bytes, name: str, unit: str | None) -> ImportedRun:
    rows, footer = _table(data, name)
    if not rows:
        broken(name, "the file has no histogram", advice=_LONGER)
    if missing := [key for key in _NEEDED if key not in footer]:
        broken(name, f"the file is cut off: the line '# {missing[0]}:' is missing")
    # ``-H`` adds the threads' sum as a last column, which the footer's minima do not have.
    threads = len(footer["Min Latencies"])
    if not threads or len(next(iter(rows.values()))) not in (threads, threads + 1):
        broken(name, "the footer and the rows have different numbers of columns")
    if any(not threads <= len(footer[key]) <= threads + 1 for key in _NEEDED):
        broken(name, "the lines of the footer have different numbers of columns")
    buckets = {at: sum(row[:threads]) for at, row in rows.items()}
    counted = sum(buckets.values())
    total, lows, highs, beyond = (footer[key][:threads] for key in _NEEDED)
    if sum(total) != counted:
        broken(name, f"the rows hold {counted:,} samples, but the footer says {sum(total):,}")
    return _cyclictest(name, buckets, unit, sum(beyond), (min(lows), max(highs)), _added_up(threads, ()))


def _table(data: bytes, name: str) -> tuple[dict[int, list[int]], dict[str, list[int]]]:
    """Return the rows and the footer of cyclictest's text. The first dict maps each bucket to the counts in its row.
    Rows of zeros are left out. The second dict maps the name of each footer line to its numbers. Raise SessionError if
    the table is damaged.
    """
    rows, footer = dict[int, list[int]](), dict[str, list[int]]()
    last, columns = -1, 0
    for line, text in numbered_lines(data, name):
        if text.startswith("#"):
            if found := _FOOTER.match(text):
                if found[1] in footer:
                    broken(name, "a second histogram begins here", line=line, advice="import one at a time")
                footer[found[1]] = _numbers(found[2], name, line, whole_number_of_text)
            continue
        if not text or text[0] not in _DIGITS or not text.partition(" ")[2].strip("0 \t"):
            # Most rows are zeros and carry no information.
            continue
        at, *row = _numbers(text, name, line, whole_number_of_text)
        if not row or len(row) != (columns or len(row)) or footer:
            broken(name, "this row has more or fewer columns than the rows before it", line=line)
        if at <= last:
            broken(name, "the buckets do not ascend", line=line)
        last, columns = at, len(row)
        rows[at] = row
        if len(rows) > MAX_BINS or len(rows) * len(row) > 4 * MAX_BINS:
            broken(name, "the file has more buckets in use than can be read", line=line, advice="measure in µs")
    return rows, footer


def _cyclictest(
    name: str,
    buckets: Mapping[int, int],
    unit: str | None,
    beyond: int,
    edges: tuple[int, int],
    added: Sequence[str],
    **header: Any,
) -> ImportedRun:
    """Return the run of a cyclictest file. ``buckets``: lowest value → samples. ``unit``: the unit of all values; None
    if the file does not state it. ``beyond``: the number of samples above the histogram. ``edges``: minimum and
    maximum."""
    if not sum(buckets.values()):
        broken(name, "the file has no histogram", advice=_LONGER)
    scale = UNITS[unit or "us"]
    assumed = (
        []
        if unit
        else ["the file does not state its unit: us was assumed (for a file of cyclictest -N, give --unit ns)"]
    )
    return run_of(
        name,
        {(at * scale, at * scale + scale - 1): samples for at, samples in buckets.items()},
        tool="cyclictest",
        measures="timer wake-up latency",
        unit=unit or "us",
        unit_stated=unit is not None,
        beyond=beyond,
        min_ns=edges[0] * scale,
        max_ns=edges[1] * scale + scale - 1,
        notes=(*assumed, *added),
        **header,
    )


# oslat ----------------------------------------------------------------------------------------------------------------


def _oslat_json(data: bytes, name: str) -> ImportedRun:
    value = load_json(data, name)
    named, figures = _threads(value, name, "oslat", ("min", "max"), "write the file again with the tool that made it")
    durations = [one.get("duration") for one in value["thread"].values()]
    known = [float(one) for one in durations if isinstance(one, float | int) and 0 <= one < 1e9]
    scale = 1 if any("." in text for text in named) else _US
    buckets: Counter[Fraction] = Counter()
    for text, samples in named.items():
        buckets[Fraction(text)] += samples
    edges = (min(figures["min"]) * scale, max(figures["max"]) * scale)
    cpus = figures["cpu"] or range(len(figures["min"]))
    return _oslat(name, buckets, edges, cpus, duration_s=max(known, default=None), **_header(value))


def _oslat_text(data: bytes, name: str) -> ImportedRun:
    buckets: dict[Fraction, int] = {}
    columns, version, last, highest = 0, "", False, Fraction(-1)
    summary: dict[str, list[Fraction]] = {}
    for line, text in numbered_lines(data, name):
        if found := _VERSION.match(text):
            version = found[1]
            continue
        # No regular expression matches whole lines: a crafted line could keep it busy for hours.
        key, colon, rest = text.partition(":")
        key, rest = key.strip(), rest.strip()
        if colon and key.endswith(" (us)"):
            upto, row = decimal(key[:-5]), _numbers(rest.removesuffix(_OVERFLOWS), name, line, decimal)
            if upto is None or last or len(row) != (columns or len(row)) or not 0 < len(row) <= MAX_COLUMNS:
                broken(name, "this row does not fit the rows before it", line=line)
            if upto <= highest:
                broken(name, "the buckets do not ascend", line=line)
            highest = upto
            columns, last = len(row), rest.endswith(_OVERFLOWS)
            buckets[upto] = int(sum(row))
            if len(buckets) > MAX_COLUMNS:
                broken(name, "the file has more buckets than oslat makes", line=line)
        elif key in _SUMMARY:
            if key in summary:
                broken(name, "a second table begins here", line=line, advice="import one at a time")
            summary[key] = _numbers(rest.removesuffix("(us)").removesuffix("(sec)"), name, line, decimal)
    if not last or not summary.get("Maximum") or not summary.get("Minimum"):
        broken(name, "the table is cut off", advice="run oslat again and let it finish")
    edges = (round(min(summary["Minimum"]) * _US), round(max(summary["Maximum"]) * _US))
    cpus = tuple(map(int, summary.get("Core", ()))) or range(columns)
    duration_s = float(max(summary["Duration"])) if summary.get("Duration") else None
    return _oslat(name, buckets, edges, cpus, duration_s=duration_s, tool_version=version)


def _oslat(
    name: str, buckets: Mapping[Fraction, int], edges: tuple[int, int], cpus: Sequence[int], **header: Any
) -> ImportedRun:
    """Return the run of an oslat file. ``edges``: minimum and maximum in ns."""
    names = sorted(buckets)
    if len(names) > MAX_BINS:
        broken(name, "the file has more buckets than oslat makes")
    low_ns, high_ns = edges
    uppers = [round(n * _US) for n in names]
    width = min((b - a for a, b in itertools.pairwise(uppers)), default=_US)
    if width < 1:
        broken(name, "the buckets are finer than a nanosecond")
    bins: dict[tuple[int, int], int] = {}
    beyond = 0
    for label, upper in zip(names, uppers, strict=True):
        if upper == uppers[-1] and high_ns > upper:
            # The last bucket also counts the samples beyond it.
            beyond = buckets[label]
        else:
            # With a bias (-B) the first bucket also holds all shorter gaps.
            lower = min(max(upper - width, 0) + 1, upper)
            bins[min(lower, low_ns) if upper == uppers[0] else lower, upper] = buckets[label]
    return run_of(
        name,
        bins,
        tool="oslat",
        measures="gap of a busy loop",
        unit="us",
        unit_stated=True,
        beyond=beyond,
        min_ns=low_ns,
        max_ns=high_ns,
        notes=_added_up(len(cpus), cpus),
        **header,
    )


# Both -----------------------------------------------------------------------------------------------------------------


def _numbers(text: str, name: str, line: int, read: Callable[[str], N | None]) -> list[N]:
    parts = text.split(None, MAX_COLUMNS + 2)
    values = [value for part in parts[: MAX_COLUMNS + 2] if (value := read(part)) is not None]
    if len(values) != len(parts):
        broken(name, "this row has something other than numbers", line=line)
    return values


def _added_up(threads: int, cpus: Sequence[int]) -> tuple[str, ...]:
    on = f" of the CPUs {', '.join(map(str, sorted(cpus)[:_MOST_CPUS]))}" if cpus else ""
    return (f"{threads} threads{on} added up",) if threads > 1 else ()
