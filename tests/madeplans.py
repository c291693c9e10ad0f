"""Made-up plans: writes without a host."""

from __future__ import annotations

from jitter_workshop.model.change import Change


def change(n: int = 1, **fields: str) -> Change:
    made = {"tunable": "thp", "path": f"/sys/a/{n}", "before": "1", "after": "0", "why": "because", **fields}
    return Change(n=n, when="runtime", risk="low", **made)  # type: ignore[arg-type]


def isolation(tasks: int) -> tuple[Change, ...]:
    """A plan that makes two sets, keeps the limit of one task and moves many."""
    files = [change(n, tunable="isolation", path=f"/sys/fs/cgroup/cpuset/{n}") for n in (2, 3)]
    kept = change(1, tunable="isolation", path="sched_setaffinity(9@9)", kind="affinity-across", why="'a' is limited.")
    moved = (
        change(n, tunable="isolation", path=f"cgroup({n}@7)", kind="task-cgroup", why=f"'t{n}' leaves the hot CPUs.")
        for n in range(4, tasks + 4)
    )
    return (kept, *files, *moved)
