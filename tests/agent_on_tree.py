"""The agent on a made host, for tests: ``python -m tests.agent_on_tree TREE [KEY=VALUE…]``, spoken to on its pipes.

``kill=N``: SIGKILL itself right before (even N) or right after (odd N) the N//2-th step, where a step is any write to
the host and any line of the journal. ``term=N``: SIGTERM after the N-th step. ``log=FILE``: one line a step, and
one each time that somebody else has the host's lock.
``power=NAME``: the lab machine's power is cut after the first step whose name begins so.
``refuse=PATH``: the host answers EIO there.
``clamp=PATH:VALUE``: whatever is written there, the host makes it VALUE. ``neighbour=PATH:OTHER:VALUE``: a write to
PATH makes OTHER say VALUE.
``user=NAME`` and ``uid=N``: on a class host, for this member; ``instructor=1``: who is one; ``may=ID,ID``: what they
may apply; ``turn_s=S``: the longest turn; ``silence=S``: after so much of it who has the turn has gone; ``grace=S``:
how long an agent may take to end a turn that is over; ``free=1``: it is root on a pipe, who needs no turn.
"""

from __future__ import annotations

import errno
import os
import pwd
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from jitter_workshop.agent.journal import JournalFile
from jitter_workshop.agent.lock import WAIT_S, HostLock
from jitter_workshop.agent.policy import Member
from jitter_workshop.agent.server import Server, Setup
from jitter_workshop.agent.service import class_connection
from jitter_workshop.agent.turns import rules
from jitter_workshop.errors import HeldError
from jitter_workshop.host.classfile import ClassFile
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.writer import HostWriter
from tests import tracedtree

ADA, ADAS_UID = "ada", 5999
"""The instructor of classes on made hosts, whom this machine does not know."""


class Steps:
    """Counts, and dies where it was told to."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._kill = int(options.get("kill", -1))
        self._term = int(options.get("term", -1))
        self._log = options.get("log")
        self._power = options.get("power")
        self._count = 0

    def __call__(self, name: str) -> Steps:
        self._name = name
        return self

    def __enter__(self) -> None:
        if self._log:
            with Path(self._log).open("a") as out:
                out.write(f"{self._name}\n")
        self._die(2 * self._count)

    def __exit__(self, *_: object) -> None:
        self._die(2 * self._count + 1)
        if self._power and self._name.startswith(self._power):
            os.execv("/lab/power-cut", ["/lab/power-cut"])
        if self._term == self._count:
            os.kill(os.getpid(), signal.SIGTERM)
        self._count += 1

    def _die(self, moment: int) -> None:
        if self._kill == moment:
            os.kill(os.getpid(), signal.SIGKILL)


class FakeKernel(HostWriter):
    """A host that refuses, rounds, and lets one setting change another."""

    def __init__(self, root: Path, steps: Steps, options: Mapping[str, str]) -> None:
        super().__init__(root)
        self._steps = steps
        self._refuse = options.get("refuse", "")
        self._clamp = options.get("clamp", "").partition(":")
        self._neighbour = (*options.get("neighbour", "").split(":"), "", "", "")[:3]

    @property
    def real(self) -> bool:
        return False

    def write(self, path: str, text: str) -> None:
        with self._steps(f"write {path}"):
            if path == self._refuse:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            value = self._clamp[2] if path == self._clamp[0] else text
            words = (self.reader.text(path) or "").split()
            if any(word.startswith("[") for word in words):
                value = " ".join(f"[{word}]" if word == value else word for word in (w.strip("[]") for w in words))
            super().write(path, f"{value}\n")
            if path == self._neighbour[0]:
                super().write(self._neighbour[1], f"{self._neighbour[2]}\n")

    def overwrite(self, path: str, data: bytes) -> None:
        with self._steps(f"overwrite {path}"):
            super().overwrite(path, data)

    def replace_file(self, path: str, text: str | None) -> None:
        with self._steps(f"replace {path}"):
            super().replace_file(path, text)

    def make_folder(self, path: str) -> None:
        with self._steps(f"mkdir {path}"):
            super().make_folder(path)
            tracedtree.fill_instance(Path(self._top), path)

    def remove_folder(self, path: str) -> None:
        with self._steps(f"rmdir {path}"):
            tracedtree.empty_instance(Path(self._top), path)
            super().remove_folder(path)

    def run(self, program: str, arguments: tuple[str, ...]) -> None:
        with self._steps(f"run {program}"):
            pass


def journal_type(steps: Steps) -> type[JournalFile]:
    class CountedJournal(JournalFile):
        def _append(self, *records: dict[str, Any], sync: bool = False) -> None:
            with steps(f"journal {records[0]['record'] if records else 'nothing'}"):
                super()._append(*records, sync=sync)

    return CountedJournal


def tell_of_the_lock(log: Path) -> None:
    """Write a line to ``log`` each time that somebody else has the host's lock."""
    take = HostLock.take

    def told(self: HostLock, wait_s: float = WAIT_S) -> None:
        try:
            take(self, wait_s)
        except HeldError:
            with log.open("a") as out:
                out.write("lock busy\n")
            raise

    HostLock.take = told  # type: ignore[method-assign]


def main(tree: str, *words: str, source: int = 0, sink: int = 1) -> None:
    options = dict(word.split("=", 1) for word in words)
    steps = Steps(options)
    if "log" in options:
        tell_of_the_lock(Path(options["log"]))
    root = Path(tree)
    setup = Setup(
        root=HostRoot(root),
        writer=FakeKernel(root, steps, options),
        top=tree,
        owner=os.geteuid(),
        uid=1000,
        who="user 1000",
        tree="tests",
        journals=journal_type(steps),
        lock_wait_s=0.2,
    )
    if "user" in options:
        setup = attending_as(setup, options)
    server: list[Server] = []
    signal.signal(signal.SIGTERM, lambda *_: [one.interrupt() for one in server] and None)
    signal.signal(signal.SIGUSR1, lambda *_: [one.nudge() for one in server] and None)
    server.append(Server(setup, source, sink))
    server[0].serve()


def attending_as(setup: Setup, options: Mapping[str, str]) -> Setup:
    """The same for a member of a class."""
    class_connection.LEASE_S = float(options.get("silence", 120.0))
    rules.GRACE_S = float(options.get("grace", rules.GRACE_S))
    uid = int(options["uid"])
    known = pwd.getpwnam
    ada = pwd.struct_passwd((ADA, "x", ADAS_UID, ADAS_UID, "", "/", "/bin/sh"))
    pwd.getpwnam = lambda name: ada if name == ADA else known(name)  # type: ignore[assignment]
    described = ClassFile(
        "a class", CpuSet.parse_list("2-3"), instructors=("root", ADA), longest_turn_s=float(options.get("turn_s", 240))
    )
    may = tuple(options.get("may", "*").split(","))
    member = Member(uid, options["user"], "instructor" in options, may, described)
    return replace(
        setup,
        uid=uid,
        who=f"user {uid}",
        member=member,
        lock_wait_s=float(options.get("wait", 5.0)),
        needs_turn="free" not in options,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
