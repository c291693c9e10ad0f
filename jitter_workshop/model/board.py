"""What a member of a class posts of their work, and what an instructor sees of all of them.

All of it comes from the member's own process: it helps to teach, and proves nothing.
"""

from __future__ import annotations

from typing import Literal

from jitter_workshop.model.record import dataclass, field
from jitter_workshop.model.session import Prediction

MAX_CHAPTERS = 64
MAX_POINTS = 160
MAX_TEXT = 200
MAX_SAID = 120
"""Characters of what an instructor says to all."""
BEST_BY = 99.9
"""By which percentile a curve is better than another, where its chapter asks about none."""
_BEST_BY_OF = {"spin": 99.9999}
"""It reads the clock tens of millions of times a second: below, all curves are alike."""


Group = Literal["stuck", "at work", "waiting", "done", "away"]
"""``stuck``: there, and nothing new for long; ``waiting``: in the queue, or kept from beginning by the class itself;
``done``: with all that they began; ``away``: their program is closed, or lost."""


@dataclass(frozen=True, slots=True)
class PostedChapter:
    """How far a chapter is: ``setting`` and ``curve`` are its marks. ``hints``: how many were shown."""

    id: str
    step: str
    done: bool
    setting: bool
    curve: bool
    hints: int = 0
    prediction: Prediction | None = None


@dataclass(frozen=True, slots=True)
class PostedRun:
    """One measured curve. ``slot``: which measurement of the chapter. ``points``: percentile and ns, rising; of them
    those that stand on enough samples. ``at``: when it began (ISO 8601, UTC)."""

    id: str
    label: str
    chapter: str
    slot: str
    workload: str
    at: str
    points: tuple[tuple[float, int], ...]
    stolen_ns_per_second: float | None = None

    def value_at(self, percentile: float = BEST_BY) -> int | None:
        """The curve's value at a percentile; None where it does not reach so far."""
        return next((ns for at, ns in self.points if at >= percentile - 1e-9), None)


@dataclass(frozen=True, slots=True)
class Posted:
    """``people``: the names of a team, as its members gave them. ``runs``: the newest of each chapter and slot, and the
    two newest that belong to none, whose chapter is ""."""

    session: str
    people: tuple[str, ...] = ()
    chapter: str | None = None
    step: str = ""
    chapters: tuple[PostedChapter, ...] = ()
    runs: tuple[PostedRun, ...] = ()


def compared_at(posted: Posted, run: PostedRun) -> float:
    """The percentile by which a run is compared: that of its chapter's guess, else its workload's."""
    guess = next((one.prediction for one in posted.chapters if one.id == run.chapter), None)
    try:
        asked = float((guess.percentile if guess is not None else None) or "nan")
    except ValueError:
        asked = float("nan")
    return asked if 0 <= asked < 100 else _BEST_BY_OF.get(run.workload, BEST_BY)


@dataclass(frozen=True, slots=True)
class Banner:
    """Where the instructor is: ``text`` is theirs to say. ``at``: when (ISO 8601, UTC)."""

    by: str
    at: str
    chapter: str = ""
    step: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class BoardRow:
    """One member, or a team. ``best``: of each chapter's runs of one workload the lowest so far (``compared_at``).
    ``idle_s``: since their work last went on; ``seen_at``: when they last posted."""

    uid: int
    user: str
    posted: Posted
    best: tuple[PostedRun, ...]
    seen_at: str
    idle_s: float
    group: Group = "at work"


@dataclass(frozen=True, slots=True)
class Board:
    """By group, those who are stuck first, then by name. ``host``: of this machine."""

    host: str
    at: str
    rows: tuple[BoardRow, ...] = ()
    banner: Banner | None = None
    notes: dict[str, str] = field(default_factory=dict)
