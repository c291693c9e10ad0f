"""Write root's files with a known content, and run programs of the system's: the parts of a class host's steps."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from jitter_workshop.agent import ownership
from jitter_workshop.errors import HostError
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import clean
from jitter_workshop.paths import INSTALL_DIR

_PROGRAM_LIMIT_S = 120.0
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_PLACEHOLDER = re.compile(r"@([A-Z]+)@")


def fill(template: str, **words: str) -> str:
    """Return a template of ``assets/class`` with this host's value for each ``@NAME@``.

    Raises HostError for a missing template and for an unknown name.
    """
    known = {"LIB": f"{INSTALL_DIR}/lib", **words}
    try:
        text = resources.files("jitter_workshop.assets").joinpath("class", template).read_text("utf-8")
        return _PLACEHOLDER.sub(lambda found: known[found.group(1)], text)
    except OSError as error:
        raise HostError(f"the template {template} cannot be read: {error.strerror}") from error
    except KeyError as unknown:
        raise HostError(f"the template {template} has an unknown name: {unknown}") from None


def program(name: str) -> str | None:
    """Return the path of a program of the system's, None if it is not installed."""
    return shutil.which(name, path=_PATH)


def run(*words: str) -> str:
    """Run a program of the system's, by name, in a fixed environment; return what it printed. Raises HostError."""
    found = program(words[0])
    if found is None:
        raise HostError(f"{words[0]} is not on this host")
    try:
        done = subprocess.run(
            (found, *words[1:]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env={"PATH": _PATH, "LC_ALL": "C"},
            cwd="/",
            timeout=_PROGRAM_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostError(f"{words[0]} does not run: {clean(error, 120)}") from error
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:] or [f"code {done.returncode}"]
        raise HostError(f"{' '.join(words[:3])}: {clean(last[0], 200)}")
    return done.stdout


@dataclass(frozen=True, slots=True)
class RootFile:
    """Describe a file of root's with exactly this content.

    ``own_folder``: the folder is removed with it, if nothing else is in it. ``refuse``: checks the new file before it
    takes its place, and raises HostError.
    """

    path: str
    data: bytes
    mode: int
    own_folder: bool = False
    refuse: Callable[[str], object] | None = None

    def problem(self) -> str:
        """Return what is wrong: no such file, another owner, mode or content; "" for nothing."""
        path = self.path
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            return f"{path} is not there"
        if not stat.S_ISREG(status.st_mode):
            return f"{path} is not a file"
        if foreign := ownership.first_foreign([path]):
            return foreign
        if stat.S_IMODE(status.st_mode) != self.mode:
            return f"{path} has mode {stat.S_IMODE(status.st_mode):o}, not {self.mode:o}"
        return "" if Path(path).read_bytes() == self.data else f"{path} has another content"

    def do(self) -> None:
        """Write a new file beside it, then rename it, so that no reader sees half of it. Raises OSError, HostError."""
        folder = Path(self.path).parent
        if not folder.is_dir():
            folder.mkdir(parents=True)
        if self.own_folder:
            os.chown(folder, 0, 0, follow_symlinks=False)
            folder.chmod(0o755)
        new = f"{self.path}.new"
        Path(new).unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(new, flags, 0o600), "wb") as out:
                out.write(self.data)
                os.fchown(out.fileno(), 0, 0)
                os.fchmod(out.fileno(), self.mode)
                out.flush()
                os.fsync(out.fileno())
            if self.refuse is not None:
                self.refuse(new)
            Path(new).replace(self.path)
        except BaseException:
            Path(new).unlink(missing_ok=True)
            raise

    def undo(self) -> None:
        """Remove the file. Raises OSError."""
        for path in (self.path, f"{self.path}.new"):
            Path(path).unlink(missing_ok=True)
        if self.own_folder:
            with contextlib.suppress(OSError):  # the folder holds other files
                Path(self.path).parent.rmdir()
