"""List possible explanations of a gap without an event, with a run's facts for or against each. None is a finding."""

from __future__ import annotations

from jitter_workshop.model.run import Run
from jitter_workshop.stats.scale import nice_ns


def candidates(run: Run) -> tuple[str, ...]:
    """Return a sentence for each candidate that this host leaves open, the likeliest first. They contain names from
    outside."""
    hypervisor = run.host.get("hypervisor")
    throttled = sum(block.throttle_events or 0 for block in run.blocks)
    found = []
    if hypervisor:
        found.append(f"the hypervisor ({hypervisor}) ran something else: {_steal(run)}")
    if throttled:
        found.append(f"the processor slowed itself down: it throttled {throttled:,} times in this run")
    if not hypervisor:
        found.append("the firmware stopped all CPUs (SMI): this run has no count of that")
    if run.host.get("smt"):
        found.append("the other thread of the same core was busy (SMT): no trace of this CPU shows that")
    found.append("memory: a cache line, a page or a bus that something else used just then")
    return tuple(found)


def _steal(run: Run) -> str:
    if run.steal_ns is None:
        return "it does not say (no steal clock)"
    if run.steal_ns:
        return f"its steal clock grew by {nice_ns(run.steal_ns)} in this run"
    steps = f" of {nice_ns(run.steal_resolution_ns)}" if run.steal_resolution_ns else ""
    return f"its steal clock stood still, but it only counts in steps{steps}"
