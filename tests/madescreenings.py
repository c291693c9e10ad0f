"""Screenings of simulated hosts: the design, the choice and the verdicts are real, and so is the noise. The runs are
those of this project's own recordings (tests/calibration), in their order of time. A setting that is on takes each of
their stalls away with the chance that its effect says, so counts stay counts."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from jitter_workshop.model.run import StallRate
from jitter_workshop.model.screening import FORMAT_VERSION, PROOFS, ScreenedPair, ScreenedRun, Screening
from jitter_workshop.model.verdict import Side
from jitter_workshop.stats import screening
from tests.calibration import records
from tests.calibration.judging import NULL
from tests.calibration.plan import NullPlan

SETTINGS = 19
ACTIVE = 3
RUN_MS = 1_000


@cache
def recorded() -> tuple[Side, ...]:
    """Return the recorded ring runs of one second in which nothing was changed, in order of time."""
    found = records.read(NULL)
    assert isinstance(found.plan, NullPlan)
    ring = [slot.number for slot in found.plan.slots() if slot.workload == "ring"]
    return tuple(found.runs[number].sides[RUN_MS] for number in sorted(ring, key=lambda n: found.runs[n].at_ms))


@cache
def longer(seconds: int) -> tuple[Side, ...]:
    """Return recorded runs of so many seconds, each of so many runs that follow each other."""
    runs = recorded()
    return tuple(_joined(runs[first : first + seconds]) for first in range(0, len(runs) - seconds + 1, seconds))


def _joined(parts: Sequence[Side]) -> Side:
    length_s = sum(side.duration_s for side in parts)
    rates = []
    for each in zip(*(side.stalls for side in parts), strict=True):
        count = sum(rate.count for rate in each)
        stolen = sum(r.stolen_ns_per_second * side.duration_s for r, side in zip(each, parts, strict=True))
        rates.append(StallRate(each[0].threshold_ns, count, count / length_s, stolen / length_s))
    return _side(parts[0], rates, length_s)


def _side(like: Side, rates: Sequence[StallRate], length_s: float) -> Side:
    stolen = next((r.stolen_ns_per_second for r in rates if r.threshold_ns == like.threshold_ns), 0.0)
    return Side("", length_s, like.threshold_ns, tuple(rates), stolen, {}, {}, None, like.resolution_ns)


def thinned(side: Side, share: float, chance: random.Random) -> Side:
    """Return a run in which each stall stayed with this chance."""
    if share >= 1:
        return side
    kept: dict[int, int] = {}
    above = above_kept = 0
    for rate in sorted(side.stalls, key=lambda one: -one.threshold_ns):
        above_kept += sum(chance.random() < share for _ in range(rate.count - above))
        above = rate.count
        kept[rate.threshold_ns] = above_kept
    rates = [
        StallRate(
            r.threshold_ns,
            kept[r.threshold_ns],
            kept[r.threshold_ns] / side.duration_s,
            r.stolen_ns_per_second * kept[r.threshold_ns] / r.count if r.count else 0.0,
        )
        for r in side.stalls
    ]
    return _side(side, rates, side.duration_s)


class SimulatedHost:
    """Make runs one after the other. ``effects``: setting → the figure with it ÷ without it. ``both``: two settings
    that do ``by`` only together."""

    def __init__(
        self,
        seed: int,
        effects: Mapping[int, float],
        seconds: int = 5,
        both: tuple[int, int] | None = None,
        by: float = 1.0,
    ) -> None:
        self._chance = random.Random(seed)
        self._runs = longer(seconds)
        self._at = self._chance.randrange(len(self._runs))
        self._effects, self._both, self._by = dict(effects), both, by
        self.made = 0

    def run(self, on: Sequence[int]) -> Side:
        share = 1.0
        for setting, ratio in self._effects.items():
            share *= (ratio if setting in on else 1.0) / max(1.0, ratio)
        if self._both is not None and set(self._both) <= set(on):
            share *= self._by
        self.made += 1
        self._at = (self._at + 1) % len(self._runs)
        return thinned(self._runs[self._at], share, self._chance)


def blank(settings: int, seed: int, proofs: int = PROOFS, **fields: Any) -> Screening:
    """Return a screening of so many settings before its first run."""
    made: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "id": "20260101-000000-aaaa",
        "settings": tuple(f"setting-{n}" for n in range(settings)),
        "workload": "ring",
        "preset": "quick",
        "hot_cpus": (1, 2),
        "seed": seed,
        "planned_pairs": screening.pairs_needed(settings),
        "planned_proofs": proofs,
        "most": screening.most_chosen(settings),
        "sittings": ("2026-01-01T00:00:00.000000Z",),
        "ended_at": "2026-01-01T00:20:00.000000Z",
        "changes": (),
        "pairs": (),
        "proofs": (),
        "chosen": (),
        "measure": "",
        "restored": True,
    }
    return Screening(**made | fields)


def screened(host: SimulatedHost, settings: int, seed: int, proofs: int = PROOFS, **fields: Any) -> Screening:
    """Return a whole screening of a host, made in the order in which ``prove --screen`` makes it."""
    made = blank(settings, seed, proofs, **fields)

    def measured(arms: screening.Arms) -> ScreenedPair:
        return ScreenedPair(*(ScreenedRun(on, host.run(on)) for on in arms))

    pairs = tuple(map(measured, screening.draw_pairs(settings, seed)))
    measure = screening.measure_of(pairs, made.workload)[0] if pairs else ""
    chosen = tuple(range(settings))
    if pairs:
        chosen = screening.choose_settings(pairs, made.screened, made.most, measure, made.workload)
    proven = tuple(map(measured, screening.draw_proofs(chosen, proofs, seed)))
    return dataclasses.replace(made, pairs=pairs, proofs=proven, chosen=chosen, measure=measure)
