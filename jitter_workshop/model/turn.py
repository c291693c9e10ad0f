"""Define the turn on a shared machine, as root publishes it for all to read.

Seconds count from the machine's start (CLOCK_BOOTTIME): no user can set this clock, and suspending does not stop it. A
state of another boot describes no turn.
"""

from __future__ import annotations

from jitter_workshop.model.record import dataclass

FORMAT_VERSION = 1
MAX_PEOPLE = 8
"""The largest number of names in a team."""


@dataclass(frozen=True, slots=True)
class Process:
    """Identify a process for ever by its number and its start (in clock ticks). The kernel may use a number again, but
    never with the same start.
    """

    pid: int
    start: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """Hold an entry in the queue. ``people``: the user names of the team, the connected user first. ``agent``: root's
    process that serves them; when it ends they have left. ``client``: their own process, which gets onto the hot CPUs
    with all that it starts. ``limit_s``: the length of their turn, None for an instructor, who holds the machine until
    giving it back."""

    uid: int
    people: tuple[str, ...]
    agent: Process
    client: Process
    since_s: float
    limit_s: float | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """Hold the turn that has the machine. ``number``: count of turns since the machine's start. ``ends_s``: None while
    an instructor holds it. ``doing``: in the holder's own words. ``ended_by``: the instructor who ended it, "" if none
    did. ``returning``: it has ended, and the machine is being given back. ``origin``: the control group that the client
    came from, "" while it was not moved."""

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
    """Hold a turn that has begun. ``ends_in_s``: None for an instructor's. ``group``: why its processes have no control
    group of their own, "" if they have one.
    """

    number: int
    ends_in_s: float | None
    group: str


@dataclass(frozen=True, slots=True)
class TurnState:
    """Hold the turn and its queue. ``queue``: first come, first served. ``frozen_by``: the instructor who keeps new
    turns from beginning, "" for none. ``trouble``: why the machine's settings could not be restored, "" if they were.
    No turn begins while this is set.
    """

    boot_id: str
    number: int = 0
    turn: Turn | None = None
    queue: tuple[Waiting, ...] = ()
    frozen_by: str = ""
    trouble: str = ""
    format_version: int = FORMAT_VERSION
