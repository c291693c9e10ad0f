"""Test a workshop's turn with real agents on a made class host: the workshop notices each end of the turn and its
reason."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jitter_workshop import paths
from jitter_workshop.agent.client import AgentClient
from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.errors import BusyError, HostError, MeasureError, WaitStopped
from jitter_workshop.flow.host_ops import agent_connection as connection_module
from jitter_workshop.flow.host_ops.agent_connection import NOTHING, AgentConnection
from jitter_workshop.flow.turns import classhost
from jitter_workshop.flow.turns.classhost import TurnOver, need_turn, read_turns, take_turn, turn_for
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.paths import RUN_DIR
from tests import tuned_tree

pytestmark = pytest.mark.host

REPOSITORY = Path(__file__).parents[2]
HOT = CpuSet((2, 3))
WORDS = ("thp",)
LIMIT_S = 30.0
UID = 6000


class Host:
    """A made class host. ``options``: of agents that are started from now on, as ``tests.agent_on_tree`` has them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tree = tuned_tree.make(folder / "tree")
        file = folder / "class.toml"
        file.write_text('name = "a class"\nhot_cpus = "2-3"\n')
        monkeypatch.setattr(paths, "CLASS_FILE", str(file))
        monkeypatch.setattr(paths, "RUN_DIR", str(self.tree / RUN_DIR.lstrip("/")))
        monkeypatch.setattr(connection_module, "connect_class", self.connect)
        monkeypatch.setattr(connection_module, "connect_to_agent", lambda *_, **__: self.connect())
        self.user, self.options = "grace", list[str]()
        self.made: list[AgentConnection] = []
        self.agents: list[AgentClient] = []
        # A student: what root leaves is the baseline of a class.
        monkeypatch.setattr(os, "geteuid", lambda: UID)
        me = self.tree / "proc" / str(os.getpid())
        me.mkdir(parents=True)
        (me / "status").write_text(f"Name:\tpython\nUid:\t{UID}\t{UID}\t{UID}\t{UID}\n")

    def connect(self) -> AgentClient:
        path = f"import sys; sys.path[:0] = [{str(REPOSITORY)!r}]"
        code = f"{path}; from tests import agent_on_tree as a; a.main(*sys.argv[1:])"
        who = (f"user={self.user}", f"uid={UID}")
        self.agents.append(AgentClient((sys.executable, "-c", code, str(self.tree), *who, *self.options)))
        return self.agents[-1]

    def agent_connection(self, *options: str) -> AgentConnection:
        self.options = list(options)
        self.made.append(AgentConnection())
        return self.made[-1]

    def kill(self) -> None:
        process = self.agents[-1]._link._process  # type: ignore[attr-defined]
        process.send_signal(signal.SIGKILL)
        process.wait()

    def instructor(self, do: str) -> None:
        self.user = "ada"
        try:
            ada = self.agent_connection("instructor=1")
            ada.instruct(do)
            ada.close()
        finally:
            self.user = "grace"

    def thp(self) -> str:
        return (self.tree / "sys/kernel/mm/transparent_hugepage/enabled").read_text()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    made = Host(tmp_path, monkeypatch)
    yield made
    for one in made.made:
        one.close()


@pytest.fixture
def token() -> Iterator[CancelToken]:
    made = CancelToken()
    yield made
    made.close()


def until(what: Callable[[], object]) -> None:
    ends = time.monotonic() + LIMIT_S
    while not what():
        assert time.monotonic() < ends, "it did not come to be"
        time.sleep(0.01)


def test_a_turn_is_taken_kept_and_given_back(host: Host, token: CancelToken) -> None:
    used, said = host.agent_connection(), list[str]()
    assert not used.took_turn
    with turn_for(used, 0.0, token, said.append, doing="Pinning · pinned", keep=True) as held:
        assert held
        turn = read_turns().turn
        assert turn is not None
        assert (turn.people, turn.doing) == (("grace",), "Pinning · pinned")
    assert used.has_turn
    assert need_turn(used)
    assert used.turn_lost() == ""
    assert said == [], "no user had to wait"
    used.give_turn()
    assert read_turns().turn is None
    with pytest.raises(HostError, match="you need the turn on this machine"):
        need_turn(used)


def test_applied_settings_go_with_the_turn(host: Host, token: CancelToken) -> None:
    used, before = host.agent_connection(), host.thp()
    take_turn(used, 0.0, token)
    used.apply(WORDS, HOT, used.plan(WORDS, HOT).changes)
    assert host.thp() != before
    used.give_turn()
    assert host.thp() == before
    assert not used.holding


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("time", "your turn is over: 0.0167 minutes are the limit in this class"),
        ("instructor", "ada ended your turn"),
        ("agent", "the class's service ended your turn"),
    ],
)
def test_each_end_of_the_turn_is_known_with_the_host_as_it_was(
    host: Host, token: CancelToken, how: str, why: str
) -> None:
    used, before = host.agent_connection(*(("turn_s=1",) if how == "time" else ())), host.thp()
    take_turn(used, 0.0, token)
    used.apply(WORDS, HOT, used.plan(WORDS, HOT).changes)
    if how == "instructor":
        host.instructor("end")
    elif how == "agent":
        host.kill()
    until(lambda: read_turns().turn is None)
    assert used.turn_lost().startswith(why)
    assert host.thp() == before
    assert not used.took_turn
    assert not used.holding
    assert used.turn_lost() == "", "it is told once"
    assert used.restore() == NOTHING
    assert used.restore(WORDS) == NOTHING
    take_turn(used, 5.0, token)
    assert used.has_turn


def test_a_failure_because_the_turn_has_ended_says_that(host: Host, token: CancelToken) -> None:
    used = host.agent_connection()

    def measured() -> None:
        with turn_for(used, 0.0, token):
            host.instructor("end")
            until(lambda: read_turns().turn is None)
            raise MeasureError("the measuring process was killed")

    with pytest.raises(TurnOver, match="ada ended your turn") as caught:
        measured()
    assert caught.value.advice.startswith("the machine is restored")
    with pytest.raises(MeasureError, match="broken"), turn_for(used, 5.0, token):
        raise MeasureError("broken")
    assert not used.took_turn


def test_a_user_in_the_queue_is_told_their_place_and_may_leave(host: Host, token: CancelToken) -> None:
    first, said = host.agent_connection(), list[str]()
    take_turn(first, 0.0, token)
    second = host.agent_connection()
    with pytest.raises(BusyError, match="You have the turn"):
        take_turn(second, 0.0, token)
    with pytest.raises(HostError, match="another connection of yours"):
        take_turn(second, 5.0, token, said.append)
    assert said == ["You have the turn, 4 min left."]


def test_a_wait_that_is_stopped_leaves_the_queue(host: Host, token: CancelToken) -> None:
    host.instructor("freeze")
    used, said, caught = host.agent_connection(), list[str](), list[BaseException]()

    def wait() -> None:
        try:
            take_turn(used, 60.0, token, said.append)
        except BaseException as error:
            caught.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    until(lambda: read_turns().queue)
    assert classhost.queue_place(read_turns(), UID, 0.0).at_most_s is None
    token.cancel("Escape")
    waiting.join(LIMIT_S)
    assert [type(error) for error in caught] == [WaitStopped]
    assert len(said) == 1
    assert said[0].startswith("No one has the turn.")
    assert "let new turns begin." in said[0]
    until(lambda: not read_turns().queue)
    assert not used.took_turn
    assert used.turn_lost() == ""
