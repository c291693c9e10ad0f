"""The board's side of a connection: each verb, what is refused, and that no line of a caller ends it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jitter_workshop.agent.policy import Member
from jitter_workshop.agent.protocol import MAX_LINE
from jitter_workshop.classroom import service, store
from jitter_workshop.classroom.service import Service
from jitter_workshop.classroom.store import FILE
from jitter_workshop.host.classfile import ClassFile
from jitter_workshop.model.board import Banner
from jitter_workshop.model.codec import to_plain
from jitter_workshop.model.cpuset import CpuSet
from tests.madeboard import run, work

CLASS = ClassFile("a class", CpuSet.of([2, 3]))
ADA, GRACE = Member(1000, "ada", True, (), CLASS), Member(1001, "grace", False, (), CLASS)
ME = frozenset({os.geteuid()})
LIMIT_S = 20.0


class Talk:
    """A connection with a service of one's own."""

    def __init__(self, who: Member, folder: Path) -> None:
        self._ours, theirs = socket.socketpair()
        self._ours.settimeout(LIMIT_S)

        def serve() -> None:
            with theirs:
                Service(who, folder, theirs.fileno(), theirs.fileno()).serve()

        self._thread = threading.Thread(target=serve, daemon=True)
        self._thread.start()
        self._answers = self._ours.makefile("rb")

    def line(self, data: bytes) -> Any:
        """The answer to a line; None where the connection has ended."""
        try:
            self._ours.sendall(data + b"\n")
            return json.loads(self._answers.readline() or "null")
        except OSError:
            return None

    def ask(self, verb: str, **fields: Any) -> Any:
        return self.line(json.dumps({"id": 7, "verb": verb, **fields}).encode())

    def send(self, data: bytes) -> None:
        self._ours.sendall(data)

    def ended(self) -> bool:
        self._thread.join(LIMIT_S)
        return not self._thread.is_alive()

    def close(self) -> None:
        self._answers.close()
        self._ours.close()
        self._thread.join(LIMIT_S)


Connect = Callable[[Member], Talk]


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Connect]:
    made: list[Talk] = []

    def to(who: Member) -> Talk:
        made.append(Talk(who, tmp_path))
        return made[-1]

    yield to
    for one in made:
        one.close()


def test_only_the_service_decides_if_a_caller_is_an_instructor(connect: Connect) -> None:
    assert connect(ADA).ask("hello") == {"id": 7, "ok": {"protocol": 1, "instructor": True}}
    assert connect(GRACE).ask("hello", instructor=True, uid=1000)["ok"]["instructor"] is False


def test_a_post_is_ones_own_and_an_instructor_sees_all(connect: Connect) -> None:
    assert connect(GRACE).ask("post", posted=to_plain(work(run()))) == {"id": 7, "ok": {}}
    (mine,) = connect(GRACE).ask("mine")["ok"]["rows"]
    assert (mine["uid"], mine["user"]) == (1001, "grace")
    assert connect(ADA).ask("mine")["ok"]["rows"] == []
    assert [row["user"] for row in connect(ADA).ask("board")["ok"]["rows"]] == ["grace"]


def test_requests_of_the_instructor_are_refused_to_students(connect: Connect, tmp_path: Path) -> None:
    student = connect(GRACE)
    for verb, fields in (
        ("board", {}),
        ("say", {"banner": {"by": "ada", "at": "", "text": "x"}}),
        ("say", {"banner": None}),
        ("forget", {"user": "ada"}),
        ("forget", {"user": None}),
        ("forget", {}),
    ):
        assert "instructor" in student.ask(verb, **fields)["error"]["message"], verb
    assert not (tmp_path / store.BANNER_FILE).exists()
    assert student.ask("forget", user="grace")["ok"] == {"forgotten": 0}


def test_the_banner_names_the_true_sender_and_not_the_claimed_one(connect: Connect, tmp_path: Path) -> None:
    said = {"by": "root", "at": "1970", "chapter": "pinning", "step": "compare", "text": "look\x1b[2J"}
    assert connect(ADA).ask("say", banner=said)["ok"] == {}
    found = store.read_banner(tmp_path, ME)
    assert found is not None
    assert (found.by, found.chapter, found.step, found.text) == ("ada", "pinning", "compare", "look [2J")
    assert found.at > "2020"
    assert connect(GRACE).ask("mine")["ok"]["banner"]["by"] == "ada"
    connect(ADA).ask("say", banner=None)
    assert store.read_banner(tmp_path, ME) is None
    assert isinstance(found, Banner)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"verb": 7}',
        b'{"verb": "nosuch"}',
        b'{"verb": "__init__"}',
        b'{"verb": "post"}',
        b'{"verb": "post", "posted": null}',
        b'{"verb": "post", "posted": {"session": 7}}',
        b'{"verb": "post", "posted": {"session": "s", "runs": 7}}',
        b'{"verb": "post", "posted": {"session": "s", "chapters": [[]]}}',
        b'{"verb": "post", "posted": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"verb": "say", "banner": 7}',
        b'{"verb": "say", "banner": {"text": []}}',
        b'{"verb": "forget", "user": 7}',
        b'{"verb": "forget", "user": "' + b"x" * 100 + b'"}',
        b"\xff\xfe",
        b'{"verb": "post", "posted": {"session": "\\ud800"}, "id": "' + b"x" * 9 + b'"}',
    ],
)
def test_nonsense_has_an_answer_and_the_connection_goes_on(connect: Connect, line: bytes, tmp_path: Path) -> None:
    talk = connect(ADA)
    told = talk.line(line)
    assert told["id"] is None
    if "ok" not in told:
        assert told["error"]["kind"] == "UsageError", told
    assert "mistake" not in json.dumps(told)
    assert "ok" in talk.ask("hello")
    assert talk.ask("board")["ok"]["notes"] == {}


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=8), x, max_size=3),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.sampled_from(["post", "say", "forget", "mine", "board", "hello"]), st.data())
def test_any_fields_have_an_answer(connect: Connect, verb: str, data: st.DataObject) -> None:
    posted = to_plain(work(run()))
    key = data.draw(st.sampled_from(sorted(posted)))
    posted[key] = data.draw(JSONS)
    fields = {"posted": posted, "banner": data.draw(JSONS), "user": data.draw(JSONS)}
    talk = connect(ADA)
    told = talk.ask(verb, **fields)
    talk.close()
    assert "mistake" not in told.get("error", {}).get("message", ""), told


def test_the_connection_of_an_endless_line_is_closed(connect: Connect) -> None:
    talk = connect(GRACE)
    with contextlib.suppress(OSError):
        for _ in range(64):
            talk.send(b"x" * (MAX_LINE // 4))
    assert talk.ended()


def test_a_silent_connection_is_closed(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "PATIENCE_S", 0.05)
    assert connect(GRACE).ended()


def test_the_board_closes_a_connection_that_lasts_too_long(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "LONGEST_S", 0.2)
    talk = connect(GRACE)
    began = time.monotonic()
    while talk.ask("hello") is not None:
        assert time.monotonic() - began < LIMIT_S
    assert talk.ended()


def test_a_mistake_of_the_board_is_an_answer_and_is_called_one(connect: Connect, tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    told = connect(GRACE).ask("mine")["error"]
    assert told["kind"] == "HostError"
    assert "cannot be opened" in told["message"]
