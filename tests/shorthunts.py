"""The way in which a learner solves a short hunt: by what the evidence says, and by nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.model.evidence import Cause, EvidenceReport
from jitter_workshop.model.noise import Noise, fill_in_name, is_cause

THIEF = "thief"
LEAST_NS = 200_000
"""The least time in ns that a hidden noise takes in a second: other programs of a host have timers and work, too."""
LONG_NS = 1_500_000
"""Between the half millisecond of a greedy thread and the 3 ms of spinners."""


def solved(suspects: Sequence[Noise], report: EvidenceReport) -> str | None:
    """Return the suspect that the causes of a traced run point to; None if none does.

    A cause of the kernel names its suspect at once. A task called 'thief' is a spinner if one burst is long, and a
    greedy thread if it is short.
    """
    ids = {one.id for one in suspects}
    for ident in ("workqueue", "softirq", "timer"):
        found = next((one for one in suspects if one.id == ident), None)
        wanted = [cause for what in found.does for cause in what.causes[:1]] if found is not None else []
        if ident == "timer":
            wanted = wanted[:1]
        seen = [one for cause in wanted for one in report.causes if is_cause(cause, one.kind, one.name)]
        if sum(one.ns_per_second for one in seen) >= LEAST_NS:
            return ident
    tasks = [one for one in report.causes if (one.kind, one.name) == ("task", THIEF)]
    if not tasks:
        return None
    kind = "spinners" if max(one.worst_ns for one in tasks) > LONG_NS else "greedy"
    return kind if kind in ids else None


def made(noise: Noise, quiet: bool = False) -> EvidenceReport:
    """The causes of a run beside a noise, or (``quiet``) of the same run without it: the tick and a kernel thread."""
    causes = [cause("vector", "local_timer", 900_000, 3_000), cause("task", "rcu_sched", 200_000, 9_000)]
    if not quiet:
        share = noise.busy_ns or 60_000
        a_second = 1_000_000_000 / noise.period_ns
        for what in fill_in_name(noise.does, THIEF):
            kind, name = what.causes[0]
            causes.append(cause(kind, name.replace("*", "x"), share * a_second, share))
    return EvidenceReport(1, "r", "trace", 1_000, "mono", 1, 0, tuple(causes), (), 1)


def cause(kind: str, name: str, ns_per_second: float, worst_ns: int) -> Cause:
    return Cause(kind, name, 1, 1, worst_ns, ns_per_second, 0)
