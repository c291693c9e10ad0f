"""Define the result of a benchmark: a figure, the goal it stands against, and how it was got."""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One line of the report. ``goal`` None = reported only; met when ``value`` ≤ ``goal``."""

    name: str
    value: float
    unit: str
    goal: float | None
    how: str

    @property
    def met(self) -> bool | None:
        return None if self.goal is None else self.value <= self.goal


def spread(values: list[float]) -> str:
    """Min, median and max in words, for ``how``."""
    return f"min {min(values):.4g}, median {statistics.median(values):.4g}, max {max(values):.4g}, n = {len(values)}"


def middle(values: list[float]) -> str:
    """The interval that holds the true median at 95 % or more, whatever the values' distribution: between two of them
    in order, by the binomial distribution (Conover, Practical Nonparametric Statistics, 3.2)."""
    n, tail, out = len(values), 0.0, 0
    while out < n // 2 and tail + math.comb(n, out) / 2**n <= 0.025:
        tail += math.comb(n, out) / 2**n
        out += 1
    if not out:
        return "too few for an interval"
    ordered = sorted(values)
    return f"95 %: {ordered[out - 1]:.3g} to {ordered[n - out]:.3g}"


def keep(folder: Path, name: str, data: Any) -> None:
    """Raw data beside the report."""
    (folder / f"{name}.json").write_text(json.dumps(data, indent=1))


def report(folder: Path, figures: list[Figure]) -> str:
    """The table, also kept as JSON."""
    keep(folder, "figures", [asdict(f) | {"met": f.met} for f in figures])
    lines = []
    for f in figures:
        mark = {None: " ", True: "✓", False: "✗"}[f.met]
        goal = "" if f.goal is None else f"(goal ≤ {f.goal:g})"
        lines.append(f"{mark} {f.name:<58} {f.value:>9.4g} {f.unit:<6} {goal:<16} {f.how}")
    return "\n".join(lines)


def pyperf_script(folder: Path, script: str) -> dict[str, list[float]]:
    """Runs a script built on ``pyperf.Runner``; benchmark name → values in seconds."""
    out = folder / f"{script}.pyperf.json"
    path = Path(__file__).parent / f"{script}.py"
    subprocess.run(
        [sys.executable, str(path), "--quiet", "--processes", "8", "-o", str(out)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return pyperf_values(out)


def pyperf_values(path: Path) -> dict[str, list[float]]:
    import pyperf

    return {b.get_name(): list(b.get_values()) for b in pyperf.BenchmarkSuite.load(str(path)).get_benchmarks()}
