"""Forty students on one machine, and two hundred kills: turns in order, nobody starved, no two at a time, no result lost,
the host as it was."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.agent.turnfile import parse
from jitter_workshop.classroom.store import BoardStore
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.codec import to_plain
from jitter_workshop.model.turn import TurnState
from jitter_workshop.tuning.journal import current_boot
from jitter_workshop.tuning.planning import digest
from tests import tuned_tree
from tests.classonatree import ClassOnATree, Talk, as_user, log, logged, show_process, uid_of
from tests.madeboard import run as made_run
from tests.madeboard import work
from tests.tuned_tree import HOT, journals, planned

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="students are processes of other users: needs root")

STUDENTS = 40
MINUTES = float(os.environ.get("SOAK_CLASS_MINUTES", "10"))
KILLS = 200
WORDS = ("thp", "stat-interval")
SETTLE_S = 60.0


def contents(tree: Path) -> dict[str, bytes]:
    return {k: v for k, v in tuned_tree.contents(tree).items() if not k.startswith("run") and not _process(k)}


def _process(name: str) -> bool:
    parts = name.split("/")
    return parts[0] == "proc" and len(parts) > 1 and parts[1].isdigit()


def state(tree: Path) -> TurnState:
    boot = current_boot(HostRoot()) or ""
    file = tree / "run/jitter-workshop/turns.json"
    return parse(file.read_bytes(), boot) if file.exists() else TurnState(boot)


def student(host: ClassOnATree, number: int, file: Path, ends: float, chance: random.Random) -> None:
    """Waits for the turn, changes something, measures, gives back, posts; again and again."""
    drawn = planned(host.tree, WORDS)
    shown = [digest(change) for change in drawn.changes]
    finished = 0
    while time.monotonic() < ends:
        with contextlib.suppress(OSError, ValueError):
            finished = one_turn(host, number, file, shown, chance, finished)
        time.sleep(chance.uniform(0.0, 0.05))


def one_turn(
    host: ClassOnATree, number: int, file: Path, shown: list[str], chance: random.Random, finished: int
) -> int:
    agent = Talk(host.agent_socket)
    try:
        log(file, who=number, what="asks")
        granted = agent.ask("turn", do="take", client=os.getpid())
        if granted is None or "ok" not in granted:
            return finished
        log(file, who=number, what="has", number=granted["ok"]["number"])
        if chance.random() < 0.5:
            agent.ask("apply", wanted=list(WORDS), cpus=HOT, shown=shown, lease=20.0)
        log(file, who=number, what="measures")
        time.sleep(chance.uniform(0.05, 0.3))
        log(file, who=number, what="measured")
        finished += 1
        log(file, who=number, what="finished", result=finished)
        if chance.random() < 0.8:
            agent.ask("turn", do="give")
    finally:
        agent.close()
    board = Talk(host.board_socket)
    try:
        posted = work(made_run(f"{number}-{finished}", 1_000_000 - finished))
        reply = board.ask("post", posted=to_plain(posted))
        if reply is not None and "ok" in reply:
            log(file, who=number, what="posted", result=finished)
    finally:
        board.close()
    return finished


def run_class(
    tmp_path: Path, minutes: float, beside: Callable[[ClassOnATree, list[int], float], Any]
) -> tuple[ClassOnATree, list[Any], dict[str, bytes]]:
    tree = tuned_tree.make(tmp_path / "tree")
    for folder in (tmp_path, tree):
        folder.chmod(0o755)
    before = contents(tree)
    host = ClassOnATree(tree, tmp_path / "run", turn_s=3.0, silence=5.0)
    file = tmp_path / "log"
    file.touch()
    file.chmod(0o666)
    ends = time.monotonic() + minutes * 60
    with contextlib.ExitStack() as stack:
        stack.callback(host.close)
        pids = []
        for number in range(STUDENTS):
            chance = random.Random(number)
            body = lambda n=number, c=chance: student(host, n, file, ends, c)  # noqa: E731
            pid = stack.enter_context(as_user(uid_of(number), body))
            show_process(tree, pid, uid_of(number))
            pids.append(pid)
        beside(host, pids, ends)
        settled = time.monotonic() + SETTLE_S
        while contents(tree) != before or journals(tree) or state(tree).turn is not None:
            assert time.monotonic() < settled, "the machine was not given back"
            time.sleep(0.1)
    return host, logged(file), before


def overlaps(lines: list[Any]) -> int:
    """How often somebody began to measure while somebody else did."""
    measuring: set[int] = set()
    found = 0
    for line in lines:
        if line["what"] == "measures":
            found += bool(measuring)
            measuring.add(line["who"])
        elif line["what"] in ("measured", "asks"):
            measuring.discard(line["who"])
    return found


def test_forty_students_for_ten_minutes(tmp_path: Path) -> None:
    def wait(_host: ClassOnATree, _pids: list[int], ends: float) -> None:
        time.sleep(max(ends - time.monotonic(), 0) + 5.0)

    host, lines, _ = run_class(tmp_path, MINUTES, wait)
    numbers = [line["number"] for line in lines if line["what"] == "has"]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) == len(numbers)
    assert overlaps(lines) == 0
    turns = {n: sum(line["what"] == "has" and line["who"] == n for line in lines) for n in range(STUDENTS)}
    waits = waited(lines)
    print(
        f"\n{len(numbers)} turns, each student {min(turns.values())} to {max(turns.values())}; waits of {max(waits)} turns"
    )
    # First come, first served, one place each: nobody sees more turns go by than there are others.
    assert max(waits) <= STUDENTS
    assert max(turns.values()) - min(turns.values()) <= 2
    with BoardStore(host.board_folder) as store:
        rows = {row.user: row.posted.runs[0].id for row in store.board("here", time.time()).rows}
    posted = {line["who"]: line["result"] for line in lines if line["what"] == "posted"}
    assert rows == {f"s{n:02d}": f"{n}-{result}" for n, result in posted.items()}


def waited(lines: list[Any]) -> list[int]:
    """Of each turn, how many others began between asking and having it."""
    asked: dict[int, int] = {}
    begun, found = 0, []
    for line in lines:
        if line["what"] == "asks":
            asked[line["who"]] = begun
        elif line["what"] == "has":
            found.append(begun - asked[line["who"]])
            begun += 1
    return found


def test_two_hundred_kills(tmp_path: Path) -> None:
    chance = random.Random(7)
    killed = {"student's agent": 0, "agent": 0, "board": 0}

    def kill(host: ClassOnATree, _pids: list[int], ends: float) -> None:
        for number in range(KILLS):
            time.sleep(chance.uniform(0.05, 0.8))
            what = ("student's agent", "student's agent", "student's agent", "agent", "board")[number % 5]
            if what == "student's agent":
                turn = state(host.tree).turn
                if turn is None:
                    continue
                victims = [turn.agent.pid]
            else:
                victims = [host.agent if what == "agent" else host.board]
            for pid in victims:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if what != "student's agent":
                os.waitpid(victims[0], 0)
                host.restart(what)
            killed[what] += 1
        time.sleep(max(ends - time.monotonic(), 0) + 5.0)

    host, lines, _ = run_class(tmp_path, max(MINUTES / 2, 0.5), kill)
    print(f"\n{killed}, {sum(line['what'] == 'finished' for line in lines)} results")
    with BoardStore(host.board_folder) as store:
        rows = {row.user: int(row.posted.runs[0].id.partition("-")[2]) for row in store.board("here", time.time()).rows}
    for line in lines:
        if line["what"] == "posted":
            assert rows[f"s{line['who']:02d}"] >= line["result"]


def test_a_million_messages(tmp_path: Path) -> None:
    tree = tuned_tree.make(tmp_path / "tree")
    for folder in (tmp_path, tree):
        folder.chmod(0o755)
    before = contents(tree)
    host = ClassOnATree(tree, tmp_path / "run", silence=60.0)
    count = int(os.environ.get("SOAK_CLASS_MESSAGES", "1000000"))
    try:
        for which in ("agent", "board"):
            place, listener = (host.agent_socket, host.agent) if which == "agent" else (host.board_socket, host.board)
            with as_user(uid_of(1), lambda place=place: fuzz(place, count // 2, seed=3)) as pid:  # type: ignore[misc]
                show_process(tree, pid, uid_of(1))
                sizes = watched(pid, listener)
            print(f"\n{which}: {count // 2} messages, {min(sizes)} to {max(sizes)} kB")
            assert max(sizes) <= min(sizes) + 16_384
        assert contents(tree) == before
        assert journals(tree) == []
        assert state(tree).turn is None or state(tree).turn.uid != uid_of(1)
    finally:
        host.close()


VERBS = (
    "hello",
    "plan",
    "apply",
    "restore",
    "keep",
    "place",
    "realtime",
    "evidence",
    "turn",
    "post",
    "mine",
    "board",
    "forget",
    "say",
    "bye",
    "x",
)
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1 << 70, 0.5, "", "x", "take", "freeze", "../../etc/shadow", "\x1b[2J", "a" * 400, [], ["thp"],
    ["governor=../x"], {}, {"session": "x"}, [[[]]], "2-3", ["*"] * 300,
)  # fmt: skip
FIELDS = (
    "id",
    "wanted",
    "cpus",
    "shown",
    "lease",
    "tunables",
    "do",
    "client",
    "people",
    "user",
    "posted",
    "banner",
    "pid",
    "tids",
    "priority",
    "journals",
)


def watched(pid: int, listener: int) -> list[int]:
    """How large the largest process of a service was, in kB, second by second until ``pid`` has ended well."""
    sizes = []
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        time.sleep(0.5)
        with contextlib.suppress(OSError, ValueError):
            family = [listener, *map(int, Path(f"/proc/{listener}/task/{listener}/children").read_text().split())]
            sizes.append(max(resident(one) for one in family))
    return sizes


def resident(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0])


def fuzz(path: str, count: int, seed: int) -> None:
    """Half of them JSON with fields of any kind, half bytes; each is answered, or the connection has ended as asked."""
    chance = random.Random(seed)
    talk = Talk(path)
    for _ in range(count):
        if chance.random() < 0.5:
            made = {"verb": chance.choice(VERBS), **{f: chance.choice(VALUES) for f in chance.sample(FIELDS, 4)}}
            line = json.dumps(made).encode()
        else:
            line = chance.randbytes(chance.randint(0, 60)).replace(b"\n", b" ")
        try:
            talk.send(line)
            answered = talk.receive() is not None
        except OSError:
            answered = False
        if not answered:
            talk.close()
            talk = Talk(path)
    talk.close()
