"""Give verdicts on a change from paired rounds (docs/verdicts.md).

The verdict is ``lower`` or ``higher`` if the sign-flip test gives p < 0.05 and the interval does not contain 1. It is
``no_change`` if the whole interval lies within ±10 % and two one-sided tests give p < 0.05. Each p is adjusted by
Holm's method for the number of lines shown. If neither condition holds, the verdict is ``cannot_tell``, with the number
of rounds that would be enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

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
from jitter_workshop.stats.comparison import STALLS_PREFIX, measure_name
from jitter_workshop.stats.drift import drift
from jitter_workshop.stats.exact import poisson_limits
from jitter_workshop.stats.multiple_comparisons import adjust, adjust_no_change, doubt, doubt_of_no_change, usual
from jitter_workshop.stats.paired import Pairs, estimate, log_ratio_and_spread, no_change_p, p_value, ratio_interval
from jitter_workshop.stats.rounds import MeasureLine, measure_lines
from jitter_workshop.stats.sample_size import MANY_ROUNDS, rounds_needed
from jitter_workshop.stats.scale import difference_told, nice_ns, nice_number, ratio_text

_WHOLE = 2.0
"""The least factor of a change that is shown as a factor (``scale.difference_told``)."""
_NAMED = 2
"""The largest number of lines with the opposite verdict that a headline names."""
_SMALL = f", proven to be less than ±{NO_CHANGE_WITHIN * 100:.0f} %"


@dataclass(frozen=True, slots=True)
class SoFar:
    """Hold one measure over all rounds so far. ``ratios``: for each round in order of time, the value with the change
    divided by the value without it. A ratio is 0.0 if only the value with the change is 0, and inf if only the value
    without it is 0. It is None if the two values are 0."""

    measure: str
    name: str
    ratios: tuple[float | None, ...]


def judge_change(rounds: Sequence[Round], workload: str = "ring") -> Judgement:
    """Return the judgement of a change from all its rounds. With fewer than ten rounds, the judgement has figures, but
    no verdict. Raise ValueError if there is no round.
    """
    if not rounds:
        raise ValueError("no round was measured")
    shown = measure_lines(rounds, workload)
    ps = [p_value(line.pairs) for line in shown]
    even = adjust_no_change(shown, [no_change_p(line.pairs, NO_CHANGE_WITHIN) for line in shown])
    rows = tuple(
        _verdict(line, p, p_adjusted, p_even, len(rounds), (doubt(shown, i), doubt_of_no_change(shown)))
        for i, (line, p, p_adjusted, p_even) in enumerate(zip(shown, ps, adjust(shown, ps), even, strict=True))
    )
    headline = _headline(rows, usual(shown))
    return Judgement(len(rounds), rows, headline, _drift(shown, headline, rounds), worst_in_words(rounds))


def ratios_so_far(rounds: Sequence[Round], workload: str = "ring") -> SoFar | None:
    """Return each round's ratio of the measure that a judgement would report first. The measure may change with the
    next round, because it depends on the number of stalls. Return None if a round has no value of this measure."""
    shown = measure_lines(rounds, workload)
    if not shown:
        return None
    line = shown[usual(shown)]
    if len(line.pairs.x) != len(rounds):
        return None
    return SoFar(line.measure, line.name, tuple(_ratio(x, y) for x, y in zip(line.pairs.x, line.pairs.y, strict=True)))


def _verdict(
    line: MeasureLine, p: float, p_adjusted: float, p_even: float, rounds: int, to_reach: tuple[float, float]
) -> Verdict:
    ratio = estimate(line.pairs)
    confidence = 1 - SIGNIFICANCE * line.share
    low, high = ratio_interval(line.pairs, confidence) if line.pairs.x else (0.0, math.inf)
    band = 1 + NO_CHANGE_WITHIN
    even = p_even < SIGNIFICANCE and low >= 1 / band and high <= band
    word = _word(line, p_adjusted, low, high, even, rounds)
    needed = _needed(line, rounds, *to_reach) if word == "cannot_tell" and not line.gate else None
    bound = None if math.isinf(high) else high
    words = f"{line.name}: {line_in_words(line, word, ratio, low, bound, rounds, needed, even)}"
    return Verdict(
        *(line.measure, ratio, low, bound, p, p_adjusted, word, needed, words),
        *(line.without, line.with_it, line.unit, confidence),
    )


def _word(line: MeasureLine, p_adjusted: float, low: float, high: float, even: bool, rounds: int) -> VerdictWord:
    if rounds < ENOUGH_ROUNDS or line.gate:
        return "cannot_tell"
    if p_adjusted < SIGNIFICANCE and high < 1:
        return "lower"
    if p_adjusted < SIGNIFICANCE and low > 1:
        return "higher"
    return "no_change" if even else "cannot_tell"


def _needed(line: MeasureLine, rounds: int, p_to_reach: float, p_for_no_change: float) -> int | None:
    seen = log_ratio_and_spread(line.pairs)
    if seen is None:
        return None
    return rounds_needed(*seen, rounds, p_to_reach, line.pairs.coarseness, p_for_no_change)


def _headline(rows: Sequence[Verdict], first: int) -> Headline:
    """Return the headline of a judgement. The headline is about one line.

    Usually this is the line with the index ``first``. If only other lines have a proven change, it is the topmost of
    these. The headline also names proven changes in the other direction.
    """
    if not rows:
        return Headline("", "cannot_tell", "The runs of these rounds have no measure in common.")
    row = next((r for r in (rows[first], *rows) if r.verdict in ("lower", "higher")), rows[first])
    return Headline(row.measure, row.verdict, headline_in_words(row, rows))


def _drift(shown: Sequence[MeasureLine], headline: Headline, rounds: Sequence[Round]) -> Drift:
    line = next((one for one in shown if one.measure == headline.measure), None)
    if line is None:
        line = MeasureLine("", "these rounds", Pairs((), ()), "", None, None, (0.0, 0.0))
    return drift(line, [one.order for one in rounds])


def _ratio(without: float, with_it: float) -> float | None:
    if without > 0:
        return with_it / without
    return math.inf if with_it > 0 else None


def line_in_words(
    line: MeasureLine,
    word: VerdictWord,
    ratio: float | None,
    low: float,
    high: float | None,
    rounds: int,
    needed: int | None,
    even: bool,
) -> str:
    """Return the verdict on a line in words, such as ``57× rarer (45× to 70×)``. The words are shown after the line's
    name. ``even``: True if the ratio is proven to lie within the band of no change. ``needed``: the number of rounds
    that would give a verdict; None if it is too large or unknown."""
    if line.gate:
        return f"cannot tell: {line.gate}"
    if line.counts == (0, 0):
        rare = rarer_than(min(line.seconds))
        return f"cannot tell: no event without the change and no event with it, so in both cases {rare}"
    span = span_told(low, high)
    if word == "no_change":
        return f"no change beyond ±{NO_CHANGE_WITHIN:.0%} ({span})".replace("%", " %")
    if word == "cannot_tell":
        alone = ", too weak with all lines counted" if rounds >= ENOUGH_ROUNDS and _tells_alone(low, high) else ""
        return f"cannot tell ({span}{alone}); {_what_would(rounds, needed, line.pairs.coarseness > 0)}"
    if word == "lower" and ratio and 1 / ratio >= _WHOLE and high:
        # Like the factor before it: how many times rarer or lower, from the least to the most.
        span = f"{ratio_text(1 / high)} to {ratio_text(1 / low)}" if low > 0 else f"{ratio_text(1 / high)} or more"
    return f"{_change(line, word, ratio)} ({span}){_SMALL if even else ''}"


def span_told(low: float, high: float | None) -> str:
    """Return the range of a ratio in words. ``high``: the upper limit; None if the rounds give no upper limit."""
    if high is None:
        return f"{ratio_text(low)} or more" if low > 0 else "every ratio is possible"
    return f"{ratio_text(low)} to {ratio_text(high)}"


def headline_in_words(first: Verdict, rows: Sequence[Verdict]) -> str:
    """Return the words of ``first``, followed by proven changes in the other direction. For example: ``stalls over 100
    µs: 30 % rarer (…); but the median 2× higher (proven)``. The largest change in the other direction comes first.
    """
    other = {"lower": "higher", "higher": "lower"}.get(first.verdict)
    contrary = sorted((row for row in rows if row.verdict == other), key=_size, reverse=True)
    if not contrary:
        return first.words
    named = [short_verdict(row) for row in contrary[:_NAMED]]
    if more := len(contrary) - len(named):
        named.append(f"{more} more {'lines' if more > 1 else 'line'} {other}")
    listed = f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else named[0]
    return f"{first.words}; but {listed} (proven)"


def worst_in_words(rounds: Sequence[Round]) -> str:
    """Return a sentence on the longest stall without the change, the longest one with it, and the measured seconds.
    Return "" for a command, because its stalls are not known."""
    if rounds[0].without.figure is not None:
        return ""
    said = []
    for name, sides in (("without", [r.without for r in rounds]), ("with", [r.with_it for r in rounds])):
        seen = [side.worst_ns for side in sides if side.worst_ns is not None]
        seconds = sum(side.duration_s for side in sides)
        said.append(f"{nice_ns(max(seen)) if seen else 'nothing'} in {seconds:,.0f} s {name} the change")
    return f"Worst seen: {', '.join(said)}. Each is a single event, so no verdict is based on it."


def rarer_than(seconds: float) -> str:
    """Return the 95 % upper limit of a rate in words, if no event was seen in ``seconds``. The limit is 3 / ``seconds``
    (Hanley and Lippman-Hand, JAMA 1983)."""
    return f"rarer than one in {nice_number(seconds / poisson_limits(0)[1])} s"


def _change(line: MeasureLine, word: VerdictWord, ratio: float | None) -> str:
    if line.counts is not None and not all(line.counts):
        without, with_it = (
            f"{count:,} in {seconds:,.0f} s" if count else f"none in {seconds:,.0f} s, {rarer_than(seconds)}"
            for count, seconds in zip(line.counts, line.seconds, strict=True)
        )
        return f"{word}: without the change {without}; with it {with_it}"
    if not ratio:
        return word
    return by_how_much(line.measure, word, ratio)


def by_how_much(measure: str, word: VerdictWord, ratio: float) -> str:
    """Return the size of a change in words: ``3.1× rarer``, ``12 % higher``. ``ratio`` must not be 0."""
    rate = measure.startswith(STALLS_PREFIX)
    how = ("rarer" if rate else "lower") if word == "lower" else "more often" if rate else "higher"
    return difference_told(max(ratio, 1 / ratio), how)


def short_verdict(row: Verdict) -> str:
    """Return the measure and the change of a line in words, without the interval: ``stalls over 1 µs 4.8× more often``.
    The change must be proven."""
    name = "the median" if row.measure == "p50" else measure_name(row.measure)
    if not row.ratio:
        return f"{name} {'only without it' if row.verdict == 'lower' else 'only with it'}"
    return f"{name} {by_how_much(row.measure, row.verdict, row.ratio)}"


def _size(row: Verdict) -> float:
    return abs(math.log(row.ratio)) if row.ratio else math.inf


def _tells_alone(low: float, high: float | None) -> bool:
    """Return True if this interval would give a verdict in a proof of one line."""
    band = 1 + NO_CHANGE_WITHIN
    return low > 1 or (high is not None and (high < 1 or (low >= 1 / band and high <= band)))


def _what_would(rounds: int, needed: int | None, coarse: bool) -> str:
    if rounds < ENOUGH_ROUNDS:
        return f"only {rounds} of the {ENOUGH_ROUNDS} rounds that a verdict needs"
    if needed is not None:
        return f"with this spread, about {needed:,} rounds would tell"
    clock = " or a finer clock" if coarse else ""
    return f"with this spread, it takes more than {MANY_ROUNDS:,} rounds{clock}"
