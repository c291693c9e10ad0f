"""Define a verb, and share what all verbs need.

A verb is one module ``jitter_workshop/commands/<verb>.py`` (``record_host`` for ``record-host``) with::

    \"\"\"One line that says what the verb does.

    More help, shown below the options by ``jitter-workshop <verb> --help``.
    \"\"\"

    def add_arguments(parser: argparse.ArgumentParser) -> None: ...
    def run(args: argparse.Namespace) -> int: ...          # 0 done, 1 done with a finding

and one line in :data:`VERBS`. The rules:

* ``run`` returns 0 or 1. It never prints errors and never calls ``sys.exit``: it raises a ``WorkshopError``, which
  ``cli.main`` turns into one line on stderr and exit code 2. With exit code 2, stdout must be empty. So first do
  everything that can fail, and then print to stdout.
* Every verb has ``args.session`` (str or None) and ``args.root`` (Path, ``/`` or a recorded host; ``args.tree`` is the
  same as a string), and ``args.json`` if the module called :func:`add_json`.
* HUP, INT and TERM raise :class:`Interrupted` out of ``run`` and become 129, 130 and 143. A verb that has to tidy up
  uses ``try``/``finally``, or handlers of its own.
* Text that does not come from this program goes through ``model.text.clean`` before it is printed.
* Heavy imports (Textual, hdrh, psutil) go inside ``run``. A verb's module is imported even if the user only
  asks for its ``--help``. ``--help`` and ``sessions`` must start within 0.1 s.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from jitter_workshop.errors import BusyError, HostError, UsageError
from jitter_workshop.model.record import FORMAT_VERSION
from jitter_workshop.model.text import MESSAGE, clean

if TYPE_CHECKING:
    from pathlib import Path

    from jitter_workshop.presenter.text.styled import Text

NO_COMMAND = "a command must follow --"
PROGRAM = "jitter-workshop"

WORKSHOP = "workshop"
"""The module that runs if no verb is given; it cannot be typed as a verb."""

VERBS: dict[str, str] = {
    "status": "show what this host's settings do to latency, and how to improve each",
    "plan": "show every write that would improve this host; nothing is written",
    "apply": "make the named changes, after showing them and asking; 'restore' restores the old values",
    "restore": "restore the values from before 'apply', the last change first",
    "doctor": "show what is missing on this host, and the command that mends it",
    "measure": "measure latency jitter on this host, once",
    "compare": "show how runs differ (a description, not a cause)",
    "prove": "prove with pairs of runs whether a change helps; the change is restored at the end",
    "explain": "show what caused a run's stalls, or where a program's time went",
    "watch": "watch for stalls for hours, keep the worst with their causes, and judge them by a condition",
    "fleet": "compare the answers of many hosts: which of them differ, and in what",
    "chart": "draw the percentile curves of runs",
    "report": "write a report of the session that can be read without this tool",
    "sessions": "list, show, choose or remove sessions",
    "practice": "run a disposable machine with a kernel of its own, where anything may be changed",
    "record-host": "record this host into a folder that every verb can read with --root",
    "lessons": "list the chapters, or check a course for mistakes",
    "serve": "show the workshop in a browser, on loopback, behind a token",
    "completions": "print completions for bash, zsh or fish",
    "man": "print the man page of all verbs",
    "class": "run a class on shared machines: turns, board, and the class host itself",
}
"""Verb → the line that ``--help`` prints for the verb. The lines are kept here, so that help imports no verb's
module."""


def advise_waiting(error: BusyError) -> None:
    """Add a sentence on the option ``--wait`` to the error's advice, unless the advice names ``--wait`` already."""
    if "--wait" not in error.advice:
        error.advice += ", or queue with '--wait SECONDS'"


class Interrupted(BaseException):
    """Report that a signal asked this process to end. ``cli.main`` then returns 128 + ``signum``."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum


# argparse looks for translations of its own words. This program has none, and the search loads further modules.
argparse._ = str  # type: ignore[attr-defined]


class Options(argparse.Namespace):
    """Hold the options of a verb."""

    tree: str

    @property
    def root(self) -> Path:
        """Return the host that the verb reads: ``/``, or the folder of a recorded host."""
        from pathlib import Path  # a short verb takes ``tree``, and loads no pathlib

        return Path(self.tree)


class Parser(argparse.ArgumentParser):
    """Parse like argparse, but raise UsageError instead of exiting, so that all errors are printed in the same way."""

    takes_command = False
    """True if ``-- COMMAND…`` may follow at the end of the command line. The command is then ``args.command``."""

    intermixed = False
    """True if words may stand between and after options, even for a verb with several kinds of words."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        words = list(sys.argv[1:] if args is None else args)
        namespace = Options() if namespace is None else namespace
        command: list[str] = []
        if self.takes_command and "--" in words:
            place = words.index("--")
            words, command = words[:place], words[place + 1 :]
            if not command:
                self.error(NO_COMMAND)
        if self.intermixed:
            self.intermixed = False  # argparse calls this again, once for the options and once for the words
            try:
                known, rest = self.parse_known_intermixed_args(words, namespace)
            finally:
                self.intermixed = True
        else:
            known, rest = super().parse_known_args(words, namespace)
        if self.takes_command:
            known.command = command
        return known, rest

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, f"see '{self.prog} --help'")


def load_verb(verb: str) -> Any:
    """Return the module of a verb. ``verb``: a name in VERBS, or WORKSHOP."""
    import importlib
    import keyword

    name = f"{verb}_" if keyword.iskeyword(verb) else verb.replace("-", "_")
    return importlib.import_module(f"jitter_workshop.commands.{name}")


def verb_parser(verb: str, doc: str | None) -> Parser:
    """Return the parser of a verb, with the options that every verb has. ``verb``: a name in VERBS, or WORKSHOP.
    ``doc``: the docstring of the verb's module, which becomes its help."""
    first, _, rest = (doc or "").strip().partition("\n")
    prog = PROGRAM if verb == WORKSHOP else f"{PROGRAM} {verb}"
    parser = Parser(
        prog=prog,
        description=first,
        epilog=rest.strip("\n") or None,
        formatter_class=_help_form,
        allow_abbrev=False,
    )
    everywhere = parser.add_argument_group("with every verb")
    everywhere.add_argument("--session", metavar="NAME", help="the session to work in (default: the current session)")
    everywhere.add_argument(
        "--root",
        dest="tree",
        metavar="TREE",
        type=_tree,
        default="/",
        help="read a recorded host instead of this host: a folder from record-host, or a tar file of it",
    )
    return parser


def _help_form(prog: str) -> argparse.HelpFormatter:
    """Return the formatter of a verb's help, with the width of the terminal. The width is set here. Otherwise argparse
    would import another module to find the width.
    """
    return argparse.RawDescriptionHelpFormatter(prog, width=_columns() - 2)


def _columns() -> int:
    """Return the width of the terminal in columns. The environment variable COLUMNS takes precedence. Return 80 without
    a terminal."""
    given = os.environ.get("COLUMNS", "")
    if given.isascii() and given.isdigit() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80 if sys.__stdout__ is not None else 80
    except (OSError, ValueError):
        return 80


def _tree(text: str) -> str:
    if text == "/":
        return text
    from pathlib import Path

    if not text:
        raise argparse.ArgumentTypeError("empty; give the folder of a recorded host")
    path = Path(text)
    if path.is_file():
        from jitter_workshop.host.recording.packed import unpacked
        from jitter_workshop.paths import cache_dir

        path = unpacked(path, cache_dir() / "recordings")
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {text}")
    if not (path / "proc").is_dir() and not (path / "sys").is_dir():
        raise argparse.ArgumentTypeError(f"{text} is not a recorded host: it has neither proc nor sys")
    return str(path)


def offer(action: argparse.Action, words: Iterable[str]) -> None:
    """Set the words that shell completion offers for the argument ``action``. Use this if the parser itself accepts any
    value for the argument."""
    action.offered = tuple(words)  # type: ignore[attr-defined]


def also_as(parser: argparse.ArgumentParser, now: str, before: str) -> None:
    """Let a parser accept an option's earlier name, too. The help, the completions and the man page do not show it.
    ``now``: the option's present name. ``before``: its earlier name."""
    # One option under two names: type, choices and groups hold for both.
    parser._option_string_actions[before] = parser._option_string_actions[now]


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--json`` to a parser. A verb with this option prints its result with :func:`print_result` or
    :func:`print_json`."""
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def print_json(payload: Any) -> None:
    """Print a JSON object, with ``format_version`` first. ``payload``: a dict, or a dataclass of plain data."""
    import json

    from jitter_workshop.model.codec import to_plain

    plain = {"format_version": FORMAT_VERSION, **to_plain(payload)}
    sys.stdout.write(json.dumps(plain, indent=2, allow_nan=False) + "\n")


def print_result(args: argparse.Namespace, payload: Any, text: str | Callable[[int], Iterable[Text]]) -> None:
    """Print the payload as JSON if ``--json`` is given, else print the text. ``text``: a string, or a function that
    returns lines for a width (see :func:`show_lines`)."""
    if args.json:
        print_json(payload)
    elif isinstance(text, str):
        sys.stdout.write(text)
    else:
        show_lines(text)
    sys.stdout.flush()


def show_lines(build: Callable[[int], Iterable[Text]], stream: TextIO | None = None) -> None:
    """Print the lines that ``build(width)`` returns for the width of the stream. ``stream``: None means stdout."""
    from jitter_workshop.presenter.text.lines import Output

    output = Output(stream)
    output.show(build(output.width))


def print_notice(sentence: str) -> None:
    """Print one line on stderr, such as a warning or the path of a result. Errors are not printed here."""
    if sys.stderr is not None:
        sys.stderr.write(f"{clean(sentence, MESSAGE)}\n")
        sys.stderr.flush()


def require_live_host(args: argparse.Namespace) -> None:
    """Raise HostError if ``--root`` names a recorded host, because the verb acts on this machine."""
    if args.tree != "/":
        raise HostError("a recorded host can be read, but not measured or changed", "leave out --root")
