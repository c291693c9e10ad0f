"""Name the measures of comparisons and verdicts, and print their values with a unit, in one place for all displays."""

from __future__ import annotations

from jitter_workshop.stats.comparison import STALLS_PREFIX, STOLEN
from jitter_workshop.stats.scale import nice_ns, nice_number

_NAMES = {STOLEN: "time stolen", "max": "worst seen"}


def measure_name(measure: str) -> str:
    """Return ``stalls over 100 µs``, ``time stolen``, ``p99.9``; an unknown name is returned as it is (an edited
    file)."""
    threshold = measure.removeprefix(STALLS_PREFIX).removesuffix("_ns")
    if measure.startswith(STALLS_PREFIX) and threshold.isascii() and threshold.isdecimal() and len(threshold) < 19:
        return f"stalls over {nice_ns(int(threshold))}"
    return _NAMES.get(measure, measure)


def amount(measure: str, value: float | None) -> str:
    """Return a measure's value: a rate (``4.2/s``), ns stolen a second (``3.1 µs/s``), or a time; ``–`` for None."""
    if value is None:
        return "–"
    if measure.startswith(STALLS_PREFIX):
        return f"{nice_number(value)}/s"
    return f"{nice_ns(value)}/s" if measure == STOLEN else nice_ns(value)
