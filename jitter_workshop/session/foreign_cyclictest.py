"""Read cyclictest's (rt-tests) histogram as text (``-h``, ``-H``, ``--histfile``) and its JSON (``--json``).

cyclictest measures how late a timer wakes a sleeping thread. A bucket N holds latencies from N up to N+1 (they are cut
to whole µs, or whole ns with ``-N``). Samples beyond the histogram are counted in the text's footer, and in the JSON
only as the difference between cycles and buckets. The text does not state its unit. Threads are added up.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import Any

from jitter_workshop.model.imported import ImportedRun
from jitter_workshop.model.text import clean
from jitter_workshop.session.foreign_text import (
    MAX_BINS,
    MAX_COLUMNS,
    MAX_COUNT,
    UNITS,
    beyond_note,
    broken,
    is_json,
    lines,
    load_json,
    moment,
    number,
    run_of,
    whole,
)

MEASURES = "timer wake-up latency"

_JSON = re.compile(rb'"cmdline:?"\s*:\s*"(?:[^"\\\s]{0,200}/)?cyclictest[ "\\]')
_TEXT = re.compile(rb"^(?:# Histogram[ \t\r]*$|# (?:Min|Max) Latencies:|T: *[0-9]+ \()", re.MULTILINE)
_FOOTER = re.compile(r"# (Total|Min Latencies|Avg Latencies|Max Latencies|Histogram Overflows):(.*)", re.DOTALL)
_NEEDED = ("Total", "Min Latencies", "Max Latencies", "Histogram Overflows")
_DIGITS = frozenset("0123456789")
_ADVICE = "measure with cyclictest -h 1000 (and more where latencies are longer)"


@dataclass(slots=True)
class _Table:
    rows: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    footer: dict[str, tuple[int, ...]] = field(default_factory=dict)
    columns: int | None = None


def detect(data: bytes) -> bool:
    """Detect it by the command line in the JSON, by the comments in the text."""
    if is_json(data):
        return _JSON.search(data[:65536]) is not None
    return _TEXT.search(data) is not None


def parse(data: bytes, name: str, unit: str | None) -> tuple[ImportedRun, ...]:
    """Return one run, all threads added up. Raise SessionError."""
    if is_json(data):
        return (_of_json(load_json(data, name), name, unit),)
    return (_of_text(data, name, unit),)


def _of_json(value: dict[str, Any], name: str, unit: str | None) -> ImportedRun:
    threads = value.get("thread")
    if not isinstance(threads, dict) or not 0 < len(threads) <= MAX_COLUMNS:
        broken(name, "it has no threads of cyclictest")
    said = unit or _unit_of(value)
    scale = UNITS[said or "us"]
    bins: dict[tuple[int, int], int] = {}
    cycles, lows, highs, cpus = 0, list[int](), list[int](), list[int]()
    for key, thread in threads.items():
        where = f"thread {clean(key, 8)}"
        if not isinstance(thread, dict) or not isinstance(thread.get("histogram"), dict):
            broken(name, f"{where} has no histogram", advice=_ADVICE)
        cycles += _asked(thread, "cycles", name, where)
        lows.append(_asked(thread, "min", name, where))
        highs.append(_asked(thread, "max", name, where))
        cpu = number(thread.get("cpu"))
        cpus += [cpu] if cpu is not None else []
        for text, samples in thread["histogram"].items():
            at, many = whole(text), number(samples)
            if at is None or many is None:
                broken(name, f"{where} has an invalid bucket")
            bounds = (at * scale, at * scale + scale - 1)
            bins[bounds] = bins.get(bounds, 0) + many
    counted = sum(bins.values())
    if not counted:
        broken(name, "it has no histogram", advice=_ADVICE)
    if counted > cycles:
        broken(name, f"its buckets hold {counted:,} samples of {cycles:,}")
    notes = _notes(len(threads), tuple(cpus), said, cycles - counted, cycles)
    return run_of(
        name,
        bins,
        tool="cyclictest",
        tool_version=_text_of(value, "rt_test_version"),
        measures=MEASURES,
        unit=said or "us",
        unit_stated=said is not None,
        beyond=cycles - counted,
        min_ns=min(lows) * scale,
        max_ns=max(highs) * scale + scale - 1,
        started_at=moment(_text_of(value, "start_time")),
        host=(value.get("sysinfo") or {}).get("nodename", "") if isinstance(value.get("sysinfo"), dict) else "",
        notes=notes,
    )


def _of_text(data: bytes, name: str, unit: str | None) -> ImportedRun:
    table = _read(data, name)
    if not table.rows:
        broken(name, "it has no histogram", advice=_ADVICE)
    if missing := [key for key in _NEEDED if key not in table.footer]:
        broken(name, f"it is cut off: the line '# {missing[0]}:' is missing")
    threads = _threads(table, name)
    scale = UNITS[unit or "us"]
    bins = {(at * scale, at * scale + scale - 1): sum(row[:threads]) for at, row in table.rows}
    counted = sum(bins.values())
    footer = {key: values[:threads] for key, values in table.footer.items()}
    if sum(footer["Total"]) != counted:
        broken(name, f"its rows hold {counted:,} samples, and its footer says {sum(footer['Total']):,}")
    beyond = sum(footer["Histogram Overflows"])
    notes = _notes(threads, (), unit, beyond, counted + beyond)
    return run_of(
        name,
        bins,
        tool="cyclictest",
        measures=MEASURES,
        unit=unit or "us",
        unit_stated=unit is not None,
        beyond=beyond,
        min_ns=min(footer["Min Latencies"]) * scale,
        max_ns=max(footer["Max Latencies"]) * scale + scale - 1,
        notes=notes,
    )


def _read(data: bytes, name: str) -> _Table:
    table, last = _Table(), -1
    for line, text in lines(data, name):
        if text.startswith("#"):
            if found := _FOOTER.match(text):
                if found[1] in table.footer:
                    broken(name, "a second histogram begins here", line=line, advice="import one at a time")
                table.footer[found[1]] = _numbers(found[2], name, line)
            continue
        if not text or text[0] not in _DIGITS or not text.partition(" ")[2].strip("0 \t"):
            # Most rows are zeros and carry no information.
            continue
        at, *row = _numbers(text, name, line)
        if not row or len(row) != (table.columns or len(row)) or table.footer:
            broken(name, "this row has other columns than the rows before it", line=line)
        if at <= last:
            broken(name, "the buckets do not ascend", line=line)
        last, table.columns = at, len(row)
        table.rows.append((at, tuple(row)))
        if len(table.rows) > MAX_BINS or len(table.rows) * len(row) > 4 * MAX_BINS:
            broken(name, "it has more buckets in use than can be read", line=line, advice="measure in µs")
    return table


def _numbers(text: str, name: str, line: int) -> tuple[int, ...]:
    parts = text.split(None, MAX_COLUMNS + 2)
    values = tuple(v for part in parts[: MAX_COLUMNS + 2] if (v := whole(part)) is not None)
    if len(values) != len(parts):
        broken(name, "there is something other than numbers in this row", line=line)
    return values


def _threads(table: _Table, name: str) -> int:
    """Return how many columns are threads: ``-H`` adds their sum as a last one, which the footer's minima do not
    have."""
    threads = len(table.footer["Min Latencies"])
    if threads not in (table.columns, (table.columns or 0) - 1) or not threads:
        broken(name, "its footer does not have the columns of its rows")
    if any(not threads <= len(table.footer[key]) <= threads + 1 for key in _NEEDED):
        broken(name, "the lines of its footer have different columns")
    return threads


def _notes(threads: int, cpus: tuple[int, ...], said: str | None, beyond: int, count: int) -> tuple[str, ...]:
    notes = []
    if said is None:
        notes.append("the file does not state its unit: us was assumed (with cyclictest -N: --unit ns)")
    if threads > 1:
        on = f" of the CPUs {', '.join(map(str, sorted(cpus)[:16]))}" if cpus else ""
        notes.append(f"{threads} threads{on} added up")
    if beyond:
        notes.append(beyond_note(beyond, count))
    return tuple(notes)


def _unit_of(value: dict[str, Any]) -> str | None:
    """Return the unit of a JSON file: ``resolution_in_ns`` is 1 with ``-N`` and 0 without; older files only have the
    command line. None where neither tells."""
    resolution = value.get("resolution_in_ns")
    if resolution in (0, 1) and not isinstance(resolution, bool):
        return "ns" if resolution else "us"
    words = _text_of(value, "cmdline")[:4096]
    try:
        given = shlex.split(words)[1:]
    except ValueError:
        return None
    short = any(re.fullmatch(r"-[A-Za-z]*N", word) for word in given)
    return ("ns" if short or "--nsecs" in given else "us") if given else None


def _asked(thread: dict[str, Any], key: str, name: str, where: str) -> int:
    found = number(thread.get(key))
    if found is None or found > MAX_COUNT:
        broken(name, f"{where} does not say its {key}")
    return found


def _text_of(value: dict[str, Any], key: str) -> str:
    """Return a text; rt-tests up to 2.x write some keys with a colon in them."""
    found = value.get(key, value.get(f"{key}:", ""))
    return found if isinstance(found, str) else ""
