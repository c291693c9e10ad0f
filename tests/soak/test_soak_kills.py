"""Fifty runs, killed at random moments: no orphan is left, and every session can still be read."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

PROGRAM = [sys.executable, "-m", "jitter_workshop"]
ROUNDS = 50
SEED = int(os.environ.get("SOAK_SEED", "20150601"))


def environment(tmp_path: Path) -> dict[str, str]:
    return os.environ | {
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "JITTER_WORKSHOP_TURN": f"soak-{os.getpid()}",
    }


def wait_gone(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that still run after a while."""
    _, alive = psutil.wait_procs(processes, timeout=10)
    return [p for p in alive if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("victim", ["parent", "child"])
def test_kills_at_any_moment_leave_nothing_behind(victim: str, tmp_path: Path) -> None:
    chance = random.Random(f"{SEED}-{victim}")
    kept = 0
    for n in range(ROUNDS // 2):
        run = subprocess.Popen(
            [*PROGRAM, "measure", "--duration", "1", "--placement", "none", "--noise", "spinners", "--wait", "30"],
            env=environment(tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        parent = psutil.Process(run.pid)
        time.sleep(chance.uniform(0.02, 2.5))
        family = parent.children(recursive=True) if parent.is_running() else []
        target = parent if victim == "parent" else chance.choice(family) if family else None
        with contextlib.suppress(psutil.NoSuchProcess):
            if target is not None:
                target.send_signal(signal.SIGKILL)
        code = run.wait(timeout=30)
        assert not wait_gone(family), f"round {n}: orphans"
        if victim == "child":
            assert code in (0, 2), f"round {n}: exit {code}"
        listed = subprocess.run(
            [*PROGRAM, "sessions", "--json"], env=environment(tmp_path), capture_output=True, text=True, check=False
        )
        assert listed.returncode == 0, f"round {n}: {listed.stdout}{listed.stderr}"
        found = json.loads(listed.stdout)
        assert found["damaged"] == []
        kept = max(kept, sum(len(s["runs"]) for s in found["sessions"]))
    assert kept > 0, "no run was ever kept: the kills came too early to say anything"
