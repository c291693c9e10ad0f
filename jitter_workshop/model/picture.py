"""Read the pictures of a lesson's page.

A picture is a fenced block in Markdown. The word after the opening fence names the kind of picture, and the block's
lines contain the figures. The screen draws the picture in the screen's width. The plain walk draws it in the plain
walk's width. So a lesson needs only one description for all terminals.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import ID

PREFIX = "draw-"
"""If the word behind a code block's opening fence begins with this, the block is a picture."""

TOPOLOGY = "draw-topology"
KINDS = ("draw-mask", "draw-knees", "draw-second", "draw-turns", "draw-ring", TOPOLOGY)

MOST_ROWS = 8
MOST_CPUS = 256
TURNS = ("sleeps", "ready", "runs", "locks", "held", "waits")
"""The states of a thread in its line: it sleeps; it could run, but another thread has the CPU; it runs; it runs
and has the lock; it has the lock, but another thread has the CPU; it waits for the lock."""
_MOST_UNITS = 48
_TIME = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)(ns|us|µs|ms|s)")
_UNITS_NS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Mask:
    """Hold a mask of ``cpus`` CPUs without the CPUs ``out``."""

    cpus: int
    out: CpuSet

    @property
    def left(self) -> CpuSet:
        """Return the CPUs that remain in the mask after the CPUs ``out`` are taken out."""
        return CpuSet.of(range(self.cpus)) - self.out

    @property
    def text(self) -> str:
        """Return the mask as the kernel prints it, with a group of eight digits for each 32 CPUs."""
        return self.left.to_mask(-(-self.cpus // 32))


@dataclass(frozen=True, slots=True)
class Knee:
    """Hold one step of a curve. From ``percentile`` on, up to the next step, the latency is ``value_ns``. ``words``:
    the cause of the step."""

    percentile: float
    value_ns: int
    words: str


@dataclass(frozen=True, slots=True)
class Knees:
    """Hold a curve as steps, whose percentiles and latencies grow."""

    steps: tuple[Knee, ...]


@dataclass(frozen=True, slots=True)
class Event:
    """Hold a kind of event on a CPU: it comes ``count`` times in a second and lasts ``length_ns`` each time."""

    words: str
    count: int
    length_ns: int


@dataclass(frozen=True, slots=True)
class Second:
    """Hold one second of a CPU."""

    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class ThreadLine:
    """Hold what one thread does, in order: a word of TURNS, and for how many units of time."""

    name: str
    parts: tuple[tuple[str, int], ...]

    @property
    def length(self) -> int:
        """Return the units of time of the whole line."""
        return sum(units for _, units in self.parts)


@dataclass(frozen=True, slots=True)
class Turns:
    """Hold the lines of threads that share a CPU and a lock, over the same time."""

    threads: tuple[ThreadLine, ...]


@dataclass(frozen=True, slots=True)
class RingPicture:
    """Represent the picture of the workload ``ring``, which has no figures."""


@dataclass(frozen=True, slots=True)
class HostCpus:
    """Represent the picture of a host's CPUs. The figures come from the host that the lesson is about."""


LessonPicture = Mask | Knees | Second | Turns | RingPicture | HostCpus


def is_picture(word: str) -> bool:
    """Return True if the word after a fence has the form of a picture's name. There may be no such picture."""
    return word.startswith(PREFIX)


def parse_picture(kind: str, lines: Sequence[str]) -> LessonPicture:
    """Return the picture that a fenced block describes. ``kind``: the word after the opening fence. ``lines``: the
    block's lines. Raise ValueError if the block describes no picture. The message of the error is a sentence without a
    full stop."""
    rows = [line.split() for line in lines if line.strip()]
    if len(rows) > MOST_ROWS:
        raise ValueError(f"a picture has at most {MOST_ROWS} lines")
    if kind in ("draw-ring", TOPOLOGY):
        if rows:
            raise ValueError(f"{kind} takes no lines")
        return RingPicture() if kind == "draw-ring" else HostCpus()
    if kind == "draw-mask":
        return _mask(rows)
    if kind == "draw-knees":
        steps = tuple(_knee(row) for row in rows)
        grows = all(a.percentile < b.percentile and a.value_ns < b.value_ns for a, b in itertools.pairwise(steps))
        if len(steps) < 2 or not grows:
            raise ValueError("draw-knees needs two lines or more, with growing percentiles and times")
        return Knees(steps)
    if kind == "draw-second":
        if not rows:
            raise ValueError("draw-second needs a line for each kind of event")
        return Second(tuple(_event(row) for row in rows))
    if kind == "draw-turns":
        threads = tuple(_thread(row) for row in rows)
        if len(threads) < 2 or len({one.length for one in threads}) != 1 or threads[0].length > _MOST_UNITS:
            raise ValueError(f"draw-turns needs two lines or more, equally long, of at most {_MOST_UNITS} units")
        return Turns(threads)
    raise ValueError(f"{kind[:ID]!r} is not a picture: use one of {', '.join(KINDS)}")


def _mask(rows: Sequence[Sequence[str]]) -> Mask:
    found = {row[0]: row[1] for row in rows if len(row) == 2}
    count = found.get("cpus", "")
    if found.keys() != {"cpus", "out"} or len(rows) != 2 or not count.isdecimal() or not 1 <= int(count) <= MOST_CPUS:
        raise ValueError(f"draw-mask needs two lines: 'cpus N' with N from 1 to {MOST_CPUS}, and 'out LIST'")
    return mask(int(count), found["out"])


def mask(cpus: int, out: str) -> Mask:
    """Return a mask of ``cpus`` CPUs without the CPUs in the list ``out``. Raise ValueError if ``out`` is not a list,
    or if it has a CPU that the mask does not have. The message of the error is a sentence without a full stop."""
    taken = CpuSet.parse_list(out, MOST_CPUS - 1)
    if any(cpu >= cpus for cpu in taken):
        raise ValueError("the list names a CPU that the mask does not have")
    return Mask(cpus, taken)


def _knee(row: Sequence[str]) -> Knee:
    percentile = row[0].removeprefix("p")
    if len(row) < 3 or not re.fullmatch(r"\d{1,2}(\.\d{1,6})?", percentile):
        raise ValueError("a line of draw-knees is a percentile, a time such as 8us, and words")
    return Knee(float(percentile), _time_ns(row[1]), " ".join(row[2:]))


def _event(row: Sequence[str]) -> Event:
    if len(row) < 3 or not row[0].isdecimal() or not 1 <= int(row[0][:9]) <= 1_000_000:
        raise ValueError("a line of draw-second is a count, a time such as 5us, and words")
    event = Event(" ".join(row[2:]), int(row[0]), _time_ns(row[1]))
    if event.count * event.length_ns > _SECOND_NS:
        raise ValueError("the events of draw-second take longer than a second")
    return event


def _thread(row: Sequence[str]) -> ThreadLine:
    parts = [part.partition(":") for part in row[1:]]
    if not parts or not all(does in TURNS and re.fullmatch("[1-9][0-9]?", units) for does, _, units in parts):
        raise ValueError(f"a line of draw-turns is a name, and parts such as runs:3 ({', '.join(TURNS)})")
    return ThreadLine(row[0], tuple((does, int(units)) for does, _, units in parts))


def _time_ns(text: str) -> int:
    found = _TIME.fullmatch(text)
    value = round(float(found[1]) * _UNITS_NS[found[2]]) if found else 0
    if not 1 <= value <= 60 * _SECOND_NS:
        raise ValueError("a time is a number with ns, us, ms or s behind it, such as 5us")
    return value
