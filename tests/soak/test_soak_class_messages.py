"""A million messages on the sockets of a class host, from several users at a time: nothing crashes, nothing is written
that the class does not allow, nothing grows."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.classroom import service
from jitter_workshop.tuning.planning import digest
from tests import classatwork, classchecks, classfuzz, classsoak
from tests.agent_on_tree import FakeKernel
from tests.classonatree import log, logged
from tests.classsoak import WORDS, Class, Family
from tests.ownmachine import OwnMachine
from tests.tuned_tree import planned

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="students are processes of other users: needs root")

MESSAGES = int(os.environ.get("SOAK_CLASS_MESSAGES", "1000000"))
FUZZERS = 3
BATCH = 32
GROWTH_KB = 2048
"""The memory that a process may gain in the second half of its life: in the first the allocator gets what large
messages want."""


class Wire:
    """A connection that counts what was answered; a new one where the last has ended."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._socket: socket.socket | None = None
        self._buffer = b""
        self.mistakes: list[str] = []
        self.endings = 0

    def batch(self, lines: list[bytes], mark: int) -> int:
        """Send the lines and a greeting with the id ``mark``; how many of them were surely read: all where the greeting
        is answered, else those that were answered."""
        answered = 0
        try:
            self._open().sendall(b"".join(line + b"\n" for line in lines) + b'{"verb":"hello","id":%d}\n' % mark)
            while (answer := self._receive()) is not None:
                if answer.get("id") == mark and "ok" in answer:
                    return len(lines)
                answered += 1
        except OSError:
            pass
        self.close()
        return min(answered, len(lines))

    def half(self, line: bytes) -> None:
        """A line that never ends, and the end of the connection."""
        with contextlib.suppress(OSError):
            self._open().sendall(line[: max(len(line) // 2, 1)])
        self.close()

    def pieces(self, line: bytes, chance: random.Random) -> None:
        """A part of a line now; what follows is sent by the next batch."""
        cut = chance.randrange(len(line) + 1)
        with contextlib.suppress(OSError):
            for part in (line[:cut], line[cut:] + b"\n"):
                self._open().sendall(part)
                time.sleep(0.001)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket, self._buffer = None, b""
            self.endings += 1

    def _open(self) -> socket.socket:
        while self._socket is None:
            made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            made.settimeout(60.0)
            made.connect(self._path)
            self._socket = made
        return self._socket

    def _receive(self) -> dict[str, Any] | None:
        while b"\n" not in self._buffer:
            more = self._open().recv(1 << 18)
            if not more:
                return None
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        said = answer.get("error", {}).get("message", "")
        if "a mistake in the" in said and said not in self.mistakes:
            self.mistakes.append(said)
        return answer


def fuzzed(place: str, board: bool, count: int, seed: str, file: Path, lasting: bool) -> None:
    """Send so many messages. ``lasting``: on one connection from the first to the last."""
    shown = [digest(change) for change in SHOWN]
    valid = classfuzz.boards() if board else classfuzz.agents(os.getpid(), WORDS, shown)
    fuzz = classfuzz.Fuzz([one for one in valid if not lasting or one["verb"] != "bye"], seed)
    bombs = [one for one in classfuzz.bombs() if not lasting or len(one) < 1 << 20]
    wire, done, mark = Wire(place), 0, 1 << 40
    told = time.monotonic()
    while done < count:
        mark += 1
        what = fuzz.chance.random()
        if what < 0.01:
            read = wire.batch([fuzz.chance.choice(bombs)], mark)
        elif what < 0.03 and not lasting:
            wire.half(fuzz.line())
            read = 1
        elif what < 0.05:
            wire.pieces(fuzz.line(), fuzz.chance)
            read = 1
        else:
            read = wire.batch([fuzz.line() for _ in range(BATCH)], mark)
        done += read
        if time.monotonic() > told + 1.0 or done >= count:
            told = time.monotonic()
            log(file, what="sent", who=seed, done=done, endings=wire.endings, mistakes=wire.mistakes)
    if lasting:
        log(file, what="lasted", who=seed, endings=wire.endings)
    wire.close()


def patient(place: str, file: Path) -> None:
    """Somebody who only wants to be answered meanwhile."""
    wire = Wire(place)
    worst = 0.0
    while True:
        began = time.monotonic()
        if wire.batch([], 1) == 0 and wire.endings:
            log(file, what="turned away", endings=wire.endings)
            wire.endings = 0
        worst = max(worst, time.monotonic() - began)
        log(file, what="answered", worst=worst)
        time.sleep(0.5)


SHOWN: tuple[Any, ...] = ()


class Kernel(FakeKernel):
    """Writes down which file was written."""

    written: Path

    def write(self, path: str, text: str) -> None:
        log(self.written, path=path)
        super().write(path, text)

    def overwrite(self, path: str, data: bytes) -> None:
        log(self.written, path=path)
        super().overwrite(path, data)

    def replace_file(self, path: str, text: str | None) -> None:
        log(self.written, path=path)
        super().replace_file(path, text)


def resident_kb(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0])


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


@pytest.mark.parametrize("which", ["agent", "board"])
def test_a_million_messages(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with contextlib.ExitStack() as stack:
        classsoak.own_users(monkeypatch)
        machine = stack.enter_context(OwnMachine())
        monkeypatch.setattr(classsoak, "FakeKernel", Kernel)
        monkeypatch.setattr(service, "LONGEST_S", 1e6)  # so that one conversation lasts
        classatwork.known_names(monkeypatch)
        before = machine.contents()
        file = machine.top / "log"
        Kernel.written = machine.top / "written"
        for one in (file, Kernel.written):
            one.touch()
            one.chmod(0o666)
        classchecks.watch_turns(file, monkeypatch)
        family = Family()
        stack.callback(family.end)
        host = Class(machine, machine.top / "run", turn_s=2.0, silence=20.0)
        stack.callback(host.close)
        host.said.chmod(0o666)
        global SHOWN
        SHOWN = planned(host.tree, WORDS).changes
        allowed = {change.path for change in SHOWN}
        place = host.agent_socket if which == "agent" else host.board_socket
        listener = host.agent if which == "agent" else host.board
        others = host.board if which == "agent" else host.agent
        each = MESSAGES // 2 // (FUZZERS + 1)
        board = which == "board"
        family.begin(0, lambda: fuzzed(place, board, each, f"{which} lasting", file, True), host)
        lasting = _its(listener, family)
        for n in range(1, FUZZERS + 1):
            seed = f"{which} {n}"
            family.begin(n, lambda seed=seed: fuzzed(place, board, each, seed, file, False), host)  # type: ignore[misc]
        family.begin(FUZZERS + 1, lambda: patient(place, file), host)
        rows = _watched(family, file, each, {"listener": listener, "lasting": lasting, "other service": others})
        classsoak.keep(f"messages-{which}", rows)
        lines = logged(file)
        sent = {line["who"]: line for line in lines if line["what"] == "sent"}
        total = sum(line["done"] for line in sent.values())
        worst = max((line["worst"] for line in lines if line["what"] == "answered"), default=0.0)
        written = {line["path"] for line in logged(Kernel.written)}
        alive = [row for row in rows if row["lasts"]]
        first, last = alive[len(alive) // 2], {**rows[-1], "lasting": alive[-1]["lasting"]}
        left = classsoak.leftovers(host, family)
        print(
            f"\n{which}: {total} messages in {rows[-1]['at'] - rows[0]['at']:.0f} s on "
            f"{sum(one['endings'] for one in sent.values())} connections; kB {first} to {last}; "
            f"worst answer to somebody else {worst:.2f} s; "
            f"written {sorted(Path(p).name for p in written - allowed)} beside {len(written & allowed)} of "
            f"{len(allowed)}; turns {sum(line['what'] == 'begins' for line in lines)}"
        )
        assert total >= MESSAGES // 2
        assert [line["mistakes"] for line in sent.values() if line["mistakes"]] == []
        assert classchecks.mistakes(host.said) == []
        assert [line["words"] for line in lines if line["what"] == "wrong"] == []
        assert [code for code in family.codes if code[1] not in (0, -signal.SIGKILL)] == []
        assert next(line for line in lines if line["what"] == "lasted")["endings"] == 0
        assert {path for path in written - allowed if not path.startswith("/sys/fs/cgroup/cpuset/")} == set()
        for name in ("listener", "lasting", "other service"):
            assert last[name] <= first[name] + GROWTH_KB, (name, rows)
        assert last["descriptors"] <= first["descriptors"] + FUZZERS
        assert classsoak.standing(host, before) == ""
        assert _files(host) == []
        assert left == []


def _its(listener: int, family: Family) -> int:
    """The process of the only connection."""
    ends = time.monotonic() + 20.0
    while not (found := classsoak.children(listener)):
        family.reap()
        assert time.monotonic() < ends
        time.sleep(0.01)
    return found[0]


def _watched(family: Family, file: Path, each: int, processes: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return how large they were, second by second, until the fuzzing is over; the last while the long conversation
    is."""
    rows: list[dict[str, Any]] = []
    began = time.monotonic()
    while len(family.students) > 1:
        family.reap()
        row: dict[str, Any] = {"at": round(time.monotonic() - began, 1)}
        try:
            row |= {name: resident_kb(pid) for name, pid in processes.items()}
            row["descriptors"] = descriptors(processes["listener"])
            row["lasts"] = "lasting" in processes
        except (OSError, ValueError, IndexError):
            if family.of(0) is not None:
                time.sleep(0.2)
                if family.of(0) is not None and not Path(f"/proc/{processes['listener']}").exists():
                    raise AssertionError("the listener has ended") from None
            processes = {name: pid for name, pid in processes.items() if name != "lasting"}
            time.sleep(0.2)
            continue
        rows.append(row)
        time.sleep(0.5)
    for pid, number in list(family.students.items()):
        if number == FUZZERS + 1:
            os.kill(pid, signal.SIGKILL)
    ends = time.monotonic() + 30.0
    while family.students and time.monotonic() < ends:
        family.reap()
        time.sleep(0.05)
    return rows


def _files(host: Class) -> list[str]:
    """Files of the made host that are none of the tool's own."""
    known = ("var/lib/jitter-workshop/", "run/jitter-workshop/")
    names = {
        str(p.relative_to(host.tree))
        for top in ("var", "run", "etc", "opt")
        for p in (host.tree / top).rglob("*")
        if p.is_file()
    }
    return sorted(name for name in names if not name.startswith(known))
