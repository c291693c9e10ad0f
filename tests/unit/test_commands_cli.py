"""The command line's frame: verbs, exit codes and the one line on stderr."""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import re
import signal
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop import cli
from jitter_workshop.commands.common import base
from jitter_workshop.errors import HostError, UsageError
from tests import tuned_tree


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[argparse.Namespace], int]], None]:
    """Install a verb ``try`` whose ``run`` is the given function."""

    def install(run: Callable[[argparse.Namespace], int]) -> None:
        module = types.ModuleType("jitter_workshop.commands.try_", "A verb for a test.")
        module.add_arguments = lambda parser: parser.add_argument("--number", type=int)  # type: ignore[attr-defined]
        module.run = run  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "jitter_workshop.commands.try_", module)
        monkeypatch.setitem(base.VERBS, "try", "for a test")

    return install


def raises(error: BaseException) -> Callable[[argparse.Namespace], int]:
    def run(args: argparse.Namespace) -> int:
        raise error

    return run


def test_the_code_of_the_verb_is_the_exit_code(verb: Callable[..., None]) -> None:
    verb(lambda args: 1)
    assert cli.main(["try"]) == 1


def test_everywhere_options_may_stand_before_the_verb(verb: Callable[..., None]) -> None:
    seen: list[argparse.Namespace] = []

    def run(args: argparse.Namespace) -> int:
        seen.append(args)
        return 0

    verb(run)
    assert cli.main(["--session", "measure", "try", "--number", "3"]) == 0
    assert (seen[0].session, seen[0].number, str(seen[0].root)) == ("measure", 3, "/")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["try", "--number", "x"], "argument --number: invalid int value"),
        (["try", "--nmber", "1"], "unrecognized arguments"),
        (["try", "--root", "/no/such/tree"], "there is no folder /no/such/tree"),
        (["tyr"], "did you mean 'try'?"),
        (["zzz"], "there is no verb 'zzz'"),
        (["a\x1b[31mb"], "there is no verb 'a [31mb'"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(
    words: list[str], part: str, verb: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    verb(lambda args: 0)
    assert cli.main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert part in err


def test_an_error_tells_the_fault_and_the_advice(verb: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    verb(raises(HostError("CPU 9 is\noffline", "choose another")))
    assert cli.main(["try"]) == 2
    assert capsys.readouterr() == ("", "jitter-workshop: CPU 9 is offline; choose another\n")


def test_a_mistake_of_ours_is_one_line_too(verb: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    verb(raises(ZeroDivisionError("division by zero")))
    assert cli.main(["try"]) == 2
    assert "a mistake in this program: ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.parametrize("signum", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_signals_end_a_verb_with_their_code(signum: signal.Signals, verb: Callable[..., None]) -> None:
    def run(args: argparse.Namespace) -> int:
        os.kill(os.getpid(), signum)
        raise AssertionError("not reached")

    verb(run)
    before = signal.getsignal(signum)
    assert cli.main(["try"]) == 128 + signum
    assert signal.getsignal(signum) == before


def test_a_reader_that_left_is_no_error(verb: Callable[..., None]) -> None:
    code = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "from jitter_workshop import cli\n"
        "import os, types\n"
        "cli.overview = lambda: 'x' * 1_000_000\n"
        "sys.exit(cli.main(['--help']))\n"
    )
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", code, *filter(None, sys.path)], stdout=writer, stderr=subprocess.PIPE, timeout=20
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_full_output_device_is_named(verb: Callable[..., None]) -> None:
    code = "import sys; sys.path[:0] = sys.argv[1:]; from jitter_workshop import cli; sys.exit(cli.main(['--help']))"
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device, not a file
        done = subprocess.run(
            [sys.executable, "-c", code, *filter(None, sys.path)], stdout=full, stderr=subprocess.PIPE, timeout=20
        )
    assert (done.returncode, done.stderr) == (
        2,
        (b"jitter-workshop: the output cannot be written: No space left on device\n"),
    )


def test_help_names_every_verb_and_imports_none(capsys: pytest.CaptureFixture[str]) -> None:
    code = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "from jitter_workshop import cli\n"
        "cli.main(['--help'])\n"
        "heavy = {'textual', 'rich', 'plotext', 'hdrh', 'psutil', 'cffi', 'subprocess', 'asyncio'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, *filter(None, sys.path)], capture_output=True, text=True, timeout=20
    )
    assert all(verb in done.stdout for verb in base.VERBS)
    assert done.stderr.strip() == "[]"


def test_the_recorded_host_cannot_be_measured() -> None:
    args = base.verb_parser("measure", "x").parse_args(["--root", "/proc"])
    with pytest.raises(HostError, match="recorded host"):
        base.require_live_host(args)


def test_json_has_its_format_version_first(capsys: pytest.CaptureFixture[str]) -> None:
    base.print_json({"b": (1, 2), "a": None})
    assert capsys.readouterr().out.startswith('{\n  "format_version": 1,\n  "b": [')


def test_argparse_complains_through_our_own_errors() -> None:
    with pytest.raises(UsageError, match="expected one argument"):
        base.verb_parser("measure", "x").parse_args(["--session"])


def test_a_folder_that_holds_no_recorded_host_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--root", str(tmp_path), "lessons", "list"]) == 2
    assert "is not a recorded host" in capsys.readouterr().err


def test_a_closed_output_leaves_the_exit_code(tmp_path: Path) -> None:
    """A script that needs only the exit code closes the output: ``status >&-``."""
    tree = tuned_tree.make(tmp_path)
    program = "import sys; sys.path[:0] = sys.argv[1].split(':'); from jitter_workshop import cli; "
    program += "sys.exit(cli.main(sys.argv[2:]))"
    path = ":".join(filter(None, sys.path))
    for words, expected in (
        (["status", "governor", "--cpus", "2-3"], 1),
        (["status", "ksm", "--cpus", "2-3"], 0),
        (["status", "--json"], 1),
        (["plan"], 0),
        (["status", "nothing-like-it"], 2),
    ):
        command = [sys.executable, "-c", program, path, *words, "--root", str(tree)]
        closed = subprocess.run(
            ["sh", "-c", 'exec "$@" >&-', "sh", *command], stderr=subprocess.PIPE, text=True, timeout=30, check=False
        )
        opened = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        assert (closed.returncode, closed.stderr) == (opened.returncode, opened.stderr), words
        assert closed.returncode == expected, (words, opened)


def test_only_a_measurement_is_kept_where_the_output_is_full(
    verb: Callable[..., None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    verb(raises(full))
    assert cli.main(["try"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("jitter-workshop: the output cannot be written:")
    assert err.endswith(f": {full.strerror}\n")
    module = types.ModuleType("jitter_workshop.commands.measure", "A verb for a test.")
    module.add_arguments = lambda parser: None  # type: ignore[attr-defined]
    module.run = raises(full)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jitter_workshop.commands.measure", module)
    assert cli.main(["measure"]) == 2
    assert "kept: see 'jitter-workshop sessions show @1'" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--root", "", "status"], ["status", "--root", ""], ["plan", "--root="]])
def test_an_empty_root_is_not_this_host(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "empty; give the folder of" in err


@pytest.mark.parametrize(
    ("verb", "before", "now", "words"),
    [
        ("measure", "--solid", "for_percentile", ["99.9"]),
        ("apply", "--once", "next_boot", []),
        ("plan", "--once", "next_boot", []),
        ("restore", "--forget", "discard", []),
    ],
)
def test_options_of_before_are_taken(verb: str, before: str, now: str, words: list[str]) -> None:
    module = importlib.import_module(f"jitter_workshop.commands.{verb}")
    parser = base.verb_parser(verb, module.__doc__)
    module.add_arguments(parser)
    by_old = parser.parse_args([before, *words])
    assert getattr(by_old, now)
    shown = f"--{now.replace('_', '-')}"
    assert by_old == parser.parse_args([shown, *words])
    told = parser.format_help()
    assert shown in told
    assert not re.search(rf"{before}\b", told)
