"""Order the steps of a chapter, and the chapters of a course.

A step is done, open, or blocked by another step. The chapters that this host can do come first. Each chapter has its
progress and its next step.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Literal

from jitter_workshop.flow.host_ops.recordings import Recordings
from jitter_workshop.flow.host_ops.settings import USUAL, StateHere
from jitter_workshop.flow.measuring.isolated_set import CpuBudget
from jitter_workshop.model.course import STEPS, Chapter, Course, StepName
from jitter_workshop.model.noise import noise as noise_called
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.session import ChapterProgress
from jitter_workshop.model.walk import Chance, Grade, PathEntry, StepState, StepView

NOT_MEASURED = "nothing can be measured on a recorded host"
_NEEDS_MEASURE: tuple[StepName, ...] = ("diagnose", "apply", "again")


def step_named(chapter: Chapter, name: str | None) -> StepName | None:
    """Return the chapter's step with this name; None if the chapter has no such step. The name ``plan`` means the step
    ``apply``: older sessions, and other hosts of a class, may use this name."""
    wanted = "apply" if name == "plan" else name
    return next((step for step in chapter.steps if step == wanted), None)


def current_step(chapter: Chapter, progress: ChapterProgress) -> StepName:
    """Return the learner's saved step, or the first step if the chapter has no such step."""
    return step_named(chapter, progress.step) or chapter.steps[0]


def furthest_step(chapter: Chapter, progress: ChapterProgress, rehearsed: bool = False) -> StepName:
    """Return the step at which the learner continues.

    Usually this is the next step: the step after the furthest one that the learner finished. Return the next step even
    if the learner has gone back to an earlier page. In four cases, return the saved step, on which the learner was
    last:

    - No step is finished.
    - The chapter is done.
    - The saved step is not before the next step.
    - The next step is blocked.

    ``rehearsed``: the chapter is taught on a recording.
    """
    now = current_step(chapter, progress)
    seen = [step for step in chapter.steps if step in progress.seen]
    after = step_after(chapter, max(seen, key=STEPS.index)) if seen and not progress.done else None
    if after is None or STEPS.index(after) <= STEPS.index(now):
        return now
    return now if blocked(chapter, progress, after, rehearsed) else after


def step_after(chapter: Chapter, step: StepName) -> StepName | None:
    later = [s for s in chapter.steps if STEPS.index(s) > STEPS.index(step)]
    return later[0] if later else None


def step_before(chapter: Chapter, step: StepName) -> StepName | None:
    earlier = [s for s in chapter.steps if STEPS.index(s) < STEPS.index(step)]
    return earlier[-1] if earlier else None


def views(
    chapter: Chapter, progress: ChapterProgress, rehearsed: bool = False, skipped: Collection[StepName] = ()
) -> tuple[StepView, ...]:
    """Return all steps with their states, in order. ``rehearsed``: the chapter is taught on a recording. ``skipped``:
    steps that the learner has passed without doing them; such a step stays open."""
    now = current_step(chapter, progress)
    states = {step: _step_state(chapter, progress, step, now, rehearsed) for step in STEPS}
    return tuple(
        StepView(step, "open" if state == "done" and step in skipped else state) for step, state in states.items()
    )


def _step_state(
    chapter: Chapter, progress: ChapterProgress, step: StepName, now: StepName, rehearsed: bool
) -> StepState:
    if step not in chapter.steps:
        return "left_out"
    if step == now:
        return "now"
    if rehearsed and step != "predict" and step not in progress.runs:
        # Without runs a guess is still made; a plan is only looked at.
        return "seen" if step in progress.seen or progress.done else "open"
    return "done" if _is_done(progress, step) else "open"


def _is_done(progress: ChapterProgress, step: StepName) -> bool:
    """Return True if the learner has done a step. A step with a result is done when the result is stored. Any other
    step is done when the learner has gone on to the next one."""
    if step in ("measure", "again"):
        return step in progress.runs or (step == "measure" and _observed(progress))
    if step == "predict":
        return progress.prediction is not None
    return step in progress.seen or progress.done


def _observed(progress: ChapterProgress) -> bool:
    """Return True if the learner's program was observed."""
    return progress.program is not None and progress.program.observed is not None


def blocked(chapter: Chapter, progress: ChapterProgress, step: StepName, rehearsed: bool = False) -> str:
    """Return the reason why a step cannot be entered yet; "" if it can be entered. The learner may skip the step
    *predict*, but must open the step *apply*, which shows the plan. ``rehearsed``: the chapter is taught on a
    recording, where no step of the chapter is blocked.
    """
    if step not in chapter.steps:
        return f"this chapter has no step '{step}'"
    if rehearsed:
        return ""
    if step in _NEEDS_MEASURE and "measure" in chapter.steps and "measure" not in progress.runs:
        what = "read" if step == "diagnose" else "compare with"
        return f"measure first: there is no run yet that this step can {what}"
    agreed = "apply" in progress.seen or step_named(chapter, progress.step) == "apply"
    if step == "again" and "apply" in chapter.steps and not agreed:
        return "look at the plan and agree first: the workshop makes no change that you have not seen"
    if chapter.program and step == "compare" and not _observed(progress):
        return "observe your program first"
    if step == "compare" and not chapter.program:
        missing = [s for s in ("measure", "again") if s in chapter.steps and s not in progress.runs]
        if missing:
            return "measure first" if missing[0] == "measure" else "measure again first: a comparison needs two runs"
    if step == "explain" and chapter.measurements and not progress.runs:
        return "measure first: there is nothing to explain yet"
    return ""


def reason_not_here(chapter: Chapter, room: CpuBudget, recorded: bool, missing: str = "") -> str:
    """Return the reason why this host cannot do a chapter; "" if it can. ``missing``: the reason why the host has none
    of the chapter's tunables, or ""."""
    if recorded:
        return NOT_MEASURED
    if missing:
        return missing
    cpus = min((room.cpus_for(one.placement) for one in chapter.measurements), default=room.cpus)
    if cpus < chapter.hot_cpus:
        short = f"the chapter needs {chapter.hot_cpus} CPUs, but a run may use only {cpus}"
        # A narrow screen cuts the end off, so the hint comes first.
        first = f"CPU {room.isolated} is isolated, so restore the isolation first"
        return f"{first}; {short}" if room.walled else short
    return ""


def is_rehearsed(chapter: Chapter, reason: str, recorded: bool) -> bool:
    """Return True if a chapter is taught on a recording. ``reason``: the reason why this host cannot do the chapter, or
    "". ``recorded``: the workshop shows a recorded host."""
    return bool(reason) and (recorded or bool(chapter.recording))


def entry(
    chapter: Chapter,
    progress: ChapterProgress,
    guess: Grade | None,
    room: CpuBudget,
    recorded: bool,
    state: StateHere = USUAL,
    recordings: Recordings | None = None,
    may_change: bool = True,
    standing: Collection[str] | None = None,
) -> PathEntry:
    """Return a chapter's entry in the path, the ordered list of a course's chapters.

    - ``guess``: the result of the guess, ``right`` if a hunt was won; None if there is nothing to judge.
    - ``recorded``: True if the workshop shows a recorded host.
    - ``state``: the host's state for the chapter's tunables.
    - ``recordings``: the course's recordings, to check that the chapter's recording can be shown; None for no check.
    - ``may_change``: True if root's rights are available on this host.
    - ``standing``: the ids of the tunables that this tool has applied and not restored; None if they are not known. A
      setting that the learner earned is called restored if nothing of its chapter stands, and the host's own value is
      not good. A placement ends with its run.
    """
    reason = reason_not_here(chapter, room, recorded, state.missing)
    # A chapter that only our own change forbids stays where it is on the path.
    waits = bool(reason) and room.walled and not reason_not_here(chapter, room.whole, recorded, state.missing)
    later = reason if waits else ""
    reason = "" if later else reason
    if not reason and not later and room.isolated and _noise_on_hot(chapter):
        later = "the noise cannot run on an isolated CPU: restore the isolation first"
    rehearsed = is_rehearsed(chapter, reason, recorded)
    if rehearsed and recordings is not None and (unreadable := recordings.unreadable(chapter)):
        reason, rehearsed = f"{unreadable}; {reason}", False
    chance = "later" if later else _chance(chapter, state, may_change)
    setting, curve = progress.marks.get("setting", False), progress.marks.get("curve", False)
    ids = {word.partition("=")[0] for word in chapter.tunables}
    places = chapter.changes == "placement"
    gone = standing is not None and state.state != "good" and ids.isdisjoint(standing)
    return PathEntry(
        chapter_id=chapter.id,
        title=chapter.title,
        summary=chapter.summary,
        minutes=chapter.minutes,
        here=not reason,
        reason=reason,
        next_step=furthest_step(chapter, progress, rehearsed),
        started=progress != ChapterProgress(),
        done=progress.done,
        setting=setting if chapter.sets else None,
        curve=curve,
        guess=None if guess is None else guess == "right",
        beside=guess == "beside",
        rehearsed=rehearsed,
        measures=chapter.measures,
        chance=chance if not reason else "recording" if rehearsed else "not_here",
        held=later or (state.held if not reason and chance == "held" else ""),
        restored=curve and (setting if places else chapter.changes == "tunables" and (gone or not setting)),
        asks=chapter.prediction is not None or chapter.hunt,
        hunts=chapter.hunt,
        guessed=progress.prediction is not None,
        places=places,
    )


def _noise_on_hot(chapter: Chapter) -> bool:
    """Return True if a measurement of the chapter has a noise that must run on the measured CPU."""
    return any(noise_called(one.noise).on_hot for one in chapter.measurements if one.noise not in (None, "none"))


def _chance(chapter: Chapter, state: StateHere, may_change: bool) -> Chance:
    """Return one word for what a chapter can show on this host.

    - ``moves``: the chapter's change shows an effect.
    - ``counts``: the chapter's change shows an effect in a count, and none in the latency.
    - ``good``: the settings are good already, so the change shows no effect.
    - ``rights``: the change cannot be made, because root's rights are missing.
    - ``held``: this host prevents nearly all of the change's effect.
    - ``measures``: the chapter measures, but shows no effect of a change.
    - ``reads``: the chapter measures nothing.
    """
    if not chapter.measures:
        return "reads"
    if chapter.changes == "tunables" and state.state == "good":
        return "good"
    if chapter.changes == "tunables" and not may_change:
        return "rights"
    if state.held:
        return "held"
    if chapter.shows is None:
        return "measures"
    return "moves" if chapter.shows.latency else "counts"


def whole_path(
    course: Course,
    room: CpuBudget,
    recorded: bool,
    recordings: Recordings,
    of_class: Sequence[str],
    progress: Callable[[str], ChapterProgress],
    state: Callable[[Chapter], StateHere],
    guess: Callable[[Chapter], Grade | None] = lambda chapter: None,
    may_change: bool = True,
    standing: Collection[str] | None = None,
) -> tuple[PathEntry, ...]:
    """Return the entries of a course's chapters, in the order for a host.

    Each of the functions ``progress``, ``state`` and ``guess`` takes a chapter or its id. The function's result is
    given to :func:`entry` as the argument with the function's name. For the other arguments see :func:`entry` and
    :func:`order_chapters`.
    """
    return order_chapters(
        tuple(
            entry(
                chapter,
                progress(chapter.id),
                guess(chapter),
                room,
                recorded,
                state(chapter),
                recordings,
                may_change,
                standing,
            )
            for chapter in course.chapters
        ),
        of_class,
    )


def order_chapters(entries: tuple[PathEntry, ...], of_class: Sequence[str] = ()) -> tuple[PathEntry, ...]:
    """Return the chapters in the order for this host, each with its number in teaching order.

    Chapters that this host can do come first, then those taught on a recording, then all others. The first group is the
    chapters that this host can do. Without a class, chapters whose change would show no effect here come last in this
    group.

    ``entries``: all chapters in teaching order. ``of_class``: the ids of a class's chapters in the order of the class,
    () without a class. The chapters of a class come before all others, in the order of the class.
    """
    entries = tuple(dataclasses.replace(e, number=n) for n, e in enumerate(entries, 1))
    if not of_class:
        return tuple(sorted(entries, key=lambda e: (not e.here, not e.rehearsed, _waits(e))))
    place = {ident: number for number, ident in enumerate(of_class)}
    marked = (dataclasses.replace(e, in_class=e.chapter_id in place) for e in entries)
    return tuple(
        sorted(marked, key=lambda e: (not e.in_class, not e.here, not e.rehearsed, place.get(e.chapter_id, 0)))
    )


def _waits(entry: PathEntry) -> bool:
    """Return True if a chapter teaches a change that would show no effect on this host."""
    return entry.chance in ("good", "rights", "held")


_State = Literal["here", "recording", "neither", "left_out"]


@dataclass(frozen=True, slots=True)
class PathGroup:
    """Hold the chapters that have the same state on this host.

    - ``state``: ``here`` (this host can do them), ``recording`` (taught on a recording), ``neither``, or ``left_out``
      (by the class).
    - ``entries``: pairs of (index in the path, chapter).
    - ``reason``: the reason why this host cannot do the chapters. It is "" for a single chapter, or if the chapters
      have different reasons.
    """

    state: _State
    entries: tuple[tuple[int, PathEntry], ...]
    reason: str


def in_groups(path: Sequence[PathEntry]) -> tuple[PathGroup, ...]:
    """Return the groups that are not empty, in the order of the path."""
    found: list[PathGroup] = []
    states: tuple[_State, ...] = ("here", "recording", "neither", "left_out")
    for state in states:
        entries = tuple((n, e) for n, e in enumerate(path) if _state(e) == state)
        reasons = {e.reason for _, e in entries}
        shared = next(iter(reasons)) if len(entries) > 1 and len(reasons) == 1 else ""
        if entries:
            found.append(PathGroup(state, entries, shared))
    return tuple(found)


def _state(entry: PathEntry) -> _State:
    if not entry.in_class:
        return "left_out"
    return "here" if entry.here else "recording" if entry.rehearsed else "neither"


def all_done_here(path: Iterable[PathEntry]) -> bool:
    """Return True if all chapters that this host can do are done. Return False if it can do none."""
    here = [entry.done for entry in path if entry.here and entry.in_class]
    return bool(here) and all(here)


def next_chapter(path: tuple[PathEntry, ...], current: str | None, of_class: Sequence[str] = ()) -> PathEntry | None:
    """Return the chapter that Enter opens; None if no chapter is left.

    This is the ``current`` chapter if it is unfinished. If it is done, this is the first unfinished chapter after it: a
    learner who left out an earlier chapter is not led back to it before the path's end. Without a current chapter, and
    at the path's end, this is the first unfinished chapter that was begun, else the first unfinished one.

    - A class has its own order of chapters: the first unfinished one of this order comes next.
    - Without a class, chapters whose change would show no effect here come after the others, unless they were begun.
    - Some chapters can be done only after a change of this tool has been restored. These chapters come after all other
      chapters that this host can do.
    - Chapters taught on a recording come after all chapters that this host can do.
    """
    ours = [e for e in path if e.in_class and not e.done]
    here = [e for e in ours if e.here and e.chance != "later"] or [e for e in ours if e.here]
    first = [e for e in here if of_class or not _waits(e) or e.started or e.chapter_id == current]
    unfinished = first or here or [e for e in ours if e.rehearsed]
    at = next((n for n, e in enumerate(path) if e.chapter_id == current and e.done and not of_class), len(path))
    later = {e.chapter_id for e in path[at + 1 :]}

    def rank(e: PathEntry) -> tuple[bool, bool, bool]:
        after = e.chapter_id in later
        return e.chapter_id != current, not after, not (after or e.started or of_class)

    return min(unfinished, key=rank, default=None)
