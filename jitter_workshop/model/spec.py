"""What to measure: workload, pacing, blocks and placement, as the parent hands it to the child."""

from __future__ import annotations

from typing import Literal

from jitter_workshop.model.record import dataclass

WorkloadName = Literal["ring", "spin", "wakeup", "ack"]
Pacing = Literal["spin", "schedule"]
DUTIES = (100, 50, 10)
"""Shares of time in percent that ``spin`` may be busy."""
NOISE_KINDS = ("spinners", "stall")
"""Thieves that a run may have beside it: threads that are busy now and then (``bench.noise``), or one long stop of the
whole measuring process (``bench.stall``)."""
PlacementMode = Literal["auto", "none", "chosen"]
PresetName = Literal["quick", "standard", "long"]

STALL_DECADES_NS = (1_000, 10_000, 100_000, 1_000_000)
"""The stall lengths whose rates every run states (DESIGN §6)."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the measured threads run.

    ``mode`` none: the scheduler is free, CPU fields are None. For ``spin`` the sampler's CPU is ``producer``'s place
    taken by ``sampler``. ``journaller_on`` is False where there is no CPU for it. ``why`` says in a sentence or two how
    the CPUs were chosen and what that costs.
    """

    mode: PlacementMode
    producer: int | None = None
    accumulator: int | None = None
    journaller: int | None = None
    sampler: int | None = None
    journaller_on: bool = False
    hot: tuple[int, ...] = ()
    housekeeping: tuple[int, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Preset:
    """How a run is cut into blocks."""

    name: str
    blocks: int
    block_ns: int


PRESETS: dict[str, Preset] = {
    "quick": Preset("quick", 20, 250_000_000),
    "standard": Preset("standard", 40, 1_000_000_000),
    "long": Preset("long", 3600, 1_000_000_000),
}


@dataclass(frozen=True, slots=True)
class RunSpec:
    """One run, complete and resolved: all that the child needs. Times in ns.

    ``messages``: total over all blocks, or None when blocks are timed by ``block_ns``.
    ``sched_priority``: 0 = SCHED_OTHER, 1..49 = SCHED_FIFO at that priority.
    ``threshold_gives_way``: nobody asked for this threshold, so where a reading of the clock takes too long for it the
    next decade takes its place.
    ``duty``: share of time in percent that ``spin`` samples. ``scratch_dir``: where the ring's record and journal files
    are made (unlinked at once).
    """

    workload: WorkloadName
    placement: Placement
    blocks: int
    block_ns: int
    messages: int | None = None
    pacing: Pacing = "spin"
    interval_ns: int = 10_000
    threshold_ns: int = 1_000
    duty: int = 100
    sched_priority: int = 0
    ring_slots: int = 8_192
    scratch_dir: str = "/tmp"
    noise: str | None = None
    preset: str | None = None
    threshold_gives_way: bool = False
