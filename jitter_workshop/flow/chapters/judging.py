"""Judge two runs, once for all surfaces: can they be compared, did the change do its work, is the latency better?

:func:`judge_pair` makes the one record that results, tables, charts and home put into words. The rule for the figures
is in ``stats.effect``, that for tasks of others in ``flow.measuring.known_reason``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from jitter_workshop.bench.foreign_activity import NOTICED_PERCENT
from jitter_workshop.flow.chapters.longest_stall import largest_of_longest
from jitter_workshop.flow.measuring.known_reason import (
    LEAST_NS,
    is_other_task,
    loads_by_trace,
    most_of_difference,
    other_task,
    reason_of,
)
from jitter_workshop.model.effect import CauseTime, Direction, Effect, Effects, KnownReason, Relation
from jitter_workshop.model.judgement import Doubt, LatencyVerdict, PairJudgement, WorkVerdict
from jitter_workshop.stats.effect import ALIKE, LEAST_EVENTS, MOVED, readings_apart
from jitter_workshop.stats.figures import (
    DUE_TAIL,
    FIGURES,
    P99_FROM_DUE_TIME,
    KnownRun,
    all_device_interrupts,
    least_length_ns,
    transit_of,
)
from jitter_workshop.stats.omission import sent_share

_APART = 1.2
"""The least factor by which the median must move against another figure to be told."""
_MANY_INTERRUPTS = 100.0
"""The least difference in interrupts of devices, per second, that may explain longer latencies."""
PERCENTILE = re.compile(r"p[\d.]+")
"""The name of a percentile's figure."""


def judge_pair(found: Effects, runs: Sequence[KnownRun] = (), relation: Relation = "changed") -> PairJudgement:
    """Return the judgement of two runs. ``found``: the effects of the change between them, with the times of causes.
    ``runs``: the two runs; () if they are not known. ``relation``: the relation of the two runs. Only after a change
    there is a verdict on latency."""
    first, changed = _told_first(found), relation == "changed"
    reason = reason_of(relation, runs[0], runs[1], found.causes) if len(runs) == 2 else None
    other = other_task(runs[0], runs[1], found.causes) if len(runs) == 2 and changed else None
    whole_curve = _whole_curve_moved(found, first, runs)
    latency: LatencyVerdict = ""
    if changed:
        latency = _judge_latency(found, first, runs, reason, whole_curve=whole_curve)
    doubt: Doubt = ""
    if latency.startswith("perhaps") and first is not None:
        doubt = _doubt(found, first, runs)
    due = first or found.nearest
    clocks = _two_clocks(runs) if due is not None and by_the_due_time(due) else None
    judged = PairJudgement(
        found,
        relation,
        reason=reason,
        other=other,
        latency=latency,
        doubt=doubt,
        cause=of_another_cause(found),
        short_ns=too_short_ns(first, found) if first is not None else None,
        few=few_before_or_after(first, runs) if first is not None else None,
        work=_work(found, reason),
        first=first,
        against=_against_the_first(found, first),
        opposed=_opposed(found, first, latency, whole_curve=whole_curve, runs=runs),
        by_plan=neither_is_better(runs),
        whole_curve=whole_curve,
        rests_on_few=first is not None and rests_on_few(first),
        clocks=clocks,
    )
    large, large_is = _large(judged, runs)
    return replace(judged, large=large, large_is=large_is)


def _told_first(found: Effects) -> Effect | None:
    """Return the effect that is shown first, which usually is the largest effect.

    ``found.tail`` is the effect on the figure by which the runs are judged. It is shown first if these conditions
    hold:

    - The largest effect has the same direction. It is on a percentile, too, if ``found.tail`` is on one.
    - ``found.tail`` has at least the factor MOVED, and is not due to chance.

    The reason: this figure was chosen before the runs, whereas the largest of many figures is partly chance.
    """
    lead, tail = found.lead, found.tail
    if lead is None or tail is None or not (tail.sort == "stalls" or PERCENTILE.fullmatch(lead.name)):
        return lead
    sure = tail.factor >= MOVED and tail.direction == lead.direction and not tail.doubtful
    return tail if sure and tail.name != lead.name else lead


def _curve_is_quiet(found: Effects, lead: Effect | None, runs: Sequence[KnownRun]) -> bool:
    """Return True if a chapter's count moved as its lesson says, but the curve became worse by no larger factor. Two
    runs do not prove the change of the curve, so the count is the result, and the curve is told without emphasis.
    Return False if the runs were made beside different noises, or if a run sent few of its planned messages: such a run
    counts less of everything. ``lead``: the effect that is told first. ``runs``: the two runs, if they are known."""
    shown = found.shown
    if lead is None or shown is None or shown.sort != "cause" or noises_differ(runs):
        return False
    if any(sent_share(seen) is not None for seen in runs):
        return False
    of_curve = lead.name == FIGURES["max"].title or PERCENTILE.fullmatch(lead.name) is not None
    return of_curve and lead.direction == "worse" and lead.factor <= shown.factor


def _judge_latency(
    found: Effects, first: Effect | None, runs: Sequence[KnownRun], reason: KnownReason | None, *, whole_curve: bool
) -> LatencyVerdict:
    """Return what two runs tell of the latency after a change. ``first``: the effect that is told first."""
    if reason is not None:
        return "not comparable"
    if found.lead is None:
        felt, of_chapter = found.tail or found.nearest, found.shown or found.missed
        if of_chapter is None:
            return "unclear"
        none = felt is None or felt.sort == "cause" or felt.name == of_chapter.name
        of_stalls = found.tail is not None and found.tail.sort == "stalls" and not none
        return "unclear" if of_stalls or not (none or found.left_out) else ""
    if neither_is_better(runs) or found.direction == "same":
        return "differs"
    if not _can_come_from_the_change(found, first, runs) or whole_curve or _judge_against(found, first) is not None:
        return "unclear"
    if _curve_is_quiet(found, first, runs):
        return "undecided"
    if _in_doubt(first or found.lead, found, runs) or not _announced(found, first):
        return "perhaps better" if found.direction == "better" else "perhaps worse"
    return "better" if found.direction == "better" else "worse"


def _judge_against(found: Effects, first: Effect | None) -> Effect | None:
    """Return the effect on the figure that was announced to judge the runs, if it moved against the effect that is told
    first, by more than chance explains; else None. The announced figure cannot become worse in runs that are called
    better, nor the other way round. More stalls are worse here, even if they took less time in all: that is no gain.
    None if the due time judges the runs. ``first``: the effect that is told first."""
    judge = found.tail
    if first is None or judge is None or by_the_due_time(first) or judge.factor < ALIKE or judge.by_chance:
        return None
    moved: Direction = judge.direction
    if judge.sort == "stalls":
        moved = "worse" if judge.larger else "better"
    return judge if moved not in ("same", found.direction) else None


def _announced(found: Effects, first: Effect | None) -> bool:
    """Return False if a number of stalls was announced as the judge of the runs and did not fall by the factor MOVED,
    so that a gain is one in another figure. The largest of many figures is partly chance. Return True if few stalls
    were counted, or if the gain is one in the chapter's own figure, which was announced, too. ``first``: the effect
    that is told first."""
    judge = found.tail
    if first is None or judge is None or judge.sort != "stalls" or found.direction != "better" or judge.few:
        return True
    gained = judge.direction == "better" and judge.factor >= MOVED
    return gained or first.name in {one.name for one in (judge, found.shown) if one is not None}


def _opposed(
    found: Effects, first: Effect | None, latency: LatencyVerdict, *, whole_curve: bool, runs: Sequence[KnownRun]
) -> Effect | None:
    """Return the announced figure if there is no clear change only because it moved against the effect that is told
    first (:func:`_judge_against`); else None. ``latency``: the verdict."""
    if latency != "unclear" or whole_curve or not _can_come_from_the_change(found, first, runs):
        return None
    return _judge_against(found, first)


def _work(found: Effects, reason: KnownReason | None) -> WorkVerdict:
    """Return if the chapter's figure moved as the lesson says. ``reason``: why the two runs cannot be compared."""
    if found.uncounted:
        return "not known"
    if explained_by(reason, found.shown or found.missed):
        return ""
    return "done" if found.shown is not None else "not done" if found.missed is not None else ""


def _doubt(found: Effects, first: Effect, runs: Sequence[KnownRun]) -> Doubt:
    """Return the one reason for which an effect may not come from the change; "" for none. ``first``: the effect that
    is told first."""
    if first.doubtful and first.factor >= MOVED:
        return "chance"
    if few_before_or_after(first, runs):
        return "few stalls"
    if of_another_cause(found) is not None:
        return "another cause"
    if _busier_after(found, runs):
        return "other work"
    if too_short_ns(first, found) is not None:
        return "short cause"
    return "" if _announced(found, first) else "other figure"


def _large(judged: PairJudgement, runs: Sequence[KnownRun]) -> tuple[float | None, Direction]:
    """Return the factor that may be shown large, and its direction if it is a plain gain or loss, else "same".

    It is the factor of the effect on latency, or on the stalls that judge the runs, if the verdict rests on it and it
    has no other known reason than the change. Beside the announced figure, no other factor is large. Between runs with
    different noises that the due time judges, it is the factor between the two clocks of the first run. The factor of
    the chapter's count is large only if no latency is judged, or if the runs do not decide it: beside "No clear change
    in latency" it would be a second verdict. A factor below MOVED, or of fewer than ten events, is not large.
    """
    if judged.relation != "changed":
        return None, "same"
    found, first, latency, clocks = judged.found, judged.first, judged.latency, judged.clocks
    if judged.announced is not None:
        return (None if judged.announced.doubtful else _factor(judged.announced)), "same"
    if latency in ("", "undecided"):
        return (None if found.shown is None else _factor(found.shown)), "same"
    if first is None or latency not in ("better", "worse", "differs") or _in_doubt(first, found, runs):
        return None, "same"
    judges = found.tail is not None and first.name == found.tail.name
    if _factor(first) is None or not (first.sort == "latency" or judges):
        return None, "same"
    if clocks is not None and by_the_due_time(first) and noises_differ(runs):
        return clocks[1] / max(clocks[0], 1), "same"
    mixed = noises_differ(runs) or _median_against(found, first) is not None
    return _factor(first), "same" if mixed else found.direction


def _factor(one: Effect) -> float | None:
    """Return the factor of an effect if it may be shown large; None if it is small or says too much."""
    return None if one.at_least or one.factor < MOVED or one.events is not None else one.factor


def _can_come_from_the_change(found: Effects, first: Effect | None, runs: Sequence[KnownRun]) -> bool:
    """Return False if one event, or few, made the effect that is told first, and the change cannot have caused it.

    - A maximum: only the trace of the longest stall can show that the change acts on its cause.
    - A percentile of few stalls: the change has no part in it if that trace names another cause, or none.
    - A rate of few stalls: the change has no part in it if the time that it can end did not move by half as much as
      these stalls need.
    """
    if first is None or not (first.one_event or first.few):
        return True
    treated = [one for one in found.causes if one.treated]
    if first.sort == "stalls":
        needed = _time_of_stalls(first, runs)
        moved = sum(one.ns[1] - one.ns[0] for one in treated) * (-1 if first.direction == "better" else 1)
        return not found.causes or not treated or needed is None or 2 * moved >= needed
    longest = largest_of_longest(first, runs)
    if longest is None:
        return not first.one_event
    _, cause = longest
    return cause is not None and any(one.label == cause.label for one in treated)


def _whole_curve_moved(found: Effects, first: Effect | None, runs: Sequence[KnownRun]) -> bool:
    """Return True if another percentile than the judged one is told first, and the median of a ring's messages moved by
    more time than the causes on which the change acts.

    Half of the messages are at least as much faster or slower as the median says. If this takes more time in all than
    those causes lost or gained, something else moved the whole curve, as it does between equal runs.
    """
    tail = found.tail
    treated = [one for one in found.causes if one.treated]
    if first is None or tail is None or not PERCENTILE.fullmatch(first.name) or not treated or len(runs) != 2:
        return False
    if first.name == tail.name or found.shown is None or any(seen.run.workload != "ring" for seen in runs):
        return False
    medians = [transit_of(seen, "50") for seen in runs]
    counts = [seen.run.histograms.get(seen.run.main_histogram) for seen in runs]
    if None in medians or None in counts:
        return False
    seconds = min(seen.run.rated_s for seen in runs)
    fewest = min(one.count for one in counts if one is not None)
    by_median = abs((medians[1] or 0) - (medians[0] or 0)) * fewest / 2 / max(seconds, 1e-9)
    return by_median > abs(sum(one.ns[1] - one.ns[0] for one in treated))


def _time_of_stalls(effect: Effect, runs: Sequence[KnownRun]) -> float | None:
    """Return the least time, in ns a second, of the stalls by which two runs differ in a rate; None if the figure is
    not known. ``effect``: the effect on this rate."""
    counted = _stall_counts(effect, runs)
    if counted is None:
        return None
    figure, rates = counted
    length = least_length_ns(figure)
    return None if length is None else abs(rates[1] - rates[0]) * length


def _stall_counts(effect: Effect, runs: Sequence[KnownRun]) -> tuple[str, tuple[float, float]] | None:
    """Return the id of a rate of stalls, and its value in both runs, in stalls a second. Return None for any other
    figure. ``effect``: the effect on this rate."""
    ident = next((name for name, one in FIGURES.items() if one.title == effect.name), None)
    values = [FIGURES[ident].of(seen) for seen in runs] if ident is not None and effect.sort == "stalls" else []
    first, second = values if len(values) == 2 else (None, None)
    return None if ident is None or first is None or second is None else (ident, (first, second))


def few_before_or_after(effect: Effect, runs: Sequence[KnownRun]) -> tuple[int, int] | None:
    """Return (number of stalls, index of the run), if one of two runs has fewer than LEAST_EVENTS stalls of a rate, and
    at least one. Return None for any other figure. ``effect``: the effect on this rate."""
    counted = _stall_counts(effect, runs)
    if counted is None:
        return None
    number = [round(rate * seen.run.rated_s) for rate, seen in zip(counted[1], runs, strict=True)]
    fewest = min(number)
    return (fewest, number.index(fewest)) if 0 < fewest < LEAST_EVENTS else None


def _against_the_first(found: Effects, first: Effect | None) -> Effect | None:
    """Return a sure effect against the one that is told first: a loss beside a gain, or the median if it moved the
    other way. None if there is none."""
    but = found.but
    if but is not None and but.direction == "worse" and not (but.doubtful or but.against_time):
        return but
    return None if first is None else _median_against(found, first)


def explained_by(reason: KnownReason | None, one: Effect | None) -> bool:
    """Return True if another task that took much more in one run may be why a chapter's figure is larger in this run.
    The figure is one of latency or of stalls, or a number of preemptions. ``reason``: the reason that names the task.
    ``one``: the effect on the figure. None for none."""
    if reason is None or one is None or one.factor < ALIKE:
        return False
    return one.sort != "cause" or ("preempted" in one.name and one.larger == reason.run)


def _median_against(found: Effects, first: Effect) -> Effect | None:
    """Return the effect on the median if it moved against an effect on latency, and by more than chance explains; else
    None. A change that makes few messages early and most messages late is no plain gain. ``first``: the effect that is
    told first."""
    if first.sort != "latency" or first.direction == "same":
        return None
    median = next((e for e in found.differences if e.name.startswith(FIGURES["50"].title)), None)
    if median is None or median.doubtful or median.factor < _APART:
        return None
    return median if median.direction not in ("same", first.direction) else None


def _two_clocks(runs: Sequence[KnownRun]) -> tuple[float, float] | None:
    """Return p99 of the first run by transit and from the due time, in ns, if transit leaves out most of the latency
    from the due time; else None."""
    if not runs:
        return None
    transit, due = transit_of(runs[0], DUE_TAIL), FIGURES[P99_FROM_DUE_TIME].of(runs[0])
    if transit is None or due is None or due < MOVED * transit:
        return None
    return transit, due


def by_the_due_time(effect: Effect) -> bool:
    """Return True if an effect is that on a latency from the due time. Transit does not judge such runs."""
    return effect.name == FIGURES[P99_FROM_DUE_TIME].title


def rests_on_few(effect: Effect) -> bool:
    """Return True if a single stall, or few stalls, decide the value of a latency. The time of a cause in the whole run
    then tells nothing about it."""
    return effect.sort == "latency" and (effect.one_event or effect.few)


def _in_doubt(one: Effect, found: Effects, runs: Sequence[KnownRun]) -> bool:
    """Return True if an effect may have another reason than the change. Such reasons are chance, other work on the
    host (:func:`_busier_after`), a cause that the change is not made to reduce, and a length of the stalls that the
    change cannot explain (:func:`too_short_ns`)."""
    if one.doubtful or _busier_after(found, runs) or of_another_cause(found) is not None:
        return True
    return too_short_ns(one, found) is not None


def too_short_ns(one: Effect, found: Effects) -> float | None:
    """Return the mean time, in ns a stall, of what the change can end, if runs have fewer stalls of a length to which
    this time cannot have brought them: it is less than half of that length. The times of several causes are added up,
    as if each was in each of these stalls. Return None for any other effect, and if the traces do not tell it.
    ``one``: the effect that is told first."""
    ident = next((name for name, figure in FIGURES.items() if figure.title == one.name), "")
    length = least_length_ns(ident) if one.sort == "stalls" and one.direction == "better" else None
    treated = [cause for cause in found.causes if cause.treated and cause.ns[0] >= 1]
    if length is None or not treated or any(cause.at_most[0] or cause.stalls[0] <= 0 for cause in treated):
        return None
    mean = sum(cause.ns[0] / cause.stalls[0] for cause in treated)
    return mean if 2 * mean < length else None


def of_another_cause(found: Effects) -> CauseTime | None:
    """Return the cause of :func:`_main_cause`, if the change is not made to reduce it. An example is a disk's interrupt
    during only one of the runs. Return None if there is no such cause. Also return None if it is not known which causes
    the change is made to reduce.
    """
    if found.lead is None or not any(one.treated for one in found.causes):
        return None
    most = _main_cause(found)
    return None if most is None or most.treated or most.counted else most


def _main_cause(found: Effects) -> CauseTime | None:
    """Return the cause that explains at least half of the difference in stalled time. Return None if no cause does, if
    no figure of latency or stalls moved, or if few stalls decide the figure that is told first."""
    first = _told_first(found)
    if found.lead is None or first is None or rests_on_few(first):
        return None
    return most_of_difference(found.causes, worse=found.direction == "worse")


def noises_differ(runs: Sequence[KnownRun]) -> bool:
    """Return True if the two runs were made beside different noises. Then neither run can be called better."""
    return len(runs) == 2 and runs[0].run.noise != runs[1].run.noise


def neither_is_better(runs: Sequence[KnownRun]) -> bool:
    """Return True if the two runs are two kinds of run, and not one before and one after a cure. They were made beside
    different noises, or their threads used other memory, so that they read the clock at different rates."""
    if len(runs) != 2 or noises_differ(runs):
        return noises_differ(runs)
    return runs[0].run.memory != runs[1].run.memory and readings_apart(runs[0], runs[1])


def _busier_after(found: Effects, runs: Sequence[KnownRun]) -> bool:
    """Return True if the second run was worse and other work on the host may be the reason. Return False if the second
    run was better: the change itself may keep other work away.

    One sign is that the tasks of others together explain at least half of the difference in stalled time; without the
    times of causes, that they took more than twice as much CPU time. The other sign is that device interrupts more than
    doubled, by at least _MANY_INTERRUPTS a second.
    """
    if found.direction != "worse" or len(runs) < 2:
        return False
    came, come = map(all_device_interrupts, runs)
    if came is not None and come is not None and come - came >= _MANY_INTERRUPTS and come > MOVED * came:
        return True
    if found.causes:
        more = sum(one.ns[1] - one.ns[0] for one in found.causes if is_other_task(one))
        return more >= LEAST_NS and 2 * more >= sum(one.ns[1] - one.ns[0] for one in found.causes)
    shares = []
    for seen in runs:
        by_trace = loads_by_trace(seen)
        loads = by_trace.values() if by_trace is not None else [load.cpu_percent for load in seen.run.disturbed]
        shares.append(sum(loads))
    first, second = shares
    return second >= NOTICED_PERCENT and second > MOVED * first
