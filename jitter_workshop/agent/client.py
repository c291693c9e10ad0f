"""The caller's side: starts the agent as root, speaks with it, and keeps a lease alive.

As root the agent is started directly, else by sudo: without a password where that is possible, else with sudo's own
question on the terminal.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import sys
import threading
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeVar

from jitter_workshop.agent import protocol
from jitter_workshop.agent.rpc import Broken, Conversation, Late
from jitter_workshop.agent.transport import Link, ProcessLink, SocketLink, class_socket, need_group
from jitter_workshop.errors import BusyError, HostError, WaitStopped
from jitter_workshop.model.change import ApplyResult, Plan, RestoreResult
from jitter_workshop.model.codec import CodecError, from_plain
from jitter_workshop.model.text import clean
from jitter_workshop.model.trace import TraceInfo, TraceRead
from jitter_workshop.model.turn import TurnGranted
from jitter_workshop.paths import CLASS_FILE

T = TypeVar("T")

Rights = Literal["root", "sudo", "none"]
"""``sudo``: it is there, and may ask for a password, or refuse."""

LEASE_S = 20.0
"""A lease ends after this many seconds of silence; a heartbeat comes five times as often."""
STEP_LIMIT_S = 600.0
"""How long a plan, an apply or a restore may take (update-grub alone takes up to two minutes)."""
START_LIMIT_S = 30.0
ASK_LIMIT_S = 300.0
"""How long sudo's question on the terminal may stay open."""

_RESTORE = "run 'jitter-workshop restore' to give back what was changed"


@dataclass(frozen=True, slots=True)
class Purpose:
    """What root's rights are wanted for, as a noun and as a verb; ``otherwise``: the way without them, "" for none."""

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
    """The agent's command line, as a rule in sudoers has to name it."""
    interpreter = os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)
    return (interpreter, "-I", "-S", "-B", str(Path(__file__).resolve().with_name("__main__.py")))


class AgentClient:
    """One connection. ``notice``: what the user is to be told about whose code runs as root, "" for nothing."""

    def __init__(
        self,
        command: Sequence[str] | SocketLink,
        wait_s: float = START_LIMIT_S,
        own_session: bool = True,
        purpose: Purpose = CHANGING,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start ``command`` (in this program's environment, or another), or take a connection, and greet the agent.
        Raises HostError in one sentence, about ``purpose``, where that fails."""
        self.notice = ""
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
        self._talk = Conversation(self._link)
        try:
            hello = self._ask("hello", wait_s, starting=True)
            if hello.get("protocol") != protocol.PROTOCOL:
                raise HostError("the agent is of another version", "install both from the same version")
            self.notice = clean(hello.get("notice", ""), 600)
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> AgentClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def ended(self) -> bool:
        """Has the agent's process ended, for whatever reason?"""
        return self._link.ended

    def plan(self, wanted: Sequence[str], cpus: str) -> Plan:
        """The plan as root sees it."""
        return _as(Plan, self._ask("plan", STEP_LIMIT_S, wanted=list(wanted), cpus=cpus))

    def apply(self, wanted: Sequence[str], cpus: str, shown: Sequence[str], lease: bool = False) -> ApplyResult:
        """Make the changes whose digests are in ``shown``. With ``lease`` they are given back when this connection ends
        or this process stands still."""
        lease_s = LEASE_S if lease else None
        fields: dict[str, Any] = {"wanted": list(wanted), "cpus": cpus, "shown": list(shown), "lease": lease_s}
        if lease:
            self._start_heart()
        return _as(ApplyResult, self._ask("apply", STEP_LIMIT_S, **fields))

    def restore(self, tunables: Sequence[str] = (), *, forget: bool = False) -> RestoreResult:
        """Give back what is applied; with ``forget`` strike off, too, what somebody else has changed since."""
        return _as(RestoreResult, self._ask("restore", STEP_LIMIT_S, tunables=list(tunables), forget=forget))

    def place(self, pid: int) -> str:
        """Put a process of this user's on the CPUs that are isolated; which ones."""
        return str(self._ask("place", START_LIMIT_S, pid=pid).get("cpus", ""))

    def realtime(self, pid: int, tids: Sequence[int], priority: int) -> None:
        """Give threads of a process of this user's SCHED_FIFO with ``priority``, or 0 for none."""
        self._ask("realtime", START_LIMIT_S, pid=pid, tids=list(tids), priority=priority)

    def evidence_begin(
        self, pid: int, tids: Sequence[int], cpus: str, clock: str, stacks: bool, buffer_kb: int | None = None
    ) -> TraceInfo:
        """Prepare to record the kernel's trace of threads of a process of this user's and of the CPUs they run on."""
        asked: dict[str, Any] = {
            "pid": pid,
            "tids": list(tids),
            "cpus": cpus,
            "clock": clock,
            "stacks": stacks,
            "buffer_kb": buffer_kb,
        }
        info = _as(TraceInfo, self._ask("evidence", STEP_LIMIT_S, do="begin", **asked))
        self._names = []
        return info

    def evidence_start(self) -> None:
        """Record from now on."""
        self._ask("evidence", START_LIMIT_S, do="start")

    def evidence_read(self) -> TraceRead:
        """Stop, and what was recorded since the start."""
        told = self._ask("evidence", STEP_LIMIT_S, do="read")
        try:
            parts = [
                base64.b64decode(self._ask("evidence", STEP_LIMIT_S, do="piece", number=number)["data"])
                for number in range(told["pieces"])
            ]
            whole = zlib.decompress(b"".join(parts))
            length = 4 + int.from_bytes(whole[:4], "little")
            self._names += json.loads(whole[4:length])
            lost, elsewhere = ({int(cpu): n for cpu, n in told[name].items()} for name in ("lost", "lost_elsewhere"))
        except (KeyError, TypeError, ValueError, zlib.error) as error:
            raise HostError(f"the agent answers in a form that is not understood: {error}") from error
        return TraceRead(whole[length:], tuple(self._names), lost, elsewhere)

    def evidence_end(self) -> None:
        """Take the trace away from the kernel."""
        self._ask("evidence", STEP_LIMIT_S, do="end")

    def keep(self, journals: Sequence[str] = ()) -> None:
        """What this lease holds stays until ``restore``; with ``journals`` only what was applied as these."""
        self._ask("keep", START_LIMIT_S, journals=list(journals))

    def take_turn(self, people: Sequence[str], wait_s: float, stop: int | None = None) -> TurnGranted:
        """Wait for the turn of a class host and have it: this process and what it starts may then use the hot CPUs.
        ``people``: who else is in the team; ``stop``: a descriptor that ends the wait when it becomes readable. A wait
        that ends without the turn ends the connection. Raises HostError, BusyError after ``wait_s``, WaitStopped."""
        self._start_heart()
        fields: dict[str, Any] = {"do": "take", "people": list(people), "client": os.getpid()}
        try:
            return _as(TurnGranted, self._talk.ask("turn", wait_s, stop, **fields))
        except Late:
            self._end()  # the answer may be on its way: who has left the queue has no connection any more
            raise BusyError("the turn did not come in time") from None
        except WaitStopped:
            self._end()
            raise
        except Broken as error:
            raise self._died(False) from error

    def need_turn(self) -> None:
        """Raises HostError, which says why, where this connection has not the turn (any more)."""
        self._ask("turn", STEP_LIMIT_S, do="need")

    def turn(self, do: str, **fields: Any) -> None:
        """``give`` the turn back, say what one is ``doing`` in it, or as an instructor ``end`` (``user``), ``freeze``
        and ``thaw``. Raises HostError."""
        self._ask("turn", STEP_LIMIT_S, do=do, **fields)

    def bye(self) -> RestoreResult:
        """End the connection; a lease is given back first."""
        try:
            return _as(RestoreResult, self._ask("bye", STEP_LIMIT_S))
        finally:
            self._end()

    def wait(self) -> None:
        """Wait until the agent ends by itself, which it does where this process stood still for longer than a lease
        lasts. Raises HostError then."""
        if self._link.wait() == 0:
            raise HostError(
                f"this program stood still for longer than {LEASE_S:.0f} s, so what was applied has been given back",
                "'jitter-workshop restore --list' shows that nothing stands",
            )
        raise self._died(False)

    def close(self) -> None:
        """End the connection without asking; a lease is given back by the agent itself."""
        self._end()

    def _ask(self, verb: str, limit_s: float, starting: bool = False, **fields: Any) -> dict[str, Any]:
        try:
            return self._talk.ask(verb, limit_s, **fields)
        except Broken as error:
            raise self._died(starting) from error

    def _start_heart(self) -> None:
        if self._heart is None:
            self._heart = threading.Thread(target=self._beat, name="jw-heartbeat", daemon=True)
            self._heart.start()

    def _beat(self) -> None:
        while not self._beating.wait(LEASE_S / 5):
            try:
                self._talk.write(b'{"verb":"heartbeat"}\n')
            except OSError:
                # The agent has ended by itself: asked for at once, it is nobody's <defunct> process.
                self._link.code(LEASE_S)
                return

    def _died(self, starting: bool) -> HostError:
        """The error of an agent that does not answer any more, with its own last words."""
        code = self._link.code(0.5)
        said = self._link.last_words()
        if starting:
            return _not_started(said, code, self._purpose)
        how = "does not answer" if code is None else f"ended with {'signal' if code < 0 else 'code'} {abs(code)}"
        return HostError(f"the agent {how}{f' ({said})' if said else ''}", _RESTORE)

    def _end(self) -> None:
        self._beating.set()
        # An agent that gives back a lease takes as long as that takes; it does so without us.
        self._talk.close(STEP_LIMIT_S if self._heart is not None else 5.0)


def rights(status: str = "/proc/self/status") -> Rights:
    """By which way root's rights would be had here, without trying: an attempt of sudo's that fails is logged.
    ``status``: for tests."""
    if os.geteuid() == 0:
        return "root"
    if shutil.which("sudo") is None:
        return "none"
    try:
        # In many containers a set-user-ID program gets no other rights (proc_pid_status(5), prctl(2)).
        barred = "NoNewPrivs:\t1" in Path(status).read_text(encoding="ascii", errors="replace")
    except OSError:
        barred = False
    return "none" if barred else "sudo"


def connect(ask: bool = True, purpose: Purpose = CHANGING) -> AgentClient:
    """The agent of this host, as root. Raises HostError where root's rights are not to be had, in words about
    ``purpose``; without ``ask`` NeedsPassword where sudo would ask for a password on the terminal."""
    command = agent_command()
    # Root asks nobody: there has to be a way also when the class's own does not work.
    path = class_socket() if os.geteuid() else None
    if path is not None:
        return AgentClient(SocketLink(path), purpose=purpose)
    if os.geteuid() == 0:
        return AgentClient(command, purpose=purpose, environment=_of_root())
    sudo = shutil.which("sudo")
    if sudo is None:
        raise HostError(f"{purpose.noun} needs root's rights, and sudo is not here", purpose.advice("run it as root"))
    try:
        return AgentClient((sudo, "-n", "--", *command), purpose=purpose)
    except NeedsPassword as refusal:
        if not ask:
            raise
        if not sys.stdin.isatty():
            raise HostError(refusal.message, purpose.advice("run it on a terminal or as root")) from None
    # sudo asks on the terminal itself, so it has to stay in the terminal's session.
    return AgentClient((sudo, "--", *command), ASK_LIMIT_S, own_session=False, purpose=purpose)


def connect_class() -> AgentClient:
    """The agent of a class host, as a member of the class, of whom nobody asks a password. Raises HostError."""
    path = class_socket()
    if path is not None:
        return AgentClient(SocketLink(path))
    need_group()
    return connect(ask=False)


def _of_root(class_file: str = CLASS_FILE) -> dict[str, str] | None:
    """On a class host root is root, however they became it: the agent would take whom sudo let run it for a member.
    None, this program's own environment, elsewhere: there the journal names who it was."""
    if not os.path.lexists(class_file):
        return None
    return {name: value for name, value in os.environ.items() if name != "SUDO_UID"}


class NeedsPassword(HostError):
    """sudo would ask for a password."""


def _not_started(said: str, code: int | None, purpose: Purpose) -> HostError:
    """Why an agent did not begin, from its own or sudo's last words."""
    if said.startswith("jitter-workshop agent: "):
        return HostError(said.removeprefix("jitter-workshop agent: "))
    if "password is required" in said or "terminal is required" in said:
        return NeedsPassword(f"{purpose.noun} needs root's rights, and sudo asks for a password", purpose.advice())
    if said.startswith("sudo:") or "not in the sudoers" in said or "not allowed" in said or "may not run" in said:
        return HostError(f"sudo does not let you {purpose.verb} ({said.removeprefix('sudo: ')})", purpose.advice())
    how = "does not answer" if code is None else f"ended with code {code}"
    return HostError(f"the agent {how} at its start{f': {said}' if said else ''}", purpose.advice())


def _as(cls: type[T], value: dict[str, Any]) -> T:
    try:
        return from_plain(cls, value)
    except CodecError as error:
        raise HostError(f"the agent answers in a form that is not understood: {error}", _RESTORE) from error
