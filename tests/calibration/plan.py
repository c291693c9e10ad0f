"""Plan the runs: their number, their order, and the comparisons that are made of them.

All of it is fixed before a run is made: no comparison can be chosen for what came out.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from jitter_workshop.model.spec import WorkloadName
from jitter_workshop.model.verdict import ENOUGH_ROUNDS, Order
from jitter_workshop.stats.rounds import draw_orders

Series = Literal["null", "power"]
SEED = 20_261_122
NEAR, FAR = "right after each other", "half the series apart"
APART_S = 1_800.0
"""The sides of a round that counts as far apart."""
TOGETHER_S = 60.0
"""The sides of a round that counts as near: run, child's end, child's start and no long pause between them."""
OFF = "off"
_SPIN_EVERY = 4


@dataclass(frozen=True, slots=True)
class Slot:
    """One run to make. ``unit``: slots that have to be made without a pause between them share one. ``effect``: by how
    much a noise is to raise the host's own rate of stalls, "off" for no noise."""

    number: int
    unit: int
    workload: WorkloadName
    effect: str = OFF


@dataclass(frozen=True, slots=True)
class Pair:
    """A round by the numbers of its slots."""

    order: Order
    without: int
    with_it: int


@dataclass(frozen=True, slots=True)
class Same:
    """A same-against-same comparison of ten rounds."""

    half: str
    workload: WorkloadName
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class NullPlan:
    """``comparisons`` of each half, an even number; each run is in one comparison only.

    Chunk after chunk: ten rounds right after each other, then twenty runs whose partners are made, in the same places,
    half the series later. So both halves see the same hours, and the far ones are equally far, but for what a sitting
    that was interrupted adds.
    """

    comparisons: int = 100
    rounds: int = ENOUGH_ROUNDS

    def __post_init__(self) -> None:
        if self.comparisons < 2 or self.comparisons % 2:
            raise ValueError("each half has an even number of comparisons, two at least")

    @property
    def _chunk(self) -> int:
        return 4 * self.rounds

    def slots(self) -> tuple[Slot, ...]:
        """All runs in order of time."""
        return tuple(self._slots())

    def _slots(self) -> Iterator[Slot]:
        number = 0
        for chunk in range(self.comparisons):
            for within in range(2 * self.rounds):
                yield Slot(number, number - within % 2, _workload(chunk))
                number += 1
            for first in range(2):
                for _ in range(self.rounds):
                    yield Slot(number, number, _workload(self._far(chunk, first)))
                    number += 1

    def _far(self, chunk: int, first: int) -> int:
        """The far comparison that a chunk's first or last single runs belong to."""
        return 2 * (chunk % (self.comparisons // 2)) + first

    def comparisons_planned(self) -> tuple[Same, ...]:
        """Near ones first. The side of a round that is called "with" is drawn as a proof draws it."""
        found = []
        for number in range(self.comparisons):
            begins = number * self._chunk
            orders = draw_orders(self.rounds, SEED + number)
            pairs = tuple(_pair(o, begins + 2 * i, begins + 2 * i + 1) for i, o in enumerate(orders))
            found.append(Same(NEAR, _workload(number), pairs))
        later = self.comparisons // 2 * self._chunk
        for number in range(self.comparisons):
            begins = number // 2 * self._chunk + (2 + number % 2) * self.rounds
            orders = draw_orders(self.rounds, SEED + self.comparisons + number)
            pairs = tuple(_pair(o, begins + i, begins + i + later) for i, o in enumerate(orders))
            found.append(Same(FAR, _workload(number), pairs))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class PowerPlan:
    """A pool of groups: in each, in an order drawn by chance, a run without noise and one with each effect's."""

    groups: int
    effects: tuple[str, ...]
    workload: WorkloadName = "ring"

    def __post_init__(self) -> None:
        if self.groups < 1 or not self.effects or OFF in self.effects or len(set(self.effects)) < len(self.effects):
            raise ValueError("a pool has groups, and effects of different names")

    def slots(self) -> tuple[Slot, ...]:
        """All runs in order of time."""
        chance = random.Random(SEED)
        found: list[Slot] = []
        for _ in range(self.groups):
            each = [OFF, *self.effects]
            chance.shuffle(each)
            unit = len(found)
            found += [Slot(unit + i, unit, self.workload, effect) for i, effect in enumerate(each)]
        return tuple(found)

    def rounds_planned(self, effect: str) -> tuple[Pair, ...]:
        """The rounds of an effect against none, in order of time."""
        by_unit: dict[int, dict[str, int]] = {}
        for slot in self.slots():
            by_unit.setdefault(slot.unit, {})[slot.effect] = slot.number
        return tuple(_sided(group[OFF], group[effect]) for group in by_unit.values())

    def rounds_of_same(self, effect: str) -> tuple[Pair, ...]:
        """Rounds of runs of the same kind, each from two groups that follow each other: a second null."""
        numbers = [slot.number for slot in self.slots() if slot.effect == effect]
        orders = draw_orders(len(numbers) // 2, SEED + 1)
        return tuple(_pair(o, numbers[2 * i], numbers[2 * i + 1]) for i, o in enumerate(orders))


def _workload(comparison: int) -> WorkloadName:
    return "spin" if comparison % _SPIN_EVERY == _SPIN_EVERY - 1 else "ring"


def _pair(order: Order, first: int, second: int) -> Pair:
    return Pair(order, first, second) if order == "AB" else Pair(order, second, first)


def _sided(without: int, with_it: int) -> Pair:
    return Pair("AB" if without < with_it else "BA", without, with_it)
