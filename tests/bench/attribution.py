"""Measure whether the evidence tells the truth: noises that log their own bursts, a quiet control, the sampler's own
gaps beside the trace's interruptions, and what it costs to record (needs root and tracefs)."""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jitter_workshop.bench import runner
from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.lock import host_turn
from jitter_workshop.bench.protocol import BlockDone
from jitter_workshop.errors import HostError, MeasureError
from jitter_workshop.evidence.explain import ExplainedBlock, explain_block, windows_of
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.measuring.request import MeasureRequest, resolve
from jitter_workshop.flow.measuring.trace_recorder import CLOCKS, Tracer, TraceRecorder
from jitter_workshop.host.cpu.cpuinfo import read_clocksource
from jitter_workshop.host.cpu.topology import read_topology
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.evidence import BlockSpan
from jitter_workshop.model.noise import NOISES, Burst, Bursts, Noise, fill_in_name
from jitter_workshop.model.run import Clock, SilentObserver
from jitter_workshop.session.traces import RunTrace
from tests.bench.figures import Figure, keep, middle, spread
from tests.bench.groundtruth import Match, Truth, blamed_ns, interruptions, not_felt, truths
from tests.bench.ring import measure
from tests.madetrace import unpack

SECONDS = 5.0
PAIRS, PAIR_S = 20, "2"
OVER_NS = 1_000
_TIMES = {"stall": 3}
"""Runs of a noise that has one burst a run."""
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Traced:
    """One run of the sampler, explained."""

    cpu: int
    trace: RunTrace
    blocks: tuple[ExplainedBlock, ...]
    bursts: Bursts | None

    @property
    def lost(self) -> int:
        return sum(sum(block.lost.values()) for block in self.trace.blocks)


class _Warm:
    """A recorder before whose first block the same is traced already: a noise that measures beforehand what a burst of
    its takes then measures it with the events' cost, as it will be felt."""

    def __init__(self, tracer: Tracer, cpus: CpuSet) -> None:
        self.recorder = TraceRecorder(tracer, cpus)
        self._tracer = tracer
        clock = CLOCKS["tsc" if read_clocksource(HostRoot()).tsc_trusted else "clock_monotonic"]
        tracer.evidence_begin(os.getpid(), [threading.get_native_id()], str(cpus), clock, False)
        tracer.evidence_start()

    def begin(self, pid: int, tids: dict[str, int], clock: Clock) -> None:
        self._tracer.evidence_end()
        self.recorder.begin(pid, tids, clock)

    def before_block(self) -> None:
        self.recorder.before_block()

    def after_block(self, block: BlockDone | None) -> None:
        self.recorder.after_block(block)


def traced(folder: Path, agent_connection: AgentConnection, noise: str | None, seconds: float = SECONDS) -> Traced:
    """Run the sampler with evidence, and with a noise. Raise HostError and MeasureError where that cannot be."""
    request = MeasureRequest(workload="spin", noise=noise, evidence=True, duration_s=seconds)
    spec = resolve(request, read_topology(HostRoot()), CpuSet(), str(folder))
    cpu = spec.placement.sampler
    assert cpu is not None
    cancel = CancelToken()
    with host_turn(120, cancel, lambda holder: None):
        warm = _Warm(agent_connection.tracer(), CpuSet.of([cpu]))
        try:
            result = runner.measure_spec(spec, SilentObserver(), cancel, recorder=warm)
        finally:
            agent_connection.tracer().evidence_end()
            cancel.close()
    trace = warm.recorder.trace()
    if trace is None or warm.recorder.why_not or not result.complete:
        raise MeasureError(warm.recorder.why_not or "the run is not complete")
    return Traced(cpu, trace, explained(trace), result.bursts)


def explained(trace: RunTrace) -> tuple[ExplainedBlock, ...]:
    blocks = []
    for block in trace.blocks:
        span = BlockSpan(block.index, block.start_ticks, block.end_ticks, block.start_ns, block.end_ns - block.start_ns)
        windows = windows_of(block.stalls, span, "spin")
        lost = {int(cpu): count for cpu, count in block.lost.items()}
        events = unpack(block.events, trace.strings)
        blocks.append(explain_block(span, windows, events, trace.info.cpus, trace.tids, lost))
    return tuple(blocks)


def compared(noise: Noise, run: Traced) -> list[Truth]:
    """A run's bursts against its pieces: those on the sampler's CPU, and of a noise that follows it, all."""
    assert run.bursts is not None

    def wanted(burst: Burst) -> bool:
        return noise.aimed or burst.cpu == run.cpu

    return truths(run.bursts, run.blocks, wanted)


def run(folder: Path) -> list[Figure]:
    agent_connection = AgentConnection()
    try:
        agent_connection.tracer()
    except HostError as error:
        print(f"  left out: {error.sentence()}")
        return []
    try:
        figures = _truth(folder, agent_connection)
    finally:
        agent_connection.close()
    return figures + _cost(folder)


# ---- ground truth ----------------------------------------------------------------------------------------------------


def _truth(folder: Path, agent_connection: AgentConnection) -> list[Figure]:
    kept: dict[str, Any] = {"control": [], "noises": {}, "not here": {}}
    figures: list[Figure] = []
    felt, unfelt, lost = 0, 0, 0
    controls = [traced(folder, agent_connection, None)]
    for noise in NOISES:
        if noise.does[0].causes[0][0] == "no_event" and noise.by == "child":
            kept["not here"][noise.id] = "nothing of it is in a trace"
            continue
        runs = []
        try:
            runs = [traced(folder, agent_connection, noise.id) for _ in range(_TIMES.get(noise.id, 1))]
        except (HostError, MeasureError) as error:
            kept["not here"][noise.id] = error.sentence()
            continue
        found = [compared(noise, one) for one in runs]
        for number in range(len(found[0])):
            some = [truth[number] for truth in found]
            figures += _figures(noise, some)
            kept["noises"].setdefault(noise.id, []).append(
                [_plain(truth, one) for truth, one in zip(some, runs, strict=True)]
            )
        for one in runs:
            seen, missed = _felt(one)
            felt, unfelt, lost = felt + seen, unfelt + len(missed), lost + one.lost
            kept.setdefault("not felt", []).extend(missed)
    controls.append(traced(folder, agent_connection, None))
    for one in controls:
        seen, missed = _felt(one)
        felt, unfelt, lost = felt + seen, unfelt + len(missed), lost + one.lost
        kept.setdefault("not felt", []).extend(missed)
    figures.append(_false_blame(controls, kept))
    share = 100 * unfelt / felt if felt else 0.0
    figures.append(
        Figure("interruptions over 1 µs by the trace in no gap of spin", share, "%", 0, f"{unfelt} of {felt:,}")
    )
    how = f"{len(kept['noises'])} noises of {len(NOISES)}; load average {os.getloadavg()[0]:.1f} at the end"
    figures.append(Figure("events for which the trace had no room", lost, "", 0, how))
    for kind, why in kept["not here"].items():
        print(f"  {kind}: {why}")
    keep(folder, "attribution", kept)
    return figures


def _figures(noise: Noise, some: list[Truth]) -> list[Figure]:
    """Goals stand as what is missed: at most 5 %."""
    bursts = sum(len(truth.matches) for truth in some)
    cause = sum(truth.by_cause for truth in some)
    known = sum(truth.measured for truth in some)
    length = sum(truth.in_length for truth in some)
    outside, inside = sum(truth.outside_ns for truth in some), sum(truth.inside_ns for truth in some)
    what = some[0].what.causes[0]
    name = f"{noise.id}: {what[0]} {what[1]}".rstrip(" *")
    if not bursts:
        return [Figure(f"{name}, bursts within blocks", 0, "", None, "nothing to compare")]
    beside = f"; blamed where no burst was: {100 * outside / (inside + outside):.2g} %" if inside + outside else ""
    lost = sum(truth.lost for truth in some)
    left_out = f"; {lost:,} more where the trace had no room" if lost else ""
    said = f"{cause:,} of {bursts:,} bursts{beside}{left_out}"
    figures = [Figure(f"{name}, not found by cause", 100 * (bursts - cause) / bursts, "%", 5, said)]
    if not known:
        return figures
    sure = [m for truth in some for m in truth.matches if m.took_ns is not None]
    off = [abs(m.found_ns - (m.took_ns or 0)) for m in sure]
    how = f"{length:,} of {known:,}; off by {statistics.median(off) / 1000:.2g} µs (median)"
    figures.append(Figure(f"{name}, not of its length", 100 * (known - length) / known, "%", 5, how))
    if some[0].what.length == "measured":
        typical = sure[0].burst.taken_ns
        like = sum(m.as_before for m in sure)
        found = sorted(m.found_ns for m in sure)
        low, middle, high = (found[len(found) * tenths // 10] / 1000 for tenths in (1, 5, 9))
        how = f"{typical / 1000:.3g} µs then; found {low:.3g}, {middle:.3g}, {high:.3g} µs (10, 50, 90 %)"
        share = 100 * (known - like) / known
        figures.append(Figure(f"{name}, not as long as one beforehand", share, "%", None, how))
    return figures


def _false_blame(controls: list[Traced], kept: dict[str, Any]) -> Figure:
    """Without any noise: what the stalls' time is blamed on that only a noise does."""
    worst, whose, total = 0.0, "none", 0
    for noise in NOISES:
        if noise.does[0].causes[0][0] == "no_event":
            continue
        does = fill_in_name(noise.does, noise.id)
        sums = [blamed_ns(does, one.blocks) for one in controls]
        blamed, total = sum(ns for ns, _ in sums), sum(ns for _, ns in sums)
        share = 100 * blamed / total if total else 0.0
        kept["control"].append({"noise": noise.id, "blamed_ns": blamed, "stalled_ns": total})
        if share > worst:
            worst, whose = share, noise.id
    how = f"worst: {whose}; {total / 1e6:.3g} ms of stalls in {len(controls) * SECONDS:g} s without noise"
    return Figure("false blame: stalls' time blamed on a noise that was not there", worst, "%", 1, how)


def _felt(one: Traced) -> tuple[int, list[list[int]]]:
    """Interruptions by the trace: how many, and those that are in no gap, as [block, at ns, ns]."""
    tid = next(iter(one.trace.tids.values()))
    seen, missed = 0, []
    for block in one.blocks:
        times = interruptions(block, one.cpu, tid, OVER_NS)
        rate, start = block.span.rate, block.span.start
        seen += len(times)
        missed += [
            [block.span.index, rate.to_ns(low - start), rate.to_ns(high - low)] for low, high in not_felt(times, block)
        ]
    return seen, missed


def _plain(truth: Truth, one: Traced) -> dict[str, Any]:
    """A sort of burst for the raw data, with what lies near each that does not match."""
    bad = [m for m in truth.matches if not m.cause or m.length is False]
    return {
        "causes": truth.what.causes,
        "length": truth.what.length,
        "unseen": truth.unseen,
        "lost": truth.lost,
        "inside_ns": truth.inside_ns,
        "outside_ns": truth.outside_ns,
        "bursts": [
            [m.burst.length_ns, m.burst.taken_ns, m.took_ns, m.found_ns, m.cause, m.length] for m in truth.matches
        ],
        "not matched": [_near(m, one) for m in bad[:_SHOWN]],
    }


def _near(match: Match, one: Traced) -> dict[str, Any]:
    """A burst and all pieces within 50 µs of it, in ns from its start."""
    burst = match.burst
    block = next(b for b in one.blocks if b.span.start <= burst.start < b.span.end)
    rate = block.span.rate
    margin = rate.to_ticks(50_000)

    def ns(ticks: int) -> int:
        return rate.to_ns(ticks - burst.start) if ticks >= burst.start else -rate.to_ns(burst.start - ticks)

    return {
        "length_ns": burst.length_ns,
        "taken_ns": burst.taken_ns,
        "took_ns": match.took_ns,
        "found_ns": match.found_ns,
        "pieces": [
            [piece.kind, piece.name, ns(piece.start), rate.to_ns(piece.ticks)]
            for stall in block.stalls
            for piece in stall.pieces
            if piece.end > burst.start - margin and piece.start < burst.end + margin
        ],
    }


# ---- what it costs ---------------------------------------------------------------------------------------------------


def _cost(folder: Path) -> list[Figure]:
    """The ring with evidence ÷ without, pair by pair, each pair in an order by chance."""
    source = random.Random()
    pairs: list[dict[str, Any]] = []
    try:
        for _ in range(PAIRS):
            order = source.sample(("on", "off"), 2)
            pair = {way: _ring(folder, way == "on") for way in order}
            pairs.append({"order": order, **pair})
    except subprocess.CalledProcessError:
        print("  what evidence costs: left out, the ring cannot be measured here")
        return []
    keep(folder, "attribution_cost", pairs)
    figures = []
    for percentile, goal in (("50", 1.10), ("99.9", None)):
        ratios = [
            p["on"][percentile] / p["off"][percentile] for p in pairs if p["on"][percentile] and p["off"][percentile]
        ]
        title = f"ring with evidence ÷ without: transit p{percentile}"
        figures.append(Figure(title, statistics.median(ratios), "×", goal, f"{middle(ratios)}; {spread(ratios)}"))
    for threshold, name in ((1_000, "1 µs"), (10_000, "10 µs"), (100_000, "100 µs"), (1_000_000, "1 ms")):
        on, off = ([pair[way]["rates"].get(str(threshold), 0.0) for pair in pairs] for way in ("on", "off"))
        ratios = [a / b for a, b in zip(on, off, strict=True) if b]
        if ratios:
            rates = f"{statistics.median(on):.3g} ÷ {statistics.median(off):.3g} a second (medians)"
            how = f"{rates}; {middle(ratios)}; n = {len(ratios)}"
            title = f"ring with evidence ÷ without: stalls over {name}"
            figures.append(Figure(title, statistics.median(ratios), "×", None, how))
    return figures


def _ring(folder: Path, evidence: bool) -> dict[str, Any]:
    run = measure(folder.resolve(), "--duration", PAIR_S, *(("--evidence",) if evidence else ()))
    assert "evidence" not in run["notes"], run["notes"]["evidence"]
    percentiles = run["histograms"]["accumulator_transit"]["percentiles"]
    rates = {str(rate["threshold_ns"]): rate["per_second"] for rate in run["stalls"]["rates"]}
    return {"50": percentiles["50"], "99.9": percentiles["99.9"], "rates": rates}
