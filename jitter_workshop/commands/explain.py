"""Show by the kernel's trace what caused a run's stalls, or took a program's time.

RUN is an id, its unique beginning, a label (of the newest run with that label), or @1 for the newest run, @2, … The run
must have been measured with --evidence. Every stall's time is split to the nanosecond by cause: tasks, interrupts,
softirqs, timers, workqueues, migrations, page faults. The parts sum to the stall. A short gap right before or after an
event is 'around' this event. A gap without any event of the kernel is 'no event': a hypervisor, firmware or slow memory
may have taken the time, and the tool does not guess which. If there was no trace (no rights, no tracefs), counters are
shown, without causes.

A program is a command after --, a process (--pid) or a control group (--cgroup). All its threads are followed, and also
the threads and processes that they start. Each thread's time is split into four: it ran, waited for a CPU, slept, or
was blocked. The report also shows who had the CPU, what blocked the thread, and who woke it. A command is observed
until it ends, a running program for 10 s; --duration sets another time. If the command has not ended by then, the
observation ends and the command continues. If a signal ends 'explain', the command gets the same signal. The command
keeps stdout for its own output: the text report goes to stderr. With --json the report goes to stdout, and the
command's output to stderr.

With --perfetto FILE the trace is also written as tracks, for ui.perfetto.dev. The tracks show what each thread did
and waited for, who ran on each CPU, interrupts, and stalls with their parts. Wakers are arrows, and the worst stalls
are marks. An existing file is replaced only with --force, and a link is never followed. This needs the package
perfetto: pip install 'jitter-workshop[perfetto]'.

After a command, the exit code is the command's exit code. If the command cannot be started, or a Perfetto file cannot
be made, the exit code is 2.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from typing import TYPE_CHECKING

from jitter_workshop.commands.common import tracks_file
from jitter_workshop.commands.common.base import (
    Interrupted,
    Parser,
    add_json,
    print_json,
    print_result,
    require_live_host,
    show_lines,
)
from jitter_workshop.commands.common.shared import finite_number
from jitter_workshop.errors import UsageError
from jitter_workshop.model.program import OBSERVED_S

if TYPE_CHECKING:
    from jitter_workshop.model.program import ProgramReport

_MOST = 1_000
_MOST_SECONDS = 3_600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run", metavar="RUN", nargs="?", help="the run to explain; it must have been measured with --evidence"
    )
    parser.add_argument("--top", type=int, default=10, metavar="N", help="show the N worst stalls (default: 10)")
    parser.add_argument("--pid", type=int, metavar="PID", help="explain the running process PID instead of a run")
    parser.add_argument("--thread", metavar="NAME|TID", help="with --pid: follow only the threads with this name or id")
    parser.add_argument("--cgroup", metavar="PATH", help="explain the processes of a control group instead of a run")
    parser.add_argument(
        "--duration",
        type=finite_number,
        metavar="S",
        help="observe the program for S seconds (default: 10 s, or until the command ends)",
    )
    tracks_file.add_tracks_option(parser, "also write the trace to FILE, as tracks for ui.perfetto.dev")
    if isinstance(parser, Parser):
        parser.takes_command = True
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    command = tuple(getattr(args, "command", ()))
    chosen = [args.run is not None, args.pid is not None, args.cgroup is not None, bool(command)]
    if sum(chosen) != 1:
        raise UsageError(
            "choose what is to be explained: a run, a program by --pid or --cgroup, or a command after --"
            if not any(chosen)
            else "RUN, --pid, --cgroup and a command contradict each other",
            "choose exactly one",
        )
    if args.thread is not None and args.pid is None:
        raise UsageError("--thread needs --pid")
    tracks_file.check_tracks_option(args)
    if args.run is None:
        return _program(args, command)
    if args.duration is not None:
        raise UsageError("--duration is for a program, not for a run")
    return _run(args)


def _run(args: argparse.Namespace) -> int:
    from jitter_workshop.commands.common.shared import open_session, say_notices
    from jitter_workshop.flow.attribution import explain_or_load
    from jitter_workshop.presenter.runs import causes
    from jitter_workshop.presenter.runs.progress import LateLine

    if not 0 <= args.top <= _MOST:
        raise UsageError(f"--top must be a number from 0 to {_MOST}")
    with open_session(args) as session:
        measured = session.find(args.run)
        with contextlib.closing(LateLine("explaining")) as late:
            report = explain_or_load(session, measured, args.top, late)
        tracks = None
        if args.perfetto is not None:
            from jitter_workshop.flow.reporting.perfetto import of_report

            with contextlib.closing(LateLine("drawing")) as late:
                tracks = of_report(session, measured, report, late)
        notices = tuple(session.notices)
    say_notices(notices)
    print_result(args, report, lambda width: causes.stall_report_lines(report, width, measured.label))
    if tracks is not None:
        tracks_file.write_tracks(args, tracks)
    return 0


def _program(args: argparse.Namespace, command: tuple[str, ...]) -> int:
    """Run a command or observe a running program, and print where its time went. Return the exit code of the command,
    or 0 for a running program."""
    require_live_host(args)
    if args.duration is not None and not 0.1 <= args.duration <= _MOST_SECONDS:
        raise UsageError(f"--duration must be a number of seconds from 0.1 to {_MOST_SECONDS:.0f}")
    from jitter_workshop.evidence.scene import ProgramScene
    from jitter_workshop.flow.programs import observing

    scene = ProgramScene() if args.perfetto is not None else None
    if command:
        report = observing.explain_command(command, args.duration, quiet=args.json, signum=_signum, scene=scene)
    else:
        from jitter_workshop.presenter.runs.progress import Line

        def progress(rest_s: float) -> None:
            line.write(f"  observing: {rest_s:.0f} s to go" if rest_s else "  adding up")

        seconds = OBSERVED_S if args.duration is None else args.duration
        with contextlib.closing(Line()) as line:
            report = observing.explain_running(args.pid, args.thread, args.cgroup, seconds, progress, scene)
    _tell(args, report, aside=bool(command))
    if scene is not None:
        from jitter_workshop.flow.reporting.perfetto import of_program

        tracks_file.write_tracks(args, of_program(scene, report))
    return report.exit_code or 0


def _signum(error: BaseException) -> int | None:
    """Return the number of the signal that ended this verb; None if another error ended it."""
    return error.signum if isinstance(error, Interrupted) else None


def _tell(args: argparse.Namespace, report: ProgramReport, *, aside: bool) -> None:
    """Print the report. ``aside``: True sends a report in text to stderr, because stdout belongs to the user's
    command."""
    from jitter_workshop.presenter.runs.program import program_report_lines

    if args.json:
        print_json(report)
    else:
        show_lines(lambda width: program_report_lines(report, width), sys.stderr if aside else None)
    sys.stdout.flush()
