"""Read and change the host for one chapter. A chapter that this host cannot do is shown on a recorded host."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from jitter_workshop.errors import HostError
from jitter_workshop.flow.chapters.hand_values import names_host_values, values_by_hand
from jitter_workshop.flow.chapters.path import is_rehearsed, reason_not_here
from jitter_workshop.flow.chapters.recorded import RecordedChapter, recorded_chapter
from jitter_workshop.flow.chapters.session_context import SessionContext, look_at
from jitter_workshop.flow.host_ops.hostview import HostView, topic_facts
from jitter_workshop.flow.host_ops.hotcpus import choose_hot
from jitter_workshop.flow.host_ops.recordings import recorded_host
from jitter_workshop.flow.host_ops.settings import Seen, boot_way, look_at_settings, plan_view, planned
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import ApplyResult, Change, Plan, RestoreResult
from jitter_workshop.model.course import Chapter, HostState
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import HostSummary, Topology
from jitter_workshop.model.record import made_of
from jitter_workshop.model.status import Assessment
from jitter_workshop.model.text import LABEL, LINE, SENTENCE, clean, fell_away, tally
from jitter_workshop.model.walk import ApplyView, BootWay, Fact, PlanView, SettingChange
from jitter_workshop.tuning.journal import active, current_boot
from jitter_workshop.tuning.tunables.registry import parse_wanted, set_for_one_boot

AT_NEXT_BOOT = "The writes take effect at the next boot"
REBOOT = "reboot, then start the workshop again"
NOT_WRITTEN = "nothing is written on a recording"
NOT_IN_EFFECT = "some of the written boot parameters are not in effect"
RESTORED_AT_THE_END = "The old values are restored when you leave the workshop, unless you keep the changes."
_BEGUN_THERE = "The plan begins with the values of that run, and not with those of the recorded host."
_STATES = {"ok": "ok", "improve": "can be better", "unavailable": "not here", "info": "to know"}


class ChapterHost:
    """Read the host, and plan, apply and restore the changes of one chapter. Each reading is cached until a setting
    changes."""

    def __init__(self, chapter: Chapter, context: SessionContext) -> None:
        self.chapter = chapter
        self.context = context
        self.boots = Boots(self)
        self._here: Seen | None = None
        self._there: Seen | None = None

    @property
    def reason(self) -> str:
        """Return the reason why the chapter cannot be done on this host; "" if it can be done."""
        return reason_not_here(self.chapter, self.context.room, self.context.recorded, self._missing())

    @property
    def rehearsed(self) -> bool:
        """Return True if the chapter is taught on a recorded host. This is the chapter's own recording, or the recorded
        host with which the workshop was started."""
        return is_rehearsed(self.chapter, self.reason, self.context.recorded)

    @property
    def recorded(self) -> RecordedChapter | None:
        """Return the chapter's runs from another machine, which a rehearsal shows. Return None if the course has no
        runs that fit the chapter.
        """
        return recorded_chapter(self.chapter, self.context.course_dir, self.context.course_id)

    @property
    def recording(self) -> str:
        """Return the name of the chapter's recording if it is shown; "" if the workshop's own host is shown."""
        return "" if self._taught_here() else self.chapter.recording

    @property
    def state(self) -> HostState:
        """Return the state of the chapter's tunables on the workshop's own host. This is the live host, or the recorded
        host with which the workshop was started. It is never the chapter's own recording."""
        if self._missing() or (self.reason and not self.context.recorded):
            return "not_here"
        return self.seen().state if self.chapter.tunables else "available"

    @property
    def held(self) -> str:
        """Return the reason why a change of the chapter's tunables has hardly any effect on this host; "" if there is
        no such reason.
        """
        return self.seen().held if self.chapter.tunables and self.state == "available" else ""

    @property
    def boot_id(self) -> str | None:
        return current_boot(self.context.root)

    @property
    def awaits_reboot(self) -> bool:
        """Return True if this chapter's boot parameters were written and this host has not been rebooted since."""
        written_in = self.context.progress(self.chapter.id).reboot_from
        return written_in is not None and written_in == self.boot_id

    @property
    def ids(self) -> list[str]:
        """Return the ids of the chapter's tunables."""
        return [word.partition("=")[0] for word in self.chapter.tunables]

    @property
    def applied(self) -> bool:
        """Return True if a setting of this chapter, made by this tool, is in effect on this host."""
        return not self.context.recorded and any(e.tunable in self.ids for e in active(self.context.root))

    def standing(self) -> tuple[Change, ...]:
        """Return the writes of this chapter that are in effect on this host, each with its old and new value."""
        if self.context.recorded or self.rehearsed:
            return ()
        ours = (entry for entry in active(self.context.root) if entry.tunable in self.ids)
        return tuple(made_of(Change, entry, risk="low", why="") for entry in ours)

    def settled(self) -> dict[str, bool]:
        """Read this host again and return tunable id → True if the tunable needs no improvement."""
        self._here = None
        return {} if self.reason else self.seen().settled()

    def look(self) -> tuple[Fact, ...]:
        """Read the host again. Return the state of each of the chapter's tunables, then the facts that the chapter
        shows."""
        self._here = None
        root, topology, host = self.machine()
        found = topic_facts(HostView(root, host, topology), self.chapter.look)
        checks = self._taught().checks if self.chapter.tunables else ()
        return (*(_fact(check) for check in checks), *found)

    def machine(self) -> tuple[HostRoot, Topology, HostSummary]:
        """Return the host that the chapter shows: the workshop's own host, or the chapter's recording. Raise
        LessonError if the recording cannot be read."""
        context = self.context
        if self._taught_here():
            return context.root, context.topology, context.host
        root = recorded_host(self.chapter.recording, context.course_dir)
        return root, *look_at(root)

    def forget(self) -> None:
        """Forget the state of this host's tunables, so that they are read again at the next call."""
        self._here = None

    def keep_up(self) -> None:
        """Read this host again if its isolated CPUs have changed since it was read. Another workshop may have changed
        them."""
        if self.context.look_if_moved():
            self.forget()

    def hot(self) -> CpuSet:
        """Return the hot CPUs of the shown host, live or recorded. Return no CPUs if the host shows none."""
        root, topology, _ = self.machine()
        try:
            return choose_hot(root, None, topology).cpus
        except HostError:
            return CpuSet()

    def values_by_hand(self, used: CpuSet | None = None) -> dict[str, str]:
        """Return placeholder → value, for those values of the shown host that a by-hand command names. ``used``: the
        CPUs of the run that the commands are about; None without a run."""
        if not names_host_values(self.chapter):
            return {}
        root, topology, _ = self.machine()
        hot = self.hot()
        return values_by_hand(self.chapter, root, topology, hot, used or hot)

    def plan(self) -> PlanView:
        """Return the plan of the chapter's tunables on the shown host. In a rehearsal the writes begin with the values
        of the first recorded run, as the comparison does, and the text says so."""
        seen = self._taught()
        recorded = seen.host.root.recorded
        shown = plan_view(seen, self.boots.words(), recorded, self.boots.way(), self.boots.drawn())
        runs = self.recorded if self.rehearsed else None
        if runs is None or not runs.first:
            return shown
        changes = _begun_with(runs.first, shown.changes)
        so = f" {_BEGUN_THERE}" if changes != shown.changes else ""
        return dataclasses.replace(shown, changes=changes, text=f"{shown.text} {runs.first_told()}{so}")

    def apply(self, shown: PlanView | None = None) -> ApplyView:
        """Make the writes of ``shown``, or of the chapter's plan if ``shown`` is None. The agent refuses a write if the
        host has changed since the plan was shown; the result gives the reason. Raise HostError if the chapter cannot be
        done on this host, or if the agent fails."""
        connection, chapter = self.context.agent_connection, self.chapter
        if self.reason:
            raise HostError(
                f"here the chapter {chapter.title} uses a recorded host, so nothing is written", self.reason
            )
        seen, words, way = self.seen(), self.boots.words(), self.boots.way()
        if shown is not None:
            words, changes = shown.words or words, shown.changes
        else:
            changes = (self.boots.drawn() or planned(seen, words)).changes
        result = ApplyResult(None, (), (), False)
        if changes:
            with connection.change_log.during(chapter=chapter.id):
                result = connection.apply(words, seen.hot.cpus, changes)
                if result.needs_reboot and result.journal_id is not None:
                    connection.keep_for_the_boot(words, result.journal_id)
            self.context.note_stack()
        self.boots.forget()
        settled = all(self.settled().values())
        refused = tuple((one.path or one.tunable, one.reason) for one in result.refused)
        waits = result.needs_reboot and not (settled and way is not None and way.this_boot)
        text = _told(result, settled, waits, way is not None and way.once)
        return ApplyView(len(result.applied), refused, settled, waits, text)

    def restore(self) -> RestoreResult:
        """Restore the chapter's settings. Raise HostError if this fails, or on a recorded host."""
        refuse_recorded(self.context)
        ids = self.ids
        with self.context.agent_connection.change_log.during(chapter=self.chapter.id):
            result = self.context.agent_connection.restore(ids)
        self._here = None
        self.boots.forget()
        self.context.note_stack(restored=ids)
        return result

    def compared(self) -> tuple[SettingChange, ...]:
        """Return each tunable's value before and after the change, read from two recorded hosts. If the first recorded
        run had another value, this value is the first one. Return () if the chapter is taught on this host, or if it
        has no second recording."""
        chapter = self.chapter
        if not self.rehearsed or not chapter.recording_after:
            return ()
        pair = [recorded_host(name, self.context.course_dir) for name in (chapter.recording, chapter.recording_after)]
        before, after = (look_at_settings(root, chapter) for root in pair)
        there, settled = before.settled(), after.settled()
        first = self.recorded.first if self.recorded is not None else {}
        return tuple(
            SettingChange(b.title, clean(first.get(b.id, _value(b)), LABEL), _value(a), settled[a.id])
            for b, a in zip(before.checks, after.checks, strict=True)
            if b.id in there and a.id in settled
        )

    def _missing(self) -> str:
        """Return the reason why the workshop's own host has none of the chapter's tunables, or ""."""
        if not self.chapter.tunables:
            return ""
        try:
            return self.seen().reason
        except HostError as error:
            return error.message

    def seen(self) -> Seen:
        """Return the last known state of the chapter's tunables on the workshop's own host. The host is read only if no
        state is known."""
        seen = self._here  # a screen may call this while its thread changes the host and drops what was read
        if seen is None:
            seen = self._here = look_at_settings(self.context.root, self.chapter)
        return seen

    def _taught_here(self) -> bool:
        """Return True if the chapter shows the workshop's own host, False if it shows the chapter's recording. The
        workshop's own host can be live or recorded."""
        ours = self.context.recorded and not self._missing()
        return not self.rehearsed or ours or not self.chapter.recording

    def _taught(self) -> Seen:
        if self._taught_here():
            return self.seen()
        if self._there is None:
            root: HostRoot = recorded_host(self.chapter.recording, self.context.course_dir)
            self._there = look_at_settings(root, self.chapter)
        return self._there


class Boots:
    """Plan a chapter's boot parameters, for every boot or only for the next one. Some hosts cannot set boot parameters
    only for the next boot.
    """

    def __init__(self, host: ChapterHost) -> None:
        self._host = host
        self._always = False
        self._root_says: Plan | None = None

    def way(self) -> BootWay | None:
        """Return the way to set the chapter's boot parameters on this host. Return None on a recording, or for a
        chapter without boot parameters."""
        host = self._host
        if not host.chapter.reboot or host.rehearsed or host.context.recorded:
            return None
        way = boot_way(host.seen(), host.chapter.tunables, always=self._always)
        if not way.root_first:
            return way
        if self._root_says is None:
            return dataclasses.replace(way, root_first=host.context.agent_connection.rights != "none")
        left_out = [one.reason for one in self._root_says.skipped]
        why_not = "" if self._root_says.changes or not left_out else left_out[0]
        return dataclasses.replace(way, once=not why_not and not self._always, why_not=why_not, root_first=False)

    def choose(self, *, once: bool) -> None:
        """Plan the boot parameters for every boot. With ``once``, plan them only for the next boot.

        On some hosts, only root can see if parameters can be set for the next boot alone. Raise HostError on such a
        host if root's rights are not available.
        """
        way, host = self.way(), self._host
        if once and way is not None and way.root_first:
            self._root_says = host.context.agent_connection.plan(self._words_once(), host.seen().hot.cpus)
        self._always = not once

    def drawn(self) -> Plan | None:
        """Return root's plan for the next boot alone, or None if root has made no such plan."""
        way = self.way()
        return self._root_says if way is not None and way.once else None

    def forget(self) -> None:
        """Forget root's plan, because it is out of date after a write or a restore."""
        self._root_says = None

    def words(self) -> tuple[str, ...]:
        """Return the chapter's tunables as arguments of the command ``apply``. If the learner chose to set boot
        parameters only for the next boot, the arguments state this choice.
        """
        way = self.way()
        return self._words_once() if way is not None and way.once else self._host.chapter.tunables

    def _words_once(self) -> tuple[str, ...]:
        return tuple(map(str, set_for_one_boot(parse_wanted(self._host.chapter.tunables))))

    def told(self, settled: dict[str, bool]) -> tuple[bool, str]:
        """Return two values: True if all boot parameters are in effect, and a sentence.

        The sentence states this result after a reboot. ``settled``: tunable id → True if the tunable needs no change
        now.
        """
        # A parameter that this host does not take (a kernel drops nohz_full= silently) is not in effect either.
        good = all(settled.get(ident, False) for ident in self._host.ids)
        words = "the written boot parameters are in effect"
        if not good:
            words = f"{NOT_IN_EFFECT} ('status' shows them)"
        way = self.way()
        if good and way is not None and way.this_boot:
            words += ", in this boot alone. To keep the parameters, plan them for every boot in the step 'apply'"
        return good, f"This host was rebooted: {words}."


def _begun_with(first: Mapping[str, str], changes: Sequence[Change]) -> tuple[Change, ...]:
    """Return the writes of a plan, with the values of the first recorded run as those before the writes. ``first``:
    tunable id → its value in that run. A tunable whose settings differ now has no single value, so its writes stay."""
    now: dict[str, set[str]] = {}
    for one in changes:
        now.setdefault(one.tunable, set()).add(one.before)
    return tuple(
        dataclasses.replace(one, before=first[one.tunable])
        if one.tunable in first and len(now[one.tunable]) == 1
        else one
        for one in changes
    )


def refuse_recorded(context: SessionContext) -> None:
    """Raise HostError if the workshop shows a recorded host. No setting was applied to it, so none can be restored."""
    if context.root.recorded:
        raise HostError("nothing was applied to a recorded host, so there is nothing to restore", "leave out --root")


def read_back(settled: bool) -> str:
    """Return a sentence that states whether the host has the wanted values after the writes. The sentence has no full
    stop. ``settled``: True if all settings have the wanted values.
    """
    return (
        "The host now has the wanted values" if settled else "Some settings can still be improved: see the step 'look'"
    )


def _fact(check: Assessment) -> Fact:
    value = (
        f"{check.value or 'nothing'} → {check.wanted}"
        if check.state == "improve" and check.wanted
        else check.value or ""
    )
    shown = f"{_STATES[check.state]}{': ' if value else ''}{value}"
    return Fact(check.title, clean(shown, LINE), clean(check.reason, SENTENCE), check.paths[0] if check.paths else "")


def _value(check: Assessment) -> str:
    return clean(check.value or "nothing", LABEL)


def _told(result: ApplyResult, settled: bool, waits: bool, once: bool) -> str:
    fallen = fell_away(result.ended, result.changed)
    if not result.applied and not result.refused and not fallen:
        return "There was nothing to write." + (" The settings have the wanted values." if settled else "")
    said = f"Applied and read back: {tally((one.tunable for one in result.applied), result.shown)}"
    said += f", {len(result.refused)} refused" if result.refused else ""
    said += f". {fallen[:-1]}" if fallen else ""
    if waits and once:
        return f"{said}. {AT_NEXT_BOOT} only: {REBOOT}."
    if waits:
        return f"{said}. {AT_NEXT_BOOT}: {REBOOT}."
    if result.needs_reboot:
        return f"{said}. The new values are in effect now and after every boot."
    return f"{said}. {read_back(settled)}. {RESTORED_AT_THE_END}"
