"""``python -m tests.bench [PART …]``: native, chart, startup, status, ring, league, observers, shadow, screen,
explain, program, events, watch, strangers, attribution, verdicts, screening, commands, report, fleet, hugepages,
calibration; all when none is named. ``calibration`` with options records and judges (tests/bench/calibration.py)."""

from __future__ import annotations

import importlib
import os
import sys
import time
from pathlib import Path

from jitter_workshop.flow.measuring.host_load import VARIABLE
from tests.bench.figures import report

PARTS = (
    "native",
    "chart",
    "startup",
    "status",
    "ring",
    "league",
    "observers",
    "shadow",
    "screen",
    "explain",
    "program",
    "events",
    "watch",
    "strangers",
    "attribution",
    "verdicts",
    "screening",
    "commands",
    "report",
    "fleet",
    "hugepages",
    "calibration",
)


def main(names: list[str]) -> int:
    if names[:1] == ["calibration"] and len(names) > 1:
        return int(importlib.import_module("tests.bench.calibration").main(names[1:]))
    unknown = [n for n in names if n not in PARTS]
    if unknown:
        print(f"unknown part {unknown[0]}: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    # The benchmarks are the load of this machine, and a question about it would wait for an answer.
    os.environ[VARIABLE] = "off"
    folder = Path("bench-results") / time.strftime("%Y%m%d-%H%M%S")
    folder.mkdir(parents=True)
    figures = []
    for name in names or PARTS:
        print(f"{name} …", flush=True)
        figures += importlib.import_module(f"tests.bench.{name}").run(folder)
    table = report(folder, figures)
    (folder / "report.txt").write_text(table + "\n")
    print(f"\n{table}\n\nraw data: {folder}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
