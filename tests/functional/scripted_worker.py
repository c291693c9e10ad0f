"""A child that speaks the worker's protocol without measuring: ``scripted_worker MODE``, for tests of the runner.

MODE: ``ok``; ``die:N`` kills itself in block N; ``hang:N`` never ends block N; ``exit`` complains and leaves;
``failed`` refuses the spec; ``garbage`` says no protocol line; ``mute`` never gets ready; ``stall:N`` tells real times
and ends no block from N on before it was stopped and went on, until one was stopped for 100 ms; ``brief`` tells real
times, too, and ends every block at once.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
import time
from typing import Any

from jitter_workshop.bench import protocol
from jitter_workshop.model.codec import from_plain
from jitter_workshop.model.run import Clock, Counter, Stall, StallTotal, ThreadRecord
from jitter_workshop.model.spec import KINDS, RunSpec
from jitter_workshop.stats import histogram

VALUES = (80, 90, 100, 5_000)


def say(kind: str, payload: Any = None) -> None:
    sys.stdout.buffer.write(protocol.message_line(kind, payload))
    sys.stdout.buffer.flush()


def block(index: int, spec: RunSpec) -> protocol.BlockDone:
    """Four messages: 80, 90 and 100 ns and one that took 5 µs and whose true length is 5,000 + block."""
    counted = histogram.new_histogram()
    for value in VALUES:
        counted.record_value(value)
    name = KINDS[spec.workload].histogram
    longest = VALUES[-1] + index
    return protocol.BlockDone(
        index=index,
        start_ns=1_000_000 + index * 2_000_000,
        end_ns=2_000_000 + index * 2_000_000,
        wall_start_s=1_700_000_000.0 + index,
        histograms={
            name: protocol.HistogramBlock(
                histogram.encode_histogram(counted), len(VALUES), min(VALUES), longest, sum(VALUES) + index, 0
            )
        },
        threads=(ThreadRecord("accumulator", {"1": 3, "0": 1}, 1, 2, None, 4, 0),),
        stalls=(Stall(index, "accumulator", 1, 10, 10 + longest, 1),),
        stall_totals=(StallTotal(1_000, 1, longest), StallTotal(10_000, 0, 0)),
        blocked_publishes=1,
        negative_deltas=0,
        core_hz=3_000_000_000 + index,
        ping_pong_ns=60.0,
        interrupts={"LOC": Counter("timer", {"1": 2})},
        softirqs=None,
        steal_ns=0,
        throttled_periods=None,
        parent_switches=0,
        notes={"softirqs": "not shown here"},
        counted_ns=1_200_000,
    )


def main(mode: str) -> None:
    kind, data = protocol.parse_message(sys.stdin.buffer.readline())
    assert kind == "spec"
    spec = from_plain(RunSpec, data)
    if mode == "exit":
        sys.exit("something broke")
    if mode == "garbage":
        os.write(1, b"hello\n")
    if mode == "failed":
        say("failed", protocol.Failed("the interval is too short", "take a longer one"))
    if spec.placement.inside:
        say("inside", protocol.MoveInside((os.getpid(),)))
        assert protocol.parse_message(sys.stdin.buffer.readline())[0] == "placed"
    if mode != "mute":
        say(
            "ready",
            protocol.Ready(
                Clock("tsc", 9.7, 10, None, None, None),
                {"accumulator": os.getpid()},
                True,
                "other",
                threshold_ns=10_000 if mode == "slow-clock" else None,
            ),
        )
    if mode == "slow-clock":
        spec = dataclasses.replace(spec, threshold_ns=10_000)
    action, _, at = mode.partition(":")
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCONT})
    stalled = False
    for index, line in enumerate(sys.stdin.buffer):
        if protocol.parse_message(line)[0] == "end":
            break
        if action == "die" and index == int(at):
            os.kill(os.getpid(), signal.SIGKILL)
        if action == "hang" and index == int(at):
            while True:
                time.sleep(60)
        done = block(index, spec)
        if action in ("stall", "brief"):
            start_ns = time.monotonic_ns()
            if action == "stall" and index >= int(at) and not stalled:
                signal.sigwait({signal.SIGCONT})
            done = dataclasses.replace(done, start_ns=start_ns, end_ns=time.monotonic_ns())
            stalled = stalled or done.end_ns - done.start_ns >= 100_000_000
        say("block", done)


if __name__ == "__main__":
    main(sys.argv[1])
