"""Keep a session's log of its host: each applied or restored write, and the first and last status.

The log must never stop an apply, a restore or a measurement. So no error is raised if the log cannot be written, and
``trouble`` has the reason.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import threading
import time
from collections.abc import Collection, Iterator
from typing import Any

from jitter_workshop.errors import SessionError, WorkshopError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Applied, ApplyResult, LeftAlone, Refused, Restored, RestoreResult
from jitter_workshop.model.record import made_of
from jitter_workshop.model.session import FORMAT_VERSION as SESSION_VERSION
from jitter_workshop.model.status import FORMAT_VERSION, CheckState, Did, HostEvent, Snapshot
from jitter_workshop.model.text import ID, SENTENCE, clean
from jitter_workshop.session import history
from jitter_workshop.session.ids import timestamp
from jitter_workshop.session.opened import OpenSession
from jitter_workshop.tuning import journal

LAPSED = "this program or the agent ended, so the lease ended, too, and root's process restored the settings"
VALUE_LIMIT = 4_096
"""Greatest number of characters of a logged value. The mask of 8,192 CPUs has about half as many."""


class ChangeLog:
    """Log the changes of one open session. Without a session that can be written, log nothing.

    ``trouble``: a sentence on why the log could not be written, or "". Several threads may use the object.
    """

    def __init__(self, session: OpenSession | None, root: HostRoot | None = None) -> None:
        self.trouble = ""
        self._folder = session.folder if session is not None and writable(session) else None
        self._root = root or HostRoot()
        self._chapter, self._proof = "", ""
        self._leased: dict[tuple[str, str], list[HostEvent]] = {}
        self._restored_s: dict[str, float] = {}
        self._lock = threading.Lock()
        self._boot_id: str | None = None

    @contextlib.contextmanager
    def during(self, chapter: str | None = None, proof: str | None = None) -> Iterator[None]:
        """Mark all entries that are logged inside the context with this chapter and proof. If an argument is None, the
        entries get the mark of the surrounding context.
        """
        before = self._chapter, self._proof
        self._chapter = before[0] if chapter is None else chapter
        self._proof = before[1] if proof is None else proof
        try:
            yield
        finally:
            self._chapter, self._proof = before

    def applied(self, result: ApplyResult, kept: bool = False) -> None:
        """Log writes that were applied or refused. ``kept``: the applied settings stay until ``restore``."""
        made = [self._event("applied", one, kept=kept) for one in result.applied]
        if not kept:
            for one in made:
                self._leased.setdefault((one.tunable, one.path), []).append(one)
        made += [self._event("refused", one, before=None, after=None) for one in result.refused]
        self._add(made)

    def restored(self, result: RestoreResult) -> None:
        """Log the settings that were restored, and those that were left alone."""
        made = [self._event("restored", one, before=one.from_, after=one.to) for one in result.restored]
        made += [self._event("left_alone", one, before=one.expected, after=one.found) for one in result.left_alone]
        for one in made:
            self._leased.pop((one.tunable, one.path), None)
        self._restored_s.update({one.tunable: time.monotonic() for one in result.restored})
        self._add(made)

    def since_restored(self, tunables: Collection[str]) -> float:
        """Return the seconds since this program last restored one of these tunables. Return infinity if it has restored
        none."""
        return time.monotonic() - max((self._restored_s.get(one, -math.inf) for one in tunables), default=-math.inf)

    def lapsed(self, standing: Collection[tuple[str, str]]) -> None:
        """Log the leased settings that were restored because their lease ended. ``standing``: the (tunable, path) pairs
        that are still active in the host's journal; all other leased settings are logged."""
        made = []
        for key in [key for key in reversed(self._leased) if key not in standing]:
            back = reversed(self._leased.pop(key))
            made += [self._event("restored", e, before=e.after, after=e.before, reason=LAPSED) for e in back]
        self._add(made)

    def kept(self, tunables: Collection[str] | None = None) -> None:
        """Log that the applied settings of these tunables (None: all) stay until ``restore``."""
        staying = [e[-1] for e in self._leased.values() if tunables is None or e[-1].tunable in tunables]
        for one in staying:
            del self._leased[one.tunable, one.path]
        self._add([self._event("kept", one, kept=True) for one in staying])

    def begin(self) -> None:
        """Store the host's status as the session's first one, if it has none yet. Call this before anything is measured
        or applied."""
        if self._folder is None or self._root.recorded or history.has_first(self._folder):
            return
        with contextlib.suppress(WorkshopError, OSError):
            history.keep_first(self._folder, snapshot(self._root))

    def end(self) -> None:
        """Store the host's present status as the session's last one. Do nothing if the session has no first status."""
        if self._folder is None or self._root.recorded or not history.has_first(self._folder):
            return
        with contextlib.suppress(WorkshopError, OSError):
            history.keep_last(self._folder, snapshot(self._root))

    def _event(self, did: Did, write: Applied | Refused | Restored | LeftAlone | HostEvent, **others: Any) -> HostEvent:
        """Return an event of the present time with the fields of ``write``. ``others``: further fields of the event."""
        if did != "applied":
            others["read_back"] = None
        now = {"at": timestamp(), "did": did, "chapter": self._chapter, "proof": self._proof, "boot_id": self._boot()}
        event = made_of(HostEvent, write, **now, **others)
        return dataclasses.replace(
            event,
            before=_short(event.before),
            after=_short(event.after),
            read_back=_short(event.read_back),
            reason=clean(event.reason, SENTENCE),
        )

    def _boot(self) -> str | None:
        """Return the id of this boot. It is read only once, because it does not change while the log is used."""
        if self._boot_id is None:
            self._boot_id = journal.current_boot(self._root)
        return self._boot_id

    def _add(self, events: list[HostEvent]) -> None:
        if self._folder is None or not events:
            return
        try:
            with self._lock:
                history.append(self._folder, events)
        except SessionError as error:
            self.trouble = f"the changes to this host are not logged: {error.sentence()}"


def writable(session: OpenSession) -> bool:
    """Return True if this program may write a log in the session. A workshop that has the session open does not prevent
    this. Return False if the session's format is newer than this program's."""
    return session.session.format_version <= SESSION_VERSION


def snapshot(root: HostRoot) -> Snapshot:
    """Return a short form of a host's ``status``. Reading it takes a tenth of a second. Raise HostError if the host
    shows no CPU."""
    from jitter_workshop.flow.host_ops.host_status import read_checks as look_at

    checkup = look_at(root.root)
    return Snapshot(
        format_version=FORMAT_VERSION,
        at=timestamp(),
        host=clean(checkup.summarise().name, ID) or "host",
        boot_id=journal.current_boot(root),
        hot_cpus=checkup.hot.cpus.cpus,
        checks=tuple(
            CheckState(c.id, c.title, c.state, _short(c.value), _short(c.wanted), c.reason) for c in checkup.checks
        ),
        applied=() if root.recorded else journal.applied_tunables(root),
    )


def _short(value: str | None) -> str | None:
    return value if value is None or len(value) <= VALUE_LIMIT else f"{value[: VALUE_LIMIT - 1]}…"
