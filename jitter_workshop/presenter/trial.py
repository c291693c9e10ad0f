"""Say what a trial of a chapter found, in one line each."""

from __future__ import annotations

from jitter_workshop.flow.chapters.trying import Tried, TriedRound
from jitter_workshop.model.text import clean


def of_round(one: TriedRound) -> str:
    """Return ``140 → 5.5, 25.5 times less``, and if that is enough."""
    factor = "no ratio" if one.ratio is None else f"a factor of {one.ratio:.3g}"
    return f"{_value(one.before)} → {_value(one.after)}, {factor}: {'shown' if one.shown else 'not shown'}"


def of_trial(tried: Tried) -> str:
    """Return the verdict on the chapter, with the medians of its figure where there were rounds."""
    verdict = "shows its effect" if tried.shown else "does not show its effect here"
    medians = ""
    if tried.rounds:
        medians = f" Medians: {_value(tried.before)} → {_value(tried.after)} {tried.unit}."
    return f"{tried.chapter} {verdict}. {clean(tried.why, 300)}.{medians}".replace("..", ".")


def _value(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.4g}"
