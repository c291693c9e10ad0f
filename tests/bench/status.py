"""Measure how long ``status`` takes: on this host, and on a made one with 512 CPUs and 2,000 interrupts; how its cost
grows.

Each round runs the commands one after the other in a new order, an empty interpreter among them, so that what else the
machine does meets all alike; the ratio to the empty interpreter is told beside the time.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests import hosttrees
from tests.bench.figures import Figure, keep, spread

ROUNDS = 15
HERE, LARGE = "status, this host", "status, 512 CPUs and 2,000 interrupts"
EMPTY = "an empty interpreter"


def timed_s(command: list[str]) -> float:
    """Seconds from fork to the end of a command. Raise CalledProcessError for exit codes but 0 and 1."""
    begin = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    took = time.perf_counter() - begin
    if done.returncode not in (0, 1):
        raise subprocess.CalledProcessError(done.returncode, command)
    return took


def with_byte_code() -> None:
    """Let programs that are started here keep their byte code, as for a user: without it each start compiles all."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def files(tree: Path) -> int:
    return sum(len(names) for _, _, names in os.walk(tree))


def run(folder: Path) -> list[Figure]:
    with_byte_code()
    status = [sys.executable, "-m", "jitter_workshop", "status"]
    place = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    try:
        half, whole = hosttrees.big(place / "half", 256, 1_000), hosttrees.big(place / "whole")
        commands = {
            EMPTY: [sys.executable, "-c", "pass"],
            HERE: status,
            f"{HERE}, as JSON": [*status, "--json"],
            "half of it": [*status, "--root", str(half)],
            LARGE: [*status, "--root", str(whole)],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for name, command in commands.items():
            timed_s(command)  # the first run writes byte code and fills caches
            assert name in times
        order = list(commands)
        shuffle = random.Random(1)
        for _ in range(ROUNDS):
            shuffle.shuffle(order)
            for name in order:
                times[name].append(timed_s(commands[name]))
        grown = [(w - e) / (h - e) for w, h, e in zip(times[LARGE], times["half of it"], times[EMPTY], strict=True)]
        more_files = files(whole) / files(half)
    finally:
        shutil.rmtree(place)
    keep(folder, "status", times)
    goals = {HERE: 0.15, f"{HERE}, as JSON": 0.15, LARGE: 0.5}
    figures = []
    for name, values in times.items():
        ratio = statistics.median(a / b for a, b in zip(values, times[EMPTY], strict=True))
        how = f"{ratio:.1f} × {EMPTY}; {spread(values)}"
        figures.append(Figure(name, statistics.median(values), "s", goals.get(name), how))
    ratio = statistics.median(a / b for a, b in zip(times[HERE], times[EMPTY], strict=True))
    figures.append(Figure(f"{HERE} ÷ {EMPTY}", ratio, "×", 6.0, "the same run"))
    how = f"{more_files:.2f} times the files; {spread(grown)}"
    figures.append(Figure("cost of twice the host", statistics.median(grown), "×", None, how))
    return figures
