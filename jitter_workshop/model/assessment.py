"""Define one line of ``status`` as plain data: its ``checks``."""

from __future__ import annotations

from typing import Literal

from jitter_workshop.model.change import When
from jitter_workshop.model.record import dataclass

State = Literal["ok", "improve", "unavailable", "info"]


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
