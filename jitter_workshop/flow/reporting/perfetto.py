"""Make Perfetto files from the traces of runs, observed programs and watches."""

from __future__ import annotations

import datetime
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from jitter_workshop.errors import HostError, SessionError, UsageError
from jitter_workshop.evidence.explain import explain_block, nothing_cyclic, windows_of
from jitter_workshop.evidence.program import explain_program
from jitter_workshop.evidence.scene import ProgramScene, Rename, Scene, as_it_is, of_block
from jitter_workshop.evidence.summary import TOP
from jitter_workshop.flow.attribution import ExplainProgress, explain_or_load, explained_blocks, unheard
from jitter_workshop.flow.programs.observing import ITSELF
from jitter_workshop.flow.reporting.anonymizer import is_private
from jitter_workshop.flow.reporting.draft import report_folders
from jitter_workshop.flow.reporting.files import free, write_files
from jitter_workshop.flow.watching.log import start_of
from jitter_workshop.model.evidence import FAULT, BlockSpan, CounterReport, EvidenceReport, ExplainedStall
from jitter_workshop.model.host import mark_in
from jitter_workshop.model.program import ProgramReport
from jitter_workshop.model.report import ReportDocument
from jitter_workshop.model.run import Run
from jitter_workshop.model.text import LABEL, REASON, clean
from jitter_workshop.model.trace import EventFields, unpack_fields
from jitter_workshop.model.watch import WatchReport
from jitter_workshop.paths import APP
from jitter_workshop.report.formats.common import ONE_RUN, Files, as_shown, name_beside, plain_name, run_names
from jitter_workshop.report.formats.perfetto import ENDING, FileClock, Writer, messages
from jitter_workshop.session.opened import OpenSession
from jitter_workshop.session.traces import RunTrace, TracedBlock
from jitter_workshop.session.watches import read_trace

_NAMING = ("task", "migration")
_AROUND = "around"


def files(document: ReportDocument, session: OpenSession, runs: Sequence[Run], name: str) -> Files:
    """Return file name → content. There is one Perfetto file for each traced run. A single file gets the name ``name``.
    If there are several files, the run's name is added to ``name``. Raise SessionError if no run has a trace. Raise
    UsageError if several files would go to standard output. Raise HostError if the package ``perfetto`` is not
    installed."""
    messages()
    runs = as_shown(document, runs)
    traced = [run for run in runs if session.has_trace(run.id)]
    if not traced:
        raise SessionError("none of these runs has a trace, but a Perfetto file needs one", "measure with --evidence")
    if len(traced) > 1 and not name:
        raise UsageError("a Perfetto file can show only one run", ONE_RUN)
    names = run_names(traced)
    found: Files = {}
    for run in traced:
        own = name if len(traced) == 1 else name_beside(name, names[run.id], ENDING)
        report = explain_or_load(session, run, TOP, keep=False)
        worst = report.worst if isinstance(report, EvidenceReport) else ()
        found[own] = perfetto_of_run(session, run, worst, rename=_ForOthers() if document.private else as_it_is)
    return found


def perfetto_of_run(
    session: OpenSession,
    run: Run,
    worst: Sequence[ExplainedStall],
    progress: ExplainProgress = unheard,
    rename: Rename = as_it_is,
) -> bytes:
    """Return the Perfetto file of a run's trace, with times of CLOCK_REALTIME in ns. The session stores the start of
    the run only to 1 ms. Raise SessionError if the trace cannot be read. Raise HostError if the package ``perfetto`` is
    not installed. Raise the errors of ``progress``.

    - ``worst``: the stalls to mark, the longest first.
    - ``rename``: replaces the names of tasks.
    """
    trace = session.trace(run.id)
    if trace is None:
        raise SessionError(f"run {run.id} has no trace, but a Perfetto file needs one", "measure again with --evidence")
    zero_ns = _realtime_ns(run.started_at)
    writer = Writer(FileClock(False, zero_ns, zero_ns), _title(f"run {clean(run.label or run.id, LABEL)}", run.mark))
    scene = Scene(rename)
    scene.mark = run.mark
    try:
        with nothing_cyclic():
            for rank, stall in enumerate(worst, 1):
                at = zero_ns + stall.at_ns
                scene.mark_worst(rank, at, stall.duration_ns, stall.thread, stall.cpu, stall.parts)
            for block in explained_blocks(run, trace, progress):
                of_block(scene, block, zero_ns)
                writer.add(scene)
            writer.add(scene)
    except ValueError as error:
        raise SessionError(f"the trace of run {run.id} is damaged: {error}", "measure again with --evidence") from error
    return writer.whole()


def of_report(
    session: OpenSession, run: Run, report: EvidenceReport | CounterReport, progress: ExplainProgress = unheard
) -> bytes:
    """Return the Perfetto file of an explained run. Raise SessionError if the run has only counters, and the errors of
    :func:`perfetto_of_run`."""
    if isinstance(report, CounterReport):
        why = clean(report.notes.get("trace", ""), REASON)
        told = f"run {run.id} has counters and no trace" + (f" ({why})" if why else "")
        raise SessionError(f"{told}, but a Perfetto file needs a trace", "measure again with --evidence")
    return perfetto_of_run(session, run, report.worst, progress)


def of_program(scene: ProgramScene, report: ProgramReport) -> bytes:
    """Return the Perfetto file of an observed program, with times of CLOCK_MONOTONIC. Raise HostError if there was no
    trace, or if the package ``perfetto`` is not installed."""
    if report.evidence != "trace":
        raise HostError(f"no Perfetto file is written, because there was no trace: {report.notes.get('trace', '')}")
    now_ns = time.monotonic_ns()
    title = _title(clean(report.target.name, LABEL), mark_in(report.notes))
    writer = Writer(FileClock(True, now_ns, time.time_ns()), title)
    writer.add(scene)
    return writer.whole()


def of_watch(folder: Path, report: WatchReport, progress: ExplainProgress = unheard) -> bytes:
    """Return the Perfetto file of a watch, with times of CLOCK_MONOTONIC. Each saved stall is marked. Stalls whose
    trace was frozen (stopped and read) also have tracks in the file. Raise SessionError if there is no frozen trace, or
    if one is damaged. Raise HostError if the package ``perfetto`` is not installed. Raise the errors of
    ``progress``."""
    zero_ns = start_of(folder)
    mark = mark_in(report.notes)
    title = _title(f"watch of {clean(report.watching, LABEL)}", mark)
    writer = Writer(FileClock(True, zero_ns, _realtime_ns(report.started_at)), title)
    scene, drawn = ProgramScene(joined=True), 0
    scene.mark = mark
    for rank, stall in enumerate(report.kept, 1):
        at = zero_ns + stall.at_ns
        scene.mark_worst(rank, at, stall.duration_ns, stall.thread, stall.cpu, stall.parts or ())
    names = sorted({stall.file for stall in report.kept if stall.file is not None})
    for done, name in enumerate(names):
        progress(done, len(names))
        trace = read_trace(folder, name)
        if trace is None:
            continue
        try:
            with nothing_cyclic():
                for block in trace.blocks:
                    if report.pid is None:
                        kept = {(one.at_ns, one.duration_ns) for one in report.kept if one.file == name}
                        _frozen_sampler(scene, trace, block, kept, zero_ns)
                    else:
                        _frozen_program(scene, trace, block)
                writer.add(scene)
        except ValueError as error:
            raise SessionError(f"the frozen trace {name} is damaged: {error}") from error
        drawn += 1
    if not drawn:
        raise SessionError("this watch has no frozen trace, but a Perfetto file needs one")
    return writer.whole()


def _title(what: str, mark: str) -> str:
    """Return the title above all tracks of a file. ``what``: what the tracks show. ``mark``: a word that says how the
    times were made, such as ``emulated``, or ""."""
    return f"{APP}: {what} ({mark})" if mark else f"{APP}: {what}"


def _frozen_sampler(
    scene: Scene, trace: RunTrace, block: TracedBlock, kept: Collection[tuple[int, int]], zero_ns: int
) -> None:
    """Add the trace of one block to ``scene``. The trace was frozen (stopped and read) after a stall of the sampler,
    the thread that ``spin`` measures. ``kept``: the stalls to show, as (start, duration) in ns."""
    length = block.end_ns - block.start_ns
    span = BlockSpan(block.index, block.start_ticks, block.end_ticks, block.start_ns, length)
    stalls = [one for one in block.stalls if (one.start_ns, one.duration_ns) in kept]
    windows = windows_of(stalls, span, "spin")
    found = explain_block(span, windows, _whole(trace, block), trace.info.cpus, trace.tids, {}, frozenset(trace.own))
    since = min(max(found.timeline.start, block.whole_from), found.timeline.end)
    of_block(scene, replace(found, timeline=replace(found.timeline, start=since)), zero_ns)


def _frozen_program(scene: ProgramScene, trace: RunTrace, block: TracedBlock) -> None:
    """Add one block of a program's frozen trace to ``scene``."""
    explain_program(
        _whole(trace, block),
        trace.info.cpus,
        dict.fromkeys(trace.tids.values(), ""),
        block.start_ticks,
        block.end_ticks,
        children=trace.children,
        itself=dict.fromkeys(trace.own, ITSELF),
        scene=scene,
        top=0,
    )


def _whole(trace: RunTrace, block: TracedBlock) -> list[EventFields]:
    return [event for event in unpack_fields(block.events, trace.strings) if event[0] >= block.whole_from]


def write_run(session: OpenSession, run: Run, report: EvidenceReport | CounterReport) -> Path:
    """Write the Perfetto file of an explained run, and return the new file's path. The file is written into the best
    folder for reports (``draft.report_folders``). Raise the errors of :func:`of_report` and of
    ``files.write_files``."""
    return _write_new(of_report(session, run, report), run.label, run.id)


def write_program(scene: ProgramScene, report: ProgramReport) -> Path:
    """Write the Perfetto file of an observed program, and return the new file's path. The file is written into the best
    folder for reports (``draft.report_folders``). Raise the errors of :func:`of_program` and of
    ``files.write_files``."""
    return _write_new(of_program(scene, report), report.target.name, str(report.target.pid or ""))


def _write_new(tracks: bytes, *names: str) -> Path:
    name = "-".join(part for part in (APP, *map(plain_name, names)) if part) + ENDING
    folder = next(iter(report_folders()), Path.cwd())
    return write_files({free(folder / name).name: tracks}, folder)[0]


def _realtime_ns(started_at: str) -> int:
    """Convert a stored time to ns of CLOCK_REALTIME. Return 0 if the text is no time or is before 1970."""
    try:
        at = datetime.datetime.fromisoformat(started_at)
        past = at.replace(tzinfo=at.tzinfo or datetime.UTC) - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    except (ValueError, OverflowError):
        return 0
    return max(past // datetime.timedelta(microseconds=1) * 1_000, 0)


class _ForOthers:
    """Replace the names of private tasks, as ``anonymizer`` does in reports."""

    def __init__(self) -> None:
        self._tasks: dict[str, str] = {}
        self._events = {FAULT}

    def __call__(self, kind: str, name: str) -> str:
        if kind not in _NAMING and kind != _AROUND:
            self._events.add(name)
            return name
        known = self._tasks.get(name)
        if known is None and is_private(name) and (kind != _AROUND or name not in self._events):
            known = self._tasks[name] = f"private task {len(self._tasks) + 1}"
        return known or name
