"""The data: one line of JSON a run, with a line before those that were made in one sitting. Whole numbers only.

A line of a sitting: ``{"sitting": {…}}``. A line of a run: ``{"n": slot, "at": Unix time in ms, "load": load average
in hundredths, "foreign": what others took of the hot CPUs, in tenths of a percent of one, "steal": ns or null,
"sides": {seconds in ms: side}}``; a side is ``[measured ns, threshold ns, clock's step ns, worst ns, [[threshold,
count, stolen ns], …], {percentile: [ns, stalls beyond]}]``.
"""

from __future__ import annotations

import json
import lzma
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jitter_workshop.model.run import StallRate
from jitter_workshop.model.verdict import Side
from tests.calibration.plan import NullPlan, PowerPlan

_LARGEST = 64 << 20


class Unreadable(ValueError):
    """The file is no record of a calibration; says which line."""


@dataclass(frozen=True, slots=True)
class Taken:
    """One run. ``sides`` by the length in ms that they are of. ``foreign_permille``: others on the hot CPUs."""

    slot: int
    at_ms: int
    load_hundredths: int
    foreign_permille: int
    steal_ns: int | None
    sides: dict[int, Side]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A series: ``plan`` and ``periods_ns`` (by effect: from burst to burst of the noise) are those of its first
    sitting, and all others have the same. ``runs`` by slot; of a slot that was made ``again`` the later. ``torn``: the
    last line was cut off."""

    plan: NullPlan | PowerPlan
    periods_ns: dict[str, int]
    sittings: tuple[dict[str, Any], ...]
    runs: dict[int, Taken]
    torn: bool = False
    again: int = 0


def plain_sitting(plan: NullPlan | PowerPlan, facts: dict[str, Any], periods_ns: dict[str, int]) -> dict[str, Any]:
    """Return what a sitting's line says."""
    if isinstance(plan, NullPlan):
        described: dict[str, Any] = {"series": "null", "comparisons": plan.comparisons, "rounds": plan.rounds}
    else:
        described = {"series": "power", "groups": plan.groups, "workload": plan.workload, "periods_ns": periods_ns}
    return {**described, **facts}


def plain_side(side: Side) -> list[Any]:
    """A side as whole numbers; ``side_from`` gives the very same one."""
    length_s = side.duration_s
    stalls = [[r.threshold_ns, r.count, round(r.stolen_ns_per_second * length_s)] for r in side.stalls]
    known = {p: [v, side.beyond[p]] if v is not None else None for p, v in side.percentiles.items()}
    return [round(length_s * 1e9), side.threshold_ns, side.resolution_ns, side.worst_ns, stalls, known]


def side_from(plain: list[Any], run: str) -> Side:
    """Raise ValueError or TypeError for what is no side."""
    length_ns, threshold, step, worst, stalls, known = plain
    length_s = length_ns / 1e9
    rates = tuple(StallRate(t, count, count / length_s, stolen / length_s) for t, count, stolen in stalls)
    return Side(
        run=run,
        duration_s=length_s,
        threshold_ns=threshold,
        stalls=rates,
        stolen_ns_per_second=next((r.stolen_ns_per_second for r in rates if r.threshold_ns == threshold), 0.0),
        percentiles={p: both[0] if both else None for p, both in known.items()},
        beyond={p: both[1] for p, both in known.items() if both},
        worst_ns=worst,
        resolution_ns=step,
    )


def line_of(taken: Taken) -> bytes:
    """A run's line, with its end."""
    plain = {
        "n": taken.slot,
        "at": taken.at_ms,
        "load": taken.load_hundredths,
        "foreign": taken.foreign_permille,
        "steal": taken.steal_ns,
        "sides": {str(ms): plain_side(side) for ms, side in taken.sides.items()},
    }
    return json.dumps(plain, separators=(",", ":")).encode() + b"\n"


class Writer:
    """Appends lines, each on the disk before the next run begins. A part of a line that a kill left behind is cut off
    first."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a+b")
        self._file.seek(0)
        whole = self._file.read()
        self._file.truncate(whole.rfind(b"\n") + 1)

    def sitting(self, plain: dict[str, Any]) -> None:
        self._write(json.dumps({"sitting": plain}, separators=(",", ":")).encode() + b"\n")

    def run(self, taken: Taken) -> None:
        self._write(line_of(taken))

    def close(self) -> None:
        self._file.close()

    def _write(self, line: bytes) -> None:
        self._file.write(line)
        self._file.flush()
        os.fsync(self._file.fileno())


def read(path: Path) -> Recorded:
    """A file as it was written, or packed (``.xz``); a cut last line is left out and said. Raise Unreadable for a
    damaged file, OSError if it cannot be opened."""
    data = path.read_bytes()
    if path.suffix == ".xz":
        unpack = lzma.LZMADecompressor()
        try:
            data = unpack.decompress(data, _LARGEST)
        except lzma.LZMAError as error:
            raise Unreadable(f"{path.name}: {error}") from error
        if not unpack.eof:
            raise Unreadable(f"{path.name}: not whole, or larger than {_LARGEST >> 20} MiB")
    *lines, rest = data.split(b"\n")
    return _recorded(path.name, lines, bool(rest))


def pack(recorded: Path, into: Path) -> int:
    """The same lines, each slot's last one only and no torn one, compressed. Gives the bytes. Raise the errors of
    ``read``."""
    found = read(recorded)
    lines = [json.dumps({"sitting": s}, separators=(",", ":")).encode() + b"\n" for s in found.sittings]
    packed = lzma.compress(b"".join([*lines, *(line_of(found.runs[n]) for n in sorted(found.runs))]), preset=9)
    into.parent.mkdir(parents=True, exist_ok=True)
    into.write_bytes(packed)
    return len(packed)


def _recorded(name: str, lines: Sequence[bytes], torn: bool) -> Recorded:
    sittings: list[dict[str, Any]] = []
    runs: dict[int, Taken] = {}
    again = 0
    for number, line in enumerate(lines, 1):
        try:
            plain = json.loads(line)
            if "sitting" in plain:
                sittings.append(plain["sitting"])
                _same_plan(sittings)
                continue
            if not sittings:
                raise ValueError("a run before any sitting")
            taken = _taken(plain)
        except (ValueError, TypeError, KeyError, AttributeError, ZeroDivisionError) as error:
            raise Unreadable(f"{name}, line {number}: {error}") from error
        again += taken.slot in runs
        runs[taken.slot] = taken
    if not sittings:
        raise Unreadable(f"{name}: no sitting in it")
    plan, periods = _plan(sittings[0])
    if strays := runs.keys() - {slot.number for slot in plan.slots()}:
        raise Unreadable(f"{name}: run {min(strays)} was not planned")
    return Recorded(plan, periods, tuple(sittings), runs, torn, again)


def _same_plan(sittings: list[dict[str, Any]]) -> None:
    if _plan(sittings[-1]) != _plan(sittings[0]):
        raise ValueError("this sitting has another plan than the first")


def _plan(sitting: dict[str, Any]) -> tuple[NullPlan | PowerPlan, dict[str, int]]:
    if sitting["series"] == "null":
        return NullPlan(sitting["comparisons"], sitting["rounds"]), {}
    if sitting["series"] != "power":
        raise ValueError("a series is null or power")
    periods = {str(name): int(ns) for name, ns in sitting["periods_ns"].items()}
    return PowerPlan(sitting["groups"], tuple(periods), sitting["workload"]), periods


def _taken(plain: dict[str, Any]) -> Taken:
    run = f"{plain['n']:05d}"
    return Taken(
        plain["n"],
        plain["at"],
        plain["load"],
        plain["foreign"],
        plain["steal"],
        {int(ms): side_from(side, run) for ms, side in plain["sides"].items()},
    )
