"""Share code for proofs and screenings (``prove``): ask first, show the progress, and print the result."""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from jitter_workshop.commands.common.base import Interrupted, print_notice, show_lines
from jitter_workshop.commands.common.shared import agreed, open_session, say_notices, session_to_keep_in
from jitter_workshop.errors import SessionError, UsageError
from jitter_workshop.model.proof import Proof
from jitter_workshop.model.run import Progress, RunObserver, RunStarted
from jitter_workshop.model.screening import Screening
from jitter_workshop.presenter.runs.progress import Line
from jitter_workshop.presenter.text.lines import Lines
from jitter_workshop.session.opened import OpenSession
from jitter_workshop.stats.scale import nice_duration

if TYPE_CHECKING:
    from jitter_workshop.flow.host_ops.agent_connection import AgentConnection

RUNNING_ONCE = "Running the command once, to see how long it takes …"
OTHERS_OUT = "leave the other words out"
NO_UPPER_BOUND = "null: the interval has no upper bound"
OWN_BENCHMARK = "the runs are of our own benchmark, not of a command"
MOST_LINES = 50
"""The largest number of progress lines that are written if stderr is not a terminal."""
T = TypeVar("T")


def need_answer(args: argparse.Namespace) -> None:
    """Raise UsageError if the user has to confirm the cost, but there is no terminal to ask on."""
    if not args.yes and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("there is no terminal to ask for confirmation", "use --yes, which also prints the cost")


def ask_before_runs(args: argparse.Namespace, cost: Callable[[int], Lines], question: str) -> None:
    """Show the cost of the runs, and ask ``question`` unless ``--yes`` is given. ``cost``: a function that returns the
    lines on the cost, for a width in columns. Raise UsageError if the answer is no."""
    show_lines(cost, sys.stderr)
    if not args.yes and not agreed(f"\n{question}"):
        raise UsageError("nothing was measured, nothing was changed")
    sys.stderr.write("\n")
    sys.stderr.flush()


@contextlib.contextmanager
def kept_in(args: argparse.Namespace) -> Iterator[tuple[OpenSession, AgentConnection]]:
    """Yield the session for the result, and a connection to the agent. At the end close the agent's connection first,
    so that all changes still applied are restored."""
    from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
    from jitter_workshop.flow.host_ops.change_log import ChangeLog
    from jitter_workshop.host.root import HostRoot
    from jitter_workshop.host.summary import summarise_host

    session = session_to_keep_in(args.session, summarise_host(HostRoot()).name)
    agent_connection = AgentConnection(change_log=ChangeLog(session))
    try:
        yield session, agent_connection
    finally:
        agent_connection.close()
        agent_connection.change_log.end()
        session.close()


class RunsLine(Line):
    """Keep one progress line on stderr during the runs. The line has the number of the current run and the remaining
    time.
    """

    def __init__(self) -> None:
        super().__init__()
        self._where = ""
        self._left_s = 0.0
        self._since = 0.0

    def begins(self, where: str, left_s: float) -> RunObserver:
        """Show the run that begins, and return this object as the run's observer. ``where``: a text with the position
        of this run among all runs. ``left_s``: seconds until the end of all runs.
        """
        self._where = where
        self._left_s, self._since = left_s, time.monotonic()
        self._show()
        return self

    def more(self) -> str:
        """Return words to append to the progress line, after the remaining time."""
        return ""

    def restoring(self) -> None:
        self.write("  restoring …")

    def started(self, event: RunStarted) -> None:
        self._show()

    def block_done(self, progress: Progress) -> None:
        self._show()

    def _show(self) -> None:
        left_s = max(1.0, self._left_s - (time.monotonic() - self._since))
        self.write(f"  {self._where} · {nice_duration(left_s)} left{self.more()}")


def print_experiment(
    args: argparse.Namespace,
    made: Proof | Screening,
    shown: Callable[[], None],
    where: tuple[str, str],
    trouble: str,
    not_kept: str,
    received: Sequence[int],
) -> None:
    """Print a result, and the name of the session that contains the result.

    - ``shown``: a function that prints the result.
    - ``where``: the session's name, and the verb that prints the result again.
    - ``trouble``: the text of an error that the agent reported. This text is printed only if a setting was not
      restored.
    - ``not_kept``: the reason why the result is not stored, "" if it is stored.
    - ``received``: the signals that this process has received. After a signal, errors of the output are ignored,
      because the terminal may be gone.
    """
    named = f" --session {shlex.quote(where[0])}" if args.session is not None else ""
    kept = f"kept in session {where[0]}; 'jitter-workshop {where[1]} --show @1{named}' prints it again"
    with contextlib.suppress(*(OSError,) if received else ()):
        shown()
        for sentence in ("" if made.restored else trouble, not_kept or ("" if args.json else kept)):
            if sentence:
                print_notice(sentence)


def exit_code(made: Proof | Screening, received: Sequence[int]) -> int:
    """Return 1 if a setting could not be restored, or if the user's command failed in a later run; else 0. Raise
    Interrupted if a signal came."""
    if received:
        raise Interrupted(received[0])
    failed = bool(made.command and made.stopped)
    return 1 if failed or not made.restored else 0


def earlier(
    args: argparse.Namespace,
    what: str,
    update: Callable[[OpenSession], None],
    find: Callable[[OpenSession, str], T],
    read_all: Callable[[OpenSession], tuple[T, ...]],
) -> tuple[T, ...]:
    """Return the earlier results of the session. With ``--show``, return only the result that this option names.

    - ``what``: the plural name of the results, for messages.
    - ``update``: a function that records in the session what has been restored since.
    - ``find``: a function that returns one result by its name.
    - ``read_all``: a function that returns all results.

    Raise UsageError for words that contradict ``--list`` or ``--show``. Raise SessionError if there is no such result.
    """
    if args.words or getattr(args, "command", ()) or args.resume or (args.list and args.show is not None):
        raise UsageError(f"--list and --show print earlier {what}", OTHERS_OUT)
    with open_session(args) as session:
        update(session)
        try:
            found = (find(session, args.show),) if args.show is not None else read_all(session)
        except SessionError as error:
            # The wanted one may be the one that was just set aside: say so, because that never happens silently.
            raise SessionError("; ".join((error.message, *session.notices)), error.advice) from error
        notices = tuple(session.notices)
    say_notices(notices)
    return found
