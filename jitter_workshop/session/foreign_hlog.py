"""Read histogram logs of HdrHistogram's tools (``.hlog``, format versions 1.00 to 1.3), and single encoded histograms.

A line is ``[Tag=TAG,]START,LENGTH,MAX,HISTOGRAM``; ``#`` begins a comment. START counts from ``#[StartTime: …]`` or
``#[BaseTime: …]``, as in HdrHistogram's HistogramLogReader. The intervals with the same tag are added up; the sum is
one run.

MAX is the greatest value in HISTOGRAM, but MAX often has a larger unit than HISTOGRAM. By default, programs write MAX
in ms and HISTOGRAM in ns. So the ratio of HISTOGRAM's greatest value to MAX shows the unit. perf-workshop writes one
line without a header into ``encoded-result-histogram-…-LABEL_….report.enc``, in ns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from jitter_workshop.errors import SessionError
from jitter_workshop.model.curve import ImportedRun
from jitter_workshop.model.text import ID, LABEL, clean
from jitter_workshop.session.foreign_text import (
    HEAD_BYTES,
    MAX_BINS,
    MOST_COMMENT,
    UNITS,
    broken,
    epoch,
    numbered_lines,
    run_of,
    stated_unit,
)
from jitter_workshop.stats.encoded import ByteBudget, decode_counts

MAX_TAGS = 32
MAX_PACKED_BYTES = 48 * 1024 * 1024
"""The largest size in bytes of all histograms of a log when unpacked. Reading them takes some seconds."""

MAX_INTERVALS = 200_000

_LONGEST = 8 * 1024 * 1024
_FIELD = r"[0-9]{1,15}(?:\.[0-9]{1,9})?"
_LINE = re.compile(rf"(?:Tag=([^,]{{0,200}}),)?({_FIELD}),({_FIELD}),({_FIELD}),(HIST[A-Za-z0-9+/]+={{0,2}})", re.ASCII)
_ALONE = re.compile(rb"\s*HIST[A-Za-z0-9+/]{20,}={0,2}\s*")
_LOOKS = re.compile(rb"^(?:Tag=[^,\n]{0,200},)?[0-9.]{1,25},[0-9.]{1,25},[0-9.]{1,25},HIST", re.MULTILINE)
_TIME = re.compile(r"#\[(StartTime|BaseTime): *([0-9]{1,12}(?:\.[0-9]{1,9})?)")
_LOGGED = re.compile(r"#\[Logged with ([A-Za-z][A-Za-z0-9 _.-]{0,30}?) version ([A-Za-z0-9._-]{1,30})")
_OWN = "#jitter-workshop run "
_WORKSHOP_FILE = re.compile(r"encoded-result-histogram-(.{1,80}?)-[0-9].{0,40}-LABEL_(.{1,80}?)\.report\.enc")
_YEAR_S = 365 * 24 * 3600.0


@dataclass(slots=True)
class _Tag:
    """Hold the sum of one tag's intervals."""

    bins: dict[tuple[int, int], int] = field(default_factory=dict)
    intervals: int = 0
    greatest: tuple[float, int, int] = (-1.0, 0, 0)
    """(MAX as printed, lowest and highest value of the last counter) of the interval with the greatest MAX."""
    first_s: float | None = None
    last_s: float = 0.0


@dataclass(slots=True)
class _Header:
    tool: str = ""
    version: str | None = None
    unit: str | None = None
    own: bool = False
    times: dict[str, float] = field(default_factory=dict)


def detect(data: bytes) -> bool:
    """Return True if a file is a histogram log or a single encoded histogram. A log has a known header, or a line of
    the format. A file with a single histogram contains only base64."""
    head = data[: 1 << 20]
    if b"#[Histogram log format version" in head[:HEAD_BYTES] or _ALONE.fullmatch(data[:_LONGEST]):
        return True
    return _LOOKS.search(head) is not None


def parse(data: bytes, name: str, unit: str | None) -> tuple[ImportedRun, ...]:
    """Return one run for each tag, in the order in which tags first appear. The ``label`` of a run is its tag. Raise
    SessionError if the file is damaged."""
    budget = ByteBudget(MAX_PACKED_BYTES)
    if _ALONE.fullmatch(data):
        tag = _Tag()
        _add(tag, name, 1, data.strip(), None, budget)
        return (_run(name, "", tag, _Header(), unit, cut=False),)
    header, tags, cut = _read(data, name, budget)
    if not tags:
        broken(name, "the log has no histogram", advice="record for longer")
    return tuple(_run(name, clean(said, LABEL), tag, header, unit, cut) for said, tag in tags.items())


def _read(data: bytes, name: str, budget: ByteBudget) -> tuple[_Header, dict[str, _Tag], bool]:
    header, tags, total = _Header(), dict[str, _Tag](), 0
    unended = data.count(b"\n") + 1 if not data.endswith(b"\n") else None
    for number, text in numbered_lines(data, name, _LONGEST):
        if not text.strip() or text.startswith('"StartTimestamp"'):
            continue
        if text.startswith("#"):
            _comment(header, text[:MOST_COMMENT])
            continue
        total += 1
        if total > MAX_INTERVALS:
            broken(name, f"the log has more than {MAX_INTERVALS} intervals", line=number, advice="import a part of it")
        try:
            _interval(tags, name, number, text.strip(), budget)
        except SessionError:
            if number == unended and any(tag.intervals for tag in tags.values()):
                # The log's writer was stopped in the middle of a line.
                return header, {label: tag for label, tag in tags.items() if tag.intervals}, True
            raise
    return header, tags, False


def _interval(tags: dict[str, _Tag], name: str, number: int, text: str, budget: ByteBudget) -> None:
    found = _LINE.fullmatch(text)
    if found is None:
        broken(name, "this line is not an interval of a histogram log", line=number)
    said = found[1] or ""
    if said not in tags and len(tags) == MAX_TAGS:
        broken(name, f"the log has more than {MAX_TAGS} tags", line=number, advice="import a part of it")
    tag = tags.setdefault(said, _Tag())
    _add(tag, name, number, found[5].encode(), float(found[4]), budget)
    if sum(len(one.bins) for one in tags.values()) > MAX_BINS:
        broken(name, f"the log has more than {MAX_BINS} buckets in use", line=number, advice="import a part of it")
    start, length = float(found[2]), float(found[3])
    tag.first_s = start if tag.first_s is None else min(tag.first_s, start)
    tag.last_s = max(tag.last_s, start + length)


def _comment(header: _Header, text: str) -> None:
    if found := _TIME.match(text):
        header.times[found[1]] = float(found[2])
    elif found := _LOGGED.match(text):
        header.tool, header.version = found[1].strip(), found[2]
    elif text.startswith(_OWN):
        header.own = True
    header.unit = header.unit or stated_unit(text)


def _add(tag: _Tag, name: str, number: int, encoded: bytes, printed: float | None, budget: ByteBudget) -> None:
    try:
        space, found = decode_counts(encoded, budget)
    except ValueError as error:
        broken(name, str(error), line=number)
    tag.intervals += 1
    bins = tag.bins
    for index, samples in found.items():
        bounds = space.bounds(index)
        bins[bounds] = bins.get(bounds, 0) + samples
    if printed is not None and found and printed > tag.greatest[0]:
        tag.greatest = (printed, *space.bounds(max(found)))


def _run(name: str, label: str, tag: _Tag, header: _Header, unit: str | None, cut: bool) -> ImportedRun:
    workshop = _WORKSHOP_FILE.fullmatch(name)
    said = unit or header.unit or ("ns" if workshop or header.tool == "jHiccup" else None)
    used = said or ("us" if _ratio(tag) == 1_000 else "ns")
    scale = UNITS[used]
    notes = [] if said else [f"the file does not state its unit: {used} was assumed (--unit overrides it)"]
    if cut:
        notes.append("the last line of the file is cut off and was left out")
    if tag.intervals > 1:
        notes.append(f"{tag.intervals:,} intervals added up")
    measures = "unknown"
    if workshop:
        tool, label = "perf-workshop", label or clean(workshop[2], ID)
        measures = clean(workshop[1].replace("_", " "), LABEL)
    elif header.own:
        tool, measures = "jitter-workshop", clean(label.replace("_", " "), LABEL) or "unknown"
    elif header.tool == "jHiccup":
        tool, measures = "jHiccup", "wake-up latency of a Java thread"
    else:
        tool = clean(header.tool, ID) or "HdrHistogram log"
    timed = tag.first_s is not None and not workshop
    return run_of(
        name,
        {(low * scale, high * scale + scale - 1): n for (low, high), n in tag.bins.items()},
        tool=tool,
        origin="" if header.tool or workshop else "imported log",
        tool_version=header.version,
        measures=measures,
        unit=used,
        unit_stated=said is not None,
        label=label,
        max_ns=_maximum_ns(tag, scale),
        started_at=_started(tag, header) if timed else None,
        duration_s=tag.last_s - (tag.first_s or 0.0) if timed else None,
        notes=tuple(notes),
    )


def _ratio(tag: _Tag) -> int | None:
    """Return the unit of MAX divided by the unit of the values: 1,000,000, 1,000 or 1. For example, MAX in ms and
    values in ns give 1,000,000. Return None for any other ratio.
    """
    printed, low, high = tag.greatest
    if printed <= 0:
        return None
    # MAX has three decimals at least, and may be the lowest or the highest value of its counter.
    return next(
        (r for r in (1_000_000, 1_000, 1) if low <= (printed + 0.0006) * r and (printed - 0.0006) * r <= high), None
    )


def _maximum_ns(tag: _Tag, scale: int) -> int | None:
    """Return the maximum in ns, computed from the field MAX. MAX is more exact than the limits of the highest counter.
    Return None if the unit of MAX is not known. Also return None if the highest counter belongs to another interval
    than the greatest MAX. ``scale``: ns in one unit of the values.
    """
    printed, low, high = tag.greatest
    ratio = _ratio(tag)
    if ratio is None or not tag.bins or (low, high) != max(tag.bins):
        return None
    return min(max(round(printed * ratio), low), high) * scale


def _started(tag: _Tag, header: _Header) -> str | None:
    """Return the start of a run in ISO 8601, by the rule of HdrHistogram's reader. If the header has a BaseTime, times
    count from it. If there is no BaseTime, the first time of the tag decides. If the first time is more than a year
    before StartTime, times count from StartTime. Otherwise, times are absolute.
    """
    first = tag.first_s or 0.0
    start = header.times.get("StartTime", first)
    base = header.times.get("BaseTime", start if first < start - _YEAR_S else 0.0)
    return epoch(base + first)
