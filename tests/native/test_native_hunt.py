"""The hunt with a real child: what /proc tells of it, and that it ends however the hunt does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop.bench import launch
from jitter_workshop.bench.noisechild import NoiseChild
from jitter_workshop.bench.noiseorder import NoiseOrder
from jitter_workshop.flow.chapters.hunt import Hunt
from jitter_workshop.model.noise import NOISE_KINDS
from jitter_workshop.model.spec import Placement

pytestmark = pytest.mark.native

PATIENCE_S = 60.0
PLACEMENT = Placement("none")


def ends(descriptor: int) -> bool:
    return bool(launch.select.select([descriptor], [], [], PATIENCE_S)[0])


@pytest.fixture
def hunt() -> tuple[Callable[[], Hunt], list[NoiseChild]]:
    made: list[NoiseChild] = []

    def start(order: NoiseOrder) -> NoiseChild:
        made.append(NoiseChild(order))
        return made[-1]

    return lambda: Hunt(PLACEMENT, os.sched_getaffinity(0), start=start), made


def test_a_process_listing_tells_that_there_is_a_thief_and_not_which(
    hunt: tuple[Callable[[], Hunt], list[NoiseChild]],
) -> None:
    begin, made = hunt
    with begin() as one:
        proc = Path(f"/proc/{made[0].pid}")
        seen = [(proc / name).read_text() for name in ("cmdline", "environ", "comm")]
        names = [(task / "comm").read_text().strip() for task in (proc / "task").iterdir()]
        assert "thief" in names
        assert not [kind for kind in NOISE_KINDS for text in (*seen, *names) if kind in text]
        assert one.state == "running"
        given = one.reveal()
        assert (given.right, one.state) == (False, "answered")
        assert not proc.exists()


def test_the_learner_may_kill_it(hunt: tuple[Callable[[], Hunt], list[NoiseChild]]) -> None:
    begin, made = hunt
    with begin() as one:
        child = os.pidfd_open(made[0].pid)
        os.kill(made[0].pid, signal.SIGTERM)
        assert ends(child)
        os.close(child)
        assert one.state == "stopped"


@pytest.mark.parametrize("named", [False, True])
def test_a_hunt_dies_with_its_workshop(named: bool) -> None:
    workshop = (
        "import os, sys, time\n"
        f"sys.path[:] = {sys.path!r}\n"
        "from jitter_workshop.flow.chapters.hunt import Hunt\n"
        "from jitter_workshop.model.spec import Placement\n"
        "hunt = Hunt(Placement('none'), os.sched_getaffinity(0))\n"
        f"{named} and hunt.answer(hunt._kind)\n"
        "print(hunt._noise.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", workshop], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        child = os.pidfd_open(int(process.stdout.readline()))
        process.send_signal(signal.SIGKILL)
    try:
        assert ends(child)
    finally:
        os.close(child)
