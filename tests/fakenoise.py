"""Hidden noises that make no noise."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.bench.noiseorder import NoiseOrder
from jitter_workshop.errors import HostError, MeasureError


class FakeNoise:
    """A noise that only remembers whether it was ended."""

    def __init__(self) -> None:
        self.death: MeasureError | None = None
        self.ended = 0

    def gone(self) -> MeasureError | None:
        return self.death

    def kill(self) -> None:
        self.ended += 1


class Starts:
    """Makes fake noises; refuses the kinds in ``refused``."""

    def __init__(self, *refused: str) -> None:
        self.orders: list[NoiseOrder] = []
        self.made: list[FakeNoise] = []
        self._refused = refused

    def __call__(self, order: NoiseOrder) -> FakeNoise:
        self.orders.append(order)
        if order.kind in self._refused:
            raise HostError(f"the noise {order.kind} cannot be made here")
        self.made.append(FakeNoise())
        return self.made[-1]


class Picks:
    """Picks the kinds in this order, then whatever comes first."""

    def __init__(self, *kinds: str) -> None:
        self._kinds = list(kinds)

    def choice(self, among: Sequence[str], /) -> str:
        return next((kind for kind in self._kinds if kind in among), among[0])

    def randrange(self, below: int, /) -> int:
        return below - 1
