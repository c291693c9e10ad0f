"""All reading of a host goes through one root: ``/``, or a folder that holds a recorded tree.

On ``/`` a reading is an open, a read and a close. A recorded tree is somebody else's data: links in it are followed
inside it only (see ``tree``), only regular files are opened, and nothing is read beyond a limit. A failure is a value
with a reason, never an exception.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from jitter_workshop.host.recorded import FILE_NAME, Recording, parse_recording
from jitter_workshop.host.recorded import MAX_BYTES as RECORDING_BYTES
from jitter_workshop.host.tree import Refused, Tree
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass

MAX_BYTES = 1 << 20
"""What a file may hold before it is refused; /proc/interrupts on hosts with hundreds of CPUs asks for more."""

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY

_REASONS = {
    errno.ENOENT: "no such file",
    errno.ENOTDIR: "no such file",
    errno.EACCES: "not permitted",
    errno.EPERM: "not permitted",
    errno.ELOOP: "links that lead in a circle",
    errno.EISDIR: "a folder, not a file",
    errno.ENAMETOOLONG: "a name that is too long",
    errno.ESRCH: "no such process",
}


@dataclass(frozen=True, slots=True)
class TextReading:
    """What a file says (stripped), or None and why not."""

    text: str | None
    reason: str = ""


def printable(text: str, limit: int = 120) -> str:
    """``text`` on one line without control characters and cut to ``limit``: names from a host are untrusted."""
    words = "".join(c if c.isprintable() else " " for c in text[: limit * 8]).split()
    line = " ".join(words)
    return line if len(line) <= limit else line[: limit - 1] + "…"


class HostRoot:
    """A Linux host below ``root``. Paths are as on the host, ``/proc/stat``; the leading slash may be missing."""

    def __init__(self, root: Path = Path("/")) -> None:
        self.root = root
        self._top = os.path.realpath(root)
        self.recorded: bool = self._top != "/"
        self._tree = Tree(self._top if self.recorded else "")
        self._recording: Recording | None = None
        self._recording_read = False

    def __repr__(self) -> str:
        return f"HostRoot({self._top!r})"

    def text(self, path: str, limit: int = MAX_BYTES) -> str | None:
        """The file's text without surrounding white space and NULs; None when it cannot be read (see ``reading``)."""
        return self.reading(path, limit).text

    def reading(self, path: str, limit: int = MAX_BYTES) -> TextReading:
        """The file's text or the reason why there is none. Bytes that are not UTF-8 are replaced; a file of more than
        ``limit`` bytes is refused, because half a table is worse than none."""
        return self._read(path, limit, whole=True)

    def head(self, path: str, limit: int) -> str | None:
        """The first ``limit`` bytes as text, for files such as /proc/cpuinfo whose every further page is work for the
        kernel (some kernels interrupt each CPU to print it)."""
        return self._read(path, limit, whole=False).text

    def raw(self, path: str, limit: int = MAX_BYTES) -> bytes | None:
        """The file's bytes, for what is compressed; None when it cannot be read or is larger than ``limit``."""
        return self._bytes(path, limit, whole=True)[0]

    def integer(self, path: str) -> int | None:
        """The file's one whole decimal number; None when it holds anything else or cannot be read."""
        return parse_integer(self.text(path))

    def cpu_list(self, path: str) -> CpuSet | None:
        """The file's CPU list; None when it cannot be read or is not a list."""
        text = self.text(path)
        if text is None:
            return None
        try:
            return CpuSet.parse_list(text)
        except ValueError:
            return None

    def list_dir(self, path: str) -> tuple[str, ...]:
        """The sorted names in a folder, () when it is missing or not to be read."""
        try:
            if not self.recorded:
                return tuple(sorted(os.listdir("/" + path.lstrip("/"))))  # noqa: PTH208 - hot path
            looked = self._tree.look(path)
            try:
                folder = os.open(f"/proc/self/fd/{looked}", _READ | os.O_DIRECTORY)
            finally:
                os.close(looked)
            try:
                return tuple(sorted(os.listdir(folder)))  # noqa: PTH208 - a descriptor
            finally:
                os.close(folder)
        except (OSError, ValueError, Refused):
            return ()

    def folders(self, path: str) -> tuple[str, ...]:
        """The sorted names of the folders in a folder, links to folders left out; () when it is not to be read."""
        try:
            if not self.recorded:
                return _folders("/" + path.lstrip("/"))
            looked = self._tree.look(path)
            try:
                return _folders(f"/proc/self/fd/{looked}")
            finally:
                os.close(looked)
        except (OSError, ValueError, Refused):
            return ()

    def numbered(self, path: str, prefix: str, digits: int = 6) -> tuple[tuple[int, str], ...]:
        """The entries ``prefix`` + number of a folder in number order, as (number, full path): cpu0, policy4, …
        Numbers of more than ``digits`` digits are none of these."""
        found: list[tuple[int, str]] = []
        for name in self.list_dir(path):
            number = name.removeprefix(prefix)
            if name.startswith(prefix) and number.isascii() and number.isdigit() and len(number) <= digits:
                found.append((int(number), f"{path.rstrip('/')}/{name}"))
        return tuple(sorted(found))

    def is_dir(self, path: str) -> bool:
        """Whether ``path`` is a folder (links followed)."""
        try:
            if not self.recorded:
                return stat.S_ISDIR(os.stat("/" + path.lstrip("/")).st_mode)  # noqa: PTH116 - hot path
            looked = self._tree.look(path)
            try:
                return stat.S_ISDIR(os.fstat(looked).st_mode)
            finally:
                os.close(looked)
        except (OSError, ValueError, Refused):
            return False

    def writable(self, path: str) -> bool | None:
        """Whether the file's mode lets anybody write it, which is not yet a promise; None where it is missing."""
        try:
            if not self.recorded:
                return os.stat("/" + path.lstrip("/")).st_mode & 0o222 != 0  # noqa: PTH116 - hot path
            os.close(self._tree.look(path))
        except (OSError, ValueError, Refused):
            return None
        return self.recording is None or "/" + path.lstrip("/") not in self.recording.read_only

    @property
    def recording(self) -> Recording | None:
        """What a recorded tree says of itself; None on a live host and for a tree that says nothing."""
        if self.recorded and not self._recording_read:
            self._recording_read = True
            self._recording = parse_recording(self.text(FILE_NAME, RECORDING_BYTES))
        return self._recording

    def _read(self, path: str, limit: int, *, whole: bool) -> TextReading:
        data, reason = self._bytes(path, limit, whole=whole)
        if data is None:
            return TextReading(None, reason)
        return TextReading(data.decode("utf-8", errors="replace").strip(" \t\r\n\f\v\0"))

    def _bytes(self, path: str, limit: int, *, whole: bool) -> tuple[bytes | None, str]:
        """The contents, or None and the reason."""
        status = None
        try:
            if self.recorded:
                looked = self._tree.look(path)
                try:
                    status = os.fstat(looked)
                    if not stat.S_ISREG(status.st_mode):
                        return None, "not a regular file"
                    # Opening what was looked at, by its descriptor, leaves no moment to swap it for a device.
                    file = os.open(f"/proc/self/fd/{looked}", _READ)
                finally:
                    os.close(looked)
            else:
                file = os.open("/" + path.lstrip("/"), _READ)
        except Refused as refusal:
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
    """A whole decimal number with an optional sign, of at most 20 digits; None for anything else."""
    if text is None:
        return None
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 20:
        return None
    return int(text)


def _contents(file: int, limit: int, whole: bool, known: os.stat_result | None) -> tuple[bytes | None, str]:
    """Read an open file. ``known``: its status where it was looked at before and has a size that can be believed."""
    status = os.fstat(file) if known is None else known
    if not stat.S_ISREG(status.st_mode):
        return None, "a folder, not a file" if stat.S_ISDIR(status.st_mode) else "not a regular file"
    too_large = f"larger than {limit} bytes"
    if whole and status.st_size > limit:
        return None, too_large
    # procfs and sysfs hand out at most a page or so a read, whatever is asked for: read on until the end.
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
