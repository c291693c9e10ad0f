"""Parse the learner's input in the line-by-line workshop: times and CPUs."""

from __future__ import annotations

import math
import re

from jitter_workshop.errors import UsageError
from jitter_workshop.model.cpuset import MAX_CPU

_TIME = re.compile(r"([0-9]{1,12}(?:[.,][0-9]{1,9})?)\s*(ns|us|µs|μs|ms|s)", re.IGNORECASE)
_UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
LONGEST_NS = 60_000_000_000

THREADS = ("producer", "accumulator", "journaller")


def parse_time_ns(text: str) -> int:
    """Return a time in ns from ``200us``, ``200 µs``, ``4 ms``, ``1.5ms``, ``300 ns`` or ``1,5 s``. Raises
    UsageError."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise UsageError("a time needs a number and a unit", "such as 300 ns, 20 us or 4 ms")
    value = float(found.group(1).replace(",", ".")) * _UNITS[found.group(2).lower()]
    if not 1 <= value <= LONGEST_NS:
        raise UsageError("a time lies between 1 ns and 60 s")
    return math.floor(value + 0.5)


def parse_cpus(text: str) -> tuple[int | None, int | None, int | None]:
    """Return the CPUs for producer, accumulator and journaller. The text is ``2,4`` or ``2 4 6`` in this order, or
    ``producer=2 accumulator=4``. ``auto`` or nothing gives three None. Raises UsageError."""
    words = text.replace(",", " ").split()
    if not words or words == ["auto"]:
        return None, None, None
    chosen: dict[str, int] = {}
    for position, word in enumerate(words):
        name, equals, number = word.partition("=")
        if not equals:
            if position >= len(THREADS):
                raise UsageError("there are three threads at most", "producer, accumulator, journaller")
            name, number = THREADS[position], word
        names = [t for t in THREADS if name and t.startswith(name.lower())]
        if len(names) != 1:
            raise UsageError(f"there is no thread '{name[:20]}'", f"they are {', '.join(THREADS)}")
        if names[0] in chosen:
            raise UsageError(f"the {names[0]} is given twice")
        if not (number.isascii() and number.isdigit()) or len(number) > 6 or int(number) > MAX_CPU:
            raise UsageError(f"'{number[:20]}' is not a CPU number", "such as: cpus 2,4")
        chosen[names[0]] = int(number)
    return chosen.get("producer"), chosen.get("accumulator"), chosen.get("journaller")
