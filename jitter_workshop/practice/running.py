"""Give each running machine of this user a locked folder in the cache.

The process that owns the machine locks the folder. The kernel releases the lock when the owner ends, even if the owner
is killed. QEMU ends with its owner. So a folder without a lock belongs to a killed owner, and the next start removes
the folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from jitter_workshop.errors import HostError, reason
from jitter_workshop.paths import state_dir
from jitter_workshop.practice.room import MAKE_ROOM

FOLDER = "running"
OWNER = "owner.json"
RESETS = "resets"
"""The file with the number of a machine's resets, in the machine's folder; only a machine that can be reset has this
file."""
RESET_SIGNAL = signal.SIGUSR1
LAST_LOG = "last.log"
"""The console of the machine that ended last, in the cache."""
STOP_S = 10.0
RESET_S = 240.0
"""Time limit in seconds for a reset. If the saved machine does not start, a new boot takes a minute on a busy host."""
_STEP_S = 0.05


@dataclass(frozen=True)
class Owner:
    """Hold the process that has a machine. ``since``: seconds since the epoch."""

    shape: str
    pid: int
    since: float


def keep_log(own: Path, cache: Path) -> None:
    """Copy a machine's console to ``LAST_LOG``. The next start of the machine would overwrite the console. Errors are
    ignored."""
    with contextlib.suppress(OSError):
        shutil.copyfile(own / "console", cache / LAST_LOG)


@contextlib.contextmanager
def folder(shape: str, cache: Path) -> Iterator[Path]:
    """Yield a new folder for a machine, and remove the folder at the end. Before that, the machine's console is copied
    to ``LAST_LOG`` in the cache. Raise HostError if the folder cannot be made."""
    place = cache / FOLDER
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        remove_dead_folders(cache)
        own = Path(tempfile.mkdtemp(prefix=f"{shape}-", dir=place))
        lock = os.open(own / OWNER, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.write(lock, json.dumps(asdict(Owner(shape, os.getpid(), time.time()))).encode())
    except OSError as error:
        raise HostError(f"no machine can be started in {place}: {reason(error)}", MAKE_ROOM) from error
    try:
        yield own
    finally:
        with contextlib.suppress(OSError):
            (own / "console").replace(cache / LAST_LOG)
        shutil.rmtree(own, ignore_errors=True)
        os.close(lock)


def kept_folder(shape: str) -> Path:
    """Return the path of this host's folder for files that outlast a machine of this shape."""
    return state_dir() / "practice" / shape


def owners_of_machines(cache: Path) -> list[Owner]:
    """Return the owners of the machines that run now, the oldest first."""
    found = [owner for _, owner in _each(cache) if owner is not None]
    return sorted(found, key=lambda owner: owner.since)


def remove_dead_folders(cache: Path) -> int:
    """Remove the folders of killed owners, and return their number."""
    left = [own for own, owner in _each(cache) if owner is None]
    for own in left:
        shutil.rmtree(own, ignore_errors=True)
    return len(left)


def stop(cache: Path, shape: str = "") -> tuple[list[Owner], list[Owner]]:
    """Ask each process that runs a machine of this shape to end. ``shape``: "" means all shapes. Wait for at most
    STOP_S seconds. Return two lists: the processes that have ended, and those that still run."""
    asked = [owner for owner in owners_of_machines(cache) if shape in ("", owner.shape)]
    for owner in asked:
        with contextlib.suppress(ProcessLookupError):
            os.kill(owner.pid, signal.SIGTERM)
    ends = time.monotonic() + STOP_S
    while True:
        going = [owner for owner in owners_of_machines(cache) if owner in asked]
        if not going or time.monotonic() > ends:
            return [owner for owner in asked if owner not in going], going
        time.sleep(_STEP_S)


def ask_for_reset(cache: Path, shape: str = "") -> tuple[list[Owner], list[Owner]]:
    """Ask the processes that run machines of this shape to reset their machines; "" means all shapes. Return two lists:
    the processes that reset their machines within RESET_S seconds, and the others. A process cannot reset its machine
    while a command without a terminal runs in the machine."""
    asked: list[tuple[Path, Owner, int]] = []
    others: list[Owner] = []
    for own, owner in _each(cache):
        if owner is not None and shape in ("", owner.shape):
            count = resets(own)
            if count is None:
                others.append(owner)
                continue
            with contextlib.suppress(ProcessLookupError):
                os.kill(owner.pid, RESET_SIGNAL)
            asked.append((own, owner, count))
    done: list[Owner] = []
    ends = time.monotonic() + RESET_S
    while asked and time.monotonic() < ends:
        for one in list(asked):
            own, owner, count = one
            now = resets(own)
            if now != count:
                asked.remove(one)
                (others if now is None else done).append(owner)
        time.sleep(_STEP_S)
    return done, others + [owner for _, owner, _ in asked]


def resets(own: Path) -> int | None:
    """Return how often the machine of this folder was reset; None if this machine cannot be reset, or has ended."""
    try:
        return int((own / RESETS).read_text())
    except (OSError, ValueError):
        return None


def count_reset(own: Path) -> None:
    """Count a start of a machine that can be reset. At the first start, the count of resets becomes 0. Each later start
    adds 1."""
    before = resets(own)
    made = own / f"{RESETS}.new"
    made.write_text(str(0 if before is None else before + 1))
    made.replace(own / RESETS)


def _each(cache: Path) -> Iterator[tuple[Path, Owner | None]]:
    """Yield pairs of a machine's folder and its owner. The owner is None if its process has ended."""
    for own in sorted((cache / FOLDER).glob("*/")):
        try:
            lock = os.open(own / OWNER, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            # Its owner is just making it, or was killed then: a minute is long enough for the first.
            with contextlib.suppress(OSError):
                if time.time() - own.stat().st_mtime > 60:
                    yield own, None
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            yield own, None
        except BlockingIOError:
            owner = parsed(os.pread(lock, 1000, 0))
            if owner is not None:
                yield own, owner
        finally:
            os.close(lock)


def parsed(text: bytes) -> Owner | None:
    """Return the owner that a file describes; None if the file is incomplete."""
    try:
        said = json.loads(text)
        shape, pid, since = said["shape"], said["pid"], said["since"]
    except (ValueError, KeyError, TypeError):
        return None
    if not (isinstance(shape, str) and type(pid) is int and pid > 1 and isinstance(since, int | float)):
        return None
    return Owner(shape, pid, float(since))
