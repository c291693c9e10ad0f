"""A watch for hours: stalls that are planted once a minute are all found and named, or lie in time that is told to be
unwatched. ``SOAK_WATCH_S``: how long (7,200 s)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import livetrace, planted

LONG_S = int(os.environ.get("SOAK_WATCH_S", "7200"))
EVERY_S, MS = min(60.0, LONG_S / 6), 5.0
pytestmark = [
    pytest.mark.soak,
    pytest.mark.native,
    pytest.mark.skipif(bool(WHY := livetrace.why_not()), reason=WHY or "it can be had"),
]


def test_planted_stalls_are_found_and_named(tmp_path: Path) -> None:
    cpu = max(os.sched_getaffinity(0))
    words = ("--cpu", str(cpu), "--threshold", "2ms", "--until", f"{LONG_S}s", "--keep", "20", "--json")
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path), "JITTER_WORKSHOP_TURN": f"soak-watch-{os.getpid()}"}
    with planted.thief(cpu, MS, EVERY_S, LONG_S) as thief:
        done = subprocess.run(
            [sys.executable, "-m", "jitter_workshop", "watch", *words],
            stdout=subprocess.PIPE,
            env=environment,
            timeout=LONG_S + 600,
            check=True,
        )
        thief.kill()
        assert thief.stdout is not None
        times = planted.times(thief.stdout.read())
    said = json.loads(done.stdout)
    lost, named = planted.missed(Path(said["folder"]), times)
    assert lost == []
    assert named >= 0.9 * LONG_S / EVERY_S - 2
    unwatched = sum(said["not_watched_ns"].values()) / 1e9
    assert unwatched < 0.1 * said["duration_s"]
    assert said["unwritten"] == 0
