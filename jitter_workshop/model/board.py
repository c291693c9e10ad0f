"""Define the posts of a class's members, and the board that shows them. A class is several people who share a machine
for a course. An instructor sees all posts on the board.

A post contains a member's progress and curves. A post comes from the member's own process, which the member can change.
So a post proves nothing, and only helps to teach.
"""

from __future__ import annotations

from typing import Literal

from jitter_workshop.model.record import dataclass, field
from jitter_workshop.model.session import Guess

MAX_CHAPTERS = 64
MAX_POINTS = 160
MAX_SCENARIOS = 200
MAX_TEXT = 200
MAX_SAID = 120
"""The largest number of characters in an instructor's message to all."""
BEST_BY = 99.9
"""The percentile by which curves are ranked if the chapter's question names no percentile."""
_BEST_BY_OF = {"spin": 99.9999}
"""Workload → the percentile by which its curves are ranked, if this is not BEST_BY. ``spin`` reads the clock tens of
millions of times a second, so all its curves are alike below this percentile."""


MemberGroup = Literal["stuck", "at work", "waiting", "done", "away"]
"""The groups of members.

- ``stuck``: the member is connected, but has made no progress for long.
- ``waiting``: the member waits for the turn, or no new turn may begin.
- ``done``: all chapters that the member began are finished.
- ``away``: the member's program is closed, or the connection is lost.
"""


@dataclass(frozen=True, slots=True)
class PostedChapter:
    """Hold a member's progress in one chapter. A member can earn two marks in a chapter: ``setting`` and ``curve``.
    Each of these fields is True if the member has earned the mark of this name. ``hints``: the number of hints shown so
    far."""

    id: str
    step: str
    done: bool
    setting: bool
    curve: bool
    hints: int = 0
    prediction: Guess | None = None


@dataclass(frozen=True, slots=True)
class PostedRun:
    """Hold one measured curve of a member.

    - ``slot``: the step of the chapter in which the run was made.
    - ``points``: pairs (percentile, ns), ascending. Percentiles with too few samples are left out.
    - ``at``: the start of the run (ISO 8601, UTC).
    - ``mark``: the mark of the run's times, such as ``emulated`` (``model.host.mark_of``); "" for none.
    """

    id: str
    label: str
    chapter: str
    slot: str
    workload: str
    at: str
    points: tuple[tuple[float, int], ...]
    stolen_ns_per_second: float | None = None
    mark: str = ""

    def value_at(self, percentile: float = BEST_BY) -> int | None:
        """Return the curve's value in ns at a percentile (0..100); None if the curve ends below this percentile."""
        return next((ns for at, ns in self.points if at >= percentile - 1e-9), None)


@dataclass(frozen=True, slots=True)
class Posted:
    """Hold everything that one member has posted.

    - ``people``: the names in a team, as its members typed them.
    - ``runs``: the newest run of each chapter and slot, and the two newest runs that belong to no chapter.
    - ``scenarios``: the ids of the scenarios that the member has solved in practice machines, without duplicates.
    """

    session: str
    people: tuple[str, ...] = ()
    chapter: str | None = None
    step: str = ""
    chapters: tuple[PostedChapter, ...] = ()
    runs: tuple[PostedRun, ...] = ()
    scenarios: tuple[str, ...] = ()


def compared_at(posted: Posted, run: PostedRun) -> float:
    """Return the percentile at which the members' curves are compared. In some chapters, a member guesses the value at
    one percentile. If the member has made such a guess in the chapter of ``run``, return this percentile. Otherwise
    return the default percentile of the run's workload."""
    guess = next((one.prediction for one in posted.chapters if one.id == run.chapter), None)
    try:
        asked = float((guess.percentile if guess is not None else None) or "nan")
    except ValueError:
        asked = float("nan")
    return asked if 0 <= asked < 100 else _BEST_BY_OF.get(run.workload, BEST_BY)


@dataclass(frozen=True, slots=True)
class Banner:
    """Hold the chapter and step at which the instructor is. ``text``: the instructor's own words. ``at``: time of the
    message (ISO 8601, UTC)."""

    by: str
    at: str
    chapter: str = ""
    step: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class BoardRow:
    """Hold the row of one member or one team.

    - ``best``: for each chapter and workload, the run with the lowest latency at the percentile of :func:`compared_at`.
    - ``idle_s``: seconds since the last progress.
    - ``seen_at``: time of the last post.
    """

    uid: int
    user: str
    posted: Posted
    best: tuple[PostedRun, ...]
    seen_at: str
    idle_s: float
    group: MemberGroup = "at work"


@dataclass(frozen=True, slots=True)
class Board:
    """Hold the whole board. ``rows``: the rows, sorted by group and then by name. The group ``stuck`` comes first.
    ``host``: the name of this machine."""

    host: str
    at: str
    rows: tuple[BoardRow, ...] = ()
    banner: Banner | None = None
    notes: dict[str, str] = field(default_factory=dict)
