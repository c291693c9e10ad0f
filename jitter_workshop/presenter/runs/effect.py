"""Say the result of two runs in one line: the only emphasised line of a screen.

The line says in a word if the result is better or worse, so that it can be read without colours.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Sequence

from jitter_workshop.flow.measuring.known_reason import (
    LEAST_SHARE,
    MUCH_WORK,
    OF_THE_KERNEL,
    UNCOMPARED,
    known_reason,
    most_of_difference,
    other_work,
    reason_of,
    what_to_do,
)
from jitter_workshop.model.effect import RUN_NAMES, CauseTime, Effect, Effects, KnownReason, Relation, Uncompared
from jitter_workshop.model.run import HUNTED, MEANWHILE, UNSTEADY
from jitter_workshop.model.spec import KINDS
from jitter_workshop.model.text import PATH, capital, clean, many
from jitter_workshop.presenter.runs.control_run import control_told
from jitter_workshop.presenter.runs.disturbances import (
    busier_after,
    disturbances_of_two,
    neither_is_better,
    noises_differ,
)
from jitter_workshop.presenter.runs.effect_table import LEAST_ROW, OF_A_CHANGE, both_times, of_a_second
from jitter_workshop.presenter.runs.longest_stall import said_of_longest
from jitter_workshop.presenter.runs.omission import warning as few_sent
from jitter_workshop.presenter.runs.one_run import A_SECOND, SHORT_A_SECOND, judged_value, lead_of_origin, origin_of
from jitter_workshop.presenter.runs.short_stalls import short_stalls_told
from jitter_workshop.presenter.runs.unchanged import notes_unchanged, result_unchanged
from jitter_workshop.presenter.text.lines import Lines, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.report.cause_words import cause_words
from jitter_workshop.stats.effect import ALIKE, LEAST_EVENTS, MOST_BY_LUCK, MOVED, judged_by, tail_of
from jitter_workshop.stats.figures import DUE_TAIL, FIGURES, P99_FROM_DUE_TIME, Figure, KnownRun
from jitter_workshop.stats.omission import WITH_WAITS, sent_share
from jitter_workshop.stats.scale import nice_ns, times_told

NOT_PROVEN = "2 runs, not yet proven"
RULE = (
    "Only latency and stalls are called better or worse. For this, two runs must differ by a factor of 2 or more, and "
    "by more than chance explains. A count of a cause, such as preemptions, is never called better or worse."
)
"""The one rule of ``stats.effect``, for the page that shows the figures."""
_ROLES = {"better": "good", "worse": "bad", "same": "accent"}
_LEADS = {"better": "Looks better: ", "worse": "Looks worse: "}
_NO_CHANGE = "No clear change: "
_DIFFERS = "What differs: "
_SECOND_RUN = f"In the second run {FIGURES[P99_FROM_DUE_TIME].title} is "
_WHAT_CHANGED = "What changed: "
_NOT_AS_EXPECTED = "Not as expected: "
_NO_LATENCY = "No clear change in latency"
_CURVE = "The curve: "
_MAY_BE_CHANCE = "This may be chance."
_EQUAL_RUNS = "equal runs of this session differ"
_PERHAPS = "Perhaps "
_BEGINS = (*_LEADS.values(), _NO_CHANGE, _DIFFERS, _WHAT_CHANGED, _NOT_AS_EXPECTED)
_JUDGES = re.compile(f"^(?:{'|'.join(_BEGINS)}|{_PERHAPS}[a-z]+: )")
"""The words with which the result of two runs begins."""
_THESE_TWO = "These two runs: "
_BESIDE_NOISE = "Beside the noise"
_THE_MAXIMUM = "the maximum moved by a factor of 2, and it is one event."
_NEW_CAUSES = "Look which causes (v) are new."
_NO_PERCENTILE = "No percentile"
_LEFT_OUT: dict[Uncompared, str] = {
    "": "",
    "readings": f"{_NO_PERCENTILE} is compared: the two runs read the clock at different rates.",
    "waits": "No latency is compared: it leaves out the waits for the stopped thread.",
}
"""The sentences on figures that two runs do not let one compare."""
_NOT_THE_NOISE = "This task is not the noise."
_AFRESH = "So measure again before you name the noise."
_NOT_OF_THE_NOISE = "So the runs do not show what the hidden noise did"
_AGAIN = ". Go back and measure again."
_ONE_RUN = "Both runs are the same run, so nothing can differ."
_APART = 1.2
"""The least factor by which two runs must differ before their difference is explained. It holds for the number of
stalls, their mean length and the tail."""
_PERCENTILE = re.compile(rf"p[\d.]+(?:{WITH_WAITS})?")


def told_first(found: Effects) -> Effect | None:
    """Return the effect that is shown first, which usually is the largest effect.

    ``found.tail`` is the effect on the figure by which the runs are judged. It is shown first if these conditions
    hold:

    - The largest effect has the same direction. It is on a percentile, too, if ``found.tail`` is on one.
    - ``found.tail`` has at least the factor MOVED, and is not due to chance.

    The reason: this figure was chosen before the runs, whereas the largest of many figures is partly chance.
    """
    lead, tail = found.lead, found.tail
    if lead is None or tail is None or not (tail.sort == "stalls" or _PERCENTILE.fullmatch(lead.name)):
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
    of_curve = lead.name == FIGURES["max"].title or _PERCENTILE.fullmatch(lead.name) is not None
    return of_curve and lead.direction == "worse" and lead.factor <= shown.factor


def calls_better_or_worse(found: Effects | None, runs: Sequence[KnownRun], relation: Relation) -> bool:
    """Return True if the result of two runs calls the second one better or worse, or perhaps so, by more than one
    event. Only then may a chart of these runs do so. ``found``: the effects of the change; None if they are not
    known."""
    if found is None or found.lead is None or relation != "changed" or noises_differ(runs):
        return False
    return found.direction != "same" and not found.lead.one_event and not curve_is_quiet(found, runs)


def loudest(found: Effects, runs: Sequence[KnownRun] = ()) -> Effect | None:
    """Return the effect that is emphasised, and whose factor is shown large. It is the effect on latency or stalls, if
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
    with_waits: bool | None = None,
) -> tuple[str, str]:
    """Return the figure that is shown large, and its colour role; ("", "") if there is none. For one run it is the
    value of the figure that judges the run. A question mark follows if the run needs the waits and is told without.
    For two runs it is the factor of the :func:`loudest` effect. If two runs with different noises are compared by the
    due time, it is the factor between the two clocks of the first run. A factor of fewer than ten events is not shown.
    A factor of latency, or of the stalls that judge the runs, is not shown if chance, other tasks or such a run may
    explain it.
    ``runs``: the two runs, if they are known. ``from_due_time``: True if the chapter judges one run by latency from the
    due time. ``with_waits``: as in ``presenter.runs.one_run.judged_value``."""
    if isinstance(found, Effects):
        loud = loudest(found, runs)
        if loud is None or loud.at_least or loud.factor < MOVED or loud.events is not None:
            return "", ""
        if loud is found.shown:
            return f"{times_told(loud.factor)}×", "accent"
        clocks = _two_clocks(runs) if by_the_due_time(loud) and noises_differ(runs) else None
        if clocks is not None:
            return f"{times_told(clocks[1] / max(clocks[0], 1))}×", "accent"
        judges = found.tail is not None and loud.name == found.tail.name
        large = (loud.sort == "latency" or judges) and not in_doubt(loud, found, runs)
        mixed = noises_differ(runs) or _median_against(found, loud) is not None
        role = "accent" if mixed else _ROLES[found.direction]
        return (f"{times_told(loud.factor)}×", role) if large else ("", "")
    if found is None:
        return "", ""
    judged = judged_value(found, asked, from_due_time=from_due_time, with_waits=with_waits)
    if judged is None:
        return "", ""
    told = judged.told.replace(A_SECOND, SHORT_A_SECOND)
    return (told, "accent") if judged.known else (f"{told} ?", "dim")


@dataclasses.dataclass(frozen=True)
class Result:
    """Hold the lines of a result. ``told``: the result itself. ``caveats``: the lines after it, which a screen must not
    cut. They tell what became worse, the state of the proof, and which tasks took much time. ``uncut``: the number of
    lines at the start of ``told`` that a screen must not cut: they warn, or tell what became worse. ``notes``: lines
    that explain the result. A screen may show them apart from it, below its figures."""

    told: Lines
    caveats: Lines = dataclasses.field(default_factory=list)
    uncut: int = 0
    notes: Lines = dataclasses.field(default_factory=list)

    @property
    def lines(self) -> Lines:
        """Return all lines, the notes last."""
        return [*self.told, *self.caveats, *self.notes]


def result_of_two_runs(
    found: Effects,
    runs: Sequence[KnownRun],
    relation: Relation,
    width: int,
    proof: str | Text = "",
    *,
    short: bool = False,
    key: str = "",
) -> Result:
    """Return the result of two runs, as lines in this order:

    - the effect on the chapter's figure, as far as it moved
    - the effect on latency or stalls, with its doubt, and the figure by which the runs are judged
    - the stalls that are too short for this figure, if their number moved (``presenter.runs.short_stalls``)
    - what is left of the time that the chapter's change can end (:func:`_what_is_left`)
    - the time of the chapter's causes, or of the cause that explains most of the difference
    - the largest effect in the other direction, coloured if it is a loss that chance does not explain
    - the warnings of ``presenter.runs.omission`` and ``presenter.runs.control_run``
    - the state of the proof, and the tasks that took at least MUCH_WORK per cent of a CPU
    - notes: why the difference may be chance, what a percentile leaves out, and smaller tasks

    Only the :func:`loudest` of these is emphasised. ``proof``: a sentence on the proof of this change; "" if the change
    cannot be proven. If ``proof`` is a ``Text``, it is the verdict of a proof. Then the lines begin with this verdict,
    and the result of the two runs is not emphasised. ``short``: join the last two before the notes in one paragraph,
    and the first two, too, if that saves rows; the times of causes are then a note. ``key``: the key that makes a run
    that cannot be compared again; "" for none.
    """
    told, uncut, caveats, notes = _compared(found, runs, relation, proof, short, key, width)
    wrapped = [wrap(part, width) for part in told]
    return Result(
        [line for part in wrapped for line in part],
        [line for part in caveats for line in wrap(part, width)],
        sum(map(len, wrapped[:uncut])),
        [line for part in notes for line in wrap(part, width)],
    )


def _compared(
    found: Effects,
    runs: Sequence[KnownRun],
    relation: Relation,
    proof: str | Text,
    short: bool,
    key: str,
    width: int,
) -> tuple[list[Text], int, list[Text], list[Text]]:
    """Return the paragraphs of :func:`result_of_two_runs`: the result, how many of its first paragraphs a screen must
    not cut, its caveats, and its notes."""
    origin, nearest = origin_of(runs[0]) or origin_of(runs[1]), found.nearest
    of_chapter = found.shown or found.missed
    unknown = nearest is None and of_chapter is None and not found.causes and not found.left_out
    if unknown and relation not in ("strayed", "alike"):
        return [], 0, [], []
    if runs[0].run.id == runs[1].run.id and runs[0].recorded is None:
        return [Text(_ONE_RUN, "bold accent")], 0, [], []
    others = " ".join(disturbances_of_two(runs, MUCH_WORK))
    smaller = "" if others else " ".join(disturbances_of_two(runs, 0.0))
    with_them = relation == "changed" and found.tail is not None and found.tail.name.endswith(WITH_WAITS)
    reason = reason_of(relation, runs[0], runs[1], found.causes)
    # The result itself then asks for a run.
    asks = reason is not None or relation == "unsteady"
    warned = few_sent(runs, valued=not with_them, key="" if asks else key)
    few = [warned] if warned and (reason is None or not reason.few) else []
    if relation != "changed":
        line = Text.assemble(lead_of_origin(origin), _unjudged(found, runs, relation, key))
        known = [proof] if isinstance(proof, Text) and relation == "strayed" else []
        if isinstance(proof, str) and proof and relation == "strayed" and not proof.startswith(NOT_PROVEN):
            known = [Text(proof, "text")]
        quiet = [Text(others, "text")] if others and (reason is None or not reason.causes) else []
        below = [Text(smaller, "text")] if smaller else []
        if relation == "alike" and reason is None:
            explained = (*notes_unchanged(found, runs), _of_the_longest(found, runs), _why_apart(found, runs))
            below = [*(Text(one, "text") for one in (*explained, _LEFT_OUT[found.left_out]) if one), *below]
        if asks:
            # Only one line is loud: the one that says what to do.
            return [line, *(Text(one.plain, "text") for one in few), *quiet], 1, known, below
        return [*few, line, *quiet], len(few), known, below
    proven, other = isinstance(proof, Text), of_another_cause(found)
    short_told = short_stalls_told(runs)
    left = "" if neither_is_better(runs) else _what_is_left(found.causes, labelled=not short)
    figure, latency = _of_figure(found, runs, reason), _of_latency(found, runs, quiet=not proven)
    lost, but = _but(found)
    if reason is not None and latency:
        # The latencies are not comparable, so no gain and no loss in them is told.
        latency = not_comparable(reason, key, relation, quiet=figure is not None and found.shown is not None)
        other, lost, but = None, [], []
        others = ""
    cause = _of_causes(found, runs, told=other if reason is None else main_cause(found))
    if reason is None and latency and (why := _why(found, runs, other)):
        latency.append(f" {why}", "text")
    parts = [part for part in (figure, latency) if part]
    if not isinstance(proof, Text):
        parts += [Text(told, "text") for told in (short_told, left) if told]
        short_told = left = ""
    losses, notes = [Text(told, "text" if proven else "bad") for told in lost], but
    if reason is None and (alone := control_told(runs, key)):
        losses.append(Text(alone, "text"))
    if found.lead is None and of_chapter is not None and not found.causes:
        notes += _left(runs[1])
    notes.append(_not_compared(found))
    if reason is None:
        notes.append(_why_apart(found, runs))
    below = [Text(one, "text") for one in (short_told, left, *notes, smaller) if one]
    if with_them:
        # The latencies have the waits, so this is no warning.
        few, below = [], [*(Text(one.plain, "text") for one in few), *below]
    if isinstance(proof, Text):
        # The verdict of many runs is the result, and it comes before these two.
        parts = [proof, *_plainly(parts)]
        quiet = [Text(others, "text")] if others else []
        causes = [] if short else cause
        return [*parts, *causes], len(parts), [*losses, *few, *quiet], [*(cause if short else []), *below]
    remembered = bool(proof) and not proof.startswith(NOT_PROVEN)
    parts[0] = Text.assemble(lead_of_origin(origin), (_THESE_TWO if remembered else "", "text"), parts[0])
    if not short:
        told_quietly = [Text(said, "text") for said in (proof, others) if said]
        return [*parts, *cause], len(parts), [*losses, *few, *told_quietly], below
    together = Text.assemble(parts[0], *(piece for part in parts[1:] for piece in (" ", part)))
    apart = sum(len(wrap(part, width)) for part in parts) <= len(wrap(together, width))
    shown = parts if apart else [together]
    told_quietly = [Text(said, "text")] if (said := f"{proof} {others}".strip()) else []
    return shown, len(shown), [*losses, *few, *told_quietly], [*cause, *below]


def _of_figure(found: Effects, runs: Sequence[KnownRun], reason: KnownReason | None) -> Text | None:
    """Return a sentence on the chapter's figure. Return None if the chapter has none, or if :func:`_of_latency` tells
    it. ``reason``: why the latency of the two runs cannot be compared; None if it can. Return None, too, if this reason
    may explain the figure."""
    if reason is not None and explained_by(reason, found.shown or found.missed):
        return None
    if (shown := found.shown) is not None:
        loud = loudest(found, runs) is shown
        return Text(f"{_WHAT_CHANGED}{_figure_told(shown)}.", "bold accent" if loud else "text")
    if (missed := found.missed) is not None:
        return Text(f"{_NOT_AS_EXPECTED}{_figure_told(missed)}.", "text")
    return None


def explained_by(reason: KnownReason, one: Effect | None) -> bool:
    """Return True if another task that took much more in one run may be why a chapter's figure is larger in this run.
    The figure is one of latency or of stalls, or a number of preemptions. ``one``: the effect on it; None for none."""
    if one is None or one.factor < ALIKE:
        return False
    larger = int(one.how in ("more", "longer", "higher"))
    return one.sort != "cause" or ("preempted" in one.name and larger == reason.run)


def _figure_told(effect: Effect) -> str:
    """Return the words for the effect on a chapter's figure. A factor of a few events says too much, so these have
    their number instead."""
    if effect.events is not None and not effect.at_least:
        first, second = effect.events
        return f"{_change(effect)} ({many(first, 'event')} → {second})"
    return _change(effect) if effect.at_least else describe_effect(effect)


def _of_latency(found: Effects, runs: Sequence[KnownRun], *, quiet: bool) -> Text:
    """Return a sentence on the effect on latency or stalls; an empty text if no latency is compared. The sentence also
    names the figure by which the runs are judged. ``quiet``: True to call a curve for which
    :func:`curve_is_quiet` neither better nor worse."""
    lead, first, nearest = found.lead, told_first(found), found.nearest
    of_chapter = found.shown or found.missed
    if lead is None or first is None:
        if of_chapter is not None:
            felt = found.tail or nearest
            if felt is not None and felt.sort == "stalls" and felt is found.tail and felt.name != of_chapter.name:
                return Text(f"{_NO_LATENCY}. {_judged_by(felt)}", "text")
            told = felt is not None and felt.sort != "cause" and felt.name != of_chapter.name and not found.left_out
            return Text(_hardly_moved(felt), "text") if felt is not None and told else Text()
        if nearest is not None and nearest.name == FIGURES[P99_FROM_DUE_TIME].title:
            # Other figures may have moved: a chapter that judges by the due time does not tell them.
            return Text(f"{_NO_CHANGE}{describe_effect(nearest)}.", "bold accent")
        of_stalls = found.tail if found.tail is not None and found.tail.sort == "stalls" else None
        if of_stalls is not None and nearest is not None and nearest.name == of_stalls.name:
            of_stalls = None
        told_nearest = (
            "." if nearest is None or nearest.factor < ALIKE else f", the nearest is {describe_effect(nearest)}."
        )
        return Text.assemble(
            (f"{_NO_CHANGE}{_none_moved(found)}", "bold accent"),
            (f" by a factor of 2{told_nearest}", "text"),
            (f" {_judged_by(of_stalls)}" if of_stalls is not None else "", "text"),
        )
    if quiet and curve_is_quiet(found, runs):
        return Text(f"{_CURVE}{describe_effect(first)}. {_MAY_BE_CHANCE}", "text")
    doubtful = in_doubt(lead, found, runs)
    looks = f"{_PERHAPS}{found.direction}: " if doubtful else _LEADS.get(found.direction, _DIFFERS)
    if noises_differ(runs) or found.direction == "same":
        looks = _DIFFERS
    against = _median_against(found, first)
    role = "accent" if doubtful or looks == _DIFFERS or against is not None else _ROLES[found.direction]
    style = f"bold {role}" if loudest(found, runs) is first else "text"
    line = Text.assemble((f"{looks}{describe_effect(first)}{_doubt(first)}.", style))
    if first is not lead:
        name = capital(lead.name) if lead.sort == "stalls" else lead.name
        line.append(f" {name} moved most: {_none(lead) or f'{times_told(lead.factor)} times {lead.how}'}.", "text")
    elif (tail := found.tail) is not None and tail.name != first.name and not by_the_due_time(first):
        line.append(f" {_judged_by(tail)}", "text")
    if by_the_due_time(first) and (clocks := _two_clocks(runs)) is not None:
        transit, due = map(nice_ns, clocks)
        if looks == _DIFFERS:
            # The two runs differ by plan. The chapter shows how the two clocks of the first run differ.
            said = f"One run, two clocks: p{DUE_TAIL} is {transit} by transit, {due} from the due time."
            return Text.assemble((said, style), (f" {_SECOND_RUN}{first.values[1]}.", "text"))
        line.append(f" Transit hides it: in the first run p{DUE_TAIL} of transit is {transit}.", "text")
    if against is not None and (found.but is None or found.but.name != against.name):
        line.append(f" But {describe_effect(against)}.", "text")
    if stays := _longest_stays(found, first):
        line.append(f" {stays}", "text")
    return line


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


def _longest_stays(found: Effects, first: Effect) -> str:
    """Return a sentence on the longest stall, if runs that stalls judge have fewer stalls, but no shorter one as their
    longest; else "". ``first``: the effect that is told first."""
    if found.tail is None or found.tail.sort != "stalls" or first.direction != "better":
        return ""
    longest = next((e for e in found.differences if e.name == FIGURES["max"].title), None)
    if longest is None or longest.name in (first.name, found.but.name if found.but is not None else ""):
        return ""
    if longest.factor >= ALIKE:
        return f"The longest stall grew: {' → '.join(longest.values)}." if longest.direction == "worse" else ""
    return f"The longest stall stays: {' → '.join(longest.values)}."


def _hardly_moved(felt: Effect) -> str:
    """Return a sentence on the latency, or the stalls, of two runs in which no latency moved by the factor MOVED."""
    of_stalls = felt.sort == "stalls"
    told = describe_effect(felt) if of_stalls else describe_effect(felt).replace(f"{felt.name}: ", f"{felt.name} ", 1)
    enough = "" if felt.factor < ALIKE or felt.at_least else limit_told(felt)
    return f"{_NO_LATENCY}: {told}{enough}."


def limit_told(felt: Effect) -> str:
    """Return in brackets the least factor that would count: MOVED, or the factor between equal runs if it is larger."""
    if felt.of_equal_runs > MOVED:
        return f" (more than {times_told(felt.of_equal_runs)} would count: {_EQUAL_RUNS} by this factor)"
    return f" ({MOVED:g} would count)"


def _judged_by(tail: Effect) -> str:
    """Return a sentence on the figure by which two runs are judged, with its doubt."""
    return f"Judged by {describe_effect(tail)}{_doubt(tail)}."


def _two_clocks(runs: Sequence[KnownRun]) -> tuple[float, float] | None:
    """Return p99 of the first run by transit and from the due time, in ns, if transit leaves out most of the latency
    from the due time; else None."""
    transit, due = (FIGURES[name].of(runs[0]) if runs else None for name in (DUE_TAIL, P99_FROM_DUE_TIME))
    if transit is None or due is None or due < MOVED * transit:
        return None
    return transit, due


def by_the_due_time(effect: Effect) -> bool:
    """Return True if an effect is that on a latency from the due time. Transit does not judge such runs."""
    return effect.name == FIGURES[P99_FROM_DUE_TIME].title


def _why(found: Effects, runs: Sequence[KnownRun], other: CauseTime | None) -> str:
    """Return a sentence on what may have made an effect on latency or stalls; "" if nothing is known. Where a single
    stall or few decide the figure, the trace of the longest stall tells it, and no sum of times. ``other``: the cause
    of :func:`of_another_cause`."""
    first = told_first(found)
    if first is not None and rests_on_few(first):
        return said_of_longest(first, runs)
    return _may_come_from(other) if other is not None else ""


def rests_on_few(effect: Effect) -> bool:
    """Return True if a single stall, or few stalls, decide the value of a latency. The time of a cause in the whole run
    then tells nothing about it."""
    return effect.sort == "latency" and (effect.one_event or effect.few)


def _may_come_from(cause: CauseTime) -> str:
    """Return a sentence on a cause that explains an effect, and that the chapter's change is not made to reduce."""
    took = " → ".join(both_times(cause))
    if cause.own_load:
        return f"It may come from {cause.label}, this chapter's own noise: {took} of each second."
    return f"It may come from {cause.label}: {took} of each second. This change does not act on it."


def _of_causes(found: Effects, runs: Sequence[KnownRun], told: CauseTime | None) -> list[Text]:
    """Return a paragraph on where the time went: the causes that the chapter's change is made to reduce, and the cause
    that explains at least half of the difference. Return [] if no such cause is known. ``told``: a cause that another
    sentence tells already; None if there is none.
    """
    lines, of_chapter = list[str](), found.shown or found.missed
    which = _IN_EACH if neither_is_better(runs) else OF_A_CHANGE
    if which == OF_A_CHANGE and _what_is_left(found.causes, labelled=True):
        # Another sentence tells the time of the chapter's causes.
        pass
    elif (cause := _treated(found.causes)) is not None:
        lines.append(f"{_in_time(cause, which)}.")
    elif (cause := _treated(found.causes, LEAST_ROW)) is not None:
        lines.append(f"{_in_time(cause, which)}. This is a small part of all stalls.")
    elif (small := _small(found.causes)) and of_chapter is not None:
        took, stalled = small
        lines.append(f"In the trace, the events of this count took only {took} a second; all stalls took {stalled}.")
    if (most := main_cause(found)) is not None and most is not told and not (most.treated or most.counted):
        lines.append(f"Most of the difference: {_in_time(most, which)}.")
    return [Text(" ".join(lines), "text")] if lines else []


def _what_is_left(causes: Sequence[CauseTime], *, labelled: bool) -> str:
    """Return a sentence on what the second run has left of the time that the chapter's change can end; the step
    ``diagnose`` told this time of the first run. Return "" if the change acts on no cause of the first run.
    ``labelled``: True to name the largest of these causes."""
    treated = sorted((one for one in causes if one.treated), key=lambda one: -one.ns[0])
    seen_before = [one for one in treated if not one.at_most[0]]
    before, after = sum(one.ns[0] for one in seen_before), sum(one.ns[1] for one in treated)
    if before < 1:
        return ""
    more = f" and {many(len(seen_before) - 1, 'smaller one')}" if len(seen_before) > 1 else ""
    small = before < LEAST_ROW * sum(one.ns[0] for one in causes)
    said = (f"{seen_before[0].label}{more}" if labelled else "", "less than 1 % of all stalls" if small else "")
    which = f" ({', '.join(filter(None, said))})" if any(said) else ""
    promised = f"{of_a_second(before)} a second that the change can end{which}"
    if after >= ALIKE * before:
        return f"The {promised} became {of_a_second(after)}."
    least = "at most " if any(one.at_most[1] for one in treated) else ""
    left = "none is left" if after < 1 else f"{least}{of_a_second(after)} are left"
    return f"Of the {promised}, {left}."


def _not_compared(found: Effects) -> str:
    """Return the sentence on figures that two runs do not let one compare; "" for none. A lesson may compare one
    percentile all the same, because it says what this percentile means."""
    told = _LEFT_OUT[found.left_out]
    of_lesson = [one for one in (found.lead, found.shown, found.missed) if one is not None]
    if any(_PERCENTILE.fullmatch(one.name) for one in of_lesson):
        return told.replace(_NO_PERCENTILE, "No other percentile", 1)
    return told


def _but(found: Effects) -> tuple[list[str], list[str]]:
    """Return the sentence on the largest effect in the other direction: in the first list if it is a loss that chance
    does not explain, else in the second. Both lists are empty if there is no such effect."""
    if found.but is None:
        return [], []
    told = f"But {describe_effect(found.but)}{_doubt(found.but)}."
    lost = found.but.direction == "worse" and not _doubt(found.but) and not found.but.against_time
    return ([told], []) if lost else ([], [told])


def _plainly(parts: Sequence[Text]) -> Lines:
    """Return the result of two runs without emphasis, to be shown below a proof's verdict. The word that judges the
    runs, such as better, is removed."""
    told = [Text(_JUDGES.sub("", part.plain), "text") for part in parts]
    return [Text.assemble((_THESE_TWO, "text"), told[0]), *told[1:]]


def _why_apart(found: Effects, runs: Sequence[KnownRun]) -> str:
    """Return :func:`against_each_other`; "" if the chapter judges by another figure than the workload's usual one."""
    usual = FIGURES[tail_of(runs[0].run.workload)].title
    return against_each_other(runs) if found.tail is None or found.tail.name == usual else ""


def _of_the_longest(found: Effects, runs: Sequence[KnownRun]) -> str:
    """Return a sentence on the longest stall if few stalls decide the largest difference of two equal runs; else ""."""
    largest = next(iter(found.differences), None)
    return said_of_longest(largest, runs) if largest is not None and rests_on_few(largest) else ""


def against_each_other(runs: Sequence[KnownRun]) -> str:
    """Explain why a second run has fewer stalls but a longer tail, or the reverse. The returned sentences give the
    stalls' mean length in both runs, and tell how many messages or wake-ups one stall delays. Return "" for all other
    runs, and for runs of ``spin``, which the number of stalls judges. Also return "" if a run sent few of its planned
    messages, or if its longest value is shorter than its stalls.
    """
    before, after = runs
    if any(one.recorded is not None or one.timeless or sent_share(one) is not None for one in runs):
        return ""
    usual = tail_of(before.run.workload)
    if usual != judged_by(before.run.workload):
        return ""
    tail = FIGURES[usual]
    values = tail.of(before), tail.of(after)
    if None in values:
        return ""
    later = (values[1] or 1) / max(values[0] or 1, 1)
    for threshold_ns in (1_000_000, 100_000, 10_000):
        found = [next((r for r in one.run.stalls.rates if r.threshold_ns == threshold_ns), None) for one in runs]
        first, second = found
        if first is None or second is None or min(first.count, second.count) < LEAST_EVENTS:
            continue
        rarer = first.per_second / second.per_second
        if abs(math.log(rarer)) >= math.log(_APART) and (rarer > 1) != (later > 1):
            # The number of the longest stalls and the tail moved alike, so nothing is to be explained.
            return ""
        lengths = [rate.stolen_ns_per_second / rate.per_second for rate in (first, second)]
        longer = lengths[1] / max(lengths[0], 1)
        signs = {step > 0 for step in map(math.log, (rarer, longer, later))}
        if len(signs) > 1 or min(abs(math.log(step)) for step in (rarer, longer, later)) < math.log(_APART):
            continue
        longest = [one.run.main_summary.max if one.run.main_summary is not None else None for one in runs]
        if any(most is not None and most < mean for most, mean in zip(longest, lengths, strict=True)):
            # The stalls delayed no value as long as themselves, so they do not explain the tail.
            return ""
        how, what, made = ("fewer", "longer", "more") if rarer > 1 else ("more", "shorter", "fewer")
        mean = " → ".join(map(nice_ns, lengths))
        return (
            f"There were {how} stalls of {nice_ns(threshold_ns)} or more, but {tail.title} is {what}. The mean "
            f"length of such a stall was {mean}. {_delayed(before.run.workload, tail, made)}"
        )
    return ""


def _delayed(workload: str, tail: Figure, made: str) -> str:
    """Return a sentence on what one stall delays. ``made``: "more" or "fewer", for a workload with messages."""
    kind = KINDS[workload]
    if workload == "ring":
        return f"So each stall made {made} messages late. {tail.title} counts messages, not stalls."
    return f"Each stall made only one of the {kind.counted} long."


def _left(seen: KnownRun) -> list[str]:
    """Return a sentence on the cause that took most of a run's stalled time. The cause comes from the run's trace.
    Return [] if no cause took at least half of this time.
    """
    causes = seen.report.causes if seen.report is not None else ()
    most = causes[0] if causes else None
    if most is None or 2 * most.total_ns < sum(cause.total_ns for cause in causes):
        return []
    return [f"The largest remaining cause in the trace: {cause_words(most.kind, most.name)}."]


def _unjudged(found: Effects, runs: Sequence[KnownRun], relation: Relation, key: str) -> Text:
    """Return the result of two runs that cannot be called better or worse. The reason is that settings changed during a
    run, that a hidden noise ran, that nothing was changed between the runs, or that settings of others changed."""
    if relation == "unsteady":
        number = run_unsteady(runs)
        again = f". Measure the {RUN_NAMES[number]} run again ({key})." if key and number is not None else _AGAIN
        return Text.assemble(("Not comparable: ", "bold bad"), (unsteady(runs), "bold text"), (again, "text"))
    if relation == "alike" and (reason := known_reason(runs[0], runs[1], found.causes)) is not None:
        return not_comparable(reason, key)
    if relation == "alike":
        return result_unchanged(found, runs)
    shown = found.lead or found.nearest
    if relation == "strayed":
        shown = next(iter(found.differences), shown)
    if relation == "strayed" and any(HUNTED in seen.run.notes for seen in runs):
        return Text.assemble((found.strayed, "bold accent"), (f" {_NOT_OF_THE_NOISE}{_AGAIN}", "text"))
    if relation == "strayed":
        of_chapter = found.shown or found.missed
        differs = f"The chapter's figure: {apart(of_chapter)}." if of_chapter is not None else ""
        if not differs and shown is not None:
            differs = _largest_difference(shown, found)
        told = f" So neither run is better or worse. {differs}" if differs else ""
        return Text.assemble((found.strayed, "bold accent"), (told, "text"))
    risen = (e for e in found.differences if e.direction == "worse" and e.factor >= MOVED and not e.one_event)
    judge = found.tail
    if relation == "hunted" and (most := next(risen, None)) is not None:
        # A noise only adds: what fell beside it is other work of the first run. The figure that judges the runs comes
        # first, because it was chosen before them.
        sure = judge is not None and judge.direction == "worse" and judge.factor >= MOVED and not judge.doubtful
        shown = judge if judge is not None and sure and judge.sort == "stalls" else most
    elif relation == "hunted":
        stalls = found.stalls if found.stalls is not None and found.stalls.factor >= MOVED else None
        if stalls is None and found.stalled is not None and (shown is None or shown.one_event or shown.factor < MOVED):
            stalls = found.stalled if found.stalled.factor >= MOVED else None
        shown = stalls or shown
    if shown is None:
        return Text(_LEFT_OUT[found.left_out], "text")
    rose = any(e.direction == "worse" and e.factor >= MOVED for e in found.differences)
    if relation == "hunted" and judge is not None and judge.sort == "stalls" and not rose and not found.left_out:
        told = f"{_BESIDE_NOISE} no figure rose by a factor of 2: {describe_effect(judge)}{_doubt(judge)}."
        if (other := another_task(found)) is None:
            return Text(told, "bold accent")
        return Text.assemble((f"{_in_time(other)}. {_NOT_THE_NOISE}", "bold bad"), (f" {_AFRESH} {told}", "text"))
    told_instead, left_out = "", _LEFT_OUT[found.left_out]
    if relation == "hunted" and shown.one_event and shown.factor >= MOVED:
        # A noise is never found by one event: the figure by which the runs are judged is told instead.
        parts = (_THE_MAXIMUM, left_out, _NEW_CAUSES) if left_out else (f"only {_THE_MAXIMUM}", _NEW_CAUSES)
        told_instead = " ".join(parts)
        shown = found.tail if found.tail is not None and not found.tail.one_event else None
        if shown is None:
            return Text(f"{_BESIDE_NOISE} {told_instead}", "bold accent")
    if relation == "hunted" and shown.factor >= MOVED:
        told = f"{_BESIDE_NOISE}: {describe_effect(shown)}{_doubt(shown)}."
        if (other := another_task(found)) is None:
            return Text(told, "bold accent")
        return Text.assemble((f"{_in_time(other)}. {_NOT_THE_NOISE}", "bold bad"), (f" {_AFRESH} {told}", "text"))
    if told_instead:
        told = describe_effect(shown) if shown.sort == "latency" else capital(describe_effect(shown))
        return Text.assemble((f"{_BESIDE_NOISE} {told_instead}", "bold accent"), f" {told}.")
    return Text.assemble(
        (f"{_BESIDE_NOISE} {_none_moved(found)}", "bold accent"),
        f" by a factor of 2: {describe_effect(shown)}.{f' {left_out}' if left_out else ''}",
    )


def not_comparable(reason: KnownReason, key: str = "", relation: Relation = "alike", *, quiet: bool = False) -> Text:
    """Return the result of two runs that differ for a known reason. ``key``: the key that makes the run again; "" for
    none. ``quiet``: True if another line of the result is the emphasised one."""
    loud = "" if quiet else "bold "
    told = (f"{reason.told}.", f"{loud}text")
    return Text.assemble(
        (UNCOMPARED[relation == "changed"], f"{loud}bad"), told, (f" {what_to_do(reason, key)}", "text")
    )


def _largest_difference(shown: Effect, found: Effects) -> str:
    """Return a sentence on the largest difference of two runs. If it is that of a single event, the sentence also tells
    the largest one of the other figures."""
    told = f"The largest difference is {apart(shown)}"
    other = next((one for one in found.differences if not one.one_event), None)
    if not shown.one_event or other is None or other.factor < ALIKE:
        return f"{told}."
    return f"{told}{_doubt(shown)}, then {apart(other)}."


def _none_moved(found: Effects) -> str:
    """Return the words for two runs of which no figure moved, without a claim on figures that are not compared."""
    return "no figure that can be compared moved" if found.left_out else "no figure moved"


def unsteady(runs: Sequence[KnownRun]) -> str:
    """Return in words the settings that this tool applied or restored during the first or the second run."""
    both = zip(RUN_NAMES, runs, strict=True)
    notes = [(which, seen.run.notes[UNSTEADY]) for which, seen in both if UNSTEADY in seen.run.notes]
    return "; ".join(clean(note.replace(MEANWHILE, f"during the {which} run", 1), PATH) for which, note in notes)


def run_unsteady(runs: Sequence[KnownRun]) -> int | None:
    """Return the index of the first run during which this tool's settings changed; None if there is none."""
    return next((at for at, seen in enumerate(runs) if UNSTEADY in seen.run.notes), None)


def _treated(causes: Sequence[CauseTime], least: float = LEAST_SHARE) -> CauseTime | None:
    """Add up the causes that the chapter's change is made to reduce, and return the sum as one cause. Return None if
    this sum changed by less than the factor MOVED. Also return None if this sum is less than the share ``least`` of the
    stalled time.
    """
    treated = _moved_causes(causes, least)
    if not treated:
        return None
    ns = sum(one.ns[0] for one in treated), sum(one.ns[1] for one in treated)
    more = f" (and {many(len(treated) - 1, 'smaller one')})" if len(treated) > 1 else ""
    at_most = any(one.at_most[0] for one in treated), any(one.at_most[1] for one in treated)
    return CauseTime(f"{treated[0].label}{more}", ns, at_most, treated=True)


def _moved_causes(causes: Sequence[CauseTime], least: float = LEAST_SHARE) -> list[CauseTime]:
    """Return the causes whose sum is that of :func:`_treated`; [] if it has none. First comes the cause with the most
    time, in the run in which their sum is larger."""
    treated = [one for one in causes if one.treated and one.known]
    most = max((max(one.ns) for one in treated), default=0.0)
    treated = [one for one in treated if max(one.ns) >= LEAST_ROW * most > 0]
    if not treated:
        return []
    ns = [sum(one.ns[run] for one in treated) for run in (0, 1)]
    larger = ns.index(max(ns))
    whole = sum(one.ns[larger] for one in causes)
    if max(ns) < MOVED * min(ns) or max(ns) < least * whole:
        return []
    return sorted(treated, key=lambda one: -one.ns[larger])


_IN_EACH = ("in the first run", "in the second")
"""The words for the two runs in a sentence on a cause, if no cure lies between them."""


def _in_time(cause: CauseTime, which: tuple[str, str] = OF_A_CHANGE) -> str:
    """Return ``Task python took 107 ms of each second before and 25 ms after: 4.3 times less``. ``which``: the words
    for the two runs."""
    return f"{capital(cause.label)} {_took(cause, which)}"


def _took(cause: CauseTime, which: tuple[str, str]) -> str:
    """Return the words for a cause's time in two runs, from ``took`` on. If a cause took no time in one of the runs, or
    nearly as much in both, no factor is given. ``which``: the words for the two runs."""
    (before, after), (first, second), told = cause.ns, which, both_times(cause)
    if after < 1:
        return f"took {told[0]} of each second {first} and none {second}"
    if before < 1:
        return f"took no time {first} and {told[1]} of each second {second}"
    if max(cause.ns) < ALIKE * min(cause.ns):
        return f"took about as much in both runs: {told[0]} of each second {first} and {told[1]} {second}"
    factor = f"{times_told(max(cause.ns) / min(cause.ns))} times {'less' if after < before else 'more'}"
    least = "more than " if any(cause.at_most) else ""
    return f"took {told[0]} of each second {first} and {told[1]} {second}: {least}{factor}"


def _small(causes: Sequence[CauseTime]) -> tuple[str, str] | None:
    """Return two times as texts: of the counted causes, and of all causes together. Counted causes are those whose
    events the chapter's figure counts. Both times are per second, from the run in which the counted causes took more
    time. Return None if no time is known. Also return None if the counted causes took at least LEAST_SHARE of the
    whole time.
    """
    counted = [one for one in causes if one.counted]
    ns = [sum(one.ns[run] for one in counted if not one.at_most[run]) for run in (0, 1)]
    whole = sum(one.ns[ns.index(max(ns))] for one in causes)
    if not counted or not max(ns) or max(ns) >= LEAST_SHARE * whole:
        return None
    return of_a_second(max(ns)), of_a_second(whole)


def named_causes(found: Effects, told: Iterable[str] = ()) -> set[str]:
    """Return the labels of causes that sentences on two runs name: the chapter's cause, another cause or task that took
    the time, and those in ``told``. ``told``: causes that the judgement on the learner's diagnosis names, each perhaps
    with a number of threads in brackets."""
    said = tuple(told)
    labels = {one.label for one in found.causes if any(s == one.label or s.startswith(f"{one.label} (") for s in said)}
    others = (*_moved_causes(found.causes)[:1], of_another_cause(found), another_task(found))
    return labels | {one.label for one in others if one is not None}


def _doubt(effect: Effect) -> str:
    """Return the reason why an effect may be chance, in brackets; "" if there is no such reason."""
    if effect.within_runs:
        return " (may be chance: the blocks of one run differ as much)"
    if effect.by_chance and not effect.few:
        return " (may be chance)"
    if effect.within_equal_runs and not effect.one_event and effect.factor >= MOVED:
        return f" (may be chance: {_EQUAL_RUNS} {times_told(effect.of_equal_runs)} times)"
    return " (one event)" if effect.one_event else " (few stalls, so it may be chance)" if effect.few else ""


def in_doubt(one: Effect, found: Effects, runs: Sequence[KnownRun]) -> bool:
    """Return True if an effect may have another reason than the change. Such reasons are chance, other work on the
    host (``flow.measuring.known_reason.other_work``, ``presenter.runs.disturbances.busier_after``), few messages in a
    run (``presenter.runs.omission``), and a cause that the change is not made to reduce."""
    if any(sent_share(seen) is not None for seen in runs):
        return True
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


def another_task(found: Effects) -> CauseTime | None:
    """Return the cause whose time changed most between two runs of a hunt, if it is a task and not the hidden noise.
    Return None in these cases:

    - The task's time did not at least double or halve.
    - The times of all other causes, added up, changed more.
    - The task took less than LEAST_SHARE of the stalled time: the noise may be one that no trace shows.
    - The task may be the noise: a kernel worker may do the noise's work.
    """
    from jitter_workshop.flow.chapters.hunt import THREADS

    most = max(found.causes, key=lambda one: abs(one.ns[1] - one.ns[0]), default=None)
    if most is None or not most.known or most.task.startswith(OF_THE_KERNEL):
        return None
    low, high = sorted(most.ns)
    small = high < MOVED * low or 2 * (high - low) < sum(abs(one.ns[1] - one.ns[0]) for one in found.causes)
    small = small or high < LEAST_SHARE * sum(one.ns[most.ns.index(high)] for one in found.causes)
    return most if most.task not in ("", THREADS) and high > low and not small else None


def _change(effect: Effect) -> str:
    return f"{effect.name}: {effect.values[0]} → {effect.values[1]}"


def _none(effect: Effect) -> str:
    """Return in words which of two runs had no event; "" if both had events. The words replace a factor, which cannot
    be computed from a count of 0."""
    if not effect.at_least:
        return ""
    return f"none in the {'second' if effect.values[1].split()[0] == '0' else 'first'} run"


def describe_effect(effect: Effect) -> str:
    """Return ``p99.9: 210 µs → 12 µs, 17 times shorter``; only the values if their factor is below ALIKE."""
    if effect.factor < ALIKE:
        return _change(effect)
    told = f"{_change(effect)}, {_none(effect) or f'{times_told(effect.factor)} times {effect.how}'}"
    return f"{told}, though stalls took no {effect.how.replace('fewer', 'less')} time" if effect.against_time else told


def beside_its_line(told: str) -> str:
    """Return an effect's words without its two values, for a chart below the result that tells them: ``p99.9: 17 times
    shorter``. ``told``: the words of :func:`describe_effect` or :func:`apart`. Words without a factor stay as they
    are."""
    name, _, rest = told.partition(": ")
    _, comma, factor = rest.partition(", ")
    return f"{name}: {factor}" if comma else told


def apart(effect: Effect) -> str:
    """Return an effect in words that do not call it a change: ``p99.9: 210 µs → 12 µs, a factor of 17``."""
    if effect.factor < ALIKE:
        return _change(effect)
    factor = f"more than {times_told(MOST_BY_LUCK)}" if effect.factor > MOST_BY_LUCK else times_told(effect.factor)
    return f"{_change(effect)}, {_none(effect) or f'a factor of {factor}'}"
