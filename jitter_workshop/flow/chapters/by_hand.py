"""Watch the host while the learner makes the writes of a chapter's plan by hand.

With root's rights, the agent journals the old values first, and can restore the learner's writes later. Without root's
rights, and for boot parameters, the session stores the old values. The learner then restores these values by hand, and
the workshop watches the host again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools

from jitter_workshop.errors import HostError
from jitter_workshop.flow.chapters.chapter_host import (
    AT_NEXT_BOOT,
    NOT_WRITTEN,
    REBOOT,
    RESTORED_AT_THE_END,
    ChapterHost,
    read_back,
)
from jitter_workshop.flow.chapters.session_context import SessionContext
from jitter_workshop.flow.host_ops.agent_connection import NoAgent
from jitter_workshop.flow.host_ops.settings import look_at_settings, planned
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.by_hand import ByHandView, HandLine, HandWrite
from jitter_workshop.model.change import Applied, ApplyResult, Change, Refused
from jitter_workshop.model.course import Course
from jitter_workshop.model.session import HandWork
from jitter_workshop.model.text import tally
from jitter_workshop.model.walk import ApplyView, PlanView
from jitter_workshop.report.shell_lines import move_tasks_line, moves_alike, shell_line, way_back
from jitter_workshop.tuning import by_hand
from jitter_workshop.tuning.by_hand import noted_only
from jitter_workshop.tuning.journal import current_boot, read_journals

ONLY_YOU = "Only you can restore the old values: restore (u) shows the commands."
NO_SHELL = "no shell command can make this write"
EVERY_BOOT = "no shell command can make a boot entry for one boot; plan the parameters for every boot instead"
NO_THREAD_YET = "the threads do not exist before the run begins, and the run then binds them itself"
FOR_EVERY_BOOT = "they are for every boot"
"""The reason why no journal has the old values of boot parameters that the learner types."""


class ByHand:
    """Watch the writes that the learner makes by hand in one chapter. ``opened``: True while the learner makes writes
    or restores old values."""

    def __init__(self, host: ChapterHost) -> None:
        self._host = host
        self._changes: tuple[Change, ...] = ()
        self._journal_id: str | None = None
        self._back = False
        self._why_not = ""
        self._left_out: tuple[str, ...] = ()
        self._told_wrong: set[tuple[str, str | None]] = set()

    @property
    def opened(self) -> bool:
        return bool(self._changes)

    @property
    def journalled(self) -> bool:
        """Return True if the agent will restore the learner's writes."""
        return self._journal_id is not None

    @property
    def restoring(self) -> bool:
        """Return True while the learner restores old values by hand."""
        return self.opened and self._back

    def why_not(self, plan: PlanView) -> str:
        """Return why the learner cannot make a plan's writes by hand; "" if they can."""
        host = self._host
        if host.rehearsed or host.context.recorded:
            return NOT_WRITTEN
        if host.chapter.changes == "placement":
            return NO_THREAD_YET
        if not plan.changes:
            return "there is nothing to write"
        if host.context.class_view is not None:
            return "in a class only the workshop makes changes, during your turn"
        if any(map(self._typed_one, plan.changes)):
            return ""
        return EVERY_BOOT if host.chapter.reboot else NO_SHELL

    def begin(self, shown: PlanView) -> ByHandView:
        """Begin to watch the writes of ``shown``, which the learner makes by hand. The agent first journals their old
        values. If no agent can do this, the session stores the old values. Raise HostError if the host has changed
        since the plan was shown."""
        why = self.why_not(shown)
        if why:
            raise HostError("these writes cannot be made by hand here", why)
        if self._host.chapter.reboot:
            self._journal_id, self._why_not = None, FOR_EVERY_BOOT
            refused = self._changed_since(shown)
        else:
            refused = self._announce(shown)
        watched = [one for one in shown.changes if self._watched(one)]
        safe = {one.path for one in watched} - set(refused)
        if self._journal_id is not None:
            safe &= _journalled(self._host.context.root, self._journal_id)
        self._changes = tuple(one for one in watched if one.path in safe)
        out = {one.path: by_hand.why_not_by_hand(one) or NO_SHELL for one in shown.changes if one not in watched}
        self._left_out = tuple(f"{path}: {why}" for path, why in {**refused, **out}.items())
        self._back = False
        if not self._typed():
            self.close()
            raise HostError("the host has changed since the plan was shown", "make the plan again")
        if not self.journalled:
            self._keep(self._owing())
        return self.look()

    def _announce(self, shown: PlanView) -> dict[str, str]:
        """Ask the agent to journal the old values of the writes in ``shown``. Return a dict path → reason. With root's
        rights, the dict has each write that the agent refuses. Without root's rights, the dict has each setting that
        has changed since the plan was shown.
        """
        connection = self._host.context.agent_connection
        try:
            with connection.change_log.during(chapter=self._host.chapter.id):
                result = connection.announce(shown.words, self._host.seen().hot.cpus, shown.changes)
        except NoAgent as error:
            self._journal_id, self._why_not = None, error.message
            return self._changed_since(shown)
        self._journal_id, self._why_not = result.journal_id, ""
        return {one.path: one.reason for one in result.refused}

    @property
    def owed(self) -> bool:
        """Return True if the learner has to restore writes by hand. These writes are in effect, and no journal has
        their old values."""
        work = self._work
        return work is not None and _stands(work, self._host.boot_id)

    def begin_restore(self) -> ByHandView:
        """Begin to watch how the learner restores old values by hand. No journal has these values, so the agent cannot
        restore them. Raise HostError if the learner has nothing to restore."""
        work = self._work
        if work is None or not self.owed:
            raise HostError("all writes that you made by hand are restored already")
        self._changes, self._back = way_back(work.changes), True
        self._journal_id, self._left_out = None, ()
        return self.look()

    def look(self) -> ByHandView:
        """Read the host, and return the state of each write. Nothing is written."""
        seen = by_hand.states_of_writes(self._host.context.root, self._typed(), shell_line)
        boot = self._host.chapter.reboot
        return ByHandView(seen, self._back, self.journalled, self._why_not, self._left_out, _lines(seen), boot)

    def asks_first(self, view: ByHandView) -> bool:
        """Return True if the learner has to confirm a value that differs from the plan. The learner is asked only once
        about each such value. Return False if the agent has not journalled the old values."""
        wrong = {(one.change.path, one.found) for one in view.writes if one.state == "wrong"}
        new = wrong - self._told_wrong
        self._told_wrong = wrong
        return bool(new) and self.journalled

    def adopt(self, wrong: bool = False) -> ApplyView:
        """Record the learner's writes as applied by this chapter, and stop watching. No setting is written. ``wrong``:
        also record values that differ from the plan; the learner has confirmed them. Raise HostError if the agent has
        ended: the learner's writes were restored at its end."""
        try:
            return self._adopted(wrong and bool(self._told_wrong))
        finally:
            self.close()

    def _adopted(self, wrong: bool) -> ApplyView:
        host, connection = self._host, self._host.context.agent_connection
        if self._journal_id is not None:
            with connection.change_log.during(chapter=host.chapter.id):
                result = connection.adopt(self._journal_id, end=True, wrong=wrong)
            host.context.note_stack()
        else:
            result = self._seen()
        settled = all(host.settled().values())
        refused = tuple((one.path or one.tunable, one.reason) for one in result.refused)
        other = len(refused) + (len(self._told_wrong) if wrong else 0)
        told = self._told(result, other, settled)
        waits = host.chapter.reboot and bool(result.applied)
        return ApplyView(len(result.applied), refused, settled, waits, told, by_hand=True)

    def leave(self) -> None:
        """Stop watching, because the learner leaves the chapter. If the agent is running, writes that the learner has
        made count as applied."""
        if self.opened and self.journalled:
            # The lease's end restores what was made in any case.
            with contextlib.suppress(HostError):
                self.adopt()
        self.close()

    def close(self) -> None:
        """Stop watching. If all settings have their old values again, delete these stored values from the session."""
        work = self._work if self.opened and not self.journalled else None
        if work is not None:
            back = [one for one in way_back(work.changes) if self._typed_one(one)]
            seen = by_hand.states_of_writes(self._host.context.root, back)
            if all(one.state in ("done", "gone") for one in seen):
                self._keep(None, waits=False)
        self._changes, self._journal_id, self._back, self._left_out = (), None, False, ()
        self._told_wrong = set()

    def _typed(self) -> tuple[Change, ...]:
        return tuple(one for one in self._changes if self._typed_one(one))

    def _typed_one(self, change: Change) -> bool:
        """Return True if the learner types this change. A change is not typed if it writes the present value again, or
        if no shell line can make it."""
        return self._watched(change) and not noted_only(change)

    def _watched(self, change: Change) -> bool:
        if self._host.chapter.reboot:
            # A file that was changed by hand could not be restored by a line.
            return bool(shell_line(change)) and all(map(shell_line, way_back([change])))
        return not by_hand.why_not_by_hand(change) and bool(noted_only(change) or shell_line(change))

    def _seen(self) -> ApplyResult:
        """Return the writes that the learner has made, on a host without an agent."""
        seen = self.look().writes
        made = [one.change for one in seen if one.state == "done"]
        rest = [one for one in seen if one.state in ("missing", "wrong", "hidden")]
        applied = tuple(Applied(c.n, c.tunable, c.path, c.before, c.after, c.after) for c in made)
        words = {"missing": by_hand.NOT_MADE, "wrong": "the value is not the one in the plan"}
        refused = tuple(Refused(one.change.tunable, one.change.path, words.get(one.state, one.reason)) for one in rest)
        return ApplyResult(None, applied, refused, False)

    def _told(self, result: ApplyResult, other: int, settled: bool) -> str:
        if not result.applied:
            return "No write of the plan was made by hand, so the workshop has nothing to restore."
        said = f"Made by hand and read back: {tally(one.tunable for one in result.applied)}"
        said += f", {other} not as planned" if other else ""
        if self._host.chapter.reboot:
            return f"{said}. {AT_NEXT_BOOT}: {REBOOT}. {ONLY_YOU}"
        return f"{said}. {read_back(settled)}. {RESTORED_AT_THE_END if self.journalled else ONLY_YOU}"

    def _changed_since(self, shown: PlanView) -> dict[str, str]:
        """Return path → reason, for each setting whose value has changed since the plan was made."""
        host = self._host
        now = {_values(one) for one in planned(look_at_settings(host.context.root, host.chapter), shown.words).changes}
        gone = [one.path for one in shown.changes if _values(one) not in now]
        return dict.fromkeys(gone, "the host has changed since the plan was shown")

    @property
    def _work(self) -> HandWork | None:
        return self._host.context.progress(self._host.chapter.id).by_hand

    def _owing(self) -> HandWork:
        """Return all writes that the learner has to restore by hand, from this visit and earlier ones. If two visits
        changed the same setting, its value before the first of the two writes is returned."""
        work = self._work
        before = {one.path: one for one in work.changes} if work is not None and self.owed else {}
        made = {one.path: one for one in self._changes}
        oldest = {
            path: dataclasses.replace(one, before=before[path].before) if path in before else one
            for path, one in made.items()
        }
        return HandWork(tuple({**before, **oldest}.values()), self._host.boot_id)

    def _keep(self, work: HandWork | None, *, waits: bool = True) -> None:
        """Store ``work``, the writes with their old values, in the chapter's progress.

        ``waits``: False if the boot parameters are restored. Then the chapter no longer waits for a reboot.
        """
        context, ident = self._host.context, self._host.chapter.id
        progress = dataclasses.replace(context.progress(ident), by_hand=work)
        progress = progress if waits else dataclasses.replace(progress, reboot_from=None)
        context.save_progress(ident, progress)


def owed_by_hand(context: SessionContext, course: Course) -> tuple[str, ...]:
    """Return the titles of the chapters whose writes the learner still has to restore by hand."""
    boot = current_boot(context.root)
    works = ((chapter.title, context.progress(chapter.id).by_hand) for chapter in course.chapters)
    return tuple(title for title, work in works if work is not None and _stands(work, boot))


def _stands(work: HandWork, boot_id: str | None) -> bool:
    """Return True if the writes in ``work`` are still in effect. A reboot undoes all writes except boot parameters."""
    return work.boot_id == boot_id or any(one.when == "boot" for one in work.changes)


def _journalled(root: HostRoot, journal_id: str) -> set[str]:
    """Return the paths of the settings whose old values are in this journal. The learner may write only to these
    settings by hand. The agent leaves out a task whose mask has changed since the plan was shown, and does not report
    this."""
    return {entry.path for one in read_journals(root) if one.id == journal_id for entry in one.entries.values()}


def _lines(writes: tuple[HandWrite, ...]) -> tuple[HandLine, ...]:
    """Return the shell lines that make these writes. Successive writes that move tasks between the same two control
    groups become one line. The last line ends with the commands that follow all writes (``Change.then``).
    """
    lines: list[HandLine] = []
    for _, group in itertools.groupby(writes, lambda one: moves_alike(one.change) or one.change.n):
        made = tuple(group)
        lines.append(
            HandLine(made[0].command if len(made) == 1 else move_tasks_line([one.change for one in made]), made)
        )
    then = dict.fromkeys(one.change.then for one in writes if one.change.then)
    if then:
        lines[-1] = HandLine("; ".join([lines[-1].command, *then]), lines[-1].writes)
    return tuple(lines)


def _values(change: Change) -> tuple[str, str, str]:
    return change.path, change.before, change.after
