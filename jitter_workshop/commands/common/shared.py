"""Share small functions between verbs, for the session, questions, notices and numbers."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable
from pathlib import Path

from jitter_workshop.commands.common.base import print_notice
from jitter_workshop.errors import SessionError, UsageError
from jitter_workshop.model.text import SENTENCE, clean
from jitter_workshop.session.store import OpenSession, SessionStore

NO_SESSION = "there is no session yet"
FIRST_SESSION = "workshop"
"""Name of the session that is made if the user has no session yet."""
STDOUT = Path("-")
"""The path ``-`` after ``-o``: it means standard output instead of a file."""


def say_if_any(sentence: str) -> None:
    """Print a sentence on stderr, unless it is empty."""
    if sentence:
        print_notice(sentence)


def say_notices(notices: Iterable[str]) -> None:
    """Print the notices that came up when a session was read."""
    for notice in notices:
        print_notice(f"note: {clean(notice, SENTENCE)}")


def agreed(question: str) -> bool:
    """Ask a question on the terminal. Return True if the answer is yes."""
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def write_stdout(content: bytes) -> None:
    """Write bytes to stdout. Raise UsageError if stdout is a terminal and the bytes are not text."""
    if sys.stdout.isatty():
        try:
            sys.stdout.write(content.decode())
        except UnicodeDecodeError:
            raise UsageError(
                "a terminal cannot show this binary output", "send it to a file or a pipe: -o FILE"
            ) from None
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def open_session(args: argparse.Namespace) -> OpenSession:
    """Return the session that ``--session`` names, or the current session. Raise SessionError if there is none."""
    session = SessionStore().current(args.session)
    if session is None:
        raise SessionError(NO_SESSION, "start the workshop, or run 'jitter-workshop measure'")
    return session


def session_to_keep_in(name: str | None, host: str) -> OpenSession:
    """Return the session named ``name``; None means the current session. If there is no such session, make it, for the
    host named ``host``. Raise SessionError if that fails."""
    store = SessionStore()
    if name is None:
        return store.current_or_create(FIRST_SESSION, host)
    before = {session.id for session in store.list()[0]}
    session = store.open_or_create(name, host)
    if session.session.id not in before:
        print_notice(f"New session {clean(session.session.name)}; it is the current one now.")
    return session


def add_wait(options: argparse._ActionsContainer) -> None:
    """Add the option ``--wait S`` to a parser, or to a group of options. The parsed value ``args.wait_s`` says how many
    seconds the verb waits for its turn."""
    options.add_argument(
        "--wait",
        dest="wait_s",
        type=finite_number,
        default=0.0,
        metavar="S",
        help="wait up to S seconds for another run to end (default: do not wait)",
    )


def finite_number(text: str) -> float:
    """Return the number in ``text``, a word of the command line. Raise argparse's error if ``text`` is not a finite
    number."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"not a number: {text!r}") from None
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"not a finite number: {text!r}")
    return value
