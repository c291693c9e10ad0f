"""Parse what a learner types: a time, the CPUs for the threads of a run, or a mask of CPUs."""

from __future__ import annotations

import math
import re

from jitter_workshop.errors import UsageError
from jitter_workshop.model.cpuset import MAX_CPU, CpuSet

_TIME = re.compile(r"([0-9]{1,12}(?:[.,][0-9]{1,9})?)\s*(ns|us|µs|μs|ms|s)", re.IGNORECASE)
_UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
LONGEST_NS = 60_000_000_000

ROLES = ("producer", "accumulator", "journaller")
_HOW = "type 2,4 or producer=2 accumulator=4"
_HEX = frozenset("0123456789abcdef")
_GROUP = 8
"""The most digits of a group of a mask: 32 CPUs."""


def parse_time_ns(text: str) -> int:
    """Return a time in ns from ``200us``, ``200 µs``, ``4 ms``, ``1.5ms``, ``300 ns`` or ``1,5 s``. Raise UsageError
    for any other text, and for a time outside 1 ns to 60 s."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise UsageError("a time needs a number and a unit", "such as 300 ns, 20 us or 4 ms")
    value = float(found.group(1).replace(",", ".")) * _UNITS[found.group(2).lower()]
    if not 1 <= value <= LONGEST_NS:
        raise UsageError("a time must be from 1 ns to 60 s")
    return math.floor(value + 0.5)


def parse_cpus(text: str) -> dict[str, int]:
    """Return role → CPU from a text such as ``2,4`` or ``producer=2 acc=4``. The CPUs in ``2,4`` are those of
    producer, accumulator and journaller, in this order. Return {} (automatic choice) for an empty text and for
    ``auto``. Raise UsageError for any other text. Also raise UsageError if the text names a CPU or a role twice.
    """
    words = [word for word in re.split(r"[\s,;]+", text.strip()) if word]
    if words == ["auto"]:
        return {}
    chosen: dict[str, int] = {}
    named = [("=" in word) for word in words]
    if any(named) and not all(named):
        raise UsageError("some CPUs have a thread's name and some have none", _HOW)
    if len(words) > len(ROLES):
        raise UsageError(f"{len(words)} CPUs for {len(ROLES)} threads", _HOW)
    for place, word in enumerate(words):
        name, equals, number = word.rpartition("=")
        fits = [role for role in ROLES if name and role.startswith(name.lower())] if equals else [ROLES[place]]
        if len(fits) != 1:
            raise UsageError("the name is not that of a measured thread", f"the threads are {', '.join(ROLES)}")
        if fits[0] in chosen:
            raise UsageError(f"the thread {fits[0]} is named twice", _HOW)
        if not (number.isascii() and number.isdigit()) or len(number) > 6 or int(number) > MAX_CPU:
            raise UsageError("a CPU must be a whole number", _HOW)
        chosen[fits[0]] = int(number)
    twice = next((cpu for cpu in chosen.values() if list(chosen.values()).count(cpu) > 1), None)
    if twice is not None:
        raise UsageError(f"CPU {twice} cannot run two measured threads", "give each thread a CPU of its own")
    return chosen


def parse_mask(text: str) -> CpuSet:
    """Return the CPUs that the text names. The text is a hex mask such as ``fff0ffff,fff0ffff``, or a list of CPUs
    such as ``0-15,20``. A text with a hyphen is read as a list. Raise UsageError for any other text.
    """
    try:
        return CpuSet.parse_list(text, MAX_CPU) if "-" in text else CpuSet.parse_mask(text)
    except ValueError as error:
        raise UsageError("the text is neither a mask nor a list of CPUs", "such as fff0ffff or 0-15,20-31") from error


def mask_so_far(text: str, cpus: int) -> CpuSet:
    """Return the CPUs of a mask that is being typed, such as ``ff,f``: the last typed digit stands for CPUs 0 to 3.

    A comma at the end changes nothing yet. ``cpus``: the number of the mask's CPUs. Raise UsageError with the reason if
    the last character of the text cannot stand there.
    """
    for character in text:
        if character not in _HEX and character != ",":
            raise UsageError(f"'{character}' is no digit of a mask", "the digits are 0 to 9 and a to f")
    groups = text.removesuffix(",").split(",")
    if text and not all(groups):
        raise UsageError("a comma stands only behind a group of digits")
    if any(len(group) > _GROUP for group in groups):
        raise UsageError(f"a group has at most {_GROUP} digits", "type a comma, and then the next group")
    named = CpuSet.parse_mask(",".join(groups))
    if named and named.cpus[-1] >= cpus:
        raise UsageError(f"with this digit the mask would name CPU {named.cpus[-1]}", f"the last CPU is {cpus - 1}")
    return named
