"""Define ``status`` as plain data: its checks, and a session's record of them and of the settings that were changed."""

from __future__ import annotations

from typing import Literal

from jitter_workshop.model.change import When
from jitter_workshop.model.record import dataclass

FORMAT_VERSION = 1
State = Literal["ok", "improve", "unavailable", "info"]
Did = Literal["applied", "refused", "restored", "left_alone", "kept"]


@dataclass(frozen=True, slots=True)
class Drift:
    """Hold a value that this tool set and something else changed since. ``culprit``: the likely source of the change,
    None where no known one runs here."""

    path: str
    set: str
    found: str | None
    culprit: str | None


@dataclass(frozen=True, slots=True)
class Assessment:
    """Hold one line of ``status``: the value found, a better value, the reason, and what to do.

    ``value`` is None where it cannot be known; ``reason`` then says why. ``wanted`` is None for information alone.
    ``fix`` is empty where there is nothing to do. ``only_host``: only the owner of the hypervisor can answer this or
    act on it.
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
    drifted: Drift | None = None
    only_host: bool = False


@dataclass(frozen=True, slots=True)
class HostEvent:
    """Hold one write, or one refused write, in the order of time. ``did``:

    - applied: ``before`` → ``after``; ``read_back`` is the value read after the whole plan (None: unreadable).
    - restored: ``before`` is the value found, ``after`` the value given back.
    - refused, left_alone: ``reason`` says why.
    - kept: a setting that was to be given back on leaving stays until ``restore`` from now on.

    ``chapter``: the chapter that asked for it, "" for a verb. ``kept``: it was applied to stay until ``restore``.
    ``proof``: id of the proof it was part of, or "". ``boot_id``: the boot it happened in, None where not known.
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
    """Hold ``status`` at a moment: every check, its hot CPUs, its boot, and the settings that this tool had applied."""

    format_version: int
    at: str
    host: str
    boot_id: str | None
    hot_cpus: tuple[int, ...]
    checks: tuple[CheckState, ...]
    applied: tuple[dict[str, str], ...] = ()
