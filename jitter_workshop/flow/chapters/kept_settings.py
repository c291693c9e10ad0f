"""Find the settings that earlier chapters have applied and that are still in effect, and what they do to a run."""

from __future__ import annotations

from dataclasses import dataclass, field

from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.chapters.levers import levers
from jitter_workshop.flow.chapters.suspects import suspect
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.model.change import IRQ_HERE
from jitter_workshop.model.course import SLOTS, Course
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.noise import noise

ISOLATION = "isolation"


@dataclass(frozen=True, slots=True)
class KeptSetting:
    """Hold a setting of another chapter that is still applied. ``title``: the title of that chapter; "" if no chapter
    applies it. ``cpus``: the CPUs that are isolated, if the setting isolates them."""

    ident: str
    value: str
    title: str
    cpus: CpuSet = field(default_factory=CpuSet)


@dataclass(frozen=True, slots=True)
class KeptSettings:
    """Hold all such settings, and what they do to a run of a chapter.

    - ``others_on``: the CPUs to which isolation sends all other tasks; no CPUs without isolation.
    - ``threads``: the run's threads on these CPUs.
    - ``divided``: True if isolation has put only some of the run's threads there.
    - ``no_load``: the ids of the settings that keep the chapter's load off the measured CPU.
    """

    settings: tuple[KeptSetting, ...]
    others_on: CpuSet = field(default_factory=CpuSet)
    threads: tuple[str, ...] = ()
    divided: bool = False
    no_load: tuple[str, ...] = ()

    @property
    def hinders(self) -> tuple[str, ...]:
        """Return the ids of the settings with which the run shows something else than the lesson says."""
        return tuple(dict.fromkeys([*self.no_load, *([ISOLATION] if self.divided else [])]))

    @property
    def to_give_back(self) -> tuple[str, ...]:
        """Return the ids of the settings to give back before the run: those that hinder it, else all of them."""
        return self.hinders or tuple(one.ident for one in self.settings)


def hinders_lesson(workshop: Workshop, walk: ChapterWalk) -> KeptSettings | None:
    """Return the settings of other chapters with which the chapter's first run would show something else than the
    lesson says, and which are best restored before the learner guesses. Return None if there are none, after the first
    run, after the chapter's own change, and in a hunt."""
    if walk.hunts or walk.host.applied or walk.runs.run_in(SLOTS[0]) is not None:
        return None
    kept = kept_settings(workshop, walk)
    return kept if kept is not None and kept.hinders else None


def kept_settings(workshop: Workshop, walk: ChapterWalk, request: MeasureRequest | None = None) -> KeptSettings | None:
    """Return the settings of other chapters with which a chapter's run would be made now. Return None if there are
    none, and for a chapter that measures nothing here. ``request``: the run; None for the chapter's first one."""
    context, own = workshop.context, {*walk.host.ids, IRQ_HERE}
    standing = [one for one in context.standing() if one["id"] not in own]
    if not standing or not walk.measuring.measures("measure"):
        return None
    try:
        request = request or walk.measuring.request("measure")
    except WorkshopError:
        return None
    titles, isolated = _titles(workshop.course), context.room.isolated
    settings = tuple(
        KeptSetting(
            one["id"],
            one.get("value", ""),
            titles.get(one["id"], ""),
            isolated if one["id"] == ISOLATION else CpuSet(),
        )
        for one in standing
    )
    ids = [one.ident for one in settings]
    no_load = _keep_load_away(request.noise, ids)
    if ISOLATION not in ids or not isolated:
        return KeptSettings(settings, no_load=no_load)
    others_on, placed = context.topology.allowed - isolated, walk.measuring.placed(request)
    there = tuple(name for name, cpu in placed if cpu in others_on)
    return KeptSettings(settings, others_on, there, 0 < len(there) < len(placed), no_load)


def _titles(course: Course) -> dict[str, str]:
    """Return tunable id → the title of the first chapter that applies it."""
    found: dict[str, str] = {}
    for chapter in course.chapters:
        for word in chapter.tunables:
            found.setdefault(word.partition("=")[0], chapter.title)
    return found


def _keep_load_away(kind: str | None, ids: list[str]) -> tuple[str, ...]:
    """Return the settings in ``ids`` that together keep every effect of a load off the measured CPU; () if they do not,
    or if there is no load. ``kind``: the kind of the load."""
    load = noise(kind) if kind is not None else None
    if load is None or load.by != "child":
        return ()
    known = [levers(suspect(*cause, 1, 0)) for what in load.does for cause in what.causes]
    against = [[one for one in ids if one in helpful] for helpful in known]
    return tuple(dict.fromkeys(one for some in against for one in some)) if all(against) else ()
