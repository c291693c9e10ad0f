"""What happened to a host during a session, as the session keeps it: settings changed and given back, and its status at
two moments. Plain data for the report."""

from __future__ import annotations

from typing import Literal

from jitter_workshop.model.assessment import State
from jitter_workshop.model.record import dataclass

FORMAT_VERSION = 1
Did = Literal["applied", "refused", "restored", "left_alone", "kept"]


@dataclass(frozen=True, slots=True)
class HostEvent:
    """One write, or one that was refused, in the order of time. ``did``:

    applied: ``before`` → ``after``, and ``read_back`` is what the host said after the whole plan (None: unreadable);
    restored: ``before`` is what stood, ``after`` what was given back; refused and left_alone: ``reason`` says why;
    kept: what was applied before, to be given back on leaving, stays until ``restore`` from now on.
    ``chapter``: where it was asked for from, "" for a verb. ``kept``: it was applied to stay until ``restore``.
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
    """A check of ``status`` in short. ``state``: ok | improve | unavailable | info."""

    id: str
    title: str
    state: State
    value: str | None
    wanted: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """``status`` at a moment: every check, the hot CPUs it was for, the boot it was in, and what this tool had set."""

    format_version: int
    at: str
    host: str
    boot_id: str | None
    hot_cpus: tuple[int, ...]
    checks: tuple[CheckState, ...]
    applied: tuple[dict[str, str], ...] = ()
