"""Record a host: copy the files that this tool reads into a folder.

A recording holds only files that this tool's reading functions need. These functions get the same data from the
recording as from the host. The module ``recording_filter`` decides which contents may be saved.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from jitter_workshop.errors import HostError
from jitter_workshop.host.recorded_tree import FILE_NAME, FORMAT_VERSION
from jitter_workshop.host.recording.recording_filter import Scrubber
from jitter_workshop.host.root import MAX_BYTES, HostRoot
from jitter_workshop.host.tasks.listing import parse_task_stat
from jitter_workshop.model.descriptor import closed_after
from jitter_workshop.model.record import dataclass

MAX_TOTAL_BYTES = 512 << 20
_MAX_FILES = 400_000
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CHANGED = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ)
"""Error numbers that do not stop a recording. They come from a host that changed while it was read (a file became a
folder), or from file names that the target cannot have."""


@dataclass(frozen=True, slots=True)
class RecordingReport:
    """Report which files a recording has.

    - ``left_out``: files that were read, but must not be in a recording.
    - ``not_permitted``: files that could not be read for lack of rights.
    - ``too_large``: files that are larger than the limit of the function that reads them.
    - ``changed``: files that could not be written into the recording, because the host changed during the recording.
    """

    folder: str
    files: int
    bytes: int
    left_out: tuple[str, ...]
    not_permitted: tuple[str, ...]
    too_large: tuple[str, ...]
    changed: tuple[str, ...]


class RecordingRoot(HostRoot):
    """Read a host like ``HostRoot``, and keep each requested path with its contents."""

    def __init__(self, root: Path = Path("/")) -> None:
        super().__init__(root)
        self.files: dict[str, bytes] = {}
        self.folders_seen: dict[str, tuple[str, ...]] = {}
        self.refused: dict[str, str] = {}
        self.read_only: set[str] = set()

    def list_dir(self, path: str) -> tuple[str, ...]:
        names = super().list_dir(path)
        self._note_folder(path, names)
        return names

    def folders(self, path: str) -> tuple[str, ...]:
        names = super().folders(path)
        self._note_folder(path, names)
        return names

    def is_dir(self, path: str) -> bool:
        found = super().is_dir(path)
        if found:
            self.folders_seen.setdefault(_normal(path), ())
        return found

    def writable(self, path: str) -> bool | None:
        found = super().writable(path)
        if found is False:
            self.read_only.add(_normal(path))
        if found is not None:
            # The file must exist in the recording to be asked about.
            self._bytes(path, MAX_BYTES, whole=True)
        return found

    def _bytes(self, path: str, limit: int, *, whole: bool) -> tuple[bytes | None, str]:
        data, reason = super()._bytes(path, limit, whole=whole)
        name = _normal(path)
        if data is not None:
            if whole or len(data) >= len(self.files.get(name, b"")):
                self.files[name] = data
            self.refused.pop(name, None)
        elif name not in self.files:
            self.refused[name] = reason
        return data, reason

    def _note_folder(self, path: str, names: tuple[str, ...]) -> None:
        if names or super().is_dir(path):
            key = _normal(path)
            self.folders_seen[key] = tuple(dict.fromkeys((*self.folders_seen.get(key, ()), *names)))

    def peek(self, path: str) -> bytes | None:
        """Return a file's bytes without noting the file for the recording."""
        return super()._bytes(path, MAX_BYTES, whole=True)[0]

    def peek_is_dir(self, path: str) -> bool:
        """Return True if the path is a folder, without noting the folder for the recording."""
        return super().is_dir(path)


def write_recording(
    root: RecordingRoot, target: Path, facts: dict[str, object], scrubber: Scrubber | None = None
) -> RecordingReport:
    """Write all files that ``root`` noted into a folder, and return a report. Raise HostError if the folder cannot be
    used, or if nothing was read. After any other failure the files that were already written are removed. If they
    cannot be removed, the error says so.

    - ``target``: the folder; it must be empty or not exist yet.
    - ``facts``: fields for ``RECORDING.json``. This file is written last, so a folder without it is no complete
      recording.
    - ``scrubber``: removes private data; None: a new one.
    """
    cleaner = scrubber if scrubber is not None else Scrubber()
    if not root.files:
        raise HostError(f"nothing can be read below {root.root}", "give the folder of a host, or of a recording")
    made = _take(target)
    try:
        return _write_all(root, target, facts, cleaner)
    except BaseException as error:
        left = _remove(target, folder_too=made)
        if not isinstance(error, OSError):
            raise
        why, advice = "could not be written", "nothing was kept: free some space, or name another folder"
        if left:
            why, advice = "is incomplete", f"remove the remaining files in {target} yourself"
        raise HostError(f"the recording {why} ({error.strerror or error})", advice) from error


def _take(target: Path) -> bool:
    """Make the folder ``target``, or check that it is empty. Return True if this call made the folder."""
    try:
        os.mkdir(target, 0o777)  # noqa: PTH102 - pathlib would follow a link made meanwhile
        return True
    except FileExistsError:
        pass
    except OSError as error:
        raise HostError(
            f"cannot make {target}: {error.strerror or error}", "name a folder where you may write"
        ) from error
    try:
        kind = target.lstat().st_mode
        if not stat.S_ISDIR(kind) or any(target.iterdir()):
            what = "is not empty" if stat.S_ISDIR(kind) else "exists and is not a folder"
            raise HostError(f"{target} {what}", "name a folder that does not exist yet (nothing was written)")
    except OSError as error:
        raise HostError(f"cannot look into {target}: {error.strerror or error}", "name another folder") from error
    return False


def _write_all(root: RecordingRoot, target: Path, facts: dict[str, object], cleaner: Scrubber) -> RecordingReport:
    _find_kernel_threads(root, cleaner)
    left_out: list[str] = []
    kept: dict[str, bytes] = {}
    for path, data in root.files.items():
        where, clean = cleaner.path(path), cleaner.contents(path, data)
        if where is None or clean is None:
            left_out.append(path)
        else:
            kept[where] = clean
    total = sum(map(len, kept.values()))
    if total > MAX_TOTAL_BYTES or len(kept) > _MAX_FILES:
        raise HostError(f"this host shows {len(kept)} files with {total >> 20} MiB, more than a recording may hold")
    folders = set(_folders(root, cleaner, kept))
    with closed_after(os.open(target, _FOLDER)) as top:
        changed = _write_tree(top, kept, folders)
        not_permitted = sorted(
            where
            for path, reason in root.refused.items()
            if reason == "not permitted" and (where := cleaner.path(path)) is not None
        )
        read_only = sorted(where for path in root.read_only if (where := cleaner.path(path)) is not None)
        plain = {"format_version": FORMAT_VERSION, **facts, "not_permitted": not_permitted, "read_only": read_only}
        _write_file(top, FILE_NAME, (json.dumps(plain, indent=1) + "\n").encode())
        os.fsync(top)
    return RecordingReport(
        folder=str(target),
        files=len(kept) - len(changed),
        bytes=total,
        left_out=tuple(sorted(left_out)),
        not_permitted=tuple(not_permitted),
        too_large=tuple(sorted(path for path, why in root.refused.items() if why.startswith("larger than"))),
        changed=tuple(changed),
    )


def _folders(root: RecordingRoot, cleaner: Scrubber, kept: dict[str, bytes]) -> Iterator[str]:
    """Yield each folder that was listed when the host was read, and its subfolders.

    A listed file that was never read is added to ``kept`` as an empty file. A reading function may need to know that
    the file exists. Files in /proc and /sys are not added.
    """
    for folder, names in root.folders_seen.items():
        where = cleaner.path(folder)
        if where is None:
            continue
        yield where
        for name in names:
            path = f"{folder.rstrip('/')}/{name}"
            inside = cleaner.path(path)
            if inside is None or inside in kept or not cleaner.listed(folder, name):
                continue
            if root.peek_is_dir(path):
                yield inside
            elif not inside.startswith(("/proc/", "/sys/")) and cleaner.contents(path, b"") is not None:
                kept[inside] = b""


def _find_kernel_threads(root: RecordingRoot, cleaner: Scrubber) -> None:
    """Note in ``cleaner`` which recorded tasks are kernel threads. The names of kernel threads may be kept, because
    they describe work and not people."""
    tasks = {"/".join(path.split("/")[:3]) for path in root.files if path.startswith("/proc/")}
    for folder in tasks:
        if folder.removeprefix("/proc/").isdigit():
            data = root.files.get(f"{folder}/stat") or root.peek(f"{folder}/stat") or b""
            task = parse_task_stat(data.decode("utf-8", errors="replace").strip())
            if task is not None and task.kernel:
                cleaner.kernel_threads.add(folder)


def _write_tree(top: int, kept: dict[str, bytes], folders: set[str]) -> list[str]:
    """Write folders and files below ``top``. ``kept``: path → content. Return the paths that could not be written,
    because the host changed while it was read."""
    by_folder: dict[str, list[str]] = {folder: [] for folder in folders}
    for path in kept:
        by_folder.setdefault(path.rpartition("/")[0] or "/", []).append(path)
    changed: list[str] = []
    for folder, paths in sorted(by_folder.items()):
        try:
            descriptor = _open_folder(top, folder)
        except OSError as error:
            if error.errno not in _CHANGED:
                raise
            changed.extend(paths)
            continue
        with closed_after(descriptor):
            for path in sorted(paths):
                try:
                    _write_file(descriptor, path.rpartition("/")[2], kept[path])
                except OSError as error:
                    if error.errno not in _CHANGED:
                        raise
                    changed.append(path)
    return changed


def _open_folder(top: int, folder: str) -> int:
    """Return a descriptor of the folder below ``top``; make the folder if it is missing. A link with the folder's name
    is not followed."""
    current = os.dup(top)
    for name in folder.split("/"):
        if not name:
            continue
        with closed_after(current):
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o777, dir_fd=current)
            current = os.open(name, _FOLDER, dir_fd=current)
    return current


def _write_file(folder: int, name: str, data: bytes) -> None:
    with closed_after(os.open(name, _NEW_FILE, 0o666, dir_fd=folder)) as file:
        view = memoryview(data)
        while view:
            view = view[os.write(file, view) :]


def _remove(target: Path, *, folder_too: bool) -> bool:
    """Remove everything in ``target``, and ``target`` itself if ``folder_too``. Return True if something could not be
    removed."""
    try:
        if folder_too:
            shutil.rmtree(target)
        else:
            for entry in target.iterdir():
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry)
                else:
                    entry.unlink()
    except OSError:
        return True
    return False


def _normal(path: str) -> str:
    return "/" + "/".join(name for name in path.split("/") if name not in ("", "."))
