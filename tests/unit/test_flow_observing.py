"""Test the observation of a program: the trace where it can be had, counters where it cannot, and what ends it."""

from __future__ import annotations

import os
import subprocess
import time
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.errors import HostError
from jitter_workshop.flow.programs import observing
from jitter_workshop.flow.programs.counting import ThreadCounting
from jitter_workshop.flow.programs.observing import ITSELF, observe_program
from jitter_workshop.flow.programs.targets import Found
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.program import ProgramReport, Target, Throttled
from jitter_workshop.model.trace import Strings, TraceEvent, TraceInfo, TraceRead, pack_events
from tests import hosttrees

AGENT = 999_999


@dataclass
class FakeFollower:
    """Hands out what ``events`` makes of the time at which the recording began. ``fails``: at which word it refuses."""

    events: Callable[[int], list[TraceEvent]] = lambda began: []
    fails: str = ""
    full_after: int = 1_000_000
    lost: dict[int, int] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    asked: tuple[Any, ...] = ()
    pid: int | None = AGENT
    began: int = 0

    def evidence_follow(self, pids: Sequence[int], cpus: str, clock: str) -> TraceInfo:
        self._say("follow")
        self.asked = (tuple(pids), clock)
        return TraceInfo(clock, (0, 1), (), {"csd:csd_function_entry": "not here"}, 64)

    def evidence_start(self) -> None:
        self._say("start")
        self.began = time.monotonic_ns()

    def evidence_drain(self) -> bool:
        self._say("drain")
        return self.said.count("drain") > self.full_after

    def evidence_read(self) -> TraceRead:
        self._say("read")
        strings = Strings()
        return TraceRead(pack_events(self.events(self.began), strings), tuple(strings.all), self.lost)

    def evidence_end(self) -> None:
        self._say("end")

    def _say(self, word: str) -> None:
        self.said.append(word)
        if word == self.fails:
            raise HostError(f"the kernel refused {word}", "ask its owner")


@pytest.fixture
def sleeper() -> Iterator[int]:
    """A process that has answered once, and sleeps since: while it starts, it runs."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"!")
        assert child.stdout.read(1) == b"!"
        while Path(f"/proc/{child.pid}/stat").read_text().rpartition(") ")[2][0] != "S":
            time.sleep(0.001)
        yield child.pid
        child.kill()


def observed(pid: int, follower: FakeFollower | None, seconds: float = 0.15) -> ProgramReport:
    found = Found(Target("process", "sleep", pid), (pid,))
    return observe_program(HostRoot(), found, follower, "it needs root's rights", seconds)


def stolen(pid: int) -> Callable[[int], list[TraceEvent]]:
    """The agent takes the CPU for a ms, 100 ms after the beginning."""

    def events(began: int) -> list[TraceEvent]:
        at = began + 100_000_000
        return [
            TraceEvent(at, 0, "switch", pid, AGENT, 1, name="python", other="sleep"),
            TraceEvent(at + 1_000_000, 0, "switch", AGENT, pid, 0, ord("S"), name="sleep", other="python"),
        ]

    return events


def test_a_program_is_followed_and_its_buffers_are_drained(sleeper: int) -> None:
    follower = FakeFollower(stolen(sleeper))
    report = observed(sleeper, follower)
    pids, clock = follower.asked
    # Beside the program the process is recorded that tells what an event costs.
    assert (pids[0], len(pids), clock) == (sleeper, 2, "mono")
    assert [one.tid for one in report.threads] == [sleeper]
    assert report.cost is not None
    assert (report.cost.events, report.cost.tool_ran_ns) == (2, 1_000_000)
    assert follower.said[:2] == ["follow", "start"]
    assert follower.said[-3:] == ["drain", "read", "end"]
    (thread,) = report.threads
    assert (report.evidence, thread.tid, thread.waited_ns) == ("trace", sleeper, 1_000_000)
    assert [(cause.kind, cause.name) for cause in report.causes or ()] == [("task", ITSELF)]
    assert report.missing == {"csd:csd_function_entry": "not here"}
    assert 0.15e9 <= report.duration_ns < 30e9


@pytest.mark.parametrize("fails", ["follow", "start", "drain", "read"])
def test_where_the_trace_breaks_off_counters_remain_with_the_reason(sleeper: int, fails: str) -> None:
    follower = FakeFollower(fails=fails)
    report = observed(sleeper, follower)
    assert (report.evidence, report.notes["trace"]) == ("counters", f"the kernel refused {fails}")
    assert [thread.tid for thread in report.threads] == [sleeper]
    assert ("end" in follower.said) == (fails != "follow")


def test_without_an_agent_counters_remain(sleeper: int) -> None:
    report = observed(sleeper, None)
    assert (report.evidence, report.notes["trace"]) == ("counters", "it needs root's rights")
    assert report.threads[0].ran_ns == 0


def test_a_recording_that_ended_early_tells_of_its_own_time_only(sleeper: int) -> None:
    follower = FakeFollower(stolen(sleeper), full_after=0, lost={0: 5})
    report = observed(sleeper, follower, 0.3)
    assert "more events than the trace has room for" in report.notes["trace"]
    assert report.lost_events == 5
    # The last event of the CPU that lost some came 101 ms after the recording began.
    assert report.duration_ns <= 101_000_000
    assert follower.said.count("drain") == 1


def test_progress_is_told_until_the_end(sleeper: int) -> None:
    told: list[float] = []
    found = Found(Target("process", "sleep", sleeper), (sleeper,))
    observe_program(HostRoot(), found, FakeFollower(), "", 0.3, progress=told.append)
    assert told[-1] == 0
    assert told[:-1] == sorted(told[:-1], reverse=True)
    assert 0.0 < told[0] <= 0.3


def test_damaged_events_are_refused(sleeper: int, monkeypatch: pytest.MonkeyPatch) -> None:
    follower = FakeFollower()
    monkeypatch.setattr(follower, "evidence_read", lambda: TraceRead(b"short", ("",), {}))
    with pytest.raises(HostError, match="cannot be read"):
        observed(sleeper, follower)
    assert follower.said[-1] == "end"


def test_many_cpus_are_drained_less_often() -> None:
    recording = observing._Recording(HostRoot(), FakeFollower(), "")
    recording.begin(Found(Target("process", "x", 1), (1,)))
    assert recording.pause_s == observing.DRAIN_S[0]
    recording.info = TraceInfo("mono", tuple(range(64)), (), {}, 64)
    assert recording.pause_s == observing.DRAIN_S[1]


@pytest.mark.parametrize(("number", "waits"), [("202", True), ("7", False), ("running", False), (None, False)])
def test_threads_that_are_in_a_futex_at_the_beginning_are_noted(
    tmp_path: Path, number: str | None, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "uname", lambda: types.SimpleNamespace(machine="x86_64"))
    stat = "7 (x) S 1" + 30 * " 0" + "\n"
    files = {"proc/7/task/7/stat": stat, "proc/7/stat": stat}
    if number is not None:
        files["proc/7/task/7/syscall"] = f"{number} 0x1 0x2\n"
    hosttrees.write(tmp_path, files)
    counting = ThreadCounting(HostRoot(tmp_path), Found(Target("process", "x", 7), (7,)))
    counting.begin()
    assert counting.in_futex == ({7} if waits else set())
    (tmp_path / "proc/7/task/7/syscall").unlink(missing_ok=True)
    counting.look()
    assert counting.in_futex == ({7} if waits else set())


MOUNT = "32 30 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"


def test_a_group_that_the_program_joins_and_that_is_removed_still_counts(tmp_path: Path) -> None:
    group = "sys/fs/cgroup/web"
    hosttrees.write(
        tmp_path,
        {
            "proc/self/mountinfo": MOUNT,
            "proc/7/cgroup": "0::/\n",
            f"{group}/cpu.max": "20000 100000\n",
            f"{group}/cpu.stat": "nr_throttled 3\nthrottled_usec 100\n",
        },
    )
    counting = ThreadCounting(HostRoot(tmp_path), Found(Target("process", "x", 7), (7,)))
    counting.begin()
    assert (counting.throttled(), counting.quota()) == (None, None)
    (tmp_path / "proc/7/cgroup").write_text("0::/web\n")
    counting.look_at_groups()
    assert counting.throttled() == Throttled(0, 0)
    (tmp_path / group / "cpu.stat").write_text("nr_throttled 5\nthrottled_usec 700\n")
    counting.look_at_groups()
    (tmp_path / group / "cpu.stat").unlink()
    (tmp_path / "proc/7/cgroup").unlink()
    counting.look_at_groups()
    assert counting.throttled() == Throttled(2, 600_000)
    assert counting.quota() == (20_000_000, 100_000_000)
