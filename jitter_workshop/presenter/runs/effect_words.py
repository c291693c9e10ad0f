"""Say in words how one figure differs between two runs, and why chance may explain it."""

from __future__ import annotations

import re

from jitter_workshop.flow.measuring.unchanged import times_apart
from jitter_workshop.model.effect import Effect
from jitter_workshop.stats.effect import ALIKE, MOVED
from jitter_workshop.stats.scale import difference_told, times_told

FEW = "few stalls"
SAME = "about the same"
_TIMES = re.compile(r" times\b")
"""The word for a factor that its sign replaces in a short label."""
_EQUAL_RUNS = "equal runs of this session differ by"


def change(effect: Effect) -> str:
    """Return ``p99.9: 210 µs → 12 µs``."""
    return f"{effect.name}: {effect.values[0]} → {effect.values[1]}"


def none_told(effect: Effect) -> str:
    """Return in words which of two runs had no event; "" if both had events. The words replace a factor, which cannot
    be computed from a count of 0."""
    if not effect.at_least:
        return ""
    return f"none in the {'second' if effect.values[1].split()[0] == '0' else 'first'} run"


def events_told(effect: Effect) -> str:
    """Return the number of events of a chapter's cause in two runs: ``7 → 1 events``. A factor of so few events says
    too much. Return "" if a run counted more events, or if their number is not known."""
    if effect.events is None:
        return ""
    return f"{effect.events[0]} → {effect.events[1]} events"


def describe_effect(effect: Effect) -> str:
    """Return ``p99.9: 210 µs → 12 µs, 17 times shorter``; only the values if their factor is below ALIKE."""
    if effect.factor < ALIKE:
        return change(effect)
    if events := events_told(effect):
        return f"{change(effect)} ({events})"
    told = f"{change(effect)}, {none_told(effect) or difference_told(effect.factor, effect.how, ' times')}"
    return f"{told}, though stalls took no {effect.how.replace('fewer', 'less')} time" if effect.against_time else told


def beside_its_line(told: str) -> str:
    """Return an effect's words without its two values, for a chart below the result that tells them: ``p99.9: 17×
    shorter``, or ``p99.9: 20 % apart``. Words without a factor stay as they are. ``told``: the words of
    :func:`describe_effect` or :func:`apart`."""
    name, _, rest = told.partition(": ")
    _, comma, factor = rest.partition(", ")
    short = _TIMES.sub("×", factor)
    return f"{name}: {short}" if comma else told


def apart(effect: Effect) -> str:
    """Return an effect in words that do not call it a change: ``p99.9: 210 µs → 12 µs, 17× apart``."""
    if effect.factor < ALIKE:
        return change(effect)
    return f"{change(effect)}, {none_told(effect) or f'{times_apart(effect)} apart'}"


def doubt_told(effect: Effect) -> str:
    """Return the reason why an effect may be chance, in brackets; "" if there is no such reason."""
    if effect.within_runs:
        return " (may be chance: the blocks of one run differ as much)"
    if effect.by_chance and not effect.few:
        return " (may be chance)"
    if effect.within_equal_runs and not effect.one_event and effect.factor >= MOVED:
        return f" (may be chance: {_EQUAL_RUNS} {times_told(effect.of_equal_runs)}×)"
    return " (one event)" if effect.one_event else " (few stalls, so it may be chance)" if effect.few else ""


def of_equal_runs(effect: Effect) -> str:
    """Return by how much equal runs of this session differ in the figure of an effect, in words for a cell."""
    return f"equal runs here differed by {times_told(effect.of_equal_runs)}×"


def short_doubt(effect: Effect) -> str:
    """Return the reason why an effect may be chance, in two or three words for a cell; "" if there is no such
    reason."""
    if effect.within_equal_runs and effect.factor >= MOVED and not (effect.one_event or effect.within_runs):
        return of_equal_runs(effect)
    if effect.one_event:
        return "one event"
    return FEW if effect.few else "may be chance" if effect.within_runs or effect.by_chance else ""
