"""Give verdicts on a change from paired rounds (DESIGN §6).

``lower`` and ``higher``: the sign-flip test, adjusted by Holm for all lines shown, gives p < 0.05 and the interval lies
on one side. ``no_change``: the whole interval lies within ±10 % and two one-sided tests, adjusted by Holm as well, give
p < 0.05. Else ``cannot_tell``, with the number of rounds that would tell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from jitter_workshop.model.verdict import (
    ENOUGH_ROUNDS,
    NO_CHANGE_WITHIN,
    SIGNIFICANCE,
    Drift,
    Headline,
    Judgement,
    Round,
    Verdict,
    VerdictWord,
)
from jitter_workshop.stats.drift import drift
from jitter_workshop.stats.measures import Line, lines
from jitter_workshop.stats.multiple_comparisons import adjust, adjust_no_change, doubt, doubt_of_no_change, usual
from jitter_workshop.stats.paired import Pairs, estimate, interval, log_ratio_and_spread, no_change_p, p_value
from jitter_workshop.stats.sample_size import rounds_needed
from jitter_workshop.stats.verdictwords import headline_in_words, line_in_words, worst_in_words


def judge(rounds: Sequence[Round], workload: str = "ring") -> Judgement:
    """Return all results that rounds of a workload give on the change between their sides. Fewer than ten give figures
    and no verdict. Raise ValueError for none at all."""
    if not rounds:
        raise ValueError("no round was measured")
    shown = lines(rounds, workload)
    ps = [p_value(line.pairs) for line in shown]
    even = adjust_no_change(shown, [no_change_p(line.pairs, NO_CHANGE_WITHIN) for line in shown])
    rows = tuple(
        _verdict(line, p, p_adjusted, p_even, len(rounds), (doubt(shown, i), doubt_of_no_change(shown)))
        for i, (line, p, p_adjusted, p_even) in enumerate(zip(shown, ps, adjust(shown, ps), even, strict=True))
    )
    headline = _headline(rows, usual(shown))
    return Judgement(len(rounds), rows, headline, _drift(shown, headline, rounds), worst_in_words(rounds))


def _verdict(
    line: Line, p: float, p_adjusted: float, p_even: float, rounds: int, to_reach: tuple[float, float]
) -> Verdict:
    ratio = estimate(line.pairs)
    low, high = interval(line.pairs) if line.pairs.x else (0.0, math.inf)
    band = 1 + NO_CHANGE_WITHIN
    even = p_even < SIGNIFICANCE and low >= 1 / band and high <= band
    word = _word(line, p_adjusted, low, high, even, rounds)
    needed = _needed(line, rounds, *to_reach) if word == "cannot_tell" and not line.gate else None
    bound = None if math.isinf(high) else high
    words = f"{line.name}: {line_in_words(line, word, ratio, low, bound, rounds, needed, even)}"
    return Verdict(line.measure, ratio, low, bound, p, p_adjusted, word, needed, words, line.without, line.with_it)


def _word(line: Line, p_adjusted: float, low: float, high: float, even: bool, rounds: int) -> VerdictWord:
    if rounds < ENOUGH_ROUNDS or line.gate:
        return "cannot_tell"
    if p_adjusted < SIGNIFICANCE and high < 1:
        return "lower"
    if p_adjusted < SIGNIFICANCE and low > 1:
        return "higher"
    return "no_change" if even else "cannot_tell"


def _needed(line: Line, rounds: int, p_to_reach: float, p_for_no_change: float) -> int | None:
    seen = log_ratio_and_spread(line.pairs)
    if seen is None:
        return None
    return rounds_needed(*seen, rounds, p_to_reach, line.pairs.coarseness, p_for_no_change)


def _headline(rows: Sequence[Verdict], first: int) -> Headline:
    """Return the primary line if it claims a change, else the first line that does, else the primary line. Its text
    also names proven changes in the other direction."""
    if not rows:
        return Headline("", "cannot_tell", "These rounds have no measure in common.")
    row = next((r for r in (rows[first], *rows) if r.verdict in ("lower", "higher")), rows[first])
    return Headline(row.measure, row.verdict, headline_in_words(row, rows))


def _drift(shown: Sequence[Line], headline: Headline, rounds: Sequence[Round]) -> Drift:
    line = next((one for one in shown if one.measure == headline.measure), None)
    if line is None:
        line = Line("", "these rounds", Pairs((), ()), "", None, None, (0.0, 0.0))
    return drift(line, [one.order for one in rounds])
