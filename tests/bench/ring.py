"""The ring beside a plain ping-pong (one cache line, there and back) that is measured before every block, and beside a
plain hand-off (``handoff.c``: the least that any ring can do), on the same CPUs. Nothing is subtracted: both times have
their readings of the clock in them."""

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


def _hand_off_less(run: dict[str, Any]) -> float:
    """By how many ns the median hand-off of a run is shorter than its median transit: blocks have the transit alone."""
    transit, hand_off = (
        run["histograms"][f"accumulator_{name}"]["percentiles"]["50"] for name in ("transit", "handoff")
    )
    return float(transit - hand_off)


def _hand_off(folder: Path) -> list[tuple[float, float]]:
    """(ping-pong, hand-off) in ticks, several times; empty where it cannot be built."""
    program = folder / "handoff"
    source = Path(__file__).with_name("handoff.c")
    built = subprocess.run(["cc", "-O2", "-pthread", "-o", str(program), str(source)], capture_output=True, check=False)
    if built.returncode:
        return []
    lines = [
        subprocess.run([str(program.resolve())], capture_output=True, text=True, check=True, timeout=60).stdout.split()
        for _ in range(2 * RUNS)
    ]
    return [(float(ping), float(handed)) for ping, handed in lines]


def run(folder: Path) -> list[Figure]:
    measure(folder.resolve())  # the first run of a session also makes its folders
    runs = [measure(folder.resolve()) for _ in range(RUNS)]
    blocks = [
        {"p50": b["p50"], "ping_pong_ns": b["ping_pong_ns"], "hand_off": _hand_off_less(r)}
        for r in runs
        for b in r["blocks"]
        if b["ping_pong_ns"] is not None and b["p50"] is not None
    ]
    hand_offs = _hand_off(folder)
    keep(folder, "ring", {"blocks": blocks, "hand_offs_ticks": hand_offs})
    figures = []
    for name, low, high in (("all blocks", 0, 1e9), ("lines under 100 ns", 0, 100), ("lines over 100 ns", 100, 1e9)):
        some = [b for b in blocks if low <= b["ping_pong_ns"] < high]
        for what, less, goal in (("transit", 0, 1.3), ("hand-off", 1, 1.1)):
            ratios = [(b["p50"] - less * b["hand_off"]) / b["ping_pong_ns"] for b in some]
            if ratios:
                title = f"{what} p50 ÷ ping-pong, {name}"
                figures.append(Figure(title, statistics.median(ratios), "×", goal, spread(ratios)))
    if hand_offs:
        bare = [handed / ping for ping, handed in hand_offs]
        figures.append(Figure("plain hand-off ÷ plain ping-pong", statistics.median(bare), "×", None, spread(bare)))
    switches = [b["parent_switches"] for r in runs for b in r["blocks"] if b["parent_switches"] is not None]
    how = f"n = {len(switches)} blocks"
    figures.append(Figure("parent's context switches in a block, headless, worst", max(switches), "", 0, how))
    return figures
