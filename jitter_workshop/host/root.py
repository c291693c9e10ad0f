"""Read a host's files below ``/`` or below a recorded tree.

Below ``/``, each reading opens one file, reads this file, and closes it. A recorded tree is untrusted data. Links in
the tree are followed only inside the tree (see ``recorded_tree``). Only regular files are opened, and sizes are
limited. A failed reading returns no value, and never raises an exception.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from jitter_workshop.host.recorded_tree import (
    FILE_NAME,
    MAX_RECORDING_BYTES,
    PathRefused,
    Recording,
    Tree,
    parse_recording,
)
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import ID

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 1 << 20
"""Size in bytes of the largest file that is read. On hosts with hundreds of CPUs /proc/interrupts needs this much."""
_MOST_WORDS = 32
"""The largest number of words that are read from a file."""

_Answer = TypeVar("_Answer")
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY

_REASONS = {
    errno.ENOENT: "no such file",
    errno.ENOTDIR: "no such file",
    errno.EACCES: "not permitted",
    errno.EPERM: "not permitted",
    errno.ELOOP: "the links lead in a circle",
    errno.EISDIR: "a folder, not a file",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ESRCH: "no such process",
}


@dataclass(frozen=True, slots=True)
class TextReading:
    """Hold the text of a file, without white space at its ends. If the file cannot be read, ``text`` is None, and
    ``reason`` has the cause."""

    text: str | None
    reason: str = ""


def printable(text: str, limit: int = 120) -> str:
    """Return ``text`` on one line without control characters, cut to ``limit`` characters. Use it for names from a
    host, which are untrusted."""
    words = "".join(c if c.isprintable() else " " for c in text[: limit * 8]).split()
    line = " ".join(words)
    return line if len(line) <= limit else line[: limit - 1] + "…"


class HostRoot:
    """Read the files of a Linux host below ``root``. Paths are those on the host, such as ``/proc/stat``; the leading
    slash may be missing."""

    def __init__(self, root: Path | str = "/") -> None:
        self._given = root
        self._top = os.path.realpath(root)
        self.recorded: bool = self._top != "/"
        self._tree = Tree(self._top if self.recorded else "")
        self._recording: Recording | None = None
        self._recording_read = False

    def __repr__(self) -> str:
        return f"HostRoot({self._top!r})"

    @property
    def root(self) -> Path:
        """Return the root as it was given."""
        from pathlib import Path  # status of the live host needs no pathlib, which takes as long as 30 settings

        return Path(self._given)

    def text(self, path: str, limit: int = MAX_BYTES) -> str | None:
        """Return the file's text without white space and NULs at its ends. Return None if the file cannot be read;
        :meth:`reading` also gives the reason."""
        return self.reading(path, limit).text

    def reading(self, path: str, limit: int = MAX_BYTES) -> TextReading:
        """Return the file's text, or None with the reason why there is no text.

        Bytes that are not UTF-8 are replaced. A file of more than ``limit`` bytes is refused, because a part of a table
        would give wrong results.
        """
        return self._read(path, limit, whole=True)

    def head(self, path: str, limit: int) -> str | None:
        """Return the text of the first ``limit`` bytes of a file; None if the file cannot be read.

        Use it for files such as /proc/cpuinfo, where each page of text that is read costs the kernel work. Some kernels
        interrupt each CPU to print the page.
        """
        return self._read(path, limit, whole=False).text

    def raw(self, path: str, limit: int = MAX_BYTES) -> bytes | None:
        """Return the bytes of a file, such as a compressed one. Return None if the file cannot be read or is larger
        than ``limit`` bytes."""
        return self._bytes(path, limit, whole=True)[0]

    def integer(self, path: str) -> int | None:
        """Return the whole decimal number that is a file's only content. Return None if the file holds anything else or
        cannot be read."""
        return parse_integer(self.text(path))

    def cpu_list(self, path: str) -> CpuSet | None:
        """Return the CPUs in a file with a CPU list. Return None if the file cannot be read or holds no CPU list."""
        return CpuSet.if_list(self.text(path))

    def cpu_mask(self, path: str) -> CpuSet | None:
        """Return the CPUs in a file with a CPU mask. Return None if the file cannot be read or holds no CPU mask."""
        text = self.text(path)
        try:
            return None if text is None else CpuSet.parse_mask(text)
        except ValueError:
            return None

    def word(self, path: str, limit: int = 40) -> str | None:
        """Return the file's text on one clean line of at most ``limit`` characters; None if it is empty or cannot be
        read."""
        return printable(self.text(path) or "", limit) or None

    def words(self, path: str) -> tuple[str, ...]:
        """Return the first 32 words of the file, each of at most 40 clean characters; () if it cannot be read."""
        return tuple(printable(word, ID) for word in (self.text(path) or "").split()[:_MOST_WORDS])

    def list_dir(self, path: str) -> tuple[str, ...]:
        """Return the sorted names of a folder's entries; () if the folder is missing or cannot be read."""
        return self._about(path, lambda place: tuple(sorted(os.listdir(place))), ())  # noqa: PTH208 - hot path

    def folders(self, path: str) -> tuple[str, ...]:
        """Return the sorted names of the folders in a folder. Links to folders are left out. Return () if the folder
        cannot be read."""
        return self._about(path, _folders, ())

    def numbered(self, path: str, prefix: str, digits: int = 6) -> tuple[tuple[int, str], ...]:
        """Return the entries of a folder whose names are ``prefix`` and a number, such as cpu0 or policy4. Return them
        as (number, full path), in the order of the numbers.

        Entries whose number has more than ``digits`` digits are left out.
        """
        found: list[tuple[int, str]] = []
        for name in self.list_dir(path):
            number = name.removeprefix(prefix)
            if name.startswith(prefix) and number.isascii() and number.isdigit() and len(number) <= digits:
                found.append((int(number), f"{path.rstrip('/')}/{name}"))
        return tuple(sorted(found))

    def is_dir(self, path: str) -> bool:
        """Return True if ``path`` is a folder, or a link to a folder."""
        return self._about(path, os.path.isdir, False)

    def writable(self, path: str) -> bool | None:
        """Return True if the file's mode permits a write by at least one user, False if by none. Return None if the
        file is missing. A write may fail even if the result is True."""
        mode = self._about(path, lambda place: os.stat(place).st_mode, None)  # noqa: PTH116 - hot path
        if mode is None or not self.recorded:
            return None if mode is None else mode & 0o222 != 0
        return self.recording is None or "/" + path.lstrip("/") not in self.recording.read_only

    @property
    def recording(self) -> Recording | None:
        """Return a recorded tree's description. Return None on a live host, and for a tree without a description."""
        if self.recorded and not self._recording_read:
            self._recording_read = True
            self._recording = parse_recording(self.text(FILE_NAME, MAX_RECORDING_BYTES))
        return self._recording

    def _about(self, path: str, ask: Callable[[str], _Answer], nothing: _Answer) -> _Answer:
        """Call ``ask`` with the path of a file or folder of the host, and return the result. In a recorded tree,
        ``ask`` gets a safe path that never leads out of the tree. Return ``nothing`` if the file or folder is missing
        or refused."""
        try:
            if not self.recorded:
                return ask("/" + path.lstrip("/"))
            looked = self._tree.look(path)
            try:
                return ask(f"/proc/self/fd/{looked}")
            finally:
                os.close(looked)
        except (OSError, ValueError, PathRefused):
            return nothing

    def _read(self, path: str, limit: int, *, whole: bool) -> TextReading:
        data, reason = self._bytes(path, limit, whole=whole)
        if data is None:
            return TextReading(None, reason)
        return TextReading(data.decode("utf-8", errors="replace").strip(" \t\r\n\f\v\0"))

    def _bytes(self, path: str, limit: int, *, whole: bool) -> tuple[bytes | None, str]:
        """Return (the contents of a file, ""), or (None, the reason). ``whole``: True refuses a file of more than
        ``limit`` bytes; False returns its first ``limit`` bytes."""
        status = None
        try:
            if self.recorded:
                looked = self._tree.look(path)
                try:
                    status = os.fstat(looked)
                    if not stat.S_ISREG(status.st_mode):
                        return None, "not a regular file"
                    # Open the checked file by its descriptor, so that it cannot be swapped for a device in between.
                    file = os.open(f"/proc/self/fd/{looked}", _READ)
                finally:
                    os.close(looked)
            else:
                file = os.open("/" + path.lstrip("/"), _READ)
        except PathRefused as refusal:
            return None, str(refusal)
        except ValueError:
            return None, "not a file name"
        except OSError as error:
            if self.recorded and self.recording and "/" + path.lstrip("/") in self.recording.not_permitted:
                return None, _REASONS[errno.EACCES]
            return None, _reason(error)
        try:
            return _contents(file, limit, whole, status)
        except OSError as error:
            return None, _reason(error)
        finally:
            os.close(file)


def parse_integer(text: str | None) -> int | None:
    """Return a whole decimal number with at most 20 digits and an optional sign. Return None for any other text."""
    if text is None:
        return None
    return int(text) if is_count(text[1:] if text[:1] in ("-", "+") else text) else None


def line_value(text: str | None, key: str) -> str:
    """Return the text after ``key:`` on the first line that begins with ``key:``; "" if no line does. Only a newline
    ends a line, because a task's name may contain other line separators."""
    for line in (text or "").split("\n"):
        name, colon, value = line.partition(":")
        if colon and name.strip() == key:
            return value.strip()
    return ""


def is_count(word: str) -> bool:
    """Return True if the word is a whole decimal number without a sign, of at most 20 digits."""
    return word.isascii() and word.isdigit() and len(word) <= 20


def _contents(file: int, limit: int, whole: bool, known: os.stat_result | None) -> tuple[bytes | None, str]:
    """Return (the contents of an open file, ""), or (None, the reason).

    ``whole``: True refuses a file of more than ``limit`` bytes; False returns its first ``limit`` bytes. ``known``: the
    file's status, if the caller has read it and its size can be trusted; else None.
    """
    status = os.fstat(file) if known is None else known
    if not stat.S_ISREG(status.st_mode):
        return None, "a folder, not a file" if stat.S_ISDIR(status.st_mode) else "not a regular file"
    too_large = f"larger than {limit} bytes"
    if whole and status.st_size > limit:
        return None, too_large
    # procfs and sysfs return at most about a page for each read, so read on until the end.
    data = os.read(file, min(limit + 1, 65_536))
    if len(data) and (known is None or len(data) != known.st_size) and (whole or len(data) < limit):
        parts = [data]
        have = len(data)
        while have <= limit and (more := os.read(file, min(limit + 1 - have, 1 << 20))):
            parts.append(more)
            have += len(more)
        data = b"".join(parts)
    if len(data) > limit:
        if whole:
            return None, too_large
        data = data[:limit]
    return data, ""


def _folders(path: str) -> tuple[str, ...]:
    with os.scandir(path) as entries:
        return tuple(sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False)))


def _reason(error: OSError) -> str:
    number = error.errno or 0
    return _REASONS.get(number) or f"the kernel says {errno.errorcode.get(number, str(number))}"
