"""sudo's question below the screen, on a real (pseudo) terminal, and what that terminal is told at the end."""

from __future__ import annotations

import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import madecourse, tuned_tree
from tests.terminal import ALT_SCREEN_OFF, Terminal, workshop_terminal

PROGRAM = r"""
import dataclasses, fcntl, subprocess, sys, termios
from pathlib import Path
import pytest
from jitter_workshop import cli
from jitter_workshop.agent.client import asks_password
from jitter_workshop.errors import HostError
from jitter_workshop.flow.host_ops import agent_connection as connection_module
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.tui.core import actions
from tests.livehost import give_agent, open_live

actions.TYPED_AHEAD_S = 0.0  # an Enter of this test is meant for the plan
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C is a signal, as in a shell's terminal
tree, course = Path(sys.argv[1]), Path(sys.argv[2])
patch = pytest.MonkeyPatch()
workshop = open_live(tree, course, patch)
give_agent(workshop, tree, patch)
agent = connection_module.connect_to_agent
ASK = 'printf "[sudo] password: "; read -r word </dev/tty; test "$word" = right'

def connect(ask=True, purpose=None):
    if not ask:
        raise asks_password()
    if subprocess.run(["sh", "-c", ASK]).returncode:
        raise HostError("sudo: 1 incorrect password attempt")
    return agent()

connection_module.connect_to_agent = connect
walk = workshop.walk("pages")
walk._save(dataclasses.replace(walk.progress, step="apply"))
Workshop.open = lambda *_, **__: workshop
sys.exit(cli.main(["--chapter", "pages"]))
"""


@pytest.fixture
def terminal(tree: Path, tmp_path: Path) -> Iterator[Terminal]:
    course = madecourse.write(tmp_path / "course")
    with workshop_terminal(PROGRAM, str(tree), str(course)) as made:
        yield made


def ask(terminal: Terminal) -> None:
    """Turn the page of ``apply`` to its plan and scroll to its end, press Enter there and wait for the question."""
    terminal.wait_for("show plan")
    terminal.type("\r")
    terminal.wait_for("Enter writes this, as root.")
    terminal.wait_for("read on")
    terminal.seen = b""
    terminal.type("\r")
    terminal.wait_for("apply")
    terminal.seen = b""
    terminal.type("\r")
    terminal.wait_for("[sudo] password: ")
    assert ALT_SCREEN_OFF in terminal.seen
    assert termios.tcgetattr(terminal.slave)[3] & termios.ICANON
    terminal.seen = b""


def test_a_password_applies_and_leaving_tells_the_restored_changes(terminal: Terminal, tree: Path) -> None:
    before = tuned_tree.contents(tree)
    ask(terminal)
    terminal.type("right\n")
    terminal.wait_for("RESULT")
    assert tuned_tree.contents(tree) != before
    terminal.type("q")
    terminal.wait_for("PATH FOR THIS HOST")
    terminal.type("q")
    terminal.wait_for("Leave the workshop?")
    terminal.type("\r")
    assert terminal.ended() == 0
    assert b"Restored: 2 settings, 2 writes (thp, stat-interval)." in terminal.seen.rpartition(ALT_SCREEN_OFF)[2]
    assert tuned_tree.contents(tree) == before
    assert termios.tcgetattr(terminal.slave)[:4] == terminal.before[:4]


@pytest.mark.parametrize(
    ("answer", "said"), [("wrong\n", "1 incorrect password attempt"), ("\x03", "password was given")]
)
def test_no_password_comes_back_to_the_screen(terminal: Terminal, tree: Path, answer: str, said: str) -> None:
    before = tuned_tree.contents(tree)
    ask(terminal)
    terminal.type(answer)
    terminal.wait_for("NOT APPLIED")
    terminal.wait_for(said)
    terminal.seen = b""
    terminal.type("b")
    terminal.wait_for("▸MEASURE")
    terminal.type("\x03")
    assert terminal.ended() == 130
    assert tuned_tree.contents(tree) == before
    assert b"Traceback" not in terminal.seen
