"""Apply and restore the changes of one connection with the agent, under the host's lock."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jitter_workshop.agent import policy
from jitter_workshop.agent.journal import JournalFile, close_finished, open_journals
from jitter_workshop.agent.lock import WAIT_S, HostLock
from jitter_workshop.agent.statedir import StateDir
from jitter_workshop.errors import HostError, UsageError, WorkshopError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import IRQ_HERE, ApplyResult, Change, Plan, Refused, RestoreResult, Wanted
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning import by_hand
from jitter_workshop.tuning.applying import apply_changes, shown_only
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.journal import JOURNAL_DIR, SUFFIX, Journal, current_boot
from jitter_workshop.tuning.planning import plan_changes
from jitter_workshop.tuning.restoring import restore_journals
from jitter_workshop.tuning.status import likely_rewriter
from jitter_workshop.tuning.switched import isolated_by_others
from jitter_workshop.tuning.tunables.registry import find_tunable
from jitter_workshop.tuning.writer import HostWriter


@dataclass(frozen=True, slots=True)
class Setup:
    """Hold the setup of an agent.

    - ``owner``: the user that must own the state folder.
    - ``top``: the folder above the state folder.
    - ``who``: a description of the caller for messages.
    - ``notice``: a sentence to show to the caller at the beginning; "" for none.
    - ``member``: on a class host, the caller as a member of the class.
    - ``needs_turn``: True if the caller may change the host only in their turn.
    - ``pid``: the number of the caller's process, None if it is not known.
    """

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
    member: policy.Member | None = None
    needs_turn: bool = True
    pid: int | None = None


class Changes:
    """Apply and restore changes, and record changes that a user makes by hand.

    - ``leased``: the ids of the journals whose changes are restored when this connection ends.
    - ``lease_s``: the seconds without a message from the caller after which this connection ends; None if ``leased`` is
      empty.
    - ``announced``: the ids of the leased journals for changes that a user makes by hand.
    """

    def __init__(self, setup: Setup) -> None:
        self.lease_s: float | None = None
        self.leased: list[str] = []
        self.announced: list[str] = []
        self.setup = setup
        self._folder: StateDir | None = None
        self._lock: HostLock | None = None

    @property
    def folder(self) -> StateDir:
        """Return the state folder, root's own folder for journals and lock. Raise HostError if it cannot be opened."""
        if self._folder is None:
            self._folder = StateDir(self.setup.top, self.setup.owner)
        return self._folder

    def apply(
        self,
        wanted: Sequence[Wanted],
        host: Host,
        shown: Sequence[str],
        lease_s: float | None,
        stopped: Callable[[], bool],
    ) -> ApplyResult:
        """Make the changes that were shown to the user, and return the outcome.

        The agent makes a new plan for ``wanted``. The changes of this plan whose digests are in ``shown`` are made. If
        ``lease_s`` is a number, the changes are restored when the connection ends. ``stopped`` is called before each
        write; True stops further writes. Raise UsageError or HostError on failure.
        """
        if self.leased and lease_s is None:
            raise UsageError(
                "this connection already made temporary changes", "send 'keep' first, to make them permanent"
            )
        with self._locked():
            drawn, changes, refused = self._allowed(wanted, host, shown)
            if lease_s is None and any(change.lease for change in changes):
                raise UsageError(
                    "one of these changes lasts only while this program runs",
                    "keep this program running: add --hold, or -- COMMAND",
                )
            if not changes:
                return ApplyResult(None, (), tuple(refused), False)
            journal = self._begun(drawn, wanted)
            if lease_s is not None:
                self.leased.append(journal.id)
                self.lease_s = lease_s
            with contextlib.closing(journal):
                result = apply_changes(self.setup.root, self.setup.writer, changes, journal, stopped)
            if journal.trouble:
                why = (
                    f"the last records could not be written to the journal ({journal.trouble}); 'restore' will read "
                    "the values on the host instead"
                )
                refused.append(Refused("journal", f"{JOURNAL_DIR}/{journal.id}{SUFFIX}", why))
            if not result.applied:
                self._tidy()
            return replace(result, journal_id=journal.id, refused=(*refused, *result.refused))

    def announce(self, wanted: Sequence[Wanted], host: Host, shown: Sequence[str], lease_s: float) -> ApplyResult:
        """Record the old values of changes that a user will make by hand.

        The values go to a journal. The changes come from a new plan for ``wanted``; ``shown`` has their digests.
        Nothing is written to the host. When the connection ends, the agent checks each setting. If a setting has the
        announced new value, the agent restores the old value. Raise UsageError or HostError on failure.
        """
        with self._locked():
            drawn, changes, refused = self._allowed(wanted, host, shown)
            if not any(not by_hand.why_not_by_hand(change) for change in changes):
                barred = [Refused(c.tunable, c.path, f"not watched: {by_hand.why_not_by_hand(c)}") for c in changes]
                return ApplyResult(None, (), (*refused, *barred), False)
            journal = self._begun(drawn, wanted)
            self.leased.append(journal.id)
            self.announced.append(journal.id)
            self.lease_s = lease_s
            with contextlib.closing(journal):
                ready, others = by_hand.announce(self.setup.root, self.setup.writer, changes, journal)
            if not ready:
                self._tidy()
            return ApplyResult(journal.id if ready else None, (), (*refused, *others), False)

    def _allowed(
        self, wanted: Sequence[Wanted], host: Host, shown: Sequence[str]
    ) -> tuple[Plan, list[Change], list[Refused]]:
        """Make a new plan for ``wanted``; return the plan, the permitted changes and the refusals.

        A permitted change was shown to the user (``shown`` has its digest), and the policy allows it. Each other change
        gets a Refused with the reason. There is one exception: a change of a task gets no Refused if the change was not
        shown. The caller holds the lock.
        """
        # Plan only now, under the lock: no other agent writes between the plan and its writes.
        host = Host(host.root, host.hot)
        drawn = plan_changes(host, wanted)
        changes, refused = shown_only(drawn.changes, shown)
        changes, forbidden = policy.permitted(host, changes, self.setup.member)
        return drawn, changes, [*refused, *forbidden]

    def _begun(self, drawn: Plan, wanted: Sequence[Wanted]) -> JournalFile:
        """Begin the journal of a plan. Raise HostError on failure."""
        return self.setup.journals.create(
            self.folder,
            boot_id=drawn.boot_id,
            uid=self.setup.uid,
            hot_cpus=drawn.hot_cpus,
            wanted=tuple(str(_with_default(one)) for one in wanted),
            isolated=isolated_by_others(self.setup.root).cpus,
            pid=self.setup.pid,
        )

    def adopt(self, journal_id: str, *, end: bool = False, wrong: bool = False) -> ApplyResult:
        """Record in an announced journal which of its changes a user has made by hand.

        Nothing is written to the host. This connection must have announced the journal.

        - ``end``: True if the user will make no more of the announced changes.
        - ``wrong``: True to record a change also if the user typed another value than the announced one.

        Raise UsageError or HostError on failure.
        """
        if journal_id not in self.announced:
            raise UsageError("this connection has not announced this journal")
        with self._locked():
            with self._opened(journal_id) as (journal, file):
                entries = list(journal.entries.values())
                applied, refused = by_hand.adopt(self.setup.root, entries, file, wrong=wrong)
                if end:
                    by_hand.give_up(self.setup.root, entries, file)
                if file.trouble:
                    # The journal still has the old values, so a restore can write them.
                    raise HostError(
                        f"the journal cannot be written: {file.trouble}",
                        "your changes were not recorded, but 'restore' can write the old values",
                    )
            if end:
                self.announced.remove(journal_id)
                if not any(entry.active for entry in entries):
                    self._tidy()
                    self.leased = [one for one in self.leased if one != journal_id]
                    self.lease_s = self.lease_s if self.leased else None
            return ApplyResult(journal_id, tuple(applied), tuple(refused), False)

    @contextlib.contextmanager
    def _opened(self, journal_id: str) -> Iterator[tuple[Journal, JournalFile]]:
        """Open one of this connection's journals. Yield its content and its open file. The caller holds the lock. Raise
        HostError on failure."""
        opened, _ = open_journals(self.folder, current_boot(self.setup.root), self.setup.journals)
        try:
            found = next((pair for pair in opened if pair[0].id == journal_id), None)
            if found is None:
                raise HostError("the journal of these changes is missing", "nothing was changed")
            yield found
        finally:
            for _, file in opened:
                file.close()

    def restore(self, only: Sequence[str], journals: Sequence[str] | None, *, forget: bool = False) -> RestoreResult:
        """Restore the changes of the tunables ``only`` in the journals ``journals``.

        An empty ``only`` means all tunables. None for ``journals`` means all journals. A setting keeps its value if
        another program or user changed it later. With ``forget``, later restores ignore such a setting. Raise HostError
        on failure.
        """
        with self._locked():
            result = self._restore(only, journals, forget=forget)
            self._drop_finished()
            return result

    def keep(self, asked: Sequence[str]) -> list[str]:
        """Exclude the journals ``asked`` from the lease, and return the ids of the excluded journals.

        Their changes remain when the connection ends. An empty ``asked`` means all leased journals.
        """
        kept = [one for one in self.leased if not asked or one in asked]
        for ident in [one for one in kept if one in self.announced]:
            self.adopt(ident, end=True)
        kept = [one for one in kept if one in self.leased]
        self.leased = [one for one in self.leased if one not in kept]
        if not self.leased:
            self.lease_s = None
        self._end()
        return kept

    def end_lease(self) -> RestoreResult:
        """Restore the changes that this connection leased. Return an empty result if it leased no changes."""
        if not self.leased:
            return RestoreResult((), (), False)
        with self._locked():
            leased, self.leased, self.lease_s = self.leased, [], None
            self.announced = []
            # This change is for one run. A value that another program wrote since then belongs to that program.
            sent = self._restore((IRQ_HERE,), leased, forget=True)
            rest = self._restore((), leased)
            return replace(
                rest, restored=(*sent.restored, *rest.restored), left_alone=(*sent.left_alone, *rest.left_alone)
            )

    def close(self) -> None:
        """Release the host's lock and close the state folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    def _restore(self, only: Sequence[str], journals: Sequence[str] | None, *, forget: bool = False) -> RestoreResult:
        """Restore changes; the parameters are those of :meth:`restore`. The caller holds the lock."""
        setup, folder = self.setup, self.folder
        boot_id = current_boot(setup.root)
        opened, foreign = open_journals(folder, boot_id, setup.journals)
        told: tuple[Any, ...] = () if journals is not None else foreign
        host = Host(setup.root, CpuSet())
        try:
            result = restore_journals(
                setup.root,
                setup.writer,
                opened,
                boot_id,
                only,
                lambda ident: likely_rewriter(host, find_tunable(ident)),
                forget=forget,
                among=journals,
            )
        finally:
            told += close_finished(folder, opened, everything=not only and journals is None)
        return replace(result, left_alone=(*result.left_alone, *told))

    def _drop_finished(self) -> None:
        """Exclude from the lease the journals that have nothing to restore any more. Without other leased journals, the
        lock can be released. The caller holds the lock."""
        with contextlib.suppress(WorkshopError, OSError):
            left = {ident.removesuffix(SUFFIX) for ident in os.listdir(self.folder.journal)}  # noqa: PTH208 - a descriptor
            self.leased = [one for one in self.leased if one in left or one in self.announced]
            self.lease_s = self.lease_s if self.leased else None

    def _tidy(self) -> None:
        """Move finished journals to the folder ``done``. A finished journal has nothing that a restore could write."""
        with contextlib.suppress(WorkshopError, OSError):
            opened, _ = open_journals(self.folder, current_boot(self.setup.root), self.setup.journals)
            close_finished(self.folder, opened, everything=False)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        if self._lock is None:
            self._lock = HostLock(self.folder, f"process {os.getpid()} of {self.setup.who}")
        self._lock.take(self.setup.lock_wait_s)
        try:
            yield
        finally:
            self._end()

    def _end(self) -> None:
        """Release the lock if this connection has no lease.

        During a lease the lock stays locked, so that no other agent changes a leased setting.
        """
        if self._lock is None:
            return
        if self.leased:
            setup = self.setup
            self._lock.keep(f"process {setup.pid or os.getpid()} of {setup.who}")
        else:
            self._lock.release()


def _with_default(wanted: Wanted) -> Wanted:
    """Return ``wanted`` with the tunable's default value if ``wanted`` has no value."""
    # A saved profile names the value.
    tunable = find_tunable(wanted.id)
    if wanted.value is None and tunable.values and tunable.default is not None:
        return replace(wanted, value=tunable.default)
    return wanted
