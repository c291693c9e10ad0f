"""One write to the host or to a process, as it is shown before it happens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Risk = Literal["low", "medium", "high"]
When = Literal["run", "runtime", "boot", "host", "report"]


@dataclass(frozen=True, slots=True)
class Change:
    """What would be written where. ``when`` = ``run`` lives only as long as a run (thread affinity); ``path`` is a file
    or, for thread affinity, the call that sets it."""

    n: int
    tunable: str
    path: str
    before: str
    after: str
    when: When
    risk: Risk
    why: str
