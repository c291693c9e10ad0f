"""Members of a class on a made host, each with an agent of their own (``agent_on_tree``) and a process to measure."""

from __future__ import annotations

import fcntl
import json
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from jitter_workshop.agent.turns.state_file import LOCK_FILE, parse_turn_state
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.turn import TurnState
from jitter_workshop.paths import RUN_DIR
from jitter_workshop.tuning.journal import current_boot
from tests import tuned_tree
from tests.agent_on_tree import ADA, ADAS_UID
from tests.tuned_tree import Agent

LIMIT_S = 60.0
"""Only ends a test that has failed."""


class Person(Agent):
    """A member's agent, and the process for which it asks the turn."""

    def __init__(self, tree: Path, user: str, uid: int, *options: str) -> None:
        super().__init__(tree, f"user={user}", f"uid={uid}", *options)
        self._turns_lock = tree / RUN_DIR.lstrip("/") / LOCK_FILE
        self.client = subprocess.Popen(("/bin/sleep", "600"))
        folder = tree / "proc" / str(self.client.pid)
        folder.mkdir(parents=True)
        (folder / "status").write_text(f"Name:\tsleep\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")

    def take(self) -> None:
        """Ask for the turn; :meth:`granted` has the answer."""
        self._id += 1
        self.send(json.dumps({"id": self._id, "verb": "turn", "do": "take", "client": self.client.pid}).encode())

    def granted(self) -> Any:
        assert select.select([self._from], [], [], LIMIT_S)[0], "the turn never came"
        return self.receive()

    def give(self) -> Any:
        return self.ask("turn", do="give")

    def hang(self) -> None:
        """Stop the agent while it cannot hold the lock of the turns: others that come and go make it look at them, and
        stopped in such a look it would keep all of them waiting."""
        with self._turns_lock.open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.signal(signal.SIGSTOP)
            until(lambda: Path(f"/proc/{self.pid}/stat").read_text().rpartition(") ")[2][0] == "T")

    def leave(self) -> None:
        if self._code is None:
            self.signal(signal.SIGCONT)  # a test that failed may have left it stopped
        self.end()
        self.client.kill()
        self.client.wait()


class People:
    def __init__(self, tree: Path) -> None:
        self._tree = tree
        self._made: list[Person] = []

    def student(self, user: str, *options: str, uid: int = 0) -> Person:
        self._made.append(Person(self._tree, user, uid or 6000 + len(self._made), *options))
        return self._made[-1]

    def instructor(self) -> Person:
        return self.student(ADA, "instructor=1", uid=ADAS_UID)

    def close(self) -> None:
        for one in self._made:
            one.leave()


def state(tree: Path) -> TurnState:
    boot = current_boot(HostRoot()) or ""
    file = tree / RUN_DIR.lstrip("/") / "turns.json"
    return parse_turn_state(file.read_bytes(), boot) if file.exists() else TurnState(boot)


def contents(tree: Path) -> dict[str, bytes]:
    """The host without what the class itself writes, and without the processes that come and go."""
    return {k: v for k, v in tuned_tree.contents(tree).items() if not k.startswith(("run", "proc/")) or "sys" in k}


def until(what: Any) -> None:
    ends = time.monotonic() + LIMIT_S
    while not what():
        assert time.monotonic() < ends, "it did not come to be"
        time.sleep(0.01)


def waits(tree: Path, count: int) -> None:
    until(lambda: len(state(tree).queue) == count)
