"""Six curves in the terminal."""

from __future__ import annotations

import statistics
from pathlib import Path

from tests.bench.figures import Figure, pyperf_script, spread

GOALS_MS = {"200×60": 30.0, "80×24": None, "from the cache": None}


def run(folder: Path) -> list[Figure]:
    seconds = pyperf_script(folder, "chart_script")
    figures = []
    for name, goal in GOALS_MS.items():
        values = [v * 1e3 for v in seconds[name]]
        figures.append(Figure(f"six curves, {name}", statistics.median(values), "ms", goal, spread(values)))
    return figures
