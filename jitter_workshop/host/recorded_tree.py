"""Find files in a recorded tree, never outside it, and read the tree's description.

A tree is untrusted data. A link is followed only inside the tree. The target of an absolute link is looked up from the
tree's top. A link whose target is outside the tree is refused. Most paths contain no link, and are opened by one
openat2(2) with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS. Paths with links, and all paths on a kernel without openat2,
are opened component by component.

``record-host`` writes the description, ``RECORDING.json``, at the tree's top. The description can mark a file as not
permitted or as read-only. It cannot add a file to the tree. Invalid entries are ignored.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Callable

from jitter_workshop.model.record import dataclass

FILE_NAME = "RECORDING.json"
FORMAT_VERSION = 1
MAX_RECORDING_BYTES = 8 << 20

_MAX_LINKS = 40
_MAX_COMPONENTS = 256
_LOOK = os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW
_TOP = os.O_PATH | os.O_CLOEXEC | os.O_DIRECTORY

_OPENAT2 = 437
_OPENAT2_MACHINES = ("x86_64", "aarch64", "riscv64", "ppc64le", "ppc64", "s390x", "loongarch64", "armv7l", "i686")
"""The architectures on which the system call openat2(2) has the number that this module uses."""
_RESOLVE_NO_MAGICLINKS, _RESOLVE_NO_SYMLINKS, _RESOLVE_BENEATH = 0x02, 0x04, 0x08

Opener = Callable[[int, str], int]
"""A function that opens a path: (descriptor of a folder, path below the folder) → O_PATH descriptor of the file. It
raises OSError."""


class PathRefused(Exception):
    """Signal that a path in a recorded tree is refused. The message is a reason that can be shown to the user."""


class Tree:
    """Hold a recorded tree. ``top``: the tree's folder, as a path without links."""

    def __init__(self, top: str) -> None:
        self._top = top
        self._descriptor = -1
        self._opener: Opener | None = None
        try:
            self._descriptor = os.open(top, _TOP)
        except OSError:
            return
        self._opener = _find_opener()

    def __del__(self) -> None:
        descriptor, self._descriptor = getattr(self, "_descriptor", -1), -1
        if descriptor >= 0:
            os.close(descriptor)

    def look(self, path: str) -> int:
        """Return an O_PATH descriptor of the file or folder ``path`` in the tree. Links are followed inside the tree.
        The caller must close the descriptor.

        Raise OSError if the path cannot be opened. Raise ValueError if the path is invalid. Raise PathRefused if links
        in the path lead out of the tree or in a circle.
        """
        if self._opener is not None:
            try:
                return self._opener(self._descriptor, path.lstrip("/") or ".")
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ENAMETOOLONG):
                    raise
                if error.errno not in (errno.ELOOP, errno.EXDEV, errno.EAGAIN):
                    # ENOSYS from an old kernel, EPERM from a container's filter: do not try again.
                    self._opener = None
        return self._walk(path)

    def _walk(self, path: str) -> int:
        pending = deque(path.split("/"))
        folders = [os.open(self._top, _TOP)]
        links = steps = 0
        try:
            while pending:
                name = pending.popleft()
                if name in ("", "."):
                    continue
                steps += 1
                if steps > _MAX_COMPONENTS:
                    raise PathRefused("the links lead in a circle")
                if name == "..":
                    if len(folders) == 1:
                        raise PathRefused("the path leads out of the recorded tree")
                    os.close(folders.pop())
                    continue
                found = os.open(name, _LOOK, dir_fd=folders[-1])
                if not stat.S_ISLNK(os.fstat(found).st_mode):
                    folders.append(found)
                    continue
                try:
                    target = os.readlink("", dir_fd=found)
                finally:
                    os.close(found)
                links += 1
                if links > _MAX_LINKS:
                    raise PathRefused("the links lead in a circle")
                if target.startswith("/"):
                    while len(folders) > 1:
                        os.close(folders.pop())
                pending.extendleft(reversed(target.split("/")))
            return folders.pop()
        finally:
            for folder in folders:
                os.close(folder)


def _find_opener() -> Opener | None:
    """Return a function that opens paths with openat2(2); None if openat2 is not available. The returned function uses
    the number of openat2, because C libraries have no function for this system call."""
    if os.uname().machine not in _OPENAT2_MACHINES:
        return None
    try:
        # Imported here because only a recorded tree needs it; the live host's reader starts faster without it.
        import ctypes

        call = ctypes.CDLL(None, use_errno=True).syscall
    except (ImportError, OSError, AttributeError):
        return None
    how = (ctypes.c_uint64 * 3)(
        os.O_PATH | os.O_CLOEXEC, 0, _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS
    )
    call.restype = ctypes.c_long
    call.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t]
    address, size = ctypes.addressof(how), ctypes.sizeof(how)

    # Binding ``how`` to the function keeps its memory alive as long as the function.
    def look(folder: int, path: str, how: object = how) -> int:
        name = os.fsencode(path)
        if b"\0" in name:
            raise ValueError("embedded null byte")
        found = int(call(_OPENAT2, folder, name, address, size))
        if found < 0:
            raise OSError(ctypes.get_errno(), "openat2")
        return found

    return look


@dataclass(frozen=True, slots=True)
class Recording:
    """Hold the part of a recording's description that readers need.

    - ``not_permitted``: files that existed, but could not be read for lack of rights.
    - ``read_only``: files that no user could write on the recorded host. The file modes in the tree do not show this.
    """

    not_permitted: frozenset[str] = frozenset()
    read_only: frozenset[str] = frozenset()


def parse_recording(text: str | None) -> Recording | None:
    """Return the description in the text of RECORDING.json. Return None if the text is missing or does not describe a
    recording."""
    if not text:
        return None
    # Imported here, because only a recorded tree needs this module.
    from jitter_workshop.model.codec import parse_object

    try:
        plain = parse_object(text)
    except ValueError:
        return None
    if not isinstance(plain.get("format_version"), int):
        return None
    return Recording(_paths(plain.get("not_permitted")), _paths(plain.get("read_only")))


def _paths(value: object) -> frozenset[str]:
    return frozenset(v for v in value if isinstance(v, str)) if isinstance(value, list) else frozenset()
