"""Test the trace beside a run: what is kept of each block, and a trace that is missing or breaks off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from jitter_workshop.agent.client import no_sudo
from jitter_workshop.errors import HostError
from jitter_workshop.flow.measuring import trace_recorder
from jitter_workshop.flow.measuring.trace_recorder import RunEvidence, Tracer, TraceRecorder
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Cpu, Topology
from jitter_workshop.model.run import Clock, Stall
from jitter_workshop.model.spec import Placement, RunSpec
from jitter_workshop.model.trace import RECORD_BYTES, TraceInfo, TraceRead

TSC = Clock("tsc", 10.0, 10, 2_600_000_000, None, None)


@dataclass
class FakeTracer:
    """Hands out one event more each time; ``fails``: at which word it refuses."""

    fails: str = ""
    said: list[str] = field(default_factory=list)
    asked: tuple[object, ...] = ()

    def evidence_begin(self, pid: int, tids: Sequence[int], cpus: str, clock: str, stacks: bool) -> TraceInfo:
        self._say("begin")
        self.asked = (pid, list(tids), cpus, clock, stacks)
        return TraceInfo(clock, (0, 1), (), {}, 64)

    def evidence_start(self) -> None:
        self._say("start")

    def evidence_read(self) -> TraceRead:
        self._say("read")
        reads = self.said.count("read")
        return TraceRead(bytes(RECORD_BYTES * reads), ("", "name"), {1: reads}, {0: 1, 1: 1})

    def evidence_end(self) -> None:
        self._say("end")

    def _say(self, word: str) -> None:
        self.said.append(word)
        if word == self.fails:
            raise HostError("the kernel refused", "ask its owner")


@dataclass(frozen=True)
class Times:
    index: int
    start_ns: int
    end_ns: int
    start_ticks: int
    end_ticks: int
    stalls: tuple[Stall, ...] = ()
    unlisted: int = 0


def times(index: int) -> Times:
    start = 5_000 + index * 1_000
    return Times(
        index, start, start + 900, start * 3, start * 3 + 2_700, (Stall(index, "sampler", 1, 10, 30, 1),), index
    )


def watched(tracer: FakeTracer, blocks: tuple[bool, ...] = (True, True), clock: Clock = TSC) -> TraceRecorder:
    """A run of these blocks; False: a block that was spoiled."""
    recorder = TraceRecorder(tracer, CpuSet((0, 1)))
    recorder.begin(42, {"sampler": 43}, clock)
    for number, good in enumerate(blocks):
        recorder.before_block()
        recorder.after_block(times(number) if good else None)
    recorder.end()
    return recorder


def test_each_block_is_kept_with_its_times_since_the_run_began() -> None:
    tracer = FakeTracer()
    trace = watched(tracer).trace()
    assert tracer.said == ["begin", "start", "read", "start", "read", "end"]
    assert tracer.asked == (42, [43], "0-1", "x86-tsc", True)
    assert trace is not None
    assert [(b.index, b.start_ns, b.end_ns, b.start_ticks) for b in trace.blocks] == [
        (0, 0, 900, 15_000),
        (1, 1_000, 1_900, 18_000),
    ]
    assert trace.blocks[1].stalls == (Stall(1, "sampler", 1, 1_010, 1_030, 1),)
    assert [(len(b.events) // RECORD_BYTES, b.lost) for b in trace.blocks] == [(1, {"1": 1}), (2, {"1": 2})]
    assert (trace.blocks[1].lost_elsewhere, trace.blocks[1].unlisted) == (2, 1)


def test_a_spoiled_block_leaves_nothing() -> None:
    trace = watched(FakeTracer(), (False, True)).trace()
    assert trace is not None
    assert [(b.index, b.start_ns) for b in trace.blocks] == [(0, 0)]


@pytest.mark.parametrize(("fails", "blocks", "ended"), [("begin", 0, False), ("start", 0, True), ("read", 0, True)])
def test_a_trace_that_breaks_off_is_told_and_ends_no_run(fails: str, blocks: int, ended: bool) -> None:
    tracer = FakeTracer(fails)
    recorder = watched(tracer)
    assert recorder.trace() is None
    assert recorder.notes()["evidence"].split("; ") == ["no trace: the kernel refused", "ask its owner"]
    assert ("end" in tracer.said) is ended


def test_a_clock_that_the_trace_does_not_have_is_told() -> None:
    tracer = FakeTracer()
    assert "cntvct" in watched(tracer, clock=Clock("cntvct", 1.0, 1, None, None, None)).notes()["evidence"]
    assert tracer.said == []


def test_a_run_that_is_timed_by_the_kernels_clock_is_traced_by_it() -> None:
    """The name is the one that ``bench.native.calibrate`` gives it."""
    tracer = FakeTracer()
    assert watched(tracer, clock=Clock("clock_monotonic", 22.0, 1, None, None, None)).notes() == {}
    assert tracer.asked[3] == "mono"


def test_more_than_there_is_room_for_is_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_recorder, "MOST_BYTES", 3 * RECORD_BYTES)
    recorder = watched(FakeTracer(), (True, True, True))
    trace = recorder.trace()
    assert trace is not None
    assert [b.index for b in trace.blocks] == [0, 1]
    assert "no room for the trace" in recorder.notes()["evidence"]
    assert "the run's last block" in recorder.notes()["evidence"]


def spec(placement: Placement) -> RunSpec:
    return RunSpec("spin", placement, 1, 1_000)


def test_the_cpus_of_a_run_are_its_threads_or_all_that_it_may_use() -> None:
    machine = Topology(tuple(Cpu(n, 0, n, 0, True, n != 2, CpuSet((n,))) for n in range(3)), ())
    for placement, cpus in ((Placement("auto", sampler=1), "1"), (Placement("none"), "0-1")):
        tracer = FakeTracer()
        evidence = RunEvidence(True, lambda tracer=tracer: tracer, machine)  # type: ignore[misc]
        recorder = evidence.recorder(spec(placement))
        assert recorder is not None
        recorder.begin(1, {"sampler": 2}, TSC)
        assert tracer.asked[2] == cpus


def test_without_rights_the_run_says_so_and_is_made_without() -> None:
    def nobody() -> Tracer:
        raise no_sudo()

    machine = Topology((Cpu(0, 0, 0, 0, True, True, CpuSet((0,))),), ())
    evidence = RunEvidence(True, nobody, machine)
    counted(evidence)
    assert evidence.notes()["evidence"] == f"no trace: {no_sudo().sentence()}"
    assert evidence.trace() is None
    counters = evidence.counters()
    assert counters is not None
    assert counters.why_no_trace == no_sudo().message
    assert [one.cpu for one in counters.cpus] == [0]
    assert counters.counted_ns > 0
    for name in ("ran_ns", "waited_ns", "timeslices", "steal_ns"):
        assert (getattr(counters.cpus[0], name) is None) is (f"counters.cpus.{name}" in evidence.notes())
    assert (counters.perf_event_paranoid is None) is ("counters.perf_event_paranoid" in evidence.notes())


def counted(evidence: RunEvidence, placement: Placement | None = None) -> None:
    """A run of one block."""
    recorder = evidence.recorder(spec(placement or Placement("none")))
    assert recorder is not None
    recorder.begin(1, {"sampler": 2}, TSC)
    recorder.before_block()
    recorder.after_block(times(0))
    evidence.end()


@pytest.mark.parametrize("fails", ["begin", "read"])
def test_a_tracer_that_refuses_leaves_the_counters(fails: str) -> None:
    machine = Topology((Cpu(0, 0, 0, 0, True, True, CpuSet((0,))),), ())
    evidence = RunEvidence(True, lambda: FakeTracer(fails), machine)
    counted(evidence, Placement("auto", sampler=0))
    counters = evidence.counters()
    assert counters is not None
    assert counters.why_no_trace == "the kernel refused; ask its owner"
    assert [one.cpu for one in counters.cpus] == [0]


def test_a_run_with_a_trace_or_without_a_wish_for_one_has_no_counters() -> None:
    machine = Topology((Cpu(0, 0, 0, 0, True, True, CpuSet((0,))),), ())
    traced = RunEvidence(True, FakeTracer, machine)
    counted(traced)
    assert traced.trace() is not None
    assert (traced.counters(), traced.notes()) == (None, {})
    unasked = RunEvidence(False, FakeTracer, machine)
    assert unasked.recorder(spec(Placement("none"))) is None
    assert (unasked.counters(), unasked.notes()) == (None, {})


def test_a_run_that_ended_before_its_first_block_was_not_counted() -> None:
    evidence = RunEvidence(True, FakeTracer, Topology((), ()))
    assert evidence.recorder(spec(Placement("auto", sampler=0))) is not None
    evidence.end()
    assert evidence.counters() is None
