"""``jitter-workshop`` and ``lessons`` as they are started: with no terminal, with a dumb one, with a tiny one."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jitter_workshop import paths
from jitter_workshop.bench.lock import TURN_VARIABLE
from jitter_workshop.commands.lessons import NO_COURSE
from jitter_workshop.course.loader import builtin_course
from tests import hosttrees

REPOSITORY = Path(__file__).resolve().parents[2]
WITHIN_S = 30.0
SLOW_FGETS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>
char *fgets(char *line, int room, FILE *file) {
    char *(*next)(char *, int, FILE *) = (char *(*)(char *, int, FILE *))dlsym(RTLD_NEXT, "fgets");
    const struct timespec pause = {.tv_nsec = 500000000};
    if (file == stdin) {
        nanosleep(&pause, NULL);
    }
    return next(line, room, file);
}
"""


def environment(**extra: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("TERM", "COLUMNS", "LINES", "PYTHONPATH")}
    # A turn of its own: it does not wait for another program that measures on this host.
    return {**kept, "PYTHONPATH": str(REPOSITORY), TURN_VARIABLE: f"jitter-workshop.test-{os.getpid()}", **extra}


def started(*words: str, **extra: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "jitter_workshop", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        env=environment(**extra),
        check=False,
    )


class Terminal:
    """The workshop on a pseudo-terminal of its own."""

    def __init__(
        self,
        *words: str,
        columns: int = 80,
        rows: int = 24,
        term: str = "dumb",
        stderr: int | None = None,
        **extra: str,
    ) -> None:
        self.output = ""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._master = master
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jitter_workshop", *words],
            stdin=slave,
            stdout=slave,
            stderr=slave if stderr is None else stderr,
            env=environment(TERM=term, **extra),
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0) and None,
        )
        os.close(slave)

    def until(self, text: str) -> str:
        """Read until ``text`` appears after what was read before; fails after ``WITHIN_S`` without output."""
        seen = len(self.output)
        while text not in self.output[seen:]:
            if not select.select([self._master], [], [], WITHIN_S)[0]:
                raise AssertionError(f"no {text!r} in {self.output!r}")
            try:
                data = os.read(self._master, 65_536)
            except OSError:
                data = b""
            if not data:
                raise AssertionError(f"ended without {text!r}: {self.output!r}")
            self.output += data.decode("utf-8", "replace")
        return self.output[seen:]

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def end(self) -> int:
        return self.process.wait(WITHIN_S)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._master)


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.close()


def test_without_a_terminal_a_tour_that_makes_and_measures_nothing() -> None:
    for words in ((), ("--plain",), ("--chapter", "pinning")):
        done = started(*words)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        lines = done.stdout.splitlines()
        assert len(lines) <= 120
        assert all(line.isprintable() and len(line) <= 80 for line in lines)
        assert "PATH FOR THIS HOST" in done.stdout
        assert "jitter-workshop measure" in done.stdout
    assert not paths.state_dir().exists()


def test_the_tour_of_a_recorded_host_and_of_an_empty_tree(tmp_path: Path) -> None:
    tree = tmp_path / "server"
    tree.mkdir()
    hosttrees.server64(tree)
    done = started("--root", str(tree))
    assert done.returncode == 0
    assert "nothing can be measured on a recorded host" in done.stdout
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "proc").mkdir()
    assert started("--root", str(empty)).returncode == 0


def test_the_tour_does_not_load_the_screen() -> None:
    code = (
        "import sys; from jitter_workshop.cli import main; code = main([]); "
        "print([m for m in ('textual', 'plotext', 'hdrh', 'psutil') if m in sys.modules], code, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        env=environment(),
        check=False,
    )
    assert done.stderr.strip() == "[] 0"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--chapter", "pining"), "there is no chapter 'pining'; did you mean 'pinning'?"),
        (("--course", "/nowhere"), "there is no folder '/nowhere'"),
        (("lessons", "new", "x"), NO_COURSE),
        (("lessons", "list", "x"), "takes no name"),
    ],
)
def test_a_refusal_is_one_line(words: tuple[str, ...], sentence: str) -> None:
    done = started(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_lessons_list_and_check() -> None:
    listed = json.loads(started("lessons", "list", "--json").stdout)
    assert listed["format_version"] == 1
    assert listed["chapters"][0]["id"] == "baseline"
    for chapter in listed["chapters"]:
        assert {"id", "title", "minutes", "here", "setting", "curve"} <= set(chapter)
        assert chapter["here"] in ("yes", "recorded")
    done = started("lessons", "check", "--json")
    assert (done.returncode, json.loads(done.stdout)["problems"]) == (0, [])
    assert started("lessons").stdout.startswith("baseline")


def test_lessons_check_finds_and_lists_every_mistake(tmp_path: Path) -> None:
    for folder in ("", "01-baseline"):
        (tmp_path / folder).mkdir(exist_ok=True)
        for path in (builtin_course() / folder).glob("*.*"):
            if path.suffix in (".toml", ".md"):
                (tmp_path / folder / path.name).write_text(path.read_text())
    top = tmp_path / "course.toml"
    top.write_text('format_version = 1\nid = "x"\ntitle = "X"\nchapters = ["01-baseline"]\nextra = 1\n')
    lesson = tmp_path / "01-baseline" / "lesson.toml"
    lesson.write_text(re.sub("minutes = .*", 'minutes = "five"', lesson.read_text()))
    done = started("lessons", "check", "--course", str(tmp_path), "--json")
    found = json.loads(done.stdout)["problems"]
    assert done.returncode == 1
    assert {(p["file"], p["line"]) for p in found} == {("01-baseline/lesson.toml", 5), ("course.toml", 5)}
    started_with = started("--course", str(tmp_path))
    assert started_with.returncode == 2
    assert "01-baseline/lesson.toml:5:" in started_with.stderr


@pytest.mark.parametrize(("words", "term"), [(("--plain",), "xterm-256color"), ((), "dumb"), ((), "")])
def test_line_by_line_on_a_terminal(terminals: list[Terminal], words: tuple[str, ...], term: str) -> None:
    terminal = Terminal(*words, term=term)
    terminals.append(terminal)
    terminal.until("Enter go on")
    terminal.type("\n")
    assert "LOOK" in terminal.until("Enter predict")
    terminal.type("q\n")
    terminal.until("guesses are kept")
    assert terminal.end() == 0
    assert "\x1b" not in terminal.output


@pytest.mark.parametrize(("columns", "rows"), [(20, 5), (50, 12), (59, 24), (80, 15)])
def test_a_small_terminal_gets_a_sentence_and_the_plain_walk(
    terminals: list[Terminal], columns: int, rows: int
) -> None:
    terminal = Terminal(columns=columns, rows=rows, term="xterm")
    terminals.append(terminal)
    said = terminal.until("Enter go on")
    assert f"This terminal has {columns}×{rows}, and the screen needs 60×16" in " ".join(said.split())
    terminal.type("\x04")
    terminal.until("kept")
    assert terminal.end() == 0
    assert "Traceback" not in terminal.output


def test_where_the_screen_would_be_drawn_into_a_file_the_walk_is_plain(terminals: list[Terminal]) -> None:
    terminal = Terminal(term="xterm", stderr=subprocess.DEVNULL)
    terminals.append(terminal)
    assert "Standard error is not the terminal" in terminal.until("Enter go on")
    terminal.type("q\n")
    assert terminal.end() == 0


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals_at_the_prompt(terminals: list[Terminal], signum: int, code: int) -> None:
    terminal = Terminal("--plain")
    terminals.append(terminal)
    terminal.until("Enter go on")
    terminal.process.send_signal(signum)
    assert terminal.end() == code


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_just_before_the_prompt_is_read(
    terminals: list[Terminal], tmp_path: Path, signum: int, code: int
) -> None:
    """The C library takes half a second to begin to read: a signal in that time must not wait for a line."""
    (tmp_path / "slow.c").write_text(SLOW_FGETS)
    slow = tmp_path / "slow.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", slow, tmp_path / "slow.c", "-ldl"], check=True, timeout=WITHIN_S)
    terminal = Terminal("--plain", LD_PRELOAD=str(slow))
    terminals.append(terminal)
    terminal.until("quit > ")
    time.sleep(0.1)
    terminal.process.send_signal(signum)
    assert terminal.end() == code


@pytest.mark.native
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_a_run(terminals: list[Terminal], signum: int) -> None:
    """Ctrl-C stops the run and the workshop goes on; TERM stops the run and then the workshop."""
    terminal = Terminal("--plain", "--chapter", "baseline", columns=100)
    terminals.append(terminal)
    terminal.until("Enter predict")
    terminal.type("3\n")
    terminal.until("Enter measure")
    terminal.type("\n")
    terminal.until("block")
    terminal.process.send_signal(signum)
    if signum == signal.SIGTERM:
        assert terminal.end() == 143
        return
    assert "Their curve is kept" in terminal.until("Enter measure")
    terminal.type("q\n")
    terminal.until("guesses are kept")
    assert terminal.end() == 0
