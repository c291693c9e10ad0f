"""Report why a run's messages were slow: from its trace, read again, or without one from its counters."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jitter_workshop.errors import SessionError, WorkshopError
from jitter_workshop.evidence.candidates import candidates
from jitter_workshop.evidence.explain import MAIN_THREAD, ExplainedBlock, explain_block, windows_of
from jitter_workshop.evidence.summary import TOP, summarise
from jitter_workshop.flow.attribution.counter_report import counted_report
from jitter_workshop.model.evidence import CounterReport, EvidenceReport, Span
from jitter_workshop.model.run import MAIN_HISTOGRAM, Run
from jitter_workshop.model.trace import unpack_fields
from jitter_workshop.session.opened import OpenSession
from jitter_workshop.session.traces import RunTrace


class NoTrace(SessionError):
    """Report that the run has no trace; the message says why, the advice how to get one."""


class Stopped(WorkshopError):
    """Report that explaining was stopped before its end."""

    title = "Stopped"


Progress = Callable[[int, int], None]
"""Called before the first block and after each with (blocks done, blocks in all). What it raises ends the
explaining."""


def unheard(done: int, total: int) -> None:
    """No-op progress callback."""


def explain(
    session: OpenSession, run: Run, top: int = TOP, progress: Progress = unheard
) -> EvidenceReport | CounterReport:
    """Return the causes of a run's stalls; the counters, where a trace was asked for and not to be had. Raises NoTrace
    for a run with neither, SessionError for a damaged trace, and what ``progress`` raises."""
    trace = session.trace(run.id)
    if trace is None and run.counters is not None:
        return counted_report(run, run.counters, top)
    if trace is None:
        why = run.notes.get("evidence", "")
        raise NoTrace(f"run {run.id} has no evidence" + (f" ({why})" if why else ""), "measure again with --evidence")
    return report_of(run, trace, top, progress)


def report_of(run: Run, trace: RunTrace, top: int = TOP, progress: Progress = unheard) -> EvidenceReport:
    """Return the report on a trace. Raises SessionError for a trace whose events cannot be read."""
    placed = {t.name: t.cpus[0] for t in run.threads if run.placement.mode != "none" and len(t.cpus) == 1}
    main = run.histograms.get(MAIN_HISTOGRAM.get(run.workload, ""))
    whole = len(trace.blocks) == len(run.blocks)
    try:
        with _nothing_cyclic():
            return summarise(
                explained_blocks(run, trace, progress),
                run=run.id,
                threshold_ns=run.stalls.threshold_ns,
                clock=trace.info.clock,
                main_thread=_main_thread(run, trace),
                messages=main.count if main is not None and whole else None,
                unlisted=sum(block.unlisted for block in trace.blocks),
                distinct=run.stalls.count if whole else None,
                notes=_of_a_part(run, trace) if not whole else {},
                missing=trace.info.missing,
                top=top,
                placed=placed,
                lost_elsewhere=sum(block.lost_elsewhere for block in trace.blocks),
                candidates=candidates(run),
            )
    except ValueError as error:
        raise SessionError(f"the trace of run {run.id} is damaged: {error}", "measure again with --evidence") from error


def _of_a_part(run: Run, trace: RunTrace) -> dict[str, str]:
    """Return the notes on a trace that does not have all of a run's blocks."""
    traced, every = len(trace.blocks), len(run.blocks)
    why = run.notes.get("evidence", "")
    return {
        "trace": f"the trace has {traced} of the run's {every} blocks" + (f" ({why})" if why else ""),
        "distinct": "see trace",
    }


def explained_blocks(run: Run, trace: RunTrace, progress: Progress = unheard) -> Iterator[ExplainedBlock]:
    """Yield a run's blocks, each with its stalls in pieces. Raises ValueError for events that cannot be read."""
    progress(0, len(trace.blocks))
    for done, block in enumerate(trace.blocks, 1):
        span = Span(
            index=block.index,
            start=block.start_ticks,
            end=block.end_ticks,
            start_ns=block.start_ns,
            duration_ns=block.end_ns - block.start_ns,
            messages=run.blocks[block.index].count if block.index < len(run.blocks) else None,
        )
        yield explain_block(
            span,
            windows_of(block.stalls, span, run.workload),
            unpack_fields(block.events, trace.strings),
            trace.info.cpus,
            trace.tids,
            {int(cpu): count for cpu, count in block.lost.items()},
        )
        progress(done, len(trace.blocks))


@contextmanager
def _nothing_cyclic() -> Iterator[None]:
    """Stop the garbage collector: millions of small tuples come and go here, none in a cycle, and looking for cycles
    among them would take a quarter of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _main_thread(run: Run, trace: RunTrace) -> str:
    main = MAIN_THREAD.get(run.workload, "")
    return main if main in trace.tids else next(iter(trace.tids), main)
