"""Start the agent as root, talk to it, and keep a lease alive. This is the caller's side of the connection.

If this process is root's, it starts the agent directly, otherwise by sudo. Sudo is tried without a password first. If
that is not possible, sudo asks for the password on the terminal.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import sys
import threading
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from jitter_workshop.agent import protocol
from jitter_workshop.agent.transport import (
    Broken,
    Late,
    Link,
    ProcessLink,
    SocketLink,
    class_socket,
    need_group,
    service_command,
)
from jitter_workshop.errors import BusyError, HostError, WaitStopped
from jitter_workshop.model.change import ApplyResult, Plan, RestoreResult
from jitter_workshop.model.codec import CodecError, from_plain
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import clean
from jitter_workshop.model.trace import TraceInfo, TraceRead
from jitter_workshop.model.turn import TurnGranted
from jitter_workshop.paths import CLASS_FILE

T = TypeVar("T")

Rights = Literal["root", "sudo", "none"]
"""The ways to get root rights.

- ``root``: this process has them.
- ``sudo``: sudo is installed, but may ask for a password or refuse.
- ``none``: there is no way.
"""

LEASE_S = 20.0
"""A lease ends after this many seconds of silence; five heartbeats fit into this time."""
STEP_LIMIT_S = 600.0
"""Time limit in seconds for a plan, an apply or a restore (update-grub alone takes up to two minutes)."""
START_LIMIT_S = 30.0
ASK_LIMIT_S = 300.0
"""Time limit in seconds for sudo's password question on the terminal."""

_RESTORE = "run 'jitter-workshop restore' to undo the changes"


@dataclass(frozen=True, slots=True)
class Purpose:
    """Hold the purpose for which root rights are needed, as a noun and as a verb for messages.

    ``otherwise``: advice for users without root rights, "" for none.
    """

    noun: str
    verb: str
    otherwise: str = ""

    def advice(self, first: str = "") -> str:
        return "; ".join(words for words in (first, self.otherwise) if words)


CHANGING = Purpose(
    "changing this host", "change this host", "'jitter-workshop plan --sh' makes a script for an administrator"
)
TRACING = Purpose("recording the kernel's trace", "record the kernel's trace")


def agent_command() -> tuple[str, ...]:
    """Return the command line that starts the agent, in the form that a rule in sudoers needs."""
    return service_command(Path(__file__).resolve().with_name("__main__.py"))


class AgentClient(contextlib.AbstractContextManager["AgentClient"]):
    """Hold one connection with the agent.

    ``notice``: a warning for the user if others can change the code that runs as root; "" if they cannot. ``pid``: the
    number of the agent's process, None if it is not known.
    """

    def __init__(
        self,
        command: Sequence[str] | SocketLink,
        wait_s: float = START_LIMIT_S,
        own_session: bool = True,
        purpose: Purpose = CHANGING,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Open a connection with the agent, and send ``hello``. Raise HostError if that fails, in one sentence about
        ``purpose``.

        ``command``: a command line that starts the agent, or a connection to an agent that runs. A started agent gets
        the variables in ``environment``; None means those of this program.
        """
        self.notice = ""
        self.pid: int | None = None
        self._purpose = purpose
        self._names: list[str] = []
        self._beating = threading.Event()
        self._heart: threading.Thread | None = None
        try:
            self._link: Link = (
                command if isinstance(command, SocketLink) else ProcessLink(command, own_session, environment)
            )
        except OSError as error:
            raise HostError(f"the agent cannot be started: {error.strerror}", purpose.advice()) from error
        try:
            hello = self._ask("hello", wait_s, starting=True)
            if hello.get("protocol") != protocol.PROTOCOL:
                raise HostError(
                    "the agent and this program have different versions", "install the same version of both"
                )
            self.notice = clean(hello.get("notice", ""), 600)
            self.pid = hello["pid"] if isinstance(hello.get("pid"), int) else None
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def ended(self) -> bool:
        """Return True if the agent's process has ended, for whatever reason."""
        return self._link.ended

    def plan(self, wanted: Sequence[str], cpus: str) -> Plan:
        """Return the plan for the tunables ``wanted``, made by the agent: as root it can read more than this
        process."""
        return _as(Plan, self._ask("plan", STEP_LIMIT_S, wanted=list(wanted), cpus=cpus))

    def apply(self, wanted: Sequence[str], cpus: str, shown: Sequence[str], lease: bool = False) -> ApplyResult:
        """Make the changes whose digests are in ``shown``. With ``lease``, the changes are restored when this
        connection ends or this process is stopped."""
        lease_s = LEASE_S if lease else None
        fields: dict[str, Any] = {"wanted": list(wanted), "cpus": cpus, "shown": list(shown), "lease": lease_s}
        if lease:
            self._start_heart()
        return _as(ApplyResult, self._ask("apply", STEP_LIMIT_S, **fields))

    def announce(self, wanted: Sequence[str], cpus: str, shown: Sequence[str]) -> ApplyResult:
        """Record the old values of the changes whose digests are in ``shown``, before a user makes these changes by
        hand.

        No setting is written. When this connection ends or this process is stopped, the changes that the user has made
        are restored.
        """
        self._start_heart()
        fields: dict[str, Any] = {"wanted": list(wanted), "cpus": cpus, "shown": list(shown), "lease": LEASE_S}
        return _as(ApplyResult, self._ask("announce", STEP_LIMIT_S, **fields))

    def adopt(self, journal_id: str, *, end: bool = False, wrong: bool = False) -> ApplyResult:
        """Record in an announced journal that a user has made some of its changes by hand.

        ``end``: stop waiting for the other announced changes. ``wrong``: the user typed values that differ from the
        announced ones; record these values, too.
        """
        return _as(ApplyResult, self._ask("adopt", STEP_LIMIT_S, journal=journal_id, end=end, wrong=wrong))

    def restore(self, tunables: Sequence[str] = (), *, forget: bool = False) -> RestoreResult:
        """Restore the changes of the given tunables; if none are given, restore all changes. With ``forget``, a setting
        keeps its value if another program or user has changed it after us, and later restores ignore it."""
        return _as(RestoreResult, self._ask("restore", STEP_LIMIT_S, tunables=list(tunables), forget=forget))

    def place(self, pid: int) -> str:
        """Put one of this user's processes on the isolated CPUs. Return the isolated CPUs as a list such as ``2-3``."""
        return str(self._ask("place", START_LIMIT_S, pid=pid).get("cpus", ""))

    def place_threads(self, pid: int, tids: Sequence[int]) -> str:
        """Put threads of one of this user's processes on the isolated CPUs. Return the isolated CPUs as a list such as
        ``2-3``."""
        return str(self._ask("place_threads", START_LIMIT_S, pid=pid, tids=list(tids)).get("cpus", ""))

    def realtime(self, pid: int, tids: Sequence[int], priority: int) -> None:
        """Set threads of one of this user's processes to SCHED_FIFO with ``priority``. If ``priority`` is 0, set them
        back to SCHED_OTHER."""
        self._ask("realtime", START_LIMIT_S, pid=pid, tids=list(tids), priority=priority)

    def evidence_begin(
        self,
        pid: int,
        tids: Sequence[int],
        cpus: str,
        clock: str,
        stacks: bool,
        buffer_kb: int | None = None,
        *,
        overwrite: bool = False,
    ) -> TraceInfo:
        """Prepare a recording of the kernel's trace. It has the events of some threads and of the CPUs ``cpus``. The
        threads belong to one of this user's processes.

        With ``overwrite``, the newest events overwrite the oldest in a full buffer.
        """
        threads: dict[str, Any] = {"pid": pid, "tids": list(tids), "cpus": cpus}
        how: dict[str, Any] = {"clock": clock, "stacks": stacks, "buffer_kb": buffer_kb, "overwrite": overwrite}
        info = _as(TraceInfo, self._ask("evidence", STEP_LIMIT_S, do="begin", **threads, **how))
        self._names = []
        return info

    def evidence_follow(self, pids: Sequence[int], cpus: str, clock: str, *, overwrite: bool = False) -> TraceInfo:
        """Prepare a long recording of the kernel's trace for this user's processes ``pids``, and for all processes that
        they start.

        With ``overwrite``, the newest events overwrite the oldest in a full buffer. Such a recording is read only at
        its end.
        """
        what: dict[str, Any] = {"pids": list(pids), "cpus": cpus, "clock": clock, "overwrite": overwrite}
        info = _as(TraceInfo, self._ask("evidence", STEP_LIMIT_S, do="begin", **what))
        self._names = []
        return info

    def evidence_drain(self) -> bool:
        """Take the events recorded so far out of the kernel's buffers, to make room. Return True if the recording has
        ended by itself because there was no room for more events."""
        return self._ask("evidence", STEP_LIMIT_S, do="drain").get("ended") is True

    def evidence_start(self) -> None:
        """Start the recording of the kernel's trace that was prepared."""
        self._ask("evidence", START_LIMIT_S, do="start")

    def evidence_read(self, since: int = 0) -> TraceRead:
        """Stop the recording, and return its events. Most of the events before the time ``since`` (in ticks of the
        clock) are left out."""
        told = self._ask("evidence", STEP_LIMIT_S, do="read", since=since or None)
        try:
            parts = [
                base64.b64decode(self._ask("evidence", STEP_LIMIT_S, do="piece", number=number)["data"])
                for number in range(told["pieces"])
            ]
            whole = zlib.decompress(b"".join(parts))
            length = 4 + int.from_bytes(whole[:4], "little")
            self._names += json.loads(whole[4:length])
            lost, elsewhere = ({int(cpu): n for cpu, n in told[name].items()} for name in ("lost", "lost_elsewhere"))
            whole_from = int(told.get("whole_from", 0))
        except (KeyError, TypeError, ValueError, zlib.error) as error:
            raise HostError(f"the agent sent an answer that cannot be read: {error}") from error
        return TraceRead(whole[length:], tuple(self._names), lost, elsewhere, whole_from)

    def evidence_end(self) -> None:
        """Remove the recording's trace instances from the kernel."""
        self._ask("evidence", STEP_LIMIT_S, do="end")

    def keep(self, journals: Sequence[str] = ()) -> None:
        """Take changes out of this connection's lease, so that they stay until a later ``restore``. If ``journals`` are
        given, take out only the changes in these journals; all others stay leased."""
        self._ask("keep", START_LIMIT_S, journals=list(journals))

    def take_turn(self, people: Sequence[str], wait_s: float, stop: int | None = None) -> TurnGranted:
        """Wait for the turn on a class host, and take it. From then on, this process and its children may use the hot
        CPUs.

        ``people``: the other members of the team. ``stop``: a descriptor that ends the wait when it becomes readable.
        If the wait ends without the turn, the connection ends, and an error is raised: BusyError after ``wait_s``
        seconds, WaitStopped after ``stop``, HostError in all other cases.
        """
        self._start_heart()
        fields: dict[str, Any] = {"do": "take", "people": list(people), "client": os.getpid()}
        try:
            return _as(TurnGranted, self._link.ask("turn", wait_s, stop, **fields))
        except Late:
            self.close()  # the answer may be on its way, but our place in the queue is given up
            raise BusyError("this program did not get the turn in time") from None
        except WaitStopped:
            self.close()
            raise
        except Broken as error:
            raise self._died(False) from error

    def need_turn(self) -> None:
        """Raise HostError with the reason if this connection does not have the turn, or no longer has it."""
        self._ask("turn", STEP_LIMIT_S, do="need")

    def turn(self, do: str, **fields: Any) -> None:
        """Send a request about turns. Raise HostError on failure. ``do``:

        - ``give``: give the turn back.
        - ``doing``: describe the holder's work.
        - ``end``, ``freeze``, ``thaw``: for instructors; ``end`` has the field ``user``.
        """
        self._ask("turn", STEP_LIMIT_S, do=do, **fields)

    def bye(self) -> RestoreResult:
        """Restore the changes of a lease, and end the connection. Return the result of the restore."""
        try:
            return _as(RestoreResult, self._ask("bye", STEP_LIMIT_S))
        finally:
            self.close()

    def wait(self) -> None:
        """Wait until the agent ends, and raise HostError. An agent ends without a request if this process was stopped
        for longer than LEASE_S."""
        if self._link.wait() == 0:
            raise HostError(
                f"this program was stopped for longer than {LEASE_S:.0f} s, so its changes have been restored",
                "'jitter-workshop restore --list' shows the changes that are still in place",
            )
        raise self._died(False)

    def close(self) -> None:
        """End the connection without a request. The agent notices the end, and restores the changes of a lease."""
        self._beating.set()
        # An agent that restores a lease may take long; it goes on without us.
        self._link.close(STEP_LIMIT_S if self._heart is not None else 5.0)

    def _ask(self, verb: str, limit_s: float, starting: bool = False, **fields: Any) -> dict[str, Any]:
        try:
            return self._link.ask(verb, limit_s, **fields)
        except Broken as error:
            raise self._died(starting) from error

    def _start_heart(self) -> None:
        if self._heart is None:
            self._heart = threading.Thread(target=self._beat, name="jw-heartbeat", daemon=True)
            self._heart.start()

    def _beat(self) -> None:
        while not self._beating.wait(LEASE_S / 5):
            try:
                self._link.write(b'{"verb":"heartbeat"}\n')
            except OSError:
                # The agent has ended by itself: reap it at once, so that it does not stay as <defunct>.
                self._link.code(LEASE_S)
                return

    def _died(self, starting: bool) -> HostError:
        """Return the error for an agent that does not answer any more, with the last line that it wrote on standard
        error."""
        code = self._link.code(0.5)
        said = self._link.last_words()
        if starting:
            return _not_started(said, code, self._purpose)
        how = "does not answer" if code is None else f"ended with {'signal' if code < 0 else 'code'} {abs(code)}"
        return HostError(f"the agent {how}{f' ({said})' if said else ''}", _RESTORE)


def rights(status: str = "/proc/self/status") -> Rights:
    """Return the way to get root rights on this host. Sudo is not tried, because sudo logs an attempt that fails.

    ``status``: the path of the process's status file; tests give another one.
    """
    if os.geteuid() == 0:
        return "root"
    if shutil.which("sudo") is None:
        return "none"
    try:
        # In many containers a set-user-ID program gets no extra rights (proc_pid_status(5), prctl(2)).
        barred = "NoNewPrivs:\t1" in Path(status).read_text(encoding="ascii", errors="replace")
    except OSError:
        barred = False
    return "none" if barred else "sudo"


def connect(ask: bool = True, purpose: Purpose = CHANGING) -> AgentClient:
    """Return a connection with the agent of this host, as root.

    Raise HostError, in words about ``purpose``, if there is no way to get root rights. If ``ask`` is False and sudo
    would ask for a password on the terminal, raise NeedsPassword.
    """
    command = agent_command()
    # Root does not use the class's service: root must be able to act when that does not work.
    path = class_socket() if os.geteuid() else None
    if path is not None:
        return AgentClient(SocketLink(path), purpose=purpose)
    if os.geteuid() == 0:
        return AgentClient(command, purpose=purpose, environment=_of_root())
    sudo = shutil.which("sudo")
    if sudo is None:
        raise no_sudo(purpose)
    try:
        return AgentClient((sudo, "-n", "--", *command), purpose=purpose)
    except NeedsPassword as refusal:
        if not ask:
            raise
        if not sys.stdin.isatty():
            raise HostError(refusal.message, purpose.advice("run this command on a terminal or as root")) from None
    # sudo asks on the terminal itself, so it has to stay in the terminal's session.
    return AgentClient((sudo, "--", *command), ASK_LIMIT_S, own_session=False, purpose=purpose)


def connect_class() -> AgentClient:
    """Return a connection with the agent of a class host. The user is a member of the class and needs no password.
    Raise HostError on failure."""
    path = class_socket()
    if path is not None:
        return AgentClient(SocketLink(path))
    need_group()
    return connect(ask=False)


def _of_root(class_file: str = CLASS_FILE) -> dict[str, str] | None:
    """Return the environment for an agent that root starts; None for the whole environment of this program.

    On a class host, return a copy of the environment without SUDO_UID: with it, the agent would treat root as the
    member of the class who called sudo. On any other host return None: there the agent needs SUDO_UID to name the user
    in the journal.
    """
    if not os.path.lexists(class_file):
        return None
    return {name: value for name, value in os.environ.items() if name != "SUDO_UID"}


class NeedsPassword(HostError):
    """Report that sudo would ask for a password."""


def no_sudo(purpose: Purpose = CHANGING) -> HostError:
    """Return the error for a user without root rights on a host without sudo."""
    return HostError(
        f"{purpose.noun} needs root's rights; sudo is not installed", purpose.advice("run this command as root")
    )


def asks_password(purpose: Purpose = CHANGING) -> NeedsPassword:
    """Return the error for a user whom sudo would ask for a password."""
    return NeedsPassword(f"{purpose.noun} needs root's rights, and sudo asks for a password", purpose.advice())


def _not_started(said: str, code: int | None, purpose: Purpose) -> HostError:
    """Return the error for an agent that did not begin. ``said``: the last line that the agent or sudo wrote. ``code``:
    the exit code."""
    if said.startswith("jitter-workshop agent: "):
        return HostError(said.removeprefix("jitter-workshop agent: "))
    if "password is required" in said or "terminal is required" in said:
        return asks_password(purpose)
    if said.startswith("sudo:") or "not in the sudoers" in said or "not allowed" in said or "may not run" in said:
        return HostError(f"sudo does not let you {purpose.verb} ({said.removeprefix('sudo: ')})", purpose.advice())
    how = "does not answer" if code is None else f"ended with code {code}"
    return HostError(f"the agent {how} when it was started{f': {said}' if said else ''}", purpose.advice())


def _as(cls: type[T], value: dict[str, Any]) -> T:
    try:
        return from_plain(cls, value)
    except CodecError as error:
        raise HostError(f"the agent sent an answer that cannot be read: {error}", _RESTORE) from error
