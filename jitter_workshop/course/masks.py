"""Judge a mask of CPUs that a learner wrote, and find the slip by which a wrong one was made."""

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
    """Hold the difference between a learner's mask and the wanted one.

    ``freed``: CPUs whose bit is 0 and should be 1. ``kept``: CPUs whose bit is 1 and should be 0. ``beyond``: CPUs
    whose bit is 1 and that the host does not have. ``places``: for the slip ``shifted``, the number of bits by which
    the zeros are too far left; negative if they are too far right.
    """

    freed: CpuSet
    kept: CpuSet
    beyond: CpuSet
    slip: Slip = "none"
    places: int = 0

    @property
    def right(self) -> bool:
        return not (self.freed or self.kept or self.beyond)


def judge(wanted: Mask, answer: CpuSet) -> MaskJudgement:
    """Return how a mask of CPUs differs from the wanted one, and by which slip. ``answer``: the CPUs that the learner's
    mask names."""
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
    """Return the CPUs of a mask as if its places were counted from the left within each group of ``bits`` bits.
    ``unit``: the bits of a place: 1 if bits are counted, 4 if hexadecimal digits are."""
    found = []
    for cpu in cpus:
        start, place = cpu - cpu % bits, cpu % bits
        found.append(start + bits - unit - place // unit * unit + place % unit)
    return CpuSet.of(found)
