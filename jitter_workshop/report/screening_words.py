"""Describe the end of a screening in words, the same for reports and every surface."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.model.screening import Ranked, Screening, ScreeningResult
from jitter_workshop.model.text import clean, many
from jitter_workshop.stats.interval_plot import Axis, axis_of


def said(screening: Screening, found: ScreeningResult | None) -> str:
    """Return the result in words, or the number of pairs so far if there is no result yet."""
    if found is not None:
        return clean(found.text, 2_000)
    done = f"{len(screening.pairs)} of {many(screening.planned_pairs, 'pair')} are measured"
    return f"Nothing can be told yet: {done}, and the effect of a setting needs all pairs."


def result_word(row: Ranked) -> str:
    """Return the result of a setting in a word or two."""
    words = {"lower": "lower", "higher": "higher", "no_change": "no change"}
    return words.get(row.verdict, "not shown" if row.chosen else "not seen")


def axis_for(ranked: Sequence[Ranked]) -> Axis:
    """Return the axis that the settings share. The settings that matter decide its reach, so that a very wide interval
    of another setting does not shrink theirs."""
    matter = [row for row in ranked if row.verdict in ("lower", "higher")]
    return max((axis_of([row]) for row in matter), key=lambda one: one.reach, default=axis_of(ranked))
