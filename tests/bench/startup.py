"""Measure how long a person waits: ``--help``, ``sessions``, and the first frame of the screen."""

from __future__ import annotations

import statistics
from pathlib import Path

from tests.bench.figures import Figure, keep, pyperf_command, spread
from tests.bench.terminal import PROGRAM, Terminal

FIRST_FRAME = "PATH FOR THIS HOST"


def first_frame_s(state: Path) -> float:
    """Seconds from fork to the home screen's list in a fresh 80×24 terminal."""
    terminal = Terminal(state)
    try:
        return terminal.wait_for(FIRST_FRAME)
    finally:
        terminal.end()


def run(folder: Path) -> list[Figure]:
    figures = []
    for verb in ("--help", "sessions"):
        values = pyperf_command(folder, verb.strip("-"), [PROGRAM, verb])
        figures.append(Figure(f"jitter-workshop {verb}", statistics.median(values), "s", 0.1, spread(values)))
    state = folder.resolve() / "state"
    frames = [first_frame_s(state) for _ in range(11)][1:]
    keep(folder, "first_frame", frames)
    figures.append(Figure("first frame, 80×24", statistics.median(frames), "s", 0.5, spread(frames)))
    return figures
