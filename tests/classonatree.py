"""Both services of a class on a made host, behind real sockets: the listener, a process for each connection, and who
calls by SO_PEERCRED. Needs root, because its students are processes of other users."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from jitter_workshop.agent import caller as member
from jitter_workshop.agent.policy import Member
from jitter_workshop.agent.server import Server, Setup
from jitter_workshop.agent.service import class_connection
from jitter_workshop.agent.service.listener import Listener
from jitter_workshop.classroom import service
from jitter_workshop.host.classfile import ClassFile
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.writer import HostWriter

FIRST_UID = 61_000
TEACHER = 60_999


def uid_of(number: int) -> int:
    return FIRST_UID + number


def who(uid: int, described: ClassFile) -> Member:
    """A student, or the teacher."""
    return Member(uid, f"s{uid - FIRST_UID:02d}" if uid != TEACHER else "ada", uid == TEACHER, ("*",), described)


class ClassOnATree:
    """``turn_s``: the longest turn; ``silence``: after so much of it somebody has gone."""

    def __init__(self, tree: Path, run: Path, turn_s: float = 5.0, silence: float = 20.0, each: int = 4) -> None:
        self.tree, self.run = tree, run
        self.described = ClassFile("a class", CpuSet.parse_list("2-3"), ("ada",), longest_turn_s=turn_s)
        self._silence = silence
        self._each = each
        self.board_folder = run / "board"
        run.mkdir(exist_ok=True)
        run.chmod(0o755)
        self.board_folder.mkdir(exist_ok=True)
        self.agent = self._start("agent.sock", self._serve_agent)
        self.board = self._start("board.sock", self._serve_board)

    @property
    def agent_socket(self) -> str:
        return str(self.run / "agent.sock")

    @property
    def board_socket(self) -> str:
        return str(self.run / "board.sock")

    def setup(self, uid: int) -> Setup:
        return Setup(
            root=HostRoot(self.tree),
            writer=HostWriter(self.tree),
            top=str(self.tree),
            owner=os.geteuid(),
            uid=uid,
            who=f"user {uid}",
            tree="tests",
            member=who(uid, self.described),
        )

    def restart(self, which: str) -> None:
        """Start a service again that was killed, as a service manager would."""
        if which == "agent":
            class_connection.end_dead_turn(self.setup(0))
            self.agent = self._start("agent.sock", self._serve_agent)
        else:
            self.board = self._start("board.sock", self._serve_board)

    def close(self) -> None:
        for pid in (self.agent, self.board):
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGTERM)
                os.waitpid(pid, 0)

    def _start(self, name: str, serve: Callable[[], None]) -> int:
        place = self.run / name
        place.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(str(place))
        place.chmod(0o666)
        listening.listen(128)
        pid = os.fork()
        if pid == 0:
            try:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                Listener(listening, serve, self._each).run()
                os._exit(0)
            finally:
                os._exit(70)
        listening.close()
        return pid

    def _serve_agent(self) -> None:
        class_connection.LEASE_S = self._silence
        server: list[Server] = []
        signal.signal(signal.SIGUSR1, lambda *_: [one.nudge() for one in server] and None)
        signal.signal(signal.SIGTERM, lambda *_: [one.interrupt() for one in server] and None)
        server.append(Server(self.setup(member.caller(0, {})), 0, 1))
        server[0].serve()

    def _serve_board(self) -> None:
        service.serve_board_connection(self.board_folder, who(member.caller(0, {}), self.described))


class Talk:
    """A connection, spoken to line by line."""

    def __init__(self, path: str, limit_s: float = 120.0) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(limit_s)
        self._socket.connect(path)
        self._buffer = b""
        self._id = 0

    def send(self, line: bytes) -> None:
        self._socket.sendall(line + b"\n")

    def receive(self) -> Any:
        while b"\n" not in self._buffer:
            more = self._socket.recv(65_536)
            if not more:
                return None
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)

    def ask(self, verb: str, **fields: Any) -> Any:
        """The answer, None where the connection has ended."""
        self._id += 1
        try:
            self.send(json.dumps({"id": self._id, "verb": verb, **fields}).encode())
            return self.receive()
        except OSError:
            return None

    def close(self) -> None:
        self._socket.close()


@contextlib.contextmanager
def as_user(tree: Path, uid: int, what: Callable[[], None]) -> Iterator[int]:
    """A process of another user that does ``what`` as soon as the made host knows it; gives its number, and kills it at
    the end."""
    known, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            os.close(tell)
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            os.read(known, 1)
            what()
            code = 0
        finally:
            os._exit(code)
    os.close(known)
    try:
        show_process(tree, pid, uid)
        os.close(tell)
        yield pid
    finally:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def show_process(tree: Path, pid: int, uid: int) -> None:
    """Let a process of this machine be one of the made host's."""
    folder = tree / "proc" / str(pid)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "status").write_text(f"Name:\tstudent\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")


def log(file: Path, **what: Any) -> None:
    """Add one line, in one write."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(descriptor, json.dumps({"at": time.monotonic(), **what}).encode() + b"\n")
    finally:
        os.close(descriptor)


def logged(file: Path) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]
