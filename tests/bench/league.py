"""The ring beside other queues: the same 64-byte message every 10 µs between the same two CPUs, stamped when it is
ready (before it is copied) and when all of it is read. Each round runs every queue once, in random order.

The rivals' sources come from package registries when this runs, by apt, cargo and mvn: Rust and Java at the versions
named here, Debian's at the distribution's. They are kept in the folder of the results, never in the
project. A rival whose toolchain or package is missing is left out, and the page says why. The programs around the
queues are in tests/bench/rivals.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jitter_workshop.report.pictures.svg import render_svg
from jitter_workshop.stats.curve import curve_from_percentiles
from tests.bench.figures import Figure, keep, middle
from tests.bench.ring import measure

ROUNDS = 7
MESSAGES = 150_000
INTERVAL_NS = 10_000
HERE = Path(__file__).with_name("rivals")
_FLAGS = ("-O2", "-march=native", "-D_GNU_SOURCE", "-pthread")
_BUILD_S = 600
_RUN_S = 120
OURS = "jitter-workshop"


class Missing(Exception):
    """A rival cannot be built here; the message says why."""


@dataclass(frozen=True)
class Rival:
    """One queue. ``build``: with a folder to build in, returns how one turn is made: with the producer's CPU and the
    consumer's, the percentiles of a run in ns; raises Missing where it cannot be built."""

    name: str
    version: str
    licence: str
    language: str
    build: Callable[[Path], Callable[[int, int], dict[str, Any]]]


@dataclass
class Row:
    """Hold the turns of one queue: a table of percentiles a round."""

    rival: Rival
    turns: list[dict[str, Any]] = field(default_factory=list)
    why_not: str = ""
    version: str = ""


def _run(words: Sequence[str | Path], folder: Path, seconds: int = _BUILD_S) -> str:
    """The output of a command, which must succeed. Raise Missing if it does not."""
    if shutil.which(str(words[0])) is None:
        raise Missing(f"{words[0]} is not installed")
    try:
        done = subprocess.run(
            [str(w) for w in words], cwd=folder, capture_output=True, text=True, check=False, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        raise Missing(f"{words[0]} took longer than {seconds} s") from None
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise Missing(f"{words[0]} failed: {last[0][:160] if last else done.returncode}")
    return done.stdout


def _native(program: Sequence[str | Path]) -> Callable[[int, int], dict[str, Any]]:
    def turn(producer: int, consumer: int) -> dict[str, Any]:
        words = [*program, str(producer), str(consumer), str(MESSAGES), str(INTERVAL_NS)]
        found: dict[str, Any] = json.loads(_run(words, HERE, _RUN_S))
        return found

    return turn


def _compiled(
    compiler: str, source: str, packages: Sequence[str] = (), libraries: Sequence[str] = ()
) -> Callable[[Path], Callable[[int, int], dict[str, Any]]]:
    """A rival in one C or C++ file, with headers and shared libraries of Debian packages that are only unpacked."""

    def build(folder: Path) -> Callable[[int, int], dict[str, Any]]:
        root = folder / "unpacked"
        if packages:
            _run(["apt-get", "download", "-q", *packages], folder)
            for package in folder.glob("*.deb"):
                _run(["dpkg", "-x", package, root], folder)
        include = root / "usr" / "include"
        places = [include, *include.glob("*-linux-gnu"), *include.glob("dpdk"), *include.glob("*-linux-gnu/dpdk")]
        folders = [*root.glob("usr/lib/*-linux-gnu"), *root.glob("lib/*-linux-gnu")]
        linked = [found for name in libraries for place in folders for found in place.glob(name)]
        linking = [f"-Wl,-rpath,{':'.join(map(str, folders))}", "-Wl,--disable-new-dtags,--allow-shlib-undefined"]
        program = folder / "rival"
        headers = [f"-isystem{place}" for place in places]
        _run([compiler, *_FLAGS, *headers, "-o", program, HERE / source, *linked, *(linking if linked else ())], folder)
        return _native([program])

    return build


def _rust(queue: str) -> Callable[[Path], Callable[[int, int], dict[str, Any]]]:
    def build(folder: Path) -> Callable[[int, int], dict[str, Any]]:
        made = folder.parent / "rust"
        shutil.copytree(HERE / "rust", made, dirs_exist_ok=True)
        _run(["cargo", "build", "--release", "--quiet"], made)
        return _native([made / "target" / "release" / "league", queue])

    return build


def _java(folder: Path) -> Callable[[int, int], dict[str, Any]]:
    jar = "disruptor-3.4.4.jar"
    _run(
        [
            "mvn",
            "-q",
            "-B",
            "dependency:copy",
            "-Dartifact=com.lmax:disruptor:3.4.4",
            f"-DoutputDirectory={folder.resolve()}",
        ],
        folder,
    )
    _run(["javac", "-cp", jar, "-d", ".", HERE / "Workshop2015.java"], folder)

    def turn(producer: int, consumer: int) -> dict[str, Any]:
        words = ["java", "-Xms512m", "-Xmx512m", "-XX:+AlwaysPreTouch", "-XX:+UseSerialGC", "-cp", f".:{jar}"]
        with subprocess.Popen(
            [*words, "Workshop2015", str(MESSAGES), str(INTERVAL_NS)],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdout.readline()
            for thread in Path(f"/proc/{process.pid}/task").iterdir():
                cpu = {"producer": producer, "accumulator": consumer}.get((thread / "comm").read_text().strip())
                if cpu is not None:
                    os.sched_setaffinity(int(thread.name), {cpu})
            process.stdin.write("\n")
            process.stdin.flush()
            with contextlib.ExitStack() as stack:
                stack.callback(process.kill)
                found: dict[str, Any] = json.loads(process.stdout.readline())
        return found

    return turn


_OF_DPDK = (
    "librte-ring23",
    "librte-eal23",
    "librte-kvargs23",
    "librte-telemetry23",
    "libbsd0",
    "libfdt1",
    "libnuma1",
    "libmd0",
)

RIVALS = (
    Rival("plain ring", "here", "this project's", "C", _compiled("cc", "plain.c")),
    Rival(
        "liburcu wfcqueue",
        "",
        "LGPL-2.1",
        "C",
        _compiled("cc", "urcu.c", ("liburcu-dev",)),
    ),
    Rival(
        "boost::lockfree::spsc_queue",
        "",
        "BSL-1.0",
        "C++",
        _compiled("c++", "boost.cpp", ("libboost1.74-dev",)),
    ),
    Rival("atomic_queue", "", "MIT", "C++", _compiled("c++", "atomic_queue.cpp", ("libatomic-queue-dev",))),
    Rival(
        "moodycamel::ReaderWriterQueue",
        "",
        "BSD-2-Clause",
        "C++",
        _compiled("c++", "readerwriter.cpp", ("libreaderwriterqueue-dev",)),
    ),
    Rival(
        "DPDK rte_ring",
        "",
        "BSD-3-Clause",
        "C",
        _compiled("cc", "dpdk.c", ("libdpdk-dev", *_OF_DPDK), ("librte_ring.so.23",)),
    ),
    Rival("rtrb", "0.4.1", "MIT OR Apache-2.0", "Rust", _rust("rtrb")),
    Rival("nexus-queue", "1.3.1", "MIT OR Apache-2.0", "Rust", _rust("nexus")),
    Rival("Disruptor, as in the tutorial of 2015", "3.4.4", "Apache-2.0", "Java", _java),
)
LEFT_OUT = {
    "rigtorp::SPSCQueue": "no package registry that this program uses has it",
}


def _ours(folder: Path, cpus: Sequence[int] = ()) -> dict[str, Any]:
    where = ("--producer-cpu", str(cpus[0]), "--accumulator-cpu", str(cpus[1])) if cpus else ()
    run = measure(folder, "--messages", str(MESSAGES), *where)
    transit = run["histograms"]["accumulator_transit"]
    named = {f"p{p}": transit["percentiles"][p] for p in ("50", "90", "99", "99.9", "99.99")}
    pings = [b["ping_pong_ns"] for b in run["blocks"] if b["ping_pong_ns"] is not None]
    return {
        "clock": run["clock"]["source"],
        "count": transit["count"],
        "min": transit["min"],
        **named,
        "max": transit["max"],
        "ping_pong_ns": statistics.median(pings) if pings else None,
        "cpus": (run["placement"]["producer"], run["placement"]["accumulator"]),
    }


def run(folder: Path) -> list[Figure]:
    folder = folder.resolve()
    first = _ours(folder)
    producer, consumer = first["cpus"]
    rows = {OURS: Row(Rival(OURS, "here", "this project's", "C, Python", lambda _: lambda p, c: _ours(folder, (p, c))))}
    turns = {OURS: rows[OURS].rival.build(folder)}
    for number, rival in enumerate(RIVALS):
        rows[rival.name] = Row(rival)
        made = folder / f"rival-{number}"
        made.mkdir()
        try:
            turns[rival.name] = rival.build(made)
            packed = next((one.name.split("_") for one in made.glob("*-dev_*.deb")), ["", rival.version])
            rows[rival.name].version = f"{packed[1]} (Debian)" if packed[0] else rival.version
        except Missing as error:
            rows[rival.name].why_not = str(error)
    for _ in range(ROUNDS):
        for name in random.sample(list(turns), len(turns)):
            try:
                rows[name].turns.append(turns[name](producer, consumer))
            except Missing as error:
                # A rival with fewer rounds than the others could not be set beside them.
                del turns[name]
                rows[name].turns.clear()
                rows[name].why_not = str(error)
    keep(folder, "league", {name: row.turns or row.why_not for name, row in rows.items()})
    (folder / "league.md").write_text(page(rows, (producer, consumer)))
    (folder / "league.svg").write_text(picture(rows))
    return list(figures(rows))


def _median(row: Row, name: str) -> float:
    return statistics.median(turn[name] for turn in row.turns)


def figures(rows: dict[str, Row]) -> list[Figure]:
    """Each rival's median transit as a multiple of ours, round by round; the goal is that ours is the shortest."""
    ours = [turn["p50"] for turn in rows[OURS].turns]
    found = [Figure("our transit p50", statistics.median(ours), "ns", None, middle(ours))]
    for name, row in rows.items():
        if row.turns and name != OURS:
            ratios = [own / turn["p50"] for own, turn in zip(ours, row.turns, strict=True)]
            how = f"{middle(ratios)}, n = {len(ratios)}"
            found.append(Figure(f"our transit p50 ÷ {name}", statistics.median(ratios), "×", 1.0, how))
    return found


def page(rows: dict[str, Row], cpus: tuple[int, int]) -> str:
    """The table as Markdown, the shortest median first."""
    done = sorted((row for row in rows.values() if row.turns), key=lambda row: _median(row, "p50"))
    pings = [turn["ping_pong_ns"] for turn in rows[OURS].turns if turn["ping_pong_ns"] is not None]
    line = f"; a cache line takes {statistics.median(pings):.0f} ns one way" if pings else ""
    lines = [
        "# Queues between two threads",
        "",
        f"64-byte messages, one every {INTERVAL_NS / 1e3:g} µs, CPU {cpus[0]} to CPU {cpus[1]}{line}. "
        f"{ROUNDS} rounds of {MESSAGES:,} messages, each queue once a round in random order. "
        "Medians of the rounds, ns from before the copy until all is read.",
        "",
        "| queue | version | licence | language | clock | p50 | p99 | p99.9 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in done:
        figures_of = " | ".join(f"{_median(row, name):,.0f}" for name in ("p50", "p99", "p99.9"))
        own = row.rival
        clock = row.turns[0]["clock"]
        lines.append(
            f"| {own.name} | {row.version or own.version} | {own.licence} | {own.language} | {clock} | {figures_of} |"
        )
    left = {**{r.rival.name: r.why_not for r in rows.values() if r.why_not}, **LEFT_OUT}
    return "\n".join([*lines, "", *(f"Left out: {name}: {why}." for name, why in left.items()), ""])


def picture(rows: dict[str, Row]) -> str:
    """One curve for each queue: the medians of its percentiles."""
    keys = ("min", "p50", "p90", "p99", "p99.9", "p99.99", "max")
    return render_svg(
        [
            curve_from_percentiles(row.rival.name, {key: _median(row, key) for key in keys}, MESSAGES)
            for row in rows.values()
            if row.turns
        ]
    )
