"""What ``status`` says of one tunable (DESIGN §9: ``checks``)."""

from __future__ import annotations

from typing import Literal

from jitter_workshop.model.change import When
from jitter_workshop.model.record import dataclass

State = Literal["ok", "improve", "unavailable", "info"]


@dataclass(frozen=True, slots=True)
class Drift:
    """A value that this tool set and somebody changed since. ``culprit``: who probably did, None where nobody known
    runs here."""

    path: str
    set: str
    found: str | None
    culprit: str | None


@dataclass(frozen=True, slots=True)
class Assessment:
    """One line of ``status``: what stands there, what would be better, why, and what to do.

    ``value`` is None where it cannot be known; the reason is then in ``reason``. ``wanted`` None: nothing is wanted
    (information). ``fix`` is empty where nothing is to be done. ``only_host``: only the owner of the hypervisor can
    answer this or act on it.
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
