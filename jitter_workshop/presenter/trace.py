"""Show frequency, temperature and throttle counts of a run, block by block, as lines of text."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.model.run import Block

_LEVELS = "▁▂▃▄▅▆▇█"
_ABSENT = "·"
_WIDEST = 60


def trace_lines(blocks: Sequence[Block], width: int) -> list[str]:
    """Return one line for each of the three that was read: its name, one column per block (or per few blocks), lowest
    to highest. [] if nothing was read."""
    rows = (
        ("core GHz", [None if b.core_hz is None else b.core_hz / 1e9 for b in blocks], "{:.2f}"),
        ("hottest °C", [b.temperature_celsius for b in blocks], "{:.0f}"),
        ("throttled", _steps([b.throttle_events for b in blocks]), "{:.0f}"),
    )
    lines = []
    for name, values, form in rows:
        known = [value for value in values if value is not None]
        if not known:
            continue
        low, high = form.format(min(known)), form.format(max(known))
        span = low if low == high else f"{low} to {high}"
        room = max(min(width - 14 - len(span), _WIDEST), 8)
        lines.append(f"{name:<11} {sparkline(values, room)}  {span}"[:width])
    return lines


def now_told(block: Block) -> str:
    """Return the same figures for one block, in a few words; "" if nothing was read."""
    parts = [
        f"core {block.core_hz / 1e9:.2f} GHz" if block.core_hz is not None else "",
        f"{block.temperature_celsius:.0f} °C" if block.temperature_celsius is not None else "",
        f"{block.throttle_events:,} throttle events since boot" if block.throttle_events is not None else "",
    ]
    return " · ".join(filter(None, parts))


def sparkline(values: Sequence[float | None], room: int) -> str:
    """Return one character per value, or per few neighbours (their mean) if there are more than ``room``. The scale
    goes from the lowest to the highest value; if all are equal, the line stays in the middle."""
    if len(values) > room:
        groups = [values[i * len(values) // room : (i + 1) * len(values) // room] for i in range(room)]
        values = [_mean(group) for group in groups]
    known = [value for value in values if value is not None]
    if not known:
        return _ABSENT * len(values)
    low, span = min(known), max(known) - min(known)
    top = len(_LEVELS) - 1
    return "".join(
        _ABSENT if value is None else _LEVELS[round((value - low) / span * top) if span else top // 2]
        for value in values
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _steps(counts: Sequence[int | None]) -> list[float | None]:
    """Return the growth of a counter from one block to the next; None for the first block and where a count is not
    known."""
    grown: list[float | None] = []
    before: int | None = None
    for count in counts:
        grown.append(float(count - before) if count is not None and before is not None else None)
        before = count
    return grown
