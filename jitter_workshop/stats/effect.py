"""Choose the effect of a change to show first: the largest effect, but not a gain that hides a larger loss.

Only figures of latency and of stalls can be better or worse (the rule is in ``presenter.runs.effect.RULE``). A count of
a cause, such as preemptions, cannot.

Two runs of the same setup differ, too. So a figure has *moved* only if it changed by a factor of 2 or more. A rate must
also have ten events in one of the runs, and chance must not explain the difference. For a percentile, there must also
be ten samples beyond it in each run.

Fewer stalls are a gain only if the total time of the stalls fell, too. More stalls are a loss only if this total time
rose, too. If the number of stalls rose while a gain is shown, the text also tells the rise and the total time.

The largest effect is shown first. But effects on doubtful percentiles come after all others, and the effect on the
maximum comes last, because the maximum is a single event. A percentile is doubtful if few stalls lie beyond it. It is
also doubtful if the blocks within each run differ as much as the two runs do.

The chapter's own figure is shown in addition. It usually is a count of the cause.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable

from jitter_workshop.model.course import Shows
from jitter_workshop.model.effect import Direction, Effect, Effects, Sort, Uncompared
from jitter_workshop.model.run import Block, Run
from jitter_workshop.stats.figures import (
    FIGURES,
    LATENCIES,
    P99_FROM_DUE_TIME,
    Figure,
    KnownRun,
    as_said,
    by_due_time,
    figure_with_id,
    preempted_in,
    titled,
)
from jitter_workshop.stats.omission import on_one_clock
from jitter_workshop.stats.sample_size import FEW_SAMPLES, FEW_STALLS, marks_of_run

MOVED = 2.0
"""The least factor by which a figure must differ to be called moved. Two runs of the same setup differ by smaller
factors."""
ALIKE = 1.05
"""Two values whose ratio is below this are called the same."""
MOST_BY_LUCK = 1_000.0
"""The largest factor that is told of two runs between which nothing was changed. A larger one tells no more."""
LEAST_EVENTS = 10
CHANCE = 3.0
"""Two counts may differ by chance alone if their difference is less than this many of its standard deviations. The
standard deviation is the square root of the sum of both counts."""

_ALWAYS = ("50", "90", "99.9", "max", "stalls-1ms", "stalls-100us", "stalls-10us")
_COUNTS = (
    "preempted",
    "migrations",
    "stalls-1ms",
    "stalls-100us",
    "stalls-10us",
    "stalled",
    "faults",
    "ticks",
    "device-interrupts",
    "managed-interrupts",
    "net-rx",
)
_RATES_OF_STALLS = ("stalls-1ms", "stalls-100us", "stalls-10us", "stalls-unswitched")
_LATENCIES = ("max", P99_FROM_DUE_TIME, "stalled")
"""The figures of latency that are not percentiles of the main histogram."""
_TAIL = {"spin": "99.9999"}
"""The percentile that charts of ``spin`` mark: it reads the clock tens of millions of times a second."""
_JUDGES = {"spin": "stalls-100us"}
"""The figure that judges runs of ``spin``: the ticks of a second decide each of its percentiles, and they are shorter
than these stalls."""


_OF_BLOCK: dict[str, Callable[[Block], int | None]] = {
    "50": lambda block: block.p50,
    "99": lambda block: block.p99,
    "99.9": lambda block: block.p999,
}
_LEAST_BLOCKS = 10


def tail_of(workload: str, asked: str | None = None) -> str:
    """Return the percentile that a workload's charts mark. It also judges the runs, except those of ``spin``
    (:func:`judged_by`). ``asked``: the percentile by which the chapter judges. If ``asked`` is None or unknown, return
    the workload's usual percentile."""
    return asked if asked in FIGURES else _TAIL.get(workload, "99.9")


def judged_by(workload: str, asked: str | None = None) -> str:
    """Return the id of the figure by which runs of a workload are judged. ``asked``: the percentile by which the
    chapter judges; it replaces the usual figure. If ``asked`` is None or unknown, this is stalls of 100 µs and more a
    second for ``spin`` (docs/measuring.md gives the reason), and the percentile of :func:`tail_of` for the others."""
    return asked if asked in FIGURES else _JUDGES.get(workload, tail_of(workload))


def judge_of(asked: str | None, *seen: KnownRun) -> str:
    """Return the id of the figure by which these runs of one workload are judged: that of :func:`judged_by`. If a run,
    such as a recorded one, does not have this figure, return the percentile of :func:`tail_of`. ``asked``: the
    percentile by which the chapter judges; None if it names none."""
    workload = seen[0].run.workload
    name = judged_by(workload, asked)
    return name if all(FIGURES[name].of(one) is not None for one in seen) else tail_of(workload, asked)


def effects_of_change(
    before: KnownRun, after: KnownRun, shows: Shows | None = None, asked: str | None = None
) -> Effects:
    """Return the effects of the change between two runs. ``shows``: the chapter's figure. The effect on this figure
    comes first under two conditions. The figure can be better or worse, and it moved at least as far as the chapter
    says. The figure P99_FROM_DUE_TIME comes first in any case: the chapter sets it beside transit. ``asked``: the
    percentile by which the chapter judges. The effect on this percentile is also computed.
    """
    workload = before.run.workload
    tail = tail_of(workload, asked)
    names = dict.fromkeys((*_ALWAYS, tail_of(workload), tail))
    found = {name: e for name in names if (e := _effect(FIGURES[name], before, after)) is not None}
    chance = {name for name in found if _by_chance(FIGURES[name], before, after)}
    known = {name: e for name, e in found.items() if name not in chance or e.factor < MOVED}
    of_chapter = effect_on(shows.figure, before, after) if shows is not None else None
    as_wanted = shows is not None and _as_wanted(shows, before, after)
    every = [_with_time(name, e, before, after, by_chance=name in chance) for name, e in known.items()]
    every = [e for e in every if e.direction != "same" or e.factor < MOVED]
    moved = [e for e in every if e.factor >= MOVED]
    due = by_due_time(shows) and of_chapter is not None
    lead = of_chapter if of_chapter is not None and (as_wanted or due) and _judges(of_chapter) else None
    if not due:
        lead = lead or _largest(e for e in moved if not e.doubtful)
        lead = lead or _largest(e for e in moved if not e.one_event) or _largest(moved)
    apart = of_chapter if of_chapter is not None and (lead is None or of_chapter.name != lead.name) else None
    shown, missed = (apart, None) if as_wanted else (None, None if due else apart)
    unread = shows is not None and of_chapter is None
    uncounted = titled(figure_with_id(shows.figure), before.run).title if shows is not None and unread else ""
    nearest = of_chapter if due else _largest(every) or of_chapter
    risen = [e for name, e in known.items() if name in _RATES_OF_STALLS and name not in chance]

    stalled = effect_on("stalled", before, after)
    left_out: Uncompared = "readings" if readings_apart(before, after) else ""
    if on_one_clock(before, after) is None:
        left_out = "waits"

    def told(lead: Effect | None, but: Effect | None) -> Effects:
        differences = tuple(differences_by_figure(before, after, asked).values())
        return Effects(
            lead,
            but,
            nearest,
            shown,
            judged_effect(before, after, asked),
            _largest(risen),
            stalled=stalled,
            left_out=left_out,
            differences=differences,
            missed=missed,
            uncounted=uncounted,
        )

    if lead is None or due or lead.direction == "same":
        # A chapter that sets two clocks side by side tells no other latency.
        return told(lead, None)
    against = _largest(e for e in moved if e.direction != lead.direction)
    sure = against is not None and not against.doubtful
    if lead.direction == "better" and not sure:
        longer = {e.name for e in every if e.direction == "worse"}
        loss = _largest(e for e in risen if e.direction == "worse" and e.factor >= MOVED and e.name != lead.name)
        if loss is not None:
            return told(lead, dataclasses.replace(loss, against_time=loss.name not in longer))
    if lead.direction == "better" and against is not None and sure and against.factor > lead.factor:
        return told(against, lead)
    return told(lead, against)


def _as_wanted(shows: Shows, before: KnownRun, after: KnownRun) -> bool:
    """Return True if a chapter's figure moved as far as the chapter says. Return False for a latency by which the runs
    cannot be compared."""
    both = on_one_clock(before, after) if shows.figure in LATENCIES else (before, after)
    return both is not None and as_said(shows, *both)[1]


def _judges(of_chapter: Effect) -> bool:
    """Return True if a chapter's figure can be better or worse, and moved by at least the factor MOVED."""
    return of_chapter.sort != "cause" and of_chapter.factor >= MOVED


def effect_on(name: str, before: KnownRun, after: KnownRun) -> Effect | None:
    """Return the effect on the figure with this id, even if it has few samples; None if one of the runs does not have
    the figure."""
    return _effect(titled(figure_with_id(name), before.run), before, after, of_chapter=True)


def judged_effect(before: KnownRun, after: KnownRun, asked: str | None = None) -> Effect | None:
    """Return the effect on the figure by which two runs are judged; None if they cannot be compared by it. A percentile
    with too few samples gives None. A rate of stalls is always told: the effect says if the stalls are few, or if
    chance explains the difference. ``asked``: the percentile by which the chapter judges."""
    name = judge_of(asked, before, after)
    one = FIGURES[name]
    if name not in _RATES_OF_STALLS:
        return _effect(one, before, after)
    found = effect_on(name, before, after)
    if found is None:
        return None
    chance = found.factor >= ALIKE and _by_chance(one, before, after)
    few = all((one.of(seen) or 0) * seen.run.rated_s < LEAST_EVENTS for seen in (before, after))
    timed = _with_time(name, found, before, after, by_chance=False)
    against = not chance and found.factor >= MOVED and timed.direction != found.direction
    direction: Direction = "same" if chance else timed.direction
    return dataclasses.replace(timed, direction=direction, few=few, by_chance=chance, against_time=against)


def differences_by_figure(before: KnownRun, after: KnownRun, asked: str | None = None) -> dict[str, Effect]:
    """Return figure → how far two runs differ in it, the largest difference first.

    The figures are all that can be the result of a change, p99, and the time in stalls. A difference that chance may
    explain is among them, so the first one tells how far chance alone moves two runs that were made alike. Figures with
    too few events or samples are left out, as in :func:`effects_of_change`, but not the figure by which the runs are
    judged. ``asked``: the percentile by which the chapter judges.
    """
    workload = before.run.workload
    judged = judge_of(asked, before, after)
    names = dict.fromkeys((judged, *_ALWAYS, "99", tail_of(workload)))
    known = {name: _effect(FIGURES[name], before, after) for name in names}
    if known[judged] is None and (judged in _RATES_OF_STALLS or not readings_apart(before, after)):
        known[judged] = effect_on(judged, before, after)
    found = {name: e for name, e in known.items() if e is not None}
    stalled = effect_on("stalled", before, after)
    if stalled is not None and not stalled.at_least and before.run.stalls.threshold_ns == after.run.stalls.threshold_ns:
        found["stalled"] = stalled
    return dict(sorted(found.items(), key=lambda item: -item[1].factor))


def count_effects(
    before: KnownRun, after: KnownRun, shows: Shows | None = None, guessed: Iterable[str] = ()
) -> tuple[Effect, ...]:
    """Return the effects on all counts that both runs have. A count that is 0 in both runs is left out. ``shows``: the
    chapter's figure; the effect on it comes first. ``guessed``: ids of further figures whose effects come next.
    """
    ids = (*((shows.figure,) if shows is not None else ()), *guessed)
    of_chapter = [titled(figure_with_id(ident), before.run) for ident in ids]
    every = {one.id: one for one in (*of_chapter, *_counts(before.run))}.values()
    found = ((one, _effect(one, before, after, of_chapter=True)) for one in every)
    known = ((one, e) for one, e in found if e is not None and (e.factor > 1.0 or e.values[0] != "0"))
    return tuple(_with_time(one.id, e, before, after, by_chance=_by_chance(one, before, after)) for one, e in known)


def chapter_counts(run: Run, shows: Shows | None = None, guessed: Iterable[str] = ()) -> set[str]:
    """Return the names of the figures that the chapter's change acts on: its own figure ``shows``, and those of the
    answers of its guess, ``guessed``."""
    ids = (*((shows.figure,) if shows is not None else ()), *guessed)
    return {titled(figure_with_id(ident), run).title for ident in ids}


def _counts(run: Run) -> list[Figure]:
    """Return the counts of a run. Each measured thread has its own count of preemptions."""
    others = [titled(figure_with_id(name), run) for name in _COUNTS if name != "preempted"]
    return [*preempted_in(run), *others]


def unlike(before: KnownRun, after: KnownRun) -> Effect | None:
    """Return the difference in the count of :func:`unlike_count`; None if there is no such count."""
    one = unlike_count(before, after)
    return None if one is None else _effect(one, before, after, of_chapter=True)


def unlike_count(before: KnownRun, after: KnownRun) -> Figure | None:
    """Return the count of a cause that differs by the most events a second between two runs that were made in the same
    way. The counts must differ by the factor MOVED or more, and by more than chance explains. Such a difference shows
    that the host's state was not the same in the two runs. Return None if no cause differs so much."""
    sure = (one for one in _counts(before.run) if not _by_chance(one, before, after))
    found = ((one, _effect(one, before, after, of_chapter=True)) for one in sure)
    strange = [one for one, e in found if e is not None and e.sort == "cause" and e.factor >= MOVED]
    return max(strange, key=lambda one: _events_apart(one, before, after), default=None)


def _events_apart(one: Figure, before: KnownRun, after: KnownRun) -> float:
    """Return by how much a figure differs between two runs, in its own unit. Return 0 if a run does not have it."""
    first, second = one.of(before), one.of(after)
    return 0.0 if first is None or second is None else abs(first - second)


def _by_chance(one: Figure, before: KnownRun, after: KnownRun) -> bool:
    """Return True if the figure is a rate of so few events that its change may come from chance alone."""
    first, second = one.of(before), one.of(after)
    if one.unit != "a second" or first is None or second is None:
        return False
    counts = first * before.run.rated_s, second * after.run.rated_s
    return abs(counts[0] - counts[1]) < CHANCE * math.sqrt(sum(counts))


def _with_time(name: str, effect: Effect, before: KnownRun, after: KnownRun, *, by_chance: bool) -> Effect:
    """Return the effect, with the direction ``same`` if the effect is doubtful.

    The direction becomes ``same`` if chance may explain the effect (``by_chance``). It also becomes ``same`` if the
    number of stalls moved, but their total time did not move in the same direction. Otherwise, return the effect
    unchanged.
    """
    if by_chance:
        return dataclasses.replace(effect, direction="same")
    if name not in _RATES_OF_STALLS or effect.direction == "same":
        return effect
    taken = _effect(FIGURES["stalled"], before, after, of_chapter=True)
    agrees = taken is None or (taken.direction == effect.direction and taken.factor >= ALIKE)
    return effect if agrees else dataclasses.replace(effect, direction="same")


def _largest(found: Iterable[Effect]) -> Effect | None:
    return max(found, key=lambda e: e.factor, default=None)


def _effect(one: Figure, before: KnownRun, after: KnownRun, *, of_chapter: bool = False) -> Effect | None:
    """Return the effect of a change on one figure. Return None if a run does not have the figure, or has too few
    events or samples. Also return None for a percentile by which the two runs cannot be compared
    (:func:`readings_apart`). ``of_chapter``: True to skip these tests of events, samples and readings, because the
    lesson says what the figure means. Such a percentile then has the direction "same": each reading of one run does
    other work, so neither run is better. Both runs tell a latency by one clock
    (:func:`jitter_workshop.stats.omission.on_one_clock`); return None if they cannot.
    """
    if one.id in LATENCIES:
        both = on_one_clock(before, after)
        if both is None:
            return None
        before, after = both
    first, second = one.of(before), one.of(after)
    if first is None or second is None:
        return None
    events: tuple[int, int] | None = None
    if one.unit == "a second":
        counted = first * before.run.rated_s, second * after.run.rated_s
        if max(counted) < LEAST_EVENTS and not of_chapter:
            return None
        events = few_events(one, before, after)
    if (
        one.id[0].isdigit()
        and not of_chapter
        and FEW_SAMPLES in (marks_of_run(before.run)[one.id], marks_of_run(after.run)[one.id])
    ):
        return None
    other_work = one.id[0].isdigit() and readings_apart(before, after)
    if other_work and not of_chapter:
        return None
    low, high = sorted((first, second))
    step = max(before.run.clock.resolution_ns, after.run.clock.resolution_ns) if one.unit == "ns" else 0
    same = low == high or high - low < step
    factor = 1.0 if same else high / max(low, one.least(after if second < first else before))
    values = _values(one, before, after)
    if factor <= 1.0:
        return Effect(one.title, values, 1.0, "same", "", one.id == "max", sort=_sort(one))
    rose = second > first
    sort = _sort(one)
    direction: Direction = "same" if sort == "cause" or other_work else "worse" if rose else "better"
    fewer, more = {"a second": ("fewer", "more"), "ns": ("shorter", "longer"), "ns a second": ("less", "more")}.get(
        one.unit, ("lower", "higher")
    )
    how = more if rose else fewer
    few, within = FEW_STALLS in _marks(one, before, after), _within_runs(one, before, after, factor)
    return Effect(
        one.title,
        values,
        factor,
        direction,
        how,
        one.id == "max",
        not low,
        few,
        sort=sort,
        within_runs=within,
        events=events,
    )


def few_events(one: Figure, before: KnownRun, after: KnownRun) -> tuple[int, int] | None:
    """Return how many events of a cause two runs counted, if both counted fewer than LEAST_EVENTS. A factor of so few
    events says too much. Return None for any other figure."""
    first, second = one.of(before), one.of(after)
    if one.unit != "a second" or _sort(one) != "cause" or first is None or second is None:
        return None
    counted = first * before.run.rated_s, second * after.run.rated_s
    return None if max(counted) >= LEAST_EVENTS else (round(counted[0]), round(counted[1]))


def readings_apart(before: KnownRun, after: KnownRun) -> bool:
    """Return True if two ``spin`` runs read the clock at rates that differ by the factor MOVED or more. For example,
    memory was slow in one of the runs. Then the runs cannot be compared by a percentile. The rate is that of the time
    in which the thread was not stalled: stalls also take readings away, and the percentiles are there to show them.
    """
    rates = [_readings_while_free(seen.run) for seen in (before, after)]
    known = [rate for rate in rates if rate is not None]
    return len(known) == len(rates) and max(known) >= MOVED * min(known)


def _readings_while_free(run: Run) -> float | None:
    """Return how often a ``spin`` run read the clock, in readings per second that was not stalled. If the run was
    stalled all the time, the readings per second of the whole time are returned. Return None for other workloads, and
    if a number is not known."""
    main = run.main_summary
    if run.workload != "spin" or main is None or not main.count or run.rated_s <= 0:
        return None
    free = 1 - run.stalls.stolen_ns_per_second / 1e9
    return main.count / (run.rated_s * (free if free > 0 else 1.0))


def _within_runs(one: Figure, before: KnownRun, after: KnownRun, factor: float) -> bool:
    """Return True if a percentile varies by ``factor`` or more between the blocks of each run. Then the difference
    between the two runs may come from chance. The blocks with the lowest 10 % and the highest 10 % of the values are
    left out. Return False if blocks do not have this percentile, or if a run has too few blocks.

    The blocks of a ring's run have only transit, also if the run's latencies count from when a message was due. A stall
    makes both long, so transit tells from block to block how steady the host was, and no more is asked here.
    """
    if (of_block := _OF_BLOCK.get(one.id)) is None or before.recorded is not None or after.recorded is not None:
        return False
    spans = []
    for run in (before.run, after.run):
        values = sorted(value for block in run.blocks if (value := of_block(block)))
        tenth = len(values) // 10
        if len(values) < _LEAST_BLOCKS:
            return False
        spans.append(values[-1 - tenth] / values[tenth])
    return min(spans) >= factor


def _sort(one: Figure) -> Sort:
    if one.id in _LATENCIES or one.id[0].isdigit():
        return "latency"
    return "stalls" if one.id in _RATES_OF_STALLS else "cause"


def _marks(one: Figure, *runs: KnownRun) -> list[str]:
    """Return the mark of a percentile in each run. The mark is "" for a figure that is not a percentile. The mark is
    also "" for a run on another machine. The mark depends on the number of stalls, which is not known for such a run.
    """
    return [marks_of_run(seen.run)[one.id] if one.id[0].isdigit() and seen.recorded is None else "" for seen in runs]


def _values(one: Figure, before: KnownRun, after: KnownRun) -> tuple[str, str]:
    """Return both values of a figure in words, before and after. A value begins with a mark if the figure is a
    percentile and few stalls lie beyond it."""
    first, second = (FEW_STALLS if mark == FEW_STALLS else "" for mark in _marks(one, before, after))
    return f"{first}{one.shown(one.of(before))}", f"{second}{one.with_unit(one.of(after))}"
