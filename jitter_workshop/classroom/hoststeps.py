"""A class host, step by step: what there has to be, whether it is, how it is made and how it goes again.

``class init`` does what is missing, ``class check`` names it, ``class remove`` undoes all of it, the last step first.
"""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import shutil
import stat
import subprocess
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path

from jitter_workshop.classroom import install
from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.host.classfile import parse_class
from jitter_workshop.model.classfile import GROUP
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import clean
from jitter_workshop.paths import BOARD_DIR, CLASS_FILE, INSTALL_DIR, RUN_DIR

UNITS = "/etc/systemd/system"
SUDOERS = "/etc/sudoers.d/jitter-workshop"
LOGINS = f"{UNITS}/user.slice.d/50-jitter-workshop.conf"
_SERVICES = ("jitter-workshop-agent", "jitter-workshop-board")
_PROGRAM_LIMIT_S = 120.0
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Step:
    """``what``: in words, as a list shows it. ``problem``: what is wrong, "" for nothing. ``do`` and ``undo`` raise
    HostError or OSError."""

    what: str
    problem: Callable[[], str]
    do: Callable[[], None]
    undo: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Wish:
    """What a class host is made with. ``class_data``: the class file's bytes; ``housekeeping``: the CPUs for logins."""

    class_data: bytes
    housekeeping: CpuSet
    systemd: bool


def runs_systemd() -> bool:
    """Whether systemd is this machine's init (sd_booted(3))."""
    return Path("/run/systemd/system").is_dir()


def steps(wish: Wish) -> tuple[Step, ...]:
    """All that makes a class host, in order."""
    found = [_group(), _user(), _install(), _launcher(), _class_file(wish.class_data), _board_folder()]
    if wish.systemd:
        found += [_unit(name) for one in _SERVICES for name in (f"{one}.socket", f"{one}.service")]
        if wish.housekeeping:
            found.append(_logins(wish.housekeeping))
        found.append(_started())
    else:
        found.append(_sudo_rule())
    return tuple(found)


def fill(template: str, **more: str) -> str:
    """A template of ``assets/class`` with this host's interpreter and places. Raises HostError where it lacks one."""
    text = resources.files("jitter_workshop.assets").joinpath("class", template).read_text("utf-8")
    for name, value in {"PYTHON": install.interpreter(), "LIB": f"{INSTALL_DIR}/lib", **more}.items():
        text = text.replace(f"@{name}@", value)
    return text


def run(*words: str) -> str:
    """A program of the system's, by name, with a fixed environment: what it printed. Raises HostError."""
    program = shutil.which(words[0], path=_PATH)
    if program is None:
        raise HostError(f"{words[0]} is not on this host")
    try:
        done = subprocess.run(
            (program, *words[1:]),
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


# The steps ------------------------------------------------------------------------------------------------------------


def _group() -> Step:
    def problem() -> str:
        return "" if _exists(grp.getgrnam, GROUP) else f"there is no group {GROUP}"

    return Step(
        f"the group {GROUP}: who is in it takes part", problem, lambda: _run("groupadd", "--system", GROUP), _del_group
    )


def _del_group() -> None:
    if _exists(grp.getgrnam, GROUP):
        run("groupdel", GROUP)


def _user() -> Step:
    def problem() -> str:
        return "" if _exists(pwd.getpwnam, GROUP) else f"there is no user {GROUP}"

    def do() -> None:
        home, shell = ("--home-dir", BOARD_DIR, "--no-create-home"), ("--shell", "/usr/sbin/nologin")
        run("useradd", "--system", "--gid", GROUP, *home, *shell, GROUP)

    def undo() -> None:
        if _exists(pwd.getpwnam, GROUP):
            run("userdel", GROUP)

    return Step(f"the user {GROUP}, as whom the board runs", problem, do, undo)


def _install() -> Step:
    return Step(
        f"the tool in {INSTALL_DIR}, root's own",
        install.problem,
        install.install,
        lambda: shutil.rmtree(INSTALL_DIR, ignore_errors=True),
    )


def _launcher() -> Step:
    text = install.launcher_text(f"{INSTALL_DIR}/lib", install.interpreter())
    return _file(install.LAUNCHER, text.encode(), 0o755, "starts it")


def _class_file(data: bytes) -> Step:
    def problem() -> str:
        found = _wrong(CLASS_FILE, None, 0o644)
        if found:
            return found
        try:
            parse_class(Path(CLASS_FILE).read_bytes(), CLASS_FILE)
        except UsageError as error:
            return error.message
        return ""

    made = _file(CLASS_FILE, data, 0o644, "the class")
    return Step(made.what, problem, made.do, made.undo)


def _board_folder() -> Step:
    def problem() -> str:
        try:
            status = os.lstat(BOARD_DIR)
        except OSError:
            return f"{BOARD_DIR} is not there"
        if not stat.S_ISDIR(status.st_mode) or not _exists(pwd.getpwnam, GROUP):
            return f"{BOARD_DIR} is no folder of {GROUP}"
        return "" if status.st_uid == pwd.getpwnam(GROUP).pw_uid else f"{BOARD_DIR} does not belong to {GROUP}"

    def do() -> None:
        with contextlib.suppress(FileExistsError):
            Path(BOARD_DIR).mkdir(mode=0o755)
        user = pwd.getpwnam(GROUP)
        os.chown(BOARD_DIR, user.pw_uid, user.pw_gid, follow_symlinks=False)

    return Step(
        f"{BOARD_DIR}: results, of the user {GROUP}", problem, do, lambda: shutil.rmtree(BOARD_DIR, ignore_errors=True)
    )


def _unit(name: str) -> Step:
    made = _file(f"{UNITS}/{name}", fill(name).encode(), 0o644, "a systemd unit")
    return Step(made.what, made.problem, made.do, made.undo)


def _logins(housekeeping: CpuSet) -> Step:
    text = fill("logins.conf", HOUSEKEEPING=str(housekeeping).replace(",", " "))
    return _file(LOGINS, text.encode(), 0o644, f"keeps logins on CPU {housekeeping}")


def _started() -> Step:
    sockets = [f"{one}.socket" for one in _SERVICES]

    def problem() -> str:
        for name in sockets:
            try:
                run("systemctl", "is-active", name)
            except HostError:
                return f"{name} is not active"
        return ""

    def do() -> None:
        run("systemctl", "daemon-reload")
        run("systemctl", "enable", "--now", *sockets)

    def undo() -> None:
        services = [f"{one}.service" for one in _SERVICES]
        with contextlib.suppress(HostError):
            run("systemctl", "disable", "--now", *sockets)
        with contextlib.suppress(HostError):
            run("systemctl", "stop", *services)

    return Step("both services, started by their sockets", problem, do, undo)


def _sudo_rule() -> Step:
    made = _file(SUDOERS, fill("sudoers").encode(), 0o440, "lets the group start both services")

    def problem() -> str:
        return made.problem() or ("" if shutil.which("sudo", path=_PATH) else "sudo is not on this host")

    def do() -> None:
        made.do()
        try:
            run("visudo", "-cf", SUDOERS)
        except HostError:
            made.undo()
            raise

    return Step(made.what, problem, do, made.undo)


# Details --------------------------------------------------------------------------------------------------------------


def _file(path: str, data: bytes, mode: int, what: str) -> Step:
    """A file of root's with exactly this in it."""

    def do() -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        new = f"{path}.new"
        Path(new).unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(new, flags, mode), "wb") as out:
            os.fchmod(out.fileno(), mode)
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        Path(new).replace(path)

    def undo() -> None:
        Path(path).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # others keep something there
            if Path(path).parent.name in ("jitter-workshop", "user.slice.d"):
                Path(path).parent.rmdir()

    return Step(f"{path}: {what}", lambda: _wrong(path, data, mode), do, undo)


def _wrong(path: str, data: bytes | None, mode: int) -> str:
    """What is wrong with a file of root's: not there, another's, other modes, something else in it."""
    try:
        status = os.lstat(path)
    except OSError:
        return f"{path} is not there"
    if not stat.S_ISREG(status.st_mode) or status.st_uid != 0:
        return f"{path} is no file of root's"
    if stat.S_IMODE(status.st_mode) != mode:
        return f"{path} has mode {stat.S_IMODE(status.st_mode):o}, not {mode:o}"
    if data is not None and Path(path).read_bytes() != data:
        return f"{path} says something else"
    return ""


def _run(*words: str) -> None:
    run(*words)


def _exists(look: Callable[[str], object], name: str) -> bool:
    try:
        look(name)
    except KeyError:
        return False
    return True


def leftovers() -> Sequence[str]:
    """What a removed class host would still have."""
    places = (INSTALL_DIR, install.LAUNCHER, CLASS_FILE, BOARD_DIR, RUN_DIR, SUDOERS, LOGINS)
    return [path for path in (*places, *(f"{UNITS}/{one}.socket" for one in _SERVICES)) if os.path.lexists(path)]
