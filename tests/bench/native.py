"""The native core: what recording and the spin loop cost beside a bare clock reading."""

from __future__ import annotations

import statistics
from pathlib import Path

from tests.bench.figures import Figure, pyperf_script, spread


def run(folder: Path) -> list[Figure]:
    seconds = pyperf_script(folder, "native_script")
    ns = {name: [v * 1e9 for v in values] for name, values in seconds.items()}
    plain = statistics.median(ns["clock reading, plain"])
    loop = statistics.median(ns["spin loop"])
    return [
        Figure("one clock reading, plain", plain, "ns", None, spread(ns["clock reading, plain"])),
        Figure(
            "one clock reading, ordered",
            statistics.median(ns["clock reading, ordered"]),
            "ns",
            None,
            spread(ns["clock reading, ordered"]),
        ),
        Figure("recording one value", statistics.median(ns["record a value"]), "ns", 2.5, spread(ns["record a value"])),
        Figure("spin: loop ÷ bare clock reading", loop / plain, "×", 1.3, f"loop {spread(ns['spin loop'])} ns"),
    ]
