"""Does watching disturb? The same pinned run with the screen up and headless, in 20 pairs, first one, then the other.

The screen is the real program in a 160×48 pseudo-terminal, in the chapter *Pinning*; its runs are in its session.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.model.run import SilentObserver
from tests.bench.figures import Figure, keep, spread
from tests.bench.ring import measure
from tests.bench.terminal import Terminal

PAIRS = 20
HISTOGRAM = "accumulator_transit"
APART = 1.5
"""On a virtual machine two CPUs may be near today and far tomorrow: then the ping-pongs differ by more than this."""


def _prepare(state: Path) -> None:
    """A session that stands before the pinned run of *Pinning*."""
    import os

    os.environ["XDG_STATE_HOME"] = str(state)
    workshop = Workshop.open("bench")
    try:
        walk = workshop.walk("pinning")
        run = workshop.measure(walk.measuring.request("measure"), SilentObserver(), CancelToken())
        walk.record("measure", run)
        walk.go("apply")
        walk.go("again")
    finally:
        workshop.close()


def _with_screen(state: Path) -> dict[str, Any]:
    before = set(state.rglob("run.json"))
    terminal = Terminal(state, "--session", "bench", "--chapter", "pinning", columns=160, rows=48)
    try:
        terminal.wait_for("AGAIN")
        terminal.type("m")
        terminal.wait_for("block 19 of 20")
        terminal.wait_for("go on")
    finally:
        terminal.end()
    (made,) = set(state.rglob("run.json")) - before
    run: dict[str, Any] = json.loads(made.read_text())
    if not run["complete"]:
        raise RuntimeError("the run on the screen was cut short")
    return run


def _line_ns(run: dict[str, Any]) -> float:
    return statistics.median(b["ping_pong_ns"] for b in run["blocks"])


def run(folder: Path) -> list[Figure]:
    state = folder.resolve() / "screen-state"
    _prepare(state)
    pairs = []
    for n in range(PAIRS):
        # The order changes from pair to pair, so that a drift does not favour either side.
        if n % 2:
            shown, headless = _with_screen(state), measure(folder.resolve())
        else:
            headless, shown = measure(folder.resolve()), _with_screen(state)
        pairs.append((shown, headless))
    switches = [b["parent_switches"] for shown, _ in pairs for b in shown["blocks"] if b["parent_switches"] is not None]
    near = [p for p in pairs if 1 / APART < _line_ns(p[0]) / _line_ns(p[1]) < APART]
    figures, raw = [], []
    for percentile in ("50", "90"):
        ratios = [_ratio(pair, percentile) for pair in pairs]
        raw.append({"percentile": percentile, "ratios": ratios, "line_ns": [[_line_ns(r) for r in p] for p in pairs]})
        figures.append(
            Figure(f"p{percentile} with the screen ÷ headless", statistics.median(ratios), "×", 1.05, spread(ratios))
        )
        if near and len(near) < len(pairs):
            alike = [_ratio(pair, percentile) for pair in near]
            how = f"only pairs with the CPUs equally far apart: {spread(alike)}"
            figures.append(Figure(f"p{percentile}, the same, alike pairs", statistics.median(alike), "×", 1.05, how))
    disturbed = [
        (b["index"], b["parent_switches"]) for shown, _ in pairs for b in shown["blocks"] if b["parent_switches"]
    ]
    how = f"{len(disturbed)} of {len(switches)} blocks had any (block, switches): {disturbed}"
    figures.append(Figure("parent's context switches in a block, screen up, worst", max(switches), "", 0, how))
    keep(folder, "screen", raw)
    return figures


def _ratio(pair: tuple[dict[str, Any], dict[str, Any]], percentile: str) -> float:
    with_screen, headless = (r["histograms"][HISTOGRAM]["percentiles"][percentile] for r in pair)
    return float(with_screen / headless)
