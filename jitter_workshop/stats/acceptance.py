"""Parse lengths of time and conditions on stalls, and judge a condition by the stalls of a watch. Every function is
pure."""

from __future__ import annotations

import re

from jitter_workshop.errors import UsageError
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import ID, clean
from jitter_workshop.stats.exact import CONFIDENCE, poisson_limits
from jitter_workshop.stats.scale import nice_duration, nice_ns, nice_number

ACCEPTED, REJECTED = "accepted", "rejected"

_UNITS_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
_LENGTH = r"(\d{1,9}(?:\.\d{1,9})?)\s*(ns|us|µs|ms|s|min|m|h|d)"
_ONE = re.compile(_LENGTH, re.ASCII)
_NONE_OF = re.compile(rf"stalls?\s*<\s*{_LENGTH}\s+for\s+{_LENGTH}", re.ASCII)
_AT_MOST = re.compile(rf"stalls\s+over\s+{_LENGTH}\s*<=\s*(\d{{1,6}})\s+for\s+{_LENGTH}", re.ASCII)
_EXAMPLE = "write 'stall < 20us for 12h', or 'stalls over 20us <= 3 for 12h'"
_HOUR_NS = 3_600_000_000_000


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Hold a condition on the stalls of a watch. In ``for_ns`` of watched time, the condition allows at most ``most``
    stalls of ``limit_ns`` or longer. ``text``: the condition as the user wrote it."""

    text: str
    limit_ns: int
    most: int
    for_ns: int


@dataclass(frozen=True, slots=True)
class Judged:
    """Hold the result of :func:`judge_condition`. ``verdict``: ACCEPTED, REJECTED, or None if the observed stalls are
    not enough for a verdict. ``reason``: a sentence with the reason for the verdict.
    """

    verdict: str | None
    reason: str


def length_ns(text: str) -> int:
    """Return the length of time in a text such as ``20us``, ``1.5 ms`` or ``12h``, in ns. Raise UsageError if the text
    is not a length of time, or if the length is 0."""
    found = _ONE.fullmatch(text.strip())
    ns = _ns(found[1], found[2]) if found is not None else 0
    if ns < 1:
        raise UsageError(
            f"'{clean(text, ID)}' is not a length of time", "write a number and its unit: 20us, 5ms, 90s, 12h"
        )
    return ns


def parse_condition(text: str) -> Acceptance:
    """Return the condition on stalls that a text states. Raise UsageError if the text does not state one."""
    words = " ".join(text.split())
    if found := _NONE_OF.fullmatch(words):
        limit, most, long = _ns(found[1], found[2]), 0, _ns(found[3], found[4])
    elif found := _AT_MOST.fullmatch(words):
        limit, most, long = _ns(found[1], found[2]), int(found[3]), _ns(found[4], found[5])
    else:
        raise UsageError(f"'{clean(text)}' is not a condition on stalls", _EXAMPLE)
    if limit < 1 or long < 1:
        raise UsageError("each length of time in a condition must be above 0", _EXAMPLE)
    return Acceptance(words, limit, most, long)


def judge_condition(condition: Acceptance, count: int, watched_ns: int) -> Judged:
    """Return the verdict on a condition. ``count``: the number of stalls of ``condition.limit_ns`` or longer.
    ``watched_ns``: the time in which these stalls were counted.

    Too many stalls reject the condition, even if the watched time is short. The condition is accepted only if at least
    ``condition.for_ns`` was watched. If less was watched, and there are not too many stalls, the verdict is None: more
    stalls may come.
    """
    seen = f"{count:,} stall{'' if count == 1 else 's'} of {nice_ns(condition.limit_ns)} or longer"
    watched, wanted = nice_duration(watched_ns / 1e9), nice_duration(condition.for_ns / 1e9)
    if count > condition.most:
        allowed = f"at most {condition.most:,} are allowed" if condition.most else "none is allowed"
        return Judged(REJECTED, f"{seen} in {watched} watched, and {allowed}")
    if watched_ns < condition.for_ns:
        return Judged(None, f"only {watched} of {wanted} were watched; stalls in the rest are not known")
    high = poisson_limits(count)[1] * _HOUR_NS / watched_ns
    limit = f"at most {nice_number(high)} an hour, with {CONFIDENCE * 100:.0f} % confidence"
    return Judged(ACCEPTED, f"{seen} in {watched} watched: {limit}")


def _ns(number: str, unit: str) -> int:
    whole, _, part = number.partition(".")
    each = _UNITS_NS[unit]
    return int(whole) * each + (int(part) * each // 10 ** len(part) if part else 0)
