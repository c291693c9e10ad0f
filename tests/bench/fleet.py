"""Measure how long ``fleet compare`` takes: of 1,000 hosts with a status and five runs each, and of 100 such hosts.

The answers are made up. Each run has as many blocks and stalls as a run of ``--preset quick`` on a busy host, so the
files have the size of real ones.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from jitter_workshop.model.codec import to_plain
from jitter_workshop.model.run import Stall
from tests.bench.figures import Figure, keep, spread
from tests.bench.status import timed_s
from tests.madefleet import run_of, status_of, write_answer

ROUNDS = 5
HOSTS = (100, 1_000)
RUNS = 5
CHECKS, BLOCKS, STALLS = 80, 20, 400
GOAL_S = 10.0


def run(folder: Path) -> list[Figure]:
    place = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    try:
        times: dict[str, list[float]] = {}
        for hosts in HOSTS:
            _write(place / str(hosts), hosts)
            command = [sys.executable, "-m", "jitter_workshop", "fleet", "compare", str(place / str(hosts))]
            timed_s(command)
            times[str(hosts)] = [timed_s(command) for _ in range(ROUNDS)]
        size = sum(path.stat().st_size for path in (place / str(HOSTS[-1])).rglob("*.json"))
    finally:
        shutil.rmtree(place)
    keep(folder, "fleet", times)
    how = f"{RUNS} runs each, {size / 1e6:.0f} MB in all"
    return [
        Figure(
            f"fleet compare, {hosts} hosts", min(times[str(hosts)]), "s", goal, f"{spread(times[str(hosts)])}; {how}"
        )
        for hosts, goal in zip(HOSTS, (None, GOAL_S), strict=True)
    ]


def _write(folder: Path, hosts: int) -> None:
    """Write the answers of some hosts: those of ten, each under many names."""
    settings = {f"check-{number}": "usual" for number in range(CHECKS)}
    stall = to_plain(Stall(1, "accumulator", 2, 123_456_789, 123_498_765, 4))
    made = []
    for number in range(10 * RUNS):
        plain = run_of("made", number)
        plain["stalls"]["worst"] = [stall] * STALLS
        plain["blocks"] = plain["blocks"] * BLOCKS
        made.append(plain)
    for number in range(hosts):
        name = f"node{number:04}"
        write_answer(folder / name, "status.json", status_of(name, settings))
        for one in range(RUNS):
            write_answer(folder / name, f"run{one}.json", made[(number % 10) * RUNS + one])
