"""Say the result of two runs: a sentence, which is the only emphasised one of a screen, and what belongs to it.

The sentence says in a word if the result is better or worse, so that it can be read without colours.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

from jitter_workshop.flow.chapters.judging import PERCENTILE, rests_on_few
from jitter_workshop.flow.measuring.known_reason import (
    LEAST_SHARE,
    MUCH_WORK,
    OF_THE_KERNEL,
    UNCOMPARED,
    what_to_do,
)
from jitter_workshop.model.effect import RUN_NAMES, CauseTime, Effect, Effects, KnownReason, Uncompared
from jitter_workshop.model.judgement import PairJudgement
from jitter_workshop.model.noise import HIDDEN_THREADS
from jitter_workshop.model.run import HUNTED, MEANWHILE, UNSTEADY
from jitter_workshop.model.spec import KINDS
from jitter_workshop.model.text import PATH, capital, clean
from jitter_workshop.presenter.runs.control_run import control_told
from jitter_workshop.presenter.runs.disturbances import disturbances_of_two, disturbed_pair_told
from jitter_workshop.presenter.runs.effect_table import OF_A_CHANGE, both_times, of_a_second
from jitter_workshop.presenter.runs.effect_words import apart, describe_effect, doubt_told
from jitter_workshop.presenter.runs.longest_stall import said_of_longest
from jitter_workshop.presenter.runs.omission import few_sent, sent_apart
from jitter_workshop.presenter.runs.one_run import lead_of_origin, origin_of
from jitter_workshop.presenter.runs.result_table import added_up, most_of_others, names_told, result_table
from jitter_workshop.presenter.runs.short_stalls import short_stalls_told
from jitter_workshop.presenter.runs.unchanged import notes_unchanged, result_unchanged
from jitter_workshop.presenter.runs.verdict import said_of_other, verdict_of_change
from jitter_workshop.presenter.text.lines import Lines, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.report.cause_words import cause_words
from jitter_workshop.stats.effect import ALIKE, LEAST_EVENTS, MOVED, judged_by, tail_of
from jitter_workshop.stats.figures import FIGURES, Figure, KnownRun
from jitter_workshop.stats.omission import clocks_differ, on_one_clock, sent_share
from jitter_workshop.stats.scale import difference_told, nice_ns

TWO_RUNS = "two runs"
NOT_PROVEN = f"{TWO_RUNS}, no proof"
"""The state of a proof that is not made, and cannot be made here."""
PROOF_BY_KEY = f"{TWO_RUNS}, no proof (p)"
"""The state of a proof that is not made, with the key that makes it."""
RULE = (
    "Only latency and stalls are called better or worse. For this, two runs must differ by a factor of 2 or more, and "
    "by more than chance explains. Two runs of one setup differ, too, mostly by less than 2. A count of a cause, such "
    "as preemptions, is never called better or worse."
)
"""The one rule of ``stats.effect``, for the page that shows the figures."""
_THESE_TWO = "these two runs"
"""The first cell of the table, if a proof judges the change."""
_MOST_LINES = 7
"""The most lines of a short result of a change. A screen of 24 rows then has nine rows for its chart."""
_OF_ORIGIN = 2
"""The lines fewer that a short result of another machine has."""
_BESIDE_NOISE = "Beside the noise"
_THE_MAXIMUM = "the maximum moved by a factor of 2, and it is one event."
_WHOLE_CURVE = "The median moved by more than the change can end, so something else moved the whole curve."
_NEW_CAUSES = "Look which causes (v) are new."
_NO_PERCENTILE = "No percentile"
_LEFT_OUT: dict[Uncompared, str] = {
    "": "",
    "readings": f"{_NO_PERCENTILE} is compared: the two runs read the clock at different rates.",
    "waits": "No latency is compared: transit leaves out the waits for the stopped thread.",
}
"""The sentences on figures that two runs do not let one compare."""
_NOT_THE_NOISE = "This task is not the noise."
_AFRESH = "So measure again before you name the noise."
_NOT_OF_THE_NOISE = "So the runs do not show what the hidden noise did"
_AGAIN = ". Go back and measure again."
_BY_TRANSIT = "Both runs are told by transit: one of them has no latency from when a message was due."
_ONE_RUN = "Both runs are the same run, so nothing can differ."
WAITS = "The verdict follows when the traces of both runs are read."
"""The result of two runs whose traces are kept but not read yet. They can change the verdict."""
_APART = 1.2
"""The least factor by which two runs must differ before their difference is explained. It holds for the number of
stalls, their mean length and the tail."""


@dataclasses.dataclass(frozen=True)
class Result:
    """Hold the lines of a result. ``told``: the result itself. ``caveats``: the lines after it, which a screen must not
    cut. They warn, and tell which tasks took much time. ``uncut``: the number of lines at the start of ``told`` that a
    screen must not cut: a verdict with its table, or a warning. ``notes``: lines that explain the result. A screen may
    show them apart from it, below its figures."""

    told: Lines
    caveats: Lines = dataclasses.field(default_factory=list)
    uncut: int = 0
    notes: Lines = dataclasses.field(default_factory=list)

    @property
    def lines(self) -> Lines:
        """Return all lines, the notes last."""
        return [*self.told, *self.caveats, *self.notes]


def result_of_two_runs(
    judged: PairJudgement,
    runs: Sequence[KnownRun],
    width: int,
    proof: str | Text = "",
    *,
    short: bool = False,
    few: bool = False,
    key: str = "",
) -> Result:
    """Return the result of two runs. For a change between them it has this order:

    - the verdict (``presenter.runs.verdict``), or the verdict of a proof
    - the table with the figures that judge the change (``presenter.runs.result_table``)
    - caveats: what to do if the runs cannot be compared, the warnings of ``presenter.runs.omission`` and
      ``presenter.runs.control_run``, an earlier proof, and the tasks that took at least MUCH_WORK per cent of a CPU
    - notes: doubtful effects, short stalls, what took the longest stall, what a percentile leaves out, smaller tasks

    Any other relation has one sentence. Only the verdict is emphasised. ``proof``: a sentence on the proof of this
    change; "" if the change cannot be proven. If ``proof`` is a ``Text``, it is the verdict of a proof. Then it is the
    verdict, and the table is about these two runs. ``short``: put all tasks into the notes. ``few``: True for a table
    of few rows (``presenter.runs.result_table.few_rows``). ``key``: the key that makes a run that cannot be compared
    again; "" for none.
    """
    found, relation = judged.found, judged.relation
    unknown = found.nearest is None and (found.shown or found.missed) is None and not found.causes
    if unknown and not found.left_out and relation not in ("strayed", "alike"):
        return Result([])
    if runs[0].run.id == runs[1].run.id and runs[0].recorded is None:
        return Result(wrap(Text(_ONE_RUN, "bold accent"), width))
    if relation == "changed":
        return _of_change(judged, runs, width, proof, short=short, few=few, key=key)
    told, uncut, caveats, notes = _unchanged(judged, runs, proof, key)
    wrapped = [wrap(part, width) for part in told]
    return Result(
        [line for part in wrapped for line in part],
        _wrapped(caveats, width),
        sum(map(len, wrapped[:uncut])),
        _wrapped(notes, width),
    )


def _wrapped(parts: Iterable[Text | str], width: int) -> Lines:
    """Return paragraphs as lines, without the empty ones. A ``Text`` keeps its styles."""
    return [line for part in parts if part for line in wrap(part, width, style="text")]


def _of_change(
    judged: PairJudgement,
    runs: Sequence[KnownRun],
    width: int,
    proof: str | Text,
    *,
    short: bool,
    few: bool,
    key: str,
) -> Result:
    """Return the result of two runs with a change between them. The arguments are those of
    :func:`result_of_two_runs`."""
    found, reason = judged.found, judged.reason
    proven = isinstance(proof, Text)
    unproven = isinstance(proof, str) and proof.startswith(TWO_RUNS)
    origin = lead_of_origin(origin_of(runs[0]) or origin_of(runs[1]))
    # A chapter about two clocks tells of one run: nothing was changed that a proof could judge.
    none = "" if judged.clocks is not None else NOT_PROVEN
    head = proof.rstrip(".") if isinstance(proof, str) and unproven else _THESE_TWO if proof else none
    if isinstance(proof, Text):
        told = wrap(proof, width)
    else:
        rows = names_told(judged, runs, few=True) if few else None
        verdict = verdict_of_change(judged, width - len(origin[0]), rows)
        told = wrap(Text.assemble(origin, verdict), width) if verdict else []
    # Curves of another machine also need the lines that say which one.
    most = max(_MOST_LINES - (_OF_ORIGIN if origin[0] else 0) - len(told) - 1, 0) if short else None
    told += result_table(judged, runs, width, head, proven=proven, most=most, few=few)
    # A reason names the task already.
    others = "" if reason is not None else " ".join(disturbances_of_two(runs, MUCH_WORK))
    smaller = "" if reason is not None else " ".join(disturbances_of_two(runs, 0.0))
    other = said_of_other(judged.other)
    disturbed = ""
    if reason is None:
        by_figure = judged.sure or judged.latency.startswith("perhaps")
        disturbed = disturbed_pair_told(runs, judged=by_figure, key=key)
    if disturbed:
        others = smaller = ""
    fewer = few_sent(runs, _counts_told(found), key="" if reason is not None else key)
    left_out = _not_compared(found)
    control = "" if reason is not None else control_told(runs, key)
    caveats: list[Text | str] = [
        "" if reason is None else what_to_do(reason, "changed", key),
        other,
        control,
        disturbed,
        fewer or sent_apart(runs),
        "" if reason is not None or control or fewer else _unknown_told(judged, key),
        proof if isinstance(proof, str) and not unproven else "",
        "" if judged.latency or reason is not None else left_out,
        "" if short or other else others,
    ]
    notes: list[Text | str] = [
        *(_notes(judged, runs) if reason is None else []),
        _of_count(found, runs),
        short_stalls_told(runs),
        _by_transit(runs),
        left_out if judged.latency or reason is not None else "",
        others if short or other else "" if others else smaller,
    ]
    return Result(told, _wrapped(caveats, width), len(told), _wrapped(notes, width))


def _unknown_told(judged: PairJudgement, key: str) -> str:
    """Return what to do about a verdict that a cause which is not known makes doubtful; "" for another verdict, or
    without a key that makes the run again. ``key``: this key, or ""."""
    if judged.unknown_run is None or not key:
        return ""
    return f"Nothing shows what took this time. Measure the {RUN_NAMES[judged.unknown_run]} run again ({key})."


def _by_transit(runs: Sequence[KnownRun]) -> str:
    """Return a sentence if two runs of the ring are told by transit, because one of them has nothing else; else ""."""
    return _BY_TRANSIT if clocks_differ(seen.run for seen in runs) else ""


def _counts_told(found: Effects) -> tuple[str, ...]:
    """Return the title of the chapter's figure if it is told; () if there is none."""
    return tuple(one.name for one in (found.shown, found.missed) if one is not None)


def _notes(judged: PairJudgement, runs: Sequence[KnownRun]) -> list[str]:
    """Return sentences that explain the latency of two runs: what took the longest stall, if few stalls decide the
    figure, doubtful effects against the one that is told first, and why the tail moved against the stalls."""
    found, first = judged.found, judged.first
    notes = [said_of_longest(first, runs)] if first is not None and judged.rests_on_few else []
    if judged.whole_curve:
        notes.append(_WHOLE_CURVE)
    if first is not None and judged.latency in ("better", "perhaps better"):
        notes.append(_longest_stays(found, first))
    in_a_row = {one.name for one in (found.tail, judged.against) if one is not None}
    if found.but is not None and found.but.name not in in_a_row:
        notes.append(f"But {describe_effect(found.but)}{doubt_told(found.but)}.")
    if found.lead is None and (found.shown or found.missed) is not None and not found.causes:
        notes += _left(runs[1])
    notes.append(_why_apart(found, runs))
    return notes


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


def _of_count(found: Effects, runs: Sequence[KnownRun]) -> str:
    """Return a sentence on the time of the causes whose events the chapter's figure counts, if the change acts on none
    that is in the table; "" if these took at least LEAST_SHARE of the whole time, or if no time is known. The time of
    all causes is that of the table, so the threads are added up."""
    figure, causes = found.shown or found.missed, found.causes
    if figure is None or any(one.treated and one.ns[0] >= 1 for one in causes):
        return ""
    counted = [one for one in causes if one.counted]
    ns = [sum(one.ns[run] for one in counted if not one.at_most[run]) for run in (0, 1)]
    whole = sum(one.ns[ns.index(max(ns))] for one in causes)
    if not counted or not max(ns) or max(ns) >= LEAST_SHARE * whole:
        return ""
    took, spent = of_a_second(max(ns)), of_a_second(whole)
    both = ", both threads added up" if added_up(runs) == 2 else ""
    return f"In the trace, '{figure.name}' took only {took} a second; all causes took {spent}{both}."


def _not_compared(found: Effects) -> str:
    """Return the sentence on figures that two runs do not let one compare; "" for none. A lesson may compare one
    percentile all the same, because it says what this percentile means."""
    told = _LEFT_OUT[found.left_out]
    of_lesson = [one for one in (found.lead, found.shown, found.missed) if one is not None]
    if any(PERCENTILE.fullmatch(one.name) for one in of_lesson):
        return told.replace(_NO_PERCENTILE, "No other percentile", 1)
    return told


def _left(seen: KnownRun) -> list[str]:
    """Return a sentence on the cause that took most of a run's stalled time. The cause comes from the run's trace.
    Return [] if no cause took at least half of this time.
    """
    causes = seen.report.causes if seen.report is not None else ()
    most = causes[0] if causes else None
    if most is None or 2 * most.total_ns < sum(cause.total_ns for cause in causes):
        return []
    return [f"The largest remaining cause in the trace: {cause_words(most.kind, most.name)}."]


def _unchanged(
    judged: PairJudgement, runs: Sequence[KnownRun], proof: str | Text, key: str
) -> tuple[list[Text], int, list[Text], list[Text]]:
    """Return the paragraphs on two runs without a change between them: the result, how many of its first paragraphs a
    screen must not cut, its caveats, and its notes."""
    found, relation, reason = judged.found, judged.relation, judged.reason
    others = " ".join(disturbances_of_two(runs, MUCH_WORK))
    smaller = "" if others else " ".join(disturbances_of_two(runs, 0.0))
    # The result itself then asks for a run.
    asks = reason is not None or relation == "unsteady"
    warned = few_sent(runs, _counts_told(found), key="" if asks else key)
    few = [warned] if warned and (reason is None or not reason.few) else []
    origin = origin_of(runs[0]) or origin_of(runs[1])
    line = Text.assemble(lead_of_origin(origin), _unjudged(judged, runs, key))
    known = [proof] if isinstance(proof, Text) and relation == "strayed" else []
    if isinstance(proof, str) and proof and relation == "strayed" and not proof.startswith(TWO_RUNS):
        known = [Text(proof, "text")]
    quiet = [Text(others, "text")] if others and (reason is None or not reason.causes) else []
    below = [Text(smaller, "text")] if smaller else []
    if relation == "alike" and reason is None:
        explained = (*notes_unchanged(found, runs), _of_the_longest(found, runs), _why_apart(found, runs))
        explained = (*explained, _by_transit(runs), _LEFT_OUT[found.left_out])
        below = [*(Text(one, "text") for one in explained if one), *below]
    if asks:
        # Only one line is loud: the one that says what to do.
        return [line, *(Text(one.plain, "text") for one in few), *quiet], 1, known, below
    return [*few, line, *quiet], len(few), known, below


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
    both = on_one_clock(*runs)
    if both is None:
        return ""
    runs = before, after = both
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
        longest = [one.run.latency.max if one.run.latency is not None else None for one in runs]
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


def _unjudged(judged: PairJudgement, runs: Sequence[KnownRun], key: str) -> Text:
    """Return the result of two runs that cannot be called better or worse. The reason is that settings changed during a
    run, that a hidden noise ran, that nothing was changed between the runs, or that settings of others changed."""
    found, relation = judged.found, judged.relation
    if relation == "unsteady":
        number = run_unsteady(runs)
        again = f". Measure the {RUN_NAMES[number]} run again ({key})." if key and number is not None else _AGAIN
        return Text.assemble(("Not comparable: ", "bold bad"), (unsteady(runs), "bold text"), (again, "text"))
    if judged.reason is not None:
        return _not_comparable(judged.reason, key)
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
        told = f"{_BESIDE_NOISE} no figure rose by a factor of 2: {describe_effect(judge)}{doubt_told(judge)}."
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
        told = f"{_BESIDE_NOISE}: {describe_effect(shown)}{doubt_told(shown)}."
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


def _not_comparable(reason: KnownReason, key: str = "") -> Text:
    """Return the result of two equal runs that differ for a known reason. ``key``: the key that makes the run again; ""
    for none."""
    told = (f"{reason.told}.", "bold text")
    return Text.assemble((UNCOMPARED[False], "bold bad"), told, (f" {what_to_do(reason, key=key)}", "text"))


def _largest_difference(shown: Effect, found: Effects) -> str:
    """Return a sentence on the largest difference of two runs. If it is that of a single event, the sentence also tells
    the largest one of the other figures."""
    told = f"The largest difference is {apart(shown)}"
    other = next((one for one in found.differences if not one.one_event), None)
    if not shown.one_event or other is None or other.factor < ALIKE:
        return f"{told}."
    return f"{told}{doubt_told(shown)}, then {apart(other)}."


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


def _in_time(cause: CauseTime) -> str:
    """Return ``Task python took 107 ms of each second before and 25 ms after: 4.3 times less``. If the cause took no
    time in one of the runs, no factor is given."""
    (before, after), (first, second), told = cause.ns, OF_A_CHANGE, both_times(cause)
    start = f"{capital(cause.label)} took"
    if after < 1:
        return f"{start} {told[0]} of each second {first} and none {second}"
    if before < 1:
        return f"{start} no time {first} and {told[1]} of each second {second}"
    how = "less" if after < before else "more"
    factor = difference_told(max(cause.ns) / min(cause.ns), how, " times")
    least = "more than " if any(cause.at_most) else ""
    return f"{start} {told[0]} of each second {first} and {told[1]} {second}: {least}{factor}"


def named_causes(judged: PairJudgement, told: Iterable[str] = ()) -> set[str]:
    """Return the labels of causes that a result of two runs names: the largest one on which the change acts, another
    cause or task that took the time, and those in ``told``. ``told``: causes that the judgement on the learner's
    diagnosis names, each perhaps with a number of threads in brackets."""
    found, said = judged.found, tuple(told)
    labels = {one.label for one in found.causes if any(s == one.label or s.startswith(f"{one.label} (") for s in said)}
    treated = next((one for one in found.causes if one.treated and one.known), None)
    others = (treated, judged.cause, most_of_others(found.causes), another_task(found))
    by_reason = judged.reason.causes if judged.reason is not None else ()
    labels |= {*by_reason, *(one.label for one in (judged.other,) if one is not None)}
    return labels | {one.label for one in others if one is not None}


def another_task(found: Effects) -> CauseTime | None:
    """Return the cause whose time changed most between two runs of a hunt, if it is a task and not the hidden noise.
    Return None in these cases:

    - The task's time did not at least double or halve.
    - The times of all other causes, added up, changed more.
    - The task took less than LEAST_SHARE of the stalled time: the noise may be one that no trace shows.
    - The task may be the noise: a kernel worker may do the noise's work.
    """
    most = max(found.causes, key=lambda one: abs(one.ns[1] - one.ns[0]), default=None)
    if most is None or not most.known or most.task.startswith(OF_THE_KERNEL):
        return None
    low, high = sorted(most.ns)
    small = high < MOVED * low or 2 * (high - low) < sum(abs(one.ns[1] - one.ns[0]) for one in found.causes)
    small = small or high < LEAST_SHARE * sum(one.ns[most.ns.index(high)] for one in found.causes)
    return most if most.task not in ("", HIDDEN_THREADS) and high > low and not small else None
