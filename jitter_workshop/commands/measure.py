"""Measure latency jitter on this host, once, and keep the run in the session.

The default is the ring: a producer sends a message every 10 µs to an accumulator, and to a journaller if there is a CPU
for it. The run has 20 blocks of a quarter of a second. Its threads are on CPUs that the tool chooses. 'spin' reads the
clock without pause and records each gap. 'wakeup' sleeps until a set time and records how late it wakes. 'ack' records
the intervals between the ACKs of a TCP receiver on the loopback device. '--placement none' leaves the threads to the
scheduler. Ctrl-C stops the run and keeps the finished blocks; Ctrl-Z suspends it.

With '--for-percentile 99.999', the run is long enough for ten samples above this percentile to be expected. The verb
first prints how long the run takes. In the table the sign · marks a percentile with fewer than ten samples beyond it.
The sign ~ marks a percentile with fewer than ten stalls beyond it.

'--matrix' makes no run: it measures how long a cache line takes between each two CPUs that this process may use. If
there are more than 64 CPUs, only 64 of them are measured. The verb first prints how long this takes. The matrix is kept
in the session; 'chart --kind matrix' draws it again. If several pairs of CPUs are equally good for a run, later runs
take the pair with the shortest time for a cache line.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import Any

from jitter_workshop.bench.cancel import CancelToken, stopped_by_signals
from jitter_workshop.commands.common.base import (
    Interrupted,
    add_json,
    advise_waiting,
    also_as,
    print_json,
    print_notice,
    require_live_host,
    show_lines,
)
from jitter_workshop.commands.common.shared import add_wait, finite_number, say_if_any, session_to_keep_in
from jitter_workshop.errors import BusyError, SessionError
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.model.noise import NOISE_KINDS
from jitter_workshop.model.record import made_of
from jitter_workshop.model.run import Progress, Run, RunStarted
from jitter_workshop.model.spec import KINDS, LOCKS, MEMORY_OF
from jitter_workshop.model.text import ID, WORD, clean
from jitter_workshop.presenter.runs.progress import Line
from jitter_workshop.session.store import OpenSession


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what")
    what.add_argument("--workload", choices=tuple(KINDS), default="ring", help="the workload (default: ring)")
    what.add_argument("--label", default="", metavar="L", help="a name for the run")
    what.add_argument(
        "--preset",
        choices=("quick", "standard", "long"),
        default="quick",
        help="quick (default): 5 s; standard: 40 s; long: 1 h",
    )
    what.add_argument("--messages", type=int, metavar="N", help="send N messages, instead of --preset")
    what.add_argument(
        "--duration",
        dest="duration_s",
        type=finite_number,
        metavar="S",
        help="measure for S seconds, instead of --preset",
    )
    what.add_argument(
        "--for-percentile",
        metavar="P",
        help="measure until percentile P has enough samples, instead of --preset",
    )
    also_as(parser, "--for-percentile", "--solid")
    what.add_argument(
        "--interval-us",
        dest="interval_ns",
        type=_ns,
        metavar="U",
        help="µs between messages (default: 10), wake-ups (default: 1000) or ACKs (default: 100)",
    )
    what.add_argument(
        "--pacing",
        choices=("spin", "schedule"),
        help="spin: wait after each message; schedule: send each message at a planned time",
    )
    what.add_argument(
        "--duty",
        type=int,
        choices=(100, 50, 10),
        default=100,
        help="with spin: sample in this percentage of the time (default: 100)",
    )
    what.add_argument(
        "--pause",
        choices=("sleep", "busy"),
        default="sleep",
        help="with --duty: what spin does during its pauses (default: sleep)",
    )
    what.add_argument(
        "--memory",
        choices=("none", *MEMORY_OF),
        default="none",
        help="ring keeps messages in ready or fresh memory or in new huge pages, or writes them to a file in memory; "
        "spin loads from far or near memory (default: none)",
    )
    what.add_argument(
        "--lock",
        choices=LOCKS,
        default="none",
        help="with wakeup and a real-time priority: take a lock after each wake-up that a thread of lower priority "
        "holds now and then; inherit: the lock lends its waiter's priority to its holder (default: none)",
    )
    what.add_argument(
        "--threshold-us",
        dest="threshold_ns",
        type=_ns,
        metavar="U",
        help="the shortest stall in µs (default: 1; wakeup: 10; ack: 500)",
    )
    what.add_argument(
        "--matrix",
        action="store_true",
        help="make no run; measure how long a cache line takes between each pair of CPUs",
    )
    where = parser.add_argument_group("where")
    where.add_argument(
        "--placement",
        choices=("auto", "none"),
        default="auto",
        help="auto (default): bind the threads to hot CPUs; none: the scheduler chooses the CPUs",
    )
    where.add_argument(
        "--producer-cpu", type=int, metavar="N", help="the CPU of the producer (with ack: of the sender)"
    )
    where.add_argument(
        "--accumulator-cpu", type=int, metavar="N", help="the CPU of the accumulator (with ack: of the receiver)"
    )
    where.add_argument("--journaller-cpu", type=int, metavar="N", help="the CPU of the journaller (only with ring)")
    where.add_argument("--no-journaller", action="store_true", help="run ring without the journaller thread")
    where.add_argument("--cpu", type=int, metavar="N", help="the CPU of the measured thread (with spin and wakeup)")
    how = parser.add_argument_group("how")
    how.add_argument(
        "--sched",
        dest="sched_priority",
        type=_priority,
        default=0,
        metavar="other|fifo:N",
        help="the scheduling policy: other (default), or fifo with the real-time priority N",
    )
    how.add_argument("--evidence", action="store_true", help="trace the kernel during the run")
    how.add_argument(
        "--noise", action=_Once, metavar="KIND", help=f"make a noise during the run: {', '.join(NOISE_KINDS)}"
    )
    add_wait(how)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    require_live_host(args)
    if args.matrix:
        from jitter_workshop.commands.common import matrix

        return matrix.measure_and_store_matrix(args)
    from jitter_workshop.flow.classes.posting import Poster
    from jitter_workshop.flow.host_ops.agent_connection import AgentConnection, place_once
    from jitter_workshop.flow.measuring import measure as flow
    from jitter_workshop.flow.measuring.host_warnings import warnings
    from jitter_workshop.flow.measuring.request import check_request
    from jitter_workshop.flow.turns.classhost import class_host, turn_for
    from jitter_workshop.host.root import HostRoot
    from jitter_workshop.host.summary import summarise_host

    # The options have the names of the request's fields.
    request = made_of(MeasureRequest, args)
    check_request(request)
    host = summarise_host(HostRoot())
    for warning in warnings(host):
        print_notice(warning)
    session: OpenSession | None = None
    not_kept = ""
    try:
        session = session_to_keep_in(args.session, host.name)
    except SessionError as error:
        if args.session is not None:
            raise
        not_kept = f"{flow.NOT_SAVED}: {error.sentence()}"
    request, reach = _told(request, args.for_percentile, session)
    progress = ProgressLine(reach)
    token = CancelToken()
    agent_connection = AgentConnection()
    poster = Poster(session) if session is not None and class_host() is not None else None
    turn: flow.TakeTurn = partial(
        turn_for, agent_connection, doing=f"measuring {clean(request.label, ID) or request.workload}"
    )
    try:
        with stopped_by_signals(token) as received:
            measured = flow.measure_run(
                request,
                session,
                progress,
                token,
                queued=say_if_any,
                place=agent_connection.place if class_host() is not None else place_once,
                tracer=agent_connection.tracer,
                turn=turn if poster is None else partial(poster.with_team, turn),
            )
    except flow.RunNotKept as error:
        measured, not_kept = error.run, error.sentence()
    except Exception as error:
        if not received:
            if isinstance(error, BusyError):
                advise_waiting(error)
            raise
        print_notice("stopped before the first block was finished; nothing was kept")
        raise Interrupted(received[0]) from None
    finally:
        agent_connection.close()
        progress.close()
        token.close()
        if poster is not None:
            poster.wanted()
            if why := poster.close():
                print_notice(
                    f"the board does not show this run yet: {why}; your next step in the course sends the run again"
                )
        if session is not None:
            session.close()
    kept = session is not None and not not_kept
    if received:
        done = f"stopped after {len(measured.blocks)} finished blocks"
        print_notice(f"{done}; they are kept as run {measured.id}" if kept else f"{done}; {not_kept}")
        raise Interrupted(received[0])
    _print(measured, args.json)
    if not_kept:
        sys.stdout.flush()
        print_notice(not_kept)
        return 1
    if not args.json:
        from jitter_workshop.presenter.runs.run import where_kept as told

        assert session is not None
        named = args.session is not None
        name, traced = session.session.name, session.has_trace(measured.id)
        print()
        show_lines(lambda width: told(measured, name, traced, width, named))
    return 0


class _Once(argparse.Action):
    """Refuse an option that is given twice, because the second value would silently replace the first value."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if getattr(namespace, self.dest) is not None:
            raise argparse.ArgumentError(self, "given twice, but a run has only one noise")
        setattr(namespace, self.dest, values)


class ProgressLine(Line):
    """Write a line of progress on stderr, and replace it after each block of a run.

    ``first``: a line to print when the run begins, "" for none. If the run has to wait or fails, the line is not
    printed.
    """

    def __init__(self, first: str = "") -> None:
        super().__init__()
        self._first = first

    def started(self, event: RunStarted) -> None:
        if self._first:
            print_notice(self._first)
            self._first = ""
        self.write(f"  measuring {event.spec.blocks} blocks …")

    def block_done(self, progress: Progress) -> None:
        from jitter_workshop.stats.curve import curve_value_at
        from jitter_workshop.stats.scale import nice_ns

        curve = progress.latency
        p50, p999 = curve_value_at(curve, 50), curve_value_at(curve, 99.9)
        worst = curve.points[-1].value_ns if curve.points else None
        what = "latency " if progress.due is not None else ""
        self.write(
            f"{_lead(curve.origin)}  block {progress.done}/{progress.total}"
            f" · {what}p50 {nice_ns(p50)} · p99.9 {nice_ns(p999)} · worst {nice_ns(worst)}"
            f" · {progress.seconds_left:.0f} s left"
        )


def _lead(mark: str) -> str:
    return f"  {clean(mark, WORD)}:" if mark else ""


def _told(request: MeasureRequest, solid: str | None, session: OpenSession | None) -> tuple[MeasureRequest, str]:
    """Return the request for a run, and a sentence to print at its start ("" for none).

    ``solid``: the percentile of ``--for-percentile``, or None. If ``solid`` is a percentile, choose the run's length
    for it; the sentence states this length. If ``solid`` is None and stderr is a terminal, the sentence states which
    percentiles the run will reach. Raise the errors of ``run_length.until`` and ``run_length.outlook``.
    """
    from jitter_workshop.flow.measuring import run_length

    said = ""
    try:
        runs = session.runs() if session is not None else ()
        if solid is not None:
            request, said = run_length.until(request, solid, runs)
        elif sys.stderr is not None and sys.stderr.isatty():
            said = run_length.run_length_sentences(run_length.outlook(request, runs))
    except BaseException:
        if session is not None:
            session.close()
        raise
    return request, said


def _print(run: Run, as_json: bool) -> None:
    if as_json:
        from jitter_workshop.flow.measuring.notes import FEW_SAMPLES
        from jitter_workshop.model.codec import to_plain
        from jitter_workshop.model.run import of_transit
        from jitter_workshop.stats.sample_size import standings

        # They are of the main histogram, which for the ring is the transit.
        stand = standings(of_transit(run))
        unknown = {"standings.value_ns": FEW_SAMPLES} if any(one.value_ns is None for one in stand) else {}
        print_json({**to_plain(run), "standings": to_plain(stand), "notes": {**run.notes, **unknown}})
        return
    from jitter_workshop.presenter.runs.run import run_result_lines

    show_lines(partial(run_result_lines, run))


def _priority(text: str) -> int:
    """Return the real-time priority that ``text`` asks for: 0 for ``other``, N for ``fifo:N``. Raise argparse's error
    for any other text."""
    if text == "other":
        return 0
    kind, _, number = text.partition(":")
    if kind != "fifo" or not (number.isascii() and number.isdigit()) or not 1 <= int(number[:4]) <= 49:
        raise argparse.ArgumentTypeError(f"not a scheduling class: {text!r} (other, or fifo:1 to fifo:49)")
    return int(number)


def _ns(microseconds: str) -> int:
    return round(finite_number(microseconds) * 1000)
