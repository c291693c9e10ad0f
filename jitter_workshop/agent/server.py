"""Root's side of the connection: one request after the other, and the lease that ends when nobody speaks any more.

Whatever comes in is answered or dropped; nothing of it ends the process before a lease is given back.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from jitter_workshop.agent import helping, policy, protocol
from jitter_workshop.agent.journal import JournalFile, close_finished, open_journals
from jitter_workshop.agent.lock import WAIT_S, HostLock
from jitter_workshop.agent.statedir import StateDir
from jitter_workshop.errors import HostError, UsageError, WorkshopError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import ApplyResult, LeftAlone, Refused, RestoreResult, Wanted
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.text import clean
from jitter_workshop.tuning.applying import apply_changes, shown_only
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.journal import JOURNAL_DIR, SUFFIX, current_boot
from jitter_workshop.tuning.planning import plan
from jitter_workshop.tuning.registry import find, parse_wanted
from jitter_workshop.tuning.restoring import restore
from jitter_workshop.tuning.status import likely_culprit
from jitter_workshop.tuning.writer import HostWriter

if TYPE_CHECKING:
    from jitter_workshop.agent.evidence import Evidence

IDLE_LIMIT_S = 3600.0
"""How long a connection without a lease may say nothing."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What an agent works on. ``owner``: who must own the state folder; ``top``: below which folder it lies. ``who``:
    words about the caller; ``notice``: what they are to be told first."""

    root: HostRoot
    writer: HostWriter
    top: str
    owner: int
    uid: int
    who: str
    tree: str
    notice: str = ""
    journals: type[JournalFile] = JournalFile
    lock_wait_s: float = WAIT_S


class Gone(Exception):
    """The caller is not there any more."""


class Server:
    """One connection over two descriptors."""

    def __init__(self, setup: Setup, source: int, sink: int) -> None:
        self.stop = False
        self._wake, self._waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._setup = setup
        self._source = source
        self._sink = sink
        self._buffer = b""
        self._folder: StateDir | None = None
        self._lock: HostLock | None = None
        self._lease_s: float | None = None
        self._leased: list[str] = []
        self._trace: Evidence | None = None
        self._heard = time.monotonic()
        self._verbs: dict[str, Callable[[dict[str, Any]], Any]] = {
            "hello": self._hello,
            "plan": self._plan,
            "apply": self._apply,
            "restore": self._restore,
            "keep": self._keep,
            "place": self._place,
            "realtime": self._realtime,
            "evidence": self._evidence,
        }

    def interrupt(self) -> None:
        """Stop between two steps; for signal handlers."""
        self.stop = True
        with contextlib.suppress(OSError):
            os.write(self._waker, b"!")

    def serve(self) -> None:
        """Answer until the caller leaves, falls silent or says bye; then give back what is leased."""
        try:
            while not self.stop:
                line = self._next_line()
                if line is None or not self._answer(line):
                    break
        except Gone:
            pass
        finally:
            self.stop = False  # a second signal does not keep the lease from being given back
            with contextlib.suppress(WorkshopError):
                self._end_trace()
            with contextlib.suppress(WorkshopError):
                self._end_lease()
            self._close()

    # Lines --------------------------------------------------------------------------------------------------------

    def _next_line(self) -> bytes | None:
        """The next line, None at the end of the input. Raises Gone when the lease, or patience, has run out."""
        while True:
            line, newline, rest = self._buffer.partition(b"\n")
            if newline:
                self._buffer = rest
                self._heard = time.monotonic()
                return line
            if len(self._buffer) > protocol.MAX_LINE:
                error = UsageError("a line that is too long")
                self._send(protocol.failure(None, error))
                raise Gone
            limit = IDLE_LIMIT_S if self._lease_s is None else self._lease_s
            left = self._heard + limit - time.monotonic()
            # What came while a long write kept us busy is read before the silence is judged.
            ready, _, _ = select.select([self._source, self._wake], [], [], max(left, 0.0))
            if self.stop or not ready:
                raise Gone
            try:
                more = os.read(self._source, 65_536)
            except OSError as error:
                raise Gone from error
            if not more:
                return None
            self._buffer += more
            if self._lease_s is None:
                self._heard = time.monotonic()

    def _answer(self, line: bytes) -> bool:
        """Answer one request; False after ``bye``."""
        request_id: Any = None
        try:
            request = protocol.parse_request(line)
            request_id, verb = request.get("id"), request["verb"]
            if verb == "heartbeat":
                return True
            if verb == "bye":
                self._send(protocol.answer(request_id, self._end_lease()))
                return False
            known = self._verbs.get(verb)
            if known is None:
                raise UsageError(f"there is no verb '{clean(verb, 40)}'")
            reply = protocol.answer(request_id, known(request))
        except WorkshopError as error:
            reply = protocol.failure(request_id, error)
        except Gone:
            raise
        except Exception as error:
            # A mistake of ours, whatever it was, is an answer too: a lease still has to be given back.
            words = f"a mistake in the agent: {type(error).__name__}: {clean(error, 200)}"
            reply = protocol.failure(request_id, HostError(words, "please report it"))
        self._send(reply)
        return True

    def _send(self, reply: bytes) -> None:
        """Write an answer; a caller that does not read is a caller that has gone."""
        view = memoryview(reply)
        while view:
            _, ready, _ = select.select([], [self._sink], [], self._lease_s or IDLE_LIMIT_S)
            if not ready:
                raise Gone
            try:
                # A pipe that is ready takes at least this much (PIPE_BUF, pipe(7)) without waiting.
                view = view[os.write(self._sink, view[:4096]) :]
            except OSError as error:
                raise Gone from error

    # Verbs --------------------------------------------------------------------------------------------------------

    def _hello(self, request: dict[str, Any]) -> dict[str, Any]:
        return {
            "protocol": protocol.PROTOCOL,
            "pid": os.getpid(),
            "uid": os.geteuid(),
            "tree": self._setup.tree,
            "notice": self._setup.notice,
        }

    def _plan(self, request: dict[str, Any]) -> Any:
        wanted, host = self._asked(request)
        return plan(host, wanted)

    def _apply(self, request: dict[str, Any]) -> ApplyResult:
        wanted, host = self._asked(request)
        lease_s = protocol.lease(request)
        shown = protocol.words(request, "shown", protocol.MAX_SHOWN)
        if self._leased and lease_s is None:
            raise UsageError("this connection holds a lease", "say 'keep' first")
        self._begin()
        try:
            # Only now, under the lock: nobody else of ours writes between the plan and its writes.
            host = Host(host.root, host.hot)
            drawn = plan(host, wanted)
            changes, refused = shown_only(drawn.changes, shown)
            changes, forbidden = policy.permitted(host, changes)
            refused += forbidden
            if lease_s is None and any(change.lease for change in changes):
                raise UsageError("a part of this lasts only as long as somebody holds it", "add --hold, or -- COMMAND")
            if not changes:
                return ApplyResult(None, (), tuple(refused), False)
            words = tuple(str(_with_default(one)) for one in wanted)
            journal = self._setup.journals.create(
                self._state(), boot_id=drawn.boot_id, uid=self._setup.uid, hot_cpus=host.hot.cpus, wanted=words
            )
            if lease_s is not None:
                self._leased.append(journal.id)
                self._lease_s = lease_s
            try:
                result = apply_changes(self._setup.root, self._setup.writer, changes, journal, self._stopped)
            finally:
                journal.close()
            if journal.trouble:
                why = f"its last records could not be written ({journal.trouble}); 'restore' goes by the host's values"
                refused.append(Refused("journal", f"{JOURNAL_DIR}/{journal.id}{SUFFIX}", why))
            if not result.applied:
                self._tidy()
            return replace(result, journal_id=journal.id, refused=(*refused, *result.refused))
        finally:
            self._end()

    def _stopped(self) -> bool:
        """Whether to stop between two writes: told to, or nobody is there any more to be told what was done."""
        if not self.stop:
            look = select.poll()
            look.register(self._source, 0)
            self.stop = bool(look.poll(0))  # only POLLHUP and its like are told unasked
        return self.stop

    def _restore(self, request: dict[str, Any]) -> RestoreResult:
        asked = protocol.words(request, "tunables")
        only = tuple(find(word).id for word in asked)
        from jitter_workshop.agent.instances import remove_stale

        gone, stay = remove_stale(self._setup.root, self._setup.writer)
        self._begin()
        try:
            result = self._give_back(only, None, forget=request.get("forget") is True)
        finally:
            self._end()
        left = tuple(LeftAlone("trace", path, "", None, f"left over by a measurement: {why}") for path, why in stay)
        return replace(result, left_alone=(*result.left_alone, *left), trace_instances_removed=gone)

    def _keep(self, request: dict[str, Any]) -> dict[str, Any]:
        asked = protocol.words(request, "journals")
        kept = [one for one in self._leased if not asked or one in asked]
        self._leased = [one for one in self._leased if one not in kept]
        if not self._leased:
            self._lease_s = None
        self._end()
        return {"kept": kept}

    def _place(self, request: dict[str, Any]) -> dict[str, Any]:
        pid = protocol.number(request, "pid")
        return {"cpus": helping.place(self._setup.root, self._setup.writer, pid, self._setup.uid)}

    def _realtime(self, request: dict[str, Any]) -> dict[str, Any]:
        tids = protocol.numbers(request, "tids", helping.MAX_THREADS)
        pid, priority = protocol.number(request, "pid"), protocol.number(request, "priority")
        helping.realtime(self._setup.root, pid, tids, priority, self._setup.uid)
        return {}

    def _evidence(self, request: dict[str, Any]) -> Any:
        if self._trace is None:
            from jitter_workshop.agent.evidence import Evidence

            self._trace = Evidence(self._setup.root, self._setup.writer, self._setup.top, self._setup.uid)
        return self._trace.answer(request)

    def _end_trace(self) -> None:
        if self._trace is not None:
            self._trace.close()

    def _asked(self, request: dict[str, Any]) -> tuple[tuple[Wanted, ...], Host]:
        wanted = parse_wanted(protocol.words(request, "wanted"))
        if not wanted:
            raise UsageError("no tunable is named")
        return wanted, policy.host_for(self._setup.root, protocol.text(request, "cpus"))

    # Giving back --------------------------------------------------------------------------------------------------

    def _end_lease(self) -> RestoreResult:
        """Give back what this connection leased; an empty result where it leased nothing."""
        if not self._leased:
            return RestoreResult((), (), False)
        self._begin()
        leased, self._leased, self._lease_s = self._leased, [], None
        try:
            return self._give_back((), leased)
        finally:
            self._end()

    def _give_back(self, only: Sequence[str], journals: Sequence[str] | None, *, forget: bool = False) -> RestoreResult:
        """Undo all journals, or those named; the lock is held."""
        setup, folder = self._setup, self._state()
        boot_id = current_boot(setup.root)
        opened, foreign = open_journals(folder, boot_id, setup.journals)
        chosen = [(j, f) for j, f in opened if journals is None or j.id in journals]
        for _, file in opened:
            if all(file is not mine for _, mine in chosen):
                file.close()
        told: tuple[Any, ...] = () if journals is not None else foreign
        host = Host(setup.root, CpuSet())
        try:
            result = restore(
                setup.root,
                setup.writer,
                chosen,
                boot_id,
                only,
                lambda ident: likely_culprit(host, find(ident)),
                forget=forget,
            )
        finally:
            told += close_finished(folder, chosen, everything=not only)
        return replace(result, left_alone=(*result.left_alone, *told))

    def _tidy(self) -> None:
        """Put a journal away of which nothing stands."""
        with contextlib.suppress(WorkshopError, OSError):
            opened, _ = open_journals(self._state(), current_boot(self._setup.root), self._setup.journals)
            close_finished(self._state(), opened, everything=False)

    # The lock -----------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._lock is None:
            self._lock = HostLock(self._state(), f"process {os.getpid()} of {self._setup.who}")
        self._lock.take(self._setup.lock_wait_s)

    def _end(self) -> None:
        """Let go of the lock, unless a lease lives: who stacked changes on it would be left with half of them."""
        if self._lock is not None and not self._leased:
            self._lock.release()

    def _state(self) -> StateDir:
        if self._folder is None:
            self._folder = StateDir(self._setup.top, self._setup.owner)
        return self._folder

    def _close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        if self._folder is not None:
            self._folder.close()
            self._folder = None
        os.close(self._wake)
        os.close(self._waker)


def _with_default(wanted: Wanted) -> Wanted:
    """With the value that the tunable takes where none was said, so that a profile says it."""
    tunable = find(wanted.id)
    if wanted.value is None and tunable.values and tunable.default is not None:
        return replace(wanted, value=tunable.default)
    return wanted
