"""Write journal files in the format that ``tuning/journal.py`` describes.

Each write to the host is first recorded in the journal and synced to the disk.
"""

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
from jitter_workshop.model.text import SENTENCE
from jitter_workshop.tuning.journal import (
    FORMAT,
    INTENT,
    JOURNAL_DIR,
    MAX_BYTES,
    MAX_LINE,
    SUFFIX,
    Journal,
    encode_record,
    journal_ids,
    parse_journal,
)

KEPT_DONE = 50
"""Number of closed journals that are kept for reference."""

_APPEND = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class JournalFile:
    """Append records to one journal file during an apply or a restore.

    Raise OSError if a record that a restore needs cannot be written. If any other record cannot be written, only put
    the reason into ``trouble``.

    ``trouble``: the reason of the last such failure; "" if there was none.
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
        """Make a new journal file, sync it to the disk, and return it. The caller holds the host's lock.

        ``isolated``: CPUs that other programs have isolated. ``pid``: the process that asked for the changes. Raise
        HostError on failure; the new file is then removed.
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
                folder.sync_folders()
            except BaseException:
                os.close(file)
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=folder.journal)
                raise
        except OSError as error:
            raise HostError(f"the journal cannot be written: {reason(error)}", "nothing was changed") from error
        return journal

    def intents(self, changes: Sequence[Change]) -> None:
        """Record ``changes`` before they are written to the host, and sync the journal to the disk.

        Raise OSError on failure; no change is recorded then.
        """
        records = [
            {"record": "intent", **{name: getattr(change, name) for name in INTENT}, "boot_id": self._boot_id}
            for change in changes
        ]
        self._append(*records, sync=True)

    def written(self, n: int, read_back: str | None) -> None:
        self._try({"record": "written", "n": n, "read_back": read_back})

    def refused(self, n: int, reason: str) -> None:
        self._try({"record": "refused", "n": n, "reason": reason[:SENTENCE]})

    def undone(self, n: int, how: str) -> None:
        self._try({"record": "undone", "n": n, "how": how})

    def then(self, name: str) -> None:
        self._try({"record": "then", "name": name})

    def owed(self, n: int, why: str) -> None:
        """Record that write ``n`` could not be restored yet. ``why``: the reason."""
        self._try({"record": "owed", "n": n, "why": why[:SENTENCE]})

    def handed(self, n: int, before: str) -> None:
        """Record ``before`` as the value that a later restore of write ``n`` writes.

        Call this if two writes changed the same setting, the earlier one is undone, and write ``n`` remains. ``before``
        is the value that the setting had before the earlier write. Raise OSError on failure.
        """
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
        lines = [encode_record(record) for record in records]
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
    """Return two sequences: the usable journals, oldest first, and a LeftAlone for each unusable journal.

    A usable journal is a pair: the content, and the open file. The caller closes the files. A journal is unusable if
    its file cannot be opened or cannot be trusted.
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
        journal = parse_journal(ident, _bytes(file))
        opened.append((journal, files(file, ident, boot_id, journal.whole)))
    return opened, tuple(refused)


def close_finished(
    folder: StateDir, journals: Sequence[tuple[Journal, JournalFile]], everything: bool
) -> tuple[LeftAlone, ...]:
    """Close all ``journals``, and move the finished ones to the folder ``done``.

    A journal is finished if the host has none of its changes any more. ``done`` contains at most the newest KEPT_DONE
    journals. With ``everything``, finished but damaged journals move to the folder ``damaged``. Return a LeftAlone for
    each journal with a problem that the user must know.
    """
    told: list[LeftAlone] = []
    # The newest first: if this is interrupted, the next restore still reads in the older journals what is restored.
    for journal, file in reversed(journals):
        if file.trouble:
            words = (
                f"the settings were restored, but the journal could not be written ({file.trouble}); the next "
                "'restore' checks these settings again"
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
            rest = f", and {len(journal.problems) - 1} more problems" if len(journal.problems) > 1 else ""
            words = (
                f"the changes in this journal cannot be restored ({journal.problems[0]}{rest}); the journal's "
                f"file is now {kept}"
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
        return "the file has more than one name (hard links)"
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
    """Return the highest journal number in the state folder; 0 without journals. Finished and damaged journals count,
    too."""
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
