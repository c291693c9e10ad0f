"""Watch for stalls for hours, and keep the kernel's trace of the worst of them.

A sampler reads the clock on one CPU without pause, and the kernel's trace runs in buffers that overwrite their oldest
events. Half a second after a stall of --threshold or longer, the sampler pauses, and the trace is frozen, read, and
started again. Each stall's time is split by cause, to the nanosecond; the traces of the worst stalls are kept. Without
rights for the trace, stalls are counted without causes.

Between two blocks, and while the trace is read, a stall would not be seen. This time is shown, but does not count as
watched. The watch keeps a journal, which survives a kill and a full disk.
'watch --show DIR' shows what the journal says, and with --perfetto FILE it writes the kept traces as tracks, for
ui.perfetto.dev.

With --pid PID, or a command after --, a program is watched instead: a stall is a time in which a thread was ready to
run but had no CPU. The kernel keeps the sum of these times for each thread. The watch reads these sums four times a
second. If a sum has grown by at least the threshold, the trace is frozen. A command has no terminal, and its output
goes to stderr. At the end of the watch, the command and all that it has started are ended, too.

--exec CMD runs a command for each freeze, without a shell: it gets a JSON object on its standard input. --textfile FILE
writes the figures for node_exporter's textfile collector, again and again.

With --accept "stall < 20us for 12h" the verb ends when 12 h were watched. It writes a verdict file in JSON, and another
in JUnit's XML. The file has the host, its settings, the counts and their limits. If the condition is not met, the exit
code is 1. With --sign KEY, ssh-keygen signs this file; 'watch --verify FILE' verifies it.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jitter_workshop.commands.common import tracks_file
from jitter_workshop.commands.common.base import (
    Interrupted,
    Parser,
    add_json,
    advise_waiting,
    print_notice,
    print_result,
    require_live_host,
)
from jitter_workshop.commands.common.shared import add_wait, say_if_any
from jitter_workshop.errors import BusyError, HostError, UsageError
from jitter_workshop.model.text import MESSAGE, NAME, PATH, clean, quoted_command

if TYPE_CHECKING:
    from jitter_workshop.bench.cancel import CancelToken
    from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
    from jitter_workshop.flow.programs.targets import Found
    from jitter_workshop.flow.watching.log import Log
    from jitter_workshop.flow.watching.program import Kept
    from jitter_workshop.flow.watching.spinning import WatchLimits
    from jitter_workshop.flow.watching.tally import WatchSubject
    from jitter_workshop.model.watch import WatchReport
    from jitter_workshop.stats.acceptance import Acceptance

_THRESHOLD, _OF_A_PROGRAM = "20us", "1ms"
_LONGEST_S, _KEEP, _MOST_KEPT = 30 * 86_400.0, 10, 1_000
TIME = "the end of its time"
_MORE = 1.25
"""The factor that limits a watch with ``--accept``. The watch lasts at most the condition's time multiplied by this
factor, plus one minute. ``--until`` sets another limit."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what")
    what.add_argument(
        "--threshold", metavar="D", help="the shortest stall that counts (default: 20us; for a program 1ms)"
    )
    what.add_argument("--until", metavar="D", help="watch for this long, such as 12h (default: until Ctrl-C)")
    what.add_argument("--cpu", type=int, metavar="N", help="the CPU to watch (default: the tool chooses)")
    what.add_argument("--pid", type=int, metavar="PID", help="watch the running process PID instead of a CPU")
    what.add_argument("--thread", metavar="NAME|TID", help="with --pid: watch only the threads with this name or id")
    what.add_argument(
        "--keep", type=int, default=_KEEP, metavar="N", help=f"keep the traces of the N worst stalls (default: {_KEEP})"
    )
    what.add_argument("-o", "--output", metavar="DIR", help="write the journal and the traces to a new folder in DIR")
    add_wait(what)
    telling = parser.add_argument_group("tell")
    telling.add_argument(
        "--exec", dest="command_line", metavar="CMD", help="run CMD each time that the trace is frozen after a stall"
    )
    telling.add_argument(
        "--textfile", metavar="FILE", help="keep the newest figures in FILE (NAME.prom), for node_exporter"
    )
    verdict = parser.add_argument_group("verdict")
    verdict.add_argument(
        "--accept", metavar="CONDITION", help='judge the watch by this condition, such as "stall < 20us for 12h"'
    )
    verdict.add_argument("--sign", metavar="KEY", help="let ssh-keygen sign the verdict file with this key")
    verdict.add_argument("--verify", metavar="FILE", help="do not watch; verify the verdict file FILE")
    verdict.add_argument(
        "--signers", metavar="FILE", help="with --verify: the file of allowed signers (man 1 ssh-keygen)"
    )
    showing = parser.add_argument_group("show")
    showing.add_argument("--show", metavar="DIR", help="do not watch; show an earlier watch from its journal in DIR")
    tracks_file.add_tracks_option(
        showing, "with --show: also write the kept stalls to FILE, as tracks for ui.perfetto.dev"
    )
    if isinstance(parser, Parser):
        parser.takes_command = True
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    if args.verify is not None:
        return _verify(args)
    if args.signers is not None:
        raise UsageError("--signers needs --verify")
    if args.show is not None:
        return _show(args)
    if args.perfetto is not None or args.force:
        raise UsageError(
            "--perfetto and --force need --show",
            "end the watch first, then write its tracks with --show DIR --perfetto FILE",
        )
    require_live_host(args)
    command = tuple(getattr(args, "command", ()))
    if sum((args.cpu is not None, args.pid is not None, bool(command))) > 1:
        raise UsageError("--cpu, --pid and a command contradict each other", "give only one of the three")
    if args.thread is not None and args.pid is None:
        raise UsageError("--thread needs --pid")
    condition, threshold_ns, limits = _asked(args)
    if args.sign is not None:
        from jitter_workshop.flow.watching.verdicts import check_key

        if condition is None:
            raise UsageError("--sign needs --accept: there is no verdict to sign without a condition")
        check_key(Path(args.sign))
    from jitter_workshop.flow.watching.log import Log, new_watch
    from jitter_workshop.flow.watching.tally import Tally
    from jitter_workshop.flow.watching.telling import FreezeCommand, Textfile

    tellers: list[FreezeCommand | Textfile] = []
    if args.command_line is not None:
        tellers.append(FreezeCommand(args.command_line))
    if args.textfile is not None:
        tellers.append(Textfile(Path(args.textfile)))
    with contextlib.ExitStack() as open_:
        subject, watched = _subject(args, command, limits, open_)
        subject.id, folder = new_watch(Path(args.output) if args.output else None)
        log = Log(subject, Tally(threshold_ns, args.keep), folder, tellers)
        open_.callback(log.close)
        for teller in tellers:
            teller.note = log.note
        return _watched(args, log, condition, watched)


def _subject(
    args: argparse.Namespace, command: tuple[str, ...], limits: WatchLimits, open_: contextlib.ExitStack
) -> tuple[WatchSubject, Watch]:
    """Return the subject to watch, and the function that watches it. The subject is a CPU, a command or a process.

    A command starts at once, and ends when ``open_`` is closed. Raise HostError if the command cannot be started, or if
    the process cannot be followed.
    """
    from jitter_workshop.flow.watching.tally import WatchSubject

    if args.pid is None and not command:
        return WatchSubject("", "spin"), partial(_watch_cpu, args, limits)
    from jitter_workshop.flow.programs.kept import KeptCommand
    from jitter_workshop.flow.programs.targets import Found, find_process
    from jitter_workshop.host.root import HostRoot
    from jitter_workshop.model.program import Target

    child: KeptCommand | None = None
    if command:
        child = open_.enter_context(KeptCommand(command, 2 * _LONGEST_S, shown=True))
        found = Found(Target("command", quoted_command(command, NAME), child.pid), (child.pid,))
    else:
        found = find_process(HostRoot(), args.pid, args.thread)
    subject = WatchSubject("", found.target.name, pid=found.pids[0])
    return subject, partial(_watch_program, found, child, limits)


def _asked(args: argparse.Namespace) -> tuple[Acceptance | None, int, WatchLimits]:
    """Return three things: the condition of ``--accept`` or None, the threshold of a stall in ns, and the limits that
    end the watch. Raise UsageError for options that contradict each other."""
    from jitter_workshop.flow.measuring.request import THRESHOLD_NS
    from jitter_workshop.flow.watching.spinning import WatchLimits
    from jitter_workshop.stats.acceptance import length_ns, parse_condition

    if not 1 <= args.keep <= _MOST_KEPT:
        raise UsageError(f"--keep must be a number from 1 to {_MOST_KEPT}")
    condition = parse_condition(args.accept) if args.accept is not None else None
    given = length_ns(args.threshold) if args.threshold is not None else None
    if condition is not None and given not in (None, condition.limit_ns):
        raise UsageError("--threshold and --accept contradict each other", "leave out --threshold")
    usual = _THRESHOLD if args.pid is None and not getattr(args, "command", ()) else _OF_A_PROGRAM
    threshold_ns = condition.limit_ns if condition is not None else given or length_ns(usual)
    if not THRESHOLD_NS[0] <= threshold_ns <= THRESHOLD_NS[1]:
        raise UsageError("the threshold must be from 100ns to 10s")
    until_ns = length_ns(args.until) if args.until is not None else None
    if until_ns is not None and not 1e9 <= until_ns <= _LONGEST_S * 1e9:
        raise UsageError("--until must be from 1s to 30d")
    if condition is None:
        return None, threshold_ns, WatchLimits(until_ns)
    if not 1e9 <= condition.for_ns <= _LONGEST_S * 1e9:
        raise UsageError("a condition's time must be from 1s to 30d")
    longest = until_ns if until_ns is not None else round(condition.for_ns * _MORE) + 60_000_000_000
    return condition, threshold_ns, WatchLimits(longest, condition.for_ns)


Watch = Callable[["Log", "CancelToken", "AgentConnection", "Callable[[Log], None]"], tuple[int, str]]
"""The type of a function that watches until a limit or a signal ends the watch. The function returns the time of the
end, in ns of the monotonic clock, and the reason; "" means that the time was over."""


def _watch_cpu(
    args: argparse.Namespace,
    limits: WatchLimits,
    log: Log,
    token: CancelToken,
    agent_connection: AgentConnection,
    progress: Callable[[Log], None],
) -> tuple[int, str]:
    from jitter_workshop.flow.host_ops.agent_connection import place_once
    from jitter_workshop.flow.measuring.request import MeasureRequest
    from jitter_workshop.flow.turns.classhost import class_host, turn_for
    from jitter_workshop.flow.watching.spinning import watch_cpu

    shared = class_host() is not None
    end_ns = watch_cpu(
        MeasureRequest(workload="spin", cpu=args.cpu, threshold_ns=log.tally.threshold_ns, wait_s=args.wait_s),
        log,
        limits,
        token,
        tracer=agent_connection.tracer,
        place=agent_connection.place if shared else place_once,
        turn=partial(turn_for, agent_connection, doing="watching a CPU") if shared else None,
        queued=say_if_any,
        progress=progress,
    )
    return end_ns, ""


def _watch_program(
    found: Found,
    child: Kept | None,
    limits: WatchLimits,
    log: Log,
    token: CancelToken,
    agent_connection: AgentConnection,
    progress: Callable[[Log], None],
) -> tuple[int, str]:
    from jitter_workshop.flow.watching.program import watch_program
    from jitter_workshop.host.root import HostRoot

    return watch_program(
        HostRoot(),
        found,
        log,
        limits,
        token,
        tracer=agent_connection.tracer,
        command=child,
        progress=progress,
    )


def _watched(args: argparse.Namespace, log: Log, condition: Acceptance | None, watch: Watch) -> int:
    """Watch, print the page of results, and return the verb's exit code."""
    from jitter_workshop.bench.cancel import CancelToken, stopped_by_signals
    from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
    from jitter_workshop.flow.measuring.host_warnings import warnings
    from jitter_workshop.host.root import HostRoot
    from jitter_workshop.host.summary import summarise_host
    from jitter_workshop.model.codec import to_plain
    from jitter_workshop.model.host import NO_VERDICT, mark_notes
    from jitter_workshop.presenter.runs.progress import Line
    from jitter_workshop.presenter.runs.watch import watch_page, watch_progress_line

    host = summarise_host(HostRoot())
    if condition is not None and host.emulated:
        raise HostError(NO_VERDICT, "leave out --accept")
    log.subject.notes |= mark_notes(host.mark)
    for warning in warnings(host):
        print_notice(warning)
    token, line, agent_connection = CancelToken(), Line(), AgentConnection()

    def told(log: Log) -> None:
        if line.shown:
            line.write(watch_progress_line(log.report()))

    trouble: Exception | None = None
    end_ns, why = time.monotonic_ns(), ""
    try:
        with stopped_by_signals(token) as received:
            end_ns, why = watch(log, token, agent_connection, told)
    except Exception as error:
        if isinstance(error, BusyError):
            advise_waiting(error)
        if not log.start_ns and not received:
            raise
        trouble, end_ns = error, time.monotonic_ns()
    finally:
        agent_connection.close()
        line.close()
        token.close()
        if not log.start_ns:
            log.discard()
    if not log.start_ns:
        print_notice("the watch was stopped before its first block was finished, so nothing was watched")
        raise Interrupted(received[0] if received else 2)
    ended_by = f"a signal ({_name(received[0])})" if received else clean(trouble or why or TIME, MESSAGE)
    report = log.end(ended_by, end_ns)
    if condition is not None:
        report = _judge(args, log, report, condition, to_plain(host))
    if trouble is not None and not received:
        rest = f"'watch --show {clean(log.folder, PATH)}' shows what was recorded"
        raise HostError(f"the watch ended early: {clean(trouble, MESSAGE)}", rest)
    if condition is not None and report.verdict is None and not received:
        raise HostError(f"there is no verdict: {report.reason}", f"{clean(report.file or '', PATH)} has the figures")
    print_result(args, report, partial(watch_page, report))
    print_notice(f"the journal and the traces of the kept stalls are in {clean(log.folder, PATH)}")
    if received:
        raise Interrupted(received[0])
    return 1 if report.verdict == "rejected" else 0


def _name(signum: int) -> str:
    import signal

    return signal.Signals(signum).name


def _judge(
    args: argparse.Namespace, log: Log, report: WatchReport, condition: Acceptance, host: dict[str, Any]
) -> WatchReport:
    """Judge the watch by its condition, write the verdict file, and return the report with the verdict. Raise
    SessionError or HostError if the file cannot be written."""
    import dataclasses

    from jitter_workshop.flow.host_ops.host_status import read_checks
    from jitter_workshop.flow.watching import verdicts
    from jitter_workshop.host.root import HostRoot
    from jitter_workshop.model.codec import to_plain
    from jitter_workshop.tuning.journal import applied_tunables

    cpus = str(report.cpu) if report.cpu is not None else None
    checks = tuple(
        {"id": c.id, "state": c.state, "value": to_plain(c.value)} for c in read_checks(args.root, (), cpus).checks
    )
    facts = {"applied": applied_tunables(HostRoot(), in_effect=True), "checks": checks}
    verdict = verdicts.verdict_of(report, condition, log.tally, host, facts)
    log.judged({"verdict": verdict.verdict, "reason": verdict.reason})
    path = verdicts.write_verdict(log.folder, verdict, Path(args.sign) if args.sign is not None else None)
    return dataclasses.replace(report, verdict=verdict.verdict, reason=verdict.reason, file=str(path))


def _verify(args: argparse.Namespace) -> int:
    """Verify a verdict file. Return 0 if the file is genuine and its verdict is ``accepted``, else 1."""
    from jitter_workshop.flow.watching.verdicts import check_verdict
    from jitter_workshop.presenter.runs.watch import verified

    found = check_verdict(Path(args.verify), Path(args.signers) if args.signers is not None else None)
    print_result(args, found, partial(verified, found))
    return 0 if found.accepted else 1


def _show(args: argparse.Namespace) -> int:
    from jitter_workshop.flow.watching.log import from_journal
    from jitter_workshop.presenter.runs.watch import watch_page

    tracks_file.check_tracks_option(args)
    report, tracks = from_journal(Path(args.show)), None
    if args.perfetto is not None:
        from jitter_workshop.flow.reporting.perfetto import of_watch
        from jitter_workshop.presenter.runs.progress import LateLine

        with contextlib.closing(LateLine("drawing")) as late:
            tracks = of_watch(Path(args.show), report, late)
    print_result(args, report, partial(watch_page, report))
    if tracks is not None:
        tracks_file.write_tracks(args, tracks)
    return 0
