"""Put a verdict into words: the measure, its change or possible change, and the rounds that would tell."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jitter_workshop.model.verdict import ENOUGH_ROUNDS, NO_CHANGE_WITHIN, Round, Verdict, VerdictWord
from jitter_workshop.stats.comparison import STALLS_PREFIX
from jitter_workshop.stats.measures import Line
from jitter_workshop.stats.measurewords import measure_name
from jitter_workshop.stats.poisson import limits
from jitter_workshop.stats.sample_size import MANY_ROUNDS
from jitter_workshop.stats.scale import nice_ns, times

_WHOLE = 1.95
"""From this factor on a change is given as a factor, below it in percent."""
_NAMED = 2
"""The number of lines that a headline names if they contradict it."""
_SMALL = f", proven and less than ±{NO_CHANGE_WITHIN * 100:.0f} %"


def line_in_words(
    line: Line,
    word: VerdictWord,
    ratio: float | None,
    low: float,
    high: float | None,
    rounds: int,
    needed: int | None,
    even: bool,
) -> str:
    """Return one sentence without its full stop, to follow the line's name: ``57× rarer (1/70 to 1/45)``. ``even``: it
    is shown, beside all other lines, that the ratio lies within the band of no change."""
    if line.gate:
        return f"cannot tell: {line.gate}"
    if line.counts == (0, 0):
        return f"cannot tell: none on either side, so {rarer_than(min(line.seconds))} on each"
    span = f"{times(low)} to {times(high) if high is not None else 'any ratio'}"
    if word == "no_change":
        return f"no change beyond ±{NO_CHANGE_WITHIN:.0%} ({span})".replace("%", " %")
    if word == "cannot_tell":
        alone = ", too weak beside the other lines" if rounds >= ENOUGH_ROUNDS and _tells_alone(low, high) else ""
        return f"cannot tell ({span}{alone}); {_what_would(rounds, needed, line.pairs.coarseness > 0)}"
    return f"{_change(line, word, ratio)} ({span}){_SMALL if even else ''}"


def headline_in_words(first: Verdict, rows: Sequence[Verdict]) -> str:
    """Return the words of ``first``, followed by other rows proven in the other direction, the largest change first:
    ``stalls over 100 µs: 30 % rarer (…); but the median 2.0× higher (proven)``."""
    other = {"lower": "higher", "higher": "lower"}.get(first.verdict)
    contrary = sorted((row for row in rows if row.verdict == other), key=_size, reverse=True)
    if not contrary:
        return first.words
    named = [_short(row) for row in contrary[:_NAMED]]
    if more := len(contrary) - len(named):
        named.append(f"{more} more {'lines' if more > 1 else 'line'} {other}")
    listed = f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else named[0]
    return f"{first.words}; but {listed} (proven)"


def worst_in_words(rounds: Sequence[Round]) -> str:
    """Return the longest on each side, as one event in so much time."""
    said = []
    for name, sides in (("without", [r.without for r in rounds]), ("with", [r.with_it for r in rounds])):
        seen = [side.worst_ns for side in sides if side.worst_ns is not None]
        seconds = sum(side.duration_s for side in sides)
        said.append(f"{nice_ns(max(seen)) if seen else 'nothing'} in {seconds:,.0f} s {name}")
    return f"Worst seen: {', '.join(said)}. One event each: no verdict stands on a maximum."


def rarer_than(seconds: float) -> str:
    """Return the meaning of no event in so many seconds, at 95 %: a rate below 3/T (Hanley and Lippman-Hand, JAMA
    1983)."""
    return f"rarer than one in {seconds / limits(0)[1]:,.3g} s"


def _change(line: Line, word: VerdictWord, ratio: float | None) -> str:
    if line.counts is not None and not all(line.counts):
        without, with_it = (
            f"{count:,} in {seconds:,.0f} s" if count else f"none in {seconds:,.0f} s, {rarer_than(seconds)}"
            for count, seconds in zip(line.counts, line.seconds, strict=True)
        )
        return f"{word}: {without}, without; {with_it}, with it"
    if not ratio:
        return word
    return _by_how_much(line.measure, word, ratio)


def _by_how_much(measure: str, word: VerdictWord, ratio: float) -> str:
    rate = measure.startswith(STALLS_PREFIX)
    how = ("rarer" if rate else "lower") if word == "lower" else "more often" if rate else "higher"
    factor = max(ratio, 1 / ratio)
    if factor >= _WHOLE:
        return f"{factor:.0f}× {how}" if factor >= 9.95 else f"{factor:.1f}× {how}"
    return f"{abs(ratio - 1) * 100:.0f} % {how}"


def _short(row: Verdict) -> str:
    """Return a proven row without its interval: ``stalls over 1 µs 4.8× more often``."""
    name = "the median" if row.measure == "p50" else measure_name(row.measure)
    if not row.ratio:
        return f"{name} {'only without it' if row.verdict == 'lower' else 'only with it'}"
    return f"{name} {_by_how_much(row.measure, row.verdict, row.ratio)}"


def _size(row: Verdict) -> float:
    return abs(math.log(row.ratio)) if row.ratio else math.inf


def _tells_alone(low: float, high: float | None) -> bool:
    """Return True if the interval, were its line the only one, would be a verdict."""
    band = 1 + NO_CHANGE_WITHIN
    return low > 1 or (high is not None and (high < 1 or (low >= 1 / band and high <= band)))


def _what_would(rounds: int, needed: int | None, coarse: bool) -> str:
    if rounds < ENOUGH_ROUNDS:
        return f"only {rounds} of the {ENOUGH_ROUNDS} rounds that a verdict needs"
    if needed is not None:
        return f"at this spread about {needed:,} rounds would tell"
    clock = " or a finer clock" if coarse else ""
    return f"at this spread it takes more than {MANY_ROUNDS:,} rounds{clock}"
