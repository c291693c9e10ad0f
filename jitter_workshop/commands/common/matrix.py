"""Measure a matrix of cache-line times, store it and draw it, for ``measure --matrix``."""

from __future__ import annotations

import argparse
import sys
from functools import partial

from jitter_workshop.bench.cancel import CancelToken, stopped_by_signals
from jitter_workshop.commands.common.base import Interrupted, advise_waiting, print_json, print_notice
from jitter_workshop.commands.common.shared import say_if_any, session_to_keep_in
from jitter_workshop.errors import BusyError, SessionError, UsageError
from jitter_workshop.flow.measuring.matrix import measure_matrix, plan_matrix
from jitter_workshop.model.matrix import Matrix
from jitter_workshop.presenter.runs.progress import Line

_OTHERS = {
    "workload": ("--workload", "ring"),
    "preset": ("--preset", "quick"),
    "messages": ("--messages", None),
    "duration_s": ("--duration", None),
    "for_percentile": ("--for-percentile", None),
    "interval_ns": ("--interval-us", None),
    "pacing": ("--pacing", None),
    "duty": ("--duty", 100),
    "pause": ("--pause", "sleep"),
    "memory": ("--memory", "none"),
    "lock": ("--lock", "none"),
    "threshold_ns": ("--threshold-us", None),
    "placement": ("--placement", "auto"),
    "producer_cpu": ("--producer-cpu", None),
    "accumulator_cpu": ("--accumulator-cpu", None),
    "journaller_cpu": ("--journaller-cpu", None),
    "no_journaller": ("--no-journaller", False),
    "cpu": ("--cpu", None),
    "sched_priority": ("--sched", 0),
    "evidence": ("--evidence", False),
    "noise": ("--noise", None),
}
"""Options of a run that ``--matrix`` refuses: name of the argument → the option and its default."""


def measure_and_store_matrix(args: argparse.Namespace) -> int:
    """Measure a matrix of cache-line times on this host. Return 0, or 1 if the matrix could not be stored. Raise
    UsageError for an option that ``--matrix`` does not take. Raise the errors of ``measure_matrix``."""
    for name, (option, default) in _OTHERS.items():
        if getattr(args, name) != default:
            raise UsageError(f"{option} is for a run, but --matrix makes no run", f"leave out {option} or --matrix")
    from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
    from jitter_workshop.flow.turns.classhost import turn_for
    from jitter_workshop.host.root import HostRoot
    from jitter_workshop.host.summary import summarise_host

    planned = plan_matrix()
    session, not_kept = None, ""
    try:
        session = session_to_keep_in(args.session, summarise_host(HostRoot(), planned.topology).name)
        refused = session.read_only_error()
        not_kept = refused.sentence() if refused is not None else ""
    except SessionError as error:
        if args.session is not None:
            raise
        not_kept = error.sentence()
    progress, token, agent_connection = Line(), CancelToken(), AgentConnection()
    try:
        with stopped_by_signals(token) as received:
            matrix = measure_matrix(
                planned,
                token,
                label=args.label,
                wait_s=args.wait_s,
                begun=lambda: print_notice(planned.sentence),
                told=lambda done, total: progress.write(f"  {done:,} of {total:,} measurements"),
                queued=say_if_any,
                turn=partial(turn_for, agent_connection, doing="measuring a matrix"),
            )
        if session is not None and not not_kept:
            try:
                session.add_matrix(matrix)
            except SessionError as error:
                not_kept = error.sentence()
    except Exception as error:
        if not received:
            if isinstance(error, BusyError):
                advise_waiting(error)
            raise
        print_notice("stopped before the first pairs were measured; nothing was kept")
        raise Interrupted(received[0]) from None
    finally:
        agent_connection.close()
        progress.close()
        token.close()
        if session is not None:
            session.close()
    if received:
        kept = f"the measured pairs are kept as matrix {matrix.id}" if not not_kept else f"nothing was kept: {not_kept}"
        print_notice(f"stopped before all pairs were measured; {kept}")
        raise Interrupted(received[0])
    _print(matrix, args.json)
    if not_kept:
        sys.stdout.flush()
        print_notice(f"the matrix was measured but could not be saved: {not_kept}")
        return 1
    return 0


def _print(matrix: Matrix, as_json: bool) -> None:
    if as_json:
        print_json(matrix)
        return
    from jitter_workshop.chart.matrix import matrix_for_terminal

    sys.stdout.write(matrix_for_terminal(matrix))
    for note in matrix.notes.values():
        print_notice(f"note: {note}")
