"""Write to a host. All writes go through the class ``HostWriter``, and all reads go through ``HostRoot``.

This module does not decide if a write is allowed. Before this module makes a write, the agent's policy has allowed it,
and the journal has announced it. Some writes take effect only after a system program has run. ``Change.then`` names
this program; it is run once after the whole group of writes. ``root`` is ``/``; tests pass the folder of a test tree
instead.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.descriptor import closed_after
from jitter_workshop.model.text import ID, REASON

_WRITE = os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NOCTTY | os.O_NONBLOCK

PROGRAMS: dict[str, tuple[tuple[str, ...], ...]] = {
    "update-grub": (("/usr/sbin/update-grub",), ("/sbin/update-grub",)),
}
"""Name of a follow-up program → commands, each a program and its arguments. The first command whose program exists is
run. No program without a name here can be run."""

WRITTEN = ("/boot/grub", "/boot/grub2", "/boot/loader/entries")
"""Folders into which the follow-up programs, and grubby, write the boot loader's files."""
SETTINGS = ("/etc/default/grub", "/etc/kernel/cmdline")
"""Files outside the boot loader's folders that grubby updates."""


class HostWriter:
    """Write to a host below the folder ``root``. Every method raises the kernel's OSError, and never repeats a failed
    write."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._top = os.path.realpath(root)

    @property
    def real(self) -> bool:
        """Return True for the running machine, False for a tree of test files. System calls and programs are possible
        only on the running machine.
        """
        return self._top == "/"

    @property
    def reader(self) -> HostRoot:
        """Return a reader of the same tree of files. Some writes first need to check that a task or another object
        still exists."""
        return HostRoot(Path(self._top))

    def write(self, path: str, text: str) -> None:
        """Write ``text`` to an existing file with one system call. The kernel expects the whole value of a setting in
        one write.
        """
        with closed_after(os.open(self._place(path), _WRITE)) as file:
            data = text.encode()
            if os.write(file, data or b"\n") < len(data):
                raise OSError(f"{path} accepted only a part of the value")

    def overwrite(self, path: str, data: bytes) -> None:
        """Overwrite the beginning of an existing file in place, and sync the file.

        The file keeps its size, owner, mode and disk blocks. This matters, because a boot loader may write to the
        file's disk blocks directly.
        """
        with closed_after(os.open(self._place(path), _WRITE & ~os.O_TRUNC)) as file:
            if os.pwrite(file, data, 0) < len(data):
                raise OSError(f"only a part of {path} was written")
            os.fsync(file)

    def replace_file(self, path: str, text: str | None) -> None:
        """Replace the content of a file, or remove the file if ``text`` is None.

        The text is written to a temporary file (mode 0644), synced and renamed. The folder is synced afterwards.
        Temporary files of interrupted calls are removed first.
        """
        with self._cleared(path) as (place, name):
            if text is None:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=place)
                return
            temporary = f".{name}.{os.getpid()}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
            file = os.open(temporary, flags, 0o644, dir_fd=place)
            try:
                with os.fdopen(file, "w", encoding="utf-8") as out:
                    os.fchmod(out.fileno(), 0o644)
                    out.write(text)
                    out.flush()
                    os.fsync(out.fileno())
                os.rename(temporary, name, src_dir_fd=place, dst_dir_fd=place)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=place)
                raise

    def remove_unfinished(self, path: str) -> None:
        """Remove the leftovers of a killed ``replace_file`` for this path, and sync the folder.

        After this call, the file's presence or absence is durable.
        """
        with self._cleared(path):
            pass

    @contextlib.contextmanager
    def _cleared(self, path: str) -> Iterator[tuple[int, str]]:
        """Open a file's folder, and yield the folder's descriptor and the file's name.

        At the beginning, leftovers of a killed ``replace_file`` are removed. At the end, the folder is synced, unless
        an error was raised.
        """
        folder, name = os.path.split(self._place(path))
        with closed_after(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as place:
            for other in os.listdir(place):  # noqa: PTH208 - an open folder
                if other.startswith(f".{name}.") and other[len(name) + 2 :].isdecimal():
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(other, dir_fd=place)
            yield place, name
            os.fsync(place)

    def sync_file(self, path: str) -> None:
        """Sync a file and its folder. Do nothing for a file that does not exist or cannot be synced."""
        self._sync(self._top.rstrip("/") + path)
        self.sync_folder(path.rpartition("/")[0] or "/")

    def sync_folder(self, path: str, *, files: bool = False) -> None:
        """Sync a folder. ``files``: True to sync each file in the folder first. Symbolic links are followed; this is
        safe, because no content is written.
        """
        folder = self._top.rstrip("/") + path
        if files:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                for name in sorted(os.listdir(folder)):  # noqa: PTH208 - names are enough
                    self._sync(f"{folder}/{name}", folders=False)
        self._sync(folder)

    def _sync(self, place: str, *, folders: bool = True) -> None:
        """Sync a file or a folder. Skip a path that does not exist or cannot be synced. Raise OSError if the disk
        fails."""
        try:
            file = os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.EROFS):
                return
            raise
        try:
            mode = os.fstat(file).st_mode
            if stat.S_ISREG(mode) or (folders and stat.S_ISDIR(mode)):
                os.fsync(file)
        except OSError as error:
            # A read-only file system, or one that stores nothing, has nothing to sync.
            if error.errno not in (errno.EINVAL, errno.EROFS, errno.ENOTSUP):
                raise
        finally:
            os.close(file)

    def make_folder(self, path: str) -> None:
        """Make one folder, which is a control group."""
        os.mkdir(self._place(path), 0o755)  # noqa: PTH102 - a place below the root

    def remove_folder(self, path: str) -> None:
        """Remove a control group without tasks. ``path``: its folder."""
        os.rmdir(self._place(path))  # noqa: PTH106 - a place below the root

    def set_affinity(self, tid: int, cpus: Iterable[int]) -> None:
        """Call ``sched_setaffinity(2)`` for a task of this machine."""
        self._only_here("sched_setaffinity")
        os.sched_setaffinity(tid, cpus)

    def run(self, program: str, arguments: tuple[str, ...]) -> None:
        """Run a program of the system, given by an absolute path, without the caller's environment.

        Raise OSError with the program's last line of output if the program fails or takes more than two minutes.
        """
        self._only_here(program)
        import subprocess

        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "HOME": "/root"}
        try:
            done = subprocess.run(
                (program, *arguments),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env=environment,
                cwd="/",
                timeout=120,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise OSError(f"{program} took more than two minutes and was stopped") from error
        if done.returncode != 0:
            said = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
            raise OSError(f"{program} failed: {said[-1][:REASON] if said else f'exit code {done.returncode}'}")

    def _only_here(self, what: str) -> None:
        if not self.real:
            raise OSError(f"{what} works only on the running machine, not on a recorded host")

    def _place(self, path: str) -> str:
        """Return the path below ``root`` for a path on the host.

        Raise OSError if the path is not absolute, has the part ``..``, or leads through a symbolic link. Links from
        /sys/class to /sys/devices are allowed.
        """
        if not path.startswith("/") or "\0" in path or ".." in path.split("/"):
            raise OSError(f"this program never writes to this path: {path!r}")
        place = self._top.rstrip("/") + path
        folder = os.path.dirname(place)  # noqa: PTH120 - a string, not a Path
        real = os.path.realpath(folder)
        if real != folder.rstrip("/"):
            # The kernel's own links from a class to its device are the only ones that are followed.
            if not (path.startswith("/sys/class/") and real.startswith(self._top.rstrip("/") + "/sys/devices/")):
                raise OSError(f"the path {path} contains a symbolic link")
            place = f"{real}/{path.rpartition('/')[2]}"
        return place


def run_then(name: str, root: HostRoot, writer: HostWriter) -> None:
    """Run the follow-up program ``name``, and sync the files that it wrote.

    Raise OSError if the name is unknown, if the program is missing or fails, or if the disk fails.
    """
    for program, *arguments in PROGRAMS.get(name, ()):
        if root.head(program, 1) is not None:
            writer.run(program, tuple(arguments))
            sync_written(writer)
            return
    raise OSError(
        f"the program {name} was not found on this host"
        if name in PROGRAMS
        else f"'{name[:ID]}' is not a known command"
    )


def sync_written(writer: HostWriter) -> None:
    """Sync the files that a boot loader's program wrote, and their folders. Raise OSError if the disk fails.

    The system call sync(2) is not used. It would wait for every file system, even for a network file system whose
    server no longer answers.
    """
    for folder in WRITTEN:
        writer.sync_folder(folder, files=True)
    for file in SETTINGS:
        writer.sync_file(file)
