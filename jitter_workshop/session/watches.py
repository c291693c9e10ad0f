"""Keep watches on disk: each watch has a folder with a journal and frozen traces.

A frozen trace is the kernel's trace around a stall, stored soon after the stall. A journal is a file of JSON lines. The
journal stays readable if the watch's process is killed, or if the disk is full. Disk space is reserved in advance, so
that a line can be written even on a full disk. The reserved space contains zeros, and a reader stops at the first zero.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jitter_workshop import paths
from jitter_workshop.errors import SessionError, reason
from jitter_workshop.model.codec import parse_object
from jitter_workshop.model.text import NAME, PATH, clean
from jitter_workshop.session import files, ids, traces
from jitter_workshop.session.traces import RunTrace

NO_WATCH = "not the folder of a watch"
JOURNAL = "journal.jsonl"
RESERVED = 1 << 20
"""The number of bytes by which the reserved room grows."""
FOR_THE_END = 64 << 10
"""Bytes of the reserved room that only the last lines may use."""
MOST_BYTES = 64 << 20
"""From this size on, a journal gets only its last lines: a storm of stalls must not fill the disk."""
_MOST_LINE = 256 << 10
_TRACE_NAME = re.compile(r"stall-[0-9]{5,9}\.trace")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def watches_dir() -> Path:
    """Return the folder that contains a folder for each watch."""
    return paths.state_dir() / "watches"


def new_folder(top: Path | None = None) -> Path:
    """Make the folder of a new watch below ``top`` (None: the usual place). Raise SessionError on failure."""
    above = top or watches_dir()
    files.make_folder(above)
    folder = above / ids.free_id(above)
    with files.name_os_errors("make the folder", folder):
        folder.mkdir(mode=0o700)
    return folder


class WatchJournal:
    """Write a watch's journal. ``unwritten``: the number of lines that could not be written, for example because the
    disk is full."""

    def __init__(self, folder: Path) -> None:
        """Make the journal's file, and reserve its first space on the disk. Raise SessionError if that fails: without
        a journal, hours of watching could be lost.
        """
        self.path = folder / JOURNAL
        self.unwritten = 0
        self._end = self._reserved = 0
        with files.name_os_errors("write", self.path):
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                self._reserve()
                files.sync_folder(folder)
            except OSError:
                os.close(self._file)
                raise

    def add(self, entry: dict[str, Any], *, last: bool = False) -> None:
        """Append ``entry`` as a line, and wait until the line is on the disk. If the line cannot be written, count it
        in ``unwritten``. ``last``: True to use the space that is reserved for the last lines."""
        line = files.json_line(entry)
        if self._reserved - self._end < len(line) + RESERVED // 2:
            with contextlib.suppress(OSError):
                self._reserve()
        free = self._reserved - self._end - (0 if last else FOR_THE_END)
        if len(line) > min(free, _MOST_LINE) or (self._end > MOST_BYTES and not last):
            self.unwritten += 1
            return
        try:
            if os.pwrite(self._file, line, self._end) < len(line):
                raise OSError(errno.ENOSPC, "no room")
            self._end += len(line)
            os.fdatasync(self._file)
        except OSError:
            self.unwritten += 1

    def close(self) -> None:
        """Shorten the file to the part that was written, and close the file."""
        if self._file >= 0:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._end)
                os.fsync(self._file)
            os.close(self._file)
            self._file = -1

    def _reserve(self) -> None:
        os.posix_fallocate(self._file, self._reserved, RESERVED)
        self._reserved += RESERVED


def read_journal(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the entries of a journal, in order. A line that is cut off or damaged is left out. Raise SessionError for a
    file that cannot be read."""
    path = folder / JOURNAL
    with files.name_os_errors("read", path, advice="name the folder of a watch"), files.open_regular(path) as file:
        while line := file.readline(_MOST_LINE + 1):
            if line.startswith(b"\0"):
                return
            with contextlib.suppress(ValueError):
                yield parse_object(line)


def write_trace(folder: Path, name: str, trace: RunTrace) -> str:
    """Write a frozen trace. Return "", or the reason why it could not be written."""
    content = io.BytesIO()
    traces.write_run_trace(content, trace)
    try:
        files.replace(folder / name, content.getvalue(), 0o600)
    except OSError as error:
        return "the disk is full" if error.errno in _FULL else (error.strerror or str(error)).lower()
    return ""


def read_trace(folder: Path, name: str) -> RunTrace | None:
    """Return a frozen trace; None if the file does not exist. Raise SessionError if the file is damaged or unreadable,
    or if the name is not that of a frozen trace. The name is checked, because a stranger may have written the journal
    that contains it.
    """
    if not _TRACE_NAME.fullmatch(name):
        raise SessionError(f"{clean(name, NAME)} is not the name of a frozen trace")
    path = folder / name
    try:
        with files.open_regular(path) as file:
            return traces.read_run_trace(file)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SessionError(f"cannot read {clean(path, PATH)}: {reason(error)}") from error
    except SessionError as error:
        advice = "move this file away to read the other traces"
        raise SessionError(f"{clean(path, PATH)}: {error.message}", advice) from error


def remove_trace(folder: Path, name: str) -> None:
    """Remove a frozen trace that is no longer kept."""
    with contextlib.suppress(OSError):
        (folder / name).unlink()


def remove_watch(folder: Path) -> None:
    """Remove a watch's journal, and its folder if the folder is then empty."""
    with contextlib.suppress(OSError):
        (folder / JOURNAL).unlink()
        folder.rmdir()


def check_folder(folder: Path) -> None:
    """Raise SessionError if a folder is not the folder of a watch."""
    if not (folder / JOURNAL).is_file():
        raise SessionError(f"{folder} is {NO_WATCH}", f"see {watches_dir()}")
