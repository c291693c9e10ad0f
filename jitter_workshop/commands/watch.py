"""Watch for stalls for hours, and keep the kernel's trace of the worst of them.

A sampler reads the clock on one CPU without pause, and the kernel's trace runs in buffers that overwrite their oldest
events. When a block of five seconds had a stall of --threshold or longer, the trace is frozen, read, and started again.
Each stall's time is split by cause, to the nanosecond; the traces of the worst stalls are kept. Without rights for
the trace, stalls are counted without causes.

Time between two blocks, and time in which the trace is read, is not watched. It is told, and counts for nothing: a
stall in it is unknown. What the watch does is in a journal, which survives a kill and a full disk; 'watch --show DIR'
tells what it says.

With --accept "stall < 20us for 12h" the verb watches until so much time was watched, writes a verdict file (JSON, and
XML for JUnit) with the host, its settings, the counts and their limits, and exits with 1 if the condition is not met.
--sign KEY has ssh-keygen sign it; 'watch --verify FILE' verifies it.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jitter_workshop.commands.common.base import (
    Interrupted,
    add_json,
    advise_waiting,
    require_live_host,
    say,
    show,
)
from jitter_workshop.commands.common.shared import number, say_if_any
from jitter_workshop.errors import BusyError, HostError, UsageError
from jitter_workshop.model.text import MESSAGE, PATH, clean

if TYPE_CHECKING:
    from jitter_workshop.flow.watching.log import Log
    from jitter_workshop.flow.watching.spinning import Limits
    from jitter_workshop.model.watch import WatchReport
    from jitter_workshop.stats.acceptance import Acceptance

_THRESHOLD, _LONGEST_S, _KEEP, _MOST_KEPT = "20us", 30 * 86_400.0, 10, 1_000
TIME = "the end of its time"
_MORE = 1.25
"""A watch with a condition lasts at most so many times its time, unless --until says otherwise."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what")
    what.add_argument("--threshold", metavar="D", help=f"the length from which on a gap is a stall ({_THRESHOLD})")
    what.add_argument("--until", metavar="D", help="watch for this long, such as 12h (default: until Ctrl-C)")
    what.add_argument("--cpu", type=int, metavar="N", help="the CPU to watch (default: chosen for you)")
    what.add_argument("--keep", type=int, default=_KEEP, metavar="N", help=f"keep the N worst stalls ({_KEEP})")
    what.add_argument("-o", "--output", metavar="DIR", help="keep the watch in a new folder below DIR")
    what.add_argument(
        "--wait", dest="wait_s", type=number, default=0.0, metavar="S", help="wait while another run goes on"
    )
    verdict = parser.add_argument_group("verdict")
    verdict.add_argument("--accept", metavar="CONDITION", help='such as "stall < 20us for 12h"')
    verdict.add_argument("--sign", metavar="KEY", help="have ssh-keygen sign the verdict file with this key")
    verdict.add_argument("--verify", metavar="FILE", help="verify a verdict file instead")
    verdict.add_argument("--signers", metavar="FILE", help="with --verify: the allowed signers (ssh-keygen(1))")
    verdict.add_argument("--show", metavar="DIR", help="show a watch of before by its journal instead")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    if args.verify is not None:
        return _verify(args)
    if args.signers is not None:
        raise UsageError("--signers needs --verify")
    if args.show is not None:
        return _show(args)
    require_live_host(args)
    condition, threshold_ns, limits = _asked(args)
    if args.sign is not None:
        from jitter_workshop.flow.watching.verdicts import check_key

        if condition is None:
            raise UsageError("--sign needs --accept: there is no verdict to sign without a condition")
        check_key(Path(args.sign))
    from jitter_workshop.flow.watching.log import Log, new_watch
    from jitter_workshop.flow.watching.tally import Subject, Tally

    ident, folder = new_watch(Path(args.output) if args.output else None)
    log = Log(Subject(ident, "spin"), Tally(threshold_ns, args.keep), folder)
    with contextlib.closing(log):
        return _watched(args, log, condition, limits)


def _asked(args: argparse.Namespace) -> tuple[Acceptance | None, int, Limits]:
    """Return the condition, the threshold, and what ends the watch. Raise UsageError for options that contradict each
    other."""
    from jitter_workshop.flow.measuring.request import THRESHOLD_NS
    from jitter_workshop.flow.watching.spinning import Limits
    from jitter_workshop.stats.acceptance import length_ns, parse

    if not 1 <= args.keep <= _MOST_KEPT:
        raise UsageError(f"--keep must be a number from 1 to {_MOST_KEPT}")
    condition = parse(args.accept) if args.accept is not None else None
    given = length_ns(args.threshold) if args.threshold is not None else None
    if condition is not None and given not in (None, condition.limit_ns):
        raise UsageError("--threshold and --accept contradict each other", "leave out --threshold")
    threshold_ns = condition.limit_ns if condition is not None else given or length_ns(_THRESHOLD)
    if not THRESHOLD_NS[0] <= threshold_ns <= THRESHOLD_NS[1]:
        raise UsageError("the threshold must be from 100ns to 10s")
    until_ns = length_ns(args.until) if args.until is not None else None
    if until_ns is not None and not 1e9 <= until_ns <= _LONGEST_S * 1e9:
        raise UsageError("--until must be from 1s to 30d")
    if condition is None:
        return None, threshold_ns, Limits(until_ns)
    if not 1e9 <= condition.for_ns <= _LONGEST_S * 1e9:
        raise UsageError("a condition's time must be from 1s to 30d")
    longest = until_ns if until_ns is not None else round(condition.for_ns * _MORE) + 60_000_000_000
    return condition, threshold_ns, Limits(longest, condition.for_ns)


def _watched(args: argparse.Namespace, log: Log, condition: Acceptance | None, limits: Limits) -> int:
    """Watch, print the page, and return the exit code."""
    from jitter_workshop.bench.cancel import CancelToken, stopped_by_signals
    from jitter_workshop.flow.host_ops.agent_session import AgentSession, place_once
    from jitter_workshop.flow.measuring.host_warnings import warnings
    from jitter_workshop.flow.measuring.request import MeasureRequest
    from jitter_workshop.flow.turns.classhost import class_host, turn_for
    from jitter_workshop.flow.watching.spinning import watch_cpu
    from jitter_workshop.host.root import HostRoot
    from jitter_workshop.host.summary import summarise
    from jitter_workshop.model.codec import to_plain
    from jitter_workshop.presenter.progress import Line
    from jitter_workshop.presenter.watch import page, progress

    host = summarise(HostRoot())
    for warning in warnings(host):
        say(warning)
    request = MeasureRequest(workload="spin", cpu=args.cpu, threshold_ns=log.tally.threshold_ns, wait_s=args.wait_s)
    token, line, agent_session = CancelToken(), Line(), AgentSession()

    def told(log: Log) -> None:
        if line.shown:
            line.write(progress(log.report()))

    trouble: Exception | None = None
    end_ns = time.monotonic_ns()
    try:
        with stopped_by_signals(token) as received:
            end_ns = watch_cpu(
                request,
                log,
                limits,
                token,
                tracer=agent_session.tracer,
                place=agent_session.place if class_host() is not None else place_once,
                turn=partial(turn_for, agent_session, doing="watching a CPU") if class_host() is not None else None,
                queued=say_if_any,
                progress=told,
            )
    except Exception as error:
        if isinstance(error, BusyError):
            advise_waiting(error)
        if not log.start_ns and not received:
            raise
        trouble, end_ns = error, time.monotonic_ns()
    finally:
        agent_session.close()
        line.close()
        token.close()
    if not log.start_ns:
        say("stopped before the first block was finished; nothing was watched")
        raise Interrupted(received[0] if received else 2)
    ended_by = f"a signal ({_name(received[0])})" if received else clean(trouble or TIME, MESSAGE)
    report = log.end(ended_by, end_ns)
    if condition is not None:
        report = _judge(args, log, report, condition, to_plain(host))
    if trouble is not None and not received:
        raise HostError(
            f"the watch ended early: {clean(trouble, MESSAGE)}", f"'watch --show {log.folder}' tells the rest"
        )
    if condition is not None and report.verdict is None and not received:
        raise HostError(f"there is no verdict: {report.reason}", f"{clean(report.file or '', PATH)} has the figures")
    show(args, report, partial(page, report))
    say(f"the journal and the traces of the kept stalls are in {clean(log.folder, PATH)}")
    if received:
        raise Interrupted(received[0])
    return 1 if report.verdict == "rejected" else 0


def _name(signum: int) -> str:
    import signal

    return signal.Signals(signum).name


def _judge(
    args: argparse.Namespace, log: Log, report: WatchReport, condition: Acceptance, host: dict[str, Any]
) -> WatchReport:
    """Write the verdict file, and return the report with the verdict. Raise SessionError or HostError if the file
    cannot be written."""
    import dataclasses

    from jitter_workshop.flow.host_ops.host_status import look
    from jitter_workshop.flow.watching import verdicts
    from jitter_workshop.host.root import HostRoot
    from jitter_workshop.model.codec import to_plain
    from jitter_workshop.tuning.journal import stack

    cpus = str(report.cpu) if report.cpu is not None else None
    checks = tuple({"id": c.id, "state": c.state, "value": to_plain(c.value)} for c in look(args.root, (), cpus).checks)
    facts = {"applied": stack(HostRoot(), in_effect=True), "checks": checks}
    verdict = verdicts.verdict_of(report, condition, log.tally, host, facts)
    log.judged({"verdict": verdict.verdict, "reason": verdict.reason})
    path = verdicts.write(log.folder, verdict, Path(args.sign) if args.sign is not None else None)
    return dataclasses.replace(report, verdict=verdict.verdict, reason=verdict.reason, file=str(path))


def _verify(args: argparse.Namespace) -> int:
    """Verify a verdict file. Return 0 if it is genuine and accepts, 1 else."""
    from jitter_workshop.flow.watching.verdicts import verify
    from jitter_workshop.presenter.watch import verified

    found = verify(Path(args.verify), Path(args.signers) if args.signers is not None else None)
    show(args, found, partial(verified, found))
    return 0 if found.accepted else 1


def _show(args: argparse.Namespace) -> int:
    from jitter_workshop.flow.watching.log import from_journal
    from jitter_workshop.presenter.watch import page

    report = from_journal(Path(args.show))
    show(args, report, partial(page, report))
    return 0
