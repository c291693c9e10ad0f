"""Who else used the hot CPUs around a run: looked up before and after it with psutil, never during a block."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from dataclasses import dataclass

from jitter_workshop.model.run import ForeignLoad
from jitter_workshop.model.text import clean

NOTICED_PERCENT = 1.0
"""A task that used a hot CPU for less than this share of the run is not named."""

NOTICED_S = 0.03
"""Nor one that used less CPU time than this: the kernel may count it in ticks of 10 ms."""

_NAMED = 10


@dataclass(frozen=True, slots=True)
class Snapshot:
    """CPU seconds of every process (by pid and start time), at a moment of CLOCK_MONOTONIC."""

    at_s: float
    cpu_seconds: dict[tuple[int, float], float]


def snapshot() -> Snapshot:
    """Look at all processes now; those that cannot be read or end meanwhile are left out."""
    return Snapshot(time.monotonic(), {key: seconds for key, seconds, _, _, _ in _processes()})


def since(before: Snapshot, hot: Collection[int]) -> tuple[ForeignLoad, ...]:
    """Tasks that are not this process or its children and used CPU time since ``before``, largest first.

    A process counts when it was last seen on one of ``hot`` (empty: on any CPU): the kernel keeps one CPU number a
    process, so what moved away in the meantime is missed. ``cpu_percent`` is of one CPU over the whole time.
    """
    elapsed_s = time.monotonic() - before.at_s
    if elapsed_s <= 0:
        return ()
    rows = list(_processes())
    ours = _family({key[0]: parent for key, _, _, _, parent in rows})
    found: list[ForeignLoad] = []
    for key, seconds, cpu, name, _ in rows:
        used_s = seconds - before.cpu_seconds.get(key, 0.0)
        used_percent = 100 * used_s / elapsed_s
        on_hot = not hot or cpu is None or cpu in hot
        if key[0] not in ours and on_hot and used_s >= NOTICED_S and used_percent >= NOTICED_PERCENT:
            found.append(ForeignLoad(key[0], clean(name, 40), cpu, round(used_percent, 1)))
    return tuple(sorted(found, key=lambda load: -load.cpu_percent)[:_NAMED])


def _processes() -> list[tuple[tuple[int, float], float, int | None, str, int]]:
    """(pid, start time), CPU seconds, last CPU, name, parent's pid of every process."""
    import psutil

    rows = []
    for process in psutil.process_iter(["pid", "ppid", "create_time", "cpu_times", "cpu_num", "name"]):
        info = process.info
        times = info["cpu_times"]
        if times is not None and info["create_time"] is not None:
            key = (info["pid"], info["create_time"])
            rows.append((key, times.user + times.system, info["cpu_num"], info["name"] or "", info["ppid"] or 0))
    return rows


def _family(parents: dict[int, int]) -> set[int]:
    """This process and everything that it started."""
    ours = {os.getpid()}
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in ours} - ours
        ours |= more
        grown = bool(more)
    return ours
