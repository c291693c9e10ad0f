"""The measuring child over its pipes: runs, mistakes, and every way to end."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jitter_workshop.bench import launch, protocol, worker, workload, workloads
from jitter_workshop.bench.native import ffi, lib, new_clock
from jitter_workshop.bench.protocol import BlockDone, Failed, Ready
from jitter_workshop.errors import UsageError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.listing import read_task
from jitter_workshop.model.codec import from_plain
from jitter_workshop.model.run import Clock, ThreadRecord
from jitter_workshop.model.spec import DUTY_PATTERNS_NS, Pause, Placement, RunSpec
from jitter_workshop.stats import histogram as histograms

pytestmark = pytest.mark.native

needs_two_cpus = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
PATIENCE_S = 60.0
FREE = Placement("none")
PLACED_NOWHERE = Placement("chosen", producer=60_000, accumulator=60_001)


@pytest.fixture
def spec(tmp_path: Path) -> RunSpec:
    return RunSpec("ring", FREE, blocks=2, block_ns=20_000_000, scratch_dir=str(tmp_path))


def answer(child: launch.Child) -> tuple[str, Any]:
    event = child.wait(timeout_s=PATIENCE_S)
    assert event.kind == "line", (event, child.ended())
    kind, data = protocol.parse_message(event.line)
    classes: dict[str, Any] = {"ready": Ready, "block": BlockDone, "failed": Failed}
    return kind, from_plain(classes[kind], data)


def ready(child: launch.Child, spec: RunSpec) -> Ready:
    child.send(protocol.message_line("spec", spec))
    kind, message = answer(child)
    assert kind == "ready", message
    assert isinstance(message, Ready)
    return message


def block(child: launch.Child) -> BlockDone:
    child.send(protocol.message_line("go"))
    kind, message = answer(child)
    assert kind == "block", message
    assert isinstance(message, BlockDone)
    return message


def failure(spec: RunSpec | bytes) -> Failed:
    """Return what the child says to a spec that cannot be measured; it must end with 2."""
    with launch.Child(launch.command(launch.WORKER)) as child:
        child.send(spec if isinstance(spec, bytes) else protocol.message_line("spec", spec))
        kind, message = answer(child)
        assert kind == "failed", message
        assert isinstance(message, Failed)
        assert child.wait(timeout_s=PATIENCE_S).kind == "end"
        assert child.end() == 2
    return message


@pytest.mark.parametrize("pacing", ["spin", "schedule"])
def test_a_run_of_the_ring(spec: RunSpec, pacing: Any) -> None:
    with_journal = Placement("none", journaller_on=True)
    with launch.Child(launch.command(launch.WORKER)) as child:
        told = ready(child, dataclasses.replace(spec, pacing=pacing, placement=with_journal))
        assert set(told.tids) == {"producer", "accumulator", "journaller"}
        assert told.clock.cost_ns > 0
        assert told.clock.resolution_ns >= 1
        assert told.clock.offset_ns is None
        assert told.sched == "other"
        blocks = [block(child) for _ in range(3)]
        assert child.end(protocol.message_line("end")) == 0
    # The parent decides how many blocks there are: a third one of a run of two is no mistake.
    assert [b.index for b in blocks] == [0, 1, 2]
    for done in blocks:
        names = {
            f"{who}_{what}"
            for who in ("accumulator", "journaller")
            for what in ("transit", "handoff", "interval", "intended")
        }
        assert set(done.histograms) == {"publisher_interval", *names}
        sent = done.histograms["publisher_interval"].count
        assert sent > 0
        assert done.histograms["accumulator_interval"].count == sent
        assert done.histograms["accumulator_transit"].count + done.histograms["journaller_transit"].count == (
            2 * sent - done.negative_deltas
        )
        for found in done.histograms.values():
            assert histograms.decode_histogram(found.encoded).get_total_count() == found.count
        assert {t.name: sum(t.messages_by_cpu.values()) for t in done.threads} == dict.fromkeys(told.tids, sent)
        assert done.end_ns - done.start_ns >= spec.block_ns
        assert done.blocked_publishes is not None
        assert done.ping_pong_ns is None
        assert "ping_pong_ns" in done.notes
        for name in ("interrupts", "softirqs", "steal_ns", "throttled_periods", "parent_switches", "core_hz"):
            assert (getattr(done, name) is None) == (name in done.notes), name
        assert [t.threshold_ns for t in done.stall_totals] == [1_000, 10_000, 100_000, 1_000_000]
    assert blocks[0].end_ns < blocks[1].start_ns


def test_a_total_of_messages_is_shared_out(spec: RunSpec) -> None:
    with launch.Child(launch.command(launch.WORKER)) as child:
        ready(child, dataclasses.replace(spec, messages=101))
        assert [block(child).histograms["publisher_interval"].count for _ in range(2)] == [51, 50]


def test_a_run_of_the_sampler(spec: RunSpec) -> None:
    cpu = max(os.sched_getaffinity(0))
    placed = Placement("chosen", sampler=cpu, hot=(cpu,))
    with launch.Child(launch.command(launch.WORKER)) as child:
        told = ready(child, dataclasses.replace(spec, workload="spin", placement=placed))
        assert set(told.tids) == {"sampler"}
        done = block(child)
    assert set(done.histograms) == {"spin_gap"}
    assert done.histograms["spin_gap"].count > 1_000
    assert [(t.name, set(t.messages_by_cpu)) for t in done.threads] == [("sampler", {str(cpu)})]
    assert done.blocked_publishes is None
    assert "blocked_publishes" in done.notes
    assert all(0 <= s.start_ns < s.end_ns <= done.end_ns - done.start_ns for s in done.stalls)


@pytest.mark.parametrize("pause", ["sleep", "busy"])
@pytest.mark.parametrize("duty", [50, 10])
def test_a_sampler_that_pauses_in_between(spec: RunSpec, duty: int, pause: Pause) -> None:
    with launch.Child(launch.command(launch.WORKER)) as child:
        ready(child, dataclasses.replace(spec, workload="spin", duty=duty, pause=pause, block_ns=100_000_000))
        done = block(child)
    length_ns = done.end_ns - done.start_ns
    assert length_ns >= 100_000_000
    # Other tasks take time away and add none: the counted time is at most the time that the sampler may be busy,
    # but for a theft that lies across the end of its share.
    (across,) = (t.stolen_ns for t in done.stall_totals if t.threshold_ns == 1_000)
    busy_ns, pause_ns = DUTY_PATTERNS_NS[duty]
    periods = -(-length_ns // (busy_ns + pause_ns))
    assert 0 < done.histograms["spin_gap"].total <= periods * busy_ns * 1.2 + across
    assert done.sampled_ns is not None
    assert done.sampled_ns <= length_ns
    assert abs(done.sampled_ns - done.histograms["spin_gap"].total) < done.sampled_ns * 0.5
    (thread,) = done.threads
    assert thread.voluntary_switches or pause == "busy"
    assert (
        f"sampled for {busy_ns / 1e6:g} ms, then {'slept' if pause == 'sleep' else 'used the CPU'}"
        in (done.notes["duty"])
    )


def assert_scheduled(thread: ThreadRecord, done: protocol.BlockDone) -> None:
    """A thread that sleeps between its turns comes onto its CPU each time; no time is counted twice. Or the kernel does
    not count, and the block says so."""
    assert thread.ran_ns is not None
    assert done.counted_ns is not None
    assert 0 < thread.ran_ns < done.counted_ns
    if HostRoot().text("/proc/self/schedstat") in (None, "0 0 0"):
        assert (thread.waited_ns, thread.timeslices) == (None, None)
        assert "waited_ns" in done.notes
        return
    assert thread.waited_ns is not None
    assert thread.timeslices is not None
    assert thread.timeslices >= 1
    assert thread.ran_ns + thread.waited_ns < done.counted_ns


@pytest.mark.parametrize("cpu", [None, 0])
def test_a_run_of_the_sleeper(spec: RunSpec, cpu: int | None) -> None:
    placed = FREE
    if cpu is not None:
        cpu = max(os.sched_getaffinity(0))
        placed = Placement("chosen", sampler=cpu, hot=(cpu,))
    asked = dataclasses.replace(spec, workload="wakeup", interval_ns=500_000, threshold_ns=10_000, placement=placed)
    with launch.Child(launch.command(launch.WORKER)) as child:
        told = ready(child, asked)
        assert set(told.tids) == {"sleeper"}
        blocks = [block(child) for _ in range(2)]
    for done in blocks:
        assert set(done.histograms) == {"wakeup_latency"}
        woken = done.histograms["wakeup_latency"].count + done.negative_deltas
        (thread,) = done.threads
        assert thread.name == "sleeper"
        assert sum(thread.messages_by_cpu.values()) == woken > 0
        if cpu is not None:
            assert set(thread.messages_by_cpu) == {str(cpu)}
        assert thread.voluntary_switches
        assert_scheduled(thread, done)
        assert done.missed_wakeups is not None
        assert [t.threshold_ns for t in done.stall_totals] == [10_000, 100_000, 1_000_000]
        assert all(s.thread == "sleeper" for s in done.stalls)
        assert "is 1 ns" in done.notes["timer_slack"]
        assert done.buckets is None


def test_a_run_of_the_receiver(spec: RunSpec) -> None:
    # In the usual block of 20 ms a busy host may not let the receiver run before the block ends.
    asked = dataclasses.replace(spec, workload="ack", interval_ns=100_000, threshold_ns=500_000, block_ns=200_000_000)
    with launch.Child(launch.command(launch.WORKER)) as child:
        told = ready(child, asked)
        assert set(told.tids) == {"sender", "receiver"}
        blocks = [block(child) for _ in range(2)]
        assert child.end(protocol.message_line("end")) == 0
    for done in blocks:
        assert set(done.histograms) == {"ack_interval", "sender_interval"}
        by_name = {t.name: sum(t.messages_by_cpu.values()) for t in done.threads}
        assert by_name == {
            "sender": done.histograms["sender_interval"].count,
            "receiver": done.histograms["ack_interval"].count,
        }
        # One answer a segment at most: those that came together were answered together.
        assert 0 < by_name["receiver"] <= by_name["sender"]
        assert done.blocked_publishes is not None
        assert done.negative_deltas == 0
        assert [t.threshold_ns for t in done.stall_totals] == [500_000, 1_000_000]
        assert {s.thread for s in done.stalls} <= {"sender", "receiver"}


@needs_two_cpus
def test_a_receiver_and_its_sender_stay_where_they_are_put(spec: RunSpec) -> None:
    first, second = sorted(os.sched_getaffinity(0))[:2]
    placed = Placement("chosen", producer=first, accumulator=second, hot=(second,))
    asked = dataclasses.replace(spec, workload="ack", interval_ns=100_000, threshold_ns=500_000, placement=placed)
    with launch.Child(launch.command(launch.WORKER)) as child:
        told = ready(child, asked)
        assert os.sched_getaffinity(told.tids["sender"]) == {first}
        assert os.sched_getaffinity(told.tids["receiver"]) == {second}
        done = block(child)
    assert {t.name: set(t.messages_by_cpu) for t in done.threads} == {
        "sender": {str(first)},
        "receiver": {str(second)},
    }


def divided(child: launch.Child, spec: RunSpec, last: str = "accumulator") -> tuple[int, Ready]:
    """Start a run whose thread ``last`` has a process of its own, on a host of which no CPU is isolated. Return the
    number of this process, and what the child says once it is ready."""
    first, second = sorted(os.sched_getaffinity(0))[:2]
    placed = Placement("chosen", first, second, hot=(second,), inside=(last,), processes=2)
    child.send(protocol.message_line("spec", dataclasses.replace(spec, placement=placed)))
    kind, asked = protocol.parse_message(child.wait(timeout_s=PATIENCE_S).line)
    assert kind == "inside", asked
    (pid,) = asked["tids"]
    status = Path(f"/proc/{pid}/status").read_text()
    assert f"Name:\t{last}\n" in status
    assert f"\nTgid:\t{pid}\n" in status
    assert f"\nPPid:\t{child.pid}\n" in status
    child.send(protocol.message_line("placed"))
    kind, told = answer(child)
    assert kind == "ready", told
    assert told.tids[last] == pid
    assert [os.sched_getaffinity(tid) for tid in told.tids.values()] == [{first}, {second}]
    return pid, told


def wait_until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.005)


def state_of(pid: int) -> str:
    """The letter of the process's state; "" for a process that has ended."""
    task = read_task(HostRoot(), pid)
    return "" if task is None or task.ended else task.state


@needs_two_cpus
@pytest.mark.parametrize("memory", ["none", "fresh", "huge", "file"])
def test_an_accumulator_in_a_process_of_its_own(spec: RunSpec, memory: Any) -> None:
    with launch.Child(launch.command(launch.WORKER)) as child:
        pid, told = divided(child, dataclasses.replace(spec, memory=memory))
        assert told.clock.offset_ns is not None
        blocks = [block(child) for _ in range(2)]
        assert child.end(protocol.message_line("end")) == 0
    assert state_of(pid) == ""
    for done in blocks:
        assert [(t.name, t.tid) for t in done.threads] == list(told.tids.items())
        places = [set(t.messages_by_cpu) for t in done.threads]
        assert places == [{str(cpu)} for cpu in sorted(os.sched_getaffinity(0))[:2]]
        assert len({sum(t.messages_by_cpu.values()) for t in done.threads}) == 1
        for name in ("migrations", "waited_ns", "ran_ns"):
            assert all((getattr(t, name) is None) == (name in done.notes) for t in done.threads), name


@needs_two_cpus
def test_a_receiver_in_a_process_of_its_own(spec: RunSpec) -> None:
    asked = dataclasses.replace(spec, workload="ack", interval_ns=100_000, threshold_ns=500_000)
    with launch.Child(launch.command(launch.WORKER)) as child:
        pid, _ = divided(child, asked, "receiver")
        assert block(child).histograms["ack_interval"].count > 0
        assert child.end(protocol.message_line("end")) == 0
    assert state_of(pid) == ""


@needs_two_cpus
def test_a_process_of_a_thread_stops_and_goes_on_with_the_others(spec: RunSpec) -> None:
    with launch.Child(launch.command(launch.WORKER)) as child:
        pid, _ = divided(child, spec)
        child.stop()
        wait_until(lambda: state_of(pid) == "T")
        child.resume()
        assert block(child).histograms["accumulator_transit"].count > 0


@needs_two_cpus
def test_a_process_of_a_thread_ends_with_the_child(spec: RunSpec) -> None:
    with launch.Child(launch.command(launch.WORKER)) as child:
        pid, _ = divided(child, spec)
        os.kill(child.pid, signal.SIGKILL)
        wait_until(lambda: state_of(pid) == "")


@needs_two_cpus
def test_a_killed_process_of_a_thread_ends_the_block(spec: RunSpec) -> None:
    with launch.Child(launch.command(launch.WORKER)) as child:
        pid, _ = divided(child, dataclasses.replace(spec, block_ns=60 * 10**9, blocks=1))
        child.send(protocol.message_line("go"))
        os.kill(pid, signal.SIGKILL)
        kind, message = answer(child)
    assert (kind, message.message) == ("failed", "the process of the accumulator was killed")


def test_a_receiver_has_no_listening_socket(spec: RunSpec) -> None:
    asked = dataclasses.replace(spec, workload="ack", interval_ns=100_000, threshold_ns=500_000)
    with launch.Child(launch.command(launch.WORKER)) as child:
        ready(child, asked)
        inodes = set()
        for fd in Path(f"/proc/{child.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                inodes.add(str(fd.readlink()))
        lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        mine = [line for line in lines if f"socket:[{line[9]}]" in inodes]
    # Two ends on 127.0.0.1 in state ESTABLISHED (01), and no listener (0A).
    assert len(mine) == 2
    assert all(line[1].startswith("0100007F:") and line[2].startswith("0100007F:") for line in mine)
    assert {line[3] for line in mine} == {"01"}


@pytest.mark.parametrize("workload", ["wakeup", "ack"])
def test_a_workload_that_waits_dies_with_its_parent(spec: RunSpec, workload: Any) -> None:
    asked = dataclasses.replace(spec, workload=workload, interval_ns=100_000, threshold_ns=500_000)
    child = launch.Child(launch.command(launch.WORKER))
    with child:
        ready(child, dataclasses.replace(asked, block_ns=10**9))
        child.send(protocol.message_line("go"))
        # The end of its stdin is the end of the child, also in the middle of a block.
        assert child.end(patience_s=PATIENCE_S) == 0


@needs_two_cpus
def test_threads_stay_where_they_are_put(spec: RunSpec) -> None:
    first, second = sorted(os.sched_getaffinity(0))[:2]
    placed = Placement("chosen", producer=first, accumulator=second, hot=(second,))
    with launch.Child(launch.command(launch.WORKER)) as child:
        told = ready(child, dataclasses.replace(spec, placement=placed))
        assert told.clock.offset_ns is not None
        assert told.clock.offset_bound_ns is not None
        for name, cpu in (("producer", first), ("accumulator", second)):
            assert os.sched_getaffinity(told.tids[name]) == {cpu}
        assert os.sched_getaffinity(child.pid) == os.sched_getaffinity(0) - {second}
        done = block(child)
    assert {t.name: set(t.messages_by_cpu) for t in done.threads} == {
        "producer": {str(first)},
        "accumulator": {str(second)},
    }
    assert done.ping_pong_ns is None or done.ping_pong_ns > 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"interval_ns": 1}, "shorter than one reading of the clock"),
        ({"messages": 10**12}, "is too long"),
        ({"messages": 0}, "at least one message"),
        ({"blocks": 0}, "at least one block"),
        ({"threshold_ns": 0}, "threshold"),
        ({"sched_priority": 99}, "must be from 1 to 49"),
        ({"ring_slots": 1000}, "1000 slots"),
        ({"workload": "wakeup", "interval_ns": 10}, "must be from 1 µs to 1 s"),
        ({"workload": "ack", "interval_ns": 2 * 10**9}, "must be from 1 µs to 1 s"),
        ({"workload": "wakeup", "placement": Placement("chosen", sampler=60_000)}, "sleeper cannot run on CPU 60000"),
        ({"workload": "ack", "placement": PLACED_NOWHERE}, "sender cannot run on CPU 60000"),
        ({"workload": "spin", "pause": "busy"}, "has a pause"),
        ({"workload": "wakeup", "duty": 50}, "the duty must be"),
        ({"workload": "spin", "duty": 99}, "the duty must be"),
        ({"workload": "ring", "duty": 50}, "the duty must be"),
        ({"workload": "spin", "threshold_ns": 2}, "too close to the time of one reading"),
        ({"placement": Placement("chosen", producer=60_000, accumulator=60_001)}, "cannot run on CPU 60000"),
        ({"scratch_dir": "/nonexistent"}, "/nonexistent"),
    ],
)
def test_a_refused_measurement_is_one_sentence(spec: RunSpec, change: dict[str, Any], words: str) -> None:
    said = failure(dataclasses.replace(spec, **change))
    assert words in said.message
    assert "\n" not in said.message + said.advice


@pytest.mark.parametrize(
    ("cost_ns", "resolution_ns", "fits_ns"),
    [
        (20.0, 10, 1_000),
        (125.0, 10, 1_000),
        (126.0, 10, 10_000),
        (840.0, 100, 10_000),
        (20.0, 1_000, 10_000),
        (200_000.0, 10, 1_600_000),
    ],
)
def test_a_default_threshold_gives_way_to_a_slow_clock(
    spec: RunSpec, cost_ns: float, resolution_ns: int, fits_ns: int
) -> None:
    clock: Any = SimpleNamespace(cost_ns=cost_ns, resolution_ns=resolution_ns)
    spin = dataclasses.replace(spec, workload="spin", threshold_gives_way=True)
    assert workloads.fit_threshold(spin, clock).threshold_ns == fits_ns
    for asked in (dataclasses.replace(spin, threshold_gives_way=False), dataclasses.replace(spin, workload="ring")):
        assert workloads.fit_threshold(asked, clock) == asked


def test_a_run_says_that_its_threshold_gave_way(spec: RunSpec) -> None:
    too_short = dataclasses.replace(spec, workload="spin", threshold_ns=2, threshold_gives_way=True)
    with launch.Child(launch.command(launch.WORKER)) as child:
        told = ready(child, too_short)
        done = block(child)
    assert told.threshold_ns is not None
    assert told.threshold_ns >= 1_000
    assert told.notes["stalls"].startswith(f"the threshold of gaps is {told.threshold_ns} ns instead of 2")
    assert min(total.threshold_ns for total in done.stall_totals) == told.threshold_ns


@pytest.mark.parametrize(
    "line", [b"\n", b"{}\n", b'{"kind":"go"}\n', b'{"kind":"spec","data":{"workload":7}}\n', b"\xff\n"]
)
def test_words_that_make_no_sense(line: bytes) -> None:
    assert "did not understand a message" in failure(line).message


def test_a_full_disk_is_said_before_a_block_dies_of_it(spec: RunSpec) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, hard))
    try:
        said = failure(spec)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert spec.scratch_dir in said.message


def test_nothing_is_left_in_the_scratch_folder(spec: RunSpec) -> None:
    with launch.Child(launch.command(launch.WORKER)) as child:
        ready(child, spec)
        assert list(Path(spec.scratch_dir).iterdir()) == []


@pytest.mark.parametrize("when", ["before the spec", "between blocks", "in a block"])
def test_the_end_of_stdin_ends_the_child(spec: RunSpec, when: str) -> None:
    with launch.Child(launch.command(launch.WORKER)) as child:
        if when != "before the spec":
            ready(child, dataclasses.replace(spec, block_ns=3_000 * 10**9))
        if when == "in a block":
            child.send(protocol.message_line("go"))
        # end() closes stdin and would send SIGTERM (exit status -15) if that did not suffice.
        assert child.end(patience_s=PATIENCE_S) == 0


def test_a_child_dies_with_its_parent(spec: RunSpec) -> None:
    """Killed with -9, the parent closes nothing itself; the pipe that the test holds shows when the child is gone."""
    parent = (
        "import sys, time\n"
        "from jitter_workshop.bench import launch, protocol\n"
        "child = launch.Child(launch.command(launch.WORKER))\n"
        "child.send(sys.stdin.buffer.readline())\n"
        "child.wait(timeout_s=60)\n"
        "child.send(protocol.message_line('go'))\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    line = protocol.message_line("spec", dataclasses.replace(spec, block_ns=3_000 * 10**9))
    with subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line)
        process.stdin.flush()
        child = os.pidfd_open(int(process.stdout.readline()))
        process.send_signal(signal.SIGKILL)
    try:
        assert launch.select.select([child], [], [], PATIENCE_S)[0] == [child]
    finally:
        os.close(child)


def test_messages_are_shared_out_whole(spec: RunSpec) -> None:
    for total, blocks in ((1, 1), (100, 7), (20, 20)):
        shared = dataclasses.replace(spec, messages=total, blocks=blocks)
        assert sum(workload.messages_of_block(shared, i) for i in range(blocks)) == total
    assert workload.messages_of_block(spec, 0) == 0


def test_counters_that_are_missing_or_run_backwards() -> None:
    assert worker.difference(None, 3) is None
    assert worker.difference(3, None) is None
    assert worker.difference(3, 2) == 0
    assert worker.difference(3, 5) == 2


def test_the_analysis_is_not_in_the_time_that_is_counted(
    spec: RunSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A made-up /proc and clock: measuring takes 250 ms and 62 ticks, the analysis 10 s and 2,500."""
    table = tmp_path / "proc" / "interrupts"
    table.parent.mkdir()
    now_ns = ticks = 0

    def passes(ns: int, more: int) -> None:
        nonlocal now_ns, ticks
        now_ns, ticks = now_ns + ns, ticks + more
        table.write_text(f"           CPU0\nLOC: {ticks:>10}   Local timer interrupts\n")

    class Workload:
        def __init__(self) -> None:
            self.tids: dict[str, int] = {}

        def measure(self, index: int) -> str:
            passes(250_000_000, 62)
            return f"result {index}"

        def analyse(self, index: int, result: str) -> protocol.BlockDone:
            assert result == f"result {index}"
            passes(10**10, 2_500)
            return protocol.BlockDone(index, {}, (), (), (), 0, 0, 200_000_000)

        def close(self) -> None:
            pass

    clock = SimpleNamespace(
        describe=lambda a, b: Clock("tsc", 10.0, 1, None, 0, 1), monotonic_ns=lambda t: t, ns=lambda t: t
    )
    slow = SimpleNamespace(
        sleep=lambda s: passes(round(s * 1e9), 12), monotonic_ns=lambda: now_ns, time=lambda: now_ns / 1e9
    )
    for name, made_up in {
        "HostRoot": lambda: HostRoot(tmp_path),
        "calibrate": lambda root, traced: clock,
        "lock_memory": lambda: (True, ""),
        "gc": SimpleNamespace(collect=int, freeze=int, disable=int),
        "time": slow,
    }.items():
        monkeypatch.setattr(worker, name, made_up)
    monkeypatch.setattr(workloads, "start_workload", lambda spec, clock: Workload())
    said: list[Any] = []
    words = iter([("go", None), ("go", None), ("end", None)])
    parent: Any = SimpleNamespace(say=lambda kind, data: said.append(data), hear=lambda: next(words))
    worker.Worker(parent, spec).run()
    for done in said[1:]:
        assert done.counted_ns == 250_000_000
        assert done.interrupts["LOC"].per_cpu == {"0": 62}


def test_all_of_the_tables_of_gaps_is_locked() -> None:
    page = os.sysconf("SC_PAGE_SIZE")

    def locked_bytes(small_ticks: int) -> int:
        config = ffi.new("jw_workload_config *")
        options = ffi.new("jw_spin_options *", {"small_ticks": small_ticks})
        config.clock = new_clock(lib.JW_CLOCK_MONOTONIC, 10**9)[0]
        config.most = 640
        spin = lib.jw_spin_new(config, options, ffi.new("int *"))
        try:
            before = locked()
            if lib.jw_workload_lock(spin) != 0:
                pytest.skip("this user may not lock so much memory")
            return locked() - before
        finally:
            lib.jw_workload_free(spin)

    def locked() -> int:
        status = Path("/proc/self/status").read_text()
        return 1024 * int(status.split("VmLck:")[1].split()[0])

    # A table has an entry more than ticks: here the first that lies on a page of its own, in both tables.
    assert locked_bytes(page // 8) - locked_bytes(page // 8 - 1) == 2 * page


def test_a_valid_spec_passes(spec: RunSpec) -> None:
    worker.validate(spec)
    with pytest.raises(UsageError):
        worker.validate(dataclasses.replace(spec, interval_ns=0))
