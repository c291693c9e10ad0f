"""Write HdrHistogram logs (format 1.3) line by line, and read them back.

HdrHistogram's own readers can also open these logs. A line is ``Tag=NAME,START,LENGTH,MAX,HISTOGRAM``. START and LENGTH
are in seconds with six decimals. START counts from ``#[BaseTime: …]`` in the header. MAX is the true maximum in ms with
six decimals. By the format's convention, MAX is in ms if values are in ns. HISTOGRAM is base64 (V2, compressed), with
values in ns. The blocks are in the order of time, because readers need this order to find a range of time. The
library's own writer is not used. That writer drops tags, rounds maxima to 0 and cannot write a start time.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from jitter_workshop.model.record import dataclass

VERSION = "1.3"
NS_PER_MS = 1_000_000

_MAX_LINE = 4 * 1024 * 1024
_TAG = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_BASE = re.compile(r"#\[(StartTime|BaseTime): *([0-9]+(?:\.[0-9]+)?) \(seconds since epoch\)")
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?")


@dataclass(frozen=True, slots=True)
class IntervalHistogram:
    """Hold the histogram of one interval of time. ``start_s``: its start in Unix time. ``max_ns``: the true maximum, 0
    without samples."""

    tag: str
    start_s: float
    length_s: float
    max_ns: int
    encoded: str


def write_log(
    file: BinaryIO, intervals: Iterable[IntervalHistogram], base_s: float, comments: Iterable[str] = ()
) -> None:
    """Write a log. ``base_s``: the Unix time from which the times in the log count. Raise ValueError for a tag that
    cannot be in a line.
    """
    moment = datetime.datetime.fromtimestamp(base_s, datetime.UTC)
    header = [f"#{line}" for comment in comments for line in [" ".join(comment.split())]]
    header += [
        f"#[Histogram log format version {VERSION}]",
        f"#[BaseTime: {base_s:.6f} (seconds since epoch)]",
        f"#[StartTime: {base_s:.6f} (seconds since epoch), {moment:%a %b %d %H:%M:%S UTC %Y}]",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ]
    file.write("".join(f"{line}\n" for line in header).encode())
    for interval in intervals:
        file.write(_line(interval, base_s).encode("ascii"))


def read_intervals(path: Path, tag: str | None = None) -> Iterator[IntervalHistogram]:
    """Yield the intervals of a log, in order. ``tag``: yield only intervals with this tag; None for all intervals.
    Raise OSError if the file cannot be read. Raise ValueError with the line's number if a line is damaged."""
    base_s: dict[str, float] = {}
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(_MAX_LINE):
            number += 1
            try:
                text = raw.decode("ascii").rstrip("\r\n")
                if not text or text.startswith(("#", '"')):
                    if found := _BASE.match(text):
                        base_s[found[1]] = float(found[2])
                    continue
                interval = _parse(text, base_s.get("BaseTime", 0.0))
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from error
            if tag is None or interval.tag == tag:
                yield interval


def _line(interval: IntervalHistogram, base_s: float) -> str:
    if not _TAG.fullmatch(interval.tag):
        raise ValueError(f"{interval.tag!r} is not a valid tag")
    start_s = max(interval.start_s - base_s, 0.0)
    max_ms, rest_ns = divmod(interval.max_ns, NS_PER_MS)
    return f"Tag={interval.tag},{start_s:.6f},{interval.length_s:.6f},{max_ms}.{rest_ns:06d},{interval.encoded}\n"


def _parse(text: str, base_s: float) -> IntervalHistogram:
    tag = ""
    if text.startswith("Tag="):
        tag, _, text = text[4:].partition(",")
        if not _TAG.fullmatch(tag):
            raise ValueError("the tag is damaged")
    parts = text.split(",")
    if len(parts) != 4 or not all(map(_NUMBER.fullmatch, parts[:-1])):
        raise ValueError("not an interval of a histogram log")
    start_s, length_s, max_ms, packed = parts
    whole, _, fraction = max_ms.partition(".")
    max_ns = int(whole) * NS_PER_MS + int(fraction.ljust(6, "0")[:6] or "0")
    return IntervalHistogram(tag, base_s + float(start_s), float(length_s), max_ns, packed)
