"""Find a known reason why two runs differ. Such runs cannot be compared: one of them has to be made again.

A reason why runs differ that were made in the same way is what the trace, the messages or the counters show, in this
order. Time without an event is no reason, because nothing shows who took it.

If a change was made between them, their latency cannot be compared if another task took much more in one of the runs.
The same sizes count as much for both kinds of runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.bench.foreign_activity import NOTICED_PERCENT
from jitter_workshop.model.effect import RUN_NAMES, CauseTime, KnownReason, Relation
from jitter_workshop.model.evidence import CPU_THREADS, FREE_THREADS, load_called, task_called
from jitter_workshop.model.judgement import OtherTask
from jitter_workshop.model.noise import HIDDEN_THREADS
from jitter_workshop.model.run import Run
from jitter_workshop.model.text import ID
from jitter_workshop.stats.effect import MOVED, unlike_count
from jitter_workshop.stats.figures import Figure, KnownRun, preempted_in
from jitter_workshop.stats.omission import sent_share, sent_told, share_told
from jitter_workshop.stats.scale import nice_ns

LEAST_SHARE = 0.1
"""A cause with less than this share of a run's stalled time made no tail, so it explains none."""
LEAST_NS = 1e6
"""The least difference in a cause's time, in ns a second, that is a reason. It is a thousandth of the time, so it can
move p99.9."""
LEAST_TOLD = 0.01
"""The least share of a run's stalled time with which a cause is told at all."""
_LEAST_COUNT = 100.0
"""The least difference in a count, per second, that is a reason. It is one event for each thousand messages."""
_MOST_CAUSES = 2
MUCH_WORK = 5.0
"""The least share of a CPU, in per cent, of a task that is named where there is little room."""
UNCOMPARED = ("Not comparable: ", "Latency is not comparable: ")
"""The words before a reason: of two runs that were made in the same way, and of two with a change between them. The
change may show in a count all the same."""
OF_THE_KERNEL = (*CPU_THREADS, *FREE_THREADS)
"""The beginnings of the names of kernel tasks, which do the work of others. They may do that of a noise, and a change
may give them more of it."""


def reason_of(
    relation: Relation, before: KnownRun, after: KnownRun, causes: Sequence[CauseTime] = ()
) -> KnownReason | None:
    """Return the reason why two runs with this relation cannot be compared, by :func:`known_reason` or
    :func:`other_work`. Return None if none is known. ``causes``: as in these functions."""
    if relation == "alike":
        return known_reason(before, after, causes)
    return other_work(before, after, causes) if relation == "changed" else None


def known_reason(before: KnownRun, after: KnownRun, causes: Sequence[CauseTime] = ()) -> KnownReason | None:
    """Return the reason why two runs that were made in the same way cannot be compared; None if none is known.
    ``causes``: the time of each cause in both runs; () if a run has no trace."""
    if before.timeless or after.timeless:
        return None
    runs, found = (before, after), causes_of_difference(causes)
    shares = [None if seen.run.noise is not None else sent_share(seen) for seen in runs]
    few, counted = _fewest(shares), None if causes else _counted(before, after)
    if few is not None:
        which = few
    elif found:
        which = _larger(found[0].ns)
    elif counted is not None:
        which = _larger(_values(counted, before, after))
    else:
        return None
    other, parts = f"in the {RUN_NAMES[1 - which]} run", list[str]()
    if few is not None:
        there = shares[1 - which]
        besides = "" if there is None else f" ({share_told(there)} {other})"
        parts.append(f"{sent_told(shares[which] or 0.0)} of the planned messages were sent{besides}")
    found = found if found and _larger(found[0].ns) == which else ()
    parts += [_took(one, which, other if at == 0 else "", first=at == 0) for at, one in enumerate(found)]
    if counted is not None and _larger(_values(counted, before, after)) == which:
        here, there_told = (counted.shown(counted.of(seen)) for seen in (runs[which], runs[1 - which]))
        parts += [f"{counted.title}: {here} a second ({there_told} {other})", *_work_told(runs[which])]
    if few is not None and len(parts) == 1:
        parts.append("a thread was stopped for long")
    told = ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1]
    labels = tuple(one.label for one in found)
    return KnownReason(f"in the {RUN_NAMES[which]} run, {told}", which, few=few is not None, causes=labels)


def other_work(before: KnownRun, after: KnownRun, causes: Sequence[CauseTime] = ()) -> KnownReason | None:
    """Return the reason why the latency of two runs cannot be compared, although a change was made between them:
    another task took much more time in one of them. Return None if no task did, for runs beside different noises, and
    for runs of another machine.

    By the trace, this is the task of :func:`other_task`, if it is enough. Without ``causes``, it is a task that used at
    least MUCH_WORK per cent of a CPU more in the second run. A task that used less may have been kept away by the
    change.
    """
    if not _can_be_made_again(before, after):
        return None
    if causes:
        task = other_task(before, after, causes)
        if task is None or not task.enough:
            return None
        told = _took(task, task.run, f"in the {RUN_NAMES[1 - task.run]} run", first=True)
        return KnownReason(f"in the {RUN_NAMES[task.run]} run, {told}", task.run, causes=(task.label,))
    first, second = loads_by_name(before.run), loads_by_name(after.run)
    name = max(second, key=lambda one: second[one] - first.get(one, 0.0), default="")
    used, there = second.get(name, 0.0), first.get(name, 0.0)
    if used - there < MUCH_WORK or used < MOVED * there:
        return None
    other = f"{there:.3g} %" if there else "none"
    return KnownReason(
        f"in the second run, {task_called(name)} used {used:.3g} % of a CPU ({other} in the first run)", 1
    )


def other_task(before: KnownRun, after: KnownRun, causes: Sequence[CauseTime]) -> OtherTask | None:
    """Return the task of others that took the most more time in one of two runs: LEAST_NS more, the factor MOVED, and
    LEAST_TOLD of the stalled time. It is *enough* to explain the difference between the runs if it has
    :func:`much_more` time, at least half as much more as all stalls differ; a task that is enough comes first. A task
    that the change acts on is none, and the chapter's own load is none. Return None if there is no such task, for runs
    beside different noises, and for runs of another machine."""
    if not _can_be_made_again(before, after):
        return None
    whole = [sum(one.ns[run] for one in causes) for run in (0, 1)]
    apart = whole[1] - whole[0]
    found = [one for one in causes if is_other_task(one) and _grown(one) >= LEAST_NS]
    found = [
        one
        for one in found
        if max(one.ns) >= MOVED * min(one.ns) and max(one.ns) >= LEAST_TOLD * whole[_larger(one.ns)]
    ]
    enough = [one for one in found if 2 * _grown(one) >= abs(apart) and much_more(one, _larger(one.ns), whole)]
    most = max(enough or found, key=_grown, default=None)
    if most is None:
        return None
    share = (most.ns[1] - most.ns[0]) / apart if apart else None
    return OtherTask(most.label, most.ns, share, max(most.ns) / whole[_larger(most.ns)], bool(enough))


def _can_be_made_again(before: KnownRun, after: KnownRun) -> bool:
    """Return False for runs of another or an emulated machine, and for runs that lie apart by plan, because they were
    made beside different noises."""
    if any(seen.timeless or seen.recorded is not None for seen in (before, after)):
        return False
    return before.run.noise == after.run.noise


def loads_by_trace(seen: KnownRun) -> dict[str, float] | None:
    """Return the other tasks on the measured CPUs, as name → percent of these CPUs' time. Return None if the run has no
    trace. The measured threads and the run's own noise are left out."""
    report = seen.report
    if report is None or report.residence is None or report.measured_ns <= 0:
        return None
    ours = {seen.run.noise, HIDDEN_THREADS}
    whole_ns = report.measured_ns * measured_cpus(seen)
    found: dict[str, float] = {}
    for one in report.residence.visitors:
        if one.kind == "task" and one.name not in ours:
            found[one.name] = found.get(one.name, 0.0) + 100 * one.total_ns / whole_ns
    return {name: percent for name, percent in found.items() if percent >= NOTICED_PERCENT}


def measured_cpus(seen: KnownRun) -> int:
    """Return how many CPUs the measured threads used, by the run's trace. Return at least 1."""
    residence = seen.report.residence if seen.report is not None else None
    return max(len(residence.proof.cpus), 1) if residence is not None else 1


def loads_by_name(run: Run) -> dict[str, float]:
    """Return the other tasks that used CPU time during a run, as name → per cent of one CPU. Tasks of the same name are
    added up, and a name says whose task it is (``load_called``)."""
    used: dict[str, float] = {}
    for load in run.disturbed:
        name = load_called(load, ID)
        used[name] = used.get(name, 0.0) + load.cpu_percent
    return used


def is_other_task(one: CauseTime) -> bool:
    """Return True if a cause is a task of neither the measurement nor the kernel, and the change does not act on it."""
    if not one.task or one.task.startswith(OF_THE_KERNEL):
        return False
    return not (one.treated or one.own_load or any(one.at_most))


def _grown(one: CauseTime) -> float:
    """Return by how much the times of a cause in two runs differ, in ns a second."""
    return max(one.ns) - min(one.ns)


def much_more(one: CauseTime, which: int, whole: Sequence[float]) -> bool:
    """Return True if a cause took much more time in the run ``which`` than in the other one: LEAST_NS more, the factor
    MOVED, and LEAST_SHARE of its stalled time. ``whole``: the stalled time of both runs, in ns a second."""
    here, there = one.ns[which], one.ns[1 - which]
    return here - there >= LEAST_NS and here >= max(MOVED * there, LEAST_SHARE * whole[which])


def _fewest(shares: Sequence[float | None]) -> int | None:
    """Return the number of the run that sent so few of its messages that it cannot be compared with the other one.
    Return None if no run sent few, or if both miss a similar part. ``shares``:
    the share that each run sent; None for enough."""
    first, second = (0.0 if share is None else 1 - share for share in shares)
    if max(first, second) < MOVED * min(first, second) or first == second:
        return None
    return int(second > first)


def what_to_do(reason: KnownReason, relation: Relation = "alike", key: str = "") -> str:
    """Return what to do if two runs cannot be compared, and what it means to go on without it. ``relation``: the
    relation of the two runs. ``key``: the key that makes the run again; "" for none."""
    again = f"Measure the {RUN_NAMES[reason.run]} run again{f' ({key})' if key else ''}."
    return f"{again} If you go on, {'latency stays undecided' if relation == 'changed' else 'this pair has no result'}."


def sentences(reason: KnownReason, relation: Relation = "alike") -> str:
    """Return a reason in sentences, with what to do. ``relation``: the relation of the two runs."""
    return f"{UNCOMPARED[relation == 'changed']}{reason.told}. {what_to_do(reason, relation)}"


def causes_of_difference(causes: Sequence[CauseTime]) -> tuple[CauseTime, ...]:
    """Return the causes, one or two, that together explain at least half of the difference in stalled time between two
    equal runs, the largest first. Each took at least twice as long in the run with more stalled time, at least
    LEAST_SHARE of it, and at least LEAST_NS more. Return () if there are none."""
    whole = [sum(one.ns[run] for one in causes) for run in (0, 1)]
    more = int(whole[1] > whole[0])

    def grown(one: CauseTime) -> float:
        return one.ns[more] - one.ns[1 - more]

    named = sorted((one for one in causes if one.named and not any(one.at_most)), key=grown, reverse=True)
    sure = [one for one in named if much_more(one, more, whole)][:_MOST_CAUSES]
    wanted = (whole[more] - whole[1 - more]) / 2
    if sure and grown(sure[0]) >= wanted:
        return (sure[0],)
    return tuple(sure) if sure and sum(map(grown, sure)) >= wanted else ()


def cause_by_chance(causes: Sequence[CauseTime]) -> CauseTime | None:
    """Return the cause that explains at least half of the difference in stalled time between two runs that were made in
    the same way. Return None if no cause does, or if its time differs by less than the factor MOVED, or if it took less
    than LEAST_SHARE of the stalled time. A cause that differs by much is a known reason instead
    (:func:`known_reason`)."""
    whole = [sum(one.ns[run] for one in causes) for run in (0, 1)]
    most = most_of_difference(causes, worse=whole[1] > whole[0])
    if most is None or max(most.ns) < MOVED * min(most.ns) or max(most.ns) < LEAST_SHARE * max(whole):
        return None
    return most


def most_apart(causes: Sequence[CauseTime], which: int) -> tuple[CauseTime, ...]:
    """Return the causes, at most two, whose times differ most between two runs, the largest difference first. Each took
    LEAST_NS more and the factor MOVED in the run ``which``. They need not explain half of the difference."""
    named = [one for one in causes if one.named and not any(one.at_most)]
    found = [one for one in named if one.ns[which] - one.ns[1 - which] >= LEAST_NS]
    found = [one for one in found if one.ns[which] >= MOVED * one.ns[1 - which]]
    return tuple(sorted(found, key=_grown, reverse=True)[:_MOST_CAUSES])


def most_of_difference(causes: Sequence[CauseTime], *, worse: bool) -> CauseTime | None:
    """Return the cause that explains at least half of the difference in stalled time; None if no cause does. ``worse``:
    True if the second run was the worse one."""

    def moved(one: CauseTime) -> float:
        return (1 if worse else -1) * (one.ns[1] - one.ns[0])

    whole = sum(map(moved, causes))
    most = max((one for one in causes if one.known and not any(one.at_most)), key=moved, default=None)
    return most if most is not None and 0 < whole <= 2 * moved(most) else None


def _took(cause: CauseTime | OtherTask, which: int, other: str, *, first: bool) -> str:
    """Return ``task backup took 197 ms of each second (none in the second run)``. ``other``: the words for the other
    run; "" if a cause before this one tells them. ``first``: True for the first cause, which has the verb."""
    took, there = (nice_ns(round(ns)) if ns >= 1 else "none" for ns in (cause.ns[which], cause.ns[1 - which]))
    verb, unit = ("took ", " of each second") if first else ("", "")
    return f"{cause.label} {verb}{took}{unit} ({' '.join(filter(None, (there, other)))})"


def _counted(before: KnownRun, after: KnownRun) -> Figure | None:
    """Return the count that differs by more than chance, and by so much that it explains a difference; None if there is
    none. One preemption delays hundreds of messages, so each such difference in preemptions explains one."""
    one = unlike_count(before, after)
    if one is None:
        return None
    first, second = _values(one, before, after)
    preempted = one.title in {figure.title for figure in preempted_in(before.run)}
    return one if preempted or abs(first - second) >= _LEAST_COUNT else None


def _values(one: Figure, before: KnownRun, after: KnownRun) -> tuple[float, float]:
    return one.of(before) or 0.0, one.of(after) or 0.0


def _larger(values: tuple[float, float]) -> int:
    """Return the number of the run, 0 or 1, with the larger of two values."""
    return int(values[1] > values[0])


def _work_told(seen: KnownRun) -> list[str]:
    """Return a clause on the other task that used most CPU time during a run; [] if none used MUCH_WORK."""
    used = loads_by_name(seen.run)
    name = max(used, key=lambda one: used[one], default="")
    return [f"{task_called(name)} used {used[name]:.3g} % of a CPU"] if name and used[name] >= MUCH_WORK else []
