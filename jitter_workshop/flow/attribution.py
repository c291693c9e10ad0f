"""Report why a run's messages were slow: from the run's trace or, if it has no trace, from its counters.

Reading millions of events takes tens of seconds, so the report is stored in the run's folder. If the stored report is
damaged, or was made by another version of this code, the report is computed again.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from jitter_workshop import __version__, evidence
from jitter_workshop.errors import SessionError, WorkshopError
from jitter_workshop.evidence.explain import ExplainedBlock, explain_block, nothing_cyclic, windows_of
from jitter_workshop.evidence.summary import TOP, candidates, summarise_run
from jitter_workshop.flow.measuring.knee import counted_seconds, knee_sentences
from jitter_workshop.model import evidence as types
from jitter_workshop.model.codec import from_plain, to_plain
from jitter_workshop.model.course import PLACEHOLDERS, Chapter
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.evidence import FORMAT_VERSION, BlockSpan, CountedStall, CounterReport, EvidenceReport
from jitter_workshop.model.host import mark_notes
from jitter_workshop.model.irq_rows import x86_key
from jitter_workshop.model.record import made_of
from jitter_workshop.model.run import Counter, Counters, Run, ThreadRecord
from jitter_workshop.model.spec import KINDS, helper_threads
from jitter_workshop.model.text import CELL, ID, clean
from jitter_workshop.model.trace import unpack_fields
from jitter_workshop.model.walk import Explanation, ThreadEvidence
from jitter_workshop.session import files
from jitter_workshop.session.opened import OpenSession
from jitter_workshop.session.traces import RunTrace

KEPT_FILE = "explained.json"
KEPT_STALLS = 40
"""Number of longest stalls in a kept report. If more stalls are asked for, the run is explained again."""

OWN_VIEW = (
    "This host does not mount the kernel's trace, so the agent mounted it. Only the agent sees this mount. "
    "The host's mounts are unchanged"
)
_FROM_THE_RUN = ("threads", "interrupts", "softirqs", "steal_ns", "disturbed", "counted_s", "stalls")
_COUNTERS = "counters."


class Stopped(WorkshopError):
    """Report that the explanation of a run was stopped before its end."""

    title = "Stopped"


ExplainProgress = Callable[[int, int], None]
"""The type of a function that is called before the first block and after each block, with (blocks done, blocks in all).
An exception from this function ends the explanation.
"""


def unheard(*progress: object) -> None:
    """Do nothing. This is the default progress callback."""


def explain_or_load(
    session: OpenSession, run: Run, top: int = TOP, progress: ExplainProgress = unheard, *, keep: bool = True
) -> EvidenceReport | CounterReport:
    """Return the report of :func:`explain`, from the run's folder if it is stored there. Otherwise compute the report
    and, with ``keep``, store it for the next call. Raise the errors of :func:`explain`."""
    if top > KEPT_STALLS or not session.has_trace(run.id):
        return explain(session, run, top, progress)
    path = session.blocks_file(run.id).with_name(KEPT_FILE)
    report = _read_kept(path, run.id)
    if report is None:
        found = explain(session, run, KEPT_STALLS, progress)
        if isinstance(found, CounterReport):
            return found
        report = found
        if keep and not session.read_only:
            # A report that cannot be kept is computed again the next time.
            with suppress(SessionError):
                files.write_whole(path, files.json_line({"made_by": made_by(), "report": to_plain(report)}))
    return dataclasses.replace(report, worst=report.worst[:top])


def kept_report(session: OpenSession, run: Run) -> EvidenceReport | None:
    """Return the stored report on a run's trace (see :func:`explain_or_load`), or None if there is none."""
    return _read_kept(session.blocks_file(run.id).with_name(KEPT_FILE), run.id) if session.has_trace(run.id) else None


@cache
def made_by() -> str:
    """Return the program's version and a digest of the modules that compute the report. A stored report with another
    value is out of date."""
    digest = hashlib.sha256()
    modules = Path(str(evidence.__file__)).parent.glob("*.py")
    for path in sorted([*modules, Path(__file__), Path(str(types.__file__))]):
        digest.update(path.read_bytes())
    return f"{__version__}-{digest.hexdigest()[:16]}"


def _read_kept(path: Path, run_id: str) -> EvidenceReport | None:
    try:
        value: dict[str, Any] = files.read_json(path)
        if value.get("made_by") != made_by():
            return None
        report = from_plain(EvidenceReport, value.get("report"))
    except (OSError, ValueError):
        return None
    return report if report.run == run_id else None


def explain(
    session: OpenSession, run: Run, top: int = TOP, progress: ExplainProgress = unheard
) -> EvidenceReport | CounterReport:
    """Return the report on a run's trace, or on its counters if the run has no trace. Raise SessionError if the trace
    is damaged, or if the run has neither trace nor counters. Raise the errors of ``progress``."""
    trace = session.trace(run.id)
    if trace is None and run.counters is not None:
        counted = counted_report(run, run.counters, top)
        return dataclasses.replace(counted, notes=counted.notes | mark_notes(run.mark))
    if trace is None:
        why = f" ({run.notes['evidence']})" if run.notes.get("evidence") else ""
        raise SessionError(f"run {run.id} has no evidence{why}", "measure again with --evidence")
    report = report_of_trace(run, trace, top, progress)
    return dataclasses.replace(report, notes=report.notes | mark_notes(run.mark))


def report_of_trace(run: Run, trace: RunTrace, top: int = TOP, progress: ExplainProgress = unheard) -> EvidenceReport:
    """Return the report on a run's trace. Raise SessionError if the events of the trace cannot be read."""
    placed = {t.name: t.cpus[0] for t in run.threads if run.placement.mode != "none" and len(t.cpus) == 1}
    main = run.main_summary
    whole = len(trace.blocks) == len(run.blocks)
    try:
        with nothing_cyclic():
            return summarise_run(
                explained_blocks(run, trace, progress),
                run=run.id,
                threshold_ns=run.stalls.threshold_ns,
                clock=trace.info.clock,
                main_thread=run.main_thread
                if run.main_thread in trace.tids
                else next(iter(trace.tids), run.main_thread),
                messages=main.count if main is not None and whole else None,
                unlisted=sum(block.unlisted for block in trace.blocks),
                distinct=run.stalls.count if whole else None,
                notes=({"own_view": OWN_VIEW} if trace.info.own_view else {})
                | (_of_a_part(run, trace) if not whole else {}),
                missing=trace.info.missing,
                top=top,
                placed=placed,
                lost_elsewhere=sum(block.lost_elsewhere for block in trace.blocks),
                candidates=candidates(run),
                helpers=helper_threads(run.lock),
            )
    except ValueError as error:
        raise SessionError(f"the trace of run {run.id} is damaged: {error}", "measure again with --evidence") from error


def _of_a_part(run: Run, trace: RunTrace) -> dict[str, str]:
    """Return notes for a report whose trace lacks some blocks of the run: field → reason."""
    traced, every = len(trace.blocks), len(run.blocks)
    why = run.notes.get("evidence", "")
    return {
        "trace": f"the trace has {traced} of the run's {every} blocks" + (f" ({why})" if why else ""),
        "distinct": "see trace",
    }


def explained_blocks(run: Run, trace: RunTrace, progress: ExplainProgress = unheard) -> Iterator[ExplainedBlock]:
    """Yield each block of a trace, with its stalls split by cause. Raise ValueError for events that cannot be read."""
    progress(0, len(trace.blocks))
    own = frozenset(trace.own)
    for done, block in enumerate(trace.blocks, 1):
        span = BlockSpan(
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
            own,
        )
        progress(done, len(trace.blocks))


def counted_report(run: Run, counters: Counters, top: int) -> CounterReport:
    """Return the report on a run with counters and without a trace. It lists the ``top`` longest stalls."""
    hot = {str(one.cpu) for one in counters.cpus}
    waits = [thread.waited_ns for thread in run.threads]
    return made_of(
        CounterReport,
        run,
        format_version=FORMAT_VERSION,
        run=run.id,
        evidence="counters",
        threshold_ns=run.stalls.threshold_ns,
        clock=run.clock.source,
        stalls=run.stalls.count,
        lost_events=None,
        causes=None,
        worst=tuple(
            CountedStall(s.start_ns, s.duration_ns, s.cpu, s.thread, s.messages, s.block)
            for s in sorted(run.stalls.worst, key=lambda s: (-s.duration_ns, s.start_ns))[:top]
        ),
        measured_ns=round(run.duration_s * 1e9),
        stalled_ns=round(run.stalls.stolen_ns_per_second * run.rated_s),
        waited_ns=sum(w for w in waits if w is not None) if waits and None not in waits else None,
        cpus=counters.cpus,
        cpus_counted_ns=counters.counted_ns,
        interrupts=_on(run.interrupts, hot),
        softirqs=_on(run.softirqs, hot),
        perf_event_paranoid=counters.perf_event_paranoid,
        notes=_counter_notes(run, counters),
    )


def _on(table: dict[str, Counter] | None, cpus: Collection[str]) -> dict[str, Counter] | None:
    """Return the counters that grew on any of ``cpus``, with the counts of these CPUs only. Return None if ``table`` is
    None."""
    if table is None:
        return None
    rows = {
        key: Counter(row.name, {cpu: count for cpu, count in row.per_cpu.items() if cpu in cpus and count})
        for key, row in table.items()
    }
    return {key: row for key, row in rows.items() if row.per_cpu}


def _counter_notes(run: Run, counters: Counters) -> dict[str, str]:
    notes = {
        "trace": counters.why_no_trace,
        "causes": "a run without a trace does not show which task had the CPU in a stall",
        "worst.parts": "see causes",
        "lost_events": "no trace was made, so no event could be lost",
    }
    for path, reason in run.notes.items():
        if path.startswith(_COUNTERS):
            notes[path.removeprefix(_COUNTERS)] = reason.replace(f"see {_COUNTERS}", "see ")
        elif path.partition(".")[0] in _FROM_THE_RUN:
            notes[path] = reason
    if any(thread.waited_ns is None for thread in run.threads) or not run.threads:
        notes["waited_ns"] = run.notes.get("threads.waited_ns", "this kernel does not count how long threads wait")
    return notes


_MOST_COUNTERS = 12
_NAMES = {"LOC": "local timer", "RES": "rescheduling", "CAL": "function calls", "TLB": "TLB shootdowns"}


def explain_run(
    chapter: Chapter, run: Run, curve: PercentileCurve | None = None, known: Mapping[str, str] | None = None
) -> Explanation:
    """Return the explanation of one run for a chapter's page. ``curve``: the run's main percentile curve, which shows
    where the knee is. ``known``: placeholder → value, for values of the host that the commands may name. The learner
    types these commands by hand.
    """
    cpus = used_cpus(run)
    interrupts = _busiest(run.interrupts, cpus, counted_seconds(run))
    return Explanation(
        run=run,
        threads=tuple(made_of(ThreadEvidence, one, residence=cpus_of_thread(one)) for one in run.threads),
        interrupts=interrupts,
        softirqs=_busiest(run.softirqs, cpus, counted_seconds(run)),
        knee=knee_sentences(run, interrupts, curve),
        by_hand=tuple((fill_in(b.command, run, known), fill_in(b.why, run, known)) for b in chapter.by_hand),
    )


def used_cpus(run: Run) -> CpuSet:
    """Return the CPUs on which messages were handled."""
    return CpuSet.of(cpu for thread in run.threads for cpu, count, _ in cpus_of_thread(thread) if count)


def cpus_of_thread(thread: ThreadRecord) -> tuple[tuple[int, int, float], ...]:
    """Return (CPU, messages, share 0..1) for each CPU on which the thread handled messages, the busiest CPU first."""
    counts = [(int(cpu), n) for cpu, n in thread.messages_by_cpu.items() if cpu.isdigit()]
    total = sum(n for _, n in counts)
    shares = [(cpu, n, n / total if total else 0.0) for cpu, n in counts]
    return tuple(sorted(shares, key=lambda s: (-s[1], s[0])))


def with_cpus(chapter: Chapter, hot: CpuSet, known: Mapping[str, str] | None = None) -> tuple[tuple[str, str], ...]:
    """Return (command, reason) for each command that a chapter's learner types by hand.

    Use this while the chapter has no runs. The commands name the ``hot`` CPUs. The first hot CPU is the producer's, and
    the last one is the accumulator's. ``known``: placeholder → value, for values of the host. For a value that is not
    known, such as a thread id, the command has a name in capitals.
    """
    first, last = (hot.cpus[0], hot.cpus[-1]) if hot else (None, None)
    one = first if chapter.hot_cpus == 1 else last
    values: dict[str, object] = {"cpus": _listed(hot), "cpu": one, "producer_cpu": first, "accumulator_cpu": last}
    values |= known or {}
    return tuple((_filled(b.command, values), _filled(b.why, values)) for b in chapter.by_hand)


def checks_with_cpus(
    chapter: Chapter, hot: CpuSet, run: Run | None, known: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """Return the check of each by-hand command, as text; "" for a command without a check. The check names the same
    CPUs as its command (see :func:`fill_in` and :func:`with_cpus`)."""
    if run is not None:
        return tuple(fill_in(b.check, run, known) for b in chapter.by_hand)
    named = dataclasses.replace(
        chapter, by_hand=tuple(dataclasses.replace(b, command=b.check) for b in chapter.by_hand)
    )
    return tuple(check for check, _ in with_cpus(named, hot, known))


def fill_in(text: str, run: Run, known: Mapping[str, str] | None = None) -> str:
    """Replace the placeholders in the text of a by-hand command, and return the text. The values are thread ids and
    CPUs of this run, and those in ``known`` (placeholder → value). A placeholder without a value becomes its name in
    capitals."""
    tids = {t.name: t.tid for t in run.threads}
    cpus = {t.name: r[0][0] for t in run.threads if (r := cpus_of_thread(t))}
    # Placeholders have the names of the ring's threads. Threads of other workloads can have the same roles.
    roles = KINDS[run.workload].threads if run.workload in KINDS else {}
    for by_thread in (tids, cpus):
        for name, role in roles.items():
            if name in by_thread:
                by_thread[role] = by_thread[name]
    only_tid = next(iter(tids.values()), None)
    only_cpu = next(iter(cpus.values()), None)
    values = {
        "producer_tid": tids.get("producer", only_tid),
        "accumulator_tid": tids.get("accumulator", only_tid),
        "journaller_tid": tids.get("journaller", only_tid),
        "tids": ",".join(str(t.tid) for t in run.threads) or None,
        "producer_cpu": cpus.get("producer", only_cpu),
        "accumulator_cpu": cpus.get("accumulator", only_cpu),
        "cpu": cpus.get("accumulator", only_cpu),
        "cpus": _listed(used_cpus(run)),
        **(known or {}),
    }
    return _filled(text, values)


def _listed(cpus: CpuSet | None) -> str | None:
    """Return CPUs as text, such as ``2-3,8``; None if there are none."""
    return str(cpus) if cpus else None


def _filled(text: str, values: Mapping[str, object]) -> str:
    for name in PLACEHOLDERS:
        value = values.get(name)
        text = text.replace("{" + name + "}", name.upper() if value is None else str(value))
    return text


def _busiest(
    counters: Mapping[str, Counter] | None, cpus: CpuSet, seconds: float
) -> tuple[tuple[str, int, int, float], ...]:
    """Return (name, CPU, count, count per second) of the counters that grew on ``cpus``, the largest count first."""
    if counters is None or seconds <= 0:
        return ()
    rows = [
        (_name(key, counter), int(cpu), count, count / seconds)
        for key, counter in counters.items()
        for cpu, count in counter.per_cpu.items()
        if cpu.isdigit() and int(cpu) in cpus and count > 0
    ]
    return tuple(sorted(rows, key=lambda r: (-r[2], r[0], r[1])))[:_MOST_COUNTERS]


def _name(key: str, counter: Counter) -> str:
    """Return a counter's name to show, such as ``LOC (local timer)``. The first word is the key of the row in
    /proc/interrupts or /proc/softirqs. A row with a number also shows its own name: ``11 (arch_timer: local
    timer)``."""
    name, what = clean(counter.name, ID), _NAMES.get(x86_key(key, counter.name), "")
    if what and key.isdigit():
        what = f"{name}: {what}"
    what = what or name
    return clean(key, CELL) if what in ("", key) else f"{clean(key, CELL)} ({what})"
