"""The board as an instructor asks for it: one machine's, or that of many machines, gathered as files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from jitter_workshop.classroom.client import connect
from jitter_workshop.classroom.store import AT, STUCK_S, value_at
from jitter_workshop.errors import UsageError
from jitter_workshop.model.board import Banner, Board, BoardRow, PostedRun
from jitter_workshop.model.codec import CodecError, from_plain
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import clean

__all__ = ["STUCK_S", "Gathered", "board", "board_json", "csv_table", "forget", "gathered", "present"]

MAX_FILE = 64 << 20
_SPREADSHEET = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class Gathered:
    """A machine of many: its board, or why there is none. ``status``: the JSON of its ``status``, None where that is
    missing."""

    host: str
    board: Board | None
    status: dict[str, Any] | None
    error: str = ""


def board() -> Board:
    """Everybody's work on this machine, for its instructors. Raises HostError."""
    with connect() as client:
        return client.board()


def forget(user: str | None) -> int:
    """Forget a member's work, None: everybody's. How many were forgotten. Raises HostError."""
    with connect() as client:
        return client.forget(user)


def present(chapter: str, step: str, text: str) -> None:
    """Show everybody where the instructor is. Raises HostError."""
    with connect() as client:
        client.say(Banner(by="", at="", chapter=chapter, step=step, text=text))


def present_nothing() -> None:
    """Show nothing any more. Raises HostError."""
    with connect() as client:
        client.say(None)


def gathered(folder: Path) -> tuple[Gathered, ...]:
    """What was gathered of many machines: ``HOST/board.json`` and ``HOST/status.json``. A machine of which a file is
    missing or makes no sense is among them, with the reason. Raises UsageError where there is no such folder."""
    if not folder.is_dir():
        raise UsageError(f"there is no folder {clean(folder, 200)}")
    found = []
    for place in sorted(one for one in folder.iterdir() if one.is_dir()):
        why: list[str] = []
        made = _load(place / "board.json", why)
        status = _load(place / "status.json", why)
        theirs: Board | None = None
        if made is not None:
            try:
                theirs = from_plain(Board, made)
            except (CodecError, RecursionError) as error:
                why.append(f"board.json: {clean(error, 120)}")
        found.append(Gathered(clean(place.name, 64), theirs, status, "; ".join(why)))
    return tuple(found)


def board_json(boards: Sequence[Gathered]) -> dict[str, Any]:
    """The JSON of ``class board`` (DESIGN §9)."""
    return {
        "hosts": [
            {"host": one.host, "seen_at": one.board.at if one.board is not None else None, "error": one.error or None}
            for one in boards
        ],
        "students": [_student(one.host, row) for one in boards if one.board is not None for row in one.board.rows],
    }


def csv_table(boards: Sequence[Gathered]) -> str:
    """One line a member and chapter, for a spreadsheet. A word that a spreadsheet would take for a formula is quoted."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(
        (
            "host",
            "user",
            "people",
            "chapter",
            "step",
            "done",
            "setting",
            "curve",
            "guess_ns",
            "last_p99.9_ns",
            "best_p99.9_ns",
        )
    )
    for one in boards:
        for row in one.board.rows if one.board is not None else ():
            last, best = _by_chapter(row.posted.runs), _by_chapter(row.best)
            for chapter in row.posted.chapters:
                guess = chapter.prediction.value_ns if chapter.prediction is not None else None
                table.writerow(
                    [
                        _cell(one.host),
                        _cell(row.user),
                        _cell(" ".join(row.posted.people)),
                        _cell(chapter.id),
                        _cell(chapter.step),
                        *(int(flag) for flag in (chapter.done, chapter.setting, chapter.curve)),
                        "" if guess is None else guess,
                        _value(last.get(chapter.id)),
                        _value(best.get(chapter.id) or last.get(chapter.id)),
                    ]
                )
    return out.getvalue()


def _student(host: str, row: BoardRow) -> dict[str, Any]:
    newest = max(row.posted.runs, key=lambda run: run.at, default=None)
    best = min((run for run in (*row.best, *row.posted.runs) if _ns(run) is not None), key=_known, default=None)
    return {
        "id": clean(row.user, 64),
        "people": [clean(name, 64) for name in row.posted.people],
        "host": host,
        "chapter": clean(row.posted.chapter, 80) if row.posted.chapter is not None else None,
        "step": clean(row.posted.step, 40),
        "marks": {clean(c.id, 80): {"setting": c.setting, "curve": c.curve} for c in row.posted.chapters},
        "done": sum(c.done for c in row.posted.chapters),
        "last_run": _run(newest),
        "best_run": _run(best),
        "seen_at": clean(row.seen_at, 30),
        "idle_s": row.idle_s,
        "stuck": row.stuck,
    }


def _run(run: PostedRun | None) -> dict[str, Any] | None:
    if run is None:
        return None
    return {
        "id": clean(run.id, 64),
        "label": clean(run.label, 80),
        "chapter": clean(run.chapter, 80),
        "p99.9_ns": _ns(run),
    }


def _by_chapter(runs: Iterable[PostedRun]) -> dict[str, PostedRun]:
    return {run.chapter: run for run in runs}


def _ns(run: PostedRun) -> int | None:
    return value_at(run, AT)


def _known(run: PostedRun) -> int:
    return _ns(run) or 0


def _value(run: PostedRun | None) -> int | str:
    value = _ns(run) if run is not None else None
    return "" if value is None else value


def _cell(word: str) -> str:
    shown = clean(word, 80)
    return f"'{shown}" if shown.startswith(_SPREADSHEET) else shown


def _load(file: Path, why: list[str]) -> dict[str, Any] | None:
    try:
        with file.open("rb") as source:
            data = source.read(MAX_FILE + 1)
        if len(data) > MAX_FILE:
            raise ValueError("it is too large")
        found = json.loads(data)
        if not isinstance(found, dict):
            raise ValueError("it is no object")
    except FileNotFoundError:
        why.append(f"{file.name} is missing")
    except OSError as error:
        why.append(f"{file.name} cannot be read: {error.strerror}")
    except (ValueError, RecursionError) as error:
        why.append(f"{file.name} makes no sense: {clean(error, 80)}")
    else:
        return found
    return None
