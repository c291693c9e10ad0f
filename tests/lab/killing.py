"""Runs in the guest: apply, killed between two chosen steps, and restore, over and over in one process that forks."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jitter_workshop.agent.server import Server, Setup
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.planning import digest, plan, wanted_by_status
from jitter_workshop.tuning.registry import parse_wanted
from jitter_workshop.tuning.writer import HostWriter
from tests.agent_on_tree import Steps, journal_type
from tests.lab.watched import differences, watched_tree


class CountedWriter(HostWriter):
    """The real host's writer; each of its doings is a step."""

    def __init__(self, steps: Steps) -> None:
        super().__init__()
        self._steps = steps

    def write(self, path: str, text: str) -> None:
        with self._steps(f"write {path}"):
            super().write(path, text)

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
    drawn = plan(Host(HostRoot(), CpuSet.parse_list(cpus)), parse_wanted(tuple(words)))
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
                steps = Steps(options)
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


def cut(cpus: str, step: str, *words: str) -> None:
    """Apply ``words``; the machine's power goes after the first step whose name begins with ``step``."""
    serve(apply_request(words, cpus), power=step)


def main(cpus: str, points: str, *words: str) -> None:
    """Print a JSON object: how many steps an apply of ``words`` (none: all that status would improve) takes, and for
    ``points`` moments spread over them (0: every one) what was wrong after the restore."""
    chosen = words or wanted(cpus)
    before = watched_tree()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "steps"
        applied = serve(apply_request(chosen, cpus), log=str(log))
        steps = log.read_text().splitlines()
    wrong = []
    back = serve({"id": 1, "verb": "restore"})
    if back["left_alone"] or (lines := differences(before, watched_tree())):
        wrong.append([-1, "unkilled", back["left_alone"], lines])
    count = 2 * len(steps)
    moments = sorted({round(n * (count - 1) / max(int(points) - 1, 1)) for n in range(int(points))}) or range(count)
    killed = 0
    for moment in moments:
        # Tasks come and go, so the kill may fall behind the end of a shorter plan: nothing is lost then either.
        answer = serve(apply_request(chosen, cpus), kill=str(moment))
        killed += answer is None
        back = serve({"id": 1, "verb": "restore"})
        lines = differences(before, watched_tree())
        if back["left_alone"] or lines:
            wrong.append([moment, steps[moment // 2], back["left_alone"], lines])
    told = {"words": chosen, "steps": len(steps), "moments": len(moments), "killed": killed, "wrong": wrong}
    print(json.dumps(told | {"applied": len(applied["applied"]), "refused": applied["refused"]}))


if __name__ == "__main__":
    (cut if sys.argv[2].isalpha() else main)(*sys.argv[1:])
