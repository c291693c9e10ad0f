"""Choose the effect of a change that a result tells first, and judge it: is it the change that made latency better?

The rule for the figures is in ``stats.effect``. This module adds what the traces and the other tasks of two runs tell.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from jitter_workshop.flow.measuring.known_reason import most_of_difference, other_work
from jitter_workshop.model.effect import CauseTime, Effect, Effects, KnownReason, Relation
from jitter_workshop.presenter.runs.disturbances import busier_after, neither_is_better, noises_differ
from jitter_workshop.presenter.runs.longest_stall import largest_of_longest
from jitter_workshop.presenter.runs.one_run import A_SECOND, SHORT_A_SECOND, judged_value
from jitter_workshop.stats.effect import ALIKE, LEAST_EVENTS, MOVED
from jitter_workshop.stats.figures import (
    DUE_TAIL,
    FIGURES,
    P99_FROM_DUE_TIME,
    KnownRun,
    least_length_ns,
    transit_of,
)
from jitter_workshop.stats.omission import sent_share
from jitter_workshop.stats.scale import times_told

_ROLES = {"better": "good", "worse": "bad", "same": "accent"}
"""The colour role of a large figure, by the direction of its effect."""
_APART = 1.2
"""The least factor by which the median must move against another figure to be told."""
PERCENTILE = re.compile(r"p[\d.]+")
"""The name of a percentile's figure."""

LatencyVerdict = Literal[
    "", "better", "worse", "perhaps better", "perhaps worse", "differs", "unclear", "undecided", "not comparable"
]
"""The judgements of two runs on the latency after a change.

- ``""``: nothing, because no latency is compared, or because the chapter's figure is the only one.
- ``better``, ``worse``: an effect that has no other known reason than the change.
- ``perhaps better``, ``perhaps worse``: such an effect may have another reason.
- ``differs``: the runs differ by plan, so neither is better.
- ``unclear``: no clear change.
- ``undecided``: the count moved as its lesson says, and the curve became worse by no larger factor.
- ``not comparable``: another task took much more in one of the runs.
"""


def told_first(found: Effects) -> Effect | None:
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


def curve_is_quiet(found: Effects, runs: Sequence[KnownRun] = ()) -> bool:
    """Return True if a chapter's count moved as its lesson says, but the curve became worse by no larger factor. Two
    runs do not prove the change of the curve, so the count is the result, and the curve is told without emphasis.
    Return False if the runs were made beside different noises, or if a run sent few of its planned messages: such a run
    counts less of everything. ``runs``: the two runs, if they are known."""
    lead, shown = told_first(found), found.shown
    if lead is None or shown is None or shown.sort != "cause" or noises_differ(runs):
        return False
    if any(sent_share(seen) is not None for seen in runs):
        return False
    of_curve = lead.name == FIGURES["max"].title or PERCENTILE.fullmatch(lead.name) is not None
    return of_curve and lead.direction == "worse" and lead.factor <= shown.factor


def judge_latency(found: Effects, runs: Sequence[KnownRun] = ()) -> LatencyVerdict:
    """Return what two runs tell of the latency after a change. ``runs``: the two runs, if they are known."""
    if len(runs) == 2 and other_work(runs[0], runs[1], found.causes) is not None:
        return "not comparable"
    lead = found.lead
    if lead is None:
        felt, of_chapter = found.tail or found.nearest, found.shown or found.missed
        if of_chapter is None:
            return "unclear"
        none = felt is None or felt.sort == "cause" or felt.name == of_chapter.name
        of_stalls = found.tail is not None and found.tail.sort == "stalls" and not none
        return "unclear" if of_stalls or not (none or found.left_out) else ""
    if neither_is_better(runs) or found.direction == "same":
        return "differs"
    if not _can_come_from_the_change(found, runs) or whole_curve_moved(found, runs):
        return "unclear"
    if curve_is_quiet(found, runs):
        return "undecided"
    if in_doubt(lead, found, runs):
        return "perhaps better" if found.direction == "better" else "perhaps worse"
    return "better" if found.direction == "better" else "worse"


def _can_come_from_the_change(found: Effects, runs: Sequence[KnownRun]) -> bool:
    """Return False if one event, or few, made the effect that is told first, and the change cannot have caused it.

    - A maximum: only the trace of the longest stall can show that the change acts on its cause.
    - A percentile of few stalls: the change has no part in it if that trace names another cause, or none.
    - A rate of few stalls: the change has no part in it if the time that it can end did not move by half as much as
      these stalls need.
    """
    first = told_first(found)
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


def whole_curve_moved(found: Effects, runs: Sequence[KnownRun]) -> bool:
    """Return True if a percentile below the judged one is told first, and the median of a ring's messages moved by more
    time than the causes on which the change acts.

    Half of the messages are at least as much faster or slower as the median says. If this takes more time in all than
    those causes lost or gained, something else moved the whole curve, as it does between equal runs.
    """
    first, tail = told_first(found), found.tail
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
    counted = stall_counts(effect, runs)
    if counted is None:
        return None
    figure, rates = counted
    length = least_length_ns(figure)
    return None if length is None else abs(rates[1] - rates[0]) * length


def stall_counts(effect: Effect, runs: Sequence[KnownRun]) -> tuple[str, tuple[float, float]] | None:
    """Return the id of a rate of stalls, and its value in both runs, in stalls a second. Return None for any other
    figure. ``effect``: the effect on this rate."""
    ident = next((name for name, one in FIGURES.items() if one.title == effect.name), None)
    values = [FIGURES[ident].of(seen) for seen in runs] if ident is not None and effect.sort == "stalls" else []
    first, second = values if len(values) == 2 else (None, None)
    return None if ident is None or first is None or second is None else (ident, (first, second))


def few_before_or_after(effect: Effect, runs: Sequence[KnownRun]) -> tuple[int, int] | None:
    """Return (number of stalls, index of the run), if one of two runs has fewer than LEAST_EVENTS stalls of a rate, and
    at least one. Return None for any other figure. ``effect``: the effect on this rate."""
    counted = stall_counts(effect, runs)
    if counted is None:
        return None
    number = [round(rate * seen.run.rated_s) for rate, seen in zip(counted[1], runs, strict=True)]
    fewest = min(number)
    return (fewest, number.index(fewest)) if 0 < fewest < LEAST_EVENTS else None


def calls_better_or_worse(found: Effects | None, runs: Sequence[KnownRun], relation: Relation) -> bool:
    """Return True if the result of two runs calls the second one better or worse, or perhaps so, by more than one
    event. Only then may a chart of these runs do so. ``found``: the effects of the change; None if they are not
    known."""
    if found is None or found.lead is None or relation != "changed" or found.lead.one_event:
        return False
    return judge_latency(found, runs) in ("better", "worse", "perhaps better", "perhaps worse")


def against_the_lead(found: Effects) -> Effect | None:
    """Return a sure effect against the one that is told first: a loss beside a gain, or the median if it moved the
    other way. None if there is none."""
    first, but = told_first(found), found.but
    if but is not None and but.direction == "worse" and not (but.doubtful or but.against_time):
        return but
    return None if first is None else median_against(found, first)


def explained_by(reason: KnownReason | None, one: Effect | None) -> bool:
    """Return True if another task that took much more in one run may be why a chapter's figure is larger in this run.
    The figure is one of latency or of stalls, or a number of preemptions. ``reason``: the reason that names the task.
    ``one``: the effect on the figure. None for none."""
    if reason is None or one is None or one.factor < ALIKE:
        return False
    larger = int(one.how in ("more", "longer", "higher"))
    return one.sort != "cause" or ("preempted" in one.name and larger == reason.run)


def is_sure(found: Effects | None, runs: Sequence[KnownRun], relation: Relation) -> bool:
    """Return True if the result of two runs calls the second one better or worse, and not only perhaps so. ``found``:
    the effects of the change; None if they are not known."""
    return found is not None and relation == "changed" and judge_latency(found, runs) in ("better", "worse")


def loudest(found: Effects, runs: Sequence[KnownRun] = ()) -> Effect | None:
    """Return the effect whose factor is shown large. It is the effect on latency or stalls, if
    it has no other reason than the change. Otherwise it is the effect on the chapter's figure, if this figure changed
    as the chapter says. None if there is neither. ``runs``: the two runs, if they are known."""
    lead = told_first(found)
    if lead is not None and not in_doubt(lead, found, runs) and not curve_is_quiet(found, runs):
        return lead
    return found.shown or lead


def large_figure(
    found: KnownRun | Effects | None,
    asked: str | None = None,
    runs: Sequence[KnownRun] = (),
    *,
    from_due_time: bool = False,
) -> tuple[str, str]:
    """Return the figure that is shown large, and its colour role; ("", "") if there is none. For one run it is the
    value of the figure that judges the run. A question mark follows if it leaves out the waits for a stopped thread.
    For two runs it is the factor of the :func:`loudest` effect. If two runs with different noises are compared by the
    due time, it is the factor between the two clocks of the first run. A factor of fewer than ten events is not shown.
    A factor of latency, or of the stalls that judge the runs, is not shown if chance, other tasks or such a run may
    explain it. The factor of a count is shown only if no latency is judged, or if the runs do not decide it.
    ``runs``: the two runs, if they are known. ``from_due_time``: True if the chapter judges one run by latency from the
    due time."""
    if isinstance(found, Effects):
        loud = loudest(found, runs)
        if loud is None or loud.at_least or loud.factor < MOVED or loud.events is not None:
            return "", ""
        if loud is found.shown:
            # Large digits of a count beside "No clear change in latency" would be a second verdict.
            alone = judge_latency(found, runs) in ("", "undecided")
            return (f"{times_told(loud.factor)}×", "accent") if alone else ("", "")
        clocks = two_clocks(runs) if by_the_due_time(loud) and noises_differ(runs) else None
        if clocks is not None:
            return f"{times_told(clocks[1] / max(clocks[0], 1))}×", "accent"
        judges = found.tail is not None and loud.name == found.tail.name
        large = (loud.sort == "latency" or judges) and not in_doubt(loud, found, runs)
        mixed = noises_differ(runs) or median_against(found, loud) is not None
        role = "accent" if mixed else _ROLES[found.direction]
        return (f"{times_told(loud.factor)}×", role) if large else ("", "")
    if found is None:
        return "", ""
    judged = judged_value(found, asked, from_due_time=from_due_time)
    if judged is None:
        return "", ""
    told = judged.told.replace(A_SECOND, SHORT_A_SECOND)
    return (told, "accent") if judged.known else (f"{told} ?", "dim")


def median_against(found: Effects, first: Effect) -> Effect | None:
    """Return the effect on the median if it moved against an effect on latency, and by more than chance explains; else
    None. A change that makes few messages early and most messages late is no plain gain. ``first``: the effect that is
    told first."""
    if first.sort != "latency" or first.direction == "same":
        return None
    median = next((e for e in found.differences if e.name.startswith(FIGURES["50"].title)), None)
    if median is None or median.doubtful or median.factor < _APART:
        return None
    return median if median.direction not in ("same", first.direction) else None


def two_clocks(runs: Sequence[KnownRun]) -> tuple[float, float] | None:
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


def in_doubt(one: Effect, found: Effects, runs: Sequence[KnownRun]) -> bool:
    """Return True if an effect may have another reason than the change. Such reasons are chance, other work on the
    host (``flow.measuring.known_reason.other_work``, ``presenter.runs.disturbances.busier_after``), and a
    cause that the change is not made to reduce."""
    if len(runs) == 2 and other_work(runs[0], runs[1], found.causes) is not None:
        return True
    return one.doubtful or busier_after(found, runs) or of_another_cause(found) is not None


def of_another_cause(found: Effects) -> CauseTime | None:
    """Return the cause of :func:`main_cause`, if the change is not made to reduce it. An example is a disk's interrupt
    during only one of the runs. Return None if there is no such cause. Also return None if it is not known which causes
    the change is made to reduce.
    """
    if found.lead is None or not any(one.treated for one in found.causes):
        return None
    most = main_cause(found)
    return None if most is None or most.treated or most.counted else most


def main_cause(found: Effects) -> CauseTime | None:
    """Return the cause that explains at least half of the difference in stalled time. Return None if no cause does, if
    no figure of latency or stalls moved, or if few stalls decide the figure that is told first."""
    first = told_first(found)
    if found.lead is None or first is None or rests_on_few(first):
        return None
    return most_of_difference(found.causes, worse=found.direction == "worse")
