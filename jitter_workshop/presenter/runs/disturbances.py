"""Name the other tasks that disturbed one run or two."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.flow.measuring.known_reason import loads_by_name, loads_by_trace, measured_cpus
from jitter_workshop.model.effect import RUN_NAMES
from jitter_workshop.model.evidence import MEASURED, task_called
from jitter_workshop.model.run import Run
from jitter_workshop.model.text import many
from jitter_workshop.report.cause_words import causes_to_show
from jitter_workshop.report.diagnosis_words import label
from jitter_workshop.stats.figures import KnownRun
from jitter_workshop.stats.scale import nice_ns

_NAMED = 2
LEAST_OWN_NS = 1e6
"""The least time, in ns of each second, that measured threads took from each other and that is told."""
UNCOUNTED = "Short-lived tasks are not counted."
"""The note on the CPU times of other tasks in a run without a trace."""
_WHOLE_PERCENT = 99.5
"""The least percentage that is told without decimals: ``.2g`` would write it as a power of ten."""


def disturbance_clause(seen: KnownRun, least: float = 0.0) -> str:
    """Return a clause on the other tasks that disturbed a run; "" for none.

    The busiest task comes first. Tasks with the same name are added up. With a trace, the clause is like ``disturbed by
    qemu (87 % of our CPU) and 2 more``. Without a trace, each task's time on all CPUs is known, and the clause is like
    ``qemu used 40 % of one CPU's time during the run``. Such times leave short-lived tasks out (UNCOUNTED).
    ``least``: tasks with a smaller percentage of one CPU are not named.
    """
    named, used = _disturbers(seen, least)
    return f"disturbed by {named}" if named else f"{used} during the run" if used else ""


def own_threads_clause(seen: KnownRun) -> str:
    """Return a clause on the time that a run's measured threads took from each other. Return "" if this was not the
    largest named cause of its stalls, if it took less than LEAST_OWN_NS of each second, or if the run has no trace."""
    if seen.report is None or seen.timeless or seen.report.measured_ns <= 0:
        return ""
    most = next((one for one in causes_to_show(seen.report) if one.kind not in ("no_event", "around")), None)
    if most is None or most.name != MEASURED:
        return ""
    each = most.total_ns * 1e9 / seen.report.measured_ns
    return f"{label(most.kind, most.name)} took {nice_ns(round(each))} of each second" if each >= LEAST_OWN_NS else ""


def disturbed_in_full(seen: KnownRun) -> str:
    """Return a sentence on the other tasks that disturbed a run, with the note UNCOUNTED where it applies; "" for
    none."""
    named, used = _disturbers(seen)
    if named:
        return f"The run was disturbed by {named}."
    return f"During the run, {used}. {UNCOUNTED}" if used else ""


def _disturbers(seen: KnownRun, least: float = 0.0) -> tuple[str, str]:
    """Return the tasks that disturbed a run: (names with shares of the measured CPUs, ""), if the run has a trace.
    Without a trace, return ("", a clause such as ``qemu used 40 % of one CPU's time``). Return ("", "") for no
    task. ``least``: as in :func:`disturbance_clause`."""
    together = loads_by_trace(seen)
    traced = together is not None
    if together is None:
        together = loads_by_name(seen.run)
    loads = sorted((load for load in together.items() if load[1] >= least), key=lambda load: -load[1])
    if not loads:
        return "", ""
    more = len(loads) - _NAMED
    shares = [f"{percent:.3g} %" if traced else f"{_share(percent)} %" for _, percent in loads[:_NAMED]]
    if traced:
        shares[0] += _our_cpus(seen)
        named = ", ".join(f"{task_called(name)} ({share})" for (name, _), share in zip(loads, shares, strict=False))
        return f"{named}{f' and {more} more' if more > 0 else ''}", ""
    used = [f"{task_called(name)} used {share}" for (name, _), share in zip(loads, shares, strict=False)]
    used[0] += " of one CPU's time"
    rest = f" and {many(more, 'other task')} used less" if more > 0 else ""
    return "", f"{', '.join(used)}{rest}"


def _share(percent: float) -> str:
    """Return a percentage with two significant digits, never as a power of ten."""
    return f"{percent:.2g}" if percent < _WHOLE_PERCENT else f"{percent:.0f}"


def _our_cpus(seen: KnownRun) -> str:
    """Return the words after a percentage of CPU time: "of our CPU", or "of our N CPUs" for N measured CPUs."""
    number = measured_cpus(seen)
    return f" of our {number} CPUs" if number > 1 else " of our CPU"


def disturbances_of_two(runs: Sequence[KnownRun], least: float) -> list[str]:
    """Return sentences on the other tasks that disturbed two runs; [] for none. ``least``: as in
    :func:`disturbance_clause`."""
    first, second = (_disturbers(seen, least) for seen in runs)
    if first == second and first[0]:
        return [f"Both runs were disturbed by {first[0]}."]
    if first == second and first[1]:
        return [f"In each run, {first[1]}."]
    if first[0] and second[0]:
        return [f"The first run was disturbed by {first[0]}, the second by {second[0]}."]
    told = []
    for which, (named, used) in (("first", first), ("second", second)):
        told += [f"The {which} run was disturbed by {named}."] if named else []
        told += [f"In the {which} run, {used}."] if used else []
    return told


def disturbed_without_trace(runs: Sequence[KnownRun]) -> tuple[int, ...]:
    """Return the indices of the runs that other tasks disturbed by at least NOTICED_PERCENT of a CPU, if none of two
    runs has a trace, which would show the stalls of each task. Return () for runs of another or an emulated machine."""
    if any(seen.timeless or seen.recorded is not None or loads_by_trace(seen) is not None for seen in runs):
        return ()
    return tuple(at for at, seen in enumerate(runs) if loads_by_name(seen.run))


def disturbed_pair_told(runs: Sequence[KnownRun], *, judged: bool, key: str = "") -> str:
    """Return a sentence on :func:`disturbed_without_trace`, with its consequence; "" if no run was disturbed so.
    ``judged``: True if the verdict calls the second run better or worse, or perhaps so: the verdict then has its own
    rule on other work. ``key``: the key that makes the one disturbed run again; "" for none."""
    found = disturbed_without_trace(runs)
    if not found:
        return ""
    both = len(found) > 1
    whose = f"{'Both runs were' if both else f'The {RUN_NAMES[found[0]]} run was'} disturbed"
    busiest = " and ".join(dict.fromkeys(_busiest(runs[at].run) for at in found))
    if judged:
        why = f"{'their' if both else 'its'} longest stalls may come from this"
    else:
        why = "their tails are not comparable" if both else "its tail is not comparable"
    again = f" {key} measures again." if key and not both else ""
    return f"{whose} ({busiest} of a CPU): {why}.{again}"


def _busiest(run: Run) -> str:
    """Return the task that used most CPU time during a run, with its share of one CPU: ``python3, 1.2 %``."""
    loads = loads_by_name(run)
    name = max(loads, key=lambda one: loads[one])
    return f"{task_called(name)}, {_share(loads[name])} %"
