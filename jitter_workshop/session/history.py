"""Keep the changes that a session made to the host, and the host's first and newest status.

The changes are in ``history.jsonl``, one event in each line. Lines are only added at the end, each by a single system
call. So ``apply`` in another terminal can add lines while a workshop has the session's lock. A user may have edited or
shortened the file. Unreadable lines are left out, and a notice reports them. Two other files have the first and the
newest status.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from jitter_workshop.model.codec import from_plain, parse_object, to_plain
from jitter_workshop.model.descriptor import closed_after
from jitter_workshop.model.status import FORMAT_VERSION, HostEvent, Snapshot
from jitter_workshop.model.text import many
from jitter_workshop.session import files

FILE = "history.jsonl"
FIRST_STATUS = "status-first.json"
LAST_STATUS = "status-last.json"
MAX_BYTES = 64 << 20
MAX_LINE = 1 << 18
"""The largest length of a line in bytes; the agent's journal has the same limit."""


def append(session: Path, events: Sequence[HostEvent]) -> None:
    """Append events to a session's history; they are on the disk when this function returns. Raise SessionError if that
    fails."""
    if not events:
        return
    path = session / FILE
    lines = b"".join(files.json_line({"format_version": FORMAT_VERSION, **to_plain(one)}) for one in events)
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with files.name_os_errors("write", path), closed_after(os.open(path, flags, 0o600)) as handle:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        if status.st_size and os.pread(handle, 1, status.st_size - 1) != b"\n":
            lines = b"\n" + lines  # the file ends within a line
        while lines:
            lines = lines[os.write(handle, lines) :]
        os.fsync(handle)


def read_history(session: Path) -> tuple[tuple[HostEvent, ...], tuple[str, ...]]:
    """Return a session's events, oldest first, and notices for the user about unreadable lines."""
    try:
        with files.open_regular(session / FILE) as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return (), ()
    except OSError as error:
        return (), (f"{FILE} cannot be read: {(error.strerror or 'unreadable').lower()}",)
    notices = [] if len(data) <= MAX_BYTES else [f"{FILE} is too large: only its first {MAX_BYTES >> 20} MiB are read"]
    lines = data[:MAX_BYTES].split(b"\n")
    torn = lines.pop()  # a line without a newline was cut off when its process died
    found, damaged, newer = list[HostEvent](), 0, 0
    for line in lines:
        if not line:
            continue
        try:
            found.append(_event(line))
        except files.NewerVersion:
            newer += 1
        except ValueError:
            damaged += 1
    damaged += bool(torn)
    if damaged:
        notices.append(f"left out: {many(damaged, 'line')} of {FILE} that cannot be read")
    if newer:
        notices.append(f"left out: {many(newer, 'line')} of {FILE} by a newer version")
    # The order is the file's, not that of the times: the clock may have been set back.
    return tuple(found), tuple(notices)


def keep_first(session: Path, snapshot: Snapshot) -> None:
    """Store the host's status at the session's beginning. Do nothing if a first status is stored already. Raise
    SessionError if the status cannot be stored."""
    if not has_first(session):
        files.write_json(session / FIRST_STATUS, to_plain(snapshot))


def has_first(session: Path) -> bool:
    """Return True if a first status was stored, readable or not."""
    return os.path.lexists(session / FIRST_STATUS)


def keep_last(session: Path, snapshot: Snapshot) -> None:
    """Store the host's newest status in place of the one before. Raise SessionError if that fails."""
    files.write_json(session / LAST_STATUS, to_plain(snapshot))


def first(session: Path) -> tuple[Snapshot | None, str]:
    """Return the host's status at the session's beginning, and "". If the status cannot be read, return None and the
    reason.
    """
    return _snapshot(session / FIRST_STATUS, "no status was kept when this session began")


def last(session: Path) -> tuple[Snapshot | None, str]:
    """Return the newest stored status and "", or None and the reason."""
    return _snapshot(session / LAST_STATUS, "no later status was kept")


def _event(line: bytes) -> HostEvent:
    """Return the event in one line. Raise ValueError if the line is damaged. Raise files.NewerVersion if a newer
    version of the workshop wrote the line."""
    if len(line) > MAX_LINE:
        raise ValueError("the line is too long")
    value = parse_object(line)
    if files.is_newer(value, FORMAT_VERSION):
        raise files.NewerVersion
    return from_plain(HostEvent, value)


def _snapshot(path: Path, missing: str) -> tuple[Snapshot | None, str]:
    try:
        if not path.is_file():
            return None, missing
        value = files.read_json(path)
        if files.is_newer(value, FORMAT_VERSION):
            return None, f"{path.name} was written by a newer version"
        return from_plain(Snapshot, value), ""
    except OSError as error:
        return None, f"{path.name} cannot be read: {(error.strerror or 'unreadable').lower()}"
    except ValueError:
        return None, f"{path.name} is damaged"
