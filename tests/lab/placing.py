"""Planning, writing and undoing in the guest without the agent, so that a family's tests need only its tunables.

``do(lab, apply, "3", ["isolation"])``: the whole file goes into the guest, and the function runs there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.lab.machine import Machine


def do(machine: Machine, function: Callable[..., Any], *arguments: Any) -> Any:
    """Run one of the functions below in the guest."""
    from tests.lab.machine import PROJECT

    source = Path(__file__).read_text()
    return machine.call_source(source, function.__name__, PROJECT, *arguments)


def apply(project: str, hot: str, ids: list[str]) -> dict[str, Any]:
    """Plan and write as the agent does.

    ``changes``: what was written, with what the host said then (``found``), whether that means the same as what was
    wanted (``same``) and what it said at the end (``settled``); ``refused``: path → reason; ``skipped``: id → reason.
    """
    import sys

    sys.path.insert(0, project)
    from jitter_workshop.host.root import HostRoot
    from jitter_workshop.model.change import Wanted
    from jitter_workshop.model.cpuset import CpuSet
    from jitter_workshop.tuning.applying import apply_changes
    from jitter_workshop.tuning.context import Host
    from jitter_workshop.tuning.planning import plan_changes
    from jitter_workshop.tuning.setting_types.kinds import kind_of
    from jitter_workshop.tuning.writer import HostWriter

    class Keeper:
        def __init__(self) -> None:
            self.found: dict[int, str] = {}

        def intents(self, changes: Any) -> None: ...
        def refused(self, n: int, reason: str) -> None: ...
        def then(self, name: str) -> None: ...

        def written(self, n: int, read_back: str | None) -> None:
            self.found.setdefault(n, read_back or "")

    root, keeper = HostRoot(), Keeper()
    made = plan_changes(Host(root, CpuSet.parse_list(hot)), [Wanted(*i.split("=", 1)) for i in ids])
    result = apply_changes(root, HostWriter(), made.changes, keeper)
    changes = []
    for done in result.applied:
        change = next(one for one in made.changes if one.n == done.n)
        fields = {name: getattr(change, name) for name in ("n", "tunable", "kind", "path", "before", "after")}
        found = keeper.found.get(done.n, "")
        fields |= {"found": found, "same": kind_of(change.kind).same(found, change.after)}
        changes.append(fields | {"settled": done.read_back or ""})
    refused = {one.path: one.reason for one in result.refused}
    return {"changes": changes, "refused": refused, "skipped": {s.tunable: s.reason for s in made.skipped}}


def undo(project: str, changes: list[dict[str, Any]]) -> list[str]:
    """Give back as the agent does; a line for each setting that was left alone."""
    import sys

    sys.path.insert(0, project)
    from jitter_workshop.host.root import HostRoot
    from jitter_workshop.tuning.journal import Entry, Journal
    from jitter_workshop.tuning.restoring import restore_journals
    from jitter_workshop.tuning.writer import HostWriter

    class Recorder:
        def __getattr__(self, name: str) -> Any:
            return lambda *told: None

    entries = {}
    for c in changes:
        names = ("n", "tunable", "path", "kind", "before", "after")
        fields = {name: c[name] for name in names} | {"state": "written", "read_back": c["settled"]}
        entries[c["n"]] = Entry("1", when="runtime", lease=False, then="", boot_id=None, **fields)
    left = restore_journals(HostRoot(), HostWriter(), [(Journal("1", entries=entries), Recorder())], None).left_alone
    return [f"{one.path} says {one.found}: {one.reason}" for one in left]


def assess(project: str, hot: str, ids: list[str]) -> dict[str, list[str]]:
    """State and reason by id."""
    import sys

    sys.path.insert(0, project)
    from jitter_workshop.host.root import HostRoot
    from jitter_workshop.model.cpuset import CpuSet
    from jitter_workshop.tuning.context import Host
    from jitter_workshop.tuning.tunables.registry import find_tunable

    host = Host(HostRoot(), CpuSet.parse_list(hot))
    return {i: [(found := find_tunable(i).assess(host)).state, found.reason] for i in ids}


def pinned(cpus: str) -> None:
    """Become a task that may use only these CPUs, say so, and wait to be ended."""
    import os
    import time

    os.sched_setaffinity(0, {int(cpu) for cpu in cpus.split(",")})
    print("pinned", flush=True)
    time.sleep(1_000)


def affinity(project: str, pid: int) -> list[int]:
    """A task's CPUs."""
    import os

    return sorted(os.sched_getaffinity(pid))
