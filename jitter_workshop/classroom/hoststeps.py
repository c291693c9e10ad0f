"""Set up a class host step by step. Each step can check, do and undo its part.

``class init`` does the missing steps, ``class check`` lists them, and ``class remove`` undoes all steps in reverse
order.
"""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from pathlib import Path

from jitter_workshop.agent import ownership
from jitter_workshop.agent.caller import uids_of
from jitter_workshop.agent.transport import SOCKET as AGENT_SOCKET
from jitter_workshop.agent.transport import Broken, Link, ProcessLink, SocketLink, service_command
from jitter_workshop.classroom import install
from jitter_workshop.classroom.client import SOCKET as BOARD_SOCKET
from jitter_workshop.errors import HostError, UsageError, WorkshopError
from jitter_workshop.host.classfile import GROUP, parse_class
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.descriptor import closed_after
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import LABEL, REASON, SENTENCE, clean
from jitter_workshop.paths import BOARD_DIR, CLASS_FILE, INSTALL_DIR, RUN_DIR
from jitter_workshop.tuning.journal import STATE_DIR

UNITS = "/etc/systemd/system"
SERVICES = ("jitter-workshop-agent", "jitter-workshop-board")
SLICE = "user.slice"
_SOCKETS = tuple(f"{one}.socket" for one in SERVICES)
_ANSWER_LIMIT_S = 30.0
SUDOERS = "/etc/sudoers.d/jitter-workshop"
LOGINS = f"{UNITS}/user.slice.d/50-jitter-workshop.conf"
_OWN = f"the services keep their data in {RUN_DIR}, {STATE_DIR} and {BOARD_DIR}"
_END_S = 5.0
_PROGRAM_LIMIT_S = 120.0
_TOLD_WORDS = 3
"""The number of a command's first words that an error names."""
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_PLACEHOLDER = re.compile(r"@([A-Z]+)@")


@dataclass(frozen=True, slots=True)
class HostStep:
    """Describe one step that sets up a class host.

    ``what``: the step in words, for lists. ``problem``: a function that returns why the step must be done, or "" if it
    is done. ``do`` and ``undo``: functions that raise HostError or OSError on failure. ``text``: the content of the
    file that the step writes, "" for none. ``again``: True if the step must be repeated after any other step.
    """

    what: str
    problem: Callable[[], str]
    do: Callable[[], object]
    undo: Callable[[], object]
    text: str = ""
    again: bool = False

    def why(self) -> str:
        """Return the reason why the step must be done; "" if it is already done. If the check raises an error, the
        reason is the text of the error.
        """
        try:
            return self.problem()
        except (OSError, HostError) as error:
            return clean(error, SENTENCE)


@dataclass(frozen=True, slots=True)
class HostChoices:
    """Hold the choices of the person who sets up a class host.

    ``class_data``: the class file's bytes. ``housekeeping``: the CPUs for logins. ``python``: the interpreter.
    """

    class_data: bytes
    housekeeping: CpuSet
    systemd: bool
    python: str


def booted_by_systemd() -> bool:
    """Return True if systemd is this machine's init (sd_booted(3))."""
    return Path("/run/systemd/system").is_dir()


def class_host_steps(wish: HostChoices) -> tuple[HostStep, ...]:
    """Return all steps that set up a class host, in order. Raise HostError for a damaged template."""
    tool = HostStep(f"the tool in {INSTALL_DIR}, owned by root", install.problem, install.install, install.uninstall)
    found = [_group(), _user(), tool, _launcher(wish.python), _class_file(wish.class_data), _board_folder()]
    if wish.systemd:
        found += [_unit(f"{one}.{kind}", wish.python) for one in SERVICES for kind in ("socket", "service")]
        if wish.housekeeping:
            found.append(_logins(wish.housekeeping))
        made = Started(wish.housekeeping or None)
        found.append(
            HostStep(f"both services, started by their sockets; {_OWN}", made.problem, made.do, made.undo, again=True)
        )
    else:
        found.append(_sudo_rule(wish.python))
    return tuple(found)


def open_steps(found: tuple[HostStep, ...]) -> tuple[tuple[HostStep, str], ...]:
    """Return the steps that must be done, each with the reason."""
    todo: list[tuple[HostStep, str]] = []
    for step in found:
        why = step.why() or ("to use the new files" if step.again and todo else "")
        if why:
            todo.append((step, why))
    return tuple(todo)


def do(todo: tuple[HostStep, ...]) -> Iterator[HostStep]:
    """Do the steps in ``todo``; yield each step before it is done.

    If a step fails, raise HostError with its name. The earlier steps stay done; :func:`undo` undoes them.
    """
    os.umask(0o022)
    for step in todo:
        yield step
        try:
            step.do()
        except OSError as error:
            raise HostError(f"{step.what}: {clean(error.strerror or error, SENTENCE)}") from error
        if why := step.why():
            raise HostError(f"{step.what}: this step was done, but its check fails: {why}")


def undo(wish: HostChoices) -> tuple[str, ...]:
    """Undo all steps, the last step first. Return the names of the steps that could not be undone, each with the
    reason."""
    left: list[str] = []
    for step in reversed(class_host_steps(wish)):
        try:
            step.undo()
        except (OSError, HostError) as error:
            left.append(f"{step.what}: {clean(error, SENTENCE)}")
    if wish.systemd:
        with contextlib.suppress(HostError):
            run_system_program("systemctl", "daemon-reload")
    return tuple(left)


def leftovers() -> tuple[str, ...]:
    """Return a list of what is left of a class host on this machine.

    The list has the path of each file, and descriptions of the user and the group.
    """
    units = [f"{UNITS}/{one}.{kind}" for one in SERVICES for kind in ("socket", "service")]
    enabled = [f"{UNITS}/sockets.target.wants/{one}.socket" for one in SERVICES]
    files = [install.LAUNCHER, CLASS_FILE, SUDOERS, LOGINS, *units]
    folders = [INSTALL_DIR, f"{INSTALL_DIR}.new", f"{INSTALL_DIR}.old", BOARD_DIR, RUN_DIR]
    places = [*folders, *files, *(f"{file}.new" for file in files), *enabled]
    found = [path for path in places if os.path.lexists(path)]
    if _exists(pwd.getpwnam, GROUP):
        found.append(f"the user {GROUP}")
    if _exists(grp.getgrnam, GROUP):
        found.append(f"the group {GROUP}")
    return tuple(found)


# The steps ------------------------------------------------------------------------------------------------------------


def _group() -> HostStep:
    def problem() -> str:
        return "" if _exists(grp.getgrnam, GROUP) else f"there is no group {GROUP}"

    def undo() -> None:
        if _exists(grp.getgrnam, GROUP):
            run_system_program("groupdel", GROUP)

    return HostStep(
        f"the group {GROUP}: its members take part in the class",
        problem,
        lambda: run_system_program("groupadd", "--system", GROUP),
        undo,
    )


def _user() -> HostStep:
    def problem() -> str:
        try:
            user = pwd.getpwnam(GROUP)
        except KeyError:
            return f"there is no user {GROUP}"
        if user.pw_uid == 0 or not _exists(grp.getgrnam, GROUP) or user.pw_gid != grp.getgrnam(GROUP).gr_gid:
            return f"a user {GROUP} with another group exists already and belongs to another program or person"
        return ""

    def do() -> None:
        if _exists(pwd.getpwnam, GROUP):
            raise HostError(f"the user {GROUP} belongs to another program or person", "rename or remove this user")
        home, shell = ("--home-dir", BOARD_DIR, "--no-create-home"), ("--shell", "/usr/sbin/nologin")
        run_system_program("useradd", "--system", "--gid", GROUP, *home, *shell, GROUP)

    def undo() -> None:
        if not problem():
            _end_all_of(pwd.getpwnam(GROUP).pw_uid)
            run_system_program("userdel", GROUP)

    return HostStep(f"the user {GROUP}, who runs the board", problem, do, undo)


def _launcher(python: str) -> HostStep:
    text = install.launcher_text(f"{INSTALL_DIR}/lib", python)
    return _file(RootFile(install.LAUNCHER, text.encode(), 0o755), "starts it")


def _class_file(data: bytes) -> HostStep:
    made = RootFile(CLASS_FILE, data, 0o644, own_folder=True)

    def problem() -> str:
        if found := made.problem():
            return found
        try:
            parse_class(data, CLASS_FILE)
        except UsageError as error:
            return error.message
        return ""

    return HostStep(
        f"{CLASS_FILE}: the settings of the class", problem, made.do, made.undo, data.decode("utf-8", "replace")
    )


def _board_folder() -> HostStep:
    def problem() -> str:
        try:
            status = os.lstat(BOARD_DIR)
        except FileNotFoundError:
            return f"{BOARD_DIR} is missing"
        if not stat.S_ISDIR(status.st_mode) or not _exists(pwd.getpwnam, GROUP):
            return f"{BOARD_DIR} is not a folder that belongs to {GROUP}"
        if status.st_uid != pwd.getpwnam(GROUP).pw_uid:
            return f"{BOARD_DIR} does not belong to {GROUP}"
        mode = stat.S_IMODE(status.st_mode)
        return "" if mode == 0o755 else f"{BOARD_DIR} has mode {mode:o}, not 755"

    def do() -> None:
        with contextlib.suppress(FileExistsError):
            Path(BOARD_DIR).mkdir()
        user = pwd.getpwnam(GROUP)
        # The files in the folder stay. A link in place of the folder is refused.
        with closed_after(os.open(BOARD_DIR, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)) as folder:
            os.fchown(folder, user.pw_uid, user.pw_gid)
            os.fchmod(folder, 0o755)

    def undo() -> None:
        if os.path.lexists(BOARD_DIR):
            shutil.rmtree(BOARD_DIR)

    return HostStep(f"{BOARD_DIR}: the results; it belongs to the user {GROUP}", problem, do, undo)


def _unit(name: str, python: str) -> HostStep:
    # The service must be able to read its interpreter, even if the interpreter is in a home folder.
    homes = "read-only" if python.startswith(install.HOMES) else "yes"
    return _file(RootFile(f"{UNITS}/{name}", fill(name, PYTHON=python, HOMES=homes).encode(), 0o644), "a systemd unit")


def _logins(housekeeping: CpuSet) -> HostStep:
    text = fill("logins.conf", HOUSEKEEPING=str(housekeeping).replace(",", " "))
    return _file(
        RootFile(LOGINS, text.encode(), 0o644, own_folder=True),
        f"keeps the processes of logged-in users on CPU {housekeeping}",
    )


def _sudo_rule(python: str) -> HostStep:
    text = fill("sudoers", PYTHON=python)
    made = RootFile(SUDOERS, text.encode(), 0o440, refuse=lambda new: run_system_program("visudo", "-cf", new))

    def problem() -> str:
        sudo = path_of_program("sudo")
        if sudo is None:
            return "sudo is not installed on this host"
        if found := made.problem():
            return found
        agent, board = service_commands(python)
        # The file is right. Ask sudo about a member of the group to find out if sudo reads the file.
        for uid in sorted(uids_of(GROUP))[:1]:
            for target, command in (("root", agent), (GROUP, board)):
                run_system_program("sudo", "-n", "-l", "-U", pwd.getpwuid(uid).pw_name, "-u", target, "--", *command)
        as_user = (sudo, "-n", "-u", GROUP, "--", *board)
        return answers(by_command(agent), "the agent") or answers(by_command(as_user), "the board")

    return HostStep(f"{SUDOERS}: lets the group start both services; {_OWN}", problem, made.do, made.undo, text)


# Both services --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Started:
    """Check, start and stop the two services under systemd. ``logins``: the CPUs that logged-in users may use, None for
    all CPUs."""

    logins: CpuSet | None

    def problem(self) -> str:
        for name in _SOCKETS:
            for question, words in (("is-enabled", "will not start at boot"), ("is-active", "is not active")):
                try:
                    run_system_program("systemctl", question, name)
                except HostError:
                    return f"{name} {words}"
        for name in (*_SOCKETS, *(f"{one}.service" for one in SERVICES), SLICE):
            if run_system_program("systemctl", "show", "-p", "NeedDaemonReload", "--value", name).strip() == "yes":
                return f"systemd has not reloaded {name}"
        allowed = (
            run_system_program("systemctl", "show", "-p", "AllowedCPUs", "--value", SLICE).strip().replace(" ", ",")
        )
        if self.logins is not None and CpuSet.parse_list(allowed) != self.logins:
            has = f"CPU {clean(allowed, LABEL)}" if allowed else "all CPUs"
            return f"{SLICE} may use {has}, but should use only CPU {self.logins}"
        return answers(lambda: SocketLink(AGENT_SOCKET), "the agent") or answers(
            lambda: SocketLink(BOARD_SOCKET), "the board"
        )

    def do(self) -> None:
        """Make systemd read the unit files again, and restart both services. A member who has the turn loses it. Raise
        HostError if systemctl fails."""
        run_system_program("systemctl", "daemon-reload")
        self._stop()
        run_system_program("systemctl", "enable", "--now", *_SOCKETS)

    def undo(self) -> None:
        with contextlib.suppress(HostError):
            run_system_program("systemctl", "disable", *_SOCKETS)
        self._stop()

    def _stop(self) -> None:
        # For a missing unit systemctl reports an error, but the unit counts as stopped.
        with contextlib.suppress(HostError):
            run_system_program("systemctl", "stop", *_SOCKETS, *(f"{one}.service" for one in SERVICES))
        with contextlib.suppress(HostError):
            run_system_program("systemctl", "reset-failed", *_SOCKETS, *(f"{one}.service" for one in SERVICES))


def service_commands(python: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the command that starts the agent, and the command that starts the board. ``python``: the path of the
    interpreter. The sudo rule of a class host allows exactly these two commands."""
    package = Path(f"{INSTALL_DIR}/lib/jitter_workshop")
    agent, board = (service_command(package / room / "__main__.py", python) for room in ("agent", "classroom"))
    return agent, board


def answers(open_link: Callable[[], Link], who: str) -> str:
    """Send a greeting to a service, and return "" if the service answers. Otherwise return a description of the fault.
    ``open_link``: a function that connects to the service. ``who``: the service's name for the description.
    """
    try:
        link = open_link()
    except (HostError, OSError) as error:
        return f"{who} cannot be reached: {clean(error, REASON)}"
    try:
        link.ask("hello", _ANSWER_LIMIT_S)
    except WorkshopError as error:
        return f"{who} answers: {clean(error.message, SENTENCE)}"
    except Broken:
        said = link.last_words()
        return f"{who} does not answer{f' ({clean(said, REASON)})' if said else ''}"
    finally:
        link.close(5.0)
    return ""


def by_command(command: Sequence[str]) -> Callable[[], Link]:
    """Return a function that starts a process with ``command`` and returns a connection with this process."""
    return lambda: ProcessLink(command, own_session=True)


# Root's files, and programs of the system's ---------------------------------------------------------------------------


def fill(template: str, **words: str) -> str:
    """Return a template of ``assets/class`` in which each ``@NAME@`` is replaced by its value in ``words``.

    Raise HostError if the template is missing or contains an unknown name.
    """
    known = {"LIB": f"{INSTALL_DIR}/lib", **words}
    try:
        text = resources.files("jitter_workshop.assets").joinpath("class", template).read_text("utf-8")
        return _PLACEHOLDER.sub(lambda found: known[found.group(1)], text)
    except OSError as error:
        raise HostError(f"the template {template} cannot be read: {error.strerror}") from error
    except KeyError as unknown:
        raise HostError(f"the template {template} uses an unknown placeholder: {unknown}") from None


def path_of_program(name: str) -> str | None:
    """Return the path of a program of the system, None if it is not installed."""
    return shutil.which(name, path=_PATH)


def run_system_program(*words: str) -> str:
    """Run a program of the system, by name, in a fixed environment. Return its standard output. Raise HostError if the
    program is missing or fails."""
    found = path_of_program(words[0])
    if found is None:
        raise HostError(f"{words[0]} is not installed on this host")
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
        raise HostError(f"{words[0]} cannot be run: {clean(error, REASON)}") from error
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:] or [f"code {done.returncode}"]
        raise HostError(f"{' '.join(words[:_TOLD_WORDS])}: {clean(last[0], SENTENCE)}")
    return done.stdout


@dataclass(frozen=True, slots=True)
class RootFile:
    """Describe a file that root owns, with its content and mode.

    - ``own_folder``: True if the file has a folder for itself. Root must then own the folder, too. The folder is
      removed with the file if it is then empty.
    - ``refuse``: a function that checks the new file before it replaces the old one. The function raises HostError for
      a mistake.
    """

    path: str
    data: bytes
    mode: int
    own_folder: bool = False
    refuse: Callable[[str], object] | None = None

    def problem(self) -> str:
        """Return the reason why the file must be written: it is missing, or its owner, mode or content is wrong. Return
        "" if the file is right."""
        path = self.path
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            return f"{path} is missing"
        if not stat.S_ISREG(status.st_mode):
            return f"{path} is not a file"
        if foreign := ownership.first_foreign([path]):
            return foreign
        if stat.S_IMODE(status.st_mode) != self.mode:
            return f"{path} has mode {stat.S_IMODE(status.st_mode):o}, not {self.mode:o}"
        return "" if Path(path).read_bytes() == self.data else f"{path} has different content"

    def do(self) -> None:
        """Write a new file, then give it the final name, so that no reader sees a half-written file. Raise OSError if
        that fails, HostError if ``refuse`` finds a mistake."""
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
        """Remove the file. Raise OSError if that fails."""
        for path in (self.path, f"{self.path}.new"):
            Path(path).unlink(missing_ok=True)
        if self.own_folder:
            with contextlib.suppress(OSError):  # the folder holds other files
                Path(self.path).parent.rmdir()


# Details --------------------------------------------------------------------------------------------------------------


def _file(made: RootFile, what: str) -> HostStep:
    return HostStep(f"{made.path}: {what}", made.problem, made.do, made.undo, made.data.decode())


def _exists(look: Callable[[str], object], name: str) -> bool:
    try:
        look(name)
    except KeyError:
        return False
    return True


def _end_all_of(uid: int) -> None:
    """Kill all processes that still run with the user id of the board."""
    ends = time.monotonic() + _END_S
    while time.monotonic() < ends:
        theirs = [one for one in Path("/proc").iterdir() if one.name.isdigit() and _owner(one) == uid]
        if not theirs:
            return
        for one in theirs:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(one.name), signal.SIGKILL)
        time.sleep(0.02)


def _owner(process: Path) -> int | None:
    try:
        return process.stat().st_uid
    except OSError:
        return None
