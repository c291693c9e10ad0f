"""Measure how long the verb ``report`` takes: of a session of 500 runs, and how its cost grows from one of 50.

Each round runs the commands one after the other in a new order, an empty interpreter among them, so that what else the
machine does meets all alike. The sessions are made up, as large as real ones (``tests.madesessions``).
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from tests.bench.figures import Figure, keep, spread
from tests.bench.status import EMPTY, timed_s
from tests.madesessions import make_session

ROUNDS = 7
FEW, MANY = 50, 500
FORMATS = ("html", "md", "json")
GOAL_S = 3.0


def run(folder: Path) -> list[Figure]:
    place = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    state = os.environ.get("XDG_STATE_HOME")
    try:
        os.environ["XDG_STATE_HOME"] = str(place)
        for runs in (FEW, MANY):
            make_session(place / "jitter-workshop" / "sessions", runs, name=f"runs-{runs}").close()
        report = [sys.executable, "-m", "jitter_workshop", "report", "--force", "--session"]
        commands = {EMPTY: [sys.executable, "-c", "pass"]}
        for name in FORMATS:
            for runs in (FEW, MANY):
                commands[f"{name} of {runs} runs"] = [*report, f"runs-{runs}", "-o", str(place / f"{runs}.{name}")]
        times: dict[str, list[float]] = {name: [] for name in commands}
        for command in commands.values():
            timed_s(command)  # the first run writes byte code and fills caches
        order = list(commands)
        shuffle = random.Random(1)
        for _ in range(ROUNDS):
            shuffle.shuffle(order)
            for name in order:
                times[name].append(timed_s(commands[name]))
        sizes = {name: (place / f"{MANY}.{name}").stat().st_size for name in FORMATS}
    finally:
        shutil.rmtree(place)
        if state is None:
            os.environ.pop("XDG_STATE_HOME", None)
        else:
            os.environ["XDG_STATE_HOME"] = state
    keep(folder, "report", times)
    return [figure for name in FORMATS for figure in _figures(name, times, sizes[name])]


def _figures(name: str, times: dict[str, list[float]], size: int) -> tuple[Figure, Figure]:
    """The time for many runs, and what a run more costs there against what it costs among few."""
    few, many, empty = times[f"{name} of {FEW} runs"], times[f"{name} of {MANY} runs"], times[EMPTY]
    how = f"{statistics.median(a / b for a, b in zip(many, empty, strict=True)):.1f} × {EMPTY}; {spread(many)}"
    took = Figure(f"report as {name}, {MANY} runs", statistics.median(many), "s", GOAL_S, f"{size / 1e6:.1f} MB; {how}")
    grown = [a / b for a, b in zip(many, few, strict=True)]
    how = f"{MANY / FEW:.0f} times the runs; {spread(grown)}"
    return took, Figure(f"the same against {FEW} runs", statistics.median(grown), "×", None, how)
