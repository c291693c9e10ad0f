"""Show many machines side by side: hosts × checks of ``status --json``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jitter_workshop.model.assessment import State
from jitter_workshop.model.record import dataclass, field
from jitter_workshop.model.text import called, clean, many
from jitter_workshop.report.text.status import MARKS
from jitter_workshop.report.text.terminal import Style, columns_of, in_columns, wrap

_SILENT = "?"
_LONGEST = 16
_GAP = 1
_KEYS = "✓ good, ▲ can be better, – not on this machine, · only told, ? no answer"


@dataclass(frozen=True, slots=True)
class Row:
    """Hold one machine. ``states``: check → state. ``error``: what is missing, "" if nothing is."""

    host: str
    states: dict[str, State] = field(default_factory=dict)
    error: str = ""

    @property
    def well(self) -> bool:
        """Return True if the machine answered and has nothing to improve."""
        return not self.error and bool(self.states) and "improve" not in self.states.values()

    def plain(self) -> dict[str, Any]:
        return {
            "host": self.host,
            "checks": self.states or None,
            "error": self.error or None,
            "well": self.well,
            "notes": {} if self.states else {"checks": self.error},
        }


_Column = tuple[str, Row]


def fleet(machines: Iterable[tuple[str, dict[str, Any] | None, str]]) -> tuple[Row, ...]:
    """Return a row per machine. Each machine is given as its name, the JSON of its ``status`` or None, and any other
    error."""
    found = []
    for host, status, error in machines:
        checks = status.get("checks") if status is not None else None
        states = dict(filter(None, map(_state, checks if isinstance(checks, list) else ())))
        found.append(Row(called(host, 40), states, error or ("" if states else "status.json holds no checks")))
    return tuple(found)


def _state(check: object) -> tuple[str, State] | None:
    """Return a check's name and state; None if it is no valid check."""
    if not isinstance(check, dict) or not isinstance(check.get("id"), str):
        return None
    return next(((called(check["id"], 30), state) for state in MARKS if check.get("state") == state), None)


def fleet_text(rows: Sequence[Row], style: Style) -> str:
    """Return the errors of the machines first, then tables with a line per check and a column per machine, as many as
    the width needs. A check that has the same state everywhere, with nothing to do, is counted and not listed."""
    well = sum(row.well for row in rows)
    lines = [style.paint(f"{many(len(rows), 'machine')}, {well or 'none'} with nothing to improve", "strong")]
    for row in rows:
        if row.error:
            why = clean(row.error, 200)
            told = wrap(f"{row.host}: {why if row.states else f'silent ({why})'}", style.width)
            lines += [style.paint(line, "attention") for line in told]
    answered = [row for row in rows if row.states]
    checks = list(dict.fromkeys(ident for row in answered for ident in row.states))
    shown = [ident for ident in checks if _differs([row.states.get(ident, "") for row in answered])]
    if shown:
        columns = list(zip(_short([row.host for row in rows]), rows, strict=True))
        for part in _parts(columns, shown, style.width):
            lines += ["", *_table(part, shown, style)]
        lines += ["", *(style.paint(line, "dim") for line in wrap(_KEYS, style.width))]
    same = len(checks) - len(shown)
    if same:
        says = "1 check says" if same == 1 else f"{same} checks say"
        lines += wrap(f"{says} the same on every machine that answered, with nothing to do.", style.width)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _differs(said: Sequence[str]) -> bool:
    return len(set(said)) > 1 or "improve" in said


def _short(hosts: Sequence[str]) -> list[str]:
    """Return the names without the domain, if they still differ."""
    first = [host.partition(".")[0] for host in hosts]
    return first if all(first) and len(set(first)) == len(set(hosts)) else list(hosts)


def _parts(columns: Sequence[_Column], checks: Sequence[str], width: int) -> Iterator[Sequence[_Column]]:
    """Yield groups of machines, as many side by side as fit."""
    first = max(columns_of(ident) for ident in checks)
    each = max((width - first) // (_GAP + _widest(columns)), 1)
    for start in range(0, len(columns), each):
        yield columns[start : start + each]


def _widest(columns: Sequence[_Column]) -> int:
    return min(max(columns_of(name) for name, _ in columns), _LONGEST)


def _table(columns: Sequence[_Column], checks: Sequence[str], style: Style) -> Iterator[str]:
    first, each = max(columns_of(ident) for ident in checks), _widest(columns)
    gap = " " * _GAP
    yield style.paint(" " * first + "".join(gap + in_columns(name, each) for name, _ in columns), "dim")
    for ident in checks:
        yield in_columns(ident, first) + "".join(gap + _mark(row, ident, each, style) for _, row in columns)


def _mark(row: Row, ident: str, width: int, style: Style) -> str:
    nothing = (" ", "", "dim") if row.states else (_SILENT, "", "attention")
    state = row.states.get(ident)
    mark, _, how = MARKS[state] if state is not None else nothing
    left = (width - 1) // 2
    return " " * left + style.paint(mark, how) + " " * (width - 1 - left)
