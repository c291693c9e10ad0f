"""Write journals, in the form that ``tuning/journal.py`` describes. The record of an intended write is on the disk
before the write happens."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Sequence
from typing import Any

from jitter_workshop.agent.statedir import DAMAGED, DONE, StateDir, open_or_read
from jitter_workshop.errors import HostError, reason
from jitter_workshop.model.change import Change, LeftAlone
from jitter_workshop.model.descriptor import closed_after
from jitter_workshop.tuning.journal import (
    FORMAT,
    INTENT,
    JOURNAL_DIR,
    MAX_BYTES,
    MAX_LINE,
    SUFFIX,
    Journal,
    encode,
    journal_ids,
    parse,
)

KEPT_DONE = 50
"""Number of closed journals that are kept for reference."""

_APPEND = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class JournalFile:
    """Append to one journal, on behalf of ``apply_changes`` or ``restore``.

    ``trouble``: the reason why a record could not be written; "" if all were written. It is set only for records that
    no restore needs.
    """

    def __init__(self, file: int, ident: str, boot_id: str | None, whole: int) -> None:
        self.id = ident
        self.trouble = ""
        self._file = file
        self._boot_id = boot_id
        self._length = whole
        if os.fstat(file).st_size > whole:
            # A torn last line: the write that it announced never happened.
            with contextlib.suppress(OSError):
                os.ftruncate(file, whole)

    @classmethod
    def create(
        cls,
        folder: StateDir,
        *,
        boot_id: str | None,
        uid: int,
        hot_cpus: Sequence[int],
        wanted: Sequence[str],
        isolated: Sequence[int] = (),
        pid: int | None = None,
    ) -> JournalFile:
        """Begin a journal. The caller holds the host's lock.

        ``isolated``: CPUs that other programs have isolated. ``pid``: the process that asked for the changes. File and
        folder are on the disk when this function returns. Raise HostError on failure; no journal is left behind then.
        """
        now = time.gmtime()
        number = _last_number(folder) + 1
        ident = f"{number:06d}-{time.strftime('%Y%m%dT%H%M%SZ', now)}"
        header = {
            "record": "header",
            "format": FORMAT,
            "id": ident,
            "boot_id": boot_id,
            "uid": uid,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", now),
            "hot_cpus": list(hot_cpus),
            "wanted": list(wanted),
            "isolated": list(isolated),
            "pid": pid,
        }
        name = ident + SUFFIX
        flags = _APPEND | os.O_CREAT | os.O_EXCL
        try:
            file = os.open(name, flags, 0o644, dir_fd=folder.journal)
            try:
                os.fchmod(file, 0o644)
                journal = cls(file, ident, boot_id, 0)
                journal._append(header, sync=True)
                os.fsync(folder.journal)
                folder.settle()
            except BaseException:
                os.close(file)
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=folder.journal)
                raise
        except OSError as error:
            raise HostError(f"the journal cannot be written: {reason(error)}", "nothing was changed") from error
        return journal

    def intents(self, changes: Sequence[Change]) -> None:
        """Record in the journal the writes that will be made. All records are on the disk when this function returns.
        Raise OSError on failure; no write is recorded then."""
        records = [
            {"record": "intent", **{name: getattr(change, name) for name in INTENT}, "boot_id": self._boot_id}
            for change in changes
        ]
        self._append(*records, sync=True)

    def written(self, n: int, read_back: str | None) -> None:
        self._try({"record": "written", "n": n, "read_back": read_back})

    def refused(self, n: int, reason: str) -> None:
        self._try({"record": "refused", "n": n, "reason": reason[:300]})

    def undone(self, n: int, how: str) -> None:
        self._try({"record": "undone", "n": n, "how": how})

    def then(self, name: str) -> None:
        self._try({"record": "then", "name": name})

    def owed(self, n: int, why: str) -> None:
        """Record that the setting of write ``n`` could not be restored yet, with the reason."""
        self._try({"record": "owed", "n": n, "why": why[:300]})

    def handed(self, n: int, before: str) -> None:
        """Record ``before`` as the value that a restore of write ``n`` has to write. This is needed if an earlier write
        to the same setting is undone, but write ``n`` stays: a restore of ``n`` must then write the value from before
        the earlier write. Raise OSError on failure."""
        self._append({"record": "before", "n": n, "before": before}, sync=True)

    def close(self) -> None:
        """Sync and close the file."""
        with contextlib.suppress(OSError):
            os.fdatasync(self._file)
        os.close(self._file)

    def _try(self, record: dict[str, Any]) -> None:
        try:
            self._append(record)
        except OSError as error:
            self.trouble = reason(error)

    def _append(self, *records: dict[str, Any], sync: bool = False) -> None:
        """Append one line for each record. If that fails, nothing is appended. Raise OSError on failure."""
        lines = [encode(record) for record in records]
        data = b"".join(lines)
        if max(map(len, lines), default=0) > MAX_LINE or self._length + len(data) > MAX_BYTES:
            raise OSError("the value is too long for the journal")
        try:
            rest = memoryview(data)
            while rest and (taken := os.write(self._file, rest)):
                rest = rest[taken:]
            if rest:
                raise OSError("the disk is full")
            if sync:
                os.fdatasync(self._file)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._length)
            raise
        self._length += len(data)


def open_journals(
    folder: StateDir, boot_id: str | None, files: type[JournalFile] = JournalFile
) -> tuple[list[tuple[Journal, JournalFile]], tuple[LeftAlone, ...]]:
    """Return a pair: every open journal with its open file, oldest first, and a reason for each journal that cannot be
    trusted or read.

    The caller closes the files. An open journal is one whose changes may still be in place.
    """
    opened: list[tuple[Journal, JournalFile]] = []
    refused: list[LeftAlone] = []
    for ident in journal_ids(os.listdir(folder.journal)):  # noqa: PTH208 - a descriptor
        name = ident + SUFFIX
        path = f"{JOURNAL_DIR}/{name}"
        try:
            file = open_or_read(name, folder.journal, _APPEND)
        except OSError as error:
            refused.append(
                LeftAlone(
                    "journal",
                    path,
                    "",
                    None,
                    f"this journal was not used, because it cannot be opened: {reason(error)}",
                )
            )
            continue
        why = _not_ours(file, folder.owner)
        if why:
            os.close(file)
            refused.append(LeftAlone("journal", path, "", None, f"this journal was not used: {why}"))
            continue
        journal = parse(ident, _bytes(file))
        opened.append((journal, files(file, ident, boot_id, journal.whole)))
    return opened, tuple(refused)


def close_finished(
    folder: StateDir, journals: Sequence[tuple[Journal, JournalFile]], everything: bool
) -> tuple[LeftAlone, ...]:
    """Close all files, and move the journals whose changes are no longer in place to the folder ``done``.

    ``everything``: True if the restore was to cover all changes. Then damaged journals move to a folder of their own
    and are reported. Otherwise damaged journals stay. In ``done`` only the newest KEPT_DONE journals are kept.

    The newest journal is moved first. If the moving is interrupted, the older journals are still in their folder, and
    the next restore reads in them which of their writes are already restored.
    """
    told: list[LeftAlone] = []
    for journal, file in reversed(journals):
        if file.trouble:
            words = (
                f"the restore was done, but could not be recorded ({file.trouble}); the next 'restore' checks "
                "these settings again"
            )
            told.append(LeftAlone("journal", f"{JOURNAL_DIR}/{journal.id}{SUFFIX}", "", None, words))
        file.close()
        finished = not journal.active and not journal.due
        name = journal.id + SUFFIX
        if journal.problems and not everything:
            continue
        if journal.problems:
            kept = f"{JOURNAL_DIR}/{name}"
            if finished and _put_away(folder, name, DAMAGED):
                kept = f"{JOURNAL_DIR}/{DAMAGED}/{name}"
            rest = f" (and {len(journal.problems) - 1} more)" if len(journal.problems) > 1 else ""
            words = (
                f"{journal.problems[0]}{rest}; the changes in this journal cannot be restored; the journal is kept "
                f"as {kept}"
            )
            told.append(LeftAlone("journal", f"{JOURNAL_DIR}/{name}", "", None, words))
        elif finished:
            _put_away(folder, name, DONE)
    _prune(folder)
    return tuple(reversed(told))


def _not_ours(file: int, owner: int) -> str:
    """Return the reason why an open file is not a journal of ours; "" if it is one."""
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        return "the file is not a regular file"
    if status.st_uid != owner:
        return f"the file belongs to user {status.st_uid}, not to root"
    if stat.S_IMODE(status.st_mode) & 0o022:
        return "users other than root can write to the file"
    if status.st_nlink != 1:
        return "the file has a second name (a hard link)"
    if status.st_size > MAX_BYTES:
        return f"the file is larger than {MAX_BYTES} bytes"
    return ""


def _bytes(file: int) -> bytes:
    parts = []
    offset = 0
    while more := os.pread(file, 1 << 20, offset):
        parts.append(more)
        offset += len(more)
    return b"".join(parts)


def _last_number(folder: StateDir) -> int:
    """Return the highest number of the journals in the state folder, finished and damaged journals included; 0 if there
    are none."""
    last = 0
    for descriptor in _folders(folder):
        for ident in journal_ids(os.listdir(descriptor)):  # noqa: PTH208 - a descriptor
            last = max(last, int(ident[:6]))
        if descriptor != folder.journal:
            os.close(descriptor)
    return last


def _folders(folder: StateDir) -> list[int]:
    found = [folder.journal]
    for name in (DONE, DAMAGED):
        with contextlib.suppress(FileNotFoundError):
            os.stat(name, dir_fd=folder.journal, follow_symlinks=False)
            found.append(folder.subfolder(name))
    return found


def _put_away(folder: StateDir, name: str, where: str) -> bool:
    """Move a journal to the subfolder ``where``. Return False if that fails; the journal then stays."""
    try:
        with closed_after(folder.subfolder(where)) as place:
            os.rename(name, name, src_dir_fd=folder.journal, dst_dir_fd=place)
            os.fsync(place)
        os.fsync(folder.journal)
    except (OSError, HostError):
        return False
    return True


def _prune(folder: StateDir) -> None:
    with contextlib.suppress(OSError, HostError), closed_after(folder.subfolder(DONE)) as place:
        for ident in journal_ids(os.listdir(place))[:-KEPT_DONE]:  # noqa: PTH208 - a descriptor
            os.unlink(ident + SUFFIX, dir_fd=place)
