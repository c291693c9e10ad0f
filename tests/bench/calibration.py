"""Verdicts on real runs: record a series, judge what was recorded (tests/calibration has the parts).

``python -m tests.bench calibration --record null|power`` records, and goes on where it was stopped; ``--judge`` prints
the tables; ``--pack FILE`` puts a whole series where the tests find it.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path
from typing import Any

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.errors import UsageError, WorkshopError
from jitter_workshop.presenter.runs.progress import Line
from tests.bench.figures import Figure
from tests.calibration import judging, records
from tests.calibration.plan import NullPlan, PowerPlan
from tests.calibration.recording import Make, Say, maker, periods, pilot, record

FOLDER = Path("bench-results") / "calibration"
_EVERY_S = 60.0
"""So often a line is written where stderr is no terminal."""


def run(folder: Path) -> list[Figure]:
    """The committed series' figures; nothing is measured. Each report is kept in ``folder``."""
    figures = []
    if judging.NULL.exists():
        null = records.read(judging.NULL)
        answered = judging.answers(null)
        (folder / "calibration-null.txt").write_text("\n".join(judging.null_report(null, answered)) + "\n")
        found, _ = answered
        claimed = sum(bool(a.claims) for a in found)
        figures.append(
            Figure(
                "same against same that claims a change", claimed / len(found), "", 0.05, f"{claimed} of {len(found)}"
            )
        )
    for path in judging.pools():
        pool = records.read(path)
        found_in_pool = judging.designs(pool)
        report = "\n".join(judging.power_report(pool, found_in_pool)) + "\n"
        (folder / f"calibration-{path.name.partition('.')[0]}.txt").write_text(report)
        for d in found_in_pool:
            if (d.seconds, d.rounds) == (5.0, 10) and judging.doubled(pool, d.effect):
                how = f"ten quick rounds; disjoint sets: {d.seen} of {d.of} seen"
                figures.append(
                    Figure("a real doubling over 100 µs missed", 1 - d.random_seen / d.random_of, "", 0.1, how)
                )
    if not figures:
        print("  left out: no series has been recorded and packed")
    return figures


def main(words: list[str]) -> int:
    """Return what the options ask for. Gives an exit code."""
    ask = argparse.ArgumentParser(prog="python -m tests.bench calibration", description=__doc__)
    what = ask.add_mutually_exclusive_group(required=True)
    what.add_argument("--record", choices=("null", "power"))
    what.add_argument("--judge", nargs="*", type=Path, metavar="FILE", help="none named: the committed series")
    what.add_argument("--pack", type=Path, metavar="FILE")
    ask.add_argument("--into", type=Path, help=f"default {FOLDER}/null.jsonl or power.jsonl; it is gone on with")
    ask.add_argument("--minutes", type=float, help="begin nothing that would end later")
    ask.add_argument("--anyway", action="store_true", help="also where others use this host now")
    ask.add_argument("--comparisons", type=int, default=100, help="null: of each half (default 100)")
    ask.add_argument("--groups", type=int, default=120, help="power: rounds in the pool (default 120)")
    ask.add_argument("--effects", default="2", help="power: factors, as 2,4 (default 2)")
    given = ask.parse_args(words)
    try:
        if given.judge is not None:
            return _judge(given.judge or [p for p in (judging.NULL, *judging.pools()) if p.exists()])
        if given.pack is not None:
            return _pack(given.pack)
        return _record(given)
    except (WorkshopError, records.Unreadable, OSError) as error:
        print(error.sentence() if isinstance(error, WorkshopError) else error, file=sys.stderr)
        return 2


def _judge(files: list[Path]) -> int:
    if not files:
        print("nothing was recorded yet: --record null, --record power, then --pack", file=sys.stderr)
        return 2
    for path in files:
        recorded = records.read(path)
        if isinstance(recorded.plan, NullPlan):
            report = judging.null_report(recorded, judging.answers(recorded))
        else:
            report = judging.power_report(recorded, judging.designs(recorded))
        print("\n".join([f"## {path.name}", *report, ""]))
    return 0


def _pack(path: Path) -> int:
    recorded = records.read(path)
    if not path.name.startswith("null" if isinstance(recorded.plan, NullPlan) else "power"):
        raise records.Unreadable(f"{path}: a null series is called null….jsonl, a pool power….jsonl")
    into = judging.DATA / f"{path.stem}.jsonl.xz"
    if lacking := len(recorded.plan.slots()) - len(recorded.runs):
        print(f"{lacking} runs are missing: what is packed is not the whole series", file=sys.stderr)
    print(f"{into}: {records.pack(path, into) / 1024:.0f} KiB")
    return 0


def _record(given: Any) -> int:
    into: Path = given.into or FOLDER / f"{given.record}.jsonl"
    until_s = time.monotonic() + given.minutes * 60 if given.minutes else float("inf")
    cancel, line, due_s = CancelToken(), Line(), 0.0
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda got, _: cancel.cancel(f"signal {got}"))

    def say(text: str) -> None:
        nonlocal due_s
        line.write(f"  {text}")
        if not sys.stderr.isatty() and time.monotonic() >= due_s:
            print(text, file=sys.stderr, flush=True)
            due_s = time.monotonic() + _EVERY_S

    try:
        begun = into.exists() and into.stat().st_size > 0
        with maker() as make:
            plan, periods_ns = _plan(given, records.read(into) if begun else None, make, cancel, say)
            missing = record(plan, into, periods_ns, make, cancel, say, until_s, given.anyway)
    finally:
        line.close()
        cancel.close()
    rest = f"{missing} runs are missing: the same command goes on" if missing else "whole"
    print(f"{into}: {rest}", file=sys.stderr)
    return 0 if not missing else 1


def _plan(
    given: Any, before: records.Recorded | None, make: Make, cancel: CancelToken, say: Say
) -> tuple[NullPlan | PowerPlan, dict[str, int]]:
    """Return what is to be recorded; of a pool that was begun, at the rates with which it was begun."""
    effects = tuple(given.effects.split(","))
    try:
        if given.record == "null":
            return NullPlan(given.comparisons), {}
        plan = PowerPlan(given.groups, effects)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if before is not None:
        return plan, before.periods_ns
    own, felt = pilot(plan.workload, make, cancel, say)
    print(f"own: {own:.1f} stalls over 100 µs a second; a burst makes {felt:.2f} more", file=sys.stderr)
    return plan, periods(own, felt, effects)
