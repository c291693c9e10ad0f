"""Describe the end of a screening in words. Reports, the screen, the plain walk and the command line show the same
words."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.model.screening import Ranked, Screening, ScreeningResult
from jitter_workshop.model.text import MESSAGE, clean, many
from jitter_workshop.stats.interval_plot import Axis, axis_of

NOT_YET = "Nothing can be told yet"
NOT_ENDED = "this screening is running, or it was killed"
"""The reason why a screening has no end."""
MEAN_OVER_RUNS = "In some of these runs the other settings are on, in others off."


def screening_sentence(screening: Screening, found: ScreeningResult | None) -> str:
    """Return the result of a screening in words. ``found``: the result; None if the screening has no result yet.
    Without a result, return how many pairs of runs have been measured so far.
    """
    if found is not None:
        return clean(found.text, MESSAGE)
    done = f"{len(screening.pairs)} of {many(screening.planned_pairs, 'pair')} are measured"
    return f"{NOT_YET}: {done}, and the effect of a setting needs all pairs."


def result_word(row: Ranked) -> str:
    """Return the result of a setting in a word or two."""
    words = {"lower": "lower", "higher": "higher", "no_change": "no change"}
    return words.get(row.verdict, "not shown" if row.chosen else "not seen")


def axis_for(ranked: Sequence[Ranked]) -> Axis:
    """Return one axis for the intervals of all settings. The axis is long enough for the intervals of the settings
    with a claimed effect. A longer axis, for the wide interval of another setting, would make these intervals too
    small to read. If no setting has a claimed effect, the axis is long enough for all intervals.
    """
    matter = [row for row in ranked if row.verdict in ("lower", "higher")]
    return max((axis_of([row]) for row in matter), key=lambda one: one.reach, default=axis_of(ranked))
