"""Many machines side by side: hosts × checks of ``status --json``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jitter_workshop.model.record import dataclass, field
from jitter_workshop.model.text import called, clean

_MARKS = {"ok": "✓", "improve": "!", "unavailable": "·", "info": "i"}
_NONE = " "


@dataclass(frozen=True, slots=True)
class Row:
    """One machine. ``states``: check → state; ``error``: why there is none."""

    host: str
    states: dict[str, str] = field(default_factory=dict)
    error: str = ""

    @property
    def well(self) -> bool:
        """It answered, and has nothing to improve."""
        return not self.error and "improve" not in self.states.values()

    def plain(self) -> dict[str, Any]:
        return {"host": self.host, "checks": self.states or None, "error": self.error or None, "well": self.well}


def fleet(machines: Iterable[tuple[str, dict[str, Any] | None, str]]) -> tuple[Row, ...]:
    """Of each machine: its name, the JSON of its ``status`` or None, and what else went wrong."""
    found = []
    for host, status, error in machines:
        checks = status.get("checks") if status is not None else None
        if not isinstance(checks, list):
            found.append(Row(clean(host, 40), {}, error or "status.json holds no checks"))
            continue
        states = {
            clean(one["id"], 30): one["state"]
            for one in checks
            if isinstance(one, dict) and isinstance(one.get("id"), str) and one.get("state") in _MARKS
        }
        found.append(Row(clean(host, 40), states, error))
    return tuple(found)


def fleet_text(rows: Sequence[Row]) -> str:
    """A table: a line a check, a column a machine; checks that say the same everywhere are counted, not listed."""
    names = [called(row.host, 12) for row in rows]
    checks = list(dict.fromkeys(ident for row in rows for ident in row.states))
    wide = max((len(ident) for ident in checks), default=0)
    lines = [" " * wide + "  " + "  ".join(f"{name:>12}" for name in names)]
    same = 0
    for ident in checks:
        said = [row.states.get(ident, "") for row in rows]
        if len(set(said)) == 1 and said[0] != "improve":
            same += 1
            continue
        lines.append(f"{ident:<{wide}}  " + "  ".join(f"{_MARKS.get(state, _NONE):>12}" for state in said))
    if same:
        lines.append(
            f"{same} {'check says' if same == 1 else 'checks say'} the same on every machine, with nothing to do"
        )
    lines.append("✓ good  ! can be better  · not on this machine  i only told")
    lines += [f"{called(row.host, 40)}: {clean(row.error, 200)}" for row in rows if row.error]
    return "".join(f"{line.rstrip()}\n" for line in lines)
