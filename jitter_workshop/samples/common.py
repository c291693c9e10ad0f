"""Get a small program's running time from its command line, and print its figures. The figures have the form that the
chapter can read.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

USUAL_S, MOST_S = 2.0, 60.0


def seconds_asked() -> float:
    """Return how many seconds to run, from the command line; USUAL_S without an argument. Exit with a message if the
    argument is not a number from 0.1 to MOST_S."""
    words = sys.argv[1:]
    try:
        asked = float(words[0]) if words else USUAL_S
    except ValueError:
        asked = 0.0
    if len(words) > 1 or not 0.1 <= asked <= MOST_S:
        sys.exit(f"give the seconds to run, from 0.1 to {MOST_S:.0f}")
    return asked


def report(what: str, times_ns: Sequence[int], rest: str) -> None:
    """Print the number of measured times, and their median, p99 and maximum in µs. ``what``: the name of what was
    timed, in the plural. ``times_ns``: the times in ns, at least one. ``rest``: text to print after the figures."""
    ordered = sorted(times_ns)
    p50, p99 = (ordered[min(len(ordered) * part // 100, len(ordered) - 1)] for part in (50, 99))
    told = f"p50={p50 / 1e3:.1f} us p99={p99 / 1e3:.1f} us max={ordered[-1] / 1e3:.1f} us"
    print(f"{len(ordered)} {what}: {told}; {rest}")
