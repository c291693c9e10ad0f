"""List the causes that were seen in a run, and judge an answer about these causes. Every function is pure.

A trace shows the time of each cause. Counters show only two times: the time that other tasks took (the scheduler's run
delay), and the time that the hypervisor took (steal). All other counters are numbers of events, and no time is
estimated from them.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from jitter_workshop.flow.attribution import used_cpus
from jitter_workshop.model import evidence as words
from jitter_workshop.model.diagnosis import Diagnosed, LongestStalls, SeenCauses, Suspect
from jitter_workshop.model.evidence import Cause, EvidenceReport, ExplainedStall, Part, Slice
from jitter_workshop.model.irq_rows import CALLING, RESCHEDULING, TIMER, is_device, x86_key
from jitter_workshop.model.noise import NOISE_KINDS, noise
from jitter_workshop.model.run import Counter, Run
from jitter_workshop.model.spec import MEASURED_THREADS
from jitter_workshop.model.text import ID, MOST_SENTENCES, NAME, SENTENCE, WORD, called, clean
from jitter_workshop.report.cause_words import ANOTHER_TASK
from jitter_workshop.report.diagnosis_words import NEAR, STEAL, TASKS, TICK, label

MOST = 9
"""The largest number of causes in a list from which the learner chooses: there is one key for each cause."""
MOST_LONGEST = 10
"""The largest number of stalls that are called the longest ones."""
LEAST_WITHOUT_EVENT = 0.1
"""The least share of the stalled time without an event from which its possible reasons are told."""
PERHAPS = "No event; perhaps "
"""The beginning of a note with a possible reason."""
FEWEST, PIECES = 2, 6
"""The least and the largest number of pieces of a stall in an example: fewer pieces explain nothing, more pieces do not
fit."""
LEAST_PIECE = 0.02
"""The share of a stall below which a piece is left out of the example."""
MOST_TOLD = 0.9
"""The least share of a stall that its main pieces must make up for an example: many short pieces would explain too
little."""

SLEEPER = "wakeup"
"""The workload whose thread waits until its CPU leaves an idle state. With other workloads the CPUs idle only between
two blocks."""
_WORKER = re.compile(r"kworker/(?:u|\d+)")
"""The beginning of a kworker's name: ``u`` stands for the workers that are bound to no CPU, a number for those of this
CPU. The rest of the name changes from second to second."""
_NAMED: dict[str, tuple[tuple[str, str | None], ...]] = {
    "migrations": (("migration", None),),
    "faults": (("page_fault", None),),
    "first-write": (("page_fault", None),),
    "ticks": (("timer", None), (TICK, None)),
    "net-rx": (("softirq", "NET_RX"),),
    "device-interrupts": (("irq", None),),
    "work-items": (("workqueue", None),),
    "idle-exit": (("task", words.IDLE),),
    "preempted": (("task", None), (TASKS, None)),
    "threads-preempted": (("task", None), (TASKS, None)),
}
"""Id of a figure → the kind and name of each cause that the figure counts. The name None stands for every name except
IDLE, because no other task runs while a CPU wakes."""
_WORK = "work:"
"""The beginning of the id of a figure that counts the work items of one function."""
_GAPS = (words.LOST, words.MISSING, words.NOT_TRACED)
_ITS_OWN = (words.ASLEEP, words.CATCHING_UP)
"""Names that causes of the kind ``no_event`` can have.

- _GAPS: the trace does not show what took the time.
- _ITS_OWN: no other cause took the time.
"""
_CALL, _WAKE_UP = "call_function_single", "sched_ttwu_pending"
CALLS = (_CALL, CALLING, _WAKE_UP, "reschedule", RESCHEDULING)
"""Names of causes by which a trace may show a wake-up from another CPU.

- _CALL: the interrupt by which another CPU asks this CPU to run a function. Its name on arm64 is CALLING.
- _WAKE_UP: the scheduler's wake-up function, which such an interrupt may run.
"""
_FUNCTIONS = "csd:csd_function_entry"
"""The event that names the function which another CPU called. Older kernels lack it."""
AS_MANY = 0.2
"""The largest share by which the stalls with the calls may differ in number from the stalls with the task or work item
that the calls woke."""
_VECTORS = {
    "RES": "requests of other CPUs to reschedule",
    "CAL": "function calls from other CPUs",
    "TLB": "TLB shootdowns",
    "NMI": "non-maskable interrupts",
    "PMI": "interrupts of performance counters",
    "IWI": "the kernel's own work in an interrupt (irq_work)",
}


# -- what was seen -----------------------------------------------------------------------------------------------------


def of_trace(
    report: EvidenceReport,
    load: str | None = None,
    figure: str = "",
    most: int | None = MOST,
    irqs: Collection[str] = (),
) -> SeenCauses:
    """Return the causes in a run's trace, at most ``most`` of them (None: all).

    Causes that a learner would give one name are added up, such as all local timers, all moves or all page faults. An
    event and the gaps around it are one cause. Measured threads that took time from each other are one cause.

    - ``load``: the kind of noise that the chapter made during the run, None without a noise. Tasks with this name are
      marked as the chapter's own load.
    - ``figure``: the figure that the chapter's change moves, "" for none. A cause that this figure counts is always
      listed.
    - ``irqs``: the names of the interrupts that this noise brings. They are marked as the chapter's own load, too.
    """
    took: dict[tuple[str, str], list[Cause]] = {}
    unknown = 0
    own = {cause.name for cause in report.causes if cause.kind == "task"} & MEASURED_THREADS
    own = own if len(own) > 1 else set()
    of_load = {("task", load), *(("irq", clean(name, NAME)) for name in irqs)}
    for cause in report.causes:
        if cause.kind == "no_event" and cause.name in _GAPS:
            unknown += cause.total_ns
        elif cause.kind != "no_event" or cause.name not in _ITS_OWN:
            kind, name = _group(cause, report.causes)
            if kind == "task" and name in own:
                name = words.MEASURED
            took.setdefault((kind, clean(name, NAME)), []).append(cause)
    found = [
        dataclasses.replace(_merged(kind, name, causes), own_load=(kind, name) in of_load)
        for (kind, name), causes in took.items()
    ]
    return _seen(
        _with_woken(found, figure, report),
        figure,
        run=report.run,
        source="trace",
        stalls=report.stalls,
        stalled_ns=sum(cause.total_ns for cause in report.causes),
        unknown_ns=unknown,
        notes=(*_frequencies(report), *_without_event(report)),
        stall=_readable(report),
        longest=_longest(report, own),
        seconds=report.measured_ns / 1e9,
        most=most,
    )


def _with_woken(found: list[Suspect], figure: str, report: EvidenceReport) -> list[Suspect]:
    """Return the causes, and mark those that a call has woken. A call is an interrupt from another CPU.

    - A task or work item that ``figure`` counts may have occurred about as often as the calls. The one whose number is
      nearest to the number of calls is marked.
    - If a work item is marked, groups of kworkers with about the same number are marked, too.
    - If most calls ran the scheduler's wake-up, the call and the wake-up become one marked cause.
    - If the trace shows that most calls ran other functions, nothing is marked.
    """
    calls = {one.name: one.count or 0 for one in found if is_call(one)}
    name = max(calls, key=lambda name: calls[name], default="")
    number = calls.get(name, 0)
    if not number:
        return found
    call = CALLING if CALLING in calls else _CALL
    wakes = call in calls and calls.get(_WAKE_UP, 0) >= (1 - AS_MANY) * calls[call]
    if name == call and _FUNCTIONS not in report.missing and not wakes:
        return found

    def away(one: Suspect) -> float:
        return abs((one.count or 0) / number - 1)

    woken = [
        one
        for one in found
        if one.kind in ("task", "workqueue") and figure_counts_cause(figure, one) and away(one) <= AS_MANY
    ]
    first = min(woken, key=away, default=None)
    marked = {("vector", call)} if wakes else set()
    if first is not None:
        marked.add((first.kind, first.name))
        marked |= _workers(report, number) if first.kind == "workqueue" else set()
    found = _as_one(found, call) if wakes else found
    return [dataclasses.replace(one, woken=(one.kind, one.name) in marked) for one in found]


def _as_one(found: list[Suspect], name: str) -> list[Suspect]:
    """Return the causes, with a call and the wake-up inside this call merged into one. A call is an interrupt from
    another CPU. The merged cause has the sum of the two times. ``name``: the name of the call.
    """
    both = [one for one in found if is_call(one) and one.name in (name, _WAKE_UP)]
    call = next(one for one in both if one.name == name)
    whole = dataclasses.replace(
        call, label=f"{call.label} (wakes a task here)", total_ns=sum(one.total_ns or 0 for one in both)
    )
    return [whole, *(one for one in found if one not in both)]


def _workers(report: EvidenceReport, number: int) -> set[tuple[str, str]]:
    """Return (kind, name) of each group of kworkers that occurred about ``number`` times."""
    seen: dict[tuple[str, str], int] = {}
    for one in report.causes:
        if one.kind == "task" and _WORKER.match(one.name):
            group = _group(one, ())
            seen[group] = seen.get(group, 0) + one.count
    return {group for group, count in seen.items() if abs(count / number - 1) <= AS_MANY}


def _group(cause: Cause | Part, causes: Iterable[Cause]) -> tuple[str, str]:
    """Return the kind and the name that a cause has in a list of suspects. Causes that a learner would give one name,
    such as all local timers, have the same kind and name. ``causes``: all causes of the run."""
    kind, name = cause.kind, cause.name
    if kind == "around":
        if name == words.FAULT:
            return "page_fault", ""
        # The name alone is known here: the largest event of this name is the one with most surroundings.
        kind = next((c.kind for c in causes if c.name == name and c.kind not in ("around", "no_event")), kind)
    if words.is_of_timer(kind, name):
        return "timer", ""
    if kind == "task" and (worker := _WORKER.match(name)) is not None:
        return kind, worker[0]
    return (kind, "") if kind in ("migration", "page_fault", "no_event") else (kind, name)


def suspect_of_part(part: Part, report: EvidenceReport) -> Suspect:
    """Return the cause of a part of one stall, with the name and the label that it has in a list of suspects.
    ``report``: the report with this stall."""
    kind, name = _group(part, report.causes)
    return suspect(kind, clean(name, NAME), 1, part.ns)


def _merged(kind: str, name: str, causes: list[Cause]) -> Suspect:
    count, total_ns = max(cause.count for cause in causes), sum(cause.total_ns for cause in causes)
    around = sum(cause.total_ns for cause in causes if cause.kind == "around")
    found = suspect(kind, name, count, total_ns, threads=max(cause.threads for cause in causes))
    return dataclasses.replace(found, around_ns=around, typical_ns=_typical(causes))


def _typical(causes: list[Cause]) -> int:
    """Return the median of a cause's times in its stalls; 0 if it is not known, or if several events have one name in
    the list: their medians do not give that of all."""
    named = [one for one in causes if one.kind != "around"] or causes
    return named[0].typical_ns if len(named) == 1 else 0


def suspect(kind: str, name: str, count: int, total_ns: int, own_load: bool = False, threads: int = 1) -> Suspect:
    """Return a cause that was seen in a trace, with a label in words. ``threads``: the number of tasks with this
    name."""
    worker = kind == "task" and _WORKER.fullmatch(name) is not None
    several = ":… (kernel workers)" if worker else f" ({threads:,} threads)" if threads > 1 else ""
    return dataclasses.replace(
        _suspect(kind, name, f"{label(kind, name)}{several}", count, total_ns), own_load=own_load
    )


def _readable(report: EvidenceReport) -> ExplainedStall | None:
    """Return the stall that is the easiest example to read; None if none is suitable.

    A stall without an unknown piece goes first, because an unknown piece teaches nothing. Of those left, this is the
    stall with the fewest main pieces, and then the longest one. In the result, the stall has only its main pieces.
    """
    shortened = [dataclasses.replace(stall, timeline=main_pieces(stall)) for stall in report.worst]
    fitting = [stall for stall in shortened if FEWEST <= len(stall.timeline) <= PIECES and _told(stall) >= MOST_TOLD]
    return min(fitting, key=lambda stall: (_has_unknown(stall), len(stall.timeline)), default=None)


def _longest(report: EvidenceReport, own: Collection[str]) -> LongestStalls | None:
    """Return the longest stalls of a run, at most MOST_LONGEST; None if the report has none. ``own``: the names of the
    measured threads that took time from each other."""
    stalls, took = report.worst[:MOST_LONGEST], dict[tuple[str, str], int]()
    for part in (part for stall in stalls for part in stall.parts):
        kind, name = _group(part, report.causes)
        key = kind, words.MEASURED if kind == "task" and name in own else clean(name, NAME)
        took[key] = took.get(key, 0) + part.ns
    if not took:
        return None
    most = max(took, key=lambda key: (took[key], key))
    cause = suspect(*most, len(stalls), took[most])
    return LongestStalls(len(stalls), sum(stall.duration_ns for stall in stalls), cause)


def _without_event(report: EvidenceReport) -> Iterator[str]:
    """Yield sentences on what may have taken time without an event on this host, if this time is a large part."""
    ns = sum(cause.total_ns for cause in report.causes if cause.kind == "no_event" and cause.name == words.NOTHING)
    if ns and ns >= LEAST_WITHOUT_EVENT * sum(cause.total_ns for cause in report.causes):
        for one in report.candidates[:MOST_SENTENCES]:
            yield f"{PERHAPS}{one}."


def _has_unknown(stall: ExplainedStall) -> bool:
    unknown = (words.LOST, words.MISSING, words.NOT_TRACED)
    return any(piece.kind == "no_event" and piece.name in unknown for piece in stall.timeline)


def _told(stall: ExplainedStall) -> float:
    """Return the summed length of a stall's listed pieces, divided by the stall's length."""
    return sum(piece.ns for piece in stall.timeline) / max(stall.duration_ns, 1)


def main_pieces(stall: ExplainedStall) -> tuple[Slice, ...]:
    """Return the main pieces of a stall, in order of time. A main piece takes at least the share LEAST_PIECE of the
    stall. Neighbouring main pieces with the same cause are merged into one."""
    found: list[Slice] = []
    for piece in stall.timeline:
        if piece.ns < LEAST_PIECE * stall.duration_ns:
            continue
        if found and (found[-1].kind, found[-1].name) == (piece.kind, piece.name):
            first = found[-1].offset_ns
            found[-1] = dataclasses.replace(piece, offset_ns=first, ns=piece.offset_ns + piece.ns - first)
        else:
            found.append(piece)
    return tuple(found)


def _frequencies(report: EvidenceReport) -> Iterator[str]:
    for seen in report.residence.frequencies[:MOST_SENTENCES] if report.residence is not None else ():
        low, high = seen.lowest_khz / 1e6, seen.highest_khz / 1e6
        yield f"The frequency that the kernel asked of CPU {seen.cpu} changed: {low:.2f} to {high:.2f} GHz."


def of_counters(run: Run, why_no_trace: str = "", figure: str = "", irqs: Collection[str] = ()) -> SeenCauses:
    """Return the causes of a run without a trace, from its counters on the CPUs of its threads. ``why_no_trace``: the
    reason why there is no trace, or "". ``figure``, ``irqs``: as in :func:`of_trace`."""
    cpus = {str(cpu) for cpu in used_cpus(run)}
    waits = [t.waited_ns for t in run.threads if t.waited_ns is not None]
    # Two threads may have waited at the same time: the longer wait is what was lost for certain.
    waited = max(waits) if len(waits) == len(run.threads) and waits else None
    tasks = _suspect(TASKS, "", label(TASKS, ""), _added(t.involuntary_switches for t in run.threads), waited)
    found = [dataclasses.replace(tasks, own_load=_runs_as_tasks(run.noise))]
    found.append(_suspect(STEAL, "", label(STEAL, ""), None, run.steal_ns))
    for kind, counts in (
        ("migration", [t.migrations for t in run.threads]),
        ("page_fault", [n for t in run.threads for n in (t.minor_faults, t.major_faults)]),
    ):
        found.append(cause_from_counters(kind, "", _added(counts)))
    if run.workload == SLEEPER:
        found.append(cause_from_counters("task", words.IDLE, run.idle_entries))
    found += _interrupts(run.interrupts or {}, cpus)
    for name, row in (run.softirqs or {}).items():
        found.append(cause_from_counters("softirq", name, _on(row, cpus)))
    stalled = round(run.stalls.stolen_ns_per_second * run.rated_s)
    seen = [
        dataclasses.replace(one, own_load=one.own_load or (one.kind == "irq" and one.name in irqs))
        for one in _apart(found)
        if (one.total_ns if one.kind in (TASKS, STEAL) else one.count)
    ]
    timed = sum(one.total_ns or 0 for one in seen)
    return _seen(
        seen,
        figure,
        run=run.id,
        source="counters",
        stalls=run.stalls.count,
        stalled_ns=stalled,
        unknown_ns=max(stalled - timed, 0),
        why_no_trace=clean(why_no_trace, SENTENCE),
    )


def _runs_as_tasks(load: str | None) -> bool:
    """Return True if this kind of noise takes time from a measured thread as a separate task."""
    return load in NOISE_KINDS and ("task", "{name}") in [one.causes[0] for one in noise(load or "").does]


def _interrupts(table: Mapping[str, Counter], cpus: set[str]) -> Iterator[Suspect]:
    """Yield the interrupts that came to ``cpus``, from the rows of /proc/interrupts. The CPU's own interrupts get their
    x86 names on every processor."""
    for key, row in table.items():
        count, own = _on(row, cpus), x86_key(key, row.name)
        if own == TIMER:
            yield cause_from_counters(TICK, "", count)
        elif own in _VECTORS:
            yield cause_from_counters("vector", own, count)
        elif is_device(key, row.name):
            yield cause_from_counters("irq", row.name or key, count)


def cause_from_counters(kind: str, name: str, count: int | None) -> Suspect:
    """Return a cause that was seen in counters, with a label in words. It has a number of events, and no time."""
    said = {"irq": f"interrupt {called(name, ID)}", "softirq": f"softirq {called(name, WORD)}"}.get(kind)
    said = _VECTORS.get(name) if kind == "vector" else said
    return _suspect(kind, name, said or label(kind, name), count, None)


def _apart(found: Iterable[Suspect]) -> Iterator[Suspect]:
    """Yield the suspects. Interrupts with the same name become one suspect with the sum of their counts.

    For example, two equal network cards have interrupts with the same name.
    """
    kept: dict[str, Suspect] = {}
    for one in found:
        before = kept.get(one.id)
        count = one.count if before is None else (before.count or 0) + (one.count or 0)
        kept[one.id] = dataclasses.replace(one, count=count or None)
    yield from kept.values()


def _on(row: Counter, cpus: set[str]) -> int:
    return sum(count for cpu, count in row.per_cpu.items() if cpu in cpus)


def _added(counts: Iterable[int | None]) -> int | None:
    known = list(counts)
    return None if None in known or not known else sum(count for count in known if count is not None)


def _suspect(kind: str, name: str, label: str, count: int | None, total_ns: int | None) -> Suspect:
    return Suspect(f"{kind}:{clean(name, NAME)}", kind, name, label, count, total_ns)


def figure_counts_cause(figure: str, one: Suspect) -> bool:
    """Return True if a figure counts the events of this cause."""
    wanted = _NAMED.get(figure, ())
    if figure.startswith(_WORK):
        wanted = (("workqueue", figure.removeprefix(_WORK)),)
    return any(
        one.kind == kind and (one.name != words.IDLE if name is None else one.name == name) for kind, name in wanted
    )


def _seen(found: list[Suspect], figure: str, most: int | None = MOST, **fields: object) -> SeenCauses:
    """Return the ``most`` largest causes (None: all), in the order of the numbers of their stalls, the most frequent
    first. Without a trace the numbers are no stalls, and the order is that of the labels.

    The result should have a cause that ``figure`` counts. If the ``most`` largest have none, replace their smallest by
    the largest cause that ``figure`` counts. ``fields``: the other fields of the result.
    """
    ranked = sorted(found, key=lambda one: (-(one.total_ns or 0), -(one.count or 0), one.label))
    most = len(ranked) if most is None else most
    counted = next((n for n, one in enumerate(ranked) if figure_counts_cause(figure, one)), 0)
    if ranked and counted >= most:
        ranked.insert(most - 1, ranked.pop(counted))
    often = fields["source"] == "trace"
    listed = sorted(ranked[:most], key=lambda one: (-(one.count or 0) if often else 0, one.label.casefold(), one.id))
    rest = ranked[most:]
    rest_ns = sum(one.total_ns or 0 for one in rest)
    return SeenCauses(suspects=tuple(listed), others=len(rest), others_ns=rest_ns, **fields)  # type: ignore[arg-type]


# -- judging -----------------------------------------------------------------------------------------------------------


def judge_diagnosis(seen: SeenCauses, ident: str) -> Diagnosed | None:
    """Return the judgement on the learner's answer, the cause with the id ``ident``.

    Return None if this cause is not in the list. The weight of a cause is its time or, on an emulated machine, its
    number of events. ``Diagnosed.right`` is the result of :func:`is_right`.

    Some time of the run may have no known cause. If this time is longer than that of the largest cause, the largest
    cause is not known. If the question is which cause took most time, no answer is then right. An answer is then wrong
    if the run has no trace and the answer's time is known. All other answers are neither right nor wrong.
    """
    chosen = seen.suspect(ident)
    if chosen is None:
        return None
    weighed = [one for one in seen.suspects if seen.weight(one)]
    most = max(weighed, key=lambda one: (seen.weight(one), one == chosen), default=None)
    largest = seen.weight(most) if most is not None else 0
    if seen.unknown_ns > largest:
        # By counters, the unknown time is that of causes without a time: one with a time cannot be the largest.
        wrong = seen.source == "counters" and chosen.total_ns is not None
        undecided = False if wrong else None
        return Diagnosed(chosen, is_right(seen, chosen, None) if seen.asks == "ends" else undecided, None, 0.0)
    share = largest / seen.stalled_ns if seen.stalled_ns else 0.0
    return Diagnosed(chosen, is_right(seen, chosen, most), most, min(share, 1.0))


def is_right(seen: SeenCauses, one: Suspect, most: Suspect | None) -> bool | None:
    """Return True if the cause ``one`` is a right answer, None if the evidence cannot decide.

    ``most``: the cause with the largest weight, None if it is not known. If the question is which cause took most time,
    the answer is right in three cases:

    - ``most`` is not known.
    - The weight of ``one`` is near the weight of ``most``.
    - ``most`` is a call (an interrupt from another CPU), and this call woke ``one``.

    If the question is which causes the chapter's change can end, each cause on which it acts is right. Counters do not
    tell which tasks the cause TASKS includes, so this cause is undecided if the change does not act on it.

    Tasks that a recording does not name are a right answer only if no other cause has nearly their weight.
    """
    if is_unnamed(seen, one):
        if one == most and not any(is_near(seen, other, one) for other in seen.suspects if other != one):
            return True if seen.asks == "most" else one.acts
        return None if seen.asks == "ends" and one.acts else False
    if seen.asks == "ends":
        return one.acts or (None if one.kind == TASKS else False)
    return most is None or is_near(seen, one, most) or (one.woken and is_call(most))


def is_unnamed(seen: SeenCauses, one: Suspect) -> bool:
    """Return True if a cause of a recorded run stands for all tasks that the recording does not name."""
    return bool(seen.recorded) and one.kind == "task" and one.name == ANOTHER_TASK


def is_near(seen: SeenCauses, one: Suspect, most: Suspect) -> bool:
    """Return True if a cause has nearly the weight of ``most``, the heaviest cause: at least NEAR of it."""
    return seen.weight(one) >= NEAR * seen.weight(most)


def woken_by(one: Suspect, seen: SeenCauses) -> Suspect:
    """Return the cause on which a change must act to prevent ``one``. For a call of another CPU, this is the task or
    work item that the call probably woke: without it there is no call. Any other cause is returned unchanged, and so is
    a call whose task is not known. ``seen``: all causes of the run."""
    woken = (other for other in seen.suspects if other.woken and not is_call(other))
    return max(woken, key=lambda other: other.count or 0, default=one) if is_call(one) else one


def is_call(one: Suspect) -> bool:
    """Return True if a cause is an interrupt by which another CPU may wake a task on this CPU."""
    return one.kind == "vector" and one.name in CALLS
