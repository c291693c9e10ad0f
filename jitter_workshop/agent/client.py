"""Start the agent as root, send it requests, and keep a lease alive.

A program of root starts the agent directly. Other users start the agent through sudo, or connect to a class's socket.
If sudo needs a password, sudo asks for it on the terminal.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import sys
import threading
import weakref
import zlib
from collections.abc import Mapping, Sequence
from functools import partial
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
from jitter_workshop.model.text import PARAGRAPH, clean
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

_RESTORE = "run 'jitter-workshop restore' to restore the old values"


@dataclass(frozen=True, slots=True)
class Purpose:
    """Hold the reason why root rights are needed, in words for messages.

    ``noun``: such as "changing this host". ``verb``: such as "change this host". ``otherwise``: advice for users
    without root rights; "" for none.
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

    ``notice``: a warning if other users can change the code that runs as root; else "". ``pid``: the agent's process
    id; None if unknown.
    """

    def __init__(
        self,
        command: Sequence[str] | SocketLink,
        wait_s: float = START_LIMIT_S,
        own_session: bool = True,
        purpose: Purpose = CHANGING,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Connect to the agent, and send ``hello``.

        ``command``: a command line that starts the agent, or a link to a running agent. ``wait_s``: the time limit for
        the agent's answer. ``environment``: the environment of a started agent; None means this program's environment.
        Raise HostError if the connection fails; the error's message mentions ``purpose``.
        """
        self.notice = ""
        self.pid: int | None = None
        self._purpose = purpose
        self._names: list[str] = []
        self._needed, self._ended = threading.Event(), threading.Event()
        self._heart: threading.Thread | None = None
        self._holds = False
        """True if the agent restores something when this connection ends."""
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
            self.notice = clean(hello.get("notice", ""), PARAGRAPH)
            self.pid = hello["pid"] if isinstance(hello.get("pid"), int) else None
            self._start_heart()
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
        """Return the agent's plan for the tunables ``wanted``. The agent runs as root, so it can read more than this
        process."""
        return _as(Plan, self._ask("plan", STEP_LIMIT_S, wanted=list(wanted), cpus=cpus))

    def apply(self, wanted: Sequence[str], cpus: str, shown: Sequence[str], lease: bool = False) -> ApplyResult:
        """Make the changes whose digests are in ``shown``. With ``lease``, the changes are restored when this
        connection ends or this process is stopped."""
        lease_s = LEASE_S if lease else None
        fields: dict[str, Any] = {"wanted": list(wanted), "cpus": cpus, "shown": list(shown), "lease": lease_s}
        if lease:
            self._hold()
        return _as(ApplyResult, self._ask("apply", STEP_LIMIT_S, **fields))

    def announce(self, wanted: Sequence[str], cpus: str, shown: Sequence[str]) -> ApplyResult:
        """Record the old values of changes that a user will make by hand. ``shown``: the digests of these changes.

        No setting is written. When this connection ends or this process is stopped, the user's changes are restored.
        """
        self._hold()
        fields: dict[str, Any] = {"wanted": list(wanted), "cpus": cpus, "shown": list(shown), "lease": LEASE_S}
        return _as(ApplyResult, self._ask("announce", STEP_LIMIT_S, **fields))

    def adopt(self, journal_id: str, *, end: bool = False, wrong: bool = False) -> ApplyResult:
        """Record in an announced journal which of its changes a user has made by hand.

        - ``end``: True if the user will make no more of the announced changes.
        - ``wrong``: True to record a change even if the user typed another value than the announced value.
        """
        return _as(ApplyResult, self._ask("adopt", STEP_LIMIT_S, journal=journal_id, end=end, wrong=wrong))

    def restore(
        self, tunables: Sequence[str] = (), *, journals: Sequence[str] = (), forget: bool = False
    ) -> RestoreResult:
        """Restore the changes of ``tunables`` in the journals with the ids ``journals``. An empty list means all
        tunables or all journals.

        A setting keeps its value if another program or user changed it later. With ``forget``, later restores ignore
        such a setting.
        """
        asked: dict[str, Any] = {"tunables": list(tunables), "journals": list(journals), "forget": forget}
        return _as(RestoreResult, self._ask("restore", STEP_LIMIT_S, **asked))

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
        """Prepare to record the kernel's trace of some threads and of the CPUs ``cpus``.

        The threads must belong to one process of this user. ``buffer_kb``: the buffer size for each CPU in KiB; None
        for the usual size. ``overwrite``: in a full buffer, the newest events overwrite the oldest.
        """
        threads: dict[str, Any] = {"pid": pid, "tids": list(tids), "cpus": cpus}
        how: dict[str, Any] = {"clock": clock, "stacks": stacks, "buffer_kb": buffer_kb, "overwrite": overwrite}
        info = _as(TraceInfo, self._ask("evidence", STEP_LIMIT_S, do="begin", **threads, **how))
        self._names = []
        return info

    def evidence_follow(self, pids: Sequence[int], cpus: str, clock: str, *, overwrite: bool = False) -> TraceInfo:
        """Prepare a long recording of the kernel's trace for the processes ``pids`` and their children.

        The processes must belong to this user. ``overwrite``: in a full buffer, the newest events overwrite the oldest.
        A recording with ``overwrite`` cannot be drained.
        """
        what: dict[str, Any] = {"pids": list(pids), "cpus": cpus, "clock": clock, "overwrite": overwrite}
        info = _as(TraceInfo, self._ask("evidence", STEP_LIMIT_S, do="begin", **what))
        self._names = []
        return info

    def evidence_drain(self) -> bool:
        """Move the recorded events out of the kernel's buffers, to make room for new events.

        Return True if the recording has stopped because there was no more room.
        """
        return self._ask("evidence", STEP_LIMIT_S, do="drain").get("ended") is True

    def evidence_start(self) -> None:
        """Start the prepared recording of the kernel's trace."""
        self._ask("evidence", START_LIMIT_S, do="start")

    def evidence_read(self, since: int = 0) -> TraceRead:
        """Stop the recording, and return its events. ``since``: a time in ticks of the recording's clock.

        Most events before ``since`` are left out; 0 returns all events.
        """
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
        """Exclude the journals ``journals`` from this connection's lease. An empty list means all leased journals.

        Their changes remain until a later ``restore``.
        """
        self._ask("keep", START_LIMIT_S, journals=list(journals))

    def take_turn(self, people: Sequence[str], wait_s: float, stop: int | None = None) -> TurnGranted:
        """Wait until this user's turn on a class host begins, and return the turn.

        During the turn, this process and its children may use the hot CPUs. ``people``: the other members of this
        user's team.

        Raise BusyError if the turn does not begin within ``wait_s`` seconds. Raise WaitStopped if the descriptor
        ``stop`` becomes readable. These two errors close the connection. Raise HostError on any other failure.
        """
        self._hold()
        fields: dict[str, Any] = {"do": "take", "people": list(people), "client": os.getpid()}
        try:
            return _as(TurnGranted, self._link.ask("turn", wait_s, stop, **fields))
        except Late:
            self.close()  # the answer may be on its way, but our place in the queue is given up
            raise BusyError("your turn did not come in time, so this program left the queue") from None
        except WaitStopped:
            self.close()
            raise
        except Broken as error:
            raise self._died(False) from error

    def need_turn(self) -> None:
        """Raise HostError with the reason if this connection does not have the turn now."""
        self._ask("turn", STEP_LIMIT_S, do="need")

    def turn(self, do: str, **fields: Any) -> None:
        """Send the request ``do`` about turns to the agent. Raise HostError on failure.

        - ``give``: end this user's own turn.
        - ``doing``: publish the field ``doing``, a description of the holder's work.
        - ``end``: end the turn of the user in the field ``user``. Only an instructor may end another user's turn.
        - ``freeze``, ``thaw``: let no new turn begin, or let turns begin again; only for instructors.
        """
        self._ask("turn", STEP_LIMIT_S, do=do, **fields)

    def bye(self) -> RestoreResult:
        """Restore the changes of a lease, and end the connection. Return the result of the restore."""
        try:
            return _as(RestoreResult, self._ask("bye", STEP_LIMIT_S))
        finally:
            self.close()

    def wait(self) -> None:
        """Wait until the agent ends, then raise HostError with the reason.

        The agent ends by itself if this process was stopped for longer than LEASE_S seconds.
        """
        if self._link.wait() == 0:
            raise HostError(
                f"this program's changes have been restored, because the program was paused for longer than "
                f"{LEASE_S:.0f} s",
                "'jitter-workshop restore --list' shows the changes that are still in place",
            )
        raise self._died(False)

    def close(self) -> None:
        """End the connection without a request. The agent notices the end, and restores the changes of a lease."""
        self._ended.set()
        self._needed.set()
        # An agent that restores a lease may take long; it goes on without us.
        self._link.close(STEP_LIMIT_S if self._holds else 5.0)

    def _ask(self, verb: str, limit_s: float, starting: bool = False, **fields: Any) -> dict[str, Any]:
        try:
            return self._link.ask(verb, limit_s, **fields)
        except Broken as error:
            raise self._died(starting) from error

    def _hold(self) -> None:
        """Note that the agent restores something when this connection ends, and send heartbeats until then."""
        self._holds = True
        self._needed.set()

    def _start_heart(self) -> None:
        """Start the heartbeat's thread, which sleeps until something is held.

        The thread begins with the connection, and so before any plan that this agent's user is shown. A plan that moves
        all tasks off a CPU then has it in its list. A thread that began later would stay on this CPU, because only what
        was shown is written.
        """
        needed, ended = self._needed, self._ended

        def end(_: object) -> None:
            ended.set()
            needed.set()

        # The thread must not keep a client open to which nothing else refers.
        beat = partial(_beat, weakref.ref(self, end), needed, ended)
        self._heart = threading.Thread(target=beat, name="jw-heartbeat", daemon=True)
        self._heart.start()

    def beat(self) -> bool:
        """Send one heartbeat. Return False if the agent has ended."""
        try:
            self._link.write(b'{"verb":"heartbeat"}\n')
        except OSError:
            # The agent has ended by itself: reap it at once, so that it does not stay as <defunct>.
            self._link.code(LEASE_S)
            return False
        return True

    def _died(self, starting: bool) -> HostError:
        """Return the error for an agent that no longer answers. The message quotes the agent's last line on standard
        error."""
        code = self._link.code(0.5)
        said = self._link.last_words()
        if starting:
            return _not_started(said, code, self._purpose)
        how = "does not answer" if code is None else f"ended with {'signal' if code < 0 else 'code'} {abs(code)}"
        return HostError(f"the agent {how}{f' ({said})' if said else ''}", _RESTORE)


def _beat(client: weakref.ref[AgentClient], needed: threading.Event, ended: threading.Event) -> None:
    """Send heartbeats from when ``needed`` is set, until ``ended`` is set, the agent ends, or nothing refers to the
    client any more."""
    needed.wait()
    while not ended.wait(LEASE_S / 5):
        alive = client()
        if alive is None or not alive.beat():
            return
        del alive


def rights(status: str = "/proc/self/status") -> Rights:
    """Return the way in which this process can get root rights: as root, by sudo, or not at all.

    ``status``: the path of the process's status file, for tests. Sudo is not run, because sudo logs each failed
    attempt.
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


def connect_to_agent(ask: bool = True, purpose: Purpose = CHANGING) -> AgentClient:
    """Return a connection with this host's agent, which runs as root.

    Raise HostError if there is no way to get root rights; the message mentions ``purpose``. If ``ask`` is False, raise
    NeedsPassword where sudo would ask for a password.
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
    return connect_to_agent(ask=False)


def _of_root(class_file: str = CLASS_FILE) -> dict[str, str] | None:
    """Return the environment for an agent that root starts; None means this program's environment.

    On a class host, the environment has no SUDO_UID, so that the agent treats the caller as root. On other hosts,
    return None. The environment then keeps SUDO_UID, and the agent writes the user of SUDO_UID into the journal.
    """
    if not os.path.lexists(class_file):
        return None
    return {name: value for name, value in os.environ.items() if name != "SUDO_UID"}


class NeedsPassword(HostError):
    """Report that sudo would ask for a password."""


def no_sudo(purpose: Purpose = CHANGING) -> HostError:
    """Return the error for a user without root rights on a host without sudo."""
    return HostError(
        f"{purpose.noun} needs root's rights, but sudo is not installed", purpose.advice("run this command as root")
    )


def asks_password(purpose: Purpose = CHANGING) -> NeedsPassword:
    """Return the error for a user whom sudo would ask for a password."""
    return NeedsPassword(f"{purpose.noun} needs root's rights, and sudo asks for a password", purpose.advice())


def _not_started(said: str, code: int | None, purpose: Purpose) -> HostError:
    """Return the error for an agent that failed to start.

    ``said``: the last line of the agent or of sudo. ``code``: the exit code; None if the process still runs.
    """
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
