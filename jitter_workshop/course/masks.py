"""Judge a CPU mask that a learner wrote, and find the likely mistake in a wrong mask."""

from __future__ import annotations

from typing import Literal

from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.picture import Mask
from jitter_workshop.model.record import dataclass

Slip = Literal["none", "unchanged", "empty", "inverted", "from the left", "shifted"]
"""The slips by which a mask of CPUs becomes wrong. No bit was taken out, or no bit is left. Only the CPUs to take out
are left. The digits were counted from the left, over the whole mask or in each group. The zeros are too far left or
right."""


@dataclass(frozen=True, slots=True)
class MaskJudgement:
    """Hold the difference between a learner's CPU mask and the right mask.

    ``freed``: CPUs whose bit in the learner's mask is 0 and should be 1. ``kept``: CPUs whose bit in the learner's mask
    is 1 and should be 0. ``beyond``: CPUs in the mask that the host does not have. ``slip``: the likely mistake.
    ``places``: for the slip ``shifted``, the number of bits by which the zeros are too far left; negative if they are
    too far right.
    """

    freed: CpuSet
    kept: CpuSet
    beyond: CpuSet
    slip: Slip = "none"
    places: int = 0

    @property
    def right(self) -> bool:
        return not (self.freed or self.kept or self.beyond)


def judge_mask(wanted: Mask, answer: CpuSet) -> MaskJudgement:
    """Compare a learner's CPU mask with the right mask, and find the likely mistake. ``wanted``: the right mask.
    ``answer``: the CPUs that the learner's mask names."""
    every = CpuSet.of(range(wanted.cpus))
    out = every - answer
    slip, places = _slip(wanted, answer & every, out)
    return MaskJudgement(out - wanted.out, wanted.out - out, answer - every, slip, places)


def _slip(wanted: Mask, answer: CpuSet, out: CpuSet) -> tuple[Slip, int]:
    if out == wanted.out:
        return "none", 0
    if not out:
        return "unchanged", 0
    if not answer:
        return "empty", 0
    if answer == wanted.out:
        return "inverted", 0
    groups = [bits for bits in (wanted.cpus, 32) if wanted.cpus % bits == 0]
    if any(out == _mirrored(wanted.out, bits, unit) for bits in groups for unit in (4, 1) if bits % unit == 0):
        return "from the left", 0
    places = out.cpus[0] - wanted.out.cpus[0] if wanted.out else 0
    if places and out.cpus == tuple(cpu + places for cpu in wanted.out):
        return "shifted", places
    return "none", 0


def _mirrored(cpus: CpuSet, bits: int, unit: int) -> CpuSet:
    """Return the CPUs of a mask whose bits or digits are written in reverse order. The order is reversed within each
    group of ``bits`` bits. ``unit``: 1 if single bits are reversed, 4 if hexadecimal digits are reversed."""
    found = []
    for cpu in cpus:
        start, place = cpu - cpu % bits, cpu % bits
        found.append(start + bits - unit - place // unit * unit + place % unit)
    return CpuSet.of(found)
