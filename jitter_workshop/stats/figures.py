"""Read one figure of a run by its name, such as the figure in a lesson's ``[shows]``.

A count becomes a rate, because two runs never have exactly the same length. A ratio is computed with one event in the
place of none, because the true rate may be nearly as high as one event in the run. Most figures come from counters,
which every run has. Other figures need the kernel's trace of the run, for example which function a kernel worker ran on
which CPU.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping

from jitter_workshop.model.course import Shows
from jitter_workshop.model.diagnosis import SeenCauses
from jitter_workshop.model.evidence import EvidenceReport, InterferingTask
from jitter_workshop.model.host import EMULATED
from jitter_workshop.model.irq_rows import is_device, is_managed, is_timer
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.run import INTENDED, PERCENTILES, Run, of_transit
from jitter_workshop.model.spec import KINDS
from jitter_workshop.model.text import WORD, capital, clean
from jitter_workshop.stats.scale import nice_hz, nice_ns, nice_number


@dataclass(frozen=True, slots=True)
class KnownRun:
    """Hold a run with everything that is known of it.

    ``report``: the report on the run's trace; None without a trace. ``recorded``: the figures of a run on another
    machine, by id; None for a run on this host. ``emulated``: True if the other machine was emulated. Then the run's
    times mean nothing. Its numbers of events and the kernel's choices are still valid. ``seen``: the causes of a run on
    another machine; None if they were not recorded.
    """

    run: Run
    report: EvidenceReport | None = None
    recorded: Mapping[str, float] | None = None
    emulated: bool = False
    seen: SeenCauses | None = None

    @property
    def timeless(self) -> bool:
        """Return True if the times of the run mean nothing because it was made on an emulated machine."""
        return self.emulated or self.run.mark == EMULATED


@dataclass(frozen=True, slots=True)
class Figure:
    """Hold one figure.

    ``unit``: "a second" for a rate, "ns" for a time, "Hz" for a frequency, "" for a ratio. ``read``: returns the
    figure's value in a run on this host; None if the run does not have the figure. ``least``: returns the smallest
    value above 0 that a run of this length can have. ``traced``: True if only a run with a trace has the figure.
    ``older``: an older id, which lessons and files may have, too; "" if there is none. ``minus``: the ids of the two
    figures of which this figure is the difference, and a word for the second one; () for other figures.
    """

    id: str
    title: str
    unit: str
    read: Callable[[KnownRun], float | None]
    least: Callable[[KnownRun], float]
    traced: bool = False
    older: str = ""
    minus: tuple[str, str, str] | tuple[()] = ()

    @property
    def written(self) -> str:
        """Return the id that JSON and other files have for the figure: the older one if there is one."""
        return self.older or self.id

    def of(self, seen: KnownRun) -> float | None:
        """Return the figure's value in a run; None if the run does not have it. For a run on an emulated machine, a
        figure that depends on times is None."""
        if seen.timeless and not counts_alone(self):
            return None
        return self.read(seen) if seen.recorded is None else seen.recorded.get(self.id)

    @property
    def headline(self) -> str:
        """Return the figure's title with a capital letter, for the beginning of a sentence. A title such as p99.9 is
        returned unchanged."""
        return self.title if self.title[1:2].isdigit() else capital(self.title)

    def shown(self, value: float | None) -> str:
        """Return a value in words: ``12 µs``, ``5.4`` or ``unknown``. The text of a time includes the unit, the text
        of a rate does not.
        """
        if value is None:
            return "unknown"
        if self.unit == "Hz":
            return nice_hz(value)
        return nice_ns(value) if self.unit.startswith("ns") else nice_number(value)

    def with_unit(self, value: float | None) -> str:
        """Return a value and its unit: ``5.4 a second``."""
        unit = self.unit.removeprefix("ns").removeprefix("Hz").strip()
        return f"{self.shown(value)} {unit}".rstrip()

    def told(self, seen: KnownRun) -> str:
        """Return the figure's value in a run, with its unit. A difference has both of its parts, such as
        ``120 − 107 = 13 a second``. If its second part is the larger one, the text says that the difference is not
        known. If its first part is 0, the text names that part: ``0 a second (stalls of 100 µs and more: 0)``."""
        value = self.of(seen)
        if not self.minus:
            return self.with_unit(value)
        whole, less, what = self.minus
        parts = [FIGURES[name] for name in (whole, less)]
        values = [part.of(seen) for part in parts]
        if None in values:
            return self.with_unit(value)
        if values[0] == 0:
            return f"{self.with_unit(value)} ({parts[0].title}: 0)"
        difference = " − ".join(part.shown(one) for part, one in zip(parts, values, strict=True))
        return (
            f"{difference} is not known (fewer than {what})"
            if value is None
            else f"{difference} = {self.with_unit(value)}"
        )

    def change(self, before: float | None, after: float | None) -> str:
        """Return the values of a figure before and after a change, with their unit: ``129.6 → 5.4 a second``."""
        return f"{self.shown(before)} → {self.with_unit(after)}"


def _rate(count: Callable[[Run], int | None]) -> Callable[[KnownRun], float | None]:
    def rate(seen: KnownRun) -> float | None:
        counted, seconds = count(seen.run), seen.run.duration_s
        return None if counted is None or seconds <= 0 else counted / seconds

    return rate


def _rate_of_counters(count: Callable[[Run], int | None]) -> Callable[[KnownRun], float | None]:
    """Return a function that divides a count of interrupts or softirqs by the seconds that these counters cover. They
    also cover the lead-in of each block. ``count``: returns the count; None if it is not known."""

    def rate(seen: KnownRun) -> float | None:
        counted, seconds = count(seen.run), seen.run.counted_s or seen.run.duration_s
        return None if counted is None or seconds <= 0 else counted / seconds

    return rate


def _preempted_a_second(seen: KnownRun) -> float | None:
    """Return the preemptions of the main thread per second of sampling. Time in which the thread sleeps does not count,
    because nothing can preempt it then."""
    counted, seconds = _preempted(seen.run), seen.run.rated_s
    return None if counted is None or seconds <= 0 else counted / seconds


def _preempted_thread(name: str) -> Callable[[KnownRun], float | None]:
    """Return a function that computes the preemptions of one thread per second of sampling. ``name``: the thread."""

    def rate(seen: KnownRun) -> float | None:
        counted = next((t.involuntary_switches for t in seen.run.threads if t.name == name), None)
        return None if counted is None or seen.run.rated_s <= 0 else counted / seen.run.rated_s

    return rate


def _preempted_threads(seen: KnownRun) -> float | None:
    """Return the preemptions of all measured threads together per second of sampling."""
    counted, seconds = _summed("involuntary_switches")(seen.run), seen.run.rated_s
    return None if counted is None or seconds <= 0 else counted / seconds


def _one_event(seen: KnownRun) -> float:
    return 1 / seen.run.duration_s if seen.run.duration_s > 0 else 1.0


def _one_stall(seen: KnownRun) -> float:
    """Return the rate per second that a single stall would have in this run."""
    return 1 / seen.run.rated_s if seen.run.rated_s > 0 else 1.0


def _preempted(run: Run) -> int | None:
    return next((t.involuntary_switches for t in run.threads if t.name == run.main_thread), None)


def _slept(run: Run) -> int | None:
    return next((t.voluntary_switches for t in run.threads if t.name == run.main_thread), None)


def _summed(field: str) -> Callable[[Run], int | None]:
    """Return a function that adds up one count over all measured threads of a run. ``field``: the name of the count.
    The function returns None if a thread lacks the count, or if there is no thread."""

    def added(run: Run) -> int | None:
        counts = [getattr(thread, field) for thread in run.threads]
        return None if not counts or None in counts else sum(counts)

    return added


def _stalls_over(threshold_ns: int) -> Callable[[KnownRun], float | None]:
    def rate(seen: KnownRun) -> float | None:
        return next((r.per_second for r in seen.run.stalls.rates if r.threshold_ns == threshold_ns), None)

    return rate


_LEAST_LENGTHS = {"stalls-1ms": 1_000_000, "stalls-100us": 100_000, "stalls-10us": 10_000}
"""The least length, in ns, of the stalls that each of these figures counts."""


def least_length_ns(name: str) -> int | None:
    """Return the least length, in ns, of the stalls that a figure counts. ``name``: the figure's id. Return None for a
    figure that is not a rate of stalls alone."""
    return _LEAST_LENGTHS.get(name)


def _without_a_switch(seen: KnownRun) -> float | None:
    """Return the rate of stalls of at least 100 µs, minus the rate of preemptions. Return None if there were stalls,
    but fewer than preemptions: preemptions can be shorter than 100 µs, so nothing is known of the stalls.

    The result is a lower bound: at least this many stalls per second were not preemptions.
    """
    stalls, preempted = _stalls_over(100_000)(seen), _preempted_a_second(seen)
    if stalls is None or preempted is None or 0 < stalls < preempted:
        return None
    return max(stalls - preempted, 0.0)


def _slowest_block(seen: KnownRun) -> float | None:
    """Return the frequency of a run's fastest block divided by the frequency of its slowest block. Return None if fewer
    than two blocks have a known frequency."""
    known = [block.core_hz for block in seen.run.blocks if block.core_hz]
    return max(known) / min(known) if len(known) > 1 else None


def _on_hot(of_softirqs: bool, wanted: Callable[[str, str], bool]) -> Callable[[Run], int | None]:
    """Return a function that adds up counters of softirqs or interrupts on a run's hot CPUs. ``of_softirqs``: False for
    interrupts. ``wanted``: returns True for the key and the name of a counter to add. The function returns None if the
    run has no such counters, or no hot CPU."""

    def added(run: Run) -> int | None:
        counters = run.softirqs if of_softirqs else run.interrupts
        hot = [str(cpu) for cpu in run.placement.hot]
        if counters is None or not hot:
            return None
        return sum(c.per_cpu.get(cpu, 0) for key, c in counters.items() if wanted(key, c.name) for cpu in hot)

    return added


def interrupts_a_second(seen: KnownRun) -> float | None:
    """Return the rate of all interrupts on a run's hot CPUs, in interrupts per second of the run. Return None if the
    run has no counters of interrupts, or no hot CPU."""
    return _rate_of_counters(_on_hot(False, lambda *_: True))(seen)


def all_device_interrupts(seen: KnownRun) -> float | None:
    """Return the rate of all device interrupts on a run's hot CPUs, with those that cannot be moved. Return None if the
    run does not have it."""
    movable, managed = (FIGURES[name].of(seen) for name in ("device-interrupts", "managed-interrupts"))
    return None if movable is None else movable + (managed or 0.0)


def managed_told(before: KnownRun, after: KnownRun) -> str:
    """Return a sentence on the interrupts of the hot CPUs that cannot be moved, in two runs: ``virtio1-req.0, which
    cannot be moved: 58.8 → 150 a second.`` Return "" if neither run has any, or if one does not have the counters."""
    one = FIGURES["managed-interrupts"]
    values = [one.of(seen) for seen in (before, after)]
    if None in values or not any(values):
        return ""
    names = {
        counter.name
        for seen in (before, after)
        for key, counter in (seen.run.interrupts or {}).items()
        if _is_bound(key, counter.name) and any(counter.per_cpu.get(str(cpu)) for cpu in seen.run.placement.hot)
    }
    which = clean(names.pop(), WORD) if len(names) == 1 else capital(one.title)
    return f"{which}, which cannot be moved: {one.change(*values)}."


def percentile_reader(name: str, histogram: str | None = None) -> Callable[[KnownRun], float | None]:
    """Return a function that reads a percentile, or ``max``, from a run's histogram. ``histogram``: None for that of
    the latencies (``Run.latency``). The function returns None if the run does not have the value."""

    def value(seen: KnownRun) -> float | None:
        summary = seen.run.histograms.get(histogram or seen.run.latency_histogram)
        if summary is None:
            return None
        return summary.max if name == "max" else summary.percentiles.get(name)

    return value


FROM_DUE_TIME = "from the due time"
"""The words for a latency that is counted from the time at which a message was due. They name a curve and a figure."""
P99_FROM_DUE_TIME = "intended-99"
"""The figure of a chapter in which transit is blind."""
DUE_TAIL = "99"
"""The percentile of the figure P99_FROM_DUE_TIME."""
LATENCY_EXPLAINED = "Latency counts from when a message was due, so the time that a stopped sender loses counts, too."
"""The clock of the workshop's latencies, for a page that shows runs of the ring."""
TRANSIT = "transit"
"""The word for a ring's latency that counts from when a message was ready."""
LATENCIES = (*PERCENTILES, "max")
"""The ids of the percentiles and of the maximum of a run's latencies."""


def transit_of(seen: KnownRun, name: str) -> float | None:
    """Return the value in ns of a percentile of a ring's transit; None if the run does not have it. ``name``: one of
    PERCENTILES."""
    return FIGURES[name].of(dataclasses.replace(seen, run=of_transit(seen.run)))


UNSWITCHED = "stalls of 100 µs and more, minus preemptions"


def _one_ns(seen: KnownRun) -> float:
    del seen
    return 1.0


def _on_trace(wanted: Callable[[InterferingTask], bool]) -> Callable[[KnownRun], float | None]:
    """Return a function that computes how many times a second certain tasks ran on the hot CPUs. ``wanted``: returns
    True for a task or other activity to count. The function returns None for a run without a trace."""

    def rate(seen: KnownRun) -> float | None:
        report = seen.report
        if report is None or report.residence is None or report.measured_ns <= 0:
            return None
        return sum(one.count for one in report.residence.visitors if wanted(one)) * 1e9 / report.measured_ns

    return rate


def _idle_exit(seen: KnownRun) -> float | None:
    """Return the mean exit latency, in ns, of the idle states that the measured CPUs entered. Return 0 if they entered
    no idle state."""
    entries, exit_us = seen.run.idle_entries, seen.run.idle_exit_us
    return None if entries is None or exit_us is None else exit_us * 1e3 / max(entries, 1)


def _is_movable(key: str, name: str) -> bool:
    return is_device(key, name) and not is_managed(name)


def _is_bound(key: str, name: str) -> bool:
    return is_device(key, name) and is_managed(name)


def _is_net_rx(key: str, _name: str) -> bool:
    return key == "NET_RX"


def _is_work(one: InterferingTask) -> bool:
    return one.kind == "workqueue"


def _is_task(one: InterferingTask) -> bool:
    return one.kind == "task"


FIGURES = {
    figure.id: figure
    for figure in (
        Figure("preempted", "the thread preempted", "a second", _preempted_a_second, _one_stall),
        Figure("threads-preempted", "measured threads preempted", "a second", _preempted_threads, _one_stall),
        Figure("migrations", "threads moved to another CPU", "a second", _rate(_summed("migrations")), _one_event),
        Figure("slept", "the thread gave its CPU up", "a second", _rate(_slept), _one_event),
        Figure("faults", "page faults of the threads", "a second", _rate(_summed("minor_faults")), _one_event),
        Figure("write-calls", "system calls that write", "a second", _rate(_summed("write_calls")), _one_event),
        *(
            Figure(name, f"stalls of {nice_ns(least_ns)} and more", "a second", _stalls_over(least_ns), _one_stall)
            for name, least_ns in _LEAST_LENGTHS.items()
        ),
        Figure(
            "stalls-unswitched",
            UNSWITCHED,
            "a second",
            _without_a_switch,
            _one_stall,
            minus=("stalls-100us", "preempted", "preemptions"),
        ),
        Figure(
            "stalled",
            "time in stalls",
            "ns a second",
            lambda seen: seen.run.stalls.stolen_ns_per_second,
            _one_ns,
            # In osnoise, interference is not the time of the hypervisor and the firmware, which stalls have.
            older="interference",
        ),
        Figure("ticks", "timer interrupts", "a second", _rate_of_counters(_on_hot(False, is_timer)), _one_event),
        Figure(
            "device-interrupts",
            "device interrupts",
            "a second",
            _rate_of_counters(_on_hot(False, _is_movable)),
            _one_event,
        ),
        Figure(
            "managed-interrupts",
            "managed device interrupts",
            "a second",
            _rate_of_counters(_on_hot(False, _is_bound)),
            _one_event,
        ),
        Figure("core-hz", "frequency of the hot CPU", "Hz", lambda seen: seen.run.core_hz, _one_ns),
        Figure("core-hz-spread", "fastest block ÷ slowest block", "", _slowest_block, _one_ns),
        Figure(P99_FROM_DUE_TIME, f"p{DUE_TAIL} {FROM_DUE_TIME}", "ns", percentile_reader(DUE_TAIL, INTENDED), _one_ns),
        Figure("net-rx", "NET_RX softirqs", "a second", _rate_of_counters(_on_hot(True, _is_net_rx)), _one_event),
        Figure("work-items", "work items of the kernel", "a second", _on_trace(_is_work), _one_event, traced=True),
        Figure("task-runs", "other tasks run", "a second", _on_trace(_is_task), _one_event, traced=True),
        Figure("cpu-hz", "frequency of the hot CPUs, by the kernel", "Hz", lambda seen: seen.run.cpu_hz, _one_ns),
        Figure("first-write", "first write to 2 MiB", "ns", lambda seen: seen.run.first_write_ns, _one_ns),
        Figure("idle-exit", "exit latency of the idle states entered", "ns", _idle_exit, _one_ns),
        *(
            Figure(name, name if name == "max" else f"p{name}", "ns", percentile_reader(name), _one_ns)
            for name in LATENCIES
        ),
    )
}
"""The figures that have a name of their own, by id. Counters of interrupts and softirqs are those on the hot CPUs."""

_OLDER = {one.older: one for one in FIGURES.values() if one.older}

_WORK = re.compile(r"work:([a-zA-Z_][a-zA-Z0-9_]{0,62})")


def figure_with_id(ident: str) -> Figure:
    """Return the figure with this id or older id: one of FIGURES, or ``work:FUNCTION``, which counts the work items
    that ran this function of the kernel on the hot CPUs. Raise KeyError for an id that means no figure."""
    found = _WORK.fullmatch(ident)
    if found is None:
        return _OLDER.get(ident) or FIGURES[ident]
    name = found[1]

    def is_it(one: InterferingTask) -> bool:
        return _is_work(one) and one.name == name

    return Figure(ident, f"work items {name}", "a second", _on_trace(is_it), _one_event, traced=True)


def titled(one: Figure, run: Run) -> Figure:
    """Return a figure with the title that it has in this run. The figure ``preempted`` counts one thread. If the run
    has several threads, the title names this one. The figure ``device-interrupts`` counts only those that can be moved,
    except in recorded runs, which lack the counters. Any other figure is returned unchanged."""
    if one.id == "device-interrupts" and run.interrupts is not None:
        return dataclasses.replace(one, title=f"movable {one.title}")
    names = [thread.name for thread in run.threads] or _threads_of(run)
    if one.id != "preempted" or len(names) < 2:
        return one
    return dataclasses.replace(one, title=f"the {run.main_thread} preempted")


def _threads_of(run: Run) -> tuple[str, ...]:
    """Return the names of the threads that a run's workload measures; () for an unknown workload."""
    return tuple(KINDS[run.workload].threads) if run.workload in KINDS else ()


def preempted_in(run: Run) -> tuple[Figure, ...]:
    """Return a figure for the preemptions of each measured thread of a run, the main thread's first."""
    others = (t.name for t in run.threads if t.name != run.main_thread and t.name in _threads_of(run))
    return (
        titled(FIGURES["preempted"], run),
        *(
            Figure(f"preempted:{name}", f"the {name} preempted", "a second", _preempted_thread(name), _one_stall)
            for name in others
        ),
    )


_CHOSEN = ("cpu-hz", "idle-exit")
"""Figures that the kernel decides by itself: the frequency that it set, and the exit latency (by the firmware's table)
of the idle states that it entered."""
_BY_TIMES = ("stalls-1ms", "stalls-100us", "stalls-10us", "stalls-unswitched")


def counts_alone(one: Figure) -> bool:
    """Return True if the figure is a number of events, or a choice of the kernel. Only such figures mean something on
    an emulated machine, because they do not depend on times. Return False for a number of stalls: the length of a
    delay decides if it counts as a stall.
    """
    return one.id in _CHOSEN or (one.unit == "a second" and one.id not in _BY_TIMES)


def shows_on(shows: Shows | None, emulated: bool) -> Shows | None:
    """Return the figure by which a chapter's runs are compared. This is the chapter's own figure. On an emulated
    machine, measured times mean nothing. There, a figure that depends on times is replaced by the chapter's second
    figure, a count (``counted``). Return None if the chapter has no figure that can be used."""
    if shows is None or not emulated or counts_alone(figure_with_id(shows.figure)):
        return shows
    return None if shows.counted is None else dataclasses.replace(shows.counted, settle_s=shows.settle_s)


def by_due_time(shows: Shows | None) -> bool:
    """Return True if a chapter sets latency from the due time (``P99_FROM_DUE_TIME``) beside transit, and judges by it.
    ``shows``: the chapter's figure; None if it has none."""
    return shows is not None and shows.figure == P99_FROM_DUE_TIME


def ratio(one: Figure, before: KnownRun, after: KnownRun, *, rises: bool = False) -> float | None:
    """Return before/after: the factor by which a figure fell. With ``rises``, return after/before: the factor by which
    the figure rose. Return None if one of the runs does not have the figure.
    """
    first, second = one.of(before), one.of(after)
    if first is None or second is None:
        return None
    above, below = (second, first) if rises else (first, second)
    return above / max(below, one.least(before if rises else after))


LENGTHS = 0.99
"""The share of a wanted factor that is enough. The lengths of two runs differ by up to 1 %, so the rates of three
events and of one event can have a ratio of 2.99."""


def as_said(shows: Shows, before: KnownRun, after: KnownRun) -> tuple[float | None, bool]:
    """Return the factor by which a chapter's figure moved, and if that is far enough. The factor is the one from
    :func:`ratio`; None if it is not known. The second value is True if the factor is at least as large as the chapter
    says.
    """
    factor = ratio(figure_with_id(shows.figure), before, after, rises=shows.rises)
    return factor, factor is not None and factor >= shows.at_least * LENGTHS


def moved(one: Figure, before: KnownRun, after: KnownRun) -> str:
    """Return a sentence on a figure in two runs, such as ``The thread preempted: 129.6 → 5.4 a second.``"""
    return f"{titled(one, before.run).headline}: {one.change(one.of(before), one.of(after))}."
