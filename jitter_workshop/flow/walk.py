"""One chapter's loop, with no terminal in it: the screen and the plain walk both drive this.

look → predict → measure → plan → apply → again → compare → explain; a chapter may leave steps out. Every step may be
revisited; progress is saved at each move.
"""

from __future__ import annotations

from jitter_workshop.flow.measure import MeasureRequest
from jitter_workshop.model.course import Chapter, StepName
from jitter_workshop.model.run import Run
from jitter_workshop.model.session import ChapterProgress, Prediction
from jitter_workshop.model.walk import (
    CompareView,
    Explanation,
    Fact,
    PlanView,
    PredictionOutcome,
    RunCurve,
    StepView,
)


class Walk:
    """A chapter under way in a session. Created by ``flow.workshop.Workshop.walk(chapter_id)``."""

    chapter: Chapter

    @property
    def progress(self) -> ChapterProgress:
        """What is saved of this chapter."""
        raise NotImplementedError

    @property
    def current(self) -> StepName:
        """The step the learner is at."""
        raise NotImplementedError

    def steps(self) -> tuple[StepView, ...]:
        """All eight steps with their states, for the header."""
        raise NotImplementedError

    def page(self, step: StepName) -> str:
        """The lesson's Markdown for a step ("" where it has none)."""
        raise NotImplementedError

    def blocked(self, step: StepName) -> str:
        """Why a step cannot be entered yet ("measure first"), or ""."""
        raise NotImplementedError

    def go(self, step: StepName) -> None:
        """Enter a step and save. Raises WorkshopError with ``blocked``'s sentence."""
        raise NotImplementedError

    def next(self) -> StepName | None:
        """Go to the next step of this chapter; None (and the chapter is done) after the last."""
        raise NotImplementedError

    def back(self) -> StepName | None:
        """Go to the step before; None at the first."""
        raise NotImplementedError

    def look(self) -> tuple[Fact, ...]:
        """What this chapter looks at on this host, read now."""
        raise NotImplementedError

    def predict(self, prediction: Prediction) -> None:
        """Keep the learner's prediction (kept once the run it is about exists: then it can no longer change)."""
        raise NotImplementedError

    def outcome(self) -> PredictionOutcome | None:
        """What became of the prediction; None before both exist."""
        raise NotImplementedError

    def plan(self) -> PlanView:
        """Exactly what ``apply`` would change."""
        raise NotImplementedError

    def choose_cpus(self, producer: int | None, accumulator: int | None, journaller: int | None) -> None:
        """The learner's own placement for ``again`` (all None = back to auto). Raises HostError when impossible."""
        raise NotImplementedError

    def request(self, slot: StepName) -> MeasureRequest:
        """The measurement of a slot (``measure`` or ``again``) as this host can make it."""
        raise NotImplementedError

    def record(self, slot: StepName, run: Run) -> None:
        """Keep a finished run in a slot; sets marks and saves."""
        raise NotImplementedError

    def run_in(self, slot: StepName) -> Run | None:
        """The run kept in a slot."""
        raise NotImplementedError

    def curves(self, published: bool = False) -> tuple[RunCurve, ...]:
        """The curves of this chapter, newest last; with the published ones of 2015 in front when asked for."""
        raise NotImplementedError

    def offer_noise(self) -> str:
        """A sentence offering to wake a thief, where the baseline is already quiet (p99.99 < 10 µs); else ""."""
        raise NotImplementedError

    def compare(self) -> CompareView | None:
        """``measure`` against ``again``; None until both exist."""
        raise NotImplementedError

    def explain(self) -> Explanation | None:
        """Evidence of the newest run of this chapter; None before there is one."""
        raise NotImplementedError

    def hint(self) -> str | None:
        """The next hint (remembered), or None when there are no more."""
        raise NotImplementedError
