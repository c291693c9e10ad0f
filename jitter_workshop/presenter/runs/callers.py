"""Order what ran on the measured CPUs so that each row stands below the one that called it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jitter_workshop.model.evidence import InterferingTask
from jitter_workshop.model.text import LABEL
from jitter_workshop.report.cause_words import cause_name

INDENTED = "An indented row ran inside the row above it. Each row has its own time alone, so the times add up."


def below_their_callers(visitors: Iterable[InterferingTask]) -> list[tuple[int, InterferingTask]]:
    """Return (depth, task or event) for each of ``visitors``, in the order of a table. A task or event that another one
    called has a depth of 1 or more and follows its caller. Of rows with one caller, that with the most time comes
    first; the times of the rows below it count, too. A row whose caller is not among ``visitors`` has the depth 0."""
    every = list(visitors)
    keys = {_key(one) for one in every}
    inside: dict[tuple[int, str, str], list[InterferingTask]] = {}
    outermost: list[InterferingTask] = []
    for one in every:
        caller = (one.cpu, one.outer_kind, one.outer_name)
        nested = one.is_nested and caller in keys and caller != _key(one)
        (inside.setdefault(caller, []) if nested else outermost).append(one)
    found: list[tuple[int, InterferingTask]] = []
    placed: set[tuple[int, str, str]] = set()

    def whole(one: InterferingTask, above: frozenset[tuple[int, str, str]] = frozenset()) -> int:
        key = _key(one)
        below = inside.get(key, ()) if key not in above else ()
        return one.total_ns + sum(whole(part, above | {key}) for part in below)

    def place(rows: Sequence[InterferingTask], depth: int) -> None:
        for one in sorted(rows, key=lambda row: -whole(row)):
            if _key(one) in placed:
                continue
            placed.add(_key(one))
            found.append((depth, one))
            place(inside.get(_key(one), ()), depth + 1)

    place(outermost, 0)
    # Rows that call each other have no outermost one.
    place([one for one in every if _key(one) not in placed], 0)
    return found


def name_of_row(depth: int, one: InterferingTask) -> str:
    """Return the name of a row for a table, indented by its depth."""
    return f"{'  ' * depth}{cause_name(one, LABEL - 2 * depth)}"


def _key(one: InterferingTask) -> tuple[int, str, str]:
    return one.cpu, one.kind, one.name
