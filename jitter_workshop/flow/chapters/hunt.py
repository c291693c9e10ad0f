"""Hide one noise, which the learner has to name.

Its kind is not stored anywhere before the answer: the child gets its order through a pipe, its threads have the same
name for every kind, and nothing is logged or stored. The child's own words for a refusal are not passed on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from jitter_workshop.bench.noisechild import NoiseChild
from jitter_workshop.bench.noiseorder import NoiseOrder, known, order_for
from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.model.evidence import EvidenceReport
from jitter_workshop.model.noise import NOISES, Noise, is_cause, named
from jitter_workshop.model.session import HuntOutcome
from jitter_workshop.model.spec import Placement

if TYPE_CHECKING:
    import random

THREADS = "thief"
"""The name of a hidden noise's threads."""

LONGEST_S = 1_800

HuntState = Literal["running", "stopped", "over", "answered"]
"""``stopped``: the noise was ended from outside, which is one way to win; ``over``: its time is up; ``answered``:
named, or the learner gave up.
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """Hold the result of an answer. ``sentences``: for a wrong answer, the traces that this kind would have left, and
    nothing on the hidden one. For the right answer, and after giving up, its effect, how to find it, and what helps.
    """

    right: bool
    title: str
    sentences: tuple[str, ...]


def suspects(placement: Placement, allowed: Collection[int]) -> tuple[Noise, ...]:
    """Return the kinds that can be hidden beside runs placed so; ``allowed``: the CPUs that our process may use."""
    return tuple(noise for noise in NOISES if _can_hide(noise.id, placement, allowed))


class Hunt:
    """Hold one hidden noise. Begin it on a thread that lives as long as the hunt (its child dies with that thread), and
    :meth:`close` it, or use it as a context manager.

    ``outcome``: the result that is kept, None until the noise is named or the learner gave up. ``cured`` is set once
    runs show that the learner kept the noise away. ``start`` makes the noise, ``picker`` chooses it, ``now_s`` is a
    clock in seconds. Raises HostError where this host can hide none.
    """

    def __init__(
        self,
        placement: Placement,
        allowed: Collection[int],
        seconds: int = LONGEST_S,
        start: Callable[[NoiseOrder], NoiseChild] = NoiseChild,
        picker: random.Random | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        if not 0 < seconds <= LONGEST_S:
            raise UsageError(f"a hunt lasts from 1 to {LONGEST_S} s")
        self.wrong_answers = 0
        self.outcome: HuntOutcome | None = None
        self.cured = False
        self._ended = False
        self._now_s = now_s
        # Read before the noise begins, so that the noise cannot end by itself before this time.
        self._over_at_s = now_s() + seconds
        self.suspects = suspects(placement, allowed)
        if picker is None:
            import random

            picker = random.SystemRandom()
        self._kind, self._noise = self._begin(placement, allowed, seconds, start, picker)

    @property
    def state(self) -> HuntState:
        if self.outcome is not None:
            return "answered"
        gone = self._noise.gone()
        if gone is None:
            return "running"
        return "over" if self._now_s() >= self._over_at_s else "stopped"

    def answer(self, kind: str) -> Finding:
        """Check an answer; the right one ends the noise. Raises UsageError for a kind that is not a suspect."""
        if kind not in [suspect.id for suspect in self.suspects]:
            named = ", ".join(suspect.id for suspect in self.suspects)
            raise UsageError("that is not one of the suspects", f"name one of {named}")
        if kind == self._kind:
            return self._explained(right=True)
        if self.outcome is None:
            self.wrong_answers += 1
        noise = known(kind)
        return Finding(False, noise.title, (f"This is how to find it: {noise.found_as}",))

    def reveal(self) -> Finding:
        """Name the noise for the learner, and end it."""
        return self._explained(right=False)

    def took(self, report: EvidenceReport) -> float | None:
        """Return the time that the noise took in a traced run, in ns a second; None where no trace can show it. The
        figure does not give the kind away."""
        does = named(known(self._kind).does, THREADS)
        causes = [what.causes[0] for what in does if what.causes[0][0] != "no_event"]
        found = [c.ns_per_second for c in report.causes if any(is_cause(cause, c.kind, c.name) for cause in causes)]
        return sum(found) if causes else None

    def close(self) -> None:
        """End the noise. May be called again."""
        if not self._ended:
            self._ended = True
            self._noise.kill()

    def __enter__(self) -> Hunt:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(
        self,
        placement: Placement,
        allowed: Collection[int],
        seconds: int,
        start: Callable[[NoiseOrder], NoiseChild],
        picker: random.Random,
    ) -> tuple[str, NoiseChild]:
        left = [suspect.id for suspect in self.suspects]
        while left:
            kind = picker.choice(left)
            order = order_for(kind, placement, allowed, seconds, THREADS, seed=1 + picker.randrange(1 << 32))
            try:
                return kind, start(order)
            except HostError:
                # It stays among the suspects: a kind that is missing there would be ruled out.
                left.remove(kind)
        raise HostError("no kind of noise could be started on this host, so none can be hidden")

    def _explained(self, right: bool) -> Finding:
        if self.outcome is None:
            # Ask before the noise is ended here: "stopped" means that the learner ended it.
            stopped = self.state == "stopped"
            self.outcome = HuntOutcome(self._kind, right, stopped, self.wrong_answers, self.cured)
        self.close()
        noise = known(self._kind)
        return Finding(right, noise.title, (noise.what, noise.found_as, noise.treatment))


def _can_hide(kind: str, placement: Placement, allowed: Collection[int]) -> bool:
    noise = known(kind)
    # A noise that needs the measured threads, or is made in their process, belongs to one run and not beside all runs.
    if noise.by != "child" or noise.aimed or (kind == "spinners" and len(allowed) < 2):
        return False
    try:
        order_for(kind, placement, allowed, LONGEST_S)
    except HostError:
        return False
    return True
