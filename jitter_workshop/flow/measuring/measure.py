"""Measure once: choose the placement, wait for the host's turn, run the workload, and store the run. The turn is the
right to measure on the host, which one program has at a time. Other tasks on the CPUs are noted, too."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import os
import tempfile
from collections.abc import Callable
from functools import partial

from jitter_workshop import paths
from jitter_workshop.bench import foreign_activity, runner
from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.lock import host_turn
from jitter_workshop.bench.protocol import RunRecorder
from jitter_workshop.errors import HostError, MeasureError, SessionError
from jitter_workshop.flow.host_ops.change_log import ChangeLog
from jitter_workshop.flow.host_ops.known_lines import known_lines
from jitter_workshop.flow.measuring import background_gate
from jitter_workshop.flow.measuring.isolated_set import (
    NOTE,
    NotPlaced,
    PutInside,
    in_processes,
    not_used,
    own_cpus,
    placed_by,
)
from jitter_workshop.flow.measuring.notes import with_notes
from jitter_workshop.flow.measuring.request import MeasureRequest, check_request, resolve
from jitter_workshop.flow.measuring.trace_recorder import RunEvidence, Tracer
from jitter_workshop.flow.turns.classhost import HoldsTurn
from jitter_workshop.host.cpu.topology import read_isolation, read_topology
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.summary import summarise_host
from jitter_workshop.model.codec import to_plain
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import HostSummary, Topology
from jitter_workshop.model.record import made_of
from jitter_workshop.model.run import (
    BESIDE,
    FORMAT_VERSION,
    HUNTED,
    MEANWHILE,
    READY,
    UNSTEADY,
    BurstTotal,
    Counters,
    Progress,
    Run,
    RunObserver,
    RunStarted,
)
from jitter_workshop.model.spec import RunSpec
from jitter_workshop.model.text import MOST_NAMES, clean
from jitter_workshop.session.ids import new_id
from jitter_workshop.session.store import OpenSession
from jitter_workshop.session.traces import RunTrace
from jitter_workshop.tuning.journal import applied_tunables

NOT_SAVED = "the run was measured but could not be saved"
LABEL_LIMIT = 60

_SCRATCH_BYTES = 64 << 20
"""The least free space, in bytes, in a folder for the ring's record and journal files. The files need far less."""


TakeTurn = Callable[[float, CancelToken, Callable[[str], None]], contextlib.AbstractContextManager[HoldsTurn | None]]
"""The type of a function that takes the turn of a class host. Its arguments are the longest wait in seconds, the token
that ends the wait, and the callback for the user's place in the queue. It yields a check that raises TurnOver once the
turn is over, or None if this is no class host.
"""


class TurnGuard:
    """Observe a run, and check before its first block that the turn is not over. The turn is one user's right to
    measure on a shared host.

    This program can be stopped (Ctrl-Z, a debugger, lack of memory) before it starts the measuring child. Another user
    can get the turn meanwhile; ``still`` then raises TurnOver. If the turn ends after the child has started, the
    observer ends the child.
    """

    def __init__(self, observer: RunObserver, still: HoldsTurn) -> None:
        self._observer = observer
        self._still = still

    def started(self, event: RunStarted) -> None:
        self._still()
        self._observer.started(event)

    def block_done(self, progress: Progress) -> None:
        self._observer.block_done(progress)


class Marked:
    """Observe a run, and add the host's mark to each block's curve. The mark is a word such as ``emulated``. It says
    that the times were not measured on a real machine (``model.host.mark_of``)."""

    def __init__(self, observer: RunObserver, mark: str) -> None:
        self._observer = observer
        self._mark = mark

    def started(self, event: RunStarted) -> None:
        self._observer.started(event)

    def block_done(self, progress: Progress) -> None:
        curve = dataclasses.replace(progress.curve, origin=self._mark)
        due = None if progress.due is None else dataclasses.replace(progress.due, origin=self._mark)
        self._observer.block_done(dataclasses.replace(progress, curve=curve, due=due))


class MeasurementStopped(MeasureError):
    """Report that the measuring child or its noise died after some blocks. ``run``: these blocks, with ``complete``
    False. The message tells if the run was stored."""

    def __init__(self, message: str, advice: str, run: Run) -> None:
        super().__init__(message, advice)
        self.run = run


class RunNotKept(SessionError):
    """Report that the session could not store a measured run. ``run``: this run."""

    title = "Measured, but not kept"

    def __init__(self, message: str, run: Run) -> None:
        super().__init__(message)
        self.run = run


def measure_run(
    request: MeasureRequest,
    session: OpenSession | None,
    observer: RunObserver,
    cancel: CancelToken,
    queued: Callable[[str], None] = lambda sentence: None,
    place: PutInside | None = None,
    tracer: Callable[[], Tracer] | None = None,
    turn_held: bool = False,
    turn: TakeTurn | None = None,
    around: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext,
) -> Run:
    """Measure on this host, and return the run.

    - ``session``: the session that stores the run; None to store it nowhere.
    - ``queued``: receives a sentence with the reason for a wait, and "" once the wait is over.
    - ``place``: moves the measuring child to the CPUs that this tool has isolated. If this fails, the run uses other
      CPUs, and its notes give the reason.
    - ``tracer``: a function that is called before the run if the request wants evidence. If the call fails, the run has
      no trace.
    - ``turn_held``: True if this process already has the host's turn (one program's right to measure).
    - ``turn``: a function that takes the turn on a class host, which several users share.
    - ``around``: makes a context that is entered when the turn has come, and left after the last block. An exception
      on entering ends the run before its first block.

    The calling thread must live until the call returns. If ``cancel`` stops the run after some blocks, the run is
    stored and returned with ``complete`` False.

    Raise UsageError if the request is invalid, HostError if this host cannot run it. Raise BusyError if the turn did
    not come in time, WaitStopped if ``cancel`` ended the wait. Raise ``bench.runner.Cancelled`` if ``cancel`` ended the
    run before a block was done. Raise MeasureError if nothing was measured. Raise MeasurementStopped if the child or
    the noise died after some blocks. Raise RunNotKept if the session could not store the run. MeasurementStopped and
    RunNotKept have the measured blocks in ``run``.
    """
    check_request(request)
    with contextlib.ExitStack() as turns:
        if turn is not None and not turn_held:
            # Take the turn first: only its holder may use the hot CPUs of a class host.
            still = turns.enter_context(turn(request.wait_s, cancel, queued))
            if still is not None:
                observer, turn_held = TurnGuard(observer, still), True
        ChangeLog(session).begin()
        root = HostRoot()
        topology = read_topology(root)
        places = ChosenCpus(request, root, topology, place)
        evidence = RunEvidence(request.evidence, tracer, topology)
        with contextlib.nullcontext() if turn_held else host_turn(request.wait_s, cancel, queued), around():
            summary = summarise_host(root, topology)
            observer = Marked(observer, summary.mark) if summary.mark else observer
            applied = applied_tunables(root, in_effect=True)
            before = foreign_activity.process_times()
            try:
                with background_gate.HERE.measuring():
                    result = places.run(observer, cancel, evidence.recorder)
            finally:
                evidence.end()
            whole = places.ended_whole(result)
            activity = foreign_activity.activity_since(before, set(result.spec.placement.cpus), whole=whole)
            changed = changed_meanwhile(applied, applied_tunables(root, in_effect=True))
        run = _as_run(request, result, summary, activity, applied, evidence.counters())
        notes = run.notes | evidence.notes()
        if request.hunted:
            notes[HUNTED] = BESIDE
        if changed:
            notes[UNSTEADY] = changed
        if places.why_outside:
            notes[NOTE] = not_used(places.why_outside)
        run = dataclasses.replace(run, notes=notes)
        not_kept = _keep(session, run, result, evidence.trace())
        if result.failure is not None:
            where = not_kept or (f"the finished blocks are kept as run {run.id}" if session is not None else "")
            message = f"{result.failure.message} after {len(run.blocks)} of {result.spec.blocks} blocks"
            raise MeasurementStopped(message, where or result.failure.advice, run)
        if not_kept:
            raise RunNotKept(not_kept, run)
        return run


def changed_meanwhile(before: tuple[dict[str, str], ...], after: tuple[dict[str, str], ...]) -> str:
    """Return a note on the settings that this tool changed during a run. Return "" if this tool changed no setting.
    ``before``, ``after``: the settings that this tool had applied at the start and at the end of the run."""
    stood, stands = ({one["id"]: one["value"] for one in some} for some in (before, after))
    ids = sorted(i for i in stood.keys() | stands.keys() if stood.get(i) != stands.get(i))
    said = f"changed {MEANWHILE}: its blocks were not all measured with the same settings"
    return f"{', '.join(ids[:MOST_NAMES])} {said}" if ids else ""


class ChosenCpus:
    """Choose the CPUs of a run. These are the CPUs of the isolated set if the child can be moved into the set.
    Otherwise they are other CPUs. ``why_outside``: the reason why the set is not used, or "". The constructor raises
    the errors of ``resolve``."""

    def __init__(self, request: MeasureRequest, root: HostRoot, topology: Topology, place: PutInside | None) -> None:
        self.why_outside = ""
        self._place = place
        self._root = root
        isolated, lines = read_isolation(root).isolated, known_lines(root, topology)
        self._resolve = partial(resolve, request, topology, isolated, _scratch_dir(), lines=lines)
        self._inside = self._resolve_inside(own_cpus(root))
        self._outside = self._resolve_outside() if self._inside is None else None

    def run(
        self, observer: RunObserver, cancel: CancelToken, recorder: Callable[[RunSpec], RunRecorder | None]
    ) -> runner.RunResult:
        """Measure on the chosen CPUs, and return the result. Raise HostError if the run cannot be placed, and the
        errors of ``bench.runner.measure_spec``."""
        if self._inside is not None and self._place is not None:
            try:
                placed = placed_by(self._place, self._inside.placement)
                return runner.measure_spec(
                    self._inside, observer, cancel, placed=placed, recorder=recorder(self._inside)
                )
            except NotPlaced as refusal:
                self.why_outside = refusal.sentence()
        outside = self._outside or self._resolve_outside()
        return runner.measure_spec(outside, observer, cancel, recorder=recorder(outside))

    def ended_whole(self, result: runner.RunResult) -> bool:
        """Return False if a measured thread was in a process of its own, and this process was killed."""
        apart = self._inside is not None and self._inside.placement.processes > 1
        return not apart or (result.complete and not self.why_outside)

    def _resolve_inside(self, cpus: CpuSet) -> RunSpec | None:
        if not cpus:
            return None
        try:
            if self._place is None:
                raise HostError("no agent can put the measuring process on these CPUs")
            spec = self._resolve(within=cpus)
            return dataclasses.replace(spec, placement=in_processes(self._root, spec.placement))
        except HostError as refusal:
            self.why_outside = refusal.sentence()
            return None

    def _resolve_outside(self) -> RunSpec:
        try:
            return self._resolve()
        except HostError as error:
            if not self.why_outside:
                raise
            raise HostError(error.message, not_used(self.why_outside)) from error


def _scratch_dir() -> str:
    """Return the folder for the ring's files. This is the cache folder or, if it is unusable or full, the system's
    folder for temporary files (TMPDIR). Raise HostError if neither folder can be written."""
    folder = paths.cache_dir()
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        room = os.statvfs(folder)
        if os.access(folder, os.W_OK | os.X_OK) and room.f_bavail * room.f_frsize >= _SCRATCH_BYTES:
            return str(folder)
    try:
        return tempfile.gettempdir()
    except OSError as error:
        raise HostError(f"no folder for temporary files can be written, not even {folder}", "set TMPDIR") from error


def _keep(session: OpenSession | None, run: Run, result: runner.RunResult, trace: RunTrace | None) -> str:
    """Store the run in the session. Return "" if the run was stored, else a sentence with the reason why it was not."""
    if session is None:
        return ""
    gathered = result.gathered
    try:
        session.add_run(run, gathered.raw, {name: m.histogram for name, m in gathered.merged.items()}, trace)
    except SessionError as error:
        return f"{NOT_SAVED}: {error.sentence()}"
    return ""


def _as_run(
    request: MeasureRequest,
    result: runner.RunResult,
    host: HostSummary,
    activity: foreign_activity.ForeignActivity,
    applied: tuple[dict[str, str], ...],
    counters: Counters | None = None,
) -> Run:
    spec, gathered, bursts = result.spec, result.gathered, result.bursts
    steal_ns = gathered.sum_of("steal_ns")
    run = made_of(
        Run,
        spec,
        format_version=FORMAT_VERSION,
        id=new_id(),
        label=clean(request.label, LABEL_LIMIT),
        started_at=_iso(result.started_at_s),
        duration_s=gathered.duration_s,
        sched=result.ready.sched,
        clock=result.ready.clock,
        histograms={name: merged.summary() for name, merged in gathered.merged.items()},
        blocks=tuple(gathered.blocks),
        stalls=gathered.stalls(),
        blocked_publishes=gathered.sum_of("blocked_publishes"),
        negative_deltas=gathered.sum_of("negative_deltas") or 0,
        threads=gathered.threads(result.ready.tids),
        interrupts=gathered.interrupts,
        softirqs=gathered.softirqs,
        steal_ns=steal_ns,
        steal_resolution_ns=None if steal_ns is None else 1_000_000_000 // os.sysconf("SC_CLK_TCK"),
        core_hz=gathered.core_hz(),
        throttled_periods=gathered.sum_of("throttled_periods"),
        mlocked=result.ready.mlocked,
        complete=result.complete,
        disturbed=activity.loads,
        host=to_plain(host),
        applied=applied,
        notes={},
        counted_s=gathered.counted_s,
        noise_bursts=BurstTotal(bursts.count, bursts.total_ns or None) if bursts is not None else None,
        buckets=gathered.buckets,
        sampled_s=gathered.sampled_s,
        pause=spec.pause if spec.workload == "spin" and spec.duty < 100 else None,
        missed_wakeups=gathered.sum_of("missed_wakeups"),
        counters=counters,
        proof=request.proof,
        settle_s=request.settle_s or None,
        memory=None if spec.memory == "none" else spec.memory,
        lock=None if spec.lock == "none" else spec.lock,
        cpu_hz=gathered.cpu_hz(),
        idle_entries=gathered.sum_of("idle_entries"),
        idle_exit_us=gathered.sum_of("idle_exit_us"),
        first_write_ns=gathered.first_write_ns(),
        huge_pages=gathered.sum_of("huge_pages"),
        transit_from=READY if spec.workload == "ring" else None,
    )
    return with_notes(run, spec, result, host, activity.unnamed_percent, request.hunted)


def _iso(unix_s: float) -> str:
    moment = datetime.datetime.fromtimestamp(unix_s, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
