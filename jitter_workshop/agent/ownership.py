"""Whose code runs as root here, and whether that is all right.

Where somebody may run only the agent as root (a rule in sudoers, a socket), everything that the agent is made of has to
belong to root and be writable by nobody else: else who may change a file may do anything. Where they may run anything
as root anyway, or are root, they lend their own rights, and are told to which tree.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Mapping

from jitter_workshop.errors import HostError
from jitter_workshop.model.text import clean

SUDO = "/usr/bin/sudo"
_OTHER_DOORS = ("PKEXEC_UID", "DOAS_USER")
_ROOMS = ("agent", "host", "model", "tuning")
"""The rooms that root's process may load modules from; ``errors`` and the package's own file lie above them."""


def tree() -> str:
    """The folder that holds the package."""
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))  # noqa: PTH120


def check(
    environment: Mapping[str, str],
    from_socket: bool,
    anything_allowed: Callable[[str], bool] | None = None,
    owner: int = 0,
    files: Callable[[], Iterable[str]] | None = None,
) -> str:
    """A notice that names the tree that runs as root, "" where it is root's own. Raises HostError where the caller may
    run only this agent and could change what it is made of.

    ``anything_allowed`` says whether a user may run anything as root; ``owner`` and ``files`` are for tests.
    """
    problem = first_foreign((files or own_files)(), owner)
    if not problem:
        return ""
    user = environment.get("SUDO_USER", "")
    restricted = from_socket or any(environment.get(name) for name in _OTHER_DOORS)
    if not restricted and user not in ("", "root"):
        restricted = not (anything_allowed or may_run_anything)(user)
    where = clean(tree(), 300)
    if restricted:
        raise HostError(
            f"the agent does not run as root from {where}: {problem}",
            "install it where only root may write, or ask for general sudo rights",
        )
    return f"what writes runs as root from {where}, which others than root can change ({problem})"


def may_run_anything(user: str) -> bool:
    """Whether sudo lets ``user`` run a shell as root: asked as root, which needs no password."""
    import subprocess

    try:
        done = subprocess.run(
            (SUDO, "-n", "-l", "-U", user, "/bin/sh"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"},
            cwd="/",
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def first_foreign(files: Iterable[str], owner: int = 0) -> str:
    """The first file, or folder above one, that is not ``owner``'s alone, in words; "" where there is none.

    Above one, a folder that all may write is no problem where it is sticky (/tmp): in it nobody else can rename, remove
    or replace what belongs to ``owner`` (inode(7), S_ISVTX). A folder that is itself named is one that code is loaded
    from: there a file that somebody adds counts, and sticky is no help."""
    seen: set[tuple[str, bool]] = set()
    for file in files:
        path, above = os.path.realpath(file), False
        while (path, above) not in seen:
            seen.add((path, above))
            problem = _foreign(path, owner, above)
            if problem:
                return problem
            path, above = os.path.dirname(path), True  # noqa: PTH120
    return ""


def own_files() -> Iterable[str]:
    """All that this process is made of: the interpreter, every module loaded so far and what may still be loaded of
    this package, with the folders that Python keeps compiled modules in."""
    yield sys.executable
    # An interpreter looks beside itself, and a folder higher, for what says where its library is (pyvenv.cfg).
    beside = os.path.dirname(os.path.realpath(sys.executable))  # noqa: PTH120
    yield beside
    yield os.path.dirname(beside)  # noqa: PTH120
    yield sys.prefix
    package = f"{tree()}/jitter_workshop"
    for module in list(sys.modules.values()):
        for file in (getattr(module, "__file__", None), getattr(module, "__cached__", None)):
            if isinstance(file, str) and os.path.lexists(file):
                yield file
    for path in sys.path:
        if path and os.path.isdir(path):  # noqa: PTH112
            yield path
    for folder in (package, *(f"{package}/{room}" for room in _ROOMS)):
        yield folder
        for name in os.listdir(folder):  # noqa: PTH208
            path = f"{folder}/{name}"
            if name.endswith((".py", ".pyc", ".so")):
                yield path
            elif name == "__pycache__":
                yield path
                yield from (f"{path}/{cached}" for cached in os.listdir(path))  # noqa: PTH208


def _foreign(path: str, owner: int, above: bool) -> str:
    try:
        status = os.lstat(path)
    except OSError as error:
        return f"{clean(path, 300)} cannot be looked at: {error.strerror}"
    shown = clean(path, 300)
    if status.st_uid not in (0, owner):
        return f"{shown} belongs to user {status.st_uid}"
    if stat.S_ISLNK(status.st_mode):
        return ""
    kept = above and status.st_mode & stat.S_ISVTX
    if stat.S_IMODE(status.st_mode) & 0o022 and not kept:
        return f"{shown} can be written by others"
    return ""
