"""Define the turn on a shared machine: one team's time to change and measure. Root's process publishes these data for
all users.

Seconds count from the machine's start (CLOCK_BOOTTIME): no user can set this clock, and suspending does not stop it. A
state that was written in another boot is void.
"""

from __future__ import annotations

from jitter_workshop.model.record import dataclass

FORMAT_VERSION = 1
MAX_PEOPLE = 8
"""The largest number of names in a team."""


@dataclass(frozen=True, slots=True)
class Process:
    """Identify a process by its id and its start, in clock ticks since boot. The kernel may give the same id to a later
    process, which then has another start."""

    pid: int
    start: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """Hold an entry in the queue.

    - ``people``: the user names of the team, the connected user first.
    - ``agent``: root's process that serves the team. If this process ends, the team has left the queue.
    - ``client``: the team's own process. During the turn, this process and all processes that it starts may use the hot
      CPUs.
    - ``limit_s``: the length of the team's turn. None for an instructor, whose turn has no limit.
    """

    uid: int
    people: tuple[str, ...]
    agent: Process
    client: Process
    since_s: float
    limit_s: float | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """Hold the present turn.

    - ``number``: the number of this turn; the first turn after the machine's start has the number 1.
    - ``ends_s``: None for an instructor's turn.
    - ``doing``: what the holder does, in the holder's own words.
    - ``ended_by``: the instructor who ended the turn, "" if none did.
    - ``returning``: True if the turn has ended and the machine's settings are being restored.
    - ``origin``: the control group from which the client was moved, "" if it was not moved.
    """

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
    """Hold a turn that has begun. ``ends_in_s``: None for an instructor's turn. ``group``: the reason why the turn's
    processes have no own control group; "" if they have such a group."""

    number: int
    ends_in_s: float | None
    group: str


@dataclass(frozen=True, slots=True)
class TurnState:
    """Hold the turn of a shared machine, and the queue for it.

    - ``queue``: the waiting teams, the first to be served first.
    - ``frozen_by``: the instructor who lets no new turn begin, "" for none.
    - ``trouble``: the reason why the machine's settings could not be restored; "" if they were restored. No turn begins
      while there is trouble.
    """

    boot_id: str
    number: int = 0
    turn: Turn | None = None
    queue: tuple[Waiting, ...] = ()
    frozen_by: str = ""
    trouble: str = ""
    format_version: int = FORMAT_VERSION
