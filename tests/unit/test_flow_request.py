"""Limits and blocks of what a person may ask for."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.flow.measuring.request import LONGEST_S, MeasureRequest, blocks, check_request, resolve
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Cache, Cpu, Topology
from jitter_workshop.model.spec import MEMORY_OF, MemoryUse, WorkloadName

TWO = Topology(
    tuple(Cpu(n, 0, n, 0, True, True, CpuSet.of([n])) for n in range(2)),
    (Cache(3, "Unified", 1 << 20, CpuSet.of([0, 1])),),
)


def ask(**fields: Any) -> MeasureRequest:
    return MeasureRequest(**fields)


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (ask(workload="wakeup", interval_ns=9_999), "the interval of wakeup must be from 10 µs to 1 s"),
        (ask(workload="ack", interval_ns=9_999), "the interval of ack must be from 10 µs to 1 s"),
        (ask(workload="ack", threshold_ns=100_000), "the threshold of 'ack' must be above the interval"),
        (ask(workload="ack", duty=50), "--duty is only for spin, not for ack"),
        (ask(workload="ack", messages=5), "--messages is only for the ring, not for ack"),
        (ask(workload="wakeup", pacing="schedule"), "--pacing is only for the ring, not for wakeup"),
        (ask(workload="spin", duty=50, pause="nap"), "there is no pause 'nap'; use 'sleep' or 'busy'"),
        (ask(lock="plain"), "--lock is only for wakeup, not for ring"),
        (ask(workload="wakeup", lock="plain", sched_priority=2), "a lock needs three priorities"),
        (ask(workload="wakeup", lock="mine"), "there is no lock 'mine'; use none, plain, inherit"),
        (
            ask(workload="wakeup", lock="inherit", sched_priority=3, placement="none"),
            "all threads of a run with a lock need the same CPU",
        ),
        (ask(workload="spin", memory="fresh"), "--memory fresh is only for ring, not for spin"),
        (ask(memory="near"), "--memory near is only for spin, not for ring"),
        (ask(memory="cold"), "there is no kind of memory 'cold'; use none, ready, fresh, huge, file, far, near"),
        (ask(workload="spin", pause="busy"), "--pause is only for spin with a duty below 100 %"),
        (
            ask(workload="wakeup", accumulator_cpu=1),
            "--accumulator-cpu is only for the workload ring; for wakeup use --cpu",
        ),
        (ask(workload="ack", cpu=1), "--cpu is only for the workloads spin and wakeup; for ack use --producer-cpu"),
        (ask(workload="ack", journaller_cpu=1), "--journaller-cpu is only for the ring; ack has two threads"),
        (ask(workload="ri\x1bng"), "there is no workload 'ri ng'"),
        (ask(workload="spin", duty=99), "the duty cannot be 99 %; use 100, 50, 10"),
        (ask(duty=50), "--duty is only for spin, not for ring"),
        (ask(preset="eternal"), "there is no preset 'eternal'"),
        (ask(noise="thunder"), "there is no noise 'thunder'; known: spinners, greedy, timer, "),
        (ask(noise_period_ns=50_000_000), "a period of the noise was given, but no noise"),
        (
            ask(noise="greedy", noise_period_ns=500_000_000),
            "the period of the noise greedy must be from 1 to 200 ms, not 500 ms",
        ),
        (ask(noise="stall", noise_period_ns=50_000_000), "the noise stall happens only once"),
        (
            ask(noise="stall", duration_s=0.1),
            "the noise 'stall' needs blocks of at least 200 ms, but the blocks of this run take 100 ms",
        ),
        (ask(noise="stall", messages=10_000), "run take 100 ms; choose a longer run"),
        (ask(noise="stall", interval_ns=150), "run take 147.059 ms"),
        (ask(messages=0), "a run can send 1 to 8,640,000,000 messages at this interval (24 h), not 0"),
        (ask(messages=-5), "not -5"),
        (ask(messages=10**12), "not 1,000,000,000,000"),
        (ask(messages=10**12, interval_ns=100), "send 1 to 864,000,000,000 messages"),
        (ask(messages=1, duration_s=1.0), "contradict each other"),
        (ask(duration_s=0.0), "the duration of a run must be from 0.01 s to 24 h, not 0 s"),
        (ask(duration_s=-1.0), "not -1 s"),
        (ask(duration_s=1e9), "not 1e+09 s"),
        (ask(duration_s=float("nan")), "not nan s"),
        (ask(interval_ns=0), "the interval must be 0.1 µs to 1 s"),
        (ask(interval_ns=-10), "the interval must be"),
        (ask(interval_ns=99), "the interval must be"),
        (ask(interval_ns=10**12), "the interval must be"),
        (ask(threshold_ns=0), "the stall threshold must be 0.1 µs to 10 s"),
        (ask(sched_priority=50), "the SCHED_FIFO priority must be from 1 to 49"),
        (ask(sched_priority=-1), "the SCHED_FIFO priority"),
        (ask(wait_s=-1.0), "the time to wait"),
        (ask(wait_s=float("nan")), "the time to wait"),
        (ask(workload="spin", messages=5), "--messages is only for the ring"),
        (ask(workload="spin", pacing="schedule"), "--pacing is only for the ring"),
        (ask(workload="spin", pacing="spin"), "--pacing is only for the ring"),
        (ask(workload="spin", interval_ns=10_000), "--interval-us does not apply to spin, which has no interval"),
        (ask(workload="spin", no_journaller=True), "--no-journaller is only for the ring"),
        (ask(placement="best"), "there is no placement 'best'"),
    ],
)
def test_nonsense_is_refused_in_one_sentence(request_: MeasureRequest, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(request_, TWO, CpuSet(), "/nowhere")
    assert sentence in caught.value.sentence()
    assert "\n" not in caught.value.sentence()


def test_realtime_on_two_cpus_is_refused_for_the_ring_and_not_for_spin() -> None:
    with pytest.raises(HostError, match="SCHED_FIFO on these CPUs would leave no CPU"):
        resolve(ask(sched_priority=10), TWO, CpuSet(), "/nowhere")
    spec = resolve(ask(workload="spin", sched_priority=10), TWO, CpuSet(), "/nowhere")
    assert (spec.sched_priority, spec.placement.sampler, len(spec.threads)) == (10, 1, 1)


@pytest.mark.parametrize(("preset", "count", "total_s"), [("quick", 20, 5), ("standard", 40, 40), ("long", 3600, 3600)])
def test_presets_keep_their_blocks(preset: str, count: int, total_s: int) -> None:
    cut = blocks(ask(preset=preset))
    assert (cut.count, cut.count * cut.block_ns, cut.preset) == (count, total_s * 10**9, preset)


def test_a_run_shorter_than_a_block_is_one_shorter_block() -> None:
    cut = blocks(ask(duration_s=0.1))
    assert (cut.count, cut.block_ns, cut.preset) == (1, 100_000_000, None)


@given(
    st.floats(0.01, LONGEST_S),
    st.integers(100, 1_000_000_000),
    st.sampled_from(["quick", "standard", "long"]),
    st.sampled_from(["ring", "spin", "wakeup", "ack"]),
)
def test_a_duration_is_kept_and_no_block_is_too_long(
    duration_s: float, interval_ns: int, preset: str, workload: str
) -> None:
    cut = blocks(ask(duration_s=duration_s, interval_ns=interval_ns, preset=preset, workload=workload))
    assert cut.messages is None
    assert abs(cut.count * cut.block_ns - duration_s * 1e9) <= cut.count + 1
    assert cut.block_ns <= max(1_000_000_000, 4 * interval_ns if workload in ("wakeup", "ack") else 0)
    if workload == "ring":
        assert cut.block_ns <= interval_ns * 1_000_001


@given(st.integers(1, 10**10), st.integers(100, 1_000_000_000))
def test_a_number_of_messages_fits_its_blocks(messages: int, interval_ns: int) -> None:
    request = ask(messages=messages, interval_ns=interval_ns)
    if messages * interval_ns > LONGEST_S * 10**9:
        with pytest.raises(UsageError):
            blocks(request)
        return
    cut = blocks(request)
    share = -(-messages // cut.count)
    assert cut.messages == messages
    assert 1 <= cut.count <= messages
    assert share <= 1_000_000
    assert cut.block_ns > share * interval_ns


@pytest.mark.parametrize(
    ("workload", "pacing", "interval_ns", "threshold_ns", "count"),
    [
        ("ring", "spin", 10_000, 1_000, 2),
        ("spin", "spin", 10_000, 1_000, 1),
        ("wakeup", "schedule", 1_000_000, 10_000, 1),
        ("ack", "schedule", 100_000, 500_000, 2),
    ],
)
def test_each_workload_has_defaults_of_its_own(
    workload: str, pacing: str, interval_ns: int, threshold_ns: int, count: int
) -> None:
    spec = resolve(ask(workload=workload), TWO, CpuSet(), "/nowhere")
    assert (spec.pacing, spec.interval_ns, spec.threshold_ns) == (pacing, interval_ns, threshold_ns)
    assert (len(spec.threads), spec.pause) == (count, "sleep")


def test_realtime_is_refused_where_receiver_and_sender_take_all_cpus() -> None:
    with pytest.raises(HostError, match="SCHED_FIFO on these CPUs would leave no CPU"):
        resolve(ask(workload="ack", sched_priority=10), TWO, CpuSet(), "/nowhere")
    assert resolve(ask(workload="wakeup", sched_priority=10), TWO, CpuSet(), "/nowhere").sched_priority == 10


@given(st.integers(10_000, 1_000_000_000))
def test_a_receivers_threshold_stays_above_its_interval(interval_ns: int) -> None:
    spec = resolve(ask(workload="ack", interval_ns=interval_ns), TWO, CpuSet(), "/nowhere")
    assert 500_000 <= spec.threshold_ns <= 10_000_000_000
    assert spec.threshold_ns > interval_ns


def test_a_receiver_and_its_sender_are_placed_like_the_ring() -> None:
    spec = resolve(ask(workload="ack"), TWO, CpuSet(), "/nowhere")
    ring = resolve(ask(no_journaller=True), TWO, CpuSet(), "/nowhere").placement
    assert (spec.placement.producer, spec.placement.accumulator) == (ring.producer, ring.accumulator)
    assert (spec.placement.sampler, spec.placement.journaller_on) == (None, False)
    assert spec.placement.why.startswith("Sender on CPU 0, ")
    assert ", receiver on CPU 1: " in spec.placement.why
    assert "ournaller" not in spec.placement.why
    free = resolve(ask(workload="ack", placement="none"), TWO, CpuSet(), "/nowhere").placement
    assert free.why.startswith("The scheduler may move")
    assert free.why.endswith("receiver between CPUs 0-1.")


def test_a_request_without_options_has_their_defaults() -> None:
    for workload in ("ring", "spin"):
        spec = resolve(ask(workload=workload), TWO, CpuSet(), "/nowhere")
        assert (spec.pacing, spec.interval_ns) == ("spin", 10_000)


@pytest.mark.parametrize("duty", [100, 50, 10])
def test_spin_has_a_duty(duty: int) -> None:
    assert resolve(ask(workload="spin", duty=duty), TWO, CpuSet(), "/nowhere").duty == duty
    if duty != 100:
        assert resolve(ask(workload="spin", duty=duty, pause="busy"), TWO, CpuSet(), "/nowhere").pause == "busy"


@pytest.mark.parametrize("request_", [ask(), ask(duration_s=0.2), ask(messages=20_000), ask(preset="standard")])
def test_a_stall_has_room_in_a_block(request_: MeasureRequest) -> None:
    request_ = dataclasses.replace(request_, noise="stall")
    check_request(request_)
    assert resolve(request_, TWO, CpuSet(), "/nowhere").noise == "stall"


def test_the_spec_carries_the_request() -> None:
    request = dataclasses.replace(ask(), threshold_ns=5_000, noise="spinners", pacing="schedule", interval_ns=20_000)
    spec = resolve(request, TWO, CpuSet(), "/scratch")
    assert (spec.threshold_ns, spec.noise, spec.pacing, spec.interval_ns) == (5_000, "spinners", "schedule", 20_000)
    assert not spec.threshold_gives_way
    assert resolve(dataclasses.replace(request, threshold_ns=None), TWO, CpuSet(), "/scratch").threshold_gives_way
    assert (spec.scratch_dir, spec.preset, spec.blocks, spec.duty) == ("/scratch", "quick", 20, 100)
    assert len(spec.threads) == 2
    check_request(request)


@pytest.mark.parametrize(("memory", "workload"), MEMORY_OF.items())
def test_the_spec_of_a_run_has_the_wanted_memory(memory: MemoryUse, workload: WorkloadName) -> None:
    spec = resolve(ask(workload=workload, memory=memory), TWO, CpuSet(), "/nowhere")
    assert spec.memory == memory
    # Loads from far memory are no stalls.
    assert spec.threshold_ns == (10_000 if workload == "spin" else 1_000)
    assert resolve(ask(workload=workload), TWO, CpuSet(), "/nowhere").memory == "none"
