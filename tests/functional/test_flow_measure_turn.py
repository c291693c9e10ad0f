"""A run that loses its turn before its child begins does not measure in another user's turn."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.errors import HostError
from jitter_workshop.flow.measuring.measure import measure_run
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.flow.turns.classhost import HoldsTurn
from jitter_workshop.model.run import Progress, RunStarted


class Notes:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def started(self, _event: RunStarted) -> None:
        self.seen.append("started")

    def block_done(self, _progress: Progress) -> None:
        self.seen.append("block")


@pytest.mark.parametrize("lost", [True, False])
def test_the_turn_is_asked_for_once_more_before_the_first_block(lost: bool) -> None:
    notes = Notes()

    def still() -> None:
        notes.seen.append("asked")
        if lost:
            raise HostError("ada ended your turn")

    @contextlib.contextmanager
    def turn(*_: object) -> Iterator[HoldsTurn]:
        yield still

    request = MeasureRequest(workload="spin", placement="none", duration_s=0.1)
    with contextlib.ExitStack() as stack:
        if lost:
            stack.enter_context(pytest.raises(HostError, match="ada ended your turn"))
        measure_run(request, None, notes, CancelToken(), turn=turn)
    assert notes.seen[:2] == (["asked"] if lost else ["asked", "started"])
    assert ("block" in notes.seen) is not lost
