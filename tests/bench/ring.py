"""The ring beside a plain ping-pong: transit p50 ÷ (one-way line transfer + one clock reading), block by block."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.bench.figures import Figure, keep, spread

PROGRAM = str(Path(sys.executable).with_name("jitter-workshop"))
RUNS = 5


def measure(folder: Path, *arguments: str) -> dict[str, Any]:
    """One run of the real program, its JSON."""
    environment = os.environ | {"XDG_STATE_HOME": str(folder / "state"), "XDG_CONFIG_HOME": str(folder / "state")}
    done = subprocess.run(
        [PROGRAM, "measure", "--json", "--wait", "60", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
        timeout=300,
    )
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def run(folder: Path) -> list[Figure]:
    ratios, bare, switches, raw = [], [], [], []
    for _ in range(RUNS):
        result = measure(folder)
        cost_ns = result["clock"]["cost_ns"]
        for block in result["blocks"]:
            if block["ping_pong_ns"] is None or block["p50"] is None:
                continue
            ratios.append(block["p50"] / (block["ping_pong_ns"] + cost_ns))
            bare.append(block["p50"] / block["ping_pong_ns"])
            switches.append(block["parent_switches"])
            raw.append({"p50": block["p50"], "ping_pong_ns": block["ping_pong_ns"], "cost_ns": cost_ns})
    keep(folder, "ring", raw)
    known = [s for s in switches if s is not None]
    return [
        Figure("transit p50 ÷ (ping-pong one way + one reading)", statistics.median(ratios), "×", 1.3, spread(ratios)),
        Figure("transit p50 ÷ ping-pong one way", statistics.median(bare), "×", None, spread(bare)),
        Figure("parent's context switches in a block, headless, worst", max(known), "", 0, f"n = {len(known)} blocks"),
    ]
