"""The board's own database: what each member posted last, and the best curve of each chapter.

A post replaces the one before, so what a member can store is bounded. SQLite lets one process write at a time
(https://www.sqlite.org/lockingv3.html); others wait.
"""

from __future__ import annotations

import datetime
import json
import sqlite3
from pathlib import Path
from typing import Any

from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.model.board import (
    MAX_CHAPTERS,
    MAX_POINTS,
    MAX_TEXT,
    Banner,
    Board,
    BoardRow,
    Posted,
    PostedRun,
)
from jitter_workshop.model.codec import CodecError, from_plain, to_plain
from jitter_workshop.model.text import clean

FILE = "board.sqlite"
STUCK_S = 600.0
"""Who did nothing new for so long, and is not done, may want help."""
AT = 99.9
"""By which percentile a curve is better than another."""
_WAIT_S = 20.0
_MAX_NS = 1 << 62
_VERSION = 1

_TABLES = """
create table if not exists member (
    uid integer primary key, user text not null, posted text not null, seen_at real not null, moved_at real not null
) strict;
create table if not exists best (
    uid integer not null, chapter text not null, value_ns integer not null, run text not null,
    primary key (uid, chapter)
) strict;
create table if not exists banner (one integer primary key check (one = 1), banner text not null) strict;
"""


class BoardStore:
    """Opened for one piece of work. Raises HostError where the database cannot be used."""

    def __init__(self, folder: Path) -> None:
        try:
            self._base = sqlite3.connect(folder / FILE, timeout=_WAIT_S, isolation_level=None)
            version = self._base.execute("pragma user_version").fetchone()[0]
            if version > _VERSION:
                raise HostError("the board was written by a newer version", "install the same on both sides")
            if version < _VERSION:
                self._base.executescript(f"begin immediate; {_TABLES} pragma user_version = {_VERSION}; commit;")
        except sqlite3.Error as error:
            raise HostError(f"the board cannot be opened: {clean(error, 120)}") from error

    def __enter__(self) -> BoardStore:
        return self

    def __exit__(self, *_: object) -> None:
        self._base.close()

    def post(self, uid: int, user: str, posted: Posted, now_s: float) -> None:
        """Keep what a member posts, instead of what they posted before. Raises UsageError for what makes no sense,
        HostError."""
        check(posted)
        text = _text(posted)
        with self._writing():
            before = self._base.execute("select posted, moved_at from member where uid = ?", (uid,)).fetchone()
            moved = before[1] if before is not None and before[0] == text else now_s
            self._base.execute(
                "insert or replace into member values (?, ?, ?, ?, ?)", (uid, clean(user, 64), text, now_s, moved)
            )
            for run in posted.runs:
                value = value_at(run, AT)
                if value is None:
                    continue
                self._base.execute(
                    "insert into best values (?, ?, ?, ?) on conflict (uid, chapter) do update"
                    " set value_ns = excluded.value_ns, run = excluded.run where excluded.value_ns < value_ns",
                    (uid, run.chapter, value, _text(run)),
                )
            # What can be kept of a member is bounded by what they may post at once.
            self._base.execute(
                "delete from best where uid = ? and chapter not in"
                " (select chapter from best where uid = ? order by chapter limit ?)",
                (uid, uid, MAX_CHAPTERS),
            )

    def board(self, host: str, now_s: float, only: int | None = None) -> Board:
        """All members, or only that one. Raises HostError."""
        try:
            rows = self._base.execute("select uid, user, posted, seen_at, moved_at from member").fetchall()
            best = self._base.execute("select uid, run from best order by chapter").fetchall()
        except sqlite3.Error as error:
            raise HostError(f"the board cannot be read: {clean(error, 120)}") from error
        notes: dict[str, str] = {}
        found = []
        for uid, user, text, seen_s, moved_s in rows:
            if only not in (None, uid):
                continue
            try:
                posted = from_plain(Posted, json.loads(text))
                theirs = tuple(from_plain(PostedRun, json.loads(run)) for one, run in best if one == uid)
            except (CodecError, ValueError) as error:
                notes[clean(user, 64)] = f"what they posted cannot be read: {clean(error, 120)}"
                continue
            idle_s = max(now_s - moved_s, 0.0)
            done = bool(posted.chapters) and all(chapter.done for chapter in posted.chapters)
            stuck = idle_s >= STUCK_S and not done
            found.append(BoardRow(uid, user, posted, theirs, stamp(seen_s), idle_s, stuck))
        found.sort(key=lambda row: (not row.stuck, -row.idle_s if row.stuck else 0.0, row.user))
        return Board(host, stamp(now_s), tuple(found), self.banner(), notes)

    def forget(self, uid: int | None) -> int:
        """Forget a member, None: everybody. Gives how many. Raises HostError."""
        with self._writing():
            gone = self._base.execute("delete from member where ? is null or uid = ?", (uid, uid)).rowcount
            self._base.execute("delete from best where ? is null or uid = ?", (uid, uid))
        return gone

    def banner(self) -> Banner | None:
        """What the instructor says now, None for nothing."""
        try:
            row = self._base.execute("select banner from banner").fetchone()
            return from_plain(Banner, json.loads(row[0])) if row is not None else None
        except (sqlite3.Error, CodecError, ValueError):
            return None

    def say(self, banner: Banner | None) -> None:
        """Say something else, or nothing. Raises HostError."""
        with self._writing():
            self._base.execute("delete from banner")
            if banner is not None:
                self._base.execute("insert into banner values (1, ?)", (_text(banner),))

    def _writing(self) -> _Writing:
        return _Writing(self._base)


class _Writing:
    """One transaction, begun as a writer, so that it never has to be given up half way for another one."""

    def __init__(self, base: sqlite3.Connection) -> None:
        self._base = base

    def __enter__(self) -> None:
        try:
            self._base.execute("begin immediate")
        except sqlite3.Error as error:
            raise HostError(f"the board cannot be written: {clean(error, 120)}", "try again later") from error

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: object) -> None:
        if error is None:
            try:
                self._base.execute("commit")
                return
            except sqlite3.Error as failure:
                error = failure
        if self._base.in_transaction:
            self._base.execute("rollback")
        if isinstance(error, sqlite3.Error):
            raise HostError(f"the board cannot be written: {clean(error, 120)}", "try again later") from error


def check(posted: Posted) -> None:
    """What the board relies on. Raises UsageError."""
    if len(posted.chapters) > MAX_CHAPTERS or len(posted.runs) > 2 * MAX_CHAPTERS or len(posted.people) > 8:
        raise UsageError("that is more than one member's work")
    words = [posted.session, posted.chapter or "", posted.step, *posted.people]
    for chapter in posted.chapters:
        words += [chapter.id, chapter.step]
        if not 0 <= chapter.hints <= 100:
            raise UsageError("a chapter has at most 100 hints")
        if chapter.prediction is not None:
            words += [chapter.prediction.choice or "", chapter.prediction.percentile or ""]
            if not 0 <= (chapter.prediction.value_ns or 0) < _MAX_NS:
                raise UsageError("a prediction is a number of ns")
    for run in posted.runs:
        words += [run.id, run.label, run.chapter, run.slot, run.workload, run.at]
        if len(run.points) > MAX_POINTS:
            raise UsageError(f"a curve has at most {MAX_POINTS} points")
        rising = all(a[0] < b[0] and a[1] <= b[1] for a, b in zip(run.points, run.points[1:], strict=False))
        if not rising or any(not 0 <= p < 100 or not 0 <= v < _MAX_NS for p, v in run.points):
            raise UsageError("a curve's percentiles and values rise")
        if run.stolen_ns_per_second is not None and not 0 <= run.stolen_ns_per_second <= 1e9 * 4096:
            raise UsageError("stolen time is at most that of all CPUs")
    if any(len(word) > MAX_TEXT for word in words):
        raise UsageError(f"words have at most {MAX_TEXT} characters")


def value_at(run: PostedRun, percentile: float) -> int | None:
    """The curve's value at a percentile; None where it does not reach so far."""
    return next((value for p, value in run.points if p >= percentile - 1e-9), None)


def stamp(seconds: float) -> str:
    """ISO 8601 in UTC, of seconds since 1970."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _text(value: Any) -> str:
    return json.dumps(to_plain(value), separators=(",", ":"), allow_nan=False)
