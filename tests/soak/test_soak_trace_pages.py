"""Recorded pages of the kernel's trace, damaged at random a hundred thousand times: decoded or refused, never more."""

from __future__ import annotations

import random

import pytest

from jitter_workshop.model.trace import Strings, pack_events
from tests import tracedpages


@pytest.mark.parametrize("name", tracedpages.NAMES)
@pytest.mark.parametrize("seed", range(10))
def test_damaged_pages(name: str, seed: int) -> None:
    recorded = tracedpages.recorded(name)
    decoder, whole = recorded.decoder(), [page for pages in recorded.pages.values() for page in pages]
    dice = random.Random(seed)
    refused = 0
    for _ in range(5_000):
        page = bytearray(dice.choice(whole))
        for _ in range(dice.choice((1, 2, 5, 50))):
            # Words of the header and of what begins an entry are hit more often than the middle of a name.
            at = dice.choice((dice.randrange(24), 4 * dice.randrange(len(page) // 4), dice.randrange(len(page))))
            page[at] = dice.choice((0, 1, 0x1D, 0x1E, 0x1F, 0x7F, 0xFF, dice.randrange(256)))
        del page[dice.choice((len(page), len(page), dice.randrange(len(page)))) :]
        try:
            events = list(decoder.events(bytes(page), 1))
        except ValueError:
            refused += 1
            continue
        assert len(pack_events(events, Strings())) <= 36 * 8 * len(page)
    assert 100 < refused < 4_900
