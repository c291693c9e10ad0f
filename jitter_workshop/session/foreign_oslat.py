"""Read oslat's (rt-tests) table of buckets as text, and its JSON (``--json``).

oslat measures the gaps of a busy loop that reads the clock, as our ``spin`` does. A bucket named N holds gaps up to N
µs and above the bucket before it; the last one also holds everything beyond. Names with decimals (``-W``) come with a
minimum and maximum in ns in the JSON, in µs in the text. Threads are added up.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from jitter_workshop.model.imported import ImportedRun
from jitter_workshop.model.text import clean
from jitter_workshop.session.foreign_text import (
    MAX_BINS,
    MAX_COLUMNS,
    beyond_note,
    broken,
    decimal,
    is_json,
    lines,
    load_json,
    moment,
    number,
    run_of,
    whole,
)

MEASURES = "gap of a busy loop"

_US = 1_000
_JSON = re.compile(rb'"cmdline:?"\s*:\s*"(?:[^"\\\s]{0,200}/)?oslat[ "\\]')
_TEXT = re.compile(rb"^ *[0-9]{1,12}(?:\.[0-9]{1,6})? \(us\):\t", re.MULTILINE)
_VERSION = re.compile(r"oslat V ([0-9][0-9A-Za-z.]{0,10})")
_SUMMARY = ("Core", "Minimum", "Maximum", "Duration")
_OVERFLOWS = "(including overflows)"


def detect(data: bytes) -> bool:
    """Detect it by the command line in the JSON, by its rows in the text."""
    if is_json(data):
        return _JSON.search(data[:65536]) is not None
    return _TEXT.search(data) is not None


def parse(data: bytes, name: str, unit: str | None) -> tuple[ImportedRun, ...]:
    """Return one run, all threads added up. ``unit`` may only be "us" or None, because oslat's buckets state theirs.
    Raise SessionError."""
    if unit not in (None, "us"):
        broken(name, "oslat's buckets are in µs", advice="leave out --unit")
    if is_json(data):
        return (_of_json(load_json(data, name), name),)
    return (_of_text(data, name),)


def _of_json(value: dict[str, Any], name: str) -> ImportedRun:
    threads = value.get("thread")
    if not isinstance(threads, dict) or not 0 < len(threads) <= MAX_COLUMNS:
        broken(name, "it has no threads of oslat")
    buckets: dict[Fraction, int] = {}
    lows, highs, cpus, durations = list[int](), list[int](), list[int](), list[float]()
    fine = False
    for key, thread in threads.items():
        where = f"thread {clean(key, 8)}"
        if not isinstance(thread, dict) or not isinstance(thread.get("histogram"), dict):
            broken(name, f"{where} has no histogram")
        low, high, cpu = (number(thread.get(k)) for k in ("min", "max", "cpu"))
        if low is None or high is None:
            broken(name, f"{where} does not say its minimum and maximum")
        lows.append(low)
        highs.append(high)
        cpus += [cpu] if cpu is not None else []
        seconds = thread.get("duration")
        durations += [float(seconds)] if isinstance(seconds, float | int) and 0 <= seconds < 1e9 else []
        for text, samples in thread["histogram"].items():
            upto, many = decimal(text), number(samples)
            if upto is None or many is None:
                broken(name, f"{where} has an invalid bucket")
            fine = fine or "." in text
            buckets[upto] = buckets.get(upto, 0) + many
    scale = 1 if fine else _US
    version = value.get("rt_test_version", value.get("rt_test_version:"))
    system = value.get("sysinfo")
    return _run(
        name,
        buckets,
        (min(lows) * scale, max(highs) * scale),
        tuple(cpus) or tuple(range(len(threads))),
        max(durations, default=None),
        version if isinstance(version, str) else "",
        moment(value.get("start_time")),
        system.get("nodename") if isinstance(system, dict) else "",
    )


def _of_text(data: bytes, name: str) -> ImportedRun:
    buckets: dict[Fraction, int] = {}
    columns, version, last, highest = 0, "", False, Fraction(-1)
    summary: dict[str, list[Fraction]] = {}
    for line, text in lines(data, name):
        if found := _VERSION.match(text):
            version = found[1]
            continue
        # No regular expression matches whole lines: a crafted line could keep it busy for hours.
        key, colon, rest = text.partition(":")
        key, rest = key.strip(), rest.strip()
        if colon and key.endswith(" (us)"):
            upto, row = decimal(key[:-5]), _numbers(rest.removesuffix(_OVERFLOWS), name, line)
            if upto is None or last or len(row) != (columns or len(row)) or not 0 < len(row) <= MAX_COLUMNS:
                broken(name, "this row does not fit those before it", line=line)
            if upto <= highest:
                broken(name, "the buckets do not ascend", line=line)
            highest = upto
            columns, last = len(row), rest.endswith(_OVERFLOWS)
            buckets[upto] = int(sum(row))
            if len(buckets) > MAX_COLUMNS:
                broken(name, "it has more buckets than oslat makes", line=line)
        elif key in _SUMMARY:
            if key in summary:
                broken(name, "a second table begins here", line=line, advice="import one at a time")
            summary[key] = _numbers(rest.removesuffix("(us)").removesuffix("(sec)"), name, line)
    if not last or not summary.get("Maximum") or not summary.get("Minimum"):
        broken(name, "the table is cut off", advice="let oslat end by itself")
    edges = (round(min(summary["Minimum"]) * _US), round(max(summary["Maximum"]) * _US))
    cpus = tuple(map(int, summary.get("Core", ()))) or tuple(range(columns))
    duration = float(max(summary["Duration"])) if summary.get("Duration") else None
    return _run(name, buckets, edges, cpus, duration, version, None, "")


def _numbers(text: str, name: str, line: int) -> list[Fraction]:
    values = [decimal(part) if "." in part else whole(part) for part in text.split()]
    known = [Fraction(v) for v in values if v is not None]
    if len(known) != len(values):
        broken(name, "there is something other than numbers in this row", line=line)
    return known


def _run(
    name: str,
    buckets: Mapping[Fraction, int],
    edges: tuple[int, int],
    cpus: tuple[int, ...],
    duration_s: float | None,
    version: str,
    started_at: str | None,
    host: Any,
) -> ImportedRun:
    names = sorted(buckets)
    if len(names) > MAX_BINS:
        broken(name, "it has more buckets than oslat makes")
    low_ns, high_ns = edges
    uppers = [round(n * _US) for n in names]
    width = min((b - a for a, b in itertools.pairwise(uppers)), default=_US)
    if width < 1:
        broken(name, "its buckets are finer than a nanosecond")
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
    count = sum(buckets.values())
    notes = (
        [f"{len(cpus)} threads of the CPUs {', '.join(map(str, sorted(cpus)[:16]))} added up"] if len(cpus) > 1 else []
    )
    notes += [beyond_note(beyond, count)] if beyond else []
    return run_of(
        name,
        bins,
        tool="oslat",
        tool_version=version,
        measures=MEASURES,
        unit="us",
        unit_stated=True,
        beyond=beyond,
        min_ns=low_ns,
        max_ns=high_ns,
        started_at=started_at,
        duration_s=duration_s,
        host=host,
        notes=tuple(notes),
    )
