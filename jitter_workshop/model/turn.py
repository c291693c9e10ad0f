"""Whose turn a shared machine is, as root publishes it and everybody may read it.

Seconds count from the machine's start (CLOCK_BOOTTIME), which no user can set and suspending does not stop; a state of
another boot is nobody's turn.
"""

from __future__ import annotations

from jitter_workshop.model.record import dataclass

FORMAT_VERSION = 1
MAX_PEOPLE = 8
"""Names of a team."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process that is meant for good: a number is used again one day, with its start (in clock ticks) never."""

    pid: int
    start: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """Somebody in the queue. ``people``: the user names of the team, the one who is connected first. ``agent``: root's
    process that speaks with them; when it ends they have left. ``client``: their own, which gets onto the hot CPUs with
    all that it starts. ``limit_s``: how long their turn may be, None for an instructor, who holds the machine until
    they give it back."""

    uid: int
    people: tuple[str, ...]
    agent: Process
    client: Process
    since_s: float
    limit_s: float | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """Who has the machine. ``number``: of the turns since the machine's start. ``ends_s``: None while an instructor
    holds it. ``doing``: in the holder's own words. ``ended_by``: which instructor ended it, "" while nobody did;
    ``returning``: it has ended, and the machine is being given back. ``origin``: the control group that the client came
    from, "" while it was not moved."""

    number: int
    uid: int
    people: tuple[str, ...]
    agent: Process
    client: Process
    began_s: float
    ends_s: float | None
    doing: str = ""
    ended_by: str = ""
    returning: bool = False
    origin: str = ""


@dataclass(frozen=True, slots=True)
class TurnGranted:
    """A turn that has begun. ``ends_in_s``: None for an instructor's. ``group``: why its processes are in no control
    group of their own, "" where they are."""

    number: int
    ends_in_s: float | None
    group: str


@dataclass(frozen=True, slots=True)
class TurnState:
    """``queue``: first come, first served. ``frozen_by``: the instructor who keeps new turns from beginning, "" for
    nobody. ``trouble``: why the machine could not be given back as it was, so that no turn begins; "" for nothing."""

    boot_id: str
    number: int = 0
    turn: Turn | None = None
    queue: tuple[Waiting, ...] = ()
    frozen_by: str = ""
    trouble: str = ""
    format_version: int = FORMAT_VERSION
