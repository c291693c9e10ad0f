"""Check and start both services of a class host from outside: their units, their commands, and their answers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from jitter_workshop.agent.transport import SOCKET as AGENT_SOCKET
from jitter_workshop.agent.transport import Broken, Link, ProcessLink, SocketLink
from jitter_workshop.classroom.client import SOCKET as BOARD_SOCKET
from jitter_workshop.classroom.hostfiles import run
from jitter_workshop.errors import HostError, WorkshopError
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import clean
from jitter_workshop.paths import INSTALL_DIR

UNITS = "/etc/systemd/system"
SERVICES = ("jitter-workshop-agent", "jitter-workshop-board")
SLICE = "user.slice"
_SOCKETS = tuple(f"{one}.socket" for one in SERVICES)
_ANSWER_LIMIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Started:
    """Describe the services under systemd. ``logins``: the CPUs for logged-in users, None for all."""

    logins: CpuSet | None

    def problem(self) -> str:
        for name in _SOCKETS:
            for question, words in (("is-enabled", "does not start with the machine"), ("is-active", "is not active")):
                try:
                    run("systemctl", question, name)
                except HostError:
                    return f"{name} {words}"
        for name in (*_SOCKETS, *(f"{one}.service" for one in SERVICES), SLICE):
            if run("systemctl", "show", "-p", "NeedDaemonReload", "--value", name).strip() == "yes":
                return f"systemd has not reloaded {name}"
        allowed = run("systemctl", "show", "-p", "AllowedCPUs", "--value", SLICE).strip().replace(" ", ",")
        if self.logins is not None and CpuSet.parse_list(allowed) != self.logins:
            return f"{SLICE} has the CPUs {clean(allowed, 60) or 'of all'}, not {self.logins}"
        return answers(lambda: SocketLink(AGENT_SOCKET), "the agent") or answers(
            lambda: SocketLink(BOARD_SOCKET), "the board"
        )

    def do(self) -> None:
        """Read the units anew and restart the services; a running turn ends. Raises HostError."""
        run("systemctl", "daemon-reload")
        self._stop()
        run("systemctl", "enable", "--now", *_SOCKETS)

    def undo(self) -> None:
        with contextlib.suppress(HostError):
            run("systemctl", "disable", *_SOCKETS)
        self._stop()

    def _stop(self) -> None:
        # A missing unit is an error for systemctl, but counts as stopped.
        with contextlib.suppress(HostError):
            run("systemctl", "stop", *_SOCKETS, *(f"{one}.service" for one in SERVICES))
        with contextlib.suppress(HostError):
            run("systemctl", "reset-failed", *_SOCKETS, *(f"{one}.service" for one in SERVICES))


def commands(python: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the commands that start the agent and the board for one connection, as the rule in sudoers has them."""
    package = f"{INSTALL_DIR}/lib/jitter_workshop"
    started = (python, "-I", "-S", "-B")
    return (*started, f"{package}/agent/__main__.py"), (*started, f"{package}/classroom/__main__.py")


def answers(open_link: Callable[[], Link], who: str) -> str:
    """Return why a service does not answer a greeting, "" if it does."""
    try:
        link = open_link()
    except (HostError, OSError) as error:
        return f"{who} cannot be reached: {clean(error, 160)}"
    try:
        link.ask("hello", _ANSWER_LIMIT_S)
    except WorkshopError as error:
        return f"{who} answers: {clean(error.message, 200)}"
    except Broken:
        said = link.last_words()
        return f"{who} does not answer{f' ({clean(said, 160)})' if said else ''}"
    finally:
        link.close(5.0)
    return ""


def by_command(command: Sequence[str]) -> Callable[[], Link]:
    """Return a function that starts a process and connects with it."""
    return lambda: ProcessLink(command, own_session=True)
