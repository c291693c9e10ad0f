"""Our observers beside those of rt-tests, in turn on the same CPU: ``spin`` beside oslat (gaps over 5 µs a second, the
longest gap), and ``wakeup`` beside cyclictest (median and maximum of the lateness).

Two runs of one tool differ, too, because the host does other things meanwhile. So each round runs both tools twice, in
random order, and a figure agrees if the tools differ from one another no more than each differs from itself: the median
of the ratios between the tools stands against the 95th percentile of the ratios within one tool.

rtla's osnoise and timerlat need tracers of these names, which not every kernel has; the lab's kernels have them
(tests/lab/test_lab_osnoise.py). oslat and cyclictest come from PATH, or are unpacked from Debian's package rt-tests.
"""

from __future__ import annotations

import json
import math
import random
import shutil
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench.figures import Figure, keep
from tests.bench.ring import measure

ROUNDS = 10
SECONDS = 5
OVER_US = 5
PRIORITY = 10
Seen = dict[str, float]
"""A tool's figures of one run, by name: a rate a second, or a time in µs."""


def oslat(data: Mapping[str, Any]) -> Seen:
    """Read oslat's JSON. A bucket holds gaps of up to its number of µs; the first one is the loop itself."""
    thread = data["thread"]["0"]
    gaps = sum(count for bucket, count in thread["histogram"].items() if int(bucket) > OVER_US)
    return {"gaps over 5 µs a second": gaps / thread["duration"], "longest gap": float(thread["max"])}


def spin(run: Mapping[str, Any]) -> Seen:
    over = next(r["per_second"] for r in run["stalls"]["rates"] if r["threshold_ns"] == OVER_US * 1_000)
    return {"gaps over 5 µs a second": over, "longest gap": run["histograms"]["spin_gap"]["max"] / 1e3}


def cyclictest(data: Mapping[str, Any]) -> Seen:
    """Read cyclictest's JSON. A bucket holds latencies from its number of µs up to the next one."""
    thread = data["thread"]["0"]
    buckets = sorted((int(bucket), count) for bucket, count in thread["histogram"].items())
    half, seen = thread["cycles"] / 2, 0
    for bucket, count in buckets:
        seen += count
        if seen >= half:
            return {"median lateness": bucket + 0.5, "longest lateness": float(thread["max"])}
    raise ValueError("more than half of the latencies are beyond the table")


def wakeup(run: Mapping[str, Any]) -> Seen:
    found = run["histograms"]["wakeup_latency"]
    return {"median lateness": found["percentiles"]["50"] / 1e3, "longest lateness": found["max"] / 1e3}


def figures(name: str, ours: Sequence[tuple[Seen, Seen]], theirs: Sequence[tuple[Seen, Seen]]) -> list[Figure]:
    """Compare two tools by rounds of two runs each. The figure is how many times as far the tools are apart as each is
    from itself; up to 1 they agree."""
    found: list[Figure] = []
    for what in ours[0][0]:
        within = sorted(abs(log_ratio(a[what], b[what])) for a, b in (*ours, *theirs))
        both = [pair for own, other in zip(ours, theirs, strict=True) for pair in zip(own, other, strict=True)]
        between = [log_ratio(a[what], b[what]) for a, b in both]
        noise = within[min(math.ceil(0.95 * len(within)), len(within)) - 1]
        middle = statistics.median(between)
        itself = f"one tool against itself up to {math.exp(noise):.3f}"
        how = f"ratio {math.exp(middle):.3f} (median of {len(between)}), {itself}"
        found.append(Figure(f"{name}: {what}", abs(middle) / noise if noise else float(middle != 0), "×", 1.0, how))
    return found


def log_ratio(a: float, b: float) -> float:
    """Return the logarithm of the ratio of two values; a value of 0 counts as a very small one."""
    return math.log(max(a, 1e-9) / max(b, 1e-9))


def _program(folder: Path, name: str) -> str | None:
    """The program's path, None where it cannot be had."""
    if (found := shutil.which(name)) is not None:
        return found
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        return None
    subprocess.run(["apt-get", "download", "-q", "rt-tests"], cwd=folder, capture_output=True, check=False)
    for package in folder.glob("rt-tests_*.deb"):
        subprocess.run(["dpkg", "-x", package, folder / "rt-tests"], check=False)
    path = folder / "rt-tests" / "usr" / "bin" / name
    return str(path) if path.exists() else None


def _json(folder: Path, words: Sequence[str]) -> dict[str, Any]:
    out = folder / "observer.json"
    subprocess.run([*words, f"--json={out}"], check=True, capture_output=True, timeout=60)
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def _twice(turns: Mapping[str, Callable[[], Seen]]) -> dict[str, tuple[Seen, Seen]]:
    order = random.sample([*turns, *turns], 2 * len(turns))
    seen: dict[str, list[Seen]] = {name: [] for name in turns}
    for name in order:
        seen[name].append(turns[name]())
    return {name: (first, second) for name, (first, second) in seen.items()}


def run(folder: Path) -> list[Figure]:
    folder = folder.resolve()
    first = measure(folder, "--workload", "spin")
    cpu = str(first["placement"]["sampler"])
    length = ("--duration", str(SECONDS))
    found: list[Figure] = []
    raw: dict[str, Any] = {}
    pairs: tuple[tuple[str, str, Callable[[], Seen], Callable[[str], Seen]], ...] = (
        (
            "spin beside oslat",
            "oslat",
            lambda: spin(
                measure(folder, "--workload", "spin", "--cpu", cpu, "--threshold-us", str(OVER_US), *length),
            ),
            lambda path: oslat(_json(folder, [path, "-c", cpu, "-m", "0", "-D", str(SECONDS)])),
        ),
        (
            "wakeup beside cyclictest",
            "cyclictest",
            lambda: wakeup(
                measure(folder, "--workload", "wakeup", "--sched", f"fifo:{PRIORITY}", "--cpu", cpu, *length),
            ),
            lambda path: cyclictest(
                _json(
                    folder,
                    [
                        path,
                        "-t1",
                        f"-a{cpu}",
                        "-i1000",
                        f"-p{PRIORITY}",
                        "-m",
                        "--laptop",
                        f"-D{SECONDS}",
                        "-h20000",
                        "-q",
                    ],
                )
            ),
        ),
    )
    for name, tool, ours, theirs in pairs:
        path = _program(folder, tool)
        if path is None:
            print(f"  {name}: {tool} is not installed, and no package of it could be had")
            continue
        rounds = [_twice({"ours": ours, tool: lambda path=path, theirs=theirs: theirs(path)}) for _ in range(ROUNDS)]
        raw[name] = rounds
        found += figures(name, [one["ours"] for one in rounds], [one[tool] for one in rounds])
    keep(folder, "observers", raw)
    return found
