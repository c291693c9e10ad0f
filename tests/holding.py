"""Somebody else who has the host's turn: a process of its own, since that is what a turn is held against."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from jitter_workshop.bench import launch

HOLD = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1])\n"
    "from jitter_workshop.bench.lock import host_turn\n"
    "with host_turn():\n"
    "    print('held', flush=True)\n"
    "    sys.stdin.read()\n"
)


@contextmanager
def turn_held() -> Iterator[subprocess.Popen[str]]:
    """The holder, which has the turn that the environment names until it ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, launch.command("x")[4]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()
