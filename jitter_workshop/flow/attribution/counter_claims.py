"""Describe a run without a trace by its counters, and claim no more than they show."""

from __future__ import annotations

from collections.abc import Mapping

from jitter_workshop.flow.measuring.knee import counted_seconds, knee_sentences
from jitter_workshop.model.course import PLACEHOLDERS, Chapter
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.run import Counter, Run, ThreadRecord
from jitter_workshop.model.spec import KINDS
from jitter_workshop.model.text import called, clean
from jitter_workshop.model.walk import Explanation, ThreadEvidence

_MOST_COUNTERS = 12
_NAMES = {"LOC": "local timer", "RES": "rescheduling", "CAL": "function calls", "TLB": "TLB shootdowns"}


def explain_run(chapter: Chapter, run: Run, curve: PercentileCurve | None = None) -> Explanation:
    """Return the evidence of one run for one chapter. ``curve``: the run's main one, to set beside the arithmetic."""
    cpus = used_cpus(run)
    interrupts = _busiest(run.interrupts, cpus, counted_seconds(run))
    return Explanation(
        run=run,
        threads=tuple(_thread(t) for t in run.threads),
        interrupts=interrupts,
        softirqs=_busiest(run.softirqs, cpus, counted_seconds(run)),
        knee=knee_sentences(run, interrupts, curve),
        foreign=tuple(
            f"{called(f.name, 40)} (pid {f.pid}) used {f.cpu_percent:.0f} % of a CPU"
            + (f", last seen on CPU {f.cpu}" if f.cpu is not None else "")
            for f in run.disturbed
        ),
        by_hand=tuple((fill_in(b.command, run), fill_in(b.why, run)) for b in chapter.by_hand),
    )


def used_cpus(run: Run) -> CpuSet:
    """Return the CPUs on which messages were handled."""
    return CpuSet.of(cpu for thread in run.threads for cpu, count, _ in residence(thread) if count)


def residence(thread: ThreadRecord) -> tuple[tuple[int, int, float], ...]:
    """Return (CPU, messages, share 0..1), the busiest CPU first."""
    counts = [(int(cpu), n) for cpu, n in thread.messages_by_cpu.items() if cpu.isdigit()]
    total = sum(n for _, n in counts)
    shares = [(cpu, n, n / total if total else 0.0) for cpu, n in counts]
    return tuple(sorted(shares, key=lambda s: (-s[1], s[0])))


def unfilled(chapter: Chapter) -> tuple[tuple[str, str], ...]:
    """Return the by-hand commands and their reasons where there is no run: placeholders become words in capitals."""
    return tuple((_filled(b.command, {}), _filled(b.why, {})) for b in chapter.by_hand)


def fill_in(text: str, run: Run) -> str:
    """Return a by-hand command, or its reason, with this run's thread ids and CPUs in place of the placeholders."""
    tids = {t.name: t.tid for t in run.threads}
    cpus = {t.name: r[0][0] for t in run.threads if (r := residence(t))}
    # Placeholders are called after the ring's threads, which others have in other roles.
    roles = KINDS[run.workload].threads if run.workload in KINDS else {}
    for known in (tids, cpus):
        for name, role in roles.items():
            if name in known:
                known[role] = known[name]
    only_tid = next(iter(tids.values()), None)
    only_cpu = next(iter(cpus.values()), None)
    values = {
        "producer_tid": tids.get("producer", only_tid),
        "accumulator_tid": tids.get("accumulator", only_tid),
        "journaller_tid": tids.get("journaller", only_tid),
        "tids": ",".join(str(t.tid) for t in run.threads) or None,
        "producer_cpu": cpus.get("producer", only_cpu),
        "accumulator_cpu": cpus.get("accumulator", only_cpu),
        "cpus": str(used_cpus(run)) or None,
    }
    return _filled(text, values)


def _filled(text: str, values: Mapping[str, object]) -> str:
    for name in PLACEHOLDERS:
        value = values.get(name)
        text = text.replace("{" + name + "}", name.upper() if value is None else str(value))
    return text


def _thread(thread: ThreadRecord) -> ThreadEvidence:
    return ThreadEvidence(
        name=thread.name,
        voluntary_switches=thread.voluntary_switches,
        involuntary_switches=thread.involuntary_switches,
        migrations=thread.migrations,
        residence=residence(thread),
    )


def _busiest(
    counters: Mapping[str, Counter] | None, cpus: CpuSet, seconds: float
) -> tuple[tuple[str, int, int, float], ...]:
    """Return (name, CPU, count, per second) on the CPUs that the threads used, largest first, without zeros."""
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
    """Return ``LOC (local timer)``: the row's name in /proc/interrupts and its meaning."""
    what = _NAMES.get(key) or clean(counter.name, 40)
    return clean(key, 12) if what in ("", key) else f"{clean(key, 12)} ({what})"
