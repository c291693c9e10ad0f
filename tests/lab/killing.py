"""Runs in the guest: apply and restore, ended between two chosen steps, over and over in one process that forks.

``python -m tests.lab.killing CPUS WHAT [TUNABLE…]``; without a tunable all that status would improve. WHAT is

- ``N``: apply is killed at N moments spread over its steps (0: at every one), and restored;
- ``N:SEED``: apply or restore is killed at N moments drawn with this seed;
- ``steps``: the steps of apply and of restore, unharmed;
- ``apply@M`` or ``restore@M``: the machine's power goes at moment M of it (2 n: before step n, 2 n + 1: behind it);
- a word: it goes after the first step of apply whose name begins with that word.

It prints one JSON object, and one line to stderr for each moment that is done.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jitter_workshop.agent.server import Server, Setup
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.planning import digest, plan_changes, wanted_by_status
from jitter_workshop.tuning.tunables.registry import parse_wanted
from jitter_workshop.tuning.writer import HostWriter
from tests.agent_on_tree import Steps, journal_type
from tests.lab.watched import differences, watched_tree


class Moments(Steps):
    """Besides, cuts the power where it was told to."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self._cut = int(options.get("cut", -1))

    def _die(self, moment: int) -> None:
        super()._die(moment)
        if self._cut == moment:
            os.execv("/lab/power-cut", ["/lab/power-cut"])


class CountedWriter(HostWriter):
    """The real host's writer; each of its doings is a step."""

    def __init__(self, steps: Steps) -> None:
        super().__init__()
        self._steps = steps

    def write(self, path: str, text: str) -> None:
        with self._steps(f"write {path}"):
            super().write(path, text)

    def overwrite(self, path: str, data: bytes) -> None:
        with self._steps(f"overwrite {path}"):
            super().overwrite(path, data)

    def run(self, program: str, arguments: tuple[str, ...]) -> None:
        with self._steps(f"run {program}"):
            super().run(program, arguments)

    def replace_file(self, path: str, text: str | None) -> None:
        with self._steps(f"replace {path}"):
            super().replace_file(path, text)

    def make_folder(self, path: str) -> None:
        with self._steps(f"mkdir {path}"):
            super().make_folder(path)

    def remove_folder(self, path: str) -> None:
        with self._steps(f"rmdir {path}"):
            super().remove_folder(path)

    def set_affinity(self, tid: int, cpus: Iterable[int]) -> None:
        with self._steps(f"affinity {tid}"):
            super().set_affinity(tid, cpus)


def wanted(cpus: str) -> tuple[str, ...]:
    """All that status would improve here."""
    return tuple(str(one) for one in wanted_by_status(Host(HostRoot(), CpuSet.parse_list(cpus))))


def apply_request(words: Iterable[str], cpus: str) -> dict[str, Any]:
    drawn = plan_changes(Host(HostRoot(), CpuSet.parse_list(cpus)), parse_wanted(tuple(words)))
    shown = [digest(change) for change in drawn.changes]
    return {"id": 1, "verb": "apply", "wanted": list(words), "cpus": cpus, "shown": shown, "lease": None}


def serve(request: dict[str, Any], **options: str) -> Any:
    """One request to an agent in a fork; None where it was killed."""
    answer_end, sink = os.pipe()
    with tempfile.TemporaryFile() as lines:
        lines.write(json.dumps(request).encode() + b"\n")
        lines.seek(0)
        child = os.fork()
        if child == 0:
            try:
                os.close(answer_end)
                steps = Moments(options)
                setup = Setup(
                    HostRoot(), CountedWriter(steps), "/", 0, 1000, "user 1000", "lab", journals=journal_type(steps)
                )
                Server(setup, lines.fileno(), sink).serve()
            finally:
                os._exit(0)
        os.close(sink)
        with os.fdopen(answer_end, "rb") as answers:
            said = answers.read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == -signal.SIGKILL:
        return None
    reply = json.loads(said)
    assert "ok" in reply, reply
    return reply["ok"]


RESTORE = {"id": 1, "verb": "restore"}
FORGET = RESTORE | {"forget": True}


def cut(cpus: str, step: str, *words: str) -> None:
    """Apply ``words``; the machine's power goes after the first step whose name begins with ``step``."""
    serve(apply_request(words, cpus), power=step)


def cut_at(cpus: str, place: str, *words: str) -> None:
    """The machine's power goes at this moment. Print how many changes were made where there was no such moment."""
    verb, _, moment = place.partition("@")
    applied = serve(apply_request(words or wanted(cpus), cpus), **({"cut": moment} if verb == "apply" else {}))
    if verb == "restore":
        serve(RESTORE, cut=moment)
    print(json.dumps({"applied": len(applied["applied"])}))


def steps_of(request: dict[str, Any]) -> tuple[Any, list[str]]:
    """Return what an unharmed request answers, and its steps."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "steps"
        log.touch()
        answer = serve(request, log=str(log))
        return answer, log.read_text().splitlines()


def count(cpus: str, *words: str) -> None:
    """Print the steps of apply and of restore."""
    applied, forth = steps_of(apply_request(words or wanted(cpus), cpus))
    back, way_back = steps_of(RESTORE)
    told = {"apply": forth, "restore": way_back, "left_alone": back["left_alone"]}
    print(json.dumps(told | {"applied": len(applied["applied"]), "refused": applied["refused"]}))


def drawn(seed: str, number: int, apply: int, restore: int) -> list[tuple[str, int]]:
    """So many moments of apply and restore, in turn, drawn with a seed. ``apply``, ``restore``: how many steps."""
    draw = random.Random(seed)
    moments = []
    for n in range(number):
        verb, steps = ("restore", restore) if n % 2 and restore else ("apply", apply)
        moments.append((verb, draw.randrange(max(1, 2 * steps))))
    return moments


def main(cpus: str, points: str, *words: str) -> None:
    """Print a JSON object: how many steps an apply of ``words`` (none: all that status would improve) takes, and for
    each moment what was wrong after the restore. A difference that was found once is forgotten and belongs to the next
    moment's baseline, so that each moment is judged alone."""
    number, _, seed = points.partition(":")
    chosen = words or wanted(cpus)
    before = watched_tree()
    applied, forth = steps_of(apply_request(chosen, cpus))
    wrong = []
    back, way_back = steps_of(RESTORE)
    after = watched_tree()
    lines = differences(before, after)
    if back["left_alone"] or lines:
        wrong.append([-1, "unkilled", back["left_alone"], lines])
        serve(FORGET)
        before = after
    if seed:
        moments = drawn(seed, int(number), len(forth), len(way_back))
    else:
        all_of_them = 2 * len(forth)
        spread = {round(n * (all_of_them - 1) / max(int(number) - 1, 1)) for n in range(int(number))}
        moments = [("apply", moment) for moment in sorted(spread) or range(all_of_them)]
    killed = 0
    for verb, moment in moments:
        # Tasks come and go, so the kill may fall behind the end of a shorter plan: nothing is lost then either.
        answer = serve(apply_request(chosen, cpus), **({"kill": str(moment)} if verb == "apply" else {}))
        if verb == "restore":
            answer = serve(RESTORE, kill=str(moment))
        killed += answer is None
        back = serve(RESTORE)
        after = watched_tree()
        lines = differences(before, after)
        if back["left_alone"] or lines:
            steps = forth if verb == "apply" else way_back
            wrong.append([moment, f"{verb}: {steps[min(moment // 2, len(steps) - 1)]}", back["left_alone"], lines])
            serve(FORGET)
            before = after
        progress = {
            "verb": verb,
            "moment": moment,
            "killed": answer is None,
            "wrong": lines,
            "left": back["left_alone"],
        }
        print(json.dumps(progress), file=sys.stderr, flush=True)
    told = {"words": chosen, "steps": len(forth), "moments": len(moments), "killed": killed, "wrong": wrong}
    print(json.dumps(told | {"applied": len(applied["applied"]), "refused": applied["refused"]}))


if __name__ == "__main__":
    what = sys.argv[2]
    if what == "steps":
        count(sys.argv[1], *sys.argv[3:])
    else:
        (cut_at if "@" in what else cut if what.isalpha() else main)(*sys.argv[1:])
