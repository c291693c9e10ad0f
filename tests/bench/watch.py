"""Measure what ``watch`` costs what runs beside it, and how long a freeze takes (as root, with tracefs).

* beside it: the ring of ``measure`` as the watched command, beside the same run alone, in pairs in random order;
* a freeze: a real-time thief takes the watched CPU for 5 ms every second; the trace is read after each.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests import livetrace, planted
from tests.bench.figures import Figure, keep, middle
from tests.bench.ring import measure
from tests.bench.shadow import Turn, pairs

GOAL = 1.05
_PROGRAM = (sys.executable, "-m", "jitter_workshop")
_LONG_S = 60


def _ring(folder: Path, cpus: tuple[int, int], *, watched: bool) -> Turn:
    where = ("--producer-cpu", str(cpus[0]), "--accumulator-cpu", str(cpus[1]), "--no-journaller")
    run = (*_PROGRAM, "measure", "--messages", "200000", *where, "--json")
    words = (*_PROGRAM, "watch", "--threshold", "1s", "--json", "--", *run) if watched else run

    def turn() -> dict[str, Any]:
        environment = os.environ | {"XDG_STATE_HOME": str(folder / "state")}
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=300, env=environment)
        # A watched command's output goes to standard error, before the line that says where the watch is kept.
        text = done.stderr if watched else done.stdout
        found, _ = json.JSONDecoder().raw_decode(text[text.index("{") :])
        if watched:
            assert json.loads(done.stdout)["evidence"] == "trace"
        percentiles = found["histograms"]["accumulator_transit"]["percentiles"]
        return {f"p{p}": percentiles[p] for p in ("50", "99", "99.9")}

    return turn


def run(folder: Path) -> list[Figure]:
    folder = folder.resolve()
    if why := livetrace.why_not():
        print(f"watch: {why}", file=sys.stderr)
        return []
    first = measure(folder)
    cpus = (first["placement"]["producer"], first["placement"]["accumulator"])
    found = pairs(_ring(folder, cpus, watched=True), _ring(folder, cpus, watched=False))
    figures = []
    for key, goal in (("p50", GOAL), ("p99", None), ("p99.9", None)):
        ratios = [a[key] / b[key] for a, b in found]
        figures.append(
            Figure(f"watched ring: {key} with ÷ without", statistics.median(ratios), "×", goal, middle(ratios))
        )
    said, named, lost = _planted(folder, cpus[1])
    each_ms = said["frozen_ns"] / max(said["freezes"], 1) / 1e6
    whole_ns = said["duration_s"] * 1e9
    unwatched = 100 * sum(said["not_watched_ns"].values()) / whole_ns
    how = f"{said['freezes']} freezes in {said['duration_s']:.0f} s"
    figures.append(Figure("a freeze: stopped, read, explained, kept", each_ms, "ms", None, how))
    figures.append(Figure("time that was not watched", unwatched, "%", None, str(said["not_watched_ns"])))
    figures.append(Figure("planted stalls neither named nor in unwatched time", lost, "", 0, f"{named} were named"))
    keep(folder, "watch", {"pairs": found, "report": said})
    return figures


def _planted(folder: Path, cpu: int) -> tuple[dict[str, Any], int, int]:
    where = ("--cpu", str(cpu), "--threshold", "2ms", "--keep", "100")
    words = (*_PROGRAM, "watch", *where, "--until", f"{_LONG_S}s", "--json")
    environment = os.environ | {"XDG_STATE_HOME": str(folder / "state")}
    with planted.thief(cpu, 5, 1.0, 2 * _LONG_S) as thief:
        done = subprocess.run(words, stdout=subprocess.PIPE, check=True, timeout=300, env=environment)
        thief.kill()
        assert thief.stdout is not None
        times = planted.times(thief.stdout.read())
    said: dict[str, Any] = json.loads(done.stdout)
    lost, named = planted.missed(Path(said["folder"]), times)
    return said, named, len(lost)
