"""Write the ``notes`` of a run. A note gives the reason why a value is unknown, or a remark on a known value.

The key of a note is the path of a field (``clock.offset_ns``, ``blocks.ping_pong_ns``, ``threads.migrations``). A note
is also valid for all fields below this path.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace

from jitter_workshop.bench.runner import RunResult
from jitter_workshop.flow.measuring.host_warnings import cpu_limit
from jitter_workshop.model.evidence import load_called
from jitter_workshop.model.host import HostSummary, mark_notes
from jitter_workshop.model.run import THREAD_COUNTS, Block, Run, ThreadRecord
from jitter_workshop.model.spec import TWO_THREADS, RunSpec
from jitter_workshop.model.text import CELL, ID, REASON, clean
from jitter_workshop.tuning.tunables.cpu_idle import PmQosFd

NO_NOISE = "no noise was asked for"
_UNSEEN = "this host does not show it"
_MUCH_IN_STALLS = 0.01 * 1e9
FEW_SAMPLES = "null where the run has fewer than 1/(1-p) samples"


def with_notes(
    run: Run,
    spec: RunSpec,
    result: RunResult,
    host: HostSummary,
    unnamed_percent: float | None = None,
    hunted: bool = False,
) -> Run:
    """Return the run with a note on each value that is not known. A note gives the measuring child's reason if there is
    one. ``unnamed_percent``: see ``bench.foreign_activity.ForeignActivity``. ``hunted``: the run had a hidden noise."""
    notes = {_path(run, name): reason for name, reason in result.notes.items()}
    held = held_limit(run.applied)
    if run.workload == "wakeup" and held:
        notes["pm_qos"] = "; ".join(filter(None, (notes.get("pm_qos"), held)))
    for name, reason in _reasons(run, spec):
        notes.setdefault(name, reason)
    if not run.complete:
        why = result.failure.message if result.failure is not None else f"stopped: {result.cancelled}"
        notes["complete"] = f"{len(run.blocks)} of {spec.blocks} blocks, {clean(why, REASON)}"
    said = disturbed_note(run, unnamed_percent, hunted)
    if said:
        notes["disturbed"] = said
    limit = cpu_limit(host)
    if limit:
        notes["cpu_max"] = limit
    notes |= mark_notes(host.mark)
    return replace(run, notes=notes)


def held_limit(applied: Iterable[Mapping[str, str]]) -> str:
    """Return a note if this tool limits the idle states of all CPUs (``pm-qos-fd``). Return "" if it sets no such
    limit."""
    held = next((one for one in applied if one.get("id") == PmQosFd.id), None)
    if held is None:
        return ""
    limit_us = held.get("value") or PmQosFd.default
    return f"this tool holds /dev/cpu_dma_latency at {clean(limit_us, CELL)} µs, for all CPUs"


def disturbed_note(run: Run, unnamed_percent: float | None, hunted: bool = False) -> str:
    """Return a note on other tasks that used the measured CPUs, or "". The run's own noise does not count. A run
    without a noise also gets a note if long stalls took much time although no task was seen. ``unnamed_percent``: see
    ``bench.foreign_activity.ForeignActivity``. ``hunted``: the run had a hidden noise."""
    said = []
    if run.disturbed:
        names = ", ".join(f"{load_called(load, ID)} ({load.cpu_percent:g} %)" for load in run.disturbed)
        said.append(f"other tasks used the measured CPUs: {names}")
    if unnamed_percent:
        said.append(
            f"other tasks used at least {unnamed_percent:g} % of a measured CPU, but their names are not known: "
            "they ended, moved to another CPU or are not visible"
        )
    # The cause is known if the noise is ours: the run names it, or the learner has to find it.
    ordered = hunted or run.noise is not None
    if (
        not said
        and not ordered
        and any(r.threshold_ns == 100_000 and r.stolen_ns_per_second > _MUCH_IN_STALLS for r in run.stalls.rates)
    ):
        said.append(
            "no other task was seen on the measured CPUs, but a task that began or ended during the run is not seen"
        )
    return "; ".join(said)


def _path(run: Run, name: str) -> str:
    """Return the full path of a field of the run. ``name``: the full path, or only its last part. The measuring child
    names fields by the last part."""
    if "." in name or hasattr(run, name):
        return name
    for prefix, record in (("blocks", Block), ("threads", ThreadRecord)):
        if name in {f.name for f in fields(record)}:
            return f"{prefix}.{name}"
    return name


_NULLS = {
    "preset": "--messages, --duration or --for-percentile gave the length",
    "noise": NO_NOISE,
    "proof": "the run belongs to no proof",
    "settle_s": "the host was not changed right before the run",
    "noise_bursts": "the noise's program sent no log",
    "buckets": "only the workload 'spin' sorts its gaps by length",
    "sampled_s": "only the workload 'spin' takes samples",
    "memory": "no measured thread was asked to use more memory than its work needs",
    "lock": "only the workload 'wakeup' with --lock has a thread that takes a lock",
    "pause": "only the workload 'spin' with a duty below 100 % has pauses",
    "counters": "a run has these counters only if --evidence was given but no trace could be made",
    "missed_wakeups": "only the workload 'wakeup' sleeps until a set time",
    "first_write_ns": "only the workload 'ring' with --memory ready, fresh or huge copies messages into memory",
    "huge_pages": "only a run with --memory huge asks for huge pages",
    "transit_from": "only the workload 'ring' has a transit",
    "interrupts": _UNSEEN,
    "softirqs": _UNSEEN,
    "steal_ns": _UNSEEN,
    "core_hz": _UNSEEN,
    "throttled_periods": _UNSEEN,
    "cpu_hz": "this host has no cpufreq, or the run had no CPUs of its own",
    "idle_entries": "this host has no cpuidle, or the run had no CPUs of its own",
    "idle_exit_us": "see idle_entries",
    "counted_s": "the measuring process did not report how long it counted",
    "steal_resolution_ns": "see steal_ns",
}
"""The reasons for a run's null fields. A reason from another note has precedence."""

_CLOCK_NULLS = {
    "offset_ns": "this is measured only between two fixed CPUs",
    "offset_bound_ns": "see clock.offset_ns",
    "rate_hz": "this clock counts in nanoseconds, so it has no rate",
}
_BLOCK_NULLS = {
    "temperature_celsius": "this host shows no temperature",
    "throttle_events": "this host counts no thermal throttling",
    "core_hz": _UNSEEN,
    "ping_pong_ns": "this is measured only between two fixed CPUs",
    "parent_switches": _UNSEEN,
    **dict.fromkeys(("p50", "p99", "p999", "max"), FEW_SAMPLES),
}
_THREAD_NULLS = dict.fromkeys(THREAD_COUNTS, "this kernel does not show this value")


def _reasons(run: Run, spec: RunSpec) -> Iterator[tuple[str, str]]:
    """Yield (path, reason) for each null field. If a path comes twice, only the reason that comes first is valid."""
    if run.blocked_publishes is None:
        yield "blocked_publishes", f"the workload {spec.workload} sends no messages"
    if run.noise is None and run.noise_bursts is None:
        yield "noise_bursts", "the run had no noise"
    elif spec.noise_period_ns is not None:
        yield "noise", f"a burst came about every {spec.noise_period_ns / 1e6:g} ms, which is less often than usual"
    if run.noise_bursts is not None and run.noise_bursts.taken_ns is None:
        yield "noise_bursts.taken_ns", "this noise cannot know how much CPU time it took"
    yield from _placement_reasons(spec)
    if run.buckets is not None:
        yield "buckets.to_ns", "the last bucket has no upper end"
        if any(bucket.per_hour is None for bucket in run.buckets):
            yield "buckets.per_hour", "the workload did not sample"
    if any(value is None for h in run.histograms.values() for value in h.percentiles.values()):
        yield "histograms", FEW_SAMPLES
    records: tuple[tuple[str, dict[str, str], Sequence[object]], ...] = (
        ("", _NULLS, (run,)),
        ("clock.", _CLOCK_NULLS, (run.clock,)),
        ("blocks.", _BLOCK_NULLS, run.blocks),
        ("threads.", _THREAD_NULLS, run.threads),
    )
    for prefix, reasons, found in records:
        for name, reason in reasons.items():
            if any(getattr(one, name) is None for one in found):
                yield prefix + name, reason


def _placement_reasons(spec: RunSpec) -> Iterator[tuple[str, str]]:
    if spec.placement.mode == "none":
        yield "placement", "the scheduler was free to move the threads"
    elif spec.workload in TWO_THREADS:
        yield "placement.sampler", f"the workload {spec.workload} has no sampler"
        if not spec.placement.journaller_on:
            yield "placement.journaller", "no journaller ran"
    else:
        for thread in ("producer", "accumulator", "journaller"):
            yield f"placement.{thread}", f"the workload {spec.workload} has no {thread}"
