"""A recorder beside a run is told before and after each block, and what fails there ends the run."""

from __future__ import annotations

import os

import pytest

from jitter_workshop.bench import launch, runner
from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.protocol import BlockDone
from jitter_workshop.errors import HostError, MeasureError
from jitter_workshop.model.run import Clock, SilentObserver
from jitter_workshop.model.spec import Placement, RunSpec

pytestmark = pytest.mark.host

SPEC = RunSpec("ring", Placement("none"), blocks=3, block_ns=1_000_000)


class Watching:
    """Keeps what it was told; ``fails``: the word at which it has had enough."""

    def __init__(self, fails: str = "") -> None:
        self.told: list[str] = []
        self.pid = 0
        self.tids: dict[str, int] = {}
        self._fails = fails

    def begin(self, pid: int, tids: dict[str, int], clock: Clock) -> None:
        assert clock.source == "tsc"
        self.pid, self.tids = pid, tids
        self._tell("begin")

    def before_block(self) -> None:
        self._tell("before")

    def after_block(self, block: BlockDone | None) -> None:
        self._tell("spoiled" if block is None else f"after {block.index}")

    def _tell(self, word: str) -> None:
        self.told.append(word)
        if word == self._fails:
            raise HostError("the buffer is gone", "begin again")


def run(recorder: Watching) -> runner.RunResult:
    return runner.measure_spec(
        SPEC,
        SilentObserver(),
        CancelToken(),
        command=launch.command("scripted_worker", "ok"),
        sensor=lambda: (None, None),
        pause_s=0.0,
        recorder=recorder,
    )


def test_a_recorder_is_told_of_each_block_and_of_the_threads() -> None:
    watching = Watching()
    assert run(watching).complete
    assert watching.told == ["begin", *(w for n in range(3) for w in ("before", f"after {n}"))]
    assert watching.tids == {"accumulator": watching.pid}


def test_a_recorder_that_fails_leaves_the_finished_blocks() -> None:
    watching = Watching("after 1")
    result = run(watching)
    assert (len(result.gathered.blocks), result.complete) == (1, False)
    assert result.failure is not None
    assert result.failure.message.endswith("read: the buffer is gone")
    with pytest.raises(ProcessLookupError):
        os.kill(watching.pid, 0)


def test_a_recorder_that_cannot_begin_is_an_error() -> None:
    with pytest.raises(MeasureError, match="the buffer is gone"):
        run(Watching("begin"))
