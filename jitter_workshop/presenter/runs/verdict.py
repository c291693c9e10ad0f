"""Say in one or two short sentences what a change between two runs did.

The first line of a result: did the change do its work, and is the latency better? The figures are in the table below it
(``presenter.runs.result_table``).
"""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.flow.measuring.known_reason import UNCOMPARED
from jitter_workshop.model.effect import RUN_NAMES, Effect, Effects, KnownReason
from jitter_workshop.model.text import many
from jitter_workshop.presenter.runs.disturbances import busier_after, neither_is_better
from jitter_workshop.presenter.runs.effect_table import OF_A_CHANGE
from jitter_workshop.presenter.runs.effect_words import short_doubt
from jitter_workshop.presenter.runs.main_effect import (
    LatencyVerdict,
    against_the_lead,
    by_the_due_time,
    explained_by,
    few_before_or_after,
    judge_latency,
    of_another_cause,
    told_first,
    two_clocks,
)
from jitter_workshop.presenter.runs.result_table import OWN_NOISE
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.stats.effect import MOVED
from jitter_workshop.stats.figures import DUE_TAIL, KnownRun
from jitter_workshop.stats.scale import nice_ns, times_told

_LEADS = {"better": "Looks better: ", "worse": "Looks worse: ", "differs": "What differs: "}
_ROLES = {"better": "good", "worse": "bad", "not comparable": "bad"}
DID_ITS_WORK = "The change did its work."
_DID_NOT = "The change did not do what the lesson says."
_AS_SAID = "The chapter's figure moved as the lesson says."
_NOT_AS_SAID = "The chapter's figure did not move as the lesson says."
_NOT_KNOWN = "The chapter's figure is not known."
NO_CHANGE = "No clear change in latency."
_NO_CHANGE_LEFT = "No clear change in the figures that can be compared."
_UNDECIDED = "Latency: two runs do not decide it."


def verdict_of_change(found: Effects, runs: Sequence[KnownRun], reason: KnownReason | None, width: int) -> Text:
    """Return the verdict on a change between two runs, all of it emphasised. A sure effect on latency comes first, with
    its size; else the work of the change does. Return an empty text if nothing is known. ``reason``: why the latency of
    the two runs cannot be compared; None if it can. ``width``: the width of a line. The two values of the effect are
    left out if the verdict would need a second line for them: the table has them."""
    work, judged = work_told(found, runs, reason), judge_latency(found, runs)
    if reason is not None:
        judged = "not comparable"
    mixed = judged in ("better", "worse") and against_the_lead(found) is not None
    role = "accent" if mixed else _ROLES.get(judged, "accent")

    def verdict(*, values: bool) -> Text:
        latency = _latency_told(found, runs, judged, reason, values=values)
        parts = [(latency, f"bold {role}"), (work, "bold accent")]
        told = Text()
        for text, style in parts if judged in _LEADS else parts[::-1]:
            if text:
                told.append(f"{' ' if told else ''}{text}", style)
        return told

    whole = verdict(values=True)
    return whole if len(whole) <= width else verdict(values=False)


def work_told(found: Effects, runs: Sequence[KnownRun], reason: KnownReason | None = None) -> str:
    """Return a sentence on the work of a change: did the chapter's figure move as the lesson says? Return "" if the
    chapter has no figure, if the verdict on latency tells it, or if another task may explain it (``reason``)."""
    if found.uncounted:
        return _NOT_KNOWN
    if explained_by(reason, found.shown or found.missed):
        return ""
    by_plan = neither_is_better(runs)
    if found.shown is not None:
        return _AS_SAID if by_plan else DID_ITS_WORK
    if found.missed is not None:
        return _NOT_AS_SAID if by_plan else _DID_NOT
    return ""


def _latency_told(
    found: Effects, runs: Sequence[KnownRun], judged: LatencyVerdict, reason: KnownReason | None, *, values: bool
) -> str:
    """Return a sentence on the latency of two runs. ``judged``: the result of :func:`judge_latency`. ``values``: True
    to tell the two values of a sure effect."""
    first = told_first(found)
    if reason is not None:
        return f"{UNCOMPARED[True]}{reason.told}."
    if judged in ("unclear", "undecided"):
        return _UNDECIDED if judged == "undecided" else _NO_CHANGE_LEFT if found.left_out else NO_CHANGE
    if judged == "differs" and first is not None and by_the_due_time(first) and (clocks := two_clocks(runs)):
        # The two runs differ by plan. The chapter shows how the two clocks of the first run differ.
        transit, due = map(nice_ns, clocks)
        return f"One run, two clocks: p{DUE_TAIL} is {transit} by transit, {due} from the due time."
    if judged in _LEADS and first is not None:
        return f"{_LEADS[judged]}{_size(first, values=values)}.{_but(found) if judged != 'differs' else ''}"
    if not judged.startswith("perhaps") or first is None:
        return ""
    why = why_perhaps(first, found, runs)
    return f"{'Stalls' if found.left_out == 'waits' else 'Latency'}: {judged}{f' ({why})' if why else ''}."


def _size(effect: Effect, *, values: bool) -> str:
    """Return ``p99.9 is 17× shorter, 210 µs → 12 µs``. ``values``: False to leave the two values out."""
    both, verb = f", {' → '.join(effect.values)}" if values else "", "are" if effect.name.startswith("stalls") else "is"
    if effect.at_least:
        return f"{effect.name} {verb} {'gone' if effect.direction == 'better' else 'new'}{both}"
    factor = f"{times_told(effect.factor)}× {effect.how}"
    return f"{factor} {effect.name}{both}" if effect.sort == "stalls" else f"{effect.name} {verb} {factor}{both}"


def _but(found: Effects) -> str:
    """Return a sentence on a sure effect against the one of the verdict, such as `` But p50 is 2 times longer.``; ""
    for none."""
    against = against_the_lead(found)
    if against is None:
        return ""
    return f" But {_size(against, values=False)}."


def why_perhaps(effect: Effect, found: Effects, runs: Sequence[KnownRun]) -> str:
    """Return the one reason for which an effect may not come from the change; "" for none. The first that holds is
    told: chance, few stalls, another cause, other work on the host."""
    if (doubt := short_doubt(effect)) and not (effect.factor < MOVED):
        return doubt
    if few := few_before_or_after(effect, runs):
        number, run = few
        return f"only {many(number, 'stall')} {OF_A_CHANGE[run]}"
    if (cause := of_another_cause(found)) is not None:
        label = cause.label.partition(" (")[0]
        return f"most with {label}" if not cause.named else f"most from {OWN_NOISE if cause.own_load else label}"
    return f"more other work in the {RUN_NAMES[1]} run" if busier_after(found, runs) else ""
