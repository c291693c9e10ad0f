"""Measure what the tool itself adds to a run of the ring: each part with and without it, in pairs in random order.

* stamp arrays: blocks of 20,000 messages beside blocks of 500, whose stamps stay in the first-level cache;
* counters: the kernel's counters read before and after each block, as a run does, beside none;
* the kernel's trace: ``--evidence`` beside a run without it (as root, with tracefs).

The child's main thread sleeps in native code while a block runs: its context switches in a block are counted.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.bench.figures import Figure, keep, middle
from tests.bench.ring import measure

PAIRS = 20
GOALS = {"p50": 1.01, "p99.9": 1.05}
_MESSAGES = "200000"
Turn = Callable[[], dict[str, Any]]


def _script(side: str, cpus: Sequence[int]) -> Turn:
    def turn() -> dict[str, Any]:
        words = [sys.executable, "-m", "tests.bench.shadow_script", side, *map(str, cpus)]
        done = subprocess.run(words, stdout=subprocess.PIPE, check=True, timeout=120)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    return turn


def _verb(folder: Path, cpus: Sequence[int], *words: str) -> Turn:
    def turn() -> dict[str, Any]:
        where = ("--producer-cpu", str(cpus[0]), "--accumulator-cpu", str(cpus[1]), "--no-journaller")
        run = measure(folder, "--messages", _MESSAGES, *where, *words)
        percentiles = run["histograms"]["accumulator_transit"]["percentiles"]
        return {"traced": "evidence" not in run["notes"]} | {f"p{p}": percentiles[p] for p in ("50", "99", "99.9")}

    return turn


def pairs(with_it: Turn, without: Turn) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Run both sides once a pair, in random order; each pair as (with, without)."""
    found = []
    for _ in range(PAIRS):
        first = random.random() < 0.5
        a, b = (with_it(), without()) if first else (without(), with_it())
        found.append((a, b) if first else (b, a))
    return found


def run(folder: Path) -> list[Figure]:
    folder = folder.resolve()
    first = measure(folder)
    cpus = (first["placement"]["producer"], first["placement"]["accumulator"])
    plain = _script("plain", cpus)
    parts: dict[str, tuple[Turn, Turn]] = {
        "stamp arrays": (plain, _script("short blocks", cpus)),
        "counters": (_script("counters", cpus), plain),
    }
    if "evidence" not in measure(folder, "--evidence")["notes"]:
        parts["trace"] = (_verb(folder, cpus, "--evidence"), _verb(folder, cpus))
    raw, figures = {}, []
    for name, (with_it, without) in parts.items():
        raw[name] = found = pairs(with_it, without)
        for key, goal in GOALS.items():
            ratios = [a[key] / b[key] for a, b in found]
            title = f"{name}: {key} with ÷ without"
            figures.append(Figure(title, statistics.median(ratios), "×", goal, middle(ratios)))
    switches = [a["main_switches_a_block"] for a, _ in raw["stamp arrays"]]
    how = "one is its sleep; more are preemptions after the block, where every CPU is hot"
    figures.append(Figure("main thread: context switches a block, worst run", max(switches), "", None, how))
    keep(folder, "shadow", raw)
    return figures
