"""A hostile student's attempts, one test each, against both services behind real sockets: all of them fail."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.agent.turns.state_file import TurnFile, parse_turn_state
from jitter_workshop.classroom.store import BoardStore
from jitter_workshop.errors import HostError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.codec import to_plain
from jitter_workshop.model.turn import TurnState
from jitter_workshop.tuning.journal import current_boot
from jitter_workshop.tuning.planning import digest
from tests import tuned_tree
from tests.classonatree import TEACHER, ClassOnATree, Talk, as_user, uid_of
from tests.madeboard import run, work
from tests.tuned_tree import HOT, journals, planned

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a student is a process of another user: needs root")

LIMIT_S = 30.0
WORDS = ("governor",)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """One that other users can reach: pytest's own is for its user alone."""
    with tempfile.TemporaryDirectory(prefix="jw-class-") as name:
        made = Path(name)
        made.chmod(0o755)
        yield made


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    made = tuned_tree.make(tmp_path / "tree")
    made.chmod(0o755)
    return made


@pytest.fixture
def host(tree: Path, tmp_path: Path) -> Iterator[ClassOnATree]:
    made = ClassOnATree(tree, tmp_path / "run", turn_s=20.0, silence=20.0)
    try:
        yield made
    finally:
        made.close()


class Hostile:
    """A student whose process does what it is told: each job runs as that user, and tells what came of it."""

    def __init__(self, host: ClassOnATree, number: int = 1) -> None:
        self.host, self.uid = host, uid_of(number)

    def does(self, job: Callable[[], Any]) -> Any:
        reader, writer = os.pipe()

        def body() -> None:
            os.close(reader)
            told = job()
            os.write(writer, json.dumps(told).encode())

        with as_user(self.host.tree, self.uid, body):
            os.close(writer)
            with os.fdopen(reader, "rb") as answers:
                data = answers.read()
        assert data, "the student's process failed"
        return json.loads(data)

    def asks(self, *requests: dict[str, Any], board: bool = False) -> list[Any]:
        """Each request's answer, on one connection."""

        def job() -> list[Any]:
            talk = Talk(self.host.board_socket if board else self.host.agent_socket, LIMIT_S)
            told = []
            for one in requests:
                fields = {k: (os.getpid() if v == "ME" else v) for k, v in one.items() if k != "verb"}
                told.append(talk.ask(one["verb"], **fields))
            talk.close()
            return told

        return list(self.does(job))


def contents(tree: Path) -> dict[str, bytes]:
    """The host's settings, without the line ends that a kernel would put there itself."""
    return {k: v.rstrip() for k, v in tuned_tree.contents(tree).items() if not k.startswith(("run", "proc/"))}


def state(tree: Path) -> TurnState:
    boot = current_boot(HostRoot()) or ""
    file = tree / "run/jitter-workshop/turns.json"
    return parse_turn_state(file.read_bytes(), boot) if file.exists() else TurnState(boot)


def until(what: Callable[[], bool]) -> None:
    ends = time.monotonic() + LIMIT_S
    while not what():
        assert time.monotonic() < ends, "it did not come to be"
        time.sleep(0.02)


TAKE = {"verb": "turn", "do": "take", "client": "ME"}


def test_a_forged_uid_counts_for_nothing(host: ClassOnATree, tree: Path) -> None:
    """In every field that could be believed."""
    forged = {"uid": 0, "user": "ada", "who": "root", "member": {"instructor": True}, "instructor": True}
    told = Hostile(host).asks(
        {"verb": "hello", **forged},
        {"verb": "turn", "do": "freeze", **forged},
        {"verb": "restore", "tunables": [], **forged},
    )
    assert "instructor" in told[1]["error"]["message"]
    assert "error" in told[2]
    assert state(tree).frozen_by == ""
    told = Hostile(host).asks(
        {"verb": "board", **forged}, {"verb": "say", "banner": {"by": "ada", "at": ""}}, board=True
    )
    assert all("instructor" in one["error"]["message"] for one in told)


def test_a_member_cannot_write_as_another(host: ClassOnATree) -> None:
    theirs = work(run("theirs"))
    mine = {**to_plain(work(run("mine"))), "uid": uid_of(2), "user": "s02"}
    Hostile(host, 2).asks({"verb": "post", "posted": to_plain(theirs)}, board=True)
    Hostile(host, 1).asks({"verb": "post", "posted": mine, "uid": uid_of(2), "user": "s02"}, board=True)
    with BoardStore(host.board_folder) as store:
        rows = {row.user: row.posted.runs[0].id for row in store.board("here", 0.0).rows}
    assert rows == {"s01": "mine", "s02": "theirs"}
    (told,) = Hostile(host, 1).asks({"verb": "forget", "user": "root"}, board=True)
    assert "instructor" in told["error"]["message"]


def test_a_member_cannot_read_the_row_of_another(host: ClassOnATree) -> None:
    Hostile(host, 2).asks({"verb": "post", "posted": to_plain(work(run("theirs")))}, board=True)
    (told,) = Hostile(host, 1).asks({"verb": "mine", "uid": uid_of(2)}, board=True)
    assert told["ok"]["rows"] == []

    def read() -> list[str]:
        found = []
        for file in host.board_folder.iterdir():
            with contextlib.suppress(PermissionError):
                found.append(file.read_bytes().hex())
        return found

    assert Hostile(host, 1).does(read) == []


def test_paths_and_commands_are_no_requests(host: ClassOnATree, tree: Path) -> None:
    before = contents(tree)
    tricks = ("../../etc/shadow", "governor=../../../x", "/etc/passwd=x", "thp=;id", "thp=\n/bin/sh", "once:isolcpus")
    told = Hostile(host).asks(
        TAKE,
        *({"verb": "apply", "wanted": [word], "cpus": HOT, "shown": [], "lease": 20.0} for word in tricks),
        {"verb": "apply", "path": "/etc/passwd", "wanted": ["thp"], "cpus": HOT, "shown": ["0" * 16], "lease": 20.0},
        {"verb": "exec", "command": "id"},
        {"verb": "evidence", "do": "begin", "pid": 1, "tids": [1], "cpus": HOT, "clock": "mono", "stacks": True},
        {"verb": "place", "pid": 1},
        {"verb": "place_threads", "pid": 1, "tids": [1]},
        {"verb": "realtime", "pid": 1, "tids": [1], "priority": 49},
    )
    assert "ok" in told[0]
    for one in told[1:]:
        assert "error" in one or one["ok"]["applied"] == []
    assert contents(tree) == before
    assert journals(tree) == []


@pytest.mark.parametrize("where", ["run/jitter-workshop", "var/lib/jitter-workshop", "var/lib/jitter-workshop/journal"])
def test_a_link_in_the_place_of_roots_folder_is_not_followed(tree: Path, tmp_path: Path, where: str) -> None:
    target = tmp_path / "elsewhere"
    target.mkdir(mode=0o777)
    place = tree / where
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)
    host = ClassOnATree(tree, tmp_path / "run")
    try:
        told = Hostile(host).asks(TAKE)
        assert told[0] is None or "error" in told[0]
    finally:
        host.close()
    assert list(target.iterdir()) == []


def test_a_folder_of_the_students_own_is_not_used(tree: Path) -> None:
    place = tree / "run/jitter-workshop"
    place.mkdir(parents=True)
    os.chown(place, uid_of(1), uid_of(1))
    with pytest.raises(HostError, match="belongs to user"):
        TurnFile(str(tree))
    os.chown(place, 0, 0)
    place.chmod(0o777)
    with pytest.raises(HostError, match="can be written by users other than root"):
        TurnFile(str(tree))


def test_a_huge_line_ends_its_own_connection_only(host: ClassOnATree) -> None:
    def shout() -> list[int]:
        ends = []
        for path in (host.agent_socket, host.board_socket):
            talk = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            talk.settimeout(LIMIT_S)
            talk.connect(path)
            sent = 0
            with contextlib.suppress(OSError):
                while sent < 16 << 20:
                    sent += talk.send(b"x" * 65_536)
            ends.append(sent)
        return ends

    assert all(sent < 8 << 20 for sent in Hostile(host).does(shout))
    assert "ok" in Hostile(host, 2).asks({"verb": "hello"})[0]


def test_a_slow_message_does_not_delay_others(host: ClassOnATree) -> None:
    def drip() -> float:
        talk = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        talk.connect(host.agent_socket)
        other = Talk(host.agent_socket, LIMIT_S)
        began = time.monotonic()
        for byte in b'{"verb":"hello"':
            talk.send(bytes([byte]))
            assert "ok" in other.ask("hello")
        return time.monotonic() - began

    assert Hostile(host).does(drip) < LIMIT_S


def test_connections_without_end_are_refused_and_others_are_served(host: ClassOnATree) -> None:
    def crowd() -> int:
        refused = 0
        kept = []
        for _ in range(60):
            talk = Talk(host.agent_socket, LIMIT_S)
            reply = talk.ask("hello")
            refused += reply is None or "error" in reply
            kept.append(talk)
        return refused

    assert Hostile(host).does(crowd) >= 50
    assert "ok" in Hostile(host, 2).asks({"verb": "hello"})[0]


def test_a_turn_cannot_be_held_by_talking(tree: Path, tmp_path: Path) -> None:
    host = ClassOnATree(tree, tmp_path / "run", turn_s=0.5)
    before = contents(tree)
    shown = [digest(change) for change in planned(tree, WORDS).changes]

    def hog() -> Any:
        talk = Talk(host.agent_socket, LIMIT_S)
        assert "ok" in talk.ask("turn", do="take", client=os.getpid())
        assert talk.ask("apply", wanted=list(WORDS), cpus=HOT, shown=shown, lease=20.0)["ok"]["applied"]
        ends = time.monotonic() + LIMIT_S
        while state(tree).turn is not None and time.monotonic() < ends:
            talk._socket.sendall(b'{"verb":"heartbeat"}\n' * 50)
        return talk.ask("apply", wanted=list(WORDS), cpus=HOT, shown=shown, lease=20.0)

    try:
        assert "your turn is over" in Hostile(host).does(hog)["error"]["message"]
        until(lambda: state(tree).turn is None)
        assert contents(tree) == before
    finally:
        host.close()


def test_a_stopped_client_loses_the_turn(tree: Path, tmp_path: Path) -> None:
    host = ClassOnATree(tree, tmp_path / "run", silence=0.5)

    def stop() -> None:
        talk = Talk(host.agent_socket, LIMIT_S)
        talk.ask("turn", do="take", client=os.getpid())
        os.kill(os.getpid(), signal.SIGSTOP)

    try:
        with as_user(tree, uid_of(1), stop):
            until(lambda: state(tree).number == 1)
            until(lambda: state(tree).turn is None)
            assert "ok" in Hostile(host, 2).asks(TAKE)[0]
    finally:
        host.close()


def test_the_queue_has_one_place_for_each(host: ClassOnATree, tree: Path) -> None:
    def crowd() -> list[Any]:
        first, second = Talk(host.agent_socket, LIMIT_S), Talk(host.agent_socket, LIMIT_S)
        return [first.ask("turn", do="take", client=os.getpid()), second.ask("turn", do="take", client=os.getpid())]

    told = Hostile(host).does(crowd)
    assert "ok" in told[0]
    assert "another connection of yours" in told[1]["error"]["message"]


ESCAPES = "\x1b]0;owned\x07\x1b[2J\u202eevil\u0000"


def test_escapes_in_words_stay_words(host: ClassOnATree, tree: Path, tmp_path: Path) -> None:
    from jitter_workshop.flow.classes.classboard import ClassTable, CourseJudge, board_json, csv_table, machines
    from jitter_workshop.flow.turns.classhost import describe_turn
    from jitter_workshop.presenter.classes.board import boards
    from jitter_workshop.presenter.text.lines import written

    evil = run(ESCAPES, chapter=ESCAPES)
    told = Hostile(host).asks(
        {"verb": "post", "posted": {**to_plain(work(evil, people=(ESCAPES,), step=ESCAPES)), "session": ESCAPES}},
        board=True,
    )
    assert "ok" in told[0]
    with BoardStore(host.board_folder) as store:
        board = store.board("here", 0.0)
    gathered, course = [ClassTable("here", board, None)], CourseJudge()
    on_screen = written(boards(machines(gathered), course.columns, course.near, 100))
    assert all(line.isprintable() for line in on_screen.splitlines())
    assert all(line.isprintable() for line in csv_table(gathered, course).splitlines())
    assert "\x1b" not in json.dumps(board_json(gathered))

    def say() -> Any:
        talk = Talk(host.agent_socket, LIMIT_S)
        talk.ask("turn", do="take", client=os.getpid())
        talk.ask("turn", do="doing", doing=ESCAPES)
        held = state(tree)
        assert held.turn is not None
        return [describe_turn(held, 1, 0.0), held.turn.doing]

    shown, published = Hostile(host, 2).does(say)
    assert shown.isprintable()
    assert published.isprintable()
    assert "s02 has the turn" in shown


def test_requests_that_a_student_may_not_make_succeed_for_a_teacher(host: ClassOnATree, tree: Path) -> None:
    """The same requests succeed for whom they are meant: the refusals above are not for everybody."""
    teacher = Hostile(host)
    teacher.uid = TEACHER
    assert "ok" in teacher.asks({"verb": "turn", "do": "freeze"})[0]
    assert state(tree).frozen_by == "ada"
    told = teacher.asks({"verb": "board"}, {"verb": "say", "banner": {"by": "x", "at": "", "text": "here"}}, board=True)
    assert all("ok" in one for one in told)
