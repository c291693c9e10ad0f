"""List, make, open, choose and remove the sessions of a user."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
from collections.abc import Iterable
from pathlib import Path

from jitter_workshop import paths
from jitter_workshop.errors import SessionError
from jitter_workshop.model.codec import CodecError, from_plain, to_plain
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.session import FORMAT_VERSION, Session
from jitter_workshop.model.text import NAME, PATH, REASON, clean
from jitter_workshop.session import files, ids
from jitter_workshop.session.checked import CheckedRuns
from jitter_workshop.session.opened import (
    RUN_FILE,
    SESSION_FILE,
    OpenSession,
    SessionLock,
    order_ids,
    read_run,
    run_folders,
)

__all__ = ["Damaged", "OpenSession", "SessionStore"]

CURRENT_FILE = "current"


@dataclass(frozen=True, slots=True)
class Damaged:
    """Hold a damaged file: its former path, its new path (None if it could not be renamed), and its fault."""

    file: str
    set_aside_as: str | None
    reason: str


class SessionStore:
    """Manage the sessions below one folder, by default ``$XDG_STATE_HOME/jitter-workshop/sessions``.

    Methods that only read do not create folders. Each error is a SessionError with a message of one sentence.
    """

    def __init__(self, sessions_dir: Path | None = None) -> None:
        self.folder = paths.sessions_dir() if sessions_dir is None else sessions_dir

    def list(self, check_runs: bool = False) -> tuple[tuple[Session, ...], tuple[Damaged, ...]]:
        """Return all sessions, oldest first, and the damaged files. A damaged ``session.json`` is renamed, and a new
        one is made from the session's runs. The new file lacks only the session's name and progress. ``check_runs``:
        True to read each ``run.json``, too. A run that an earlier check found undamaged is not read again unless its
        file has changed.
        """
        checked = CheckedRuns(self.folder) if check_runs else None
        sessions: tuple[Session, ...] = ()
        damaged: tuple[Damaged, ...] = ()
        for ident in self._ids():
            if checked is not None:
                damaged += self._damaged_runs(ident, checked)
            session, problem = self._load(ident)
            if session is not None:
                runs = order_ids(session.runs, run_folders(self.folder / ident))
                sessions += (dataclasses.replace(session, runs=runs),)
            if problem is not None:
                damaged += (problem,)
        if checked is not None:
            checked.keep()
        # Ids only have seconds, so created_at comes first; a text that is not a time sorts anywhere, without harm.
        return tuple(sorted(sessions, key=lambda s: (s.created_at, s.id))), damaged

    def others(self, ident: str) -> tuple[Session, ...]:
        """Return all sessions except ``ident``, without sessions about recorded hosts. The session that was used last
        comes first. A session that cannot be read is left out, and no damaged file is repaired."""
        found = []
        for other in self._ids():
            with contextlib.suppress(OSError, ValueError):
                if other != ident:
                    session = from_plain(Session, files.read_json(self.folder / other / SESSION_FILE))
                    found.append(dataclasses.replace(session, runs=tuple(run_folders(self.folder / other))))
        found = [session for session in found if not session.recorded]
        return tuple(sorted(found, key=lambda session: session.updated_at, reverse=True))

    def create(self, name: str, host: str, *, recorded: bool = False) -> OpenSession:
        """Make a session and open it. The new session becomes the current session, unless it is about a
        recorded host.
        """
        shown = ids.checked_name(name)
        files.make_folder(self.folder)
        moment = ids.now()
        stamp = ids.timestamp(moment)
        ident = ids.free_id(self.folder, moment=moment)
        session = Session(FORMAT_VERSION, ident, shown, clean(host), stamp, stamp, recorded=recorded)
        files.write_folder(self.folder / ident, {SESSION_FILE: files.json_bytes(to_plain(session))})
        opened = self._open(session, ())
        if not recorded:
            self._set_current(session.id)
        return opened

    def open(self, wanted: str) -> OpenSession:
        """Open a session by id, the unique beginning of an id, name (the newest session with it) or ``@1`` (the newest
        session).

        If another workshop has the session open, or the folder cannot be written, the session is opened for reading
        only, and its ``notices`` say so."""
        sessions, damaged = self.list()
        session = _meant(sessions, wanted)
        return self._open(session, tuple(d for d in damaged if f"/{session.id}/" in d.file))

    def current_id(self) -> str | None:
        """Return the id of the current session: the session that was last chosen or made. If this session no longer
        exists, return the id of the newest session that is not about a recorded host. Return None if there is no such
        session.
        """
        try:
            chosen = (self.folder / CURRENT_FILE).read_text("ascii", "replace").strip()[:NAME]
        except OSError:
            chosen = ""
        known = self._ids()
        if chosen in known:
            return chosen
        rehearsals = {session.id for session in self.list()[0] if session.recorded} if known else set()
        return next((ident for ident in reversed(known) if ident not in rehearsals), None)

    def current(self, named: str | None = None) -> OpenSession | None:
        """Open and return a session. ``named``: the name or id from ``--session``; None for the current session. Return
        None if ``named`` is None and there is no session. Raise SessionError if ``named`` names no session."""
        wanted = self.current_id() if named is None else named
        return None if wanted is None else self.open(wanted)

    def current_or_create(self, name: str, host: str) -> OpenSession:
        """Open the current session, or make a first session with this name."""
        return self.current() or self.create(name, host)

    def open_or_create(self, wanted: str, host: str, *, recorded: bool = False) -> OpenSession:
        """Open the session with this id or name (``--session NAME``), or make one with this name (see
        :meth:`create`)."""
        return self.open(wanted) if self.has(wanted) else self.create(wanted, host, recorded=recorded)

    def has(self, wanted: str) -> bool:
        """Return True if a session has the name or id ``wanted``. Return False if no session has it, but a new session
        may get it as a name. ``wanted``: the name or id from ``--session``. Raise SessionError or UsageError if no
        session has it and no new session may get it.
        """
        sessions, _ = self.list()
        try:
            _meant(sessions, wanted)
        except SessionError:
            if wanted.startswith("@") or any(s.id.startswith(wanted) for s in sessions):
                raise
            ids.checked_name(wanted)
            return False
        return True

    def find(self, wanted: str) -> Session:
        """Return a session without opening it. ``wanted``: a name, an id, the beginning of only one id, or a number
        such as ``@1``, the newest session. Raise SessionError if there is no such session."""
        return _meant(self.list()[0], wanted)

    def use(self, wanted: str) -> Session:
        """Make a session the current one."""
        session = self.find(wanted)
        self._set_current(session.id)
        return session

    def remove(self, wanted: str) -> Session:
        """Remove a session with all its runs. Raise SessionError if a workshop has the session open."""
        session = self.find(wanted)
        folder = self.folder / session.id
        lock = SessionLock(folder)
        with files.name_os_errors("remove the session in", folder):
            if not lock.take():
                raise SessionError(f"{lock.holder} has session {session.id} open", "close it first")
            try:
                # Rename first: an interrupted removal must not leave half a session in the list.
                hidden = folder.with_name(f"{files.TEMPORARY_PREFIX}removed-{session.id}")
                folder.rename(hidden)
                shutil.rmtree(hidden)
            finally:
                lock.release()
        return session

    def _ids(self) -> tuple[str, ...]:
        with files.name_os_errors("read the sessions in", self.folder):
            try:
                return tuple(sorted(e.name for e in self.folder.iterdir() if ids.is_folder_id(e.name) and e.is_dir()))
            except FileNotFoundError:
                return ()

    def _damaged_runs(self, ident: str, checked: CheckedRuns) -> tuple[Damaged, ...]:
        damaged: tuple[Damaged, ...] = ()
        runs = f"{self.folder}/{ident}/runs"
        for run in sorted(run_folders(self.folder / ident)):
            name, file = f"{ident}/{run}", f"{runs}/{run}/{RUN_FILE}"
            if checked.is_good(name, file):
                continue
            folder = Path(runs, run)
            try:
                read_run(folder / RUN_FILE, run)
                checked.found_good(name, file)
            except (OSError, files.NewerVersion):
                continue
            except ValueError as error:
                aside = files.set_aside(folder)
                damaged += (Damaged(str(folder), str(aside) if aside else None, clean(error, REASON)),)
        return damaged

    def _load(self, ident: str) -> tuple[Session | None, Damaged | None]:
        path = self.folder / ident / SESSION_FILE
        try:
            value = files.read_json(path)
            session = from_plain(Session, value)
            if session.id != ident:
                raise ValueError("the file belongs to another session")
            return session, None
        except FileNotFoundError:
            if not (path.parent / "runs").is_dir():
                return None, None
            reason = "session.json is missing"
        except OSError as error:
            return None, Damaged(str(path), None, (error.strerror or "cannot be read").lower())
        except CodecError as error:
            if files.is_newer(value, FORMAT_VERSION):
                return None, Damaged(str(path), None, "written by a newer version of the workshop")
            reason = clean(error, REASON)
        except ValueError as error:
            reason = clean(error, REASON)
        return self._rebuild(ident, path, reason)

    def _rebuild(self, ident: str, path: Path, reason: str) -> tuple[Session | None, Damaged | None]:
        folder = path.parent
        lock = SessionLock(folder)
        stamp = ids.timestamp()
        session = Session(FORMAT_VERSION, ident, ident, "", stamp, stamp, runs=tuple(sorted(run_folders(folder))))
        try:
            if not lock.take():
                return session, Damaged(str(path), None, f"{reason}; {lock.holder} has the session open")
            aside = files.set_aside(path) if path.exists() else None
            files.write_json(path, to_plain(session))
        except (OSError, SessionError):
            return session, Damaged(str(path), None, reason)
        finally:
            lock.release()
        return session, Damaged(str(path), str(aside) if aside else None, reason)

    def _open(self, session: Session, damaged: tuple[Damaged, ...]) -> OpenSession:
        folder = self.folder / session.id
        lock, read_only = SessionLock(folder), ""
        if session.format_version > FORMAT_VERSION:
            read_only = f"session {session.id} was written by a newer version, so it is read-only here"
        else:
            try:
                if not lock.take():
                    read_only = f"{lock.holder} has session {session.id} open, so it is read-only here"
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                read_only = f"session {session.id} cannot be written ({reason}), so it is read-only"
        opened = OpenSession(folder, session, lock, read_only)
        for problem in damaged:
            where = f"set aside as {clean(problem.set_aside_as, PATH)}" if problem.set_aside_as else "left where it is"
            opened.notices.append(f"{SESSION_FILE} was damaged ({problem.reason}) and is {where}. All runs are kept")
        return opened

    def _set_current(self, ident: str) -> None:
        files.write_whole(self.folder / CURRENT_FILE, f"{ident}\n".encode())


def _meant(sessions: Iterable[Session], wanted: str) -> Session:
    """Return the session for an id, the unique beginning of an id, a name or ``@1``. Raise SessionError if there is no
    such session."""
    return ids.lookup("session", wanted, sessions, lambda session: session.name, "see 'jitter-workshop sessions'")
