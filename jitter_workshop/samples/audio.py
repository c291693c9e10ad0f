"""Compute blocks of sound on time, as a sound server does, and print how late the blocks began.

A sound card asks for a block every 5 ms (240 samples at 48,000 a second). This program has no sound card: a timer of
the kernel replaces the card, and nothing is played. Each block must be ready before the next block is due. If a block
is not ready in time, a listener would hear a gap.
"""

from __future__ import annotations

import math
import time

from jitter_workshop.samples.common import report, seconds_asked

RATE, BLOCK = 48_000, 240
PERIOD_NS = 1_000_000_000 * BLOCK // RATE
VOICES = tuple(220.0 * 2 ** (step / 12) for step in (0, 4, 7))
"""The frequencies of the three voices that are mixed, in Hz."""


def sound_block(first: int) -> list[float]:
    """Return the samples of one block of sound. ``first``: the number of the block's first sample, counted from the
    beginning of the sound."""
    turns = [2 * math.pi * voice / RATE for voice in VOICES]
    return [sum(math.sin(turn * (first + number)) for turn in turns) / len(turns) for number in range(BLOCK)]


def main() -> None:
    """Compute one block in each period for some seconds, and print how late the blocks began."""
    blocks = max(round(seconds_asked() * 1e9 / PERIOD_NS), 1)
    late: list[int] = []
    gaps = 0
    loudest = 0.0
    due = time.monotonic_ns() + PERIOD_NS
    for number in range(blocks):
        # As a driver does: wait for the card's next request, by an absolute time, so that lateness does not add up.
        time.sleep(max(due - time.monotonic_ns(), 0) / 1e9)
        late.append(max(time.monotonic_ns() - due, 0))
        loudest = max(loudest, *sound_block(number * BLOCK))
        gaps += time.monotonic_ns() > due + PERIOD_NS
        due += PERIOD_NS
    report("blocks began late", late, f"{gaps} gaps that one would hear, loudest sample {loudest:.2f}")


if __name__ == "__main__":
    main()
