"""Share code between the readers of other tools' files: lines, numbers and JSON with limits, units, and errors."""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, NoReturn

from jitter_workshop.errors import SessionError
from jitter_workshop.model.curve import IMPORT_FORMAT, ImportedRun
from jitter_workshop.model.text import ID, LABEL, REASON, WORD, clean

UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
"""Nanoseconds in each unit that a file's values may have."""

MAX_NS = 30 * 24 * 3600 * 10**9
"""The largest accepted latency in ns, thirty days: a larger value is wrong or has another unit."""

MAX_COUNT = (1 << 63) - 1
MAX_BINS = 200_000
MAX_JSON_BYTES = 8 * 1024 * 1024
MAX_COLUMNS = 4_096
"""The largest number of threads in one run. Linux allows 8,192 CPUs on x86; the tools' tables have room for half of
them."""

MAX_LINES = 1_500_000
"""The largest number of lines in a file. The longest files are cyclictest's tables of a million buckets."""
HEAD_BYTES = 65_536
"""The number of bytes at the beginning of a file that are searched for a known header."""
MOST_COMMENT = 1_000
"""The largest number of characters that are read of a comment."""

_MAX_LINE = 1024 * 1024
_START_BYTES = 4_096
"""The number of bytes at the beginning of a file that are searched for the beginning of a JSON object."""
_WHOLE = re.compile(r"[0-9]{1,19}", re.ASCII)
_DECIMAL = re.compile(r"[0-9]{1,19}(?:\.[0-9]{1,20})?", re.ASCII)
_STATED = re.compile(r"values (?:are )?in (ns|us|µs|ms|s)\b")
_ADVICE = "write the file again with the tool that made it"


def broken(name: str, what: str, *, line: int | None = None, advice: str = _ADVICE) -> NoReturn:
    """Raise the SessionError for a damaged file: ``NAME:LINE: what; advice``."""
    place = f"{name}:{line}" if line is not None else name
    raise SessionError(f"{place}: {what}", advice)


def numbered_lines(data: bytes, name: str, longest: int = _MAX_LINE) -> Iterator[tuple[int, str]]:
    """Yield (number from 1, line without its end). Raise SessionError for a line that is too long, or for too many
    lines."""
    start, number, end = 0, 0, len(data)
    while start < end:
        number += 1
        if number > MAX_LINES:
            broken(name, f"the file has more than {MAX_LINES:,} lines", advice="import a part of it")
        stop = data.find(b"\n", start)
        stop = end if stop < 0 else stop
        if stop - start > longest:
            broken(name, f"the line is longer than {longest} characters", line=number)
        yield number, data[start:stop].decode("utf-8", "replace").rstrip("\r")
        start = stop + 1


def whole_number_of_text(text: str) -> int | None:
    """Return the number in a text that has only digits. Return None for any other text, and for numbers above 2^63 -
    1."""
    if not _WHOLE.fullmatch(text):
        return None
    value = int(text)
    return value if value <= MAX_COUNT else None


def decimal(text: str) -> Fraction | None:
    """Return the exact number in a text such as ``12.345``. Return None for any other text, for example with a sign or
    an exponent, and for NaN and infinity."""
    return Fraction(text) if _DECIMAL.fullmatch(text) else None


def load_json(data: bytes, name: str) -> dict[str, Any]:
    """Return the object in a JSON file. Raise SessionError if the file is too large or not JSON. For a syntax error,
    the message names the line.
    """

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not a JSON number")

    if len(data) > MAX_JSON_BYTES:
        broken(name, f"the JSON is larger than {MAX_JSON_BYTES >> 20} MiB", advice="measure with fewer buckets")
    try:
        value = json.loads(data.decode("utf-8"), parse_constant=refuse)
    except json.JSONDecodeError as error:
        broken(name, f"not JSON ({error.msg.lower()})", line=error.lineno)
    except UnicodeDecodeError:
        broken(name, "not text in UTF-8")
    except RecursionError:
        broken(name, "the JSON is nested too deeply")
    except ValueError as error:
        broken(name, f"not JSON ({clean(error, REASON)})")
    if not isinstance(value, dict):
        broken(name, "the JSON holds no object")
    return value


def is_json(data: bytes) -> bool:
    """Return True if a file begins like a JSON object. No other importable format begins like this."""
    return data[:_START_BYTES].lstrip().startswith(b"{")


def whole_number_of_json(value: Any) -> int | None:
    """Return a value of a JSON file if it is a whole number from 0 to 2^63 - 1. Return None for any other value."""
    if isinstance(value, float) and value.is_integer() and 0 <= value < 2**53:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT else None


def stated_unit(text: str) -> str | None:
    """Return the unit that a comment such as ``values in ns`` names, else None."""
    found = _STATED.search(text)
    return {"µs": "us"}.get(found[1], found[1]) if found else None


def moment(text: Any) -> str | None:
    """Convert a time of rt-tests (``Sat, 21 Nov 2026 22:17:51 +0000``) to ISO 8601 in UTC; None for any other text."""
    try:
        found = datetime.datetime.strptime(str(text)[:ID], "%a, %d %b %Y %H:%M:%S %z")
        return f"{found.astimezone(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError):
        return None


def epoch(seconds: float) -> str | None:
    """Convert Unix time to ISO 8601 in UTC; None for an implausible time."""
    if not math.isfinite(seconds) or not 0 < seconds < 2**33:
        return None
    return f"{datetime.datetime.fromtimestamp(seconds, datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"


def run_of(
    name: str,
    bins: Mapping[tuple[int, int], int],
    *,
    tool: str,
    measures: str,
    unit: str,
    unit_stated: bool,
    tool_version: str | None = None,
    origin: str = "",
    label: str = "",
    beyond: int = 0,
    min_ns: int | None = None,
    max_ns: int | None = None,
    started_at: str | None = None,
    duration_s: float | None = None,
    host: Any = "",
    notes: tuple[str, ...] = (),
) -> ImportedRun:
    """Build a run from the bins of a histogram. ``bins``: (lowest ns, highest ns) → samples. Raise SessionError for
    impossible figures."""
    found = sorted((low, high, samples) for (low, high), samples in bins.items() if samples)
    count = sum(samples for _, _, samples in found) + beyond
    if not found:
        what = "all samples lie beyond the histogram" if beyond else "the file holds no samples"
        broken(name, what, advice="measure again, with a longer histogram" if beyond else "measure again, for longer")
    if len(found) > MAX_BINS:
        broken(
            name,
            f"the histogram has more than {MAX_BINS} buckets in use",
            advice="measure again with a histogram of fewer buckets",
        )
    if count > MAX_COUNT:
        broken(name, "the number of samples is impossibly large")
    top = max(found[-1][1], max_ns or 0)
    if top > MAX_NS:
        broken(name, "a value is longer than thirty days", advice="give its unit: --unit ns, us, ms or s")
    if beyond and max_ns is None:
        broken(name, "the longest sample lies beyond the histogram, and the file does not state it")
    if max_ns is not None and not beyond:
        # The maximum lies in the last bucket, even if its printed value was rounded out of it.
        max_ns = min(max(max_ns, found[-1][0]), found[-1][1])
    elif max_ns is not None and max_ns < found[-1][0]:
        broken(name, "the maximum is below the last bucket")
    low = found[0][0] if min_ns is None else min(max(min_ns, found[0][0]), found[0][1])
    version = clean(tool_version, WORD) if tool_version else None
    if beyond:
        which = "lies" if beyond == 1 else "lie"
        past = f"{beyond:,} of {count:,} samples {which} beyond the histogram: of these, only the longest is known"
        notes = (*notes, past)
    return ImportedRun(
        format_version=IMPORT_FORMAT,
        id="",
        label=label,
        origin=origin or f"by {tool}" + (f" {version}" if version else ""),
        tool=tool,
        tool_version=version,
        measures=measures,
        unit=unit,
        unit_stated=unit_stated,
        count=count,
        min_ns=low,
        max_ns=found[-1][1] if max_ns is None else max_ns,
        bins=tuple(found),
        beyond=beyond,
        started_at=started_at,
        duration_s=duration_s,
        host=clean(host, LABEL) if isinstance(host, str) else "",
        notes=notes,
    )
