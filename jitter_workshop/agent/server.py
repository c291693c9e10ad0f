"""Answer requests as root, one after the other. Restore the changes of a lease when the caller falls silent.

Every input is answered or dropped. No input can end the process before the lease's changes are restored.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jitter_workshop.agent import caller_process, policy, protocol
from jitter_workshop.agent.changes import Changes, Setup
from jitter_workshop.agent.line_connection import Gone, LineConnection
from jitter_workshop.errors import HostError, UsageError, WorkshopError
from jitter_workshop.model.change import ApplyResult, LeftAlone, RestoreResult, Wanted
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.planning import plan_changes
from jitter_workshop.tuning.tunables.registry import find_tunable, parse_wanted

if TYPE_CHECKING:
    from jitter_workshop.agent.service.class_connection import Attending
    from jitter_workshop.agent.tracing.evidence import ConnectionCapture

__all__ = ["Server", "Setup"]


class Server:
    """Serve one connection over two descriptors. On a class host, a request that changes something is refused if the
    caller does not have the turn."""

    def __init__(self, setup: Setup, source: int, sink: int) -> None:
        self._setup = setup
        self._lines = LineConnection(source, sink)
        self._changes = Changes(setup)
        self._trace: ConnectionCapture | None = None
        self._class: Attending | None = None
        self._left = False
        self._verbs: dict[str, protocol.RequestHandler] = {
            "heartbeat": lambda request: None,
            "hello": self._hello,
            "plan": self._plan,
            "apply": self._apply,
            "announce": self._announce,
            "adopt": self._adopt,
            "restore": self._restore,
            "keep": self._keep,
            "place": self._place,
            "place_threads": self._place_threads,
            "realtime": self._realtime,
            "evidence": self._evidence,
            "turn": self._turn,
            "bye": self._bye,
        }
        if setup.member is not None:
            from jitter_workshop.agent.service.class_connection import Attending

            self._class = Attending(setup, setup.member, self._changes, self._end_trace, self._send)

    def interrupt(self) -> None:
        """Ask the server to stop before its next step; for signal handlers."""
        self._lines.interrupt()

    def nudge(self) -> None:
        """Make the server check the state of the caller's turn; for signal handlers."""
        self._lines.nudge()

    def serve(self) -> None:
        """Answer requests until the caller leaves, falls silent or says bye. At the end, restore the leased changes."""
        try:
            while not self._lines.stop:
                line = self._lines.next(self._lease_s, self._class)
                if line is None:
                    break
                reply = protocol.answer_request(line, self._verbs, "agent", self._refused)
                if reply is not None:
                    self._send(reply)
                if self._left:
                    break
        except (Gone, WorkshopError):  # WorkshopError: the turn's state cannot be read or written
            pass
        finally:
            self._lines.stop = False  # a second signal must not stop the restore of the lease
            with contextlib.suppress(WorkshopError):
                self._end_trace()
            if self._class is not None:
                self._class.close()
            with contextlib.suppress(WorkshopError):
                self._changes.end_lease()
            self._changes.close()
            self._lines.close()

    def _lease_s(self) -> float | None:
        """Return the connection's idle timeout in seconds. Return None if the caller has no lease, no turn and no place
        in the queue."""
        attending = self._class.lease_s if self._class is not None else None
        return min((s for s in (self._changes.lease_s, attending) if s is not None), default=None)

    def _refused(self, error: WorkshopError) -> None:
        if self._class is not None:
            self._class.refused(error)

    def _send(self, reply: bytes) -> None:
        self._lines.send(reply, self._lease_s(), self._class)

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
        return plan_changes(host, wanted)

    def _apply(self, request: dict[str, Any]) -> ApplyResult:
        lease_s = protocol.lease(request)
        if self._class is not None:
            self._class.need_turn()
            if lease_s is None:
                self._class.need_instructor()
        wanted, host = self._asked(request)
        shown = protocol.words_field(request, "shown", protocol.MAX_SHOWN)
        result = self._changes.apply(wanted, host, shown, lease_s, self._lines.gone)
        if self._class is not None:
            self._class.applied(result)
        return result

    def _announce(self, request: dict[str, Any]) -> ApplyResult:
        lease_s = protocol.lease(request)
        if lease_s is None:
            raise UsageError("a request for changes made by hand needs a 'lease'")
        if self._class is not None:
            self._class.need_turn()
            self._class.need_instructor()
        wanted, host = self._asked(request)
        shown = protocol.words_field(request, "shown", protocol.MAX_SHOWN)
        return self._changes.announce(wanted, host, shown, lease_s)

    def _adopt(self, request: dict[str, Any]) -> ApplyResult:
        if self._class is not None:
            self._class.need_turn()
        journal = protocol.text(request, "journal", protocol.MAX_WORD)
        result = self._changes.adopt(journal, end=request.get("end") is True, wrong=request.get("wrong") is True)
        if self._class is not None:
            self._class.applied(result)
        return result

    def _restore(self, request: dict[str, Any]) -> RestoreResult:
        asked = protocol.words_field(request, "tunables")
        only = tuple(find_tunable(word).id for word in asked)
        forget = request.get("forget") is True
        among: tuple[str, ...] | None = protocol.words_field(request, "journals") or None
        if self._class is not None:
            self._class.need_turn()
            mine = self._class.own_journals
            if mine is not None:
                among = tuple(one for one in mine if among is None or one in among)
            forget = forget and mine is None
        from jitter_workshop.agent.tracing.instances import remove_stale
        from jitter_workshop.agent.tracing.own_view import OwnView

        with contextlib.closing(OwnView(self._setup.root, self._setup.writer)):
            gone, stay = remove_stale(self._setup.root, self._setup.writer)
        result = self._changes.restore(only, among, forget=forget)
        if self._class is not None:
            self._class.restored(result)
        left = tuple(
            LeftAlone("trace", path, "", None, f"this trace is of an ended run and cannot be removed: {why}")
            for path, why in stay
        )
        return replace(result, left_alone=(*result.left_alone, *left), trace_instances_removed=gone)

    def _keep(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._class is not None:
            self._class.need_instructor()
        return {"kept": self._changes.keep(protocol.words_field(request, "journals"))}

    def _place(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._class is not None:
            self._class.need_turn()
        pid = protocol.number_field(request, "pid")
        return {
            "cpus": caller_process.move_to_isolated_cpus(self._setup.root, self._setup.writer, pid, self._setup.uid)
        }

    def _place_threads(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._class is not None:
            self._class.need_turn()
        pid, tids = (
            protocol.number_field(request, "pid"),
            protocol.numbers_field(request, "tids", caller_process.MAX_THREADS),
        )
        return {"cpus": caller_process.place_threads(self._setup.root, self._setup.writer, pid, tids, self._setup.uid)}

    def _realtime(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._class is not None:
            self._class.need_turn()
        tids = protocol.numbers_field(request, "tids", caller_process.MAX_THREADS)
        pid, priority = protocol.number_field(request, "pid"), protocol.number_field(request, "priority")
        caller_process.realtime(self._setup.root, pid, tids, priority, self._setup.uid)
        return {}

    def _evidence(self, request: dict[str, Any]) -> Any:
        if self._class is not None:
            self._class.need_turn()
            if request.get("do") == "begin":
                policy.check_cpus(self._class.who, protocol.text(request, "cpus"))
                if request.get("pids") is not None:
                    policy.check_follows(self._class.who)
        if self._trace is None:
            from jitter_workshop.agent.tracing.evidence import ConnectionCapture

            self._trace = ConnectionCapture(self._setup.root, self._setup.writer, self._setup.top, self._setup.uid)
        return self._trace.answer(request)

    def _turn(self, request: dict[str, Any]) -> Any:
        if self._class is None:
            raise HostError(
                "this is not a class host, so it has no turns", "'jitter-workshop class init' makes it a class host"
            )
        return self._class.answer(request)

    def _bye(self, request: dict[str, Any]) -> RestoreResult:
        result = self._changes.end_lease()
        self._left = True
        return result

    def _end_trace(self) -> None:
        if self._trace is not None:
            self._trace.close()
            self._trace = None

    def _asked(self, request: dict[str, Any]) -> tuple[tuple[Wanted, ...], Host]:
        wanted = parse_wanted(protocol.words_field(request, "wanted"))
        if not wanted:
            raise UsageError("no tunable is named")
        cpus = protocol.text(request, "cpus")
        if self._setup.member is not None:
            policy.check_asked(self._setup.member, wanted, cpus)
        return wanted, policy.host_for(self._setup.root, cpus)
