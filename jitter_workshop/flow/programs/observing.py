"""Observe a program for a while, and report how its threads spent the time. The report is based on the kernel's trace,
or on counters if there can be no trace."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from jitter_workshop.errors import HostError, WorkshopError
from jitter_workshop.evidence.explain import nothing_cyclic
from jitter_workshop.evidence.program import MOST_THREADS, THRESHOLD_NS, StealTimes, explain_program
from jitter_workshop.evidence.scene import ProgramScene
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.programs.counting import ThreadCounting
from jitter_workshop.flow.programs.launch import StartedCommand
from jitter_workshop.flow.programs.own_cost import Probe
from jitter_workshop.flow.programs.targets import Found, find_cgroup, find_process, not_ours
from jitter_workshop.host.kernel.hypervisor import read_mark
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.host import mark_notes
from jitter_workshop.model.program import CpuSteal, OwnCost, ProgramReport, Target
from jitter_workshop.model.record import FORMAT_VERSION
from jitter_workshop.model.trace import EventFields, TraceInfo, TraceRead, unpack_fields

CLOCK = "mono"
"""The trace's clock: ns, as ``time.monotonic_ns`` reads them."""
DRAIN_S = (0.05, 0.25)
"""Seconds between two readings of the trace's buffers, on a small host and on one with more than MANY_CPUS CPUs. Two
threads that do nothing but wake each other fill a CPU's buffer in 0.2 s."""
MANY_CPUS = 16
ITSELF = "jitter-workshop itself"
"""The name under which jitter-workshop's own processes are shown, because they, too, may hold up the program."""

NO_TRACE = "without a trace this is not known"
_EXEC = "sched:sched_process_exec"
_LONG_S = 3600.0
_LONGEST = 300
"""Greatest number of characters of a command line that are kept."""
_NULL = ("stalls", "threshold_ns", "lost_events", "causes", "worst", "all_threads", "faults", "cost")
_NULL_OF_THREADS = (
    "slept_ns",
    "blocked_ns",
    "unknown_ns",
    "interrupted_ns",
    "causes",
    "blocked_on",
    "slept_in",
    "unknown_in",
    "stolen_ns",
)


class ProgramTracer(Protocol):
    """Follow a program's trace through the agent (see ``agent.client.AgentClient``). All methods raise HostError on
    failure."""

    pid: int | None

    def evidence_follow(self, pids: Sequence[int], cpus: str, clock: str) -> TraceInfo: ...
    def evidence_start(self) -> None: ...
    def evidence_drain(self) -> bool: ...
    def evidence_read(self) -> TraceRead: ...
    def evidence_end(self) -> None: ...


class HeldCommand(Protocol):
    """Define a command whose process has been started. The command's program begins only when ``release`` is called.
    ``launch.StartedCommand`` and ``launch.KeptCommand`` are such commands."""

    pid: int

    def release(self) -> None: ...
    def wait(self, seconds: float) -> int | None: ...


def explain_command(
    words: Sequence[str],
    seconds: float | None,
    *,
    quiet: bool,
    signum: Callable[[BaseException], int | None] = lambda error: None,
    scene: ProgramScene | None = None,
) -> ProgramReport:
    """Start a command, observe it, and return the report. Raise HostError if the command cannot be started. Raise
    HostError if ``scene`` is given and there can be no trace.

    - ``seconds``: how long to observe; None: until the command ends.
    - ``quiet``: True sends the command's output to standard error.
    - ``signum``: returns the number of the signal that caused an exception, or None. If an exception ends the
      observation, the command is ended with this signal, or with SIGTERM for None.
    - ``scene``: receives a timeline (track) for each thread of the program, for a Perfetto file.
    """
    root = HostRoot()
    command, ending = StartedCommand(words, quiet=quiet), signal.SIGTERM
    try:
        found = Found(Target("command", " ".join(words)[:_LONGEST], command.pid), (command.pid,))
        with _follower() as (follower, why_not):
            return observe_program(root, found, follower, why_not, seconds, command, scene=scene)
    except BaseException as error:
        ending = signal.Signals(signum(error) or signal.SIGTERM)
        raise
    finally:
        command.end(ending)


def explain_running(
    pid: int | None,
    thread: str | None,
    cgroup: str | None,
    seconds: float,
    progress: Callable[[float], None] = lambda rest_s: None,
    scene: ProgramScene | None = None,
    *,
    start_ticks: int | None = None,
    agent: AgentConnection | None = None,
    or_counters: bool = False,
) -> ProgramReport:
    """Observe a process, some of its threads, or a control group, and return the report. Raise the errors of
    ``find_process``, ``find_cgroup`` and :func:`observe_program`.

    - ``pid``: the process; None: observe the control group ``cgroup``.
    - ``thread``: the name or number of the threads to observe; None: all threads.
    - ``progress``: is called with the seconds that are left, and with 0 at the end. An exception from ``progress`` ends
      the observation.
    - ``scene``: receives the program's tracks.
    - ``start_ticks``: the start time of the process, if the user chose the process from a list. If the process ``pid``
      now has a different start time, it is another process.
    - ``agent``: the connection to the agent, which this function closes; None: open a new connection.
    - ``or_counters``: True to use counters if there can be no trace, even if ``scene`` is given.
    """
    root = HostRoot()
    with contextlib.closing(agent or AgentConnection()) as agent_connection:
        found = find_cgroup(root, cgroup or "") if pid is None else find_process(root, pid, thread, start_ticks)
        follower, why_not = None, not_ours(root, found)
        if not why_not:
            follower, why_not = connected(agent_connection)
        return observe_program(
            root, found, follower, why_not, seconds, progress=progress, scene=scene, or_counters=or_counters
        )


@contextlib.contextmanager
def _follower() -> Iterator[tuple[ProgramTracer | None, str]]:
    """Connect to the agent. Yield the connection and "", or None and the reason if there is no connection."""
    with contextlib.closing(AgentConnection()) as agent_connection:
        yield connected(agent_connection)


def connected(agent_connection: AgentConnection) -> tuple[ProgramTracer | None, str]:
    """Return a connection to the agent and "", or None and the reason if no connection is possible."""
    try:
        return agent_connection.tracer(), ""
    except HostError as error:
        return None, error.message


def observe_program(
    root: HostRoot,
    found: Found,
    follower: ProgramTracer | None,
    why_not: str = "",
    seconds: float | None = None,
    command: HeldCommand | None = None,
    progress: Callable[[float], None] = lambda rest_s: None,
    scene: ProgramScene | None = None,
    *,
    or_counters: bool = False,
) -> ProgramReport:
    """Observe a program for ``seconds`` or until it ends, and return the report. Raise HostError if the command cannot
    be started. Raise HostError if ``scene`` is given, there can be no trace, and ``or_counters`` is False.

    - ``follower``: the connection that records the trace; None if there can be no trace.
    - ``why_not``: the reason why ``follower`` is None.
    - ``command``: a waiting command. This function releases the command, and waits for its end even after ``seconds``.
    - ``progress``: is called with the seconds that are left, and with 0 at the end.
    - ``scene``: receives the program's tracks.
    - ``or_counters``: True to use counters if there can be no trace, even if ``scene`` is given.
    """
    counting = ThreadCounting(root, found)
    with contextlib.closing(_Recording(root, follower, why_not)) as recording:
        recording.begin(found)
        if scene is not None and not recording.on and not or_counters:
            raise HostError(f"a Perfetto file needs a trace, but there can be none: {recording.why_not}")
        counting.begin()
        start_ns = time.monotonic_ns()
        if command is not None:
            command.release()
        until_ns = None if seconds is None else start_ns + round(seconds * 1e9)
        with Ends(root, found) as ends:
            while (rest_s := _rest_s(until_ns)) > 0 and not ends.within(min(rest_s, recording.pause_s)):
                progress(rest_s)
                recording.drain()
                if recording.on:
                    counting.look_at_groups()
                else:
                    counting.look()
        end_ns = time.monotonic_ns()
        progress(0)
        counting.look()
        throttled, (steal, why_no_steal) = counting.throttled(), counting.steal()
        read = recording.read()
    code = None
    while command is not None and code is None:
        code = command.wait(_LONG_S)
    notes = {
        "run": "this is a program of yours, not a run",
        "steal_ns": why_no_steal,
        "throttled": ""
        if throttled is not None
        else "the program's control groups do not show whether they were throttled",
        "exit_code": "" if command is not None else "no command was started",
    }
    common: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "run": None,
        "target": found.target,
        "clock": CLOCK,
        "steal_ns": None if steal is None else sum(steal.per_cpu.values()),
        "steal": () if steal is None else tuple(CpuSteal(cpu, ns) for cpu, ns in sorted(steal.per_cpu.items()) if ns),
        "throttled": throttled,
        "exit_code": code,
    }
    mark = read_mark(HostRoot())
    notes = {field: why for field, why in notes.items() if why} | mark_notes(mark)
    if scene is not None:
        scene.mark = mark
    if read is None or recording.info is None:
        return _counted(counting, end_ns - start_ns, common, notes | {"trace": recording.why_not})
    with nothing_cyclic():
        times = (start_ns, end_ns)
        return _traced(found, recording.info, read, times, common, notes, recording, counting, steal, scene)


def _rest_s(until_ns: int | None) -> float:
    return _LONG_S if until_ns is None else (until_ns - time.monotonic_ns()) / 1e9


def _counted(counting: ThreadCounting, ns: int, common: dict[str, Any], notes: dict[str, str]) -> ProgramReport:
    threads = counting.threads()
    why = dict.fromkeys(_NULL, NO_TRACE) | {f"threads.{name}": NO_TRACE for name in _NULL_OF_THREADS}
    if any(thread.ran_ns is None for thread in threads):
        why["threads.ran_ns"] = why["threads.waited_ns"] = "this kernel does not count these times (CONFIG_SCHED_INFO)"
    return ProgramReport(
        **common,
        evidence="counters",
        duration_ns=ns,
        threshold_ns=None,
        stalls=None,
        lost_events=None,
        causes=None,
        worst=None,
        threads=threads[:MOST_THREADS],
        all_threads=None,
        left_out=max(len(threads) - MOST_THREADS, 0),
        notes=why | notes,
    )


def _traced(
    found: Found,
    info: TraceInfo,
    read: TraceRead,
    times: tuple[int, int],
    common: dict[str, Any],
    notes: dict[str, str],
    recording: _Recording,
    counting: ThreadCounting,
    steal: StealTimes | None,
    scene: ProgramScene | None,
) -> ProgramReport:
    start_ns, end_ns = times
    throttled = counting.throttled()
    lost = sum(read.lost.values()) + sum(read.lost_elsewhere.values())
    try:
        events = list(unpack_fields(read.events, read.strings))
    except ValueError as error:
        raise HostError(f"the agent sent an answer that cannot be read: {error}") from error
    if recording.ended:
        end_ns = _known_until(events, read, info.cpus, start_ns, end_ns)
        notes["trace"] = (
            "the kernel made more events than the trace has room for, so the program was observed only for this time"
        )
    told = explain_program(
        events,
        info.cpus,
        counting.states,
        start_ns,
        end_ns,
        lost=read.lost,
        children=found.children,
        itself=recording.itself(),
        quota=counting.quota() if throttled is not None and throttled.periods > 0 else None,
        calls="syscalls:*" not in info.missing,
        command=found.target.pid if found.target.kind == "command" and _EXEC not in info.missing else None,
        in_futex=counting.in_futex,
        steal=steal,
        scene=scene,
    )
    if told.cut:
        notes["threads"] = "the program started more threads than this tool follows"
    return ProgramReport(
        **common,
        evidence="trace",
        duration_ns=end_ns - start_ns,
        threshold_ns=THRESHOLD_NS,
        stalls=told.stalls,
        lost_events=lost,
        causes=told.causes,
        worst=told.worst,
        threads=told.threads,
        all_threads=told.all_threads,
        left_out=told.left_out,
        events=len(events),
        unbalanced=told.unbalanced,
        unreported=told.unreported,
        frequencies=told.frequencies,
        faults=told.faults,
        cost=OwnCost(told.own_events, recording.event_ns, told.tool_ran_ns),
        missing=info.missing,
        notes=notes,
    )


def _known_until(events: Sequence[EventFields], read: TraceRead, cpus: Sequence[int], start: int, end: int) -> int:
    """Return the time up to which the trace has all events of all CPUs. If no CPU lost events, this is the time of the
    trace's last event. If some CPUs lost events, find the last event of each CPU that lost events. Return the time of
    the earliest of these last events. The result is never before ``start`` or after ``end``."""
    last: dict[int, int] = {}
    for event in events:
        last[event[1]] = event[0]
    ends = [last.get(cpu, start) for cpu in {*read.lost, *read.lost_elsewhere}]
    whole = min(ends) if ends else max(last.values(), default=start)
    return min(max(whole, start), end)


def itself(root: HostRoot, agent: int | None) -> dict[int, str]:
    """Return thread id → displayed name, for the threads of this process, and for the agent's process. ``agent``: the
    agent's process id; None if there is no agent."""
    own = [tid for tid, _ in root.numbered("/proc/self/task", "", digits=10)]
    return dict.fromkeys([os.getpid(), *own, *([agent] if agent else [])], ITSELF)


class _Recording:
    """Record the trace of a program.

    - ``on``: True while the trace is recorded.
    - ``why_not``: the reason why there is no trace.
    - ``ended``: True if the recording ended early, because there was no room for more events.
    """

    def __init__(self, root: HostRoot, follower: ProgramTracer | None, why_not: str) -> None:
        self._root, self._follower = root, follower
        self.why_not = why_not
        self.info: TraceInfo | None = None
        self.event_ns: int | None = None
        self.on = self.ended = self._begun = False

    @property
    def pause_s(self) -> float:
        """Return the seconds until this process reads the trace again, or the counters if there is no trace."""
        small = self.on and self.info is not None and len(self.info.cpus) <= MANY_CPUS
        return DRAIN_S[0] if small else DRAIN_S[1]

    def begin(self, found: Found) -> None:
        if self._follower is None:
            return
        with self._failing():
            online = self._root.cpu_list("/sys/devices/system/cpu/online")
            if not online:
                raise HostError("the kernel does not say which CPUs are online")
            with contextlib.closing(Probe()) as probe:
                probe.without()
                self.info = self._follower.evidence_follow((*found.pids, probe.pid), str(online), CLOCK)
                self._begun = True
                self._follower.evidence_start()
                self.on = True
                self.event_ns = probe.event_ns()

    def drain(self) -> None:
        if self.on and not self.ended and self._follower is not None:
            with self._failing():
                self.ended = self._follower.evidence_drain()

    def read(self) -> TraceRead | None:
        """End the recording, and return its trace. Return None if there is no trace that can be read."""
        if not self.on or self._follower is None:
            return None
        self.drain()
        with self._failing():
            return self._follower.evidence_read() if self.on else None
        return None

    def close(self) -> None:
        """Remove what the recording made in the kernel."""
        if self._begun and self._follower is not None:
            self._begun = False
            with contextlib.suppress(WorkshopError):
                self._follower.evidence_end()

    def itself(self) -> dict[int, str]:
        return itself(self._root, self._follower.pid if self._follower is not None else None)

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except WorkshopError as error:
            self.why_not = error.message
            self.on = False


class Ends(contextlib.ExitStack):
    """Detect the end of a program. A command has ended when its first process has ended. A process has ended when the
    process itself has ended. A control group ends when all its processes have ended. If only some threads are observed,
    the program also ends when all these threads have ended."""

    def __init__(self, root: HostRoot, found: Found) -> None:
        super().__init__()
        self._root, self._found = root, found
        self._files: dict[int, int] = {}
        for pid in found.pids if found.target.kind == "cgroup" else found.pids[:1]:
            with contextlib.suppress(OSError):
                self._files[pid] = os.pidfd_open(pid)
                self.callback(os.close, self._files[pid])

    def within(self, seconds: float) -> bool:
        """Wait until the program has ended, for at most ``seconds``. Return True if it has ended."""
        ready = select.select(list(self._files.values()), [], [], max(seconds, 0.0))[0]
        self._files = {pid: file for pid, file in self._files.items() if file not in ready}
        if not self._files:
            return True
        pid, only = self._found.pids[0], self._found.only
        return bool(only) and not any(self._root.is_dir(f"/proc/{pid}/task/{tid}") for tid in only)
