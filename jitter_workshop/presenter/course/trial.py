"""Describe what a trial of a chapter found: a line for each round, and one for the verdict."""

from __future__ import annotations

from jitter_workshop.flow.chapters.trying import TrialResult, TrialRound
from jitter_workshop.model.text import SENTENCE, cleaned_sentence
from jitter_workshop.stats.figures import Figure
from jitter_workshop.stats.scale import ratio_text


def of_round(figure: Figure, one: TrialRound) -> str:
    """Return the result of one round, such as ``140 → 5.5, a factor of 25: shown``. The text ends with ``shown`` if
    the round shows the chapter's effect, else with ``not shown``."""
    factor = "no ratio" if one.ratio is None else f"a factor of {ratio_text(one.ratio).removesuffix('×')}"
    values = f"{figure.shown(one.before)} → {figure.shown(one.after)}"
    return f"{values}, {factor}: {'shown' if one.shown else 'not shown'}"


def of_trial(figure: Figure, tried: TrialResult) -> str:
    """Return the verdict on the chapter, with the reason. If there were rounds, add the medians of the chapter's
    figure."""
    verdict = "shows its effect" if tried.shown else "does not show its effect here"
    medians = f" Medians: {figure.change(tried.before, tried.after)}." if tried.rounds else ""
    why = cleaned_sentence(tried.why, SENTENCE)
    return f"{tried.chapter} {verdict}. {why}{medians}"
