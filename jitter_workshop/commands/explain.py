"""Show what caused a run's stalls, by the kernel's trace.

RUN is an id, its unique beginning, a label (of the newest run with that label), or @1 for the newest run, @2, …
The run must have been measured with --evidence. Every stall's time is split by cause to the nanosecond, and the parts
sum to the stall: tasks, interrupts, softirqs, timers, workqueues, migrations, page faults. A short gap beside an event
is 'around' this event. A gap without any event of the kernel is 'no event': a hypervisor, firmware or memory took the
time; which of them is not guessed. If there was no trace (no rights, no tracefs), counters are shown, without causes.
"""

from __future__ import annotations

import argparse
import contextlib

from jitter_workshop.commands.common.base import add_json, show
from jitter_workshop.errors import UsageError

_MOST = 1_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run that was measured with --evidence")
    parser.add_argument("--top", type=int, default=10, metavar="N", help="show the N worst stalls (10)")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from jitter_workshop.commands.common.shared import open_session, say_notices
    from jitter_workshop.flow.attribution import explained
    from jitter_workshop.presenter import causes
    from jitter_workshop.presenter.progress import LateLine

    if not 0 <= args.top <= _MOST:
        raise UsageError(f"--top must be a number from 0 to {_MOST}")
    with open_session(args) as session:
        measured = session.find(args.run)
        with contextlib.closing(LateLine("explaining")) as late:
            report = explained(session, measured, args.top, late)
        notices = tuple(session.notices)
    say_notices(notices)
    show(args, report, lambda width: causes.explained(report, width, measured.label))
    return 0
