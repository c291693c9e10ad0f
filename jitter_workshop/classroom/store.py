"""Store the board: each member's last post, their best curve of each chapter, and the instructor's banner.

A post replaces the member's last post, so the data of a member has a limit. SQLite lets one process write at a time
(https://www.sqlite.org/lockingv3.html); other processes wait. Deleted data is overwritten with zeros (secure_delete,
https://www.sqlite.org/pragma.html). A damaged file is moved away, and a new file is created. Each member's next post
brings the member's data back.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import json
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.model.board import (
    MAX_CHAPTERS,
    MAX_POINTS,
    MAX_SCENARIOS,
    MAX_TEXT,
    Banner,
    Board,
    BoardRow,
    MemberGroup,
    Posted,
    PostedRun,
    compared_at,
)
from jitter_workshop.model.codec import CodecError, from_plain, parse_object, to_plain
from jitter_workshop.model.descriptor import closed_after
from jitter_workshop.model.host import EMULATED
from jitter_workshop.model.text import REASON, USER, clean
from jitter_workshop.model.turn import MAX_PEOPLE, TurnState
from jitter_workshop.session import files

TOO_MUCH = "this is more data than one member may send"
SENT_AGAIN = "the next post sends the new results again"
FILE = "board.sqlite"
BANNER_FILE = "banner.json"
_MAX_BANNER_BYTES = 4096
DAMAGED = f"{FILE}.damaged"
STUCK_S = 600.0
"""Seconds without progress after which a connected member counts as stuck and may want help."""
AWAY_S = 300.0
"""Seconds of silence after which a member's program counts as closed.

An open program posts every two minutes (flow/classes/posting.py), except while it measures, and it measures only in a
turn."""
_WAIT_S = 20.0
_MAX_NS = 1 << 62
_VERSION = 1
_GROUPS = get_args(MemberGroup)

_TABLES = """
create table if not exists member (
    uid integer primary key, user text not null, posted text not null, seen_at real not null, moved_at real not null
) strict;
create table if not exists best (
    uid integer not null, chapter text not null, workload text not null, run text not null,
    primary key (uid, chapter, workload)
) strict, without rowid;
create table if not exists banner (one integer primary key check (one = 1), banner text not null) strict;
"""


class BoardStore(contextlib.AbstractContextManager["BoardStore"]):
    """Hold the database open for one request. Raise HostError if the database cannot be used."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            self._base = _opened(folder)
        except sqlite3.Error as error:
            raise HostError(f"the board cannot be opened: {clean(error, REASON)}", _advice(error)) from error

    def __exit__(self, *_: object) -> None:
        self._base.close()

    def post(self, uid: int, user: str, posted: Posted, now_s: float) -> None:
        """Store a member's post, which replaces their last one. Raise UsageError for an invalid post, HostError if it
        cannot be stored."""
        posted = checked(posted)
        user, text = clean(user, USER), _text(posted)
        with self._writing():
            before = self._base.execute("select posted, moved_at, user from member where uid = ?", (uid,)).fetchone()
            if before is not None and before[2] != user:
                # The user id belonged to another user before, whose results are not this member's.
                self._base.execute("delete from best where uid = ?", (uid,))
                before = None
            moved = before[1] if before is not None and before[0] == text else now_s
            self._base.execute("insert or replace into member values (?, ?, ?, ?, ?)", (uid, user, text, now_s, moved))
            for run in posted.runs:
                self._keep_best(uid, posted, run)
            # Keep no more curves of a member than one post may have, so that the database stays bounded.
            self._base.execute(
                "delete from best where uid = ? and (chapter, workload) not in"
                " (select chapter, workload from best where uid = ? order by chapter, workload limit ?)",
                (uid, uid, MAX_CHAPTERS),
            )

    def _keep_best(self, uid: int, posted: Posted, run: PostedRun) -> None:
        by = compared_at(posted, run)
        value = run.value_at(by)
        # Times of an emulated machine mean nothing, so none of them is the best.
        if value is None or run.mark == EMULATED:
            return
        key = (uid, run.chapter, run.workload)
        kept = self._base.execute("select run from best where (uid, chapter, workload) = (?, ?, ?)", key).fetchone()
        try:
            best = from_plain(PostedRun, json.loads(kept[0])).value_at(by) if kept is not None else None
        except (CodecError, ValueError):
            best = None
        if best is None or value < best:
            self._base.execute("insert or replace into best values (?, ?, ?, ?)", (*key, _text(run)))

    def board(self, host: str, now_s: float, only: int | None = None, turns: TurnState | None = None) -> Board:
        """Return the board with the rows of all members, or only the row of the user id ``only``. ``turns``: the turn
        and its queue. Raise HostError if the board cannot be read."""
        try:
            rows = self._base.execute("select uid, user, posted, seen_at, moved_at from member").fetchall()
            best = self._base.execute("select uid, run from best order by chapter, workload").fetchall()
        except sqlite3.Error as error:
            raise HostError(f"the board cannot be read: {clean(error, REASON)}") from error
        notes = self._damage()
        found = []
        for uid, user, text, seen_s, moved_s in rows:
            if only not in (None, uid):
                continue
            try:
                posted = from_plain(Posted, json.loads(text))
                theirs = tuple(from_plain(PostedRun, json.loads(run)) for one, run in best if one == uid)
            except (CodecError, ValueError) as error:
                notes[clean(user, USER)] = f"this member's results cannot be read: {clean(error, REASON)}"
                continue
            row = BoardRow(uid, user, posted, theirs, utc_text(seen_s), max(now_s - moved_s, 0.0))
            found.append(replace(row, group=_group(row, now_s - seen_s, turns or TurnState(""))))
        found.sort(key=lambda row: (_GROUPS.index(row.group), -row.idle_s if row.group == "stuck" else 0.0, row.user))
        return Board(host, utc_text(now_s), tuple(found), self.banner(), notes)

    def forget(self, user: str | None) -> int:
        """Delete the data of the member named ``user``, or of all members for None. Return the number of members whose
        data was deleted. ``user`` may be a user whose account no longer exists.

        Also delete the file of a damaged database, because it may contain the same data. Raise HostError if the data
        cannot be deleted.
        """
        with self._writing():
            self._base.execute(
                "delete from best where ? is null or uid in (select uid from member where user = ?)", (user, user)
            )
            gone = self._base.execute("delete from member where ? is null or user = ?", (user, user)).rowcount
        try:
            # The damaged file may hold their posts, too. It also holds posts of others, whose next posts replace these.
            (self._folder / DAMAGED).unlink(missing_ok=True)
        except OSError as error:
            raise HostError(f"{DAMAGED} cannot be removed: {error.strerror}") from error
        with contextlib.suppress(sqlite3.Error):  # makes the file smaller; deleted data is zeros already
            self._base.execute("vacuum")
        return gone

    def banner(self) -> Banner | None:
        """Return the instructor's current banner, None for none."""
        try:
            row = self._base.execute("select banner from banner").fetchone()
            return from_plain(Banner, json.loads(row[0])) if row is not None else None
        except (sqlite3.Error, CodecError, ValueError):
            return None

    def say(self, banner: Banner | None) -> None:
        """Store a new banner of the instructor, or remove the banner if ``banner`` is None. Raise HostError if the
        board cannot be written."""
        with self._writing():
            self._base.execute("delete from banner")
            if banner is not None:
                self._base.execute("insert into banner values (1, ?)", (_text(banner),))

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Write to the database in one transaction: commit after the body, roll back after an error. Raise HostError if
        the board cannot be written."""
        try:
            self._base.execute("begin immediate")
            yield
            self._base.execute("commit")
        except sqlite3.Error as error:
            raise HostError(f"the board cannot be written: {clean(error, REASON)}", _advice(error)) from error
        finally:
            if self._base.in_transaction:
                self._base.execute("rollback")

    def _damage(self) -> dict[str, str]:
        try:
            when = (self._folder / DAMAGED).stat().st_mtime
        except OSError:
            return {}
        words = f"the board's file was damaged and was moved to {DAMAGED} (last written {utc_text(when)})"
        return {"the board": f"{words}; the next results of each member fill the board again"}


def _group(row: BoardRow, silent_s: float, turns: TurnState) -> MemberGroup:
    """Return the group to which a member belongs on the board, such as ``stuck``. ``silent_s``: seconds since the
    member's last post.

    A member is ``stuck`` after ten minutes without progress. Members who have the turn, wait for it, or cannot get it
    now are never ``stuck``.
    """
    names = {row.user, *row.posted.people}
    if any(one.uid == row.uid or names & set(one.people) for one in turns.queue):
        return "waiting"
    if turns.turn is not None and (turns.turn.uid == row.uid or names & set(turns.turn.people)):
        return "at work"
    if silent_s >= AWAY_S:
        return "away"
    if row.idle_s < STUCK_S:
        return "at work"
    if row.posted.chapters and all(chapter.done for chapter in row.posted.chapters):
        return "done"
    return "waiting" if turns.frozen_by or turns.trouble else "stuck"


def checked(posted: Posted) -> Posted:
    """Check a post, and return it with all its texts cleaned. Raise UsageError for an invalid post."""
    if len(posted.chapters) > MAX_CHAPTERS or len(posted.runs) > 2 * MAX_CHAPTERS or len(posted.people) > MAX_PEOPLE:
        raise UsageError(TOO_MUCH)
    if len(posted.scenarios) > MAX_SCENARIOS:
        raise UsageError(TOO_MUCH)
    for chapter in posted.chapters:
        if not 0 <= chapter.hints <= 100:
            raise UsageError("a chapter has at most 100 hints")
        if chapter.prediction is not None and not 0 <= (chapter.prediction.value_ns or 0) < _MAX_NS:
            raise UsageError("a guess must be a number of ns")
    for run in posted.runs:
        _check_run(run)
    found = from_plain(Posted, _cleaned(to_plain(posted)))
    if len({chapter.id for chapter in found.chapters}) < len(found.chapters):
        raise UsageError("each chapter may appear only once")
    return found


def _check_run(run: PostedRun) -> None:
    if len(run.points) > MAX_POINTS:
        raise UsageError(f"a curve has at most {MAX_POINTS} points")
    rising = all(a[0] < b[0] and a[1] <= b[1] for a, b in zip(run.points, run.points[1:], strict=False))
    if not rising or any(not 0 <= p < 100 or not 0 <= v < _MAX_NS for p, v in run.points):
        raise UsageError("a curve's percentiles and values must rise")
    if run.stolen_ns_per_second is not None and not 0 <= run.stolen_ns_per_second <= 1e9 * 4096:
        raise UsageError("the time in stalls cannot be more than the time of all CPUs")


def _cleaned(value: Any) -> Any:
    """Return the plain JSON value ``value`` with all texts in it cleaned."""
    if isinstance(value, dict):
        return {key: _cleaned(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_cleaned(one) for one in value]
    return _word(value) if isinstance(value, str) else value


def _word(word: str) -> str:
    if len(word) > MAX_TEXT:
        raise UsageError(f"a text has at most {MAX_TEXT} characters")
    return clean(word, MAX_TEXT)


def utc_text(seconds: float) -> str:
    """Return a time, in seconds since 1970, as ISO 8601 in UTC."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _text(value: Any) -> str:
    return json.dumps(to_plain(value), separators=(",", ":"), allow_nan=False)


def _opened(folder: Path) -> sqlite3.Connection:
    """Open the database of the board and return the connection. Create a missing database. Move a damaged database away
    and create a new one. Raise HostError if a newer version wrote the database, sqlite3.Error on any other failure."""
    try:
        return _connected(folder)
    except sqlite3.DatabaseError as error:
        if not _is_damaged(error):
            raise
    with _alone(folder):
        try:
            return _connected(folder)  # another process may have set it aside meanwhile
        except sqlite3.DatabaseError as error:
            if not _is_damaged(error):
                raise
        # The journal is not needed: it was played back before the file was found damaged.
        with contextlib.suppress(OSError):
            (folder / FILE).replace(folder / DAMAGED)
        return _connected(folder)


def _connected(folder: Path) -> sqlite3.Connection:
    base = sqlite3.connect(folder / FILE, timeout=_WAIT_S, isolation_level=None)
    try:
        # A transaction ends when its journal is removed. If the removal is not on the disk when the power fails, the
        # journal comes back and undoes a post that the member was told is stored.
        base.execute("pragma synchronous = extra")
        base.execute("pragma secure_delete = on")
        base.execute("pragma temp_store = memory")
        sound = base.execute("pragma quick_check(1)").fetchone()[0]
        if sound != "ok":
            raise _Damaged(sound)
        version = base.execute("pragma user_version").fetchone()[0]
        if version > _VERSION:
            raise HostError("the board was written by a newer version", "install this newer version here")
        if version < _VERSION:
            base.executescript(f"begin immediate; {_TABLES} pragma user_version = {_VERSION}; commit;")
    except BaseException:
        base.close()
        raise
    return base


class _Damaged(sqlite3.DatabaseError):
    """Report that the file of the board's database can be opened, but is damaged."""


def _is_damaged(error: sqlite3.Error) -> bool:
    codes = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
    return isinstance(error, _Damaged) or getattr(error, "sqlite_errorcode", 0) & 0xFF in codes


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock the folder, so that only one process at a time repairs the database."""
    with closed_after(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def _advice(error: sqlite3.Error) -> str:
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return f"the disk may be full: earlier results are kept, and {SENT_AGAIN}"
    return "try again later"


def publish_banner(folder: Path, banner: Banner | None) -> None:
    """Write the banner to a small file that all users can read without a service; None removes the file. Raise
    HostError on failure."""
    try:
        if banner is None:
            (folder / BANNER_FILE).unlink(missing_ok=True)
        else:
            files.replace(folder / BANNER_FILE, files.json_line(to_plain(banner)), 0o644)
    except OSError as error:
        raise HostError(f"the banner cannot be shown: {error.strerror}") from error


def read_banner(folder: Path, owners: frozenset[int]) -> Banner | None:
    """Return the instructor's current banner. Return None if there is no banner, or if its file belongs to a user that
    is not in ``owners``."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        with os.fdopen(os.open(folder / BANNER_FILE, flags), "rb") as file:
            if os.fstat(file.fileno()).st_uid not in owners:
                return None
            data = file.read(_MAX_BANNER_BYTES + 1)
        return from_plain(Banner, parse_object(data)) if len(data) <= _MAX_BANNER_BYTES else None
    except (OSError, ValueError):
        return None
