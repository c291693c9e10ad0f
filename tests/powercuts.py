"""A disk that loses power: what the agent writes below a made tree is recorded, and every state is computed that a file
system may show after a cut.

Recorded are each making of a file or folder, each write, cut, rename and removal, and each sync, by any caller of the
functions of ``os`` in this process: the agent's own code, and the programs that a test plays (``update-grub``). Data
that is written in another way is found when its file is synced or renamed, and at the end by comparing the whole tree.

Everything since the last sync that covers it is lost, in any combination.

- Contents of a file last once the file is synced. Until then each write may be there, be missing, or be there in part.
  A piece that is missing before a later one reads as zeros.
- Names last once their folder is synced; syncing a file does not keep its name (POSIX; ext4 keeps more).
- A rename happens altogether or not at all. One between two folders may be lost until both are synced.
- Data that is written over in place tears between sectors of 512 bytes. Data that is appended tears between any two
  bytes.
- Everything below /proc and /sys is the kernel's and gone.
- The lock's file holds words for those who wait, which mean nothing after a cut: it is left out.

A file system that keeps more (data=ordered, one journal for all) leaves a part of these states.
"""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

SECTOR = 512
LEFT_OUT = "var/lib/jitter-workshop/lock"
FEW = 6
"""Up to so many pending operations all their combinations are made."""

Kind = Literal["create", "mkdir", "unlink", "rename", "write", "truncate", "sync", "kernel"]
Tree = dict[str, bytes | None]
"""Path below the root → contents; None for a folder."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One change. ``at``: the folder, or the file that is written, cut or synced; ``name`` and ``inode``: what the
    folder gets or loses; ``to``: where a rename leads. ``path`` is for people, and names a file of the kernel's."""

    kind: Kind
    path: str
    at: int = 0
    name: str = ""
    inode: int = 0
    to: tuple[int, str] = (0, "")
    offset: int = 0
    data: bytes = b""

    @property
    def places(self) -> frozenset[int]:
        """Return what has to be synced until it lasts."""
        return frozenset((self.at, self.to[0])) if self.kind == "rename" else frozenset((self.at,))


class Disk:
    """Folders and files by number, as a file system has them."""

    def __init__(self) -> None:
        self.folders: dict[int, dict[str, int]] = {}
        self.files: dict[int, bytes] = {}

    def copy(self) -> Disk:
        other = Disk()
        other.folders = {number: dict(names) for number, names in self.folders.items()}
        other.files = dict(self.files)
        return other

    def do(self, op: Operation) -> None:
        if op.kind == "create":
            self.folders.setdefault(op.at, {})[op.name] = op.inode
            self.files.setdefault(op.inode, b"")
        elif op.kind == "mkdir":
            self.folders.setdefault(op.at, {})[op.name] = op.inode
            self.folders.setdefault(op.inode, {})
        elif op.kind == "unlink":
            self.folders.setdefault(op.at, {}).pop(op.name, None)
        elif op.kind == "rename":
            names = self.folders.setdefault(op.at, {})
            if names.get(op.name) == op.inode:
                del names[op.name]
            self.folders.setdefault(op.to[0], {})[op.to[1]] = op.inode
            if op.inode not in self.folders:
                self.files.setdefault(op.inode, b"")
        elif op.kind == "write":
            old = self.files.get(op.at, b"")
            self.files[op.at] = old[: op.offset].ljust(op.offset, b"\0") + op.data + old[op.offset + len(op.data) :]
        elif op.kind == "truncate":
            self.files[op.at] = self.files.get(op.at, b"")[: op.offset].ljust(op.offset, b"\0")

    def tree(self, top: int) -> Tree:
        found: Tree = {}
        todo = [("", top)]
        while todo:
            path, number = todo.pop()
            for name, inode in self.folders.get(number, {}).items():
                below = f"{path}{name}"
                if inode in self.folders:
                    found[below] = None
                    todo.append((f"{below}/", inode))
                else:
                    found[below] = self.files.get(inode, b"")
        return found


class Killed(BaseException):
    """The process that is recorded has ended where a test wanted it to: nothing of it is done any more."""


class Unmodelled(AssertionError):
    """Something was done to the disk that this model does not know."""


class Recorder:
    """Records while it is entered. ``ops``: everything so far; ``start``: the disk as it was before."""

    def __init__(self, root: Path, lasting: Sequence[str] = ("boot", "etc", "var")) -> None:
        self.root = Path(os.path.realpath(root))
        self.ops: list[Operation] = []
        self.start = Disk()
        self.top = 1
        self._numbers = itertools.count(2)
        self._lasting = frozenset(lasting)
        self._known: dict[tuple[int, int], int] = {}
        self._kernels: dict[tuple[int, int], str] = {}
        self._now = Disk()
        self._undo: list[tuple[str, Any]] = []
        self._dies = -1
        self._look(self.root, self.top)
        self._now = self.start.copy()

    def __enter__(self) -> Recorder:
        self._undo = []
        for name in (
            "open", "write", "pwrite", "ftruncate", "rename", "unlink", "mkdir", "rmdir", "fsync", "fdatasync", "close"
        ):  # fmt: skip
            self._undo.append((name, getattr(os, name)))
            setattr(os, name, getattr(self, f"_{name}"))
        self._undo.append(("replace", os.replace))
        os.replace = self._rename
        for name in ("link", "symlink", "remove", "truncate", "sync", "writev", "pwritev", "sendfile"):
            self._undo.append((name, getattr(os, name)))
            setattr(os, name, self._unknown(name, getattr(os, name)))
        self._really = dict(self._undo)
        return self

    def __exit__(self, *_: object) -> None:
        while self._undo:
            setattr(os, *self._undo.pop())
        self.verify()

    def verify(self) -> None:
        """Everything that is on the tree was recorded. Raise Unmodelled if something was not."""
        shown = read_tree(self.root, self._lasting)
        shown.pop(LEFT_OUT, None)
        told = self._now.tree(self.top)
        wrong = sorted(path for path in shown.keys() | told.keys() if shown.get(path, 0) != told.get(path, 0))
        if wrong:
            raise Unmodelled(f"changed without being recorded: {wrong[:5]}")

    def settled(self) -> None:
        """All that was done so far has reached the disk: an orderly reboot, or half a minute."""
        for number in (*self._now.folders, *self._now.files):
            self._add(Operation("sync", "all", number))

    def killed(self, play: Callable[[], Any], after: int) -> None:
        """Let the process that does ``play`` be killed before its operation after so many; the disk goes on."""
        self._dies = len(self.ops) + after
        try:
            play()
        except Killed:
            pass
        finally:
            self._dies = -1

    def noticed(self, *paths: str) -> None:
        """Record what these files say now, which others wrote: the kernel at its start, GRUB."""
        for path in paths:
            if path.partition("/")[0] in self._lasting:
                self._catch_up(str(self.root / path))
            else:
                self._add(Operation("kernel", path, data=(self.root / path).read_bytes()))

    # Replacements of the functions of ``os`` ------------------------------------------------------------------------

    def _open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        place = self._place(path, dir_fd) if flags & (os.O_CREAT | os.O_TRUNC) else None
        there = place is None or os.path.lexists(place)
        self._alive(place is not None)
        file: int = self._really["open"](path, flags, mode, dir_fd=dir_fd)
        if place is None:
            return file
        if not there:
            number = next(self._numbers)
            status = os.fstat(file)
            self._known[status.st_dev, status.st_ino] = number
            self._add(Operation("create", self._short(place), self._folder(place), os.path.basename(place), number))
        elif flags & os.O_TRUNC and (known := self._number(file)) and self._now.files[known]:
            self._add(Operation("truncate", self._short(place), known, offset=0))
        return file

    def _write(self, file: int, data: Any) -> int:
        self._alive(self._number(file))
        done: int = self._really["write"](file, data)
        self._wrote(file, bytes(data)[:done], lambda: os.lseek(file, 0, os.SEEK_CUR) - done)
        return done

    def _pwrite(self, file: int, data: Any, offset: int) -> int:
        self._alive(self._number(file))
        done: int = self._really["pwrite"](file, data, offset)
        self._wrote(file, bytes(data)[:done], lambda: offset)
        return done

    def _ftruncate(self, file: int, length: int) -> None:
        number = self._number(file)
        self._alive(number)
        self._really["ftruncate"](file, length)
        if number and len(self._now.files[number]) != length:
            self._add(Operation("truncate", self._path_of(file), number, offset=length))

    def _rename(self, src: Any, dst: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
        old, new = self._place(src, src_dir_fd), self._place(dst, dst_dir_fd)
        self._alive(old)
        if old is not None and new is not None:
            self._catch_up(old)
            folder, name = self._folder(old), os.path.basename(old)
            inode = self._now.folders[folder][name]
        self._really["rename"](src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        if old is not None and new is not None:
            to = (self._folder(new), os.path.basename(new))
            self._add(Operation("rename", self._short(new), folder, name, inode, to))

    def _unlink(self, path: Any, *, dir_fd: int | None = None) -> None:
        place = self._place(path, dir_fd)
        self._alive(place)
        self._really["unlink"](path, dir_fd=dir_fd)
        if place is not None:
            self._add(Operation("unlink", self._short(place), self._folder(place), os.path.basename(place)))

    def _mkdir(self, path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        place = self._place(path, dir_fd)
        self._alive(place)
        self._really["mkdir"](path, mode, dir_fd=dir_fd)
        if place is not None:
            number = next(self._numbers)
            status = os.stat(place)
            self._known[status.st_dev, status.st_ino] = number
            self._add(Operation("mkdir", self._short(place), self._folder(place), os.path.basename(place), number))

    def _rmdir(self, path: Any, *, dir_fd: int | None = None) -> None:
        place = self._place(path, dir_fd)
        self._alive(place)
        self._really["rmdir"](path, dir_fd=dir_fd)
        if place is not None:
            self._add(Operation("unlink", self._short(place), self._folder(place), os.path.basename(place)))

    def _fsync(self, file: int) -> None:
        number = self._number(file)
        self._alive(number)
        if number:
            self._catch_up(self._path_of(file, full=True))
            self._add(Operation("sync", self._path_of(file), number))

    _fdatasync = _fsync

    def _close(self, file: int) -> None:
        self._really["close"](file)

    def _unknown(self, name: str, really: Callable[..., Any]) -> Callable[..., Any]:
        def refuse(*args: Any, **named: Any) -> Any:
            if any(isinstance(a, str | os.PathLike) and self._place(a, None) is not None for a in args):
                raise Unmodelled(f"os.{name}{args}")
            return really(*args, **named)

        return refuse

    def _alive(self, recorded: object) -> None:
        """Raise Killed where the process has ended, for what would be recorded."""
        if recorded and 0 <= self._dies <= len(self.ops):
            raise Killed

    # Helpers ---------------------------------------------------------------------------------------------------------

    def _add(self, op: Operation) -> None:
        self._now.do(op)
        self.ops.append(op)

    def _wrote(self, file: int, data: bytes, offset: Callable[[], int]) -> None:
        status = os.fstat(file)
        kernels = self._kernels.get((status.st_dev, status.st_ino))
        if kernels is not None:
            self._add(Operation("kernel", kernels, data=(self.root / kernels).read_bytes()))
        elif number := self._number(file):
            self._add(Operation("write", self._path_of(file), number, offset=offset(), data=data))

    def _catch_up(self, place: str) -> None:
        """Record what was written into a file without ``os.write`` (through a buffer of Python's)."""
        if not os.path.isfile(place):
            return
        status = os.stat(place)
        number, data = self._known[status.st_dev, status.st_ino], Path(place).read_bytes()
        if self._now.files[number] != data:
            if len(self._now.files[number]) > len(data):
                self._add(Operation("truncate", self._short(place), number, offset=0))
            self._add(Operation("write", self._short(place), number, data=data))

    def _place(self, path: Any, dir_fd: int | None) -> str | None:
        """The full path of what lasts, None for everything else."""
        if isinstance(path, int):
            return None
        folder = os.readlink(f"/proc/self/fd/{dir_fd}") if dir_fd is not None else os.getcwd()
        full = os.path.join(folder, os.fspath(path))
        full = os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full))
        if not full.startswith(f"{self.root}/"):
            return None
        short = self._short(full)
        return full if short.partition("/")[0] in self._lasting and short != LEFT_OUT else None

    def _short(self, place: str) -> str:
        return place.removeprefix(f"{self.root}/")

    def _folder(self, place: str) -> int:
        status = os.stat(os.path.dirname(place))
        return self._known[status.st_dev, status.st_ino]

    def _number(self, file: int) -> int:
        status = os.fstat(file)
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            return 0
        return self._known.get((status.st_dev, status.st_ino), 0)

    def _path_of(self, file: int, full: bool = False) -> str:
        place = os.readlink(f"/proc/self/fd/{file}")
        return place if full else self._short(place)

    def _look(self, folder: Path, number: int) -> None:
        status = folder.stat()
        self._known[status.st_dev, status.st_ino] = number
        self.start.folders[number] = {}
        for path in sorted(folder.iterdir()):
            if number == self.top and path.name not in self._lasting:
                for file in (p for p in path.rglob("*") if p.is_file()):
                    status = file.stat()
                    self._kernels[status.st_dev, status.st_ino] = str(file.relative_to(self.root))
                continue
            if str(path.relative_to(self.root)) == LEFT_OUT:
                continue
            inode = self.start.folders[number][path.name] = next(self._numbers)
            if path.is_dir():
                self._look(path, inode)
            else:
                status = path.stat()
                self._known[status.st_dev, status.st_ino] = inode
                self.start.files[inode] = path.read_bytes()


# -- the states -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cut:
    """A state of the disk. ``after``: how many operations had been done; ``lost``: those of them that it does not
    have, ``torn``: the one of which it has a part."""

    after: int
    lost: tuple[Operation, ...]
    torn: str
    tree: Tree

    def __str__(self) -> str:
        names = [f"{op.kind} {op.path}" for op in self.lost]
        lost = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        return f"after {self.after} operations; lost: {lost or 'nothing'}{'; torn: ' + self.torn if self.torn else ''}"


def cuts(recorder: Recorder, few: int = FEW, since: int = 0) -> Iterator[Cut]:
    """Every state after each number of operations from ``since`` on. Not distinct: see ``distinct``."""
    ops = recorder.ops
    base, done = recorder.start.copy(), 0
    for count in range(since, len(ops) + 1):
        lasts = lasting(ops[:count])
        while done < count and lasts[done]:
            base.do(ops[done])
            done += 1
        later = [(n, op) for n, op in enumerate(ops[done:count], start=done) if op.kind not in ("sync", "kernel")]
        pending = [n for n, _ in later if not lasts[n]]
        seen: set[tuple[tuple[int, ...], str]] = set()
        for kept, torn, part in _choices(ops, pending, few):
            key = (kept, f"{torn} {part}")
            if key in seen:
                continue
            seen.add(key)
            disk = base.copy()
            chosen = set(kept)
            for n, op in later:
                if n == torn and part is not None:
                    disk.do(part)
                elif lasts[n] or n in chosen:
                    disk.do(op)
            lost = tuple(ops[n] for n in pending if n not in chosen and n != torn)
            words = f"{ops[torn].path} ({len(part.data)} bytes at {part.offset})" if part is not None else ""
            yield Cut(count, lost, words, disk.tree(recorder.top))


def kills(recorder: Recorder) -> Iterator[tuple[int, Tree, dict[str, bytes]]]:
    """Return what stands after each number of operations where only the process is killed: the disk, and the kernel's
    files that were written."""
    disk, kernel = recorder.start.copy(), dict[str, bytes]()
    yield 0, disk.tree(recorder.top), {}
    for count, op in enumerate(recorder.ops, start=1):
        if op.kind == "kernel":
            kernel[op.path] = op.data
        disk.do(op)
        if op.kind != "sync":
            yield count, disk.tree(recorder.top), dict(kernel)


def lasting(ops: Sequence[Operation]) -> list[bool]:
    """Return True if each of the operations can no longer be lost."""
    waits = [set(op.places) if op.kind not in ("sync", "kernel") else set() for op in ops]
    open_at: dict[int, list[int]] = {}
    for n, op in enumerate(ops):
        if op.kind == "sync":
            for waiting in open_at.pop(op.at, []):
                waits[waiting].discard(op.at)
        else:
            for place in waits[n]:
                open_at.setdefault(place, []).append(n)
    return [not waiting for waiting in waits]


def _choices(
    ops: Sequence[Operation], pending: Sequence[int], few: int
) -> Iterator[tuple[tuple[int, ...], int, Operation | None]]:
    """Return which pending operations are kept, and which one in part: all subsets of a few; of many those that end
    early, lack one, or have one alone. Each write in part, with everything before it, and with everything else."""
    if len(pending) <= few:
        for size in range(len(pending) + 1):
            for kept in itertools.combinations(pending, size):
                yield kept, -1, None
    else:
        for n in range(len(pending) + 1):
            yield tuple(pending[:n]), -1, None
        for one in pending:
            yield tuple(n for n in pending if n != one), -1, None
            yield (one,), -1, None
    for one in pending:
        for part in _parts(ops, one):
            yield tuple(n for n in pending if n < one), one, part
            yield tuple(n for n in pending if n != one), one, part


def _parts(ops: Sequence[Operation], n: int) -> Iterator[Operation]:
    """Return what a cut may leave of one write: its beginning up to a byte that matters, its length without its
    bytes."""
    op = ops[n]
    if op.kind != "write" or len(op.data) < 2:
        return
    if _in_place(ops, n):
        for at in range(SECTOR, len(op.data), SECTOR):
            yield replace(op, data=op.data[:at])
            yield replace(op, data=op.data[at:], offset=op.offset + at)
        return
    for size in {1, len(op.data) // 2, len(op.data) - 1}:
        yield replace(op, data=op.data[:size])
    yield replace(op, data=b"\0" * len(op.data))


def _in_place(ops: Sequence[Operation], n: int) -> bool:
    """Return True if a write goes over the blocks that the file had before all of these."""
    number = ops[n].at
    made = any(op.kind == "create" and op.inode == number for op in ops[:n])
    cut = any(op.kind == "truncate" and op.at == number for op in ops[:n])
    return ops[n].offset == 0 and not made and not cut


# -- on a tree --------------------------------------------------------------------------------------------------------


def read_tree(root: Path, lasting: Iterable[str]) -> Tree:
    """Return what lies below these folders of a tree."""
    found: Tree = {}
    todo = [top for top in lasting if (root / top).is_dir()]
    while todo:
        folder = todo.pop()
        found[folder] = None
        with os.scandir(f"{root}/{folder}") as entries:
            for entry in entries:
                path = f"{folder}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    todo.append(path)
                else:
                    with open(f"{root}/{path}", "rb", buffering=0) as file:  # thousands of times
                        found[path] = file.read()
    return found


def put_tree(root: Path, wanted: Tree, lasting: Iterable[str]) -> None:
    """Make what lies below these folders be ``wanted``."""
    there = read_tree(root, lasting)
    for path in sorted(there.keys() - wanted.keys(), reverse=True):
        (root / path).rmdir() if there[path] is None else (root / path).unlink()
    for path, data in sorted(wanted.items()):
        if there.get(path, b"none") == data and path in there:
            continue
        if data is None:
            (root / path).mkdir(mode=0o755)
        else:
            (root / path).write_bytes(data)
            (root / path).chmod(0o644)


def distinct(states: Iterable[Cut]) -> tuple[int, list[Cut]]:
    """Return how many states there are, and one of each kind."""
    count, found = 0, dict[frozenset[tuple[str, bytes | None]], Cut]()
    for state in states:
        count += 1
        found.setdefault(frozenset(state.tree.items()), state)
    return count, list(found.values())
