"""Read and change the host for one chapter: this host, or the recorded one for chapters that this host cannot do."""

from __future__ import annotations

from collections.abc import Callable

from jitter_workshop.errors import HostError
from jitter_workshop.flow.chapters.boots import Boots
from jitter_workshop.flow.chapters.path import is_rehearsed, reason_not_here
from jitter_workshop.flow.chapters.session_context import SessionContext, look_at
from jitter_workshop.flow.host_ops.hostview import View, facts
from jitter_workshop.flow.host_ops.recordings import recorded_host
from jitter_workshop.flow.host_ops.settings import Seen, look_at_settings, plan_view, planned
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.assessment import Assessment
from jitter_workshop.model.change import ApplyResult, Plan, RestoreResult
from jitter_workshop.model.course import Chapter, HostState
from jitter_workshop.model.host import HostSummary
from jitter_workshop.model.text import clean, fell_away, tally
from jitter_workshop.model.topology import Topology
from jitter_workshop.model.walk import ApplyView, Fact, PlanView, SettingChange
from jitter_workshop.tuning.journal import active, current_boot

_STATES = {"ok": "good", "improve": "can be better", "unavailable": "not here", "info": "to know"}


class HostSide:
    """Read, plan, write and give back for one chapter. What it read is kept until something changes."""

    def __init__(self, chapter: Chapter, context: SessionContext) -> None:
        self._chapter = chapter
        self._context = context
        self.boots = Boots(chapter, self._bootable, self._as_root)
        self._here: Seen | None = None
        self._there: Seen | None = None

    @property
    def reason(self) -> str:
        """Return the reason why the chapter cannot be done on this host, or ""."""
        return reason_not_here(self._chapter, self._context.room, self._context.root.recorded, self._missing())

    @property
    def rehearsed(self) -> bool:
        """Return True if it is taught on a recording: its own, or the recorded host that the workshop was given."""
        return is_rehearsed(self._chapter, self.reason, self._context.root.recorded)

    @property
    def recording(self) -> str:
        """Return the name of the chapter's recording if that is shown, "" if the workshop's own host is shown."""
        return "" if self._taught_here() else self._chapter.recording

    @property
    def state(self) -> HostState:
        """Return the state of the workshop's own host for the chapter's tunables. That can be the recorded host that
        the workshop was given, but not the recording of the chapter."""
        if self._missing() or (self.reason and not self._context.root.recorded):
            return "not_here"
        return self._seen().state if self._chapter.tunables else "available"

    @property
    def boot_id(self) -> str | None:
        return current_boot(self._context.root)

    @property
    def applied(self) -> bool:
        ids = {word.partition("=")[0] for word in self._chapter.tunables}
        return not self._context.root.recorded and any(e.tunable in ids for e in active(self._context.root))

    def settled(self) -> dict[str, bool]:
        """Return id → True if nothing is to improve on this host, read now."""
        self._here = None
        return {} if self.reason else self._seen().settled()

    def look(self) -> tuple[Fact, ...]:
        """Return the facts that the chapter looks at, read now, with its tunables' own assessments."""
        self._here = None
        root, topology, host = self.machine()
        found = facts(View(root, host, topology), self._chapter.look)
        checks = self._taught().checks if self._chapter.tunables else ()
        return (*found, *(_fact(check) for check in checks))

    def machine(self) -> tuple[HostRoot, Topology, HostSummary]:
        """Return the host that is shown: the workshop's own, or the chapter's recording. Raises LessonError for the
        latter."""
        context = self._context
        if self._taught_here():
            return context.root, context.topology, context.host
        root = recorded_host(self._chapter.recording, context.course_dir)
        return root, *look_at(root)

    def _bootable(self) -> Seen | None:
        booted = self._chapter.reboot and not self.rehearsed and not self._context.root.recorded
        return self._seen() if booted else None

    def _as_root(self) -> Callable[[tuple[str, ...]], Plan] | None:
        agent_session, hot = self._context.agent_session, self._seen().hot.cpus
        return (lambda words: agent_session.plan(words, hot)) if agent_session.rights != "none" else None

    def plan(self) -> PlanView:
        seen = self._taught()
        recorded = seen.host.root.recorded
        return plan_view(seen, self.boots.words(), recorded, self.boots.way(), self.boots.drawn())

    def apply(self, shown: PlanView | None = None) -> ApplyView:
        """Make the writes of ``shown`` and no others, all of the plan where that is None. The agent refuses writes for
        which the host has changed since the plan was shown, with the reason. Raises HostError."""
        context, chapter = self._context, self._chapter
        if self.reason:
            raise HostError(f"{chapter.title} is taught on a recording here: nothing is written", self.reason)
        seen, words, way = self._seen(), self.boots.words(), self.boots.way()
        if shown is not None:
            words, changes = shown.words or words, shown.changes
        else:
            changes = (self.boots.drawn() or planned(seen, words)).changes
        result = ApplyResult(None, (), (), False)
        if changes:
            with context.agent_session.change_log.during(chapter=chapter.id):
                result = context.agent_session.apply(words, seen.hot.cpus, changes)
                if result.needs_reboot and result.journal_id is not None:
                    context.agent_session.keep_for_the_boot(words, result.journal_id)
            context.note_stack()
        self.boots.forget()
        settled = all(self.settled().values())
        refused = tuple((one.path or one.tunable, one.reason) for one in result.refused)
        waits = result.needs_reboot and not (settled and way is not None and way.this_boot)
        text = _told(result, settled, waits, way is not None and way.once)
        return ApplyView(len(result.applied), refused, settled, waits, text)

    def undo(self) -> RestoreResult:
        """Give the chapter's settings back. Raises HostError, also on a recorded host, on which nothing was applied."""
        refuse_recorded(self._context)
        ids = [word.partition("=")[0] for word in self._chapter.tunables]
        with self._context.agent_session.change_log.during(chapter=self._chapter.id):
            result = self._context.agent_session.restore(ids)
        self._here = None
        self.boots.forget()
        self._context.note_stack(given_back=ids)
        return result

    def compared(self) -> tuple[SettingChange, ...]:
        """Return before and after, where the chapter is taught on its own recordings; else ()."""
        chapter = self._chapter
        if not self.rehearsed or not chapter.recording_after:
            return ()
        pair = [recorded_host(name, self._context.course_dir) for name in (chapter.recording, chapter.recording_after)]
        before, after = (look_at_settings(root, chapter) for root in pair)
        there, settled = before.settled(), after.settled()
        return tuple(
            SettingChange(b.title, _value(b), _value(a), settled[a.id])
            for b, a in zip(before.checks, after.checks, strict=True)
            if b.id in there and a.id in settled
        )

    def _missing(self) -> str:
        """Return the reason why the workshop's own host has none of the chapter's tunables, or ""."""
        if not self._chapter.tunables:
            return ""
        try:
            return self._seen().reason
        except HostError as error:
            return error.message

    def _seen(self) -> Seen:
        seen = self._here  # a screen may call this while its thread changes the host and drops what was read
        if seen is None:
            seen = self._here = look_at_settings(self._context.root, self._chapter)
        return seen

    def _taught_here(self) -> bool:
        """Return True if the host that is shown is the one that the workshop was given, be it live or recorded."""
        return (
            not self.rehearsed or (self._context.root.recorded and not self._missing()) or not self._chapter.recording
        )

    def _taught(self) -> Seen:
        if self._taught_here():
            return self._seen()
        if self._there is None:
            root: HostRoot = recorded_host(self._chapter.recording, self._context.course_dir)
            self._there = look_at_settings(root, self._chapter)
        return self._there


def refuse_recorded(context: SessionContext) -> None:
    """Raise HostError where the workshop was given a recorded host: it does not own what stands on the real one."""
    if context.root.recorded:
        raise HostError("a recorded host: nothing was applied, so nothing is given back", "leave out --root")


def _fact(check: Assessment) -> Fact:
    value = (
        f"{check.value or 'nothing'} → {check.wanted}"
        if check.state == "improve" and check.wanted
        else check.value or ""
    )
    shown = f"{_STATES[check.state]}{': ' if value else ''}{value}"
    return Fact(check.title, clean(shown, 120), clean(check.reason, 300), check.paths[0] if check.paths else "")


def _value(check: Assessment) -> str:
    return clean(check.value or "nothing", 60)


def _told(result: ApplyResult, settled: bool, waits: bool, once: bool) -> str:
    if not result.applied and not result.refused:
        return "Nothing was to be written." + (" It is as it should be." if settled else "")
    said = f"Applied and read back: {tally(one.tunable for one in result.applied)}"
    said += f", {len(result.refused)} refused" if result.refused else ""
    said += f". {fell_away(result.ended)[:-1]}" if result.ended else ""
    if waits and once:
        return f"{said}. The next boot has them, and no other: reboot, then start the workshop again."
    if waits:
        return f"{said}. They take effect with the next boot: reboot, then start the workshop again."
    if result.needs_reboot:
        return f"{said}. They are in effect already, and from now on in every boot."
    verified = "The host now says what was wanted" if settled else "Something is still to improve: see 'look'"
    return f"{said}. {verified}. They are given back when you leave, unless you keep them."
