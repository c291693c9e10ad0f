"""Report the counters of a run whose trace was asked for and not to be had."""

from __future__ import annotations

from collections.abc import Collection

from jitter_workshop.model.evidence import FORMAT_VERSION, CountedStall, CounterReport
from jitter_workshop.model.run import Counter, Counters, Run

NO_TRACE = "without a trace it is not known"
_FROM_THE_RUN = ("threads", "interrupts", "softirqs", "steal_ns", "disturbed", "counted_s", "stalls")
_COUNTERS = "counters."


def counted_report(run: Run, counters: Counters, top: int) -> CounterReport:
    """Return the report, with the ``top`` longest stalls."""
    hot = {str(one.cpu) for one in counters.cpus}
    waits = [thread.waited_ns for thread in run.threads]
    return CounterReport(
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
        threads=run.threads,
        cpus=counters.cpus,
        cpus_counted_ns=counters.counted_ns,
        interrupts=_on(run.interrupts, hot),
        softirqs=_on(run.softirqs, hot),
        counted_s=run.counted_s,
        steal_ns=run.steal_ns,
        disturbed=run.disturbed,
        perf_event_paranoid=counters.perf_event_paranoid,
        notes=_notes(run, counters),
    )


def _on(table: dict[str, Counter] | None, cpus: Collection[str]) -> dict[str, Counter] | None:
    """Return the rows that grew on one of ``cpus``, with those CPUs' figures only."""
    if table is None:
        return None
    rows = {
        key: Counter(row.name, {cpu: count for cpu, count in row.per_cpu.items() if cpu in cpus and count})
        for key, row in table.items()
    }
    return {key: row for key, row in rows.items() if row.per_cpu}


def _notes(run: Run, counters: Counters) -> dict[str, str]:
    notes = {
        "trace": counters.why_no_trace,
        "causes": f"{NO_TRACE} who had the CPU in a stall",
        "worst.parts": "see causes",
        "lost_events": "there was no trace that could lose events",
    }
    for path, reason in run.notes.items():
        if path.startswith(_COUNTERS):
            notes[path.removeprefix(_COUNTERS)] = reason.replace(f"see {_COUNTERS}", "see ")
        elif path.partition(".")[0] in _FROM_THE_RUN:
            notes[path] = reason
    if any(thread.waited_ns is None for thread in run.threads) or not run.threads:
        notes["waited_ns"] = run.notes.get("threads.waited_ns", "this kernel does not count it")
    return notes
