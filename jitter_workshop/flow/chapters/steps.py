"""The order of a chapter's loop: which step is done, which is open, and what a step has to wait for."""

from __future__ import annotations

from jitter_workshop.model.course import STEPS, Chapter, StepName
from jitter_workshop.model.session import ChapterProgress
from jitter_workshop.model.walk import StepState, StepView

_NEEDS_MEASURE: tuple[StepName, ...] = ("plan", "apply", "again")


def current_step(chapter: Chapter, progress: ChapterProgress) -> StepName:
    """The saved step; the first one where a session names a step that the chapter (no longer) has."""
    return next((s for s in chapter.steps if s == progress.step), chapter.steps[0])


def step_after(chapter: Chapter, step: StepName) -> StepName | None:
    later = [s for s in chapter.steps if STEPS.index(s) > STEPS.index(step)]
    return later[0] if later else None


def step_before(chapter: Chapter, step: StepName) -> StepName | None:
    earlier = [s for s in chapter.steps if STEPS.index(s) < STEPS.index(step)]
    return earlier[-1] if earlier else None


def views(chapter: Chapter, progress: ChapterProgress, rehearsed: bool = False) -> tuple[StepView, ...]:
    """All eight steps with their states. ``rehearsed``: the chapter is taught on a recording."""
    now = current_step(chapter, progress)
    return tuple(StepView(step, _state(chapter, progress, step, now, rehearsed)) for step in STEPS)


def _state(chapter: Chapter, progress: ChapterProgress, step: StepName, now: StepName, rehearsed: bool) -> StepState:
    if step not in chapter.steps:
        return "left_out"
    if step == now:
        return "now"
    if rehearsed and step != "predict" and step not in progress.runs:
        # A guess is made there, too; a plan is only looked at, a run is not made.
        return "seen" if step in progress.seen or progress.done else "open"
    return "done" if _is_done(progress, step) else "open"


def _is_done(progress: ChapterProgress, step: StepName) -> bool:
    """A step that asks for something is done when that is there; a step to read, when it was left forwards."""
    if step in ("measure", "again"):
        return step in progress.runs
    if step == "predict":
        return progress.prediction is not None
    return step in progress.seen or progress.done


def blocked(chapter: Chapter, progress: ChapterProgress, step: StepName, rehearsed: bool = False) -> str:
    """Why a step cannot be entered yet, or "". A guess may be left out; a plan may not. ``rehearsed``: the chapter is
    taught on a recording, where no step has anything to wait for."""
    if step not in chapter.steps:
        return f"this chapter has no step '{step}'"
    if rehearsed:
        return ""
    if step in _NEEDS_MEASURE and "measure" in chapter.steps and "measure" not in progress.runs:
        return "measure first: there is nothing to compare with yet"
    if step == "again" and "apply" in chapter.steps and "apply" not in progress.seen and progress.step != "apply":
        return "see the plan and agree to it first: nothing is changed that was not shown"
    if step == "compare":
        missing = [s for s in ("measure", "again") if s in chapter.steps and s not in progress.runs]
        if missing:
            return "measure first" if missing[0] == "measure" else "measure again first: one run has no partner"
    if step == "explain" and chapter.measurements and not progress.runs:
        return "measure first: there is nothing to explain yet"
    return ""
