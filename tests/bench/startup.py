"""Measure how long a person waits: ``--help``, ``sessions`` with 500 runs, and the first frame of the screen.

The commands and an empty interpreter run one after the other in a new order in each round, so that what else the
machine does meets all alike; the ratio to the empty interpreter is told beside. The first frame is told beside that
of an app of Textual that shows one line, which is the least that it can be.
"""

from __future__ import annotations

import random
import statistics
import sys
from pathlib import Path

from tests.bench.figures import Figure, keep, spread
from tests.bench.status import EMPTY, timed_s, with_byte_code
from tests.bench.terminal import PROGRAM, Terminal
from tests.madesessions import make_session

FIRST_FRAME = "PATH FOR THIS HOST"
ROUNDS, RUNS = 15, 500
FRAME, EMPTY_APP = "first frame, 80×24", "first frame of an empty Textual app"
HELP, SESSIONS = "--help", f"sessions, {RUNS} runs"


def first_frame_s(state: Path, empty: bool) -> float:
    """Seconds from fork to the home screen's list in a fresh 80×24 terminal; ``empty``: to the only line of an empty
    app."""
    app = (sys.executable, "-m", "tests.bench.emptyapp")
    terminal = Terminal(state, FIRST_FRAME, command=app) if empty else Terminal(state)
    try:
        return terminal.wait_for(FIRST_FRAME)
    finally:
        terminal.end()


def run(folder: Path) -> list[Figure]:
    with_byte_code()
    full = folder.resolve() / "state-full"
    make_session(full / "jitter-workshop" / "sessions", RUNS, blocks=2).close()
    commands = {
        EMPTY: [sys.executable, "-c", "pass"],
        HELP: [PROGRAM, "--help"],
        SESSIONS: ["env", f"XDG_STATE_HOME={full}", PROGRAM, "sessions"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    first = {name: timed_s(command) for name, command in commands.items()}  # fills caches; sessions reads each run once
    shuffle = random.Random(1)
    for _ in range(ROUNDS):
        for name in shuffle.sample(list(commands), len(commands)):
            times[name].append(timed_s(commands[name]))
    keep(folder, "startup", {"first": first, **times})
    ratio = statistics.median(a / b for a, b in zip(times[HELP], times[EMPTY], strict=True))
    figures = [Figure("jitter-workshop --help ÷ an empty interpreter", ratio, "×", 2.5, spread(times[HELP]))]
    figures.append(Figure(SESSIONS, statistics.median(times[SESSIONS]), "s", 0.2, spread(times[SESSIONS])))
    figures.append(Figure(f"{SESSIONS}, the first time", first[SESSIONS], "s", None, "each run is read once"))
    state = folder.resolve() / "state"
    kinds = {EMPTY: lambda: timed_s(commands[EMPTY])}
    kinds |= {FRAME: lambda: first_frame_s(state, False), EMPTY_APP: lambda: first_frame_s(state, True)}
    first_frame_s(state, False)  # keeps the course
    frames: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(ROUNDS):
        for name in shuffle.sample(list(kinds), len(kinds)):
            frames[name].append(kinds[name]())
    keep(folder, "first_frame", frames)
    for name, goal in ((FRAME, 0.35), (EMPTY_APP, None)):
        ratio = statistics.median(a / b for a, b in zip(frames[name], frames[EMPTY], strict=True))
        how = f"{ratio:.1f} × {EMPTY}; {spread(frames[name])}"
        figures.append(Figure(name, statistics.median(frames[name]), "s", goal, how))
    ratio = statistics.median(a / b for a, b in zip(frames[FRAME], frames[EMPTY_APP], strict=True))
    figures.append(Figure(f"{FRAME} ÷ {EMPTY_APP}", ratio, "×", None, "the same run"))
    return figures
