"""The ring with its stamp arrays (8 MB a thread) on huge pages and on base pages, in pairs of runs that take turns: the
ratio of each pair, and the median of those. Base pages: the kernel gives a process none after PR_SET_THP_DISABLE."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench.figures import Figure, keep, middle
from tests.bench.ring import PROGRAM

PAIRS = 12
_PR_SET_THP_DISABLE = 41
_MEASURE = (
    PROGRAM,
    "measure",
    "--json",
    "--wait",
    "60",
    "--preset",
    "standard",
    "--duration",
    "4",
    "--interval-us",
    "1",
)
_PERCENTILES = ("50", "99", "99.9")
_EVENTS = "dTLB-load-misses,dTLB-store-misses"


def _base_pages() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0)


SIDES: dict[str, Callable[[], None] | None] = {"huge": None, "base": _base_pages}


def _environment(folder: Path) -> dict[str, str]:
    return os.environ | {"XDG_STATE_HOME": str(folder / "state"), "XDG_CONFIG_HOME": str(folder / "state")}


def _measure(folder: Path, side: str) -> dict[str, float]:
    """Percentiles of the transit in ns, and the minor faults of all threads, of one run."""
    done = subprocess.run(
        _MEASURE, env=_environment(folder), preexec_fn=SIDES[side], stdout=subprocess.PIPE, check=True, timeout=300
    )
    run: dict[str, Any] = json.loads(done.stdout)
    percentiles = run["histograms"]["accumulator_transit"]["percentiles"]
    faults = sum(thread["minor_faults"] or 0 for thread in run["threads"])
    return {f"p{p}": percentiles[p] for p in _PERCENTILES} | {"minor faults": faults}


def _huge_mib(folder: Path, side: str) -> float:
    """The most AnonHugePages that the measuring child has in a run of its own (looking disturbs a run), in MiB."""
    most = 0
    with subprocess.Popen(_MEASURE, env=_environment(folder), preexec_fn=SIDES[side], stdout=subprocess.DEVNULL) as run:
        while run.poll() is None:
            for child in Path(f"/proc/{run.pid}/task").glob("*/children"):
                most = max([most, *(_of(int(pid)) for pid in _text(child).split())])
            time.sleep(0.2)
    return most / 1024


def _of(pid: int) -> int:
    lines = _text(Path(f"/proc/{pid}/smaps_rollup")).splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("AnonHugePages:")), 0)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _tlb_misses(folder: Path, side: str) -> float | None:
    """dTLB misses of a whole run, its child included; None where this host does not count them."""
    if shutil.which("perf") is None:
        return None
    done = subprocess.run(
        ("perf", "stat", "-x,", "-e", _EVENTS, "--", *_MEASURE),
        env=_environment(folder),
        preexec_fn=SIDES[side],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    counts = [line.split(",")[0] for line in done.stderr.splitlines() if "dTLB" in line]
    return sum(map(float, counts)) if counts and all(count.isdigit() for count in counts) else None


def run(folder: Path) -> list[Figure]:
    folder = folder.resolve()
    huge_mib = {side: _huge_mib(folder, side) for side in SIDES}
    misses = {side: _tlb_misses(folder, side) for side in SIDES}
    pairs = []
    for number in range(PAIRS):
        order = ("huge", "base") if number % 2 else ("base", "huge")
        pairs.append({side: _measure(folder, side) for side in order})
    keep(folder, "hugepages", {"huge_mib": huge_mib, "dtlb_misses": misses, "pairs": pairs})
    figures = [Figure(f"huge pages of the measuring child, {side}", huge_mib[side], "MiB", None, "") for side in SIDES]
    if misses["huge"] is not None and misses["base"]:
        how = f"{misses['huge']:.3g} and {misses['base']:.3g}, one run each"
        figures.append(Figure("dTLB misses of a run: huge ÷ base", misses["huge"] / misses["base"], "×", None, how))
    for name in (f"p{p}" for p in _PERCENTILES):
        ratios = [pair["huge"][name] / pair["base"][name] for pair in pairs if pair["base"][name]]
        if ratios:
            how = f"n = {len(ratios)} pairs, {middle(ratios)}"
            figures.append(Figure(f"transit {name}: huge ÷ base", statistics.median(ratios), "×", None, how))
    return figures
