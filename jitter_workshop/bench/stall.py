"""Make a stall on purpose: stop the whole measuring child once, in the middle of a run.

This also stops the producer. So no message is sent during the stall, and at most one message has a long transit time.
The stall shows only if each message is compared with the time at which it was due (coordinated omission; Gil Tene, "How
NOT to Measure Latency"). The parent makes the stall, because a stopped child cannot wake itself.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from jitter_workshop.bench.launch import Child
from jitter_workshop.bench.protocol import BlockDone
from jitter_workshop.errors import MeasureError
from jitter_workshop.model.noise import Burst, Bursts, pack_bursts, unpack_bursts
from jitter_workshop.model.spec import RunSpec

STALL_NS = 100_000_000
SHORTEST_BLOCK_NS = 2 * STALL_NS
"""The least length of a block in which a stall is made. A shorter block would end together with its stall, and messages
that were due during the stall would never be sent."""

_TRIES = 10
_CATCH_UP_NS = STALL_NS // 4
"""The time that a timed block must have left after the stall, so that messages that were due meanwhile are still sent
in it."""
_LEAD_NS = 60_000_000
"""An estimate of the time from the message "go" to a block's first recorded message. It is used until a block has shown
the exact time."""


class OrderedStall:
    """Make the one stall of a run, during its middle block.

    If the stall does not fall into this block, the block is measured again.
    """

    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec
        self._into_block_ns = max(0, (spec.block_length_ns - STALL_NS) // 2)
        self._lead_ns = _LEAD_NS + min(1_000 * spec.interval_ns, 1_000_000_000)
        self._index = spec.blocks // 2
        self._stopped_ns: tuple[int, int] | None = None
        self._missed = 0
        self.done = False

    def due(self, index: int) -> bool:
        """Return True if the stall must happen in the block ``index``."""
        return not self.done and index == self._index

    def begins_after_s(self) -> float:
        """Return the seconds from the message "go" to the start of the stall."""
        return (self._lead_ns + self._into_block_ns) / 1e9

    def happen(self, child: Child) -> None:
        """Stop the child for the length of the stall. The length counts from the moment at which all threads of the
        child have stopped."""
        child.stop()
        began_ns = time.monotonic_ns()
        try:
            time.sleep(STALL_NS / 1e9)
        finally:
            self._stopped_ns = began_ns, time.monotonic_ns()
            child.resume()

    def learn(self, sent_ns: int, block: BlockDone) -> None:
        """Remember the time from the message "go" to a block's first recorded message.

        ``sent_ns``: the time of "go" (CLOCK_MONOTONIC).
        """
        self._lead_ns = max(0, block.start_ns - sent_ns)

    def hit(self, block: BlockDone) -> bool:
        """Return True if the stall, and the messages that it delayed, are in this block.

        Raise MeasureError if too many blocks have missed the stall.
        """
        stopped, self._stopped_ns = self._stopped_ns, None
        last_ns = block.end_ns
        if self._spec.messages is None:
            # Use the planned end: a block that is stopped late ends with the stall.
            last_ns = min(last_ns, block.start_ns + self._spec.block_ns - _CATCH_UP_NS)
        if stopped is not None and block.start_ns <= stopped[0] and stopped[1] <= last_ns:
            self.done = True
            self._stopped_ns = stopped
            return True
        self._missed += 1
        if self._missed == _TRIES:
            raise MeasureError(
                f"the measuring process could not be stopped in the middle of a block in {_TRIES} tries",
                "measure with longer blocks",
            )
        return False

    def bursts(self, blocks: Sequence[BlockDone]) -> Bursts | None:
        """Return the stall in the form of a noise's log; None if there was no stall."""
        if not self.done or self._stopped_ns is None or self._index >= len(blocks):
            return None
        block = blocks[self._index]
        began_ns, ended_ns = self._stopped_ns
        ticks, ns = block.end_ticks - block.start_ticks, max(1, block.end_ns - block.start_ns)
        start, end = (block.start_ticks + (at - block.start_ns) * ticks // ns for at in self._stopped_ns)
        placement = self._spec.placement
        placed = (placement.accumulator, placement.sampler, placement.producer)
        cpu = next((cpu for cpu in placed if cpu is not None), 0)
        length_ns = ended_ns - began_ns
        records = pack_bursts([Burst(start, end, began_ns, length_ns, length_ns, cpu, 0)])
        return unpack_bursts("stall", "", records, 0)

    def note(self, first_ns: int) -> str:
        """Return the run's note about the stall. ``first_ns``: the start of the run's first block (CLOCK_MONOTONIC)."""
        if not self.done or self._stopped_ns is None:
            return "the run ended before its middle, so the measuring process was not stopped"
        began_ns, ended_ns = self._stopped_ns
        return (
            f"the whole measuring process was stopped on purpose, once, for {(ended_ns - began_ns) / 1e6:.1f} "
            f"ms, {(began_ns - first_ns) / 1e9:.3f} s after the start of the run (block {self._index + 1} of "
            f"{self._spec.blocks})"
        )
