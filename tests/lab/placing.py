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
    """Plan and write. ``changes``: what was written; ``refused``: path → errno; ``skipped``: id → reason."""
    import sys

    sys.path.insert(0, project)
    from jitter_workshop.host.root import HostRoot
    from jitter_workshop.model.change import Wanted
    from jitter_workshop.model.cpuset import CpuSet
    from jitter_workshop.tuning.context import Host
    from jitter_workshop.tuning.kinds import kind_of
    from jitter_workshop.tuning.planning import plan
    from jitter_workshop.tuning.writer import HostWriter

    root, writer = HostRoot(), HostWriter()
    made = plan(Host(root, CpuSet.parse_list(hot)), [Wanted(*i.split("=", 1)) for i in ids])
    changes, refused = [], {}
    for change in made.changes:
        kind = kind_of(change.kind)
        fields = {name: getattr(change, name) for name in ("tunable", "kind", "path", "before", "after")}
        try:
            kind.write(writer, change.path, change.after)
        except ProcessLookupError:
            continue
        except OSError as error:
            refused[change.path] = str(error.errno)
            if kind.halfway(kind.read(root, change.path).text or "", change.after):
                kind.write(writer, change.path, change.before)
            continue
        found = kind.read(root, change.path).text or ""
        fields["found"] = found
        fields["same"] = kind.same(found, change.after)
        changes.append(fields)
    for fields in changes:
        fields["settled"] = kind_of(fields["kind"]).read(root, fields["path"]).text or ""
    return {"changes": changes, "refused": refused, "skipped": {s.tunable: s.reason for s in made.skipped}}


def undo(project: str, changes: list[dict[str, Any]]) -> list[str]:
    """Undo in reverse; what at the start said neither ``before`` nor ``after`` nor what the whole plan made of it is
    told, and undone all the same."""
    import sys

    sys.path.insert(0, project)
    from jitter_workshop.host.root import HostRoot
    from jitter_workshop.tuning.kinds import kind_of
    from jitter_workshop.tuning.writer import HostWriter

    root, writer = HostRoot(), HostWriter()
    foreign = []
    for change in changes:
        kind = kind_of(change["kind"])
        found = kind.read(root, change["path"]).text or ""
        known = (change["before"], change["after"], change.get("settled", ""))
        if kind.exists(root, change["path"]) and not any(kind.same(found, value) for value in known):
            foreign.append(f"{change['path']} says {found}: {change['before']} -> {change['after']}")
    for change in reversed(changes):
        kind = kind_of(change["kind"])
        if not kind.exists(root, change["path"]):
            continue
        kind.write(writer, change["path"], change["before"])
    return foreign


def assess(project: str, hot: str, ids: list[str]) -> dict[str, list[str]]:
    """State and reason by id."""
    import sys

    sys.path.insert(0, project)
    from jitter_workshop.host.root import HostRoot
    from jitter_workshop.model.cpuset import CpuSet
    from jitter_workshop.tuning.context import Host
    from jitter_workshop.tuning.registry import find

    host = Host(HostRoot(), CpuSet.parse_list(hot))
    return {i: [(found := find(i).assess(host)).state, found.reason] for i in ids}


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
