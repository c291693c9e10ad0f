"""Find the verb on the command line, run the verb, and turn its result into an exit code.

Only this module decides exit codes: 0 done; 1 done with a finding; 2 not done (one line on stderr); 129 after HUP; 130
after INT; 143 after TERM.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import NoReturn

from jitter_workshop import __version__
from jitter_workshop.commands.common.base import (
    PROGRAM,
    VERBS,
    WORKSHOP,
    Interrupted,
    load_verb,
    verb_parser,
)
from jitter_workshop.errors import UsageError, WorkshopError
from jitter_workshop.model.text import ID, MESSAGE, clean

_TAKES_VALUE = frozenset({"--session", "--root", "--chapter", "--course"})
"""Options that may come before a verb and take the next word as their value."""
_KEPT = {
    "measure": f"; the run is kept: see '{PROGRAM} sessions show @1'",
    "prove": f"; the proof is kept: see '{PROGRAM} prove --list'",
}
"""End of the error message for verbs that saved their result but could not print it."""
_YOUNG_OBJECTS = 50_000
"""Number of new objects after which the garbage collector runs. With Python's default of 700 the collector takes a
tenth of a short verb's time. It frees hardly anything, because nearly all objects live until the end."""


def run() -> NoReturn:
    """Run the command line of this process, then end the process with the exit code. If no other thread runs and no
    exit function is registered, skip Python's clean-up, because it costs time."""
    code = main()
    threads = sys.modules.get("threading")
    if atexit._ncallbacks() == 0 and (threads is None or threads.active_count() == 1):
        os._exit(code)
    raise SystemExit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code. ``argv``: the words after the program's name, None for the words
    of this process."""
    words = list(sys.argv[1:] if argv is None else argv)
    if argv is None:
        gc.set_threshold(_YOUNG_OBJECTS)
    if sys.stdout is None:
        # Closed by the caller (>&-), which wants only the exit code.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - open as long as the process; --help needs no pathlib
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            # A terminal that cannot show "µ" shows a "?" instead of a traceback.
            reconfigure(errors="replace")
    try:
        with _signals_interrupt():
            code = _dispatch(words)
            if sys.stdout is not None:
                sys.stdout.flush()
            return code
    except WorkshopError as error:
        return _not_done(error.sentence())
    except Interrupted as stop:
        return 128 + stop.signum
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # The reader of our output has closed the pipe (``| head``), so no message would arrive.
        return 0
    except SystemExit as leave:
        # argparse leaves this way after --help and --version.
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            return 0
        except OSError as error:
            return _not_done(f"the output cannot be written: {error.strerror or error}")
        return leave.code if isinstance(leave.code, int) else 0
    except OSError as error:
        if error.filename:
            return _not_done(f"{error.strerror or error} ({error.filename})")
        position = _verb_position(words)
        kept = _KEPT.get(words[position], "") if position is not None else ""
        return _not_done(f"the output cannot be written: {error.strerror or error}{kept}")
    except Exception as error:
        if os.environ.get("JITTER_WORKSHOP_DEBUG"):
            raise
        kind = type(error).__name__
        return _not_done(
            f"a mistake in this program: {kind}: {error}; JITTER_WORKSHOP_DEBUG=1 shows the place in the code"
        )
    finally:
        _settle_streams()
        if argv is None:
            # The process ends now: Python would look for cycles among all objects, three times.
            gc.freeze()


def _dispatch(words: list[str]) -> int:
    position = _verb_position(words)
    if position is None:
        if any(word in ("-h", "--help") for word in words):
            sys.stdout.write(overview())
            return 0
        if "--version" in words:
            sys.stdout.write(f"{PROGRAM} {__version__}\n")
            return 0
        return _run(WORKSHOP, words)
    verb = words[position]
    if verb not in VERBS:
        import difflib

        near = difflib.get_close_matches(verb, VERBS, n=1)
        advice = f"did you mean '{near[0]}'?" if near else f"see '{PROGRAM} --help'"
        raise UsageError(f"there is no verb '{clean(verb, ID)}'", advice)
    return _run(verb, words[:position] + words[position + 1 :])


def _verb_position(words: list[str]) -> int | None:
    """Return the index of the verb in ``words``, or None if there is no verb. The verb is the first word that is
    neither an option nor an option's value."""
    position = 0
    while position < len(words):
        word = words[position]
        if not word.startswith("-"):
            return position
        position += 2 if word in _TAKES_VALUE else 1
    return None


def _run(verb: str, words: list[str]) -> int:
    module = load_verb(verb)
    parser = verb_parser(verb, module.__doc__)
    module.add_arguments(parser)
    code: int = module.run(parser.parse_args(words))
    return code


def overview() -> str:
    """Return the text that ``--help`` prints if there is no verb."""
    width = max(len(verb) for verb in VERBS)
    verbs = "\n".join(f"  {verb:<{width}}  {line}" for verb, line in VERBS.items())
    return f"""usage: {PROGRAM} [--session NAME] [--root TREE] [VERB] …

Where latency jitter comes from on this Linux host, and how to remove it.

Without a verb, the workshop starts:
  --plain          line by line instead of full screen
  --chapter ID     go straight to a chapter
  --course DIR     another course than the built-in one

Verbs ('{PROGRAM} VERB --help' says more):
{verbs}

With every verb:
  --session NAME   the session to work in (default: the current one)
  --root TREE      a recorded host instead of this one; read-only
  --help, --version

Exit codes: 0 done, 1 done with a finding, 2 not done, 129/130/143 ended by HUP/INT/TERM.
"""


@contextlib.contextmanager
def _signals_interrupt() -> Iterator[None]:
    """Raise Interrupted on HUP, INT and TERM while a verb runs. A signal that is ignored (nohup) stays ignored."""

    def interrupt(signum: int, _frame: FrameType | None) -> None:
        raise Interrupted(signum)

    kept = {}
    for signum in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        before = signal.getsignal(signum)
        if before is not signal.SIG_IGN:
            try:
                kept[signum] = signal.signal(signum, interrupt)
            except ValueError:
                break  # not the main thread, which alone may set handlers
    try:
        yield
    finally:
        for signum, before in kept.items():
            signal.signal(signum, before)


def _not_done(sentence: str) -> int:
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            sys.stderr.write(f"{PROGRAM}: {clean(sentence, MESSAGE)}\n")
            sys.stderr.flush()
    return 2


def _settle_streams() -> None:
    """Flush stdout and stderr, and connect a broken stream to /dev/null. A stream is broken if its reader or terminal
    is gone. Python's own flush at exit would fail on it and change the exit code to 120."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None:
            continue
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                nothing = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nothing, stream.fileno())
                os.close(nothing)
