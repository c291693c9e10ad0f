"""Evidence on this machine's own kernel, as root: what is recorded is true, and nothing of anybody else is touched.

Left out, with the reason, where root's rights or the kernel's trace are not to be had.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from jitter_workshop.agent.client import AgentClient, agent_command
from jitter_workshop.agent.tracing import instances
from jitter_workshop.agent.tracing.capture import MEDDLED
from jitter_workshop.errors import HostError, MeasureError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.listing import parse_task_stat
from jitter_workshop.model.trace import TraceEvent, TraceInfo
from jitter_workshop.tuning.writer import HostWriter
from tests import livetrace
from tests.kernelprints import printed, says
from tests.madetrace import unpack

TRACEFS = Path("/sys/kernel/tracing")
INSTANCES = TRACEFS / "instances"
NAME = "x\n [000] d..1.\x1b[2J"
"""A name that a task may give itself: it looks like the beginning of a line of the trace."""
WOKEN = """\
import ctypes, os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
ctypes.CDLL(None).prctl(15, sys.argv[2].encode(), 0, 0, 0)
while os.read(0, 1):
    os.write(1, b"!")
"""


def _why_not() -> str:
    if why := livetrace.why_not():
        return why
    folder = instances.trace_folder(HostRoot())
    if folder != str(TRACEFS):
        return f"the trace is at {folder}"
    try:
        (INSTANCES / f"jw-test-{os.getpid()}-try").mkdir()
    except OSError as error:
        return f"no instance can be made: {error}"
    (INSTANCES / f"jw-test-{os.getpid()}-try").rmdir()
    return ""


pytestmark = [pytest.mark.host, pytest.mark.skipif(bool(WHY := _why_not()), reason=WHY or "it can be had")]


class Woken:
    """A child on one CPU that sleeps until it is woken."""

    def __init__(self, cpu: int) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-c", WOKEN, str(cpu), NAME], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self.pid = self._child.pid
        self.wake()

    def wake(self) -> None:
        """Wake it once it sleeps, and wait for its answer."""
        self._until("S")
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(b"!")
        self._child.stdout.read(1)

    def stop(self) -> None:
        """Stop it once it sleeps, and let it go on."""
        self._until("S")
        self._child.send_signal(signal.SIGSTOP)
        self._until("T")
        self._child.send_signal(signal.SIGCONT)

    def _until(self, state: str) -> None:
        while Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != state:
            time.sleep(0)

    def end(self) -> None:
        self._child.communicate()


@pytest.fixture
def hot() -> int:
    online = HostRoot().cpu_list("/sys/devices/system/cpu/online")
    assert online is not None
    return max(online)


@pytest.fixture
def woken(hot: int) -> Iterator[Woken]:
    child = Woken(hot)
    yield child
    child.end()


@pytest.fixture
def agent() -> Iterator[AgentClient]:
    with AgentClient(agent_command()) as started:
        yield started


def clock() -> tuple[str, Callable[[], int]]:
    """The trace's clock, and how this process reads the same one."""
    if "x86-tsc" in (TRACEFS / "trace_clock").read_text():
        try:
            from jitter_workshop.bench.native import lib
        except MeasureError:
            pass
        else:
            return "x86-tsc", lambda: int(lib.jw_clock_read(lib.JW_CLOCK_TSC))
    return "mono", time.monotonic_ns


def begin(agent: AgentClient, child: Woken, hot: int, stacks: bool = False, buffer_kb: int | None = None) -> TraceInfo:
    return agent.evidence_begin(child.pid, [child.pid], str(hot), clock()[0], stacks, buffer_kb)


def read(agent: AgentClient) -> tuple[list[TraceEvent], dict[int, int]]:
    told = agent.evidence_read()
    return list(unpack(told.events, told.strings)), told.lost


def ours(agent: AgentClient) -> list[Path]:
    return sorted(INSTANCES.glob(f"jitter-workshop-{agent._link._process.pid}@*-*"))


def of_hot_cpus(agent: AgentClient) -> Path:
    return next(path for path in ours(agent) if path.name.endswith("-hot"))


def gone(agent: AgentClient) -> bool:
    """Return True if the instances are taken away within the time that a busy machine may need."""
    ends = time.monotonic() + 60
    while ours(agent) and time.monotonic() < ends:
        time.sleep(0.01)
    return not ours(agent)


def not_woken(events: list[TraceEvent], pid: int) -> list[TraceEvent]:
    """Switches to a thread that slept, without a waking since it last came. A virtual machine may hide the switches of
    its own init, so two comings of the thread need not have its leaving between them."""
    found, asleep, woken = [], False, False
    for event in events:
        if event.kind == "waking" and event.a == pid:
            woken = True
        elif event.kind == "switch" and event.pid == pid:
            asleep = not event.b
        elif event.kind == "switch" and event.a == pid:
            if asleep and not woken:
                found.append(event)
            asleep = woken = False
    return found


def asleep_in_read(events: list[TraceEvent], pid: int) -> list[str]:
    """Stacks of one that lay down to sleep in its read. One that was woken before it had left, was preempted there, or
    on a real-time kernel waits for the pipe's lock, rightly has one."""
    found, ready = [], False
    for event in events:
        if event.pid != pid:
            continue
        if event.kind == "switch":
            ready = bool(event.b)
        elif event.kind == "stack" and not ready:
            functions = [function.partition("+")[0] for function in event.name.split(";")]
            if any(inner == "schedule" and "pipe_read" in outer for inner, outer in pairwise(functions)):
                found.append(event.name)
    return found


@pytest.mark.native
def test_the_switches_of_our_own_child_are_told(agent: AgentClient, woken: Woken, hot: int) -> None:
    now = clock()[1]
    info = begin(agent, woken, hot, stacks=True)
    assert {"sched:sched_switch", "sched:sched_waking", "irq:softirq_entry"} <= set(info.enabled)
    for _ in range(2):
        woken.wake()  # not recorded
        before = now()
        agent.evidence_start()
        for _ in range(20):
            woken.wake()
        woken.stop()
        after = now()
        events, lost = read(agent)
        woken.wake()  # not recorded either
        assert lost == {}
        assert all(earlier.ts <= later.ts for earlier, later in pairwise(events))
        mine = [e for e in events if woken.pid in (e.pid, e.a) and e.kind in ("switch", "waking")]
        # It may be woken with the last read still going on, and sleep after the last reading of the clock.
        assert all(before < e.ts < now() for e in mine)
        inside = [e for e in mine if e.ts < after]
        came = [e for e in inside if e.kind == "switch" and e.a == woken.pid]
        left = [e for e in inside if e.kind == "switch" and e.pid == woken.pid]
        roused = [e for e in inside if e.kind == "waking" and e.a == woken.pid and e.pid == os.getpid()]
        # It lies down before it leaves its CPU: woken in between, it stays.
        assert len(came) >= 10
        assert len(roused) >= 20  # a real-time kernel has it sleep once more, on the pipe's lock
        assert {e.cpu for e in came + left} == {hot}
        assert sum(not e.b for e in left) >= 10
        assert {e.name for e in came + roused} == {e.other for e in left} == {NAME[:15]}
        # A thread that comes after a sleep was woken before. One that was preempted comes by itself.
        assert not_woken(mine, woken.pid) == []
        stacks = [e.name for e in events if e.kind == "stack" and e.pid == woken.pid]
        if info.stacks:
            # The stack of the place where it was stopped, and not where it waits for its byte.
            assert any("do_signal_stop" in name for name in stacks)
        assert asleep_in_read(events, woken.pid) == []
        assert not [e for e in events if e.kind in ("irq_entry", "switch") and e.cpu != hot]
    agent.evidence_end()
    assert ours(agent) == []


def test_the_kernel_prints_the_same(agent: AgentClient, woken: Woken, hot: int) -> None:
    begin(agent, woken, hot)
    agent.evidence_start()
    for _ in range(50):
        woken.wake()
    hot_instance = of_hot_cpus(agent)
    (hot_instance / "tracing_on").write_text("0")
    lines = printed((hot_instance / "trace").read_text())
    (hot_instance / "tracing_on").write_text("1")  # as the agent left it: events may come that were not printed
    events, _ = read(agent)
    elsewhere = ("migrate", "waking", "ipi_send", "frequency")
    of_hot = [event for event in events if event.kind not in elsewhere]
    assert list(lines) == [hot]
    assert len(of_hot) >= len(lines[hot]) > 100
    for event, line in zip(of_hot, lines[hot], strict=False):
        assert says(event, line), (event, line)
        assert (event.ts, event.pid, event.flags) == (line.ts, line.pid, line.flags)


def test_events_that_the_buffer_drops_are_counted(agent: AgentClient, woken: Woken, hot: int) -> None:
    now = clock()[1]
    info = begin(agent, woken, hot, buffer_kb=32)
    assert info.buffer_kb == 32
    folder = of_hot_cpus(agent) / f"per_cpu/cpu{hot}"
    agent.evidence_start()
    answered = []
    for _ in range(1000):
        woken.wake()
        answered.append(now())
    events, lost = read(agent)
    stats = dict(line.split(":", 1) for line in (folder / "stats").read_text().splitlines())
    dropped = sum(int(stats[name]) for name in ("dropped events", "overrun", "commit overrun"))
    assert lost == {hot: dropped}
    assert dropped > 1000
    # The oldest are those that were kept, and nothing of our child is missing in between. A child that is still awake
    # may read several of its bytes at once, and a virtual machine may hide its own init's switches from the trace.
    switches = [e for e in events if e.kind == "switch" and e.cpu == hot]
    assert len(switches) > 50
    assert switches[0].ts < answered[10]
    assert switches[-1].ts < answered[500]
    kept = sum(at < switches[-1].ts for at in answered)
    assert sum(e.a == woken.pid for e in switches) >= kept // 4
    agent.evidence_start()
    for _ in range(5):
        woken.wake()
    events, lost = read(agent)
    assert lost == {}
    assert any(e.kind == "switch" and e.a == woken.pid for e in events)  # it may read several of its bytes at once


def put(file: str, text: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / file).write_text(text)

    return write


def read_away(folder: Path) -> None:
    file = os.open(folder / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert os.read(file, 1 << 16)
    finally:
        os.close(file)


MEDDLE = {
    "off": put("tracing_on", "0"),
    "disabled": put("events/enable", "0"),
    "filtered": put("events/sched/sched_switch/filter", "prev_pid == 1"),
    "tasks": put("set_event_pid", "1"),
    "clock": put("trace_clock", "global"),
    "emptied": put("trace", ""),
    "read": read_away,
}


@pytest.mark.parametrize("how", MEDDLE)
def test_a_trace_that_another_program_changed_is_not_told_as_whole(
    agent: AgentClient, woken: Woken, hot: int, how: str
) -> None:
    begin(agent, woken, hot, stacks=True)
    for _ in range(2):
        agent.evidence_start()
        woken.wake()
        assert read(agent)[0]
    agent.evidence_start()
    woken.wake()
    MEDDLE[how](of_hot_cpus(agent))
    woken.wake()
    with pytest.raises(HostError, match=MEDDLED):
        agent.evidence_read()
    agent.evidence_end()
    assert ours(agent) == []


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, None])
def test_nothing_is_left_after_any_end(agent: AgentClient, woken: Woken, hot: int, how: signal.Signals | None) -> None:
    begin(agent, woken, hot)
    agent.evidence_start()
    assert len(ours(agent)) == 2
    if how is None:
        agent.close()
    else:
        agent._link._process.send_signal(how)
    assert gone(agent)


def test_an_instance_with_a_reader_is_removed_after_the_reader_closes_it(
    agent: AgentClient, woken: Woken, hot: int
) -> None:
    begin(agent, woken, hot)
    with (ours(agent)[0] / "trace_pipe").open():
        agent._link._process.kill()
        agent._link._process.wait()
        # The other one goes at once.
        ends = time.monotonic() + 60
        while len(ours(agent)) > 1 and time.monotonic() < ends:
            time.sleep(0.01)
        assert len(ours(agent)) == 1
    assert gone(agent)


def test_traces_of_other_programs_are_not_touched(agent: AgentClient, woken: Woken, hot: int) -> None:
    def state(folder: Path) -> dict[str, str]:
        names = ("tracing_on", "trace_clock", "trace_options", "set_event", "buffer_size_kb", "tracing_cpumask")
        found = {name: (folder / name).read_text() for name in (*names, "current_tracer")}
        return found | {"filter": (folder / "events/sched/sched_waking/filter").read_text()}

    theirs = INSTANCES / f"jw-test-{os.getpid()}"
    theirs.mkdir()
    try:
        (theirs / "trace_marker").write_text("mine\n")
        (theirs / "events/sched/sched_process_exec/enable").write_text("1")
        # Agents that trace at once can leave the kernel without names until it is booted again.
        subprocess.run(["true"], check=True)
        named = "true-" in (theirs / "trace").read_text()
        before = state(TRACEFS), state(theirs)
        begin(agent, woken, hot, stacks=True)
        agent.evidence_start()
        assert (state(TRACEFS), state(theirs)) == before
        woken.wake()
        subprocess.run(["sleep", "0"], check=True)
        read(agent)
        agent.evidence_end()
        assert (state(TRACEFS), state(theirs)) == before
        told = (theirs / "trace").read_text()
        assert "mine" in told
        # Its own events know the names of their tasks: what keeps those was not switched off.
        assert "sleep-" in told or not named
    finally:
        theirs.rmdir()


def test_the_agent_keeps_off_the_hot_cpus(agent: AgentClient, woken: Woken, hot: int) -> None:
    pid = agent._link._process.pid
    before = os.sched_getaffinity(pid)
    begin(agent, woken, hot)
    if len(os.sched_getaffinity(woken.pid) | before) > 1:
        assert hot not in os.sched_getaffinity(pid)
    agent.evidence_end()
    assert os.sched_getaffinity(pid) == before


def test_the_instances_of_a_killed_agent_are_removed(agent: AgentClient, woken: Woken, hot: int) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    began = parse_task_stat(Path(f"/proc/{os.getpid()}/stat").read_text())
    assert began is not None
    stale = [f"{ended.pid}", f"{ended.pid}@{began.start_ticks}", f"{os.getpid()}@{began.start_ticks - 1}"]
    alive = ["1", f"{os.getpid()}@{began.start_ticks}"]
    folders = {who: INSTANCES / f"jitter-workshop-{who}-hot" for who in (*stale, *alive)}
    try:
        for folder in folders.values():
            folder.mkdir()
        begin(agent, woken, hot)
        assert [who for who in folders if folders[who].exists()] == alive
    finally:
        for folder in folders.values():
            if folder.exists():
                folder.rmdir()


def test_instances_left_by_a_killed_agent_and_watcher_are_known_and_removed(
    agent: AgentClient, woken: Woken, hot: int
) -> None:
    begin(agent, woken, hot)
    agent.evidence_start()
    names = tuple(path.name for path in ours(agent))
    assert not set(names) & set(instances.stale(HostRoot()))
    pid = agent._link._process.pid
    (watcher,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    os.kill(int(watcher), signal.SIGKILL)
    agent._link._process.kill()
    agent._link._process.wait()
    assert tuple(path.name for path in ours(agent)) == names
    assert set(names) <= set(instances.stale(HostRoot()))
    assert set(names) <= set(instances.remove_stale(HostRoot(), HostWriter())[0])
