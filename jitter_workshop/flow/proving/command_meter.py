"""Make the runs of a proof with the user's own command. Each run gives one figure, and leaves no process or file
behind."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.runner import Cancelled
from jitter_workshop.errors import HostError, MeasureError, SessionError, UsageError
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.measuring.isolated_set import own_cpus
from jitter_workshop.flow.programs.kept import KEPT_OUTPUT, Ended, KeptCommand
from jitter_workshop.flow.programs.metrics import SEARCHED, Metric
from jitter_workshop.flow.programs.observing import observe_program
from jitter_workshop.flow.programs.targets import Found
from jitter_workshop.flow.proving.meters import Meter, Occasion, Taken
from jitter_workshop.flow.proving.sides import SideName
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.program import Target
from jitter_workshop.model.text import NAME, PATH, clean, many
from jitter_workshop.model.verdict import CommandFigure
from jitter_workshop.session import foreign
from jitter_workshop.stats.comparison import HELD_UP, MATCH, NS, USER, WALL
from jitter_workshop.stats.rounds import side_of_figure
from jitter_workshop.tuning.journal import applied_tunables

OVERFLOWED = "a run made more events than the trace has room for"
TIMEOUT_S = 600.0
LONGEST_TIMEOUT_S = 86_400.0


@dataclass(frozen=True)
class CommandRequest:
    """Hold the user's command. ``words``: its words. ``metric``: the figure that is compared. ``timeout_s``: the time
    limit of a run in seconds. If a run takes longer, the proof ends. Raise UsageError for an invalid time limit."""

    words: tuple[str, ...]
    metric: Metric
    timeout_s: float = TIMEOUT_S

    def __post_init__(self) -> None:
        if not 0 < self.timeout_s <= LONGEST_TIMEOUT_S:
            raise UsageError(f"--timeout must be more than 0 and at most {LONGEST_TIMEOUT_S:,.0f} s")

    @property
    def options(self) -> tuple[str, ...]:
        """Return the options of ``prove`` that repeat this measurement."""
        return (*self.metric.options, *(() if self.timeout_s == TIMEOUT_S else ("--timeout", f"{self.timeout_s:g}")))


class CommandMeter(Meter):
    """Run the user's command for the runs of a proof. ``pinned``: two sets of CPUs for the command: one for the runs
    without the change, one for the runs with it. None means all CPUs that this process may use. ``root``: the host on
    which the command runs."""

    def __init__(self, request: CommandRequest, pinned: Mapping[SideName, CpuSet | None], root: HostRoot) -> None:
        self._request, self._pinned, self._root = request, pinned, root
        self._seconds = 0.0
        self._unit = NS
        self._left = 0
        self._notes: dict[str, None] = {}

    @property
    def seconds(self) -> float:
        return self._seconds

    @property
    def unit(self) -> str:
        """Return the unit of the figure. It is known only after the first run of the command."""
        return self._unit

    def first_run(self, side: SideName, agent_connection: AgentConnection, cancel: CancelToken) -> float:
        """Run the command once as a test, and return its duration in seconds. So an error of the command shows before
        any setting is changed. Raise HostError if the file that the command should write exists already. Raise the
        errors of ``measure``."""
        path = self._request.metric.file
        if path is not None and os.path.lexists(path):
            raise HostError(
                f"{clean(path, PATH)} exists already: this tool could mistake it for the file that the command writes",
                "move this file away, or let the command write another file",
            )
        if self._request.metric.measure == HELD_UP:
            agent_connection.tracer()  # its start is no part of a run's time
        began = time.monotonic()
        figure = self._figure(side, agent_connection, cancel)
        self._seconds, self._unit = time.monotonic() - began, figure.unit
        return self._seconds

    def measure(self, occasion: Occasion) -> Taken:
        applied = tuple(applied_tunables(self._root, in_effect=True))
        figure = self._figure(occasion.side, occasion.agent_connection, occasion.cancel)
        try:
            return Taken(side_of_figure(figure), applied)
        except ValueError as error:
            raise MeasureError(str(error)) from error

    def notes(self) -> tuple[str, ...]:
        left = f"the command left up to {many(self._left, 'task')} running; this tool ended them after each run"
        return (*self._notes, *((left,) if self._left else ()))

    def _figure(self, side: SideName, agent_connection: AgentConnection, cancel: CancelToken) -> CommandFigure:
        metric = self._request.metric
        capture = SEARCHED if metric.measure == MATCH else KEPT_OUTPUT
        with self._file_removed(), KeptCommand(self._request.words, self._request.timeout_s, capture) as command:
            self._pin(command.pid, self._pinned[side], agent_connection)
            held_up_ns = None
            if metric.measure == HELD_UP:
                held_up_ns = self._held_up(command, agent_connection, cancel)
            else:
                command.release()
            ended = command.result(cancel)
            self._left = max(self._left, ended.left)
            return self._read(ended, held_up_ns)

    def _read(self, ended: Ended, held_up_ns: int | None) -> CommandFigure:
        metric = self._request.metric
        if held_up_ns is not None:
            return CommandFigure(HELD_UP, NS, float(held_up_ns))
        if metric.measure in (WALL, USER):
            return CommandFigure(metric.measure, NS, float(ended.wall_ns if metric.measure == WALL else ended.user_ns))
        if metric.file is None:
            return metric.of_output(ended.output)
        if not os.path.lexists(metric.file):
            raise MeasureError(
                f"the command did not write {clean(metric.file, PATH)}", "give the path of the file that it writes"
            )
        try:
            data = foreign.content(metric.file)
        except SessionError as error:
            raise MeasureError(f"the command's file is not usable: {error.message}") from None
        figure, notes = metric.of_file(data)
        self._notes |= dict.fromkeys(notes)
        return figure

    @contextlib.contextmanager
    def _file_removed(self) -> Iterator[None]:
        """Remove the file that the command wrote when the context ends. Otherwise the next run could read the file of
        an earlier run."""
        try:
            yield
        finally:
            path = self._request.metric.file
            if path is not None:
                with contextlib.suppress(OSError):
                    path.unlink()

    def _pin(self, pid: int, cpus: CpuSet | None, agent_connection: AgentConnection) -> None:
        """Bind the command to CPUs before it begins. Raise HostError if that fails."""
        if cpus is None:
            return
        if cpus & own_cpus(self._root):
            given = agent_connection.place(pid)
            if cpus - given:
                raise HostError(f"the command may use CPU {given} of the isolated CPUs, but not CPU {cpus - given}")
        try:
            os.sched_setaffinity(pid, cpus.cpus)
        except OSError as error:
            raise HostError(f"the command cannot be bound to CPU {cpus}: {error.strerror}") from error

    def _held_up(self, command: KeptCommand, agent_connection: AgentConnection, cancel: CancelToken) -> int:
        """Run the command with the kernel's trace, and return its hold-up in ns. The hold-up is the time in which a
        thread was runnable but did not run. The times of all threads are added up. Raise HostError if there is no
        trace. Raise MeasureError if the trace is incomplete."""
        found = Found(Target("command", clean(" ".join(self._request.words), NAME), command.pid), (command.pid,))

        def stopped(rest_s: float) -> None:
            if cancel.reason is not None:
                raise Cancelled(cancel.reason)

        report = observe_program(self._root, found, agent_connection.tracer(), command=command, progress=stopped)
        if report.all_threads is None:
            why = report.notes.get("trace", "there is no trace")
            raise HostError(f"only the kernel's trace shows how long a command was held up: {clean(why, PATH)}")
        if report.lost_events or "trace" in report.notes or "threads" in report.notes:
            raise MeasureError(
                f"{OVERFLOWED}, so it is not known how long the command was held up",
                "compare the wall time, or give the command less work for each run",
            )
        return report.all_threads.waited_ns
