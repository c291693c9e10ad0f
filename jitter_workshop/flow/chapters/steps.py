"""Order a chapter's steps: done, open, and blocked until another step is done."""

from __future__ import annotations

from jitter_workshop.model.course import STEPS, Chapter, StepName
from jitter_workshop.model.session import ChapterProgress
from jitter_workshop.model.walk import StepState, StepView

_NEEDS_MEASURE: tuple[StepName, ...] = ("plan", "apply", "again")


def current_step(chapter: Chapter, progress: ChapterProgress) -> StepName:
    """Return the saved step; the first one where a session names a step that the chapter does not have (any more)."""
    return next((s for s in chapter.steps if s == progress.step), chapter.steps[0])


def step_after(chapter: Chapter, step: StepName) -> StepName | None:
    later = [s for s in chapter.steps if STEPS.index(s) > STEPS.index(step)]
    return later[0] if later else None


def step_before(chapter: Chapter, step: StepName) -> StepName | None:
    earlier = [s for s in chapter.steps if STEPS.index(s) < STEPS.index(step)]
    return earlier[-1] if earlier else None


def views(chapter: Chapter, progress: ChapterProgress, rehearsed: bool = False) -> tuple[StepView, ...]:
    """Return all eight steps with their states. ``rehearsed``: the chapter is taught on a recording."""
    now = current_step(chapter, progress)
    return tuple(StepView(step, _state(chapter, progress, step, now, rehearsed)) for step in STEPS)


def _state(chapter: Chapter, progress: ChapterProgress, step: StepName, now: StepName, rehearsed: bool) -> StepState:
    if step not in chapter.steps:
        return "left_out"
    if step == now:
        return "now"
    if rehearsed and step != "predict" and step not in progress.runs:
        # Without runs a guess is still made; a plan is only looked at.
        return "seen" if step in progress.seen or progress.done else "open"
    return "done" if _is_done(progress, step) else "open"


def _is_done(progress: ChapterProgress, step: StepName) -> bool:
    """Return True if a step is done: its result is there, or, for a step to read, the learner went on from it."""
    if step in ("measure", "again"):
        return step in progress.runs
    if step == "predict":
        return progress.prediction is not None
    return step in progress.seen or progress.done


def blocked(chapter: Chapter, progress: ChapterProgress, step: StepName, rehearsed: bool = False) -> str:
    """Return the reason why a step cannot be entered yet, or "". A guess may be left out; a plan may not.
    ``rehearsed``: the chapter is taught on a recording, where no step has to wait."""
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
            return "measure first" if missing[0] == "measure" else "measure again first: one run cannot be compared"
    if step == "explain" and chapter.measurements and not progress.runs:
        return "measure first: there is nothing to explain yet"
    return ""
