"""Make messages as a hostile or broken program may send them to a class's services: valid messages, changed anywhere;
random bytes; deep, long and odd JSON; halves of lines."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Sequence
from typing import Any

from jitter_workshop.model.codec import to_plain
from tests.madeboard import run, work
from tests.tuned_tree import HOT

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 1 << 31, 1 << 63, 1 << 70, -(1 << 70), 0.5, -0.0, 1e308, float("nan"), float("inf"),
    "", "x", "take", "freeze", "*", "../../etc/shadow", "/etc/shadow", "\x00", "\x1b[2J\x1b]0;x\x07", "0-4095", "2-3",
    "s00", "root", "ada", "a" * 400, "a" * 5000, "\ud800", "é" * 300, "9" * 30,
    [], ["thp"], ["isolcpus"], ["hotplug=0"], ["governor=../x"], ["*"] * 300, [[]], [[[[]]]], ["s01", "s02"], ["root"],
    [0] * 100, {}, {"session": "x"}, {"verb": "apply"},
)  # fmt: skip


def agents(pid: int, words: Sequence[str], shown: Sequence[str]) -> list[dict[str, Any]]:
    """Valid messages to the agent. ``pid``: of the caller's own process."""
    asked = {"wanted": list(words), "cpus": HOT}
    trace = {"pid": pid, "tids": [pid], "cpus": HOT, "clock": "mono", "stacks": False, "buffer_kb": None}
    turns: list[dict[str, Any]] = [
        {"do": "take", "people": [], "client": pid}, {"do": "take", "people": ["s02"], "client": pid}, {"do": "give"},
        {"do": "need"}, {"do": "doing", "doing": "measures"}, {"do": "end", "user": "s01"}, {"do": "end"},
        {"do": "freeze"}, {"do": "thaw"},
    ]  # fmt: skip
    return [
        {"verb": "hello"},
        {"verb": "plan", **asked},
        {"verb": "apply", **asked, "shown": list(shown), "lease": 5.0},
        {"verb": "apply", **asked, "shown": list(shown), "lease": None},
        {"verb": "restore", "tunables": []},
        {"verb": "restore", "tunables": [words[0]], "forget": True},
        {"verb": "keep", "journals": []},
        {"verb": "place", "pid": pid},
        {"verb": "place_threads", "pid": pid, "tids": [pid]},
        {"verb": "realtime", "pid": pid, "tids": [pid], "priority": 10},
        {"verb": "evidence", "do": "begin", **trace},
        *({"verb": "evidence", "do": do, "number": 0} for do in ("start", "read", "piece", "end")),
        *({"verb": "turn", **fields} for fields in turns),
        {"verb": "heartbeat"},
        {"verb": "bye"},
    ]


def boards() -> list[dict[str, Any]]:
    """Valid messages to the board."""
    posted = to_plain(work(run("r1"), run("r2", 40_000, "tickless")))
    return [
        {"verb": "hello"},
        {"verb": "post", "posted": posted},
        {"verb": "mine"},
        {"verb": "board"},
        {"verb": "forget", "user": "s00"},
        {"verb": "forget", "user": None},
        {"verb": "say", "banner": {"chapter": "pinning", "step": "look", "text": "here"}},
        {"verb": "say", "banner": None},
    ]


class Fuzz:
    """Makes lines. ``plain``: how many of a hundred are as they should be."""

    def __init__(self, valid: list[dict[str, Any]], seed: str, plain: int = 3) -> None:
        self._valid = valid
        self._chance = random.Random(seed)
        self._plain = plain

    @property
    def chance(self) -> random.Random:
        return self._chance

    def line(self) -> bytes:
        """One line, without its end."""
        chance = self._chance
        kind = chance.random() * 100
        message = copy.deepcopy(chance.choice(self._valid))
        message["id"] = chance.randrange(1 << 20)
        if kind < self._plain:
            return json.dumps(message).encode()
        if kind < 50:
            for _ in range(chance.choice((1, 1, 1, 2, 4))):
                self._change(message)
            return json.dumps(message).encode()
        if kind < 80:
            return self._spoiled(json.dumps(message).encode())
        return chance.randbytes(chance.randint(0, 80)).replace(b"\n", b" ")

    def _change(self, message: dict[str, Any]) -> None:
        chance = self._chance
        place: Any = message
        while isinstance(
            inside := chance.choice(list(place.values() if isinstance(place, dict) else place)), dict | list
        ):
            if not inside or chance.random() < 0.4:
                break
            place = inside
        key = chance.choice(list(place) if isinstance(place, dict) else range(len(place)))
        what = chance.random()
        if what < 0.7:
            place[key] = self._value()
        elif what < 0.85:
            del place[key]
        elif isinstance(place, dict):
            place[chance.choice(("id", "verb", "do", "uid", "user", "who", "lease", "x" * 200))] = self._value()
        else:
            place.append(self._value())
        message.setdefault("verb", chance.choice(("turn", "apply", "post", "")))

    def _value(self) -> Any:
        return copy.deepcopy(self._chance.choice(VALUES))

    def _spoiled(self, line: bytes) -> bytes:
        chance = self._chance
        data = bytearray(line)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(data) + 1)
            match chance.randrange(4):
                case 0:
                    data[at : at + 1] = bytes([chance.randrange(256)])
                case 1:
                    del data[at : at + chance.randint(1, 20)]
                case 2:
                    data[at:at] = chance.randbytes(chance.randint(1, 5))
                case _:
                    data[at:at] = bytes(data[: chance.randint(0, 40)])
        return bytes(data).replace(b"\n", b" ")


def bombs() -> list[bytes]:
    """Return lines that cost a careless reader much."""
    deep = 100_000
    return [
        b"[" * deep,
        b'{"verb":' * deep,
        b'{"verb":"plan","wanted":' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"verb":"post","posted":' + b'{"session":' * 900 + b"1" + b"}" * 900 + b"}",
        b'{"verb":"hello","id":' + b"9" * 5000 + b"}",
        b'{"verb":"hello","id":1e999999}',
        b'{"verb":"turn","do":"take","client":' + b"9" * 4000 + b"}",
        b'{"verb":"apply","lease":NaN,"shown":[' + b"0," * 200_000 + b"0]}",
        b'{"verb":"plan","cpus":"2-3","wanted":[' + b'"thp",' * 100_000 + b'"thp"]}',
        b'{"verb":"plan","cpus":"0-99999999999","wanted":["thp"]}',
        b'{"verb":"plan","cpus":"' + b"0-3," * 1000 + b'0","wanted":["thp"]}',
        b'{"verb":"restore","tunables":["' + b"a" * 900_000 + b'"]}',
        b'{"verb":"evidence","do":"begin","tids":[' + b"1," * 300_000 + b"1]}",
        b'{"verb":"' + b"\\ud800" * 1000 + b'"}',
        b"{" + b",".join(b'"k%d":%d' % (n, n) for n in range(50_000)) + b',"verb":"hello"}',
        b'{"verb":"hello",' + b'"verb":"hello",' * 50_000 + b'"id":1}',
        b'"' + b"x" * 1_000_000 + b'"',
        b"\xff" * 1_000_000,
        b"\x00" * 1_000_000,
        b" " * 1_000_000,
        b"x" * ((1 << 20) + 100_000),
    ]
