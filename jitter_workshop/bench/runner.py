"""Control a run from the parent's side: start the child, ask for each block, and add the blocks up.

During a block the parent sleeps in one ``poll`` without a timeout, so that it disturbs nothing. The parent wakes up
during a block only to make a planned stall. The parent and its observers work between blocks, while the child's
measured threads exchange unrecorded messages.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from jitter_workshop.bench import launch, protocol
from jitter_workshop.bench.cancel import CancelToken, stop_this_process
from jitter_workshop.bench.noisechild import NoiseChild, read_log
from jitter_workshop.bench.noiseorder import known, order_for
from jitter_workshop.bench.protocol import RunRecorder
from jitter_workshop.bench.run_accumulator import RunAccumulator
from jitter_workshop.bench.stall import OrderedStall
from jitter_workshop.errors import MeasureError, WorkshopError
from jitter_workshop.host.power import read_thermal
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.noise import Bursts
from jitter_workshop.model.noise import noise as noise_called
from jitter_workshop.model.run import INTENDED, Progress, RunObserver, RunStarted
from jitter_workshop.model.spec import RunSpec, between_blocks_s, busy_threads, clock_seconds

M = TypeVar("M")

PAUSE_S = 0.040
"""The least pause between blocks, with and without a screen, so that both measure alike."""

_READY_WITHIN_S = 60.0
_NOISE_OUTLASTS_S = 1800.0

_TOO_SLOW = 4
_LEAST_LIMIT_S = 45.0
_LEAST_BLOCKS = 5
"""A preset's run may take ``_TOO_SLOW`` times its expected time, and at least ``_LEAST_LIMIT_S``. The run never has
fewer than ``_LEAST_BLOCKS`` blocks. Between two blocks parent and child work for 30 ms on a real processor. On an
emulated one this work takes seconds, because the hot threads go on spinning and take most of its time."""

Placed = Callable[[int, Sequence[int]], None]
"""A function that puts the child on isolated CPUs. Its arguments are the child's process id, and the ids of the threads
to put there. No thread ids () mean the whole process."""

HeatReader = Callable[[], tuple[float | None, int | None]]
"""The function that returns the hottest zone in °C and the throttle events so far; None where the host does not show
them."""


class Cancelled(MeasureError):
    """Report that the run was stopped before its first block was done. ``reason``: the reason that the token gives."""

    def __init__(self, reason: str) -> None:
        super().__init__("stopped before the first block was done; nothing was kept")
        self.reason = reason


@dataclass(frozen=True, slots=True)
class RunResult:
    """Hold the result of a run.

    - ``ready``: the child's facts.
    - ``started_at_s``: Unix time.
    - ``gathered``: the finished blocks.
    - ``failure``: the error if the child or its noise ended too early; else None.
    - ``cancelled``: the reason if the run was stopped; else None.
    - ``bursts``: the noise's log; None if there is no log. If the noise failed to give its log,
      ``notes["noise_bursts"]`` has the reason.
    """

    spec: RunSpec
    ready: protocol.Ready
    started_at_s: float
    gathered: RunAccumulator
    notes: dict[str, str]
    failure: MeasureError | None = None
    cancelled: str | None = None
    bursts: Bursts | None = None

    @property
    def complete(self) -> bool:
        return self.failure is None and self.cancelled is None


def measure_spec(
    spec: RunSpec,
    observer: RunObserver,
    cancel: CancelToken,
    *,
    command: Sequence[str] | None = None,
    sensor: HeatReader | None = None,
    pause_s: float = PAUSE_S,
    placed: Placed | None = None,
    recorder: RunRecorder | None = None,
) -> RunResult:
    """Measure ``spec``, and return the result.

    The calling thread must not end before this function returns (see ``launch``).

    - ``command``: the command line of another child with the same protocol.
    - ``sensor``: a function that reads temperature and throttling.
    - ``placed``: a function that moves the child to isolated CPUs before its threads are bound. If ``Placement.inside``
      names threads, it moves only these threads, or their process. If it raises an exception, the run ends.
    - ``recorder``: an object that records the host's other activity.

    Raise Cancelled or MeasureError if the run finished no block. Raise UsageError if the noise is unknown. Raise
    HostError if this host cannot make the noise. The child is always ended and reaped.
    """
    if spec.noise is not None:
        known(spec.noise)
    if cancel.reason is not None:
        raise Cancelled(cancel.reason)
    with _noise(spec) as noise, launch.Child(command or launch.command(launch.WORKER)) as child:
        if placed is not None and not spec.placement.inside:
            placed(child.pid, ())
        return RunController(
            spec, observer, cancel, child, noise, sensor or _host_sensor, pause_s, recorder, placed
        ).run()


def expected_seconds(spec: RunSpec) -> float:
    """Estimate the seconds that a run takes, with calibration, pauses and settling."""
    measured_s = spec.blocks * spec.block_length_ns / 1e9
    between_s = between_blocks_s(spec.workload, traced=spec.traced, noisy=spec.noise is not None)
    return spec.settle_s + clock_seconds(measured_s, spec.blocks, between_s, traced=spec.traced)


def fitting_blocks(spec: RunSpec, done: int, elapsed_s: float) -> int:
    """Return the number of blocks that a run should have, after ``done`` blocks took ``elapsed_s`` seconds.

    The spec gives the number. If the run follows a preset and would take far longer than intended, the number is
    smaller. Without a preset, the number never changes.
    """
    limit_s = max(_LEAST_LIMIT_S, _TOO_SLOW * expected_seconds(spec))
    # The first block includes the work that is done only once.
    if spec.preset is None or elapsed_s < limit_s / 4 or elapsed_s / done * spec.blocks <= limit_s:
        return spec.blocks
    # A stall happens in the middle of a run, so that many blocks are needed.
    least = max(_LEAST_BLOCKS, done, spec.blocks // 2 + 1 if spec.noise == "stall" else 0)
    return min(spec.blocks, max(least, int(limit_s / (elapsed_s / done))))


@dataclass(slots=True)
class RunController:
    """Control one run with its child. ``suspended_s``: the seconds for which the run was suspended. ``repeated``: the
    number of blocks that were measured again because a suspension interrupted them.
    """

    spec: RunSpec
    observer: RunObserver
    cancel: CancelToken
    child: launch.Child
    noise: NoiseChild | None
    sensor: HeatReader
    pause_s: float
    recorder: RunRecorder | None
    placed: Placed | None = None
    gathered: RunAccumulator = field(init=False)
    blocks_wanted: int = field(init=False)
    stall: OrderedStall | None = field(init=False)
    repeated: int = 0
    suspended_s: float = 0.0

    def __post_init__(self) -> None:
        self.gathered = RunAccumulator(self.spec)
        self.blocks_wanted = self.spec.blocks
        self.stall = OrderedStall(self.spec) if self.spec.noise == "stall" else None

    def run(self) -> RunResult:
        self.child.send(protocol.message_line("spec", self.spec))
        ready = self._ready()
        if self.noise is not None:
            self.noise.aim(ready.tids)
        if ready.threshold_ns is not None:
            self.spec = replace(self.spec, threshold_ns=ready.threshold_ns)
            self.gathered = RunAccumulator(self.spec)
        started = RunStarted(self.spec, ready.clock, ready.tids, ready.mlocked, ready.notes)
        started_at_s = time.time()
        failure: MeasureError | None = None
        inside: Bursts | None = None
        self.observer.started(started)
        try:
            self._told(lambda recorder: recorder.begin(self.child.pid, ready.tids, ready.clock))
            self._blocks()
            inside = self._log_inside()
            self.child.end(protocol.message_line("end"))
        except Cancelled:
            self.child.end(patience_s=0.0)
            if not self.gathered.blocks:
                raise
        except MeasureError as error:
            if not self.gathered.blocks:
                raise
            failure = error
        notes = {**ready.notes, **self.gathered.notes}
        if self.repeated:
            times = "once" if self.repeated == 1 else f"{self.repeated} times"
            notes["suspended"] = (
                f"the run was suspended {times}; each block that a suspension interrupted was measured again"
            )
        if self.blocks_wanted < self.spec.blocks:
            slow = (
                f"the run has only {self.blocks_wanted} of {self.spec.blocks} blocks: this host is slow and needs "
                "far more time between two blocks than for a block"
            )
            notes["blocks"] = "; ".join(filter(None, (notes.get("blocks"), slow)))
        if self.stall is not None:
            notes["noise"] = self.stall.note(self.gathered.raw[0].start_ns)
        try:
            bursts = inside or self._log_beside()
        except MeasureError as error:
            bursts = None
            notes["noise_bursts"] = error.sentence()
        return RunResult(
            spec=self.spec,
            ready=ready,
            started_at_s=started_at_s,
            gathered=self.gathered,
            notes=notes,
            failure=failure,
            cancelled=self.cancel.reason if failure is None and not self._finished else None,
            bursts=bursts,
        )

    def _log_inside(self) -> Bursts | None:
        """Return the log of a noise that the measuring process makes within itself. Return None if the run has no such
        noise."""
        kind = self.spec.noise
        if kind is None or noise_called(kind).by != "inside":
            return None
        self.child.send(protocol.message_line("noise"))
        log = self._receive(self.child.wait(self.cancel, _READY_WITHIN_S), "noise", protocol.NoiseLog)
        return read_log(kind, kind, log)

    def _log_beside(self) -> Bursts | None:
        """Return the log of a planned stall, or of a noise with a process of its own. Return None if the run has
        neither."""
        if self.stall is not None:
            return self.stall.bursts(self.gathered.raw)
        return self.noise.finish() if self.noise is not None else None

    @property
    def _finished(self) -> bool:
        return len(self.gathered.blocks) >= self.blocks_wanted

    def _ready(self) -> protocol.Ready:
        if self.spec.placement.inside:
            asked = self._receive(self._next(), "inside", protocol.MoveInside)
            if self.placed is None:
                raise MeasureError("no agent is connected that can move a measured thread to the isolated CPUs")
            if self.spec.placement.processes > 1:
                for pid in asked.tids:
                    self.placed(pid, ())
            else:
                self.placed(self.child.pid, asked.tids)
            self.child.send(protocol.message_line("placed"))
        return self._receive(self._next(), "ready", protocol.Ready)

    def _next(self) -> launch.ChildEvent:
        """Return the child's next event before the first block. A request to suspend is carried out first."""
        while (event := self.child.wait(self.cancel, _READY_WITHIN_S)).kind == "suspend":
            self._suspend()
        return event

    def _blocks(self) -> None:
        began = time.monotonic()
        _, throttled = self.sensor()
        while not self._finished:
            done = self._block()
            if done is None:
                continue
            received = time.monotonic()
            celsius, now_throttled = self.sensor()
            grown = None if throttled is None or now_throttled is None else now_throttled - throttled
            throttled = now_throttled
            try:
                headline = self.gathered.add(done, celsius, grown)
            except ValueError as error:
                raise MeasureError(f"the measuring process sent a block that cannot be read: {error}") from error
            count, elapsed_s = len(self.gathered.blocks), time.monotonic() - began - self.suspended_s
            total = self.blocks_wanted = min(self.blocks_wanted, fitting_blocks(self.spec, count, elapsed_s))
            main = self.gathered.merged[self.gathered.main_name]
            left_s = elapsed_s / count * (total - count)
            curve = main.curve("this run")
            due = self.gathered.merged.get(INTENDED)
            on_schedule = self.spec.pacing == "schedule"
            # Without a schedule both have as many messages until one was not sent, and then they are the same.
            apart = due is not None and (on_schedule or due.histogram.total_count > main.histogram.total_count)
            now = Progress(
                headline,
                count,
                total,
                curve,
                left_s,
                self.spec.threshold_ns,
                due=None if due is None else due.curve("this run") if apart else curve,
                rates=self.gathered.stalls().rates,
            )
            self.observer.block_done(now)
            if not self._finished:
                self._pause(received + self.pause_s)

    def _told(self, tell: Callable[[RunRecorder], None]) -> None:
        """Call ``tell`` with the run's recorder, if there is one. Raise MeasureError if it raises a WorkshopError."""
        if self.recorder is None:
            return
        try:
            tell(self.recorder)
        except WorkshopError as error:
            raise MeasureError(f"the trace of this run could not be read: {error.message}", error.advice) from error

    def _block(self) -> protocol.BlockDone | None:
        """Measure one block and return it. Return None if the block has to be measured again.

        A block is measured again if the run was suspended, or if the planned stall did not fall into the block.
        """
        self._told(lambda recorder: recorder.before_block())
        done = self._measured()
        self._told(lambda recorder: recorder.after_block(done))
        return done

    def _measured(self) -> protocol.BlockDone | None:
        stall = self.stall if self.stall and self.stall.due(len(self.gathered.blocks)) else None
        self.child.send(protocol.message_line("go"))
        sent_ns = time.monotonic_ns()
        until_stall_s = stall.begins_after_s() if stall else None
        spoiled = False
        while True:
            event = self.child.wait(self.cancel, until_stall_s)
            if stall and event.kind == "timeout":
                stall.happen(self.child)
                until_stall_s = None
                continue
            if event.kind == "suspend":
                self._suspend()
                spoiled, until_stall_s = True, None
                continue
            done = self._receive(event, "block", protocol.BlockDone)
            self._hear_noise()
            if spoiled:
                self.repeated += 1
                return None
            if stall and not stall.hit(done):
                stall.learn(sent_ns, done)
                return None
            if self.stall:
                self.stall.learn(sent_ns, done)
            return done

    def _hear_noise(self) -> None:
        """Raise MeasureError if the noise process has ended. The present block is then invalid, but all earlier blocks
        are valid."""
        if self.noise is not None and (gone := self.noise.gone()) is not None:
            raise gone

    def _receive(self, event: launch.ChildEvent, wanted: str, message: type[M]) -> M:
        """Return the message in ``event``. Its kind must be ``wanted``.

        Raise Cancelled if the event is a stop. Raise MeasureError for any other event.
        """
        if event.kind == "cancel":
            raise Cancelled(self.cancel.reason or "cancelled")
        if event.kind == "timeout":
            raise MeasureError(f"the measuring process was not ready after {_READY_WITHIN_S:.0f} s")
        return self.child.message(event, wanted, message)

    def _pause(self, until: float) -> None:
        """Wait until the time ``until`` (by ``time.monotonic``). Raise Cancelled if the run is to stop.

        If a suspension is requested during this wait, it begins in the next block.
        """
        left_s = until - time.monotonic()
        if self.cancel.wait(left_s):
            raise Cancelled(self.cancel.reason or "cancelled")

    def _suspend(self) -> None:
        """Freeze the children, then this process. All of them go on when SIGCONT comes."""
        since = time.monotonic()
        everyone = [child for child in (self.child, self.noise) if child is not None]
        for child in everyone:
            child.stop()
        stop_this_process()
        for child in everyone:
            child.resume()
        self.suspended_s += time.monotonic() - since


def _host_sensor() -> tuple[float | None, int | None]:
    thermal = read_thermal(HostRoot())
    return thermal.hottest_celsius, thermal.throttle_events


@contextmanager
def _noise(spec: RunSpec) -> Iterator[NoiseChild | None]:
    """Run the noise process of a run during the context. Yield None if the run needs no such process.

    Raise HostError if this host cannot make the noise.
    """
    if spec.noise is None or noise_called(spec.noise).by == "parent":
        yield None
        return
    # Bounded even if everything else fails; on an emulated machine a quick run takes twenty times as long.
    bound_s = math.ceil(expected_seconds(spec) * 2 + _NOISE_OUTLASTS_S)
    order = order_for(
        spec.noise,
        spec.placement,
        os.sched_getaffinity(0),
        bound_s,
        period_ns=spec.noise_period_ns,
        busy=busy_threads(spec.workload),
    )
    if noise_called(spec.noise).by == "inside":
        yield None
        return
    with NoiseChild(order) as noise:
        yield noise
