"""Shorten a long plan: the first few writes of each tunable, and one line per kind of task with their number."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.model.change import Change
from jitter_workshop.model.text import clean, many

MOST = 6
"""Up to this number all writes of a tunable are shown; above it an overview is shown."""
_FIRST = 4
_AMONG = ", these among them"

_OF_TASKS = {
    "task-cgroup": ("leaves the hot CPUs", "leave the hot CPUs"),
    "affinity": ("is given other CPUs", "are given other CPUs"),
    "affinity-across": ("keeps its own limit", "keep their own limits"),
    "irq-thread": ("stays with its interrupt", "stay with their interrupts"),
    "governor-thread": ("stays with its governor", "stay with their governors"),
}
"""The effect of a kind of write on one task, and on several."""


def in_short(changes: Sequence[Change]) -> tuple[list[Change], list[str]]:
    """Return the writes of one tunable that are shown first, and a sentence for each kind of the others: "31 tasks
    leave the hot CPUs". Where the writes are few, return all of them and no sentence."""
    if len(changes) <= MOST:
        return list(changes), []
    files = [change for change in changes if change.kind not in _OF_TASKS]
    shown = (files or list(changes))[:_FIRST]
    said = []
    for kind, words in _OF_TASKS.items():
        count = len({change.path for change in changes if change.kind == kind})
        if count:
            among = "" if files else _AMONG
            said.append(f"{many(count, 'task')} {words[count > 1]}{among}")
    if len(files) > len(shown):
        said.append(f"{many(len(files) - len(shown), 'more write')} of this tunable")
    return shown, said


def overview(changes: Sequence[Change]) -> str:
    """Return ``isolation: 142 writes; 31 tasks leave the hot CPUs`` for one tunable's writes; "" where they are few."""
    said = [sentence.removesuffix(_AMONG) for sentence in in_short(changes)[1]]
    return "; ".join([f"{clean(changes[0].tunable, 40)}: {many(len(changes), 'write')}", *said]) if said else ""
