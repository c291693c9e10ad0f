"""Root changes the host while a class works: turns go on where nothing is to be given back, else they wait, and what a
student's evidence may look at."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from jitter_workshop.agent.lock import HostLock
from jitter_workshop.agent.statedir import StateDir
from tests import tuned_tree
from tests.classpeople import People, contents, state, until, waits
from tests.tuned_tree import journals, planned

pytestmark = pytest.mark.host

WORDS = ("governor",)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return tuned_tree.make(tmp_path)


@pytest.fixture
def people(tree: Path) -> Iterator[People]:
    made = People(tree)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def root(tree: Path) -> Iterator[HostLock]:
    """The host's lock, as root's ``apply --hold`` has it."""
    folder = StateDir(str(tree), os.geteuid())
    lock = HostLock(folder, "root")
    try:
        yield lock
    finally:
        lock.close()
        folder.close()


def test_a_turn_without_changes_ends_while_root_holds_the_host(tree: Path, people: People, root: HostLock) -> None:
    first, second = people.student("grace"), people.student("alan")
    root.take()
    for number, one in enumerate((first, second), 1):
        one.take()
        assert one.granted()["ok"]["number"] == number
        assert one.give() == {}
        assert (state(tree).turn, state(tree).trouble) == (None, "")


def test_changes_whose_restore_waits_for_root_are_restored_afterwards(
    tree: Path, people: People, root: HostLock
) -> None:
    """An agent dies in its turn, and root takes the host before anybody has given it back."""
    before = contents(tree)
    log = tree / "var" / "tried"
    log.parent.mkdir(exist_ok=True)
    first, second = people.student("grace"), people.student("alan", "wait=0", f"log={log}")
    first.take()
    assert "ok" in first.granted()
    assert first.apply(planned(tree, WORDS), WORDS, lease=20.0)["applied"]
    second.hang()
    agent = state(tree).turn
    assert agent is not None
    changed = contents(tree)
    _stop_watcher(agent.agent.pid)
    first.signal(signal.SIGKILL)
    root.take()
    second.signal(signal.SIGCONT)
    second.take()
    waits(tree, 1)
    until(lambda: (turn := state(tree).turn) is not None and turn.returning)
    for tries in (1, 2, 3):  # it is tried again and again, in vain
        until(lambda: log.exists() and log.read_text().count("lock busy") >= tries)  # noqa: B023 - used at once
        assert state(tree).turn is not None
        assert state(tree).trouble == ""
    assert contents(tree) == changed
    root.release()
    until(lambda: state(tree).number == 2 or state(tree).trouble)
    assert state(tree).trouble == ""
    assert second.granted()["ok"]["number"] == 2
    assert contents(tree) == before
    assert journals(tree) == []
    assert state(tree).trouble == ""


def _stop_watcher(agent: int) -> None:
    """End the children that would give back at once."""
    for child in Path(f"/proc/{agent}/task/{agent}/children").read_text().split():
        os.kill(int(child), signal.SIGKILL)


def test_a_students_evidence_is_of_the_classs_hot_cpus(tree: Path, people: People) -> None:
    one = people.student("grace")
    one.take()
    assert "ok" in one.granted()
    pid = one.client.pid
    for cpus in ("0", "0-3", "", "x"):
        told = one.ask("evidence", do="begin", pid=pid, tids=[pid], cpus=cpus, clock="mono", stacks=False)
        assert "hot CPUs" in told["error"]["message"]
    told = one.ask("evidence", do="begin", pid=pid, tids=[pid], cpus="2-3", clock="mono", stacks=False)
    assert "hot CPUs" not in str(told)
    told = one.ask("evidence", do="begin", pids=[pid], cpus="2-3", clock="mono")
    assert "instructor" in told["error"]["message"]
