"""Define the data of ``status``: its checks, and a session's records of checks and of changed settings."""

from __future__ import annotations

from typing import Literal

from jitter_workshop.model.change import When
from jitter_workshop.model.record import dataclass

FORMAT_VERSION = 1
State = Literal["ok", "improve", "unavailable", "info"]
Did = Literal["applied", "refused", "restored", "left_alone", "kept"]


@dataclass(frozen=True, slots=True)
class SettingDrift:
    """Hold a setting that this tool wrote and that something else has changed since. ``culprit``: a running program
    that probably made the change, None if there is none."""

    path: str
    set: str
    found: str | None
    culprit: str | None


@dataclass(frozen=True, slots=True)
class Assessment:
    """Hold one check of ``status``.

    - ``value``: the value found. None if it cannot be known; ``reason`` then says why.
    - ``wanted``: a better value, None for a check that only informs.
    - ``fix``: what the user can do, "" if there is nothing to do.
    - ``only_host``: True if only the owner of this guest's hypervisor, or of this container's host, can find out the
      value or change it.
    """

    id: str
    title: str
    state: State
    value: str | None
    wanted: str | None
    reason: str
    when: When
    paths: tuple[str, ...]
    fix: str
    drifted: SettingDrift | None = None
    only_host: bool = False


@dataclass(frozen=True, slots=True)
class HostEvent:
    """Hold one event of a session's history of writes.

    ``did``:

    - applied: the value was changed from ``before`` to ``after``. ``read_back`` is the value read after the whole plan
      (None: unreadable).
    - restored: ``before`` is the value found, ``after`` the restored value.
    - refused, left_alone: nothing was written; ``reason`` says why.
    - kept: the setting should have been restored at the end of the workshop. Now it stays until the user runs
      ``restore``.

    Other fields:

    - ``chapter``: the chapter that asked for the write, "" if the user asked for it on the command line.
    - ``kept``: True if the write was meant from the beginning to stay until ``restore``.
    - ``proof``: id of the proof that made the write, "" for none.
    - ``boot_id``: the boot in which the write was made, None if not known.
    """

    at: str
    did: Did
    tunable: str
    path: str
    before: str | None
    after: str | None
    read_back: str | None = None
    reason: str = ""
    chapter: str = ""
    kept: bool = False
    proof: str = ""
    boot_id: str | None = None


@dataclass(frozen=True, slots=True)
class CheckState:
    """Hold a check of ``status`` in short. ``state``: ok | improve | unavailable | info."""

    id: str
    title: str
    state: State
    value: str | None
    wanted: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Hold ``status`` at one time: all checks, the hot CPUs, the boot, and the settings that this tool had applied."""

    format_version: int
    at: str
    host: str
    boot_id: str | None
    hot_cpus: tuple[int, ...]
    checks: tuple[CheckState, ...]
    applied: tuple[dict[str, str], ...] = ()
