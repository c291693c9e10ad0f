"""Is what ``explain -- CMD`` says of a stranger's time true, and what does it cost? (As root, with tracefs.)

* Planted: twenty programs that are held up in a known way (tests/bench/program_script.py); the share of the planted
  time that is found under its own kind and name, and for waits by the task that ended them.
* Cost: 100,000 messages a second, through memory and by a futex on one CPU, in transit time; and two threads on one
  CPU that hand a token over by a futex without a pause, in CPU time a hand-off. With and without ``explain``, in pairs
  in random order. The threads that use memory are real-time ones on both sides of a pair: they poll on two CPUs, and
  where another task takes one of the CPUs, the transit is that task's time.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.bench.figures import Figure, keep, middle
from tests.bench.program_script import CASES

SOURCE = Path(__file__).with_name("handoffs.c")
PAIRS = 20
REAL_TIME = ["chrt", "-f", "1"]
EXPLAIN = [sys.executable, "-m", "jitter_workshop", "explain", "--json", "--"]


def found_of(claim: dict[str, Any], report: dict[str, Any]) -> int:
    """Return how much of a claim's time the report has under the claim's kind, name and waker."""
    rows = [row for thread in report["threads"] if thread["tid"] == claim["tid"] for row in thread[claim["part"]]]
    mine = [row for row in rows if (row["kind"], row["name"]) == (claim["kind"], claim["name"])]
    if claim["waker"]:
        mine = [row for row in mine if row["wakers"] and row["wakers"][0]["name"] == claim["waker"]]
    return sum(row["total_ns"] for row in mine)


def planted(folder: Path) -> list[Figure]:
    figures, raw = [], {}
    whole = named = 0
    for name in CASES:
        truth = folder / "planted.json"
        truth.unlink(missing_ok=True)
        script = [sys.executable, "-m", "tests.bench.program_script", name, str(truth)]
        done = subprocess.run([*EXPLAIN, *script], stdout=subprocess.PIPE, check=False, timeout=300)
        if done.returncode or not truth.exists():
            print(f"{name}: left out (the program ended with {done.returncode})")
            continue
        report, claims = json.loads(done.stdout), json.loads(truth.read_text())
        found = [found_of(one, report) for one in claims]
        raw[name] = {"claims": claims, "found": found, "report": report}
        ns = sum(one["ns"] for one in claims)
        share = sum(min(a, one["ns"]) for a, one in zip(found, claims, strict=True)) / ns
        whole, named = whole + ns, named + share * ns
        told = f"planted {ns / 1e6:.1f} ms, found {sum(found) / 1e6:.1f} ms; {report['lost_events']} events lost"
        figures.append(Figure(f"{name}: planted time not named", 100 * (1 - share), "%", 5, told))
    keep(folder, "planted", raw)
    return [*figures, *of_all("all", f"{len(raw)} programs", whole, named)]


def of_all(who: str, cases: str, whole: float, named: float) -> list[Figure]:
    """Return the figure of all cases together: how much of the planted time (``whole``, ns) was not named; none if
    nothing was planted."""
    if not whole:
        return []
    how = f"{cases}, {whole / 1e9:.2f} s planted"
    return [Figure(f"{who}: planted time not named", 100 * (1 - named / whole), "%", 5, how)]


def _turn(words: list[str], traced: bool) -> dict[str, Any]:
    done = subprocess.run(
        [*(EXPLAIN if traced else []), *words], capture_output=True, check=True, text=True, timeout=300
    )
    told = next(line for line in done.stderr.splitlines() if line.startswith("HANDOFFS "))
    value: dict[str, Any] = {"value": float(told.split()[1])}
    if traced:
        report = json.loads(done.stdout)
        value |= {name: report[name] for name in ("evidence", "events", "lost_events", "duration_ns")}
        value["ended_early"] = "trace" in report["notes"]
    return value


def cost(folder: Path) -> list[Figure]:
    program = folder.resolve() / "handoffs"
    subprocess.run(["cc", "-O2", "-pthread", "-o", str(program), str(SOURCE)], check=True)
    figures, raw = [], {}
    cases = (
        ("memory", "50000", "transit p50 at 100,000 messages a second through memory"),
        ("paced", "100000", "transit p50 at 100,000 messages a second by a futex on one CPU"),
        ("futex", "40000", "CPU time of a hand-off by futex on one CPU, without a pause"),
    )
    for mode, count, title in cases:
        found = []
        for _ in range(PAIRS):
            order = [False, True]
            random.shuffle(order)
            words = [*(REAL_TIME if mode == "memory" else []), str(program), mode, count]
            pair = {traced: _turn(words, traced) for traced in order}
            found.append((pair[True], pair[False]))
        raw[mode] = found
        ratios = [a["value"] / b["value"] for a, b in found]
        more = statistics.median(a["value"] for a, _ in found) - statistics.median(b["value"] for _, b in found)
        early = sum(a["ended_early"] for a, _ in found)
        how = f"{middle(ratios)}; {more:+.0f} ns by the medians; {early} of {PAIRS} recordings ended early"
        figures.append(Figure(f"explain ÷ without: {title}", statistics.median(ratios), "×", 1.1, how))
    keep(folder, "program-cost", raw)
    return figures


def run(folder: Path) -> list[Figure]:
    return planted(folder) + cost(folder)
