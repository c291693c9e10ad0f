"""Find the few of many settings that move a figure (docs/verdicts.md, "Which settings matter").

First, pairs of runs choose the settings with the largest effects. The pairs follow a two-level design of Plackett and
Burman (Biometrika 33, 1946), folded over. One run of a pair has about half of the settings on. The other run, made
right before or after it, is the mirror: it has all other settings on. So each pair compares "on" and "off" for every
setting at once.

Any two settings are on in the same run in half of the pairs, and in different runs in the other half. So the effect of
one setting does not change the measured effect of the other. Some effects appear only while two settings are on
together. They do not change the measured effects, either, because of the mirror (Box and Wilson, JRSS B 13, 1951).
Nothing is claimed from these pairs.

Then new pairs prove the chosen settings. In each pair, chance decides for each setting if it is on in the first run or
in the second run. So the sign-flip test of a proof is exact here, too, whatever the other settings do. The effects of
the other settings are subtracted. The test stays exact, because these effects are estimated without knowing in which
runs the tested setting was on.

The choice and the proofs have no run in common. So Bonferroni's correction over the proofs alone keeps the error rate
of the whole screening at 5 %.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from jitter_workshop.model.screening import PROOFS, Ranked, ScreenedPair, Screening, ScreeningResult
from jitter_workshop.model.text import many
from jitter_workshop.model.verdict import ENOUGH_ROUNDS, NO_CHANGE_WITHIN, SIGNIFICANCE, Round, VerdictWord
from jitter_workshop.stats.multiple_comparisons import holm, usual
from jitter_workshop.stats.paired import Pairs, estimate, no_change_p, p_value, ratio_interval
from jitter_workshop.stats.rounds import measure_lines
from jitter_workshop.stats.scale import ratio_text
from jitter_workshop.stats.verdicts import by_how_much, span_told

LEAST_PAIRS = 12
FEW = 8
"""Up to this number of settings, all settings are proven, without pairs that choose among them."""
LEAST_CHOSEN = 4
_SHARE = 5
_SWEEPS = 8
_STEP = 0.2
_FARTHEST = 3.0
"""The largest log ratio by which a pair is adjusted for the effect of another setting: a ratio of 20×."""

Arms = tuple[tuple[int, ...], tuple[int, ...]]
"""The settings that are on in the first run of a pair, and in the second."""


# -- the design --------------------------------------------------------------------------------------------------------


def pairs_needed(settings: int) -> int:
    """Return the number of pairs that are needed to choose among ``settings`` settings. It is p + 1, where p is a
    prime of the form 4n + 3. This p is the smallest such prime that is at least ``settings`` and at least 11. Return 0
    for at most :data:`FEW` settings: then all are proven, and no choice is needed.
    """
    if settings <= FEW:
        return 0
    size = max(settings, LEAST_PAIRS - 1)
    while size % 4 != 3 or any(size % divisor == 0 for divisor in range(3, math.isqrt(size) + 1, 2)):
        size += 1
    return size + 1


def most_chosen(settings: int) -> int:
    """Return the largest number of settings that are proven. If there are at most :data:`FEW` settings, all are
    proven. If there are more, a fifth of them is proven, but at least :data:`LEAST_CHOSEN`.
    """
    return settings if settings <= FEW else max(LEAST_CHOSEN, -(-settings // _SHARE))


def proofs_needed(settings: int) -> int:
    """Return the usual number of pairs that prove the chosen settings. These pairs never take more runs than a separate
    proof of each setting would take."""
    return min(PROOFS, one_by_one(settings) // 2)


def one_by_one(settings: int) -> int:
    """Return the number of runs that separate proofs would take, one proof for each setting."""
    return 2 * ENOUGH_ROUNDS * settings


def draw_pairs(settings: int, seed: int) -> tuple[Arms, ...]:
    """Return the pairs of runs that choose among the settings, in order of time. Return () if all settings are proven
    without a choice.

    Each pair is a row of a design, and each setting is a column. In row i, column c is on if c - i is a quadratic
    residue modulo the prime. This is the design of Paley (Journal of Mathematics and Physics 12, 1933). In the last
    row, no column is on. In one run of a pair, the settings whose columns are on are on. In the other run, all other
    settings are on. Chance decides which column a setting gets, and the order of the rows. Chance also decides, once
    for all pairs, which of a pair's two runs is the first. In half of the pairs, a setting is on in the first run. So a
    difference between first and second runs does not change the measured effect of a setting.
    """
    count = pairs_needed(settings)
    if not count:
        return ()
    chance = random.Random(f"pairs {seed}")
    size = count - 1
    residues = {n * n % size for n in range(size)}
    columns = chance.sample(range(size), settings)
    rows = [[(column - row) % size in residues for column in columns] for row in range(size)] + [[False] * settings]
    chance.shuffle(rows)
    if chance.random() < 0.5:
        rows = [[not on for on in row] for row in rows]
    return tuple(_split(row, range(settings)) for row in rows)


def draw_proofs(chosen: Sequence[int], pairs: int, seed: int) -> tuple[Arms, ...]:
    """Return the pairs of the proofs, in order of time. For each setting and each pair, a coin decides if the setting
    is on in the first run or in the second."""
    chance = random.Random(f"proofs {seed}")
    return tuple(_split([chance.random() < 0.5 for _ in chosen], chosen) for _ in range(pairs))


def _split(row: Sequence[bool], settings: Iterable[int]) -> Arms:
    both = list(zip(settings, row, strict=True))
    return tuple(n for n, on in both if on), tuple(n for n, on in both if not on)


# -- the arithmetic ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Seen:
    """Hold one measure of many pairs of runs. ``base``: the values of the first runs and of the second runs. ``signs``:
    setting → a number for each pair: 1 if the setting is on in the second run, else -1."""

    base: Pairs
    signs: Mapping[int, tuple[int, ...]]

    def of(self, setting: int, others: Mapping[int, float], rates: Mapping[int, float] | None = None) -> Pairs:
        """Return the pairs as (value without ``setting``, value with it).

        ``others``: other setting → the estimated log ratio of its effect, which is subtracted from the pairs.
        ``rates``: other setting → how much its estimate changes if the tested log ratio of ``setting`` grows by 1. None
        means that these estimates do not change.
        """
        x, y, signs = self.base.x, self.base.y, self.signs[setting]

        def of_others(effects: Mapping[int, float]) -> list[float]:
            return [
                sign * math.fsum(self.signs[n][i] * effect for n, effect in effects.items())
                for i, sign in enumerate(signs)
            ]

        shift = of_others(others)
        return Pairs(
            tuple(a if sign > 0 else b for a, b, sign in zip(x, y, signs, strict=True)),
            tuple(b if sign > 0 else a for a, b, sign in zip(x, y, signs, strict=True)),
            self.base.counted,
            self.base.step,
            tuple(shift) if rates or any(shift) else (),
            tuple(1 + one for one in of_others(rates)) if rates else (),
        )

    def fitted(self, settings: Iterable[int], known: Mapping[int, float] | None = None) -> dict[int, float]:
        """Return setting → the estimated log ratio of its effect. The log ratios of all ``settings`` are estimated
        together. ``known``: further setting → its known log ratio, which is subtracted and not estimated again.
        """
        found, known = dict.fromkeys(settings, 0.0), dict(known or {})
        for _ in range(_SWEEPS if len(found) > 1 else len(found)):
            for n in found:
                ratio = estimate(self.of(n, known | {m: effect for m, effect in found.items() if m != n}))
                logged = 0.0 if ratio is None else math.log(ratio) if ratio > 0 else -_FARTHEST
                found[n] = min(max(logged, -_FARTHEST), _FARTHEST)
        return found

    def tested(self, setting: int, settings: Sequence[int]) -> Pairs:
        """Return the pairs for an exact test of ``setting``, without the effects of the other ``settings``. The test
        is exact, because the estimate of these effects does not use in which runs ``setting`` was on.
        """
        return self.of(setting, self.fitted(n for n in settings if n != setting))

    def estimated(self, setting: int, together: Mapping[int, float]) -> Pairs:
        """Return the pairs from which the ratio of ``setting`` and the ratio's interval are computed. ``together``:
        setting → log ratio, all estimated together. For each tested ratio of ``setting``, the log ratios of the other
        settings are adjusted. So if another setting was on in nearly the same runs, the interval is wider.
        """
        own, others = together[setting], {n: effect for n, effect in together.items() if n != setting}
        if not others:
            return self.of(setting, {})
        moved = self.fitted(others, {setting: own + _STEP})
        rates = {n: (moved[n] - effect) / _STEP for n, effect in others.items()}
        return self.of(setting, {n: effect - own * rates[n] for n, effect in others.items()}, rates)


def _seen(pairs: Sequence[ScreenedPair], settings: Iterable[int], measure: str, workload: str) -> _Seen | None:
    """Return one measure of these pairs; None if a pair lacks this measure."""
    found = next((line for line in measure_lines(_as_rounds(pairs), workload) if line.measure == measure), None)
    if found is None or len(found.pairs.x) != len(pairs):
        return None
    return _Seen(found.pairs, {n: tuple(1 if n in one.second.on else -1 for one in pairs) for n in settings})


def _as_rounds(pairs: Sequence[ScreenedPair]) -> list[Round]:
    """Return the pairs in the form of a proof's rounds. The first run of a pair takes the place of the run without the
    change."""
    return [Round("AB", one.first.side, one.second.side) for one in pairs]


def measure_of(pairs: Sequence[ScreenedPair], workload: str) -> tuple[str, str]:
    """Return the id and the name of the measure that a proof of these pairs would report first. The choice does not
    depend on which settings were on. Return ("", "") if there is no measure."""
    shown = measure_lines(_as_rounds(pairs), workload)
    first = shown[usual(shown)] if shown else None
    return (first.measure, first.name) if first is not None else ("", "")


# -- the choice --------------------------------------------------------------------------------------------------------


def choose_settings(
    pairs: Sequence[ScreenedPair], screened: Sequence[int], most: int, measure: str, workload: str
) -> tuple[int, ...]:
    """Return the ``most`` settings with the largest effects on a measure, in ascending order. Effects of other settings
    are not subtracted, because they cancel over all pairs. Return () if a pair lacks the measure."""
    seen = _seen(pairs, screened, measure, workload)
    if seen is None:
        return ()
    sums = {n: abs(math.fsum(seen.of(n, {}).contributions(0.0))) for n in screened}
    return tuple(sorted(sorted(sums, key=lambda n: -sums[n])[:most]))


# -- the result --------------------------------------------------------------------------------------------------------


def screening_result(screening: Screening) -> ScreeningResult | None:
    """Return the result of a screening so far. Return None until all pairs that choose settings are measured. Also
    return None if there is no figure to judge. The result claims an effect only if all pairs that prove the chosen
    settings are measured. There must be at least ten such pairs.
    """
    measure, name = measure_of(screening.pairs or screening.proofs, screening.workload)
    if screening.measure not in ("", measure):
        measure, name = screening.measure, screening.measure
    if len(screening.pairs) < screening.planned_pairs or not measure:
        return None
    claimable = screening.complete and len(screening.proofs) >= ENOUGH_ROUNDS
    proofs = _seen(screening.proofs, screening.chosen, measure, screening.workload)
    shown = dict[int, Pairs]()
    ps = dict[int, float]()
    if proofs is not None:
        together = proofs.fitted(screening.chosen)
        shown = {n: proofs.estimated(n, together) for n in screening.chosen}
        ps = {n: p_value(proofs.tested(n, screening.chosen)) for n in screening.chosen}
    # Bonferroni's share for each, and not Holm's larger ones: with all but one proven, Holm tests the last one at 5 %,
    # and as the tests are exact, just so many screenings would then have a false claim.
    adjusted = {n: min(1.0, len(ps) * p) for n, p in ps.items()}
    words = {n: _claim(shown[n], p) if claimable else "cannot_tell" for n, p in adjusted.items()}
    pairs = _seen(screening.pairs, screening.screened, measure, screening.workload)
    if pairs is not None:
        # Proven effects are taken out of the others' pairs. Effects that are not proven could be luck.
        proven = pairs.fitted(n for n, word in words.items() if word != "cannot_tell")
        shown |= {n: pairs.of(n, proven) for n in screening.screened if n not in shown}
    even = holm([no_change_p(one, NO_CHANGE_WITHIN) for one in shown.values()])
    rows = [
        _ranked(screening.settings[n], measure, shown[n], n in adjusted, adjusted.get(n, 1.0), p_even, claimable)
        for n, p_even in zip(shown, even, strict=True)
    ]
    rows.sort(key=lambda row: (row.verdict not in ("lower", "higher"), -_size(row.ratio)))
    return ScreeningResult(measure, name, tuple(rows), _text(screening, name, rows, claimable))


def _claim(pairs: Pairs, p_adjusted: float) -> VerdictWord:
    low, high = ratio_interval(pairs)
    if p_adjusted < SIGNIFICANCE and high < 1:
        return "lower"
    return "higher" if p_adjusted < SIGNIFICANCE and low > 1 else "cannot_tell"


def _ranked(
    setting: str, measure: str, pairs: Pairs, chosen: bool, p_adjusted: float, p_even: float, claimable: bool
) -> Ranked:
    ratio = estimate(pairs)
    low, high = ratio_interval(pairs)
    band = 1 + NO_CHANGE_WITHIN
    word: VerdictWord = _claim(pairs, p_adjusted) if chosen and claimable else "cannot_tell"
    if word == "cannot_tell" and claimable and p_even < SIGNIFICANCE and low >= 1 / band and high <= band:
        word = "no_change"
    bound = None if math.isinf(high) else high
    span = span_told(low, bound)
    if word in ("lower", "higher"):
        words = f"{by_how_much(measure, word, ratio) if ratio else word} (ratio {span})"
    elif word == "no_change":
        words = f"no change beyond ±{NO_CHANGE_WITHIN * 100:.0f} % (ratio {span})"
    elif chosen:
        words = f"{'chosen, and not shown to matter' if claimable else 'chosen, not proven yet'} (ratio {span})"
    else:
        words = f"not seen (ratio {span})"
    return Ranked(setting, ratio, low, bound, chosen, p_adjusted if chosen else 1.0, word, words)


def _text(screening: Screening, name: str, rows: Sequence[Ranked], claimable: bool) -> str:
    runs = many(screening.runs, "run")
    if not claimable:
        few = screening.planned_proofs < ENOUGH_ROUNDS
        done = f"only {len(screening.proofs)} of {many(screening.planned_proofs, 'pair')} of the proofs are measured"
        why = f"a verdict needs {ENOUGH_ROUNDS} pairs" if few else done
        return f"Nothing is claimed yet, because {why}. {_others(rows, runs, 0)}".strip()
    found = [row for row in rows if row.verdict in ("lower", "higher")]
    if found:
        named = ", ".join(f"{row.setting} ({row.words.partition(' (')[0]})" for row in found)
        which = "This setting moves" if len(found) == 1 else f"These {len(found)} settings move"
        said = f"{which} {name} here: {named}."
    else:
        said = f"None of {many(len(rows), 'setting')} is shown to move {name} here."
    return f"{said} {_others([row for row in rows if row not in found], runs, len(found))}".strip()


def _others(rows: Sequence[Ranked], runs: str, found: int) -> str:
    """Return a sentence on the settings without a claimed effect: the range within which each of these effects can
    still lie.
    """
    if not rows:
        return ""
    which = "The other one does not" if len(rows) == 1 else f"The other {len(rows)} do not"
    said = f"{which}, as far as {runs} can see:" if found else f"As far as {runs} can see,"
    if any(row.low <= 0 or row.high is None for row in rows):
        return f"{said} some of these settings could still have an effect of any size."
    low, high = min(row.low for row in rows), max(row.high or 0.0 for row in rows)
    return f"{said} the effect of each lies between {ratio_text(low)} and {ratio_text(high)}."


def _size(ratio: float | None) -> float:
    return abs(math.log(ratio)) if ratio else math.inf if ratio == 0 else 0.0
