"""A long plan in short: of each tunable the first few writes, and how many tasks it moves in one line each."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.model.change import Change
from jitter_workshop.model.text import clean, many

MOST = 6
"""Writes of a tunable that are shown as they are; of more of them there is an overview."""
_FIRST = 4
_AMONG = ", these among them"

_OF_TASKS = {
    "task-cgroup": ("leaves the hot CPUs", "leave the hot CPUs"),
    "affinity": ("is given other CPUs", "are given other CPUs"),
    "affinity-across": ("keeps its own limit", "keep their own limits"),
    "irq-thread": ("stays with its interrupt", "stay with their interrupts"),
    "governor-thread": ("stays with its governor", "stay with their governors"),
}
"""What the writes of a kind do to one task, and to several."""


def in_short(changes: Sequence[Change]) -> tuple[list[Change], list[str]]:
    """Of one tunable's writes those that are shown first, and a sentence for each sort of the others: "31 tasks leave
    the hot CPUs". All of them, and no sentence, where they are few."""
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
    """``isolation: 142 writes; 31 tasks leave the hot CPUs`` of one tunable's writes, "" where they are few."""
    said = [sentence.removesuffix(_AMONG) for sentence in in_short(changes)[1]]
    return "; ".join([f"{clean(changes[0].tunable, 40)}: {many(len(changes), 'write')}", *said]) if said else ""
