"""Check a class at work: rules of its turns, looked at as each of them is written down, and its
results."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.agent.turns.state_file import TurnFile
from jitter_workshop.classroom.store import BoardStore
from jitter_workshop.model.turn import TurnState
from jitter_workshop.session.store import SessionStore
from tests.classatwork import STUDENTS
from tests.classonatree import TEACHER, log, uid_of

Lines = Sequence[Mapping[str, Any]]
"""Of the log, in the order of time."""


def wrong(before: TurnState, after: TurnState) -> list[str]:
    """Return what is not in order when one state is written after the other."""
    found = []
    old, new = before.turn, after.turn
    begun = new is not None and after.number == before.number + 1
    if after.number not in (before.number, before.number + 1):
        found.append(f"the number of turns went from {before.number} to {after.number}")
    if begun and new is not None:
        if old is not None and not old.returning:
            found.append(f"turn {new.number} began before turn {old.number} was given back")
        entry = next((one for one in before.queue if one.agent == new.agent), None)
        if entry is None:
            found.append(f"turn {new.number} began for somebody who did not wait")
        elif entry.limit_s is not None:
            if after.frozen_by or after.trouble:
                found.append(f"turn {new.number} of a student began in a class that waits")
            still = {one.agent for one in after.queue}
            passed = [one.uid for one in before.queue[: before.queue.index(entry)] if one.agent in still]
            if passed:
                found.append(f"turn {new.number} passed {passed}")
    elif old is not None and new is not None and old.number == new.number and old.agent != new.agent:
        # A service that adopts a turn only restores its machine.
        found += [] if new.returning else [f"turn {new.number} went from one agent to another"]
    had = [one.agent for one in before.queue]
    has = [one.agent for one in after.queue]
    if [one for one in has if one in had] != [one for one in had if one in has]:
        found.append("the queue changed its order")
    students = [one.agent for one in after.queue if one.limit_s is not None]
    added = [one for one in students if one not in had]
    if added and students[-len(added) :] != added:
        found.append("somebody came into the middle of the queue")
    if len({one.uid for one in after.queue}) != len(after.queue):
        found.append("somebody has two places")
    return found


def watch_turns(file: Path, patch: pytest.MonkeyPatch) -> None:
    """Of each state that a service of ours writes from now on: check it, and log who joins and whose turn begins, with
    the processes that students' processes have at that moment."""
    write = TurnFile._write

    def checked(self: TurnFile, state: TurnState) -> None:
        before = self.read()
        for words in wrong(before, state):
            log(file, what="wrong", words=words)
        had = {one.agent for one in before.queue}
        for one in state.queue:
            if one.agent not in had:
                ahead = sum(1 for other in state.queue if other.limit_s is not None) - 1
                log(file, what="joins", uid=one.uid, agent=one.agent.pid, number=state.number, ahead=ahead)
        if state.turn is not None and state.number == before.number + 1:
            turn = state.turn
            log(file, what="begins", uid=turn.uid, agent=turn.agent.pid, number=turn.number, working=working())
        if before.turn is not None and (state.turn is None or state.turn.number != before.turn.number):
            log(file, what="over", uid=before.turn.uid, number=before.turn.number, trouble=state.trouble)
        write(self, state)

    patch.setattr(TurnFile, "_write", checked)


def working() -> dict[int, int]:
    """Processes that were started by processes of students, for what measures, with their users."""
    owner, parent = {}, {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                text = Path(f"/proc/{entry.name}/status").read_text()
                if "\nState:\tZ" in text:
                    continue
                owner[int(entry.name)] = int(text.partition("\nUid:")[2].split()[0])
                parent[int(entry.name)] = int(text.partition("\nPPid:")[2].split()[0])
    students = range(uid_of(0), uid_of(STUDENTS))
    return {pid: uid for pid, uid in owner.items() if uid in students and owner.get(parent[pid]) in students}


def mistakes(said: Path) -> list[str]:
    """Lines of a standard error that tell of a mistake."""
    return [line for line in said.read_text(errors="replace").splitlines() if "Traceback" in line or "Error" in line]


def still_measured(lines: Lines) -> list[str]:
    """Turns that began while a process was there of somebody whose blocks had begun and whose run had not ended. A
    member who lost the turn while the process started may still have that process. The member learns of it before the
    first block."""
    measuring: set[int] = set()
    found = []
    for line in lines:
        if line["what"] == "measures":
            measuring.add(uid_of(line["who"]))
        elif line["what"] == "measured":
            measuring.discard(uid_of(line["who"]))
        elif line["what"] == "joins":  # whose process was killed begins anew
            measuring.discard(line["uid"])
        elif line["what"] == "begins" and (both := measuring & set(line["working"].values())):
            found.append(f"turn {line['number']} with {both}")
    return found


def overlaps(lines: Lines) -> list[str]:
    """Whole measurements that began outside of their turn, and those that began while another went on. One ends with
    its turn at the latest: its student may have been stopped and say so later, but no process of theirs is left
    (:func:`still_measured`)."""
    begun = {line["number"]: line["at"] for line in lines if line["what"] == "begins"}
    over = {line["number"]: line["at"] for line in lines if line["what"] == "over"}
    ends = {line["number"]: line["at"] for line in lines if line["what"] == "measured"}
    whole = {line["number"] for line in lines if line["what"] == "measured" and line["complete"]}
    found, spans = [], []
    for line in lines:
        if line["what"] == "measures":
            number, start = line["number"], line["at"]
            last = over.get(number, float("inf"))
            if number in whole and not begun[number] <= start <= last:
                found.append(f"{line} outside of its turn")
            if start <= last:  # who was stopped just before the first block says so later, and measured nothing
                spans.append((start, min(ends.get(number, last), last), line["who"]))
    spans.sort()
    return found + [f"{a} and {b}" for a, b in itertools.pairwise(spans) if b[0] < a[1]]


def waits(lines: Lines) -> list[tuple[int, float, int]]:
    """Of each student's turn: how many turns began between joining and having it, in how many seconds, and how many
    were ahead at first."""
    joined: dict[int, Mapping[str, Any]] = {}
    found = []
    for line in lines:
        if line["what"] == "joins":
            joined[line["agent"]] = line
        elif line["what"] == "begins" and line["uid"] != TEACHER:
            start = joined.pop(line["agent"])
            found.append((line["number"] - start["number"] - 1, line["at"] - start["at"], start["ahead"]))
    return found


def results(homes: Path, board_folder: Path, lines: Lines) -> tuple[int, list[str]]:
    """Return how many finished results there are, and which of them are not in their student's session or on the
    board."""
    with BoardStore(board_folder) as store:
        board = store.board("here", time.time())
    posted = {row.user: {run.id for run in row.posted.runs} for row in board.rows}
    lost = [f"the board's note: {words}" for words in board.notes.values()]
    for number in range(STUDENTS):
        store_of = SessionStore(homes / f"s{number:02d}" / "jitter-workshop" / "sessions")
        sessions, damaged = store_of.list(check_runs=True)
        lost += [f"s{number:02d} damaged: {one}" for one in damaged]
        kept = {run for session in sessions for run in session.runs}
        finished = [line["run"] for line in lines if line["what"] == "finished" and line["who"] == number]
        measured_whole = [
            line["run"] for line in lines if line["what"] == "measured" and line["who"] == number and line["complete"]
        ]
        lost += [f"s{number:02d} {run} is not in the session" for run in measured_whole if run not in kept]
        lost += [
            f"s{number:02d} {run} is not on the board"
            for run in finished
            if run not in posted.get(f"s{number:02d}", ())
        ]
    return sum(line["what"] == "finished" for line in lines), lost
