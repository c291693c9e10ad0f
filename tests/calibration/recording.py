"""Making the runs: fresh children through the product's own path, one line a run, to be resumed after any end."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.noiseorder import LONGEST_PERIOD_NS, SHORTEST_PERIOD_NS
from jitter_workshop.bench.protocol import BlockDone
from jitter_workshop.bench.run_accumulator import RunAccumulator
from jitter_workshop.errors import HostError, MeasureError, UsageError
from jitter_workshop.flow.measuring.measure import measure_run
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.host.cpu.stat import read_stat
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.run import Progress, Run, RunStarted
from jitter_workshop.model.spec import RunSpec
from jitter_workshop.session.store import OpenSession, SessionStore
from jitter_workshop.stats.comparison import differences
from jitter_workshop.stats.rounds import side_of
from tests.calibration.plan import OFF, NullPlan, PowerPlan, Slot
from tests.calibration.records import Recorded, Taken, Writer, plain_sitting, read

NULL_S = 1.0
"""In one block: a run then costs about 1.45 s in all, and four blocks of the quick preset 1.85 s."""
POWER_S = 5.0
CUTS_S = (1.0, 2.5, 5.0)
NOISE = "greedy"
OVER_NS = 100_000
PILOT_RUNS = 10
"""Of each kind."""
PILOT_PERIOD_NS = 50_000_000
LEAST_FELT = 0.3
NEARLY = 1.25
QUIET_PERCENT = 5.0
"""Of one CPU: what others may use before a series begins, the busiest CPU counted."""
_LOOK_S = 3.0
_TURN_WITHIN_S = 600.0

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Made:
    """A run as the product made it, and what its blocks said."""

    run: Run
    spec: RunSpec
    blocks: tuple[BlockDone, ...]


Make = Callable[[MeasureRequest, CancelToken], Made]
"""Raise the errors of ``flow.measuring.measure``, and MeasureError for a run that is not whole."""


class _Watch:
    """Stands before a session and in a screen's place: keeps the spec and the blocks, and lets no run onto the disk."""

    def __init__(self, session: OpenSession) -> None:
        self._session = session
        self.blocks: tuple[BlockDone, ...] = ()
        self.spec: RunSpec | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def started(self, event: RunStarted) -> None:
        self.spec = event.spec

    def block_done(self, progress: Progress) -> None:
        pass

    def add_run(self, run: Run, blocks: Iterable[BlockDone], merged: object = None, trace: object = None) -> None:
        self.blocks = tuple(blocks)


@contextmanager
def maker() -> Iterator[Make]:
    """Makes runs on this host, within a session that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="calibration-") as folder:
        session = SessionStore(Path(folder)).create("calibration", "calibration")

        def make(request: MeasureRequest, cancel: CancelToken) -> Made:
            watch = _Watch(session)
            run = measure_run(request, cast(OpenSession, watch), watch, cancel)
            if not run.complete or watch.spec is None:
                raise MeasureError("the run was stopped")
            return Made(run, watch.spec, watch.blocks)

        try:
            yield make
        finally:
            session.close()


def cut(made: Made, seconds: float) -> Run:
    """The run as it would be, had so many seconds of blocks been ordered; itself where that is all of it. Of its stalls
    it lists those among the whole run's hundred longest that lie in its blocks."""
    count = max(1, round(seconds * 1e9 / made.spec.block_ns))
    if count >= made.spec.blocks:
        return made.run
    gathered = RunAccumulator(made.spec)
    for block in made.blocks[:count]:
        gathered.add(block)
    listed = tuple(s for s in made.run.stalls.worst if s.block < count)
    return replace(
        made.run,
        duration_s=gathered.duration_s,
        histograms={name: merged.summary() for name, merged in gathered.merged.items()},
        blocks=tuple(gathered.blocks),
        stalls=replace(gathered.stalls(), worst=listed),
    )


def taken(slot: Slot, made: Made, cuts_s: Sequence[float]) -> Taken:
    """A run's line."""
    run = made.run
    return Taken(
        slot=slot.number,
        at_ms=round(datetime.datetime.fromisoformat(run.started_at).timestamp() * 1000),
        load_hundredths=round(os.getloadavg()[0] * 100),
        foreign_permille=round(10 * sum(load.cpu_percent for load in run.disturbed)),
        steal_ns=run.steal_ns,
        sides={round(s * 1000): side_of(cut(made, s)) for s in cuts_s},
    )


def record(
    plan: NullPlan | PowerPlan,
    into: Path,
    periods_ns: Mapping[str, int],
    make: Make,
    cancel: CancelToken,
    say: Say,
    until_s: float = float("inf"),
    anyway: bool = False,
) -> int:
    """Make what is missing of a series, unit by unit, until it is whole, ``cancel`` is pressed, or a unit would go
    beyond ``until_s`` (CLOCK_MONOTONIC). Gives how many runs are missing still.

    Raise HostError where the host is not quiet (``anyway``: only told), UsageError where the file is of another plan,
    and what ``make`` does.
    """
    before = read(into) if into.exists() and into.stat().st_size else None
    if before is not None and (before.plan != plan or before.periods_ns != dict(periods_ns)):
        raise UsageError(f"{into} was begun with another plan", "give the same options, or another file")
    todo = missing(plan, before)
    busy = busiest_percent()
    if busy > QUIET_PERCENT and not anyway:
        raise HostError(f"others use {busy:.0f} % of a CPU here: this host is not quiet", "wait, or say --anyway")
    writer = Writer(into)
    try:
        return _Sitting(plan, writer, dict(periods_ns), busy, make, cancel, say).record(todo, until_s)
    finally:
        writer.close()


class _Sitting:
    def __init__(
        self,
        plan: NullPlan | PowerPlan,
        writer: Writer,
        periods_ns: dict[str, int],
        busy: float,
        make: Make,
        cancel: CancelToken,
        say: Say,
    ) -> None:
        self._make = make
        self._plan = plan
        self._writer = writer
        self._periods_ns = periods_ns
        self._busy = busy
        self._cancel = cancel
        self._say = say
        self._first: dict[str, Run] = {}
        self._begun = False
        self._disturbed = 0

    def record(self, todo: Sequence[Slot], until_s: float) -> int:
        began = time.monotonic()
        done = 0
        while done < len(todo) and self._cancel.reason is None:
            unit = [slot for slot in todo[done : done + 16] if slot.unit == todo[done].unit]
            each_s = (time.monotonic() - began) / done if done else self._guess_s
            if time.monotonic() + each_s * len(unit) > until_s:
                break
            for slot in unit:
                if not self._one(slot):
                    return len(todo) - done
                done += 1
                each_s = (time.monotonic() - began) / done
                left = len(todo) - done
                others = f", others on a hot CPU in {self._disturbed}" if self._disturbed else ""
                self._say(f"{done} of {len(todo)} runs, {each_s:.2f} s each, {left * each_s / 60:.0f} min left{others}")
        return len(todo) - done

    @property
    def _guess_s(self) -> float:
        return NULL_S + 1 if isinstance(self._plan, NullPlan) else POWER_S * 1.6

    def _one(self, slot: Slot) -> bool:
        """False where somebody pressed the button: then nothing is kept of the run."""
        try:
            made = self._make(self._request(slot), self._cancel)
        except MeasureError:
            if self._cancel.reason is not None:
                return False
            raise
        first = self._first.setdefault(slot.workload, made.run)
        if unlike := differences(first, made.run):
            raise MeasureError(f"run {slot.number} was not measured like the first: {'; '.join(unlike)}")
        if not self._begun:
            facts = facts_of(made, self._busy)
            self._writer.sitting(plain_sitting(self._plan, facts, self._periods_ns))
            self._begun = True
        self._disturbed += bool(made.run.disturbed)
        self._writer.run(taken(slot, made, (NULL_S,) if isinstance(self._plan, NullPlan) else CUTS_S))
        return True

    def _request(self, slot: Slot) -> MeasureRequest:
        label = f"calibration {slot.number}"
        if isinstance(self._plan, NullPlan):
            return MeasureRequest(slot.workload, label, "standard", duration_s=NULL_S, wait_s=_TURN_WITHIN_S)
        return noisy(slot.workload, label, self._periods_ns.get(slot.effect) if slot.effect != OFF else None)


def noisy(workload: str, label: str, period_ns: int | None) -> MeasureRequest:
    """A quick run beside a burst each ``period_ns``, None: without."""
    quiet = MeasureRequest(workload=cast(Any, workload), label=label, preset="quick", wait_s=_TURN_WITHIN_S)
    return quiet if period_ns is None else replace(quiet, noise=NOISE, noise_period_ns=period_ns)


def missing(plan: NullPlan | PowerPlan, before: Recorded | None) -> list[Slot]:
    """Return what is still to be made. A unit of which a run is missing is made again as a whole."""
    slots = plan.slots()
    if before is None:
        return list(slots)
    open_units = {slot.unit for slot in slots if slot.number not in before.runs}
    return [slot for slot in slots if slot.unit in open_units]


def pilot(workload: str, make: Make, cancel: CancelToken, say: Say) -> tuple[float, float]:
    """The host's own stalls over 100 µs a second, and how many more of them a burst of the noise makes: quick runs
    without it and beside it in turn. Raise HostError where the noise is not felt."""
    count, seconds = [0, 0], [0.0, 0.0]
    for number in range(2 * PILOT_RUNS):
        noise_on = number % 2
        run = make(noisy(workload, "calibration, pilot", PILOT_PERIOD_NS if noise_on else None), cancel).run
        count[noise_on] += sum(rate.count for rate in run.stalls.rates if rate.threshold_ns == OVER_NS)
        seconds[noise_on] += run.rated_s
        say(f"pilot: {number + 1} of {2 * PILOT_RUNS} runs")
    own = count[0] / seconds[0]
    felt = (count[1] / seconds[1] - own) * PILOT_PERIOD_NS / 1e9
    if felt < LEAST_FELT:
        raise HostError(
            f"a burst of the noise {NOISE} makes {felt:.2f} stalls over 100 µs here, about one was expected"
        )
    return own, felt


def periods(own_per_second: float, felt: float, effects: Sequence[str]) -> dict[str, int]:
    """Return how long from burst to burst so that the host's own rate becomes so many times itself; ``felt``: stalls a
    burst. Effects are written as factors, 2 or 1.5. Where the noise's slowest is only a little too much, it is taken:
    what an effect was is told by the pool, not by its name. Raise UsageError for one that the noise cannot make."""
    found: dict[str, int] = {}
    slowest, fastest = 1e9 / LONGEST_PERIOD_NS, 1e9 / SHORTEST_PERIOD_NS
    for effect in effects:
        try:
            bursts = (float(effect) - 1) * own_per_second / felt
        except ValueError:
            raise UsageError(f"an effect is a factor, not '{effect}'", "say 2, or 2,4") from None
        if not slowest / NEARLY <= bursts <= fastest:
            raise UsageError(
                f"×{effect} of {own_per_second:.1f} stalls a second asks for {bursts:.1f} bursts a second, and the "
                f"noise makes from {slowest:.0f} to {fastest:.0f}",
                f"the least effect here is ×{1 + slowest * felt / own_per_second:.2f}" if own_per_second else "",
            )
        found[effect] = round(1e9 / max(bursts, slowest))
    return found


def busiest_percent() -> float:
    """Return how much of the busiest CPU tasks used in the last three seconds, in which this process sleeps."""
    before = read_stat(HostRoot()).per_cpu
    time.sleep(_LOOK_S)
    stat = read_stat(HostRoot())
    used = [
        (t.user + t.nice + t.system - (b.user + b.nice + b.system)) / stat.ticks_per_second
        for cpu, t in stat.per_cpu.items()
        if (b := before.get(cpu)) is not None
    ]
    return 100 * max(used, default=0.0) / _LOOK_S


def facts_of(made: Made, busy_percent: float) -> dict[str, Any]:
    """Return what is said once a sitting: host, versions, the measured spec."""
    run, spec = made.run, made.spec
    kept = ("cpu_model", "architecture", "hypervisor", "cpus_online", "clocksource")
    return {
        "began": run.started_at,
        "host": {name: run.host[name] for name in kept if name in run.host},
        "kernel": ".".join(str(run.host.get("kernel")).split(".")[:2]),
        # As much of it as tells two boots apart.
        "boot": str(run.host.get("boot_id"))[:8],
        "python": platform.python_version(),
        "version": version("jitter-workshop"),
        "commit": _commit(),
        "busy_percent": round(busy_percent),
        "load_hundredths": round(os.getloadavg()[0] * 100),
        "clock": {"source": run.clock.source, "resolution_ns": run.clock.resolution_ns},
        "spec": {
            "blocks": spec.blocks,
            "block_ns": spec.block_ns,
            "interval_ns": spec.interval_ns,
            "threshold_ns": spec.threshold_ns,
            "sched": run.sched,
            "hot": list(spec.placement.hot),
        },
    }


def _commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=10,
    )
    return done.stdout.strip()
