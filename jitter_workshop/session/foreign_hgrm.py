"""Read percentile distributions of HdrHistogram's tools (``.hgrm``), as text or CSV.

A row has four numbers: a value, its percentile (0..1), the number of samples up to this value, and 1/(1-percentile).
``outputPercentileDistribution`` prints such rows, and wrk2 prints them with fewer decimals. The footer has the mean,
the maximum and the count. The header and the footer may be missing. Most files do not state the unit of their values.
Each program divides the values by a number of its choice. HdrHistogram's log processor and wrk2 print ms.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from fractions import Fraction

from jitter_workshop.model.curve import IMPORT_FORMAT, ImportedRun
from jitter_workshop.session.foreign_text import (
    HEAD_BYTES,
    MAX_NS,
    MOST_COMMENT,
    UNITS,
    broken,
    decimal,
    numbered_lines,
    stated_unit,
    whole_number_of_text,
)

MAX_ROWS = 20_000

_HEADER = re.compile(r'"?Value"?[ ,\t]+"?Percentile"?[ ,\t]+"?TotalCount"?', re.ASCII)
_FOOTER = re.compile(r"#\[Max +=\s*([0-9.]{1,40}), *Total count +=\s*([0-9]{1,19})\]", re.ASCII)
_ENDLESS = ("inf", "Infinity", "∞")
_LOOKS = re.compile(
    rb"\s*[0-9]{1,19}(?:\.[0-9]{1,20})?[ ,\t]+[01]\.[0-9]{3,20}[ ,\t]+[0-9]{1,19}(?:[ ,\t][^\n]{0,60})?\r?\n"
)


@dataclass(slots=True)
class _Read:
    rows: list[tuple[Fraction, Fraction, int, int]] = field(default_factory=list)
    """Rows as (value, percentile 0..1, samples up to the value, number of the line)."""
    footer: tuple[Fraction, int] | None = None
    unit: str | None = None
    tool: str = "HdrHistogram"


def detect(data: bytes) -> bool:
    """Return True if a file has this format. Either the header is in the first 64 KiB of the file, or the file begins
    with a row of a percentile distribution."""
    head = data[:HEAD_BYTES]
    return _HEADER.search(head.decode("utf-8", "replace")) is not None or _LOOKS.match(head) is not None


def parse(data: bytes, name: str, unit: str | None) -> tuple[ImportedRun, ...]:
    """Return one run, with percentiles only. Raise SessionError for a damaged file."""
    read = _Read()
    for number, text in numbered_lines(data, name, 65536):
        _line(read, name, number, text.strip())
    if not read.rows:
        broken(name, "the distribution has no rows", advice="record for longer")
    _check(read, name)
    said = unit or read.unit or ("ms" if read.tool == "wrk2" else None)
    used = said or "ms"
    notes = [] if said else ["the file does not state its unit: ms was assumed (to use another unit, give --unit)"]
    scale, last = UNITS[used], read.rows[-1]
    count = read.footer[1] if read.footer else last[2]
    if not read.footer and last[1] != 1:
        broken(name, "the distribution is cut off: it has no footer, and its last row is not at 100 %")
    greatest = read.footer[0] if read.footer else last[0]
    if not count:
        broken(name, "the file holds no samples", advice="record for longer")
    top = max(last[0], greatest) * scale
    if top > MAX_NS:
        broken(
            name,
            "a value is longer than thirty days",
            advice="its unit is probably not this one: give the right unit with --unit ns, us, ms or s",
        )
    maximum = round(greatest * scale)
    points = tuple((float(p * 100), min(round(v * scale), maximum)) for v, p, _, _ in read.rows if p < 1)
    return (
        ImportedRun(
            format_version=IMPORT_FORMAT,
            id="",
            label="",
            origin="by wrk2" if read.tool == "wrk2" else "imported percentiles",
            tool=read.tool,
            tool_version=None,
            measures="duration of requests" if read.tool == "wrk2" else "unknown",
            unit=used,
            unit_stated=said is not None,
            count=count,
            min_ns=round(read.rows[0][0] * scale) if read.rows[0][1] == 0 else None,
            max_ns=maximum,
            points=points,
            notes=tuple(notes),
        ),
    )


def _line(read: _Read, name: str, number: int, text: str) -> None:
    if not text or _HEADER.match(text):
        return
    if text.startswith("#"):
        read.unit = read.unit or stated_unit(text[:MOST_COMMENT])
        if found := _FOOTER.match(text):
            greatest = decimal(found[1])
            total = whole_number_of_text(found[2])
            if greatest is None or total is None:
                broken(name, "the footer's figures are impossible", line=number)
            read.footer = (greatest, total)
        return
    if text.startswith("Detailed Percentile spectrum"):
        read.tool = "wrk2"
        return
    row = _row(text)
    if row is None:
        # Tools print their own sentences around the table; inside it every line is a row.
        if read.rows and read.footer is None:
            broken(name, "this line is not a row of a percentile distribution", line=number)
        return
    if read.footer is not None:
        broken(name, "there are rows after the footer", line=number, advice="import one distribution at a time")
    if len(read.rows) == MAX_ROWS:
        broken(name, f"the distribution has more than {MAX_ROWS} rows", line=number)
    read.rows.append((*row, number))


def _row(text: str) -> tuple[Fraction, Fraction, int] | None:
    parts = text.replace(",", " ").split(None, 4)
    if not 3 <= len(parts) <= 4:
        return None
    value, percentile, total = decimal(parts[0]), decimal(parts[1]), whole_number_of_text(parts[2])
    if value is None or percentile is None or total is None or percentile > 1:
        return None
    if len(parts) == 4 and parts[3] not in _ENDLESS and decimal(parts[3]) is None:
        return None
    return value, percentile, total


def _check(read: _Read, name: str) -> None:
    """Raise SessionError if percentiles, values or counts decrease from row to row, or if the footer disagrees with the
    last row."""
    for before, row in itertools.pairwise(read.rows):
        if row[0] < before[0] or row[1] < before[1] or row[2] < before[2]:
            broken(name, "a value, percentile or count is lower than in the line before", line=row[3])
    if read.footer and read.rows[-1][2] > read.footer[1]:
        broken(name, "the rows hold more samples than the footer says", line=read.rows[-1][3])
