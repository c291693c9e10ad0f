"""Say in one or two short sentences what a change between two runs did.

The first line of a result: did the change do its work, and is the latency better? The judgement is that of
``flow.chapters.judging``; the figures are in the table below it (``presenter.runs.result_table``).
"""

from __future__ import annotations

from collections.abc import Collection

from jitter_workshop.flow.chapters.judging import PERCENTILE
from jitter_workshop.flow.measuring.known_reason import UNCOMPARED
from jitter_workshop.model.effect import RUN_NAMES, Effect
from jitter_workshop.model.judgement import OtherTask, PairJudgement
from jitter_workshop.model.text import capital, many
from jitter_workshop.presenter.runs.effect_table import OF_A_CHANGE, OWN_NOISE, of_a_second
from jitter_workshop.presenter.runs.effect_words import SAME, events_told, none_told, short_doubt
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.stats.effect import ALIKE, MOVED
from jitter_workshop.stats.figures import DUE_TAIL
from jitter_workshop.stats.scale import difference_told, nice_ns

_LEADS = {"better": "Looks better: ", "worse": "Looks worse: ", "differs": "What differs most: "}
_ROLES = {"better": "good", "worse": "bad", "not comparable": "bad"}
AS_EXPECTED = "as expected"
_NOT_AS_EXPECTED = "not as expected"
_NOT_KNOWN = "The chapter's figure is not known."
NO_CHANGE = "No clear change in latency."
_NO_CHANGE_LEFT = "No clear change in the figures that can be compared."
_UNDECIDED = "Latency: two runs do not decide it."


def verdict_of_change(judged: PairJudgement, width: int, rows: Collection[str] | None = None) -> Text:
    """Return the verdict on a change between two runs, all of it emphasised. A sure effect on latency comes first, with
    its size; else the work of the change does. Return an empty text if nothing is known. ``width``: the width of a
    line. The two values of a figure are left out if the verdict would need a second line for them: the table has
    them. ``rows``: the names of the figures in a table of few rows. The verdict then has the two values of each other
    figure, and of no figure in a row. None for a table of all figures."""
    mixed = judged.sure and judged.against is not None
    role = "accent" if mixed else _ROLES.get(judged.latency, "accent")

    def verdict(*, latency: bool, work: bool, against: bool = False) -> Text:
        of_latency = _latency_told(judged, values=latency, against=against)
        of_work = work_told(judged, values=work)
        # One sentence is loud: beside a figure that moved, a pair that cannot be compared is no alarm.
        quiet = of_work and judged.latency == "not comparable"
        parts = [(of_latency, "text" if quiet else f"bold {role}"), (of_work, "bold accent")]
        told = Text()
        for text, style in parts if judged.latency in _LEADS else parts[::-1]:
            if text:
                told.append(f"{' ' if told else ''}{text}", style)
        return told

    if rows is not None:
        of_all = (judged.first, judged.of_chapter, judged.against)
        latency, work, against = (one is not None and one.name not in rows for one in of_all)
        return verdict(latency=latency, work=work, against=against)
    shorter = (verdict(latency=latency, work=work) for latency, work in ((True, True), (True, False)))
    return next((told for told in shorter if len(told) <= width), verdict(latency=False, work=False))


def work_told(judged: PairJudgement, *, values: bool = False) -> str:
    """Return a sentence on the work of a change: how the chapter's figure moved, and whether the lesson says so. Return
    "" if the chapter has no figure, if the verdict on latency tells it, or if another task may explain it. ``values``:
    True to tell the two values of the figure."""
    if judged.work == "not known":
        return _NOT_KNOWN
    if (one := judged.of_chapter) is None:
        return ""
    both = f", {' → '.join(one.values)}" if values and one.events is None else ""
    return f"{capital(one.name)}: {_moved(one)}{both}, {AS_EXPECTED if judged.work == 'done' else _NOT_AS_EXPECTED}."


def effects_told(judged: PairJudgement) -> tuple[Effect, ...]:
    """Return the effects whose factor :func:`verdict_of_change` tells."""
    # Two clocks of one run are told with their two values, and without a factor.
    leads, other = judged.latency in _LEADS and not _by_two_clocks(judged), judged.doubt == "other figure"
    told = (
        judged.of_chapter,
        judged.first if leads else None,
        judged.against if leads and judged.latency != "differs" else None,
        *((judged.first, judged.opposed) if judged.opposed is not None else ()),
        judged.found.tail if other else judged.announced,
    )
    return tuple(one for one in told if one is not None)


def _latency_told(judged: PairJudgement, *, values: bool, against: bool = False) -> str:
    """Return a sentence on the latency of two runs. ``values``: True to tell the two values of a sure effect.
    ``against``: the same for the effect in the other direction."""
    first, latency, left_out = judged.first, judged.latency, judged.found.left_out
    if judged.reason is not None:
        return f"{UNCOMPARED[True]}{judged.reason.told}."
    if judged.opposed is not None and first is not None:
        return f"{NO_CHANGE.rstrip('.')}: {_size(first)}, but {_size(judged.opposed)}."
    if latency in ("unclear", "undecided"):
        return _UNDECIDED if latency == "undecided" else _NO_CHANGE_LEFT if left_out else NO_CHANGE
    if judged.clocks is not None and _by_two_clocks(judged):
        transit, due = map(nice_ns, judged.clocks)
        return f"One run, two clocks: p{DUE_TAIL} is {transit} by transit, {due} from the due time."
    if latency in _LEADS and first is not None:
        none = latency == "differs" or judged.against is None
        but = "" if none or judged.against is None else f" But {_size(judged.against, values=against)}."
        if (announced := judged.announced) is not None:
            # The chart and the guess have this figure, too.
            return f"{_announced_told(announced)}; {_most_told(first, values=values)}.{but}"
        return f"{_LEADS[latency]}{_size(first, values=values)}.{but}"
    if not latency.startswith("perhaps"):
        return ""
    why = _why_perhaps(judged)
    return f"{'Stalls' if left_out == 'waits' else 'Latency'}: {latency}{f' ({why})' if why else ''}."


def _by_two_clocks(judged: PairJudgement) -> bool:
    """Return True if the two runs differ by plan, and the chapter shows how the two clocks of the first one differ."""
    return judged.latency == "differs" and judged.clocks is not None


def _announced_told(effect: Effect) -> str:
    """Return how the announced figure moved, with its doubt if it moved so far that it would else count. The name of a
    percentile, such as p99.9, has no capital."""
    doubt = short_doubt(effect) if effect.factor >= MOVED else ""
    told = f"{_size(effect)}{f' ({doubt})' if doubt else ''}"
    return told if PERCENTILE.match(told) else capital(told)


def _most_told(effect: Effect, *, values: bool) -> str:
    """Return ``p90 differs most: 32,000× longer`` for the effect that is larger than that on the announced figure."""
    both = f", {' → '.join(effect.values)}" if values else ""
    verb = "differ" if effect.name.startswith("stalls") else "differs"
    return f"{effect.name} {verb} most: {_moved(effect)}{both}"


def _size(effect: Effect, *, values: bool = False) -> str:
    """Return ``p99.9 is 17× shorter, 210 µs → 12 µs``. ``values``: False to leave the two values out."""
    both, verb = f", {' → '.join(effect.values)}" if values else "", "are" if effect.name.startswith("stalls") else "is"
    if effect.at_least:
        return f"{effect.name} {verb} {'new' if effect.larger else 'gone'}{both}"
    factor = difference_told(effect.factor, effect.how)
    return f"{factor} {effect.name}{both}" if effect.sort == "stalls" else f"{effect.name} {verb} {factor}{both}"


def _moved(effect: Effect) -> str:
    """Return how a figure moved: ``17× shorter``, ``7 → 1 events``, ``none in the second run``, ``about the same``."""
    if effect.factor < ALIKE:
        return SAME
    return events_told(effect) or none_told(effect) or difference_told(effect.factor, effect.how)


def _why_perhaps(judged: PairJudgement) -> str:
    """Return in words the one reason for which an effect may not come from the change; "" for none."""
    match judged.doubt:
        case "chance":
            return short_doubt(judged.first) if judged.first is not None else ""
        case "few stalls" if judged.few is not None:
            number, run = judged.few
            return f"only {many(number, 'stall')} {OF_A_CHANGE[run]}"
        case "another cause" if (cause := judged.cause) is not None:
            label = cause.label.partition(" (")[0]
            if not cause.named:
                return "most of it with no known cause"
            return f"most of it from {OWN_NOISE if cause.own_load else label}"
        case "other work":
            return f"more other work in the {RUN_NAMES[1]} run"
        case "short cause" if judged.short_ns is not None:
            return f"what the change can end took only {nice_ns(round(judged.short_ns))} a stall on average"
        case "other figure" if (judge := judged.found.tail) is not None:
            return f"judged by {judge.name}: {_moved(judge)}"
    return ""


def said_of_other(other: OtherTask | None) -> str:
    """Return a sentence on the task of others that took much more in one of two runs, and is not enough to explain
    their difference; "" if there is none, or if the verdict tells it."""
    if other is None or other.enough:
        return ""
    more = of_a_second(abs(other.ns[1] - other.ns[0]))
    if other.share is None or other.share < 0:
        why = ", though all stalls together did not take more"
    elif other.share < 0.5:
        why = f": {_percent(other.share)} of the difference in stalls"
    else:
        why = f": only {_percent(other.of_all)} of that run's stalls"
    return f"{capital(other.label)} took {more}/s more in the {RUN_NAMES[other.run]} run{why}."


def _percent(share: float) -> str:
    """Return a share in per cent, without decimals: ``12 %``, or ``less than 1 %``."""
    return "less than 1 %" if share < 0.01 else f"{100 * share:.0f} %"
