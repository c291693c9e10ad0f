"""Check if users other than root can change the code that runs as root here.

A rule in sudoers, or a class's socket, may let a caller run only the agent as root. In this case, all files of the
agent must belong to root, and only root may write them. A caller who may run any program as root only gets a warning.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Mapping

from jitter_workshop.errors import HostError
from jitter_workshop.model.text import PATH, clean

BY_OTHERS = "can be written by others"
SUDO = "/usr/bin/sudo"
_OTHER_DOORS = ("PKEXEC_UID", "DOAS_USER")
_ROOMS = ("agent", "host", "model", "tuning")
"""The rooms from which root's process may load modules; ``errors`` and the package's own file lie above them."""


def tree() -> str:
    """Return the folder that holds the package."""
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))  # noqa: PTH120


def check_ownership(
    environment: Mapping[str, str],
    from_socket: bool,
    anything_allowed: Callable[[str], bool] | None = None,
    owner: int = 0,
    files: Callable[[], Iterable[str]] | None = None,
) -> str:
    """Check if only root can change the agent's files, and return "" if so.

    If other users can change them, the result depends on the caller's rights. Return a warning if the caller may run
    any program as root. Raise HostError if the caller may run only this agent as root.

    - ``from_socket``: True if the caller connected to a socket.
    - ``anything_allowed``: a function that returns True if a user may run any program as root.
    - ``owner``, ``files``: for tests.
    """
    problem = first_foreign((files or own_files)(), owner)
    if not problem:
        return ""
    user = environment.get("SUDO_USER", "")
    restricted = from_socket or any(environment.get(name) for name in _OTHER_DOORS)
    if not restricted and user not in ("", "root"):
        restricted = not (anything_allowed or may_run_anything)(user)
    where = clean(tree(), PATH)
    if restricted:
        raise HostError(
            f"the agent will not run as root from {where}: {problem}",
            "install this program in a folder that only root can change, or ask for sudo rights to every command",
        )
    return f"the agent runs as root from {where}, but other users can change files there ({problem})"


def may_run_anything(user: str) -> bool:
    """Return True if sudo lets ``user`` run a shell as root. This process runs ``sudo -l -U`` as root, so sudo asks for
    no password."""
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
    """Return a description of the first file or folder that users other than ``owner`` can change; else "".

    Each of ``files`` and each folder above it is checked. A folder above a file may be sticky, as /tmp is (inode(7),
    S_ISVTX). In a sticky folder other users can add files, but cannot replace them.
    """
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
    """Yield all files that may run in this process:

    - the interpreter,
    - every module loaded so far,
    - the modules of this package that may still be loaded,
    - the folders with compiled modules.
    """
    yield sys.executable
    # The interpreter looks for pyvenv.cfg, which names its library, in its own folder and in the one above.
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
    for top in (package, *(f"{package}/{room}" for room in _ROOMS)):
        for folder, inside, names in os.walk(top):
            if top == package:
                inside[:] = [name for name in inside if name == "__pycache__"]
            yield folder
            yield from (f"{folder}/{name}" for name in names if name.endswith((".py", ".pyc", ".so")))


def _foreign(path: str, owner: int, above: bool) -> str:
    try:
        status = os.lstat(path)
    except OSError as error:
        return f"{clean(path, PATH)} cannot be checked: {error.strerror}"
    shown = clean(path, PATH)
    if status.st_uid not in (0, owner):
        return f"{shown} belongs to user {status.st_uid}"
    if stat.S_ISLNK(status.st_mode):
        return ""
    kept = above and status.st_mode & stat.S_ISVTX
    if stat.S_IMODE(status.st_mode) & 0o022 and not kept:
        return f"{shown} {BY_OTHERS}"
    return ""
